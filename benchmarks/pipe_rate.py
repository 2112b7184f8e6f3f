"""Tiles from DRAM through a pipe to the neighbour, one tile a transfer: predicted cycles of the sender for each, by depth of its buffers.

    python benchmarks/pipe_rate.py

Beside it what a person writes by hand for the same work, a ring of slots with one signal for all of them (``cpp_bounded_ring`` of the
published measurements), by the same timeline. The measured ring of 8 takes 0.129 us, the peer's pipe 0.848 us (Blackhole, tt-lang's
benchmarks/microbench/pipes). Ends with status 1 where a pipe of depth 8 takes more than 1.3 times the ring of 8.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from published_rows import CHIPS
from timed_traffic import pipe

import kernel_text
from tilewright.timing import timeline
from tilewright.timing_constants import constants_of

DEPTHS = (2, 4, 8, 16)
COUNTS = (64, 192)
MOST = 1.3  # times the ring of 8
KERNEL = """
from tilewright import ttl

TILES, DEPTH = {tiles}, {depth}

@ttl.operation(grid=(2, 1))
def stream(a, y):
    sent_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=DEPTH)
    come_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=DEPTH)
    net = ttl.PipeNet([ttl.Pipe((0, 0), (1, 0))])

    @ttl.datamovement()
    def read():
        column, _ = ttl.node(dims=2)
        if column == 0:
            for tile in range(TILES):
                with sent_dfb.reserve() as block:
                    ttl.copy(a[0:1, tile : tile + 1], block).wait()
                with sent_dfb.wait() as block:
                    net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
        else:
            for tile in range(TILES):
                with come_dfb.reserve() as block:
                    net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        if column == 1:
            for tile in range(TILES):
                with come_dfb.wait() as block:
                    ttl.copy(block, y[0:1, tile : tile + 1]).wait()
"""


def sender_end(arch: str, depth: int, tiles: int, folder: Path) -> float:
    tensors: list[Any] = [np.zeros((32, 32 * tiles), ml_dtypes.bfloat16) for _ in range(2)]
    program = kernel_text.load(KERNEL.format(tiles=tiles, depth=depth), folder, "stream").compile(*tensors, arch=arch)
    found = timeline.run(program)
    return next(core.engines["reader"].now for core in found.cores if core.core == (0, 0))


def ring(arch: str, slots: int) -> float:
    """Cycles a tile of the ring that is written by hand."""
    chip = next(name for name, known in CHIPS.items() if known == arch)
    taken = pipe({"id": f"pipe-{chip}-cpp_bounded_ring_r{slots}", "chip": chip})
    assert taken is not None
    return taken * 1000 * constants_of(arch).clock_ghz


def main() -> int:
    good = True
    print(f"{'cycles a tile':13} {'depth':>6} {'pipe':>8} {'ring':>8} {'pipe / ring of 8':>18}")
    with tempfile.TemporaryDirectory() as folder:
        for arch in CHIPS.values():
            eight = ring(arch, 8)
            for depth in DEPTHS:
                ends = [sender_end(arch, depth, tiles, Path(folder)) for tiles in COUNTS]
                taken = (ends[1] - ends[0]) / (COUNTS[1] - COUNTS[0])
                print(f"{arch:13} {depth:6} {taken:8.0f} {ring(arch, depth):8.0f} {taken / eight:18.2f}")
                good &= depth != 8 or taken <= MOST * eight
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
