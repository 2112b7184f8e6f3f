"""What scripts around TileLang kernels use: profilers, ``do_bench``, ``autotune``, layouts."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.diagnostics import KernelError, fail
from tilewright.lang.tilelang_types import TensorType


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
        found, wanted = _tuple(self.kernel(*given)), _tuple(reference(*given))
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

    from tilewright.frontend.tilelang.dtypes import element_name

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


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _numbers(value: Any) -> Any:
    import numpy as np

    return np.asarray(value.float() if hasattr(value, "float") else value, dtype=np.float64)


def do_bench(function: Callable[[], Any], *_args: Any, **_hints: Any) -> float:
    """Milliseconds one call takes where it runs: without a device that is the time of the simulator, not of a chip."""
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


class Tuned:
    """A factory or kernel whose left-out arguments come from the first configuration that compiles."""

    def __init__(self, target: Any, configs: Any) -> None:
        self.target, self.configs = target, configs
        functools.update_wrapper(self, getattr(target, "function", target))

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._tried(self.target, args, named)

    def compile(self, *args: Any, **named: Any) -> Any:
        return self._tried(self.target.compile, args, named)

    def __getattr__(self, name: str) -> Any:
        if name == "target":
            raise AttributeError(name)
        return getattr(self.target, name)

    def _tried(self, call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        configs: Any = self.configs(*args, **named) if callable(self.configs) else self.configs
        names = list(inspect.signature(getattr(self.target, "function", self.target)).parameters)
        last: KernelError | None = None
        for config in configs or [{}]:
            taken = {*named, *names[: len(args)]}
            try:
                result = call(*args, **{key: value for key, value in config.items() if key not in taken}, **named)
                if hasattr(result, "get_profiler"):  # a kernel: see whether it compiles
                    result.compile()
                return result
            except KernelError as error:
                last = error
        assert last is not None
        raise last


def autotune(function: Callable[..., Any] | None = None, *, configs: Any = None, **_hints: Any) -> Any:
    """``@tilelang.autotune(configs=…)``: arguments that a call leaves out come from the first configuration that compiles."""
    return functools.partial(Tuned, configs=configs) if function is None else Tuned(function, configs)


class AutoTuner:
    """``AutoTuner.from_kernel(factory, configs)``; ``run()`` gives the first configuration that compiles and its kernel."""

    def __init__(self, kernel: Any, configs: Any) -> None:
        self.kernel, self.configs = kernel, configs

    @classmethod
    def from_kernel(cls, kernel: Any, configs: Any) -> AutoTuner:
        return cls(kernel, configs)

    def _set(self, *_args: Any, **_named: Any) -> AutoTuner:
        """Settings of measurements, which are not made."""
        return self

    set_profile_args = set_cache_args = _set

    def set_compile_args(self, out_idx: Any = None, **_settings: Any) -> AutoTuner:
        self.out_idx = out_idx
        return self

    def run(self, *_args: Any, **_named: Any) -> Any:
        from types import SimpleNamespace

        from tilewright.lang.tilelang_jit import compile_kernel

        last: KernelError | None = None
        for config in list(self.configs):
            try:
                found = self.kernel(**config)
                kernel = compile_kernel(found, out_idx=getattr(self, "out_idx", None) or list(found.out_idx))
                kernel.compile()
                return SimpleNamespace(kernel=kernel, config=config, latency=None, ref_latency=None, func=self.kernel)
            except KernelError as error:
                last = error
        raise last or ValueError("no configurations")


# Modules around the language: their names, and what they are here.
PARTS: dict[str, dict[str, str]] = {
    "autotuner": {"autotune": "autotune", "AutoTuner": "AutoTuner"},
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
