"""What became of one configuration. The functions here run in workers; all they return is plain data."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from tilewright import execution, hardware
from tilewright.diagnostics import KernelError
from tilewright.records import record
from tilewright.tune.problem import Problem, Subject
from tilewright.tune.space import text_of

if TYPE_CHECKING:
    from tilewright.program import Program

REFUSED, LOOKED, TIMED = "refused", "looked at", "timed"
ESTIMATE_UNCERTAINTY = 0.35  # of a time that no timeline has seen
MOST_PROGRAMS = 64  # a worker keeps


@record(kw_only=True)
class Trial:
    config: dict[str, Any]
    state: str = LOOKED
    reason: str = ""  # why it was refused
    bound: float = 0.0  # microseconds that it takes at least
    estimate: float | None = None  # the author's, microseconds
    predicted: float | None = None  # by the timeline, microseconds
    measured: float | None = None  # on a device, microseconds
    binds: str = ""
    uncertainty: float = ESTIMATE_UNCERTAINTY
    calls: int = 0  # that a full run executes
    identity: str = ""  # equal for programs that are the same
    seconds: float = 0.0  # of CPU, all looks at it
    coverage: float = 1.0  # share of the output tensors that it writes, as far as known

    @property
    def time(self) -> float:
        """The best knowledge there is."""
        if self.measured is not None:
            return self.measured
        if self.predicted is not None:
            return self.predicted
        return max(self.bound, self.estimate or 0.0)

    @property
    def how(self) -> str:
        if self.measured is not None:
            return "measured"
        if self.predicted is not None:
            return "predicted"
        return "estimate" if self.estimate is not None else "lower bound"


@record(eq=False)
class Work:
    """What a worker needs to look at any configuration of one problem."""

    subject: Subject
    problem: Problem
    programs: dict[str, Program] = field(default_factory=dict[str, Any])

    def program(self, config: Mapping[str, Any]) -> Program:
        wanted = text_of(config)
        found = self.programs.get(wanted)
        if found is None:
            if len(self.programs) >= MOST_PROGRAMS:
                self.programs.clear()
            with execution.session(cache=False):
                found = self.programs[wanted] = self.subject.program(self.problem, config)
        return found


def look(work: Work, config: dict[str, Any]) -> Trial:
    """Compiles and bounds the time from below; a configuration the compiler refuses keeps its words."""
    started = time.process_time()
    try:
        program = work.program(config)
    except KernelError as error:
        return Trial(config=config, state=REFUSED, reason=reason_of(error), seconds=time.process_time() - started)
    from tilewright.timing_constants import constants_of
    from tilewright.tune.bound import lower_bound

    bound = lower_bound(program, work.subject.numbers(work.problem, config))
    return Trial(
        config=config,
        bound=round(bound.cycles / constants_of(program.options.arch).clock_ghz / 1000, 3),
        calls=bound.calls,
        identity=identity(program),
        coverage=coverage(program, bound.written),
        seconds=time.process_time() - started,
    )


def measure_time(work: Work, trial: Trial) -> Trial:
    """Runs the program on the clock, on all its cores."""
    from tilewright.timing.profile import profile

    started = time.process_time()
    numbers = work.subject.numbers(work.problem, trial.config)
    told, found = profile(work.program(trial.config), numbers, advise=False)
    if found.deadlock is not None:
        return replace(trial, state=REFUSED, reason=f"{found.deadlock.code}: {found.deadlock.message}")
    return replace(
        trial,
        state=TIMED,
        predicted=told.microseconds,
        binds=told.bound,
        uncertainty=told.uncertainty,
        coverage=coverage(work.program(trial.config), found.network.bytes_written),
        seconds=trial.seconds + time.process_time() - started,
    )


def coverage(program: Program, written: float) -> float:
    """How much of its outputs in DRAM a program writes. Blocks that do not divide a tensor are a mistake nobody else notices."""
    outputs = [program.tensors[index] for index in program.written_tensors]
    if any(spec.memory != "dram" for spec in outputs):
        return 1.0
    size = sum(math.prod(spec.shape) * hardware.tile_bytes(spec.dtype) / hardware.TILE_ELEMENTS for spec in outputs)
    return min(1.0, round(written / size, 3)) if size else 1.0


def reason_of(error: KernelError) -> str:
    found = error.diagnostics[0]
    return f"{found.code}: {found.message}"


def identity(program: Program) -> str:
    """Equal for programs that do the same: what the timeline reads of them."""
    parts = (sorted(program.cpp.items()), program.grid, program.config, program.buffers, program.tensors, program.options.arch)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def words(best: Trial | None) -> str:
    return "none yet" if best is None else f"{best.time:,.2f} us ({settings(best.config)})"


def settings(config: dict[str, Any]) -> str:
    """A configuration as a person reads it."""

    def text(value: Any) -> str:
        return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)  # pyright: ignore

    return " ".join(f"{name}={text(value)}" for name, value in config.items())
