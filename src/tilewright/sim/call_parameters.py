"""Immediate arguments of a vector-unit call, as its row in the op table says they are passed."""

from __future__ import annotations

from typing import Any

from tilewright.sim.numerics.formats import scalar_bits
from tilewright.sim.registry import Site


def parameter_names(site: Site) -> list[str]:
    """``name:encoding`` entries of the form's arguments, in order."""
    if site.form is None:
        return []
    return [argument for argument in site.form.args if ":" in argument]


def encoded_params(site: Site) -> tuple[int, ...]:
    """The integers the C++ call gets."""
    encodings = [argument.split(":")[1] for argument in parameter_names(site)]
    return tuple(_encode(value, kind) for value, kind in zip(site.params, encodings, strict=False))


def _encode(value: Any, kind: str) -> int:
    if kind == "int":
        return int(value)
    if kind == "recip":
        return scalar_bits(1.0 / value if value else float("inf"))
    return scalar_bits(float(value))


def named_params(site: Site) -> dict[str, Any]:
    """Values by parameter name, for the row's NumPy meaning."""
    names = [argument.split(":")[0] for argument in parameter_names(site)]
    return dict(zip(names, site.params, strict=False))


def approximate(site: Site) -> bool:
    """Calls with an approximate variant take it as their first template argument."""
    return bool(site.template) and site.template[0] == "true"


def nearest_even(site: Site) -> bool:
    return any("NearestEven" in word for word in site.template)
