"""`tilewright build` and `tilewright.load`: the same bits without the source, and no damaged package is ever run."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright
from tilewright import execution
from tilewright.cli.main import main
from tilewright.diagnostics import KernelError

SCRIPT = """
import sys
import ml_dtypes
import numpy as np
import ttl


@ttl.operation(grid=(2, 1))
def scaled_sum(a, b, out):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    rows = a.shape[0] // 32

    @ttl.compute()
    def compute():
        for row in range(rows):
            with a_dfb.wait() as ab, b_dfb.wait() as bb, out_dfb.reserve() as ob:
                ob.store(ttl.math.exp(ab) * 0.5 + bb)

    @ttl.datamovement()
    def read():
        column, _ = ttl.node(dims=2)
        for row in range(rows):
            with a_dfb.reserve() as block:
                ttl.copy(a[row, column], block).wait()
            with b_dfb.reserve() as block:
                ttl.copy(b[row, column], block).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        for row in range(rows):
            with out_dfb.wait() as block:
                ttl.copy(block, out[row, column]).wait()


rng = np.random.default_rng(3)
for shape in ((64, 64), (96, 64)):
    a, b = (rng.uniform(-1, 1, shape).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros(shape, ml_dtypes.bfloat16)
    scaled_sum(a, b, out)
    if len(sys.argv) > 1:
        np.savez(f"{sys.argv[1]}-{shape[0]}.npz", a=a.view("u2"), b=b.view("u2"), out=out.view("u2"))
"""

RUN = """
import sys
import ml_dtypes
import numpy as np
import tilewright
from tilewright import execution

package = tilewright.load(sys.argv[1])
for rows in (64, 96):
    known = np.load(f"{sys.argv[2]}-{rows}.npz")
    a, b = (known[name].view(ml_dtypes.bfloat16) for name in "ab")
    for mode in ("sim", "native"):
        out = np.zeros_like(a)
        with execution.session(mode=mode):
            package.scaled_sum(a, b, out)
        assert (out.view("u2") == known["out"]).all(), mode
        assert np.abs(out.astype("f8") - (np.exp(a.astype("f8")) * 0.5 + b.astype("f8"))).max() < 0.03
print("same bits")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package whose script is gone, and beside it what the script computed."""
    folder = tmp_path_factory.mktemp("packages")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    assert main(["run", "--quiet", str(script), str(folder / "known")]) == 0
    assert main(["build", str(script), "-o", str(folder / "package")]) == 0
    script.unlink()
    return folder


def copied(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built / "package", tmp_path / "package"))


def test_fresh_process_without_the_source_computes_the_same_bits(built: Path):
    found = subprocess.run(
        [sys.executable, "-c", RUN, str(built / "package"), str(built / "known")], capture_output=True, text=True, check=False
    )
    assert found.stdout == "same bits\n", found.stderr


def test_index_says_what_is_inside(built: Path):
    index = json.loads((built / "package" / "package.json").read_text())
    assert [kernel["name"] for kernel in index["kernels"]] == ["scaled_sum", "scaled_sum"]
    assert [kernel["tensors"][0]["shape"] for kernel in index["kernels"]] == [[64, 64], [96, 64]]
    assert [kernel["written"] for kernel in index["kernels"]] == [["out"], ["out"]]
    for kernel in index["kernels"]:
        assert {"compute.cpp", "reader.cpp", "writer.cpp", "program.json", "program.mlir", "runner.py"} == set(kernel["files"])
    package = tilewright.load(built / "package")
    assert package.kernels == ["scaled_sum"] and "96x64 bf16" in repr(package)


def test_two_hundred_damaged_packages_are_refused(built: Path, tmp_path: Path):
    """One byte is another: in the index, in C++, in the program, in a launcher. Nothing crashes, nothing runs."""
    package = copied(built, tmp_path)
    files = sorted(path for path in package.rglob("*") if path.is_file())
    chance = random.Random(11)
    for _ in range(200):
        file = chance.choice(files)
        data = file.read_bytes()
        place = chance.randrange(len(data))
        file.write_bytes(data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :])
        if file.name == "package.json" and _same_json(data, file.read_bytes()):
            tilewright.load(package)  # white space of the index may differ
        else:
            with pytest.raises(KernelError) as error:
                tilewright.load(package)
            assert error.value.diagnostics[0].code == "TW607", file
        file.write_bytes(data)
    tilewright.load(package)


def _same_json(old: bytes, new: bytes) -> bool:
    try:
        return json.loads(old) == json.loads(new)
    except ValueError:
        return False


def message(error: pytest.ExceptionInfo[KernelError]) -> str:
    return error.value.diagnostics[0].render()


def test_missing_file_is_named(built: Path, tmp_path: Path):
    package = copied(built, tmp_path)
    (package / "scaled_sum" / "reader.cpp").unlink()
    with pytest.raises(KernelError) as error:
        tilewright.load(package)
    assert "reader.cpp is damaged: No such file" in message(error)


def test_file_changed_after_loading_is_noticed(built: Path, tmp_path: Path):
    package = copied(built, tmp_path)
    loaded = tilewright.load(package)
    text = package / "scaled_sum" / "program.mlir"
    text.write_text(text.read_text() + "\n")
    a = np.zeros((64, 64), ml_dtypes.bfloat16)
    with pytest.raises(KernelError) as error:
        loaded(a, a, a.copy())
    assert "program.mlir is damaged" in message(error)


def test_other_version_is_refused(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tilewright.package.version", lambda: "9.9.9")
    with pytest.raises(KernelError) as error:
        tilewright.load(built / "package")
    assert "this is 9.9.9" in message(error) and "build it again" in message(error)


@pytest.mark.parametrize(
    ("shape", "dtype", "shown"), [((32, 64), ml_dtypes.bfloat16, "32x64 bf16"), ((64, 64), np.float32, "64x64 f32")]
)
def test_missing_shape_is_said_with_those_that_are_there(built: Path, shape: tuple[int, int], dtype: Any, shown: str):
    package = tilewright.load(built / "package")
    array = np.zeros(shape, dtype)
    with pytest.raises(KernelError) as error:
        package.scaled_sum(array, array, array.copy())
    assert f"was not built for ({shown}" in message(error) and "a: 96x64 bf16" in message(error)


def test_kernel_that_is_not_there(built: Path):
    package = tilewright.load(built / "package")
    with pytest.raises(AttributeError, match="it has scaled_sum"):
        _ = package.softmax


def test_folder_that_is_no_package_is_not_replaced(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    assert main(["build", str(script), "-o", str(tmp_path / "mine")]) != 0
    assert "is no package" in capsys.readouterr().err
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"
    with pytest.raises(KernelError):
        tilewright.load(tmp_path / "mine")


def test_build_that_fails_leaves_the_old_package(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = copied(built, tmp_path)
    before = {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilewright.runtime.runner.script", full)
    assert main(["build", str(script), "-o", str(package)]) != 0
    assert {path: path.read_bytes() for path in package.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir() if re.match(r"\.", path.name)] == []


def test_package_is_replaced_whole(built: Path, tmp_path: Path):
    package = copied(built, tmp_path)
    (package / "left.txt").write_text("from an older build")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("((64, 64), (96, 64))", "((64, 64),)"))
    assert main(["build", str(script), "-o", str(package)]) == 0
    assert not (package / "left.txt").exists()
    assert len(tilewright.load(package).variants) == 1


def test_numbers_of_a_kernel_are_given_by_name(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("def scaled_sum(a, b, out):", "def scaled_sum(a, b, out, rows: ttl.runtime_int(1, 2)):")
                      .replace("    rows = a.shape[0] // 32\n", "").replace("scaled_sum(a, b, out)\n", "scaled_sum(a, b, out, 2)\n"))  # fmt: skip
    assert main(["build", str(script), "-o", str(tmp_path / "package")]) == 0
    package = tilewright.load(tmp_path / "package")
    a = np.ones((96, 64), ml_dtypes.bfloat16)
    out = np.zeros_like(a)
    with execution.session(mode="sim"):
        package(a, a, out, rows=1)
    assert (out[:32] != 0).all() and (out[32:] == 0).all()
    with pytest.raises(KernelError, match="given the numbers none"):
        package(a, a, out)


def test_what_tuning_found_goes_with_the_package(tmp_path: Path):
    from tilewright.tune import results

    script = tmp_path / "kernels.py"
    script.write_text((Path(__file__).resolve().parents[2] / "examples" / "16_older_names.py").read_text())
    found = '{"format": 1, "entries": []}\n'
    results.beside(str(script)).write_text(found)
    assert main(["build", str(script), "-o", str(tmp_path / "package")]) == 0
    assert (tmp_path / "package" / "tuned.json").read_text() == found
    tilewright.load(tmp_path / "package")
    (tmp_path / "package" / "tuned.json").write_text(found + " ")
    with pytest.raises(KernelError, match=r"tuned\.json is damaged"):
        tilewright.load(tmp_path / "package")


TILELANG = """
import ml_dtypes
import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def masked(M, N):
    @T.prim_func
    def causal(A: T.Tensor((M, N), "bfloat16"), w: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            a, v = T.alloc_fragment((32, 32), "float"), T.alloc_fragment((32,), "float")
            T.copy(A[by * 32, bx * 32], a)
            T.copy(w[bx * 32], v)
            for i, j in T.Parallel(32, 32):
                a[i, j] = T.if_then_else(by * 32 + i >= bx * 32 + j, a[i, j] * v[j], 0)
            T.copy(a, C[by * 32, bx * 32])

    return causal


masked(64, 96)(np.zeros((64, 96), ml_dtypes.bfloat16), np.zeros(96, np.float32))
"""


def test_a_tilelang_package_takes_what_its_kernel_takes(tmp_path: Path):
    """Positions that the kernel compares, and the vector's tiles, are made at the call; the output is returned."""
    (tmp_path / "masked.py").write_text(TILELANG)
    assert main(["build", str(tmp_path / "masked.py"), "-o", str(tmp_path / "package")]) == 0
    (tmp_path / "masked.py").unlink()
    package = tilewright.load(tmp_path / "package")
    assert "causal(A: 64x96 bfloat16, w: 96 float32)" in repr(package)
    rng = np.random.default_rng(0)
    a, w = rng.integers(-8, 9, (64, 96)).astype(ml_dtypes.bfloat16), rng.integers(-8, 9, 96).astype(np.float32)
    for mode in ("sim", "native"):
        with execution.session(mode=mode):
            found = package.causal(a, w)
        assert (found == np.tril(a.astype(np.float32) * w)).all()
    with pytest.raises(KernelError, match=r"was not built for \(64x96 bfloat16, 64 float32\)"):
        package.causal(a, w[:64])


def test_kernels_of_one_name_and_shape_are_named_by_their_folders(tmp_path: Path):
    """Another constant makes another kernel, and the tensors do not tell which one is meant."""
    text = SCRIPT.replace("* 0.5", "* FACTOR").replace("\nrng =", "\nFACTOR = 0.5\nrng =")
    again = "\nFACTOR = 2.0\nscaled_sum(a, b, out)\nttl.operation(grid=(2, 1))(scaled_sum.function)(a, b, out)  # the same once more\n"
    (tmp_path / "twice.py").write_text(text + again)
    assert main(["build", str(tmp_path / "twice.py"), "-o", str(tmp_path / "package")]) == 0
    package = tilewright.load(tmp_path / "package")
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(-1, 1, (96, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros_like(a)
    with pytest.raises(KernelError, match=r"2 kernels 'scaled_sum' were built for these tensors") as found:
        package.scaled_sum(a, b, out)
    assert "package['scaled_sum-2'], package['scaled_sum-3']" in str(found.value)
    for folder, factor in (("scaled_sum-2", 0.5), ("scaled_sum-3", 2.0)):
        package[folder](a, b, out)
        wide = np.float32
        assert np.allclose(out.astype(wide), np.exp(a.astype(wide)) * factor + b.astype(wide), rtol=2e-2, atol=2e-2)
    with pytest.raises(KernelError, match="has no folder 'other'"):
        package["other"]
