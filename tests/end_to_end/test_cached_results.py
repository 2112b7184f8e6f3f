"""A kernel that is called again after something it reads has changed computes with what it is now, also in a later process."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernel_text
from tilewright import ttl

SOURCE = Path(__file__).parents[2] / "src"
SCRIPT = """
import sys
import numpy as np
from tilewright import ttl
flag = sys.argv[1] == "relu"
act = (lambda x: ttl.math.relu(x)) if flag else (lambda x: ttl.math.neg(x))
{kernel}
a = np.arange(-512, 512, dtype=np.float32).reshape(32, 32)
out = np.zeros((32, 32), np.float32)
kernel(a, out)
if sys.argv[2] == "check":
    assert (out == (np.maximum(a, 0) if flag else -a)).all()
"""


def one_tile(use: str) -> str:
    return kernel_text.elementwise({"out": use}, ("a",))


def script_run(folder: Path, command: list[str], *arguments: str) -> str:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(kernel=one_tile("act(a)")), encoding="utf-8")
    settings = {**os.environ, "PYTHONPATH": str(SOURCE)}
    line = [sys.executable, "-m", "tilewright", *command, str(script), "--", *arguments]
    done = subprocess.run(line, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_lambdas_of_one_line_are_two_programs_in_later_processes(tmp_path: Path):
    first = script_run(tmp_path, ["compile"], "relu", "no")
    second = script_run(tmp_path, ["compile"], "neg", "no")
    assert "relu" in first and "relu" not in second
    assert script_run(tmp_path, ["compile"], "relu", "no") == first
    for word in ("relu", "neg", "relu"):
        script_run(tmp_path, ["run", "--native"], word, "check")


A = np.arange(-512, 512, dtype=np.float32).reshape(32, 32) / 64


def computed(kernel: Any, *more: Any) -> Any:
    out = np.zeros_like(A)
    kernel(A, out, *more)
    return out


CASES: dict[str, tuple[str, str, list[tuple[str, float]]]] = {
    "constant": ("N = 2.0", "a * N", [("N = 4.0", 4), ("N = 2.0", 2)]),
    "helper": ("def f(x):\n    return x * 2.0", "f(a)", [("f = lambda x: x * 3.0", 3), ("f = lambda x: x * 4.0", 4), ("f = lambda x: x * 5.0", 5)]),
    "attribute": ("class C:\n    s = 2.0\nc = C()", "a * c.s", [("c.s = 4.0", 4), ("del c.s", 2), ("C.s = 8.0", 8)]),
    "table": ("import numpy as np\nT = np.array([2.0, 3.0])", "a * float(T[0])", [("T[0] = 4.0", 4), ("T[0] = 5.0", 5)]),
    "global of a helper": ("G = 2.0\ndef f(x):\n    return x * G", "f(a)", [("G = 4.0", 4)]),
    "list": ("L = [2]", "a * L[0] if type(L[0]) is int else a * 16.0", [("L[0] = 2.0", 16), ("L[0] = 2", 2)]),
    "sign of zero": ("import math\nZ = 0.0", "a * (2.0 if math.copysign(1.0, Z) > 0 else 4.0)", [("Z = -0.0", 4), ("Z = 0.0", 2)]),
    "default": ("def f(x, s=2.0):\n    return x * s", "f(a)", [("f.__defaults__ = (4.0,)", 4)]),
    "partial": ("import functools\ndef f(s, x):\n    return x * s\ng = functools.partial(f, 2.0)", "g(a)", [("g = functools.partial(f, 4.0)", 4)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_changed_value_is_computed_with(case: str, tmp_path: Path):
    header, use, changes = CASES[case]
    kernel = kernel_text.load(header + "\n" + one_tile(use), tmp_path)
    names = kernel.function.__globals__
    assert (computed(kernel) == A * 2).all()
    for number, (change, factor) in enumerate(changes):
        file = f"<cell {number} of {case}>"  # as a notebook has it
        linecache.cache[file] = (len(change), None, [change], file)
        exec(compile(change, file, "exec"), names)
        assert (computed(kernel) == A * factor).all(), change
    assert len(kernel._programs) > 1


def test_an_object_that_owns_the_kernel():
    class Layer:
        def __init__(self) -> None:
            self.scale, self.calls, self.log = 2.0, 0, open(os.devnull)  # noqa: SIM115

        @ttl.kernel(grid=(1, 1))
        def scaled(self, a: Any, out: Any) -> None:
            a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
            out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

            @ttl.compute()
            def compute():
                with a_cb.wait() as x, out_cb.reserve() as o:
                    o.store(x * self.scale)

            @ttl.datamovement()
            def read():
                with a_cb.reserve() as block:
                    ttl.copy(a[0, 0], block).wait()

            @ttl.datamovement()
            def write():
                with out_cb.wait() as block:
                    ttl.copy(block, out[0, 0]).wait()

        def __call__(self, a: Any) -> Any:
            self.calls += 1
            out = np.zeros_like(a)
            self.scaled(a, out)
            return out

    layer = Layer()
    assert (layer(A) == A * 2).all() and (layer(A) == A * 2).all()
    layer.scale = 4.0
    assert (layer(A) == A * 4).all()
    assert len(Layer.scaled._programs) == 2  # neither the count of calls nor the open file is read
    layer.log.close()


def test_a_body_that_reads_values_of_a_tensor_is_compiled_for_each(tmp_path: Path):
    source = one_tile("a * scale").replace("    a_buffer =", "    scale = float(a.max())\n    a_buffer =", 1)
    kernel = kernel_text.load(source, tmp_path)
    for largest in (2.0, 4.0):
        a, out = np.full((32, 32), largest, np.float32), np.zeros((32, 32), np.float32)
        kernel(a, out)
        assert (out == largest * largest).all()
    assert not kernel._programs


def test_a_factory_makes_another_kernel_for_what_it_reads():
    made = tilelang_factory()
    assert made(32) is made(32)
    a = np.ones((32, 32), np.float32)
    for factor in (2.0, 3.0):
        FACTORS[0] = factor
        assert (made(32)(a) == factor).all()


FACTORS = [2.0]


def tilelang_factory() -> Any:
    from tilewright import tilelang
    from tilewright.tilelang import language as T

    @tilelang.jit(out_idx=[-1])
    def made(size: int) -> Any:
        factor = FACTORS[0]

        @T.prim_func
        def main(A: T.Tensor((size, size), "float32"), B: T.Tensor((size, size), "float32")):  # pyright: ignore
            with T.Kernel(1, 1) as (_bx, _by):
                x = T.alloc_fragment((size, size), "float32")
                T.copy(A[0, 0], x)
                for i, j in T.Parallel(size, size):
                    x[i, j] = x[i, j] * factor
                T.copy(x, B[0, 0])

        return main

    return made
