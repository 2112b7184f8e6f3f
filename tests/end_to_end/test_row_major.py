"""Tensors stored row by row: tiles are put together from rows on the way in and taken apart on the way out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright import execution, hardware, ttl
from tilewright.diagnostics import KernelError
from tilewright.native.compiled import native_program
from tilewright.native.driver import run_native
from tilewright.standins.ttnn import names

ttnn = SimpleNamespace(**names.build())
ROWS, TILES = ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT


def stored(array: Any, dtype: str, layout: Any, memory: str = "DRAM") -> Any:
    return ttnn.from_torch(
        array, dtype=getattr(ttnn, dtype), layout=layout, memory_config=getattr(ttnn, f"{memory}_MEMORY_CONFIG")
    )


def numbers(*shape: int) -> Any:
    """Every element differs from its neighbours, and bfloat16 holds sums of two of them."""
    return (np.arange(np.prod(shape)) * 37 % 128).astype(np.float32).reshape(shape)


@ttl.operation(grid=(2, 2))
def added(a, b, y):
    down, across = a.shape[0] // 32 // 2, a.shape[1] // 32 // 4
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(down * across):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
                y_blk.store(a_blk + b_blk)

    @ttl.datamovement()
    def read():
        x, y = ttl.node(dims=2)
        for row in range(down):
            for column in range(across):
                top, left = y * down + row, (x * across + column) * 2
                with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                    first = ttl.copy(a[top : top + 1, left : left + 2], a_blk)
                    second = ttl.copy(b[top : top + 1, left : left + 2], b_blk)
                    first.wait()
                    second.wait()

    @ttl.datamovement()
    def write():
        node_x, node_y = ttl.node(dims=2)
        for row in range(down):
            for column in range(across):
                top, left = node_y * down + row, (node_x * across + column) * 2
                with y_dfb.wait() as y_blk:
                    ttl.copy(y_blk, y[top : top + 1, left : left + 2]).wait()


@pytest.mark.parametrize(
    ("dtype", "metal"),
    [("bfloat16", "0.62"), ("float32", "0.62"), ("bfloat16", "0.81"), ("float32", "0.81"), ("int32", "0.81"), ("uint16", "0.81")],
)
def test_read_and_written_by_rows(dtype: str, metal: str):
    left, right = numbers(128, 256), numbers(128, 256)[::-1].copy()
    for engine in ("sim", "native"):
        a, b = stored(left, dtype, ROWS), stored(right, dtype, TILES)
        y = stored(np.zeros_like(left), dtype, ROWS)
        with execution.session(mode=engine, overrides={"metal": metal}):
            added(a, b, y)
        np.testing.assert_array_equal(y.to_numpy().astype(np.float64), left.astype(np.float64) + right)


def test_reader_takes_sixteen_elements_at_a_time():
    tensors = [stored(numbers(128, 256), "bfloat16", layout) for layout in (ROWS, TILES, ROWS)]
    program = added.compile(*tensors)
    reader, writer = program.cpp["reader"], program.cpp["writer"]
    assert "a.get_noc_addr(" in reader and "noc_async_read_page(" in reader  # b is in tiles
    assert "noc_async_read(source + 32, face + 512, 32);" in reader
    assert "noc_async_write(face + 512, target + 32, 32);" in writer
    assert reader.count("noc_async_read_barrier") == 1, "one barrier for all of them"
    assert program.written_tensors == (2,)
    assert any("64 transfers of 32 bytes" in decision.detail for decision in program.trace.decisions)
    older = added.compile(*tensors, metal="0.62").cpp["reader"]
    assert "InterleavedAddrGen<true> a = {.bank_base_address = a_address, .page_size = 512};" in older


@ttl.operation(grid=(1, 1))
def every_other(a, y):
    """Tiles 0 and 2 of two rows of tiles of entry 1; an element row of the tensor is cut into many."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(2, 2), block_count=1)

    @ttl.compute()
    def compute():
        with a_dfb.wait() as a_blk, y_dfb.reserve() as y_blk:
            y_blk.store(a_blk)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk:
            ttl.copy(a[1, 1:3, 0:4:2], a_blk).wait()

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[0:2, [2, 0]]).wait()


@pytest.mark.parametrize("engine", ["sim", "native"])
def test_steps_lists_and_a_leading_dimension(engine: str):
    values = numbers(3, 96, 128)
    a, y = stored(values, "bfloat16", ROWS), stored(np.zeros((64, 96), np.float32), "bfloat16", ROWS)
    with execution.session(mode=engine):
        every_other(a, y)
    expected = np.zeros((64, 96), np.float32)
    expected[:, 64:96], expected[:, 0:32] = values[1, 32:96, 0:32], values[1, 32:96, 64:96]
    np.testing.assert_array_equal(y.to_numpy().astype(np.float32), expected)


@pytest.mark.parametrize(
    ("dtype", "metal"), [("bfloat16", "0.62"), ("bfloat16", "0.81"), ("uint16", "0.81"), ("float32", "0.81")]
)
def test_blackhole_reads_dram_in_steps_of_64_bytes(dtype: str, metal: str):
    """A row of two faces is what it can read of 16-bit elements: the reader parts it. Writes and L1 need no such thing."""
    left, right = numbers(128, 256), numbers(128, 256)[::-1].copy()
    target = {"metal": metal, "arch": "blackhole"}
    for engine in ("sim", "native"):
        a, b = stored(left, dtype, ROWS), stored(right, dtype, ROWS)
        y = stored(np.zeros_like(left), dtype, ROWS)
        with execution.session(mode=engine, overrides=target):
            added(a, b, y)
        np.testing.assert_array_equal(y.to_numpy().astype(np.float64), left.astype(np.float64) + right)
    parted = "width *= 2" in added.compile(a, b, y, **target).cpp["reader"]
    assert parted == (dtype != "float32")
    program = added.compile(stored(left, dtype, ROWS, "L1"), stored(right, dtype, TILES), y, **target)
    assert "width" not in program.cpp["reader"] and "width" not in program.cpp["writer"]


@pytest.mark.parametrize("engine", ["sim", "native"])
def test_steps_lists_and_a_leading_dimension_on_blackhole(engine: str):
    values = numbers(3, 96, 128)
    a, y = stored(values, "bfloat16", ROWS), stored(np.zeros((64, 96), np.float32), "bfloat16", ROWS)
    with execution.session(mode=engine, overrides={"arch": "blackhole"}):
        every_other(a, y)
    expected = np.zeros((64, 96), np.float32)
    expected[:, 64:96], expected[:, 0:32] = values[1, 32:96, 0:32], values[1, 32:96, 64:96]
    np.testing.assert_array_equal(y.to_numpy().astype(np.float32), expected)


def test_a_native_run_knows_the_step():
    """Wormhole's reader, given to Blackhole."""
    a, b, y = (stored(numbers(128, 256), "bfloat16", layout) for layout in (ROWS, TILES, ROWS))
    program = added.compile(a, b, y)
    pages = [np.zeros(128 * 256, np.uint16) for _ in range(3)]
    stated = native_program(program, pages, {})
    assert not run_native(stated).errors
    found = run_native(replace(stated, chip=hardware.BLACKHOLE)).errors
    assert {finding.code for finding in found} == {"misaligned-read"} and "modulo 64" in found[0].message


def test_bytes_are_parted_on_wormhole_and_too_short_for_blackhole():
    values = numbers(3, 96, 128)
    for engine in ("sim", "native"):
        a, y = stored(values, "uint8", ROWS), stored(np.zeros((64, 96), np.float32), "uint8", ROWS)
        with execution.session(mode=engine):
            every_other(a, y)
        np.testing.assert_array_equal(y.to_numpy()[:, 64:96], values[1, 32:96, 0:32])
    with pytest.raises(KernelError, match=r"TW106.*32 u8 elements are 32 bytes, and blackhole reads DRAM in steps of 64"):
        every_other.compile(a, y, arch="blackhole")
