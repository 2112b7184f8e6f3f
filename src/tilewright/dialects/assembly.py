"""What our op classes are made of: shared checks, parsing and printing, so that each class states only what differs."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from typing_extensions import Self
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, LocationAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, IRNode, Operation, Region, SSAValue, Use
from xdsl.irdl import traits_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.attributes import NOWHERE, CBType, int_list, int_value, is_integer_attr, text_value
from tilewright.dialects.tile_op import Param, TileOp
from tilewright.dialects.values import Values, results_of
from tilewright.dialects.walking import uses_of


def expect(op: Operation, holds: bool, rule: str) -> None:
    if not holds:
        raise VerifyException(f"{op.name}: {rule}")


def expect_operands(op: Operation, count: int) -> None:
    if len(op.operands) != count:
        raise VerifyException(f"{op.name}: takes {count} operands, found {len(op.operands)}")


def plain_value(attribute: Attribute) -> Any:
    """The Python value of a number, truth or text attribute."""
    if is_integer_attr(attribute):
        value = attribute.value.data
        return bool(value) if getattr(getattr(attribute.type, "width", None), "data", 0) == 1 else value
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    raise VerifyException(f"not a plain value: {attribute}")


def parameters_of(op: Operation, row: TileOp) -> dict[str, Any]:
    """The row's parameters as this op carries them, defaults filled in."""
    values: dict[str, Any] = {}
    for param in row.params:
        attribute = op.attributes.get(param.name)
        if attribute is None and param.default is None:
            raise VerifyException(f"{op.name}: needs the attribute '{param.name}'")
        values[param.name] = param.default if attribute is None else plain_value(attribute)
    return values


def expect_parameters(op: Operation, row: TileOp) -> None:
    """Those the op carries are there, and of the right kind and size."""
    values = parameters_of(op, row)
    for param in row.params:
        if param.name in op.attributes:
            _expect_value(op, param, values[param.name])


KINDS: dict[str, tuple[type, ...]] = {"float": (float, int), "int": (int,), "bool": (bool, int), "str": (str,)}


def _expect_value(op: Operation, param: Param, value: Any) -> None:
    right = isinstance(value, KINDS[param.kind]) and (param.kind in ("bool", "str") or not isinstance(value, bool))
    expect(op, right, f"{param.name} is {'text' if param.kind == 'str' else 'a number'}")
    low, high = param.low, param.high
    expect(op, low is None or value >= low, f"{param.name} is {low} or more")
    expect(op, high is None or value <= high, f"{param.name} is {high} or less")


Kind = TypeVar("Kind", bound=Operation)
Value = TypeVar("Value")


class ClassTable(Mapping[str, type[Kind]]):
    """Classes by name."""

    def __init__(self, names: Iterable[str], make: Callable[[str], type[Kind]]) -> None:
        self._made: dict[str, type[Kind] | None] = dict.fromkeys(names)
        self._make = make

    def __getitem__(self, name: str) -> type[Kind]:
        known = self._made[name]
        if known is None:
            known = self._made[name] = self._make(name)
        return known

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def parse_type(parser: Parser) -> Attribute:
    """A type; a buffer type may drop its ``!ttl.cb`` as the specification's listings do."""
    kind = parser.parse_optional_type()
    if kind is not None:
        return kind
    return CBType.new(CBType.parse_parameters(parser))


def print_type(printer: Printer, kind: Attribute) -> None:
    if isinstance(kind, CBType):
        kind.print_parameters(printer)
    else:
        printer.print_attribute(kind)


def print_types(printer: Printer, kinds: Sequence[Attribute]) -> None:
    printer.print_list(kinds, lambda kind: print_type(printer, kind))


def parse_types(parser: Parser) -> list[Attribute]:
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_type(parser))


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    first = parser.parse_optional_unresolved_operand()
    if first is None:
        return []
    operands = [first]
    while parser.parse_optional_punctuation(","):
        operands.append(parser.parse_unresolved_operand())
    return operands


def print_groups(printer: Printer, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
    """`` ins(%a, %b : types) outs(%o : types)``"""
    for word, values in (("ins", inputs), ("outs", outputs)):
        printer.print_string(f" {word}(")
        printer.print_list(values, printer.print_ssa_value)
        if values:
            printer.print_string(" : ")
            print_types(printer, [value.type for value in values])
        printer.print_string(")")


def parse_groups(parser: Parser) -> list[list[SSAValue]]:
    groups: list[list[SSAValue]] = []
    for word in ("ins", "outs"):
        parser.parse_keyword(word)
        with parser.in_parens():
            unresolved = parse_operands(parser)
            if parser.parse_optional_punctuation(":"):
                types = parse_types(parser)
            else:
                types = [parser_value_type(parser, operand) for operand in unresolved]
            groups.append(list(parser.resolve_operands(unresolved, types, parser.pos)))
    return groups


def print_attributes(printer: Printer, attributes: dict[str, Attribute]) -> None:
    if not attributes:
        return
    printer.print_string("{")
    for index, (key, value) in enumerate(attributes.items()):
        if index:
            printer.print_string(", ")
        printer.print_identifier_or_string_literal(key)
        if not isinstance(value, UnitAttr):
            printer.print_string(" = ")
            printer.print_attribute(value)
    printer.print_string("}")


DST_REG = "dst_reg"  # the last operand is the register that the result lies in


def parse_attributes(parser: Parser) -> dict[str, Attribute]:
    """``{key = value}``; the listings also write ``key=value, key=value`` and ``(key=value)`` after the op's name."""
    if at_punctuation(parser, "{"):
        return {} if _starts_register(parser) else dict(parser.parse_optional_attr_dict())
    found: dict[str, Attribute] = {}
    if _is_entry(parser, "("):
        parser.parse_punctuation("(")
        found = _parse_entries(parser)
        parser.parse_punctuation(")")
    elif _is_entry(parser):
        found = _parse_entries(parser)
    return found


def parse_register(parser: Parser) -> UnresolvedOperand | None:
    """``{dst_reg = %d}``"""
    if not (at_punctuation(parser, "{") and _starts_register(parser)):
        return None
    with parser.in_braces():
        parser.parse_keyword(DST_REG)
        parser.parse_punctuation("=")
        return parser.parse_unresolved_operand()


def at_punctuation(parser: Parser, text: str) -> bool:
    return parser._current_token.text == text  # pyright: ignore[reportPrivateUsage]


def _parse_entries(parser: Parser) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    while True:
        key = parser.parse_identifier()
        if key in found:
            parser.raise_error(f"'{key}' is given twice")
        parser.parse_punctuation("=")
        found[key] = parser.parse_attribute()
        if not parser.parse_optional_punctuation(","):
            return found


def _starts_register(parser: Parser) -> bool:
    def matches() -> bool:
        parser.parse_punctuation("{")
        named = parser.parse_optional_keyword(DST_REG) is not None
        return named and parser.parse_optional_punctuation("=") is not None

    return _looks_like(parser, matches)


def _is_entry(parser: Parser, before: str = "") -> bool:
    """Whether ``key =`` comes next, and not the name of the next op."""

    def matches() -> bool:
        if before and parser.parse_optional_punctuation(before) is None:  # pyright: ignore[reportArgumentType]
            return False
        return parser.parse_optional_identifier() is not None and parser.parse_optional_punctuation("=") is not None

    return _looks_like(parser, matches)


def _looks_like(parser: Parser, matches: Callable[[], object]) -> bool:
    """Looks ahead: whatever was read is read again."""
    state = parser._parser_state  # pyright: ignore[reportPrivateUsage]
    saved = (state.current_token, state.lexer.pos)
    try:
        return bool(matches())
    finally:
        state.current_token, state.lexer.pos = saved


class InheritedKind(ABCMeta):
    """``isinstance`` by inheritance alone.

    xDSL's nodes are abstract base classes. Asking whether an op is one of those may look at all their subclasses, and passes ask
    thousands of times.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


ONE_INDEX = (IndexType, "gives one index")


class Operand:
    """An operand under its name: ``target = Operand(1)`` in an op class."""

    __slots__ = ("kind", "place", "rule")

    def __init__(self, place: int, kind: type[Attribute] | None = None, rule: str = "") -> None:
        """With the type that it must have and the words for that, if every op of the class has the operand."""
        self.place, self.kind, self.rule = place, kind, rule

    def __set_name__(self, owner: type[PlainOp], name: str) -> None:
        if self.kind is not None:
            owner.TYPED = (*owner.TYPED, self)

    @overload
    def __get__(self, op: None, kind: type[Operation]) -> Self: ...
    @overload
    def __get__(self, op: Operation, kind: type[Operation]) -> SSAValue: ...
    def __get__(self, op: Operation | None, kind: type[Operation]) -> Self | SSAValue:
        return self if op is None else op._operands[self.place]  # pyright: ignore[reportPrivateUsage]

    def __set__(self, op: PlainOp, value: SSAValue) -> None:
        op.replace_operand(self.place, value)


if TYPE_CHECKING:

    class Field(Generic[Value]):
        """What an attribute says, under a name of the op: ``k = integer("k")`` in an op class."""

        def __init__(self, read: Callable[[Operation], Value]) -> None: ...
        @overload
        def __get__(self, op: None, kind: type[Operation]) -> Self: ...
        @overload
        def __get__(self, op: Operation, kind: type[Operation]) -> Value: ...
        def __get__(self, op: Operation | None, kind: type[Operation]) -> Self | Value: ...

else:
    Field = property  # which asks the function itself: passes read these more often than anything else


def integer(key: str, default: int | None = None) -> Field[int]:
    def read(op: Operation) -> int:
        found = op.attributes.get(key)
        return found.value.data if type(found) is IntegerAttr else int_value(op, key, default)  # pyright: ignore

    return Field(read)


def integers(key: str) -> Field[tuple[int, ...]]:
    return Field(partial(int_list, key=key))


def text(key: str, default: str = "") -> Field[str]:
    return Field(partial(text_value, key=key, default=default))


def mark(key: str) -> Field[bool]:
    """Whether the attribute is there."""
    return Field(lambda op: key in op.attributes)


class Operands(Values):
    """The operands of an op. xDSL makes a view whenever they are asked for; passes ask ten thousand times per kernel.

    The op is not kept here: it would be in a cycle with its operands, for the garbage collector to look at.
    """

    __slots__ = ()

    def __setitem__(self, place: int, value: SSAValue) -> None:
        use = self[place].first_use
        while use is not None:
            op = use.operation
            if use.index == place and op._operands is self:  # pyright: ignore[reportPrivateUsage]
                assert isinstance(op, PlainOp)
                op.replace_operand(place, value)
                return
            use = use._next_use  # pyright: ignore[reportPrivateUsage]
        raise AssertionError("these operands are no longer those of an op")


class PlainOp(Operation, metaclass=InheritedKind):
    """An op that is a plain class, not an IRDL definition: these are seven times cheaper to define and to create.

    What passes ask of every op is answered in the way that takes least time: operands are a tuple, and an op equals itself alone.
    """

    traits = traits_def()
    TAKES: ClassVar[int | None] = None  # operands, if every op of the class has as many
    TYPED: ClassVar[tuple[Operand, ...]] = ()
    GIVES: ClassVar[tuple[type[Attribute], str] | None] = None  # the type of the one result, and the words for that

    def verify_(self) -> None:
        """What the class states about operands and result; other rules come behind."""
        if self.TAKES is not None:
            expect_operands(self, self.TAKES)
        for operand in self.TYPED:
            expect(self, isinstance(self.operands[operand.place].type, operand.kind or Attribute), operand.rule)
        if self.GIVES is not None:
            kind, words = self.GIVES
            expect(self, len(self.results) == 1 and isinstance(self.results[0].type, kind), words)

    def _set_operands(self, operands: Sequence[SSAValue]) -> None:
        for operand, use in zip(self._operands, self._operand_uses, strict=True):
            operand.remove_use(use)
        uses = tuple([Use(self, place) for place in range(len(operands))])
        for operand, use in zip(operands, uses, strict=True):
            operand.add_use(use)
        self._operand_uses, self._operands = uses, Operands(operands)

    if not TYPE_CHECKING:  # which may take operands for the view that xDSL gives: it can do the same
        operands = property(attrgetter("_operands"), _set_operands)
        __eq__, __hash__ = object.__eq__, object.__hash__

    def is_ancestor(self, op: IRNode) -> bool:
        """An op without regions is above nothing: xDSL asks this of every op it inserts, and goes up to the module."""
        return op is self or (bool(self.regions) and super().is_ancestor(op))

    def replace_operand(self, place: int, value: SSAValue) -> None:
        use = self._operand_uses[place]
        operands = list(self._operands)
        operands[place].remove_use(use)
        value.add_use(use)
        operands[place] = value
        self._operands = Operands(operands)

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = {},
        attributes: Mapping[str, Attribute] = {},
        location: LocationAttr | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        """As xDSL does it, without the steps for what our ops seldom have: those cost as much as all others."""
        if properties or successors or regions:
            made = super().create(
                operands=operands,
                result_types=result_types,
                properties=properties,
                attributes=attributes,
                location=location,
                successors=successors,
                regions=regions,
            )
            made.results = Values(made.results)
            return made
        op = cls.__new__(cls)
        if operands:
            op._operand_uses = uses_of(op, operands)
            op._operands = Operands(operands)
        if result_types:
            op.results = Values(results_of(op, result_types))
        op.properties, op.attributes, op.location = {}, dict(attributes), location or NOWHERE
        return op

    def print_head(self, printer: Printer) -> None:
        """`` %a, %b {attributes}``"""
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        if self.attributes:
            printer.print_string(" ")
            print_attributes(printer, self.attributes)


class FlatOp(PlainOp):
    """``name %a, %b {attributes} : type, type -> type``

    The specification's listings leave types out: those of operands are known where they are defined, and an op whose
    `inferred_types` says what it gives needs none. They also write ``{dst_reg = %d}``, a value among the attributes: it is kept
    as the last operand, and the attribute says so.
    """

    TAKES_OPERANDS: ClassVar[bool] = True  # no: a value at the start of the next line is not taken for one

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        """What the op gives where the text does not say. ValueError with the reason if it cannot be known."""
        return () if cls.TAKES_OPERANDS or cls.GIVES is None else [cls.GIVES[0]()]

    def print(self, printer: Printer) -> None:
        self.print_head(printer)
        if not self.operands and not self.results:
            return
        printer.print_string(" : ")
        print_types(printer, [operand.type for operand in self.operands])
        if self.results:
            printer.print_string(" -> " if self.operands else "")
            print_types(printer, [result.type for result in self.results])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        unresolved = parse_operands(parser) if cls.TAKES_OPERANDS else []
        attributes = parse_attributes(parser)
        register = parse_register(parser)
        if register is not None:
            unresolved.append(register)
            attributes[DST_REG] = UnitAttr()
        types: list[Attribute] = []
        result_types: list[Attribute] | None = None
        if parser.parse_optional_punctuation(":"):
            types = parse_types(parser)
            if not unresolved:
                types, result_types = [], types
            elif parser.parse_optional_punctuation("->"):
                result_types = parse_types(parser)
            else:
                result_types = []
        elif unresolved:
            types = [parser_value_type(parser, operand) for operand in unresolved]
        if register is not None and len(types) == len(unresolved) - 1:
            types.append(IndexType())
        operands = parser.resolve_operands(unresolved, types, parser.pos)
        if result_types is None:
            try:
                result_types = list(cls.inferred_types(operands, attributes))
            except ValueError as error:
                parser.raise_error(f"{cls.name}: give its types: {error}", start - 1)
        return cls.create(operands=operands, result_types=result_types, attributes=attributes)


class BareOp(FlatOp):
    """``name {attributes}``: without operands, so that a value at the start of the next line is not taken for one."""

    TAKES = 0

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.create(attributes=parser.parse_optional_attr_dict())


class TileMathOp(PlainOp):
    """``%r = ttl.tile_add %a, %b {dst_idx = 2 : i32} : type``, one type when all are equal."""

    def print(self, printer: Printer) -> None:
        self.print_head(printer)
        printer.print_string(" : ")
        result = self.results[0].type
        if all(operand.type == result for operand in self.operands):
            printer.print_attribute(result)
            return
        print_types(printer, [operand.type for operand in self.operands])
        printer.print_string(" -> ")
        printer.print_attribute(result)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        types: list[Attribute] = []
        result: Attribute | None = None
        if not parser.parse_optional_punctuation(":"):
            if not unresolved:
                parser.raise_error(f"{cls.name}: give its type")
            types = [parser_value_type(parser, unresolved[0])]
        else:
            types = parse_types(parser)
            if parser.parse_optional_punctuation("->"):
                result = parser.parse_type()
        if result is None:
            result = types[-1]
            types = [result] * len(unresolved)
        operands = parser.resolve_operands(unresolved, types, parser.pos)
        return cls.create(operands=operands, result_types=[result], attributes=attributes)


def parser_value_type(parser: Parser, operand: UnresolvedOperand) -> Attribute:
    """Type of a value already defined: the specification's shorter listings leave tile types out."""
    known: dict[str, Sequence[SSAValue]] = {name: tuple(values) for name, values in parser.ssa_values.items()}
    values = known.get(operand.operand_name)
    if not values or operand.index >= len(values):
        parser.raise_error(f"give the types of this op: %{operand.operand_name} is not defined yet")
    return values[operand.index].type


class CallOp(PlainOp):
    """``ttkernel.copy_tile(%cb, %i, %dst) {attributes} : (types) -> (types)``

    The listings end the operands of ``pack_tile`` with ``false`` or ``true``: whether it packs out of order.
    """

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(")")
        if self.attributes:
            printer.print_string(" ")
            print_attributes(printer, self.attributes)
        printer.print_string(" : ")
        printer.print_operation_type(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved: list[UnresolvedOperand] = []
        out_of_order = False
        with parser.in_parens():
            operand = parser.parse_optional_unresolved_operand()
            while operand is not None:
                unresolved.append(operand)
                if parser.parse_optional_punctuation(",") is None:
                    break
                operand = parser.parse_optional_unresolved_operand()
                if operand is None:
                    out_of_order = parser.parse_boolean()
        attributes = parser.parse_optional_attr_dict()
        if out_of_order:
            attributes["out_of_order"] = UnitAttr()
        parser.parse_punctuation(":")
        kind = parser.parse_function_type()
        operands = parser.resolve_operands(unresolved, kind.inputs.data, parser.pos)
        return cls.create(operands=operands, result_types=list(kind.outputs.data), attributes=attributes)
