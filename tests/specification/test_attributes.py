"""No attribute is read and dropped: changing one changes what is compiled, or is an error at its line."""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import Any

import dialect_texts as listings
import pytest
from text_corpus import TEXTS
from text_programs import block, program, tile

from tilewright.cli import mlir_files
from tilewright.compiler import compile_module
from tilewright.diagnostics import KernelError
from tilewright.dialects.text_input import ATTRIBUTES, known_attributes
from tilewright.dialects.tile_ops import ROWS
from tilewright.options import Options

ADD, DENSE, PIPE, SEMAPHORE, PLACES = TEXTS[0], TEXTS[1], TEXTS[6], TEXTS[7], TEXTS[11]
MANY = program(listings.ADD, listings.PAIR, {"o": (2, 2)})
FACTORS = "ttl.grid_slice %ys {block_factors = [1, 1]}"
WAIT = "ttl.semaphore_wait %go, %one"
REDUCE = program("%r = ttl.block_reduce_sum %a {axis = 1 : i64}\nttl.block_store %o, %r", {"a": (2, 2)}, {"o": (2, 1)})
MAX = REDUCE.replace("reduce_sum", "reduce_max")
SUM = program("%r = ttl.add %a, %a\nttl.store %r, %o", {"a": (2, 2)}, {"o": (2, 2)})  # on the matrix unit if it reads all bits
SAME = f" : {block((2, 2), 'bf16')} -> {block((2, 2), 'bf16')}"
BCAST = program(f"%r = ttl.block_bcast %a {{axis = 1 : i64}}{SAME}\nttl.block_store %o, %r", {"a": (2, 2)}, {"o": (2, 2)}, dtype="bf16")
TENSOR_LEVEL = {
    "reduce": program(f'%r = ttl.reduce %a {{kind = "sum", dims = [1]}} : {block((2, 1), "f32")} -> {block((2, 1), "f32")}\nttl.store %r, %o', {"a": (2, 1)}, {"o": (2, 1)}),
    "bcast": program(f"%r = ttl.bcast %a {{dims = [1]}}{SAME}\nttl.store %r, %o", {"a": (2, 2)}, {"o": (2, 2)}, dtype="bf16"),
    "matmul": program(f"%r = ttl.matmul %a, %b : {block((2, 2), 'bf16')}, {block((2, 2), 'bf16')} -> {block((2, 2), 'bf16')}\nttl.store %r, %o", listings.PAIR, {"o": (2, 2)}, dtype="bf16"),
    "fill_block": program(f"%r = ttl.fill_block {{value = 1.0 : f32}} : {block((1, 1), 'f32')}\n%s = ttl.add %a, %r\nttl.store %s, %o", {"a": (1, 1)}, {"o": (1, 1)}),
}
HINTS = ADD.replace("ttl.datamovement_thread {", 'ttl.datamovement_thread attributes {microcore_hint = "NOC0"} {', 1)
SPILL = TEXTS[10]
REGISTER = program(listings.REGISTER.replace("ttl.acquire_dst", "ttl.acquire_dst {index = 3 : i32}"), {"a": (1, 1), "b": (1, 1)}, {"o": (1, 1)}, dtype="bf16")
NAMED = listings.in_function(listings.GENERIC.replace("f32", "bf16"), listings.MEMREF.replace("f32", "bf16"), ("a", "b", "c", "out"), (8, 8), "bf16")


def elements() -> str:
    """`PLACES`, whose writer finds its row by a number of the block, once it has written another element."""
    head, _, tail = PLACES.rpartition("    %n = ttl.core_linear\n")
    part, wait, rest = tail.partition("    %b = ttl.cb_wait %pass\n")
    shared = f"%b, %zero, %zero{{}} {{{{form = \"number\"{{}}}}}} : {block((1, 1), 'f32')}, index, index"
    read = f"    %n = ttl.read_element {shared.format('', ', low = 0, high = 1')} -> index\n"
    write = f"    ttl.write_element {shared.format(', %n', '')}, index\n"
    return head + wait + read + write + part + rest


ELEMENTS = elements()
CALLED = 'ttl.extern_call %zero {text = "touch({0})", code = "inline void touch(uint32_t) {}"} : index'
EXTERN = PLACES.replace("    %row = ttl.core_dim(1)\n", f"    {CALLED}\n    %row = ttl.core_dim(1)\n")
# (op, attribute): a text, what stands in it, and what is put there
CHANGES: dict[tuple[str, str], tuple[str, str, str]] = {
    ("program", "grid"): (PLACES, "grid = [2, 1]", "grid = [1, 1]"),
    ("program", "memory_space"): (PLACES, "grid = [2, 1]", 'grid = [2, 1], memory_space = "DRAM"'),
    ("program", "tiled"): (PLACES, "grid = [2, 1]", "grid = [2, 1], tiled = false"),
    ("kernel", "grid"): (ADD, "grid = [1, 1]", "grid = [2, 1]"),
    ("kernel", "memory_space"): (ADD, "grid = [1, 1]", 'grid = [1, 1], memory_space = "DRAM"'),
    ("kernel", "tiled"): (ADD, "tiled = true", "tiled = false"),
    ("kernel", "block_factors"): (ADD, "grid = [1, 1]", "grid = [1, 1], block_factors = [[2, 1], [1, 1], [1, 1]]"),
    ("kernel", "compile_time_args"): (ADD, "grid = [1, 1]", "grid = [1, 1], compile_time_args = [9]"),
    ("kernel", "compute_config"): (ADD, '"HiFi2"', '"LoFi"'),
    ("compute_thread", "microcore_hint"): (ADD, "ttl.compute_thread {", 'ttl.compute_thread attributes {microcore_hint = "NOC0"} {'),
    ("datamovement_thread", "microcore_hint"): (HINTS, '"NOC0"', '"NOC1"'),
    ("create_cb", "shape"): (ADD, "shape = [1, 1]", "shape = [2, 1]"),
    ("create_cb", "element_type"): (ADD, f"element_type = {tile('f32')}", f"element_type = {tile('bf16')}"),
    ("create_cb", "buffer_factor"): (ADD, "buffer_factor = 2", "buffer_factor = 3"),
    ("create_cb", "memory_space"): (ADD, "buffer_factor = 2", 'buffer_factor = 2, memory_space = "DST"'),
    ("create_cb", "buffer_index"): (ADD, "buffer_factor = 2", "buffer_factor = 2, buffer_index = 7 : i32"),
    ("create_cb", "page_size"): (ADD, "buffer_factor = 2", "buffer_factor = 2, page_size = 64"),
    ("create_cb", "core_ranges"): (ADD, "buffer_factor = 2", "buffer_factor = 2, core_ranges = [[[0, 1, 1], [0, 1, 1]]]"),
    ("tensor_slice", "clipped"): (PLACES, "%xs, %row, %zero :", "%xs, %row, %zero {clipped = [0]} :"),
    ("extern_call", "text"): (EXTERN, '"touch({0})"', '"touch({0} + 1)"'),
    ("extern_call", "code"): (EXTERN, "(uint32_t) {}", "(uint32_t) { int done = 1; }"),
    ("read_element", "form"): (ELEMENTS, '"number", low', '"bits", low'),
    ("read_element", "low"): (ELEMENTS, "low = 0", "low = -1"),
    ("read_element", "high"): (ELEMENTS, "high = 1", "high = 2"),
    ("write_element", "form"): (ELEMENTS, '"number"}', '"bits"}'),
    ("create_pipe", "src_core"): (PIPE, "src_core=[0,0]", "src_core=[1,0]"),
    ("create_pipe", "dst_core"): (PIPE, "dst_core_range=[#ttl.slice<1,4,1>, #ttl.slice<0,1,1>]", "dst_core=[1,0]"),
    ("create_pipe", "dst_core_range"): (PIPE, "#ttl.slice<1,4,1>", "#ttl.slice<1,3,1>"),
    ("create_semaphore", "initial_value"): (SEMAPHORE, "initial_value = 0", "initial_value = 5"),
    ("create_semaphore", "is_remote"): (SEMAPHORE, "is_remote = true", "is_remote = false"),
    ("get_remote_semaphore", "core"): (SEMAPHORE, "core = [1, 0]", "core = [0, 0]"),
    ("get_remote_multicast_semaphore", "core_range"): (
        listings.SEMAPHORE.format(initial=0, remote="true", signal=listings.SIGNALS["range"]), "#ttl.slice<1,2,1>", "#ttl.slice<0,1,1>",
    ),
    ("semaphore_wait", "at_least"): (SEMAPHORE, WAIT, f"{WAIT} {{at_least}} : !ttl.semaphore, index"),
    ("tensor_accessor", "tensor_index"): (NAMED, "tensor_index = 1", "tensor_index = 0"),
    ("tensor_accessor", "layout"): (NAMED, 'name = "a"} : !ttl.acc', 'name = "a", layout = "row_major"} : !ttl.acc'),
    ("tensor_accessor", "name"): (NAMED, 'name = "b"} : !ttl.acc', 'name = "weights"} : !ttl.acc'),
    ("tensor_accessor", "significant_bits"): (SUM, "%a_tensor\n", "%a_tensor {significant_bits = 11 : i32}\n"),
    ("tensor_slice", "strides"): (MANY, "%a_accessor, %zero, %zero :", "%a_accessor, %zero, %zero {strides = [2, 1]} :"),
    ("tensor_slice", "turned"): (MANY, "%a_accessor, %zero, %zero :", "%a_accessor, %zero, %zero {turned} :"),
    ("grid_slice", "block_factors"): (PIPE, FACTORS, FACTORS.replace("[1, 1]", "[2, 1]")),
    ("core", "dims"): (PLACES, "%row = ttl.core_dim(1)", "%row, %o1 = ttl.core {dims = 3}"),
    ("grid_size", "dims"): (PLACES, "%row = ttl.core_dim(1)", "%row = ttl.grid_size {dims = 1}"),
    ("core_dim", "dims"): (PLACES, "ttl.core_dim(1)", "ttl.core_dim(2)"),
    ("compute_region", "keep_in_dst"): (DENSE, "keep_in_dst = true", "keep_in_dst = false"),
    ("acquire_dst", "index"): (REGISTER, "index = 3", "index = 1"),
    ("spill_tile_to_l1", "index"): (SPILL, "%t_result, %r", "%t_result, 1"),
    ("spill_tile_to_l1", "dst_reg"): (SPILL, "arith.constant 2 : index\n  %spilled", "arith.constant 1 : index\n  %spilled"),
    ("block_reduce_sum", "axis"): (REDUCE, "axis = 1", "axis = 0"),
    ("block_reduce_max", "axis"): (MAX, "axis = 1", "axis = 0"),
    ("block_bcast", "axis"): (BCAST, "axis = 1", "axis = 0"),
    ("reduce", "kind"): (TENSOR_LEVEL["reduce"], '"sum"', '"max"'),
    ("reduce", "dims"): (TENSOR_LEVEL["reduce"], "dims = [1]", "dims = [0]"),
    ("bcast", "dims"): (TENSOR_LEVEL["bcast"], "dims = [1]", "dims = [0]"),
    ("matmul", "transpose_b"): (TENSOR_LEVEL["matmul"], "ttl.matmul %a, %b", "ttl.matmul %a, %b {transpose_b}"),
    ("matmul", "turned_b"): (TENSOR_LEVEL["matmul"], "ttl.matmul %a, %b", "ttl.matmul %a, %b {turned_b}"),
    ("fill_block", "value"): (TENSOR_LEVEL["fill_block"], "value = 1.0", "value = 2.0"),
}  # fmt: skip


def signature(text: str, **options: Any) -> Any:
    """All that a compilation gives, or the code of its error."""
    try:
        module = mlir_files.parse(text, "text.mlir")
        mlir_files.verify(module)
        made = compile_module(module, name="text", grid=(1, 1), tensors=(), options=Options(**options))
    except KernelError as error:
        assert error.diagnostics[0].span is not None, error
        return error.diagnostics[0].code
    described = tuple(astuple(each) for each in (*made.buffers, *made.tensors, *made.semaphores, *made.threads))
    return tuple(sorted(made.cpp.items())), described, made.config, made.grid


@pytest.mark.parametrize(("op", "attribute"), CHANGES, ids=lambda word: word)
def test_changing_an_attribute_is_seen(op: str, attribute: str):
    text, old, new = CHANGES[op, attribute]
    assert old in text, text
    plain = signature(text)
    assert not isinstance(plain, str), f"the text itself is refused with {plain}"
    assert signature(text.replace(old, new, 1)) != plain


WRONG_KINDS = ('"zz"', "2.5 : f32", '[["zz"]]')
RIGHT_KINDS = {"name": '"zz"', "text": '"zz"', "code": '"zz"', "value": "2.5 : f32"}


def value_of(text: str, attribute: str) -> tuple[int, int] | None:
    """Where the value of an attribute stands."""
    found = re.search(rf"\b{attribute} ?= ?", text)
    if found is None:
        return None
    start = end = found.end()
    depth = 0
    while depth or text[end] not in ",]}>)\n":
        depth += (text[end] in "[{<(") - (text[end] in "]}>)")
        end += 1
    return start, end


@pytest.mark.parametrize(("op", "attribute"), CHANGES, ids=lambda word: word)
def test_an_attribute_of_another_kind_is_refused(op: str, attribute: str):
    text, old, new = CHANGES[op, attribute]
    changed = text.replace(old, new, 1)
    place = value_of(changed, attribute)
    for wrong in WRONG_KINDS if place else ():
        if wrong != RIGHT_KINDS.get(attribute):
            assert isinstance(signature(f"{changed[: place[0]]}{wrong}{changed[place[1] :]}"), str), wrong


# Attributes that passes hand to each other: text of a later stage has them, and the tests of those stages are about them.
BETWEEN_PASSES = {
    "core_table", "argument", "net_pipe", "work", "print", "breakpoint", "bind_cb", "attach_cb", "store", "compute", "copy_tile",
    "copy_dest_values", "dst_tile", "linearized_index", "fill_scaler", "fill_mask", "fill_pattern", "pattern_block", "cb_wait", "cb_reserve", "running", "cb_push", "cb_pop",
}  # fmt: skip
REGISTERS = {"dst_reg", "keep_in_dst", "ttl.dst_reg", "ttl.require_dst", "number", "name", "exact"}
OF_RUNS = {("extern_call", "meaning")}  # asked for when the program is simulated


def test_every_attribute_has_a_change():
    missing = [
        f"{op}.{attribute}"
        for op, attributes in ATTRIBUTES.items()
        for attribute in attributes
        if op not in BETWEEN_PASSES and not op.startswith("tile_") and (op, attribute) not in {*CHANGES, *OF_RUNS} and attribute not in REGISTERS
    ]
    assert missing == []


PARAMETERS = [(row.name, param) for row in ROWS for param in row.params if not param.hidden and row.arity == 1]


@pytest.mark.parametrize("name", sorted({name for name, _ in PARAMETERS}))
def test_parameters_of_rows_are_known(name: str):
    """Every parameter of a row is an attribute of its op on blocks and on tiles; another one is refused at its line."""
    for prefix in ("ttl.", "ttl.block_", "ttl.tile_"):
        known = known_attributes(f"{prefix}{name}")
        assert known is not None and {param.name for row, param in PARAMETERS if row == name} <= known
    text = program(f"%r = ttl.block_{name} %a {{colour = 1 : i32}}\nttl.block_store %o, %r", {"a": (1, 1)}, {"o": (1, 1)}, dtype="bf16")
    assert signature(text) == "TW603"


@pytest.mark.parametrize("value", ["1.5", "3.5"])
def test_scalar_of_a_row_is_seen(value: str):
    text = program("%r = ttl.block_add_scalar %a {scalar = 2.5 : f32}\nttl.block_store %o, %r", {"a": (1, 1)}, {"o": (1, 1)}, dtype="bf16")
    assert signature(text.replace("2.5", value)) != signature(text)


SHARED = program(
    "%s = ttl.block_exp %a\n%t = ttl.block_sin %s\n%u = ttl.block_mul %s, %t\n%v = ttl.block_add %u, %b\nttl.block_store %o, %v",
    listings.PAIR, {"o": (2, 2)}, dtype="bf16",
)  # fmt: skip
THIN = program(
    f"%r = ttl.block_reduce_sum %a {{axis = 1 : i64}}\n%e = ttl.block_exp %r\n%w = ttl.block_bcast %e : {block((2, 1), 'f32')} -> {block((2, 2), 'f32')}\n"
    "%d = ttl.block_mul %a, %w\nttl.block_store %o, %d", {"a": (2, 2)}, {"o": (2, 2)},
)  # fmt: skip
CLIPPED = program("%r = ttl.block_relu %a\n%e = ttl.block_exp %r\nttl.block_store %o, %e", {"a": (2, 2)}, {"o": (2, 2)}, dtype="bf16")
OPTIONS: dict[str, tuple[str, Any]] = {
    "metal": (ADD, "0.62"),
    "fpu_binary_ops": (TEXTS[2], False),
    "enable_unroll": (MANY, True),
    "dst_capacity": (MANY, 1),
    "full_sync": (MANY, True),
    "fp32_dest_acc": (TEXTS[2], True),
    "math_fidelity": (TEXTS[2], "LoFi"),
    "math_approx_mode": (TEXTS[2], True),
    "inits": (TEXTS[2], "each"),
    "combine_packs": (MANY, False),
    "f32_reductions": (REDUCE, "tf32"),
    "allow_tf32": (MANY, True),
    "grid": (ADD, (2, 1)),
    "card_grid": (PLACES, (1, 1)),
    "arch": (listings.by_rows("bf16"), "blackhole"),
    "allocator": (SHARED, "linear-scan"),
    "skip_faces": (THIN, False),
    "equivalent_calls": (CLIPPED, False),
    "precision": (SHARED, "exact"),
    "approximate": (SHARED, "all"),
}
ELSEWHERE = {"schedule", "round_trips", "debug_print", "api", "deep_buffers", "reads_ahead"}  # of larger bodies, Python's print, a newer ttnn, loops that read: tests of those


def test_every_option_has_a_change():
    assert {*OPTIONS, *ELSEWHERE} == set(Options.names())


@pytest.mark.parametrize("name", OPTIONS)
def test_changing_an_option_is_seen(name: str):
    text, value = OPTIONS[name]
    assert signature(text, **{name: value}) != signature(text)
