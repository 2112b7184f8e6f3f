"""The IR that any pass prints is an input: compiled from there on, it gives the C++ of the whole pipeline, in both orders of passes."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tilewright import execution, pipeline
from tilewright.cli import invocation, mlir_files
from tilewright.compiler import compile_module

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Two outputs, pipes and semaphores, shards, rows, products over K; running values, sections and splits in TileLang.
CHOSEN = ("04_two_outputs", "07_ring", "10_matmul", "11_sharded", "12_row_major")
CHOSEN += ("tilelang/05_online_softmax", "tilelang/07_flash_attention", "tilelang/12_split_sums")
SYNC, LOOPS = "ttl-insert-tile-regs-sync", "ttl-lower-to-loops"


@pytest.fixture(scope="module", params=CHOSEN)
def program(request: pytest.FixtureRequest):
    found: list = []
    session = execution.session(mode=execution.COMPILE, keep_ir=True, on_compiled=(found.append,), cache=False)
    with session, contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(AssertionError):  # nothing was computed
        invocation.run_script(str(EXAMPLES / f"{request.param}.py"), [])
    return found[0]


def code(text: str) -> list[str]:
    """Without comments, which name the Python lines."""
    return [line for line in (re.sub(r"\s*//.*", "", line) for line in text.splitlines()) if line]


def compiled(program, text: str, passes=None, **settings):
    module = mlir_files.parse(text, "stage.mlir")
    mlir_files.verify(module)
    chosen = pipeline.remaining(module) if passes is None else passes
    known = {"name": program.name, "grid": program.grid, "tensors": program.tensors, "options": program.options}
    return compile_module(module, **known, passes=chosen, **settings)


def test_every_stage_is_an_input(program):
    for stage in program.trace.stages:
        found = compiled(program, stage.ir)
        assert {role: code(text) for role, text in found.cpp.items()} == {r: code(t) for r, t in program.cpp.items()}, stage.name


def test_loops_before_sync(program):
    """The same calls; the acquire may stand behind a reserve that the other order has behind it."""
    names = [stage.name for stage in pipeline.PASSES]
    rest = [name for name in names[names.index(LOOPS) :] if name != SYNC]
    rest.insert(rest.index("convert-ttl-to-ttkernel"), SYNC)
    found = compiled(program, program.trace.stage("ttl-tile-and-assign-dst").ir, rest, keep_ir=True)
    again = compiled(program, found.trace.stage(LOOPS).ir)
    for role, text in program.cpp.items():
        assert sorted(code(found.cpp[role])) == sorted(code(text))
        assert code(again.cpp[role]) == code(found.cpp[role])
