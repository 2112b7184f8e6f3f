"""Blocks that count elements: rows of a row-major tensor, each in a tile of L1 of its own, one element behind the other.

What is done with every element by itself does not ask where it lies, so elementwise math takes them as they are. Whatever looks
at rows and columns of a tile would find others than the author means, and is refused.
"""

from __future__ import annotations

from typing import Any

from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block
from tilewright.diagnostics import Note
from tilewright.dialects.ttl_buffers import BindCBOp, acquires_below
from tilewright.lang.buffers import CircularBuffer

IN_TILES = "make the buffers in tiles (shape=(1, 1) is 32x32 elements): the reader then makes tiles of the rows"
ANY_PLACE = ("fill", "typecast")  # functions on blocks that are the same for any order of elements


def sources(block: Block) -> set[int]:
    """Elements of a row, of every buffer of the author's that the value is computed from; 0: it counts tiles."""
    binds = [acquired.operands[0].owner for acquired in acquires_below(block.ssa)]
    return {bind.row_elements for bind in binds if isinstance(bind, BindCBOp) and "origin" not in bind.attributes}


def require_tiles(thread: ThreadBuilder, what: str, blocks: list[Any]) -> None:
    """Refuses blocks that count elements, for what looks at rows and columns of tiles."""
    for block in blocks:
        if isinstance(block, Block) and any(sources(block)):
            raise thread.problem("TW114", f"{what} of a block that counts elements", help=IN_TILES)


def check_stored(thread: ThreadBuilder, source: Block, buffer: CircularBuffer) -> None:
    """A value of elements goes where elements of equal rows are, one of tiles where tiles are."""
    found = sources(source) - {buffer.row_elements}
    if not found:
        return
    kinds = [f"rows of {count} elements" if count else "tiles" for count in (found.pop(), buffer.row_elements)]
    message = f"a value of {kinds[0]} is stored into a block of {kinds[1]}"
    notes = (Note("the buffer is made here", buffer.span),)
    raise thread.problem("TW114", message, notes=notes, help="make all buffers of the expression in elements, or all in tiles")
