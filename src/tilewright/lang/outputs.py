"""Output tensors the caller leaves out: ``c = kernel(a, b)``.

They are made like the first tensor argument: its shape, dtype and place. An output of another shape must be given.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

from tilewright.lang.tensors import BFloat16View, is_tensor

GATHERING = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def left_out(signature: Signature, args: Sequence[Any], named: Mapping[str, Any], numbers: Collection[str]) -> dict[str, Any]:
    """Tensors for the parameters at the end that got none; nothing if the call is wrong in another way."""
    try:
        given = signature.bind_partial(*args, **named).arguments
    except TypeError:
        return {}
    names = list(signature.parameters)
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if name not in given and parameter.default is Parameter.empty and parameter.kind not in GATHERING
    ]
    first = next((value for value in given.values() if is_tensor(value)), None)
    if not missing or first is None or names[-len(missing) :] != missing or any(name in numbers for name in missing):
        return {}
    made = {name: empty_like(first) for name in missing}
    return {} if any(value is None for value in made.values()) else made


def empty_like(value: Any) -> Any:
    """A tensor of the same kind as ``value``, to be written; None where that is not known."""
    import numpy

    from tilewright.execution import lives_on_device

    if lives_on_device(value):
        return importlib.import_module("tilewright.runtime.devices").like(value)
    if isinstance(value, BFloat16View):
        return BFloat16View(value.array * 0)
    if isinstance(value, numpy.ndarray):
        return numpy.zeros_like(value)
    if type(value).__module__.partition(".")[0] == "torch":
        return value.new_zeros(value.shape)
    return None


def returned(made: Mapping[str, Any]) -> Any:
    """What the call gives back: the one tensor it made, or all of them in order, or nothing."""
    values = tuple(made.values())
    return values[0] if len(values) == 1 else values or None
