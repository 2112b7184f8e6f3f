"""Views are functions of the trace."""

from __future__ import annotations

import json

from tilewright.report import terminal
from tilewright.trace import Stage, Trace


def trace() -> Trace:
    record = Trace(keep_ir=True)
    record.stages += [
        Stage(name="frontend", seconds=0.001, ir="builtin.module { first }"),
        Stage(name="ttl-lower-to-loops", seconds=0.002, ir="builtin.module { <second> }"),
    ]
    record.decide("ttl-lower-to-loops", "two nests", "compute & pack", place="line 12")
    return record


def test_all_stages_in_order():
    text = terminal.stages(trace(), "add")
    assert text.index("IR after frontend (add)") < text.index("{ first }") < text.index("IR after ttl-lower-to-loops (add)")
    assert text.rstrip().endswith("{ <second> }")


def test_one_stage():
    text = terminal.stages(trace(), "add", ["ttl-lower-to-loops"])
    assert "first" not in text and "<second>" in text


def test_a_stage_that_did_not_run_is_named():
    text = terminal.stages(trace(), "add", ["lower-affine"])
    assert text == "// no pass named lower-affine ran; these did: frontend, ttl-lower-to-loops\n"


def test_summary_line():
    call = terminal.Call(kernel="add", grid=(8, 4), mode="sim", seconds=0.0123, facts={"max_dst": 6, "dst_capacity": 8})
    assert terminal.line(call) == "add: grid 8x4, sim 12.3 ms, DST 6 of 8"
    timed = terminal.Call(kernel="add", grid=(1,), mode="sim", seconds=2, facts={"microseconds": 4.32, "chip": "wormhole_b0"})
    assert terminal.line(timed) == "add: grid 1, sim 2.00 s, 4.32 us on wormhole_b0"
    assert json.loads(terminal.as_json(call))["max_dst"] == 6


def kernel() -> terminal.Kernel:
    return terminal.Kernel(
        name="add",
        grid=(1, 1),
        buffers=((0, "a_cb", (2, 2), "bf16", 2),),
        sources={"compute": "void kernel_main() { if (1 < 2) {} }"},
        trace=trace(),
    )


def test_the_story_has_buffers_decisions_and_code():
    text = terminal.text(kernel())
    assert "kernel add, grid 1x1" in text
    assert "a_cb" in text and "2x2 tiles x 2  bf16" in text
    assert "- two nests  [line 12]\n      compute & pack" in text
    assert "void kernel_main()" in text
