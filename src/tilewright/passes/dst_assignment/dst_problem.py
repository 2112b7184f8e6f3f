"""Translates the body of a ``ttl.compute`` into a plain allocation problem: its leaves, and the forms in which each op may run.
No algorithm lives here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.ir import Operation, SSAValue

from tilewright import timing_constants
from tilewright.diagnostics import Span
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import TileType, defining_op, text_value
from tilewright.dialects.tile_op import (
    FACES,
    FLOAT_DTYPES,
    WHOLE,
    Unit,
    UnitForm,
    in_one_pass,
    release_key,
    share,
    template_text,
)
from tilewright.dialects.ttkernel import (
    SFPU_BCAST,
    SFPU_BCAST_SINCE,
    STATELESS,
    SUB_ROWS_SINCE,
    bcast_call,
    init_key,
    reduce_template,
    reduced_by_vector,
    sfpu_bcast_call,
    template_values,
)
from tilewright.dialects.ttl import TileOpBase, name_of
from tilewright.dialects.ttl_compute import (
    ComputeOp,
    IrregularTileOp,
    ResidentTileOp,
    TileBcastOp,
    TileFoldOp,
    TileMatmulOp,
    TileReduceOp,
    TileScratchOp,
    TileTransposeOp,
    TileVectorReduceOp,
)
from tilewright.dialects.walking import block_ops, span_of
from tilewright.dst.allocate import allocate
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.problem import Costs, Form, Leaf, Op, Operand, Place, Plan, Problem, ResultRule
from tilewright.hardware import SOURCE_FORMATS, dst_tiles
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import accumulates, attachment_of, bind_of, buffer_of, fits_source
from tilewright.passes.compiler_buffers import Taken
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.fused_forms import FormUse, FusedForms, RowWay, ways_of
from tilewright.passes.dst_assignment.sub_blocks import is_identity
from tilewright.program import ComputeConfig
from tilewright.records import record, replaced

DTYPE = "bf16"  # what a 16-bit DST holds without loss, so packing and unpacking change nothing
MOST_OPS = 64  # of a region whose values may travel by choice


@record
class RegionProblem:
    problem: Problem
    ops: tuple[Operation, ...]
    leaves: tuple[SSAValue, ...]
    uses: dict[tuple[int, int], FormUse]  # (op, form) -> how to write it
    buffers: tuple[str, ...] = ()  # that the leaves lie in
    span: Span | None = None  # of the region as a whole: one that only copies computes no value
    travels: bool = False  # values may go through a buffer by choice

    def value(self, number: int) -> SSAValue:
        if self.problem.is_leaf(number):
            return self.leaves[number]
        return self.ops[self.problem.op_of(number)].results[0]

    def name(self, number: int) -> str:
        """What a person calls a value: the buffer it comes from, or the name in the source it goes to; "" if it has none."""
        if self.problem.is_leaf(number):
            return self.buffers[number] if number < len(self.buffers) else ""
        return self.value(number).name_hint or ""

    def place(self, number: int) -> Span | None:
        """Where the source computes a value."""
        return None if self.problem.is_leaf(number) else span_of(self.ops[self.problem.op_of(number)])


def capacity_of(config: ComputeConfig, context: PassContext) -> int:
    hardware_tiles = dst_tiles(fp32_dest_acc=config.fp32_dest_acc_en, full_sync=config.dst_full_sync_en)
    return min(context.options.dst_capacity or hardware_tiles, hardware_tiles)


def region_problem(
    compute: ComputeOp, config: ComputeConfig, context: PassContext, *, packed: bool = False, beside: Taken | None = None
) -> RegionProblem:
    """``packed``: what the region yields is packed and not kept in DST. ``beside``: what buffers take, if the caller knows it.

    A region is asked about when the configuration is chosen, and again when registers are assigned: few change in between.
    """
    key, made_from = (compute, config, packed), _made_from(compute)
    known = context.problems.get(key)
    if known is not None and known[0] == made_from:
        region = _in_room(known[1], compute, context, beside) if packed else known[1]
        if region is not None:
            return region
    region = _region_problem(compute, config, context, packed=packed, beside=beside)
    context.problems[key] = made_from, region
    return region


def _made_from(compute: ComputeOp) -> tuple[object, ...]:
    """All of the IR that the problem of a region follows from, apart from the room that buffers leave."""
    found: list[object] = [compute.location, dict(compute.attributes)]
    for value in compute.operands:
        view = attachment_of(value)
        found += (value, value.type, view, dict(view.attributes), view.buffer, dict(defining_op(view.buffer).attributes))
    for argument in compute.block.args:
        found += (argument, argument.type, argument.name_hint)
    for op in block_ops(compute.block):
        found += (op, tuple(op.operands), dict(op.attributes), *(result.type for result in op.results))
    return tuple(found)


def _in_room(region: RegionProblem, compute: ComputeOp, context: PassContext, beside: Taken | None) -> RegionProblem | None:
    """The same problem with the room that there is now; None if that offers other forms."""
    problem = region.problem
    formats = [op.storage for op in problem.ops]
    room, trips = compiler_buffers.rooms(compute, formats, context, beside, travels=region.travels)
    if (trips > 0) != (problem.round_trips > 0):
        return None
    if (room, trips) == (problem.spill_limit, problem.round_trips):
        return region
    return replaced(region, problem=replaced(problem, spill_limit=room, round_trips=trips))


def _region_problem(
    compute: ComputeOp, config: ComputeConfig, context: PassContext, *, packed: bool, beside: Taken | None
) -> RegionProblem:
    block, inputs, wide, chip = compute.block, compute.inputs, config.fp32_dest_acc_en, context.chip.name
    leaves = tuple(block.args[: len(inputs)])
    ops = tuple([op for op in block_ops(block) if is_tile_math(op)])
    last = block.last_op
    assert last is not None
    numbers: dict[SSAValue, int] = {value: index for index, value in enumerate((*leaves, *[op.results[0] for op in ops]))}
    outputs = tuple([numbers[value] for value in last.operands])
    binds = [bind_of(buffer_of(value)) for value in inputs]
    straight = frozenset([index for index, bind in enumerate(binds) if bind.cb_index in config.unpack_to_dest])
    halves = frozenset([index for index, bind in enumerate(binds) if fits_source(bind.results[0])])
    clipped = _clipped(compute, outputs) if packed else frozenset[int]()
    formats = [compiler_buffers.storage_of(_dtype(op.results[0]), wide=wide) for op in ops]
    travels = packed and _may_travel_by_choice(compute, ops, config, context)
    room, trips = compiler_buffers.rooms(compute, formats, context, beside, travels=travels) if packed else (0, 0)
    builder = FormBuilder(
        numbers, len(leaves), frozenset(outputs), config, context, straight, clipped, halves, round_trips=trips > 0
    )
    loads = tuple([_leaf(value.name_hint or "", _dtype(value), wide, chip) for value in leaves])
    problem_ops = tuple([builder.op(index, op, formats[index]) for index, op in enumerate(ops)])
    problem = Problem(
        leaves=loads,
        ops=problem_ops,
        outputs=outputs,
        capacity=capacity_of(config, context),
        tiles=compute.tiles,
        full_sync=config.dst_full_sync_en,
        costs=_costs(frozenset([_dtype(value) for value in last.operands]), frozenset(formats), wide, chip),
        lasting_inits=_lasting_inits(loads, problem_ops, builder.uses),
        spill_limit=room,
        round_trips=trips,
        round_trip_saving=0.0 if context.options.round_trips else timing_constants.UNCERTAINTY,
    )
    buffers = tuple([name_of(bind, "") for bind in binds])
    return RegionProblem(problem, ops, leaves, builder.uses, buffers, span_of(compute), travels)


def plans_under(
    config: ComputeConfig,
    computes: Sequence[ComputeOp],
    context: PassContext,
    *,
    whole: bool = False,
    below: float = float("inf"),
) -> list[tuple[Problem, Plan]] | None:
    """What the allocator would answer for regions under a configuration, each on its own; None if one could not run, or if one
    would be split where only ``whole`` ones are asked for. Those need not be found where they take ``below`` cycles or more.

    This is how `ttl-set-compute-config` asks what a configuration costs before it chooses one. Nothing is decided by asking:
    `ttl-tile-and-assign-dst` asks again, of the regions there are then, and the allocator remembers what it answered.
    """
    beside = compiler_buffers.taken(computes[0], context) if computes else None
    problems = [region_problem(compute, config, context, packed=True, beside=beside).problem for compute in computes]
    if not all(op.forms for problem in problems for op in problem.ops):
        return None
    try:
        return [(problem, allocate(problem, whole=whole, below=below / problem.tiles)) for problem in problems]
    except DoesNotFit:
        return None


def _clipped(compute: ComputeOp, outputs: tuple[int, ...]) -> frozenset[int]:
    """Outputs that the packer may clip at zero: floats that replace what is in their block."""
    adding = {number for number, block in zip(outputs, compute.outputs, strict=True) if accumulates(block)}
    last = compute.block.last_op
    assert last is not None
    floats = {number for number, value in zip(outputs, last.operands, strict=True) if _dtype(value) in FLOAT_DTYPES}
    return frozenset(floats - adding)


def _dtype(value: SSAValue) -> str:
    assert isinstance(value.type, TileType)
    return value.type.dtype


@lru_cache(maxsize=256)
def _costs(packed: frozenset[str], formats: frozenset[str], wide: bool, chip: str) -> Costs:
    """Of a region that packs these dtypes, and whose values travel in these formats."""
    sync, copy = timing_constants.sync_cost(chip), timing_constants.copy_dest_values_cost(wide, chip)
    return Costs(
        sync=round(sync.math_cycles),
        copy=round(copy.math_cycles),
        copy_init_cycles=round(copy.init_math_cycles),
        pack=round(max([timing_constants.pack_cost(dtype, chip).pack_cycles for dtype in packed], default=0)),
        spill_unpack=max([round(_load_cost(dtype, wide, chip).unpack_cycles) for dtype in formats], default=0),
        hand_over=round(timing_constants.hand_over_cost(chip)),
    )


def _load_cost(dtype: str, wide: bool, chip: str) -> timing_constants.CallCost:
    return timing_constants.copy_tile_cost(dtype, wide, wide and dtype in ("f32", "i32", "u32"), chip)


@lru_cache(maxsize=256)
def _leaf(name: str, dtype: str, wide: bool, chip: str) -> Leaf:
    cost = _load_cost(dtype, wide, chip)
    return Leaf(
        name=name,
        load_math_cycles=round(cost.math_cycles),
        load_unpack_cycles=round(cost.unpack_cycles),
        init=f"copy_tile_init:{dtype}",
        init_cycles=round(cost.init_math_cycles),
    )


def _lasting_inits(leaves: Sequence[Leaf], ops: Sequence[Op], uses: Mapping[tuple[int, int], FormUse]) -> frozenset[str]:
    """Inits that stay in force over the tiles of an acquire: the only one of their unit, whatever forms are chosen.

    Loads and the matrix unit share their state, the vector unit has its own.
    """
    matrix, vector = {leaf.init for leaf in leaves}, set[str]()
    for (op, form), use in uses.items():
        units = {call.unit for call in use.calls} or {use.unit}
        if len(units) > 1:
            return frozenset()  # two inits in one form
        (vector if SFPU in units else matrix).add(ops[op].forms[form].init)
    alone = [states for states in (matrix, vector - {STATELESS}) if len(states) == 1]
    return frozenset({STATELESS}.union(*alone))


def _may_travel_by_choice(compute: ComputeOp, ops: Sequence[Operation], config: ComputeConfig, context: PassContext) -> bool:
    """Whether values of the region may go through a buffer although nothing forces it: where it loses no bits."""
    options = context.options
    if options.round_trips is False or options.allocator != "optimal" or config.fp32_dest_acc_en or not 2 <= len(ops) <= MOST_OPS:
        return False
    # Behind the trip the matrix unit multiplies, which rounds after every pass; products by broadcasts in DST round once.
    fast = options.precision == "fast"
    if not is_identity(compute, outputs_only=fast) or any(accumulates(block) for block in compute.outputs):
        return False
    last = compute.block.last_op
    assert last is not None
    tiles = [value.type for op in ops for value in (*op.operands, *op.results)] + [value.type for value in last.operands]
    rows = all(isinstance(op, TileOpBase) or (fast and isinstance(op, TileBcastOp)) for op in ops)
    return rows and all(isinstance(kind, TileType) and kind.dtype == DTYPE for kind in tiles)


# Forms ------------------------------------------------------------------------------------------------------------------------
# The ways each tile op of a region may run, for the allocator to choose from.

ACCUMULATE = "accumulate"  # adds a product (of tiles or of matrices) to a live slot
FPU_BCAST = "fpu_bcast"
ROWS_BY_SFPU = "rows_by_sfpu"  # a broadcast as a sum with a tile of zeros
FOLDS = {"sum": "add", "max": "max"}  # the row that joins two tiles of a reduction
SFPU = Unit.SFPU.value
MATRIX_FORMATS = frozenset(SOURCE_FORMATS)  # what the matrix unit reads without losing bits


def is_tile_math(op: Operation) -> bool:
    return isinstance(op, (TileOpBase, IrregularTileOp))


class FormBuilder:
    """Collects the forms of every op under the configuration in force."""

    def __init__(
        self,
        numbers: dict[SSAValue, int],
        leaf_count: int,
        outputs: frozenset[int],
        config: ComputeConfig,
        context: PassContext,
        straight: frozenset[int],
        clipped: frozenset[int] = frozenset(),
        halves: frozenset[int] = frozenset(),
        *,
        round_trips: bool = False,
    ) -> None:
        self.numbers = numbers
        self.leaf_count = leaf_count
        self.outputs = outputs
        self.config = config
        self.options = context.options
        self.chip = context.chip
        self.straight = straight  # leaves that are unpacked to DST as they are
        self.clipped = clipped  # outputs that only the packer takes, so it may clip them
        self.halves = halves  # leaves of which the source registers hold all bits, whatever their format
        self.round_trips = round_trips  # results may go through a buffer, where the matrix unit can read them
        self.uses: dict[tuple[int, int], FormUse] = {}
        self.fused = FusedForms(self)

    def op(self, index: int, op: Operation, storage: str) -> Op:
        forms = self._row_forms(op) if isinstance(op, TileOpBase) else self._irregular_forms(op)
        for number, (_, use) in enumerate(forms):
            self.uses[index, number] = use
        operands = tuple([self.numbers[value] for value in op.operands])
        name = op.name.removeprefix("ttl.tile_")
        return Op(operands=operands, forms=tuple([form for form, _ in forms]), name=name, storage=storage)

    # Costs ------------------------------------------------------------------------------------------------------------

    def cost(self, call: str, template: tuple[str, ...] = (), faces: str = "") -> timing_constants.CallCost:
        config = self.config
        whole = timing_constants.call_cost(
            call, dst32=config.fp32_dest_acc_en, fidelity=config.math_fidelity, chip=self.chip.name, template=template
        )
        return replaced(whole, math_cycles=whole.math_cycles * share(faces)) if faces else whole

    def priced(self, form: UnitForm, values: Mapping[str, Any], part: str) -> timing_constants.CallCost:
        """Cost of a call of the table on a part of a tile."""
        if not form.template:
            return self.cost(form.call, (), part)
        values = {**values, WHOLE: in_one_pass(form, values, part, self.options.metal)}
        return self.cost(form.call, tuple([template_text(entry, values) for entry in form.template]), part)

    def form(
        self,
        key: str,
        operands: tuple[Operand, ...],
        result: ResultRule,
        cost: timing_constants.CallCost,
        init: str,
        *,
        reuses: int | None = None,
        absorbs: tuple[int, ...] = (),
        repeat: int = 1,
        extra: int = 0,
    ) -> Form:
        return Form(
            key=key,
            operands=operands,
            result=result,
            reuses=reuses,
            absorbs=absorbs,
            math_cycles=round(cost.math_cycles * repeat) + extra,
            unpack_cycles=round(cost.unpack_cycles * repeat),
            init=init,
            init_cycles=round(cost.init_math_cycles),
        )

    # Rows of the op table -----------------------------------------------------------------------------------------------

    def _row_forms(self, op: TileOpBase) -> list[tuple[Form, FormUse]]:
        row, found = op.SPEC, list[tuple[Form, FormUse]]()
        for way in ways_of(row.name, self.options.metal):
            built = self._row_form(op, way)
            if built is not None:
                found.append((built, way.use))
        if row.name in ("add", "sub", "mul"):
            found += self._bcast_forms(op)
        if row.name == "add":
            found += self._accumulate_forms(op)
            found += self._accumulate_bcast_forms(op)
        return found + self.fused.of(op)

    def _row_form(self, op: TileOpBase, way: RowWay) -> Form | None:
        form, by_vector = way.form, way.form.unit is Unit.SFPU
        operands = tuple([Operand(self.numbers[op.operands[position]], place) for position, place in way.operands])
        if not by_vector and not self.matrix_unit_allowed(op, operands, reuse=form.unit is not Unit.FPU):
            return None
        values = template_values(op, dst32=self.config.fp32_dest_acc_en) if form.template else {}
        cost = self.priced(form, values, text_value(op, FACES) if form.by_faces else "")
        return self.form(way.use.unit, operands, way.result, cost, init_key(form, op), reuses=way.reuses)

    def matrix_unit_allowed(self, op: Operation, operands: tuple[Operand, ...], *, reuse: bool) -> bool:
        if not self.options.fpu_binary_ops:
            return False
        values = [operand.value for operand in operands]
        computed = Place.BUFFER in [operand.place for operand in operands if operand.value >= self.leaf_count]
        if computed and not self.round_trips:
            return False
        if not self.config.fp32_dest_acc_en:
            return True
        if computed:
            return False  # it travels in 32 bits
        # The matrix unit reads at most 19 bits of an f32 tile, and a reused 32-bit DST tile is cut to bf16 on the way in.
        if reuse or not self.straight.isdisjoint(values):
            return False
        if not self.halves.isdisjoint(values) and all(map(self._fits_source, op.operands)):
            return True
        dtypes = {_dtype(value) for value in (*op.operands, *op.results)}
        return dtypes <= {*MATRIX_FORMATS, "f32"} if self.options.allow_tf32 else dtypes <= MATRIX_FORMATS

    def _fits_source(self, value: SSAValue) -> bool:
        return self.numbers.get(value) in self.halves or _dtype(value) in MATRIX_FORMATS

    # Broadcasts ---------------------------------------------------------------------------------------------------------

    def _bcast_forms(self, op: TileOpBase) -> list[tuple[Form, FormUse]]:
        """``x op broadcast(v)`` in one call: both from buffers on the matrix unit, or both in DST on the vector unit."""
        found: list[tuple[Form, FormUse]] = []
        for position in (1, 0) if op.SPEC.name != "sub" else (1,):
            bcast = op.operands[position].owner
            if not isinstance(bcast, TileBcastOp) or not self.absorbable(bcast) or op.lhs is op.rhs:
                continue
            data, vector = self.numbers[op.operands[1 - position]], self.numbers[bcast.source]
            absorbs = (self.numbers[bcast.results[0]] - self.leaf_count,)
            use = FormUse(FPU_BCAST, bcast)
            buffers = (Operand(data, Place.BUFFER), Operand(vector, Place.BUFFER))
            exists = (op.SPEC.name, bcast.dim) != ("sub", "col") or release_key(self.options.metal) >= SUB_ROWS_SINCE
            if exists and self.matrix_unit_allowed(op, buffers, reuse=False) and self.matrix_unit_allowed(bcast, (), reuse=False):
                rule = ResultRule.ZEROED if op.SPEC.name == "mul" else ResultRule.FREE
                call = bcast_call(op.SPEC.name, bcast.dim)
                found.append((self.form(FPU_BCAST, buffers, rule, self.cost(call), call, absorbs=absorbs), use))
            if bcast.dim != "scalar" and self.has_sfpu_bcast:
                call = sfpu_bcast_call(op.SPEC.name, bcast.dim)
                slots = (Operand(data, Place.DST), Operand(vector, Place.DST))
                form = self.form(
                    SFPU_BCAST, slots, ResultRule.IN_PLACE, self.cost(call), call, reuses=0, absorbs=absorbs
                )
                found.append((form, FormUse(SFPU_BCAST, bcast)))
        return found

    @property
    def has_sfpu_bcast(self) -> bool:
        return release_key(self.options.metal) >= SFPU_BCAST_SINCE

    def repeats_by_vector(self, bcast: TileBcastOp) -> bool:
        """Repeating a row through the source registers into a 32-bit DST gives wrong values on the chip. A 32-bit tile that
        went to DST itself is repeated there by instructions that not every chip documents."""
        if self.numbers[bcast.source] in self.straight:
            return bcast.dim != "scalar" and self.has_sfpu_bcast and not self.chip.broadcast_in_dst
        return bcast.dim == "col" and self.config.fp32_dest_acc_en

    def _rows_by_sfpu(self, bcast: TileBcastOp) -> tuple[Form, FormUse]:
        call = sfpu_bcast_call("add", bcast.dim)
        operands = (Operand(self.numbers[bcast.source], Place.DST),)
        fill = round(self.cost("fill_tile").math_cycles)
        form = self.form(ROWS_BY_SFPU, operands, ResultRule.ZEROED, self.cost(call), call, extra=fill)
        return form, FormUse(ROWS_BY_SFPU, bcast)

    def absorbable(self, op: Operation) -> bool:
        number = self.numbers[op.results[0]]
        return len(list(op.results[0].uses)) == 1 and number not in self.outputs

    # Accumulation -------------------------------------------------------------------------------------------------------

    def _accumulate_forms(self, op: TileOpBase) -> list[tuple[Form, FormUse]]:
        """``x + product``: the multiplier adds onto the slot of x."""
        for position in (1, 0):
            product = op.operands[position].owner
            if op.lhs is op.rhs or not isinstance(product, Operation) or not is_tile_math(product):
                continue
            shared = not self.absorbable(product)
            if shared and not isinstance(product, TileOpBase):
                continue
            factors = tuple(Operand(self.numbers[value], Place.BUFFER) for value in product.operands)
            if isinstance(product, TileOpBase):
                form = product.SPEC.form(Unit.FPU) if product.SPEC.name == "mul" else None
                if form is None or not self.matrix_unit_allowed(product, factors, reuse=False):
                    continue
                cost, init, repeat = self.cost(form.call), init_key(form, product), 1
            elif isinstance(product, TileMatmulOp):
                cost, init, repeat = self.cost("matmul_block"), "matmul", product.k
            elif isinstance(product, TileReduceOp) and isinstance(op.operands[1 - position].owner, ResidentTileOp):
                # Only onto a running value: while a reduction is set up, the packer writes nothing but what it fills.
                cost, init, repeat = self._reduction(product)
            else:
                continue
            operands = (Operand(self.numbers[op.operands[1 - position]], Place.DST), *factors)
            built = self.form(ACCUMULATE, operands, ResultRule.ACCUMULATE, cost, init, reuses=0, repeat=repeat)
            inner = (self.numbers[product.results[0]] - self.leaf_count,)
            # A product that others want too is made once more: with the sum it is one call, cheaper than a copy of the tile.
            built = replaced(built, repeats=inner) if shared else replaced(built, absorbs=inner)
            return [(built, FormUse(ACCUMULATE, product))]
        return []

    def _accumulate_bcast_forms(self, op: TileOpBase) -> list[tuple[Form, FormUse]]:
        """``x + y * broadcast(v)``: the multiplier repeats v as it reads it, and adds onto the slot of x."""
        for position, side in ((1, 1), (1, 0), (0, 1), (0, 0)):
            product = op.operands[position].owner
            if not isinstance(product, TileOpBase) or product.SPEC.name != "mul":
                continue
            bcast = product.operands[side].owner
            if not isinstance(bcast, TileBcastOp) or not self.absorbable(product) or not self.absorbable(bcast):
                continue
            factors = tuple(Operand(self.numbers[value], Place.BUFFER) for value in (product.operands[1 - side], bcast.source))
            if not all(self.matrix_unit_allowed(each, factors, reuse=False) for each in (product, bcast)):
                continue
            call = bcast_call("mul", bcast.dim)
            operands = (Operand(self.numbers[op.operands[1 - position]], Place.DST), *factors)
            absorbs = tuple(self.numbers[inner.results[0]] - self.leaf_count for inner in (bcast, product))
            built = self.form(ACCUMULATE, operands, ResultRule.ACCUMULATE, self.cost(call), call, reuses=0, absorbs=absorbs)
            return [(built, FormUse(ACCUMULATE, bcast))]
        return []

    # Reductions on the vector unit ----------------------------------------------------------------------------------------

    def _exact_form(self, op: Operation) -> Form:
        if isinstance(op, TileScratchOp):
            return Form(key="scratch", operands=(), result=ResultRule.FREE)
        if isinstance(op, TileVectorReduceOp):
            template = reduced_by_vector(op)
            operands = (Operand(self.numbers[op.source], Place.DST),)
            init = f"sfpu_reduce<{template[0]}>"
            return self.form("sfpu", operands, ResultRule.IN_PLACE, self.cost("sfpu_reduce", template), init, reuses=0)
        assert isinstance(op, TileFoldOp)
        joins = tile_ops.BY_NAME[FOLDS[op.kind]].form(Unit.SFPU)
        assert joins is not None
        rows, cols = op.counts
        load = timing_constants.copy_tile_cost("f32", self.config.fp32_dest_acc_en, True, self.chip.name)
        cost = self.cost(joins.call)
        operands = (Operand(self.numbers[op.source], Place.BUFFER), Operand(self.numbers[op.scratch], Place.DST))
        return Form(
            key="fold",
            operands=operands,
            result=ResultRule.ZEROED,
            math_cycles=round(load.math_cycles * rows * cols + cost.math_cycles * (rows * cols - 1)),
            unpack_cycles=round(load.unpack_cycles * rows * cols),
            init=joins.init,
            init_cycles=round(cost.init_math_cycles),
        )

    # Ops outside the table ----------------------------------------------------------------------------------------------

    def _irregular_forms(self, op: Operation) -> list[tuple[Form, FormUse]]:
        operands = tuple([Operand(self.numbers[value], Place.BUFFER) for value in op.operands])
        rule, repeat = ResultRule.FREE, 1
        if isinstance(op, ResidentTileOp):  # it is there
            return [(Form(key="resident", operands=(), result=ResultRule.FREE), FormUse("resident"))]
        if isinstance(op, (TileScratchOp, TileFoldOp, TileVectorReduceOp)):
            return [(self._exact_form(op), FormUse(SFPU))]
        if isinstance(op, TileMatmulOp):
            cost, init, rule, repeat = self.cost("matmul_block"), "matmul", ResultRule.ZEROED, op.k
        elif isinstance(op, TileReduceOp):
            (cost, init, repeat), rule = self._reduction(op), ResultRule.ZEROED
        elif isinstance(op, TileBcastOp):
            if self.repeats_by_vector(op):
                return [self._rows_by_sfpu(op)] if self.has_sfpu_bcast else []
            cost, init = self.cost("unary_bcast"), f"unary_bcast:{op.dim}"
        else:
            assert isinstance(op, TileTransposeOp)
            cost, init = self.cost("transpose_wh_tile"), "transpose"
        form = self.form("buffer", operands, rule, cost, init, repeat=repeat)
        return [(form, FormUse("buffer"))]

    def _reduction(self, op: TileReduceOp) -> tuple[timing_constants.CallCost, str, int]:
        """Cost of a call, key of its init, number of calls."""
        template = reduce_template(op.kind, op.dim)
        rows, cols = op.counts
        return self.cost("reduce_tile", template), f"reduce<{template}>", rows * cols + len(op.operands) - 2
