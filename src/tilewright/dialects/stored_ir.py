"""A compiled module as plain values, for the cache on disk: quicker to read back than text, whose parser is half a compiler.

Attributes stand in a table, each once and behind what it is made of. Values have numbers in the order of their definition. Only
the ops and attributes of a program after its last pass are known; with any other, a module is not stored.

A package (`tilewright/package.py`) holds text: it is made once, leaves this machine, and is looked at by people and by MLIR's
tools. The cache is read in every process and only by the version that wrote it, and a module it cannot hold is compiled again.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any, TypeAlias, TypeGuard

from xdsl.dialects import arith, builtin, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Data, Operation, ParametrizedAttribute, Region, SSAValue

from tilewright.dialects import attributes, ttkernel
from tilewright.dialects.walking import location, span_of
from tilewright.narrowing import is_tuple

# Where classes of attributes may come from.
HOMES = {module.__name__: module for module in (arith, builtin, attributes, ttkernel)}
ENUMS = {"SignednessAttr": builtin.Signedness, "IntegerOverflowAttr": arith.IntegerOverflowFlag}
PLAIN = (bool, int, float, str)

Named: TypeAlias = "list[tuple[int, str | None]]"  # results, arguments: the number of the type in the table, and the name
Place: TypeAlias = "tuple[str, int, int]"
StoredBlock: TypeAlias = "tuple[Named, list[Stored]]"
Stored: TypeAlias = "tuple[str, list[int], Named, dict[str, int], dict[str, int], Place | None, list[list[StoredBlock]]]"


class NotStoredError(Exception):
    """The module has something that this form has no place for."""


def encoded(module: ModuleOp) -> Any:
    """``module`` as tuples, lists and plain values; None if it has something else."""
    try:
        writer = _Writer()
        op = writer.op(module)
    except NotStoredError:
        return None
    return (writer.table, op)


def decoded(data: Any) -> ModuleOp:
    table, op = data
    module = _Reader(table).op(op)
    assert isinstance(module, ModuleOp)
    return module


@cache
def _op_classes() -> dict[str, type[Operation]]:
    others = (ModuleOp, *func.Func.operations, *scf.Scf.operations, *arith.Arith.operations)
    return {kind.name: kind for kind in (*others, *ttkernel.CALLS.values())}


class _Writer:
    def __init__(self) -> None:
        self.table: list[Any] = []
        self.known: dict[Attribute, int] = {}
        self.values: dict[SSAValue, int] = {}

    def op(self, op: Operation) -> Stored:
        if _op_classes().get(op.name) is not type(op) or op.successors:
            raise NotStoredError(op.name)
        operands = [self.values[operand] for operand in op.operands]
        results = [(self.attribute(result.type), result.name_hint) for result in op.results]
        for result in op.results:
            self.values[result] = len(self.values)
        span = span_of(op)
        place = None if span is None else (span.file, span.line, span.column)
        regions = [[self.block(block) for block in region.blocks] for region in op.regions]
        return (op.name, operands, results, self.named(op.attributes), self.named(op.properties), place, regions)

    def block(self, block: Block) -> StoredBlock:
        arguments = [(self.attribute(argument.type), argument.name_hint) for argument in block.args]
        for argument in block.args:
            self.values[argument] = len(self.values)
        return (arguments, [self.op(op) for op in block.ops])

    def named(self, given: dict[str, Attribute]) -> dict[str, int]:
        return {name: self.attribute(value) for name, value in given.items()}

    def attribute(self, value: Attribute) -> int:
        number = self.known.get(value)
        if number is None:
            home, name = type(value).__module__, type(value).__name__
            if home not in HOMES:
                raise NotStoredError(name)
            content = self.content(value)
            number = self.known[value] = len(self.table)
            self.table.append((home, name, content))
        return number

    def content(self, value: Attribute) -> Any:
        if isinstance(value, ParametrizedAttribute):
            return ("parameters", [self.attribute(parameter) for parameter in value.parameters])
        assert _is_data(value)
        name, data = type(value).__name__, value.data
        if isinstance(data, PLAIN):
            return ("plain", data)
        if name in ENUMS:
            members = [data] if isinstance(data, Enum) else list(data)
            return ("member" if isinstance(data, Enum) else "members", [member.name for member in members])
        if is_tuple(data) and all(isinstance(item, Attribute) for item in data):
            return ("items", [self.attribute(item) for item in data])
        if hasattr(data, "items"):
            return ("named", self.named(dict(data)))
        raise NotStoredError(name)


def _is_data(value: Attribute) -> TypeGuard[Data[Any]]:
    return isinstance(value, Data)


class _Reader:
    def __init__(self, table: list[Any]) -> None:
        self.attributes: list[Attribute] = []
        for home, name, content in table:
            self.attributes.append(self.attribute(home, name, *content))
        self.values: list[SSAValue] = []

    def attribute(self, home: str, name: str, form: str, content: Any) -> Attribute:
        if not issubclass(getattr(HOMES[home], name), Attribute):
            raise NotStoredError(name)
        kind: Any = getattr(HOMES[home], name)
        if form == "parameters":
            return kind.new([self.attributes[number] for number in content])
        if form == "member":
            return kind(ENUMS[name][content[0]])
        if form == "members":
            return kind(tuple(ENUMS[name][each] for each in content))
        if form == "items":
            return kind(self.attributes[number] for number in content)
        return kind(self.named(content) if form == "named" else content)

    def named(self, content: dict[str, int]) -> dict[str, Attribute]:
        return {name: self.attributes[number] for name, number in content.items()}

    def op(self, data: Stored) -> Operation:
        name, operands, results, given, properties, place, regions = data
        op = _op_classes()[name].create(
            operands=[self.values[number] for number in operands],
            result_types=[self.attributes[number] for number, _ in results],
            attributes=self.named(given),
            properties=self.named(properties),
            location=None if place is None else location(*place),
        )
        for result, (_, hint) in zip(op.results, results, strict=True):
            result.name_hint = hint
            self.values.append(result)
        for blocks in regions:
            op.add_region(Region([self.block(block) for block in blocks]))
        return op

    def block(self, data: StoredBlock) -> Block:
        arguments, ops = data
        block = Block(arg_types=[self.attributes[number] for number, _ in arguments])
        for argument, (_, hint) in zip(block.args, arguments, strict=True):
            argument.name_hint = hint
            self.values.append(argument)
        for op in ops:
            block.add_op(self.op(op))
        return block
