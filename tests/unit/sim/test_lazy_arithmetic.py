"""Collecting operations changes when they are carried out, never what they give."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.program import ComputeConfig
from tilewright.sim import lazy_arithmetic, run
from tilewright.sim.exact_arithmetic import ExactArithmetic
from tilewright.sim.lazy_arithmetic import LazyArithmetic, Node
from tilewright.sim.run import simulate

CHAIN = """
def reader():
    for i in range(5):
        cb_reserve_back(a, 2)
        for j in range(2):
            noc_async_read_page(i * 2 + j, A, get_write_ptr(a) + j * 2048)
        noc_async_read_barrier()
        cb_push_back(a, 2)

def compute():
    init_sfpu(a, o)
    for i in range(5):
        cb_wait_front(a, 2)
        cb_reserve_back(m, 2)
        tile_regs_acquire()
        copy_tile_init(a)
        copy_tile(a, 0, 0)
        copy_tile(a, 1, 1)
        exp_tile_init()
        exp_tile(0)
        add_binary_tile(0, 1, 1)
        tile_regs_commit()
        tile_regs_wait()
        pack_tile_block(0, m, 2)
        tile_regs_release()
        cb_push_back(m, 2)
        cb_wait_front(m, 2)
        cb_reserve_back(o, 2)
        mul_tiles_init(m, m)
        tile_regs_acquire()
        mul_tiles(m, a, 0, 1, 0)
        mul_tiles(m, m, 1, 1, 1)
        mul_tiles(a, m, 1, 0, 1)
        tile_regs_commit()
        tile_regs_wait()
        pack_tile_block(0, o, 2)
        tile_regs_release()
        cb_push_back(o, 2)
        cb_pop_front(m, 2)
        cb_pop_front(a, 2)

def writer():
    for i in range(5):
        cb_wait_front(o, 2)
        for j in range(2):
            noc_async_write_page(i * 2 + j, O, get_read_ptr(o) + j * 2048)
        noc_async_write_barrier()
        cb_pop_front(o, 2)
"""


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("pending", "batch"), [(1, 1), (7, 3), (2048, 64)])
def test_any_collection_gives_the_same_bits(make_program, random_bf16, monkeypatch, wide, pending, batch):
    program = make_program(
        CHAIN, buffers=[("a", "bf16", 4), ("m", "bf16", 2), ("o", "bf16", 4)], fp32_dest_acc_en=wide,
        tensors=[("A", "bf16", (10, 32, 32)), ("O", "bf16", (10, 32, 32))],
    )  # fmt: skip
    data = random_bf16(10, 32, 32)
    monkeypatch.setattr(run, "MANY_CORES", 1)
    direct = np.zeros_like(data)
    simulate(program, [data, direct])
    monkeypatch.setattr(run, "MANY_CORES", 1000)
    monkeypatch.setattr(lazy_arithmetic, "MOST_PENDING", pending)
    monkeypatch.setattr(lazy_arithmetic, "BATCH_TILES", batch)
    collected = np.zeros_like(data)
    simulate(program, [data, collected])
    assert direct.any()
    assert np.array_equal(direct.view(np.uint16), collected.view(np.uint16))


IN_PLACE = """
def reader():
    for turn in range(3):
        cb_reserve_back(a, 1)
        noc_async_read_page(turn, A, get_write_ptr(a))
        noc_async_read_barrier()
        cb_push_back(a, 1)
        cb_wait_front(o, 1)
        noc_async_write_page(turn + 1, A, get_read_ptr(o))
        noc_async_write_barrier()
        cb_pop_front(o, 1)

def compute():
    init_sfpu(a, o)
    negative_tile_init()
    for turn in range(3):
        cb_wait_front(a, 1)
        cb_reserve_back(o, 1)
        tile_regs_acquire()
        copy_tile(a, 0, 0)
        negative_tile(0)
        tile_regs_commit()
        tile_regs_wait()
        pack_tile(0, o, 0)
        tile_regs_release()
        cb_push_back(o, 1)
        cb_pop_front(a, 1)
"""


def test_a_read_sees_an_earlier_write(make_program, random_bf16):
    program = make_program(IN_PLACE, buffers=[("a", "bf16", 1), ("o", "bf16", 1)], tensors=[("A", "bf16", (4, 32, 32))])
    data = random_bf16(4, 32, 32)
    first = data[0].astype(np.float32)
    simulate(program, [data])
    for turn in range(4):
        assert np.array_equal(data[turn].astype(np.float32), first * (-1) ** turn)


def test_nodes_of_one_operation_and_depth_are_one_call():
    exact = ExactArithmetic(ComputeConfig(), "wormhole_b0")
    lazy = LazyArithmetic(exact)
    tiles = [np.full((1, 32, 32), 0x3F80 + step, np.uint16) for step in range(10)]
    nodes = [lazy.to_source(tile, "bf16") for tile in tiles]
    sums = [lazy.binary("add", node, nodes[0], None, accumulate=False) for node in nodes]
    assert all(isinstance(node, Node) and node.level == 1 for node in sums)
    results = [lazy.concrete(node) for node in sums]
    for tile, result in zip(tiles, results, strict=True):
        source = exact.to_source(tile, "bf16")
        expected = exact.binary("add", source, exact.to_source(tiles[0], "bf16"), None, accumulate=False)
        assert np.array_equal(result, expected)
        assert result.base is results[0].base
