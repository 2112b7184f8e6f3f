"""Scripts as people have them: the imports of the language's own repository, arguments, modules beside the script, failures."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

SHARED_SCALE = """
    from sim import ttl, ttnn
    from utils.correctness import assert_pcc, assert_with_ulp

    T = ttl.TILE_SHAPE[0]

    @ttl.operation(grid=(4, 2))
    def scaled(x: ttnn.Tensor, factor: ttnn.Tensor, out: ttnn.Tensor) -> None:
        columns: ttl.Size = x.shape[1] // T
        x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
        factor_dfb = ttl.make_dataflow_buffer_like(factor, shape=(1, 1))
        out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
        net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 3), 0))])

        @ttl.compute()
        def multiply():
            if not net.is_active():
                return
            with factor_dfb.wait() as f:
                for row in range(x.shape[0] // T):
                    with x_dfb.wait() as block, out_dfb.reserve() as result:
                        result.store(block * f)

        @ttl.datamovement()
        def read():
            if not net.is_active():
                return
            column, _ = ttl.node(dims=2)
            with factor_dfb.reserve() as f:  # written by one of the two callbacks on every core that gets here

                def send(pipe):
                    print(f"core {column} sends")
                    ttl.copy(factor[0, 0], f).wait()
                    ttl.copy(f, pipe).wait()

                def receive(pipe):
                    ttl.copy(pipe, f).wait()

                net.if_src(send)
                net.if_dst(receive)
            for row in range(x.shape[0] // T):
                with x_dfb.reserve() as block:
                    ttl.copy(x[row, slice(column, column + 1)], block).wait()

        @ttl.datamovement()
        def write():
            if not net.is_active():
                return
            column, _ = ttl.node(dims=2)
            for row in range(x.shape[0] // T):
                with out_dfb.wait() as block:
                    ttl.copy(block, out[row, column]).wait()

    if __name__ == "__main__":
        x = ttnn.rand((64, 96), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
        factor = ttnn.rand((32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
        out = ttnn.empty((64, 96), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
        scaled(x, factor, out)
        import numpy
        wide = numpy.tile(factor.array.astype(numpy.float32), (2, 3))
        expected = ttnn.empty((64, 96), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
        expected.array[...] = (x.array.astype(numpy.float32) * wide).astype(expected.array.dtype)
        assert_pcc(expected, out)
        assert_with_ulp(expected, out, 1)
        print("same")
"""

ONE_TILE = """
    import numpy
    import ttl

    @ttl.operation(grid=(1, 1))
    def {name}(x, out):
        x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
        out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

        @ttl.compute()
        def compute():
            with x_dfb.wait() as block, out_dfb.reserve() as result:
                result.store({expression})

        @ttl.datamovement()
        def move():
            with x_dfb.reserve() as block:
                ttl.copy(x[0, 0], block).wait()
            with out_dfb.wait() as block:
                ttl.copy(block, out[{place}]).wait()
"""


def write(folder: Path, name: str, *texts: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(textwrap.dedent(text) for text in texts), encoding="utf-8")
    return path


def one_tile(name: str = "negated", expression: str = "-block", place: str = "0, 0") -> str:
    return ONE_TILE.format(name=name, expression=expression, place=place)


def tilewright(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "tilewright", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


@pytest.mark.parametrize("engine", ["--fast", "--native"])
def test_imports_of_the_languages_own_examples(tmp_path, engine):
    script = write(tmp_path, "scaled.py", SHARED_SCALE)
    result = tilewright("run", engine, script, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "same"
    assert ("(0, 0) read: core 0 sends" in result.stdout) == (engine == "--fast")


def test_the_scripts_own_modules_win(tmp_path):
    write(tmp_path, "utils/__init__.py", "WHOSE = 'mine'\n")
    write(tmp_path, "kernels.py", one_tile("flipped"))
    script = write(
        tmp_path,
        "main.py",
        """
        import argparse
        import numpy
        import utils
        from kernels import flipped

        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--value", type=float, default=1.0)
            value = parser.parse_args().value
            x, out = numpy.full((32, 32), value, numpy.float32), numpy.zeros((32, 32), numpy.float32)
            flipped(x, out)
            print(utils.WHOSE, out[0, 0])

        if __name__ == "__main__":
            main()
        """,
    )
    result = tilewright("run", "--quiet", script, "--value", "2.5", folder=tmp_path)
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "mine -2.5", "")


def test_a_failed_pass_shows_the_ir_there_was(tmp_path):
    call = "\nx = numpy.ones((32, 32), numpy.float32)\nnegated(x, x.copy())\n"
    script = write(tmp_path, "outside.py", one_tile(place="i, 0").replace("def move():", "def move():\n            i = 3"), call)
    result = tilewright("compile", "--print-ir-after-all", script, folder=tmp_path)
    assert result.returncode == 1 and "TW103" in result.stderr
    script = write(tmp_path, "deadlock.py", one_tile(expression="block + x_dfb.wait()"), call)
    result = tilewright("compile", "--print-ir-after-all", script, folder=tmp_path)
    assert result.returncode == 1 and "error[TW" in result.stderr and "Traceback" not in result.stderr
    assert "IR after frontend (negated)" in result.stdout
    assert "IR after ttl-validate, as far as it came (negated)" in result.stdout
    one = tilewright("compile", "--print-ir-after", "ttl-validate", script, folder=tmp_path)
    assert "as far as it came" in one.stdout and "IR after frontend" not in one.stdout


def test_a_misspelt_name_of_the_language_in_host_code(tmp_path):
    script = write(tmp_path, "typo.py", "import ttl\nttl.kernell\n")
    result = tilewright("run", script, folder=tmp_path)
    assert result.returncode == 1 and "error[TW003]: ttl has no 'kernell'" in result.stderr
    assert "did you mean ttl.kernel" in result.stderr and "Traceback" not in result.stderr
    probing = write(tmp_path, "probing.py", "import ttl\nprint(hasattr(ttl, 'kernell'), getattr(ttl.math, 'expp', None))\n")
    assert tilewright("run", probing, folder=tmp_path).stdout.strip() == "False None"


VECTORS = """
import numpy
import ttnn
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def scaled(row, number, out):
    row_dfb = ttl.make_dataflow_buffer_like(row, shape=(1, 2), block_count=1)
    number_dfb = ttl.make_dataflow_buffer_like(number, shape=(1, 1), block_count=1)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=1)

    @ttl.compute()
    def compute():
        with row_dfb.wait() as x, number_dfb.wait() as n, out_dfb.reserve() as o:
            o.store(x * ttl.block.broadcast(n, dims=[0, 1], shape=(1, 2)))

    @ttl.datamovement()
    def read():
        with row_dfb.reserve() as x, number_dfb.reserve() as n:
            ttl.copy(row[0, :], x).wait()
            ttl.copy(number[0, 0], n).wait()

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as o:
            ttl.copy(o, out[0, :]).wait()

values = numpy.arange(50, dtype=numpy.float32)
settings = dict(dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT)
row, number = (ttnn.Tensor(array, ttnn.float32, None, ttnn.TILE_LAYOUT) for array in (values, numpy.float32(3).reshape(())))
out = ttnn.zeros(ttnn.Shape([50]), **settings)
scaled(row, number, out)
assert tuple(out.shape) == (50,) and (out.to_numpy() == 3 * values).all(), out
print("vectors are rows of tiles")
"""


@pytest.mark.parametrize("engine", [(), ("--native",)], ids=["sim", "native"])
def test_vectors_and_numbers_as_tensors(tmp_path, engine):
    result = tilewright("run", "--quiet", *engine, write(tmp_path, "vectors.py", VECTORS), folder=tmp_path)
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "vectors are rows of tiles", "")
