"""The search finds what trying everything finds, says why it leaves out the rest, and goes on where it was stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tuned_kernels

from tilewright.diagnostics import KernelError
from tilewright.tune import autotune, results
from tilewright.tune.problem import pose
from tilewright.tune.search import Outcome
from tilewright.tune.trial import REFUSED, TIMED, Trial, Work, look, measure_time

A = np.zeros((128, 256), np.float32)


def tuned(folder: Path, request: str = tuned_kernels.SPACE) -> autotune.Tuned:
    return tuned_kernels.load(tuned_kernels.write(folder, request))["scale"]


def searched(kernel: autotune.Tuned, budget: float = 300.0, workers: int = 0, **named: Any) -> Outcome:
    problem, space = pose(kernel.subject, kernel.request, (A, A), named)
    return kernel.search(problem, space, budget=budget, workers=workers)


def rows(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [(trial.config, trial.state, trial.predicted, trial.bound) for trial in outcome.trials]


def test_the_best_is_that_of_trying_everything(tmp_path: Path):
    kernel = tuned(tmp_path)
    outcome = searched(kernel)
    problem, space = pose(kernel.subject, kernel.request, (A, A), {})
    work = Work(kernel.subject, problem)
    times = {str(config): measure_time(work, look(work, config)).predicted for config in space.configs}
    assert outcome.complete and outcome.best is not None and outcome.best.predicted == min(times.values())
    assert len(outcome.trials) == outcome.space == 16
    assert any(trial.state != TIMED for trial in outcome.trials)  # what cannot win was not timed
    for trial in outcome.trials:
        assert trial.bound <= times[str(trial.config)] * 1.001
        assert trial.predicted in (None, times[str(trial.config)])


def test_answers_do_not_depend_on_the_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kernel = tuned(tmp_path)
    alone = searched(kernel)
    monkeypatch.setattr("tilewright.tune.journal.folder", lambda: tmp_path / "other")
    assert rows(searched(kernel, workers=3)) == rows(alone)


def test_a_second_run_goes_on_where_the_first_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kernel = tuned(tmp_path)
    looks: list[Any] = []

    def stopped(work: Work, config: Any) -> Trial:
        if len(looks) == 5:
            raise KeyboardInterrupt
        looks.append(config)
        return look(work, config)

    monkeypatch.setattr("tilewright.tune.search.look", stopped)
    first = searched(kernel)
    assert first.interrupted and len(first.trials) == 5
    seen: list[Any] = []
    monkeypatch.setattr("tilewright.tune.search.look", lambda work, config: (seen.append(config), look(work, config))[1])
    second = searched(kernel)
    assert second.complete and len(seen) == 11 and not [config for config in seen if config in looks]
    assert searched(kernel).best == second.best and len(seen) == 11


def test_a_budget_that_ends_leaves_the_best_so_far(tmp_path: Path):
    outcome = searched(tuned(tmp_path), budget=1e-6)
    assert outcome.best is not None and not outcome.complete and "budget" in outcome.ended


def test_refused_configurations_keep_their_reasons(tmp_path: Path):
    kernel = tuned(tmp_path, 'space={"width": [2, 3, 5], "depth": [2, 4000]}')
    outcome = searched(kernel)
    reasons = {(trial.config["width"], trial.config["depth"]): trial.reason for trial in outcome.refused}
    assert outcome.best is not None and outcome.best.config == {"width": 2, "depth": 2}
    assert set(reasons) == {(2, 4000), (3, 4000), (5, 4000), (3, 2), (5, 2)}
    assert all(reason.startswith("TW30") for (_, depth), reason in reasons.items() if depth == 4000)
    assert reasons[5, 2] == "TW021: writes 62% of its outputs, others write all"


def test_configurations_that_never_compile_are_an_error_with_reasons(tmp_path: Path):
    kernel = tuned(tmp_path, 'space={"depth": [4000, 5000]}')
    with pytest.raises(KernelError, match="none of the 2 configurations of 'scale' compiles") as caught:
        kernel(A, A.copy())
    text = str(caught.value)
    assert "TW020" in text and "depth=4000: TW30" in text and "depth=5000: TW30" in text


@pytest.mark.parametrize(
    ("request_text", "message"),
    [
        ('space={}', "the space is empty"),
        ('space={"width": []}', "the space is empty"),
        ('space={"width": [1, 2]}, where=lambda width: width > 2', "refused by 'where'"),
        ('configs=[]', "the space is empty"),
        ('configs=[3]', "a configuration is a dictionary"),
        ('space={"heigth": [1, 2]}', "'heigth' is neither a parameter nor an option"),
        ('space={"width": [1, 2]}, key=("M",)', "key names 'M'"),
        ('space={"width": range(500), "depth": range(500)}', "250,000 configurations"),
    ],
)  # fmt: skip
def test_bad_spaces_are_errors(tmp_path: Path, request_text: str, message: str):
    with pytest.raises(KernelError, match=message) as caught:
        tuned(tmp_path, request_text)(A, A.copy())
    assert "TW019" in str(caught.value)


def test_a_space_or_configs_must_be_given(tmp_path: Path):
    with pytest.raises(KernelError, match="either space= or configs="):
        tuned(tmp_path, 'space={"width": [1]}, configs=[{"width": 1}]')


def test_calls_take_the_best_and_the_callers_choice_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    module = tuned_kernels.load(tuned_kernels.write(tmp_path))
    a, y = module["main"]()
    assert np.allclose(y, 2 * np.exp(a), rtol=1e-2)
    assert "tuned scale for M=128, N=256, dtype=f32 on wormhole_b0" in capsys.readouterr().err
    module["scale"](a, y, width=4)
    assert module["scale"].config(a, y, width=4)["width"] == 4
    assert not results.beside(str(tmp_path / "scaled.py")).exists()  # calls write nothing beside the script


def test_the_author_s_estimate_leads(tmp_path: Path):
    text = f"{tuned_kernels.SPACE}, estimate=lambda width, depth, grid, M, N, chip: M * N / width / depth / grid[0]"
    outcome = searched(tuned(tmp_path, text))
    assert outcome.best is not None and all(trial.estimate for trial in outcome.trials)


def test_configs_may_be_a_list_or_a_function(tmp_path: Path):
    listed = searched(tuned(tmp_path, 'configs=[{"width": 8}, {"width": 4, "depth": 1}]'))
    assert listed.space == 2 and listed.best is not None
    made = searched(tuned(tmp_path, 'configs=lambda a: [{"width": w} for w in (1, 2, 4) if a.shape[1] // 32 % w == 0]'))
    assert made.space == 3


def kill_once(work: Work, config: Any) -> Trial:
    """Dies where the test says, once or always."""
    mark = Path(os.environ["TUNE_TEST_MARK"])
    if config["width"] == 4 and (os.environ.get("TUNE_TEST_ALWAYS") or not mark.exists()):
        mark.write_text("died", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
    return look(work, config)


@pytest.mark.parametrize("always", [False, True])
def test_a_worker_that_dies_costs_a_retry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: bool):
    kernel = tuned(tmp_path)
    wanted = rows(searched(kernel))
    monkeypatch.setattr("tilewright.tune.journal.folder", lambda: tmp_path / "other")
    monkeypatch.setenv("TUNE_TEST_MARK", str(tmp_path / "mark"))
    if always:
        monkeypatch.setenv("TUNE_TEST_ALWAYS", "1")
    monkeypatch.setattr("tilewright.tune.search.look", kill_once)
    outcome = searched(kernel, workers=2)
    assert (tmp_path / "mark").exists()
    if not always:
        assert rows(outcome) == wanted
    else:
        assert {trial.config["width"] for trial in outcome.refused} == {4}
        assert all(trial.reason == "its worker died 3 times" for trial in outcome.refused)
        assert len(outcome.trials) == 16 and outcome.best is not None and outcome.best.state != REFUSED


FACTORY = '''
from tilewright import ttl

@ttl.autotune(space={"width": [1, 2, 4]}, where=lambda width, columns: columns % width == 0, key=("columns",))
def shift(columns, width=1):
    @ttl.operation(grid=(1, 1))
    def add(a, y, n: ttl.runtime_int = 2):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, width), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, width), block_count=2)

        @ttl.compute()
        def compute():
            for _ in range(n):
                for _ in range(columns // width):
                    with a_dfb.wait() as x, y_dfb.reserve() as out:
                        out.store(x + 1.0)

        @ttl.datamovement()
        def read():
            for line in range(n):
                for part in range(columns // width):
                    with a_dfb.reserve() as block:
                        ttl.copy(a[line, part * width : (part + 1) * width], block).wait()

        @ttl.datamovement()
        def write():
            for line in range(n):
                for part in range(columns // width):
                    with y_dfb.wait() as block:
                        ttl.copy(block, y[line, part * width : (part + 1) * width]).wait()

    return add

@ttl.autotune(space={"width": [1, 2]})
def nothing(width):
    return width
'''


def test_functions_that_make_kernels_are_tuned_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "made.py"
    path.write_text(FACTORY, encoding="utf-8")
    module = tuned_kernels.load(path)
    a = np.linspace(0, 1, 64 * 128).reshape(64, 128).astype(np.float32)
    for call in (lambda y: module["shift"](4)(a, y), lambda y: module["shift"](a, y, columns=4)):
        y = np.zeros_like(a)
        call(y)
        assert np.allclose(y, a + 1, atol=1e-2)
    assert "tuned shift for columns=4" in capsys.readouterr().err
    with pytest.raises(KernelError, match="'nothing' returned int, not a kernel"):
        module["nothing"](a, a)
