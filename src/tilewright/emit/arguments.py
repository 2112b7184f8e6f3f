"""The top of a kernel file: its compile-time and run-time arguments under names, in the order the launcher passes them.

``CommonArguments`` is the top of a file that every core runs with the same arguments, as other compilers launch it.
Compile-time arguments are all buffers by number, then the accessor words of every operand. Addresses are common run-time
arguments. What differs among cores the file computes from where its core lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import KernelCBType, int_value, text_value
from tilewright.dialects.tile_op import DATA_FORMATS
from tilewright.dialects.ttkernel import CALLS, KernelCallOp
from tilewright.dialects.ttl_buffers import HOLDS
from tilewright.dialects.ttl_network import nested_value
from tilewright.dialects.walking import operations
from tilewright.emit.spelling import Expressions
from tilewright.grid import COUNT, FIXED, WorkArgument
from tilewright.program import (
    AccessorWords,
    BufferIndex,
    CallerNumber,
    CompileTimeArgument,
    CoreCoordinate,
    CoreNumber,
    NocColumn,
    NocRow,
    RuntimeArgument,
    TensorAddress,
    ThreadSpec,
    WorkShare,
)
from tilewright.records import record

DECLARED = ("get_compile_time_arg_val", "get_arg_val", "my_core", "tensor_accessor")


def thread_arguments(calls: Sequence[KernelCallOp]) -> tuple[tuple[CompileTimeArgument, ...], tuple[RuntimeArgument, ...]]:
    """Compile-time and run-time arguments of a function: buffers and accessors; addresses, coordinates and numbers."""
    compile_time: list[CompileTimeArgument] = []
    runtime: list[RuntimeArgument] = []
    for op in calls:
        if op.CALL.name == "get_compile_time_arg_val":
            compile_time.append(BufferIndex(int_value(op, "cb_index")))
    for op in calls:
        name = op.CALL.name
        if name == "tensor_accessor":
            compile_time.append(AccessorWords(int_value(op, "tensor_index")))
            runtime.append(TensorAddress(int_value(op, "tensor_index")))
        elif name in ("my_core", "get_arg_val"):
            entry = _coordinate_entry(op) if name == "my_core" else _number_entry(op)
            if entry not in runtime:  # equal numbers are passed once
                runtime.append(entry)
        elif name in ("noc_x", "noc_y") or name == "core_table":
            runtime += [entry for entry in place_entries(op) if entry not in runtime]
    return tuple(compile_time), tuple(runtime)


def buffer_name(op: KernelCallOp) -> str:
    """Text may leave the name out."""
    return text_value(op, "name", f"cb{int_value(op, 'cb_index')}")


def place_entries(op: KernelCallOp) -> list[RuntimeArgument]:
    """Run-time arguments behind a NoC coordinate (one per column or row) or a number of this core (one per position)."""
    if op.CALL.name != "core_table":
        kind = NocColumn if op.CALL.name == "noc_x" else NocRow
        return [kind(place) for place in range(int_value(op, "count"))]
    rows = nested_value(op.attributes["values"])
    name = text_value(op, "name")
    return [CoreNumber((name, position, tuple(row[position] for row in rows))) for position in range(len(rows[0]))]


def _coordinate_entry(op: KernelCallOp) -> CoreCoordinate:
    return CoreCoordinate((int_value(op, "dim"), int_value(op, "dims")))


def _number_entry(op: KernelCallOp) -> RuntimeArgument:
    """A number by name, or one that follows from the core's share of the work."""
    if "part" in op.attributes:
        return WorkShare(WorkArgument(part=text_value(op, "part"), amount=int_value(op, "amount")))
    return CallerNumber(text_value(op, "name"))


def calls_of(function: FuncOp) -> list[KernelCallOp]:
    """The calls of a thread, in order."""
    return [op for op in operations(function) if isinstance(op, KernelCallOp)]


class Arguments:
    """What our own launcher passes: buffers and accessors in the order of the file, and a list of words to each core."""

    def __init__(self, thread: ThreadSpec, release: tuple[int, int]) -> None:
        self.thread = thread
        self.release = release
        self.addresses: dict[SSAValue, str] = {}  # names of where tensors start, by accessor
        self.slots = {entry: index for index, entry in enumerate(thread.runtime_args)}
        self.offset = ""  # of the next accessor's compile-time words

    def declares(self, op: KernelCallOp) -> bool:
        name = op.CALL.name
        return name in DECLARED or (name in ("core_table", "get_semaphore") and not op.operands)

    def table_slot(self, op: KernelCallOp) -> int:
        """First run-time argument of a number per core and position."""
        return self.slots[place_entries(op)[0]]

    def word(self, entry: RuntimeArgument) -> str:
        """How the file reads a run-time argument."""
        return f"get_arg_val<uint32_t>({self.slots[entry]})"

    def buffer_slot(self, buffer: int, position: int) -> int:
        """Which compile-time argument is the number of ``buffer``, the ``position``-th of the file."""
        return position

    def accessor_words(self, tensor: int, name: str, used: set[str]) -> tuple[str, list[str]]:
        """The name of a tensor's accessor arguments, and how they are declared."""
        made = claim(f"{name}_args", used)
        declared = f"constexpr auto {made} = TensorAccessorArgs<{self.offset}>();"
        self.offset = f"{made}.next_compile_time_args_offset()"
        return made, [declared]

    def lines(self, calls: Sequence[KernelCallOp], expressions: Expressions, used: set[str]) -> list[str]:
        constants: list[str] = []
        runtime: list[str] = []
        accessors: list[str] = []
        maps: list[str] = []
        places: list[str] = []
        semaphores: list[str] = []
        coordinates: dict[object, str] = {}
        for op in calls:
            if op.CALL.name == "get_compile_time_arg_val":
                name = claim(buffer_name(op), used)
                expressions.names[op.results[0]] = name
                slot = self.buffer_slot(int_value(op, "cb_index"), len(constants))
                constants.append(f"constexpr uint32_t {name} = get_compile_time_arg_val({slot});{_buffer_note(op)}")
        self.offset = self.offset or str(len(constants))
        for op in calls:
            kind = op.CALL.name
            if kind == "tensor_accessor":
                name = claim(text_value(op, "name"), used)
                expressions.names[op.results[0]] = name
                address = self.addresses[op.results[0]] = claim(f"{name}_address", used)
                runtime.append(f"const uint32_t {address} = {self.word(TensorAddress(int_value(op, 'tensor_index')))};")
                accessors += self._accessor(op, name, address, used)
            elif kind == "my_core":
                key = _coordinate_entry(op)
                if key not in coordinates:
                    coordinates[key] = claim(op.results[0].name_hint or "core", used)
                    runtime.append(f"const uint32_t {coordinates[key]} = {self.word(key)};")
                expressions.names[op.results[0]] = coordinates[key]
            elif kind in ("noc_x", "noc_y"):
                if kind not in maps:
                    maps.append(kind)
                    word = "column" if kind == "noc_x" else "row"
                    slot = self.slots[NocColumn(0) if kind == "noc_x" else NocRow(0)]
                    text = f"const auto {kind} = [](uint32_t {word}) {{ return get_arg_val<uint32_t>({slot} + {word}); }};"
                    places.append(text)
            elif kind == "core_table" and not op.operands:
                entry = place_entries(op)[0]
                if entry not in coordinates:
                    coordinates[entry] = claim(text_value(op, "name"), used)
                    runtime.append(f"const uint32_t {coordinates[entry]} = {self.word(entry)};")
                expressions.names[op.results[0]] = coordinates[entry]
            elif kind == "get_semaphore" and not op.operands:
                name = claim(text_value(op, "name"), used)
                expressions.names[op.results[0]] = name
                semaphores.append(f"const uint32_t {name} = get_semaphore({int_value(op, 'index')});")
            elif kind == "get_arg_val":
                name = claim(text_value(op, "name"), used)
                expressions.names[op.results[0]] = name
                runtime.append(f"const uint32_t {name} = {self.word(_number_entry(op))};")
        return [*constants, *runtime, *places, *semaphores, *accessors]

    def _accessor(self, op: KernelCallOp, name: str, address: str, used: set[str]) -> list[str]:
        if self.release < (0, 69):
            dtype, in_dram = text_value(op, "dtype"), text_value(op, "memory") != "l1"
            if "page_elements" in op.attributes:
                message = f"pages of tensor '{text_value(op, 'name')}' are no 32x32 tiles; ttnn reads such from 0.69 on"
                raise fail("TW115", message, help="--metal 0.69 or newer, or tiles of 32x32")
            if "page_bytes" in op.attributes:  # rows of elements
                fields = (f".bank_base_address = {address}", f".page_size = {int_value(op, 'page_bytes')}")
                return [f"const InterleavedAddrGen<{'true' if in_dram else 'false'}> {name} = {{{', '.join(fields)}}};"]
            fields = (
                f".bank_base_address = {address}",
                f".page_size = {hardware.tile_bytes(dtype)}",
                f".data_format = DataFormat::{DATA_FORMATS[dtype]}",
            )
            return [f"const InterleavedAddrGenFast<{'true' if in_dram else 'false'}> {name} = {{{', '.join(fields)}}};"]
        args, declared = self.accessor_words(int_value(op, "tensor_index"), name, used)
        return [*declared, f"const auto {name} = TensorAccessor({args}, {address});"]


def claim(hint: str, used: set[str]) -> str:
    name, number = hint, 1
    while name in used:
        number += 1
        name = numbered(hint, number)
    used.add(name)
    return name


def numbered(name: str, number: int) -> str:
    """The name, or another of its kind: ``row2``, and ``a_l1_2`` where a digit would read as one number with the last."""
    if number == 1:
        return name
    return f"{name}_{number}" if name[-1].isdigit() else f"{name}{number}"


def _buffer_note(op: KernelCallOp) -> str:
    kind = op.results[0].type
    assert isinstance(kind, KernelCBType)
    shape = "x".join(str(dim) for dim in kind.dims)
    blocks = "1 block" if kind.factor.data == 1 else f"{kind.factor.data} blocks"
    shard = text_value(op, "tensor_name")
    holds = text_value(op, HOLDS)
    where = f", in the shard of {shard}" if shard else f": {holds}" if holds else ""
    return f"  // {blocks} of {shape} {kind.tile.dtype} tiles{where}"


# Words a variable of a kernel file cannot have: C++ keywords, and functions and types the file may use.

CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return
co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast
else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned
using virtual void volatile wchar_t while xor xor_eq uint32_t int32_t std
"""

# Spellings of calls in newer releases, and what the top of a file uses.
API = """
kernel_main MAIN NAMESPACE compute_kernel_hw_startup copy_init add_init sub_init mul_init pack_block matmul_init
matmul_block_init transpose_init transpose_tile noc_async_read_tile noc_async_write_tile TensorAccessor TensorAccessorArgs
InterleavedAddrGenFast DataFormat SrcOrder Noc CircularBuffer Semaphore CoreLocalMem NocOptions use
"""


@cache
def reserved_words() -> frozenset[str]:
    words = {*CPP.split(), *API.split(), *CALLS}
    for row in tile_ops.ROWS:
        for form in row.forms:
            for spelling in (form, *form.spellings):
                words.update(name for name in (spelling.call, spelling.init) if name)
    for op in ("add", "sub", "mul"):
        words.update((f"{op}_reuse_dest_init", f"{op}_reuse_dest_tiles"))
        words.update(f"{op}_bcast_{dim}_init" for dim in ("rows", "cols", "scalar"))
        words.update(f"{op}_tiles_bcast_{dim}_init_short" for dim in ("rows", "cols", "scalar"))
    return frozenset(words)


COLUMN, ROW = "get_absolute_logical_x()", "get_absolute_logical_y()"


@record(kw_only=True)
class Launch:
    """What all files of a program share."""

    buffers: tuple[int, ...]  # their numbers, in the order of the compile-time arguments
    operands: tuple[str, ...]  # names of the tensors
    grid: tuple[int, ...]
    columns: int  # that a grid of one dimension is folded to


class CommonArguments(Arguments):
    def __init__(self, thread: ThreadSpec, release: tuple[int, int], launch: Launch) -> None:
        super().__init__(thread, release)
        self.launch = launch
        self.offset = str(len(launch.buffers))
        self.declared: list[str] = []  # names of the accessor arguments, by operand

    def buffer_slot(self, buffer: int, position: int) -> int:
        return self.launch.buffers.index(buffer)

    def accessor_words(self, tensor: int, name: str, used: set[str]) -> tuple[str, list[str]]:
        """Those of operands in front come before: each says where the next begins."""
        lines: list[str] = []
        while len(self.declared) <= tensor:
            made, declared = super().accessor_words(len(self.declared), self.launch.operands[len(self.declared)], used)
            self.declared.append(made)
            lines += declared
        return self.declared[tensor], lines

    def word(self, entry: RuntimeArgument) -> str:
        if isinstance(entry, TensorAddress):
            return f"get_common_arg_val<uint32_t>({tensor_indices(self.thread).index(entry.what)})"
        if isinstance(entry, CoreCoordinate):
            return coordinate(entry.what[0], self.launch)
        assert isinstance(entry, WorkShare), f"an argument of each core that no place gives: {entry}"
        return work(entry, self.launch)


def tensor_indices(thread: ThreadSpec) -> list[int]:
    """Tensors whose addresses the file reads, in the order of its common run-time arguments."""
    return list(dict.fromkeys(each.what for each in thread.runtime_args if isinstance(each, TensorAddress)))


def coordinate(dim: int, launch: Launch) -> str:
    """A coordinate of the kernel's grid from the column and row of the core (`grid.chip_place` the other way)."""
    if len(launch.grid) == 1:
        return COLUMN if launch.grid[0] <= launch.columns else f"{ROW} * {launch.columns} + {COLUMN}"
    if len(launch.grid) == 2 or dim == 0:
        return (COLUMN, ROW)[dim]
    return f"{ROW} / {launch.grid[2]}" if dim == 1 else f"{ROW} % {launch.grid[2]}"


def work(entry: WorkShare, launch: Launch) -> str:
    """First block or number of blocks of this core (`grid.share`)."""
    if entry.what.part == FIXED:
        return str(entry.what.amount)
    cores = 1
    terms: list[str] = []
    for dim, size in enumerate(launch.grid):
        if size > 1:
            terms.append(coordinate(dim, launch) if cores == 1 else f"{_factor(coordinate(dim, launch))} * {cores}")
        cores *= size
    core = " + ".join(terms) or "0"
    each, rest = divmod(entry.what.amount, cores)
    if entry.what.part == COUNT:
        return f"{each} + ({core} < {rest})" if rest else str(each)
    started = f"({core}) * {each}" if len(terms) > 1 or " " in core else f"{core} * {each}"
    return f"{started} + ({core} < {rest} ? {core} : {rest})" if rest else started


def _factor(text: str) -> str:
    return f"({text})" if " " in text else text
