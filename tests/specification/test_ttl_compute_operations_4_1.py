"""``ttl-compute-operations.md``, sections 4.1 to 4.3: structure, resources and buffers, as IR text: compiled, simulated and run natively against NumPy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from dialect_texts import (
    ADD,
    PAIR,
    RECEIVE,
    SEMAPHORE,
    SIGNALS,
    TILES,
    added,
    by_rows,
    piped,
    refused,
    relative,
    spec,
    wide,
)
from text_programs import block, buffer, compiled, program, run, tile, values, zeros

# 4.1 Structural operations ------------------------------------------------------------------------------------------------------


@spec("4.1", "ttl.kernel with a compute thread and two data-movement threads")
def test_kernel_with_three_threads(tmp_path: Path):
    made = added(tmp_path)
    assert [thread.role for thread in made.threads] == ["compute", "reader", "writer"]


@spec("4.1", "ttl.program around ttl.kernel")
def test_program_around_a_kernel(tmp_path: Path):
    inner = program(ADD, PAIR, {"o": (2, 2)})
    arguments = re.search(r"\^bb0\((.*)\):", inner)
    assert arguments is not None
    names = [piece.partition(":")[0] for piece in arguments[1].split(", %")]
    names = [names[0], *(f"%{name}" for name in names[1:])]
    kinds = ", ".join([block((2, 2), "f32")] * 3)
    inner = inner.replace("ttl.kernel attributes", f"ttl.kernel({', '.join(names)} : {kinds}) attributes", 1)
    text = f'ttl.program attributes {{grid = [1, 1], memory_space = "L1", tiled = true}} {{\n{arguments[0]}\n{inner}}}\n'
    added(tmp_path, text)


@spec("4.1", "inputs of a kernel in a function: tensors by position, integers as arguments of the run or as constants")
@pytest.mark.parametrize("constant", [True, False])
def test_compile_time_args(tmp_path: Path, constant: bool):
    """The loop bound is written into the C++ with compile_time_args, and given at the call without."""
    kind = block((1, 1), "f32")
    body = "\n".join(
        [
            "%zero = arith.constant 0 : index",
            "%one = arith.constant 1 : index",
            "%a = ttl.cb_wait %a_cb",
            "scf.for %i = %zero to %n step %one {",
            "%o = ttl.cb_reserve %o_cb",
            "%r = ttl.block_add %a, %a",
            "ttl.block_store %o, %r",
            "ttl.cb_push %o",
            "}",
            "ttl.cb_pop %a",
        ]
    )
    text = program(body, {"a": (1, 1)}, {"o": (1, 1)}, acquire=False)
    text = text.replace("^bb0(", "^bb0(%n: index, ", 1)
    args = ", compile_time_args = [0]" if constant else ""
    text = text.replace("ttl.kernel attributes {grid = [1, 1]", f"ttl.kernel(%n, %a, %o : index, {kind}, {kind}) attributes {{grid = [1, 1]{args}", 1)
    text = f"func.func @main(%a: {kind}, %o: {kind}) {{\n%n = arith.constant 1 : index\n{text}func.return\n}}\n"
    arrays = [values((1, 1)), zeros((1, 1))]
    made = run(text, arrays, tmp_path, None if constant else {"n": 1})
    assert np.array_equal(arrays[1], 2 * arrays[0])
    runtime = [each.what for each in made.threads[0].runtime_args if each.KIND == "int"]
    assert runtime == ([] if constant else ["n"])


@spec("4.1", "compile_time_args that are none, or not known, are refused at the kernel")
def test_wrong_compile_time_args(tmp_path: Path):
    text = program(ADD, PAIR, {"o": (2, 2)}, attributes=", compile_time_args = [7]")
    refused(text, tmp_path, "TW603", "ttl.kernel", "names input 7, the kernel has 3")
    text = program(ADD, PAIR, {"o": (2, 2)}, attributes=", compile_time_args = [0]").replace("^bb0(", "^bb0(%n: index, ", 1)
    refused(text, tmp_path, "TW603", "ttl.kernel", "not known when the kernel is compiled")


@spec("4.1", "block_factors: tiles of each tensor per core, for ttl.grid_slice")
def test_block_factors(tmp_path: Path):
    """Four cores, each with its 1x2 tiles of both tensors; the slices take their shape from the kernel."""
    kind = f'!ttl.accessor<[4, 2], {tile("f32")}, "dram">'
    part = f'!ttl.slice<[1, 2], {tile("f32")}, "dram">'
    cb = buffer((1, 2), "f32")
    text = f"""
    ttl.kernel attributes {{grid = [4, 1], block_factors = [[1, 2], [1, 2]]}} {{
    ^bb0(%x: {block((4, 2), "f32")}, %y: {block((4, 2), "f32")}):
      %in = ttl.create_cb {{shape = [1, 2], element_type = {tile("f32")}, buffer_factor = 2}} : {cb}
      %out = ttl.create_cb {{shape = [1, 2], element_type = {tile("f32")}, buffer_factor = 2}} : {cb}
      ttl.compute_thread {{
        %a = ttl.cb_wait %in
        %o = ttl.cb_reserve %out
        %r = ttl.block_mul %a, %a
        ttl.block_store %o, %r
        ttl.cb_pop %a
        ttl.cb_push %o
      }}
      ttl.datamovement_thread {{
        %acc = ttl.tensor_accessor %x
        %s = ttl.grid_slice %acc : {kind} -> {part}
        %b = ttl.cb_reserve %in
        %t = ttl.copy %s, %b
        ttl.wait %t
        ttl.cb_push %b
      }}
      ttl.datamovement_thread {{
        %acc = ttl.tensor_accessor %y
        %s = ttl.grid_slice %acc : {kind} -> {part}
        %b = ttl.cb_wait %out
        %t = ttl.copy %b, %s
        ttl.wait %t
        ttl.cb_pop %b
      }}
    }}
    """
    arrays = [values((4, 2)), zeros((4, 2))]
    run(text, arrays, tmp_path)
    assert np.array_equal(arrays[1], arrays[0] * arrays[0])
    other = text.replace("[[1, 2], [1, 2]]", "[[2, 2], [1, 2]]")
    refused(other, tmp_path, "TW603", "ttl.kernel", "do not share")
    refused(text.replace("[[1, 2], [1, 2]]", "[[1, 2]]"), tmp_path, "TW603", "ttl.kernel", "1 entries for 2 tensors")
    refused(text.replace(", block_factors = [[1, 2], [1, 2]]", ""), tmp_path, "TW603", "ttl.grid_slice", "needs block_factors")
    other = text.replace("%s = ttl.grid_slice %acc :", "%s = ttl.grid_slice %acc {block_factors = [2, 2]} :", 1)
    refused(other, tmp_path, "TW603", "ttl.grid_slice", "are the shape of the slice")


CONFIGS = {
    'math_fidelity = "LoFi"': ("math_fidelity", "LoFi"),
    'math_fidelity = "HiFi2"': ("math_fidelity", "HiFi2"),
    "fp32_dest_acc_en = true": ("fp32_dest_acc_en", True),
    "fp32_dest_acc_en = false": ("fp32_dest_acc_en", False),
    "dst_full_sync_en = true": ("dst_full_sync_en", True),
}


@spec("4.1", "compute_config: math_fidelity, fp32_dest_acc_en and dst_full_sync_en reach the program")
@pytest.mark.parametrize("config", CONFIGS)
def test_compute_config(tmp_path: Path, config: str):
    text = program(ADD, PAIR, {"o": (2, 2)}, dtype="bf16", attributes=f", compute_config = {{{config}}}")
    name, value = CONFIGS[config]
    assert getattr(compiled(text, tmp_path).config, name) == value


@spec("4.1", "compute_config: math_approx_mode chooses the approximate form of every function that has one")
def test_math_approx_mode(tmp_path: Path):
    body = "%s = ttl.block_exp %a\nttl.block_store %o, %s"
    texts = {}
    for mode in ("true", "false"):
        text = program(body, {"a": (1, 1)}, {"o": (1, 1)}, dtype="bf16", attributes=f", compute_config = {{math_approx_mode = {mode}}}")
        arrays = [values((1, 1), "bf16"), zeros((1, 1), "bf16")]
        texts[mode] = run(text, arrays, tmp_path).cpp["compute"]
        assert relative(arrays[1], np.exp(wide(arrays[0]))) < (0.05 if mode == "true" else 0.005)
    assert "exp_tile<true" in texts["true"] and "exp_tile<true" not in texts["false"]


@spec("4.1", "compute_config: unknown keys and values are refused at the kernel")
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('math_fidelity = "HiFi9"', "math_fidelity is one of LoFi, HiFi2, HiFi3, HiFi4"),
        ("math_fidelity = 4", "math_fidelity is one of"),
        ('fp32_dest_acc_en = "yes"', "fp32_dest_acc_en is true or false"),
        ("packer_l1_acc = true", "compute_config has no 'packer_l1_acc'"),
    ],
)
def test_wrong_compute_config(tmp_path: Path, config: str, message: str):
    text = program(ADD, PAIR, {"o": (2, 2)}, attributes=f", compute_config = {{{config}}}")
    refused(text, tmp_path, "TW603", "ttl.kernel", message)


@spec("4.1", "tiled and memory_space say what is so, or are refused")
def test_tiled_and_memory_space(tmp_path: Path):
    added(tmp_path, program(ADD, PAIR, {"o": (2, 2)}, attributes=', tiled = true, memory_space = "L1"'))
    text = program(ADD, PAIR, {"o": (2, 2)}, attributes=", tiled = false")
    refused(text, tmp_path, "TW603", "ttl.tensor_accessor", "is in tiles, and ttl.kernel says tiled = false")
    text = program(ADD, PAIR, {"o": (2, 2)}, attributes=', memory_space = "DRAM"')
    refused(text, tmp_path, "TW603", "ttl.kernel", "memory_space is L1")


@spec("4.1", "microcore_hint: NOC0 is the reader's, NOC1 the writer's, MATH the compute thread's")
def test_microcore_hint(tmp_path: Path):
    plain = program(ADD, PAIR, {"o": (2, 2)})
    text = plain.replace("ttl.datamovement_thread {", 'ttl.datamovement_thread attributes {microcore_hint = "NOC1"} {', 1)
    made = added(tmp_path, text.replace("ttl.compute_thread {", 'ttl.compute_thread attributes {microcore_hint = "MATH"} {', 1))
    assert [thread.role for thread in made.threads] == ["compute", "writer", "reader"]
    text = plain.replace("ttl.datamovement_thread {", 'ttl.datamovement_thread attributes {microcore_hint = "NOC2"} {', 1)
    refused(text, tmp_path, "TW603", "ttl.datamovement_thread", "microcore_hint is one of NOC0, NOC1")


WRONG_THREAD = {
    "copy in the compute thread": ("TW014", "%t = ttl.copy %a_part, %a", "copy in compute thread"),
    "semaphore in the compute thread": ("TW014", "%one = arith.constant 1 : index\nttl.semaphore_wait %go, %one", "semaphore in compute thread"),
    "pipe in the compute thread": ("TW014", "%t = ttl.copy %a, %pipe", "pipe in compute thread"),
}


@spec("4.1", "a compute thread has no transfers, pipes and semaphores: refused with a line, as in Python")
@pytest.mark.parametrize("case", WRONG_THREAD)
def test_movement_in_the_compute_thread(tmp_path: Path, case: str):
    code, line, message = WRONG_THREAD[case]
    extra = "%go = ttl.create_semaphore {initial_value = 0 : i32}\n%pipe = ttl.create_pipe src_core=[0, 0], dst_core=[0, 0]"
    kind = f'!ttl.accessor<[2, 2], {tile("f32")}, "dram">'
    part = f'!ttl.slice<[2, 2], {tile("f32")}, "dram">'
    first = f"%z = arith.constant 0 : index\n%a_part = ttl.tensor_slice %a_accessor, %z, %z : {kind}, index, index -> {part}\n"
    text = program(first + line + "\n" + ADD, PAIR, {"o": (2, 2)}, extra=extra)
    refused(text, tmp_path, code, line.splitlines()[-1], message)


@spec("4.1", "a data-movement thread has no arithmetic: refused with a line, as in Python")
@pytest.mark.parametrize("line", ["%x = ttl.block_add %a_block, %a_block", "%x = ttl.exp %a_block", "ttl.block_store %a_block, %a_block"])
def test_arithmetic_in_a_movement_thread(tmp_path: Path, line: str):
    text = program(ADD, PAIR, {"o": (2, 2)}).replace("ttl.wait %a_transfer", f"ttl.wait %a_transfer\n{line}", 1)
    refused(text, tmp_path, "TW013", line, "in data-movement thread")


# 4.2 Resource creation -----------------------------------------------------------------------------------------------------------


@spec("4.2", "ttl.create_cb: shape, element_type and buffer_factor in the document's short form; the type follows")
@pytest.mark.parametrize("factor", [2, 3])
def test_create_cb(tmp_path: Path, factor: int):
    """Tiled: shape=[2,1], buffer_factor=2 is four tiles of L1."""
    body = "%s = ttl.block_mul %a, %a\nttl.block_store %o, %s"
    text = program(body, {"a": (2, 1)}, {"o": (2, 1)})
    short = f"%a_cb = ttl.create_cb shape=[2,1], element_type={tile('f32')}, buffer_factor={factor}"
    text = re.sub(r"%a_cb = ttl.create_cb .*", short, text)
    arrays = [values((2, 1)), zeros((2, 1))]
    made = run(text, arrays, tmp_path)
    assert np.array_equal(arrays[1], arrays[0] ** 2)
    (found,) = [each for each in made.buffers if each.name == "a_cb"]
    assert found.shape == (2, 1) and found.block_count == factor


@spec("4.2", "ttl.create_cb: buffer_index, page_size, memory_space and core_ranges bind, or are refused")
def test_create_cb_attributes(tmp_path: Path):
    plain = program(ADD, PAIR, {"o": (2, 2)})

    def with_attribute(text: str) -> str:
        return plain.replace("buffer_factor = 2}", f"buffer_factor = 2, {text}}}", 1)

    made = added(tmp_path, with_attribute("buffer_index = 9 : i32, page_size = 4096, memory_space = \"L1\", core_ranges = [[[0, 1, 1], [0, 1, 1]]]"))
    assert {each.name: each.index for each in made.buffers}["a_cb"] == 9
    assert {each.name: each.cores for each in made.buffers}["a_cb"] == ((0, 0),)
    refused(with_attribute("page_size = 2048"), tmp_path, "TW603", "%a_cb", "page_size is 4096 here")
    refused(with_attribute('memory_space = "DST"'), tmp_path, "TW603", "%a_cb", "lies in L1")
    refused(with_attribute("buffer_index = 99 : i32"), tmp_path, "TW603", "%a_cb", "buffer_index is 0 to 63")
    refused(with_attribute("colour = 1"), tmp_path, "TW603", "%a_cb", "no attribute 'colour'")


@spec("4.2", "ttl.create_cb row-major: shape=[64,32] counts elements, element_type=f32")
def test_row_major_buffer(tmp_path: Path):
    x = values((4, 2))
    arrays = [x, np.zeros_like(x)]
    made = run(by_rows("f32"), arrays, tmp_path)
    assert np.array_equal(arrays[1], np.abs(x))
    assert {tensor.layout for tensor in made.tensors} == {"row_major"}
    assert {each.shape for each in made.buffers} == {(2, 1)}
    uneven = by_rows("f32").replace("%rows = arith.constant 64", "%rows = arith.constant 40", 1)
    refused(uneven, tmp_path, "TW106", "ttl.tensor_slice", "may lie inside a tile")
    refused(by_rows("f32").replace("[64, 32]", "[64, 40]").replace("64x32", "64x40"), tmp_path, "TW603", "ttl.create_cb", "multiples of 32")


@spec("4.2", "ttl.create_pipe: multicast over #ttl.slice<start, stop, step> ranges")
@pytest.mark.parametrize(
    "ranges", ["[#ttl.slice<1,4,1>, #ttl.slice<0,1,1>]", "[#ttl.slice<1, 4>, #ttl.slice<0, 1>]", "[[1, 4, 1], [0, 1, 1]]"]
)
def test_multicast_pipe(tmp_path: Path, ranges: str):
    arrays = [values((1, 1)), zeros((4, 1))]
    run(piped(f"ttl.create_pipe src_core=[0,0], dst_core_range={ranges}"), arrays, tmp_path)
    assert np.array_equal(arrays[1], np.tile(2 * arrays[0], (4, 1)))


@spec("4.2", "ttl.create_pipe: unicast, in the document's short form")
def test_unicast_pipe(tmp_path: Path):
    """Python: ttl.Pipe(src_core=(1,0), dst_core=(0,0)); TTL IR: ttl.create_pipe src_core=[1,0], dst_core=[0,0]."""
    text = piped("ttl.create_pipe src_core=[1,0], dst_core=[0,0]").replace("grid = [4, 1]", "grid = [2, 1]")
    text = text.replace("arith.cmpi eq, %n, %zero", "arith.cmpi ne, %n, %zero").replace(block((4, 1), "f32"), block((2, 1), "f32"))
    arrays = [values((1, 1)), zeros((2, 1))]
    run(text, arrays, tmp_path)
    assert np.array_equal(arrays[1], np.tile(2 * arrays[0], (2, 1)))


@spec("4.2", "ttl.create_pipe: a range with a step, and one that is none")
def test_range_with_a_step(tmp_path: Path):
    """Every other core receives; those between get nothing to add and read the tensor themselves."""
    text = piped("ttl.create_pipe src_core=[0,0], dst_core_range=[#ttl.slice<2,4,2>, #ttl.slice<0,1,1>]")
    wrong = text.replace("#ttl.slice<2,4,2>", "#ttl.slice<4,2,1>")
    refused(wrong, tmp_path, "TW603", "ttl.create_pipe", "a list of .start, stop, step.")
    receive = RECEIVE.replace("\n", "\n")
    choose = f"""%two = arith.constant 2 : index
      %even = arith.cmpi eq, %n, %two : index
      scf.if %even {{
      {receive}
      }} else {{
      %part = ttl.tensor_slice %xs, %zero, %zero : !ttl.accessor<[1, 1], {tile("f32")}, "dram">, index, index -> !ttl.slice<[1, 1], {tile("f32")}, "dram">
      %w = ttl.copy %part, %b
      ttl.wait %w
      }}"""
    arrays = [values((1, 1)), zeros((4, 1))]
    run(text.replace(RECEIVE, choose), arrays, tmp_path)
    assert np.array_equal(arrays[1], np.tile(2 * arrays[0], (4, 1)))


@spec("4.2", "ttl.create_semaphore, ttl.get_remote_semaphore and ttl.get_remote_multicast_semaphore")
@pytest.mark.parametrize("signal", SIGNALS)
def test_semaphores(tmp_path: Path, signal: str):
    arrays = [values((1, 1)), zeros((1, 1))]
    run(SEMAPHORE.format(initial=0, remote="true", signal=SIGNALS[signal]), arrays, tmp_path)
    assert np.array_equal(arrays[1], arrays[0])


@spec("4.2", "a semaphore of a range can be set, not increased; is_remote says what is so")
def test_wrong_semaphores(tmp_path: Path):
    wrong = SIGNALS["grid"].replace("semaphore_set", "semaphore_inc")
    refused(SEMAPHORE.format(initial=0, remote="true", signal=wrong), tmp_path, "TW603", "ttl.semaphore_inc", "can be set, not increased")
    refused(SEMAPHORE.format(initial=0, remote="false", signal=SIGNALS["grid"]), tmp_path, "TW603", "create_semaphore", "is_remote is true")


@spec("4.2", "ttl.tensor_accessor takes its tensor; a tensor type says where it lies")
def test_tensor_accessor_operand(tmp_path: Path):
    made = added(tmp_path)
    assert [tensor.name for tensor in made.tensors] == ["a_tensor", "b_tensor", "o_tensor"]
    assert {tensor.memory for tensor in made.tensors} == {"dram"}
    kind = block((2, 2), "f32")
    near = program(ADD, PAIR, {"o": (2, 2)}).replace(f"%a_tensor: {kind}", f"%a_tensor: {kind[:-1]}, #L1>", 1)
    near = near.replace('"dram"', '"l1"', 2)
    assert [tensor.memory for tensor in added(tmp_path, near).tensors] == ["l1", "dram", "dram"]
    text = program(ADD, PAIR, {"o": (2, 2)}).replace("ttl.tensor_accessor %a_tensor", "ttl.tensor_accessor {tensor_index = 5 : i32}", 1)
    refused(text, tmp_path, "TW603", "tensor_index = 5", "give its types")


# 4.3 Circular buffer operations --------------------------------------------------------------------------------------------------


@spec("4.3", "ttl.cb_wait and ttl.cb_reserve give blocks; ttl.cb_pop and ttl.cb_push take the block")
def test_releases_take_blocks(tmp_path: Path):
    added(tmp_path)
    buffers = program(ADD, PAIR, {"o": (2, 2)})
    for name in ("a", "b", "o"):
        buffers = re.sub(rf"ttl.cb_(pop|push) %{name}$", rf"ttl.cb_\1 %{name}_cb", buffers, flags=re.MULTILINE)
    assert buffers != program(ADD, PAIR, {"o": (2, 2)})
    added(tmp_path, buffers)
    wrong = program(ADD, PAIR, {"o": (2, 2)}).replace("ttl.cb_pop %a", "ttl.cb_push %a")
    refused(wrong, tmp_path, "TW603", "ttl.cb_push %a", "takes a circular buffer")


@spec("4.3", "ttl.get_tile and ttl.pack_tile in a loop over tiles; the register of ttl.pack_tile binds")
@pytest.mark.parametrize("register", [0, 2, 3])
def test_get_and_pack_tiles(tmp_path: Path, register: int):
    body = TILES.format(acquire=f"%d = ttl.acquire_dst {{index = {register} : i32}}", register=register)
    arrays = [values((2, 2), "bf16", seed=1), values((2, 2), "bf16", seed=2), zeros((2, 2), "bf16")]
    made = run(program(body, PAIR, {"o": (2, 2)}, dtype="bf16"), arrays, tmp_path)
    assert relative(arrays[2], np.exp(wide(arrays[0]) + wide(arrays[1]))) < 0.01
    assert f"exp_tile({register}, " in re.sub(r"exp_tile<[^>]*>", "exp_tile", made.cpp["compute"])


@spec("4.3", "ttl.pack_tile of a register that nothing lies in, and loops that miss tiles, are refused at their line")
def test_wrong_tile_loops(tmp_path: Path):
    body = TILES.format(acquire="%d = ttl.acquire_dst {index = 5 : i32}", register=2)
    refused(program(body, PAIR, {"o": (2, 2)}), tmp_path, "TW603", "ttl.pack_tile", "nothing lies in register 5")
    body = TILES.format(acquire="%d = ttl.acquire_dst", register=2)
    short = program(body.replace("constant 4", "constant 3"), PAIR, {"o": (2, 2)})
    refused(short, tmp_path, "TW603", "ttl.pack_tile", "all 4 tiles of the block, found 3")
    other = program(body.replace("%a_cb, %i", "%a_cb, %one"), PAIR, {"o": (2, 2)})
    refused(other, tmp_path, "TW603", "ttl.get_tile", "counts the loop's runs")
