"""``tilelang.jit``, ``tilelang.compile`` and the decorators of ``T``."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any

from tilewright.cache_key import key_of
from tilewright.diagnostics import fail
from tilewright.lang.building import caller_span
from tilewright.lang.tilelang_eager import EagerKernel
from tilewright.lang.tilelang_kernel import TileLangKernel
from tilewright.lang.tilelang_macro import Macro
from tilewright.options import Options


def prim_func(function: Callable[..., Any] | None = None, **_hints: Any) -> Any:
    """``@T.prim_func``: a kernel. Parameters without types take them from the arguments of the call."""
    return TileLangKernel(function) if function is not None else TileLangKernel


def macro(function: Callable[..., Any] | None = None, **_hints: Any) -> Any:
    return Macro(function) if function is not None else Macro


def compile_kernel(func: Any = None, out_idx: Any = None, **settings: Any) -> TileLangKernel:
    """``tilelang.compile(func, out_idx=[-1])``. ``func`` may also be a function that TileLang itself has built."""
    kernel = func if isinstance(func, TileLangKernel) else _imported(func)
    if kernel is None:
        raise fail(
            "TW004",
            "tilelang.compile takes a T.prim_func",
            caller_span("compile"),
            help="ours, a tvm PrimFunc, or what tilelang's own jit gives",
        )
    return _configured(kernel, out_idx, settings)


def _imported(func: Any) -> TileLangKernel | None:
    from tilewright.lang.tilelang_prim_func import imported, prim_func_of

    found = prim_func_of(func)
    return None if found is None else imported(found)


def jit(function: Callable[..., Any] | None = None, *, out_idx: Any = None, **settings: Any) -> Any:
    """``@tilelang.jit``: on a factory of kernels, or on a kernel in the eager style."""

    def decorate(target: Callable[..., Any]) -> Any:
        if isinstance(target, TileLangKernel):
            return _configured(target, out_idx, settings)
        if launches(target):
            return _configured(EagerKernel(target), out_idx, settings)
        return Factory(target, out_idx, settings)

    return decorate if function is None else decorate(function)


class Factory:
    """A function that returns a kernel; kernels are kept by what the function reads and is given."""

    def __init__(self, function: Callable[..., Any], out_idx: Any, settings: dict[str, Any]) -> None:
        self.function, self.out_idx, self.settings = function, out_idx, settings
        self._kernels: dict[str, TileLangKernel] = {}
        functools.update_wrapper(self, function)

    def key_parts(self) -> tuple[Any, ...]:
        return self.function, self.out_idx, self.settings

    def __call__(self, *args: Any, **named: Any) -> TileLangKernel:
        key = key_of(self, {"*": args, **named})
        if key is not None and key in self._kernels:
            return self._kernels[key]
        kernel = self.function(*args, **named)
        if not isinstance(kernel, TileLangKernel):
            raise fail(
                "TW004",
                f"'{self.function.__name__}' returned {type(kernel).__name__}, not a kernel",
                caller_span(),
                help="return a function marked @T.prim_func, or write 'with T.Kernel(…)' in the function itself",
            )
        result = _configured(kernel, self.out_idx, self.settings)
        if result.label == "main":  # what factories call everything
            result.label = self.function.__name__
        if key is not None:
            self._kernels[key] = result
        return result


def _configured(kernel: TileLangKernel, out_idx: Any, settings: dict[str, Any]) -> TileLangKernel:
    """Settings that name an option of ours count; those of other targets do not."""
    changed = kernel.with_outputs(out_idx)
    changed.options = kernel.options.updated(**{name: value for name, value in settings.items() if name in Options.names()})
    return changed


def launches(function: Callable[..., Any]) -> bool:
    """Whether the function's own body has ``with T.Kernel(…)``: the eager style."""
    from tilewright.frontend.syntax import function_node, own_nodes

    if not inspect.isfunction(function):
        return False
    heads = [node.items[0].context_expr for node in own_nodes(function_node(function).body) if isinstance(node, ast.With)]  # pyright: ignore
    called = [head.func for head in heads if isinstance(head, ast.Call)]
    return any(isinstance(name, ast.Attribute) and name.attr == "Kernel" for name in called)
