"""What a search found, as text and as plain data."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tilewright.tune.autotune import Task
from tilewright.tune.problem import plain
from tilewright.tune.search import Outcome
from tilewright.tune.trial import REFUSED, TIMED, Trial, settings


def as_text(task: Task, outcome: Outcome, top: int) -> str:
    """The best configurations, one a line."""
    rows = [trial for trial in outcome.trials if trial.state != REFUSED][:top]
    header = ("", "config", "time (us)", "", "bound by", "±")
    cells = [
        (str(number), settings(trial.config), f"{trial.time:,.2f}", trial.how, trial.binds or "-", f"{trial.uncertainty:.0%}")
        for number, trial in enumerate(rows, 1)
    ]
    widths = [max(len(row[column]) for row in (header, *cells)) for column in range(len(header))]

    def line(row: tuple[str, ...]) -> str:
        left = (False, True, False, True, True, False)
        padded = [text.ljust(width) if on else text.rjust(width) for text, width, on in zip(row, widths, left, strict=True)]
        return f"  {'  '.join(padded)}".rstrip()

    return "\n".join([summary(task, outcome), *(line(row) for row in (header, *cells) if cells), *refusals(outcome)])


def summary(task: Task, outcome: Outcome) -> str:
    sizes = ", ".join(f"{name}={value}" for name, value in task.problem.key.items())
    timed = sum(trial.state == TIMED for trial in outcome.trials)
    told = f"{task.name} ({sizes}) on {task.problem.chip}: {len(outcome.trials)} of {outcome.space} looked at, {timed} timed"
    return f"{told}, {outcome.seconds:.1f} s of CPU; {outcome.ended}"


def refusals(outcome: Outcome) -> list[str]:
    """How many the compiler refused, by its codes."""
    codes = Counter(trial.reason.partition(":")[0] for trial in outcome.refused)
    return [f"  refused: {', '.join(f'{count} by {code}' for code, count in sorted(codes.items()))}"] if codes else []


def reasons(outcome: Outcome) -> list[str]:
    return [f"  {settings(trial.config)}: {trial.reason}" for trial in outcome.refused]


def as_data(task: Task, outcome: Outcome, top: int) -> dict[str, Any]:
    def row(trial: Trial) -> dict[str, Any]:
        return {
            "config": {name: plain(value) for name, value in trial.config.items()}, "microseconds": round(trial.time, 3),
            "how": trial.how, "predicted": trial.predicted, "measured": trial.measured, "lower_bound": trial.bound,
            "bound": trial.binds, "uncertainty": trial.uncertainty,
        }  # fmt: skip

    return {
        "kernel": task.name,
        "chip": task.problem.chip,
        "key": task.problem.key,
        "space": outcome.space,
        "tried": len(outcome.trials),
        "complete": outcome.complete,
        "ended": outcome.ended,
        "cpu_seconds": round(outcome.seconds, 2),
        "best": [row(trial) for trial in outcome.trials if trial.state != REFUSED][:top],
        "refused": [
            {"config": {name: plain(value) for name, value in trial.config.items()}, "reason": trial.reason}
            for trial in outcome.refused
        ],
    }
