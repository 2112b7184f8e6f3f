"""Transfers between tensors and L1. A read lands at its barrier, which may be that of its transaction id alone; a write takes
what L1 holds when it is issued.

Then what one core does to another: L1 to L1 transfers, multicast and semaphores. Cores are named by their grid coordinates. A
write is in the other L1, and a semaphore changed, when the call is issued: the NoC keeps their order there too. The target
slot must be reserved there, or the write could hit a tile that is still in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.grid import COUNT_SHIFT, PLACE_UNIT
from tilewright.machine.threads import Wait
from tilewright.sim.buffers import LANDING, Buffer
from tilewright.sim.machine import Machine, Read
from tilewright.sim.registry import Site, call, fault, ready, value
from tilewright.sim.tensors import Array, Tensor
from tilewright.sim.translate import agreed


@value("tensor_accessor")
def tensor_accessor(machine: Machine, site: Site) -> Tensor:
    index: int = site.attributes.get("tensor_index", 0)
    if index >= len(machine.tensors):
        raise fail("TW516", f"the program has no tensor {index}", site.span)
    return machine.tensors[index]


@value("get_write_ptr")
def write_pointer(machine: Machine, site: Site, buffer: Buffer) -> int:
    return buffer.address + buffer.write * buffer.tile_bytes


@value("get_read_ptr")
def read_pointer(machine: Machine, site: Site, buffer: Buffer) -> int:
    return buffer.address + buffer.read * buffer.tile_bytes


@value("get_tile_size")
def tile_size(machine: Machine, site: Site, buffer: Buffer) -> int:
    return buffer.tile_bytes


def check_same_dtype(site: Site, tensor: Tensor, buffer: Buffer) -> None:
    if tensor.spec.dtype != buffer.dtype:
        message = f"tensor '{tensor.spec.name}' holds {tensor.spec.dtype}, {buffer.label} holds {buffer.dtype}"
        raise fault("TW513", site, message, help="a transfer copies bytes; give both the same dtype")


@call("noc_async_read_page", on="d", per_core=(0,))
def read_page(machine: Machine, site: Site, page: Any, tensor: Tensor, address: int) -> None:
    buffer, slot = machine.slot_at(site, address)
    check_same_dtype(site, tensor, buffer)
    buffer.check_reserved(site, slot)
    transfers = machine.transfers_of(site)
    pages = machine.page_numbers(site, tensor, page)
    if tensor.touches is not None:
        tensor.touches.read(site.span, pages, machine.core_ids, site.thread)
    transfers.reads.append(Read(buffer, slot, partial(machine.arithmetic.read, tensor, pages), transfers.read_id))
    transfers.last = site
    buffer.slots[slot] = LANDING


def tile_page(machine: Machine, site: Site, row: Any, column: Any, tensor: Tensor) -> Any:
    """The tile among those of a row-major tensor, which is kept in tiles here: what moves is the same."""
    across = tensor.spec.shape[-1] // hardware.TILE_COLS
    if np.any(np.asarray(column) >= across):
        message = f"column {int(np.max(column))} of tensor '{tensor.spec.name}', which is {across} tiles wide"
        raise fault("TW513", site, message, help="check the slice bounds on the cores at the edge of the grid")
    return row * across + column


@call("noc_async_read_tile_rows", on="d", per_core=(0, 1))
def read_tile_rows(machine: Machine, site: Site, row: Any, column: Any, tensor: Tensor, address: int) -> None:
    read_page(machine, site, tile_page(machine, site, row, column, tensor), tensor, address)


@call("noc_async_read_barrier", on="d")
def read_barrier(machine: Machine, site: Site) -> None:
    transfers = machine.transfers_of(site)
    for read in transfers.reads:
        read.buffer.slots[read.slot] = read.fetch()
    transfers.reads.clear()


@call("noc_async_read_set_trid", on="d")
def set_read_id(machine: Machine, site: Site, number: Any) -> None:
    machine.transfers_of(site).read_id = agreed(number)


@call("noc_async_read_barrier_with_trid", on="d")
def read_id_barrier(machine: Machine, site: Site, number: Any) -> None:
    """The others are still under way: who uses them finds that they have not landed."""
    transfers, wanted = machine.transfers_of(site), agreed(number)
    for read in transfers.reads:
        if read.id == wanted:
            read.buffer.slots[read.slot] = read.fetch()
    transfers.reads = [read for read in transfers.reads if read.id != wanted]


@call("noc_async_write_page", on="d", per_core=(0,))
def write_page(machine: Machine, site: Site, page: Any, tensor: Tensor, address: int) -> None:
    buffer, slot = machine.slot_at(site, address)
    check_same_dtype(site, tensor, buffer)
    tile = buffer.held(site, slot)
    pages = machine.page_numbers(site, tensor, page)
    if tensor.touches is not None:
        tensor.touches.write(site.span, pages, machine.core_ids, site.thread)
    machine.arithmetic.write(tensor, pages, tile)
    tensor.written = True
    tensor.version += 1
    transfers = machine.transfers_of(site)
    transfers.writes.append((buffer, slot))
    transfers.last = site
    buffer.leaving.append(slot)


@call("noc_async_write_tile_rows", on="d", per_core=(0, 1))
def write_tile_rows(machine: Machine, site: Site, row: Any, column: Any, tensor: Tensor, address: int) -> None:
    write_page(machine, site, tile_page(machine, site, row, column, tensor), tensor, address)


@call("noc_async_write_barrier", "noc_async_writes_flushed", on="d")
def write_barrier(machine: Machine, site: Site) -> None:
    transfers = machine.transfers_of(site)
    for buffer, slot in transfers.writes:
        buffer.leaving.remove(slot)
    transfers.writes.clear()


@call("fill_scaler", on="d")
def fill_scaler(machine: Machine, site: Site, buffer: Buffer) -> None:
    """The processor itself writes attribute ``value`` where ``pattern`` says; the rest of the tile is zero."""
    values = np.zeros(machine.tile_shape, np.float32)
    pattern = site.attributes.get("pattern", "faces")
    rows = {"faces": slice(None, None, hardware.FACE_ROWS), "column": slice(None)}.get(pattern, slice(0, 1))
    cols = slice(None) if pattern in ("faces", "row") else slice(0, 1)
    values[:, rows, cols] = site.attributes.get("value", 1.0)
    slot = buffer.back_slot(site, site.attributes.get("tile", 0))
    buffer.slots[slot] = machine.arithmetic.constant_tile(values, buffer.dtype)


@call("fill_mask", on="d", per_core=(1,))
def fill_mask(machine: Machine, site: Site, buffer: Buffer, start: Any) -> None:
    """The processor itself writes ones up to attribute ``limit`` along attribute ``axis``, zeros behind it."""
    axis, limit = site.attributes["axis"], site.attributes["limit"]
    within = np.arange(hardware.TILE_ROWS if axis == 0 else hardware.TILE_COLS)
    first = np.reshape(np.asarray(start), (-1, 1))  # of each core
    for tile in range(site.attributes["tiles"]):
        inside = ((first + tile) * len(within) + within < limit).astype(np.float32)
        values = np.broadcast_to(inside[:, :, None] if axis == 0 else inside[:, None, :], machine.tile_shape)
        slot = buffer.back_slot(site, tile)
        buffer.slots[slot] = machine.arithmetic.constant_tile(np.array(values), buffer.dtype)


@call("fill_pattern", on="d")
def fill_pattern(machine: Machine, site: Site, buffer: Buffer) -> None:
    """The processor itself writes where each element stands."""
    rows, columns = site.attributes["rows"], site.attributes["columns"]
    down, across = np.indices((rows * hardware.TILE_ROWS, columns * hardware.TILE_COLS), np.float32)
    patterns: dict[str, Array] = {"rows": down, "columns": across, "upper": down <= across, "lower": down >= across}
    whole: Array = patterns[site.attributes["pattern"]].astype(np.float32)
    for tile in range(rows * columns):
        top, left = tile // columns * hardware.TILE_ROWS, tile % columns * hardware.TILE_COLS
        values = np.broadcast_to(whole[top : top + hardware.TILE_ROWS, left : left + hardware.TILE_COLS], machine.tile_shape)
        slot = buffer.back_slot(site, tile)
        buffer.slots[slot] = machine.arithmetic.constant_tile(np.array(values), buffer.dtype)


@call("fill_zeros", on="d")
def fill_zeros(machine: Machine, site: Site, address: int) -> None:
    buffer, slot = machine.slot_at(site, address)
    buffer.back_slot(site, slot - buffer.write)
    buffer.slots[slot] = machine.arithmetic.constant_tile(np.zeros(machine.tile_shape, np.float32), buffer.dtype)


@dataclass(frozen=True, slots=True)
class Semaphore:
    """A semaphore every core has at the same address."""

    number: int
    initial: int = 0


@dataclass(frozen=True, slots=True)
class NocAddress:
    """One address on one or several cores."""

    cores: tuple[tuple[int, ...], ...]
    target: int | Semaphore


@value("get_semaphore")
def get_semaphore(machine: Machine, site: Site, offset: Any = 0) -> Semaphore:
    attributes = site.attributes
    return Semaphore(attributes.get("index", attributes.get("id", 0)) + agreed(offset), attributes.get("initial", 0))


@value("noc_x", "noc_y", per_core=True)
def noc_coordinate(machine: Machine, site: Site, place: Any) -> Any:
    """Cores are named by their place in the grid of cores."""
    return place


@value("pipe_announcement", per_core=True)
def pipe_announcement(machine: Machine, site: Site, address: int, semaphore: Semaphore) -> int:
    return (1 << COUNT_SHIFT) + address // PLACE_UNIT


@value("pipe_target", per_core=True)
def pipe_target(machine: Machine, site: Site, semaphore: Semaphore, count: Any) -> int:
    """Where the receivers' blocks lie; a multicast can only reach one address."""
    places, rest = divmod(level(machine, semaphore) & ((1 << COUNT_SHIFT) - 1), agreed(count))
    if rest:
        raise fault("TW513", site, "the receivers of a multicast have their blocks at different addresses")
    return places * PLACE_UNIT


@value("get_noc_addr")
def unicast_address(machine: Machine, site: Site, x: Any, y: Any, target: int | Semaphore) -> NocAddress:
    return NocAddress(((agreed(x), agreed(y)),), target)


@value("get_noc_multicast_addr")
def multicast_address(machine: Machine, site: Site, x0: Any, y0: Any, x1: Any, y1: Any, target: int | Semaphore) -> NocAddress:
    left, right = sorted((agreed(x0), agreed(x1)))
    top, bottom = sorted((agreed(y0), agreed(y1)))
    cores = tuple((x, y) for y in range(top, bottom + 1) for x in range(left, right + 1))
    return NocAddress(cores, target)


def neighbours(machine: Machine, site: Site, address: NocAddress, *, loopback: bool = True) -> list[Machine]:
    """The machines an address names, without the sender unless it loops back."""
    found: list[Machine] = []
    for core in address.cores:
        other = machine.neighbours.get(core)
        if other is None:
            raise fault("TW513", site, f"core {core} is outside the grid")
        if other is not machine or loopback:
            found.append(other)
    return found


def receivers(machine: Machine, site: Site, address: NocAddress, count: int) -> list[Machine]:
    """Of a multicast, which says how many they are; the sender counts if it loops back."""
    found = neighbours(machine, site, address, loopback=site.name.endswith("loopback_src"))
    if len(found) != count:
        remedy = "the device would wait forever for acknowledgements; the sender does not count unless it loops back"
        raise fault("TW513", site, f"it says {count} destinations, but the rectangle has {len(found)}", help=remedy)
    return found


def tiles_of(machine: Machine, site: Site, address: int, size: int) -> Iterable[tuple[Buffer, int]]:
    buffer, first = machine.slot_at(site, address)
    count, rest = divmod(size, buffer.tile_bytes)
    if rest or first + count > buffer.capacity:
        raise fault("TW513", site, f"{size} bytes from slot {first} of {buffer.label} are not whole tiles inside the buffer")
    return [(buffer, slot) for slot in range(first, first + count)]


def send(machine: Machine, site: Site, source: int, address: NocAddress, size: int, others: list[Machine]) -> None:
    assert isinstance(address.target, int)
    transfers = machine.transfers_of(site)
    transfers.last = site
    for offset, (buffer, slot) in enumerate(tiles_of(machine, site, source, size)):
        tile = buffer.slots[slot]
        if tile is None or tile is LANDING:
            raise fault("TW512", site, f"sends slot {slot} of {buffer.label}, which holds no data yet")
        transfers.writes.append((buffer, slot))
        buffer.leaving.append(slot)
        for other in others:
            target, start = other.slot_at(site, address.target)
            place = start + offset
            if place >= target.capacity or not 0 <= place - target.write < target.reserved:
                if other is machine and target is buffer and place == slot:
                    continue
                message = f"writes slot {place} of {target.label} on core {other.cores[0]}, which is not reserved there"
                remedy = "let the receiver reserve the block and tell the sender so with a semaphore"
                raise fault("TW506", site, message, help=remedy)
            target.slots[place] = tile


@call("noc_async_write", on="d", cross_core=True)
def write_unicast(machine: Machine, site: Site, source: int, address: NocAddress, size: int) -> None:
    send(machine, site, source, address, size, neighbours(machine, site, address))


@call("noc_async_write_multicast", "noc_async_write_multicast_loopback_src", on="d", cross_core=True)
def write_multicast(machine: Machine, site: Site, source: int, address: NocAddress, size: int, count: int) -> None:
    send(machine, site, source, address, size, receivers(machine, site, address, count))


@call("noc_async_read", on="d", cross_core=True)
def read_unicast(machine: Machine, site: Site, address: NocAddress, target: int, size: int) -> None:
    """L1 of another core; lands at the barrier with what the other core holds then."""
    assert isinstance(address.target, int)
    (other,) = neighbours(machine, site, address)
    transfers = machine.transfers_of(site)
    transfers.last = site
    for offset, (buffer, slot) in enumerate(tiles_of(machine, site, target, size)):
        buffer.check_reserved(site, slot)
        source, start = other.slot_at(site, address.target)

        def fetch(source: Buffer = source, place: int = start + offset) -> Any:
            return source.slots[place]

        transfers.reads.append(Read(buffer, slot, fetch, transfers.read_id))
        buffer.slots[slot] = LANDING


def level(machine: Machine, semaphore: Semaphore) -> int:
    return machine.semaphores.level(semaphore.number, semaphore.initial)


@call("noc_semaphore_set", on="d", cross_core=True)
def set_semaphore(machine: Machine, site: Site, semaphore: Semaphore, number: int) -> None:
    machine.semaphores.set(semaphore.number, number)


@call("noc_semaphore_inc", on="d", cross_core=True)
def increment_semaphore(machine: Machine, site: Site, address: NocAddress, step: int) -> None:
    assert isinstance(address.target, Semaphore)
    for other in neighbours(machine, site, address):
        other.semaphores.add(address.target.number, step, address.target.initial)


@call("noc_semaphore_set_remote", on="d", cross_core=True)
def set_remote_semaphore(machine: Machine, site: Site, source: Semaphore, address: NocAddress) -> None:
    assert isinstance(address.target, Semaphore)
    for other in neighbours(machine, site, address):
        other.semaphores.set(address.target.number, level(machine, source))


@call("noc_semaphore_set_multicast", "noc_semaphore_set_multicast_loopback_src", on="d", cross_core=True)
def set_multicast_semaphore(machine: Machine, site: Site, source: Semaphore, address: NocAddress, count: int) -> None:
    assert isinstance(address.target, Semaphore)
    for other in receivers(machine, site, address, count):
        other.semaphores.set(address.target.number, level(machine, source))


@call("noc_semaphore_wait", "noc_semaphore_wait_min", on="d", cross_core=True)
def wait_level(machine: Machine, site: Site, semaphore: Semaphore, number: int) -> Wait | None:
    at_least = site.name.endswith("_min")

    def reached() -> bool:
        return machine.semaphores.reached(semaphore.number, number, at_least=at_least, initial=semaphore.initial)

    def describe() -> str:
        wanted = f"at least {number}" if at_least else f"{number}"
        return f"waits until semaphore {semaphore.number} is {wanted}: it is {level(machine, semaphore)}"

    return None if reached() else Wait(site, reached, describe)


@ready("wait_any")
def nothing_arrived(machine: Machine, site: Site, start: int, *semaphores: Semaphore) -> Wait | None:
    def arrived() -> bool:
        return any(level(machine, semaphore) for semaphore in semaphores)

    return None if arrived() else Wait(site, arrived, lambda: f"waits for one of {len(semaphores)} receives")


@value("wait_any", per_core=True)
def first_arrived(machine: Machine, site: Site, start: int, *semaphores: Semaphore) -> int:
    turns = [(start + turn) % len(semaphores) for turn in range(len(semaphores))]
    return next(number for number in turns if level(machine, semaphores[number]))


@call("noc_async_atomic_barrier", on="d", cross_core=True)
def atomic_barrier(machine: Machine, site: Site) -> None:
    """Semaphore changes take effect when they are issued."""
