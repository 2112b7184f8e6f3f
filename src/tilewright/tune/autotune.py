"""``@ttl.autotune``: a kernel whose parameters are chosen for the arguments of each call.

The choice comes from what is known, in this order: this process, the results file beside the script, the table that comes
with the kernel. Else it is searched for, within a budget; the search is remembered in the cache, the file is written by
`tilewright tune`.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import execution
from tilewright.diagnostics import caller_span, fail
from tilewright.jit.kernel import Kernel
from tilewright.lang.tensors import is_tensor
from tilewright.records import record
from tilewright.tune.problem import Problem, Request, Subject, from_json, known_values, plain, pose, tuned_names
from tilewright.tune.space import Config, Space, text_of

if TYPE_CHECKING:
    from tilewright.program import Program
    from tilewright.timing.profile import Profile
    from tilewright.tune.search import Outcome
    from tilewright.tune.trial import Trial

BUDGET = "TILEWRIGHT_TUNE_BUDGET"  # seconds that a call may search
DEFAULT_BUDGET = 10.0
MOST_REASONS = 3  # that an error lists


@record(eq=False)
class Task:
    """One problem that `tilewright tune` found in a script."""

    tuned: Tuned
    problem: Problem
    space: Space

    @property
    def name(self) -> str:
        return self.tuned.subject.name


_collected: ContextVar[list[Task] | None] = ContextVar("tilewright_tune_tasks", default=None)


@contextmanager
def collecting() -> Generator[list[Task], None, None]:
    """Calls of tuned kernels are noted, not made."""
    tasks: list[Task] = []
    token = _collected.set(tasks)
    try:
        yield tasks
    finally:
        _collected.reset(token)


class Tuned:
    """What the decorator makes of a kernel or of a function that makes one."""

    def __init__(self, subject: Subject, request: Request, *, table: Path | None = None, bound: Mapping[str, Any] | None = None):
        self.subject, self.request, self.table = subject, request, table
        self.bound = dict(bound or {})  # arguments of a function that makes kernels, given before its tensors
        self._chosen: dict[str, Config] = {}
        functools.update_wrapper(self, subject.function)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Runs the best configuration. A function that makes kernels may get its own arguments first, and the tensors after."""
        subject = self.subject
        if subject.makes_kernels and not self.bound and not any(is_tensor(value) for value in (*args, *named.values())):
            names = [*subject.signature.parameters]
            return self._for_types({**dict(zip(names, args, strict=False)), **named})
        problem, space = pose(subject, self.request, args, {**self.bound, **named})
        tasks = _collected.get()
        if tasks is not None:
            tasks.append(Task(self, problem, space))
            return None
        return subject.run(problem, self.choose(problem, space))

    def _for_types(self, given: dict[str, Any]) -> Any:
        """TileLang's kernels know their tensors: they are tuned now. Others wait for them."""
        problem, space = pose(self.subject, self.request, (), given)
        kernel, _, _ = self.subject.kernel(problem, space.configs[0])
        if not getattr(kernel, "types", None):
            return Tuned(self.subject, self.request, table=self.table, bound=given)
        tasks = _collected.get()
        if tasks is not None:
            tasks.append(Task(self, problem, space))
            return kernel
        return self.subject.kernel(problem, self.choose(problem, space))[0]

    def config(self, *args: Any, **named: Any) -> Config:
        """What a call with these arguments takes."""
        problem, space = pose(self.subject, self.request, args, {**self.bound, **named})
        return self.choose(problem, space)

    def space(self, *args: Any, **named: Any) -> Space:
        """What is tried for these arguments."""
        return pose(self.subject, self.request, args, {**self.bound, **named})[1]

    def compile(self, *args: Any, **named: Any) -> Program:
        problem, space = self._with_options(args, named)
        return self.subject.program(problem, self.choose(problem, space))

    def profile(self, *args: Any, **named: Any) -> Profile:
        from tilewright.timing.profile import profile

        return profile(self.compile(*args, **named))[0]

    def _with_options(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Problem, Space]:
        from tilewright.options import Options

        own = self.subject.signature.parameters
        tuned = tuned_names(self.subject, self.request, args, {**self.bound, **named})
        options = {name: value for name, value in named.items() if name in Options.names() and name not in {*own, *tuned}}
        rest = {name: value for name, value in named.items() if name not in options}
        with execution.session(overrides={**execution.current().overrides, **options}):
            return pose(self.subject, self.request, args, {**self.bound, **rest})

    def choose(self, problem: Problem, space: Space) -> Config:
        if len(space.configs) == 1:
            return space.configs[0]
        name = text_of({"key": problem.key, "chip": problem.chip, "options": {k: str(v) for k, v in problem.options.items()}})
        found = self._chosen.get(name)
        if found is None:
            found = self._chosen[name] = self._stored(problem, space) or self._searched(problem, space)
        return found

    def _stored(self, problem: Problem, space: Space) -> Config | None:
        from tilewright.tune import results

        for path, any_version in ((self.results_file(sys.argv[0]), False), (self.table, True)):
            if path is None:
                continue
            entry, note = results.find(path, self.subject.name, problem.chip, problem.key, any_version=any_version)
            if note:
                say(note)
            config = None if entry is None else from_json(entry.config, space)
            if config is not None:
                return config
        return None

    def _searched(self, problem: Problem, space: Space) -> Config:
        budget = float(os.environ.get(BUDGET, DEFAULT_BUDGET))
        sizes = ", ".join(f"{name}={value}" for name, value in problem.key.items())
        outcome = self.search(problem, space, budget=budget)
        best = chosen(outcome, self.subject)
        how = "the best" if outcome.complete else f"the best of {len(outcome.trials)}"
        told = f"tuned {self.subject.name} for {sizes} on {problem.chip}: {how} of {outcome.space}"
        say(f"{told}; `tilewright tune` {'keeps it' if outcome.complete else 'searches longer and keeps it'} beside the script")
        return best.config

    def search(
        self, problem: Problem, space: Space, *, budget: float, workers: int = 0, scheduler: str = "", progress: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Outcome:  # fmt: skip
        """``clock`` is what the budget is counted with."""
        from tilewright.progress import progress as quiet_progress
        from tilewright.tune.journal import journal_for
        from tilewright.tune.search import Search
        from tilewright.tune.trial import Work
        from tilewright.tune.workers import Pool

        journal = journal_for(self.subject, problem, space)
        with Pool(Work(self.subject, problem), workers=workers, scheduler=scheduler) as pool:
            known = known_values(self.subject, self.request, problem)
            shown = progress or quiet_progress(self.subject.name, quiet=True)
            return Search(pool, space, journal, shown, self.request.estimate, known, budget, clock).run()

    def results_file(self, script: str) -> Path | None:
        """Beside the kernel, or, if the kernel comes with the library, beside the script that calls it."""
        from tilewright.tune import results

        file = self.subject.file if self.table is None else script
        return results.beside(file) if self.table is None or file.endswith(".py") else None

    def keep(self, found: Sequence[tuple[Problem, Outcome]], path: Path | None = None) -> str:
        """Into the file beside the script; what went wrong, if anything."""
        from tilewright.tune import results

        entries = [
            entry_of(self.subject, problem, outcome, outcome.best) for problem, outcome in found if outcome.best is not None
        ]
        return results.store(path or results.beside(self.subject.file), entries) if entries else ""

    def __get__(self, instance: Any, _owner: Any = None) -> Any:
        import types

        return self if instance is None else types.MethodType(self, instance)


def entry_of(subject: Subject, problem: Problem, outcome: Outcome, best: Trial) -> Any:
    from tilewright.tune.results import Entry, current_versions

    versions = current_versions()
    return Entry(
        kernel=subject.name,
        chip=problem.chip,
        key=problem.key,
        config={name: plain(value) for name, value in best.config.items()},
        time_us=round(best.predicted or best.time, 3),
        how="predicted" if best.predicted is not None else best.how,
        measured_us=best.measured,
        bound_by=best.binds,
        uncertainty=best.uncertainty,
        tried=len(outcome.trials),
        space=outcome.space,
        tilewright=versions.tilewright,
        costs=versions.costs,
    )


def chosen(outcome: Outcome, subject: Subject) -> Trial:
    """The best, or an error with what the compiler said."""
    if outcome.best is not None:
        return outcome.best
    if not outcome.trials:
        raise KeyboardInterrupt
    from tilewright.diagnostics import Note
    from tilewright.tune.trial import settings

    reasons = list({trial.reason: trial for trial in outcome.refused}.values())
    notes = tuple(Note(f"{settings(trial.config)}: {trial.reason}") for trial in reasons[:MOST_REASONS])
    found = f"none of the {len(outcome.trials)} configurations of '{subject.name}' compiles"
    raise fail("TW020", found, subject.span, notes=notes, help="`tilewright tune --verbose` prints the reason of each")


def say(text: str) -> None:
    print(f"tilewright: {text}", file=sys.stderr)


def autotune(
    target: Any = None,
    *,
    space: Any = None,
    configs: Any = None,
    where: Callable[..., Any] | None = None,
    key: Any = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    estimate: Callable[..., Any] | None = None,
    table: Path | None = None,
) -> Any:
    """``@ttl.autotune(space={"block": [1, 2, 4]}, where=…, key=("M", "N"))`` on a kernel or on a function that makes one.

    ``where``, ``estimate`` (microseconds) and a callable ``space``, ``configs`` or ``key`` get what their parameters name: values
    of the configuration, arguments and compile options of the call, sizes that ``dims`` names, and ``chip``.
    """
    if (space is None) == (configs is None):
        found = "autotune takes either space= or configs="
        raise fail("TW019", found, caller_span("autotune"), help='space={"block": [1, 2, 4]}')

    def decorate(subject: Any) -> Tuned:
        if not isinstance(subject, Kernel) and not callable(subject):
            raise fail("TW019", f"only a kernel, or a function that makes one, can be tuned, not {subject!r}", caller_span())
        return Tuned(Subject(subject), Request(space, configs, where, key, dims, estimate), table=table)

    return decorate if target is None else decorate(target)
