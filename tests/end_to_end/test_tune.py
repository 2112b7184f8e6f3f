"""``tilewright tune``: the table, the results file, the plot; interrupted, refused, on a folder that cannot be written."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tuned_kernels

from tilewright import kernels
from tilewright.cli import main as command_line
from tilewright.diagnostics import KernelError
from tilewright.tune import measure


@pytest.fixture(autouse=True)
def own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.tune.journal.folder", lambda: tmp_path / "log")


def tune(*words: str) -> int:
    return command_line.main(["tune", "--workers", "0", *words])


def test_the_table_the_file_and_the_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tuned_kernels.write(tmp_path)
    assert tune(str(script), "--top", "3", "--budget", "5m", "-o", str(tmp_path / "out")) == 0
    told = capsys.readouterr()
    first, header, *rows = told.out.splitlines()
    assert first.startswith("scale (M=128, N=256, dtype=f32) on wormhole_b0: 16 of 16 looked at, ")
    assert first.endswith("nothing that could be better is left")
    assert header.split() == ["config", "time", "(us)", "bound", "by", "±"] and len(rows) == 3
    assert re.match(r"  1  width=\d depth=\d grid=2x2 +[\d.]+  predicted +math +8%$", rows[0])
    entry = json.loads((tmp_path / "scaled.tune.json").read_text(encoding="utf-8"))["entries"][0]
    assert entry["kernel"] == "scale" and entry["how"] == "predicted" and entry["config"]["grid"] == [2, 2]
    svg = ElementTree.parse(tmp_path / "out" / "scale.svg").getroot()
    dots = [element for element in svg.iter() if element.tag.endswith("circle")]
    assert len(dots) == 3 * 16  # one for each configuration in each of three panels
    table = json.loads((tmp_path / "out" / "table.json").read_text(encoding="utf-8"))
    assert table[0]["space"] == 16 and len(table[0]["best"]) == 3 and table[0]["complete"]


def test_calls_use_what_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tuned_kernels.write(tmp_path)
    assert tune(str(script), "--quiet") == 0
    capsys.readouterr()
    a, y = tuned_kernels.load(script)["main"]()
    assert np.allclose(y, 2 * np.exp(a), rtol=1e-2) and "tuned scale" not in capsys.readouterr().err


def test_json_and_the_other_chip(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tuned_kernels.write(tmp_path)
    assert tune(str(script), "--json", "--arch", "blackhole", "--dry-run") == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["chip"] == "blackhole" and told["key"] == {"M": 128, "N": 256, "dtype": "f32"} and told["best"]
    assert not (tmp_path / "scaled.tune.json").exists()


def test_reasons_of_what_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tuned_kernels.write(tmp_path, 'space={"width": [1, 5], "depth": [2, 4000]}')
    assert tune(str(script), "--verbose") == 0
    told = capsys.readouterr()
    assert re.search(r"refused: 1 by TW021, 2 by TW30\d", told.out)
    assert re.search(r"width=1 depth=4000: TW30\d: ", told.err) and "width=5 depth=2: TW021: writes" in told.err
    log = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / "log").iterdir())
    assert log.count('"state": "refused"') >= 2


def test_nothing_compiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tuned_kernels.write(tmp_path, 'space={"depth": [4000, 5000]}')
    assert tune(str(script)) == 1
    told = capsys.readouterr().err
    assert "no configuration of 'scale' compiles" in told and "depth=5000: TW30" in told


def test_scripts_without_tuned_kernels_and_wrong_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert tune(str(tmp_path / "missing.py")) == 2
    plain = tmp_path / "plain.py"
    plain.write_text("print('hello')\n", encoding="utf-8")
    assert tune(str(plain)) == 1 and "called no tuned kernel" in capsys.readouterr().err
    for words in (["--budget", "soon"], ["--budget", "0s"], ["--top", "x"]):
        with pytest.raises(SystemExit):
            tune(*words, str(plain))


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    script = tuned_kernels.write(tmp_path)
    replace = os.replace

    def refuse(source: Any, target: Any) -> None:
        if str(target).endswith(".tune.json"):
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    assert tune(str(script)) == 0
    told = capsys.readouterr()
    assert "Permission denied; the results are not kept" in told.err and "predicted" in told.out
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert tune(str(script), "-o", str(blocked / "out")) == 2


def test_an_interrupt_keeps_what_was_found(tmp_path: Path):
    space = 'space={"width": [1, 2, 4, 8], "depth": list(range(1, 40)), "grid": [(1, 1), (2, 2)]}, dims={"a": ("M", "N")}'
    script = tuned_kernels.write(tmp_path, space)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tilewright", "tune", "--workers", "2", "--budget", "10m", "--json", str(script)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "cache" / "tilewright" / "tune"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (log.exists() and any(file.stat().st_size > 2000 for file in log.iterdir())):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    (told,) = json.loads(out)
    assert told["ended"] == "interrupted" and 0 < told["tried"] < 312
    assert (tmp_path / "scaled.tune.json").exists()


def test_devices_choose_among_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Without a card: what a device would measure is made up, and its order wins."""
    script = tuned_kernels.write(tmp_path)
    times = iter([30.0, 20.0, 25.0])
    monkeypatch.setattr(measure.execution, "device_options", lambda _tensors: {})
    monkeypatch.setattr(measure.execution, "measured", lambda _program, _tensors: next(times))
    assert tune(str(script), "--measure", "--top", "3") == 0
    rows = capsys.readouterr().out.splitlines()[2:5]
    assert [row.split()[4:6] for row in rows] == [["20.00", "measured"], ["25.00", "measured"], ["30.00", "measured"]]
    entry = json.loads((tmp_path / "scaled.tune.json").read_text(encoding="utf-8"))["entries"][0]
    assert entry["measured_us"] == 20.0 and entry["time_us"] < 100


def test_measuring_needs_ttnn(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "ttnn" else find(name, *rest))
    assert tune(str(tuned_kernels.write(tmp_path)), "--measure") == 1
    assert "TW601" in capsys.readouterr().err


def test_a_call_that_leaves_nothing_says_what_to_give_too():
    from tilewright import kernels

    arrays = [np.zeros((256, 256), dtype=np.float32) for _ in range(3)]
    with pytest.raises(KernelError) as error:
        kernels.matmul.space(*arrays, grid=(4, 4), multicast="none", block_m=2, block_n=2, block_k=4)
    (found,) = error.value.diagnostics
    assert found.code == "TW019" and "give depth too" in found.help and "multicast='none'" in found.help
    plan = {"grid": (4, 4), "multicast": "none", "block_m": 2, "block_n": 2, "block_k": 4, "depth": 2}
    assert kernels.matmul.space(*arrays, **plan).configs == [plan]


LIBRARY = """
import ml_dtypes
import numpy as np

from tilewright import kernels

x = np.zeros((64, 64), ml_dtypes.bfloat16)
kernels.transpose(x, np.zeros_like(x))
"""


def test_results_of_library_kernels_lie_beside_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "uses.py"
    script.write_text(LIBRARY, encoding="utf-8")
    assert tune(str(script), "--budget", "20s", "--top", "1", "--quiet") == 0
    assert [path.name for path in tmp_path.glob("*.json")] == ["uses.tune.json"]
    assert not list(Path(kernels.__file__).parent.glob("*.tune.json"))
