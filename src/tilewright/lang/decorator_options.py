"""Arguments of ``@ttl.kernel(...)``: ours, the other generation's, and the text of command-line flags."""

from __future__ import annotations

import shlex
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.frontend.names import (
    DECORATOR_WITHOUT_EFFECT,
    OPTION_FLAGS,
    OPTION_FLAGS_WITHOUT_EFFECT,
    OPTION_NAMES,
)
from tilewright.options import Options

FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")


def compile_options(arguments: dict[str, Any], span: Span) -> Options:
    changes: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == "options":
            changes.update(_flags(str(value or ""), span))
        elif name in OPTION_NAMES:
            changes[OPTION_NAMES[name]] = _fidelity(value, span) if name == "math_fidelity" else _truth(name, value, span)
        elif name in Options.names():
            changes[name] = value
        elif name not in DECORATOR_WITHOUT_EFFECT:
            known = ", ".join(("grid", "options", *OPTION_NAMES, *Options.names()))
            raise fail("TW015", f"the kernel decorator has no argument '{name}'", span, help=f"it takes {known}")
    return Options(**changes)


def _fidelity(value: Any, span: Span) -> str | None:
    if value is None:
        return None
    word = str(value).rpartition(".")[2]
    if word not in FIDELITIES:
        raise fail("TW015", f"math_fidelity is {value!r}", span, help="one of " + ", ".join(FIDELITIES))
    return word


def _truth(name: str, value: Any, span: Span) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise fail("TW015", f"{name} is {value!r}", span, help="True, False or None (the compiler decides)")
    return value


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
