"""Whole programs as text: ``ttl.program`` or ``ttl.kernel`` with threads, and the resources they share.

These ops exist for text. ``passes/ir_text/program_forms.py`` turns each thread into a function that the pipeline understands.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import Self
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure

from tilewright import hardware
from tilewright.dialects.assembly import FlatOp, PlainOp, parse_operands, parse_types, print_attributes, print_types
from tilewright.dialects.attributes import text_value
from tilewright.dialects.ir_types import AccessorType, CBType, PipeType, SliceType
from tilewright.dialects.ttl_buffers import CORE_RANGES
from tilewright.dialects.ttl_network import nested_value
from tilewright.dialects.verify import expect, expect_operands


class RegionOp(PlainOp):
    """``name(%a, %b : type, type) attributes {…} { … }``; operands and attributes may be left out."""

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string("(")
            printer.print_list(self.operands, printer.print_ssa_value)
            printer.print_string(" : ")
            print_types(printer, [operand.type for operand in self.operands])
            printer.print_string(")")
        if self.attributes:
            printer.print_string(" attributes ")
            print_attributes(printer, self.attributes)
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands: list[Any] = []
        if parser.parse_optional_punctuation("("):
            unresolved = parse_operands(parser)
            parser.parse_punctuation(":")
            operands = list(parser.resolve_operands(unresolved, parse_types(parser), parser.pos))
            parser.parse_punctuation(")")
        given = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region()
        return cls.create(operands=operands, attributes=dict(given.data) if given else {}, regions=[region])


class _WholeOp(RegionOp):
    traits = traits_def(IsolatedFromAbove(), NoTerminator())

    def verify_(self) -> None:
        grid = self.attributes.get("grid")
        sizes = nested_value(grid) if isinstance(grid, ArrayAttr) else ()
        expect(self, 1 <= len(sizes) <= 3 and all(size >= 1 for size in sizes), "needs grid, one to three sizes")
        expect(self, text_value(self, "memory_space", "L1") in ("L1", "DRAM"), "memory_space is L1 or DRAM")

    @property
    def grid(self) -> tuple[int, ...]:
        return nested_value(self.attributes["grid"])


class ProgramOp(_WholeOp):
    """``ttl.program attributes {grid = [8, 8], memory_space = "L1", tiled = true} { … }``: what ``Program(…)(…)`` stands for."""

    name = "ttl.program"


class KernelOp(_WholeOp):
    """The same, with ``block_factors``, ``compile_time_args`` and ``compute_config``; also inside a program."""

    name = "ttl.kernel"


class _ThreadOp(RegionOp):
    traits = traits_def(NoTerminator())

    def verify_(self) -> None:
        arguments = self.regions[0].block.args if self.regions[0].blocks else ()
        expect(self, len(arguments) in (0, len(self.operands)), "the body has one argument per operand, or none")
        parent = self.parent_op()
        expect(self, isinstance(parent, (ProgramOp, KernelOp)), "stands in ttl.program or ttl.kernel")


class ComputeThreadOp(_ThreadOp):
    """Arithmetic on blocks."""

    name = "ttl.compute_thread"


class DataMovementThreadOp(_ThreadOp):
    """Transfers, pipes and semaphores."""

    name = "ttl.datamovement_thread"


def are_ranges(given: Attribute | None) -> bool:
    """Rectangles of cores: the step may be left out."""
    if not isinstance(given, ArrayAttr) or not given.data:
        return given is None
    return all(isinstance(rectangle, ArrayAttr) and all(map(_is_range, rectangle)) for rectangle in given)


def _is_range(given: Attribute) -> bool:
    numbers = [item.value.data for item in given if isinstance(item, IntegerAttr)] if isinstance(given, ArrayAttr) else []
    return len(numbers) in (2, 3) and 0 <= numbers[0] < numbers[1] and min(numbers[2:], default=1) > 0


class CreateCBOp(FlatOp):
    """``%c = ttl.create_cb {shape = [1, 1], element_type = !ttcore.tile<…>, buffer_factor = 2, memory_space = "L1"} : <…>``

    ``buffer_index``, ``page_size`` and ``core_ranges`` may be given: the cores that have the buffer, as a list of rectangles with
    ``[start, stop, step]`` per dimension of the grid.
    """

    name = "ttl.create_cb"

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, CBType), "gives a circular buffer")
        kind = self.results[0].type
        assert isinstance(kind, CBType)
        shape = self.attributes.get("shape")
        expect(self, shape is None or nested_value(shape) == kind.dims, "shape and the type disagree")
        element = self.attributes.get("element_type")
        expect(self, element is None or element == kind.element, "element_type and the type disagree")
        for key, wanted in (("buffer_factor", kind.factor.data), ("page_size", hardware.tile_bytes(kind.tile.dtype))):
            given = self.attributes.get(key)
            expect(
                self, given is None or (isinstance(given, IntegerAttr) and given.value.data == wanted), f"{key} is {wanted} here"
            )
        expect(self, text_value(self, "memory_space", "L1") == "L1", "a circular buffer lies in L1")
        expect(self, are_ranges(self.attributes.get(CORE_RANGES)), "core_ranges is a list of [[start, stop, step], …]")


class CreatePipeOp(FlatOp):
    """``%p = ttl.create_pipe {src_core = [0, 0], dst_core = [1, 0]} : !ttl.pipe``; or ``dst_core_range = [[1, 8, 1], …]``."""

    name = "ttl.create_pipe"

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, PipeType), "gives a pipe")
        expect(self, isinstance(self.attributes.get("src_core"), ArrayAttr), "needs src_core")
        given = [key for key in ("dst_core", "dst_core_range") if isinstance(self.attributes.get(key), ArrayAttr)]
        expect(self, len(given) == 1, "needs dst_core or dst_core_range")


class CoreLinearOp(FlatOp):
    """``%n = ttl.core_linear : index``: the number of this core, ``y * columns + x`` on two dimensions."""

    name = "ttl.core_linear"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, IndexType), "gives one index")


class GridSliceOp(FlatOp):
    """``%s = ttl.grid_slice %a {block_factors = [1, 1]} : !ttl.accessor<…> -> !ttl.slice<[1, 1], …>``: this core's block."""

    name = "ttl.grid_slice"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        expect_operands(self, 1)
        expect(self, isinstance(self.operands[0].type, AccessorType), "takes an accessor")
        kind = self.results[0].type
        expect(self, isinstance(kind, SliceType), "gives a slice")
        factors = self.attributes.get("block_factors")
        expect(self, isinstance(factors, ArrayAttr), "needs block_factors")
        assert isinstance(kind, SliceType)
        expect(self, nested_value(factors) == kind.dims, "block_factors are the shape of the slice")


PROGRAM_OPS: tuple[type[Operation], ...] = (
    ProgramOp,
    KernelOp,
    ComputeThreadOp,
    DataMovementThreadOp,
    CreateCBOp,
    CreatePipeOp,
    CoreLinearOp,
    GridSliceOp,
)
