"""Predicted over measured time: the published programs, rebuilt call by call and put on the timeline.

    python benchmarks/timing.py --measured measured.csv [--counted counted.csv] [--kinds mb1,pass] [--rows]

One line per kind: rows, median error, rows within 25 %. ``--rows`` prints each. Kinds with a star are stand-ins: the program was not
published, another one that computes the same is timed. Of ``gf`` only bounds are judged. Rows that cannot be rebuilt are counted.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from hand_written import COMPUTE, Cb, Kernel, Thread, zone_cycles
from published_rows import Row, arch_of, fields, microseconds
from timed_products import gemm_bound, matmul_end_to_end, own_plan
from timed_traffic import dram_rate, noc_estimator, noc_flow, pipe

from tilewright.timing import timeline
from tilewright.timing.costs import NO_MACROS

Predictor = Callable[[Row], float | None]  # in the unit of the row


def sections(thread: Thread, tiles: int, chunk: int, math: Callable[[int, int], None], output: Cb, **pack: bool) -> None:
    """Tiles in chunks of one acquire: ``math(tile, slot)``, then the packs."""
    for first in range(0, tiles, chunk):
        own = range(first, min(first + chunk, tiles))
        thread.call("tile_regs_acquire")
        for tile in own:
            math(tile, tile - first)
        thread.call("tile_regs_commit")
        thread.call("tile_regs_wait")
        for tile in own:
            thread.call("pack_tile", tile - first, output, tile, out_of_order=True, **pack)
        thread.call("tile_regs_release")


def dst_capacity(*, full: bool, fp32: bool) -> int:
    return (16 if full else 8) // (2 if fp32 else 1)


def mb1(row: Row) -> float:
    """Round trips of T tiles through one buffer."""
    _, _, dtype, sync, acc, size = fields(row)
    tiles, full, fp32 = int(size[1:]), sync == "fs1", acc == "acc1"
    iterations = 16
    kernel = Kernel(arch_of(row), [(2 * tiles, {"bf16": "bf16", "fp32": "f32"}[dtype])], fp32=fp32, full_sync=full)  # see dst_chunk
    kernel.resident = {0: tiles}
    compute = kernel.thread("compute")
    compute.call("init_sfpu", Cb(0), Cb(0))
    compute.call("copy_tile_init", Cb(0))
    compute.call("cb_wait_front", Cb(0), tiles)
    with compute.zone(), compute.loop(iterations):
        compute.call("cb_wait_front", Cb(0), tiles)
        compute.call("cb_reserve_back", Cb(0), tiles)
        chunk = min(tiles, dst_capacity(full=full, fp32=fp32))
        sections(compute, tiles, chunk, lambda tile, slot: compute.call("copy_tile", Cb(0), tile, slot), Cb(0))
        compute.call("cb_pop_front", Cb(0), tiles)
        compute.call("cb_push_back", Cb(0), tiles)
    return microseconds(row, zone_cycles(kernel.run()) / iterations)


def dst_chunk(row: Row) -> float:
    """One pass over resident tiles, in chunks."""
    _, _, form, sync, size, chunks = fields(row)
    tiles, chunk, two = int(size[1:]), int(chunks[1:]), form == "twocb"
    # In place, the buffer must have room for a second block: the packer reserves before the unpacker has popped.
    sizes = [(tiles, "bf16"), (tiles, "bf16")] if two else [(2 * tiles, "bf16")]
    kernel = Kernel(arch_of(row), sizes, full_sync=sync == "full")
    kernel.resident = {0: tiles}
    source, target = Cb(0), Cb(1 if two else 0)
    compute = kernel.thread("compute")
    compute.call("init_sfpu", source, target)
    compute.call("copy_tile_init", source)

    def one_pass() -> None:
        sections(compute, tiles, chunk, lambda tile, slot: compute.call("copy_tile", source, tile, slot), target)

    compute.call("cb_wait_front", source, tiles)
    if form == "hoisted":
        compute.call("cb_reserve_back", target, tiles)
        with compute.zone():
            one_pass()
    elif two:
        compute.call("cb_reserve_back", target, tiles)
        one_pass()  # not measured
        with compute.zone():
            one_pass()
    else:
        with compute.zone():
            compute.call("cb_wait_front", source, tiles)
            compute.call("cb_reserve_back", target, tiles)
            one_pass()
            compute.call("cb_pop_front", source, tiles)
            compute.call("cb_push_back", target, tiles)
    return microseconds(row, zone_cycles(kernel.run()))


def fpu_chunk(row: Row) -> float:
    """Matrix-unit calls over resident tiles, again and again."""
    _, _, op, size, block = fields(row)
    side = int(size[1:])
    down, across = map(int, block.split("x"))
    tiles, chunk, iterations = side * side, down * across, 4
    kernel = Kernel(arch_of(row), [(tiles, "bf16"), (tiles, "bf16")])
    kernel.resident = {0: tiles}
    compute = kernel.thread("compute")
    if op == "transpose":
        compute.call("init_sfpu", Cb(0), Cb(1))
        compute.call("transpose_wh_init_short", Cb(0))
    else:
        compute.call("binary_op_init_common", Cb(0), Cb(0), Cb(1))
        compute.call(f"{op}_tiles_init", Cb(0), Cb(0))

    def math(tile: int, slot: int) -> None:
        if op == "transpose":
            compute.call("transpose_wh_tile", Cb(0), tile, slot)
        else:
            compute.call(f"{op}_tiles", Cb(0), Cb(0), tile, tile, slot)

    compute.call("cb_wait_front", Cb(0), tiles)
    compute.call("cb_reserve_back", Cb(1), tiles)
    with compute.zone(), compute.loop(iterations):
        sections(compute, tiles, chunk, math, Cb(1))
    return microseconds(row, zone_cycles(kernel.run()) / iterations)


def read_tiles(reader: Thread, tensor: int, buffer: int, pages: list[int]) -> None:
    """Reserve, read, barrier, push, as the published readers do."""
    reader.call("cb_reserve_back", Cb(buffer), len(pages))
    start = reader.value_of_buffer("get_write_ptr", buffer)
    for offset, page in enumerate(pages):
        reader.read_page(page, tensor, start, offset)
    reader.call("noc_async_read_barrier")
    reader.call("cb_push_back", Cb(buffer), len(pages))


def mb2(row: Row) -> float | None:
    """A running sum: held in DST, or added up by the packer."""
    parts = fields(row)
    place, acc, iterations, form = parts[2], int(parts[3][1:]), int(parts[4][1:]), parts[5]
    addend = next((word for word in parts[6:] if word in ("mul", "gelu")), "")
    streamed = place == "dram"
    depth = re.search(r"block_count=(\d+)", row["program"])
    blocks = int(depth[1]) if depth and streamed else 2 if streamed else 1
    full = "full_sync=1" in row["program"]
    kernel = Kernel(
        arch_of(row), [(acc, "bf16"), (acc * blocks, "bf16"), (acc, "bf16")],
        [(1, acc), (1, acc * (iterations if streamed else 1))], full_sync=full,
    )  # fmt: skip
    reader = kernel.thread("reader")
    read_tiles(reader, 0, 0, list(range(acc)))
    for turn in range(iterations if streamed else 1):
        read_tiles(reader, 1, 1, list(range(turn * acc, (turn + 1) * acc)))
    compute = kernel.thread("compute")
    compute.call("init_sfpu", Cb(0), Cb(2))
    zone = compute.zone()
    with zone:
        compute.call("cb_reserve_back", Cb(2), acc)
        compute.call("cb_wait_front", Cb(0), acc)
        if form == "dst":
            _held_sum(compute, acc, iterations, addend, streamed=streamed)
        else:
            _packed_sum(compute, acc, iterations, addend, streamed=streamed, capacity=dst_capacity(full=full, fp32=False))
    return microseconds(row, zone_cycles(kernel.run()))


def _held_sum(compute: Thread, acc: int, iterations: int, addend: str, *, streamed: bool) -> None:
    """``addend``: the block itself, its square ("mul") or its gelu, which is made in a slot of its own and then added."""
    compute.call("tile_regs_acquire")
    compute.call("copy_tile_init", Cb(0))
    for slot in range(acc):
        compute.call("copy_tile", Cb(0), slot, slot)
    reuse = template("EltwiseBinaryType::ELWADD", "EltwiseBinaryReuseDestType::DEST_TO_SRCA")
    if addend == "mul":
        compute.call("mul_tiles_init", Cb(1), Cb(1))
    elif addend == "gelu":
        compute.call("copy_tile_init", Cb(1))
    else:
        compute.call("binary_dest_reuse_tiles_init", Cb(1), template=reuse)
    for _ in range(iterations):
        compute.call("cb_wait_front", Cb(1), acc)
        for slot in range(acc):
            if addend == "mul":
                compute.call("mul_tiles", Cb(1), Cb(1), slot, slot, slot)
            elif addend == "gelu":
                compute.call("copy_tile", Cb(1), slot, acc)
                _fast_gelu(compute, acc)
                compute.call("add_binary_tile_init")
                compute.call("add_binary_tile", slot, acc, slot)
            else:
                compute.call("binary_dest_reuse_tiles", Cb(1), slot, slot, template=reuse)
        if streamed:
            compute.call("cb_pop_front", Cb(1), acc)
    compute.call("tile_regs_commit")
    compute.call("tile_regs_wait")
    for slot in range(acc):
        compute.call("pack_tile", slot, Cb(2), slot, out_of_order=True)
    compute.call("tile_regs_release")


def _fast_gelu(compute: Thread, slot: int, *, init: bool = True) -> None:
    if init:
        compute.call("gelu_tile_init", template=template("true"))
    compute.call("gelu_tile", slot, template=template("true"))


def _packed_sum(compute: Thread, acc: int, iterations: int, addend: str, *, streamed: bool, capacity: int) -> None:
    compute.call("copy_tile_init", Cb(0))
    sections(compute, acc, min(acc, capacity), lambda tile, slot: compute.call("copy_tile", Cb(0), tile, slot), Cb(2))
    if addend == "mul":
        compute.call("mul_tiles_init", Cb(1), Cb(1))
    else:
        compute.call("copy_tile_init", Cb(1))
    if addend == "gelu":
        compute.call("gelu_tile_init", template=template("true"))
    compute.call("pack_reconfig_l1_acc", 1)

    def add(tile: int, slot: int) -> None:
        if addend == "mul":
            compute.call("mul_tiles", Cb(1), Cb(1), tile, tile, slot)
        else:
            compute.call("copy_tile", Cb(1), tile, slot)
        if addend == "gelu":
            _fast_gelu(compute, slot, init=False)

    for _ in range(iterations):
        compute.call("cb_wait_front", Cb(1), acc)
        sections(compute, acc, min(acc, capacity), add, Cb(2))
        if streamed:
            compute.call("cb_pop_front", Cb(1), acc)


def template(*words: str) -> object:
    from xdsl.dialects.builtin import ArrayAttr, StringAttr

    return ArrayAttr([StringAttr(word) for word in words])


def mb3(row: Row) -> float | None:
    """One core, blocks of products with a K loop: the sum stays in DST, or the packer adds it up."""
    found = re.match(
        r"1 core.*?(bf16|fp32) inputs.*?C\[(\d+),(\d+)\] = sum over (\d+) K tiles, (\w+), fp32_dest_acc=(\d), full_sync=(\d), "
        r"subblock (\d+)x(\d+)", row["program"],
    )  # fmt: skip
    if found is None:
        return None
    dtype = {"bf16": "bf16", "fp32": "f32"}[found[1]]
    down, across, inner = int(found[2]), int(found[3]), int(found[4])
    sub = int(found[8]), int(found[9])
    kernel = Kernel(
        arch_of(row), [(down * inner, dtype), (across * inner, dtype), (down * across, "bf16")], [(down, inner), (inner, across)],
        fp32=found[6] == "1", full_sync=found[7] == "1", fidelity=found[5],
    )  # fmt: skip
    reader = kernel.thread("reader")
    for k in range(inner):
        read_tiles(reader, 0, 0, [line * inner + k for line in range(down)])
        read_tiles(reader, 1, 1, [k * across + column for column in range(across)])
    block_products(kernel, down, across, inner, sub, held=fields(row)[-1] == "dst", gelu="gelu" in row["id"])
    return microseconds(row, zone_cycles(kernel.run()))


def block_products(
    kernel: Kernel, down: int, across: int, inner: int, sub: tuple[int, int], *, held: bool, gelu: bool = False
) -> None:
    """The gelu of the sum: in DST before the pack, or in a pass of its own over the sums in L1."""
    compute = kernel.thread("compute")
    compute.call("mm_init", Cb(0), Cb(1), Cb(2))
    shape = {"transpose": 0, "rt": sub[0], "ct": sub[1], "kt": 1}
    compute.call("mm_block_init_short", Cb(0), Cb(1), **shape)
    with compute.zone():
        compute.call("cb_reserve_back", Cb(2), down * across)
        blocks = [(top, left) for top in range(0, down, sub[0]) for left in range(0, across, sub[1])]
        if held:
            if gelu:
                compute.call("gelu_tile_init", template=template("true"))
            compute.call("cb_wait_front", Cb(0), down * inner)
            compute.call("cb_wait_front", Cb(1), across * inner)
            for top, left in blocks:
                compute.call("tile_regs_acquire")
                for k in range(inner):
                    compute.call("matmul_block", Cb(0), Cb(1), k * down + top, k * across + left, 0, **shape)
                for slot in range(sub[0] * sub[1] if gelu else 0):
                    _fast_gelu(compute, slot, init=False)
                _pack_block(compute, top, left, sub, across)
            compute.call("cb_pop_front", Cb(0), down * inner)
            compute.call("cb_pop_front", Cb(1), across * inner)
            return
        for k in range(inner):
            compute.call("cb_wait_front", Cb(0), down)
            compute.call("cb_wait_front", Cb(1), across)
            if k < 2:
                compute.call("pack_reconfig_l1_acc", k)
            for top, left in blocks:
                compute.call("tile_regs_acquire")
                compute.call("matmul_block", Cb(0), Cb(1), top, left, 0, **shape)
                _pack_block(compute, top, left, sub, across)
            compute.call("cb_pop_front", Cb(0), down)
            compute.call("cb_pop_front", Cb(1), across)
        if gelu:
            compute.call("pack_reconfig_l1_acc", 0)
            compute.call("cb_push_back", Cb(2), down * across)
            compute.call("cb_wait_front", Cb(2), down * across)
            compute.call("copy_tile_init", Cb(2))
            compute.call("gelu_tile_init", template=template("true"))
            kernel.buffers[2] = replace(kernel.buffers[2], block_count=2)  # the result goes beside the sums
            compute.call("cb_reserve_back", Cb(2), down * across)

            def reload(tile: int, slot: int) -> None:
                compute.call("copy_tile", Cb(2), tile, slot)
                _fast_gelu(compute, slot, init=False)

            capacity = dst_capacity(full=kernel.config.dst_full_sync_en, fp32=kernel.config.fp32_dest_acc_en)
            sections(compute, down * across, min(down * across, capacity), reload, Cb(2))


def _pack_block(compute: Thread, top: int, left: int, sub: tuple[int, int], across: int) -> None:
    compute.call("tile_regs_commit")
    compute.call("tile_regs_wait")
    for line in range(sub[0]):
        for column in range(sub[1]):
            tile = (top + line) * across + left + column
            compute.call("pack_tile", line * sub[1] + column, Cb(2), tile, out_of_order=True)
    compute.call("tile_regs_release")


def mm_ladder(row: Row) -> float | None:
    """8x8 output tiles; utilisation of the matrix unit in the math thread's zone."""
    found = re.search(r"kt=(\d+) in (\d+) K block\(s\) of (\d+)", row["program"])
    form = fields(row)[2]
    if found is None or form.startswith("ttnn"):
        return None
    inner, blocks = int(found[1]), int(found[2])
    sub = re.search(r"subblock (\d+)x(\d+)", row["program"])
    down, across = (int(sub[1]), int(sub[2])) if sub else (1, 8)
    kernel = Kernel(arch_of(row), [(8 * inner, "bf16"), (8 * inner, "bf16"), (64, "bf16")])
    kernel.resident = {0: 8 * inner, 1: 8 * inner}
    compute = kernel.thread("compute")
    compute.call("mm_init", Cb(0), Cb(1), Cb(2))
    single = "matmul_tiles" in row["program"]
    shape = {"transpose": 0, "rt": down, "ct": across, "kt": 1}
    if not single:
        compute.call("mm_block_init_short", Cb(0), Cb(1), **shape)
    compute.call("cb_wait_front", Cb(0), 8 * inner)
    compute.call("cb_wait_front", Cb(1), 8 * inner)
    compute.call("cb_reserve_back", Cb(2), 64)
    with compute.zone():
        for block in range(blocks):
            if blocks > 1 and block < 2:
                compute.call("pack_reconfig_l1_acc", block)
            for top in range(0, 8, down):
                for left in range(0, 8, across):
                    compute.call("tile_regs_acquire")
                    for k in range(block * inner // blocks, (block + 1) * inner // blocks):
                        if not single:
                            compute.call("matmul_block", Cb(0), Cb(1), k * 8 + top, k * 8 + left, 0, **shape)
                            continue
                        for line in range(down):
                            for column in range(across):
                                compute.call("matmul_tiles", Cb(0), Cb(1), k * 8 + top + line, k * 8 + left + column, line * across + column, transpose=0)
                    _pack_block(compute, top, left, (down, across), 8)
    return 100 * 64 * inner * 64 / zone_cycles(kernel.run(), ("math",))


def mb4(row: Row) -> float:
    """One call on four resident tiles, again and again: cycles of a tile; vector calls without the copy around them."""
    _, _, unit, op = fields(row)
    if unit == "fpu":
        return microseconds(row, _four_tiles(row, op) / 4)
    return microseconds(row, (_four_tiles(row, op, math_only=True) - _four_tiles(row, "copy_tile", math_only=True)) / 4)


def _four_tiles(row: Row, op: str, *, math_only: bool = False) -> float:
    iterations, tiles = 8, 4
    kernel = Kernel(arch_of(row), [(tiles, "bf16"), (tiles, "bf16"), (tiles, "bf16")])
    kernel.resident = {0: tiles, 1: tiles}
    compute = kernel.thread("compute")
    # Call, its init, whether it reads both buffers, what it says in its template.
    row_max = template("PoolType::MAX", "ReduceDim::REDUCE_ROW")
    matrix: dict[str, tuple[str, str, object | None]] = {
        "add_tiles": ("add_tiles", "add_tiles_init", None),
        "sub_tiles_bcast": ("sub_tiles_bcast_cols", "sub_bcast_cols_init_short", None),
        "mul_tiles": ("mul_tiles", "mul_tiles_init", None),
        "reduce_max": ("reduce_tile", "reduce_init", row_max),
    }
    fast = {"template": template("true")} if op == "gelu" else {}
    call, init, words = matrix.get(op, ("copy_tile", "copy_tile_init", None))
    pair = op in matrix
    extra = {"template": words} if words is not None else {}
    compute.call("binary_op_init_common" if pair else "init_sfpu", *((Cb(0), Cb(1), Cb(2)) if pair else (Cb(0), Cb(2))))
    if init == "reduce_init":
        compute.call(init, Cb(0), Cb(1), Cb(2), **extra)
    else:
        compute.call(init, *((Cb(0), Cb(1)) if pair else (Cb(0),)))
    vector = op not in matrix and op != "copy_tile"
    if vector:
        compute.call(f"{op}_tile_init", **fast)
    compute.call("cb_wait_front", Cb(0), tiles)
    compute.call("cb_wait_front", Cb(1), tiles)
    compute.call("cb_reserve_back", Cb(2), tiles)
    packed = 1 if op == "reduce_max" else tiles
    with compute.zone(), compute.loop(iterations):
        compute.call("tile_regs_acquire")
        for tile in range(tiles):
            slot = 0 if op == "reduce_max" else tile
            if op == "reduce_max":
                compute.call(call, Cb(0), Cb(1), tile, 0, slot, **extra)
            elif pair:
                compute.call(call, Cb(0), Cb(1), tile, tile, slot)
            else:
                compute.call(call, Cb(0), tile, slot)
        for slot in range(tiles if vector else 0):
            compute.call(f"{op}_tile", slot, **fast)
        compute.call("tile_regs_commit")
        compute.call("tile_regs_wait")
        for slot in range(packed):
            compute.call("pack_tile", slot, Cb(2), slot, out_of_order=True)
        compute.call("tile_regs_release")
    return zone_cycles(kernel.run(), ("math",) if math_only else COMPUTE) / iterations


def sfpu_chain(row: Row) -> float:
    """abs(neg(relu(sigmoid(c) + tanh(b))))."""
    _, _, sync, size, share = fields(row)
    tiles, chunk = int(size[1:]), int(share[1:])
    kernel = Kernel(arch_of(row), [(tiles, "bf16"), (tiles, "bf16"), (tiles, "bf16")], full_sync=sync == "full")
    kernel.resident = {0: tiles, 1: tiles}
    compute = kernel.thread("compute")
    compute.call("init_sfpu", Cb(0), Cb(2))
    compute.call("cb_wait_front", Cb(0), tiles)
    compute.call("cb_wait_front", Cb(1), tiles)
    compute.call("cb_reserve_back", Cb(2), tiles)
    with compute.zone():
        for first in range(0, tiles, chunk):
            own = range(min(chunk, tiles - first))
            compute.call("tile_regs_acquire")
            compute.call("copy_tile_init", Cb(0))
            for slot in own:
                compute.call("copy_tile", Cb(0), first + slot, 2 * slot)
                compute.call("copy_tile", Cb(1), first + slot, 2 * slot + 1)
            for op, slots in (("sigmoid", 1), ("tanh", 0), ("add_binary", 0), ("relu", 0), ("negative", 0), ("abs", 0)):
                compute.call(f"{op}_tile_init")
                for slot in own:
                    place = 2 * slot + slots
                    if op == "add_binary":
                        compute.call("add_binary_tile", place, place + 1, place)
                    else:
                        compute.call(f"{op}_tile", place)
            compute.call("tile_regs_commit")
            compute.call("tile_regs_wait")
            for slot in own:
                compute.call("pack_tile", 2 * slot, Cb(2), first + slot, out_of_order=True)
            compute.call("tile_regs_release")
    return microseconds(row, zone_cycles(kernel.run(), COMPUTE))


KINDS: dict[str, Predictor] = {
    "mb1": mb1, "pass": dst_chunk, "fpu": fpu_chunk, "mb2": mb2, "mb3": mb3, "mmlad": mm_ladder, "mb4": mb4, "chain": sfpu_chain,
    "nocflow": noc_flow, "noc": noc_estimator, "dram": dram_rate, "pipe": pipe, "mm": matmul_end_to_end,
}  # fmt: skip
STANDINS = {"mm": own_plan}  # where the program was not published: another that computes the same
BOUNDS = {"gf": gemm_bound}  # only the best that could be is known
TOLERANCE = 0.02  # of a bound: measured values are rounded, clocks are nominal


def label(row: Row, kind: str) -> str:
    """What a row is counted under."""
    if "mechanism" not in row:
        return kind
    return row["kind"] + row["mechanism"].removeprefix("unicast").replace("multicast", " multicast").replace("_", ", ")


def predictions(rows: list[Row], kinds: list[str]) -> Iterator[tuple[str, Row, float]]:
    """Kind, row and prediction. A kind that ends in "*" is a stand-in's."""
    left: Counter[str] = Counter()
    for row in rows:
        kind = fields(row)[0]
        if kind in kinds and kind in KINDS:
            found = KINDS[kind](row)
            if found is not None:
                yield kind, row, found
            elif kind in STANDINS and (found := STANDINS[kind](row)) is not None:
                yield f"{kind}*", row, found
            else:
                left[label(row, kind)] += 1
    if left:
        print(f"not rebuilt: {', '.join(f'{kind} {count}' for kind, count in left.items())}")


def bounds(rows: list[Row], *, every: bool) -> None:
    """Whether any row is better than the model allows, and how near the best ones come."""
    for kind, bound in BOUNDS.items():
        shares: list[float] = []  # of the best that could be
        for row in rows:
            if fields(row)[0] == kind and (best := bound(row)) is not None:
                measured = float(row["value"])
                shares.append(measured / best if row["unit"] == "%" else best / measured)
                if every:
                    print(f"{row['id']:60s} {best:14.2f} {measured:14.2f} {row['unit']:3s} {shares[-1]:6.3f}")
        if shares:
            held = sum(share <= 1 + TOLERANCE for share in shares)
            print(f"bounds of {kind}: {held} of {len(shares)} rows keep them; the best reaches {max(shares):.1%}, half of them {statistics.median(shares):.1%} or more")


TRIPS = ("m2 (m+c)*abs(m)",)  # kernels that took values through L1 when they were counted


def counted(table: Path) -> None:
    """Math-thread cycles of our emitted kernels beside those counted on the vendor's simulator, which has no SFPLOADMACRO."""
    os.environ[NO_MACROS] = "1"
    import tempfile

    sys.path.append(str(Path(__file__).parents[1] / "tests"))  # whose kernels are counted
    import kernel_cases
    import kernels

    with table.open(encoding="utf-8") as file:
        wanted = {row["kernel"]: float(row["T1_cycles"]) for row in csv.DictReader(file)}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in kernel_cases.CASES:
            if case.name in wanted and case.name not in ratios:
                shapes = [*case.inputs.values(), *case.outputs]
                tensors = [np.zeros((rows * 32, columns * 32), kernels.DTYPES[case.dtype]) for rows, columns in shapes]
                # The calls that were counted: those of the ops themselves, at HiFi4, in DST, not cheaper ones that stand for them.
                options = {"math_fidelity": "HiFi4", **case.options, "equivalent_calls": False, "round_trips": None if case.name in TRIPS else False}
                program = kernels.build(case, Path(folder)).compile(*tensors, **options)
                ratios[case.name] = timeline.run(program).slowest.engines["math"].busy / wanted[case.name]
    del os.environ[NO_MACROS]
    errors = {name: abs(ratio - 1) for name, ratio in ratios.items()}
    print(f"counted: {len(ratios)} kernels, median error {statistics.median(errors.values()):.1%}, within 10 %: {sum(error <= 0.1 for error in errors.values())}")
    for name, error in errors.items():
        if error > 0.1:
            print(f"  {name}: {ratios[name]:.3f} of what was counted")


def pairs(found: list[tuple[str, Row, float]]) -> None:
    """Which of two variants is faster: rows that differ in one part of their name, and by more than 5 %."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    alike: dict[tuple[str, ...], list[tuple[str, Row, float]]] = {}
    for kind, row, predicted in found:
        parts = fields(row)
        for place in range(len(parts)):
            alike.setdefault((row["unit"], str(place), *parts[:place], *parts[place + 1 :]), []).append((kind, row, predicted))
    for group in alike.values():
        for (kind, one, first), (_, two, second) in itertools.combinations(group, 2):
            measured = float(one["value"]) / float(two["value"])
            if abs(measured - 1) > 0.05:
                total[kind] += 1
                right[kind] += (first < second) == (measured < 1)
    if total:
        kinds = ", ".join(f"{kind} {right[kind]}/{count}" for kind, count in total.items())
        print(f"pairs: the faster of two variants is told in {right.total()} of {total.total()} ({right.total() / total.total():.1%}): {kinds}")


def read_rows(measured: Path) -> list[Row]:
    with measured.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    network = measured.with_name("noc.csv")
    if network.exists():
        with network.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                name = "-".join(("noc", *(row[word] for word in ("chip", "kind", "mechanism", "axis", "subordinates", "loopback", "stateful", "tx_total", "bytes"))))
                rows.append({**row, "id": name, "value": row["cycles"], "unit": "cycles", "program": ""})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, help="table of published measurements; noc.csv may stand beside it")
    parser.add_argument("--counted", type=Path, help="table of counted math-thread cycles")
    parser.add_argument("--kinds", default=",".join((*KINDS, *BOUNDS)))
    parser.add_argument("--rows", action="store_true", help="print every row")
    arguments = parser.parse_args()
    if arguments.counted:
        counted(arguments.counted)
    rows, kinds = read_rows(arguments.measured), arguments.kinds.split(",")
    ratios: dict[tuple[str, str], list[float]] = {}
    found: list[tuple[str, Row, float]] = []
    for kind, row, predicted in predictions(rows, kinds):
        ratio = predicted / float(row["value"])
        ratios.setdefault((label(row, kind), row["chip"]), []).append(ratio)
        found.append((kind, row, predicted))
        if arguments.rows:
            print(f"{row['id']:44s} {predicted:10.3f} {float(row['value']):10.3f} {row['unit']:5s} {ratio:6.3f}", flush=True)
    print(f"{'kind':30s} {'chip':4s} {'rows':>5s} {'median error':>13s} {'within 25 %':>12s} {'mean ratio':>11s}")
    for (kind, chip), all_ratios in ratios.items():
        errors = [abs(ratio - 1) for ratio in all_ratios]
        near = sum(error <= 0.25 for error in errors) / len(errors)
        print(f"{kind:30s} {chip:4s} {len(all_ratios):5d} {statistics.median(errors):12.1%} {near:11.0%} {statistics.mean(all_ratios):10.3f}")
    pairs([entry for entry in found if not entry[0].endswith("*")])
    if set(BOUNDS) & set(kinds):
        bounds(rows, every=arguments.rows)


if __name__ == "__main__":
    main()
