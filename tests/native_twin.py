"""Whatever a test simulates also runs natively: a compiled program whose text has not run yet runs at the end of the test.

Both runs get the same data and must give the same bits. Programs made by hand from IR have no text and stay out. A test whose
program cannot run natively says so: ``@pytest.mark.simulated_only("reason")``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.native import compiled
from tilewright.native.driver import DEFAULT_SECONDS
from tilewright.program import Program
from tilewright.sim import run as sim_run


@dataclass(frozen=True)
class Simulated:
    """One simulation: the arrays before and after it."""

    program: Program
    before: list[Any]
    after: list[Any]
    scalars: Mapping[str, int] | None


class NativeTwin:
    """Stands around the simulator and the native run, and knows which programs have been through both."""

    def __init__(self) -> None:
        self.simulate, self.run_program = sim_run.simulate, compiled.run_program
        self.finished: set[Any] = set()
        self.pending: dict[Any, Simulated] = {}
        sim_run.simulate = self.watched_simulation  # before a test imports it by name
        compiled.run_program = self.watched_native_run

    def watched_simulation(
        self,
        program: Program,
        arrays: Sequence[Any],
        *,
        fast: bool = False,
        scalars: Mapping[str, int] | None = None,
        silent: bool = False,
    ) -> Any:
        key = identity(program)
        new = bool(program.cpp) and key not in self.finished and key not in self.pending
        before = copies(arrays) if new else []
        result = self.simulate(program, arrays, fast=fast, scalars=scalars, silent=silent)
        if new:
            after = copies(before if fast else arrays)
            if fast:  # it rounds elsewhere: compare with the full model
                self.simulate(program, after, scalars=scalars, silent=True)  # prints of the kernel have been seen
            self.pending[key] = Simulated(program, before, after, scalars)
        return result

    def watched_native_run(self, program: Program, arrays: Sequence[Any], **choices: Any) -> Any:
        result = self.run_program(program, arrays, **choices)
        key = identity(program)
        self.finished.add(key)
        self.pending.pop(key, None)
        return result

    def settle(self) -> None:
        """Runs what was only simulated since the last call."""
        waiting, self.pending = self.pending, {}
        for key, simulated in waiting.items():
            self.run_program(simulated.program, simulated.before, scalars=simulated.scalars, seconds=DEFAULT_SECONDS)
            for spec, wanted, found in zip(simulated.program.tensors, simulated.after, simulated.before, strict=True):
                assert wanted.tobytes() == found.tobytes(), f"simulator and native run differ in tensor '{spec.name}'"
            self.finished.add(key)


def copies(arrays: Sequence[Any]) -> list[Any]:
    """An array that is given twice is one array here too."""
    places = [(array.__array_interface__["data"][0], array.shape) for array in map(np.asarray, arrays)]
    made = {place: np.array(array) for place, array in zip(places, arrays, strict=True)}
    return [made[place] for place in places]


def identity(program: Program) -> Any:
    """What a native run depends on, its data apart."""
    texts = tuple(sorted(program.cpp.items()))
    return hash((texts, program.options.metal, program.grid, program.config, program.buffers, program.tensors))
