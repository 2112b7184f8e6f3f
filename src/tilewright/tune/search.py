"""The search: look at configurations, time those that could be the best, look around the best.

A look compiles and gives a time that the configuration cannot beat, so whatever lies above the best known time is left out and
the rest is timed from the lowest on. If nothing is left the answer is the optimum of the model. Authors of large spaces give an
estimate; then the search follows it and ends when it no longer promises anything. Everything is decided between rounds of fixed
size, by what the rounds found: neither the number of workers nor their speed changes the answer, unless the budget ends.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from tilewright.progress import Progress
from tilewright.records import record
from tilewright.tune.journal import Journal
from tilewright.tune.space import Config, Space, call_with, text_of
from tilewright.tune.trial import LOOKED, REFUSED, TIMED, Trial, look, measure_time, words
from tilewright.tune.workers import Pool

LOOK_ROUND, TIME_ROUND = 16, 8
FOLLOW_ROUND = 8  # along an estimate
SECONDS_PER_CALL = 9e-6  # of a timeline, at least
FIRST_SECONDS_PER_CALL = 30e-6  # with multicasts to a dozen cores: what a first trial may take
PROMISE = 1.25  # an estimate this far above that of the best is not followed
COVERED = 0.95  # share of the outputs from which on all is written: sizes of long loops are rounded
PATIENCE = 3  # rounds along the estimate that find nothing better
EARLY = 2  # of each round of looks that are timed at once


@record(kw_only=True)
class Outcome:
    trials: list[Trial]  # best first; refused ones last
    space: int
    ended: str  # why the search ended
    complete: bool  # whether nothing that could be better is left
    seconds: float  # of CPU, all workers together
    interrupted: bool = False

    @property
    def best(self) -> Trial | None:
        return self.trials[0] if self.trials and self.trials[0].state != REFUSED else None

    @property
    def refused(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.state == REFUSED]


@record(eq=False, frozen=False)
class Search:
    pool: Pool
    space: Space
    journal: Journal
    progress: Progress
    estimate: Callable[..., Any] | None = None
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what the estimate may name
    budget: float = 30.0
    clock: Callable[[], float] = time.monotonic
    started: float = 0.0
    trials: dict[str, Trial] = field(default_factory=dict[str, Trial])
    estimates: dict[str, float] = field(default_factory=dict[str, float])
    interrupted: bool = False

    def run(self) -> Outcome:
        self.started = self.clock()
        ended = "interrupted"
        complete = False
        try:
            with self.progress:
                ended, complete = self._search()
        except KeyboardInterrupt:
            self.interrupted = True
        except BudgetEnded:
            ended = "the budget ended"
        found = sorted(self.trials.values(), key=lambda trial: (self._standing(trial), self._rank(trial), text_of(trial.config)))
        seconds = sum(trial.seconds for trial in found)
        return Outcome(
            trials=found, space=len(self.space.configs), ended=ended, complete=complete, seconds=seconds,
            interrupted=self.interrupted,
        )  # fmt: skip

    # Order of the whole ---------------------------------------------------------------------------------------------------------

    def _search(self) -> tuple[str, bool]:
        order = self._order()
        if self.estimate is None:
            for first in range(0, len(order), LOOK_ROUND):
                self._look(order[first : first + LOOK_ROUND])
                self._time(EARLY)  # so that there is something to show whenever the budget ends
            self._time_all()
        else:
            followed = self._follow(order)
            if followed < len(order):
                self._refine()
                return "the estimate promises nothing better", False
        if any(self._too_long(trial) for trial in self._open()):
            return "the rest takes too long to time", False
        return "nothing that could be better is left", True

    def _order(self) -> list[Config]:
        """By the author's estimate; else so that every beginning covers the space."""
        configs = self.space.configs
        if self.estimate is None:
            return sorted(configs, key=lambda config: hashlib.sha256(text_of(config).encode()).digest())
        for config in configs:
            self.estimates[text_of(config)] = float(call_with(self.estimate, {**self.given, **config}))
        return sorted(configs, key=lambda config: (self.estimates[text_of(config)], text_of(config)))

    def _follow(self, order: Sequence[Config]) -> int:
        """Along the estimate; how many were looked at when it promised nothing more."""
        done, since_better = 0, 0
        while done < len(order):
            before = self._best_time()
            following = order[done : done + FOLLOW_ROUND]
            self._look(following)
            done += len(following)
            self._time_all()
            since_better = 0 if self._best_time() < before else since_better + 1
            best = self._best()
            if best is None or done >= len(order):
                continue
            if best.state != TIMED:  # what the estimate likes best takes too long to time: so does the rest
                break
            promised = self.estimates[text_of(order[done])]
            if since_better >= PATIENCE or promised > PROMISE * self.estimates[text_of(best.config)]:
                break
        return done

    def _refine(self) -> None:
        """Around the best, until nothing there is better."""
        while True:
            best = self._best()
            if best is None:
                return
            around = [config for config in self.space.neighbours(best.config) if text_of(config) not in self.trials]
            self._look(around)
            self._time_all()
            if self._best() is best:
                return

    # Rounds ---------------------------------------------------------------------------------------------------------------------

    def _look(self, configs: Iterable[Config]) -> None:
        waiting = [config for config in configs if text_of(config) not in self.trials]
        fresh: list[Config] = []
        for config in waiting:
            recalled = self.journal.recall(config)
            if recalled is None:
                fresh.append(config)
            else:
                self._keep(recalled)
        while fresh:
            self._round(look, fresh[:LOOK_ROUND])
            fresh = fresh[LOOK_ROUND:]

    def _time_all(self) -> None:
        """What could be better than the best, from the lowest bound on."""
        while self._time(TIME_ROUND):
            pass

    def _time(self, most: int) -> int:
        following = [trial for trial in self._open() if not self._too_long(trial)][:most]
        self._round(measure_time, list({trial.identity: trial for trial in reversed(following)}.values())[::-1])
        timed = {trial.identity: trial for trial in self.trials.values() if trial.state == TIMED}
        for name, trial in self.trials.items():
            twin = timed.get(trial.identity)  # programs that are the same take the same time
            if trial.state == LOOKED and twin is not None:
                self.trials[name] = replace(twin, config=trial.config, estimate=trial.estimate, seconds=trial.seconds)
        return len(following)

    def _open(self) -> list[Trial]:
        """Looked at, not timed, and not certainly worse than the best."""
        best = self._best_predicted()
        found = [trial for trial in self.trials.values() if trial.state == LOOKED and trial.bound < best]
        return sorted(found, key=lambda trial: (self._rank(trial), text_of(trial.config)))

    def _round(self, step: Callable[..., Trial], items: Sequence[Any]) -> None:
        for _, trial in self.pool.run(step, items, self._fits):
            self.journal.note(trial)
            self._keep(trial)
            self.progress.tell(len(self.trials), len(self.space.configs), f"best {words(self._best())}")
            if self._spent() > self.budget and any(trial.state != REFUSED for trial in self.trials.values()):
                raise BudgetEnded
        if step is look and any(text_of(config) not in self.trials for config in items):  # there was no time for them
            raise BudgetEnded
        self._refuse_incomplete()

    def _refuse_incomplete(self) -> None:
        """A configuration that leaves out a part of the outputs that another one writes is not faster, it is wrong."""
        kept = [trial for trial in self.trials.values() if trial.state != REFUSED]
        if max((trial.coverage for trial in kept), default=0.0) < 1.0:
            return
        for trial in kept:
            if trial.coverage < COVERED:
                reason = f"TW021: writes {trial.coverage:.0%} of its outputs, others write all"
                self.trials[text_of(trial.config)] = replace(trial, state=REFUSED, reason=reason)

    def _keep(self, trial: Trial) -> None:
        name = text_of(trial.config)
        estimate = self.estimates.get(name)
        self.trials[name] = trial if estimate is None else replace(trial, estimate=round(estimate, 3))

    # What is known --------------------------------------------------------------------------------------------------------------

    def _spent(self) -> float:
        return self.clock() - self.started

    def _too_long(self, trial: Trial) -> bool:
        """Whether timing it would take more than what is left of the budget."""
        return trial.calls * self._pace() > self.budget - self._spent()

    def _fits(self, item: Config | Trial) -> bool:
        """Whether there is still time for it when its turn comes. A look takes as long as those before; there must be one."""
        if isinstance(item, Trial):
            return not self._too_long(item)
        looks = [trial.seconds for trial in self.trials.values() if trial.state == LOOKED]
        return not looks or self._spent() + max(looks) <= self.budget

    def _pace(self) -> float:
        """Seconds per call on this machine: what the quickest trial took, which has the least of anything else in it."""
        paces = [trial.seconds / trial.calls for trial in self.trials.values() if trial.state == TIMED and trial.calls]
        return max(SECONDS_PER_CALL, min(paces, default=FIRST_SECONDS_PER_CALL))

    def _rank(self, trial: Trial) -> float:
        if trial.predicted is not None:
            return trial.predicted
        return max(trial.bound, (trial.estimate or 0.0) * self._bias())

    def _standing(self, trial: Trial) -> int:
        """What was not timed though it could have been stands behind what was."""
        if trial.state == LOOKED and self._best_predicted() < float("inf"):
            return 0 if trial.estimate is not None and trial.calls * SECONDS_PER_CALL > self.budget else 1
        return 2 if trial.state == REFUSED else 0

    def _bias(self) -> float:
        """How far estimates are off, by those that were timed too."""
        ratios = [each.predicted / each.estimate for each in self.trials.values() if each.predicted and each.estimate]
        return statistics.median(ratios) if ratios else 1.0

    def _best_predicted(self) -> float:
        return min((trial.predicted for trial in self.trials.values() if trial.predicted is not None), default=float("inf"))

    def _best(self) -> Trial | None:
        """The best that was timed; as long as none was, the most promising."""
        found = [trial for trial in self.trials.values() if trial.state != REFUSED]
        timed = [trial for trial in found if trial.state == TIMED]
        return min(timed or found, key=lambda trial: (self._rank(trial), text_of(trial.config)), default=None)

    def _best_time(self) -> float:
        best = self._best()
        return float("inf") if best is None else self._rank(best)


class BudgetEnded(Exception):
    """The time is over and there is something to choose."""
