"""What a type checker is told about values of the user, whose classes alone are looked at.

``isinstance(value, list)`` says that it is a list and not of what; whatever comes out of it would then have no type at all.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeIs


def is_tuple(value: object) -> TypeIs[tuple[Any, ...]]:
    return isinstance(value, tuple)


def is_list(value: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """A list or a tuple: what Python's own functions take alike."""
    return isinstance(value, (list, tuple))


def is_row(value: object) -> TypeIs[list[Any] | tuple[Any, ...] | range]:
    """Also a range: items in an order, each known."""
    return isinstance(value, (list, tuple, range))


def is_dict(value: object) -> TypeIs[dict[Any, Any]]:
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeIs[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def is_slice(value: object) -> TypeIs[slice[Any, Any, Any]]:
    return isinstance(value, slice)


def is_array(value: object) -> TypeIs[NDArray[Any]]:
    """An array of NumPy, which need not be loaded to say that something is none."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One value or several: a list or a tuple as a tuple, anything else as its only item."""
    return tuple(value) if is_list(value) else (value,)


def class_of(value: object) -> type[Any]:
    return type(value)


def is_integer(value: object) -> bool:
    """Python's integers and NumPy's; no truth, and not the class of integers, which has the same methods."""
    return not isinstance(value, bool) and hasattr(class_of(value), "__index__")
