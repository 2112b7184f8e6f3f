"""The record of one compilation. Passes write to it; every view (text, page, JSON) reads it and nothing else."""

from __future__ import annotations

import time
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.dst.problem import Plan
    from tilewright.grid import NetSpec
    from tilewright.passes.dst_assignment.dst_problem import RegionProblem


@record(kw_only=True)
class Decision:
    """One choice a pass made, with the reason and the numbers behind it."""

    stage: str
    title: str
    detail: str = ""
    place: str = ""  # file:line of the user's code
    data: dict[str, Any] = field(default_factory=dict[str, Any])


@record(frozen=False, kw_only=True)
class Stage:
    name: str
    seconds: float
    ir: str = ""  # text after the pass, if kept


@record(kw_only=True)
class MemoryUse:
    """L1 of one core."""

    buffers: dict[str, int]  # bytes by name
    limit: int

    @property
    def bytes(self) -> int:
        return sum(self.buffers.values())


@record(kw_only=True)
class StoredDst:
    """What a trace from the cache has instead of its plans."""

    regions: list[dict[str, Any]]
    summary: dict[str, int]


@record(frozen=False, kw_only=True)
class Trace:
    keep_ir: bool = False
    stages: list[Stage] = field(default_factory=list[Stage])
    decisions: list[Decision] = field(default_factory=list[Decision])
    plans: list[tuple[RegionProblem, Plan]] = field(default_factory=list[Any])  # DST, by region in program order
    stored: StoredDst | None = None
    memory: MemoryUse | None = None
    nets: list[NetSpec] = field(default_factory=list[Any])  # pipes as the source declares them, if the IR is kept
    core_groups: int | None = None  # groups of cores that talk among themselves
    started: float = field(default_factory=time.perf_counter)

    def decide(self, stage: str, title: str, detail: str = "", *, place: str = "", **data: Any) -> None:
        self.decisions.append(Decision(stage=stage, title=title, detail=detail, place=place, data=data))

    def stage(self, name: str) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)


def attach(error: BaseException, trace: Trace, kernel: str) -> None:
    """A compilation that failed leaves what it recorded at its error."""
    error.__dict__["tilewright_trace"] = (trace, kernel)


def attached(error: BaseException) -> tuple[Trace, str] | None:
    return error.__dict__.get("tilewright_trace")
