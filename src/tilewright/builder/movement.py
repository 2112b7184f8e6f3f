"""Buffers, blocks and copies: what moves data or hands it over."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.scf import IfOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as IRBlock

from tilewright.builder.blocks import OTHER_SIDE, apply_op, at_size, beside, converted, filled, is_number, readable
from tilewright.builder.buffers import acquired, check_stored, copied_runs, loops_since, store_part, stored, tile_words
from tilewright.builder.extents import EITHER, FULL
from tilewright.builder.network import PipeEnd, net_of, net_pipe
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Acquisition, Block, ReadyReceive, TensorSlice, Transfer, TransferGroup, described
from tilewright.diagnostics import Note, fail
from tilewright.dialects.attributes import (
    INDEX,
    SliceType,
    TransferType,
    i32_attr,
    i32_list,
    int_array,
    number_attr,
    text_attr,
    tile_type,
)
from tilewright.dialects.tile_op import FLOAT_DTYPES
from tilewright.dialects.tile_ops import BY_NAME, dtypes_of
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CopyOp, PublishCBOp, TensorSliceOp, WaitOp
from tilewright.dialects.ttl_network import NetPipeOp, WaitAnyOp
from tilewright.dialects.walking import erase
from tilewright.integers import Value, is_int_like, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.cores import Pipe, PipeNet
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import class_of, is_list
from tilewright.records import record
from tilewright.tile_pages import page_sizes

RELEASES = {"pop": CBPopOp, "push": CBPushOp}
RELEASE_OF = {"wait": "pop", "reserve": "push"}


def acquire(thread: ThreadBuilder, buffer: CircularBuffer, kind: str) -> Block:
    span = thread.emitter.span
    ssa, site = acquired(thread, buffer, kind)
    held = Acquisition(buffer, kind, ssa, span, site=site)
    block = Block(ssa, buffer.shape, buffer.dtype, held)
    if thread.kind == "compute" and kind == "wait":
        block.with_extent(site.assumed, thread.sites.kernel.reason(site))
        block.open = site.is_fill
    thread.held.append(held)
    return block


def release_buffer(thread: ThreadBuilder, buffer: CircularBuffer, word: str) -> None:
    """``cb.push()``, ``cb.pop()``: the oldest block that is held."""
    kind = "wait" if word == "pop" else "reserve"
    oldest = next((held for held in thread.held if held.buffer is buffer and held.kind == kind), None)
    if oldest is not None:
        if oldest.replaced is not None:
            remedy = "wait() gives a block to read, whose value may be replaced for what follows; reserve() gives one to write"
            message = f"store into a block of '{buffer.name}' that was waited for, and nobody reads it before its release"
            raise fail("TW204", message, oldest.replaced, notes=(Note("waited for here", oldest.span),), help=remedy)
        oldest.released = True
        thread.held.remove(oldest)
    thread.emitter.add(RELEASES[word], [thread.buffer(buffer)])


def publish(thread: ThreadBuilder, buffer: CircularBuffer) -> None:
    """``cb.publish()``: what a shard holds becomes blocks of the buffer that lies in it."""
    if buffer.tensor is None:
        message = f"publish() of '{buffer.name}', which has memory of its own"
        remedy = "reserve(), fill and push() its blocks; publish() is for make_tensor_backed_dfb"
        raise thread.problem("TW202", message, notes=(Note("it is made here", buffer.span),), help=remedy)
    thread.emitter.add(PublishCBOp, [thread.buffer(buffer)])


def release_block(thread: ThreadBuilder, block: Block, word: str) -> None:
    """``block.push()``, ``block.pop()``: buffers are queues, so it must be the oldest block held."""
    held = block.held
    if held is None or block.region is not None:
        what = "an expression" if held is None else "a part of a block"
        raise thread.problem("TW202", f"{word}() of {what}", help="only a block of a buffer can be released")
    if RELEASE_OF[held.kind] != word:
        message = f"{word}() of a block that was acquired with {held.kind}()"
        remedy = f"a block from {held.kind}() ends with {RELEASE_OF[held.kind]}()"
        raise thread.problem("TW202", message, notes=(Note("acquired here", held.span),), help=remedy)
    older = [h for h in thread.held if h.buffer is held.buffer and h.kind == held.kind]
    if held in older and older[0] is not held:
        message = f"this block of '{held.buffer.name}' is released before an older one"
        remedy = "a buffer is a queue: release blocks in the order they were acquired"
        raise thread.problem("TW202", message, notes=(Note("the older one was acquired here", older[0].span),), help=remedy)
    release_buffer(thread, held.buffer, word)


def store(thread: ThreadBuilder, block: Block, value: Any, accumulate: bool) -> None:
    """``block.store(value)``, ``block += value``."""
    if thread.kind != "compute":
        message = f"store in data-movement thread '{thread.function.name}'"
        raise thread.problem("TW013", message, help="only the compute thread stores; use ttl.copy")
    held = block.held
    if held is None:
        raise thread.problem("TW204", "store into an expression", help="store into a block from reserve()")
    if held.kind == "wait" and _place_of_wait(held) is not thread.emitter.block:
        raise thread.problem(
            "TW204",
            f"store into a block of '{held.buffer.name}' that was waited for outside of this loop or branch",
            notes=(Note("waited for here", held.span),),
            help="keep the value in a name, which a loop may change; reserve() gives a block to write",
        )
    if block.region is not None and accumulate:
        remedy = "add in a name, and store the sum"
        raise thread.problem("TW204", "a sum in a part of a block", help=remedy)
    if not isinstance(value, Block):
        word = "a number" if is_number(value) else described(value)
        remedy = OTHER_SIDE.get(class_of(value), "for example block.store(a + b)")
        remedy = "ttl.block.fill makes a block of one number" if is_number(value) else remedy
        raise thread.problem("TW004", f"store takes a block expression, not {word}", help=remedy)
    source = readable(thread, value)
    if source.grows:
        source = at_size(thread, source, block.shape)
    check_stored(thread, source, held.buffer)
    _check_stored_size(thread, source, block, held)
    if source.dtype != block.dtype and {source.dtype, block.dtype} <= set(FLOAT_DTYPES):
        source = converted(thread, source, block.dtype)
    if source.dtype != block.dtype:
        raise thread.problem(
            "TW102",
            f"a value of {source.dtype} is stored into a block of {block.dtype}",
            label=f"{source.dtype} into {block.dtype}",
            notes=(Note("the buffer is made here", held.buffer.span),),
            help=f'convert it: store(ttl.math.typecast(x, "{block.dtype}"))',
        )
    assert held.site is not None
    if block.region is not None:
        store_part(thread, block, source)
        return
    if held.kind == "wait":
        grown = apply_op(thread, BY_NAME["add"], [block, source], {}) if accumulate else source
        held.stored, held.replaced = grown, thread.emitter.span
        return
    if accumulate or held.site.assumed != EITHER:
        source = beside(thread, source, held.site.assumed)
    held.site.store(source.extent, thread.emitter.block, thread.emitter.span, accumulate)
    attributes = {"accumulate": number_attr(True)} if accumulate else {}
    if accumulate and held.store is None and all(held is not other for other, _ in thread.sums):
        thread.sums.append((held, thread.emitter.span))
    value = _grown_sum(thread, held, source) if accumulate else source
    joined = _grown_choice(thread, held, source) if accumulate else None
    op = thread.emitter.add(StoreOp, [source.ssa, block.ssa], [], attributes)
    stored(thread, held, value, op)
    held.joined = joined


def _place_of_wait(held: Acquisition) -> IRBlock | None:
    assert isinstance(held.ssa.owner, Operation)
    return held.ssa.owner.parent


def _grown_sum(thread: ThreadBuilder, held: Acquisition, source: Block) -> Block | None:
    """What the block holds after an accumulating store, if that is known here."""
    if held.store is None:
        return source if len(thread.emitter.open_blocks()) == 1 else None
    if held.stored is None or not _adds_once(thread, held, source):
        return None
    return apply_op(thread, BY_NAME["add"], [held.stored, source], {})


def _grown_choice(thread: ThreadBuilder, held: Acquisition, source: Block) -> Callable[[], Block] | None:
    """The same for what branches have stored: their values are put together when the sum is read."""
    before = held.joined
    if before is None or not _adds_once(thread, held, source):
        return None
    return lambda: apply_op(thread, BY_NAME["add"], [before(), source], {})


def _adds_once(thread: ThreadBuilder, held: Acquisition, source: Block) -> bool:
    """Whether what was stored before is there, and this adds to it exactly once."""
    place = held.store.parent if held.store is not None else None
    known = place is not None and place in thread.emitter.open_blocks() and not loops_since(thread, place)
    return known and source.dtype in dtypes_of(BY_NAME["add"])


def _check_stored_size(thread: ThreadBuilder, source: Block, block: Block, held: Acquisition) -> None:
    if source.shape == block.shape:
        return
    single = [dim for dim, (have, want) in enumerate(zip(source.shape, block.shape, strict=False)) if have != want]
    remedy = f"the value needs a buffer with shape={source.shape}"
    if len(source.shape) == len(block.shape) and all(source.shape[dim] == 1 for dim in single):
        remedy = f"a store repeats nothing: ttl.block.broadcast(x, dims={single}, shape={block.shape}), or shape={source.shape}"
    raise thread.problem(
        "TW101",
        f"a value of {source.size_text} tiles is stored into a block of {block.size_text}",
        label=f"{source.size_text} into {block.size_text}",
        notes=(Note("the buffer is made here", held.buffer.span),),
        help=remedy,
    )


def copy(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Transfer:
    if named or len(args) != 2:
        raise thread.problem("TW004", "copy takes a source and a target", help="ttl.copy(tensor[0:1, 0:1], block)")
    if thread.kind == "compute":
        remedy = "copy in a function marked @ttl.datamovement(); the compute thread reads and stores blocks"
        raise thread.problem("TW014", f"copy in compute thread '{thread.function.name}'", help=remedy)
    args = _with_blocks(thread, args)
    if any(isinstance(arg, (PipeEnd, Pipe)) for arg in args):
        return copy_through_pipe(thread, args)
    for arg in args:
        if isinstance(arg, KernelTensor):
            example = ", ".join(f"0:{size}" for size in arg.tile_shape)
            raise thread.problem("TW104", f"copy of the whole tensor '{arg.name}'", help=f"give the tiles: {arg.name}[{example}]")
    slices = [arg for arg in args if isinstance(arg, TensorSlice)]
    blocks = [arg for arg in args if isinstance(arg, Block) and arg.held is not None]
    if len(slices) != 1 or len(blocks) != 1:
        found = " to ".join(described(arg) for arg in args)
        remedy = "one side is a slice of a tensor, the other a block of a buffer"
        if any(isinstance(arg, PipeNet) for arg in args):
            remedy = "copy into the pipe that net.if_src(f) gives to f, or out of the one that net.if_dst(f) gives"
        raise thread.problem("TW004", f"copy from {found}", help=remedy)
    _check_sizes(thread, slices[0], blocks[0])
    span = thread.emitter.span
    part, block = slices[0], blocks[0]
    reads = args[0] is part
    if block.region is not None:
        pairs = [(cut, _part_of(thread, block, first)) for cut, first in copied_runs(thread, part, block)]
    else:
        pairs = [(inner.ssa, _part_of(thread, block, first)) for inner, first in part.parts] or [(part.ssa, block.ssa)]
    if reads and block.held is not None and block.held.site is not None:
        block.held.site.store(FULL, thread.emitter.block, span)
    copies = [thread.emitter.add(CopyOp, pair if reads else pair[::-1], [TransferType()]) for pair in pairs]
    return Transfer(copies, span)


def _part_of(thread: ThreadBuilder, block: Block, first: int) -> SSAValue:
    """The tiles of a block from ``first`` on."""
    attached = block.ssa.owner
    assert isinstance(attached, AttachCBOp)
    attributes = {"first_tile": i32_attr(first)} if first else {}
    return thread.emitter.add(AttachCBOp, list(attached.operands), [block.ssa.type], attributes).results[0]


def _with_blocks(thread: ThreadBuilder, args: list[Any]) -> list[Any]:
    """The oldest form names the buffer, ``copy(tensor[0, 0], buffer)``: the block held last, from the tensor's origin."""
    for position, buffer in enumerate(args):
        if not isinstance(buffer, CircularBuffer):
            continue
        kind = "wait" if position == 0 else "reserve"
        held = [acquired for acquired in thread.held if acquired.buffer is buffer and acquired.kind == kind]
        if not held:
            remedy = f"{kind}() a block of it first"
            raise thread.problem("TW004", f"copy of buffer '{buffer.name}', of which no block is held", help=remedy)
        other = args[1 - position]
        if isinstance(other, TensorSlice) and other.origin and _fits(buffer, other):
            erase_slice(other)
            other = emit_slice(thread, other.tensor, [0] * len(other.tensor.tile_shape), buffer.shape[-2:])
        block = Block(held[-1].ssa, buffer.shape, buffer.dtype, held[-1])
        return [block, other] if position == 0 else [other, block]
    return args


def _fits(buffer: CircularBuffer, part: TensorSlice) -> bool:
    sizes = part.tensor.tile_shape[-len(buffer.shape) :]
    return all(block <= size for block, size in zip(buffer.shape, sizes, strict=False))


def _check_sizes(thread: ThreadBuilder, part: TensorSlice, block: Block) -> None:
    assert block.held is not None
    own, pages = block.held.buffer.tile, page_sizes(part.tensor.spec)
    if own != pages:
        kinds = [tile_words(sizes) for sizes in (pages, own)]
        message = f"'{part.name}' consists of {kinds[0]}, a block of '{block.held.buffer.name}' of {kinds[1]}"
        notes = (Note("the buffer is made here", block.held.buffer.span),)
        code = "TW114" if 1 in (own[0], pages[0]) else "TW115"
        raise thread.problem(code, message, notes=notes, help="make the buffer like this tensor")
    if _plain(part.shape) != _plain(block.shape):
        sliced, held = ("x".join(map(str, _plain(shape))) for shape in (part.shape, block.shape))
        sizes = part.tensor.tile_shape[-len(part.shape) :]
        beyond = any(extent > size and extent % 32 == 0 for extent, size in zip(part.shape, sizes, strict=False))
        raise thread.problem(
            "TW104",
            f"slice of '{part.name}' has {sliced} tiles, block of '{block.held.buffer.name}' has {held}",
            label=f"{sliced} and {held}",
            notes=(Note("the buffer is made here", block.held.buffer.span),),
            help="make the slice as large as the block" + ("; indices count tiles of 32x32, not elements" if beyond else ""),
        )
    if part.dtype != block.dtype:
        remedy = "make the buffer like this tensor"
        raise thread.problem("TW102", f"tensor '{part.name}' holds {part.dtype}, the block {block.dtype}", help=remedy)


def _plain(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes without the single entries in front of rows and columns, which an index leaves out and a slice leaves in."""
    return (*(size for size in shape[:-2] if size != 1), *shape[-2:])


def wait(thread: ThreadBuilder, transfer: Transfer) -> None:
    transfer.waited = True
    for op in transfer.ops:
        thread.emitter.add(WaitOp, [op.results[0]])


def wait_any(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> ReadyReceive:
    """``ttl.wait_any((first, second), start=0)``: which of several receives has arrived. Each is still waited for by itself."""
    requests = args[0] if args else None
    start = named.get("start", args[1] if len(args) == 2 else 0)
    if not is_list(requests) or not requests or len(args) > 2 or named.keys() - {"start"}:
        raise thread.problem("TW004", "wait_any takes receives and where to start", help="ttl.wait_any((first, second), start=0)")
    nets: list[int] = []
    for request in requests:
        copy = request.ops[0] if isinstance(request, Transfer) and len(request.ops) == 1 else None
        pipe = copy.source.owner if isinstance(copy, CopyOp) else None
        if not isinstance(pipe, NetPipeOp):
            remedy = "request = ttl.copy(pipe, block); copies of tensors are waited for one by one"
            raise thread.problem("TW004", f"wait_any of {described(request)}, which receives nothing", help=remedy)
        nets.append(pipe.net.number)
    if len(set(nets)) < len(nets):
        raise thread.problem("TW217", "wait_any of two receives from one net", help="give each of them a net of its own")
    if not is_int_like(start):
        raise thread.problem("TW004", f"start is {described(start)}", help="an integer")
    operands = [thread.emitter.integer(start), *(request.ops[0].results[0] for request in requests)]
    op = thread.emitter.add(WaitAnyOp, operands, [INDEX])
    op.results[0].name_hint = "ready"
    return ReadyReceive(thread.emitter.leaf(op.results[0], "the receive that is ready", 0, len(nets) - 1))


def group_method(thread: ThreadBuilder, group: TransferGroup, name: str, args: list[Any]) -> None:
    """``group.add(copy)``, ``group.wait_all()``."""
    if name == "wait_all":
        for transfer in group.transfers:
            wait(thread, transfer)
        group.transfers.clear()
        return
    if len(args) != 1 or not isinstance(args[0], Transfer):
        raise thread.problem("TW004", "add takes a copy", help="group.add(ttl.copy(tensor[0, 0], block))")
    if thread.depth > group.depth:
        wait(thread, args[0])  # after the loop there would be one of many; each ends in its own iteration
    else:
        group.transfers.append(args[0])


def start_sums(thread: ThreadBuilder) -> None:
    """A sum starts from zero. Where it is not certain that anything is added to it, the zero is stored."""
    for held, place in thread.sums:
        attached = held.ssa.owner
        assert isinstance(attached, Operation) and attached.parent is not None
        if _surely_written(attached.next_op, held.ssa, thread.skippable):
            continue
        thread.emitter.span = place
        with thread.emitter.aside() as ops:
            zero = filled(thread, 0, held.buffer.shape, held.buffer.dtype)
            thread.emitter.add(StoreOp, [zero.ssa, held.ssa])
        attached.parent.insert_ops_after(ops, attached)


def _surely_written(op: Operation | None, block: SSAValue, skippable: set[Operation]) -> bool:
    """Whether the first of these ops that stores to the block does so whichever way branches go: what follows it may add."""
    while op is not None:
        if isinstance(op, StoreOp) and op.target is block:
            return True
        if any(isinstance(inner, StoreOp) and inner.target is block for inner in op.walk()):
            bodies = [region.block.first_op for region in op.regions if region.blocks and op not in skippable]
            wanted = 2 if isinstance(op, IfOp) else 1
            return len(bodies) >= wanted and all(_surely_written(body, block, skippable) for body in bodies)
        op = op.next_op
    return False


MOST_PARTS = 256  # transfers written out for one copy


def write_slice(thread: ThreadBuilder, tensor: KernelTensor, ranges: Sequence[Range], origin: bool) -> TensorSlice:
    if any(found.extent > 1 for found in ranges[:-2]):
        return _matrices(thread, tensor, ranges)
    if any(len(found.starts) > 1 for found in ranges):
        return _gathered(thread, tensor, ranges)
    extents = tuple(found.extent for found in ranges[-2:])
    return emit_slice(
        thread, tensor, [found.start for found in ranges], extents, origin, tuple(found.step for found in ranges[-2:])
    )


@record
class Range:
    """Tiles of one dimension: ``extent`` of them from a start, ``step`` apart, or one at each of several starts."""

    starts: tuple[Value, ...]
    size: int = 1  # from a single start
    step: int = 1

    @property
    def start(self) -> Value:
        return self.starts[0]

    @property
    def extent(self) -> int:
        return self.size if len(self.starts) == 1 else len(self.starts)

    @property
    def places(self) -> list[Value]:
        """Every index by itself."""
        return list(self.starts) if len(self.starts) > 1 else [make("+", self.start, n * self.step) for n in range(self.size)]


def _matrices(thread: ThreadBuilder, tensor: KernelTensor, ranges: Sequence[Range]) -> TensorSlice:
    """Several entries of the dimensions before rows and columns: their matrices fill a block one after the other."""
    *outer, rows, columns = ranges
    if math.prod(found.extent for found in outer) > MOST_PARTS:
        remedy = "copy them in several blocks"
        raise thread.problem("TW109", f"more than {MOST_PARTS} matrices of '{tensor.name}' in one copy", help=remedy)
    extents = (rows.extent, columns.extent)
    parts: list[tuple[TensorSlice, int]] = []
    for number, lead in enumerate(itertools.product(*(found.places for found in outer))):
        first = number * math.prod(extents)
        if any(len(found.starts) > 1 for found in (rows, columns)):
            one = _gathered(thread, tensor, [*(Range((place,)) for place in lead), rows, columns])
            parts += [(inner, first + within) for inner, within in one.parts]
        else:
            starts = [*lead, rows.start, columns.start]
            parts.append((emit_slice(thread, tensor, starts, extents, steps=(rows.step, columns.step)), first))
    shape = (*(found.extent for found in outer), *extents)
    return TensorSlice(parts[0][0].ssa, shape, tensor.spec.dtype, tensor, parts=tuple(parts))


def _gathered(thread: ThreadBuilder, tensor: KernelTensor, ranges: Sequence[Range]) -> TensorSlice:
    """Rectangles that fill a block one after the other: rows of tiles, or single tiles if columns are gathered."""
    *outer, rows, columns = ranges
    lead = [found.start for found in outer]
    across = len(columns.starts) > 1
    if rows.extent * (columns.extent if across else 1) > MOST_PARTS:
        remedy = "copy it in several blocks"
        raise thread.problem("TW004", f"a list of more than {MOST_PARTS} places is too long to gather from", help=remedy)
    parts: list[tuple[TensorSlice, int]] = []
    for place, row in enumerate(rows.places):
        first = place * columns.extent
        if across:
            parts += [
                (emit_slice(thread, tensor, [*lead, row, column], (1, 1)), first + n) for n, column in enumerate(columns.starts)
            ]
        else:
            inner = emit_slice(thread, tensor, [*lead, row, columns.start], (1, columns.size), steps=(1, columns.step))
            parts.append((inner, first))
    shape = (rows.extent, columns.extent)
    return TensorSlice(parts[0][0].ssa, shape, tensor.spec.dtype, tensor, parts=tuple(parts))


def emit_slice(
    thread: ThreadBuilder,
    tensor: KernelTensor,
    starts: Sequence[Value],
    shape: tuple[int, ...],
    origin: bool = False,
    steps: tuple[int, ...] = (1, 1),
    turned: bool = False,
) -> TensorSlice:
    """``turned``: tiles in transposed order, as a product with a transposed right side reads them."""
    kind = SliceType(int_array(shape), tile_type(tensor.spec.dtype), text_attr(tensor.spec.memory))
    operands = [thread.accessor(tensor), *(thread.emitter.integer(start) for start in starts)]
    attributes: dict[str, Attribute] = {"strides": i32_list(steps)} if any(step != 1 for step in steps) else {}
    if turned:
        attributes["turned"] = UnitAttr()
    op = thread.emitter.add(TensorSliceOp, operands, [kind], attributes)
    return TensorSlice(op.results[0], shape, tensor.spec.dtype, tensor, origin)


def erase_slice(part: TensorSlice) -> None:
    """Takes back a slice that another one replaces."""
    op = part.ssa.owner
    assert isinstance(op, TensorSliceOp)
    erase(op)


def copy_through_pipe(thread: ThreadBuilder, args: list[Any]) -> Transfer:
    """``copy(block, pipe)`` sends, ``copy(pipe, block)`` receives."""
    sending = isinstance(args[1], (PipeEnd, Pipe))
    block, pipe = (args[0], args[1]) if sending else (args[1], args[0])
    side = "src" if sending else "dst"
    if not isinstance(block, Block) or block.held is None:
        remedy = "the other side of a pipe is a block"
        raise thread.problem("TW004", f"copy from {described(args[0])} to {described(args[1])}", help=remedy)
    end = pipe if isinstance(pipe, PipeEnd) else PipeEnd(net_of(thread, pipe), side, 0)
    if end.side != side:
        word, needed = ("sent into", "if_src") if sending else ("taken out of", "if_dst")
        remedy = f"do this in the callback of {end.net.name}.{needed}"
        raise thread.problem("TW215", f"a block is {word} {end.describe()}", help=remedy)
    if not sending and block.held.kind != "reserve":
        message = f"a pipe delivers into a block of '{block.held.buffer.name}' that was waited for"
        remedy = "reserve() a block to receive into"
        raise thread.problem("TW204", message, notes=(Note("waited for here", block.held.span),), help=remedy)
    span = thread.emitter.span
    ssa = net_pipe(thread, end)
    operands = [block.ssa, ssa] if sending else [ssa, block.ssa]
    assert block.held.site is not None
    if sending:
        thread.sites.sends.append((end.net.number, block.held.site))
    else:
        block.held.site.store(end.net.number, thread.emitter.block, span)
    op = thread.emitter.add(CopyOp, operands, [TransferType()])
    return Transfer([op], span)


def grid_slice(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> TensorSlice:
    """The block of a tensor that has this core's coordinates: ``grid_slice(a, (2, 2))`` is ``a[2*i : 2*i+2, 2*j : 2*j+2]``."""
    values = [*args, *named.values()]
    if len(values) != 2 or not isinstance(values[0], KernelTensor):
        raise thread.problem("TW004", "grid_slice takes a tensor and tiles per core", help="ttl.grid_slice(a, (1, 1))")
    tensor, factors = values
    sizes = tensor.tile_shape
    if not is_list(factors) or len(factors) != len(sizes) or len(sizes) != 2:
        message = f"'{tensor.name}' has {len(sizes)} dimensions, block_factors is {described(factors)}"
        raise thread.problem("TW109", message, help="one number of tiles for each of two dimensions")
    if not all(isinstance(factor, int) and not isinstance(factor, bool) and factor >= 1 for factor in factors):
        raise thread.problem("TW004", "block_factors are integers of at least 1, known at compile time")
    places = [*thread.coordinates(), 0, 0][:2]
    for factor, size, cores in zip(factors, sizes, (*thread.build.grid, 1, 1), strict=False):
        if factor * cores > size:
            message = f"{cores} cores take {factor} tiles each of a dimension of '{tensor.name}' that has {size}"
            raise thread.problem("TW103", message, help="smaller block_factors, or a smaller grid")
    starts = [make("*", place, factor) for place, factor in zip(places, factors, strict=True)]
    return emit_slice(thread, tensor, starts, tuple(factors))
