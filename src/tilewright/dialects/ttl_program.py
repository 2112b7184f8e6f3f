"""Whole programs as text: ``ttl.program`` or ``ttl.kernel`` with threads, and the resources they share.

These ops exist for text. ``passes/ir_text/programs.py`` turns each thread into a function that the pipeline understands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure

from tilewright import hardware
from tilewright.dialects.assembly import (
    ONE_INDEX,
    FlatOp,
    Operand,
    PlainOp,
    expect,
    integer,
    parse_operands,
    parse_types,
    print_attributes,
    print_types,
)
from tilewright.dialects.attributes import (
    SCALARS,
    AccessorType,
    CBType,
    MemorySpaceAttr,
    PipeType,
    SliceType,
    buffer_type_of,
    int_array,
    is_array_attr,
    is_integer_attr,
    scalar_format,
)
from tilewright.dialects.ttl_buffers import CORE_RANGES
from tilewright.dialects.ttl_network import are_places, is_range, nested_value
from tilewright.options import CHOICES

TILE = hardware.TILE_ROWS  # tiles are square
CONFIG_TRUTHS = ("fp32_dest_acc_en", "dst_full_sync_en", "math_approx_mode")
FIDELITIES = CHOICES["math_fidelity"]


class RegionOp(PlainOp):
    """``name(%a, %b : type, type) attributes {…} { … }``; operands and attributes may be left out."""

    ISOLATED: ClassVar[bool] = False

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
        outer = dict(parser.ssa_values)
        if cls.ISOLATED:  # names of values around it mean nothing inside
            parser.ssa_values = {}
        region = parser.parse_region()
        parser.ssa_values = outer
        return cls.create(operands=operands, attributes=dict(given.data) if given else {}, regions=[region])


class _WholeOp(RegionOp):
    ISOLATED = True
    traits = traits_def(IsolatedFromAbove(), NoTerminator())

    def verify_(self) -> None:
        expect(self, are_places(self.attributes.get("grid"), low=1), "needs grid, one to three sizes")
        expect(self, memory_space(self, "L1") == "L1", "memory_space is L1: that is where circular buffers lie")
        tiled = self.attributes.get("tiled")
        expect(self, tiled is None or is_truth(tiled), "tiled is true or false")
        expect(self, len(self.regions) == 1 and len(self.regions[0].blocks) == 1, "has one block")
        arguments = [argument.type for argument in self.regions[0].block.args]
        given = [operand.type for operand in self.operands]
        expect(self, not given or given == arguments, "the body has one argument per input, of its type")

    @property
    def grid(self) -> tuple[int, ...]:
        return nested_value(self.attributes["grid"])


def is_truth(given: Attribute | None) -> bool:
    return is_integer_attr(given) and given.type == IntegerType(1)


class ProgramOp(_WholeOp):
    """``ttl.program attributes {grid = [8, 8], memory_space = "L1", tiled = true} { … }``: what ``Program(…)(…)`` stands for."""

    name = "ttl.program"


class KernelOp(_WholeOp):
    """The same, with ``block_factors``, ``compile_time_args`` and ``compute_config``; also inside a program.

    ``block_factors``: rows and columns of tiles that each core has of each tensor. ``compile_time_args``: numbers of the inputs
    that are constants; other integers are arguments of the run. ``compute_config``: ``math_fidelity``, ``fp32_dest_acc_en``,
    ``dst_full_sync_en`` and ``math_approx_mode``.
    """

    name = "ttl.kernel"

    def verify_(self) -> None:
        super().verify_()
        factors = self.attributes.get("block_factors")
        shapes = factors is None or (is_array_attr(factors) and all(are_places(each, low=1) for each in factors))
        expect(self, shapes, "block_factors is a list of [rows, columns], one per tensor")
        numbers = self.attributes.get("compile_time_args")
        counts = numbers is None or (is_array_attr(numbers) and all(isinstance(each, IntegerAttr) for each in numbers))
        expect(self, counts, "compile_time_args is a list of numbers of inputs")
        config = self.attributes.get("compute_config")
        expect(self, config is None or isinstance(config, DictionaryAttr), "compute_config is a dictionary")
        for key, value in config.data.items() if isinstance(config, DictionaryAttr) else ():
            known = (*CONFIG_TRUTHS, "math_fidelity")
            expect(self, key in known, f"compute_config has no '{key}'; it takes {', '.join(known)}")
            if key == "math_fidelity":
                right = isinstance(value, StringAttr) and value.data in FIDELITIES
                expect(self, right, f"math_fidelity is one of {', '.join(FIDELITIES)}")
            else:
                expect(self, is_truth(value), f"{key} is true or false")


class _ThreadOp(RegionOp):
    HINTS: ClassVar[tuple[str, ...]]
    traits = traits_def(NoTerminator())

    def verify_(self) -> None:
        expect(self, len(self.regions) == 1 and len(self.regions[0].blocks) == 1, "has one block")
        arguments = [argument.type for argument in self.regions[0].block.args]
        given = [operand.type for operand in self.operands]
        expect(self, arguments in ([], given), "the body has one argument per operand, of its type, or none")
        hint = self.attributes.get("microcore_hint")
        known = hint is None or (isinstance(hint, StringAttr) and hint.data in self.HINTS)
        expect(self, known, f"microcore_hint is one of {', '.join(self.HINTS)}")
        parent = self.parent_op()
        expect(self, isinstance(parent, (ProgramOp, KernelOp)), "stands in ttl.program or ttl.kernel")


class ComputeThreadOp(_ThreadOp):
    """Arithmetic on blocks."""

    name = "ttl.compute_thread"
    HINTS = ("MATH",)


class DataMovementThreadOp(_ThreadOp):
    """Transfers, pipes and semaphores."""

    name = "ttl.datamovement_thread"
    HINTS = ("NOC0", "NOC1")  # the reader's, the writer's


def are_ranges(given: Attribute | None) -> bool:
    """Rectangles of cores: the step may be left out."""
    if not is_array_attr(given) or not given.data:
        return given is None
    return all(is_array_attr(rectangle) and all(map(is_range, rectangle)) for rectangle in given)


class CreateCBOp(FlatOp):
    """``%c = ttl.create_cb {shape = [1, 1], element_type = !ttcore.tile<…>, buffer_factor = 2, memory_space = "L1"} : <…>``

    ``buffer_index``, ``page_size`` and ``core_ranges`` may be given: the cores that have the buffer, as a list of rectangles with
    ``[start, stop, step]`` per dimension of the grid. With an element type that is no tile the shape counts elements: the blocks
    of such a buffer come from and go to tensors that lie row by row.
    """

    name = "ttl.create_cb"
    TAKES = 0
    GIVES = (CBType, "gives a circular buffer")
    TAKES_OPERANDS = False

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        shape, element, factor = (attributes.get(key) for key in ("shape", "element_type", "buffer_factor"))
        if not are_places(shape, low=1) or not isinstance(factor, IntegerAttr) or not isinstance(element, TypeAttribute):
            raise ValueError("they follow from shape, element_type and buffer_factor")
        return [CBType(int_array(nested_value(shape)), element, IntAttr(factor.value.data))]

    def verify_(self) -> None:
        super().verify_()
        kind = buffer_type_of(self.results[0])
        expect(self, kind.tiled or scalar_format(kind.element) != "", f"holds tiles, or elements of {', '.join(SCALARS)}")
        sizes = kind.tiled or (len(kind.dims) == 2 and not any(size % TILE for size in kind.dims))
        expect(self, sizes, f"a block of elements has two dimensions, multiples of {TILE}")
        shape = self.attributes.get("shape")
        expect(self, shape is None or (are_places(shape) and nested_value(shape) == kind.dims), "shape and the type disagree")
        element = self.attributes.get("element_type")
        expect(self, element is None or element == kind.element, "element_type and the type disagree")
        page = hardware.tile_bytes(kind.tile.dtype if kind.tiled else scalar_format(kind.element))
        for key, wanted in (("buffer_factor", kind.factor.data), ("page_size", page)):
            given = self.attributes.get(key)
            expect(
                self, given is None or (isinstance(given, IntegerAttr) and given.value.data == wanted), f"{key} is {wanted} here"
            )
        index = self.attributes.get("buffer_index")
        known = index is None or (isinstance(index, IntegerAttr) and 0 <= index.value.data < hardware.MOST_BUFFERS)
        expect(self, known, "buffer_index is 0 to 63")
        expect(self, memory_space(self, "L1") == "L1", "a circular buffer lies in L1")
        expect(self, are_ranges(self.attributes.get(CORE_RANGES)), "core_ranges is a list of [[start, stop, step], …]")


def memory_space(op: Operation, default: str) -> str:
    """``"L1"`` or ``#ttcore.memory_space<l1>``."""
    given = op.attributes.get("memory_space")
    if isinstance(given, MemorySpaceAttr):
        return given.space.data.upper()
    return given.data if isinstance(given, StringAttr) else default if given is None else ""


class CreatePipeOp(FlatOp):
    """``%p = ttl.create_pipe {src_core = [0, 0], dst_core = [1, 0]} : !ttl.pipe``; or ``dst_core_range = [[1, 8, 1], …]``.

    A range may also be written ``#ttl.slice<1, 8, 1>``.
    """

    name = "ttl.create_pipe"
    TAKES = 0
    TAKES_OPERANDS = False
    GIVES = (PipeType, "gives a pipe")

    def verify_(self) -> None:
        super().verify_()
        expect(self, are_places(self.attributes.get("src_core")), "needs src_core, its coordinates")
        given = [key for key in ("dst_core", "dst_core_range") if key in self.attributes]
        expect(self, len(given) == 1, "needs dst_core or dst_core_range")
        value = self.attributes[given[0]]
        if given == ["dst_core"]:
            expect(self, are_places(value), "dst_core is a list of coordinates")
        else:
            ranges = is_array_attr(value) and bool(value.data) and all(map(is_range, value))
            expect(self, ranges, "dst_core_range is a list of [start, stop, step], one per dimension")


class CoreDimOp(FlatOp):
    """``%n = ttl.core_dim {dims = 1 : i64} : index``, or ``ttl.core_dim(1)``: the last of this core's coordinates, counted in
    that many dimensions. With one dimension it is the core's number, as ``ttl.core_linear`` gives it.
    """

    name = "ttl.core_dim"
    TAKES = 0
    TAKES_OPERANDS = False
    GIVES = ONE_INDEX
    traits = traits_def(Pure())
    dims = integer("dims", 1)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        if parser.parse_optional_punctuation("(") is None:
            return super().parse(parser)
        number = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_punctuation(")")
        kinds = parse_types(parser) if parser.parse_optional_punctuation(":") else [IndexType()]
        return cls.create(result_types=kinds, attributes={"dims": IntegerAttr(number, 64)})

    def verify_(self) -> None:
        super().verify_()
        given = self.attributes.get("dims")
        expect(self, isinstance(given, IntegerAttr) and 1 <= given.value.data <= 3, "dims is 1, 2 or 3")


class CoreLinearOp(FlatOp):
    """``%n = ttl.core_linear : index``: the number of this core, ``y * columns + x`` on two dimensions."""

    name = "ttl.core_linear"
    TAKES = 0
    TAKES_OPERANDS = False
    GIVES = ONE_INDEX
    traits = traits_def(Pure())


class GridSliceOp(FlatOp):
    """``%s = ttl.grid_slice %a {block_factors = [1, 1]} : !ttl.accessor<…> -> !ttl.slice<[1, 1], …>``: this core's block.

    Without ``block_factors`` those of the kernel count.
    """

    name = "ttl.grid_slice"
    TAKES = 1
    GIVES = (SliceType, "gives a slice")
    traits = traits_def(Pure())
    accessor = Operand(0, AccessorType, "takes an accessor")

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        kind, factors = operands[0].type, attributes.get("block_factors")
        if not isinstance(kind, AccessorType) or not are_places(factors, low=1):
            raise ValueError("they follow from an accessor and block_factors")
        return [SliceType(int_array(nested_value(factors)), kind.element, kind.memory)]

    def verify_(self) -> None:
        super().verify_()
        kind = self.results[0].type
        factors = self.attributes.get("block_factors")
        assert isinstance(kind, SliceType)
        expect(self, factors is None or are_places(factors, low=1), "block_factors is a list of sizes")
        agree = factors is None or nested_value(factors) == kind.dims
        expect(self, agree, "block_factors are the shape of the slice")


PROGRAM_OPS: tuple[type[Operation], ...] = (
    ProgramOp, KernelOp, ComputeThreadOp, DataMovementThreadOp, CreateCBOp, CreatePipeOp, CoreDimOp, CoreLinearOp, GridSliceOp,
)  # fmt: skip
