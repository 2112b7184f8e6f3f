"""Prints the IR that a trace kept, for ``--print-ir-after`` and ``--print-ir-after-all``."""

from __future__ import annotations

import argparse
from typing import TextIO

from tilewright.cli import option_flags
from tilewright.program import Program
from tilewright.report import listing
from tilewright.trace import attached


class IrPrinter:
    """Prints each program once, however often its kernel is called."""

    def __init__(self, arguments: argparse.Namespace, stream: TextIO) -> None:
        self.wanted = option_flags.wanted_stages(arguments)
        self.stream = stream
        self.seen: list[Program] = []

    def failed(self, error: BaseException) -> None:
        """What there was before the pass that failed, and what it left."""
        found = attached(error)
        if found is not None:
            print(listing.stages(*found, self.wanted), file=self.stream, flush=True)

    def __call__(self, program: Program) -> None:
        if any(program is known for known in self.seen):
            return
        self.seen.append(program)
        print(listing.stages(program.trace, program.name, self.wanted), file=self.stream, flush=True)
