"""Values that stand for what only the device knows while a kernel is read: integers, elements, fragments, tensors.

The reader evaluates the kernel's Python expressions as they stand; these classes overload the operators and record what was
asked for. None of them has a truth value: ``if`` on one is handled by the reader, anything else is an error at its line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.dtypes import COMPUTED_INTEGERS
from tilewright.integers import Leaf, Node, Value, is_dynamic, is_truth, make
from tilewright.narrowing import class_of
from tilewright.records import record


class Trouble(Exception):
    """An error found while a kernel is read, before it is known where: the reader adds the place. ``word`` is the name the caret
    should point at, if the line has it."""

    def __init__(self, code: str, message: str, *, help: str = "", word: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.help, self.word = code, message, help, word


SAME, TRANSPOSED, COLUMN_FORM, ROW_FORM, ALONG = "same", "transposed", "column", "row", "along"  # forms of a `Read`


def _operator(symbol: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """``left symbol right`` as a method of the left side, and of the right one."""
    return lambda left, right: combine(symbol, left, right), lambda right, left: combine(symbol, left, right)


class Arithmetic:
    """Operators of everything symbolic; `combine` decides what they give."""

    __slots__ = ()
    __hash__ = object.__hash__
    __add__, __radd__ = _operator("+")
    __sub__, __rsub__ = _operator("-")
    __mul__, __rmul__ = _operator("*")
    __truediv__, __rtruediv__ = _operator("/")
    __floordiv__, __rfloordiv__ = _operator("//")
    __mod__, __rmod__ = _operator("%")
    __pow__, __rpow__ = _operator("**")
    __and__, __rand__ = _operator("&")
    __or__, __ror__ = _operator("|")
    __xor__, __rxor__ = _operator("^")
    __lshift__, __rlshift__ = _operator("<<")
    __rshift__, __rrshift__ = _operator(">>")
    __lt__, __gt__ = _operator("<")[0], _operator(">")[0]
    __le__, __ge__ = _operator("<=")[0], _operator(">=")[0]
    __eq__, __ne__ = _operator("==")[0], _operator("!=")[0]

    def __neg__(self) -> Any:
        return combine("*", self, -1) if isinstance(self, Index) else Apply("neg", (expression(self),))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return Apply("abs", (expression(self),))

    def __invert__(self) -> Any:
        return negated(self)

    def astype(self, dtype: Any) -> Any:
        """``x.astype("bfloat16")``, the same as ``T.cast(x, "bfloat16")``."""
        from tilewright.frontend.tilelang.dtypes import converted

        return converted(dtype, self)

    def __bool__(self) -> bool:
        remedy = "choose with T.if_then_else(condition, a, b), or branch with an if statement of its own"
        raise Trouble("TW007", "a value that only the device knows is used as a Python truth", help=remedy)

    def _as_number(self) -> Any:
        raise Trouble("TW007", "a value that only the device knows is used where Python needs a number", help="use a constant")

    __index__ = __float__ = _as_number


class Index(Arithmetic):
    """An integer or truth that differs per core, block or iteration."""

    __slots__ = ("value",)

    def __init__(self, value: Leaf | Node) -> None:
        self.value = value


class Expression(Arithmetic):
    """A value per element, or of a whole fragment."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class Number(Expression):
    value: float


@dataclass(frozen=True, eq=False, slots=True)
class Read(Expression):
    """A fragment. ``indices`` is None for the whole of it; ``form`` is how it lies in the target, once that is known."""

    fragment: Fragment
    indices: tuple[Value, ...] | None = None
    form: str = ""  # same, transposed, column, row


@dataclass(frozen=True, eq=False, slots=True)
class Position(Expression):
    """An integer that depends on the element: ``bx * 64 + i``."""

    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Expression):
    """An operator (``+``, ``<``) or a row of the op table on expressions."""

    op: str
    arguments: tuple[Expression, ...]
    parameters: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Cast(Expression):
    dtype: str
    argument: Expression


@dataclass(frozen=True, eq=False, slots=True)
class Product(Expression):
    """``left @ right``; each may be transposed."""

    left: Fragment
    right: Fragment
    transpose_left: bool
    transpose_right: bool


@dataclass(frozen=True, eq=False, slots=True)
class Reduction(Expression):
    kind: str  # sum or max
    dim: int
    argument: Expression
    shape: tuple[int, ...]  # of the argument


@dataclass(frozen=True, eq=False, slots=True)
class Total(Expression):
    """What a vector was reduced to: one number, which a vector of one tile repeats."""

    repeated: Fragment


@dataclass(eq=False, slots=True)
class Fragment(Arithmetic):
    """Memory of one block: a fragment, a shared or a local buffer. All are blocks of tiles here."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # as the user wrote it
    format: str  # of the tiles
    scope: str
    place: Any
    ident: int

    @property
    def is_vector(self) -> bool:
        return len(self.shape) == 1 or 1 in self.shape

    @property
    def length(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, key: Any) -> Any:
        from tilewright.frontend.tilelang.reading import current

        return current("an element of a fragment").read_fragment(self, key)

    def __repr__(self) -> str:
        return f"fragment '{self.name}' {self.shape}"


@record(eq=False)
class TensorData:
    """``A.data``: there are no pointers, but ``T.Tensor(shape, dtype, A.data)`` is the tensor in another shape."""

    tensor: Tensor


@dataclass(eq=False, slots=True)
class Tensor(Arithmetic):
    """A tensor argument."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    format: str
    index: int
    made: str = ""  # what the launcher fills it with; empty for the user's tensors
    origin: Any = None  # of what it holds of another tensor: see `tilelang_tensors`

    def __getitem__(self, key: Any) -> Any:
        from tilewright.frontend.tilelang.reading import current

        return current("an element of a tensor").read_tensor(self, key)

    @property
    def data(self) -> Any:
        return TensorData(self)

    def __repr__(self) -> str:
        return f"tensor '{self.name}' {self.shape}"


@record(eq=False)
class Corner(Arithmetic):
    """``A[by * 64, bx * 64]``: where a copy starts, and the other side says how much; or, in an expression, that element."""

    tensor: Tensor
    starts: tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class TensorElement(Expression):
    """An element of a tensor inside ``T.Parallel``."""

    tensor: Tensor
    indices: tuple[Value, ...]


def children(value: Expression) -> tuple[Expression, ...]:
    if isinstance(value, Apply):
        return value.arguments
    return (value.argument,) if isinstance(value, (Cast, Reduction)) else ()


def rebuilt(value: Expression, each: Callable[[Expression], Expression]) -> Expression:
    """The same expression on what ``each`` makes of its children."""
    if isinstance(value, Apply):
        return Apply(value.op, tuple(each(argument) for argument in value.arguments), value.parameters)
    if isinstance(value, Cast):
        return Cast(value.dtype, each(value.argument))
    return Reduction(value.kind, value.dim, each(value.argument), value.shape) if isinstance(value, Reduction) else value


def nodes(value: Expression) -> Iterator[Expression]:
    """The expression and all it is made of, from left to right."""
    yield value
    for child in children(value):
        yield from nodes(child)


def whole(fragment: Fragment) -> Read:
    return Read(fragment, None, ALONG if fragment.is_vector else SAME)


def plain(value: Value) -> Any:
    """A Python number where it is known, else an `Index`."""
    return Index(value) if isinstance(value, (Leaf, Node)) else value


def raw(value: Any) -> Value:
    return value.value if isinstance(value, Index) else value


def is_integer(value: Any) -> bool:
    return isinstance(value, Index) or (hasattr(class_of(value), "__index__") and not isinstance(value, Arithmetic))


def expression(value: Any) -> Expression:
    """Anything that can stand in an expression, as one."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Fragment):
        return Read(value)
    if isinstance(value, Index):
        return Position(value.value)
    if isinstance(value, Corner):
        return TensorElement(value.tensor, value.starts)
    if isinstance(value, (int, float)) or hasattr(class_of(value), "__float__"):
        return Number(float(value))
    if isinstance(value, Tensor):
        remedy = "copy it to a fragment first: T.copy(tensor[…], fragment)"
        raise Trouble("TW004", f"tensor '{value.name}' in an expression", help=remedy)
    raise Trouble("TW004", f"{value!r} in an expression of the device", help="use fragments, elements and numbers")


PYTHON: dict[str, Callable[[float, float], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.copysign(math.inf, a),
    "**": lambda a, b: a**b,
}
BIT_OPERATORS = ("&", "|", "^", "<<", ">>")
ROW_OF = {"//": "floordiv", "%": "remainder"}


def combine(symbol: str, left: Any, right: Any) -> Any:
    """``left symbol right``."""
    if symbol in BIT_OPERATORS:
        return _combine_bits(symbol, left, right)
    if is_integer(left) and is_integer(right) and symbol not in ("/", "**"):
        if symbol in ("and", "or") and not (is_truth(raw(left)) and is_truth(raw(right))):
            raise Trouble("TW003", f"'{symbol}' of integers", help="it joins conditions only; bits are joined by & and |")
        return plain(make(symbol, raw(left), raw(right)))
    first, second = expression(left), expression(right)
    if isinstance(first, Number) and isinstance(second, Number) and symbol in PYTHON:
        return Number(PYTHON[symbol](first.value, second.value))
    if symbol == "and":
        return Apply("*", (as_mask(first), as_mask(second)))
    if symbol == "or":
        return Apply("max", (as_mask(first), as_mask(second)))
    return Apply(ROW_OF.get(symbol, symbol), (first, second))


def as_mask(value: Expression) -> Expression:
    """A condition as 1.0 and 0.0."""
    if isinstance(value, Position) and is_truth(value.value):
        return value
    if isinstance(value, Number):
        return Number(float(value.value != 0))
    return value


def if_then_else(condition: Any, when_true: Any, when_false: Any, *_span: Any) -> Any:
    if not is_symbolic(condition):
        return when_true if condition else when_false
    floats = isinstance(when_true, float) or isinstance(when_false, float)
    if isinstance(condition, Index) and is_integer(when_true) and is_integer(when_false) and not floats:
        return plain(make("select", condition.value, raw(when_true), raw(when_false)))
    return Apply("where", (expression(condition), expression(when_true), expression(when_false)))


def negated(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, Index):
        if not is_truth(value.value):
            raise Trouble("TW003", "'not' (or ~) of an integer", help="compare it: x == 0")
        return plain(make("not", value.value))
    return Apply("==", (expression(value), Number(0.0)))


def is_symbolic(value: Any) -> bool:
    return isinstance(value, Arithmetic)


def is_dynamic_truth(value: Any) -> bool:
    return isinstance(value, Index) and is_dynamic(value.value) and is_truth(value.value)


CONDITIONS = {"&": "and", "|": "or"}
WHOLE_FORMATS = COMPUTED_INTEGERS
KEEPS_WHOLE = ("+", "-", "*", "min", "max", "abs", "neg", *BIT_OPERATORS)


def _combine_bits(symbol: str, left: Any, right: Any) -> Any:
    """Bits of 8-bit integers, which are held as bfloat16, are looked at in int32. ``&`` and ``|`` of all else join conditions."""
    if is_integer(left) and is_integer(right):
        return _of_indices(symbol, left, right)
    first, second = expression(left), expression(right)
    if symbol in CONDITIONS and not (_holds_integers(first) or _holds_integers(second)):
        return combine(CONDITIONS[symbol], left, right)
    return Apply(symbol, (_as_integer(symbol, first), _as_integer(symbol, second)))


def _of_indices(symbol: str, left: Any, right: Any) -> Any:
    """Integers that only the device knows are counted with, not looked at: shifts and masks are products and remainders."""
    first, second = raw(left), raw(right)
    if symbol in CONDITIONS and is_truth(first) and is_truth(second):
        return plain(make(CONDITIONS[symbol], first, second))
    if isinstance(second, int) and second >= 0 and symbol in ("<<", ">>"):
        return plain(make("*" if symbol == "<<" else "//", first, 1 << second))
    if symbol == "&":
        for value, mask in ((first, second), (second, first)):
            if isinstance(mask, int) and mask >= 0 and mask & (mask + 1) == 0:
                return plain(make("%", value, mask + 1))
    raise Trouble("TW003", f"{symbol} of these integers", help="shift by a number, or mask the lowest bits: i >> 2, i & 3")


def _as_integer(symbol: str, value: Expression) -> Expression:
    if isinstance(value, Number):
        if not float(value.value).is_integer():
            raise Trouble("TW107", f"{symbol} with {value.value}", help="bits are those of whole numbers")
        return value
    if isinstance(value, Position):
        return Cast("i32", value)
    if not _holds_integers(value):
        raise Trouble("TW107", f"{symbol} of numbers that are no integers", help="convert them first: x.astype('int32')")
    return value if _format(value) in WHOLE_FORMATS else Cast("i32", value)


def _holds_integers(value: Expression) -> bool:
    if isinstance(value, Apply):
        return value.op in KEEPS_WHOLE and all(isinstance(each, Number) or _holds_integers(each) for each in value.arguments)
    if isinstance(value, Cast):
        return value.dtype in WHOLE_FORMATS
    return getattr(_holder(value), "dtype", "").startswith(("int", "uint"))


def _format(value: Expression) -> str:
    """The tile format of integers; 8-bit ones have a float's."""
    if isinstance(value, Cast):
        return value.dtype
    if isinstance(value, Apply):
        return next((found for each in value.arguments if (found := _format(each))), "")
    return getattr(_holder(value), "format", "")


def _holder(value: Expression) -> Fragment | Tensor | None:
    """What an element is of."""
    return value.fragment if isinstance(value, Read) else value.tensor if isinstance(value, TensorElement) else None
