"""An error found while a kernel is read, before it is known where: the reader adds the place."""

from __future__ import annotations


class Trouble(Exception):
    """``word`` is the name the caret should point at, if the line has it."""

    def __init__(self, code: str, message: str, *, help: str = "", word: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.help, self.word = code, message, help, word
