"""Builders of rows: what unary, binary and ternary ops have in common, and what those of one family have."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from tilewright.dialects.row_references import Array, np, truth
from tilewright.dialects.tile_op import (
    INTEGER_DTYPES,
    LIMIT,
    NARROW,
    UNLIMITED,
    WIDTH,
    WIDTH_OF_DST,
    Meaning,
    Param,
    Spelling,
    TileOp,
    Unit,
    UnitForm,
    Writes,
    applicable,
    leaves_state,
    template_text,
)

UNARY = "eltwise_unary/"
KERNEL_API = "compute_kernel_api.h"
BINARY_SFPU = "eltwise_binary_sfpu.h"
APPROX = Param(name="approx", kind="bool", default=False, summary="the faster, less accurate form")
NARROW_PARAM = Param(name=NARROW, kind="bool", default=False, hidden=True, summary="to the bits of a 16-bit DST, whatever DST is")
UNLIMITED_PARAM = Param(name=UNLIMITED, kind="bool", default=False, hidden=True, summary="of what cannot be negative")
WIDTH_SINCE = "0.78"  # the first release whose functions take DST's width as an argument
SCALAR = Param(name="scalar", example=1.5, summary="the Python number")

Test: TypeAlias = "Callable[[Any, Any], Any]"  # a comparison of two arrays




def sfpu_form(
    call: str,
    *,
    header: str,
    args: tuple[str, ...],
    writes: Writes,
    init: str | None = None,
    template: tuple[str, ...] = (),
    init_template: tuple[str, ...] = (),
    init_args: tuple[str, ...] = (),
    defaults: tuple[str, ...] = (),
    init_defaults: tuple[str, ...] | None = None,
    rounds: str = "truncate",
    since: str = "0.62",
    commutes: bool = False,
    includes_first: tuple[str, ...] = (),
    spellings: tuple[Spelling, ...] = (),
    lookup: bool = False,
    by_faces: bool = False,
) -> UnitForm:
    init = f"{call}_init" if init is None else init
    return UnitForm(
        unit=Unit.SFPU, init=init, call=call, header=header, writes=writes, args=args, template=template,
        init_template=init_template, init_args=init_args, stateful=leaves_state(init, call), rounds=rounds,
        since=since, commutes=commutes, defaults=defaults, includes_first=includes_first, spellings=spellings,
        init_defaults=defaults if init_defaults is None else init_defaults, lookup=lookup,
        by_faces=by_faces,
    )  # fmt: skip


FORM_KEYS = frozenset(inspect.signature(sfpu_form).parameters)


def sfpu_op(name: str, summary: str, reference: Meaning, arity: int, fields: dict[str, Any]) -> TileOp:
    """A row with one SFPU form; ``fields`` belong to the form or to the row, by name."""
    form = {key: fields.pop(key) for key in list(fields) if key in FORM_KEYS}
    form.setdefault("call", f"{name}_tile")
    fields.setdefault("python", (f"math.{name}",))
    params = fields.get("params", ())
    return TileOp(
        name=name, summary=summary, arity=arity, forms=(sfpu_form(**form),), reference=taking(reference, params),
        **fields,
    )  # fmt: skip


def unary(name: str, summary: str, reference: Meaning, *, args: tuple[str, ...] = (), **fields: Any) -> TileOp:
    """One tile in DST, replaced in place."""
    return sfpu_op(name, summary, reference, 1, {**fields, "args": ("d0", *args), "writes": Writes.IN_PLACE})


def approximable(
    name: str,
    summary: str,
    reference: Meaning,
    *,
    default: str = "false",
    before: tuple[str, ...] = (),
    **fields: Any,
) -> TileOp:
    """A unary op whose first template argument after ``before`` chooses the approximate form."""
    init_template = fields.pop("init_template", ("{approx}",))
    params = (*fields.pop("params", ()), APPROX)
    return unary(
        name, summary, reference, template=(*before, "{approx}"), init_template=init_template,
        defaults=(*before, default), init_defaults=(default,), params=params, **fields,
    )  # fmt: skip


def narrowable(row: TileOp, *, between: tuple[str, ...] = (), init_between: tuple[str, ...] | None = ()) -> TileOp:
    """A row whose call can be told to compute for a 16-bit DST in one of 32 bits: its result is then rounded to bf16.

    The width is a template argument, behind ``between`` and what the row has; ``init_between`` is ``None`` if its init has none.
    """
    (form,) = row.forms
    init_template, init_defaults = form.init_template, form.init_defaults
    if init_between is not None:
        init_template, init_defaults = (*init_template, *init_between, WIDTH), (*init_defaults, *init_between, WIDTH_OF_DST)
    template = (*form.template, *between, WIDTH)
    assumed = tuple(template_text(entry, {}) for entry in between)
    older = Spelling(since="0.62", template=form.template, init_template=form.init_template)
    wider = replace(
        form, template=template, defaults=(*form.defaults, *assumed, WIDTH_OF_DST), init_template=init_template,
        init_defaults=init_defaults,
        spellings=(*form.spellings, older, Spelling(since=WIDTH_SINCE, template=template, init_template=init_template)),
    )  # fmt: skip
    more = (NARROW_PARAM, UNLIMITED_PARAM) if LIMIT in between else (NARROW_PARAM,)
    return replace(row, forms=(wider,), params=(*row.params, *more), reference=taking(row.reference, more))


def binary(name: str, summary: str, reference: Meaning, *, args: tuple[str, ...] = (), **fields: Any) -> TileOp:
    """Two tiles in DST, result in any slot."""
    fields.setdefault("call", f"{name}_binary_tile")
    fields.setdefault("header", BINARY_SFPU)
    return sfpu_op(name, summary, reference, 2, {**fields, "args": ("d0", "d1", "o", *args), "writes": Writes.ANY})


def ternary(name: str, summary: str, reference: Meaning, *, args: tuple[str, ...] = (), **fields: Any) -> TileOp:
    """Three tiles in DST, result in any slot."""
    return sfpu_op(name, summary, reference, 3, {**fields, "args": ("d0", "d1", "d2", "o", *args), "writes": Writes.ANY})


def scalar_op(name: str, summary: str, reference: Meaning, *, encoding: str = "f32", **fields: Any) -> TileOp:
    """One tile in DST and a Python number, which is an immediate of the call."""
    fields.setdefault("args", (f"scalar:{encoding}",))
    fields.setdefault("python", ())
    if not inspect.isfunction(reference):
        reference = naming_scalar(applicable(reference))
    fields.setdefault("params", (SCALAR,))
    return unary(name, summary, reference, **fields)


def naming_scalar(function: Test) -> Meaning:
    """NumPy's functions take no keyword; rows pass parameters by name."""

    def meaning(x: Array, scalar: float) -> Array:
        return function(x, scalar)

    return meaning


def taking(reference: Meaning, params: tuple[Param, ...]) -> Meaning:
    """``reference`` that also takes, and ignores, the parameters which do not change the meaning."""
    known = inspect.getargs(reference.__code__).args if inspect.isfunction(reference) else []
    ignored = [param.name for param in params if param.name not in known]
    if not ignored:
        return reference

    def meaning(*tiles: Array, **values: Any) -> Array:
        return applicable(reference)(*tiles, **{key: value for key, value in values.items() if key not in ignored})

    return meaning


# Arithmetic on the matrix unit and on the vector unit.

BINARY_HEADER = "eltwise_binary.h"


def fpu_forms(name: str, *, writes: Writes, commutes: bool) -> tuple[UnitForm, ...]:
    """Buffer with buffer, DST with buffer, buffer with DST."""
    reuse = "binary_dest_reuse_tiles"
    kind = f"EltwiseBinaryType::ELW{name.upper()}"

    def reuse_form(unit: Unit, side: str, buffer: str, tile: str, slot: str) -> UnitForm:
        template = (kind, f"EltwiseBinaryReuseDestType::DEST_TO_{side}")
        return UnitForm(
            unit=unit, init=f"{reuse}_init", call=reuse, header=BINARY_HEADER, writes=Writes.IN_PLACE,
            args=(buffer, tile, slot), template=template, init_template=template, init_args=(buffer,), stateful=True,
            rounds="nearest-away", commutes=commutes,
        )  # fmt: skip

    return (
        UnitForm(
            unit=Unit.FPU, init=f"{name}_tiles_init", call=f"{name}_tiles", header=BINARY_HEADER, writes=writes,
            args=("b0", "b1", "t0", "t1", "o"), init_args=("b0", "b1"), stateful=True, rounds="nearest-away",
            commutes=commutes,
        ),
        reuse_form(Unit.REUSE_A, "SRCA", "b1", "t1", "d0"),
        reuse_form(Unit.REUSE_B, "SRCB", "b0", "t0", "d1"),
    )  # fmt: skip


def in_dst(call: str, *, rounds: str = "truncate", commutes: bool = False) -> UnitForm:
    args = ("d0", "d1", "o")
    return sfpu_form(call, header=BINARY_SFPU, args=args, writes=Writes.ANY, rounds=rounds, commutes=commutes)


def integer_row(name: str) -> tuple[tuple[str, str], ...]:
    """The row that serves every integer dtype."""
    return tuple((dtype, name) for dtype in INTEGER_DTYPES)


# Functions and activations.

TRIGONOMETRY = UNARY + "trigonometry.h"
NEAREST = "nearest-even"


def log_to_base(name: str, base: float) -> TileOp:
    """The call multiplies the natural logarithm by 1 / ln(base)."""
    scale = 1.0 / math.log(base)
    factor = Param(name="base_scale", default=scale, hidden=True, summary=f"1 / ln({base:g})")

    def reference(x: Array, base_scale: float = scale) -> Array:
        return np.log(x) * base_scale

    return unary(
        name, f"Elementwise logarithm to base {base:g}.", reference, call="log_with_base_tile", header=KERNEL_API,
        args=("base_scale:f32",), params=(factor,), rounds=NEAREST, domain=(0.1, 8.0), golden=name, bound_ulp=0.8,
        since="0.69",
    )  # fmt: skip


def trigonometric(name: str, summary: str, reference: Meaning, bound_ulp: float, **fields: Any) -> TileOp:
    fields = {"header": TRIGONOMETRY, "rounds": NEAREST, "golden": name, **fields}
    return unary(name, summary, reference, bound_ulp=bound_ulp, **fields)


def redundant(name: str, of: str) -> Param:
    """TT-Lang passes some reciprocals beside the number itself; the number decides."""
    return Param(name=name, default=0.0, summary=f"taken and not used: it is 1 / {of}")


# Comparisons: 1 and 0 in the operands' dtype.

COMP = UNARY + "comp.h"
BOUND = Param(name="scalar", example=1.5, summary="the Python number")
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def comparing(test: Test) -> Test:
    def meaning(a: Array, b: Array) -> Array:
        return truth(test(a, b))

    return meaning


def comparing_tiles(name: str, sign: str, words: str, test: Test) -> TileOp:
    return binary(
        name, f"1 where a {words} b, else 0.", comparing(test), operator=sign, rounds="exact", since="0.69",
        commutes=name in ("eq", "ne"), scalar=f"{name}_scalar", rscalar=f"{MIRRORED[name]}_scalar",
        by_dtype=tuple((dtype, f"{name}_int") for dtype in INTEGER_DTYPES), golden=f"sfpu_{name}", bound_ulp=0.0,
    )  # fmt: skip


def comparing_scalar(name: str, words: str, test: Test) -> TileOp:
    return scalar_op(
        f"{name}_scalar", f"1 where x {words} scalar, else 0.", naming_scalar(comparing(test)), call=f"unary_{name}_tile",
        header=COMP, rounds="exact", params=(BOUND,), by_dtype=(("i32", f"{name}_int_scalar"),), golden=f"{name}_s",
        bound_ulp=0.0,
        since="0.62" if name in ("ne", "gt", "lt") else "0.69",
    )  # fmt: skip


def comparing_zero(name: str, words: str, test: Test) -> TileOp:
    return unary(
        f"{name}z", f"1 where x {words} 0, else 0.", lambda x: truth(test(x, 0.0)), header=COMP, rounds="exact",
        golden=f"{name}z", bound_ulp=0.0,
    )  # fmt: skip


def test_for(name: str, words: str, test: Callable[[Any], Any]) -> TileOp:
    return unary(
        name, f"1 where x is {words}, else 0.", lambda x: truth(test(x)), header=UNARY + "isinf_isnan.h", rounds="exact",
        golden=name, bound_ulp=0.0,
    )  # fmt: skip


# Integers. They need 32-bit DST, except u16.

SIGNED = ("i32",)
WHOLE = Param(name="scalar", kind="int", low=-(2**31), high=2**32 - 1, example=3, summary="a whole number")
INTEGER_FIELDS = {"rounds": "exact", "bound_ulp": 0.0}


def whole(test: Test) -> Test:
    """A comparison whose 1 and 0 are integers."""

    def meaning(a: Array, b: Array) -> Array:
        return np.asarray(test(a, b), dtype="int64")

    return meaning


def int_binary(name: str, summary: str, reference: Meaning, call: str, header: str, **fields: Any) -> TileOp:
    fields = {**INTEGER_FIELDS, "python": (), "since": "0.69", "domain": (0.0, 1000.0), **fields}
    return binary(name, summary, reference, call=call, header=header, **fields)


def int_scalar(name: str, summary: str, reference: Meaning, call: str, header: str, **fields: Any) -> TileOp:
    fields = {**INTEGER_FIELDS, "since": "0.69", "domain": (0.0, 1000.0), "dtypes": SIGNED, "params": (WHOLE,), **fields}
    return scalar_op(name, summary, reference, encoding="int", call=call, header=header, **fields)


def int_unary(name: str, summary: str, reference: Meaning, call: str, header: str, **fields: Any) -> TileOp:
    fields = {**INTEGER_FIELDS, "python": (), "domain": (-1000.0, 1000.0), "dtypes": SIGNED, **fields}
    return unary(name, summary, reference, call=call, header=header, **fields)
