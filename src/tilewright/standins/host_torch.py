"""``device="cuda"``, ``.cuda()`` and ``.to("cuda")`` in scripts written for a GPU: the simulated device, on the host for torch.

torch itself stays the installed one. It is told, once it has been imported, to make on the host what a script asks for on "cuda";
where torch has a GPU of its own, nothing changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

NO_WORK = ("synchronize", "empty_cache", "manual_seed", "manual_seed_all", "set_device", "reset_peak_memory_stats")


def host_for_cuda(torch: Any) -> Callable[[], None]:
    """Lets ``torch`` take "cuda" for the host; gives what undoes it."""
    from torch.overrides import TorchFunctionMode  # pyright: ignore

    class HostForCuda(TorchFunctionMode):  # pyright: ignore
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.cuda:
                return args[0]
            given: dict[str, Any] = kwargs or {}
            named = {name: _on_host(value) for name, value in given.items()}
            return func(*(_on_host(value) for value in args), **named)

    def nothing(*_args: Any, **_named: Any) -> None:
        """The simulator has answered when a call returns."""

    mode: Any = HostForCuda()
    mode.__enter__()
    changed = {name: getattr(torch.cuda, name) for name in NO_WORK if hasattr(torch.cuda, name)}
    for name in changed:
        setattr(torch.cuda, name, nothing)

    def undo() -> None:
        mode.__exit__(None, None, None)
        for name, function in changed.items():
            setattr(torch.cuda, name, function)

    return undo


def _on_host(value: Any) -> Any:
    """``"cuda"``, ``"cuda:0"`` and such devices as the host; anything else as it is."""
    kind = value if isinstance(value, str) else getattr(value, "type", None) if type(value).__name__ == "device" else None
    return "cpu" if isinstance(kind, str) and kind.partition(":")[0] == "cuda" else value


class TorchFinder:
    """Finds the installed torch, and has it told when its import is complete."""

    def __init__(self, imported: Callable[[Any], None]) -> None:
        self.imported = imported
        self.asked = False

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "torch" or self.asked:
            return None
        self.asked = True  # the others find it
        spec = find_spec("torch")
        self.asked = False
        if spec is None or spec.loader is None:
            return None
        complete = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            complete(module)
            self.imported(module)

        spec.loader.exec_module = exec_module
        return spec


@contextmanager
def installed() -> Generator[None, None, None]:
    undo: list[Callable[[], None]] = []

    def tell(torch: Any) -> None:
        if not torch.cuda.is_available():
            undo.append(host_for_cuda(torch))

    finder = TorchFinder(tell)
    if sys.modules.get("torch") is not None:
        tell(sys.modules["torch"])
    sys.meta_path.insert(0, finder)  # pyright: ignore[reportArgumentType]
    try:
        yield
    finally:
        sys.meta_path.remove(finder)  # pyright: ignore[reportArgumentType]
        for each in undo:
            each()
