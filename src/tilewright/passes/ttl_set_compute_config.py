"""Width of DST, sync mode, fidelity and unpack mode: the user's word, else the cheapest that is right.

Where precision leaves the choice open, the allocator is asked what each costs (`dst_problem.plans_under`). A 32-bit DST holds
half as many tiles and makes transcendental functions dearer, but a multiplication of two tiles that are both in DST costs a
quarter: the vector unit rounds to 16 bits in software. Full sync doubles the tiles of an acquire, but math waits for the
packer: it pays where a region does not fit half of DST, or where inits weigh more than packing.

Requires: ``ttl.compute`` regions. Ensures: each compute function carries ``ttl.fp32_dest_acc_en``, ``ttl.dst_full_sync_en``,
``ttl.math_fidelity`` and ``ttl.unpack_to_dest`` (indices of buffers whose f32 tiles reach DST unchanged).
"""

from __future__ import annotations

import math
from dataclasses import replace

from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import TileType, buffer_type_of, defining_op, i32_list, number_attr, text_attr
from tilewright.dialects.tile_op import Unit, release_key
from tilewright.dialects.ttkernel import SFPU_BCAST_SINCE
from tilewright.dialects.ttl import EXTERNAL, TileOpBase, YieldOp, compute_functions
from tilewright.dialects.ttl_buffers import BindCBOp, CBWaitOp, FillScalerOp, RunningOp
from tilewright.dialects.ttl_compute import (
    MATRIX_OPS,
    ComputeOp,
    IrregularTileOp,
    TileBcastOp,
    TileBinaryBcastOp,
    TileMatmulOp,
    TileReduceOp,
    TileVectorReduceOp,
)
from tilewright.dialects.walking import block_ops, inherits, of_kind, operations, span_of
from tilewright.dst.problem import Allocation, Plan, Problem
from tilewright.dst.round_trips import exposed_cycles
from tilewright.dtypes import COMPUTED_INTEGERS, DTYPE_BY_NAME, WIDE
from tilewright.hardware import FIDELITIES, SOURCE_LEADING_BITS, SOURCE_SIGNIFICANT_BITS
from tilewright.passes.buffers import accumulates, attachment_of, buffer_of, fits_source
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.dst_problem import plans_under
from tilewright.program import ComputeConfig

NAME = "ttl-set-compute-config"

WORTH_IT = 0.97  # a change must save at least this much of the modelled cost
FRACTION_16, FRACTION_32 = 7, 23  # bits behind the point that DST holds
STEPS_OF_TILE = 8  # a tile of 32 terms is added in two halves, each in four phases
WIDE_INTEGERS = tuple(name for name in COMPUTED_INTEGERS if name in WIDE)


def run(module: ModuleOp, context: PassContext) -> None:
    options = context.options
    for function in compute_functions(module):
        every = operations(function)
        ops = [op for op in every if is_tile_op(type(op))]
        computes = [op for op in every if isinstance(op, ComputeOp)]
        wide = [op for op in every if isinstance(op, BindCBOp) and _dtype(op) in WIDE]
        narrow_rows = release_key(options.metal) < SFPU_BCAST_SINCE and any(_repeats_rows(op) for op in ops)
        sums = not narrow_rows and any(_sums(op) for op in ops)
        exact = options.precision == "exact" and not narrow_rows
        jumps = not narrow_rows and any(_jumps(op) for op in ops)
        computed = _computed_wide(computes)
        _check_integers(function, wide, computed, narrow=options.fp32_dest_acc is False)
        kept = sums and options.precision != "fast"
        needed = bool(wide or computed) or kept or jumps or exact
        fp32 = options.fp32_dest_acc if options.fp32_dest_acc is not None else needed
        matrix = _read_by_matrix_unit(computes, by_permission=options.allow_tf32, binary_ops=options.fpu_binary_ops)
        waits = [op for op in every if isinstance(op, CBWaitOp)]
        read = {op.buffer for op in waits if EXTERNAL not in op.attributes}  # else it goes the usual way
        direct = [op for op in wide if fp32 and _is_direct(op)]
        unpack = sorted(op.cb_index for op in direct if op.results[0] in read and op.results[0] not in matrix)
        if options.fp32_dest_acc is not None:
            reason = "asked for"
        elif wide:
            reason = "a buffer holds 32-bit data"
        elif computed:
            reason = "a value is computed in 32 bits"
        elif narrow_rows:
            reason = f"ttnn {options.metal} repeats rows right in a 16-bit DST only"
        elif kept or jumps:
            reason = "sums over many products lose bits in 16" if kept else "a computed value is cut to whole numbers"
        elif exact:
            reason = 'asked for by precision="exact"'
        else:
            reason = "all buffers are 16-bit"
        fidelity = Fidelity(function, computes, precision=options.precision)
        config = ComputeConfig(
            fp32_dest_acc_en=fp32,
            dst_full_sync_en=bool(options.full_sync),
            math_fidelity=options.math_fidelity or fidelity.cheapest(dst32=fp32),
            unpack_to_dest=tuple(unpack),
        )
        config, saving = _cheapest(computes, config, fidelity, context)
        _write(function, config)
        sync = "full" if config.dst_full_sync_en else "half"
        title = f"{'32' if config.fp32_dest_acc_en else '16'}-bit DST, {sync} sync, {config.math_fidelity}"
        context.trace.decide(NAME, title, saving or reason)
        if sums:
            _state_error(ops, config, context)


is_tile_op = inherits(TileOpBase, IrregularTileOp)


def _computed_wide(regions: list[ComputeOp]) -> list[Operation]:
    """Tile ops whose result only a 32-bit DST holds: by its type, or because the vector unit reduces 32-bit tiles only."""
    return [op for region in regions for op in block_ops(region.block) if op.results and _is_wide(op)]


def _is_wide(op: Operation) -> bool:
    return isinstance(op, TileVectorReduceOp) or _tile_dtype(op.results[0]) in WIDE


def _is_direct(op: BindCBOp) -> bool:
    """Bytes pass the source registers, which hold them exactly; other formats of a 32-bit DST do not fit there."""
    return _dtype(op) != "u8"


def _tile_dtype(value: SSAValue) -> str:
    return value.type.dtype if isinstance(value.type, TileType) else ""


def _check_integers(function: FuncOp, wide: list[BindCBOp], computed: list[Operation], *, narrow: bool) -> None:
    """Floats lose bits in a 16-bit DST; 32-bit integers have no meaning there."""
    if not narrow:
        return
    buffers = [op for op in wide if _dtype(op) in WIDE_INTEGERS]
    values = [op for op in computed if _tile_dtype(op.results[0]) in WIDE_INTEGERS]
    if buffers or values:
        spans = [span_of(op) for op in (*values, *buffers, function)]
        place = next((span for span in spans if span is not None), None)
        remedy = "leave out fp32_dest_acc, or typecast to u16 or a float dtype"
        raise fail("TW107", "32-bit integers in a 16-bit DST", place, help=remedy)


def _write(function: FuncOp, config: ComputeConfig) -> None:
    function.attributes["ttl.fp32_dest_acc_en"] = number_attr(config.fp32_dest_acc_en)
    function.attributes["ttl.dst_full_sync_en"] = number_attr(config.dst_full_sync_en)
    function.attributes["ttl.math_fidelity"] = text_attr(config.math_fidelity)
    function.attributes["ttl.unpack_to_dest"] = i32_list(config.unpack_to_dest)


def _sums(op: Operation) -> bool:
    """Adds up many products in DST."""
    return isinstance(op, TileMatmulOp) or (isinstance(op, TileReduceOp) and op.kind == "sum")


def _state_error(ops: list[Operation], config: ComputeConfig, context: PassContext) -> None:
    """How far the longest sum may be off: every step of 16 terms, in four phases, is rounded to what DST holds."""
    roundings = max(_roundings(op) for op in ops if _sums(op))
    width, bits = (32, FRACTION_32) if config.fp32_dest_acc_en else (16, FRACTION_16)
    bound = 100.0 * roundings * 2.0 ** -(bits + 1)
    title = f"sums are off by at most {bound:.2g} % of the sum of their magnitudes"
    other = "" if config.fp32_dest_acc_en or context.options.fp32_dest_acc is False else '; precision="balanced" sums in 32 bits'
    context.trace.decide(NAME, title, f"{roundings} roundings to {width}-bit DST{other}", bound_percent=bound)


def _roundings(op: Operation) -> int:
    steps = op.k if isinstance(op, TileMatmulOp) else math.prod(op.counts) if isinstance(op, TileReduceOp) else 1
    return STEPS_OF_TILE * steps


def _jumps(op: Operation) -> bool:
    """Cuts what was computed to whole numbers: 1 - 2**-9 in 16 bits is 0, where 1 was meant (41 // 41)."""
    if not isinstance(op, TileOpBase) or not op.SPEC.jumps:
        return False
    seen: set[Operation] = {op}
    below = [op]
    while below:
        for owner in [operand.owner for operand in below.pop().operands]:
            if not isinstance(owner, TileOpBase) or owner in seen:
                continue
            if any(form.rounds != "exact" for form in owner.SPEC.forms):
                return True
            seen.add(owner)
            below.append(owner)
    return False


def _repeats_rows(op: Operation) -> bool:
    return isinstance(op, TileBcastOp) and op.dim == "col"


def _read_by_matrix_unit(computes: list[ComputeOp], *, by_permission: bool, binary_ops: bool) -> set[SSAValue]:
    """Buffers that some op can only read through the source registers, or may: they hold its bits, or the user permits it."""
    found: set[SSAValue] = set()
    for compute in computes:
        for op in block_ops(compute.block):
            possible = binary_ops and isinstance(op, TileOpBase) and op.SPEC.form(Unit.FPU) is not None
            if not possible and not isinstance(op, MATRIX_OPS):
                continue
            arguments = [operand for operand in op.operands if isinstance(operand, BlockArgument)]
            if len(arguments) == len(op.operands):
                buffers = [buffer_of(compute.operands[argument.index]) for argument in arguments]
                if not possible or by_permission or all(fits_source(buffer) for buffer in buffers):
                    found.update(buffers)
    return found


def _dtype(op: BindCBOp) -> str:
    kind = buffer_type_of(op.results[0])
    return kind.tile.dtype


# By modelled cost ----------------------------------------------------------------------------------------------------


def _cheapest(
    computes: list[ComputeOp], config: ComputeConfig, fidelity: Fidelity, context: PassContext
) -> tuple[ComputeConfig, str]:
    """The configuration to use and why it differs from ``config``; the reason is empty if it does not."""
    options = context.options
    if options.allocator != "optimal" or options.dst_capacity is not None:
        return config, ""
    choice = _Choice(computes, context, config)
    if options.fp32_dest_acc is None and not config.fp32_dest_acc_en and any(map(_multiplies_in_dst, computes)):
        # Half as many slots that do not hold a region cost more than what its products save.
        passes = options.math_fidelity or fidelity.cheapest(dst32=True)
        choice.consider("32-bit DST", replace(config, fp32_dest_acc_en=True, math_fidelity=passes), whole=choice.runs)
    if options.full_sync is None and choice.full_sync_may_win():
        choice.consider("full sync", replace(choice.best, dst_full_sync_en=True))
    return choice.best, "; ".join(choice.reasons)


class _Choice:
    """The best configuration so far, and why each change was made."""

    def __init__(self, computes: list[ComputeOp], context: PassContext, config: ComputeConfig) -> None:
        self.computes, self.context = computes, context
        self.best = config
        self.reasons: list[str] = []
        self.plans: dict[ComputeConfig, list[tuple[Problem, Plan]] | None] = {}

    @property
    def runs(self) -> bool:
        """Whether every region can run under the best configuration."""
        return self._allocated(self.best) is not None

    def consider(self, name: str, config: ComputeConfig, *, whole: bool = False) -> None:
        cost = self._cost(self.best)
        other = self._cost(config, whole=whole, below=WORTH_IT * cost)
        if other < WORTH_IT * cost:
            self.reasons.append(f"{name} saves cycles: {other:.0f} against {cost:.0f} for a block of every region")
            self.best = config

    def full_sync_may_win(self) -> bool:
        """A split, or more inits per tile than half of them saved would have to pay for packing that nothing hides."""
        if any(accumulates(block) or _is_running(block) for compute in self.computes for block in compute.outputs):
            return False  # sums held across a loop wait for nobody
        regions = self._allocated(self.best)
        return regions is None or any(_profits(problem, plan) for problem, plan in regions)

    def _cost(self, config: ComputeConfig, *, whole: bool = False, below: float = float("inf")) -> float:
        regions = self._allocated(config, whole=whole, below=below)
        if regions is None:
            return float("inf")
        return sum(exposed_cycles(problem, plan.parts) * problem.tiles for problem, plan in regions)

    def _allocated(
        self, config: ComputeConfig, *, whole: bool = False, below: float = float("inf")
    ) -> list[tuple[Problem, Plan]] | None:
        """All regions under ``config``; None if one cannot run."""
        if config not in self.plans:
            self.plans[config] = plans_under(config, self.computes, self.context, whole=whole, below=below)
        return self.plans[config]


def _is_running(block: SSAValue) -> bool:
    """A value that a loop keeps: where it lies, and what its steps take together, is chosen later."""
    return isinstance(attachment_of(block).block.owner, RunningOp)


def _profits(problem: Problem, plan: Plan) -> bool:
    if len(plan.parts) > 1 and not plan.split_by_choice:
        return True
    return any(_packing_pays(problem, part.allocation) for part in plan.parts)


def _packing_pays(problem: Problem, allocation: Allocation) -> bool:
    if allocation.tiles_per_acquire >= problem.tiles:
        return False
    return (problem.costs.sync + allocation.init_cycles) / (2 * allocation.tiles_per_acquire) > allocation.pack_cycles


def _multiplies_in_dst(compute: ComputeOp) -> bool:
    """A product of two computed tiles: only the vector unit can do it."""
    return any(
        isinstance(op, TileOpBase)
        and op.SPEC.name == "mul"
        and not any(isinstance(operand, BlockArgument) for operand in op.operands)
        for op in block_ops(compute.block)
    )


# Fidelity --------------------------------------------------------------------------------------------------------------
# How many passes of the matrix unit a kernel needs, by the bits of what it multiplies.
#
# A pass multiplies one part of SrcA's significand with one part of SrcB's; the parts are the leading bits and the rest. Where a
# part is empty its passes add nothing, so leaving them out changes no bit: bfp8 tiles have no rest in SrcB, 1.0 has none.
#
# The fourth pass multiplies both rests. Of bf16 operands that is at most ``LAST_PASS`` of the product. A 16-bit DST is rounded to
# 8 bits after every pass, so there the fourth one changes nothing, unless the product is added to what cancels it; then it is no
# larger than what the passes before were rounded by. In a 32-bit DST it counts in a product of two tiles, unless that is only
# packed to 8 bits. It does not count in a matrix product: there the unit rounds eight products at a time to 12 bits of the
# largest, which is more than the pass is worth, so sums are as good without it, also those that cancel. (Wormhole's erratum,
# which turns sums near zero into large numbers, was met in four passes only.)
#
# The third pass multiplies the last bit of the left matrix. A long sum in a 16-bit DST is off by more than that: every pass is
# rounded there, and to leave one out leaves out its roundings. From ``LONG_SUM`` tiles on the error of such sums is the same in
# two passes. A matrix that only selects is no such sum, though, so it takes ``precision="fast"``.

SHORT = 8  # significant bits of bf16
LAST_PASS = 7 * 2.0**-14  # of a product of bf16: three bits of one operand with one bit of the other
LONG_SUM = 4  # tiles, or 128 products
MOST = len(FIDELITIES)


class Fidelity:
    """What the products of one compute function ask of the matrix unit."""

    def __init__(self, function: FuncOp, computes: list[ComputeOp], *, precision: str) -> None:
        self.computes = computes
        self.exact, self.fast = precision == "exact", precision == "fast"
        self.scalers = _scaler_bits(function)

    def cheapest(self, *, dst32: bool) -> str:
        """The fewest passes without which results are as good; all of them where nothing is multiplied."""
        needed = [self._passes(compute, op, dst32) for compute in self.computes for op in block_ops(compute.block)]
        return FIDELITIES[max(needed, default=0) - 1]

    def _passes(self, compute: ComputeOp, op: Operation, dst32: bool) -> int:
        """Passes of one op; 0 if the matrix unit multiplies nothing for it."""
        if isinstance(op, TileMatmulOp):
            bits = self._bits(compute, op.rhs), self._bits(compute, op.lhs)  # SrcA holds the right matrix
            most = passes_for(*bits)
        elif _is_sum(op) or _is_product(op):
            bits = tuple(self._bits(compute, operand) for operand in op.operands[:2])
            most = max(passes_for(*bits), passes_for(*reversed(bits)))  # whichever register gets which
        else:
            return 0
        if most < MOST or self.exact or max(bits) > SHORT:
            return most
        if isinstance(op, TileMatmulOp):
            return MOST - 2 if self.fast and not dst32 and op.k >= LONG_SUM else MOST - 1
        rounded = _is_product(op) and _only_packed(op) if dst32 else True
        return MOST - 1 if rounded else MOST

    def _bits(self, compute: ComputeOp, value: SSAValue) -> int:
        """Significant bits that a source register gets of ``value``."""
        assert isinstance(value.type, TileType)
        if isinstance(value, BlockArgument):
            bind = defining_op(buffer_of(compute.operands[value.index]))
            assert isinstance(bind, BindCBOp)
            if bind.cb_index in self.scalers:
                return self.scalers[bind.cb_index]
            return min(DTYPE_BY_NAME[value.type.dtype].precision, SOURCE_SIGNIFICANT_BITS)
        return SOURCE_SIGNIFICANT_BITS if value.type.dtype == "f32" else SHORT  # what DST holds has not been packed


def passes_for(bits_a: int, bits_b: int) -> int:
    """Passes up to the last that multiplies something: the rest of SrcA is in every second, the rest of SrcB in the last two."""
    leading_a, leading_b = SOURCE_LEADING_BITS
    return 1 + (bits_a > leading_a) + 2 * (bits_b > leading_b)


def _is_product(op: Operation) -> bool:
    if isinstance(op, TileBinaryBcastOp):
        return op.kind == "mul"
    return isinstance(op, TileOpBase) and op.SPEC.name == "mul" and _is_float(op.results[0])


def _is_sum(op: Operation) -> bool:
    return isinstance(op, TileReduceOp) and op.kind == "sum"


def _is_float(value: SSAValue) -> bool:
    return isinstance(value.type, TileType) and DTYPE_BY_NAME[value.type.dtype].precision > 0


def _only_packed(op: Operation) -> bool:
    """Whether the result leaves DST as it is, and is rounded on its way."""
    result = op.results[0]
    assert isinstance(result.type, TileType)
    return DTYPE_BY_NAME[result.type.dtype].precision <= SHORT and all(isinstance(use.operation, YieldOp) for use in result.uses)


def _scaler_bits(function: FuncOp) -> dict[int, int]:
    """Significant bits of the number that a data-movement thread fills into a buffer for reductions."""
    module = function.parent_op()
    found: dict[int, int] = {}
    for fill in of_kind(module, FillScalerOp) if module is not None else ():
        bind, value = defining_op(fill.buffer), fill.attributes.get("value")
        if isinstance(bind, BindCBOp) and isinstance(value, FloatAttr):
            found[bind.cb_index] = max(found.get(bind.cb_index, 0), significant_bits(value.value.data))
    return found


def significant_bits(number: float) -> int:
    """Bits from the leading one to the last one that is set."""
    if number == 0.0 or not math.isfinite(number):
        return 1
    whole = abs(math.frexp(number)[0].as_integer_ratio()[0])
    return whole.bit_length()
