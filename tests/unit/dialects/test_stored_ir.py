"""Modules as plain values and back: the same text, the same places in the source."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import kernels as benchmark
from kernel_cases import CASES

from tilewright.dialects import stored_ir
from tilewright.dialects.walking import operations, span_of


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case.name)
def test_there_and_back(tmp_path, case):
    arrays = [np.zeros((rows * 32, columns * 32), benchmark.DTYPES[case.dtype]) for rows, columns in (*case.inputs.values(), *case.outputs)]
    module = benchmark.build(case, tmp_path).compile(*arrays, **case.options).module
    again = stored_ir.decoded(pickle.loads(pickle.dumps(stored_ir.encoded(module))))
    assert str(again) == str(module)
    assert [span_of(op) for op in operations(again)] == [span_of(op) for op in operations(module)]
    again.verify()


def test_other_modules_are_not_stored():
    from tilewright.dialects.text_input import parse

    text = "func.func @f() { %x, %y = ttl.core : index, index\n return }"
    assert stored_ir.encoded(parse(text, "text")) is None
