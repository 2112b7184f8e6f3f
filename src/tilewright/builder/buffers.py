"""Blocks in buffers: values that the compiler sends through one, what a reserved block holds after a store, parts of blocks,
and tiles that are filled in part.

Parts are ``blk[0:1, k0:k1]``, rows, columns and single tiles, to read, to store to and to copy. Tiles of a block lie row by
row, so a part is one run of tiles, or a run per row. One run is a view of the block. Several are gathered in a buffer of the
compiler's when they are read, and filled one by one when they are stored to.

Other tiles than 32x32 are a tile of the chip that is filled in part, from its start on:

* 16x32, 32x16 and 16x16 are the first faces of one.
* A block that counts elements is rows of a row-major tensor: tiles of one row each, one element behind the other.

What is done with every element by itself does not ask where it lies, so elementwise math takes them as they are, and what it
finds in the rest of the tile stays there. 16x32 is the upper half of a tile, where rows and columns are what they seem: sums
along rows, repeated rows and columns, and products from the left are right in it. Whatever would find other rows and columns,
or the rest of the tile, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tilewright.builder.extents import FULL, Site
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Acquisition, Block, Region, TensorSlice, value_type
from tilewright.diagnostics import KernelError, Note, Span
from tilewright.dialects.attributes import SliceType, add, constant, i32_attr, int_array
from tilewright.dialects.ttl import MatmulOp, ReduceOp, StoreOp
from tilewright.dialects.ttl_buffers import (
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    TensorSliceOp,
    acquires_below,
)
from tilewright.dialects.walking import erase, remember
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.lang.buffers import CircularBuffer

ACQUIRES: dict[str, type[Operation]] = {"wait": CBWaitOp, "reserve": CBReserveOp}


def kept(
    thread: ThreadBuilder, name: str, buffer: CircularBuffer | None, value: Block, span: Span
) -> tuple[CircularBuffer | None, Block]:
    """The value as it is found after blocks it reads have been released: in a buffer, which it goes through before that.

    Gives the buffer as well; a later value of the same name may go through it too.
    """
    release = release_behind(value)
    if release is None:
        return buffer, value
    buffer = fitting(thread, name, buffer, value, span)
    return buffer, through_buffer(thread, buffer, name, value, release)


def kept_together(
    thread: ThreadBuilder, values: Mapping[str, Block], buffers: dict[str, CircularBuffer | None], span: Span
) -> dict[str, Block]:
    """The same for values that replace each other's operands: all are stored before the first of them is waited for.

    A block that one of them was computed from, and that the others still need, has been released by then.
    """
    found: dict[str, Block] = {}
    stored_here: dict[str, CircularBuffer] = {}
    for name, value in values.items():
        release = release_behind(value)
        if release is None:
            continue
        buffer = buffers[name] = fitting(thread, name, buffers.get(name), value, span)
        if release.parent is not thread.emitter.block:
            found[name] = through_buffer(thread, buffer, name, value, release)
            continue
        with thread.emitter.aside() as ops:
            store_in(thread, buffer, value)
        thread.emitter.block.insert_ops_before(ops, release)
        stored_here[name] = buffer
    for name, buffer in stored_here.items():
        found[name] = handed_over(thread, buffer, name, values[name])
    return found


def release_behind(value: Block) -> Operation | None:
    home = value.ssa.owner.parent if isinstance(value.ssa.owner, Operation) else None
    return first_release(value.ssa, home) if home is not None else None


def fitting(thread: ThreadBuilder, name: str, buffer: CircularBuffer | None, value: Block, span: Span) -> CircularBuffer:
    """The buffer, if the value fits it, else a new one."""
    if buffer is None or (buffer.shape, buffer.dtype) != (value.shape, value.dtype):
        return new_buffer(thread, name, value.shape, value.dtype, span)
    return buffer


def through_buffer(thread: ThreadBuilder, buffer: CircularBuffer, name: str, value: Block, before: Operation) -> Block:
    """Stores the value in front of ``before``, and gives what is found in the buffer."""
    with thread.emitter.aside() as ops:
        store_in(thread, buffer, value)
        found = handed_over(thread, buffer, name, value)
    home = before.parent
    assert home is not None
    home.insert_ops_before(ops, before)
    return found


def handed_over(thread: ThreadBuilder, buffer: CircularBuffer, name: str, value: Block) -> Block:
    """What was stored last, pushed and waited for; ``name`` may be empty."""
    thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    ssa, _ = acquired(thread, buffer, "wait")
    ssa.name_hint = name if name and name.isascii() else None
    return Block(ssa, value.shape, value.dtype).counting_as(value)


def waits_below(value: SSAValue) -> list[CBWaitOp]:
    """The waits for all blocks that a value is computed from."""
    return [op for op in acquires_below(value) if isinstance(op, CBWaitOp)]


def first_release(value: SSAValue, body: IRBlock) -> Operation | None:
    """The first pop, behind the value, of a buffer the value reads: it must have been computed by then."""
    queues = {wait.buffer for wait in waits_below(value)}
    owner = value.owner
    op = owner.next_op if isinstance(owner, Operation) and owner.parent is body else body.first_op
    while op is not None:
        if any(isinstance(inner, CBPopOp) and inner.buffer in queues for inner in op.walk()):
            return op
        op = op.next_op
    return None


def new_buffer(
    thread: ThreadBuilder, name: str, shape: tuple[int, ...], dtype: str, span: Span, word: str = "carried"
) -> CircularBuffer:
    buffers = thread.build.buffers
    buffer = CircularBuffer(shape=shape, dtype=dtype, block_count=2, index=len(buffers), span=span)
    taken = {other.name for other in buffers}
    buffer.name = next(n for i in range(len(taken) + 1) if (n := f"{name}_{word}{i or ''}") not in taken)
    buffer.origin = "compiler"
    buffers.append(buffer)
    return buffer


def store_in(thread: ThreadBuilder, buffer: CircularBuffer, value: Block) -> None:
    """Puts the value into a new block of the buffer; the push comes later."""
    place, site = acquired(thread, buffer, "reserve")
    site.store(value.extent, thread.emitter.block, thread.emitter.span)
    thread.emitter.add(StoreOp, [value.ssa, place])


def acquired(thread: ThreadBuilder, buffer: CircularBuffer, kind: str) -> tuple[SSAValue, Site]:
    """``%3 = ttl.cb_wait``, ``%4 = ttl.attach_cb %3, %0``."""
    queue, shape = thread.buffer(buffer), value_type(buffer.shape, buffer.dtype)
    op = thread.emitter.add(ACQUIRES[kind], [queue], [shape])
    attached = thread.emitter.add(AttachCBOp, [op.results[0], queue], [shape]).results[0]
    return attached, thread.sites.acquire(kind, buffer, op, thread.emitter.span)


def content(thread: ThreadBuilder, held: Acquisition) -> Block:
    name = held.buffer.name
    note = (Note("it was reserved here", held.span),)
    if held.released:
        remedy = "use the stored expression itself, or wait for the block"
        raise thread.problem("TW206", f"block of '{name}' is read after it was pushed", notes=note, help=remedy)
    if held.store is None:
        message = f"block of '{name}' is read, but it was only reserved and holds nothing yet"
        remedy = f"store to it first, or wait() for '{name}' after the push; block += x adds to a block that starts from zero"
        raise thread.problem("TW203", message, label="reserved, not waited for", notes=note, help=remedy)
    place = held.store.parent
    if held.joined is not None and place in thread.emitter.open_blocks():
        held.stored, held.joined = held.joined(), None
    if held.stored is None or place is None or place not in thread.emitter.open_blocks():
        raise _not_one_value(thread, held)
    held.read_by |= loops_since(thread, place)
    held.stored = early(thread, held, held.stored, held.store, thread.emitter.span)
    return held.stored


def early(thread: ThreadBuilder, held: Acquisition, value: Block, store: Operation, span: Span) -> Block:
    """The value was computed by the store: reading it later does not hold on to the blocks it came from."""
    name = f"{held.buffer.name}_value"
    _, found = kept(thread, name, None, value, span)
    loose = {other.ssa.owner.operands[0].owner for other in thread.held if not other.scoped}  # pyright: ignore
    if found is not value or loose.isdisjoint(waits_below(value.ssa)) or store.next_op is None:
        return found
    buffer = new_buffer(thread, name, value.shape, value.dtype, span)
    return through_buffer(thread, buffer, name, value, store.next_op)


def stored(thread: ThreadBuilder, held: Acquisition, value: Block | None, store: Operation) -> None:
    """Notes that the block holds ``value`` now; None: a sum that grew by something."""
    if any(body in held.read_by for body in thread.emitter.open_blocks()):
        raise _not_one_value(thread, held)
    held.stored, held.joined, held.store = value, None, store
    held.loop = thread.unrolling.around[-1] if thread.unrolling.around else None


def _not_one_value(thread: ThreadBuilder, held: Acquisition) -> KernelError:
    """A short loop that is behind us, or that we are in, is unrolled, and then it is known."""
    if held.store is not None and held.store.parent not in thread.emitter.open_blocks():
        thread.unrolling.ended = held.loop
    message = f"block of '{held.buffer.name}' is read, but what it holds depends on a branch, a loop or a sum"
    remedy = "keep the value in a name, which a loop may change, and store it once behind it"
    return thread.problem("TW203", message, notes=(Note("it was reserved here", held.span),), help=remedy)


def loops_since(thread: ThreadBuilder, place: IRBlock) -> set[IRBlock]:
    """Bodies of loops around us that ``place``, which is around us too, lies outside of."""
    blocks = thread.emitter.open_blocks()
    return {block for block in blocks[blocks.index(place) + 1 :] if isinstance(block.parent_op(), ForOp)}


def part_of(thread: ThreadBuilder, block: Block, region: Region) -> Block:
    """The part as a block: a view, a gathered copy, or a place to store to."""
    shape = (region.rows, region.columns)
    if block.held is not None and block.held.kind == "wait" and block.held.stored is not None:
        block.held.replaced, block = None, block.held.stored
    held = block.held
    if held is not None and (held.kind == "reserve" or thread.kind != "compute"):
        return Block(block.ssa, shape, block.dtype, held, region=region)
    if held is None:
        buffer = new_buffer(thread, "whole", block.shape, block.dtype, thread.emitter.span)
        store_in(thread, buffer, block)
        block = handed_over(thread, buffer, "", block)
    found = _read(thread, block.ssa, region, shape, block.dtype)
    kept = [dim for dim in block.reduced if block.shape[dim] == 1]
    found.reduced, found.uniform = tuple(kept), tuple(dim for dim in kept if dim in block.uniform)
    found.unknown, found.differ = block.unknown, block.differ
    return found


def view(thread: ThreadBuilder, whole: SSAValue, first: int, shape: tuple[int, ...], dtype: str) -> SSAValue:
    """A run of tiles of a block."""
    attached = whole.owner
    assert isinstance(attached, AttachCBOp)
    kind = value_type(shape, dtype)
    attributes = {**attached.attributes, "first_tile": i32_attr(attached.first_tile + first)}
    attributes.pop(AttachCBOp.AS_VALUE, None)
    return thread.emitter.add(AttachCBOp, list(attached.operands), [kind], attributes).results[0]


def _read(thread: ThreadBuilder, whole: SSAValue, region: Region, shape: tuple[int, int], dtype: str) -> Block:
    runs = [(view(thread, whole, first, size, dtype), size) for first, size in region.runs]
    if len(runs) == 1:
        return Block(runs[0][0], shape, dtype)
    buffer = new_buffer(thread, "part", shape, dtype, thread.emitter.span)
    place, site = acquired(thread, buffer, "reserve")
    for number, (run, size) in enumerate(runs):
        thread.emitter.add(StoreOp, [run, view(thread, place, number * region.columns, size, dtype)])
    site.store(FULL, thread.emitter.block, thread.emitter.span)
    thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    ssa, _ = acquired(thread, buffer, "wait")
    return Block(ssa, shape, dtype)


def store_part(thread: ThreadBuilder, target: Block, source: Block) -> None:
    """A value of the part's size into its runs of tiles."""
    held, region = target.held, target.region
    assert held is not None and region is not None and held.site is not None
    held.site.store(source.extent, thread.emitter.block, thread.emitter.span)
    value = source.ssa
    if len(region.runs) > 1:
        buffer = new_buffer(thread, "part", source.shape, source.dtype, thread.emitter.span)
        store_in(thread, buffer, source)
        value = handed_over(thread, buffer, "", source).ssa
    for number, (first, size) in enumerate(region.runs):
        whole = len(region.runs) == 1
        run = value if whole else view(thread, value, number * region.columns, size, source.dtype)
        op = thread.emitter.add(StoreOp, [run, view(thread, target.ssa, first, size, target.dtype)])
        stored(thread, held, None, op)


def copied_runs(thread: ThreadBuilder, part: TensorSlice, block: Block) -> list[tuple[SSAValue, int]]:
    """Slices of the tensor, each with the tile of the block that it starts at."""
    assert block.region is not None
    runs = block.region.runs
    if len(runs) == 1:
        first = runs[0][0]
        return [(inner.ssa, first + within) for inner, within in part.parts] or [(part.ssa, first)]
    whole = part.ssa.owner
    if part.parts or not isinstance(whole, TensorSliceOp) or "strides" in whole.attributes:
        raise thread.problem("TW104", "a part of several rows is filled from one rectangle of tiles", help="copy row by row")
    kind = whole.results[0].type
    assert isinstance(kind, SliceType)
    found: list[tuple[SSAValue, int]] = []
    for number, (first, size) in enumerate(runs):
        offset = constant(number)
        row = add(whole.operands[-2], offset.results[0])
        slice_type = SliceType(int_array(size), kind.tile, kind.memory)
        operands = [*whole.operands[:-2], row.results[0], whole.operands[-1]]
        cut = TensorSliceOp.create(operands=operands, result_types=[slice_type], location=whole.location)
        for op in (offset, row, cut):
            remember(op, thread.emitter.span)
            thread.emitter.block.add_op(op)
        found.append((cut.results[0], first))
    erase(whole)
    return found


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
    right = {WHOLE, *also}
    if thread.tiles <= right:
        return
    for block in blocks:
        wrong = tiles_below(block) - right if isinstance(block, Block) else None
        if wrong:
            raise _refused(thread, what, wrong.pop())


def _refused(thread: ThreadBuilder, what: str, sizes: Sizes) -> KernelError:
    if sizes[0] == 1:
        return thread.problem("TW114", f"{what} of a block that counts elements", help=IN_TILES)
    return thread.problem("TW115", f"{what} of a block of {tile_words(sizes)}", help="use tiles of 32x32 for it: leave tile= out")


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
    found = tiles_below(source) - {buffer.tile} if thread.tiles - {buffer.tile} else None
    if not found:
        return
    kinds = [tile_words(sizes) for sizes in (found.pop(), buffer.tile)]
    code = "TW114" if any(kind.startswith("rows") for kind in kinds) else "TW115"
    notes = (Note("the buffer is made here", buffer.span),)
    message = f"a value of {kinds[0]} is stored into a block of {kinds[1]}"
    raise thread.problem(code, message, notes=notes, help="make all buffers of the expression alike")


def tile_words(sizes: Sizes) -> str:
    return f"rows of {sizes[1]} elements" if sizes[0] == 1 else f"{sizes[0]}x{sizes[1]} tiles"
