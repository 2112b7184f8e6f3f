"""The state of a group of cores that run in step: buffers, DST, operands on their way, and what each engine was last set up to
do.

DST has halves with the math/pack semaphore; between the unpacker and math is a queue of unpacked operands. A product loop adds
to the same slots of DST many times before anyone reads them, and one large product costs far less than many small ones. So
products are collected per output block and carried out together, in their order, when something else touches DST or enough have
come together. The result is the same bit for bit: every element sees the same operands in the same order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.machine.threads import DstHalves, Semaphores, Wait
from tilewright.narrowing import is_array
from tilewright.program import Program
from tilewright.sim.arithmetic import Arithmetic, Format, ProductJob, Step
from tilewright.sim.buffers import Buffer, ShardBuffer, ShardMemory, shard_memories
from tilewright.sim.numerics.formats import L1_DTYPES
from tilewright.sim.registry import Site, fault
from tilewright.sim.tensors import Array, Tensor, core_ids

SOURCE_BANKS = 2


@dataclass(eq=False, slots=True)
class SourceTiles:
    """Operands on their way to the matrix unit: what they were unpacked for, and the values."""

    call: str
    a: Any
    b: Any
    direct: bool = False  # L1 to DST without passing the source registers


class SourceQueue:
    """SrcA and SrcB have two banks each: the unpacker runs at most that far ahead of math."""

    def __init__(self) -> None:
        self._waiting: deque[SourceTiles] = deque()
        self.puts = self.takes = 0  # since the start

    def put(self, tiles: SourceTiles) -> None:
        """The caller has checked ``full``, before anything else, so that a blocked unpack is retried as a whole."""
        self._waiting.append(tiles)
        self.puts += 1

    def full(self, site: Site) -> Wait | None:
        if len(self._waiting) < SOURCE_BANKS:
            return None
        return Wait(site, lambda: len(self._waiting) < SOURCE_BANKS, lambda: "waits for math to free a source register bank")

    def empty(self, site: Site) -> Wait | None:
        if self._waiting:
            return None
        return Wait(site, lambda: bool(self._waiting), lambda: "waits for the unpacker to fill the source registers")

    def take(self, site: Site) -> SourceTiles:
        tiles = self._waiting.popleft()
        self.takes += 1
        if tiles.call != site.name:
            raise fault("TW518", site, f"the unpacker delivered operands for {tiles.call}")
        return tiles

    def __len__(self) -> int:
        return len(self._waiting)


class Dst:
    """The destination registers. A slot is ``None`` while nothing was written since the half was zeroed."""

    def __init__(self, products: DeferredProducts, *, capacity: int, halves: int) -> None:
        self.capacity = capacity
        self._products = products
        self.halves = DstHalves(halves)
        self._contents: list[list[Any]] = [[None] * capacity for _ in range(halves)]
        self.acquires = 0
        self.used = 0  # most slots any section wrote
        self.slots = self._contents[0]  # the half math holds
        self.packing = self._contents[0]  # the half the packer holds
        self.last: list[Any] = []  # what math left in its last section, for those who print it
        self._marks: list[set[int]] = [set() for _ in range(halves)]  # slots that hold a reduction, or what was made of one
        self._anew = halves == 1  # the half that math holds, or will hold, is the first

    def acquire(self, site: Site) -> Wait | None:
        if self.halves.math_holds:
            raise fault("TW509", site, "math already holds DST", help="commit the section before the next acquire")
        halves = self.halves
        if not halves.acquire():
            return Wait(
                site, lambda: halves.free,
                lambda: f"waits for a free part of DST: the packer holds {halves.committed} of {halves.count}",
            )  # fmt: skip
        self.acquires += 1
        self.slots = self._contents[halves.math]
        return None

    def commit(self, site: Site) -> None:
        if not self.halves.math_holds:
            raise fault("TW509", site, "math does not hold DST", help="call tile_regs_acquire first")
        if self._products:
            self._products.settle(self.slots)
        self.last = list(self.slots)
        self._anew = self.halves.count == 1
        self.halves.commit()

    def start_anew(self, site: Site) -> None:
        """Math goes back to the first half, as old inits make it."""
        if self.halves.math_holds and not self._anew and any(slot is not None for slot in self.slots):
            remedy = "call it before tile_regs_acquire, or first behind it"
            message = "the init goes back to the first half of DST, and results may be in the other"
            raise fault("TW509", site, message, help=remedy)
        self._anew = True

    def wait(self, site: Site) -> Wait | None:
        if self.halves.pack_holds:
            raise fault("TW509", site, "the packer already holds DST", help="release the section before the next wait")
        if not self.halves.wait():
            return Wait(site, lambda: self.halves.committed > 0, lambda: "waits for math to commit DST")
        self.packing = self._contents[self.halves.pack]
        return None

    def release(self, site: Site) -> None:
        if not self.halves.pack_holds:
            raise fault("TW509", site, "the packer does not hold DST", help="call tile_regs_wait first")
        self.packing[:] = [None] * self.capacity
        self._marks[self.halves.pack].clear()
        self.halves.release()

    def _need_math(self, site: Site, first: int, last: int) -> None:
        if not self.halves.math_holds:
            remedy = "place the call between tile_regs_acquire and tile_regs_commit"
            raise fault("TW509", site, "math does not hold DST", help=remedy)
        if not 0 <= first <= last < self.capacity:
            raise self._outside(site, first if first < 0 else last)

    def old(self, site: Site, index: int) -> Any:
        """What math finds in a slot, ``None`` for zero."""
        self._need_math(site, index, index)
        if self._products:
            self._products.settle(self.slots)
        return self.slots[index]

    def get(self, site: Site, index: int) -> Any:
        """A slot math reads; it must have been written."""
        value = self.old(site, index)
        if value is None:
            raise self._unwritten(site, index)
        return value

    def put(self, site: Site, index: int, value: Any, *, reduced: bool = False) -> None:
        self._need_math(site, index, index)
        if self._products:
            self._products.settle(self.slots)
        self.slots[index] = value
        marks = self._marks[self.halves.math]
        if reduced:
            marks.add(index)
        elif marks:
            marks.discard(index)
        if index >= self.used:
            self.used = index + 1

    def is_reduced(self, index: int) -> bool:
        """Whether math reads a reduction in a slot."""
        return index in self._marks[self.halves.math]

    def packs_reduced(self, index: int) -> bool:
        return index in self._marks[self.halves.pack]

    def multiply(self, site: Site, block: Block, step: Step) -> None:
        """Add a matrix product to a block of slots."""
        last = block[0] + block[1] * block[2] - 1
        self._need_math(site, block[0], last)
        self._products.add(self.slots, block, step)
        if self._marks[self.halves.math]:
            self._marks[self.halves.math].difference_update(range(block[0], last + 1))
        self.used = max(self.used, last + 1)

    def get_packed(self, site: Site, index: int) -> Any:
        """A slot the packer reads."""
        if not self.halves.pack_holds:
            remedy = "place the call between tile_regs_wait and tile_regs_release"
            raise fault("TW509", site, "the packer does not hold DST", help=remedy)
        if not 0 <= index < self.capacity:
            raise self._outside(site, index)
        value = self.packing[index]
        if value is None:
            raise self._unwritten(site, index)
        return value

    def _outside(self, site: Site, index: int) -> Exception:
        message = f"DST index {index}, but this configuration has {self.capacity} tiles per acquire"
        return fault("TW504", site, message, help="use fewer tiles per acquire")

    def _unwritten(self, site: Site, index: int) -> Exception:
        remedy = "it reads as zero on the device; write it first"
        return fault("TW502", site, f"reads DST[{index}], which nothing wrote since the section was acquired", help=remedy)


MOST_TILE_PRODUCTS = 4096  # operands of about 32 MB

Block = tuple[int, int, int]  # first slot, tiles down, tiles across


class DeferredProducts:
    def __init__(self, arithmetic: Arithmetic, core_count: int) -> None:
        self._arithmetic = arithmetic
        self._core_count = core_count
        self._chains: dict[Block, list[Step]] = {}
        self._owner: dict[int, Block] = {}  # block that a slot belongs to
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._chains)

    def add(self, slots: list[Any], block: Block, step: Step) -> None:
        """``slots[block] += step``, later."""
        first, down, across = block
        for slot in range(first, first + down * across):
            if self._owner.get(slot, block) != block:
                self.settle(slots)
            self._owner[slot] = block
        self._chains.setdefault(block, []).append(step)
        self._size += down * across * self._core_count
        if self._size >= MOST_TILE_PRODUCTS or not self._arithmetic.defers_products:
            self.settle(slots)

    def settle(self, slots: list[Any]) -> None:
        """Carry out what is pending."""
        rows = self._rows()
        jobs = [self._job(slots, row) for row in rows]
        for row, job, results in zip(rows, jobs, self._arithmetic.products(jobs), strict=True):
            for offset, slot in enumerate(_slots_of(row, job)):
                slots[slot] = results[offset]
        self._chains.clear()
        self._owner.clear()
        self._size = 0

    def _rows(self) -> list[list[Block]]:
        """Blocks with the same left operands side by side: wide products are cheaper than narrow ones."""
        rows: dict[tuple[int, ...], list[Block]] = {}
        for block, chain in self._chains.items():
            key = (block[1], *(id(tile) for left, _ in chain for tile in left))
            rows.setdefault(key, []).append(block)
        return list(rows.values())

    def _job(self, slots: list[Any], row: list[Block]) -> ProductJob:
        down = row[0][1]
        across = sum(block[2] for block in row)
        chains = [self._chains[block] for block in row]
        steps = [(chains[0][turn][0], [tile for chain in chains for tile in chain[turn][1]]) for turn in range(len(chains[0]))]
        job = ProductJob(down, across, steps, [])
        job.olds.extend(slots[slot] for slot in _slots_of(row, job))
        return job


def _slots_of(row: list[Block], job: ProductJob) -> list[int]:
    """Slots of a row of blocks, in the order of the job's output tiles."""
    return [first + line * across + column for line in range(job.down) for first, _, across in row for column in range(across)]


L1_ALIGNMENT = 32


@dataclass(eq=False, slots=True)
class MatrixSetup:
    """How the unpacker (or the math processor, its own copy) is set up."""

    mode: tuple[Any, ...] | None = None
    site: Site | None = None  # the init that did it
    source_a: Format | None = None
    source_b: Format | None = None
    accumulate: bool = False
    replay_taken: str = ""  # the vector call that overwrote what the init recorded


@dataclass(eq=False, slots=True)
class VectorSetup:
    """Set-up of the vector unit: whether any init ran, and whose constants it holds."""

    ready: bool = False
    owner: str = ""
    site: Site | None = None
    table: bool = False  # it is a table in registers that any other call overwrites


@dataclass(eq=False, slots=True)
class PackSetup:
    format: Format | None = None
    relu: Any = None
    accumulate: bool = False  # into L1
    reduced: str = ""  # dimension of the edge mask, if one is set


@dataclass(eq=False, slots=True)
class Read:
    """A NoC read under way."""

    buffer: Buffer
    slot: int
    fetch: Callable[[], Any]  # where its tile comes from
    id: int  # that a barrier may wait for alone; 0: only for all reads together


@dataclass(eq=False, slots=True)
class Transfers:
    """Outstanding NoC traffic of one data-movement processor."""

    reads: list[Read] = field(default_factory=list["Read"])
    read_id: int = 0  # of reads from now on
    writes: list[tuple[Buffer, int]] = field(default_factory=list[tuple[Buffer, int]])
    last: Site | None = None


class Machine:
    def __init__(
        self,
        program: Program,
        cores: list[tuple[int, ...]],
        tensors: list[Tensor],
        arithmetic: Arithmetic,
        scalars: dict[str, int],
    ) -> None:
        self.program = program
        self.cores = cores
        self.core_count = len(cores)
        self.tensors = tensors
        self.arithmetic = arithmetic
        self.scalars = scalars
        self.core_ids = core_ids(cores, program.grid)
        # Plain numbers where there is one core: integer code is much faster on them.
        self.coordinates: list[Any] = [
            cores[0][dim] if len(cores) == 1 else np.array([core[dim] for core in cores], np.int64)
            for dim in range(len(cores[0]))
        ]
        self.buffers = place_buffers(program, shard_memories(program, tensors, cores, arithmetic))
        for buffer in self.buffers.values():
            buffer.missing = not buffer.spec.exists_on(cores[0])
        self._by_address = [buffer for buffer in self.buffers.values() if not buffer.is_alias]
        self._starts = [buffer.address for buffer in self._by_address]
        config = program.config
        capacity = hardware.dst_tiles(fp32_dest_acc=config.fp32_dest_acc_en, full_sync=config.dst_full_sync_en)
        products = DeferredProducts(arithmetic, self.core_count)
        self.dst = Dst(products, capacity=capacity, halves=1 if config.dst_full_sync_en else 2)
        self.sources = SourceQueue()
        self.matrix = {"u": MatrixSetup(), "m": MatrixSetup()}
        self.unpacked: dict[int, tuple[Any, Any]] = {}  # by identity: a tile of L1 and what the unpacker made of it
        self.vector = VectorSetup()
        self.packer = PackSetup()
        self.transfers: dict[str, Transfers] = {}
        self.semaphores = Semaphores()
        self.has_values = True  # a timeline may run on tiles that have none
        self.silent = False  # its kernel prints nothing and stops nowhere
        self.meetings: dict[str, set[str]] = {}  # by thread: processors that have come to a breakpoint
        self.mail: dict[str, deque[int]] = {"m": deque(), "p": deque()}  # numbers that the unpacker has sent
        self.external: deque[list[Any]] = deque()  # blocks that the author's own code has computed and not written yet
        self.elements: dict[tuple[int, int], tuple[Any, Array]] = {}  # by buffer and slot: a tile whose elements were read
        self.neighbours: dict[tuple[int, ...], Machine] = {}
        self.tile_shape = (self.core_count, hardware.TILE_ROWS, hardware.TILE_COLS)

    @property
    def is_watched(self) -> bool:
        """Whether somebody sees what its kernel prints, and stops where it says."""
        return self.has_values and not self.silent

    def transfers_of(self, site: Site) -> Transfers:
        if site.thread not in self.transfers:
            self.transfers[site.thread] = Transfers()
        return self.transfers[site.thread]

    def slot_at(self, site: Site, address: int) -> tuple[Buffer, int]:
        """The buffer and slot an L1 address is the start of."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            buffer = self._by_address[index]
            slot, rest = divmod(address - buffer.address, buffer.tile_bytes)
            if slot < buffer.capacity and not rest:
                return buffer, slot
        raise fault("TW513", site, f"L1 address {address:#x} is not the start of a tile in a circular buffer")

    def page_numbers(self, site: Site, tensor: Tensor, page: Any) -> Array:
        """One page number per core, checked against the tensor."""
        pages = page if is_array(page) else np.full(self.core_count, page)
        if (pages < 0).any() or (pages >= tensor.count).any():
            worst = int(np.flatnonzero((pages < 0) | (pages >= tensor.count))[0])
            name, core = tensor.spec.name, self.cores[worst]
            message = f"page {int(pages[worst])} of tensor '{name}' on core {core}: it has {tensor.count} pages"
            raise fault("TW513", site, message, help="check the slice bounds on the cores at the edge of the grid")
        return pages


def place_buffers(program: Program, shards: Mapping[int, ShardMemory]) -> dict[int, Buffer]:
    """Buffers one after another in L1. Those in a shard get addresses of their own, too: nobody compares them."""
    address = program.options.chip.l1_reserved_bytes
    buffers: dict[int, Buffer] = {}
    for spec in sorted(program.buffers, key=lambda spec: spec.index):
        if spec.dtype not in L1_DTYPES:
            raise fail("TW514", f"buffer '{spec.name}' holds {spec.dtype}; the simulator knows {', '.join(L1_DTYPES)}")
        tile_bytes = hardware.tile_bytes(spec.dtype)
        direct = spec.index in program.config.unpack_to_dest
        if spec.alias_of is not None:  # a higher index than the buffer it shares L1 with
            shared = buffers[spec.alias_of]
            buffers[spec.index] = Buffer(
                spec, address=shared.address, tile_bytes=tile_bytes, unpack_to_dest=direct, shared=shared
            )
            continue
        if spec.tensor is None:
            buffers[spec.index] = Buffer(spec, address=address, tile_bytes=tile_bytes, unpack_to_dest=direct)
        else:
            memory = shards[spec.tensor]
            buffers[spec.index] = ShardBuffer(spec, memory, address=address, tile_bytes=tile_bytes, unpack_to_dest=direct)
        size = tile_bytes * spec.tiles
        address += -(-size // L1_ALIGNMENT) * L1_ALIGNMENT
    return buffers
