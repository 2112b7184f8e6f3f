"""``ttl-validate`` judges a module and leaves it as it is: its text is the same before and after."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import golden_files
import kernel_corpus
import kernel_text
from tilewright import execution, pipeline
from tilewright.cli import invocation
from tilewright.hardware import CHIPS
from tilewright.options import Options
from tilewright.passes.context import PassContext
from tilewright.program import TensorSpec

STAGE = pipeline.STAGES["ttl-validate"]


@pytest.mark.parametrize("example", golden_files.EXAMPLES, ids=lambda path: path.stem)
def test_examples(example: Path, capsys):
    found = []
    compiling = execution.session(mode=execution.COMPILE, keep_ir=True, on_compiled=(found.append,))
    with compiling, contextlib.suppress(AssertionError):  # nothing was computed
        invocation.run_script(str(example), [])
    capsys.readouterr()
    assert found
    for program in found:
        texts = {stage.name: stage.ir for stage in program.trace.stages}
        assert texts[STAGE[-1]] == texts[STAGE[-2]] != ""


@pytest.mark.parametrize("part", range(8))
def test_corpus(part: int, tmp_path: Path):
    """One kernel of eight per test: each row of the op table, each structural form."""
    for number, kernel in enumerate(kernel_corpus.corpus()[part::8]):
        folder = tmp_path / str(number)
        folder.mkdir()
        options = Options(**dict(kernel.options))
        specs = [TensorSpec(name=f"t{place}", shape=shape, dtype=dtype) for place, (shape, dtype) in enumerate(kernel.tensors)]
        built = kernel_text.load(kernel.source, folder).build(*specs)
        context = PassContext(options=options, chip=CHIPS[options.arch], grid=built.grid, tensors=built.tensors)
        for name in STAGE[:-1]:
            pipeline.run_pass(name, built.module, context)
        before = str(built.module)
        pipeline.run_pass(STAGE[-1], built.module, context)
        assert str(built.module) == before, kernel.name
