"""IR text that is changed at random, and passes in any order: a result, or an error with a code at a line. Never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from text_corpus import TEXTS

from mlir_mutants import outcomes
from tilewright import pipeline
from tilewright.cli import mlir_files, opt
from tilewright.cli.main import main
from tilewright.diagnostics import KernelError
from tilewright.hardware import CHIPS
from tilewright.options import Options
from tilewright.passes.context import PassContext


@pytest.mark.parametrize("seed", range(4))
def test_mutated_text(seed: int):
    for found in outcomes(TEXTS, 100, 1000 + seed):
        assert found.defect is None, found.text
        assert found.placed, found.text


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_texts_compile(number: int):
    """Unchanged they are right: what the fuzzer starts from."""
    module = mlir_files.parse(TEXTS[number], "text.mlir")
    mlir_files.verify(module)
    pipeline.run(module, PassContext(options=Options(), chip=CHIPS["wormhole_b0"]))


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_texts_on_the_command_line(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """``opt -p all`` and ``compile`` take each of them."""
    path = tmp_path / "text.mlir"
    path.write_text(TEXTS[number], encoding="utf-8")
    assert main(["opt", str(path), "-p", "all", "--verify"]) == 0, capsys.readouterr().err
    assert "= ttl." not in capsys.readouterr().out  # only hardware calls are left
    assert main(["compile", str(path)]) == 0, capsys.readouterr().err
    assert "void kernel_main()" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(40))
def test_passes_in_any_order(seed: int):
    chance = random.Random(seed)
    names = [stage.name for stage in pipeline.PASSES]
    if seed % 2:
        first, second = chance.sample(range(len(names)), 2)
        names[first], names[second] = names[second], names[first]
    else:
        names = [name for name in names if chance.random() < 0.7]
    module = mlir_files.parse(chance.choice(TEXTS), "text.mlir")
    mlir_files.verify(module)
    context = PassContext(options=Options(), chip=CHIPS["wormhole_b0"])
    try:
        for name in names:
            opt.check_needs(name, module)
            pipeline.run(module, context, [name], check=False)
    except KernelError as error:
        assert error.diagnostics[0].span is not None


@pytest.mark.parametrize("step", ["%i", "%zero", "%twice"])
def test_a_step_that_is_or_may_be_zero(step: str):
    """The first index of the loop around it is 0."""
    (text,) = [text for text in TEXTS if "tiled = false" in text and "scf.for %j = %zero to %two step %one {" in text][:1]
    inner = f"%twice = arith.addi %i, %i : index\n      scf.for %j = %zero to %two step {step} {{"
    module = mlir_files.parse(text.replace("scf.for %j = %zero to %two step %one {", inner, 1), "text.mlir")
    with pytest.raises(KernelError, match="in steps of 1 or more"):
        pipeline.run(module, PassContext(options=Options(), chip=CHIPS["wormhole_b0"]))


def test_what_stands_behind_the_end_of_a_block():
    (text,) = [text for text in TEXTS if "ttl.yield %centered" in text][:1]
    module = mlir_files.parse(text.replace("ttl.yield %centered", "ttl.yield %centered\n    ttl.yield %centered", 1), "text.mlir")
    with pytest.raises(KernelError, match="something stands behind it"):
        pipeline.run(module, PassContext(options=Options(), chip=CHIPS["wormhole_b0"]))


def test_a_fill_of_a_block_inside_of_tile_code():
    (text,) = [text for text in TEXTS if "linalg.fill" in text and "  linalg.yield %s" in text][:1]
    fill = next(line for line in text.splitlines() if line.startswith("linalg.fill"))
    module = mlir_files.parse(text.replace("  linalg.yield %s", f"  {fill}\n  linalg.yield %s", 1), "text.mlir")
    with pytest.raises(KernelError, match="inside of an op that works on tiles"):
        pipeline.run(module, PassContext(options=Options(), chip=CHIPS["wormhole_b0"]))


def test_an_accessor_without_a_name():
    (text,) = [text for text in TEXTS if 'tensor_index = 2 : i32, name = "out"' in text][:1]
    module = mlir_files.parse(text.replace('tensor_index = 2 : i32, name = "out"', 'tensor_index = 2 : i32, name = ""'), "text.mlir")
    pipeline.run(module, PassContext(options=Options(), chip=CHIPS["wormhole_b0"]))
