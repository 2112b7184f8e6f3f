"""The state of a group of cores that run in step: buffers, registers, and what each engine was last set up to do."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.machine.threads import Semaphores
from tilewright.narrowing import is_array
from tilewright.program import Program
from tilewright.sim.arithmetic import Arithmetic, Format
from tilewright.sim.buffers import Buffer, ShardBuffer, ShardMemory, shard_memories
from tilewright.sim.numerics.formats import L1_DTYPES
from tilewright.sim.registers import DeferredProducts, Dst, SourceQueue
from tilewright.sim.registry import Site, fault
from tilewright.sim.tensors import Array, Tensor, core_ids

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
class Transfers:
    """Outstanding NoC traffic of one data-movement processor."""

    reads: list[tuple[Buffer, int, Callable[[], Any]]] = field(default_factory=list[Any])  # slot and where its tile comes from
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
            raise fault(
                "TW513", site, f"page {int(pages[worst])} of tensor '{name}' on core {core}: it has {tensor.count} pages",
                help="check the slice bounds on the cores at the edge of the grid",
            )  # fmt: skip
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
