"""What a kernel is called with: its tensors, wherever they stand in the arguments, and constants of the compilation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import BoundArguments, Signature
from typing import Any

from tilewright.lang.tensors import is_tensor
from tilewright.records import record

Replace = Callable[[str, Any], Any]  # name of a tensor, the tensor -> what stands for it


@record
class Arguments:
    """One value per parameter. Tensors may also stand in ``*args``, ``**kwargs`` and in lists, tuples and dictionaries."""

    signature: Signature
    values: Mapping[str, Any]

    def tensors(self) -> list[tuple[str, Any]]:
        """Every tensor with its name, in the order of the parameters: ``parts_0`` is the first one of ``parts``."""
        found: list[tuple[str, Any]] = []

        def note(name: str, tensor: Any) -> Any:
            found.append((name, tensor))
            return tensor

        self.replaced(note)
        return found

    def replaced(self, replace: Replace) -> dict[str, Any]:
        """The same arguments with ``replace(name, tensor)`` in place of every tensor."""
        taken = set(self.values)

        def visit(name: str, value: Any, inner: bool) -> Any:
            if is_tensor(value):
                while inner and name in taken:
                    name += "_"
                taken.add(name)
                return replace(name, value)
            if type(value) in (list, tuple):
                return type(value)(visit(f"{name}_{position}", item, True) for position, item in enumerate(value))
            if type(value) is dict:
                return {key: visit(f"{name}_{key}", item, True) for key, item in value.items()}
            return value

        return {name: visit(name, value, False) for name, value in self.values.items()}

    def call(self, function: Callable[..., Any], values: dict[str, Any]) -> Any:
        """``function`` with ``values`` where the parameters want them: by position, by name, or gathered."""
        bound = BoundArguments(self.signature, values)  # pyright: ignore[reportArgumentType]
        return function(*bound.args, **bound.kwargs)
