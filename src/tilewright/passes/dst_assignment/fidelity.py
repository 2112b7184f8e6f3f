"""How many passes of the matrix unit a kernel needs, by the bits of what it multiplies.

A pass multiplies one part of SrcA's significand with one part of SrcB's; the parts are the leading bits and the rest. Where a
part is empty its passes add nothing, so leaving them out changes no bit: bfp8 tiles have no rest in SrcB, 1.0 has none.

The fourth pass multiplies both rests. Of bf16 operands that is at most ``LAST_PASS`` of the product. A 16-bit DST is rounded to
8 bits after every pass, so there the fourth one changes nothing, unless the product is added to what cancels it; then it is no
larger than what the passes before were rounded by. In a 32-bit DST it counts, except in a product that is only packed to 8 bits.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.dialects.attributes import TileType, defining_op
from tilewright.dialects.ttl import TileOpBase, YieldOp
from tilewright.dialects.ttl_buffers import BindCBOp, FillScalerOp
from tilewright.dialects.ttl_compute import ComputeOp, TileBinaryBcastOp, TileMatmulOp, TileReduceOp
from tilewright.dialects.walking import of_kind
from tilewright.dtypes import DTYPE_BY_NAME
from tilewright.hardware import FIDELITIES, SOURCE_LEADING_BITS, SOURCE_SIGNIFICANT_BITS
from tilewright.passes.buffers import buffer_of

SHORT = 8  # significant bits of bf16
LAST_PASS = 7 * 2.0**-14  # of a product of bf16: three bits of one operand with one bit of the other
MOST = len(FIDELITIES)


class Fidelity:
    """What the products of one compute function ask of the matrix unit."""

    def __init__(self, function: FuncOp, *, precision: str) -> None:
        self.computes = of_kind(function, ComputeOp)
        self.exact = precision == "exact"
        self.scalers = _scaler_bits(function)

    def cheapest(self, *, dst32: bool) -> str:
        """The fewest passes that lose nothing a result holds; all of them where nothing is multiplied."""
        needed = [self._passes(compute, op, dst32) for compute in self.computes for op in compute.block.ops]
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
