"""The command line on whole scripts."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tilewright import pipeline
from tilewright.cli.main import COMMANDS, main
from tilewright.report.page import unpacked

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ADD = str(EXAMPLES / "16_older_names.py")

SCRIPT = """
import numpy as np
import ttl
import ttnn

@ttl.operation(grid=(1, 1))
def twice(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    tiles = a.shape[1] // 32

    @ttl.compute()
    def compute():
        for _ in range(tiles):
            with a_dfb.wait() as a_blk, y_dfb.reserve() as y_blk:
                y_blk.store({expression})

    @ttl.datamovement()
    def read():
        for tile in range(tiles):
            with a_dfb.reserve() as a_blk:
                ttl.copy(a[0:1, tile : tile + 1], a_blk).wait()

    @ttl.datamovement()
    def write():
        for tile in range(tiles):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[0:1, tile : tile + 1]).wait()

def call(columns, dtype=ttnn.bfloat16):
    device = ttnn.open_device(device_id=0)
    settings = dict(dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.DRAM_MEMORY_CONFIG)
    a = ttnn.from_torch(np.arange(32 * columns).reshape(32, columns) % 61, **settings)
    y = ttnn.zeros_like(a)
    twice(a, y)
    print("columns", columns, "right", bool((y.to_numpy() == (a + a).to_numpy()).all()))
    ttnn.close_device(device)

{calls}
"""


@pytest.fixture
def script(tmp_path: Path):
    def write(expression: str = "a_blk + a_blk", calls: str = "call(64)") -> str:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(SCRIPT.format(expression=expression, calls=calls)), encoding="utf-8")
        return str(path)

    return write


def test_a_script_for_ttnn_runs_unchanged(script, capsys: pytest.CaptureFixture[str]):
    assert main(["run", script()]) == 0
    captured = capsys.readouterr()
    assert captured.out == "columns 64 right True\n"
    assert captured.err.startswith("twice: grid 1x1, sim ")


def test_quiet_and_json_summaries(script, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--quiet", script()]) == 0
    assert capsys.readouterr().err == ""
    assert main(["run", "--json", script()]) == 0
    found = json.loads(capsys.readouterr().err)
    assert (found["kernel"], found["grid"], found["mode"]) == ("twice", [1, 1], "sim")
    assert 1 <= found["max_dst"] <= found["dst_capacity"] == 8


def test_a_wrong_kernel_gets_a_diagnostic_and_no_traceback(script, capsys: pytest.CaptureFixture[str]):
    assert main(["run", script("a_blk.frobnicate()")]) == 1
    error = capsys.readouterr().err
    assert re.match(r"error\[TW\d+\]: ", error)
    assert "y_blk.store(a_blk.frobnicate())" in error and "^" in error
    assert "Traceback" not in error


def test_a_wrong_kernel_as_json(script, capsys: pytest.CaptureFixture[str]):
    assert main(["compile", "--json", script("a_blk.frobnicate()")]) == 1
    (found,) = json.loads(capsys.readouterr().err)
    assert found["code"].startswith("TW") and found["span"]["line"] == 16


def test_compile_holds_back_what_the_script_prints(script, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["compile", script(), "-o", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert "columns" not in captured.out
    assert captured.out.splitlines() == [
        str(tmp_path / "out" / "twice" / name) for name in ("compute.cpp", "reader.cpp", "writer.cpp", "program.json")
    ]


def test_every_shape_is_a_program(script, tmp_path: Path):
    target = tmp_path / "out"
    assert main(["compile", script(calls="call(64); call(96); call(64)"), "-o", str(target)]) == 0
    assert sorted(path.name for path in target.iterdir()) == ["twice", "twice-2"]
    shapes = [json.loads((target / name / "program.json").read_text())["tensors"][0]["shape"] for name in ("twice", "twice-2")]
    assert shapes == [[32, 64], [32, 96]]


def test_program_json_has_what_a_launcher_needs(tmp_path: Path):
    assert main(["compile", ADD, "-o", str(tmp_path), "--allocator", "linear-scan", "--no-fpu-binary-ops"]) == 0
    found = json.loads((tmp_path / "add_multitile_kernel" / "program.json").read_text(encoding="utf-8"))
    assert [(buffer["name"], buffer["tiles"]) for buffer in found["buffers"]] == [("lhs_cb", 8), ("rhs_cb", 8), ("out_cb", 8)]
    assert {thread["role"] for thread in found["threads"]} == {"compute", "reader", "writer"}
    reader = next(thread for thread in found["threads"] if thread["role"] == "reader")
    assert reader["runtime_args"] == [["address", 0], ["address", 1]]
    assert found["compute_config"]["math_fidelity"] == "HiFi4"
    assert found["options"]["allocator"] == "linear-scan"
    (region,) = found["dst"]
    (part,) = region["parts"]
    assert part["footprint"] == 2
    assert part["outputs"] == [{"slot": 2, "dst": [2, 3, 4, 5], "value": "add 0", "spilled": False}]
    assert [next(iter(step)) for step in part["steps"]] == ["load", "load", "op"]


def test_emit_runner_writes_a_script_beside_the_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compile", str(EXAMPLES / "16_older_names.py"), "-o", str(tmp_path), "--emit-runner"]) == 0
    (runner,) = tmp_path.rglob("runner.py")
    compile(runner.read_text(encoding="utf-8"), str(runner), "exec")
    assert str(runner) in capsys.readouterr().out and (runner.parent / "compute.cpp").exists()
    assert main(["compile", str(EXAMPLES / "16_older_names.py"), "--emit-runner"]) == 2
    assert "-o DIR" in capsys.readouterr().err


def test_ir_after_all_has_every_pass_in_order(capsys: pytest.CaptureFixture[str]):
    assert main(["compile", ADD, "--print-ir-after-all"]) == 0
    shown = re.findall(r"// -----// IR after (\S+) \(add_multitile_kernel\)", capsys.readouterr().out)
    assert shown == ["frontend", *(stage.name for stage in pipeline.PASSES)]


def test_ir_after_one_pass(capsys: pytest.CaptureFixture[str]):
    assert main(["compile", ADD, "--print-ir-after", "convert-ttl-to-compute"]) == 0
    text = capsys.readouterr().out
    assert text.count("IR after") == 1
    assert "ttl.tile_add" in text


def test_run_prints_ir_apart_from_the_scripts_output(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--print-ir-after", "ttl-lower-to-loops", ADD]) == 0
    captured = capsys.readouterr()
    assert "scf.for" in captured.err
    assert captured.out.startswith("max error")


def test_a_script_without_kernel_calls(script, capsys: pytest.CaptureFixture[str]):
    assert main(["compile", script(calls="")]) == 1
    assert "called no kernel" in capsys.readouterr().err


def test_explain_tells_the_story(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["explain", ADD]) == 0
    text = capsys.readouterr().out
    for part in ("kernel add_multitile_kernel, grid 1x1", "lhs_cb", "ttl-tile-and-assign-dst", "DST slots", "kernel_main"):
        assert part in text
    page = tmp_path / "page.html"
    assert main(["explain", ADD, "-o", str(page)]) == 0
    drawn = unpacked(page.read_text(encoding="utf-8"))
    assert "ttl-lower-to-loops" in [stage["name"] for stage in drawn["kernels"][0]["stages"]]


def test_explain_shows_every_slot(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "--allocator", "linear-scan", "--no-fpu-binary-ops", ADD]) == 0
    text = capsys.readouterr().out
    steps = ["load input 0 -> slot 0", "load input 1 -> slot 1", "add (sfpu) slot 0, slot 1 -> slot 2", "pack slot 2: DST 2..5"]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)


def front_end_ir(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["compile", ADD, "--print-ir-after", "frontend"]) == 0
    return capsys.readouterr().out


def test_opt_runs_named_passes(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "add.mlir"
    file.write_text(front_end_ir(capsys), encoding="utf-8")
    passes = "convert-ttl-to-compute,ttl-set-compute-config,ttl-assign-dst"
    assert main(["opt", str(file), "-p", passes, "--allocator", "linear-scan", "--no-fpu-binary-ops", "--verify"]) == 0
    text = capsys.readouterr().out
    assert "ttl.dst_footprint = 2" in text.replace('"', "")
    assert text.count("ttl.copy_tile") == 2


def test_text_after_any_pass_can_be_read_back(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Each stage's text parses and goes on to the same end."""
    file = tmp_path / "stage.mlir"
    file.write_text(front_end_ir(capsys), encoding="utf-8")
    assert main(["opt", str(file), "-p", "all"]) == 0
    whole = capsys.readouterr().out
    for stage in pipeline.PASSES:
        assert main(["opt", str(file), "-p", stage.name, "--verify"]) == 0, stage.name
        file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == whole


@pytest.fixture
def add_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> str:
    file = tmp_path / "add.mlir"
    file.write_text(front_end_ir(capsys), encoding="utf-8")
    return str(file)


def test_run_takes_text(add_text: str, capsys: pytest.CaptureFixture[str]):
    """Random tensors from a seed, simulated and native, with the same bits; the sum of two uniform tensors is known in range."""
    held = {}
    for seed in (0, 7, 0):
        assert main(["run", "--json", "--quiet", "--seed", str(seed), add_text]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["same_bits"] is True and found["seed"] == seed
        assert held.setdefault(seed, found) == found
    assert [tensor["written"] for tensor in held[0]["tensors"]] == [False, False, True]
    a, b, c = held[0]["tensors"]
    assert abs(c["mean"] - (a["mean"] + b["mean"])) < 1e-3 and c["max"] <= 2 and c != held[7]["tensors"][2]
    assert main(["run", add_text]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == "simulator and native run: the same bits" and ", read" in shown.out
    assert "sim " in shown.err and "native " in shown.err
    assert main(["run", "--native", add_text]) == 0
    assert "same bits" not in capsys.readouterr().out


def test_text_takes_numbers_by_name_and_no_device(add_text: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", add_text, "n=4"]) == 1
    assert "error[TW516]: 'n=4' is no number" in capsys.readouterr().err
    assert main(["run", "--device", add_text]) == 1
    assert "--emit-runner" in capsys.readouterr().err


def test_opt_reads_stdin_in_parts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    text = front_end_ir(capsys)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n// -----\n{text}"))
    assert main(["opt", "-", "--split-input-file", "-p", "convert-ttl-to-compute"]) == 0
    out = capsys.readouterr().out
    assert out.count("builtin.module") == 2 and out.count("\n// -----\n") == 1


def test_opt_points_at_what_it_cannot_read(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "bad.mlir"
    file.write_text("builtin.module {\n  ttl.cb_wiat {}\n}\n", encoding="utf-8")
    assert main(["opt", str(file)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error[TW603]: ") and "bad.mlir:2:" in error


def test_opt_refuses_use_before_definition(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "order.mlir"
    body = "%a = arith.addi %b, %b : index\n    %b = arith.constant 0 : index\n    func.return"
    file.write_text(f"builtin.module {{\n  func.func @f() {{\n    {body}\n  }}\n}}\n", encoding="utf-8")
    assert main(["opt", str(file)]) == 1
    assert "used before it is defined" in capsys.readouterr().err


def test_opt_knows_its_passes(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "empty.mlir"
    file.write_text("builtin.module {\n}\n", encoding="utf-8")
    assert main(["opt", str(file), "-p", "ttl-asign-dst"]) == 1
    assert "did you mean ttl-assign-dst?" in capsys.readouterr().err
    assert main(["opt", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed][: len(pipeline.PASSES)] == [stage.name for stage in pipeline.PASSES]


def test_an_mlir_file_compiles_to_the_same_code(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "add_multitile_kernel.mlir"
    file.write_text(front_end_ir(capsys), encoding="utf-8")
    assert main(["compile", str(file), "-o", str(tmp_path / "text")]) == 0
    assert main(["compile", ADD, "-o", str(tmp_path / "python")]) == 0

    def code(source: str) -> str:
        """Without comments: text has no Python lines to refer to."""
        text = (tmp_path / source / "add_multitile_kernel" / "compute.cpp").read_text(encoding="utf-8")
        return re.sub(r" *//.*", "", text)

    assert code("text") == code("python")


def test_doctor_finds_a_working_simulator(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "--json"]) == 0
    found = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert found["simulator"]["state"] == "ok"
    assert found["xdsl"]["state"] == "ok"


def test_a_device_is_asked_for_where_there_is_none(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    monkeypatch.setattr("tilewright.cli.main.available", lambda: COMMANDS)
    assert main(["run", "--device", ADD]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error[TW601]: running on a device needs ttnn") and "Traceback" not in error


def test_real_modules_that_are_absent_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ttlang", None)  # an import of None fails as a missing package does
    assert main(["run", "--real-modules", ADD]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error[TW601]: the script imports ttlang") and "without --real-modules" in error


def test_the_package_runs_as_a_module():
    result = subprocess.run([sys.executable, "-m", "tilewright", "explain", "TW601"], capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.startswith("TW601: ")


def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("not a folder")
    assert main(["compile", ADD, "-o", str(taken)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("tilewright compile: cannot write") and "taken" in said and "Traceback" not in said


def test_a_kernel_file_may_have_comments_in_any_encoding(tmp_path, capsys):
    kernel = tmp_path / "kernel.cpp"
    good = Path(__file__).resolve().parents[1] / "check" / "good_fp32_chain.cpp"
    kernel.write_bytes(good.read_bytes() + b"// gr\xf6\xdfer\n")
    assert main(["check", str(kernel)]) == 0
    assert "0 errors" in capsys.readouterr().out
    kernel.write_bytes(b"\x93\x80 no C++\n")
    assert main(["check", str(kernel)]) == 1
    assert "does not compile" in capsys.readouterr().err
