"""Whole programs as text: threads, buffers, pipes and semaphores of the specification's sections 4.1, 4.2 and 4.7."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright import execution
from tilewright.cli.mlir_files import compile_file, parse, verify
from tilewright.diagnostics import KernelError

TILE = "!ttcore.tile<32x32, f32>"
CB = f"<[1, 1], {TILE}, 2>"
BLOCK = f"tensor<1x1x{TILE}>"
TENSOR = f'!ttl.accessor<[4, 1], {TILE}, "dram">'
SLICE = f'!ttl.slice<[1, 1], {TILE}, "dram">'

HEAD = f"""
  %a = ttl.tensor_accessor {{tensor_index = 0 : i32, name = "a"}} : {TENSOR}
  %y = ttl.tensor_accessor {{tensor_index = 1 : i32, name = "y"}} : {TENSOR}
  %in = ttl.create_cb {{shape = [1, 1], element_type = {TILE}, buffer_factor = 2, memory_space = "L1"}} : {CB}
  %out = ttl.create_cb {{shape = [1, 1], buffer_factor = 2, buffer_index = 16 : i32, page_size = 4096}} : {CB}
  %pipe = ttl.create_pipe {{src_core = [0, 0], dst_core_range = [[1, 4, 1], [0, 1, 1]]}} : !ttl.pipe
  %go = ttl.create_semaphore {{initial_value = 0 : i32}} : !ttl.semaphore
"""
THREADS = f"""
  ttl.compute_thread {{
    %x = ttl.cb_wait %in : {CB} -> {BLOCK}
    %o = ttl.cb_reserve %out : {CB} -> {BLOCK}
    %s = ttl.add %x, %x : {BLOCK}, {BLOCK} -> {BLOCK}
    ttl.store %s, %o : {BLOCK}, {BLOCK}
    ttl.cb_pop %in : {CB}
    ttl.cb_push %out : {CB}
  }}
  ttl.datamovement_thread {{
    %n = ttl.core_linear : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %first = arith.cmpi eq, %n, %zero : index
    %b = ttl.cb_reserve %in : {CB} -> {BLOCK}
    scf.if %first {{
      %part = ttl.tensor_slice %a, %n, %zero : {TENSOR}, index, index -> {SLICE}
      %t = ttl.copy %part, %b : {SLICE}, {BLOCK} -> !ttl.transfer
      ttl.wait %t : !ttl.transfer
      %u = ttl.copy %b, %pipe : {BLOCK}, !ttl.pipe -> !ttl.transfer
      ttl.wait %u : !ttl.transfer
    }} else {{
      %v = ttl.copy %pipe, %b : !ttl.pipe, {BLOCK} -> !ttl.transfer
      ttl.wait %v : !ttl.transfer
      %r = ttl.get_remote_semaphore %go {{core = [0, 0]}} : !ttl.semaphore -> !ttl.semaphore
      ttl.semaphore_inc %r, %one : !ttl.semaphore, index
    }}
    ttl.cb_push %in : {CB}
  }}
  ttl.datamovement_thread(%out, %y : {CB}, {TENSOR}) {{
  ^bb0(%queue: !ttl.cb{CB}, %target: {TENSOR}):
    %x = ttl.core {{dims = 1}} : index
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %x, %zero : index
    scf.if %first {{
      %three = arith.constant 3 : index
      ttl.semaphore_wait %go, %three {{at_least}} : !ttl.semaphore, index
    }}
    %b = ttl.cb_wait %queue : {CB} -> {BLOCK}
    %part = ttl.grid_slice %target {{block_factors = [1, 1]}} : {TENSOR} -> {SLICE}
    %t = ttl.copy %b, %part : {BLOCK}, {SLICE} -> !ttl.transfer
    ttl.wait %t : !ttl.transfer
    ttl.cb_pop %queue : {CB}
  }}
"""
PROGRAM = f'ttl.program attributes {{grid = [4, 1], memory_space = "L1", tiled = true}} {{{HEAD}{THREADS}}}\n'
CONFIG = '{math_fidelity = "HiFi2", fp32_dest_acc_en = true}'
KERNEL = (
    f"ttl.kernel attributes {{grid = [4, 1], block_factors = [[1, 1], [1, 1]], compute_config = {CONFIG}}} {{{HEAD}{THREADS}}}\n"
)


@pytest.mark.parametrize("text", [PROGRAM, KERNEL], ids=["program", "kernel"])
def test_text_survives_a_round_trip(text: str):
    module = parse(text, "program.mlir")
    verify(module)
    assert str(parse(str(module), "again.mlir")) == str(module)


@pytest.mark.parametrize("engine", ["sim", "native"])
@pytest.mark.parametrize("text", [PROGRAM, KERNEL], ids=["program", "kernel"])
def test_text_runs(text: str, engine: str, tmp_path: Path):
    path = tmp_path / "program.mlir"
    path.write_text(text)
    program = compile_file(str(path), {})
    assert program.grid == (4, 1)
    assert [(buffer.index, buffer.name) for buffer in program.buffers] == [(0, "in"), (16, "out")]
    assert [thread.role for thread in program.threads] == ["compute", "reader", "writer"]
    assert "go" in [semaphore.name for semaphore in program.semaphores]
    a = np.random.default_rng(0).uniform(-1, 1, (128, 32)).astype(np.float32)
    y = np.zeros_like(a)
    with execution.session(mode=engine):
        execution.run(program, [a, y])
    assert np.abs(y - np.tile(2 * a[:32], (4, 1))).max() == 0


def test_configuration_of_a_kernel_counts(tmp_path: Path):
    path = tmp_path / "kernel.mlir"
    path.write_text(KERNEL)
    config = compile_file(str(path), {}).config
    assert config.math_fidelity == "HiFi2" and config.fp32_dest_acc_en


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("grid = [4, 1], ", "", "needs grid"),
        ("page_size = 4096", "page_size = 100", "page_size is 4096 here"),
        ("shape = [1, 1], element_type", "shape = [2, 1], element_type", "shape and the type disagree"),
        ("dst_core_range = [[1, 4, 1], [0, 1, 1]]", "color = 1", "needs dst_core or dst_core_range"),
        ("block_factors = [1, 1]", "block_factors = [2, 1]", "block_factors are the shape of the slice"),
        ("ttl.semaphore_wait %go", "ttl.semaphore_wait %three", "operand is used with type"),
    ],
)
def test_wrong_text(old: str, new: str, message: str):
    text = PROGRAM.replace(old, new, 1)
    assert text != PROGRAM
    with pytest.raises(KernelError, match=message):
        verify(parse(text, "wrong.mlir"))
