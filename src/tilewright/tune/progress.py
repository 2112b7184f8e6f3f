"""How far a search is: a bar on a terminal, a line every ten seconds elsewhere, nothing if nobody wants it."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, TextIO

from tilewright.tune.trial import Trial

LINE_SECONDS = 10.0


class Progress:
    """Says nothing; the others say it their way."""

    def __init__(self, title: str = "") -> None:
        self.title = title

    def tell(self, done: int, total: int, best: Trial | None) -> None: ...

    def close(self) -> None: ...


class Lines(Progress):
    """For logs."""

    def __init__(self, title: str, stream: TextIO) -> None:
        super().__init__(title)
        self.stream = stream
        self.last = time.monotonic()

    def tell(self, done: int, total: int, best: Trial | None) -> None:
        if time.monotonic() - self.last >= LINE_SECONDS:
            self.last = time.monotonic()
            print(f"{self.title}: {done} of {total}; best so far {words(best)}", file=self.stream, flush=True)


class RichBar(Progress):
    def __init__(self, title: str, rich_progress: Any) -> None:
        super().__init__(title)
        columns = [
            rich_progress.TextColumn("{task.description}"), rich_progress.BarColumn(), rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(), rich_progress.TextColumn("{task.fields[best]}"),
        ]  # fmt: skip
        console: Any = importlib.import_module("rich.console").Console(stderr=True)
        self.bar: Any = rich_progress.Progress(*columns, console=console, transient=True)
        self.task: Any = self.bar.add_task(title, total=None, best="")
        self.bar.start()

    def tell(self, done: int, total: int, best: Trial | None) -> None:
        self.bar.update(self.task, completed=done, total=total, best=f"best {words(best)}")

    def close(self) -> None:
        self.bar.stop()


class TqdmBar(Progress):
    def __init__(self, title: str, tqdm: Any) -> None:
        super().__init__(title)
        self.bar: Any = tqdm.tqdm(desc=title, file=sys.stderr, leave=False)

    def tell(self, done: int, total: int, best: Trial | None) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)
        self.bar.set_postfix_str(f"best {words(best)}")

    def close(self) -> None:
        self.bar.close()


class PlainBar(Progress):
    """One line that is written again and again: a terminal without rich and tqdm."""

    WIDTH = 24

    def __init__(self, title: str, stream: TextIO) -> None:
        super().__init__(title)
        self.stream = stream
        self.length = 0

    def tell(self, done: int, total: int, best: Trial | None) -> None:
        full = self.WIDTH * done // max(total, 1)
        text = f"{self.title} [{'#' * full}{'.' * (self.WIDTH - full)}] {done}/{total} best {words(best)}"
        print(f"\r{text:<{self.length}}", end="", file=self.stream, flush=True)
        self.length = len(text)

    def close(self) -> None:
        if self.length:
            print("\r" + " " * self.length + "\r", end="", file=self.stream, flush=True)


def words(best: Trial | None) -> str:
    return "none yet" if best is None else f"{best.time:,.2f} us ({settings(best.config)})"


def settings(config: dict[str, Any]) -> str:
    """A configuration as a person reads it."""

    def text(value: Any) -> str:
        return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)  # pyright: ignore

    return " ".join(f"{name}={text(value)}" for name, value in config.items())


def progress_for(title: str, *, quiet: bool = False, stream: TextIO | None = None) -> Progress:
    shown = stream or sys.stderr
    if quiet:
        return Progress(title)
    if not shown.isatty():
        return Lines(title, shown)
    for module, bar in (("rich.progress", RichBar), ("tqdm", TqdmBar)):
        try:
            return bar(title, importlib.import_module(module))
        except ImportError:
            continue
    return PlainBar(title, shown)
