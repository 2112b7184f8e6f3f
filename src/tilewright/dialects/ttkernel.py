"""The ``ttkernel`` dialect: one op per call of the kernel API, under its canonical (oldest) name; how names of calls, and of
the inits they run under, are put together from what an op does.

The emitter spells a call for the chosen release; the simulator executes it. Which calls exist follows from the op table and
from the list of structural calls below.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from xdsl.ir import ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from tilewright.dialects import tile_ops
from tilewright.dialects.assembly import CallOp, ClassTable, expect, parameters_of
from tilewright.dialects.attributes import TileType
from tilewright.dialects.tile_op import TileOp, UnitForm, dst_format
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_compute import TileVectorReduceOp
from tilewright.records import record


@record
class Call:
    """What every part needs to know of a kernel-API call: who executes it and how many operands it has."""

    name: str
    runs_on: str  # letters of: u unpack, m math, p pack, d data movement
    operands: str | None  # their names; None: any number
    results: int = 0
    summary: str = ""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple((self.operands or "").split())


STRUCTURAL_CALLS = (
    Call("get_compile_time_arg_val", "umpd", "", 1, "a buffer index or number fixed when the kernel is built"),
    Call("get_arg_val", "umpd", "", 1, "a number given to this core at launch"),
    Call("my_core", "umpd", "", 1, "one coordinate of this core; attribute dim"),
    Call("cb_wait_front", "ud", "buffer tiles", 0, "wait until that many tiles are in the buffer"),
    Call("cb_pop_front", "ud", "buffer tiles", 0, "free tiles at the front"),
    Call("cb_reserve_back", "pd", "buffer tiles", 0, "wait until there is room"),
    Call("cb_push_back", "pd", "buffer tiles", 0, "publish tiles"),
    Call("tile_regs_acquire", "m", "", 0, "math waits for a free half of DST"),
    Call("tile_regs_commit", "m", "", 0, "math hands its half to the packer"),
    Call("tile_regs_wait", "p", "", 0, "the packer waits for math"),
    Call("tile_regs_release", "p", "", 0, "the packer zeroes the half and frees it"),
    Call("init_sfpu", "ump", "input output", 0, "start-up: input and output buffer"),
    Call("binary_op_init_common", "ump", "lhs rhs output", 0, "start-up: two inputs and the output"),
    Call("copy_tile_init", "um", "buffer", 0, "prepare copy_tile from this buffer"),
    Call("copy_tile", "um", "buffer tile slot", 0, "buffer, tile index, DST index"),
    Call("copy_dest_values_init", "m", "", 0, "prepare copy_dest_values"),
    Call("copy_dest_values", "m", "target source", 0, "destination, source (the order of the oldest release)"),
    Call("pack_tile", "p", "slot buffer tile", 0, "DST index, buffer, tile index; attribute out_of_order"),
    Call("pack_tile_block", "p", "slot buffer count", 0, "first DST index, buffer, count"),
    Call("reconfig_data_format", "um", "lhs rhs", 0, "formats of the two source registers follow these buffers"),
    Call("reconfig_data_format_srca", "um", "buffer", 0, "format of source register A follows this buffer"),
    Call("reconfig_data_format_srcb", "um", "buffer", 0, "format of source register B follows this buffer"),
    Call("pack_reconfig_data_format", "p", "buffer", 0, "format of the packer follows this buffer"),
    Call("mm_init", "ump", "lhs rhs output", 0, "start-up for matmul: two inputs and the output"),
    Call("mm_init_short", "um", "lhs rhs", 0, "prepare matmul_tiles; attribute transpose"),
    Call("mm_block_init_short", "um", "lhs rhs", 0, "prepare matmul_block; attributes transpose, ct, rt, kt"),
    Call("matmul_tiles", "um", "lhs rhs lhs_tile rhs_tile slot", 0, "left and right buffer, their tiles, DST index; adds to DST"),
    Call(
        "matmul_block", "um", "lhs rhs lhs_tile rhs_tile slot", 0,
        "the same for rt x ct output tiles; attributes transpose, ct, rt, kt",
    ),
    Call(
        "reduce_init", "ump", "source scaler output", 0, "prepare reduce_tile: data, scaler and output buffer; masks the packer"
    ),
    Call(
        "reduce_tile", "um", "source scaler source_tile scaler_tile slot", 0,
        "data and scaler buffer, their tiles, DST index; adds to DST",
    ),
    Call("reduce_uninit", "p", "", 0, "the packer writes whole tiles again"),
    Call("unary_bcast_init", "um", "buffer", 0, "prepare unary_bcast"),
    Call("unary_bcast_full_init", "ump", "buffer output", 0, "prepare unary_bcast and start all engines anew; before ttnn 0.78"),
    Call("unary_bcast", "um", "buffer tile slot", 0, "buffer, tile, DST index"),
    Call("transpose_wh_init_short", "um", "buffer", 0, "prepare transpose_wh_tile"),
    Call("transpose_wh_tile", "um", "buffer tile slot", 0, "buffer, tile, DST index"),
    *(
        Call(f"{op}_bcast_{dim}_init_short", "um", "lhs rhs", 0, f"prepare {op}_tiles_bcast_{dim}")
        for op in ("add", "sub", "mul")
        for dim in ("rows", "cols", "scalar")
    ),
    *(
        Call(
            f"{op}_tiles_bcast_{dim}", "um", "lhs rhs lhs_tile rhs_tile slot", 0,
            "two buffers, their tiles, DST index; the second is repeated",
        )
        for op in ("add", "sub", "mul")
        for dim in ("rows", "cols", "scalar")
    ),
    *(
        Call(f"sfpu_{op}_bcast_{dim}_init", "m", "", 0, f"prepare sfpu_{op}_bcast_{dim}")
        for op in ("add", "sub", "mul")
        for dim in ("row", "col")
    ),
    *(
        Call(f"sfpu_{op}_bcast_{dim}", "m", "slot vector", 0, "DST index of the data, changed in place; DST index of the vector")
        for op in ("add", "sub", "mul")
        for dim in ("row", "col")
    ),
    Call("sfpu_reduce_init", "m", "", 0, "prepare sfpu_reduce; attribute template names the pool"),
    Call("sfpu_reduce", "m", "slot", 0, "DST index of a tile, reduced in place to its first column or row"),
    Call("pack_relu_config", "p", "", 0, "the packer replaces negative numbers by zero; attribute mode, none or zero"),
    Call("pack_reconfig_l1_acc", "p", "flag", 0, "the packer adds to what is in L1 (1) or replaces it (0)"),
    Call("fill_scaler", "d", "buffer", 0, "write attribute value into the reserved tile: faces, row, column or corner"),
    Call("fill_pattern", "d", "buffer", 0, "write a block of rows x columns tiles: where elements stand, as pattern says"),
    Call("fill_mask", "d", "buffer start", 0, "write a block: ones up to attribute limit along attribute axis, zeros behind"),
    Call("fill_zeros", "d", "address", 0, "write zeros over one tile; attribute bytes"),
    Call("tensor_accessor", "d", "", 1, "a tensor argument; attributes tensor_index, name, tensor (its type)"),
    Call("get_write_ptr", "d", "buffer", 1, "L1 address where the producer's block starts"),
    Call("get_read_ptr", "d", "buffer", 1, "L1 address where the consumer's block starts"),
    Call("noc_async_read_page", "d", "page accessor address", 0, "page number, accessor, L1 address"),
    Call("noc_async_write_page", "d", "page accessor address", 0, "page number, accessor, L1 address"),
    Call(
        "noc_async_read_tile_rows", "d", "row column accessor address", 0,
        "row and column of a tile, accessor of a row-major tensor, L1 address",
    ),
    Call(
        "noc_async_write_tile_rows", "d", "row column accessor address", 0,
        "row and column of a tile, accessor of a row-major tensor, L1 address",
    ),
    Call("noc_async_read_barrier", "d", "", 0, "all reads have landed"),
    Call("noc_async_read_set_trid", "d", "id", 0, "reads from here on belong to a transaction id, 1 to 15; 0: to none"),
    Call("noc_async_read_barrier_with_trid", "d", "id", 0, "all reads of a transaction id have landed"),
    Call("noc_async_write_barrier", "d", "", 0, "all writes have left and arrived"),
    Call("noc_async_writes_flushed", "d", "", 0, "all writes have left"),
    Call("core_table", "umpd", None, 1, "a number of this core, from the launcher; attributes name, values (a list per core)"),
    Call("noc_x", "d", "column", 1, "NoC coordinate of a column of cores"),
    Call("noc_y", "d", "row", 1, "NoC coordinate of a row of cores"),
    Call("get_semaphore", "d", None, 1, "L1 address of a semaphore; attributes index, initial, name; an operand adds to index"),
    Call("get_noc_addr", "d", "x y address", 1, "x, y and L1 address on one core"),
    Call(
        "get_noc_multicast_addr", "d", "x y last_x last_y address", 1, "two corners and an L1 address on the cores between them"
    ),
    Call("noc_async_write", "d", "address target bytes", 0, "L1 address, NoC address, bytes"),
    Call(
        "noc_async_write_multicast", "d", "address target bytes receivers", 0,
        "L1 address, NoC address, bytes, receivers other than this core; attribute linked: the next one goes the same way",
    ),
    Call(
        "noc_async_write_multicast_loopback_src", "d", "address target bytes receivers", 0,
        "the same, with this core among the receivers",
    ),
    Call("noc_semaphore_set", "d", "semaphore value", 0, "this core's semaphore and its new value"),
    Call("noc_semaphore_inc", "d", "target amount", 0, "NoC address of a semaphore, amount"),
    Call("noc_semaphore_set_remote", "d", "word target", 0, "a word of this core goes to a NoC address"),
    Call(
        "noc_semaphore_set_multicast", "d", "word target receivers", 0,
        "the same to several cores; receivers other than this core",
    ),
    Call(
        "noc_semaphore_set_multicast_loopback_src", "d", "word target receivers", 0,
        "the same, with this core among the receivers",
    ),
    Call("noc_semaphore_wait", "d", "semaphore value", 0, "until this core's semaphore is the value"),
    Call("noc_semaphore_wait_min", "d", "semaphore value", 0, "until it is not below the value"),
    Call("noc_async_atomic_barrier", "d", "", 0, "all increments have arrived"),
    Call(
        "pipe_announcement", "d", "block ready", 1, "what a receiver adds to the ready semaphore: one, and where its block lies"
    ),
    Call("dprint", "umpd", None, 0, "text with numbers; attributes text, subject (what the first operand is), processor, pages"),
    Call(
        "breakpoint", "umpd", None, 0,
        "the simulation stops; attributes names, kinds and shapes (rows, columns, first tile) of the operands, constants, others",
    ),
    Call(
        "read_element", "umpd", "buffer row column", 1,
        "an element of the held block, as a number or as its bits; attributes form, dtype, across, down, first, reserved",
    ),
    Call("write_element", "d", "buffer row column value", 0, "an element of the held block; attributes as of read_element"),
    Call(
        "extern_call", "umpd", None, 0,
        "C++ of the author's own; attributes text (with numbers of operands), code, blocks (that it works on), meaning",
    ),
    Call("wait_any", "d", None, 1, "which of several semaphores is not 0: the first from a number on, and around"),
    Call("pipe_target", "d", "ready receivers", 1, "ready semaphore, receivers: where their blocks lie"),
)


class KernelCallOp(CallOp):
    """A call. ``params`` holds immediate arguments in the order of the row's ``args``, ``template`` C++ template arguments."""

    CALL: ClassVar[Call]
    SPEC: ClassVar[TileOp | None] = None
    FORM: ClassVar[UnitForm | None] = None

    def operand(self, name: str) -> SSAValue:
        """By the name that the call has for it."""
        return self.operands[self.CALL.names.index(name)]

    def verify_(self) -> None:
        count = len(self.CALL.names)
        expect(self, self.CALL.operands is None or len(self.operands) == count, f"takes {count} operands: {self.CALL.summary}")
        expect(self, len(self.results) == self.CALL.results, f"gives {self.CALL.results} results")


@irdl_attr_definition
class KernelAccessorType(ParametrizedAttribute, TypeAttribute):
    """``!ttkernel.accessor``: page addresses of one tensor."""

    name = "ttkernel.accessor"


def _calls_of_rows() -> dict[str, tuple[TileOp, UnitForm]]:
    """Who brings a call or an init into the dialect: the first form that needs it."""
    found: dict[str, tuple[TileOp, UnitForm]] = {}
    for row in tile_ops.ROWS:
        for form in row.forms:
            found.setdefault(form.call, (row, form))
            if form.init:
                found.setdefault(form.init, (row, form))
    return found


_STRUCTURAL = {call.name: call for call in STRUCTURAL_CALLS}
_OF_ROWS = {name: owner for name, owner in _calls_of_rows().items() if name not in _STRUCTURAL}


def _call_class(call: Call, row: TileOp | None = None, form: UnitForm | None = None) -> type[KernelCallOp]:
    words = "".join(word.capitalize() for word in call.name.split("_"))
    members = {"name": f"ttkernel.{call.name}", "CALL": call, "SPEC": row, "FORM": form, "__doc__": call.summary}
    return type(f"{words}Op", (KernelCallOp,), members)


def _class_named(name: str) -> type[KernelCallOp]:
    if name in _STRUCTURAL:
        return _call_class(_STRUCTURAL[name])
    row, form = _OF_ROWS[name]
    return _call_class(_call_of(name, row, form), row, form)


def _call_of(name: str, row: TileOp, form: UnitForm) -> Call:
    engine = "m" if form.unit.value == "sfpu" else "um"
    arguments, summary = (form.args, row.summary) if name == form.call else (form.init_args, f"prepare {form.call}")
    return Call(name, engine, " ".join(argument for argument in arguments if ":" not in argument), 0, summary)


CALLS = ClassTable((*_STRUCTURAL, *_OF_ROWS), _class_named)


# A value per row is a column vector: the hardware calls repeating it along the columns "cols".
BCAST_WORDS = {"row": "cols", "col": "rows", "scalar": "scalar"}
BCAST_TYPES = {"row": "COL", "col": "ROW", "scalar": "SCALAR"}
SFPU_BCAST = "sfpu_bcast"  # a unit: an op with a broadcast, both operands in DST
SUB_ROWS_SINCE = (0, 78)  # the older releases have no sub_tiles_bcast_rows, nor an init for it that leaves DST as it is
SFPU_BCAST_SINCE = (0, 78)  # the older releases have no sfpu_binary_bcast.h
BCAST_INIT_SINCE = (0, 78)  # the older releases have one init of unary_bcast, which starts all engines anew
ROW_SUMS_SWAP_SINCE = (0, 78)  # sums along rows are matrix products: the scaler is in SrcA, the data in SrcB
DATA_IN_SRCA = "data_in_srca"  # of a reduction: its release is older than that
SFPU_REDUCE_SINCE = (0, 78)  # the older releases reduce columns only, or nothing
STATELESS = "sfpu"  # key of all inits that set nothing of their own
REDUCE_DIMS = {"row": "REDUCE_ROW", "col": "REDUCE_COL", "scalar": "REDUCE_SCALAR"}


def bcast_call(op: str, dim: str) -> str:
    return f"{op}_tiles_bcast_{BCAST_WORDS[dim]}"


def bcast_init(op: str, dim: str) -> str:
    return f"{op}_bcast_{BCAST_WORDS[dim]}_init_short"


def sfpu_bcast_call(op: str, dim: str) -> str:
    return f"sfpu_{op}_bcast_{BCAST_WORDS[dim].removesuffix('s')}"


def reduce_template(kind: str, dim: str) -> tuple[str, ...]:
    return (f"PoolType::{kind.upper()}", f"ReduceDim::{REDUCE_DIMS[dim]}")


def bcast_type(dim: str) -> str:
    return f"BroadcastType::{BCAST_TYPES[dim]}"


def reduced_by_vector(op: TileVectorReduceOp) -> tuple[str, ...]:
    """Template arguments of sfpu_reduce."""
    pool, dim = reduce_template(op.kind, op.dim)
    return (pool, "DataFormat::Float32", dim)


# Inits ----------------------------------------------------------------------------------------------------------------


def template_values(op: TileOpBase, *, dst32: bool) -> dict[str, Any]:
    """What a form's template arguments may name: the op's parameters, format of its data in DST, DST's width."""
    return {
        **parameters_of(op, op.SPEC),
        "fmt": dst_format(worked_on(op), wide=dst32),
        "fp32": "true" if dst32 else "false",
    }


def worked_on(op: TileOpBase) -> str:
    """The dtype an op computes in: its first operand's, or its result's if it has none."""
    kind = next(iter(op.operands), op.results[0]).type
    assert isinstance(kind, TileType)
    return kind.dtype


def init_key(form: UnitForm, op: TileOpBase) -> str:
    """Stateless inits share one key: any SFPU init does for them."""
    if not form.stateful:
        return STATELESS
    values = template_values(op, dst32=False)
    template = ",".join(form.init_call_template(values))
    arguments = ",".join(str(values[a.split(":")[0]]) for a in form.init_args if ":" in a)
    return f"{form.init}<{template}>({arguments})"
