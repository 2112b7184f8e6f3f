"""The examples run as the README says, and check their own results against NumPy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright.cli.main import main

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


def test_there_are_examples():
    assert [path.name[:2] for path in EXAMPLES] == [f"{number:02}" for number in range(1, 17)]


@pytest.mark.parametrize("engine", ["sim", "fast", "native"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, engine: str, capsys: pytest.CaptureFixture[str]):
    flags = [] if engine == "sim" else [f"--{engine}"]
    assert main(["run", *flags, str(example)]) == 0
    captured = capsys.readouterr()
    assert re.match(r"max (relative )?error against NumPy: ", captured.out)
    err = re.sub(r"simulating .*\n", "", captured.err)  # how far it is, on a slow machine
    assert re.fullmatch(rf"\w+: grid [\dx]+, {engine} [\d.]+ m?s, DST \d+ of (4|8).*\n", err)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_emitted_code_computes_what_the_simulator_does(
    example: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """In another order of threads than usual: nobody may rely on who comes first."""
    monkeypatch.setenv("TILEWRIGHT_SCHEDULE", "last first")
    assert main(["run", "--quiet", str(example)]) == 0
    simulated = capsys.readouterr().out
    assert main(["run", "--quiet", "--native", str(example)]) == 0
    assert capsys.readouterr().out == simulated


@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_right_with_either_allocator(example: Path, allocator: str):
    assert main(["run", "--allocator", allocator, "--no-fpu-binary-ops", str(example)]) == 0


NEWER_RELEASES = {"15_decoder_layer": ("0.69", "0.78")}  # older ones cannot compare tiles


@pytest.mark.parametrize("metal", ["0.62", "0.69", "0.78"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_compiles_for_every_release(example: Path, metal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    if metal not in NEWER_RELEASES.get(example.stem, (metal,)):
        assert main(["compile", str(example), "-o", str(tmp_path), "--metal", metal]) == 1
        assert re.search(r"TW405.*choose 0\.\d+ or newer", capsys.readouterr().err, re.DOTALL)
        return
    assert main(["compile", str(example), "-o", str(tmp_path), "--metal", metal]) == 0
    (kernel,) = tmp_path.iterdir()
    movers = [] if example.stem == "11_sharded" else ["reader.cpp", "writer.cpp"]  # that one works where its data is
    assert sorted(path.name for path in kernel.iterdir()) == ["compute.cpp", "program.json", *movers]
    compute = (kernel / "compute.cpp").read_text(encoding="utf-8")
    assert ("namespace NAMESPACE" in compute) == (metal == "0.62")
    assert "tile_regs_acquire();" in compute
