"""Reads IR text: every op knows its line, and the arguments of a region may leave out what its op knows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Attribute, Block, Operation
from xdsl.parser import Parser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from tilewright.dialects.location import location


class TextParser(Parser):
    """xDSL's parser with places. ``first_line`` is the number of the text's first line in its file."""

    def __init__(self, context: Context, text: str, name: str, *, first_line: int = 1) -> None:
        super().__init__(context, text, name)
        self.file, self.first_line = name, first_line
        self.line_starts = [0, *(index + 1 for index, letter in enumerate(text) if letter == "\n")]
        self.argument_types: Sequence[Attribute] = ()  # of the next region's entry block, where the text gives none

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self.line_starts, offset) - 1
        return self.first_line + line, offset - self.line_starts[line] + 1

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = location(self.file, *self.place(start))
        return op

    def _parse_optional_block_arg_list(self, block: Block) -> Block | None:
        known, self.argument_types = self.argument_types, ()
        if self._current_token.kind != MLIRTokenKind.L_PAREN:
            return None

        def parse_argument() -> None:
            name = self._parse_token(MLIRTokenKind.PERCENT_IDENT, "block argument expected").span
            number = len(block.args)
            if self.parse_optional_punctuation(":"):
                kind = self.parse_attribute()
            elif number < len(known):
                kind = known[number]
            else:
                self.raise_error(f"give the type of argument {name.text}")
            argument = block.insert_arg(kind, number, self.parse_optional_location())
            self._register_ssa_definition(name.text[1:], (argument,), name)

        self.parse_comma_separated_list(self.Delimiter.PAREN, parse_argument)
        return block
