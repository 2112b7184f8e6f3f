"""Published traffic, rebuilt transfer by transfer: flows between cores, pages of DRAM, pipes."""

from __future__ import annotations

import heapq
import re
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hand_written import MARKER
from published_rows import CHIPS, Row, arch_of, microseconds

from tilewright import hardware
from tilewright.native import kernel_check
from tilewright.native.driver import run_native
from tilewright.native.kernel_check import KernelFile
from tilewright.sim.registry import Site
from tilewright.timing import recorded
from tilewright.timing.clock import Engine
from tilewright.timing.movement import Mover
from tilewright.timing.network import DIES, Network, Place
from tilewright.timing_constants import constants_of

SET_UP = 20.0  # cycles to write the registers that stay


class Flow:
    """One core that moves data, without a program around it."""

    SITE = Site("flow", "flow", "d", None, {})

    def __init__(self, network: Network, net: int, place: Place) -> None:
        self.mover = Mover(Engine("flow", 1, 0.0, depth=0, record=False), network, net, place)

    @property
    def now(self) -> float:
        return self.mover.engine.now


def in_order(flows: list[Flow], transactions: int, move: Callable[[Flow, int], None]) -> None:
    """All flows issue their transactions, the earliest first."""
    pending = [(flow.now, number, 0) for number, flow in enumerate(flows)]
    heapq.heapify(pending)
    while pending:
        _, number, done = heapq.heappop(pending)
        move(flows[number], done)
        if done + 1 < transactions:
            heapq.heappush(pending, (flows[number].mover.next_start, number, done + 1))


def noc_flow(row: Row) -> float | None:
    """Writes from core to core, places on the die given; each flow until its barrier."""
    text = row["program"]
    work = re.search(r"each master does (\d+) x (\d+) B L1 (write|read)", text)
    if work is None:
        return None
    count, size, writes = int(work[1]), int(work[2]), work[3] == "write"
    head = text.split(": each")[0].split("coordinates ")[1]
    if "all to" in head:
        sources, target = head.split(" all to ")
        pairs = [(_place(source), _place(target)) for source in sources.split()]
    else:
        pairs = [(_place(one), _place(two)) for one, two in re.findall(r"(\(\d+,\d+\))->(\(\d+,\d+\))", head)]
    net = int(re.search(r"on NoC (\d)", text)[1])  # type: ignore[index]
    arch = arch_of(row)
    constants = constants_of(arch)
    network = Network(arch, constants)
    flows = [Flow(network, net, source) for source, _ in pairs]
    targets = {id(flow): target for flow, (_, target) in zip(flows, pairs, strict=True)}

    def move(flow: Flow, _: int) -> None:
        if writes:
            flow.mover.write_l1(flow.SITE, targets[id(flow)], size, constants.write_issue)
        else:
            flow.mover.read_l1(flow.SITE, targets[id(flow)], size, constants.read_issue)

    in_order(flows, count, move)
    number = int(row["id"].rsplit("-f", 1)[1])
    flow = flows[number]
    flow.mover.write_barrier(flow.SITE) if writes else flow.mover.read_barrier(flow.SITE)
    return flow.now


def _place(text: str) -> Place:
    x, y = re.findall(r"\d+", text)
    return int(x), int(y)


# The cards of the vendor's data set: workers that are left between harvested ones, as the distances in multicasts tell.
CARDS = {
    "WH": replace(DIES["wormhole_b0"], worker_rows=(1, 2, 3, 4, 7, 8, 9, 10)),
    "BH": replace(DIES["blackhole"], worker_columns=(1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15)),
}
GRIDS = {"WH": (8, 7), "BH": (11, 10)}
# Cycles to issue a read and a write with the newest API and constant coordinates: each call by itself, or the registers set up once.
ISSUES = {("WH", False): (25.0, 22.0), ("WH", True): (17.3, 20.0), ("BH", False): (35.0, 23.0), ("BH", True): (34.0, 20.0)}
MOST_TRANSFERS = 60_000  # of a row that is rebuilt
Core = tuple[int, int]


def cores(columns: int, rows: int, first: Core = (0, 0)) -> list[Core]:
    """In the order of the vendor's lists."""
    return [(first[0] + x, first[1] + y) for x in range(columns) for y in range(rows)]


def noc_estimator(row: Row) -> float | None:
    """Rows of the vendor's data set: the median of the times of all cores that move something."""
    ends = dram_ends(row) if "dram" in row["kind"] else l1_ends(row)
    return None if ends is None else statistics.median(ends) + MARKER


def senders_and_targets(row: Row) -> tuple[list[Core], list[Core]]:
    """Who sends, or reads, and to whom, or from whom, in this order. A source outside of its rectangle stands right of or below it."""
    columns, rows = GRIDS[row["chip"]]
    kind, count, several = row["kind"], int(row["subordinates"]), row["mechanism"] != "unicast"
    outside = several and row["loopback"] == "0"
    if kind in ("read_one", "write_one"):
        return [(0, 0)], [(0, 1) if row["axis"] == "same" else (1, 1)]
    across, along = "row" in kind, "row" in kind or "column" in kind
    if along:
        targets, beside = (cores(columns, 1), (0, 1)) if across else (cores(1, rows), (1, 0))
    else:
        full = count >= columns * rows - 1
        side = round(count**0.5)
        targets, beside = cores(columns, rows) if full else cores(side, side), (0 if full else side, 0)
    if kind.startswith(("all", "row", "column")):
        first = beside if outside else (0, 0)
        return [(x + first[0], y + first[1]) for x, y in targets], targets
    sender = beside if outside or not (along or several) else (0, 0)
    return [sender], targets if several else [target for target in targets if target != sender]


def l1_ends(row: Row) -> list[float] | None:
    """When each core has finished that sends from L1 to L1, or reads there: all of one target's transfers, then the next one's."""
    senders, targets = senders_and_targets(row)
    count, size, mechanism = int(row["tx_per_dest"]), int(row["bytes"]), row["mechanism"]
    if count * len(senders) * len(targets) > MOST_TRANSFERS:
        return None
    reads, stateful = "read" in row["kind"] or "from" in row["kind"], row["stateful"] == "1"
    network = Network(CHIPS[row["chip"]], constants_of(CHIPS[row["chip"]]), die=CARDS[row["chip"]])
    # Reads from L1 ran on NoC 1, writes on NoC 0.
    flows = [Flow(network, 1 if reads else 0, network.die.worker(sender)) for sender in senders]
    places = tuple(network.die.worker(target) for target in targets)
    issue = ISSUES[row["chip"], stateful][0 if reads else 1]

    def move(flow: Flow, number: int) -> None:
        target, turn = divmod(number, count)
        if stateful and turn == 0:
            flow.mover.engine.work(flow.SITE, SET_UP)
        if reads:
            flow.mover.read_l1(flow.SITE, places[target], size, issue)
        else:
            flow.mover.write_l1(flow.SITE, places[target], size, issue)

    def multicast(flow: Flow, number: int) -> None:
        flow.mover.multicast(flow.SITE, places, size, issue, linked=mechanism == "multicast_linked" and number + 1 < count)

    if mechanism == "unicast":
        in_order(flows, count * len(targets), move)
    elif mechanism == "multicast":
        in_order(flows, count, multicast)
    else:  # who has reserved a path keeps it until its last one
        for flow in flows:
            in_order([flow], count, multicast)
    for flow in flows:
        flow.mover.read_barrier(flow.SITE) if reads else flow.mover.write_barrier(flow.SITE)
    return [flow.now for flow in flows]


def dram_ends(row: Row) -> list[float] | None:
    """When each core has finished that streams pages of DRAM: from bank to bank, or of one bank, each from one farther on than the
    core before it. Of those runs NoC 1 survived.
    """
    kind, count, size = row["kind"], int(row["tx_per_dest"]), int(row["bytes"])
    reads = "read" in kind
    constants = constants_of(CHIPS[row["chip"]])
    network = Network(CHIPS[row["chip"]], constants, die=CARDS[row["chip"]])
    columns, rows = GRIDS[row["chip"]] if "allcores" in kind else (1, 1)
    flows = [Flow(network, 1, network.die.worker((x, y))) for y in range(rows) for x in range(columns)]
    numbers = {id(flow): number for number, flow in enumerate(flows)}
    sharded = "sharded" in kind

    def move(flow: Flow, number: int) -> None:
        bank = network.bank(numbers[id(flow)] + (0 if sharded else number))
        if reads:
            flow.mover.read_dram(flow.SITE, bank, size, constants.read_page_issue)
        else:
            flow.mover.write_dram(flow.SITE, bank, size, constants.write_page_issue)

    in_order(flows, count, move)
    for flow in flows:
        flow.mover.read_barrier(flow.SITE) if reads else flow.mover.write_barrier(flow.SITE)
    return [flow.now for flow in flows]


def dram_rate(row: Row) -> float | None:
    """Many cores stream 1 MiB each from or to DRAM, all together; bytes per cycle."""
    work = re.search(r"(\d+) Tensix cores.*each (reads|writes) 1 MiB as (\d+) transactions of (\d+) B", row["program"])
    if work is None:
        return None
    cores, reads, count, size = int(work[1]), work[2] == "reads", int(work[3]), int(work[4])
    arch = arch_of(row)
    constants = constants_of(arch)
    network = Network(arch, constants)
    columns = 8 if arch == "wormhole_b0" else 12  # a card of 120 cores
    flows = [Flow(network, 0, network.die.worker((core % columns, core // columns))) for core in range(cores)]
    single = "bank 0" in row["program"]
    banks = {id(flow): 0 if single else core % int(constants.banks) for core, flow in enumerate(flows)}

    def move(flow: Flow, _: int) -> None:
        if reads:
            flow.mover.read_dram(flow.SITE, banks[id(flow)], size, constants.read_issue)
        else:
            flow.mover.write_dram(flow.SITE, banks[id(flow)], size, constants.write_issue)

    in_order(flows, count, move)
    for flow in flows:
        flow.mover.read_barrier(flow.SITE) if reads else flow.mover.write_barrier(flow.SITE)
    return cores * count * size / max(flow.now for flow in flows)


def pipe(row: Row) -> float | None:
    """Tiles from DRAM to the neighbour: cycles of the sender for each."""
    form = row["id"].split("-")[2]
    arch, size = arch_of(row), 2048
    if form.startswith("ttlang"):
        ends = [_sender_end(arch, count) for count in (8, 24)]
        return microseconds(row, (ends[1] - ends[0]) / 16)
    constants = constants_of(arch)
    network = Network(arch, constants)
    flow = Flow(network, 1, network.die.worker((0, 0)))
    target, mover, site = network.die.worker((1, 0)), flow.mover, Flow.SITE
    ring = int(form.rsplit("_r", 1)[1]) if "ring" in form else 1 if "baseline" in form else 128
    stateful = 29.0  # set up once [silicon]
    for _ in range(4):
        began = flow.now
        if form.endswith("dfb"):
            mover.engine.work(site, 4 * constants.buffer_call)
        for page in range(ring):
            mover.read_dram(site, network.bank(page), size, constants.read_page_issue)
        mover.read_barrier(site)
        for _ in range(ring):
            mover.write_l1(site, target, size, constants.write_issue if ring == 1 else stateful)
        mover.write_barrier(site)
        if "ring" in form or form.endswith(("dfb", "synced")):
            mover.signal(site, target, constants.semaphore_issue)
    return microseconds(row, (flow.now - began) / ring)


def _sender_end(arch: str, count: int) -> float:
    """When the sender of ``pipes/single_tiles.cpp`` is done."""
    source = Path(__file__).parent / "pipes" / "single_tiles.cpp"
    program = kernel_check.native_program(
        kernel_check.ProgramSetup(
            kernels=[KernelFile(role="reader", path=source, compile_time_args=[f"{count},a"], runtime_args=["core,a,b"])],
            buffers=[kernel_check.parse_buffer("0:bf16:2"), kernel_check.parse_buffer("1:bf16:1")],
            tensors=[kernel_check.parse_tensor(f"{name}:bf16:{count}") for name in "ab"],
            semaphores=(0, 0), grid=(2, 1), chip=hardware.CHIPS[arch],
        )
    )  # fmt: skip
    native = replace(program, record=True)
    found = recorded.run(native, run_native(native).calls, "pipe")
    return next(core.engines["reader"].now for core in found.cores if core.core == (0, 0))
