"""Wrong IR is refused: one case per rule of every op class."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from tilewright.dialects.text_input import load_dialects

TILE = "!ttcore.tile<32x32, bf16>"
WIDE = "!ttcore.tile<32x32, f32>"
CB = f"!ttl.cb<[2, 2], {TILE}, 2>"
KERNEL_CB = f"!ttkernel.cb<[2, 2], {TILE}, 2>"
BLOCK = f"tensor<2x2x{TILE}>"
ROW = f"tensor<1x2x{TILE}>"
COLUMN = f"tensor<2x1x{TILE}>"
ONE = f"tensor<1x1x{TILE}>"
CUBE = f"tensor<2x2x2x{TILE}>"
NUMBERS = "tensor<2x2xf32>"
ACCESSOR = f'!ttl.accessor<[4, 4], {TILE}, "dram">'
SLICE = f'!ttl.slice<[2, 2], {TILE}, "dram">'
ARGUMENTS = {
    "cb": CB,
    "kcb": KERNEL_CB,
    "x": BLOCK,
    "row": ROW,
    "column": COLUMN,
    "one": ONE,
    "cube": CUBE,
    "numbers": NUMBERS,
    "t": TILE,
    "wide": WIDE,
    "i": "index",
    "n": "i32",
    "accessor": ACCESSOR,
    "slice": SLICE,
    "transfer": "!ttl.transfer",
    "sem": "!ttl.semaphore",
}
IDENTITY = "affine_map<(d0, d1) -> (d0, d1)>"


def compute(
    maps: str, body: str, *, outs: str = f"%x : {BLOCK}", iterators: str = '["parallel", "parallel"]', result: str = BLOCK
) -> str:
    arrow = f" -> {result}" if result else ""
    attributes = f"{{indexing_maps = [{maps}], iterator_types = {iterators}}}"
    return f"%r = ttl.compute ins(%x : {BLOCK}) outs({outs}) {attributes} {{\n{body}\n}}{arrow}"


ARGS = f"^bb0(%a: {TILE}, %b: {TILE}):"

# (what is wrong, the op, a piece of the message)
WRONG = [
    # buffers
    ("bind_cb gives a buffer", f"%r = ttl.bind_cb{{cb_index = 0}} : {BLOCK}", "gives a circular buffer"),
    ("running value seen directly", f"%r = ttl.running %cb : {CB} -> {BLOCK}\nttl.store %x, %r : {BLOCK}, {BLOCK}", "ttl.attach_cb"),
    ("running value without a start", f"%r = ttl.running %cb : {CB} -> {BLOCK}", "what it starts from"),
    (
        "running value without a step",
        f"%r = ttl.running %cb : {CB} -> {BLOCK}\n%v = ttl.attach_cb %r, %cb : {BLOCK}, {CB} -> {BLOCK}\n"
        f"ttl.store %x, %v : {BLOCK}, {BLOCK}",
        "are its steps",
    ),
    ("bind_cb without index", f"%r = ttl.bind_cb{{buffer_factor = 2}} : {CB}", "cb_index"),
    ("bind_cb index too large", f"%r = ttl.bind_cb{{cb_index = 64}} : {CB}", "cb_index"),
    ("bind_cb index negative", f"%r = ttl.bind_cb{{cb_index = -1}} : {CB}", "cb_index"),
    ("bind_cb factor differs", f"%r = ttl.bind_cb{{cb_index = 0, buffer_factor = 3}} : {CB}", "buffer_factor"),
    ("cb_wait of a block", f"%r = ttl.cb_wait %x : {BLOCK} -> {BLOCK}", "circular buffer"),
    ("cb_wait of nothing", f"%r = ttl.cb_wait : {BLOCK}", "takes 1 operands"),
    ("cb_wait with another block", f"%r = ttl.cb_wait %cb : {CB} -> {ROW}", "block of this buffer"),
    ("cb_wait without result", f"ttl.cb_wait %cb : {CB}", "gives the block"),
    ("cb_reserve of a block", f"%r = ttl.cb_reserve %x : {BLOCK} -> {BLOCK}", "circular buffer"),
    ("cb_reserve with another block", f"%r = ttl.cb_reserve %cb : {CB} -> {ROW}", "block of this buffer"),
    ("cb_push of a block", f"ttl.cb_push %x : {BLOCK}", "circular buffer"),
    ("cb_pop of a block", f"ttl.cb_pop %x : {BLOCK}", "circular buffer"),
    ("cb_pop of two", f"ttl.cb_pop %cb, %cb : {CB}, {CB}", "takes 1 operands"),
    ("attach_cb to a block", f"%r = ttl.attach_cb %x, %x : {BLOCK}, {BLOCK} -> {BLOCK}", "its buffer"),
    ("attach_cb changes the block", f"%r = ttl.attach_cb %x, %cb : {BLOCK}, {CB} -> {ROW}", "the block itself"),
    ("attach_cb without buffer", f"%r = ttl.attach_cb %x : {BLOCK} -> {BLOCK}", "takes 2 operands"),
    # math on blocks
    ("add of one block", f"%r = ttl.add %x : {BLOCK} -> {BLOCK}", "takes 2 operands"),
    ("add of tiles", f"%r = ttl.add %t, %t : {TILE}, {TILE} -> {TILE}", "works on blocks"),
    ("add of numbers", f"%r = ttl.add %numbers, %numbers : {NUMBERS}, {NUMBERS} -> {NUMBERS}", "works on blocks"),
    ("add of unlike blocks", f"%r = ttl.add %x, %row : {BLOCK}, {ROW} -> {BLOCK}", "same shape"),
    ("add to an unlike block", f"%r = ttl.add %x, %x : {BLOCK}, {BLOCK} -> {ROW}", "same shape"),
    ("add without result", f"ttl.add %x, %x : {BLOCK}, {BLOCK}", "gives one block"),
    ("exp of two", f"%r = ttl.exp %x, %x : {BLOCK}, {BLOCK} -> {BLOCK}", "takes 1 operands"),
    ("scalar op without its number", f"%r = ttl.add_scalar %x : {BLOCK} -> {BLOCK}", "scalar"),
    ("store of another shape", f"ttl.store %row, %x : {ROW}, {BLOCK}", "value is"),
    ("store into a tile", f"ttl.store %x, %t : {BLOCK}, {TILE}", "into a block"),
    ("store of one", f"ttl.store %x : {BLOCK}", "takes 2 operands"),
    ("store of an index", f"ttl.store %i, %x : index, {BLOCK}", "a block or a tile"),
    # math on tiles
    ("tile_add of one", f"%r = ttl.tile_add %t : {TILE}", "takes 2 operands"),
    ("tile_add of blocks", f"%r = ttl.tile_add %x, %x : {BLOCK}", "works on tiles"),
    ("tile_add in a negative slot", f"%r = ttl.tile_add %t, %t {{dst_idx = -1 : i32}} : {TILE}", "slot"),
    ("tile_add in a slot by name", f'%r = ttl.tile_add %t, %t {{dst_idx = "two"}} : {TILE}', "slot"),
    ("tile scalar op without its number", f"%r = ttl.tile_mul_scalar %t : {TILE}", "scalar"),
    # blocks that are not elementwise
    ("matmul of one", f"%r = ttl.matmul %x : {BLOCK} -> {BLOCK}", "takes 2 operands"),
    ("matmul in three dimensions", f"%r = ttl.matmul %cube, %cube : {CUBE}, {CUBE} -> {CUBE}", "two dimensions"),
    ("matmul with unlike inner sizes", f"%r = ttl.matmul %x, %row : {BLOCK}, {ROW} -> {BLOCK}", "inner sizes differ"),
    ("matmul with a wrong result", f"%r = ttl.matmul %x, %column : {BLOCK}, {COLUMN} -> {BLOCK}", "the product of"),
    (
        "reduce of a kind that is none",
        f'%r = ttl.reduce %x {{kind = "mean", dims = [1]}} : {BLOCK} -> {COLUMN}',
        "kind is one of",
    ),
    ("reduce without dims", f'%r = ttl.reduce %x {{kind = "sum"}} : {BLOCK} -> {COLUMN}', "needs dims"),
    (
        "reduce over a dimension that is none",
        f'%r = ttl.reduce %x {{kind = "sum", dims = [2]}} : {BLOCK} -> {COLUMN}',
        "dims lie in",
    ),
    ("reduce to a wrong shape", f'%r = ttl.reduce %x {{kind = "sum", dims = [1]}} : {BLOCK} -> {ROW}', "gives"),
    ("bcast of a full dimension", f"%r = ttl.bcast %x {{dims = [1]}} : {BLOCK} -> tensor<2x4x{TILE}>", "cannot repeat"),
    ("bcast changes the rank", f"%r = ttl.bcast %row {{dims = [0]}} : {ROW} -> {CUBE}", "two dimensions at most"),
    ("bcast without dims", f"%r = ttl.bcast %row : {ROW} -> {BLOCK}", "needs dims"),
    ("transpose to a wrong shape", f"%r = ttl.transpose %row : {ROW} -> {ROW}", "turns"),
    ("fill_block without value", f"%r = ttl.fill_block : {BLOCK}", "value"),
    # compute regions
    ("compute without map", compute(IDENTITY, f"{ARGS}\nttl.yield %a : {TILE}"), "one indexing map per operand"),
    (
        "compute with too few arguments",
        compute(f"{IDENTITY}, {IDENTITY}", f"^bb0(%a: {TILE}):\nttl.yield %a : {TILE}"),
        "one argument per operand",
    ),
    (
        "compute with other tiles",
        compute(f"{IDENTITY}, {IDENTITY}", f"^bb0(%a: {TILE}, %b: {WIDE}):\nttl.yield %a : {TILE}"),
        "tiles of the operands",
    ),
    (
        "compute with a map of other rank",
        compute(f"{IDENTITY}, affine_map<(d0) -> (d0, d0)>", f"{ARGS}\nttl.yield %a : {TILE}"),
        "as many dimensions",
    ),
    (
        "compute with a map of too few results",
        compute(f"{IDENTITY}, affine_map<(d0, d1) -> (d0)>", f"{ARGS}\nttl.yield %a : {TILE}"),
        "one index per operand dimension",
    ),
    (
        "compute that yields two",
        compute(f"{IDENTITY}, {IDENTITY}", f"{ARGS}\nttl.yield %a, %a : {TILE}, {TILE}"),
        "one tile per output",
    ),
    (
        "compute that does not yield",
        compute(f"{IDENTITY}, {IDENTITY}", f"{ARGS}\n%z = ttl.tile_abs %a : {TILE}"),
        "not a terminator",
    ),
    (
        "compute without output",
        compute(IDENTITY, f"^bb0(%a: {TILE}):\nttl.yield", outs="", result="").replace("%r = ", ""),
        "at least one output",
    ),
    (
        "compute with another result type",
        compute(f"{IDENTITY}, {IDENTITY}", f"{ARGS}\nttl.yield %a : {TILE}", result=ROW),
        "types of its outputs",
    ),
    ("copy_tile of two", f"%k, %r = ttl.copy_tile %t, %i : {TILE}, index -> !ttl.dst, {TILE}", "takes 3 operands"),
    ("copy_tile of a block", f"%k, %r = ttl.copy_tile %x, %i, %i : {BLOCK}, index, index -> !ttl.dst, {TILE}", "loads a tile"),
    ("copy_tile at an i32", f"%k, %r = ttl.copy_tile %t, %n, %i : {TILE}, i32, index -> !ttl.dst, {TILE}", "type index"),
    ("copy_tile without token", f"%r = ttl.copy_tile %t, %i, %i : {TILE}, index, index -> {TILE}", "token and the tile"),
    ("copy_dest_values of two", f"%r = ttl.copy_dest_values %t, %t {{dst_idx = 1 : i32}} : {TILE}", "takes 1 operands"),
    (
        "copy_dest_values changes the type",
        f"%r = ttl.copy_dest_values %t {{dst_idx = 1 : i32}} : {TILE} -> {WIDE}",
        "the same tile",
    ),
    ("linearized_index of two results", "%r = ttl.linearized_index affine_map<(d0, d1) -> (d0, d1)> : index", "one result"),
    (
        "linearized_index without its symbol",
        "%r = ttl.linearized_index affine_map<(d0)[s0] -> (d0 + s0)> : index",
        "one operand per symbol",
    ),
    ("dst_tile without slot", f"%r = ttl.dst_tile : {TILE}", "names a slot"),
    ("tile_mul_accumulate of two", f"%r = ttl.tile_mul_accumulate %t, %t : {TILE}", "takes 3 operands"),
    ("init_sfpu of blocks", f"ttl.init_sfpu(%x, %x) : {BLOCK}, {BLOCK}", "takes buffers"),
    ("core without result", "\"ttl.core\"() : () -> ()", "one coordinate per dimension"),
    ("core as i32", "%r = ttl.core : i32", "type index"),
    # tiles that are not elementwise
    ("tile_matmul without k", f"%r = ttl.tile_matmul %t, %t : {TILE}", "needs k"),
    ("tile_matmul of one", f"%r = ttl.tile_matmul %t {{k = 1 : i32}} : {TILE}", "takes 2 operands"),
    ("tile_matmul_accumulate of two", f"%r = ttl.tile_matmul_accumulate %t, %t {{k = 1 : i32}} : {TILE}", "takes 3 operands"),
    ("tile_reduce without kind", f'%r = ttl.tile_reduce %t, %t {{dim = "row"}} : {TILE}', "needs kind"),
    ("tile_reduce along nothing", f'%r = ttl.tile_reduce %t, %t {{kind = "sum", dim = "up"}} : {TILE}', "dim is one of"),
    ("tile_bcast along nothing", f"%r = ttl.tile_bcast %t : {TILE}", "dim is one of"),
    ("tile_transpose of two", f"%r = ttl.tile_transpose %t, %t : {TILE}", "takes 1 operands"),
    (
        "tile_binary_bcast of a kind that is none",
        f'%r = ttl.tile_binary_bcast %t, %t {{kind = "div", dim = "row"}} : {TILE}',
        "kind is",
    ),
    # data movement
    ("tensor_accessor gives a slice", f"%r = ttl.tensor_accessor {{tensor_index = 0 : i32}} : {SLICE}", "gives an accessor"),
    ("tensor_accessor without number", f"%r = ttl.tensor_accessor : {ACCESSOR}", "tensor_index"),
    ("tensor_slice with one index", f"%r = ttl.tensor_slice %accessor, %i : {ACCESSOR}, index -> {SLICE}", "takes 3 operands"),
    ("tensor_slice at an i32", f"%r = ttl.tensor_slice %accessor, %i, %n : {ACCESSOR}, index, i32 -> {SLICE}", "type index"),
    ("tensor_slice of a block", f"%r = ttl.tensor_slice %x, %i, %i : {BLOCK}, index, index -> {SLICE}", "takes an accessor"),
    ("copy between blocks", f"%r = ttl.copy %x, %x : {BLOCK}, {BLOCK} -> !ttl.transfer", "between a block and"),
    ("copy between slices", f"%r = ttl.copy %slice, %slice : {SLICE}, {SLICE} -> !ttl.transfer", "between a block and"),
    ("copy gives a block", f"%r = ttl.copy %slice, %x : {SLICE}, {BLOCK} -> {BLOCK}", "gives a transfer"),
    ("wait for a block", f"ttl.wait %x : {BLOCK}", "waits for transfers"),
    ("fill_scaler of a block", f"ttl.fill_scaler %x {{value = 1.0 : f32}} : {BLOCK}", "circular buffer"),
    # between cores
    ("core_table without numbers", "%r = ttl.core_table : index", "needs values"),
    ("core_table as i32", "%r = ttl.core_table {values = [[1]]} : i32", "gives one index"),
    ("net_pipe of no side", "%r = ttl.net_pipe {src_cores = [], dst_core_ranges = []} : !ttl.pipe", "side is src or dst"),
    ("net_pipe without sources", '%r = ttl.net_pipe {side = "src", dst_core_ranges = []} : !ttl.pipe', "needs src_cores"),
    ("create_semaphore without value", "%r = ttl.create_semaphore : !ttl.semaphore", "needs initial_value"),
    ("create_semaphore gives a number", "%r = ttl.create_semaphore {initial_value = 0 : i32} : index", "gives a semaphore"),
    (
        "get_remote_semaphore of no core",
        "%r = ttl.get_remote_semaphore %sem : !ttl.semaphore -> !ttl.semaphore",
        "needs the core",
    ),
    ("semaphore_set of a block", f"ttl.semaphore_set %x, %i : {BLOCK}, index", "takes a semaphore"),
    ("semaphore_set to an i32", "ttl.semaphore_set %sem, %n : !ttl.semaphore, i32", "type index"),
    ("semaphore_inc without value", "ttl.semaphore_inc %sem : !ttl.semaphore", "takes 2 operands"),
    ("semaphore_wait for another's", "ttl.semaphore_wait %sem, %i : !ttl.semaphore, index", "its own semaphore"),
    # names of the specification's text
    ("block_store of one", f"ttl.block_store %x : {BLOCK}", "takes 2 operands"),
    ("require_dst of nothing", "ttl.require_dst", "takes 1 operands"),
    ("acquire_dst gives a tile", f"%r = ttl.acquire_dst : {TILE}", "register number"),
    ("release_dst of nothing", "ttl.release_dst", "takes 1 operands"),
    ("spill with a tile for a register", f"%r = ttl.spill_tile_to_l1 %t, %t : {TILE}, {TILE} -> {TILE}", "register is of type index"),
    ("restore of what was not put away", f"%r = ttl.restore_tile_from_l1 %t : {TILE}", "restores what"),
    (
        "compute_region with other arguments",
        f"%r = ttl.compute_region ins(%x : {BLOCK}) outs(%x : {BLOCK}) {{\n^bb0(%a: {ROW}):\nttl.yield %x : {BLOCK}\n}}",
        "one argument per input",
    ),
    (
        "compute_region that yields another block",
        f"%r = ttl.compute_region ins(%x : {BLOCK}) outs(%x : {BLOCK}) {{\n^bb0(%a: {BLOCK}):\nttl.yield %row : {ROW}\n}}",
        "one block per output",
    ),
    # kernel calls
    ("copy_tile call of two", f"ttkernel.copy_tile(%kcb, %i) : ({KERNEL_CB}, index) -> ()", "takes 3 operands"),
    ("acquire with an operand", "ttkernel.tile_regs_acquire(%i) : (index) -> ()", "takes 0 operands"),
    (
        "pack_tile with a result",
        f"%r = ttkernel.pack_tile(%i, %kcb, %i) : (index, {KERNEL_CB}, index) -> (index)",
        "gives 0 results",
    ),
    ("get_write_ptr without result", f"ttkernel.get_write_ptr(%kcb) : ({KERNEL_CB}) -> ()", "gives 1 results"),
    # types
    ("tile of an unknown format", "%r = ttl.dst_tile {dst_idx = 0 : i32} : !ttcore.tile<32x32, f16x>", "format"),
    ("thread that is none", "ttl.core {x = #ttkernel.thread<math>} : index", "compute or noc"),
]


def parse_and_verify(op: str) -> None:
    arguments = ", ".join(f"%{name} : {kind}" for name, kind in ARGUMENTS.items())
    text = f"func.func @f({arguments}) {{\n{op}\nreturn\n}}"
    Parser(load_dialects(Context()), text).parse_module().verify()


@pytest.mark.parametrize(("op", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_refused(op, message):
    with pytest.raises((VerifyException, ParseError), match=message):
        parse_and_verify(op)


RIGHT = [
    f"%r = ttl.bind_cb{{cb_index = 63, buffer_factor = 2}} : {CB}",
    f"%r = ttl.cb_wait %cb : {CB} -> {BLOCK}",
    f"%r = ttl.attach_cb %x, %cb : {BLOCK}, {CB} -> {BLOCK}",
    f"%r = ttl.add %x, %x : {BLOCK}, {BLOCK} -> {BLOCK}",
    f"%r = ttl.add_scalar %x {{scalar = 2.0 : f32}} : {BLOCK} -> {BLOCK}",
    f"ttl.store %x, %x : {BLOCK}, {BLOCK}",
    f"%r = ttl.tile_add %t, %t {{dst_idx = 0 : i32}} : {TILE}",
    f"%r = ttl.matmul %x, %column : {BLOCK}, {COLUMN} -> {COLUMN}",
    f'%r = ttl.reduce %x {{kind = "sum", dims = [1]}} : {BLOCK} -> {COLUMN}',
    f"%r = ttl.bcast %row {{dims = [0]}} : {ROW} -> {BLOCK}",
    f"%r = ttl.transpose %row : {ROW} -> {COLUMN}",
    f"%r = ttl.fill_block {{value = 1.0 : f32}} : {BLOCK}",
    compute(f"{IDENTITY}, {IDENTITY}", f"{ARGS}\nttl.yield %a : {TILE}"),
    f"%k, %r = ttl.copy_tile %t, %i, %i : {TILE}, index, index -> !ttl.dst, {TILE}",
    f"%r = ttl.copy_dest_values %t {{dst_idx = 1 : i32}} : {TILE}",
    "%r = ttl.linearized_index affine_map<(d0)[s0] -> (d0 + s0)>[%i] : index",
    f"%r = ttl.dst_tile {{dst_idx = 2 : i32}} : {TILE}",
    f"%r = ttl.tensor_slice %accessor, %i, %i : {ACCESSOR}, index, index -> {SLICE}",
    f"%r = ttl.copy %slice, %x : {SLICE}, {BLOCK} -> !ttl.transfer",
    "ttl.wait %transfer : !ttl.transfer",
    "%x0, %y0 = ttl.core : index, index",
    f"ttkernel.copy_tile(%kcb, %i, %i) : ({KERNEL_CB}, index, index) -> ()",
]


@pytest.mark.parametrize("op", RIGHT, ids=lambda op: op.split("ttl.")[-1].split("ttkernel.")[-1].split(" ")[0])
def test_accepted(op):
    """The cases above are refused for their fault, not for how they are written."""
    parse_and_verify(op)
