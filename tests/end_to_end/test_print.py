"""``print`` in threads: the simulator says it with core and thread, the C++ has it when asked, and results stay what they are."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution, ttl

TILE = 32


@ttl.operation(grid=(2, 1))
def doubled(a, out):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)
    rows = a.shape[0] // TILE

    @ttl.compute()
    def compute():
        me = ttl.node(dims=1)
        for i in range(me, rows, 2):
            with a_dfb.wait() as x, out_dfb.reserve() as o:
                print("node", me, f"row={i}", i > 1, sep="|")
                print(x)
                o.store(x * 2)
                print("doubled", o)
                print(out_dfb, thread="pack")

    @ttl.datamovement()
    def read():
        me = ttl.node(dims=1)
        print("a:", a, num_pages=2)
        for i in range(me, rows, 2):
            with a_dfb.reserve() as x:
                print("before", x)
                ttl.copy(a[i, 0:2], x).wait()
                print(f'{{"{rows:03d}"}} \\ {i}')

    @ttl.datamovement()
    def write():
        me = ttl.node(dims=1)
        for i in range(me, rows, 2):
            with out_dfb.wait() as o:
                ttl.copy(o, out[i, 0:2]).wait()


def tensors(dtype=ml_dtypes.bfloat16):
    rows = np.arange(4 * TILE)[:, None] % 64
    return np.broadcast_to(rows, (4 * TILE, 2 * TILE)).astype(dtype), np.zeros((4 * TILE, 2 * TILE), dtype)


def printed(mode, capsys, **options):
    a, out = tensors()
    with execution.session(mode=mode, overrides=options):
        doubled(a, out)
    assert (out.astype(np.float32) == 2 * a.astype(np.float32)).all()
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("mode", ["sim", "fast"])
def test_the_simulator_prints(mode, capsys):
    lines = printed(mode, capsys)
    told = [line for line in lines if line.startswith(("(0, 0) compute (math)", "(1, 0) compute (math)"))]
    assert sorted(told) == [
        "(0, 0) compute (math): node|0|row=0|0",
        "(0, 0) compute (math): node|0|row=2|1",
        "(1, 0) compute (math): node|1|row=1|0",
        "(1, 0) compute (math): node|1|row=3|1",
    ]
    assert '(1, 0) read: {"004"} \\ 3' in lines
    assert "(0, 0) read: before block of 'a_dfb', 1x2 tiles of bf16, not written yet" in lines
    assert any(line.startswith("(0, 0) read: a: tensor 'a' of shape (128, 64), bf16, page 0:") for line in lines)
    assert any("(1, 0) compute (pack): buffer 'out_dfb': 2 blocks, 4 tiles of 2048 bytes, 0 pushed" in line for line in lines)


def test_blocks_are_shown_as_they_are_stored(capsys):
    lines = printed("sim", capsys)
    start = lines.index("(1, 0) compute (pack): doubled block of 'out_dfb', 1x2 tiles of bf16:")
    shown = [line.removeprefix("(1, 0) compute (pack): ") for line in lines[start + 1 : start + 8]]
    rows = [set(re.findall(r"[\d.]+", line.replace("...", ""))) for line in shown if "..." not in line.strip("[] ")[:3]]
    assert rows[0] == {"64."} and rows[1] == {"66."} and rows[-1] == {"126."}  # rows 32, 33 and 63 of a, doubled


def test_prints_stay_out_of_the_code_unless_asked_for():
    quiet = doubled.compile(*tensors())
    assert not any("DPRINT" in text or "dprint" in text for text in quiet.cpp.values())
    assert "prints; compile with debug_print" in quiet.cpp["compute"]
    loud = doubled.compile(*tensors(), debug_print=True)
    assert '#include "api/debug/dprint.h"' in loud.cpp["reader"]
    assert 'DPRINT_MATH("node|{}|row={}|{}\\n", core_x, i, ' in loud.cpp["compute"]
    assert "DPRINT_UNPACK" in loud.cpp["compute"] and "TileSlice(a_dfb, tile" in loud.cpp["compute"]
    assert 'DPRINT("{{\\"004\\"}} \\\\ {}\\n", i);' in loud.cpp["reader"]
    assert "dprint" not in loud.cpp["writer"]


def test_older_releases_print_to_a_stream():
    text = doubled.compile(*tensors(), debug_print=True, metal="0.69").cpp
    assert 'DPRINT << "{\\"004\\"} \\\\ " << i << ENDL();' in text["reader"]
    assert 'DPRINT_MATH(DPRINT << "node|" << core_x << "|row=" << i' in text["compute"]
    assert '#include "debug/dprint.h"' in doubled.compile(*tensors(), debug_print=True, metal="0.62").cpp["reader"]


def test_a_row_of_wide_elements_is_one_message():
    text = doubled.compile(*tensors(np.float32), debug_print=True).cpp["compute"]
    assert "TileSlice<128>(" in text


def test_the_native_run_prints_what_the_code_says(capsys):
    lines = printed("native", capsys, debug_print=True)
    assert [line for line in lines if "node|" in line] == [
        "(0, 0) node|0|row=0|0",
        "(0, 0) node|0|row=2|1",
        "(1, 0) node|1|row=1|0",
        "(1, 0) node|1|row=3|1",
    ]
    assert '(1, 0) {"004"} \\ 3' in lines
    assert printed("native", capsys) == []
