"""A real Dask scheduler with two workers on the loopback address: the same table, whoever lives or dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tuned_kernels

from tilewright.diagnostics import KernelError
from tilewright.tune import workers
from tilewright.tune.problem import pose
from tilewright.tune.search import Outcome

pytest.importorskip("distributed")
A = np.zeros((128, 256), np.float32)
START_SECONDS = 90


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        own = str(Path(__file__).parent)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([own, *sys.path]), "TUNE_TEST_CLUSTER": str(folder)}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self.scheduler = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.workers = [self._worker(environment) for _ in range(2)]

    def _worker(self, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        command = [
            sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--memory-limit", "0", "--local-directory", str(self.folder),
        ]  # fmt: skip
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self, count: int) -> None:
        from distributed import Client  # pyright: ignore

        with Client(self.address, timeout=START_SECONDS, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=START_SECONDS)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        made.wait(2)
        yield made
    finally:
        made.close()


def searched(kernel: Any, **choices: Any) -> Outcome:
    problem, space = pose(kernel.subject, kernel.request, (A, A), {})
    return kernel.search(problem, space, budget=600, **choices)


def rows(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [(trial.config, trial.state, trial.predicted, trial.bound, trial.binds) for trial in outcome.trials]


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    return tuned_kernels.load(tuned_kernels.write(tmp_path))["scale"]


def test_a_cluster_gives_the_same_table(cluster: Cluster, kernel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    alone = rows(searched(kernel))
    monkeypatch.setattr("tilewright.tune.journal.folder", lambda: tmp_path / "other")
    assert rows(searched(kernel, scheduler=cluster.address)) == alone
    # One of the two dies in the middle.
    monkeypatch.setattr("tilewright.tune.journal.folder", lambda: tmp_path / "third")
    note = workers.Pool.run

    def run(pool: workers.Pool, step: Any, items: Any, *rest: Any) -> Iterator[Any]:
        for number, answer in enumerate(note(pool, step, items, *rest)):
            if number == 2 and cluster.workers[0].poll() is None:
                os.kill(cluster.workers[0].pid, signal.SIGKILL)
            yield answer

    monkeypatch.setattr(workers.Pool, "run", run)
    assert rows(searched(kernel, scheduler=cluster.address)) == alone
    assert cluster.workers[0].wait() != 0


def test_a_scheduler_that_does_not_answer_is_an_error_within_seconds(kernel: Any):
    started = time.monotonic()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens
        with pytest.raises(KernelError, match="no Dask scheduler answers at tcp"):
            searched(kernel, scheduler=f"tcp://127.0.0.1:{held.getsockname()[1]}")
    assert time.monotonic() - started < 4 * workers.CONNECT_SECONDS


@pytest.mark.parametrize("address", ["nonsense://x", "tcp://127.0.0.1:1"])
def test_bad_addresses_are_errors(kernel: Any, address: str):
    with pytest.raises(KernelError, match="no Dask scheduler answers"):
        searched(kernel, scheduler=address)
