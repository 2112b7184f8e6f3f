"""Published products on the whole chip: by the published plan, by a plan of our own where none was published, or only their bounds."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import timed_kernels
from published_rows import Row, arch_of

from tilewright import hardware, kernels, timing_constants
from tilewright.kernels.matmul import allowed, space
from tilewright.kernels.timing_estimates import matmul_microseconds
from tilewright.timing import timeline
from tilewright.timing_constants import constants_of

MOST_PRODUCTS = 4096**3  # of elements, that a plan of our own is tried for
WIDEST = 8  # tiles of a block that DST holds
DTYPES = {"BFLOAT16": "bf16", "BFLOAT8_B": "bfp8_b", "BFLOAT4_B": "bfp4_b"}


def matmul_end_to_end(row: Row) -> float | None:
    """SUMMA over the whole chip, or in groups that share k, with the published plan; milliseconds."""
    split = re.search(
        r"M,K,N=\d+,(\d+),\d+ padded to M=(\d+),N=(\d+); TT-Lang K-split, grid (\d+)x(\d+): (\d+) column groups.*"
        r"\((\d+) K blocks of bk=(\d+)\), bm,bn=(\d+),(\d+); core loops (\d+) x (\d+)", row["program"],
    )  # fmt: skip
    if split is not None:
        k, m, n, columns, rows, groups, steps, bk, bm, bn, down, across = map(int, split.groups())
        kernel = timed_kernels.k_split((columns, rows), groups, (bm, bn, bk), (down, across), steps)
        return _milliseconds(kernel, (m, k, n), arch_of(row)) if groups == 2 else None
    plan = re.search(
        r"M,K,N=\d+,(\d+),\d+ padded to M=(\d+),N=(\d+); TT-Lang SUMMA, grid (\d+)x(\d+).*bm,bn,bk=(\d+),(\d+),(\d+) tiles; "
        r"core loops (\d+) x (\d+) output blocks, each over (\d+) K blocks", row["program"],
    )  # fmt: skip
    if plan is None:
        return None
    k, m, n, columns, rows, bm, bn, bk, down, across, steps = map(int, plan.groups())
    kernel = timed_kernels.summa((columns, rows), (bm, bn, bk), (down, across), steps)
    return _milliseconds(kernel, (m, k, n), arch_of(row))


def _milliseconds(kernel: object, sizes: tuple[int, int, int], arch: str) -> float:
    m, k, n = sizes
    specs = [unallocated(shape) for shape in ((m, k), (k, n), (m, n))]
    return timeline.run(kernel.compile(*specs, arch=arch, math_fidelity="HiFi4")).microseconds / 1000


def unallocated(shape: tuple[int, int]) -> object:
    """A tensor of zeros that takes no memory."""
    return np.broadcast_to(np.zeros((), ml_dtypes.bfloat16), shape)


def own_plan(row: Row) -> float | None:
    """ttnn's time beside that of `tilewright.kernels.matmul`, because ttnn's blocks were not published; milliseconds.

    Both multiply the same on the same chip; nothing says that they do it alike.
    """
    found = re.search(r"M,K,N=(\d+),(\d+),(\d+); ttnn.matmul", row["program"])
    if found is None:
        return None
    m, k, n = map(int, found.groups())
    if m * k * n > MOST_PRODUCTS:
        return None
    arch = arch_of(row)
    choices = space(m, n, k, arch)
    configs = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    judged = ("block_m", "block_n", "block_k", "multicast", "grid")
    good = [config for config in configs if allowed(**{name: config[name] for name in judged}, M=m, N=n, chip=arch)]
    best = min(good, key=lambda config: matmul_microseconds(m, n, k, "bf16", arch, **config))
    tensors = [unallocated(shape) for shape in ((m, k), (k, n), (m, n))]
    program = kernels.matmul.compile(*tensors, arch=arch, fp32_dest_acc=True, math_fidelity="HiFi4", **best)
    return timeline.run(program).microseconds / 1000


def gemm_bound(row: Row) -> float | None:
    """The least that the model allows: cycles of the matrix unit and of the unpacker, and the rate of DRAM.

    Nanoseconds, or the highest utilisation. Block sizes were not published, so the best ones are taken.
    """
    found = re.search(r"grid \((\d+),\s(\d+)\), M,K,N=(\d+),(\d+),(\d+), (\w+), (\w+), in0 (\w+)", row["program"])
    if found is None:
        return None
    columns, rows, m, k, n = map(int, found.groups()[:5])
    dtype, fidelity, arch = DTYPES[found[6]], found[7], arch_of(row)
    constants = constants_of(arch)
    products = m * k * n / hardware.TILE_ROWS**3 / (columns * rows)
    math = timing_constants.product_cycles(fidelity, 1, WIDEST) / WIDEST
    unpack = constants.matmul_operand * timing_constants.streamed_share(dtype, arch) * (1 + WIDEST) / WIDEST
    cycles = products * max(math, unpack)
    if row["unit"] == "%":
        return 100 * products * timing_constants.PHASE_CYCLES * timing_constants.FIDELITY_PHASES[fidelity] / cycles
    tile = hardware.tile_bytes(dtype) / hardware.TILE_ELEMENTS
    read = (k * n + (m * k if found[8] == "DRAM" else 0)) * tile / (constants.banks * constants.bank_read)
    return max(cycles, read) / constants.clock_ghz
