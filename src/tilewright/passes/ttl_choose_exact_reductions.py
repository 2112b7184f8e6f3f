"""Chooses which reductions of f32 run on the vector unit, where no bit is lost, and clears what they leave beside their result.

A reduction on the matrix unit reads 11 significant bits of an f32 and packs zeros around its result. The vector unit keeps all
bits, but leaves the rest of the tile undefined. Broadcasts and elementwise ops never look there; where anybody else reads the
value, all but the result is replaced by zero.

Requires: broadcasts that nobody demands are gone. Ensures: ``exact`` on every reduction that the vector unit does; what reads one
sees zeros beside its result.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, ModuleOp, UnitAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import counted
from tilewright.dialects.attributes import defining_op, i64_list
from tilewright.dialects.tile_op import release_key
from tilewright.dialects.ttkernel import SFPU_REDUCE_SINCE
from tilewright.dialects.ttl import (
    KEEP_IN_DST,
    TENSOR_OPS,
    BcastOp,
    FillBlockOp,
    MatmulOp,
    ReduceOp,
    StoreOp,
    TensorMathOp,
    compute_functions,
    dtype_of,
)
from tilewright.dialects.walking import insert_before, operations
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import accumulates
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import DemandedElements

NAME = "ttl-choose-exact-reductions"
COMPUTED = (TensorMathOp, MatmulOp, ReduceOp)


def run(module: ModuleOp, context: PassContext) -> bool:
    found = [_choose(function, module, context) for function in compute_functions(module)]
    return any(found)


def _choose(function: FuncOp, module: ModuleOp, context: PassContext) -> bool:
    """Says whether anything changed."""
    options = context.options
    if options.fp32_dest_acc is False or release_key(options.metal) < SFPU_REDUCE_SINCE:
        return False
    kept = _kept_in_dst(function)
    chosen = [op for op in operations(function) if isinstance(op, ReduceOp) and _may_be_exact(op)]
    chosen = [op for op in chosen if op.exact or options.f32_reductions == "exact"]
    for op in (*chosen, *kept):
        op.attributes["exact"] = UnitAttr()
    if chosen:
        number = counted(len(chosen), "reduction")
        context.trace.decide(NAME, f"{number} of f32 on the vector unit", "the matrix unit would read 11 bits of each number")
    if kept:
        detail = "keep_in_dst: the matrix unit would read its operand from a buffer"
        context.trace.decide(NAME, f"{counted(len(kept), 'reduction')} in DST, on the vector unit", detail)
    if chosen or kept:
        _clear(function, DemandedElements(function, module))
    return bool(chosen or kept)


def _kept_in_dst(function: FuncOp) -> list[ReduceOp]:
    """Reductions of computed tiles that text wants in DST, where the vector unit has them: within one tile."""
    marked = [op for op in operations(function) if isinstance(op, ReduceOp) and KEEP_IN_DST in op.attributes]
    kept = [op for op in marked if op.tiles == 1 and isinstance(op.source.owner, COMPUTED) and not _sums_over_a_loop(op)]
    for op in kept:
        if len(op.operands) == 2:
            _scale_before(op)
    return kept


def _scale_before(op: ReduceOp) -> None:
    """The unit has no scale factor: the tile is multiplied with it, which the first element of the scaling tile is."""
    source, scaling = op.operands
    everywhere = {"dims": i64_list([0, 1])}
    factor = BcastOp.create(operands=[scaling], result_types=[source.type], attributes=everywhere, location=op.location)
    scaled = TENSOR_OPS["mul"].create(operands=[source, factor.results[0]], result_types=[source.type], location=op.location)
    insert_before([factor, scaled], op)
    op.operands = [scaled.results[0]]


def _may_be_exact(op: ReduceOp) -> bool:
    return dtype_of(op.results[0].type) == "f32" and len(op.operands) == 1 and not _sums_over_a_loop(op)


def _sums_over_a_loop(op: ReduceOp) -> bool:
    """The unit itself adds up in DST from one step of a loop to the next."""
    stores = [use.operation for use in op.results[0].uses]
    return any(isinstance(store, StoreOp) and accumulates(store.target) for store in stores)


def _clear(function: FuncOp, demanded: DemandedElements) -> None:
    vectors: dict[SSAValue, tuple[int, ...]] = {}  # value -> dimensions in which only the first place counts
    for op in operations(function):
        if isinstance(op, ReduceOp) and op.exact:
            vectors[op.results[0]] = op.dims
        elif isinstance(op, TensorMathOp):
            found = {vectors[operand] for operand in op.operands if operand in vectors}
            if found:
                vectors[op.results[0]] = max(found, key=len)
    cleared: dict[SSAValue, SSAValue] = {}
    masks: dict[str, SSAValue] = {}  # by pattern
    for value, dims in vectors.items():
        for use in list(value.uses):
            if not _looks_elsewhere(use.operation, dims, demanded):
                continue
            if value not in cleared:
                cleared[value] = _cleared(value, _mask(masks, dims, value, function))
            use.operation.operands[use.index] = cleared[value]


def _looks_elsewhere(user: Operation, dims: tuple[int, ...], demanded: DemandedElements) -> bool:
    """Whether an op reads more of a value than the place its result is in."""
    if isinstance(user, BcastOp):
        return not set(dims) <= set(user.dims)
    if isinstance(user, StoreOp):
        return not set(dims) <= demanded.stored(user)
    return not isinstance(user, TensorMathOp)


def _mask(made: dict[str, SSAValue], dims: tuple[int, ...], value: SSAValue, function: FuncOp) -> SSAValue:
    """A block of one f32 tile: ones where a reduction over ``dims`` has its result, zeros elsewhere."""
    pattern = "corner" if len(dims) == 2 else "column" if dims[0] == 1 else "row"
    if pattern not in made:
        made[pattern] = compiler_buffers.scaler_tile(function, "f32", f"first_{pattern}", pattern, defining_op(value).location)
    return made[pattern]


def _cleared(value: SSAValue, mask: SSAValue) -> SSAValue:
    owner = defining_op(value)
    assert owner.parent is not None
    kinds, location = [value.type], owner.location
    spread = BcastOp.create(operands=[mask], result_types=kinds, attributes={"dims": ArrayAttr([])}, location=location)
    zero = FillBlockOp.create(result_types=kinds, attributes={"value": FloatAttr(0.0, f32)}, location=location)
    choice = TENSOR_OPS["where"].create(
        operands=[spread.results[0], value, zero.results[0]], result_types=kinds, location=location
    )
    choice.results[0].name_hint = value.name_hint
    owner.parent.insert_ops_after([spread, zero, choice], owner)
    return choice.results[0]
