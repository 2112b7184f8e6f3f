"""Which conversions of an expression matter. Those that only say what happens anyway are dropped, so that a kernel with
promotions written out (as TileLang's own builder writes them) is the same as one without."""

from __future__ import annotations

from tilewright.frontend.tilelang.symbols import Apply, Cast, Expression, Number, Position, Product, Read, Reduction

FLOATS = ("bf16", "f32")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


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
        return widest([found for argument in value.arguments if (found := format_of(argument)) is not None])
    return None


def widest(formats: list[str]) -> str | None:
    return next((wide for wide in ("f32", "bf16") if wide in formats), formats[0] if formats else None)


def simplified(value: Expression, target: str) -> Expression:
    """``value`` as it goes into a fragment of format ``target``."""
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
