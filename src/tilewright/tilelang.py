"""TileLang: what ``from tilewright import tilelang`` gives. ``tilelang.language`` is the namespace ``T``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tilewright.jit.tilelang_jit import PARTS, Names, compile_kernel, jit, language, next_power_of_two, part
from tilewright.jit.tilelang_kernel import TileLangKernel
from tilewright.tune.tilelang import AutoTuner, autotune

compile = compile_kernel
JITKernel = TileLangKernel


PassConfigKey = Names()  # settings of TileLang's own compiler
TensorSupplyType = Names()
next_power_of_2 = next_power_of_two
autotuner = SimpleNamespace(autotune=autotune, AutoTuner=AutoTuner)


def cdiv(value: int, divisor: int) -> int:
    return -(-value // divisor)


def disable_cache() -> None:
    """There is no cache to disable: kernels are kept in memory, under the content of what they read."""


def enable_cache() -> None:
    """Kernels are always kept."""


def __getattr__(name: str) -> Any:
    if name in PARTS:
        return SimpleNamespace(**part(name))
    raise AttributeError(f"Tilewright's tilelang has no '{name}'")


def set_log_level(_level: Any) -> None:
    """Tilewright writes no log."""


__all__ = [
    "JITKernel", "PassConfigKey", "TensorSupplyType", "autotune", "autotuner", "cdiv", "compile", "disable_cache", "enable_cache",
    "jit", "language", "next_power_of_2", "set_log_level",
]  # fmt: skip
