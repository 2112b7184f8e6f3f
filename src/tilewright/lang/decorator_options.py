"""Arguments of ``@ttl.kernel(...)``: ours, the other generation's, and the text of command-line flags."""

from __future__ import annotations

import shlex
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.lang.names import (
    DECORATOR_WITHOUT_EFFECT,
    OPTION_FLAGS,
    OPTION_FLAGS_WITHOUT_EFFECT,
    OPTION_NAMES,
)
from tilewright.options import Options, wanted_instead

# What other tools take as a statement about all tensors, and what of it is always so here.
STATED: dict[str, tuple[Any, ...]] = {"tiled": (True, None), "memory_space": ("L1", "DRAM", None)}


def compile_options(arguments: dict[str, Any], span: Span) -> Options:
    changes: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == "options":
            changes.update(_flags(str(value or ""), span))
        elif name in OPTION_NAMES:
            changes[OPTION_NAMES[name]] = _word(value) if name == "math_fidelity" else value
        elif name in Options.names():
            changes[name] = value
        elif name not in DECORATOR_WITHOUT_EFFECT:
            raise fail("TW015", f"the kernel decorator has no argument '{name}'", span, help=_known(name))
        elif name in STATED and value not in STATED[name]:
            remedy = "each tensor says itself whether it lies in tiles and in which memory"
            raise fail("TW015", f"{name} is {value!r}", span, help=remedy)
    check_values(changes, span)
    return Options(**changes)


def check_values(changes: dict[str, Any], span: Span) -> None:
    """Refuses values that an option cannot have."""
    for name, value in changes.items():
        wanted = wanted_instead(name, value)
        if wanted:
            raise fail("TW015", f"{name} is {value!r}", span, help=wanted)


def _known(name: str) -> str:
    known = list(dict.fromkeys(("grid", "options", *OPTION_NAMES, *Options.names())))
    import difflib

    close = difflib.get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(close)}?" if close else f"it takes {', '.join(known)}"


def _word(fidelity: Any) -> Any:
    """``ttnn.MathFidelity.HiFi4`` by its last name."""
    return None if fidelity is None else str(fidelity).rpartition(".")[2]


def _flags(text: str, span: Span) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for word in shlex.split(text):
        name, _, value = word.lstrip("-").partition("=")
        off = name.startswith("no-") or value in ("0", "false", "off")
        name = name.removeprefix("no-")
        if name in OPTION_FLAGS:
            option, when_on, when_off = OPTION_FLAGS[name]
            changes[option] = when_off if off else when_on
        elif name not in OPTION_FLAGS_WITHOUT_EFFECT and not word.lstrip("-").isdigit():
            known = ", ".join(f"--{flag}" for flag in (*OPTION_FLAGS, *OPTION_FLAGS_WITHOUT_EFFECT))
            raise fail("TW015", f"unknown flag '{word}' in options", span, help=f"known flags: {known}")
    return changes
