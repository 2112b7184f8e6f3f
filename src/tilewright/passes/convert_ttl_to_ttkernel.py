"""Everything becomes calls of the kernel API on buffers, DST indices and pages.

Requires: loops over tiles with DST indices. Ensures: no ``ttl`` op is left; every math call is preceded by its init (the
next pass keeps the few that are needed).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.dialects.tensor import CollapseShapeOp, EmptyOp, ExtractOp, ExtractSliceOp, InsertOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import created, is_tensor_type
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import AttachCBOp
from tilewright.dialects.ttl_network import CreateSemaphoreOp, NetPipeOp
from tilewright.dialects.walking import by_kind, discard, erase, insert_before, of_kind, operations
from tilewright.passes.context import PassContext, config_of
from tilewright.passes.kernel_calls.buffers import (
    IndexBuilder,
    MovementConverter,
    call,
    convert_buffer_op,
    convert_debug,
    convert_element,
    convert_external,
    convert_table,
)
from tilewright.passes.kernel_calls.math import MathConverter
from tilewright.passes.kernel_calls.network import NetworkConverter, NetworkPlan, plan_network

NAME = "convert-ttl-to-ttkernel"

SENDS = {f"ttkernel.noc_async_write{form}" for form in ("", "_multicast", "_multicast_loopback_src")}
INCREMENT = "ttkernel.noc_semaphore_inc"
END_LATE = SENDS | {INCREMENT}  # calls that a thread waits for at its end
TALKS = frozenset[type[Operation]]((NetPipeOp, CreateSemaphoreOp))  # whatever cores say to each other begins with one of them
VIEW_OPS = frozenset[type[Operation]]((AttachCBOp, CollapseShapeOp, EmptyOp, ExtractOp, ExtractSliceOp, InsertOp))


def run(module: ModuleOp, context: PassContext) -> None:
    kinds = by_kind(module)
    talks = not TALKS.isdisjoint(kinds)
    ends = talks or not END_LATE.isdisjoint([kind.name for kind in kinds])  # text may have such calls already
    network = plan_network(module, context) if talks else None
    for function in module.ops:
        if isinstance(function, FuncOp):
            _convert(function, network, context)
            if ends:
                _finish_transfers(function)


def _convert(function: FuncOp, network: NetworkPlan | None, context: PassContext) -> None:
    indices = IndexBuilder(function)
    buffers: dict[SSAValue, SSAValue] = {}
    config = config_of(function)
    math = MathConverter(indices, buffers, config, context.options.metal)
    movement = MovementConverter(indices, buffers, context.chip)
    talk = NetworkConverter(function, indices, buffers, network, context) if network is not None else None
    computes = thread_kind(function) == "compute"
    loops = of_kind(function, ForOp)  # those that are made below give no results
    done_with: list[Operation] = []
    for op in operations(function):
        if type(op) in VIEW_OPS:
            done_with.append(op)
            continue
        if not op.name.startswith("ttl."):
            continue
        if computes and math.convert(op):  # most of what a thread that computes has
            done_with.append(op)
            continue
        done = convert_buffer_op(op, buffers, indices, config.unpack_to_dest)
        done = done or convert_debug(op, buffers, movement.accessors) or convert_element(op, buffers)
        done = done or convert_external(op, buffers, movement.accessors)
        done = done or (talk is not None and talk.convert(op)) or convert_table(op) or movement.convert(op)
        if done:
            done_with.append(op)
    _drop_block_results([op for op in loops if op.results])
    for op in reversed(done_with):  # ops that earlier passes took out may still name them
        discard(op)


def _finish_transfers(function: FuncOp) -> None:
    """A thread ends when what it sent to other cores, and what it changed there, has arrived."""
    last = function.body.block.last_op
    assert last is not None
    names = {kind.name for kind in by_kind(function)}
    if names & SENDS:
        insert_before(call("noc_async_write_barrier"), last)
    if INCREMENT in names:
        insert_before(call("noc_async_atomic_barrier"), last)


def _drop_block_results(loops: list[ForOp]) -> None:
    """Pack nests carried the block they fill as an iteration argument; the buffer itself is what they fill. Integers stay."""
    for loop in reversed(loops):
        body = loop.body.block
        last = body.last_op
        assert last is not None
        blocks = [number for number, result in enumerate(loop.results) if is_tensor_type(result.type)]
        if not blocks:
            continue
        kept = [number for number in range(len(loop.results)) if number not in blocks]
        bounds, initial = loop.operands[:3], loop.operands[3:]
        for number in blocks:
            body.args[1 + number].replace_all_uses_with(initial[number])
            loop.results[number].replace_all_uses_with(initial[number])
        last.operands = [last.operands[number] for number in kept]
        for number in reversed(blocks):
            body.erase_arg(body.args[1 + number])
        operands, results = [*bounds, *(initial[number] for number in kept)], [loop.results[number].type for number in kept]
        plain = created(ForOp, operands, results, body=loop.detach_region(0), location=loop.location)
        plain.attributes.update(loop.attributes)
        insert_before(plain, loop)
        for number, result in zip(kept, plain.results, strict=True):
            loop.results[number].replace_all_uses_with(result)
        erase(loop)
