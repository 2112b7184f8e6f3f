"""TileLang: what ``from tilewright import tilelang`` gives. ``tilelang.language`` is the namespace ``T``."""

from __future__ import annotations

from typing import Any

from tilewright.lang.tilelang_jit import compile_kernel, jit
from tilewright.lang.tilelang_kernel import TileLangKernel
from tilewright.lang.tilelang_language import language

compile = compile_kernel
JITKernel = TileLangKernel


class _PassConfigKeys:
    """Settings of TileLang's own compiler; accepted, without effect."""

    def __getattr__(self, name: str) -> str:
        return name


PassConfigKey = _PassConfigKeys()


def cdiv(value: int, divisor: int) -> int:
    return -(-value // divisor)


def disable_cache() -> None:
    """There is no cache to disable: kernels are kept per argument types in memory."""


def enable_cache() -> None:
    """Kernels are always kept per argument types."""


def __getattr__(name: str) -> Any:
    raise AttributeError(f"Tilewright's tilelang has no '{name}'")


__all__ = ["JITKernel", "PassConfigKey", "cdiv", "compile", "disable_cache", "enable_cache", "jit", "language"]
