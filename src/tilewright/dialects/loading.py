"""Loads xDSL in less time, and so that passes ask it in less time.

Importing it takes as long as everything else that a first compilation loads: half of that is dataclasses, a fifth the assembly
formats of ops that nobody prints. What passes ask of its nodes thousands of times, it answers in Python: what kind a node is,
its hash, a region or operand under its name. Here each of these becomes the answer that Python itself gives.
"""

from __future__ import annotations

import gc
import sys
from abc import ABCMeta
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from tilewright.records import defined_quickly

NODES = ("xdsl.ir.core", "xdsl.irdl.operations")
FIRST = "xdsl.dialects.builtin"
FROZEN_BY_PYTHON = 1000  # more than Python freezes itself (3.12: 375 objects); somebody who freezes a program freezes more
PARTS = (FIRST, "xdsl.dialects.func", "xdsl.dialects.scf", "xdsl.dialects.arith", "xdsl.dialects.tensor")
OURS = "tilewright.dialects.attributes"  # xDSL makes dataclasses of them


class InheritedKind(ABCMeta):
    """``isinstance`` by inheritance alone.

    xDSL's nodes are abstract base classes. Asking whether an op is one of those may look at all their subclasses, and passes ask
    thousands of times.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def load_xdsl() -> None:
    """The parts that every compilation and every simulation needs; whoever is about to load the compiler calls this first."""
    if FIRST in sys.modules:
        return
    with collection_paused(), defined_quickly("xdsl", "tilewright.dialects"), definitions_read_quickly():
        _quick_nodes()  # first: classes that derive from them are as they are
        for part in (*PARTS, OURS):
            import_module(part)


def _quick_nodes() -> None:
    """Nodes are told apart and looked up as Python does it: nothing registers as one, and each equals itself alone."""
    core, definitions = (vars(import_module(name)) for name in NODES)
    for kind in [each for each in (*core.values(), definitions["IRDLOperation"]) if type(each) is ABCMeta]:
        if kind.__module__ in NODES:
            kind.__class__ = InheritedKind
    for kind in (core["SSAValue"], core["_IRNode"], definitions["IRDLOperation"]):
        kind.__eq__, kind.__hash__ = object.__eq__, object.__hash__


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """No cyclic collection inside: IR is all cycles and stays alive, so a collection finds nothing and costs its size.

    What was loaded inside stays for good: it becomes old without a collection that looks at it first.
    """
    if not gc.isenabled():
        yield
        return
    is_loaded = FIRST in sys.modules
    gc.disable()
    try:
        yield
    finally:
        if not is_loaded and FIRST in sys.modules and gc.get_freeze_count() < FROZEN_BY_PYTHON:
            gc.freeze()
            gc.unfreeze()
        gc.enable()


@contextmanager
def definitions_read_quickly() -> Generator[None, None, None]:
    """Assembly formats of ops that are defined inside are read when such an op is first printed or parsed, and operands, results
    and regions that always stand at the same place are taken from there."""
    operations: Any = import_module("xdsl.irdl.operations")
    original = operations.get_accessors_from_op_def
    quicker = _quick_accessors(operations)

    def accessors(definition: Any, custom_verify: Any) -> dict[str, Any]:
        text = definition.assembly_format
        definition.assembly_format = None
        try:
            found = original(definition, custom_verify)
        finally:
            definition.assembly_format = text
        found = {name: quicker(value) for name, value in found.items()}
        return found if text is None else found | _by_format(definition)

    operations.get_accessors_from_op_def = accessors
    try:
        yield
    finally:
        operations.get_accessors_from_op_def = original


def _quick_accessors(operations: Any) -> Callable[[Any], Any]:
    """Gives for an accessor one that does the same: xDSL's looks up what it is about, and makes a view of all operands."""
    original: Any = operations.BeforeVariadicSingleAccessor
    places = operations.VarIRConstruct

    class Operand(original):
        def __get__(self, op: Any, kind: Any = None) -> Any:
            return op._operands[self.idx]

    class Result(original):
        def __get__(self, op: Any, kind: Any = None) -> Any:
            return op.results[self.idx]

    class Region(original):
        def __get__(self, op: Any, kind: Any = None) -> Any:
            return op.regions[self.idx]

    quick = {places.OPERAND: Operand, places.RESULT: Result, places.REGION: Region}

    def quicker(value: Any) -> Any:
        if type(value) is not original or value.construct not in quick:
            return value
        return quick[value.construct](value.construct, value.idx)

    return quicker


def _by_format(definition: Any) -> dict[str, Any]:
    """How ops of this definition are parsed and printed."""

    @cache
    def program() -> Any:
        from xdsl.irdl.declarative_assembly_format import FormatProgram

        return FormatProgram.from_str(definition.assembly_format, definition)

    def parse(cls: Any, parser: Any) -> Any:
        return program().parse(parser, cls)

    def print_with_format(self: Any, printer: Any) -> None:
        program().print(printer, self)

    return {"parse": classmethod(parse), "print": print_with_format}
