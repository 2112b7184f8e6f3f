"""The best configurations on a device: predictions choose whom, the clock chooses the winner."""

from __future__ import annotations

from dataclasses import replace

from tilewright import execution
from tilewright.diagnostics import KernelError
from tilewright.lang.tensors import is_tensor
from tilewright.tune.autotune import Task
from tilewright.tune.search import Outcome
from tilewright.tune.trial import REFUSED, Trial, reason_of


def measured(task: Task, outcome: Outcome, top: int) -> Outcome:
    """``outcome`` with the times of its first ``top`` configurations, the fastest first."""
    first = [trial for trial in outcome.trials if trial.state != REFUSED][: max(top, 1)]
    found = [_measured(task, trial) for trial in first]
    rest = [trial for trial in outcome.trials if all(trial.config is not each.config for each in first)]
    ranked = sorted(found, key=lambda trial: (trial.state == REFUSED, trial.measured or float("inf")))
    return replace(outcome, trials=[*ranked, *rest])


def _measured(task: Task, trial: Trial) -> Trial:
    subject = task.tuned.subject
    kernel, args, named = subject.kernel(task.problem, trial.config)
    tensors = [value for value in (*args, *named.values()) if is_tensor(value)]
    try:
        time = execution.measured(kernel.compile(*args, **named, **execution.device_options(tensors)), tensors)
    except KernelError as error:
        if error.diagnostics[0].code in ("TW601", "TW602"):  # there is no device: that is not about the configuration
            raise
        return replace(trial, state=REFUSED, reason=reason_of(error))
    return replace(trial, measured=round(time, 3))
