"""DST indices that text brings along, as the specification's listings have them: completed to what our passes write, and checked.

The listings write a slot per value and ``ttl.dst_footprint``; where a tile's result lies follows from the number of the tile:
``footprint + tile``. Regions get the layout that says so, tile loops their stride, ops in loops ``dst_stride``. A result that a
listing shows below the footprint (stages 4 and 5 have ``dst_idx = 0``) lies behind it all the same, as their last stage computes.

Requires: text with DST assigned, as regions or as loops. Ensures: every region has its layout, every tile loop its stride.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.attributes import TileType, constant, constant_of, i32_attr, int_value, text_attr, text_value
from tilewright.dialects.stages import ASSIGNED
from tilewright.dialects.tile_op import Unit, Writes
from tilewright.dialects.ttl import TileOpBase, compute_functions
from tilewright.dialects.ttl_compute import ComputeOp, CopyTileOp, DstTileOp
from tilewright.dialects.walking import block_ops, of_kind, operations, place_of
from tilewright.dst.problem import Layout
from tilewright.passes.context import PassContext, config_of
from tilewright.passes.dst_assignment.dst_problem import capacity_of

NAME = "ttl-complete-dst-indices"
LAYOUT, UNROLL, STRIDE = "ttl.dst_layout", "ttl.unroll_factor", "ttl.tile_stride"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        ops = operations(function)
        capacity = capacity_of(config_of(function), context)
        for region in [op for op in ops if type(op) is ComputeOp and LAYOUT not in op.attributes]:
            _complete_region(region, capacity)
        for loop in [op for op in ops if type(op) is ForOp and ASSIGNED in op.attributes and STRIDE not in op.attributes]:
            _complete_loop(loop)


def _complete_region(region: ComputeOp, capacity: int) -> None:
    tiles, footprint = region.tiles, int_value(region, ASSIGNED, 0)
    region.attributes[UNROLL] = i32_attr(tiles)
    region.attributes[LAYOUT] = text_attr(Layout.TILE_MAJOR.value)
    last = region.block.last_op
    assert last is not None
    outputs = list(dict.fromkeys(last.operands))
    for number, value in enumerate(outputs):
        if _slot(value) < footprint:
            _move(value, footprint + number, region)
    needed = footprint + len(outputs) * tiles
    if needed > capacity:
        raise _wrong(region, f"the region needs {needed} DST tiles, {capacity} are there")
    _replay(region)


def _complete_loop(loop: ForOp) -> None:
    """A nest in text: its outermost loop has the footprint, but no loop says what it adds to the number of the tile."""
    nest = _nest(loop)
    extents = [constant_of(each.ub) or 1 for each in nest]
    for position, each in enumerate(nest):
        each.attributes[STRIDE] = i32_attr(prod(extents[position + 1 :]))
    tiles, footprint = prod(extents), int_value(loop, ASSIGNED)
    made = [op for op in operations(nest[-1]) if isinstance(op, TileOpBase)]
    results = [op.results[0] for op in made if not op.results[0].uses]
    for number, value in enumerate(results):
        _move(value, footprint + number * tiles, loop, stride=1)
    for op in of_kind(loop, DstTileOp):
        number = max(int_value(op, "dst_idx") - footprint, 0)
        op.attributes |= {"dst_idx": i32_attr(footprint + number * tiles), "dst_stride": i32_attr(1)}


def _nest(loop: ForOp) -> list[ForOp]:
    """The tile loops from the outermost one in."""
    found = [loop]
    while len(inner := [op for op in found[-1].body.block.ops if isinstance(op, ForOp)]) == 1:
        found.append(inner[0])
    return found


def _move(value: SSAValue, slot: int, root: Operation, stride: int = 0) -> None:
    """Gives a value another slot, and with it what it was made from in place."""
    owner = value.owner
    if isinstance(owner, CopyTileOp):
        place = constant(slot)
        block = root.parent if stride else owner.parent
        assert block is not None
        block.insert_op_before(place, root if stride else owner)
        owner.slot = place.results[0]
    elif isinstance(owner, Operation) and not isinstance(owner, DstTileOp):
        owner.attributes["dst_idx"] = i32_attr(slot)
        source = _overwritten(owner)
        if source is not None:
            _move(source, slot, root, stride)
    if stride and isinstance(owner, Operation):
        owner.attributes["dst_stride"] = i32_attr(stride)


def _overwritten(op: Operation) -> SSAValue | None:
    """The operand whose slot the result takes."""
    form = op.SPEC.form(Unit(text_value(op, "ttl.unit", Unit.SFPU.value))) if isinstance(op, TileOpBase) else None
    return op.operands[0] if form is not None and form.writes is Writes.IN_PLACE and op.operands else None


def _slot(value: SSAValue) -> int:
    owner = value.owner
    if isinstance(owner, CopyTileOp):
        found = constant_of(owner.slot)
        if found is None:
            raise _wrong(owner, "the DST index of a load is not a constant")
        return found
    if not isinstance(owner, Operation) or "dst_idx" not in owner.attributes:
        raise _wrong(owner, "a value of the region has no DST index")
    return int_value(owner, "dst_idx")


def _replay(region: ComputeOp) -> None:
    """One tile through the body: every op must find in DST what it reads."""
    held: dict[int, SSAValue] = {}
    for op in block_ops(region.block):
        for value in op.operands:
            if not isinstance(value.type, TileType) or isinstance(value, BlockArgument):
                continue
            slot = _slot(value)
            if held.get(slot) is not value:
                raise _wrong(op, f"'{op.name}' reads DST[{slot}], where another value has been written since")
        result = op.results[-1] if op.results else None
        if result is None or not isinstance(result.type, TileType):
            continue
        source = _overwritten(op)
        if source is not None and _slot(source) != _slot(result):
            raise _wrong(op, f"'{op.name}' works in place: its result is in DST[{_slot(source)}], not in DST[{_slot(result)}]")
        held[_slot(result)] = result


def _wrong(op: object, message: str) -> KernelError:
    place = place_of(op) if isinstance(op, Operation) else None
    return fail("TW404", message, place, help="correct the index, or leave all of them out to have them chosen")
