"""Results files: one line an entry, merged by problem, not used if another release or other costs made them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tuned_kernels

from tilewright.tune import results
from tilewright.tune.results import current_versions

VERSIONS = current_versions()
ENTRY = results.Entry(
    kernel="scale", chip="wormhole_b0", key={"M": 128, "N": 256, "dtype": "f32"}, config={"width": 4, "depth": 1, "grid": [1, 1]},
    time_us=3.5, how="predicted", tilewright=VERSIONS.tilewright, costs=VERSIONS.costs,
)  # fmt: skip
A = np.zeros((128, 256), np.float32)


def test_entries_are_lines_that_merge(tmp_path: Path):
    path = tmp_path / "x.tune.json"
    other = replace(ENTRY, key={"M": 64})
    assert results.store(path, [ENTRY]) == "" and results.store(path, [other, replace(ENTRY, time_us=2.0)]) == ""
    entries, problem = results.read(path)
    assert problem == "" and len(entries) == 2 and {entry.time_us for entry in entries} == {2.0, 3.5}
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["format"] == 1 and sum('"kernel"' in line for line in text.splitlines()) == 2
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_later_calls_use_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tuned_kernels.write(tmp_path)
    results.store(results.beside(str(path)), [ENTRY])
    kernel = tuned_kernels.load(path)["scale"]
    assert kernel.config(A, A) == {"width": 4, "depth": 1, "grid": (1, 1)}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("change", [{"costs": "0123"}, {"tilewright": "0.0.1"}])
def test_entries_of_another_version_are_not_used_and_a_note_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str]
):
    path = tuned_kernels.write(tmp_path)
    results.store(results.beside(str(path)), [replace(ENTRY, **change)])
    kernel = tuned_kernels.load(path)["scale"]
    assert kernel.config(A, A)["grid"] == (2, 2)
    assert "it is not used" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", '{"format": 7, "entries": []}', '{"format": 1, "entries": [{"kernel": 3}]}', "[1]"])
def test_a_damaged_file_is_not_used_and_not_overwritten(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]):
    path = tuned_kernels.write(tmp_path)
    beside = results.beside(str(path))
    beside.write_text(text, encoding="utf-8")
    kernel = tuned_kernels.load(path)["scale"]
    assert kernel.config(A, A)["grid"] == (2, 2)
    assert beside.name in capsys.readouterr().err
    assert "Nothing was written" in results.store(beside, [ENTRY]) and beside.read_text(encoding="utf-8") == text


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    assert "Permission denied; the results are not kept" in results.store(tmp_path / "x.tune.json", [ENTRY])


def test_a_configuration_the_space_no_longer_has_is_searched_again(tmp_path: Path):
    path = tuned_kernels.write(tmp_path)
    results.store(results.beside(str(path)), [replace(ENTRY, config={"width": 3, "depth": 1, "grid": [1, 1]})])
    assert tuned_kernels.load(path)["scale"].config(A, A)["width"] != 3
