"""The eight worked examples of ``dst-register-allocation.md``.

They run as the document has them: spelled for 0.62, its allocator in the order of the source, vector ops only, one pack per tile.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tilewright.report import dst_assignment

DOCUMENT = "dst-register-allocation.md"
SPEC = {"metal": "0.62", "allocator": "linear-scan", "schedule": "source", "fpu_binary_ops": False, "combine_packs": False}
BUFFERS = {"CB0": "a_buffer", "CB1": "b_buffer", "CB2": "c_buffer", "CB3": "out_buffer"}
BUFFERS |= {name.replace("out", "CB_out", 1): f"{name}_buffer" for name in ("out", "out0", "out1")}
# The examples' bodies in Python, with the number of each kind of listing in its section.
EXAMPLES = {
    1: {"outputs": {"out": "a * b"}, "inputs": "ab", "intervals": 2, "shared": 3, "scan": 4, "final": 5, "code": 6},
    2: {"outputs": {"out": "a * b"}, "inputs": "ab", "block": (2, 2), "unroll": 1, "final": 2, "code": 3},
    3: {"outputs": {"out": "ttl.math.abs(a)"}, "inputs": "a", "intervals": 2, "shared": 3, "scan": 4, "final": 5, "code": 6},
    4: {"outputs": {"out": "ttl.math.abs(a * b)"}, "inputs": "ab", "intervals": 2, "shared": 3, "scan": 4, "final": 5, "code": 6},
    5: {
        "outputs": {"out0": "ttl.math.abs(p)", "out1": "ttl.math.exp(p)"}, "lets": [("p", "a * b")], "inputs": "ab",
        "drawing": 2, "copies": 3, "intervals": 4, "shared": 5, "scan": 6, "final": 7, "code": 8,
    },
    6: {
        "outputs": {"out0": "ttl.math.abs(p)", "out1": "p + c"}, "lets": [("p", "a * b")], "inputs": "abc",
        "drawing": 2, "copies": 3, "intervals": 4, "shared": 5, "scan": 6, "final": 7, "code": 8,
    },
    7: {
        "outputs": {"out": "ttl.math.relu(ttl.math.exp(ttl.math.abs(a)))"}, "inputs": "a",
        "drawing": 2, "intervals": 3, "scan": 4, "final": 5, "code": 6,
    },
    8: {
        "outputs": {"out": "ttl.math.abs(a * b) + c"}, "inputs": "abc", "block": (2, 2),
        "drawing": 2, "intervals": 3, "shared": 4, "scan": 5, "unroll": 6, "final": 7, "code": 8,
    },
}  # fmt: skip


def spec(section: str, item: str, **more):
    return pytest.mark.spec(document=DOCUMENT, section=section, item=item, **more)


def examples(kind: str | None, item: str, **more):
    """One row per example that has such a listing."""
    cases = []
    for number, example in EXAMPLES.items():
        if kind is None or kind in example:
            known = {"listings": (example[kind],)} if kind else {}
            cases.append(pytest.param(number, marks=spec(f"Example {number}", item, **known, **more), id=f"example {number}"))
    return pytest.mark.parametrize("number", cases)


def source_of(kernels, number: int) -> str:
    example = EXAMPLES[number]
    return kernels.text.elementwise(
        example["outputs"], tuple(example["inputs"]), lets=example.get("lets", ()), block=example.get("block", (1, 1))
    )


def compile_example(kernels, number: int, **options):
    """An example as a program with its IR; options change what the document's spelling is."""
    block = EXAMPLES[number].get("block", (1, 1))
    zeros = np.zeros((32 * block[0], 32 * block[1]), ml_dtypes.bfloat16)
    count = len(EXAMPLES[number]["inputs"]) + len(EXAMPLES[number]["outputs"])
    choices = {**SPEC, "enable_unroll": block != (1, 1), **options}
    return kernels.compile(source_of(kernels, number), *[zeros] * count, keep_ir=True, **choices)


def working(program) -> dict:
    """What `explain` shows of linear scan, as data."""
    (region,) = dst_assignment.regions(program.trace)
    return region["linear_scan"]


def drawn_slots(text: str) -> dict[str, int]:
    """``%in0→DST[0]``, ``%in,%0,%1→DST[0]``, ``%2→DST[4,5,6,7]`` of a drawing, by value; several tiles by the first."""
    found: dict[str, int] = {}
    for names, slot in re.findall(r"((?:%\w+,? ?)+)→ ?DST\[(\d+)", re.sub(" +→", "→", text)):
        found |= {name.strip(): int(slot) for name in names.split(",")}
    return found
