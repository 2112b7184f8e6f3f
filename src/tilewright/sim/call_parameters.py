"""What a vector-unit call was given besides tiles: immediates and template arguments, its own and those of its init."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import DATA_FORMATS, INTEGER_DTYPES, WIDTH, WIDTH_16, TileOp, encode, is_approximate, is_narrow
from tilewright.sim.numerics.formats import scalar_bits
from tilewright.sim.numerics.integer_ops import WRAPPING_BINARY, WRAPPING_UNARY
from tilewright.sim.registry import Site

UNIT_SCALE = scalar_bits(1.0)
COMPARISONS = ("eq_", "ne_", "lt_", "gt_", "le_", "ge_")
EITHER = ("where_tile", "logical_not_tile")  # calls on floats and integers
INTEGER_NAMES = tuple(DATA_FORMATS[dtype] for dtype in INTEGER_DTYPES)
DTYPES = {name: dtype for dtype, name in DATA_FORMATS.items()}


def immediates(site: Site, init: Site | None) -> list[tuple[str, str, Any]]:
    """Name, encoding and value of each immediate. Some calls leave theirs in the init."""
    assert site.form is not None
    arguments, values = site.form.args, site.params
    if init is not None and any(":" in argument for argument in site.form.init_args):
        arguments, values = site.form.init_args, init.params
    names = [argument.split(":") for argument in arguments if ":" in argument]
    return [(name, encoding, value) for (name, encoding), value in zip(names, values, strict=False)]


def encoded_params(site: Site, init: Site | None) -> tuple[int, ...]:
    """The integers the C++ call gets; the scale of exp is one of the init's template arguments."""
    scale = exp_scale(site, init)
    if scale != UNIT_SCALE:
        return (scale,)
    return tuple(
        scalar_bits(value) if encoding == "float" else int(encode(value, encoding))
        for _, encoding, value in immediates(site, init)
    )


def exp_scale(site: Site, init: Site | None) -> int:
    if site.name != "exp_tile" or init is None or len(init.template) < 2:
        return UNIT_SCALE
    return int(init.template[1], 16)


def variant_of(site: Site, init: Site | None) -> str:
    """Which of its numeric variants a call runs, by its template arguments."""
    form = site.form
    assert form is not None
    if site.name == "typecast_tile":
        return "_".join(DTYPES.get(word.split("::")[-1], word) for word in site.template)
    if "InputClamping::None" in site.template and is_approximate(form.template, form.defaults, site.template):
        return "approx_unclamped"
    if site.name == "recip_tile" and "false" in site.template:
        return "ieee"
    integer = integer_variant(site)
    if integer is not None:
        return integer
    approximate = is_approximate(form.template, form.defaults, site.template)
    if exp_scale(site, init) != UNIT_SCALE:
        return "approx_scaled" if approximate else "scaled"
    if is_narrow(form.template, site.template):
        return "narrow"
    return "approx" if approximate else ""


def integer_variant(site: Site) -> str | None:
    """The variant of a call on integers; ``None`` for calls on floats."""
    words = [word.split("::")[-1] for word in site.template]
    dtype = next((DTYPES[word] for word in words if word in INTEGER_NAMES), "")
    if not dtype:
        return None
    if site.name in EITHER:
        return "integer"
    if dtype == "u32" and site.name[:3] in COMPARISONS:
        return "u32"
    return "u16" if dtype == "u16" and site.name in (*WRAPPING_BINARY, *WRAPPING_UNARY) else ""


def same_variant(site: Site, init: Site) -> bool:
    """Whether call and init ask for the same form, exact or approximate, for DST's width or for 16 bits, where both are asked."""
    form = site.form
    assert form is not None
    if WIDTH in form.init_template and is_narrow(form.template, site.template) != is_narrow(form.init_template, init.template):
        return False
    if "{approx}" not in form.template or "{approx}" not in form.init_template:
        return True
    in_call = is_approximate(form.template, form.defaults, site.template)
    return in_call == is_approximate(form.init_template, form.init_defaults, init.template)


def nearest_even(site: Site) -> bool:
    return any("NearestEven" in word for word in site.template)


def meaning_of(site: Site, init: Site | None) -> tuple[TileOp, dict[str, Any]] | None:
    """The row behind a call and its parameters by name. Rows may share a call; the most specific one that fits is meant."""
    fitting: list[tuple[int, TileOp, dict[str, Any]]] = []
    for row in tile_ops.ROWS:
        for form in row.forms:
            if form.call != site.name:
                continue
            in_call = match_template(form.template, site.template)
            in_init = match_template(form.init_template, () if init is None else init.template)
            if in_call is not None and in_init is not None:
                given = {**in_call, **in_init, **{name: value for name, _, value in immediates(site, init)}}
                if all(param.default is not None or param.name in given for param in row.params):
                    fitting.append((len(in_init) + len(form.init_template), row, given))
    if not fitting and site.row is not None:
        fitting.append((0, site.row, {name: value for name, _, value in immediates(site, init)}))
    if not fitting:
        return None
    _, row, params = max(fitting, key=lambda entry: entry[0])
    return row, {name: value for name, value in params.items() if any(param.name == name for param in row.params)}


def match_template(pattern: Sequence[str], words: Sequence[str]) -> dict[str, Any] | None:
    """Parameters that template arguments spell out, or ``None`` if the words do not fit. Left-out arguments fit."""
    found: dict[str, Any] = {}
    if len(words) > len(pattern):
        return None
    for expected, word in zip(pattern, words, strict=False):
        hole = re.search(r"\{(\w+):?(\w*)\}", expected)
        if hole is None:
            if expected != word:
                return None
            continue
        name, encoding = hole.groups()
        text = word.removeprefix(expected[: hole.start()])
        if encoding == "format":
            found[name] = DTYPES.get(text, text)
        elif encoding == "width":
            found[name] = text == WIDTH_16
        elif encoding == "f32":
            found[name] = struct.unpack("<f", struct.pack("<I", int(text, 16)))[0]
        elif text in ("true", "false"):
            found[name] = text == "true"
    return found
