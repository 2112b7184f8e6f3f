"""Buffers, blocks and copies: the calls that move data or hand it over."""

from __future__ import annotations

import ast
from typing import Any

from xdsl.ir import SSAValue

from tilewright.diagnostics import Note
from tilewright.dialects.attributes import TransferType, i32_attr, number_attr
from tilewright.dialects.tile_op import FLOAT_DTYPES
from tilewright.dialects.tile_ops import BY_NAME, dtypes_of
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CopyOp, PublishCBOp, WaitOp
from tilewright.frontend import pipes, stored_blocks
from tilewright.frontend.blocks import apply_op, at_size, beside, converted, readable
from tilewright.frontend.carried import for_store
from tilewright.frontend.describe import described
from tilewright.frontend.early_values import acquired
from tilewright.frontend.extents import EITHER, FULL
from tilewright.frontend.numbers import OTHER_SIDE, is_number
from tilewright.frontend.slices import emit_slice, erase_slice
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Acquisition, Block, TensorSlice, Transfer, TransferGroup
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.pipes import Pipe
from tilewright.lang.tensors import KernelTensor

RELEASES = {"pop": CBPopOp, "push": CBPushOp}
RELEASE_OF = {"wait": "pop", "reserve": "push"}


def acquire(thread: Thread, buffer: CircularBuffer, kind: str, node: ast.AST) -> Block:
    span = thread.at(node)
    ssa, site = acquired(thread, buffer, kind)
    held = Acquisition(buffer, kind, span, site=site)
    held.block = Block(ssa, buffer.shape, buffer.dtype, held)
    if thread.kind == "compute" and kind == "wait":
        held.block.with_extent(site.assumed, thread.sites.kernel.reason(kind, site))
    thread.held.append(held)
    return held.block


def release_buffer(thread: Thread, buffer: CircularBuffer, word: str, node: ast.AST) -> None:
    """``cb.push()``, ``cb.pop()``: the oldest block that is held."""
    thread.at(node)
    kind = "wait" if word == "pop" else "reserve"
    oldest = next((held for held in thread.held if held.buffer is buffer and held.kind == kind), None)
    if oldest is not None:
        oldest.released = True
        thread.held.remove(oldest)
    thread.emitter.add(RELEASES[word], [thread.buffer(buffer)])


def publish(thread: Thread, buffer: CircularBuffer, node: ast.AST) -> None:
    """``cb.publish()``: what a shard holds becomes blocks of the buffer that lies in it."""
    if buffer.tensor is None:
        raise thread.error(
            "TW202",
            f"publish() of '{buffer.name}', which has memory of its own",
            node,
            notes=(Note("it is made here", buffer.span),),
            help="reserve(), fill and push() its blocks; publish() is for make_tensor_backed_dfb",
        )
    thread.at(node)
    thread.emitter.add(PublishCBOp, [thread.buffer(buffer)])


def release_block(thread: Thread, block: Block, word: str, node: ast.AST) -> None:
    """``block.push()``, ``block.pop()``: buffers are queues, so it must be the oldest block held."""
    held = block.held
    if held is None:
        raise thread.error("TW202", f"{word}() of an expression", node, help="only a block of a buffer can be released")
    if RELEASE_OF[held.kind] != word:
        raise thread.error(
            "TW202",
            f"{word}() of a block that was acquired with {held.kind}()",
            node,
            notes=(Note("acquired here", held.span),),
            help=f"a block from {held.kind}() ends with {RELEASE_OF[held.kind]}()",
        )
    older = [h for h in thread.held if h.buffer is held.buffer and h.kind == held.kind]
    if held in older and older[0] is not held:
        raise thread.error(
            "TW202",
            f"this block of '{held.buffer.name}' is released before an older one",
            node,
            notes=(Note("the older one was acquired here", older[0].span),),
            help="a buffer is a queue: release blocks in the order they were acquired",
        )
    release_buffer(thread, held.buffer, word, node)


def store(thread: Thread, block: Block, value: Any, accumulate: bool, node: ast.AST) -> None:
    """``block.store(value)``, ``block += value``."""
    if thread.kind != "compute":
        raise thread.error(
            "TW013",
            f"store in data-movement thread '{thread.function.name}'",
            node,
            help="only the compute thread stores; use ttl.copy",
        )
    held = block.held
    if held is None:
        raise thread.error("TW204", "store into an expression", node, help="store into a block from reserve()")
    if held.kind == "wait":
        raise thread.error(
            "TW204",
            f"store into a block of '{held.buffer.name}' that was waited for",
            node,
            notes=(Note("waited for here", held.span),),
            help="wait() gives a block to read; reserve() one to write",
        )
    value = for_store(thread, value, block, node)
    if not isinstance(value, Block):
        word = "a number" if is_number(value) else described(value)
        remedy = OTHER_SIDE.get(type(value), "for example block.store(a + b)")
        remedy = "ttl.block.fill makes a block of one number" if is_number(value) else remedy
        raise thread.error("TW004", f"store takes a block expression, not {word}", node, help=remedy)
    thread.at(node)
    source = readable(thread, value, node)
    if source.open:
        source = at_size(thread, source, block.shape)
    _check_stored_size(thread, source, block, held, node)
    if source.dtype != block.dtype and {source.dtype, block.dtype} <= set(FLOAT_DTYPES):
        source = converted(thread, source, block.dtype)
    if source.dtype != block.dtype:
        raise thread.error(
            "TW102",
            f"a value of {source.dtype} is stored into a block of {block.dtype}",
            node,
            label=f"{source.dtype} into {block.dtype}",
            notes=(Note("the buffer is made here", held.buffer.span),),
            help=f'convert it: store(ttl.math.typecast(x, "{block.dtype}"))',
        )
    thread.at(node)
    assert held.site is not None
    if accumulate or held.site.assumed != EITHER:
        source = beside(thread, source, held.site.assumed, node)
    held.site.store(source.extent, thread.emitter.block, thread.span(node), accumulate)
    attributes = {"accumulate": number_attr(True)} if accumulate else {}
    if accumulate and held.store is None:
        thread.sums.append((held, node))
    value = _grown_sum(thread, held, source, node) if accumulate else source
    op = thread.emitter.add(StoreOp, [source.ssa, block.ssa], [], attributes)
    stored_blocks.stored(thread, held, value, op, node)


def _grown_sum(thread: Thread, held: Acquisition, source: Block, node: ast.AST) -> Block | None:
    """What the block holds after an accumulating store, if that is known here."""
    if held.store is None:
        return source if len(thread.emitter.open_blocks()) == 1 else None
    if held.stored is None or held.store.parent is not thread.emitter.block or source.dtype not in dtypes_of(BY_NAME["add"]):
        return None
    return apply_op(thread, BY_NAME["add"], [held.stored, source], {}, node)


def _check_stored_size(thread: Thread, source: Block, block: Block, held: Acquisition, node: ast.AST) -> None:
    if source.shape == block.shape:
        return
    single = [dim for dim, (have, want) in enumerate(zip(source.shape, block.shape, strict=False)) if have != want]
    remedy = f"the value needs a buffer with shape={source.shape}"
    if len(source.shape) == len(block.shape) and all(source.shape[dim] == 1 for dim in single):
        remedy = f"a store repeats nothing: ttl.block.broadcast(x, dims={single}, shape={block.shape}), or shape={source.shape}"
    raise thread.error(
        "TW101",
        f"a value of {source.size_text} tiles is stored into a block of {block.size_text}",
        node,
        label=f"{source.size_text} into {block.size_text}",
        notes=(Note("the buffer is made here", held.buffer.span),),
        help=remedy,
    )


def copy(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Transfer:
    if named or len(args) != 2:
        raise thread.error("TW004", "copy takes a source and a target", node, help="ttl.copy(tensor[0:1, 0:1], block)")
    if thread.kind == "compute":
        raise thread.error(
            "TW014",
            f"copy in compute thread '{thread.function.name}'",
            node,
            help="copy in a function marked @ttl.datamovement(); the compute thread reads and stores blocks",
        )
    args = _with_blocks(thread, args, node)
    if any(isinstance(arg, (pipes.PipeEnd, Pipe)) for arg in args):
        return pipes.copy(thread, args, node)
    for arg in args:
        if isinstance(arg, KernelTensor):
            example = ", ".join(f"0:{size}" for size in arg.tile_shape)
            raise thread.error(
                "TW104", f"copy of the whole tensor '{arg.name}'", node, help=f"give the tiles: {arg.name}[{example}]"
            )
    slices = [arg for arg in args if isinstance(arg, TensorSlice)]
    blocks = [arg for arg in args if isinstance(arg, Block) and arg.held is not None]
    if len(slices) != 1 or len(blocks) != 1:
        found = " to ".join(described(arg) for arg in args)
        raise thread.error(
            "TW004", f"copy from {found}", node, help="one side is a slice of a tensor, the other a block of a buffer"
        )
    _check_sizes(thread, slices[0], blocks[0], node)
    span = thread.at(node)
    part, block = slices[0], blocks[0]
    pairs = [(inner.ssa, _part_of(thread, block, first)) for inner, first in part.parts] or [(part.ssa, block.ssa)]
    reads = args[0] is part
    if reads and block.held is not None and block.held.site is not None:
        block.held.site.store(FULL, thread.emitter.block, span)
    copies = [thread.emitter.add(CopyOp, pair if reads else pair[::-1], [TransferType()]) for pair in pairs]
    return Transfer(copies, span)


def _part_of(thread: Thread, block: Block, first: int) -> SSAValue:
    """The tiles of a block from ``first`` on."""
    attached = block.ssa.owner
    assert isinstance(attached, AttachCBOp)
    attributes = {"first_tile": i32_attr(first)} if first else {}
    return thread.emitter.add(AttachCBOp, list(attached.operands), [block.ssa.type], attributes).results[0]


def _with_blocks(thread: Thread, args: list[Any], node: ast.Call) -> list[Any]:
    """The oldest form names the buffer, ``copy(tensor[0, 0], buffer)``: the block held last, from the tensor's origin."""
    for position, buffer in enumerate(args):
        if not isinstance(buffer, CircularBuffer):
            continue
        kind = "wait" if position == 0 else "reserve"
        held = [acquired for acquired in thread.held if acquired.buffer is buffer and acquired.kind == kind]
        if not held:
            raise thread.error(
                "TW004", f"copy of buffer '{buffer.name}', of which no block is held", node, help=f"{kind}() a block of it first"
            )
        other = args[1 - position]
        if isinstance(other, TensorSlice) and other.origin and _fits(buffer, other):
            erase_slice(other)
            other = emit_slice(thread, other.tensor, [0] * len(other.tensor.tile_shape), buffer.shape[-2:])
        return [held[-1].block, other] if position == 0 else [other, held[-1].block]
    return args


def _fits(buffer: CircularBuffer, part: TensorSlice) -> bool:
    sizes = part.tensor.tile_shape[-len(buffer.shape) :]
    return all(block <= size for block, size in zip(buffer.shape, sizes, strict=False))


def _check_sizes(thread: Thread, part: TensorSlice, block: Block, node: ast.AST) -> None:
    if _plain(part.shape) != _plain(block.shape):
        sliced, held = ("x".join(map(str, _plain(shape))) for shape in (part.shape, block.shape))
        assert block.held is not None
        raise thread.error(
            "TW104",
            f"slice of '{part.name}' has {sliced} tiles, block of '{block.held.buffer.name}' has {held}",
            node,
            label=f"{sliced} and {held}",
            notes=(Note("the buffer is made here", block.held.buffer.span),),
            help="make the slice as large as the block",
        )
    if part.dtype != block.dtype:
        raise thread.error(
            "TW102",
            f"tensor '{part.name}' holds {part.dtype}, the block {block.dtype}",
            node,
            help="make the buffer like this tensor",
        )


def _plain(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes without the single entries in front of rows and columns, which an index leaves out and a slice leaves in."""
    return (*(size for size in shape[:-2] if size != 1), *shape[-2:])


def wait(thread: Thread, transfer: Transfer, node: ast.AST) -> None:
    thread.at(node)
    transfer.waited = True
    for op in transfer.ops:
        thread.emitter.add(WaitOp, [op.results[0]])


def group_method(thread: Thread, group: TransferGroup, name: str, args: list[Any], node: ast.Call) -> None:
    """``group.add(copy)``, ``group.wait_all()``."""
    if name == "wait_all":
        for transfer in group.transfers:
            wait(thread, transfer, node)
        group.transfers.clear()
        return
    if len(args) != 1 or not isinstance(args[0], Transfer):
        raise thread.error("TW004", "add takes a copy", node, help="group.add(ttl.copy(tensor[0, 0], block))")
    if thread.depth > group.depth:
        wait(thread, args[0], node)  # after the loop there would be one of many; each ends in its own iteration
    else:
        group.transfers.append(args[0])
