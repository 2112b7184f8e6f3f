"""Who looks at configurations: this process, processes of this machine, or a Dask cluster. All are executors of `concurrent`.

A worker that dies takes nothing with it but its own work, which is done again; a configuration that kills its worker whenever it
is alone there is refused. Answers are put in the order of the questions, so they do not depend on how many workers there are.
"""

from __future__ import annotations

import contextlib
import linecache
import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from tilewright.diagnostics import fail
from tilewright.records import record
from tilewright.tune.problem import Problem, Subject
from tilewright.tune.results import Versions, current_versions
from tilewright.tune.trial import REFUSED, Trial, Work

Step = Callable[[Work, Any], Trial]
MOST_DEATHS = 3  # of the workers of one configuration
CONNECT_SECONDS = 5

_work: Work | None = None  # of a process that was forked for it
_SENT: dict[bytes, Work] = {}  # of a process of a cluster


class InThisProcess(Executor):
    """Runs what it is given at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@record(eq=False)
class Sent:
    """The work as it travels to another machine: by value, with the source it is compiled from."""

    subject: Subject
    args: tuple[Any, ...]
    problem: Problem
    sources: dict[str, str]
    folders: list[str]
    versions: Versions


class Pool:
    """Executes steps on configurations. ``workers`` = 0: in this process; ``scheduler``: a Dask address."""

    def __init__(self, work: Work, *, workers: int = 0, scheduler: str = "") -> None:
        self.work = work
        self.workers = workers if "fork" in multiprocessing.get_all_start_methods() else 0
        self._client: Any = None
        self._sent = b""
        if scheduler:
            self._client = connect(scheduler)
            self._sent = packed(work)
            self.workers = max(1, sum(self._client.nthreads().values()))
        self._executor = self._make()

    def _make(self) -> Executor:
        global _work
        if self._client is not None:
            return self._client.get_executor(pure=False)
        if not self.workers:
            return InThisProcess()
        _work = self.work  # forked processes have it
        context = multiprocessing.get_context("fork")
        return ProcessPoolExecutor(self.workers, mp_context=context, initializer=_ignore_interrupts)

    def _submit(self, step: Step, item: Any) -> Future[Any]:
        if self._client is not None:
            return self._executor.submit(_step_sent, step, self._sent, item)
        if self.workers:
            return self._executor.submit(_step_forked, step, item)
        return self._executor.submit(step, self.work, item)

    def run(
        self, step: Step, items: Sequence[Any], wanted: Callable[[Any], bool] = lambda item: True
    ) -> Iterator[tuple[int, Trial]]:
        """Answers with the number of their question, as they come. Each item is a configuration or has one.

        ``wanted`` is asked when the turn of an item comes.
        """
        waiting = list(enumerate(items))
        deaths: dict[int, int] = {}
        running: dict[Future[Any], tuple[int, Any]] = {}
        at_once = max(1, self.workers)
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    number, item = waiting.pop(0)
                    if not wanted(item):
                        continue
                    try:
                        running[self._submit(step, item)] = number, item
                    except BrokenExecutor:
                        waiting.insert(0, (number, item))
                        self._executor = self._make()
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    number, item = running.pop(future)
                    error = future.exception()
                    if error is None:
                        yield number, future.result()
                    elif not (isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"):
                        raise error
                    else:
                        deaths[number] = deaths.get(number, 0) + 1
                        if deaths[number] >= MOST_DEATHS:
                            yield number, _killed(item)
                        else:  # alone, so that the innocent are not blamed
                            waiting.insert(0, (number, item))
                            at_once = 1
                        self._renew()
        except BaseException:
            for future in running:
                future.cancel()
            self._kill()
            raise

    def _renew(self) -> None:
        if self._client is None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = self._make()

    def _kill(self) -> None:
        """Nobody waits for what our own workers are at."""
        processes: dict[int, Any] = getattr(self._executor, "_processes", None) or {}
        for process in list(processes.values()):
            process.kill()

    def close(self) -> None:
        """Waits for the threads of the executor: one that is left behind may fail when Python ends."""
        if self._client is None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        else:
            self._executor.shutdown(wait=False)
            self._client.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ignore_interrupts() -> None:
    """Ctrl-C is for the tuner; it ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _step_forked(step: Step, item: Any) -> Trial:
    assert _work is not None
    return step(_work, item)


def _step_sent(step: Step, sent: bytes, item: Any) -> Trial:
    return step(_unpacked(sent), item)


def _killed(item: Any) -> Trial:
    config = item.config if isinstance(item, Trial) else item
    return Trial(config=config, state=REFUSED, reason=f"its worker died {MOST_DEATHS} times")


def default_workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# A cluster ----------------------------------------------------------------------------------------------------------------------


def connect(address: str) -> Any:
    try:
        from distributed import Client  # pyright: ignore
    except ModuleNotFoundError:
        remedy = "pip install 'tilewright[cluster]'"
        raise fail("TW609", "a cluster needs dask.distributed, which is not installed", help=remedy) from None
    try:
        with _quiet():
            client: Any = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # what a refused, slow or half-open connection raises differs by release and by luck
        found = f"no Dask scheduler answers at {address} ({type(error).__name__})"
        raise fail("TW609", found, help="start one with `dask scheduler`, or leave out --scheduler") from None
    if not client.nthreads():
        client.close()
        raise fail("TW609", f"the scheduler at {address} has no workers", help=f"start some with `dask worker {address}`")
    return client


@contextlib.contextmanager
def _quiet() -> Generator[None, None, None]:
    """What distributed logs about a refused connection is told by the error."""
    import logging

    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def packed(work: Work) -> bytes:
    import cloudpickle  # pyright: ignore

    problem = work.problem
    file = work.subject.file
    sources = {file: "".join(linecache.getlines(file))}
    sent = Sent(
        work.subject, tuple(outline(each) for each in problem.args), problem_without(problem), sources,
        [str(Path(file).resolve().parent)], current_versions(),
    )  # fmt: skip
    return cloudpickle.dumps(sent)  # pyright: ignore


def problem_without(problem: Problem) -> Problem:
    """The arrays stay here: only what they look like travels."""
    named = {name: outline(value) for name, value in problem.named.items()}
    return Problem((), named, problem.key, problem.chip, problem.options)


def _unpacked(sent: bytes) -> Work:
    found = _SENT.get(sent)
    if found is None:
        data: Sent = pickle.loads(sent)
        if data.versions != current_versions():
            raise fail("TW609", f"this worker has {current_versions()}, the tuner has {data.versions}", help="install the same")
        sys.path[:0] = [folder for folder in data.folders if folder not in sys.path and Path(folder).is_dir()]
        for file, text in data.sources.items():
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        problem = data.problem
        args = tuple(restored(each) for each in data.args)
        named = {name: restored(value) for name, value in problem.named.items()}
        found = _SENT[sent] = Work(data.subject, Problem(args, named, problem.key, problem.chip, problem.options))
    return found


@record
class Outline:
    shape: tuple[int, ...]
    dtype: Any


def outline(value: Any) -> Any:
    """A NumPy array without its values."""
    import numpy as np

    return Outline(value.shape, value.dtype) if isinstance(value, np.ndarray) else value  # pyright: ignore


def restored(value: Any) -> Any:
    """An array that takes no memory."""
    import numpy as np

    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, Outline) else value
