"""``core_ranges`` of ``ttl.create_cb``: only these cores have the buffer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import execution
from tilewright.cli.mlir_files import compile_file
from tilewright.diagnostics import KernelError
from tilewright.runtime import runner
from tilewright.sim.run import simulate

TILE = "!ttcore.tile<32x32, f32>"
CB, BLOCK = f"<[1, 1], {TILE}, 2>", f"tensor<1x1x{TILE}>"
TENSOR, SLICE = f'!ttl.accessor<[4, 1], {TILE}, "dram">', f'!ttl.slice<[1, 1], {TILE}, "dram">'


def text(ranges: str, limit: int = 2) -> str:
    """Cores below ``limit`` of four double their tile."""
    head = """%n = ttl.core_linear : index
      %zero = arith.constant 0 : index
      %limit = arith.constant LIMIT : index
      %works = arith.cmpi ult, %n, %limit : index"""
    return f"""ttl.program attributes {{grid = [4, 1]}} {{
    %a = ttl.tensor_accessor {{tensor_index = 0 : i32, name = "a"}} : {TENSOR}
    %y = ttl.tensor_accessor {{tensor_index = 1 : i32, name = "y"}} : {TENSOR}
    %in = ttl.create_cb {{shape = [1, 1], core_ranges = {ranges}}} : {CB}
    %out = ttl.create_cb {{shape = [1, 1]}} : {CB}
    ttl.compute_thread {{
      {head}
      scf.if %works {{
        %x = ttl.cb_wait %in : {CB} -> {BLOCK}
        %o = ttl.cb_reserve %out : {CB} -> {BLOCK}
        %s = ttl.add %x, %x : {BLOCK}, {BLOCK} -> {BLOCK}
        ttl.store %s, %o : {BLOCK}, {BLOCK}
        ttl.cb_pop %in : {CB}
        ttl.cb_push %out : {CB}
      }}
    }}
    ttl.datamovement_thread {{
      {head}
      scf.if %works {{
        %b = ttl.cb_reserve %in : {CB} -> {BLOCK}
        %part = ttl.tensor_slice %a, %n, %zero : {TENSOR}, index, index -> {SLICE}
        %t = ttl.copy %part, %b : {SLICE}, {BLOCK} -> !ttl.transfer
        ttl.wait %t : !ttl.transfer
        ttl.cb_push %in : {CB}
      }}
    }}
    ttl.datamovement_thread {{
      {head}
      scf.if %works {{
        %b = ttl.cb_wait %out : {CB} -> {BLOCK}
        %part = ttl.tensor_slice %y, %n, %zero : {TENSOR}, index, index -> {SLICE}
        %t = ttl.copy %b, %part : {BLOCK}, {SLICE} -> !ttl.transfer
        ttl.wait %t : !ttl.transfer
        ttl.cb_pop %out : {CB}
      }}
    }}
  }}
""".replace("LIMIT", str(limit))


def compiled(folder: Path, ranges: str, limit: int = 2) -> Any:
    path = folder / "program.mlir"
    path.write_text(text(ranges, limit))
    return compile_file(str(path), {})


@pytest.mark.parametrize("engine", ["sim", "native"])
def test_only_cores_with_the_buffer_work(engine: str, tmp_path: Path):
    program = compiled(tmp_path, "[[[0, 2, 1], [0, 1, 1]]]")
    a = np.random.default_rng(0).uniform(-1, 1, (128, 32)).astype(np.float32)
    y = np.zeros_like(a)
    with execution.session(mode=engine):
        execution.run(program, [a, y])
    np.testing.assert_array_equal(y, np.concatenate([2 * a[:64], np.zeros_like(a[64:])]))


def test_launcher_gives_it_to_these_cores(tmp_path: Path):
    buffers = compiled(tmp_path, "[[[0, 1], [0, 1]], [[1, 4, 2], [0, 1]]]", limit=2).buffers
    assert [buffer.cores for buffer in buffers] == [((0, 0), (1, 0), (3, 0)), ()]
    facts = runner.facts(compiled(tmp_path, "[[[0, 2, 1], [0, 1, 1]]]"))
    assert [buffer["cores"] for buffer in facts["buffers"]] == [[(0, 0), (1, 0)], []]


def test_simulator_sees_a_use_elsewhere(tmp_path: Path):
    program = compiled(tmp_path, "[[[0, 2, 1], [0, 1, 1]]]")
    program.buffers = tuple(replace(buffer, cores=((0, 0),)) for buffer in program.buffers)
    with pytest.raises(KernelError, match=r"TW220.*this core does not have"):
        simulate(program, [np.zeros((128, 32), np.float32), np.zeros((128, 32), np.float32)])


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ("[[[0, 2, 1], [0, 1, 1]]]", r"TW220.*core \(2, 0\) uses 'in'"),
        ("[[[0, 9, 1], [0, 1, 1]]]", r"TW110.*core \(4, 0\), which the grid \(4, 1\) does not have"),
        ("[[[0, 2, 1]]]", "TW110.*one .start, stop, step. for each of the 2 dimensions"),
        ("[[0, 2]]", "core_ranges is a list"),
        ("[]", "core_ranges is a list"),
    ],
)
def test_ranges_that_do_not_cover_the_users(ranges: str, words: str, tmp_path: Path):
    with pytest.raises(KernelError, match=f"(?s){words}"):
        compiled(tmp_path, ranges, limit=3)
