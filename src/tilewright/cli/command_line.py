"""The parser of a command: it knows the words it is going to read, so that flags nobody wrote need not be made.

A flag takes a tenth of a millisecond, and a command has forty of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class CommandLine(argparse.ArgumentParser):
    def __init__(self, words: Sequence[str], **settings: Any) -> None:
        super().__init__(**settings)
        self._words = {word.partition("=")[0] for word in words}
        self.wants_help = bool(self._words & {"-h", "--help"})

    def may_read(self, flag: str) -> bool:
        """Whether ``flag`` or its opposite stands among the words; help is about all flags."""
        return self.wants_help or flag in self._words or "--no-" + flag.removeprefix("--") in self._words
