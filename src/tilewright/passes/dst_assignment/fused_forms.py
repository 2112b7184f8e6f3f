"""Forms that are other calls of the table: one call for several ops, or two cheap calls for a dear one.

Each pattern says what it costs, so the allocator takes it only where it pays. All keep at least the accuracy of the calls they
stand for to within one unit in the last place of a 16-bit DST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from tilewright.dialects import tile_ops
from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import text_value
from tilewright.dialects.composed_calls import STATELESS
from tilewright.dialects.tile_op import FACES, Unit, UnitForm, release_key
from tilewright.dialects.ttl import TileOpBase, YieldOp
from tilewright.dst.problem import Form, Operand, Place, ResultRule
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.passes.dst_assignment.dst_forms import FormBuilder

PACK_RELU = "pack_relu"  # the op is no call: the packs of its result clip
PACK_RELU_SINCE = (0, 78)
PREVIOUS = -1  # the result of the call before, in a form of several calls


@record
class RowCall:
    """One call of a form: a row of the table on some of the form's operands."""

    row: str
    operands: tuple[int, ...]  # positions in the form's operands
    unit: str = Unit.SFPU.value
    params: tuple[tuple[str, Any], ...] = ()
    faces: str = ""  # part of the tile it is confined to


@record
class FormUse:
    """How one form is written back into the IR."""

    unit: str
    absorbed: Operation | None = None
    calls: tuple[RowCall, ...] = ()  # instead of the op itself


class FusedForms:
    def __init__(self, builder: FormBuilder) -> None:
        self.builder = builder

    def of(self, op: TileOpBase) -> list[tuple[Form, FormUse]]:
        patterns = {
            "mul": (self._square, self._silu),
            "add": (self._addcmul,),
            "sub": (self._addcmul,),
            "div": (self._reciprocal,),
            "relu": (self._by_packer,),
            "exp": (self._scaled_exponential,),
        }
        return [found for pattern in patterns.get(op.SPEC.name, ()) if (found := pattern(op)) is not None]

    def _by_packer(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``relu(x)`` that is only packed: the packer clips for nothing"""
        result = op.results[0]
        if release_key(self.builder.options.metal) < PACK_RELU_SINCE or self.builder.options.allocator != "optimal":
            return None
        if self._number(result) not in self.builder.clipped or not all(isinstance(use.operation, YieldOp) for use in result.uses):
            return None
        operands = (Operand(self._number(op.lhs), Place.DST),)
        return Form(key=PACK_RELU, operands=operands, result=ResultRule.IN_PLACE, reuses=0), FormUse(PACK_RELU)

    def _scaled_exponential(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``exp(x * number)``, approximate: the init of the approximate function multiplies"""
        inner = op.lhs.owner
        if not isinstance(inner, TileOpBase) or inner.SPEC.name != "mul_scalar" or not self.builder.absorbable(inner):
            return None
        scale = inner.attributes.get("scalar")
        if not parameters_of(op, op.SPEC).get("approx") or not isinstance(scale, FloatAttr):
            return None
        absorbs = (self._number(inner.results[0]) - self.builder.leaf_count,)
        values = (self._number(inner.lhs),)
        faces = text_value(op, FACES)
        return self._single("exp_scaled", values, in_place=True, absorbs=absorbs, faces=faces, scale=scale.value.data)

    def _number(self, value: Any) -> int:
        return self.builder.numbers[value]

    def _single(
        self,
        row: str,
        values: tuple[int, ...],
        *,
        in_place: bool,
        absorbs: tuple[int, ...] = (),
        faces: str = "",
        **params: Any,
    ) -> tuple[Form, FormUse] | None:
        """One call of another row, everything in DST."""
        form = tile_ops.BY_NAME[row].form(Unit.SFPU)
        if form is None or not form.exists_in(self.builder.options.metal):
            return None
        operands = tuple(Operand(value, Place.DST) for value in values)
        rule, reuses = (ResultRule.IN_PLACE, 0) if in_place else (ResultRule.FREE, None)
        built = self.builder.form(
            row, operands, rule, self._cost(form, faces), _key(form, row, params), reuses=reuses, absorbs=absorbs
        )
        call = RowCall(row, tuple(range(len(values))), params=tuple(params.items()), faces=faces)
        return built, FormUse(row, calls=(call,))

    def _cost(self, form: UnitForm, faces: str = "") -> Any:
        return self.builder.cost(form.call, form.template, faces)

    def _square(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``x * x``"""
        if op.lhs is not op.rhs:
            return None
        return self._single("square", (self._number(op.lhs),), in_place=True)

    def _silu(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``x * sigmoid(x)``"""
        for position in (0, 1):
            inner, other = op.operands[position].owner, op.operands[1 - position]
            if not isinstance(inner, TileOpBase) or inner.SPEC.name != "sigmoid" or inner.lhs is not other:
                continue
            if inner.attributes.get("approx") is not None or not self.builder.absorbable(inner):
                continue
            absorbs = (self._number(inner.results[0]) - self.builder.leaf_count,)
            return self._single("silu", (self._number(other),), in_place=True, absorbs=absorbs)
        return None

    def _addcmul(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``x + y * z`` or ``x - y * z`` with all three in DST"""
        subtracts = op.SPEC.name == "sub"
        for position in (1,) if subtracts else (1, 0):
            product = op.operands[position].owner
            if not isinstance(product, TileOpBase) or product.SPEC.name != "mul" or op.lhs is op.rhs:
                continue
            if not self.builder.absorbable(product):
                continue
            values = (op.operands[1 - position], *product.operands)
            absorbs = (self._number(product.results[0]) - self.builder.leaf_count,)
            numbers = tuple(self._number(value) for value in values)
            return self._single("addcmul", numbers, in_place=False, absorbs=absorbs, value=-1.0 if subtracts else 1.0)
        return None

    def _reciprocal(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``x / y`` with x in a buffer: 1 / y in place, then the matrix unit multiplies x onto it"""
        recip = tile_ops.BY_NAME["recip"].form(Unit.SFPU)
        product = tile_ops.BY_NAME["mul"].form(Unit.REUSE_A)
        assert recip is not None and product is not None
        x, y = (self._number(value) for value in op.operands)
        operands = (Operand(y, Place.DST), Operand(x, Place.BUFFER))
        if x == y or not self.builder.matrix_unit_allowed(op, operands, reuse=True):
            return None
        first, second = self._cost(recip), self._cost(product)
        built = self.builder.form(
            "recip*", operands, ResultRule.IN_PLACE, first, _key(recip, "recip"), reuses=0, extra=round(second.math_cycles)
        )
        calls = (RowCall("recip", (0,)), RowCall("mul", (PREVIOUS, 1), unit=Unit.REUSE_A.value))
        return built, FormUse("recip*", calls=calls)


def _key(form: UnitForm, row: str, params: dict[str, Any] | None = None) -> str:
    """Key of the init a row runs under; parameters that its init does not see only make it a little longer."""
    return f"{form.init}:{row}{params or ''}" if form.stateful else STATELESS


