"""Strength reduction: ``(a @ b) * c`` in a loop that ``a`` stands before is ``(a * c) @ b``, and ``a * c`` is computed once.

Attention scales its scores in every step of the loop over keys; its queries are there before the loop. Without a loop it pays as
well where ``a`` has few tiles: the matrix unit multiplies a block in a buffer with a number in a third of the time that the
vector unit takes in DST. ``c`` is a power of two not above one: then every product, every sum of them and every rounding on the
way is what it was, times ``c``; numbers that fall below the smallest normal aside, which most calls flush. A negative ``c`` would
not do: the matrix unit rounds halves up. With the permission ``reassociate`` it is any number.

Requires: numbers are parameters of rows. Ensures: what is scaled stands before the loop, where `ttl-hoist-invariants` holds it; a
block of bf16 is multiplied with a tile of the number.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import i64_list, trip_count
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, MatmulOp, TensorMathOp, compute_functions, dtype_of, shape_of
from tilewright.dialects.ttl_buffers import AttachCBOp
from tilewright.dialects.walking import ancestor_in, erase, insert_before, line_of, operations
from tilewright.hardware import tile_bytes
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext

NAME = "ttl-scale-before-products"
DTYPES = ("bf16", "f32")
SMALLEST = 2.0**-32  # a factor below it might flush numbers that matter
MANY = 4  # turns of a loop that nobody can count
FIRST = "first"  # where the tile of the number has it: all that a broadcast reads
# Cycles of a tile: its product with a number in a buffer, and in DST; and of another section, with its inits and its wait.
BY_MATRIX_UNIT, BY_VECTOR_UNIT, ANOTHER_SECTION = 71, 176, 270


def run(module: ModuleOp, context: PassContext) -> bool:
    found = [_scale_before(function, context) for function in compute_functions(module)]
    return any(found)


def _scale_before(function: FuncOp, context: PassContext) -> bool:
    """Says whether anything changed."""
    changed = False
    if 2 * compiler_buffers.next_index(function) > context.chip.max_buffers:
        return changed  # it takes a buffer more, and those that regions will need come first
    for op in operations(function):
        if not isinstance(op, TensorMathOp) or op.SPEC.name != "mul_scalar":
            continue
        product, scale = op.lhs.owner, parameters_of(op, op.SPEC)["scalar"]
        if not isinstance(product, MatmulOp) or not product.results[0].has_one_use() or not _keeps_bits(scale, context):
            continue
        for position, operand in enumerate(product.operands[:2]):
            loop, place = _loop_behind(operand, product), f"line {line_of(op)}"
            if _bytes(operand) > context.l1_left // 4 or not _pays(operand, op, loop, scale):
                continue
            _scale(op, product, position, loop or product, function)
            name = operand.name_hint or "the operand"
            where = "once, before the loop, instead of every product" if loop is not None else "instead of its product"
            context.trace.decide(NAME, f"'{name}' is scaled {where}", f"by {scale:g}; same bits", place=place)
            changed = True
            break
    return changed


def _keeps_bits(scale: float, context: PassContext) -> bool:
    if "reassociate" in context.options.permissions:
        return math.isfinite(scale)
    return math.frexp(scale)[0] == 0.5 and SMALLEST <= scale <= 1.0


def _loop_behind(operand: SSAValue, product: Operation) -> ForOp | None:
    """The loop around the product that the operand stands before."""
    owner = operand.owner
    if not isinstance(owner, Operation) or owner.parent is None or dtype_of(operand.type) not in DTYPES:
        return None
    around = ancestor_in(product, owner.parent)
    return around if isinstance(around, ForOp) else None


def _pays(operand: SSAValue, op: Operation, loop: ForOp | None, scale: float) -> bool:
    """Whether it takes less to scale the operand: before the loop, or before a product without one."""
    before, inside = (math.prod(shape_of(value.type)) for value in (operand, op.results[0]))
    if loop is not None:  # loops further in only add to what is inside
        turns = trip_count(loop)
        return before < inside * (MANY if turns is None else turns)
    return _by_matrix_unit(operand, scale) and before * BY_MATRIX_UNIT + ANOTHER_SECTION < inside * BY_VECTOR_UNIT


def _by_matrix_unit(operand: SSAValue, scale: float) -> bool:
    """Whether the operand is a block in a buffer, and the matrix unit reads all bits of it and of the number."""
    return dtype_of(operand.type) == "bf16" and isinstance(operand.owner, AttachCBOp) and math.frexp(scale)[0] == 0.5


def _bytes(value: SSAValue) -> int:
    return tile_bytes(dtype_of(value.type)) * math.prod(shape_of(value.type))


def _scale(op: TensorMathOp, product: MatmulOp, position: int, before: Operation, function: FuncOp) -> None:
    operand = product.operands[position]
    kinds, location, scale = [operand.type], op.location, parameters_of(op, op.SPEC)["scalar"]
    if _by_matrix_unit(operand, scale):
        tile = compiler_buffers.scaler_tile(function, "bf16", "scale_{}", FIRST, location, value=scale)
        dims = {"dims": i64_list(range(len(shape_of(operand.type))))}
        repeated = BcastOp.create(operands=[tile], result_types=kinds, attributes=dims, location=location)
        scaled = TENSOR_OPS["mul"].create(operands=[operand, repeated.results[0]], result_types=kinds, location=location)
        insert_before([repeated, scaled], before)
    else:
        scaled = TENSOR_OPS["mul_scalar"].create(
            operands=[operand], result_types=kinds, attributes=dict(op.attributes), location=location
        )
        insert_before([scaled], before)
    scaled.results[0].name_hint = operand.name_hint
    product.operands[position] = scaled.results[0]
    product.results[0].name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(product.results[0])
    erase(op)
