"""`tilewright score`: right, wrong, slow, looping, crashing and cheating kernels, and the verdict on each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli.main import main

REFERENCE = """
import numpy as np
INPUTS = {"x": (64, 64), "w": (64, 64)}


def reference(x, w):
    return np.exp(x) * w + x
"""

RIGHT = "ob.store(ttl.math.exp(xb) * wb + xb)"

KERNEL = """
import ttl


@ttl.operation(grid=(1, 1))
def kernel(x, w, out):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=({rows}, {cols}), block_count={depth})
    w_dfb = ttl.make_dataflow_buffer_like(w, shape=({rows}, {cols}), block_count={depth})
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=({rows}, {cols}), block_count={depth})

    @ttl.compute()
    def compute():
        for i in range(2 // {rows}):
            for j in range(2 // {cols}):
                with x_dfb.wait() as xb, w_dfb.wait() as wb, out_dfb.reserve() as ob:
                    {body}

    @ttl.datamovement()
    def read():
        for i in range({turns}):
            for j in range(2 // {cols}):
                with x_dfb.reserve() as block:
                    ttl.copy(x[i * {rows} : (i + 1) * {rows}, j * {cols} : (j + 1) * {cols}], block).wait()
                with w_dfb.reserve() as block:
                    ttl.copy(w[i * {rows} : (i + 1) * {rows}, j * {cols} : (j + 1) * {cols}], block).wait()

    @ttl.datamovement()
    def write():
        for i in range(2 // {rows}):
            for j in range(2 // {cols}):
                with out_dfb.wait() as block:
                    ttl.copy(block, out[i * {rows} : (i + 1) * {rows}, j * {cols} : (j + 1) * {cols}]).wait()
"""


def kernel(body: str = RIGHT, *, rows: int = 1, cols: int = 1, depth: int = 2, turns: int | None = None) -> str:
    return KERNEL.format(body=body, rows=rows, cols=cols, depth=depth, turns=2 // rows if turns is None else turns)


HOST = "\n\nimport numpy as np\n\n\ndef run(x, w):\n    out = np.zeros_like(x)\n"

CASES: dict[str, tuple[str, str, str]] = {
    # name: file, verdict, a part of the message
    "right": (kernel(), "correct", ""),
    "right with large blocks": (kernel(rows=2, cols=2, depth=1), "correct", ""),
    "right through a host function": (kernel() + HOST + "    kernel(x, w, out)\n    return out\n", "correct", ""),
    "a constant of the host in place of an input": (
        kernel("ob.store(ttl.math.exp(xb) + wb)")
        + HOST
        + "    one = np.ones_like(x)\n    twice = np.zeros_like(x)\n    kernel(x, one, twice)\n    return twice\n",
        "wrong",
        "",
    ),
    "wrong sign": (kernel("ob.store(ttl.math.exp(xb) * wb - xb)"), "wrong", "elements differ"),
    "wrong function": (kernel("ob.store(ttl.math.sin(xb) * wb + xb)"), "wrong", "elements differ"),
    "wrong only a little": (kernel("ob.store(ttl.math.exp(xb) * wb * 1.1 + xb)"), "wrong", "elements differ"),
    "not written": (kernel().replace("ttl.copy(block, out[", "ttl.copy(block, x["), "cheating", "not what a kernel wrote"),
    "syntax": (kernel("ob.store(ttl.math.exp(xb) *"), "crashed", "SyntaxError"),
    "refused by the compiler": (kernel("ob.store(xb @ wb @ 3)"), "refused", ""),
    "deadlock": (kernel(turns=1), "refused", ""),
    "endless host": (kernel() + "\nwhile True:\n    pass\n", "timeout", "did not end"),
    "endless trace": (kernel() + HOST + "    while True:\n        kernel(x, w, np.zeros_like(x))\n", "timeout", "did not end"),
    "crash": (kernel() + "\nraise RuntimeError('no')\n", "crashed", "RuntimeError: no"),
    "killed": (kernel() + "\nimport os\nos.abort()\n", "crashed", ""),
    "memory": (kernel() + "\nkept = [bytearray(2**28) for _ in range(64)]\n", "memory", "memory"),
    "reference on the host": (
        kernel() + HOST + "    return np.exp(x.astype('f4')).astype(x.dtype) * w + x\n", "cheating", "no kernel was called",
    ),
    "kernel called for show": (
        kernel() + HOST + "    kernel(x, w, out)\n    return np.exp(x.astype('f4')).astype(x.dtype) * w + x\n",
        "cheating",
        "not what a kernel wrote",
    ),
    "host prepares the answer": (
        kernel("ob.store(xb + wb * 0.0)")
        + HOST
        + "    answer = np.exp(x.astype('f4')).astype(x.dtype) * w + x\n    kernel(answer, w, out)\n    return out\n",
        "cheating",
        "computes on the inputs",
    ),
    "answer in the program": (
        kernel().replace("def kernel(x, w, out):", "def kernel(x, w, out):\n    first = float(x[0, 0]) if hasattr(x, 'array') else 0.0")
        + HOST
        + "    flag = float(x[0, 0]) > float(w[0, 0])\n    for _ in range(1 + flag * 0 + int(float(x[0, 0]) * 64) % 7):\n"
        "        kernel(x, w, out)\n    return out\n",
        "cheating",
        "depends on the values",
    ),
    "a result of its own": (
        kernel() + "\nimport os\nopen('result.json', 'w').write('{}')\nos._exit(0)\n", "cheating", "a result of its own",
    ),
    "a program of its own": (
        kernel() + '\nimport os\nleft = \'{"verdict": "compiled", "message": "", "calls": [], "results": [0]}\'\n'
        "open('result.json', 'w').write(left)\nos._exit(0)\n",
        "cheating",
        "what it left behind is no program",
    ),
    "says much": (kernel() + "\nimport sys\nfor _ in range(16):\n    sys.stderr.write('x' * 2**20)\n", "correct", ""),
    "many files": (kernel() + "\nfor name in range(5000):\n    open(str(name), 'w').close()\nwhile True:\n    pass\n", "memory", "wrote more files"),
    "other process": (kernel() + "\nimport os\nos.fork()\n", "forbidden", "os.fork"),
    "network": (kernel() + "\nimport socket\nsocket.create_connection(('127.0.0.1', 9))\n", "forbidden", "socket"),
    "other program": (kernel() + "\nimport subprocess\nsubprocess.run(['true'])\n", "forbidden", "subprocess"),
    "reads another file": (kernel() + "\nopen('/etc/passwd').read()\n", "forbidden", "may not read /etc/passwd"),
    "writes another file": (kernel() + "\nopen('/tmp/left-by-a-kernel', 'w')\n", "forbidden", "may not write"),
}


def scored(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    file, reference = tmp_path / "candidate.py", tmp_path / "reference.py"
    file.write_text(text)
    reference.write_text(REFERENCE)
    words = ["score", str(file), "--reference", str(reference), "--json", "--memory", "3000", *more]
    code = main(words)
    told = json.loads(capsys.readouterr().out)
    assert code == (0 if told["correct"] else 1)
    return told


@pytest.mark.parametrize("name", CASES)
def test_verdict(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text, verdict, message = CASES[name]
    told = scored(tmp_path, text, capsys, *(["--seconds", "12"] if verdict == "timeout" else []))
    assert told["verdict"] == verdict, told
    assert message in told["message"]
    assert told["correct"] == (verdict == "correct")
    if verdict == "correct":
        assert told["error"] < 0.02 and told["time"]["microseconds"] > 0 and told["bound"]
        assert {case["name"] for case in told["cases"]} >= {"random", "zeros", "denormals", "large", "infinities"}
    if verdict == "refused":
        assert told["errors_by_code"] and all(code.startswith("TW") for code in told["errors_by_code"])
    assert not Path("/tmp/left-by-a-kernel").exists()


def test_speed_beside_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    slow = tmp_path / "slow.py"
    slow.write_text(kernel("ob.store(ttl.math.exp(xb) * wb + ttl.math.log(ttl.math.exp(xb)))"))
    told = scored(tmp_path, kernel(), capsys, "--baseline", str(slow))
    assert told["baseline"]["correct"] and told["speedup"] > 1.0


def test_same_seed_same_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    first, second = (scored(tmp_path, kernel(), capsys, "--seed", "5") for _ in range(2))
    assert first == second
    assert scored(tmp_path, kernel(), capsys)["seed"] != scored(tmp_path, kernel(), capsys)["seed"]


def test_line_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file, reference = tmp_path / "candidate.py", tmp_path / "reference.py"
    file.write_text(kernel())
    reference.write_text(REFERENCE)
    assert main(["score", str(file), "--reference", str(reference)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("candidate.py: correct\n") and "us on wormhole_b0" in shown


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("INPUTS = {'x': (32, 32)}", "defines no function 'reference'"),
        ("def reference(x):\n    return x", "defines no INPUTS"),
        ("INPUTS = {'x': (32, 32)}\nDTYPE = 'int4'\n\n\ndef reference(x):\n    return x", "DTYPE = 'int4'"),
    ],
)
def test_wrong_question(reference: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file, other = tmp_path / "candidate.py", tmp_path / "reference.py"
    file.write_text(kernel())
    other.write_text(reference)
    assert main(["score", str(file), "--reference", str(other)]) == 2
    assert message in capsys.readouterr().err
    assert main(["score", str(tmp_path / "none.py"), "--reference", str(other)]) == 2


TILELANG = """
import tilelang.language as T


@T.prim_func
def causal(A: T.Tensor((64, 96), "bfloat16"), w: T.Tensor((96,), "bfloat16"), C: T.Tensor((64, 96), "bfloat16")):
    with T.Kernel(3, 2, threads=128) as (bx, by):
        a, v = T.alloc_fragment((32, 32), "float"), T.alloc_fragment((32,), "float")
        T.copy(A[by * 32, bx * 32], a)
        T.copy(w[bx * 32], v)
        for i, j in T.Parallel(32, 32):
            a[i, j] = T.if_then_else(by * 32 + i >= bx * 32 + j, a[i, j] * v[j], 0)
        T.copy(a, C[by * 32, bx * 32])
"""
TWICE = kernel("ob.store(xb + wb)", rows=2, cols=2, depth=1)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (TILELANG, "import numpy as np\nINPUTS = {'A': (64, 96), 'w': (96,)}\ndef reference(A, w):\n    return np.tril(A * w)\n"),
        (TWICE, "SHAPES = [{'x': (50, 37), 'w': (50, 37)}, {'x': (64, 64), 'w': (64, 64)}]\ndef reference(x, w):\n    return x + w\n"),
    ],
    ids=["TileLang, with tensors that are made for it", "sizes that fill no tiles"],
)
def test_what_a_call_makes_of_its_tensors_is_no_cheating(text: str, reference: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "candidate.py").write_text(text)
    (tmp_path / "reference.py").write_text(reference)
    code = main(["score", str(tmp_path / "candidate.py"), "--reference", str(tmp_path / "reference.py"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0 and told["correct"] and told["error"] < 0.02, told
