"""``device="cuda"``, ``.cuda()`` and ``.to("cuda")`` in scripts written for a GPU: the simulated device, on the host for torch.

torch itself stays the installed one. It is told, once it has been imported (`finder`), to make on the host what a script asks for
on "cuda".
"""

from __future__ import annotations

from collections.abc import Callable
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
