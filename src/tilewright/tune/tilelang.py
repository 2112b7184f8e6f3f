"""TileLang's own ways to ask for tuning: ``@tilelang.autotune(configs=…)`` and ``AutoTuner``, on the same search."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tilewright.diagnostics import caller_span, fail
from tilewright.jit.tilelang_jit import compile_kernel
from tilewright.tune.autotune import Tuned, chosen
from tilewright.tune.problem import Request, Subject, pose

BUDGET = 30.0  # seconds of an AutoTuner


class TunedTileLang(Tuned):
    """A factory or an eager kernel. What it does not know itself, its target is asked for."""

    def compile(self, *args: Any, **named: Any) -> Any:
        """As the target's: a kernel with the best values fixed, or a program if tensors are given."""
        problem, space = pose(self.subject, self.request, args, named)
        return self.subject.target.compile(*args, **problem.named, **self.choose(problem, space))

    def __getattr__(self, name: str) -> Any:
        if name == "subject":
            raise AttributeError(name)
        return getattr(self.subject.target, name)


def tuned(target: Any, configs: Any) -> TunedTileLang:
    return TunedTileLang(Subject(target), Request(configs=[{}] if configs is None else configs))


def autotune(function: Callable[..., Any] | None = None, *, configs: Any = None, **_hints: Any) -> Any:
    """``@tilelang.autotune(configs=…)``: arguments that a call leaves out come from the fastest configuration."""
    return functools.partial(tuned, configs=configs) if function is None else tuned(function, configs)


class AutoTuner:
    """``AutoTuner.from_kernel(factory, configs)``; ``run()`` gives the fastest configuration and its kernel."""

    def __init__(self, kernel: Any, configs: Any) -> None:
        self.kernel, self.configs = kernel, configs
        self.out_idx: Any = None

    @classmethod
    def from_kernel(cls, kernel: Any, configs: Any) -> AutoTuner:
        return cls(kernel, configs)

    def _set(self, *_args: Any, **_named: Any) -> AutoTuner:
        """Settings of measurements; times are predicted."""
        return self

    set_profile_args = set_cache_args = _set

    def set_compile_args(self, out_idx: Any = None, **_settings: Any) -> AutoTuner:
        self.out_idx = out_idx
        return self

    def run(self, *_args: Any, **_named: Any) -> Any:
        return run_tuner(self.kernel, self.configs, self.out_idx)


def run_tuner(factory: Any, configs: Any, out_idx: Any) -> Any:
    """The best kernel, its configuration, its predicted milliseconds."""
    listed = list(configs)
    if not listed:
        raise fail("TW019", "there are no configurations", caller_span("run"), help='from_kernel(factory, [{"block": 32}, …])')
    found = tuned(factory, listed)
    problem, space = pose(found.subject, found.request, (), {})
    outcome = found.search(problem, space, budget=BUDGET)
    best = chosen(outcome, found.subject)
    made, _, _ = found.subject.kernel(problem, best.config)
    kernel = compile_kernel(made, out_idx=out_idx or list(made.out_idx))
    return SimpleNamespace(
        kernel=kernel, config=best.config, latency=best.time / 1000, ref_latency=None, func=factory,
        libcode=kernel.get_kernel_source(),
    )  # fmt: skip
