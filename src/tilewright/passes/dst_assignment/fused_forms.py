"""Forms of a row itself, and forms that are other calls of the table: one for several ops, or two cheap calls for a dear one.

Each pattern says what it costs, so the allocator takes it only where it pays. All keep at least the accuracy of the calls they
stand for to within one unit in the last place of a 16-bit DST. ``EQUIVALENTS`` lists those that differ in nothing but the calls;
``tests/end_to_end/test_equivalent_calls.py`` holds both sides against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from tilewright.dialects import tile_ops
from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import TileType, text_value
from tilewright.dialects.tile_op import FACES, NARROW, WIDTH, Unit, UnitForm, Writes, release_key
from tilewright.dialects.ttkernel import STATELESS
from tilewright.dialects.ttl import TileOpBase, YieldOp
from tilewright.dst.problem import Form, Operand, Place, ResultRule
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.passes.dst_assignment.dst_problem import FormBuilder

PACK_RELU = "pack_relu"  # the op is no call: the packs of its result clip
PACK_RELU_SINCE = (0, 78)
NARROW_SINCE = (0, 78)  # functions take DST's width as a template argument
PREVIOUS = -1  # the result of the call before, in a form of several calls
LOG2_E = 1.4426950408889634


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


PLACES = {  # of the two operands, where one comes from a buffer
    Unit.FPU: (Place.BUFFER, Place.BUFFER),
    Unit.REUSE_A: (Place.DST, Place.BUFFER),
    Unit.REUSE_B: (Place.BUFFER, Place.DST),
}


@record
class RowWay:
    """A form of a row itself, with its operands in one of the orders it takes."""

    form: UnitForm
    operands: tuple[tuple[int, Place], ...]  # position among those of the op, and where it is
    result: ResultRule
    reuses: int | None
    use: FormUse


@lru_cache(maxsize=1024)
def ways_of(row: str, release: str) -> tuple[RowWay, ...]:
    found: list[RowWay] = []
    for form in tile_ops.BY_NAME[row].forms:
        for order in form.orders if form.exists_in(release) else ():
            places = (Place.DST,) * len(order) if form.unit is Unit.SFPU else PLACES[form.unit]
            rule, reuses = ResultRule.FREE, None
            if form.writes is Writes.ACCUMULATES:
                rule = ResultRule.ZEROED
            elif form.writes is Writes.IN_PLACE:
                rule, reuses = ResultRule.IN_PLACE, places.index(Place.DST)
            found.append(RowWay(form, tuple(zip(order, places, strict=True)), rule, reuses, FormUse(form.unit.value)))
    return tuple(found)


@record
class Equivalent:
    """A row as other rows, one after the other in the slot of the result."""

    row: str
    calls: tuple[tuple[str, tuple[int, ...], tuple[tuple[str, Any], ...]], ...]  # row, operands, parameters ("=name": its own)
    exactness: str  # against the row's own call
    reason: str
    wide: bool | None = None  # in a DST of 32 bits or of 16; None: in both
    dtypes: tuple[str, ...] = ()  # of the operands; empty: any
    from_zeros: bool = False  # the first call fills a slot of its own
    unless: str = ""  # a parameter that must not be set


def _zeros() -> tuple[str, tuple[int, ...], tuple[tuple[str, Any], ...]]:
    return ("fill", (), (("value", 0.0),))


SAME_BITS = "same bits"
ONE_ULP = "within 1 ulp for finite operands"

EQUIVALENTS: tuple[Equivalent, ...] = (
    Equivalent("relu", (("max_scalar", (0,), (("scalar", 0.0),)),), SAME_BITS, "a maximum with a number costs half"),
    Equivalent("relu_max", (("min_scalar", (0,), (("scalar", "=upper_limit"),)), ("max_scalar", (PREVIOUS,), (("scalar", 0.0),))),
               SAME_BITS, "two limits by themselves cost less than one call for both"),
    Equivalent("clamp", (("min_scalar", (0,), (("scalar", "=max"),)), ("max_scalar", (PREVIOUS,), (("scalar", "=min"),))),
               SAME_BITS, "two limits by themselves cost less than one call for both"),
    Equivalent("mul", (_zeros(), ("addcmul", (PREVIOUS, 0, 1), (("value", 1.0),))), ONE_ULP,
               "a product is rounded to 16 bits in software, a sum with a product is not", wide=False, from_zeros=True),
    Equivalent("exp", (("mul_scalar", (0,), (("scalar", LOG2_E),)), ("exp2", (PREVIOUS,), ())), ONE_ULP,
               "of 32 bits of the exponential nobody wants more than bf16 holds", wide=True, dtypes=("bf16",), unless="approx"),
)  # fmt: skip


EQUIVALENTS_OF = {row: [rule for rule in EQUIVALENTS if rule.row == row] for row in {rule.row for rule in EQUIVALENTS}}


class FusedForms:
    def __init__(self, builder: FormBuilder) -> None:
        self.builder = builder

        self.patterns: dict[str, tuple[Callable[[TileOpBase], tuple[Form, FormUse] | None], ...]] = {
            "mul": (self._square, self._silu),
            "add": (self._addcmul,),
            "sub": (self._addcmul,),
            "div": (self._reciprocal,),
            "relu": (self._by_packer,),
            "max_scalar": (self._by_packer,),
            "exp": (self._scaled_exponential, self._scaled_power_of_two),
        }

    def of(self, op: TileOpBase) -> list[tuple[Form, FormUse]]:
        name, options = op.SPEC.name, self.builder.options
        found = [form for pattern in (*self.patterns.get(name, ()), self._narrow) if (form := pattern(op)) is not None]
        for rule in EQUIVALENTS_OF.get(name, ()) if options.equivalent_calls else ():
            if rule.exactness != SAME_BITS and options.precision == "exact":
                continue
            if (form := self._equivalent(op, rule)) is not None:
                found.append(form)
        return found

    def _equivalent(self, op: TileOpBase, rule: Equivalent) -> tuple[Form, FormUse] | None:
        own = parameters_of(op, op.SPEC)
        if not self._applies(op, rule.wide, rule.dtypes) or (rule.unless and own.get(rule.unless)):
            return None
        values = tuple(self._number(value) for value in op.operands)
        if rule.from_zeros:
            if len(set(values)) < len(values):
                return None  # a square has a call of its own
            reachable = any(value < self.builder.leaf_count for value in values)
            if reachable and self.builder.matrix_unit_allowed(op, (), reuse=True):
                return None  # the matrix unit reads what is in a buffer, for less
        calls = tuple(
            RowCall(row, taken, params=tuple((key, own[value[1:]] if isinstance(value, str) else value) for key, value in params))
            for row, taken, params in rule.calls
        )
        return self._sequence(f"{rule.row}*", values, calls, in_place=not rule.from_zeros)

    def _applies(self, op: TileOpBase, wide: bool | None, dtypes: tuple[str, ...]) -> bool:
        if wide is not None and wide != self.builder.config.fp32_dest_acc_en:
            return False
        types = [value.type for value in (*op.operands, *op.results)]
        return not dtypes or all(isinstance(kind, TileType) and kind.dtype in dtypes for kind in types)

    def _sequence(
        self, key: str, values: tuple[int, ...], calls: tuple[RowCall, ...], *, in_place: bool, absorbs: tuple[int, ...] = ()
    ) -> tuple[Form, FormUse] | None:
        """Calls of other rows, one after the other in the result's slot: the operand's, or one that nobody has written."""
        forms: list[UnitForm] = []
        for call in calls:
            form = tile_ops.BY_NAME[call.row].form(Unit.SFPU)
            if form is None or not form.exists_in(self.builder.options.metal):
                return None
            forms.append(form)
        operands = tuple(Operand(value, Place.DST) for value in values)
        costs = [self._cost(form) for form in forms]
        inits = [(_key(form, call.row), cost) for form, call, cost in zip(forms, calls, costs, strict=True)]
        stateful = [(init, cost) for init, cost in inits if init != STATELESS]
        init, cost = stateful[0] if stateful else inits[0]
        extra = sum(round(each.math_cycles) for each in costs) - round(cost.math_cycles)
        extra += sum(round(each.init_math_cycles) for name, each in stateful[1:] if name != init)
        rule, reuses = (ResultRule.IN_PLACE, 0) if in_place else (ResultRule.ZEROED, None)
        built = self.builder.form(key, operands, rule, cost, init, reuses=reuses, extra=extra, absorbs=absorbs)
        return built, FormUse(key, calls=calls)

    def _by_packer(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``relu(x)`` or ``max(x, 0)`` that is only packed: the packer clips for nothing"""
        result = op.results[0]
        if parameters_of(op, op.SPEC).get("scalar", 0.0) != 0.0:
            return None
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

    def _scaled_power_of_two(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """``exp(x * number)`` in a 32-bit DST as ``2 ** (x * (number * log2(e)))``: one multiplication for both"""
        inner = op.lhs.owner
        if not isinstance(inner, TileOpBase) or inner.SPEC.name != "mul_scalar" or not self.builder.absorbable(inner):
            return None
        scale = inner.attributes.get("scalar")
        options = self.builder.options
        other = bool(parameters_of(op, op.SPEC).get("approx")) or options.precision == "exact" or not options.equivalent_calls
        if other or not isinstance(scale, FloatAttr) or not self._applies(op, True, ("bf16",)):
            return None
        calls = (RowCall("mul_scalar", (0,), params=(("scalar", scale.value.data * LOG2_E),)), RowCall("exp2", (PREVIOUS,)))
        absorbs = (self._number(inner.results[0]) - self.builder.leaf_count,)
        return self._sequence("exp2*", (self._number(inner.lhs),), calls, in_place=True, absorbs=absorbs)

    def _narrow(self, op: TileOpBase) -> tuple[Form, FormUse] | None:
        """A function in a 32-bit DST whose result is only packed to bf16: computed to those bits, as in a 16-bit DST"""
        form = op.SPEC.form(Unit.SFPU)
        if form is None or WIDTH not in form.template or release_key(self.builder.options.metal) < NARROW_SINCE:
            return None
        own, options = parameters_of(op, op.SPEC), self.builder.options
        if own.get("approx") or options.precision == "exact" or not options.equivalent_calls:
            return None
        if not self._applies(op, True, ("bf16",)) or not all(isinstance(use.operation, YieldOp) for use in op.results[0].uses):
            return None
        params = {**own, NARROW: True}
        faces = text_value(op, FACES) if form.by_faces else ""
        operands = (Operand(self._number(op.lhs), Place.DST),)
        cost = self.builder.priced(form, params, faces)
        init = _key(form, op.SPEC.name, {NARROW: WIDTH in form.init_template})
        built = self.builder.form(NARROW, operands, ResultRule.IN_PLACE, cost, init, reuses=0)
        return built, FormUse(NARROW, calls=(RowCall(op.SPEC.name, (0,), params=tuple(params.items()), faces=faces),))

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


