"""Element types, the tile formats that hold them, and which conversions of an expression matter.

Types of eight bits are held as bfloat16, which has all their values. Arithmetic on 8-bit integers is done in float32, where their
products and sums are exact; a result becomes one by truncation, as in C. Nothing rounds to an 8-bit float:
those can only be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.frontend.tilelang.symbols import (
    BIT_OPERATORS,
    Apply,
    Cast,
    Expression,
    Index,
    Number,
    Position,
    Product,
    Read,
    Reduction,
    Trouble,
    expression,
    is_symbolic,
)
from tilewright.lang.tilelang_tensors import OTHER_INTEGERS, OTHER_NAMES, SMALL_INTEGERS, element_name

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reading import Reading


TILE_FORMATS = {
    "float16": "f32",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
    "tfloat32": "f32",
    "int32": "i32",
    "uint32": "u32",
    "uint16": "u16",
    "bool": "bf16",
    "bf16": "bf16",
    "f32": "f32",
    "i32": "i32",
}
TILE_FORMATS.update(dict.fromkeys(OTHER_INTEGERS, "i32"))
SMALL_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
TILE_FORMATS.update(dict.fromkeys((*SMALL_INTEGERS, *SMALL_FLOATS), "bf16"))


class DataType(str):
    """``T.float16``: a string that can be called to convert, as in ``T.float32(0)``."""

    __slots__ = ()

    def __call__(self, value: Any) -> Any:
        return converted(self, value)

    @property
    def bits(self) -> int:
        digits = "".join(character for character in self.partition("_")[0] if character.isdigit())
        return int(digits) if digits else {"float": 32, "half": 16, "bool": 8}.get(str(self), 32)

    def as_torch(self) -> Any:
        """``torch.float16`` of ``T.float16``."""
        import torch  # pyright: ignore

        return getattr(torch, OTHER_NAMES.get(str(self), str(self)))  # pyright: ignore


def tile_dtype(dtype: Any, reading: Reading | None = None) -> str:
    name = element_name(dtype)
    found = TILE_FORMATS.get(name)
    if found is None:
        remedy = "use float16 (held as float32), 8-bit types (held as bfloat16), bfloat16, float32, int32, uint32 or uint16"
        raise Trouble("TW107", f"tiles cannot hold {name}", help=remedy)
    if name == "float16" and reading is not None:
        reading.note("float16 travels as float32, which keeps its bits", "no unit computes in IEEE half; bfloat16 is faster")
    if name in (*SMALL_INTEGERS, *SMALL_FLOATS) and reading is not None:
        reading.note(f"{name} is held as bfloat16", "bfloat16 has all its values; the tensor takes twice the memory")
    if name in OTHER_INTEGERS and reading is not None:
        reading.note(f"{name} is held as int32", "numbers beyond 32 bits are an error of the call")
    return found


WHOLE = ("trunc", "round", "floor", "ceil", *BIT_OPERATORS)


def promoted(value: Read) -> Expression:
    """A fragment in an expression: 8-bit integers are computed with as float32."""
    return Cast("f32", value) if value.fragment.dtype in SMALL_INTEGERS else value


def fitted(dtype: str, value: Expression) -> Expression:
    """``value`` as it goes into a fragment or tensor of type ``dtype``."""
    if dtype in SMALL_INTEGERS and not _is_whole(value):
        return Apply("trunc", (value,))
    if dtype in SMALL_FLOATS and not _is_of(value, dtype):
        remedy = "no unit does that: store bfloat16, and convert it on the host"
        raise Trouble("TW107", f"a value is rounded to {dtype}", help=remedy)
    return value


def _is_whole(value: Expression) -> bool:
    if isinstance(value, Number):
        return value.value == int(value.value)
    if isinstance(value, Cast):
        return value.dtype == "i32" or _is_whole(value.argument)
    if isinstance(value, Read):
        return value.fragment.dtype.startswith(("int", "uint"))
    if isinstance(value, Apply) and value.op in ("min", "max", "neg", "abs", "where"):
        return all(_is_whole(argument) for argument in value.arguments[value.op == "where" :])
    return isinstance(value, Apply) and value.op in WHOLE


def _is_of(value: Expression, dtype: str) -> bool:
    if isinstance(value, Number):
        return value.value == 0
    return _is_of(value.argument, dtype) if isinstance(value, Cast) else isinstance(value, Read) and value.fragment.dtype == dtype


FLOATS = ("bf16", "f32")


def format_of(value: Expression) -> str | None:
    """The tile format a value is computed in; None of numbers, which take that of their company."""
    if isinstance(value, Read):
        return value.fragment.format
    if isinstance(value, Cast):
        return value.dtype
    if isinstance(value, Product):
        return widest([value.left.format, value.right.format])
    if isinstance(value, Reduction):
        return format_of(value.argument)
    if isinstance(value, Apply):
        known = [found for argument in value.arguments if (found := format_of(argument)) is not None]
        return widest(known) if known else None
    return None


def widest(formats: list[str]) -> str:
    """f32 with anything is f32; integers stay what they are."""
    return next((wide for wide in ("f32", "bf16") if wide in formats), formats[0])


def simplified(value: Expression, target: str) -> Expression:
    """``value`` as it goes into a fragment of format ``target``. Conversions that only say what happens anyway are dropped,
    so that a kernel with promotions written out (as TileLang's own builder writes them) is the same as one without."""
    result = _inner(value)
    while isinstance(result, Cast) and result.dtype == target and _is_float(result.argument) and target in FLOATS:
        result = result.argument
    return result


def _inner(value: Expression) -> Expression:
    if isinstance(value, Cast):
        return _cast(value)
    if isinstance(value, Reduction):
        return Reduction(value.kind, value.dim, _inner(value.argument), value.shape)
    if not isinstance(value, Apply):
        return value
    arguments = tuple(_inner(argument) for argument in value.arguments)
    if value.op == "*" and len(arguments) == 2:
        for factor, other in (arguments, arguments[::-1]):
            if isinstance(factor, Number) and abs(factor.value) == 1 and not isinstance(other, Number):
                return other if factor.value == 1 else Apply("neg", (other,))
    plain = tuple(_promotion(argument, [other for other in arguments if other is not argument]) for argument in arguments)
    return Apply(value.op, plain, value.parameters)


def _cast(value: Cast) -> Expression:
    argument = _inner(value.argument)
    if isinstance(argument, Position) or (isinstance(argument, Number) and value.dtype in FLOATS):
        return argument  # positions are made where they are needed, numbers take the format of their company
    if isinstance(argument, Cast) and (argument.dtype, value.dtype) == ("f32", "bf16") and format_of(argument.argument) == "bf16":
        return argument.argument  # there and back
    return argument if format_of(argument) == value.dtype else Cast(value.dtype, argument)


def _promotion(argument: Expression, others: list[Expression]) -> Expression:
    """Without the widening that its company asks for anyway."""
    if not isinstance(argument, Cast) or argument.dtype != "f32" or format_of(argument.argument) != "bf16":
        return argument
    wide = any(format_of(other) == "f32" and not isinstance(other, Cast) for other in others)
    return argument.argument if wide else argument


def _is_float(value: Expression) -> bool:
    return format_of(value) in (*FLOATS, None)


def converted(dtype: Any, value: Any) -> Any:
    """``T.cast(value, dtype)`` and ``T.float32(value)``."""
    whole = element_name(dtype).startswith(("int", "uint"))
    if not is_symbolic(value):
        return int(value) if whole else float(value)
    if isinstance(value, Index) and whole:
        return value
    if element_name(dtype) in (*SMALL_INTEGERS, *SMALL_FLOATS):
        return fitted(element_name(dtype), expression(value))
    return Cast(tile_dtype(dtype), expression(value))
