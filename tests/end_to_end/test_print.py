"""``print`` in threads: the simulator says it with core and thread, the C++ has it when asked, and results stay what they are."""

from __future__ import annotations

import re

import numpy as np
import pytest

from print_kernel import doubled, tensors
from tilewright import execution


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


def test_dst_registers_are_shown_as_math_left_them(kernels, capsys):
    source = kernels.text.elementwise({"out": "ttl.math.exp(a)"}, ("a",)).replace(
        "    @ttl.datamovement()", "        print('now', _dump_dst_registers=True)\n\n    @ttl.datamovement()", 1
    )
    kernels.simulate(source, np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32))
    shown = capsys.readouterr().out
    assert "(math): now DST, 1 of" in shown and "slot 0:" in shown and "2.71828" in shown


PRINTING = '''
import numpy as np
import ttl


@ttl.operation(grid=(1, 1))
def printing(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_dfb.wait() as x, y_dfb.reserve() as out:
            print("before", x)
            out.store(x + x)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as block:
            ttl.copy(a[0:1, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0:1, 0:1]).wait()


printing(np.arange(1024, dtype=np.float32).reshape(32, 32), np.zeros((32, 32), np.float32))
'''


def test_a_run_prints_once_and_natively_too(tmp_path, capfd):
    """The prediction of time that follows a simulation has no values and says nothing."""
    from tilewright.cli.main import main

    script = tmp_path / "printing.py"
    script.write_text(PRINTING)
    assert main(["run", str(script)]) == 0
    assert capfd.readouterr().out.count("before") == 1
    assert main(["run", "--native", str(script)]) == 0
    lines = capfd.readouterr().out.splitlines()
    wanted = "(0, 0) row 17 of tile 0 of c_0: " + " ".join(str(number) for number in range(17 * 32, 18 * 32))
    assert lines.count(wanted) == 1 and any("before" in line for line in lines)
