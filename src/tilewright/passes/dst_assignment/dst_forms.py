"""The ways each tile op of a region may run, as forms the allocator can choose from."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from tilewright import timing_constants
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import TileType, text_value
from tilewright.dialects.tile_op import FACES, Unit, UnitForm, Writes, release_key, share, template_text
from tilewright.dialects.ttkernel import (
    SFPU_BCAST,
    SFPU_BCAST_SINCE,
    bcast_call,
    init_key,
    reduce_template,
    reduced_by_vector,
    sfpu_bcast_call,
    template_values,
)
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_compute import (
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
from tilewright.dst.problem import Form, Op, Operand, Place, ResultRule
from tilewright.hardware import SOURCE_FORMATS
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.fused_forms import FormUse, FusedForms
from tilewright.program import ComputeConfig

ACCUMULATE = "accumulate"  # adds a product (of tiles or of matrices) to a live slot
FPU_BCAST = "fpu_bcast"
ROWS_BY_SFPU = "rows_by_sfpu"  # a broadcast as a sum with a tile of zeros
FOLDS = {"sum": "add", "max": "max"}  # the row that joins two tiles of a reduction
PLACES = {  # of the two operands, where one comes from a buffer
    Unit.FPU: (Place.BUFFER, Place.BUFFER),
    Unit.REUSE_A: (Place.DST, Place.BUFFER),
    Unit.REUSE_B: (Place.BUFFER, Place.DST),
}
MATRIX_FORMATS = SOURCE_FORMATS  # what the matrix unit reads without losing bits


def is_tile_math(op: Operation) -> bool:
    return isinstance(op, (TileOpBase, IrregularTileOp))


def dtype_of(value: SSAValue) -> str:
    assert isinstance(value.type, TileType)
    return value.type.dtype


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

    def op(self, index: int, op: Operation) -> Op:
        forms = self._row_forms(op) if isinstance(op, TileOpBase) else self._irregular_forms(op)
        for number, (_, use) in enumerate(forms):
            self.uses[index, number] = use
        operands = tuple(self.numbers[value] for value in op.operands)
        return Op(operands=operands, forms=tuple(form for form, _ in forms), name=op.name.removeprefix("ttl.tile_"))

    # Costs ------------------------------------------------------------------------------------------------------------

    def cost(self, call: str, template: tuple[str, ...] = (), faces: str = "") -> timing_constants.CallCost:
        config = self.config
        whole = timing_constants.call_cost(
            call, dst32=config.fp32_dest_acc_en, fidelity=config.math_fidelity, chip=self.chip.name, template=template
        )
        return replace(whole, math_cycles=whole.math_cycles * share(faces)) if faces else whole

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
        found: list[tuple[Form, FormUse]] = []
        for form in op.SPEC.forms:
            if not form.exists_in(self.options.metal):
                continue
            for order in _orders(form):
                built = self._row_form(op, form, order)
                if built is not None:
                    found.append((built, FormUse(form.unit.value)))
        if op.SPEC.name in ("add", "sub", "mul"):
            found += self._bcast_forms(op)
        if op.SPEC.name == "add":
            found += self._accumulate_forms(op)
        return found + FusedForms(self).of(op)

    def _row_form(self, op: TileOpBase, form: UnitForm, order: tuple[int, ...]) -> Form | None:
        places = (Place.DST,) * len(order) if form.unit is Unit.SFPU else PLACES[form.unit]
        operands = tuple(
            Operand(self.numbers[op.operands[position]], place) for position, place in zip(order, places, strict=True)
        )
        if form.unit is not Unit.SFPU and not self.matrix_unit_allowed(op, operands, reuse=form.unit is not Unit.FPU):
            return None
        rule, reuses = ResultRule.FREE, None
        if form.writes is Writes.ACCUMULATES:
            rule = ResultRule.ZEROED
        elif form.writes is Writes.IN_PLACE:
            rule, reuses = ResultRule.IN_PLACE, places.index(Place.DST)
        values = template_values(op, dst32=self.config.fp32_dest_acc_en) if form.template else {}
        template = tuple(template_text(entry, values) for entry in form.template)
        cost = self.cost(form.call, template, text_value(op, FACES) if form.by_faces else "")
        return self.form(form.unit.value, operands, rule, cost, init_key(form, op), reuses=reuses)

    def matrix_unit_allowed(self, op: Operation, operands: tuple[Operand, ...], *, reuse: bool) -> bool:
        if not self.options.fpu_binary_ops:
            return False
        computed = any(operand.place is Place.BUFFER and operand.value >= self.leaf_count for operand in operands)
        if computed and not self.round_trips:
            return False
        if not self.config.fp32_dest_acc_en:
            return True
        if computed:
            return False  # it travels in 32 bits
        # The matrix unit reads at most 19 bits of an f32 tile, and a reused 32-bit DST tile is cut to bf16 on the way in.
        if reuse or any(operand.value in self.straight for operand in operands):
            return False
        if any(operand.value in self.halves for operand in operands) and all(self._fits_source(value) for value in op.operands):
            return True
        allowed = (*MATRIX_FORMATS, "f32") if self.options.allow_tf32 else MATRIX_FORMATS
        return all(dtype_of(value) in allowed for value in (*op.operands, *op.results))

    def _fits_source(self, value: SSAValue) -> bool:
        return self.numbers.get(value) in self.halves or dtype_of(value) in MATRIX_FORMATS

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
            if self.matrix_unit_allowed(op, buffers, reuse=False) and self.matrix_unit_allowed(bcast, (), reuse=False):
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
            built = replace(built, repeats=inner) if shared else replace(built, absorbs=inner)
            return [(built, FormUse(ACCUMULATE, product))]
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
            math_cycles=round((load.math_cycles + cost.math_cycles) * rows * cols + self.cost("fill_tile").math_cycles),
            unpack_cycles=round(load.unpack_cycles * rows * cols),
            init=joins.init,
            init_cycles=round(cost.init_math_cycles),
        )

    # Ops outside the table ----------------------------------------------------------------------------------------------

    def _irregular_forms(self, op: Operation) -> list[tuple[Form, FormUse]]:
        operands = tuple(Operand(self.numbers[value], Place.BUFFER) for value in op.operands)
        rule, repeat = ResultRule.FREE, 1
        if isinstance(op, ResidentTileOp):  # it is there
            return [(Form(key="resident", operands=(), result=ResultRule.FREE), FormUse("resident"))]
        if isinstance(op, (TileScratchOp, TileFoldOp, TileVectorReduceOp)):
            return [(self._exact_form(op), FormUse(Unit.SFPU.value))]
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
        return self.cost("reduce_tile", template), f"reduce<{template}>", rows * cols


def _orders(form: UnitForm) -> tuple[tuple[int, ...], ...]:
    count = sum(argument[0] in "db" and argument[1:].isdigit() for argument in form.args)
    plain = tuple(range(count))
    # A dest-reuse form of a commuting op takes either operand from DST; DEST_TO_SRCA is the cheaper side.
    if form.commutes and form.unit is Unit.REUSE_A:
        return (plain, plain[::-1])
    if form.commutes and form.unit is Unit.REUSE_B:
        return ()
    return (plain,)
