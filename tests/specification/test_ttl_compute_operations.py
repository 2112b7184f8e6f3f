"""``ttl-compute-operations.md``, item by item, as IR text: compiled, simulated and run natively against NumPy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from text_programs import DTYPES, block, buffer, compiled, program, run, tile, values, zeros

from tilewright.cli.main import main
from tilewright.diagnostics import KernelError

DOCUMENT = "ttl-compute-operations.md"


def spec(section: str, item: str) -> Any:
    return pytest.mark.spec(document=DOCUMENT, section=section, item=item)


def wide(array: Any) -> Any:
    return array.astype(np.float64)


def relative(found: Any, wanted: Any) -> float:
    return float(np.abs(wide(found) - wanted).max() / np.abs(wanted).max())


def refused(text: str, folder: Path, code: str, line: str, message: str, **options: Any) -> None:
    """``text`` is refused with this code, at the line that contains ``line``."""
    with pytest.raises(KernelError, match=message) as caught:
        compiled(text, folder, **options)
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert found.span is not None and line in text.splitlines()[found.span.line - 1]


# 4.1 Structural operations ------------------------------------------------------------------------------------------------------


ADD = "%s = ttl.block_add %a, %b\nttl.block_store %o, %s"
PAIR = {"a": (2, 2), "b": (2, 2)}


def added(folder: Path, text: str | None = None, **options: Any) -> Any:
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    made = run(text or program(ADD, PAIR, {"o": (2, 2)}), arrays, folder, **options)
    assert np.array_equal(arrays[2], arrays[0] + arrays[1])
    return made


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
    runtime = [name for kind, name in made.threads[0].runtime_args if kind == "int"]
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


ROW_MAJOR = """
ttl.kernel attributes {{grid = [1, 1], tiled = false}} {{
^bb0(%x: tensor<128x64x{scalar}>, %y: tensor<128x64x{scalar}>):
  %in = ttl.create_cb {{shape = [64, 32], element_type = {scalar}, buffer_factor = 2}} : !ttl.cb<[64, 32], {scalar}, 2>
  %out = ttl.create_cb {{shape = [64, 32], element_type = {scalar}, buffer_factor = 2}} : !ttl.cb<[64, 32], {scalar}, 2>
  %xs = ttl.tensor_accessor %x : tensor<128x64x{scalar}> -> !ttl.accessor<[128, 64], {scalar}, "dram">
  %ys = ttl.tensor_accessor %y
  ttl.compute_thread {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    scf.for %i = %zero to %two step %one {{
      scf.for %j = %zero to %two step %one {{
        %a = ttl.cb_wait %in : !ttl.cb<[64, 32], {scalar}, 2> -> tensor<64x32x{scalar}>
        %o = ttl.cb_reserve %out
        %r = ttl.abs %a : tensor<64x32x{scalar}> -> tensor<64x32x{scalar}>
        ttl.store %r, %o
        ttl.cb_pop %a
        ttl.cb_push %o
      }}
    }}
  }}
  ttl.datamovement_thread {{
{reader}
  }}
  ttl.datamovement_thread {{
{writer}
  }}
}}
"""


def by_rows(scalar: str) -> str:
    kind, part = f'!ttl.accessor<[128, 64], {scalar}, "dram">', f'!ttl.slice<[64, 32], {scalar}, "dram">'

    def mover(acquire: str, release: str, queue: str, accessor: str, ends: str) -> str:
        return f"""
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %rows = arith.constant 64 : index
    %columns = arith.constant 32 : index
    scf.for %i = %zero to %two step %one {{
      scf.for %j = %zero to %two step %one {{
        %row = arith.muli %i, %rows : index
        %column = arith.muli %j, %columns : index
        %s = ttl.tensor_slice %{accessor}, %row, %column : {kind}, index, index -> {part}
        %b = ttl.{acquire} %{queue}
        %t = ttl.copy {ends}
        ttl.wait %t
        ttl.{release} %b
      }}
    }}"""

    reader = mover("cb_reserve", "cb_push", "in", "xs", "%s, %b")
    return ROW_MAJOR.format(scalar=scalar, reader=reader, writer=mover("cb_wait", "cb_pop", "out", "ys", "%b, %s"))


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


PIPE = """
ttl.program attributes {{grid = [4, 1]}} {{
^bb0(%x: {block}, %y: {tall}):
  %in = ttl.create_cb shape=[1,1], element_type={tile}, buffer_factor=2
  %out = ttl.create_cb shape=[1,1], element_type={tile}, buffer_factor=2
  %pipe = {pipe}
  ttl.compute_thread {{
    %a = ttl.cb_wait %in
    %o = ttl.cb_reserve %out
    %s = ttl.block_add %a, %a
    ttl.block_store %o, %s
    ttl.cb_pop %a
    ttl.cb_push %o
  }}
  ttl.datamovement_thread {{
    %xs = ttl.tensor_accessor %x
    %zero = arith.constant 0 : index
    %n = ttl.core_linear
    %first = arith.cmpi eq, %n, %zero : index
    %guard = arith.cmpi slt, %n, %reach : index
    %b = ttl.cb_reserve %in
    scf.if %first {{
      %part = ttl.tensor_slice %xs, %zero, %zero : !ttl.accessor<[1, 1], {tile}, "dram">, index, index -> !ttl.slice<[1, 1], {tile}, "dram">
      %t = ttl.copy %part, %b
      ttl.wait %t
      %u = ttl.copy %b, %pipe
      ttl.wait %u
    }} else {{
      {receive}
    }}
    ttl.cb_push %b
  }}
  ttl.datamovement_thread {{
    %ys = ttl.tensor_accessor %y
    %b = ttl.cb_wait %out
    %part = ttl.grid_slice %ys {{block_factors = [1, 1]}}
    %t = ttl.copy %b, %part
    ttl.wait %t
    ttl.cb_pop %b
  }}
}}
"""
RECEIVE = "%v = ttl.copy %pipe, %b\n      ttl.wait %v"


def piped(pipe: str) -> str:
    text = PIPE.format(block=block((1, 1), "f32"), tall=block((4, 1), "f32"), tile=tile("f32"), pipe=pipe, receive=RECEIVE)
    return text.replace("    %guard = arith.cmpi slt, %n, %reach : index\n", "")


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


SEMAPHORE = f"""
ttl.program attributes {{{{grid = [2, 1]}}}} {{{{
^bb0(%x: {block((1, 1), "f32")}, %y: {block((1, 1), "f32")}):
  %in = ttl.create_cb shape=[1,1], element_type={tile("f32")}, buffer_factor=2
  %go = ttl.create_semaphore {{{{initial_value = {{initial}} : i32, is_remote = {{remote}}}}}}
  ttl.datamovement_thread {{{{
    %xs = ttl.tensor_accessor %x
    %ys = ttl.tensor_accessor %y
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = ttl.core_linear
    %first = arith.cmpi eq, %n, %zero : index
    scf.if %first {{{{
      {{signal}}
    }}}} else {{{{
      ttl.semaphore_wait %go, %one
      %b = ttl.cb_reserve %in
      %part = ttl.tensor_slice %xs, %zero, %zero : !ttl.accessor<[1, 1], {tile("f32")}, "dram">, index, index -> !ttl.slice<[1, 1], {tile("f32")}, "dram">
      %t = ttl.copy %part, %b
      ttl.wait %t
      ttl.cb_push %b
    }}}}
  }}}}
  ttl.datamovement_thread {{{{
    %ys = ttl.tensor_accessor %y
    %zero = arith.constant 0 : index
    %n = ttl.core_linear
    %second = arith.cmpi ne, %n, %zero : index
    scf.if %second {{{{
      %b = ttl.cb_wait %in
      %part = ttl.tensor_slice %ys, %zero, %zero : !ttl.accessor<[1, 1], {tile("f32")}, "dram">, index, index -> !ttl.slice<[1, 1], {tile("f32")}, "dram">
      %t = ttl.copy %b, %part
      ttl.wait %t
      ttl.cb_pop %b
    }}}}
  }}}}
}}}}
"""
SIGNALS = {
    "unicast": "%r = ttl.get_remote_semaphore %go {core = [1, 0]} : !ttl.semaphore -> !ttl.semaphore\n      ttl.semaphore_inc %r, %one",
    "range": "%r = ttl.get_remote_multicast_semaphore %go {core_range = [#ttl.slice<1,2,1>, #ttl.slice<0,1,1>]} : !ttl.semaphore -> !ttl.semaphore\n      ttl.semaphore_set %r, %one",
    "grid": "%r = ttl.get_remote_multicast_semaphore %go : !ttl.semaphore -> !ttl.semaphore\n      ttl.semaphore_set %r, %one",
}


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


TILES = """
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%four = arith.constant 4 : index
scf.for %i = %zero to %four step %one {{
  {acquire}
  %t = ttl.get_tile %a_cb, %i
  %u = ttl.get_tile %b_cb, %i
  %s = ttl.tile_add %t, %u
  %e = ttl.tile_exp %s {{dst_idx = {register} : i32}}
  ttl.pack_tile %d, %o_cb, %i
}}
"""


@spec("4.3", "ttl.get_tile and ttl.pack_tile in a loop over tiles; the register of ttl.pack_tile binds")
@pytest.mark.parametrize("register", [0, 2, 3])
def test_get_and_pack_tiles(tmp_path: Path, register: int):
    body = TILES.format(acquire=f"%d = ttl.acquire_dst {{index = {register} : i32}}", register=register)
    arrays = [values((2, 2), "bf16", seed=1), values((2, 2), "bf16", seed=2), zeros((2, 2), "bf16")]
    made = run(program(body, PAIR, {"o": (2, 2)}, dtype="bf16"), arrays, tmp_path)
    assert relative(arrays[2], np.exp(wide(arrays[0]) + wide(arrays[1]))) < 0.01
    assert f"exp_tile({register})" in re.sub(r"exp_tile<[^>]*>", "exp_tile", made.cpp["compute"])


@spec("4.3", "ttl.pack_tile of a register that nothing lies in, and loops that miss tiles, are refused at their line")
def test_wrong_tile_loops(tmp_path: Path):
    body = TILES.format(acquire="%d = ttl.acquire_dst {index = 5 : i32}", register=2)
    refused(program(body, PAIR, {"o": (2, 2)}), tmp_path, "TW603", "ttl.pack_tile", "nothing lies in register 5")
    body = TILES.format(acquire="%d = ttl.acquire_dst", register=2)
    short = program(body.replace("constant 4", "constant 3"), PAIR, {"o": (2, 2)})
    refused(short, tmp_path, "TW603", "ttl.pack_tile", "all 4 tiles of the block, found 3")
    other = program(body.replace("%a_cb, %i", "%a_cb, %one"), PAIR, {"o": (2, 2)})
    refused(other, tmp_path, "TW603", "ttl.get_tile", "counts the loop's runs")


# 4.4.1 Fusion -------------------------------------------------------------------------------------------------------------------

# As it stands in the document, with MLIR's comments and the % that its first line leaves out.
DENSE = """
// Dense layer with ReLU activation and layer normalization
// Computation: matmul → add bias → ReLU → compute mean → center values

%result = ttl.compute_region ins(%x_blk, %w_blk, %bias_blk, %ones_blk) outs(%o_blk) {
  ^bb0(%x, %w, %b, %ones):
    %matmul_result = ttl.block_matmul %x, %w         // X @ W
    %with_bias = ttl.block_add %matmul_result, %b    // + bias
    %activated = ttl.block_relu %with_bias           // ReLU activation
    %mean = ttl.block_reduce_sum %activated, %ones   // Sum for mean
    %mean_bcast = ttl.block_bcast %mean              // Broadcast mean
    %centered = ttl.block_sub %activated, %mean_bcast // Center values
    ttl.yield %centered
} {keep_in_dst = true}
"""


def dense(folder: Path, text: str, rows: int, inner: int, columns: int, dtype: str) -> Any:
    shapes = {"x_blk": (rows, inner), "w_blk": (inner, columns), "bias_blk": (rows, columns), "ones_blk": (1, 1)}
    arrays = [values(shape, dtype, seed=number) for number, shape in enumerate(shapes.values())]
    arrays[3][:] = 1
    arrays.append(zeros((rows, columns), dtype))
    made = run(program(text, shapes, {"o_blk": (rows, columns)}, dtype=dtype), arrays, folder)
    x, w, bias, _, found = (wide(array) for array in arrays)
    activated = np.maximum(x @ w + bias, 0)
    assert relative(found, activated - activated.sum(axis=1, keepdims=True)) < 0.01
    return made


@spec("4.4.1", "the dense layer: one ttl.compute_region with keep_in_dst, and no intermediate buffer")
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 2)])
def test_dense_layer(tmp_path: Path, dtype: str, shape: tuple[int, int]):
    made = dense(tmp_path, DENSE, *shape, 1, dtype)
    assert [each.name for each in made.buffers if each.origin != "user"] == []


@spec("4.4.1", "the same without keep_in_dst, and with rows of several tiles: through buffers, to the same numbers")
@pytest.mark.parametrize("columns", [1, 2])
def test_dense_layer_through_buffers(tmp_path: Path, columns: int):
    text = DENSE if columns > 1 else DENSE.replace("keep_in_dst = true", "keep_in_dst = false")
    made = dense(tmp_path, text, 2, 2, columns, "bf16")
    assert [each for each in made.buffers if each.origin != "user"]


ATTENTION = """
%result = ttl.compute_region ins(%q, %k, %v, %scale, %ones) outs(%out) {
  ^bb0(%q_blk, %k_blk, %v_blk, %scale_blk, %ones_blk):
    %s = ttl.block_matmul %q_blk, %k_blk
    %s_scaled = ttl.block_mul %s, %scale_blk
    %exp_s = ttl.block_exp %s_scaled
    %sum = ttl.block_reduce_sum %exp_s, %ones_blk
    %sum_bcast = ttl.block_bcast %sum
    %recip = ttl.block_recip %sum_bcast
    %p = ttl.block_mul %exp_s, %recip
    %o = ttl.block_matmul %p, %v_blk
    ttl.yield %o
} {keep_in_dst = true}
"""


@spec("4.4.1", "the attention kernel: softmax between two products in one ttl.compute_region")
@pytest.mark.parametrize("columns", [1, 2])
def test_attention(tmp_path: Path, columns: int):
    shapes = {"q": (2, 1), "k": (1, columns), "v": (columns, 2), "scale": (2, columns), "ones": (1, 1)}
    arrays = [values(shape, "bf16", seed=number) for number, shape in enumerate(shapes.values())]
    arrays[3][:] = 0.25
    arrays[4][:] = 1
    arrays.append(zeros((2, 2), "bf16"))
    run(program(ATTENTION, shapes, {"out": (2, 2)}, dtype="bf16"), arrays, tmp_path)
    q, k, v, scale, _, found = (wide(array) for array in arrays)
    weights = np.exp(q @ k * scale)
    wanted = weights / weights.sum(axis=1, keepdims=True) @ v
    assert np.abs(found - wanted).max() < 0.01


@spec("4.4.1", "ttl.block_compute: arithmetic on blocks and stores, nothing else")
def test_block_compute(tmp_path: Path):
    added(tmp_path, program(f"ttl.block_compute {{\n{ADD}\n}}", PAIR, {"o": (2, 2)}))
    wrong = program(f"ttl.block_compute {{\n{ADD}\nttl.cb_pop %a_cb\n}}", PAIR, {"o": (2, 2)})
    refused(wrong, tmp_path, "TW603", "ttl.cb_pop %a_cb", "ttl.cb_pop in ttl.block_compute")


# 4.4.2 Arithmetic and 4.8 the inventory ------------------------------------------------------------------------------------------


def erf(x: Any) -> Any:
    """Abramowitz and Stegun 7.1.26, good to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * np.exp(-x * x))


# TTL operation: the calls the document maps it to, what it means, and the Python that writes it
INVENTORY: dict[str, tuple[str, Any, str]] = {
    "block_add": ("add_tiles", lambda a, b: a + b, "a + b"),
    "block_sub": ("sub_tiles", lambda a, b: a - b, "a - b"),
    "block_mul": ("mul_tiles", lambda a, b: a * b, "a * b"),
    "block_matmul": ("matmul", lambda a, b: a @ b, "a @ b"),
    "block_exp": ("exp_tile", np.exp, "ttl.math.exp(a)"),
    "block_log": ("log_tile", np.log, "ttl.math.log(a)"),
    "block_sqrt": ("sqrt_tile", np.sqrt, "ttl.math.sqrt(a)"),
    "block_rsqrt": ("rsqrt_tile", lambda a: 1 / np.sqrt(a), "ttl.math.rsqrt(a)"),
    "block_relu": ("relu", lambda a: np.maximum(a, 0), "ttl.math.relu(a)"),
    "block_gelu": ("gelu_tile", lambda a: a * (1 + erf(a / np.sqrt(2))) / 2, "ttl.math.gelu(a)"),
    "block_sigmoid": ("sigmoid_tile", lambda a: 1 / (1 + np.exp(-a)), "ttl.math.sigmoid(a)"),
    "block_tanh": ("tanh_tile", np.tanh, "ttl.math.tanh(a)"),
    "block_sin": ("sin_tile", np.sin, "ttl.math.sin(a)"),
    "block_cos": ("cos_tile", np.cos, "ttl.math.cos(a)"),
    "block_tan": ("tan_tile", np.tan, "ttl.math.tan(a)"),
}
BINARY = ("block_add", "block_sub", "block_mul", "block_matmul")
KERNEL = """
from tilewright import ttl

@ttl.kernel(grid=(1, 1))
def kernel({arguments}, out):
    {buffers}
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2), buffer_factor=2)

    @ttl.compute()
    def compute():
        with {waits}, out_cb.reserve() as o:
            o.store({expression})

    @ttl.datamovement()
    def read():
        {reads}

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:2, 0:2]).wait()

    return ttl.Program(compute, read, write)({arguments}, out)
"""


def python_kernel(names: list[str], expression: str) -> str:
    buffers = "\n    ".join(f"{n}_cb = ttl.make_circular_buffer_like({n}, shape=(2, 2), buffer_factor=2)" for n in names)
    waits = ", ".join(f"{n}_cb.wait() as {n}_blk" for n in names)
    reads = "\n        ".join(f"with {n}_cb.reserve() as {n}_blk:\n            ttl.copy({n}[0:2, 0:2], {n}_blk).wait()" for n in names)
    renamed = re.sub(r"\b([ab])\b", r"\1_blk", expression)
    return KERNEL.format(arguments=", ".join(names), buffers=buffers, waits=waits, reads=reads, expression=renamed)


@spec("4.8", "every operation of the inventory, from Python and from text, simulated and native, with the document's calls")
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("op", INVENTORY)
def test_inventory(tmp_path: Path, kernels: Any, op: str, dtype: str):
    call, reference, expression = INVENTORY[op]
    names = ["a", "b"] if op in BINARY else ["a"]
    arrays = [values((2, 2), dtype, 0.1, 1.5, seed=number) for number in range(len(names))]
    text = program(f"%r = ttl.{op} {', '.join(f'%{name}' for name in names)}\nttl.block_store %o, %r", dict.fromkeys(names, (2, 2)), {"o": (2, 2)}, dtype=dtype)
    found = zeros((2, 2), dtype)
    made = run(text, [*arrays, found], tmp_path)
    wanted = reference(*(wide(array) for array in arrays))
    assert relative(found, wanted) < (0.02 if dtype == "bf16" or op == "block_matmul" else 0.001)
    from_python = zeros((2, 2), dtype)
    other = kernels.run_everywhere(python_kernel(names, expression), *arrays, from_python)
    assert np.array_equal(wide(from_python), wide(found))
    for each in (made, other):
        binary_on_vectors = dtype == "f32" and op in ("block_add", "block_sub", "block_mul")
        assert (call.replace("_tiles", "_binary_tile") if binary_on_vectors else call) in each.cpp["compute"]


@spec("4.4.2", "ttl.block_add, ttl.block_mul and ttl.block_matmul lower to one loop over tiles with the document's calls")
@pytest.mark.parametrize("op", ["block_add", "block_mul"])
def test_one_loop_per_operation(tmp_path: Path, op: str):
    text = program(f"%r = ttl.{op} %a, %b\nttl.block_store %o, %r", PAIR, {"o": (2, 2)}, dtype="bf16")
    cpp = compiled(text, tmp_path, metal="0.62").cpp["compute"]
    kind = op.removeprefix("block_")
    assert cpp.count(f"{kind}_tiles_init(") == 1 and cpp.count(f"{kind}_tiles(") == 1 and cpp.count("for (") >= 1


# 4.4.3 Reductions and broadcasts --------------------------------------------------------------------------------------------------


@spec("4.4.3", "ttl.block_reduce_sum with its scaling block, along both axes")
@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_sum(tmp_path: Path, axis: int):
    shape = (1, 3) if axis == 0 else (2, 1)
    body = f"%r = ttl.block_reduce_sum %a, %ones {{axis = {axis} : i64}}\nttl.block_store %o, %r"
    arrays = [values((2, 3), "bf16"), np.ones((32, 32), DTYPES["bf16"]), zeros(shape, "bf16")]
    run(program(body, {"a": (2, 3), "ones": (1, 1)}, {"o": shape}, dtype="bf16"), arrays, tmp_path)
    found = wide(arrays[2])[0, :] if axis == 0 else wide(arrays[2])[:, 0]
    assert np.abs(found - wide(arrays[0]).sum(axis=axis)).max() < 0.1


@spec("4.4.3", "ttl.block_reduce_max along both axes")
@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_max(tmp_path: Path, axis: int):
    shape = (1, 3) if axis == 0 else (2, 1)
    body = f"%r = ttl.block_reduce_max %a {{axis = {axis} : i64}}\nttl.block_store %o, %r"
    arrays = [values((2, 3), "bf16"), zeros(shape, "bf16")]
    run(program(body, {"a": (2, 3)}, {"o": shape}, dtype="bf16"), arrays, tmp_path)
    found = wide(arrays[1])[0, :] if axis == 0 else wide(arrays[1])[:, 0]
    assert np.array_equal(found, wide(arrays[0]).max(axis=axis))


@spec("4.4.3", "ttl.block_bcast along both axes")
@pytest.mark.parametrize("axis", [0, 1])
def test_bcast(tmp_path: Path, axis: int):
    shape = (1, 2) if axis == 0 else (2, 1)
    body = f"%r = ttl.block_bcast %a {{axis = {axis} : i64}} : {block(shape, 'bf16')} -> {block((2, 2), 'bf16')}\nttl.block_store %o, %r"
    arrays = [values(shape, "bf16"), zeros((2, 2), "bf16")]
    run(program(body, {"a": shape}, {"o": (2, 2)}, dtype="bf16"), arrays, tmp_path)
    first = wide(arrays[0])[:1, :] if axis == 0 else wide(arrays[0])[:, :1]
    assert np.array_equal(wide(arrays[1]), np.broadcast_to(first, (64, 64)))


@spec("4.4.3", "an axis that is none is refused at its line")
@pytest.mark.parametrize("op", ["block_reduce_sum %a, %ones", "block_reduce_max %a"])
def test_wrong_axis(tmp_path: Path, op: str):
    text = program(f"%r = ttl.{op} {{axis = 2 : i64}}", {"a": (2, 2), "ones": (1, 1)}, {"o": (2, 1)})
    refused(text, tmp_path, "TW603", op, "there is no axis 2")


# 4.4.4 Materialization -----------------------------------------------------------------------------------------------------------


REUSED = """
%o1 = ttl.cb_reserve %o_cb          // Reserve output slot
%intermediate = ttl.block_add %a, %a
ttl.block_store %o1, %intermediate  // Materialize result
ttl.cb_push %o1                     // Signal available

%again = ttl.cb_wait %o_cb          // Re-acquire from CB
%next = ttl.block_mul %again, %b    // ... use intermediate in next computation ...
%r1 = ttl.cb_reserve %r_cb
ttl.block_store %r1, %next
ttl.cb_push %r1
ttl.cb_pop %again                   // Release slot
"""


@spec("4.4.4", "the store/wait/pop pattern: a thread takes its own result back from a buffer")
def test_store_wait_pop(tmp_path: Path):
    text = program("%a = ttl.cb_wait %a_cb\n%b = ttl.cb_wait %b_cb" + REUSED + "ttl.cb_pop %a\nttl.cb_pop %b", PAIR, {"o": (2, 2), "r": (2, 2)}, acquire=False)
    writer = text.rindex("ttl.datamovement_thread")
    text = text[:writer] + re.sub(r"%o_\w+ = .*\n|ttl.wait %o_transfer\n|ttl.cb_pop %o_cb\n", "", text[writer:])
    text = re.sub(r"%o_accessor.*\n", "", text).replace(f", %o_tensor: {block((2, 2), 'f32')}", "")
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    run(text, arrays, tmp_path)
    assert np.array_equal(arrays[2], 2 * arrays[0] * arrays[1])


@spec("4.4.4", "a reserve without its push, or a push without a reserve, is found by ttl-validate")
def test_unmatched_push(tmp_path: Path):
    text = program(ADD, PAIR, {"o": (2, 2)}).replace("ttl.cb_push %o\n", "ttl.cb_push %o\nttl.cb_push %o_cb\n", 1)
    refused(text, tmp_path, "TW202", "ttl.cb_push %o_cb", "")


@spec("4.4.4", "ttl.require_dst: fine for what stays in DST, an error for what a unit reads from a buffer")
def test_require_dst(tmp_path: Path):
    body = "%s = ttl.block_add %a, %b\nttl.require_dst %s\n%e = ttl.block_abs %s\nttl.block_store %o, %e"
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    run(program(body, PAIR, {"o": (2, 2)}), arrays, tmp_path)
    assert np.array_equal(arrays[2], np.abs(arrays[0] + arrays[1]))
    wrong = body.replace("%e = ttl.block_abs %s", "%e = ttl.block_matmul %s, %b")
    refused(program(wrong, PAIR, {"o": (2, 2)}), tmp_path, "TW401", "ttl.block_add", "goes through a buffer")


# 4.4.5 DST registers ----------------------------------------------------------------------------------------------------------------


REGISTER = """
%dst0 = ttl.acquire_dst
%result = ttl.block_add %a, %b {dst_reg = %dst0}  // 2x1 block
ttl.release_dst %dst0
ttl.block_store %o, %result
"""


@spec("4.4.5", "ttl.acquire_dst and ttl.release_dst around an operation; without an index the compiler chooses")
def test_acquire_dst(tmp_path: Path):
    shapes = {"a": (2, 1), "b": (2, 1)}
    arrays = [values((2, 1), seed=1), values((2, 1), seed=2), zeros((2, 1))]
    run(program(REGISTER, shapes, {"o": (2, 1)}), arrays, tmp_path)
    assert np.array_equal(arrays[2], arrays[0] + arrays[1])


@spec("4.4.5", "the index of ttl.acquire_dst binds: the result lies in that register")
@pytest.mark.parametrize("register", [0, 1, 3, 7])
def test_acquire_dst_index(tmp_path: Path, register: int):
    """The document's own lowering copies both operands and adds DST[0] and DST[1] into DST[2]."""
    shapes = {"a": (2, 1), "b": (2, 1)}
    text = program(REGISTER.replace("ttl.acquire_dst", f"ttl.acquire_dst {{index = {register} : i32}}"), shapes, {"o": (2, 1)}, dtype="bf16")
    arrays = [values((2, 1), "bf16", seed=1), values((2, 1), "bf16", seed=2), zeros((2, 1), "bf16")]
    made = run(text, arrays, tmp_path, fpu_binary_ops=False, allocator="linear-scan")
    assert relative(arrays[2], wide(arrays[0]) + wide(arrays[1])) < 0.01
    (call,) = re.findall(r"add_binary_tile\((\w+), (\w+), (\w+)\)", made.cpp["compute"])
    assert call[2] == str(register)


@spec("4.4.5", "a register that DST does not have, one for two values and a use after its release are refused")
def test_wrong_registers(tmp_path: Path):
    shapes = {"a": (2, 1), "b": (2, 1)}
    text = program(REGISTER.replace("ttl.acquire_dst", "ttl.acquire_dst {index = 99 : i32}"), shapes, {"o": (2, 1)})
    refused(text, tmp_path, "TW401", "ttl.block_add", "DST register 99 is asked for")
    used = REGISTER.replace("ttl.block_store %o, %result", "%e = ttl.block_abs %result\nttl.block_store %o, %e")
    refused(program(used, shapes, {"o": (2, 1)}), tmp_path, "TW603", "ttl.block_abs", "after its DST register was released")


SPILL = """
%result = ttl.compute ins(%a, %b : {block}, {block}) outs(%o : {block})
  {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
   iterator_types = ["parallel", "parallel"]}} {{
^bb0(%ta: {tile}, %tb: {tile}, %to: {tile}):
  %t_result = ttl.tile_add %ta, %tb
  {spill}
  %t_next = ttl.tile_mul %ta, %tb
  %restored = ttl.restore_tile_from_l1 %spilled
  %sum = ttl.tile_sub %restored, %t_next
  ttl.yield %sum : {tile}
}}
"""
SPILLS = {
    "a number": "%spilled = ttl.spill_tile_to_l1 %t_result, 0",
    "a constant": "%r = arith.constant 2 : index\n  %spilled = ttl.spill_tile_to_l1 %t_result, %r",
    "no register": "%spilled = ttl.spill_tile_to_l1 %t_result",
}


@spec("4.4.5", "ttl.spill_tile_to_l1 with its register, and ttl.restore_tile_from_l1: through a buffer of the compiler")
@pytest.mark.parametrize("form", SPILLS)
@pytest.mark.parametrize("config_first", [False, True])
def test_spill_and_restore(tmp_path: Path, form: str, config_first: bool, capsys: pytest.CaptureFixture[str]):
    body = SPILL.format(block=block((2, 2), "f32"), tile=tile("f32"), spill=SPILLS[form])
    text = program(body, PAIR, {"o": (2, 2)})
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    made = run(text, arrays, tmp_path)
    assert np.allclose(arrays[2], arrays[0] + arrays[1] - arrays[0] * arrays[1], atol=1e-6)
    assert [each.name for each in made.buffers if each.origin == "compiler"]
    if config_first:
        assert main(["opt", str(tmp_path / "listing.mlir"), "-p", "convert-ttl-to-compute,ttl-set-compute-config"]) == 0
        assert "ttl.spill_tile" not in capsys.readouterr().out


# 4.7 Utilities --------------------------------------------------------------------------------------------------------------------


PLACES = """
ttl.program attributes {{grid = [{grid}]}} {{
^bb0(%x: {tensor}, %y: {tensor}):
  %pass = ttl.create_cb shape=[1,1], element_type={tile}, buffer_factor=2
  ttl.datamovement_thread {{
    %xs = ttl.tensor_accessor %x
    %zero = arith.constant 0 : index
    {place}
    %part = ttl.tensor_slice %xs, %row, %zero : !ttl.accessor<[{cores}, 1], {tile}, "dram">, index, index -> !ttl.slice<[1, 1], {tile}, "dram">
    %b = ttl.cb_reserve %pass
    %t = ttl.copy %part, %b
    ttl.wait %t
    ttl.cb_push %b
  }}
  ttl.datamovement_thread {{
    %ys = ttl.tensor_accessor %y
    %zero = arith.constant 0 : index
    %n = ttl.core_linear
    %part = ttl.tensor_slice %ys, %n, %zero : !ttl.accessor<[{cores}, 1], {tile}, "dram">, index, index -> !ttl.slice<[1, 1], {tile}, "dram">
    %b = ttl.cb_wait %pass
    %t = ttl.copy %b, %part
    ttl.wait %t
    ttl.cb_pop %b
  }}
}}
"""


def rows_read(folder: Path, place: str, grid: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """What ``%row`` is on every core: core n copies row %row of a column of tiles to row n."""
    cores = int(np.prod(grid))
    text = PLACES.format(
        grid=", ".join(map(str, grid)), tensor=block((cores, 1), "f32"), tile=tile("f32"), place=place, cores=cores
    )
    x = np.repeat(np.arange(cores, dtype=np.float32), 32)[:, None] * np.ones((1, 32), np.float32)
    y = np.full_like(x, -1)
    run(text, [x, y], folder)
    found = y[::32, 0].astype(int)
    order = [(i, j) for j in range(grid[1]) for i in range(grid[0])] if len(grid) == 2 else list(np.ndindex(*grid))
    return {tuple(map(int, core)): int(found[number]) for number, core in enumerate(order)}


@spec("4.7", "ttl.core: fewer dimensions are folded, more are padded with 0")
@pytest.mark.parametrize(
    ("place", "grid", "wanted"),
    [
        ("%row = ttl.core(dims=1)", (2, 3), lambda x, y: x * 3 + y),
        ("%row, %other = ttl.core", (2, 3), lambda x, y: x),
        ("%other, %row = ttl.core {dims = 2}", (2, 3), lambda x, y: y),
        ("%o1, %o2, %row = ttl.core(dims=3)", (2, 3), lambda x, y: 0),
        ("%other, %row = ttl.core(dims=2)", (2, 2, 2), lambda x, y, z: y * 2 + z),
        ("%row = ttl.core(dims=1)", (2, 2, 2), lambda x, y, z: (x * 2 + y) * 2 + z),
    ],
)
def test_core(tmp_path: Path, place: str, grid: tuple[int, ...], wanted: Any):
    for core, row in rows_read(tmp_path, place, grid).items():
        assert row == wanted(*core)


@spec("4.7", "ttl.grid_size: fewer dimensions are multiplied, more are padded with 1")
@pytest.mark.parametrize(
    ("place", "grid", "wanted"),
    [
        ("%size = ttl.grid_size(dims=1)", (2, 3), 6),
        ("%o1, %size = ttl.grid_size(dims=2)", (2, 2, 2), 4),
        ("%o1, %o2, %size = ttl.grid_size(dims=3)", (2, 3), 1),
        ("%size, %o1 = ttl.grid_size", (2, 3), 2),
    ],
)
def test_grid_size(tmp_path: Path, place: str, grid: tuple[int, ...], wanted: int):
    less = f"{place}\n    %one = arith.constant 1 : index\n    %row = arith.subi %size, %one : index"
    assert set(rows_read(tmp_path, less, grid).values()) == {wanted - 1}


@spec("4.7", "ttl.core_linear and ttl.core_dim(1): core_y * grid_x + core_x")
@pytest.mark.parametrize("place", ["%row = ttl.core_linear", "%row = ttl.core_linear : index", "%row = ttl.core_dim(1)", "%row = ttl.core_dim {dims = 1 : i64} : index"])
def test_core_linear(tmp_path: Path, place: str):
    for (x, y), row in rows_read(tmp_path, place, (3, 2)).items():
        assert row == y * 3 + x


@spec("4.7", "ttl.core_dim(2): the second of two coordinates")
def test_core_dim(tmp_path: Path):
    for (_, y), row in rows_read(tmp_path, "%row = ttl.core_dim(2)", (3, 2)).items():
        assert row == y


@spec("4.7", "dims that are none, or not the number of results, are refused at their line")
def test_wrong_dims(tmp_path: Path):
    for line, message in (("%row = ttl.core_dim(4)", "dims is 1, 2 or 3"), ("%row = ttl.core {dims = 2} : index", "dims is the number")):
        text = PLACES.format(grid="1, 1", tensor=block((1, 1), "f32"), tile=tile("f32"), place=line, cores=1)
        refused(text, tmp_path, "TW603", line, message)


@spec("4.7", "ttl.grid_slice: core (x, y) has the tiles [x, y] of a 2x2 grid with block_factors [1, 1]")
def test_grid_slice(tmp_path: Path):
    text = PLACES.format(grid="2, 2", tensor=block((2, 2), "f32"), tile=tile("f32"), place="", cores=4)
    slice_ = re.compile(r"%part = ttl.tensor_slice %(\w)s, .*")
    text = slice_.sub(r"%part = ttl.grid_slice %\1s {block_factors = [1, 1]}", text)
    x = values((2, 2))
    arrays = [x, np.zeros_like(x)]
    run(text, arrays, tmp_path)
    assert np.array_equal(arrays[1], x)


# 5.6 Structured ops and tiling by capacity ----------------------------------------------------------------------------------------


CHAIN = """
%result = ttl.block_add %a, %b      // 64 tiles
%result2 = ttl.block_mul %result, %c // 64 tiles
%result3 = ttl.block_exp %result2    // 64 tiles
ttl.block_store %out, %result3
"""
REGION = """
// Input: TTL fused compute region (3 operations on 8×8 block)
%result = ttl.compute_region ins(%a, %b, %c) outs(%out) {
^bb0(%a_blk, %b_blk, %c_blk):
  %add = ttl.block_add %a_blk, %b_blk      // Op 1
  %mul = ttl.block_mul %add, %c_blk        // Op 2
  %exp = ttl.block_exp %mul                 // Op 3
  ttl.yield %exp
}
"""
GENERIC = """
// Output: linalg.generic with tile operations
%result = linalg.generic {
  indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
                   affine_map<(d0, d1) -> (d0, d1)>,
                   affine_map<(d0, d1) -> (d0, d1)>,
                   affine_map<(d0, d1) -> (d0, d1)>],
  iterator_types = ["parallel", "parallel"]
} ins(%a, %b, %c : memref<8x8x!ttcore.tile<32x32,f32>, #L1>,
                   memref<8x8x!ttcore.tile<32x32,f32>, #L1>,
                   memref<8x8x!ttcore.tile<32x32,f32>, #L1>)
  outs(%out : memref<8x8x!ttcore.tile<32x32,f32>, #L1>) {
^bb0(%a_tile: !ttcore.tile<32x32,f32>,
     %b_tile: !ttcore.tile<32x32,f32>,
     %c_tile: !ttcore.tile<32x32,f32>,
     %out_tile: !ttcore.tile<32x32,f32>):
  %add = ttl.tile_add %a_tile, %b_tile
  %mul = ttl.tile_mul %add, %c_tile
  %exp = ttl.tile_exp %mul
  linalg.yield %exp : !ttcore.tile<32x32,f32>
}
"""
THREE = {"a": (8, 8), "b": (8, 8), "c": (8, 8)}
MEMREF = "memref<8x8x!ttcore.tile<32x32,f32>, #L1>"


def in_function(listing: str, memref: str, names: tuple[str, ...], shape: tuple[int, int], dtype: str, shapes: dict[str, tuple[int, int]] | None = None) -> str:
    """A listing on memrefs: one function that takes them, one that fills the inputs' buffers and one that empties the output's."""
    arguments = ", ".join(f"%{name}: {(memref if shapes is None else memref.replace('8x8', 'x'.join(map(str, shapes[name]))))}" for name in names)
    functions = [f"func.func @compute({arguments}) {{\n{listing}\nfunc.return\n}}"]
    for role, chosen in (("reader", range(len(names) - 1)), ("writer", [len(names) - 1])):
        lines = ["%zero = arith.constant 0 : index"]
        for number in chosen:
            size = shape if shapes is None else shapes[names[number]]
            kind, name = buffer(size, dtype, 1), names[number]
            accessor, part = (f'!ttl.{word}<[{size[0]}, {size[1]}], {tile(dtype)}, "dram">' for word in ("accessor", "slice"))
            lines += [
                f'%{name}_cb = ttl.bind_cb{{cb_index = {number}, buffer_factor = 1, name = "{name}"}} : {kind}',
                f'%{name}_accessor = ttl.tensor_accessor {{tensor_index = {number} : i32, name = "{name}"}} : {accessor}',
                f"%{name}_part = ttl.tensor_slice %{name}_accessor, %zero, %zero : {accessor}, index, index -> {part}",
                f"%{name}_block = ttl.{'cb_reserve' if role == 'reader' else 'cb_wait'} %{name}_cb",
                f"%{name}_transfer = ttl.copy {f'%{name}_part, %{name}_block' if role == 'reader' else f'%{name}_block, %{name}_part'}",
                f"ttl.wait %{name}_transfer",
                f"ttl.{'cb_push' if role == 'reader' else 'cb_pop'} %{name}_cb",
            ]
        body = "\n".join(lines)
        attributes = f'{{ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "{role}"}}'
        functions.append(f"func.func @{role}() attributes {attributes} {{\n{body}\nfunc.return\n}}")
    return "\n".join(functions)


def chained(arrays: list[Any]) -> Any:
    a, b, c = (wide(array) for array in arrays[:3])
    return np.exp((a + b) * c)


def sub_blocks(made: Any) -> tuple[int, int]:
    """How many acquires the 64 tiles take, and the tiles of each."""
    (plan,) = made.dst
    (part,) = plan.parts
    count = part.allocation.tiles_per_acquire
    return 64 // count, count


@spec("5.6.1", "three operations on an 8x8 block, written one by one, share one pass through DST")
def test_chain_of_three(tmp_path: Path):
    made = run_chain(tmp_path, program(CHAIN, THREE, {"out": (8, 8)}, dtype="bf16").replace("buffer_factor = 2", "buffer_factor = 1").replace(", 2>", ", 1>"), "bf16")
    assert sub_blocks(made) == (8, 8)


def run_chain(folder: Path, text: str, dtype: str) -> Any:
    arrays = [values((8, 8), dtype, seed=number) for number in range(3)] + [zeros((8, 8), dtype)]
    made = run(text, arrays, folder)
    assert relative(arrays[3], chained(arrays)) < (0.02 if dtype == "bf16" else 1e-5)
    return made


@spec("5.6.4", "phase 1, its input: the fused region of three operations on an 8x8 block")
def test_region_of_three(tmp_path: Path):
    text = program(REGION, THREE, {"out": (8, 8)}, dtype="bf16").replace("buffer_factor = 2", "buffer_factor = 1").replace(", 2>", ", 1>")
    made = run_chain(tmp_path, text, "bf16")
    assert [each for each in made.buffers if each.origin != "user"] == []


@spec("5.6.4", "phase 1, its output: linalg.generic on memrefs of tiles compiles and runs as it stands in the document")
def test_generic_of_three(tmp_path: Path):
    run_chain(tmp_path, in_function(GENERIC, MEMREF, ("a", "b", "c", "out"), (8, 8), "f32"), "f32")


MATMUL = """
linalg.generic {{
  indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
  iterator_types = ["parallel", "parallel", "reduction"]
}} ins(%a, %b : {a}, {b}) outs(%out : {out}) {{
^bb0(%x: {tile}, %y: {tile}, %sum: {tile}):
  %p = ttl.tile_matmul %x, %y {{k = 1 : i32, columns = 1 : i32}}
  %s = ttl.tile_add %sum, %p
  linalg.yield %s : {tile}
}}
"""
FILL = "%zero_f = arith.constant 0.0 : f32\nlinalg.fill ins(%zero_f : f32) outs(%out : {out})\n"
SIZES = {"a": (2, 3), "b": (3, 2), "out": (2, 2)}


def memrefs(dtype: str, listing: str) -> str:
    kinds = {name: f"memref<{shape[0]}x{shape[1]}x{tile(dtype)}, #L1>" for name, shape in SIZES.items()}
    return listing.format(tile=tile(dtype), **kinds)


@spec("5.6.6", "iterator types: parallel for elementwise, reduction for the inner dimension of a product")
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_generic_with_a_reduction(tmp_path: Path, dtype: str):
    """linalg.fill says what the sum starts from."""
    listing = memrefs(dtype, FILL + MATMUL)
    kind = f"memref<8x8x{tile(dtype)}, #L1>"
    text = in_function(listing, kind, ("a", "b", "out"), (2, 2), dtype, SIZES)
    arrays = [values((2, 3), dtype, seed=1), values((3, 2), dtype, seed=2), zeros((2, 2), dtype)]
    run(text, arrays, tmp_path)
    assert relative(arrays[2], wide(arrays[0]) @ wide(arrays[1])) < 0.01


@spec("5.6.6", "a reduction on blocks of buffers continues from what its output block holds")
def test_reduction_continues(tmp_path: Path):
    shapes = {"a": (2, 3), "b": (3, 2), "c": (2, 2)}
    kinds = {name: block(shape, "bf16") for name, shape in {**shapes, "out": (2, 2)}.items()}
    body = "%r = " + MATMUL.format(tile=tile("bf16"), a=kinds["a"], b=kinds["b"], out=kinds["out"]).strip().replace("outs(%out", "outs(%c")
    text = program(f"{body} -> {kinds['out']}\nttl.block_store %out, %r", shapes, {"out": (2, 2)}, dtype="bf16")
    arrays = [values(shape, "bf16", seed=number) for number, shape in enumerate(shapes.values())] + [zeros((2, 2), "bf16")]
    run(text, arrays, tmp_path)
    a, b, c, found = (wide(array) for array in arrays)
    assert relative(found, c + a @ b) < 0.01
    wrong = text.replace("outs(%c", "outs(%out")
    refused(wrong, tmp_path, "TW603", "linalg.generic", "reads its output, and nobody has written that block")


@spec("5.6.6", "rows and columns of tiles reduced by linalg.generic")
@pytest.mark.parametrize(("dim", "axis"), [("row", 1), ("col", 0)])
def test_generic_of_rows(tmp_path: Path, dim: str, axis: int):
    shape = (2, 1) if axis == 1 else (1, 3)
    kinds = {"x": block((2, 3), "bf16"), "ones": block((1, 1), "bf16"), "o": block(shape, "bf16")}
    place = "(d0, 0)" if axis == 1 else "(0, d1)"
    iterators = '["parallel", "reduction"]' if axis == 1 else '["reduction", "parallel"]'
    t = tile("bf16")
    body = f"""
    %number = arith.constant 0.0 : f32
    %init = linalg.fill ins(%number : f32) outs(%o : {kinds["o"]}) -> {kinds["o"]}
    %r = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, 0)>, affine_map<(d0, d1) -> {place}>],
      iterator_types = {iterators}
    }} ins(%x, %ones : {kinds["x"]}, {kinds["ones"]}) outs(%init : {kinds["o"]}) {{
    ^bb0(%tx: {t}, %t1: {t}, %to: {t}):
      %part = ttl.tile_reduce %tx, %t1 {{kind = "sum", dim = "{dim}"}}
      %sum = ttl.tile_add %to, %part
      linalg.yield %sum : {t}
    }} -> {kinds["o"]}
    ttl.block_store %o, %r
    """
    arrays = [values((2, 3), "bf16"), np.ones((32, 32), DTYPES["bf16"]), zeros(shape, "bf16")]
    run(program(body, {"x": (2, 3), "ones": (1, 1)}, {"o": shape}, dtype="bf16"), arrays, tmp_path)
    found = wide(arrays[2])[:, 0] if axis == 1 else wide(arrays[2])[0, :]
    assert np.abs(found - wide(arrays[0]).sum(axis=axis)).max() < 0.1


@spec("5.6.6", "a reduction that no unit has, a window and maps that are none are refused at the op")
def test_wrong_generics(tmp_path: Path):
    listing = memrefs("bf16", FILL + MATMUL)
    kind = f"memref<8x8x{tile('bf16')}, #L1>"
    text = in_function(listing, kind, ("a", "b", "out"), (2, 2), "bf16", SIZES)
    product = "%p = ttl.tile_matmul %x, %y {k = 1 : i32, columns = 1 : i32}"
    refused(text.replace(product, "%p = ttl.tile_mul %x, %y"), tmp_path, "TW603", "linalg.generic", "no unit has this reduction")
    refused(text.replace('"reduction"', '"window"'), tmp_path, "TW603", "linalg.generic", "parallel or reduction")
    refused(text.replace("(m, n, k) -> (m, k)", "(m, n, k) -> (m * 0, k)"), tmp_path, "TW603", "linalg.generic", "dimension")
    every = text.replace('"reduction"', '"parallel"')
    refused(every, tmp_path, "TW603", "linalg.generic", "has its parallel iterators as dimensions")


@spec("5.6.2", "block, sub-block, tile, operation: per sub-block one init and one tile loop per operation, one pack")
def test_loop_nest(tmp_path: Path):
    """The order of calls of phase 3's listing, for one of eight 1x8 sub-blocks."""
    made = compiled(in_function(GENERIC.replace("f32", "bf16"), MEMREF.replace("f32", "bf16"), ("a", "b", "c", "out"), (8, 8), "bf16"), tmp_path, metal="0.62")
    assert sub_blocks(made) == (8, 8)
    cpp = made.cpp["compute"]
    order = ["add_tiles_init(", "add_tiles(", "binary_dest_reuse_tiles_init<", "binary_dest_reuse_tiles<", "exp_tile(", "pack_tile"]
    places = [re.sub(r"exp_tile<[^>]*>", "exp_tile", cpp).index(call) for call in order]
    assert places == sorted(places)
    for call in ("add_tiles(", "binary_dest_reuse_tiles<"):
        assert cpp.count(call) == 1
    assert cpp.count("for (") >= 4  # over sub-blocks, and over the tiles of each operation


@spec("5.6.3", "what the transform script of phase 2 does is done by ttl-tile-and-assign-dst: target_size is the capacity of DST")
@pytest.mark.parametrize(("capacity", "runs"), [(8, 8), (4, 16), (2, 32), (1, 64)])
def test_tiling_by_capacity(tmp_path: Path, capacity: int, runs: int):
    """multitile_sizes {{target_size = capacity}}, split and tile_using_for: see docs/decisions/0022."""
    text = in_function(GENERIC.replace("f32", "bf16"), MEMREF.replace("f32", "bf16"), ("a", "b", "c", "out"), (8, 8), "bf16")
    arrays = [values((8, 8), "bf16", seed=number) for number in range(3)] + [zeros((8, 8), "bf16")]
    made = run(text, arrays, tmp_path, dst_capacity=capacity)
    assert sub_blocks(made) == (runs, capacity)
    assert relative(arrays[3], chained(arrays)) < 0.02


SCRIPT = """
transform.sequence failures(propagate) {
^bb0(%module: !transform.any_op):
  %generics = transform.structured.match ops{["linalg.generic"]} in %module
    : (!transform.any_op) -> !transform.any_op
}
"""


@spec("5.6.4", "phase 2: a transform script in the text is refused, with the option that replaces it")
def test_transform_script(tmp_path: Path):
    text = GENERIC_FUNCTION + SCRIPT
    refused(text, tmp_path, "TW603", "transform.sequence", "--dst-capacity is its target_size")


GENERIC_FUNCTION = f"func.func @compute(%a: {MEMREF}, %b: {MEMREF}, %c: {MEMREF}, %out: {MEMREF}) {{\n{GENERIC}\nfunc.return\n}}\n"


@spec("5.6.4", "phase 2, its result: every sub-block takes the whole chain; phase 3: calls of one sub-block")
def test_result_of_tiling(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "generic.mlir"
    path.write_text(GENERIC_FUNCTION.replace("f32", "bf16"))
    assert main(["opt", str(path), "-p", "ttl-expand-text-forms,convert-ttl-to-compute,ttl-set-compute-config,ttl-assign-dst"]) == 0
    text = capsys.readouterr().out
    assert text.count("scf.for") == 1  # over sub-blocks; the region inside has the whole chain
    chain = [text.index(name) for name in ("scf.for", "ttl.tile_add", "ttl.tile_mul", "ttl.tile_exp")]
    assert chain == sorted(chain) and "ttl.unroll_factor = 8" in text


@spec("5.6.5", "the walkthrough: eight adds into DST[0..7], eight products onto them, eight exponentials, eight packs")
def test_walkthrough(tmp_path: Path):
    text = in_function(GENERIC.replace("f32", "bf16"), MEMREF.replace("f32", "bf16"), ("a", "b", "c", "out"), (8, 8), "bf16")
    made = run_chain(tmp_path, text, "bf16")
    (plan,) = made.dst
    allocation = plan.parts[0].allocation
    assert allocation.slots == 1 and [allocation.dst_index(0, number) for number in range(8)] == list(range(8))


@spec("5.6.7", "a chain needs one register per tile, as each operation takes over its operand's; a product needs one as well")
@pytest.mark.parametrize("body", ["%r = ttl.block_add %a, %b\n%s = ttl.block_mul %r, %c\n%t = ttl.block_exp %s", "%t = ttl.block_matmul %a, %b"])
def test_registers_per_tile(tmp_path: Path, body: str):
    shapes = {"a": (2, 2), "b": (2, 2), "c": (2, 2)}
    text = program(f"{body}\nttl.block_store %o, %t", shapes, {"o": (2, 2)}, dtype="bf16").replace("%c_", "%c_")
    if "%c" not in body:
        text = program(f"{body}\nttl.block_store %o, %t", {"a": (2, 2), "b": (2, 2)}, {"o": (2, 2)}, dtype="bf16")
    (plan,) = compiled(text, tmp_path).dst
    assert plan.parts[0].allocation.slots == 1


# The definitions ------------------------------------------------------------------------------------------------------------------

DEFINITIONS = (Path(__file__).parent / "ttl_ops.td").read_text(encoding="utf-8")
DEFINITION = re.compile(r'^// (4[\d.]*)\ndef (\w+) : TTL_Op<"(\w+)".*?^\}', re.DOTALL | re.MULTILINE)
ARGUMENT = re.compile(r"([\w<>]+):\$(\w+)")


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param(found, id=found[3], marks=spec(found[1], f"ttl.{found[3]} is an op with the operands and attributes of its definition"))
        for found in DEFINITION.finditer(DEFINITIONS)
    ],
)
def test_definition(definition: re.Match[str]):
    """Every attribute of the definition is one that our op has; every operand that it must have, it takes."""
    from tilewright.dialects.attribute_rules import known_attributes
    from tilewright.dialects.registered import TTL

    name = f"ttl.{definition[3]}"
    assert name in {op.name for op in TTL.operations}
    arguments = re.search(r"let arguments = \((.*?)\);", definition[0], re.DOTALL)
    attributes = {key for kind, key in ARGUMENT.findall(arguments[1] if arguments else "") if "Attr" in kind}
    known = known_attributes(name)
    assert known is not None and attributes <= known


def test_all_definitions_are_there():
    assert len(DEFINITION.findall(DEFINITIONS)) == DEFINITIONS.count("\ndef ")
