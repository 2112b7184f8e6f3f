"""What scripts import of TileLang: ``jit``, ``compile``, the namespace ``T``, profilers, ``autotune``."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.cache_key import key_of
from tilewright.diagnostics import caller_span, fail
from tilewright.jit.tilelang_kernel import EagerKernel, TileLangKernel
from tilewright.lang.tilelang_tensors import Dimension, TensorType, element_name
from tilewright.narrowing import as_tuple
from tilewright.options import Options


def prim_func(function: Callable[..., Any] | None = None, **_hints: Any) -> Any:
    """``@T.prim_func``: a kernel. Parameters without types take them from the arguments of the call."""
    return TileLangKernel(function) if function is not None else TileLangKernel


def compile_kernel(func: Any = None, out_idx: Any = None, **settings: Any) -> TileLangKernel:
    """``tilelang.compile(func, out_idx=[-1])``. ``func`` may also be a function that TileLang itself has built."""
    built = func if isinstance(func, TileLangKernel) else prim_func_of(func)
    if built is None:
        remedy = "ours, a tvm PrimFunc, or what tilelang's own jit gives"
        raise fail("TW004", "tilelang.compile takes a T.prim_func", caller_span("compile"), help=remedy)
    return _configured(built if isinstance(built, TileLangKernel) else imported(built), out_idx, settings)


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
            message = f"'{self.function.__name__}' returned {type(kernel).__name__}, not a kernel"
            remedy = "return a function marked @T.prim_func, or write 'with T.Kernel(…)' in the function itself"
            raise fail("TW004", message, caller_span(), help=remedy)
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


class Language:
    """``T``: names are found when they are asked for. Behaves like the module ``tilelang.language``."""

    __name__ = "tilelang.language"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        from tilewright.frontend.tilelang import namespace

        found = prim_func if name == "prim_func" else namespace.find(name)
        self.__dict__[name] = found
        return found

    def key_parts(self) -> tuple[Any, ...]:
        return ()

    def __dir__(self) -> list[str]:
        from tilewright.frontend.tilelang import namespace

        return namespace.names()

    def __repr__(self) -> str:
        return "<module 'tilelang.language' of Tilewright>"


language = Language()


_written = itertools.count(1)


def is_prim_func(value: Any) -> bool:
    """By its parts, so that TVM is not imported."""
    return all(hasattr(value, part) for part in ("params", "buffer_map", "body", "attrs"))


def prim_func_of(value: Any) -> Any:
    """The function inside what TileLang's own ``jit`` or ``compile`` gives, or ``value`` itself; None if there is none."""
    inner = getattr(value, "prim_func", None)
    return next((one for one in (value, inner) if is_prim_func(one)), None)


def imported(function: Any) -> TileLangKernel:
    """The kernel, from source text written for it; the text stands in linecache like a file."""
    from tilewright.frontend.tilelang.prim_func_text import text_of

    written = text_of(function)
    file = f"<PrimFunc {written.name} {next(_written)}>"
    linecache.cache[file] = (len(written.text), None, written.text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"T": language, **{name: Dimension(name) for name in written.dimensions}}
    exec(compile(written.text, file, "exec"), scope)
    kernel = scope[written.name]
    assert isinstance(kernel, TileLangKernel)
    return kernel


class Names:
    """Settings whose values have no effect here: ``TensorSupplyType.Auto``, ``PassConfigKey.TL_…``; any name is known."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Profiler:
    """``kernel.get_profiler()``: checks a kernel on random tensors."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def inputs(self) -> list[Any]:
        """Random tensors for every parameter that is not created by the call: torch's if the script uses torch."""
        kernel = self.kernel
        if not kernel.types:
            return [_random(kind, number) for number, kind in enumerate(kernel.declared_types())]
        names = [name for index, name in enumerate(kernel.signature.parameters) if index not in kernel.out_idx]
        missing = next((name for name in names if not _is_known(kernel.types.get(name))), None)
        if missing is not None:
            raise fail("TW104", f"{kernel.name}: the shape of '{missing}' is not known", kernel.span, help="call it with tensors")
        return [_random(kernel.types[name], number) for number, name in enumerate(names)]

    def assert_allclose(
        self,
        reference: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
        **_hints: Any,
    ) -> None:
        import numpy as np

        given = list(input_tensors or self.inputs())
        found, wanted = as_tuple(self.kernel(*given)), as_tuple(reference(*given))
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            first, second = _numbers(one), _numbers(other)
            wrong = ~np.isclose(first, second, rtol=rtol, atol=atol, equal_nan=True)
            if wrong.mean() > max_mismatched_ratio:
                worst = float(np.abs(first - second).max())
                raise AssertionError(
                    f"output {number}: {wrong.mean():.1%} of the elements differ, the largest error is {worst:g}"
                )

    def do_bench(self, func: Callable[..., Any] | None = None, *_args: Any, **_hints: Any) -> float:
        """Milliseconds that one call of the function, or of the kernel, takes here: see the function `do_bench`."""
        return do_bench(functools.partial(func or self.kernel, *self.inputs()))

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        return (func or self.kernel)(*self.inputs())

    __call__ = run_once


def _is_known(kind: Any) -> bool:
    return isinstance(kind, TensorType) and kind.known_shape() is not None


def _random(kind: TensorType, seed: int) -> Any:
    import ml_dtypes
    import numpy as np

    name = element_name(kind.dtype)
    name = {"float": "float32"}.get(name, name)
    rng = np.random.default_rng(seed)
    shape = kind.known_shape() or ()
    whole = name.startswith(("int", "uint", "bool"))
    values = rng.integers(0, 2 if name == "bool" else 8, shape) if whole else rng.standard_normal(shape)
    if "torch" in sys.modules:
        import torch  # pyright: ignore

        return torch.tensor(values).to(getattr(torch, name))  # pyright: ignore
    return values.astype(ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name))




def _numbers(value: Any) -> Any:
    import numpy as np

    return np.asarray(value.float() if hasattr(value, "float") else value, dtype=np.float64)


def do_bench(function: Callable[[], Any], *_args: Any, **_hints: Any) -> float:
    """Milliseconds one call takes where it runs: without a device that is the time of the simulator, not of a chip."""
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


# Modules around the language: their names, and what they are here.
PARTS: dict[str, dict[str, str]] = {
    "profiler": {"do_bench": "do_bench", "Profiler": "Profiler"},
    "layout": dict.fromkeys(("make_swizzled_layout", "make_linear_layout", "Layout", "Fragment"), "no_layout"),
    "math": {"next_power_of_2": "next_power_of_two"},
    "testing": {"set_random_seed": "set_random_seed"},
}


def part(name: str) -> dict[str, Any]:
    """Names of ``tilelang.<name>``."""
    return {each: globals()[own] for each, own in PARTS[name].items()}


def next_power_of_two(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def no_layout(*_args: Any, **_named: Any) -> None:
    """Layouts of another machine's memory: accepted, without effect."""


def set_random_seed(seed: int = 42) -> None:
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if "torch" in sys.modules:
        import torch  # pyright: ignore

        torch.manual_seed(seed)  # pyright: ignore
