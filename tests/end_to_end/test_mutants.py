"""The native run notices when the emitted text is wrong: every mutant of four kernels, but those that change nothing.

``python benchmarks/mutants.py`` does the same for more kernels and lists what is not noticed.
"""

from __future__ import annotations

import pytest

import kernel_corpus
import mutant_runs
import text_mutants
from tilewright.program import TensorSpec


@pytest.mark.parametrize("name", mutant_runs.KERNELS)
def test_mutants_are_noticed(kernels, name):
    kernel = mutant_runs.corpus_kernel(name, kernel_corpus.CorpusKernel)
    specs = [TensorSpec(name=f"t{place}", shape=shape, dtype=dtype) for place, (shape, dtype) in enumerate(kernel.tensors)]
    program = kernels.compile(kernel.source, *specs, **dict(kernel.options))
    results = list(mutant_runs.mutant_results(mutant_runs.prepared(program, kernel.tensors), text_mutants))
    assert len(results) >= 60
    missed = [str(mutant) for mutant, seen in results if not seen and not mutant_runs.is_equal(name, mutant)]
    assert missed == []
    equal = {mutant.before.split("//")[0].strip() for mutant, seen in results if not seen}
    assert equal == {line for kernel_name, _, line in mutant_runs.EQUAL if kernel_name == name}, "the list of equal mutants is exact"


def test_the_rest_is_small():
    """Mutants that change nothing stay the exception."""
    assert len([name for name, _, _ in mutant_runs.EQUAL if name in mutant_runs.KERNELS]) <= 4


def test_arguments_are_split_at_commas():
    assert text_mutants.split_arguments("a_cb, i * 3 + j, word(get_semaphore(1), 2), 0x3f80u /* 1, 2 */") == [
        "a_cb", "i * 3 + j", "word(get_semaphore(1), 2)", "0x3f80u",
    ]  # fmt: skip


def test_a_mutant_changes_one_line():
    text = "constexpr uint32_t a_cb = get_compile_time_arg_val(0);\nvoid kernel_main() {\n  copy_init(a_cb);\n  copy_tile(a_cb, j, j + 2);\n}\n"
    found = list(text_mutants.mutants_of("compute", text))
    assert [mutant.what for mutant in found] == [
        "left out", "left out", "argument 1 further by 1", "argument 2 further by 1", "arguments 1 and 2 swapped",
    ]  # fmt: skip
    for mutant in found:
        changed = [pair for pair in zip(text.split("\n"), mutant.applied(text).split("\n"), strict=True) if pair[0] != pair[1]]
        assert len(changed) == 1
