"""What the functions say holds of the value, and nothing is loaded to say it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from tilewright import narrowing


def test_one_value_or_several():
    assert narrowing.as_tuple([1, 2]) == narrowing.as_tuple((1, 2)) == (1, 2)
    assert narrowing.as_tuple("ab") == ("ab",)
    assert narrowing.as_tuple(None) == (None,)


def test_classes():
    values = {"list": [], "tuple": (), "range": range(2), "dict": {}, "slice": slice(2), "array": np.zeros(2)}
    assert [name for name, value in values.items() if narrowing.is_list(value)] == ["list", "tuple"]
    assert [name for name, value in values.items() if narrowing.is_row(value)] == ["list", "tuple", "range"]
    assert [name for name, value in values.items() if narrowing.is_dict(value)] == ["dict"]
    assert [name for name, value in values.items() if narrowing.is_slice(value)] == ["slice"]
    assert [name for name, value in values.items() if narrowing.is_array(value)] == ["array"]


def test_numpy_is_not_loaded_to_say_that_something_is_no_array():
    code = "import sys; from tilewright.narrowing import is_array; print(is_array([]), 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == ["False", "False"]
