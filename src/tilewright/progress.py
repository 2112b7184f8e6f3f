"""How far long work is: a bar with rate and time left on a terminal, a line every ten seconds elsewhere, nothing if unwanted.

    with progress("simulating", total, done=lambda: sum(counts)):
        ...

A thread looks from time to time, so the work itself need not stop to tell. Work of less than two seconds shows nothing.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TextIO

SILENT_SECONDS = 2.0
LINE_SECONDS = 10.0
TICK_SECONDS = 0.2
INTERRUPTED = 130  # exit code

_silent: ContextVar[bool] = ContextVar("tilewright_silent", default=False)
_shown = threading.Lock()  # held by whoever shows: work inside other work says nothing
_showing: list[Progress] = []  # who that is


@contextmanager
def silenced(quiet: bool = True) -> Generator[None, None, None]:
    """Nothing is shown inside, if ``quiet``."""
    token = _silent.set(quiet or _silent.get())
    try:
        yield
    finally:
        _silent.reset(token)


@contextmanager
def paused() -> Generator[None, None, None]:
    """Somebody else has the terminal: the bar goes until they are done."""
    hidden = list(_showing)
    for each in hidden:
        each.hide()
    try:
        yield
    finally:
        for each in hidden:
            each.resume()


def say(text: str) -> None:
    """A line on standard output, with no bar in its way."""
    with paused():
        print(text, flush=True)


def interruptible(main: Callable[[], int]) -> int:
    """The exit code of ``main``. Whoever interrupts it has been told how far it came: no traceback says more."""
    try:
        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


def progress(
    title: str, total: float = 0, *, done: Callable[[], float] | None = None, stream: TextIO | None = None, quiet: bool = False
) -> Progress:
    """``total`` 0: nobody knows. ``done`` is asked how far the work is; without it the work tells by ``advance``."""
    return Progress(title, total, done, stream, quiet or _silent.get())


class Progress:
    def __init__(self, title: str, total: float, done: Callable[[], float] | None, stream: TextIO | None, quiet: bool) -> None:
        self.title = title
        self.total = total
        self.note = ""  # said behind the numbers
        self._told = 0.0
        self._done = done
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._screen = threading.Lock()  # held while the bar is drawn
        self._bar: Bar | None = None
        self._hidden_since: float | None = None

    # The work ---------------------------------------------------------------------------------------------------------------

    def advance(self, amount: float = 1) -> None:
        self._told += amount

    def tell(self, done: float, total: float, note: str = "") -> None:
        self._told, self.total, self.note = done, total, note

    def __enter__(self) -> Progress:
        self._started = time.monotonic()
        if not self._quiet and _shown.acquire(blocking=False):
            _showing.append(self)
            self._thread = threading.Thread(target=self._watch, name="tilewright-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._thread is None:
            return
        self._ended.set()
        self._thread.join()
        self._thread = None
        _showing.remove(self)
        _shown.release()
        if kind is KeyboardInterrupt:
            print(f"{self.title}: stopped {self.reached()}", file=self._stream, flush=True)

    # What is said -----------------------------------------------------------------------------------------------------------

    @property
    def done(self) -> float:
        return self._done() if self._done is not None else self._told

    @property
    def expected(self) -> float:
        """0 where nobody knows, and where more was done than was expected."""
        return self.total if self.done <= self.total else 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def numbers(self) -> str:
        """``12,000 of 64,000 (19%), 4,012/s, 13 s left``"""
        done, seconds, total = self.done, self.seconds, self.expected
        parts = [self._counted()]
        parts.append(f"{rate(done / seconds)}/s" if done and seconds else "")
        parts.append(f"{duration((total - done) * seconds / done)} left" if total and done else f"{duration(seconds)} so far")
        return ", ".join(filter(None, parts)) + (f"; {self.note}" if self.note else "")

    def reached(self) -> str:
        """``at 12,000 of 64,000 (19%) after 3 s``"""
        counted = self._counted()
        parts = [f"at {counted}" if counted else "", f"after {duration(self.seconds)}"]
        return " ".join(filter(None, parts)) + (f"; {self.note}" if self.note else "")

    def _counted(self) -> str:
        done, total = self.done, self.expected
        return f"{done:,.0f} of {total:,.0f} ({done / total:.0%})" if total else f"{done:,.0f}" if done else ""

    # The thread that shows it -----------------------------------------------------------------------------------------------

    def hide(self) -> None:
        with self._screen:
            self._hidden_since = time.monotonic()
            self._end_bar()

    def resume(self) -> None:
        with self._screen:
            self._started += time.monotonic() - (self._hidden_since or time.monotonic())
            self._hidden_since = None

    def _watch(self) -> None:
        terminal = self._stream.isatty()
        pause = SILENT_SECONDS if terminal else LINE_SECONDS
        while not self._ended.wait(pause):
            with self._screen:
                if self._hidden_since is not None:
                    continue
                if terminal:
                    self._bar = self._bar or _bar(self)
                    self._bar.show()
                else:
                    print(f"{self.title}: {self.numbers()}", file=self._stream, flush=True)
            pause = TICK_SECONDS if terminal else LINE_SECONDS
        with self._screen:
            self._end_bar()

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


# Bars: rich's or tqdm's if they are there, else our own -------------------------------------------------------------------------


class Bar:
    """One line that is written again and again."""

    WIDTH = 24

    def __init__(self, about: Progress, stream: TextIO) -> None:
        self.about = about
        self.stream = stream
        self.length = 0

    def show(self) -> None:
        done, total = self.about.done, self.about.expected
        full = min(self.WIDTH, int(self.WIDTH * done / total)) if total else 0
        bar = f" [{'#' * full}{'.' * (self.WIDTH - full)}]" if total else ""
        text = f"{self.about.title}{bar} {self.about.numbers()}"
        print(f"\r{text:<{self.length}}", end="", file=self.stream, flush=True)
        self.length = len(text)

    def close(self) -> None:
        if self.length:
            print("\r" + " " * self.length + "\r", end="", file=self.stream, flush=True)


class RichBar(Bar):
    def __init__(self, about: Progress, stream: TextIO, rich_progress: Any) -> None:
        super().__init__(about, stream)
        title = rich_progress.TextColumn("{task.description}")
        title.get_table_column().no_wrap, title.get_table_column().min_width = True, len(about.title)  # words behind it give way
        columns = [title, rich_progress.BarColumn(), rich_progress.TextColumn("{task.fields[numbers]}")]
        console: Any = importlib.import_module("rich.console").Console(file=stream)
        self.bar: Any = rich_progress.Progress(*columns, console=console, transient=True)
        self.task: Any = self.bar.add_task(about.title, total=about.expected or None, numbers="")
        self.bar.start()

    def show(self) -> None:
        self.bar.update(self.task, completed=self.about.done, total=self.about.expected or None, numbers=self.about.numbers())

    def close(self) -> None:
        self.bar.stop()


class TqdmBar(Bar):
    def __init__(self, about: Progress, stream: TextIO, tqdm: Any) -> None:
        super().__init__(about, stream)
        self.bar: Any = tqdm.tqdm(desc=about.title, total=about.expected or None, file=stream, leave=False)

    def show(self) -> None:
        self.bar.total = self.about.expected or None
        self.bar.set_postfix_str(self.about.note, refresh=False)
        self.bar.update(self.about.done - self.bar.n)

    def close(self) -> None:
        self.bar.close()


def _bar(about: Progress) -> Bar:
    stream = about._stream  # pyright: ignore[reportPrivateUsage]
    for module, bar in (("rich.progress", RichBar), ("tqdm", TqdmBar)):
        try:
            return bar(about, stream, importlib.import_module(module))
        except ImportError:
            continue
    return Bar(about, stream)
