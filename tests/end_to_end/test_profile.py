"""``tilewright profile``: predicted time, what binds, and the files it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import timed_kernels

import block_kernels
import kernel_text
from tilewright import timing_constants, ttl
from tilewright.timing import exports, timeline
from tilewright.timing.profile import profile

EXAMPLES = Path(__file__).parents[2] / "examples"
BF16 = ml_dtypes.bfloat16

# Math-thread cycles of our own emitted kernels, counted with the vendor's compiler and simulator at HiFi4.
COUNTED = {
    "a * b + c": (dict.fromkeys("abc", (4, 4)), "o0.store(ab * bb + cb)", 1561),
    "swiglu": (dict.fromkeys("ab", (2, 2)), "o0.store(ttl.math.silu(ab) * bb)", 6807),
    "exp(a * b + c)": (dict.fromkeys("abc", (8, 8)), "o0.store(ttl.math.exp(ab * bb + cb))", 49089),
}


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tilewright", "profile", *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("name", COUNTED)
def test_math_cycles_are_those_that_were_counted(name: str, tmp_path: Path):
    inputs, body, counted = COUNTED[name]
    source = block_kernels.single_block({f"{key}b": shape for key, shape in inputs.items()}, ((next(iter(inputs.values()))),), body)
    arrays = [np.zeros((rows * 32, columns * 32), BF16) for rows, columns in [*inputs.values(), next(iter(inputs.values()))]]
    told = kernel_text.load(source, tmp_path).profile(*arrays, math_fidelity="HiFi4")
    assert told.engines["math"].busy == pytest.approx(counted, rel=0.1)


def test_json_has_an_object_per_call():
    done = command("--json", EXAMPLES / "02_fused.py")
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)
    assert told["kernel"] == "fused" and told["chip"] == "wormhole_b0" and told["grid"] == [1, 1]
    assert told["microseconds"] == pytest.approx(told["cycles"] / 1000, rel=1e-3)
    assert told["bound"] == "math"
    assert 0 < told["uncertainty"] < 1
    assert set(told["engines"]) == {"reader", "unpack", "math", "pack", "writer"}
    for engine in told["engines"].values():
        assert 0 <= engine["busy"] <= told["cycles"] and 0 <= engine["stalled"] <= told["cycles"]
        assert engine["stalled"] == pytest.approx(sum(engine["reasons"].values()), abs=1)
    dearest = told["lines"][0]
    assert "exp" in dearest["text"] and dearest["cycles"]["math"] > 0.9 * told["engines"]["math"]["busy"]


def test_the_other_chip_has_another_clock():
    wormhole, blackhole = (
        json.loads(command("--json", "--no-advice", "--arch", arch, EXAMPLES / "02_fused.py").stdout)[0]
        for arch in ("wormhole_b0", "blackhole")
    )
    assert blackhole["microseconds"] == pytest.approx(blackhole["cycles"] / 1350, rel=1e-3)
    assert blackhole["microseconds"] < wormhole["microseconds"]


def valid_trace(events: list[dict[str, Any]]) -> None:
    """Trace-event format: complete slices on a track nest or follow each other, arrows have two ends, no time is negative."""
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    arrows: dict[int, list[str]] = defaultdict(list)
    for event in events:
        assert {"name", "ph", "pid"} <= set(event)
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["ts"] >= 0
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in "sf":
            arrows[event["id"]].append(event["ph"])
        else:
            assert event["ph"] in "Mi"
    assert tracks
    for slices in tracks.values():
        slices.sort()
        for (_, end), (start, _) in pairwise(slices):
            assert start >= end - 2e-6
    assert all(ends == ["s", "f"] for ends in arrows.values())


@pytest.mark.parametrize("example", ["02_fused.py", "06_multicast.py", "07_ring.py", "10_matmul.py", "11_sharded.py", "12_row_major.py", "tilelang/07_flash_attention.py"])
def test_files_for_viewers(example: str, tmp_path: Path):
    done = command(EXAMPLES / example, "-o", tmp_path, "--no-advice")
    assert done.returncode == 0, done.stderr
    assert "bound by" in done.stdout
    valid_trace(json.loads((tmp_path / "trace.json").read_text())["traceEvents"])
    log = (tmp_path / "profile.csv").read_text().splitlines()
    assert log[0].startswith("ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000")
    assert log[1].startswith("PCIe slot,core_x,core_y,RISC processor type,timer_id,time[cycles since reset]")
    assert {row.split(",")[3] for row in log[2:]} <= {"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2"}
    workload = json.loads((tmp_path / "npe.json").read_text())
    for transfer in workload["phases"][0]["transfers"]:
        assert {"packet_size", "num_packets", "src_x", "src_y", "phase_cycle_offset", "noc_type"} <= set(transfer)
        assert "dst_x" in transfer or "mcast_end_x" in transfer


def test_a_folder_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = command(EXAMPLES / "02_fused.py", "-o", tmp_path / "file" / "below", "--no-advice")
    assert done.returncode == 2 and "cannot write" in done.stderr


def test_a_script_without_a_kernel(tmp_path: Path):
    (tmp_path / "empty.py").write_text("print(1)\n")
    done = command(tmp_path / "empty.py")
    assert done.returncode == 1 and "called no kernel" in done.stderr


def test_a_call_of_unknown_cost_is_named(monkeypatch: pytest.MonkeyPatch):
    data = dict(timing_constants.cost_data())
    data["calls"] = {name: cost for name, cost in data["calls"].items() if name != "exp_tile"}
    program = fused(2).compile(*[np.zeros((64, 64), BF16)] * 4)
    timing_constants.call_cost.cache_clear()
    monkeypatch.setattr(timing_constants, "cost_data", lambda: data)
    told, _ = profile(program, advise=False)
    timing_constants.call_cost.cache_clear()
    assert any("exp_tile: no cost is known" in note for note in told.notes)


def fused(tiles: int, depth: int = 2) -> Any:
    @ttl.operation(grid=(1, 1))
    def kernel(a, b, c, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=depth)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=depth)
        c_dfb = ttl.make_dataflow_buffer_like(c, shape=(1, 1), block_count=depth)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=depth)

        @ttl.compute()
        def compute():
            for _ in range(tiles):
                for _ in range(tiles):
                    with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, c_dfb.wait() as c_blk, y_dfb.reserve() as y_blk:
                        y_blk.store(ttl.math.exp(a_blk * b_blk + c_blk))

        @ttl.datamovement()
        def read():
            for row in range(tiles):
                for column in range(tiles):
                    with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, c_dfb.reserve() as c_blk:
                        ttl.copy(a[row : row + 1, column : column + 1], a_blk).wait()
                        ttl.copy(b[row : row + 1, column : column + 1], b_blk).wait()
                        ttl.copy(c[row : row + 1, column : column + 1], c_blk).wait()

        @ttl.datamovement()
        def write():
            for row in range(tiles):
                for column in range(tiles):
                    with y_dfb.wait() as y_blk:
                        ttl.copy(y_blk, y[row : row + 1, column : column + 1]).wait()

    return kernel


def times(kernel: Any, *arrays: Any, **options: Any) -> float:
    return timeline.run(kernel.compile(*arrays, **options)).cycles


def test_deeper_buffers_help_until_something_else_binds():
    arrays = [np.zeros((128, 128), BF16)] * 4
    one, two, three, four = (times(fused(4, depth), *arrays) for depth in (1, 2, 3, 4))
    assert two < 0.9 * one, "with one block the reader waits for the compute"
    assert three <= two * 1.001
    assert four == pytest.approx(three, rel=0.01), "the reader binds: more room does not help"


def test_advice_was_tried():
    told = fused(4, 1).profile(*[np.zeros((128, 128), BF16)] * 4)
    assert told.advice, "one block more in a buffer lets reads go on beside the compute"
    assert any("block_count" in each.change for each in told.advice)
    assert all(each.cycles < told.cycles for each in told.advice)
    assert [each.gain for each in told.advice] == sorted((each.gain for each in told.advice), reverse=True)


def test_values_and_time_together():
    rng = np.random.default_rng(3)
    a, b, c = (rng.uniform(-1, 1, (64, 64)).astype(BF16) for _ in range(3))
    y = np.zeros((64, 64), BF16)
    program = fused(2).compile(a, b, c, y)
    arrays = [array.view(np.uint16).copy() for array in (a, b, c, y)]
    timed = timeline.run(program, arrays)
    assert timed.cycles == pytest.approx(timeline.run(program).cycles)
    expected = np.exp(a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64))
    assert np.max(np.abs(arrays[3].view(BF16).astype(np.float64) - expected)) < 0.06


def test_long_loops_are_multiplied_and_it_is_said(monkeypatch: pytest.MonkeyPatch):
    program = fused(24).compile(*[np.zeros((24 * 32, 24 * 32), BF16)] * 4)
    whole = timeline.run(program, whole=True)
    monkeypatch.setattr(timeline, "MANY_CALLS", 1)
    cut = timeline.run(program)
    assert cut.skipped_turns > 0 and cut.consistent
    assert cut.cycles == pytest.approx(whole.cycles, rel=0.03)
    told, _ = profile(program, advise=False)
    assert any("multiplied" in note for note in told.notes)


def test_a_kernel_that_hangs_shows_how_far_it_came(tmp_path: Path):
    """Two cores that each wait for the other's signal: the deadlock proof is left out to get as far as the timeline."""
    from hand_written import Cb, Kernel

    kernel = Kernel("wormhole_b0", [(2, "bf16"), (2, "bf16")], [(1, 4)])
    reader = kernel.thread("reader")
    for page in range(4):
        reader.call("cb_reserve_back", Cb(0), 1)
        start = reader.value_of_buffer("get_write_ptr", 0)
        reader.read_page(page, 0, start, 0)
        reader.call("noc_async_read_barrier")
        reader.call("cb_push_back", Cb(0), 1)
    compute = kernel.thread("compute")
    compute.call("init_sfpu", Cb(0), Cb(1))
    compute.call("cb_wait_front", Cb(0), 1)
    compute.call("cb_pop_front", Cb(0), 1)
    found = kernel.run()
    assert found.deadlock is not None and found.deadlock.code == "TW501"
    assert "room" in found.deadlock.label or any("room" in note.message for note in found.deadlock.notes)
    assert found.cycles > 500
    valid_trace(exports.trace([found])["traceEvents"])


def test_a_reader_that_waits_for_all_operands_first_loses_the_overlap():
    """One core, 4x4 tiles over 4 steps of k: who waits for everything multiplies 48 of 64 times more after the last read."""
    import timing as benchmark
    from hand_written import Kernel, zone_cycles

    def products(*, waits: bool) -> tuple[float, timeline.Timeline]:
        kernel = Kernel("blackhole", [(16, "bf16"), (16, "bf16"), (16, "bf16")], [(4, 4), (4, 4)])
        reader = kernel.thread("reader")
        for k in range(4):
            benchmark.read_tiles(reader, 0, 0, [line * 4 + k for line in range(4)])
            benchmark.read_tiles(reader, 1, 1, [k * 4 + column for column in range(4)])
        benchmark.block_products(kernel, 4, 4, 4, (2, 4), held=waits)
        found = kernel.run()
        return zone_cycles(found), found

    (waited, _), (overlapped, found) = products(waits=True), products(waits=False)
    hidden = found.slowest.engines["math"].busy * 3 / 4
    assert waited - overlapped == pytest.approx(hidden, rel=0.15)


def test_a_product_in_one_step_cannot_read_beside_its_math():
    arrays = [np.zeros((256, 256), BF16)] * 3
    kernel = timed_kernels.summa((2, 2), (4, 4, 4), (1, 1), 2)
    whole = timed_kernels.summa((2, 2), (4, 4, 8), (1, 1), 1)
    assert times(kernel, *arrays) < times(whole, *arrays)


def added(size: int) -> Any:
    """Sums of blocks of ``size`` tiles squared; the loops follow from it."""

    @ttl.operation(grid=(1, 1))
    def add(a, b, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(size, size), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(size, size), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(size, size), block_count=2)
        rows, columns = a.shape[0] // 32 // size, a.shape[1] // 32 // size

        @ttl.compute()
        def compute():
            for _ in range(rows * columns):
                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
                    y_blk.store(a_blk + b_blk)

        @ttl.datamovement()
        def read():
            for row in range(rows):
                for column in range(columns):
                    top, left = row * size, column * size
                    with a_dfb.reserve() as a_blk:
                        ttl.copy(a[top : top + size, left : left + size], a_blk).wait()
                    with b_dfb.reserve() as b_blk:
                        ttl.copy(b[top : top + size, left : left + size], b_blk).wait()

        @ttl.datamovement()
        def write():
            for row in range(rows):
                for column in range(columns):
                    top, left = row * size, column * size
                    with y_dfb.wait() as y_blk:
                        ttl.copy(y_blk, y[top : top + size, left : left + size]).wait()

    return add


def test_advice_says_what_the_author_would_measure():
    """Larger blocks were tried by compiling the kernel again: whoever follows the advice gets the time it names."""
    arrays = [np.zeros((256, 256), BF16)] * 3
    told = added(1).profile(*arrays)
    larger = next(each for each in told.advice if each.change == "block shape: size = 2 instead of 1")
    assert larger.cycles == pytest.approx(times(added(2), *arrays), abs=0.1)


def test_one_barrier_for_several_reads_needs_no_advice():
    """The compiler does it: the kernel takes as long as one whose author did."""

    @ttl.operation(grid=(1, 1))
    def batched(a, b, c, y):
        a_dfb, b_dfb, c_dfb, y_dfb = (ttl.make_dataflow_buffer_like(each, shape=(1, 1), block_count=2) for each in (a, b, c, y))

        @ttl.compute()
        def compute():
            for _ in range(4):
                for _ in range(4):
                    with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, c_dfb.wait() as c_blk, y_dfb.reserve() as y_blk:
                        y_blk.store(ttl.math.exp(a_blk * b_blk + c_blk))

        @ttl.datamovement()
        def read():
            for row in range(4):
                for column in range(4):
                    with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, c_dfb.reserve() as c_blk:
                        first = ttl.copy(a[row : row + 1, column : column + 1], a_blk)
                        second = ttl.copy(b[row : row + 1, column : column + 1], b_blk)
                        third = ttl.copy(c[row : row + 1, column : column + 1], c_blk)
                        first.wait()
                        second.wait()
                        third.wait()

        @ttl.datamovement()
        def write():
            for row in range(4):
                for column in range(4):
                    with y_dfb.wait() as y_blk:
                        ttl.copy(y_blk, y[row : row + 1, column : column + 1]).wait()

    arrays = [np.zeros((128, 128), BF16)] * 4
    assert times(fused(4), *arrays) == times(batched, *arrays)


def test_one_barrier_for_reads_that_follow_each_other_is_tried():
    """Each operand by itself, which the compiler leaves as it is: results of the first may be wanted early."""

    @ttl.operation(grid=(1, 1))
    def turns(a, b, y):
        a_dfb, b_dfb, y_dfb = (ttl.make_dataflow_buffer_like(each, shape=(1, 1), block_count=2) for each in (a, b, y))

        @ttl.compute()
        def compute():
            for _ in range(8):
                with a_dfb.wait() as block, y_dfb.reserve() as y_blk:
                    y_blk.store(ttl.math.abs(block))
                with b_dfb.wait() as block, y_dfb.reserve() as y_blk:
                    y_blk.store(ttl.math.abs(block))

        @ttl.datamovement()
        def read():
            for column in range(8):
                with a_dfb.reserve() as block:
                    ttl.copy(a[0:1, column : column + 1], block).wait()
                with b_dfb.reserve() as block:
                    ttl.copy(b[0:1, column : column + 1], block).wait()

        @ttl.datamovement()
        def write():
            for column in range(16):
                with y_dfb.wait() as block:
                    ttl.copy(block, y[0:1, column : column + 1]).wait()

    told = turns.profile(*[np.zeros((32, 256), BF16)] * 2, np.zeros((32, 512), BF16))
    gains = {each.change: each.gain for each in told.advice}
    assert gains["one barrier for reads that follow each other in read"] > 0.25
    assert list(gains.values()) == sorted(gains.values(), reverse=True)


def test_advice_never_does_less():
    """A size that the loops do not follow would leave work out: it is not advised."""
    told = fused(4).profile(*[np.zeros((128, 128), BF16)] * 4)
    assert not any("tiles" in each.change for each in told.advice)


def test_a_program_that_cannot_be_compiled_again_says_what_was_not_tried():
    program = fused(2).compile(*[np.zeros((64, 64), BF16)] * 4)
    told, _ = profile(program)
    assert any("not tried" in note and "block shape" in note for note in told.notes)


SIGNPOSTS = """
from tilewright import ttl

def load(tensor, buffer, row):
    with buffer.reserve() as block:
        ttl.copy(tensor[row, 0], block).wait()

@ttl.operation(grid=(1, 1), options="--ttl-accumulation-strategy dst --no-ttl-specialize-cores --ttl-pipe-batch-tiles 4")
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for row in range(4):
            with ttl.signpost("curve"), a_cb.wait() as x, out_cb.reserve() as o:
                o.store(ttl.math.exp(x))

    @ttl.datamovement()
    def read():
        for row in range(4):
            with ttl.signpost("load"):
                load(a, a_cb, row)

    @ttl.datamovement()
    def write():
        for row in range(4):
            with out_cb.wait() as block:
                ttl.copy(block, out[row, 0]).wait()
"""


def test_time_below_a_signpost_is_told_by_engine(tmp_path):
    arrays = [np.zeros((128, 32), np.float32) for _ in range(2)]
    program = kernel_text.load(SIGNPOSTS, tmp_path).compile(*arrays)
    told, _ = profile(program, advise=False)
    assert set(told.signposts["curve"]) == {"unpack", "math", "pack"} and set(told.signposts["load"]) == {"reader"}
    assert told.engines["math"].busy * 0.9 < told.signposts["curve"]["math"] <= told.cycles
    reader = told.engines["reader"]
    assert told.signposts["load"]["reader"] == pytest.approx(reader.busy + reader.stalled, rel=0.01)
    plain = kernel_text.load(SIGNPOSTS.replace('with ttl.signpost("load"):', "if True:"), tmp_path).compile(*arrays)
    assert plain.cpp == program.cpp
