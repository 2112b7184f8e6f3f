"""A second index for f32 buffers that both the matrix unit and exact readers use.

The hardware unpacks a buffer either to the source registers, which keep 11 significant bits of an f32, or straight into DST with
all of them; an index has one of the two modes. A buffer with both kinds of readers gets a second index over the same L1: the
matrix unit reads the first, everybody else the second. Both are filled, waited for and popped together, so their pointers agree.

Requires: regions, and buffers of halves marked. Ensures: no f32 buffer has readers of both kinds, as far as indices last. A
kernel with an f32 buffer has a 32-bit DST unless the user forbids it; then no reader is exact.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import buffer_type_of, i32_attr, text_attr, text_value
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    PublishCBOp,
    RunningOp,
)
from tilewright.dialects.ttl_compute import MATRIX_OPS, ComputeOp
from tilewright.dialects.walking import erase, insert_after, insert_before, of_kind, operations, users
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import fits_source
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.read_back import read_back
from tilewright.passes.dst_assignment.running_values import value_of

NAME = "ttl-alias-exact-readers"
HANDOVERS = (CBReserveOp, CBWaitOp, CBPushOp, CBPopOp, PublishCBOp)


def split_uses(value: SSAValue) -> tuple[list[Operation], list[Operation]]:
    """Ops that read a tile through the source registers, and all others."""
    readers = list(dict.fromkeys(users(value)))
    return [op for op in readers if isinstance(op, MATRIX_OPS)], [op for op in readers if not isinstance(op, MATRIX_OPS)]


def run(module: ModuleOp, context: PassContext) -> bool:
    known = len(context.trace.decisions)  # every buffer that is read both ways is one
    if context.options.fp32_dest_acc is not False:
        for function in compute_functions(module):
            _alias_exact_readers(function, module, context)
    return len(context.trace.decisions) > known


def _alias_exact_readers(function: FuncOp, module: ModuleOp, context: PassContext) -> None:
    """Gives every f32 buffer of the compute function that needs one its second index."""
    aliases: dict[SSAValue, SSAValue] = {}
    for buffer in _read_both_ways(function):
        bind = buffer.owner
        assert isinstance(bind, BindCBOp)
        _hold_in_buffer(buffer)
        index = compiler_buffers.next_index(function)
        name = text_value(bind, "name", f"cb{bind.cb_index}")
        if index >= context.chip.max_buffers:
            context.trace.decide(NAME, f"'{name}' is read in tf32 everywhere", "no index is left for its exact readers")
            continue
        for other in module.ops:
            if isinstance(other, FuncOp):
                for twin in [op for op in operations(other) if isinstance(op, BindCBOp) and op.cb_index == bind.cb_index]:
                    made = _second_index(twin, index, f"{name}_exact")
                    if other is function:
                        aliases[buffer] = made
        context.trace.decide(
            NAME, f"'{name}' has a second index, {index}, over the same memory", "its other readers get all bits of an f32"
        )
    for compute in of_kind(function, ComputeOp) if aliases else []:
        _redirect(compute, aliases)


def _hold_in_buffer(buffer: SSAValue) -> None:
    """Both indices of a running value's buffer are handed over together, step by step."""
    for op in [user for user in users(buffer) if isinstance(user, RunningOp)]:
        read_back([value_of(op)])


def _read_both_ways(function: FuncOp) -> list[SSAValue]:
    found: dict[SSAValue, set[bool]] = {}
    for compute in of_kind(function, ComputeOp):
        for value, argument in zip(compute.inputs, compute.block.args, strict=False):
            attach = value.owner
            if not isinstance(attach, AttachCBOp):
                continue
            kind = buffer_type_of(attach.buffer)
            if kind.tile.dtype == "f32" and not fits_source(attach.buffer):
                matrix, others = split_uses(argument)
                found.setdefault(attach.buffer, set()).update([True] * bool(matrix) + [False] * bool(others))
    return [buffer for buffer, ways in found.items() if len(ways) == 2]


def _second_index(bind: BindCBOp, index: int, name: str) -> SSAValue:
    """Binds the second index and repeats every call on the first one for it."""
    attributes = {**bind.attributes, "cb_index": i32_attr(index), "name": text_attr(name), "origin": text_attr("compiler")}
    attributes[ALIAS_OF] = i32_attr(bind.cb_index)
    made = BindCBOp.create(result_types=[bind.results[0].type], attributes=attributes, location=bind.location)
    made.results[0].name_hint = name
    anchor: Operation = bind
    while isinstance(anchor.next_op, BindCBOp):
        anchor = anchor.next_op
    insert_after(made, anchor)
    for user in users(bind.results[0]):
        if isinstance(user, HANDOVERS):
            again = type(user).create(
                operands=[made.results[0]],
                result_types=[result.type for result in user.results],
                attributes=dict(user.attributes),
                location=user.location,
            )
            insert_after(again, user)
    return made.results[0]


def _redirect(compute: ComputeOp, aliases: dict[SSAValue, SSAValue]) -> None:
    """Readers outside the matrix unit get the second index; an operand with both kinds of readers becomes two."""
    extra: list[tuple[SSAValue, int, list[Operation]]] = []
    for position, (value, argument) in enumerate(zip(compute.inputs, compute.block.args, strict=False)):
        attach = value.owner
        if not isinstance(attach, AttachCBOp) or attach.buffer not in aliases:
            continue
        matrix, others = split_uses(argument)
        if not others:
            continue
        exact = AttachCBOp.create(
            operands=[attach.block, aliases[attach.buffer]],
            result_types=[value.type],
            attributes=dict(attach.attributes),
            location=attach.location,
        )
        insert_after(exact, attach)
        if matrix:
            extra.append((exact.results[0], position, others))
        else:
            compute.operands[position] = exact.results[0]
    if extra:
        _with_inputs(compute, extra)


def _with_inputs(compute: ComputeOp, extra: list[tuple[SSAValue, int, list[Operation]]]) -> None:
    inputs, outputs, maps = list(compute.inputs), list(compute.outputs), list(compute.maps)
    count = len(inputs)
    for offset, (_, position, others) in enumerate(extra):
        old = compute.block.args[position]
        new = compute.block.insert_arg(old.type, count + offset)
        new.name_hint = old.name_hint
        for op in others:
            for index, operand in enumerate(op.operands):
                if operand is old:
                    op.operands[index] = new
    maps[count:count] = [maps[position] for _, position, _ in extra]
    attributes = {key: value for key, value in compute.attributes.items() if key not in ("indexing_maps", "iterator_types")}
    iterators = [kind.data for kind in compute.iterator_types or ()]
    body = compute.detach_region(compute.body)
    new_op = ComputeOp([*inputs, *(value for value, _, _ in extra)], outputs, maps, iterators, body, attributes)
    new_op.location = compute.location
    insert_before(new_op, compute)
    for old_result, result in zip(compute.results, new_op.results, strict=True):
        old_result.replace_all_uses_with(result)
    erase(compute)

