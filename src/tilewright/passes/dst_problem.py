"""Translates the body of a ``ttl.compute`` into a plain allocation problem. No algorithm lives here."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from tilewright import op_costs
from tilewright.dialects.ir_types import TileType
from tilewright.dialects.tile_op import Unit, UnitForm, Writes
from tilewright.dialects.ttl import TileOpBase
from tilewright.dst.problem import Costs, Form, Leaf, Op, Operand, Place, Problem, ResultRule
from tilewright.hardware import Chip, dst_tiles
from tilewright.passes.context import PassContext
from tilewright.passes.init_keys import init_key
from tilewright.program import ComputeConfig

MULTIPLY_ACCUMULATE = "mul_accumulate"  # key of the form that adds a product of two buffer tiles to a live slot


@dataclass(frozen=True)
class FormUse:
    """How one form is written back into the IR."""

    unit: str
    operands: tuple[int, ...]  # positions in the op's operands, in the order the unit wants them
    absorbed: Operation | None = None


@dataclass(frozen=True)
class RegionProblem:
    problem: Problem
    ops: tuple[TileOpBase, ...]
    leaves: tuple[SSAValue, ...]
    uses: dict[tuple[int, int], FormUse]  # (op, form) -> how to write it

    def value(self, number: int) -> SSAValue:
        if self.problem.is_leaf(number):
            return self.leaves[number]
        return self.ops[self.problem.op_of(number)].results[0]


def capacity_of(config: ComputeConfig, context: PassContext) -> int:
    hardware_tiles = dst_tiles(fp32_dest_acc=config.fp32_dest_acc_en, full_sync=config.dst_full_sync_en)
    return min(context.options.dst_capacity or hardware_tiles, hardware_tiles)


def region_problem(block: Block, inputs: int, tiles: int, config: ComputeConfig, context: PassContext) -> RegionProblem:
    leaves = tuple(block.args[:inputs])
    ops = tuple(op for op in block.ops if isinstance(op, TileOpBase))
    numbers: dict[SSAValue, int] = {value: index for index, value in enumerate(leaves)}
    numbers.update({op.results[0]: len(leaves) + index for index, op in enumerate(ops)})
    last = block.last_op
    assert last is not None
    builder = _Builder(numbers, leaves, config, context, outputs=frozenset(numbers[value] for value in last.operands))
    built = [builder.op(index, op) for index, op in enumerate(ops)]
    chip = context.chip
    sync = op_costs.sync_cost(chip.name)
    copy = op_costs.copy_dest_values_cost(config.fp32_dest_acc_en, chip.name)
    pack = max((op_costs.pack_cost(_dtype(value), chip.name).pack_cycles for value in last.operands), default=0)
    problem = Problem(
        leaves=tuple(_leaf(value, config, chip) for value in leaves),
        ops=tuple(built),
        outputs=tuple(numbers[value] for value in last.operands),
        capacity=capacity_of(config, context),
        tiles=tiles,
        full_sync=config.dst_full_sync_en,
        costs=Costs(sync=round(sync.math_cycles), copy=round(copy.math_cycles), copy_init_cycles=round(copy.init_math_cycles), pack=round(pack)),
    )  # fmt: skip
    return RegionProblem(problem, ops, leaves, builder.uses)


def _dtype(value: SSAValue) -> str:
    assert isinstance(value.type, TileType)
    return value.type.dtype


def _leaf(value: SSAValue, config: ComputeConfig, chip: Chip) -> Leaf:
    dtype = _dtype(value)
    wide = dtype in ("f32", "i32", "u32") and config.fp32_dest_acc_en
    cost = op_costs.copy_tile_cost(dtype, config.fp32_dest_acc_en, wide, chip.name)
    return Leaf(
        name=value.name_hint or "",
        load_math_cycles=round(cost.math_cycles),
        load_unpack_cycles=round(cost.unpack_cycles),
        init=f"copy_tile_init:{dtype}",
        init_cycles=round(cost.init_math_cycles),
    )


class _Builder:
    """Collects the forms of every op under the configuration in force."""

    def __init__(
        self,
        numbers: dict[SSAValue, int],
        leaves: tuple[SSAValue, ...],
        config: ComputeConfig,
        context: PassContext,
        outputs: frozenset[int],
    ) -> None:
        self.numbers = numbers
        self.leaf_count = len(leaves)
        self.config = config
        self.options = context.options
        self.chip = context.chip
        self.outputs = outputs
        self.uses: dict[tuple[int, int], FormUse] = {}

    def op(self, index: int, op: TileOpBase) -> Op:
        operands = tuple(self.numbers[value] for value in op.operands)
        forms: list[Form] = []
        for form in op.SPEC.forms:
            for order in self._orders(form):
                built = self._form(op, form, operands, order)
                if built is None:
                    continue
                self.uses[index, len(forms)] = FormUse(form.unit.value, order)
                forms.append(built)
        accumulate = self._accumulate(op, operands)
        if accumulate is not None:
            built, use = accumulate
            self.uses[index, len(forms)] = use
            forms.append(built)
        return Op(operands=operands, forms=tuple(forms), name=op.SPEC.name)

    def _orders(self, form: UnitForm) -> tuple[tuple[int, ...], ...]:
        count = sum(argument[0] in "db" and argument[1:].isdigit() for argument in form.args)
        plain = tuple(range(count))
        # A dest-reuse form of a commuting op takes either operand from DST; DEST_TO_SRCA is the cheaper side.
        if form.commutes and form.unit is Unit.REUSE_A:
            return (plain, plain[::-1])
        if form.commutes and form.unit is Unit.REUSE_B:
            return ()
        return (plain,)

    def _form(self, op: TileOpBase, form: UnitForm, operands: tuple[int, ...], order: tuple[int, ...]) -> Form | None:
        places = {
            Unit.SFPU: (Place.DST,) * len(order),
            Unit.FPU: (Place.BUFFER, Place.BUFFER),
            Unit.REUSE_A: (Place.DST, Place.BUFFER),
            Unit.REUSE_B: (Place.BUFFER, Place.DST),
        }[form.unit]
        chosen = tuple(operands[position] for position in order)
        if form.unit is not Unit.SFPU and not self._matrix_unit_allowed(op, form, chosen, places):
            return None
        cost = op_costs.call_cost(
            form.call,
            dst32=self.config.fp32_dest_acc_en,
            fidelity=self.config.math_fidelity,
            chip=self.chip.name,
            template=form.template,
        )
        rule, reuses = self._result(form, places)
        return Form(
            key=form.unit.value,
            operands=tuple(Operand(value, place) for value, place in zip(chosen, places, strict=True)),
            result=rule,
            reuses=reuses,
            math_cycles=round(cost.math_cycles),
            unpack_cycles=round(cost.unpack_cycles),
            init=init_key(form, op),
            init_cycles=round(cost.init_math_cycles),
        )

    def _matrix_unit_allowed(
        self, op: TileOpBase, form: UnitForm, values: tuple[int, ...], places: tuple[Place, ...]
    ) -> bool:
        if not self.options.fpu_binary_ops:
            return False
        if any(place is Place.BUFFER and value >= self.leaf_count for value, place in zip(values, places, strict=True)):
            return False
        wide = self.config.fp32_dest_acc_en
        # The matrix unit reads at most 19 bits of an f32 tile, and a reused 32-bit DST tile is cut to bf16 on the way in.
        if wide and any(_dtype(value) not in ("bf16", "bfp8_b") for value in (*op.operands, *op.results)):
            return False
        return not (wide and form.unit is not Unit.FPU)

    @staticmethod
    def _result(form: UnitForm, places: tuple[Place, ...]) -> tuple[ResultRule, int | None]:
        if form.writes is Writes.ACCUMULATES:
            return ResultRule.ZEROED, None
        if form.writes is Writes.IN_PLACE:
            return ResultRule.IN_PLACE, places.index(Place.DST)
        return ResultRule.FREE, None

    def _accumulate(self, op: TileOpBase, operands: tuple[int, ...]) -> tuple[Form, FormUse] | None:
        """``x + a * b`` with a and b in buffers: the multiplier adds its product to the slot of x."""
        if op.SPEC.name != "add" or not self.options.fpu_binary_ops:
            return None
        for position in (1, 0):
            product = op.operands[position].owner
            if not isinstance(product, TileOpBase) or product.SPEC.name != "mul" or operands[0] == operands[1]:
                continue
            number = operands[position]
            sole_use = len(list(product.results[0].uses)) == 1 and number not in self.outputs
            factors = tuple(self.numbers[value] for value in product.operands)
            form = product.SPEC.form(Unit.FPU)
            assert form is not None
            buffers = (Place.BUFFER, Place.BUFFER)
            if not sole_use or not self._matrix_unit_allowed(product, form, factors, buffers):
                continue
            cost = op_costs.call_cost(
                form.call, dst32=self.config.fp32_dest_acc_en, fidelity=self.config.math_fidelity, chip=self.chip.name
            )
            built = Form(
                key=MULTIPLY_ACCUMULATE,
                operands=(
                    Operand(operands[1 - position], Place.DST),
                    Operand(factors[0], Place.BUFFER),
                    Operand(factors[1], Place.BUFFER),
                ),
                result=ResultRule.ACCUMULATE,
                reuses=0,
                absorbs=(number - self.leaf_count,),
                math_cycles=round(cost.math_cycles),
                unpack_cycles=round(cost.unpack_cycles),
                init=init_key(form, product),
                init_cycles=round(cost.init_math_cycles),
            )
            return built, FormUse(MULTIPLY_ACCUMULATE, (1 - position,), product)
        return None
