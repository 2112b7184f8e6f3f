"""`multi-tile-dst.md`: two nests, results at ``inputs_footprint + tile``, the footprint as an attribute.

Spelled for 0.62, with the specification's allocator and vector ops only.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

DOCUMENT = "multi-tile-dst.md"
SPEC = {"metal": "0.62", "allocator": "linear-scan", "fpu_binary_ops": False, "combine_packs": False}
BUFFERS = {"CB0": "a_buffer", "CB1": "b_buffer", "CB2": "c_buffer", "CB3": "out_buffer"}


def spec(section: str, item: str, **more):
    return pytest.mark.spec(document=DOCUMENT, section=section, item=item, **more)


def inputs_of(make_array, names: str, block: tuple[int, int]):
    return {name: make_array(block, "bf16") for name in names}


def loops_of(lines: list[str]) -> list[list[str]]:
    """Calls by the nest they stand in, in order; calls outside of nests are nests of their own."""
    nests: list[list[str]] = [[]]
    depth = 0
    for line in lines:
        if line.startswith("for "):
            if depth == 0:
                nests.append([])
            depth += 1
        elif line == "}":
            depth -= 1
            if depth == 0:
                nests.append([])
        else:
            nests[-1].append(line)
    return [nest for nest in nests if nest]


@spec("Overview", "every tile of a block keeps its result: no two tiles share the slot of an output")
@pytest.mark.parametrize("block", [(2, 2), (1, 3), (3, 2)])
def test_no_result_is_overwritten(kernels, make_array, block):
    inputs = inputs_of(make_array, "ab", block)
    program, results = kernels.elementwise({"out": "a * b"}, inputs, block=block, enable_unroll=True, **SPEC)
    slots = re.findall(r"mul_binary_tile\(\d+, \d+, (\d+)\)", program.cpp["compute"])
    assert len(set(slots)) == len(slots) == block[0] * block[1]
    expected = (inputs["a"].astype(np.float32) * inputs["b"].astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_allclose(results["out"].astype(np.float32), expected.astype(np.float32), rtol=2**-7)


@spec("DST for separate compute and pack_tile loops", "no pack stands in the nest that computes, and no math in the one that packs")
def test_math_and_packs_are_apart(kernels, make_array, call_sequence):
    inputs = inputs_of(make_array, "abc", (2, 2))
    program, _ = kernels.elementwise({"out": "a * b + c"}, inputs, block=(2, 2), **SPEC)
    nests = loops_of(call_sequence.emitted(program.cpp["compute"]))
    for nest in nests:
        assert len({line.startswith("pack_tile") for line in nest}) == 1


@spec("1", "acquire, nest that computes all tiles, commit, wait, nest that packs all tiles, release", listings=(1,))
def test_two_loop_structure(kernels, make_array, call_sequence, listings):
    """The listing, line by line, against the emitted text."""
    inputs = inputs_of(make_array, "ab", (2, 2))
    program, _ = kernels.elementwise({"out": "a * b"}, inputs, block=(2, 2), **SPEC)
    nests = loops_of(call_sequence.emitted(program.cpp["compute"]))
    found: list[str] = []
    for nest in nests:
        if nest[0].startswith("tile_regs"):
            found += [line.removesuffix("()") for line in nest]
        else:
            kind = "pack" if nest[0].startswith("pack_tile") else "compute"
            index = re.search(r"i \* 2 \+ j \+ (\d+)", nest[-1])
            found.append(f"{kind} {index[1]}")
    expected: list[str] = []
    for line in listings[1].splitlines():
        loop = re.match(r"Loop \d: (compute|pack) all tiles .*`DST\[inputs_footprint \+ tile_idx\]`", line)
        expected += [f"{loop[1]} 2"] if loop else line.split(" / ")
    assert found == expected


@spec("2", "DST index of a result: inputs_footprint + (i * cols + j), for a 2x2 block DST[2,3,4,5]")
def test_dynamic_index(kernels, make_array, call_sequence):
    inputs = inputs_of(make_array, "ab", (2, 2))
    rolled, _ = kernels.elementwise({"out": "a * b"}, inputs, block=(2, 2), **SPEC)
    assert "mul_binary_tile(0, 1, i * 2 + j + 2)" in call_sequence.emitted(rolled.cpp["compute"])
    unrolled, _ = kernels.elementwise({"out": "a * b"}, inputs, block=(2, 2), enable_unroll=True, **SPEC)
    assert re.findall(r"mul_binary_tile\(0, 1, (\d+)\)", unrolled.cpp["compute"]) == ["2", "3", "4", "5"]


@spec("2", "only tile loops are linearised: a loop over blocks outside adds nothing to the DST index")
def test_block_loops_do_not_count(kernels, make_array, call_sequence):
    inputs = {name: make_array((4, 6), "bf16") for name in "ab"}
    program, results = kernels.elementwise({"out": "a * b"}, inputs, block=(2, 2), blocks=(2, 3), **SPEC)
    lines = call_sequence.emitted(program.cpp["compute"])
    assert "mul_binary_tile(0, 1, i * 2 + j + 2)" in lines
    expected = (inputs["a"].astype(np.float32) * inputs["b"].astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_allclose(results["out"].astype(np.float32), expected.astype(np.float32), rtol=2**-7)


@spec("3", "DST index of a pack: inputs_footprint + tile in the buffer, also below loops over blocks")
@pytest.mark.parametrize("blocks", [(1, 1), (2, 3)])
def test_pack_index(kernels, make_array, call_sequence, blocks):
    inputs = {name: make_array((2 * blocks[0], 2 * blocks[1]), "bf16") for name in "ab"}
    program, _ = kernels.elementwise({"out": "a * b"}, inputs, block=(2, 2), blocks=blocks, **SPEC)
    packs = [line for line in call_sequence.emitted(program.cpp["compute"]) if line.startswith("pack_tile")]
    assert packs == ["pack_tile(i * 2 + j + 2, out_buffer, i * 2 + j)"]


@spec("4", "ttl.dst_footprint stands on the compute op and, after lowering, on the outermost loop of both nests")
def test_footprint_is_propagated(kernels):
    zeros = np.zeros((64, 64), ml_dtypes.bfloat16)
    source = kernels.text.elementwise({"out": "a * b"}, "ab", block=(2, 2))
    program = kernels.compile(source, zeros, zeros, zeros, keep_ir=True, **SPEC)
    assigned = program.trace.stage("ttl-tile-and-assign-dst").ir
    assert assigned.count("ttl.dst_footprint = 2 : i32") == 1
    lowered = program.trace.stage("ttl-lower-to-loops").ir
    closing = re.findall(r'^( *)\} \{[^\n]*ttl\.dst_footprint"? = 2 : i32', lowered, re.MULTILINE)
    assert len(closing) == 2 and len(set(closing)) == 1, "the outermost loop of the compute nest and of the pack nest"
    assert re.match(r"\n?\s*ttl.cb_", lowered.split("ttl.tile_regs_release")[1])


@spec("4", "footprint: one more than the highest input slot; inputs that only unary ops read do not count", listings=(1,))
@pytest.mark.parametrize(
    ("expression", "names"),
    [("a * b", "ab"), ("ttl.math.exp(a)", "a"), ("ttl.math.exp(ttl.math.abs(a))", "a"), ("a - b", "ab")],
)
def test_footprint_computation(kernels, listings, expression, names):
    """The rule is the listing's last line, applied to the slots that the copies from buffers name."""
    rule = re.search(r"inputs_footprint = hasInputs \? \((\w+) \+ 1\) : 0;", listings[1])
    assert rule[1] == "maxInputDstIndex"
    zeros = [np.zeros((64, 64), ml_dtypes.bfloat16)] * (len(names) + 1)
    source = kernels.text.elementwise({"out": expression}, names, block=(2, 2))
    program = kernels.compile(source, *zeros, keep_ir=True, **SPEC)
    ir = program.trace.stage("ttl-tile-and-assign-dst").ir
    footprint = int(re.search(r"ttl\.dst_footprint = (\d+)", ir)[1])
    constants = dict(re.findall(r"(%\w+) = arith.constant (\d+) : index", ir))
    loads = [int(constants[slot]) for slot in re.findall(r"= ttl\.copy_tile %\w+, %\w+, (%\w+)", ir)]
    binary = len(names) == 2  # operands of a binary op need slots of their own
    has_inputs, highest = binary, max(loads)
    assert footprint == (highest + 1 if has_inputs else 0)


@spec("4", "mul(a, b): a in DST[0], b in DST[1], footprint 2, results from DST[2] on")
def test_binary_footprint(kernels, make_array, call_sequence):
    program, _ = kernels.elementwise({"out": "a * b"}, inputs_of(make_array, "ab", (2, 3)), block=(2, 3), **SPEC)
    lines = [line for line in call_sequence.emitted(program.cpp["compute"]) if line.startswith(("copy", "mul", "pack"))]
    assert lines == [
        "copy_tile(a_buffer, i * 3 + j, 0)",
        "copy_tile(b_buffer, i * 3 + j, 1)",
        "mul_binary_tile(0, 1, i * 3 + j + 2)",
        "pack_tile(i * 3 + j + 2, out_buffer, i * 3 + j)",
    ]


@spec("4", "exp(a): a shares DST with the result, footprint 0, results from DST[0] on")
def test_unary_footprint(kernels, make_array, call_sequence):
    program, _ = kernels.elementwise({"out": "ttl.math.exp(a)"}, inputs_of(make_array, "a", (2, 3)), block=(2, 3), **SPEC)
    lines = [line for line in call_sequence.emitted(program.cpp["compute"]) if line.startswith(("copy", "exp", "pack"))]
    assert lines == [
        "copy_tile(a_buffer, i * 3 + j, i * 3 + j)",
        "exp_tile(i * 3 + j)",
        "pack_tile(i * 3 + j, out_buffer, i * 3 + j)",
    ]


@spec("4", "with packs in the loop that computes, one tile takes inputs_footprint + number of outputs")
@pytest.mark.parametrize(("outputs", "slots"), [({"out": "a * b"}, 3), ({"out": "a * b", "out1": "a * b + a"}, 4)])
def test_slots_of_one_tile(kernels, make_array, outputs, slots):
    """Blocks of one tile have their pack beside their math; DST then holds no other tile."""
    program, _ = kernels.elementwise(outputs, inputs_of(make_array, "ab", (1, 1)), **SPEC)
    ((_, plan),) = program.trace.plans
    assert plan.parts[0].allocation.slots == plan.parts[0].allocation.footprint + len(outputs) == slots


@spec(
    "Generated Code Example (2x2 block)",
    "mul and add on a 2x2 block: all calls of the listing, each input loaded before the first op",
    listings=(1,),
    decision="0003",
)
def test_generated_code(kernels, make_array, rounding, call_sequence, listings):
    """The document's algorithm keeps all inputs resident and gives the sum its own slot, as its example 8 has it; this listing
    loads the third input late. Calls, nests and the index formula agree; the slots are those of example 8."""
    inputs = inputs_of(make_array, "abc", (2, 2))
    program, results = kernels.elementwise({"out": "a * b + c"}, inputs, block=(2, 2), **SPEC)
    found = call_sequence.emitted(program.cpp["compute"])
    written = call_sequence.listed(listings[1], BUFFERS)
    assert sorted(names(found)) == sorted(names(written))
    assert names(found)[0] == "tile_regs_acquire" and names(found)[-1] == "tile_regs_release"
    footprint = 4
    assert [line for line in found if "_binary_tile" in line or "pack_tile" in line] == [
        "mul_binary_tile(0, 1, 3)",
        f"add_binary_tile(3, 2, i * 2 + j + {footprint})",
        f"pack_tile(i * 2 + j + {footprint}, out_buffer, i * 2 + j)",
    ]
    assert "pack_tile(2+i*2+j, out_buffer, i*2+j)" in written, "the listing has the same formula, over a footprint of 2"
    model = rounding.Model("bf16")
    a, b, c = map(model.leaf, inputs.values())
    rounding.assert_close(results["out"], model.op("add", model.op("mul", a, b), c))


def names(lines: list[str]) -> list[str]:
    """Without arguments; loops by that they are loops."""
    return [re.match(r"for|\}|\w+", line)[0] for line in lines]


@spec("Generated Code Example (2x2 block)", "the optimal allocator finds the late load and the sum in place by itself")
def test_late_load_by_the_optimal_allocator(kernels, make_array, rounding):
    inputs = inputs_of(make_array, "abc", (2, 2))
    program, results = kernels.elementwise({"out": "a * b + c"}, inputs, block=(2, 2), metal="0.62", fpu_binary_ops=False)
    ((_, plan),) = program.trace.plans
    steps = plan.parts[0].allocation.steps
    kinds = [type(step).__name__ for step in steps]
    assert kinds == ["Load", "Load", "Execute", "Load", "Execute"]
    assert steps[3].slot in (steps[0].slot, steps[1].slot), "the third input takes a slot that the product has left"
    assert steps[4].target in steps[4].slots, "the sum is written over an operand"
    model = rounding.Model("bf16")
    a, b, c = map(model.leaf, inputs.values())
    rounding.assert_close(results["out"], model.op("add", model.op("mul", a, b), c))


@spec("Future Work", "tiles that are neighbours in DST and in the buffer are packed by one pack_tile_block")
def test_block_packs(kernels, make_array):
    inputs = inputs_of(make_array, "ab", (2, 2))
    program, results = kernels.elementwise({"out": "a * b"}, inputs, block=(2, 2), **{**SPEC, "combine_packs": True})
    assert re.findall(r"pack_tile\w*\(.*\);", program.cpp["compute"]) == ["pack_tile_block(2, out_buffer, 4);"]
    expected = (inputs["a"].astype(np.float32) * inputs["b"].astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_allclose(results["out"].astype(np.float32), expected.astype(np.float32), rtol=2**-7)
