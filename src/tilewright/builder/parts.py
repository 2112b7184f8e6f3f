"""Parts of blocks: ``blk[0:1, k0:k1]``, rows, columns and single tiles, to read, to store to and to copy.

Tiles of a block lie row by row, so a part is one run of tiles, or a run per row. One run is a view of the block. Several are
gathered in a buffer of the compiler's when they are read, and filled one by one when they are stored to.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.builder.buffers import acquired, new_buffer, store_in, stored
from tilewright.builder.extents import FULL
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block, Region, TensorSlice, value_type
from tilewright.dialects.attributes import SliceType, add, constant, i32_attr, int_array
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPushOp, TensorSliceOp
from tilewright.dialects.walking import erase, remember
from tilewright.lang.buffers import CircularBuffer


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
        block = _through(thread, buffer, block)
    found = _read(thread, block.ssa, region, shape, block.dtype)
    kept = [dim for dim in block.reduced if block.shape[dim] == 1]
    found.reduced, found.uniform = tuple(kept), tuple(dim for dim in kept if dim in block.uniform)
    found.unknown, found.differ = block.unknown, block.differ
    return found


def _through(thread: ThreadBuilder, buffer: CircularBuffer, value: Block) -> Block:
    store_in(thread, buffer, value)
    thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    ssa, _ = acquired(thread, buffer, "wait")
    return Block(ssa, value.shape, value.dtype).counting_as(value)


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
        value = _through(thread, buffer, source).ssa
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


