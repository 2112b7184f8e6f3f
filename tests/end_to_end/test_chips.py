"""Whole kernels for either chip: near float64, the same bits natively, and the chip's own ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chip_kernels
import op_kernels
import recorded_rows
from kernel_corpus import CorpusKernel
from tilewright.cli.main import main
from tilewright.dialects import tile_ops
from tilewright.native.driver import run as run_native
from tilewright.sim.run import simulate

CHIPS = ("wormhole_b0", "blackhole")
KERNELS = chip_kernels.kernels()
BOUNDS = {"bf16": 1.3e-2, "f32": 2e-7}
PRODUCTS = 4e-3  # the matrix unit takes ten bits of a factor


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("kernel", "reference"), KERNELS, ids=[kernel.name for kernel, _ in KERNELS])
def test_kernel(kernel: CorpusKernel, reference: Callable[..., Any], chip: str, tmp_path: Path) -> None:
    simulated, native = (chip_kernels.outputs(kernel, chip, tmp_path, run) for run in (simulate, run_native))
    assert all(left.tobytes() == right.tobytes() for left, right in zip(simulated, native, strict=True))
    bound = PRODUCTS if kernel.name == "attention f32" else BOUNDS[kernel.dtype]
    assert chip_kernels.error(kernel, reference, simulated) <= bound


OTHERS = ("typecast", *tile_ops.SUBSTITUTES)  # in files of their own, or composed in this release
ROWS = [name for name in recorded_rows.compared()["blackhole"] if recorded_rows.parts(name)[0].name not in OTHERS]


@pytest.mark.simulated_only("test_recorded_rows.py and test_every_op.py run rows natively")
@pytest.mark.parametrize("name", ROWS)
def test_rows_keep_their_bounds_on_blackhole(name: str, tmp_path: Path) -> None:
    """Against NumPy; what the table says holds for both chips."""
    row, dtype, approx = recorded_rows.parts(name)
    tiles = op_kernels.operands(row, dtype)
    given = [np.ascontiguousarray(tile).view(recorded_rows.PATTERNS[dtype]) for tile in tiles]
    found = recorded_rows.computed(name, given, "blackhole", tmp_path, simulate).view(op_kernels.HOST[dtype])
    meaning = op_kernels.meaning(row, tiles, **op_kernels.parameters(row, approx=approx))
    op_kernels.assert_within(row, dtype, tiles, found, meaning, row.approx_bound_ulp if approx else row.bound_ulp)


@pytest.mark.parametrize("name", ["softmax f32", "SwiGLU f32", "chain of reciprocals f32", "quotients f32"])
def test_chips_give_their_own_bits(name: str, tmp_path: Path) -> None:
    kernel = next(kernel for kernel, _ in KERNELS if kernel.name == name)
    wormhole, blackhole = (chip_kernels.outputs(kernel, chip, tmp_path, simulate)[0] for chip in CHIPS)
    assert wormhole.tobytes() != blackhole.tobytes()


KERNEL = """
import numpy as np
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with x_buffer.wait() as block, out_buffer.reserve() as result:
            result.store(ttl.math.recip(block))

    @ttl.datamovement()
    def read():
        with x_buffer.reserve() as block:
            ttl.copy(x[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0, 0]).wait()

x = np.full((32, 32), np.array(0x3F8C1976, np.uint32).view(np.float32))
out = np.zeros_like(x)
kernel(x, out)
print(hex(out.view(np.uint32)[0, 0]))
"""


@pytest.mark.parametrize("mode", [[], ["--native"]], ids=["sim", "native"])
@pytest.mark.parametrize(("chip", "bits"), [("wormhole_b0", "0x3f69e417"), ("blackhole", "0x3f69e418")])
def test_the_command_line_means_the_chip(
    chip: str, bits: str, mode: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1/1.0945 as recorded on each."""
    script = tmp_path / "script.py"
    script.write_text(KERNEL, encoding="utf-8")
    assert main(["run", "--quiet", "--arch", chip, *mode, str(script)]) == 0
    assert capsys.readouterr().out.strip() == bits


def test_check_takes_a_chip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = Path(__file__).resolve().parents[1] / "check" / "good_softmax_rows.cpp"
    assert main(["check", "--arch", "blackhole", str(kernel)]) == 0
    capsys.readouterr()
    assert main(["check", "--arch", "grayskull", str(kernel)]) == 2
    assert "'grayskull' is no chip: wormhole_b0, blackhole" in capsys.readouterr().err


PRODUCTS_IN_A_LOOP = """
from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(3):
            with a_dfb.wait() as x, b_dfb.wait() as w, y_dfb.reserve() as out:
                out.store(ttl.math.exp(x @ w))

    @ttl.datamovement()
    def read():
        for i in range(3):
            with a_dfb.reserve() as x, b_dfb.reserve() as w:
                first, second = ttl.copy(a[2 * i : 2 * i + 2, 0:2], x), ttl.copy(b[0:2, 0:2], w)
                first.wait()
                second.wait()

    @ttl.datamovement()
    def write():
        for i in range(3):
            with y_dfb.wait() as out:
                ttl.copy(out, y[2 * i : 2 * i + 2, 0:2]).wait()
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_a_vector_function_behind_products_that_the_firmware_may_slow_down(kernels: Any, init_states: Any, chip: str) -> None:
    """Slowed down, matmul_block on Blackhole takes the address mode that exp stores through."""
    generator = np.random.default_rng(8)
    a, b = (generator.uniform(-0.25, 0.25, shape).astype(op_kernels.HOST["bf16"]) for shape in ((192, 64), (64, 64)))
    y = np.zeros((192, 64), op_kernels.HOST["bf16"])
    program = kernels.run(PRODUCTS_IN_A_LOOP, a, b, y, arch=chip)
    expected = np.exp(a.astype(np.float64) @ b.astype(np.float64))
    assert np.max(np.abs(y.astype(np.float64) - expected) / expected) <= BOUNDS["bf16"]
    text = program.cpp["compute"]
    loop, product, init = (text.index(word) for word in ("for (", "matmul_block(", "exp_tile_init"))
    assert loop < product < init if chip == "blackhole" else init < loop
    if chip == "wormhole_b0":
        with pytest.raises(init_states.MissingInit, match="disturbed"):
            init_states.check_module(program.module, arch="blackhole")
