"""The table that comes with the library: an entry for every kernel and chip, each one a configuration its space has."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution
from tilewright import kernels as library
from tilewright.kernels.sharing import TABLE
from tilewright.tune import results
from tilewright.tune.problem import from_json, pose

ENTRIES, PROBLEM = results.read(TABLE)


def tensor(*shape: int) -> Any:
    return np.broadcast_to(np.zeros((), ml_dtypes.bfloat16), shape)


def arguments(kernel: str, key: dict[str, Any]) -> tuple[Any, ...]:
    sizes = {name: value for name, value in key.items() if isinstance(value, int)}
    dims = getattr(library, kernel).request.dims
    given = {name: tensor(*(sizes.get(word, {"ONE": 32, "H": sizes.get("D", 0) // 2}.get(word, 0)) for word in words)) for name, words in dims.items()}
    line = tensor(32, sizes.get("N", 32))
    names = list(getattr(library, kernel).subject.signature.parameters)
    extra = {"gamma": line, "beta": line, "op": key.get("op")}
    return tuple({**given, **extra}[name] for name in names if name in {**given, **extra})


def test_every_kernel_has_entries_for_both_chips():
    assert not PROBLEM
    found = {(entry.kernel, entry.chip) for entry in ENTRIES}
    assert found == {(name, chip) for name in library.__all__ for chip in ("wormhole_b0", "blackhole")}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kernel}-{entry.chip}-{'-'.join(map(str, entry.key.values()))}")
def test_entries_are_found_by_calls(entry: results.Entry, capsys: pytest.CaptureFixture[str]):
    kernel = getattr(library, entry.kernel)
    with execution.session(overrides={"arch": entry.chip}):
        args = arguments(entry.kernel, entry.key)
        problem, space = pose(kernel.subject, kernel.request, args, {})
        assert problem.key == entry.key
        config = from_json(entry.config, space)
        assert config is not None and kernel.choose(problem, space) == config
    assert capsys.readouterr().err == ""
