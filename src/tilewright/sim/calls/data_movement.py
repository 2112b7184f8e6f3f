"""Transfers between tensors and L1. A read lands at its barrier; a write takes what L1 holds when it is issued."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.sim.buffers import LANDING, Buffer
from tilewright.sim.faults import fault
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site, call, value
from tilewright.sim.tensors import Tensor


@value("tensor_accessor")
def tensor_accessor(machine: Machine, site: Site) -> Tensor:
    index = site.attributes.get("tensor_index", 0)
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
        raise fault(
            "TW513", site, f"tensor '{tensor.spec.name}' holds {tensor.spec.dtype}, {buffer.label} holds {buffer.dtype}",
            help="a transfer copies bytes; give both the same dtype",
        )  # fmt: skip


@call("noc_async_read_page", on="d", per_core=(0,))
def read_page(machine: Machine, site: Site, page: Any, tensor: Tensor, address: int) -> None:
    buffer, slot = machine.slot_at(site, address)
    check_same_dtype(site, tensor, buffer)
    buffer.back_slot(site, slot - buffer.write)
    transfers = machine.transfers_of(site)
    pages = machine.page_numbers(site, tensor, page)
    if tensor.touches is not None:
        tensor.touches.read(site.span, pages, machine.core_ids, site.thread)
    transfers.reads.append((buffer, slot, partial(machine.arithmetic.read, tensor, pages)))
    transfers.last = site
    buffer.slots[slot] = LANDING


def tile_page(machine: Machine, site: Site, row: Any, column: Any, tensor: Tensor) -> Any:
    """The tile among those of a row-major tensor, which is kept in tiles here: what moves is the same."""
    across = tensor.spec.shape[-1] // hardware.TILE_COLS
    if np.any(np.asarray(column) >= across):
        raise fault(
            "TW513", site, f"column {int(np.max(column))} of tensor '{tensor.spec.name}', which is {across} tiles wide",
            help="check the slice bounds on the cores at the edge of the grid",
        )  # fmt: skip
    return row * across + column


@call("noc_async_read_tile_rows", on="d", per_core=(0, 1))
def read_tile_rows(machine: Machine, site: Site, row: Any, column: Any, tensor: Tensor, address: int) -> None:
    read_page(machine, site, tile_page(machine, site, row, column, tensor), tensor, address)


@call("noc_async_read_barrier", on="d")
def read_barrier(machine: Machine, site: Site) -> None:
    transfers = machine.transfers_of(site)
    for buffer, slot, fetch in transfers.reads:
        buffer.slots[slot] = fetch()
    transfers.reads.clear()


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
