"""Blocks of other tiles than 32x32: a tile of the chip that is filled in part, from its start on.

* 16x32, 32x16 and 16x16 are the first faces of one.
* A block that counts elements is rows of a row-major tensor: tiles of one row each, one element behind the other.

What is done with every element by itself does not ask where it lies, so elementwise math takes them as they are, and what it
finds in the rest of the tile stays there. 16x32 is the upper half of a tile, where rows and columns are what they seem: sums
along rows, repeated rows and columns, and products from the left are right in it. Whatever would find other rows and columns, or
the rest of the tile, is refused.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation, SSAValue

from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block
from tilewright.diagnostics import KernelError, Note
from tilewright.dialects.ttl import MatmulOp, ReduceOp
from tilewright.dialects.ttl_buffers import BindCBOp, CBReserveOp, CBWaitOp
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.lang.buffers import CircularBuffer

WHOLE = (TILE_ROWS, TILE_COLS)
UPPER_HALF = (TILE_ROWS // 2, TILE_COLS)
ANY_PLACE = ("fill", "typecast")  # functions on blocks that are the same for any order of elements
IN_HALVES = ("broadcast", "squeeze", "unsqueeze")  # those that are right in the upper half of a tile; sums along rows are, too
IN_TILES = "make the buffers in tiles (shape=(1, 1) is 32x32 elements): the reader then makes tiles of the rows"

Sizes = tuple[int, int]


def tiles_below(block: Block) -> set[Sizes]:
    """Tiles of every buffer of the author's that the value has its places from."""
    found: set[Sizes] = set()
    pending, seen = [block.ssa], set[SSAValue]()
    while pending:
        value = pending.pop()
        owner = value.owner
        if value in seen or not isinstance(owner, Operation):
            continue
        seen.add(value)
        if isinstance(owner, (CBWaitOp, CBReserveOp)):
            bind = owner.operands[0].owner
            found |= {bind.tile_sizes} if isinstance(bind, BindCBOp) and "origin" not in bind.attributes else set()
        else:  # the left side of a product says which rows it has, and a reduction's scaler says nothing
            pending += owner.operands[:1] if isinstance(owner, (MatmulOp, ReduceOp)) else owner.operands
    return found


def require_tiles(thread: ThreadBuilder, what: str, blocks: list[Any], also: tuple[Sizes, ...] = ()) -> None:
    """Refuses blocks of other tiles than 32x32 and ``also``, for what looks at rows and columns."""
    for block in blocks:
        wrong = tiles_below(block) - {WHOLE, *also} if isinstance(block, Block) else None
        if wrong:
            raise _refused(thread, what, wrong.pop())


def _refused(thread: ThreadBuilder, what: str, sizes: Sizes) -> KernelError:
    if sizes[0] == 1:
        return thread.problem("TW114", f"{what} of a block that counts elements", help=IN_TILES)
    return thread.problem("TW115", f"{what} of a block of {described(sizes)}", help="use tiles of 32x32 for it: leave tile= out")


def check_function(thread: ThreadBuilder, name: str, handler: str, args: list[Any], named: dict[str, Any]) -> None:
    """Before a function that is no elementwise one."""
    if handler in ANY_PLACE:
        return
    dims = next((named[word] for word in ("dims", "dim", "axis") if word in named), args[1] if len(args) > 1 else None)
    along_rows = handler.startswith("reduce") and dims in ([1], [-1], (1,), (-1,), 1, -1)
    halves = along_rows or handler in IN_HALVES
    if handler == "matmul":
        check_product(thread, args[:2])
    else:
        require_tiles(thread, f"ttl.{name}", args, (UPPER_HALF,) if halves else ())


def check_product(thread: ThreadBuilder, sides: list[Any]) -> None:
    require_tiles(thread, "a product", sides[:1], (UPPER_HALF,))
    require_tiles(thread, "a product with the right side", sides[1:])


def check_stored(thread: ThreadBuilder, source: Block, buffer: CircularBuffer) -> None:
    """A value goes into blocks of the tiles that it has."""
    found = tiles_below(source) - {buffer.tile}
    if not found:
        return
    kinds = [described(sizes) for sizes in (found.pop(), buffer.tile)]
    code = "TW114" if any(kind.startswith("rows") for kind in kinds) else "TW115"
    notes = (Note("the buffer is made here", buffer.span),)
    message = f"a value of {kinds[0]} is stored into a block of {kinds[1]}"
    raise thread.problem(code, message, notes=notes, help="make all buffers of the expression alike")


def described(sizes: Sizes) -> str:
    return f"rows of {sizes[1]} elements" if sizes[0] == 1 else f"{sizes[0]}x{sizes[1]} tiles"
