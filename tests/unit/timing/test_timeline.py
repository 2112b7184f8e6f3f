"""The timeline against published measurements of single mechanisms, and the shapes that must come out of them.

The numbers are a few rows of public measurements, as cycles or microseconds; ``benchmarks/timing.py`` compares with all of them.
"""

from __future__ import annotations

import heapq
from itertools import pairwise

import pytest
import timing as benchmark
from hand_written import COMPUTE, Cb, Kernel, zone_cycles

from tilewright.sim.registry import Site
from tilewright.timing.clock import Engine
from tilewright.timing.movement import Mover
from tilewright.timing.network import DIES, Network, Taken, hops, route
from tilewright.timing_constants import ROWS, constants_of

SITE = Site("flow", "flow", "d", None, {})
CHIPS = ("wormhole_b0", "blackhole")

# Identifier as in the published tables, chip, program text where the rebuilt program needs it, measured value.
MEASURED = [
    ("mb1-BH-bf16-fs0-acc0-T1", "", 0.107),
    ("mb1-BH-bf16-fs0-acc0-T8", "", 0.441),
    ("mb1-WH-bf16-fs0-acc0-T4", "", 0.439),
    ("pass-BH-twocb-half-t176-c1", "", 6.457),
    ("pass-BH-twocb-half-t176-c8", "", 5.253),
    ("pass-BH-twocb-full-t176-c4", "", 6.487),
    ("pass-BH-hoisted-half-t64-c4", "", 2.088),
    ("fpu-BH-add-n8-1x8", "", 1.348),
    ("fpu-BH-mul-n8-1x2", "", 4.215),
    ("mmlad-BH-mm1_tile_loop-nb1", "kt=8 in 1 K block(s) of 8; matmul_tiles per tile, output subblock 1x8", 80.2),
    ("mmlad-WH-mm1_tile_loop-nb1", "kt=8 in 1 K block(s) of 8; matmul_tiles per tile, output subblock 1x8", 74.6),
    ("mb2-BH-l1-a4-i16-l1-fs", "full_sync=1", 3.33),
    ("mb2-BH-l1-a4-i4-dst-gelu", "", 6.14),
    ("mb4-BH-sfpu-rsqrt", "", 0.73),
    ("mb4-BH-fpu-mul_tiles", "", 0.068),
    ("pipe-BH-cpp_baseline", "", 0.606),
    ("pipe-BH-cpp_bounded_ring_r16", "", 0.091),
]


@pytest.mark.parametrize(("name", "program", "measured"), MEASURED, ids=[name for name, _, _ in MEASURED])
def test_published_programs(name: str, program: str, measured: float):
    kind, chip = name.split("-")[:2]
    predicted = benchmark.KINDS[kind]({"id": name, "chip": chip, "program": program})
    assert predicted == pytest.approx(measured, rel=0.15)


def test_every_constant_lies_between_its_bounds_and_names_a_source():
    for row in ROWS:
        for value, low, high in (row.wormhole, row.blackhole):
            assert low <= value <= high, row.name
        assert row.source.startswith("["), row.name


@pytest.mark.parametrize("chip", CHIPS)
def test_a_round_trip_takes_the_same_way_whatever_the_distance(chip: str):
    columns, rows = DIES[chip].size
    for net in (0, 1):
        for target in ((3, 1), (9, 1)):
            assert hops(chip, net, (1, 1), target) + hops(chip, net, target, (1, 1)) == columns
        assert hops(chip, net, (1, 1), (1, 4)) + hops(chip, net, (1, 4), (1, 1)) == rows
        assert hops(chip, net, (1, 1), (4, 4)) + hops(chip, net, (4, 4), (1, 1)) == columns + rows


def test_routes_of_the_two_networks_share_no_link():
    there, back = (set(route("wormhole_b0", net, (1, 1), (6, 7))) for net in (0, 1))
    assert not there & back


def mover(network: Network, core: tuple[int, int], net: int = 0) -> Mover:
    return Mover(Engine("flow", 1, 0.0, depth=0, record=False), network, net, network.die.worker(core))


@pytest.mark.parametrize(("chip", "measured"), [("wormhole_b0", 479), ("blackhole", 539)])
def test_one_read_of_a_tile_from_dram(chip: str, measured: int):
    network = Network(chip, constants_of(chip))
    one = mover(network, (0, 0))
    one.read_dram(SITE, 0, 2048, network.constants.read_page_issue)
    one.read_barrier(SITE)
    assert one.engine.now == pytest.approx(measured, rel=0.12)


@pytest.mark.parametrize(("chip", "peak"), [("wormhole_b0", 22.1), ("blackhole", 46.5)])
def test_one_bank_gives_what_it_has_to_any_number_of_cores(chip: str, peak: float):
    network = Network(chip, constants_of(chip))
    cores = [mover(network, (x, y)) for x in range(4) for y in range(4)]
    pending = [(0.0, number, 0) for number in range(len(cores))]
    while pending:
        _, number, done = heapq.heappop(pending)
        cores[number].read_dram(SITE, 0, 4096, network.constants.read_issue)
        if done < 63:
            heapq.heappush(pending, (cores[number].engine.now, number, done + 1))
    for core in cores:
        core.read_barrier(SITE)
    assert 16 * 64 * 4096 / max(core.engine.now for core in cores) == pytest.approx(peak, rel=0.05)


@pytest.mark.parametrize("chip", CHIPS)
def test_small_writes_of_many_cores_share_the_network(chip: str):
    """Links that are free most of the time hold nobody up, in whatever order the cores ask for them."""
    network = Network(chip, constants_of(chip))
    writers = [mover(network, (x, y), net=1) for y in range(4) for x in range(4)]
    issue, count = constants_of(chip).write_page_issue, 96
    for number in range(count):
        for writer in sorted(writers, key=lambda each: each.next_start):
            writer.write_dram(SITE, network.bank(number), 64, issue)
    assert max(network.load) < count * issue / 2
    assert max(writer.next_start for writer in writers) < 1.6 * count * issue


@pytest.mark.parametrize("chip", CHIPS)
def test_a_bank_that_is_behind_holds_up_its_writers(chip: str):
    network = Network(chip, constants_of(chip))
    writers = [mover(network, (x, 0), net=1) for x in range(4)]
    for _ in range(32):
        for writer in sorted(writers, key=lambda each: each.next_start):
            writer.write_dram(SITE, 0, 8192, constants_of(chip).write_page_issue)
    taken = 4 * 31 * 8192 / constants_of(chip).bank_write
    assert max(writer.next_start for writer in writers) > 0.9 * taken


MULTICASTS = [  # chip, source, side of the rectangle at (0, 0), measured cycles from one multicast of 64 bytes to the next
    ("wormhole_b0", (0, 0), (2, 2), 40.0), ("wormhole_b0", (0, 0), (3, 3), 72.0), ("wormhole_b0", (0, 0), (8, 1), 136.0),
    ("wormhole_b0", (2, 0), (2, 2), 168.0), ("wormhole_b0", (0, 1), (8, 1), 309.9),
    ("blackhole", (0, 0), (2, 2), 39.0), ("blackhole", (0, 0), (5, 5), 135.0), ("blackhole", (2, 0), (2, 2), 276.9),
]  # fmt: skip


def multicasts(chip: str, source: tuple[int, int], size: tuple[int, int], data: int, *, linked: bool) -> list[float]:
    """When the first eight multicasts of a core began to enter the network."""
    network = Network(chip, constants_of(chip))
    targets = tuple(network.die.worker((x, y)) for x in range(size[0]) for y in range(size[1]))
    core, times = mover(network, source), []
    for _ in range(8):
        core.multicast(SITE, targets, data, 22.0, linked=linked)
        times.append(network.entered)
    return times


@pytest.mark.parametrize(("chip", "source", "size", "measured"), MULTICASTS)
def test_a_multicast_waits_for_the_path_of_the_one_before(
    chip: str, source: tuple[int, int], size: tuple[int, int], measured: float
):
    times = multicasts(chip, source, size, 64, linked=False)
    assert [later - earlier for earlier, later in pairwise(times)] == [pytest.approx(measured, rel=0.05)] * 7


def test_linked_multicasts_go_as_fast_as_they_are_issued_or_acknowledged():
    gaps = [later - earlier for earlier, later in pairwise(multicasts("blackhole", (8, 0), (8, 8), 64, linked=True)[1:])]
    assert gaps == [pytest.approx(64, rel=0.05)] * 6, "64 targets, one acknowledgement a cycle, measured"
    gaps = [later - earlier for earlier, later in pairwise(multicasts("blackhole", (2, 0), (2, 2), 64, linked=True)[1:])]
    assert gaps == [pytest.approx(22, rel=0.05)] * 6


# Rows of the vendor's data set: kind, chip, targets or readers, transfers to each target, bytes of one, measured cycles.
TRAFFIC = [
    ("write_to_all-multicast", "BH", 64, 16, 2048, 6879.0), ("write_to_all-multicast_linked", "WH", 25, 16, 2048, 1745.0),
    ("row_to_row", "BH", 11, 4, 2048, 10105.0), ("all_to_all", "BH", 9, 16, 16384, 142693.0),
    ("dram_interleaved_write_allcores", "WH", 0, 64, 2048, 51568.0), ("dram_interleaved_write_allcores", "BH", 0, 64, 2048, 62330.0),
    ("dram_interleaved_read_allcores", "WH", 0, 64, 2048, 115235.0), ("dram_interleaved_read_allcores", "BH", 0, 64, 2048, 78064.0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "chip", "count", "transfers", "size", "measured"), TRAFFIC)
def test_published_traffic_of_many_cores(kind: str, chip: str, count: int, transfers: int, size: int, measured: float):
    name, _, mechanism = kind.partition("-")
    numbers = {"subordinates": count, "tx_per_dest": transfers, "bytes": size, "tx_total": transfers * max(count, 1)}
    row = {"kind": name, "chip": chip, "mechanism": mechanism or "unicast", "loopback": "0", "stateful": "0", "axis": ""}
    assert benchmark.KINDS["noc"]({**row, **{key: str(value) for key, value in numbers.items()}}) == pytest.approx(measured, rel=0.25)


def test_flits_go_wherever_a_link_has_room():
    link = Taken()
    assert link.take(100.0, 10.0) == 100.0
    assert link.take(50.0, 10.0) == 50.0, "who comes earlier passes, though it was told later"
    assert link.take(55.0, 10.0) == 60.0, "behind the one that is there"
    assert link.take(66.0, 40.0) == 80.0, "from 70 on, 30 cycles before the one at 100, 10 behind it: as one piece from 80 on"
    assert link.take(0.0, 60.0) == 70.0, "50 cycles before all others, 10 behind them"
    assert link.free == 130.0


def test_a_packet_that_waits_holds_up_others_behind_it_but_not_its_own_core():
    """On one row: a write to the right waits for a link that is taken, and stands in those behind it."""
    chip = "wormhole_b0"

    def arrival(follower: tuple[int, int]) -> float:
        network = Network(chip, constants_of(chip))
        first, second, third, last = (network.die.worker((x, 0)) for x in range(4))
        network.send(0, third, last, 80_000, 0.0)  # the last link of the row is taken for 2,500 cycles
        network.send(0, first, last, 8192, 10.0)  # waits for it
        return network.send(0, network.die.worker(follower), third, 64, 320.0) - network.send(1, second, third, 64, 320.0)

    assert arrival((1, 0)) > arrival((0, 0)) + 100


def copies(chunk: int, *, full_sync: bool) -> float:
    kernel = Kernel("blackhole", [(64, "bf16"), (64, "bf16")], full_sync=full_sync)
    kernel.resident = {0: 64}
    compute = kernel.thread("compute")
    compute.call("init_sfpu", Cb(0), Cb(1))
    compute.call("copy_tile_init", Cb(0))
    compute.call("cb_wait_front", Cb(0), 64)
    compute.call("cb_reserve_back", Cb(1), 64)
    with compute.zone():
        benchmark.sections(compute, 64, chunk, lambda tile, slot: compute.call("copy_tile", Cb(0), tile, slot), Cb(1))
    return zone_cycles(kernel.run(), COMPUTE)


def test_full_sync_is_best_at_four_tiles_per_acquire():
    times = {chunk: copies(chunk, full_sync=True) for chunk in (1, 2, 4, 8, 16)}
    assert min(times, key=lambda chunk: times[chunk]) == 4


def test_half_sync_hides_the_packer():
    assert copies(4, full_sync=False) < copies(4, full_sync=True)
