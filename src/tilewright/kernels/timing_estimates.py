"""Rough times of products by a formula: they order thousands of plans, of which the timeline then runs the first.

A step of K takes as long as the slowest of three: the products, the reads and multicasts of A, those of B. With two blocks of
each in L1 the three overlap.
"""

from __future__ import annotations

from tilewright.hardware import tile_bytes
from tilewright.kernels.sharing import TILE, share_of
from tilewright.timing_constants import call_cost, constants_of

BARRIER = 900.0  # cycles from the last request to the end of a barrier
SHARE_OF_BANKS = 0.8  # of the rate of all banks that many readers get
SECTION = 180.0  # cycles around the products of one section of DST
SECTION_TILES = 4
PASSES = {"bf16": "HiFi3", "bfp8_b": "HiFi2", "bfp4_b": "LoFi"}  # of the matrix unit, without the user's word (decision 0034)
HAND_OVER = 350.0  # of a block from core to core: two semaphores


def matmul_microseconds(
    M: int, N: int, K: int, dtype: str, chip: str, block_m: int, block_n: int, block_k: int, depth: int, multicast: str,
    grid: tuple[int, int], math_fidelity: str | None = None,
) -> float:  # fmt: skip
    constants = constants_of(chip)
    columns, rows = grid
    down, across = share_of(M // TILE // block_m, rows), share_of(N // TILE // block_n, columns)
    steps = K // TILE // block_k
    size = tile_bytes(dtype)
    fidelity = math_fidelity or PASSES.get(dtype, "HiFi4")
    product = call_cost("matmul_block", dst32=True, fidelity=fidelity, chip=chip).math_cycles
    tiles = block_m * block_n
    math = tiles * block_k * product + tiles / SECTION_TILES * SECTION
    sends_a, sends_b = multicast != "none" and columns > 1, multicast != "none" and rows > 1
    cores = rows * columns
    pages = (rows if sends_a else cores) * block_m * block_k + (columns if sends_b else cores) * block_n * block_k
    banks = pages * size / (constants.banks * constants.bank_read * SHARE_OF_BANKS)

    def fetched(count: int, sends: bool) -> float:
        alone = count * max(constants.read_page_issue, size / constants.flit_bytes)
        return max(alone, banks) + BARRIER + (count * size / constants.flit_bytes + HAND_OVER if sends else 0.0)

    left, right = fetched(block_m * block_k, sends_a), fetched(block_n * block_k, sends_b)
    written = tiles * size * columns * rows / (constants.banks * constants.bank_write * SHARE_OF_BANKS) + BARRIER
    step = max(math, left, right) if depth > 1 else math + max(left, right)
    cycles = down * across * (steps * step + max(0.0, written - steps * max(0.0, math - right))) + max(left, right) + written
    return cycles / constants.clock_ghz / 1000
