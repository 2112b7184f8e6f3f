"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tilewright.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def kernel_text() -> str:
    found = re.search(r"```python\n(.*?)```", README, flags=re.S)
    assert found
    return found.group(1)


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "readme.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_kernel_adds(script):
    path = script(kernel_text())
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    a, b = (np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32) for seed in (0, 1))
    out = np.zeros((64, 64), dtype=np.float32)
    names["add"](a, b, out)  # type: ignore[operator]
    # float32 tiles take the vector unit, whose sum of two numbers is rounded once.
    assert np.abs(out - (a + b)).max() <= 2.0**-22 * np.abs(a + b).max()
    assert "add" in names["add"].compile(a, b, out).cpp["compute"]  # type: ignore[attr-defined]


def test_the_wrong_kernel_is_told_so(script, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    wrong = kernel_text().replace("ttl.copy(a[0:2, 0:2], x)", "ttl.copy(a[0:2, 0:3], x)")
    call = "\nimport numpy as np\na = np.zeros((64, 96), dtype=np.float32)\nadd(a, a, a)\n"
    path = script(wrong + call)
    monkeypatch.chdir(path.parent)
    assert main(["run", "readme.py"]) == 1
    error = capsys.readouterr().err
    shown = README.partition("$ tilewright run wrong.py\n")[2].partition("```")[0]
    for line in shown.splitlines():
        if line != "…":
            assert line.replace("wrong.py", "readme.py") in error


def test_the_code_it_shows_is_the_code_it_writes(tmp_path: Path):
    assert main(["compile", str(ROOT / "examples" / "01_add.py"), "-o", str(tmp_path)]) == 0
    shown = re.search(r"```cpp\n(.*?)```", README, flags=re.S)
    assert shown
    assert shown.group(1) in (tmp_path / "add_multitile_kernel" / "compute.cpp").read_text(encoding="utf-8")


def test_the_explanation_it_shows(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", str(ROOT / "examples" / "02_fused.py")]) == 0
    text = re.sub(r" +[\d.]+ ms", "", capsys.readouterr().out)
    shown = README.partition("$ tilewright explain examples/02_fused.py\n")[2].partition("```")[0]
    for line in re.sub(r" +[\d.]+ ms", "", shown).splitlines():
        if line != "…":
            assert line in text


def test_the_result_it_shows(capsys: pytest.CaptureFixture[str]):
    assert main(["run", str(ROOT / "examples" / "01_add.py")]) == 0
    captured = capsys.readouterr()
    shown = README.partition("tilewright run examples/01_add.py\n")[2].partition("```")[0].splitlines()
    assert captured.out.strip() == shown[1]
    assert re.sub(r"sim [\d.]+ m?s", "", captured.err.strip()) == re.sub(r"sim [\d.]+ m?s", "", shown[0])
