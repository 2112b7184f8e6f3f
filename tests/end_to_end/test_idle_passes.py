"""A pass that its conditions leave out has nothing to do, and one that says so leaves a module as it is: on examples and corpus."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import golden_files
import idle_passes
import kernel_corpus
import kernel_text
from tilewright import execution, pipeline
from tilewright.cli import invocation
from tilewright.program import TensorSpec

CONDITIONAL = {each.name for each in pipeline.PASSES if each.on}
ALWAYS = {"ttl-clip-slices", "ttl-join-reads", "ttkernel-combine-pack-tiles"}  # every kernel of the corpus has what they look at


@pytest.mark.parametrize("example", golden_files.EXAMPLES, ids=lambda path: path.stem)
def test_examples(example: Path, capsys):
    found = []
    compiling = execution.session(mode=execution.COMPILE, cache=False, on_compiled=(found.append,))
    with idle_passes.watched() as counts, compiling, contextlib.suppress(AssertionError):  # nothing was computed
        invocation.run_script(str(example), [])
    capsys.readouterr()
    assert found and counts


@pytest.mark.parametrize("part", range(8))
def test_corpus(part: int, tmp_path: Path):
    """One kernel of eight per test: each row of the op table, each structural form."""
    with idle_passes.watched() as counts:
        for number, kernel in enumerate(kernel_corpus.corpus()[part::8]):
            folder = tmp_path / str(number)
            folder.mkdir()
            specs = [TensorSpec(name=f"t{place}", shape=shape, dtype=dtype) for place, (shape, dtype) in enumerate(kernel.tensors)]
            kernel_text.load(kernel.source, folder).compile(*specs, **dict(kernel.options))
    assert counts.keys() | ALWAYS >= CONDITIONAL
