"""Runs a compiled program where the current session wants it, and tells listeners what ran.

A session is what surrounds kernel calls: ``tilewright run --native`` or ``with execution.session(mode="fast"):``. The
decorated kernel asks it for option overrides before it compiles and hands the program over with ``run``.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import fail
from tilewright.dialects.loading import load_xdsl
from tilewright.lang.tensors import lives_on_device
from tilewright.program import dst_facts
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.options import Options
    from tilewright.program import Program

AUTO = "auto"  # device for tensors that live on one, else the simulator
SIM = "sim"
FAST = "fast"
NATIVE = "native"
DEVICE = "device"
COMPILE = "compile"  # compile every called kernel, run none
PROFILE = "profile"  # time every called kernel, compute values where `Profiling` says so
MODES = (AUTO, SIM, FAST, NATIVE, DEVICE, COMPILE, PROFILE)


@record(kw_only=True)
class Execution:
    """One kernel call that has finished."""

    program: Program
    mode: str
    seconds: float
    result: Any = None  # what the runner returned: SimResult, native result, None on a device
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])  # run-time integers of the call
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


Listener = Callable[[Execution], None]
CompiledListener = Callable[["Program"], None]


@record(frozen=False, kw_only=True)
class Profiling:
    """What a profile is made for."""

    record: bool = False  # keep every slice, for a picture
    advise: bool = True  # try what would help
    thorough: bool = False  # all of it, however large the kernel is
    values: bool | None = False  # compute results, and how far they are off; None: until a kernel is large


@record(kw_only=True)
class Session:
    mode: str = AUTO
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])  # Options fields that win over the decorator's
    keep_ir: bool = False  # record the IR after every pass
    cache: bool | None = None  # use results on disk; None: as `caches` says
    listeners: tuple[Listener, ...] = ()
    on_compiled: tuple[CompiledListener, ...] = ()
    silent: bool = False  # simulated kernels print nothing and do not stop at breakpoints
    profiling: Profiling = field(default_factory=Profiling)
    # In place of the mode's own. It gets the caller's tensors; None for one that is made for the kernel.
    runner: Callable[[Program, Sequence[Any], Mapping[str, int]], Any] | None = None

    def options(self, options: Options) -> Options:
        """``options`` as the session wants them."""
        return options.updated(**self.overrides) if self.overrides else options

    def caches(self, mode: str) -> bool:
        """Whether a program for ``mode`` may come from disk and go there."""
        return not self.keep_ir and (mode in (COMPILE, DEVICE, NATIVE) if self.cache is None else self.cache)


DEFAULT_SESSION = Session()
_current: ContextVar[Session | None] = ContextVar("tilewright_session", default=None)


VERBOSE_PASSES = "TTLANG_VERBOSE_PASSES"  # the specification's variable: print the IR after every pass


def verbose_passes() -> bool:
    return os.environ.get(VERBOSE_PASSES, "0") not in ("", "0")


def current() -> Session:
    return _current.get() or (_verbose_session() if verbose_passes() else DEFAULT_SESSION)


@functools.cache
def _verbose_session() -> Session:
    """What a script run by plain Python gets: every program's passes once, on its standard output."""
    from tilewright.report import terminal

    seen: list[Program] = []

    def tell(program: Program) -> None:
        if not any(program is known for known in seen):
            seen.append(program)
            print(terminal.stages(program.trace, program.name), flush=True)

    return Session(keep_ir=True, on_compiled=(tell,))


@contextmanager
def session(**changes: Any) -> Generator[Session, None, None]:
    """``with session(mode="native"): kernel(a, b)``; fields of `Session` that are not given keep their value."""
    changed = replace(current(), **changes)
    if changed.mode not in MODES:
        raise ValueError(f"unknown mode {changed.mode!r}; one of {', '.join(MODES)}")
    token = _current.set(changed)
    try:
        yield changed
    finally:
        _current.reset(token)


def run(program: Program, args: Sequence[Any], numbers: Mapping[str, int] | None = None, *, again: Any = None) -> None:
    """Executes ``program`` on ``args``; the tensors it writes are changed in place.

    ``again`` (a `tilewright.timing.advice.Again`) lets a profile try the kernel compiled in another way.
    """
    now = current()
    for tell in now.on_compiled:
        tell(program)
    mode = chosen_mode(now.mode, args)
    if mode == COMPILE:
        return
    started = time.perf_counter()
    if mode == PROFILE and now.runner is None:
        result = run_profiled(program, args, numbers or {}, again)
    else:
        result = (now.runner or RUNNERS[mode])(program, args, numbers or {})
    seconds = time.perf_counter() - started
    record = Execution(
        program=program, mode=mode, seconds=seconds, result=result, numbers=numbers or {}, facts=dst_facts(program)
    )
    for tell in now.listeners:
        tell(record)
    if not now.listeners:  # a plain call from Python: nobody else would say it
        for found in getattr(result, "warnings", ()):
            warnings.warn(found.render(), stacklevel=3)


def chosen_mode(mode: str, args: Sequence[Any]) -> str:
    if mode != AUTO:
        return mode
    return DEVICE if any(lives_on_device(arg) for arg in args) else SIM


def run_simulated(program: Program, args: Sequence[Any], numbers: Mapping[str, int]) -> Any:
    load_xdsl()
    from tilewright.sim.run import simulate

    return on_arrays(args, lambda arrays: simulate(program, arrays, scalars=numbers, silent=current().silent))


def run_fast(program: Program, args: Sequence[Any], numbers: Mapping[str, int]) -> Any:
    load_xdsl()
    from tilewright.sim.run import simulate

    return on_arrays(args, lambda arrays: simulate(program, arrays, fast=True, scalars=numbers, silent=current().silent))


def run_native(program: Program, args: Sequence[Any], numbers: Mapping[str, int]) -> Any:
    from tilewright.native import driver
    from tilewright.native.findings import NoCompilerError

    try:
        return on_arrays(args, lambda arrays: driver.run(program, arrays, scalars=numbers))
    except NoCompilerError as error:
        raise fail("TW601", str(error), help="leave out --native to simulate") from None


def run_profiled(program: Program, args: Sequence[Any], numbers: Mapping[str, int], again: Any) -> Any:
    from tilewright.sim.work import is_small
    from tilewright.timing.profile import profile

    wanted = current().profiling
    if wanted.values is None and not is_small(program):
        wanted.values = False  # what later kernels read is not known either

    def timed(arrays: Sequence[Any] | None) -> Any:
        return profile(
            program, numbers, record=wanted.record, advise=wanted.advise, again=again, thorough=wanted.thorough, arrays=arrays
        )

    return timed(None) if wanted.values is False else on_arrays(args, timed)


def on_arrays(args: Sequence[Any], engine: Callable[[list[Any]], Any]) -> Any:
    """Calls ``engine`` with the tensors' values, which it changes in place, and puts what changed back.

    Tensors that the kernel only reads stay untouched: writing them back would round the data of a ``ttl.bf16`` view.
    """
    from tilewright.lang import tensors

    arrays = [tensors.to_array(arg) for arg in args]
    before = [None if array is arg else array.copy() for arg, array in zip(args, arrays, strict=True)]
    result = engine(arrays)
    for arg, array, old in zip(args, arrays, before, strict=True):
        if old is not None and (array.view("u1") != old.view("u1")).any():
            tensors.from_array(arg, array)
    return result


def run_on_device(program: Program, args: Sequence[Any], numbers: Mapping[str, int]) -> Any:
    return _launcher().run(program, args, numbers)


def fitted(options: Options, mode: str, args: Sequence[Any]) -> Options:
    """``options`` as ``mode`` needs them: on a device the release of ttnn and the kind of chip are what is there."""
    return _launcher().fitted(options, args) if mode == DEVICE else options


def device_options(args: Sequence[Any]) -> dict[str, Any]:
    """Options that only the device decides: release, chip and cores."""
    from tilewright.options import Options

    found = fitted(Options(), DEVICE, args)
    return {"metal": found.metal, "arch": found.arch, "card_grid": found.card_grid}


def measured(program: Program, args: Sequence[Any]) -> float:
    """Microseconds of one run on the device."""
    return _launcher().microseconds(program, args)


def _launcher() -> Any:
    if importlib.util.find_spec("ttnn") is None:
        raise fail("TW601", "running on a device needs ttnn, which is not installed", help="pip install ttnn")
    return importlib.import_module("tilewright.runtime.launch")


RUNNERS: dict[str, Callable[[Program, Sequence[Any], Mapping[str, int]], Any]] = {
    SIM: run_simulated,
    FAST: run_fast,
    NATIVE: run_native,
    DEVICE: run_on_device,
}
