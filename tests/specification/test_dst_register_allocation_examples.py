"""`dst-register-allocation.md`, the worked examples: their listings are parsed and compared with `explain`, the IR and the calls."""

from __future__ import annotations

import re

import documents
import pytest
from worked_examples import BUFFERS, DOCUMENT, EXAMPLES, SPEC, drawn_slots, examples, spec, working

# Worked examples --------------------------------------------------------------------------------------------------------------


@spec("Worked Examples", "each example, from Python, simulated and native, gives the right numbers")
@pytest.mark.parametrize("number", EXAMPLES)
def test_values(kernels, make_array, rounding, number):
    example = EXAMPLES[number]
    block = example.get("block", (1, 1))
    inputs = {name: make_array(block, "bf16") for name in example["inputs"]}
    choices = {**SPEC, "enable_unroll": block != (1, 1)}
    _, results = kernels.elementwise(example["outputs"], inputs, lets=example.get("lets", ()), block=block, **choices)
    model = rounding.Model("bf16")
    values = {name: model.leaf(array) for name, array in inputs.items()}
    product = model.op("mul", values["a"], values["b"]) if "b" in values else None
    absolute = model.op("abs", values["a"] if product is None else product)
    expected = {
        1: lambda: [product],
        2: lambda: [product],
        3: lambda: [absolute],
        4: lambda: [absolute],
        5: lambda: [absolute, model.op("exp", product)],
        6: lambda: [absolute, model.op("add", product, values["c"])],
        7: lambda: [model.op("exp", absolute)],
        8: lambda: [model.op("add", absolute, values["c"])],
    }[number]()
    for result, wanted in zip(results.values(), expected, strict=True):
        rounding.assert_close(result, wanted)


def body_number(number: int) -> int:
    """Example 2 has the body of example 1."""
    return 1 if number == 2 else number


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(n, marks=spec(f"Example {n}", "the body, as tile ops of one region", **({"listings": (1,)} if n != 2 else {})))
        for n in EXAMPLES
    ],
)
def test_body(compiled, request, number):
    """Ops and operands of the listing are those of the region that Python code becomes."""
    text = documents.listing(DOCUMENT, f"Example {body_number(number)}", 1)
    if number != 2:
        text = request.getfixturevalue("listings")[1]
    ir = compiled(number).trace.stage("convert-ttl-to-compute").ir
    ops = re.findall(r"(%\w+) = ttl\.(tile_\w+) (%\w+(?:, %\w+)*)", ir)
    arguments = re.search(r"\^bb\d+\((.*?)\)\s*:?\n", ir)[1]
    names = dict(zip(re.findall(r"(%\w+) ?:", arguments), re.findall(r"(%\w+): tile", text), strict=True))
    for position, (name, _, _) in enumerate(ops):
        names[name] = f"%{position}"
    ours = [(names[name], op, tuple(names[each] for each in reads.split(", "))) for name, op, reads in ops]
    theirs = re.findall(r"(%\w+) = (tile_\w+)\((.*?)\)", text)
    assert ours == [(name, op, tuple(reads.split(", "))) for name, op, reads in theirs]


def listed_intervals(text: str) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """``%in0: [0, 1]`` before the first merge, and after the last."""
    plain, merged = re.split(r"\n(?=Merge|All values|No unary)", text, maxsplit=1) if re.search(r"\nMerge|\nNo unary", text) else (text, "")
    found = {name: [int(a), int(b)] for name, a, b in re.findall(r"(%\w+): +\[(\d), (\d)\]", plain)}
    later = {name: [int(a), int(b)] for name, a, b in re.findall(r"(%\w+): +\[(\d), (\d)\]", merged)}
    for names, a, b in re.findall(r"Only merge (%\w+ and %\w+): \[(\d), (\d)\]", merged):
        later |= {name: [int(a), int(b)] for name in names.split(" and ")}
    for span, names in re.findall(r"single interval \[(\d, \d)\]:\n +(.*) all marked", merged):
        later |= {name: [int(n) for n in span.split(", ")] for name in names.split(", ")}
    return found, {**found, **later}


@examples("intervals", "live intervals before and after the merges of phase 2")
def test_intervals(compiled, listings, number):
    plain, merged = listed_intervals(listings[EXAMPLES[number]["intervals"]])
    found = working(compiled(number))["intervals"]
    assert {each["value"]: each["interval"] for each in found} == plain
    assert {each["value"]: each["merged"] for each in found} == merged


@examples("copies", "the copy of phase 1 and what uses it")
def test_copies(compiled, listings, number):
    listed = re.findall(r"(%\w+) = copy_dest_values\((%\w+)\)", listings[EXAMPLES[number]["copies"]])
    user = re.search(r"tile_(\w+)\(%0_copy_0\)", listings[EXAMPLES[number]["copies"]])[1]
    assert working(compiled(number))["copies"] == [{"copy": copy, "of": of, "for": user} for copy, of in listed]


def listed_events(text: str) -> list[tuple[str, list[int], int]]:
    """``Process %0 [1,3]: … DST[3]``, without those that are skipped; of a merged pair the first."""
    events = []
    for piece in re.split(r"\n(?=Process )", text):
        head = re.match(r"(?:[^\n]*\n)*?Process (%\w+)(?:/%\w+)? \[(\d),(\d)\]:", piece)
        slot = re.search(r"DST\[(\d)\]", piece)
        if head and slot:
            events.append((head[1], [int(head[2]), int(head[3])], int(slot[1])))
    return events


@examples("shared", "phase 3: which value gets which slot, and the footprint")
def test_shared_events(compiled, listings, number):
    text = listings[EXAMPLES[number]["shared"]]
    found = working(compiled(number))
    assert [(event["value"], event["interval"], event["slot"]) for event in found["shared_events"]] == listed_events(text)
    assert found["footprint"] == int(re.search(r"inputs_and_intermediates_footprint = (\d)", text)[1])


@examples("scan", "phase 4: which output gets which slot, behind the footprint")
def test_output_events(compiled, listings, number):
    text = listings[EXAMPLES[number]["scan"]]
    found = working(compiled(number))
    assert found["footprint"] == int(re.search(r"base_out_dst_index = (\d)", text)[1])
    ours = [({*event["set"]}, event["interval"], event["slot"]) for event in found["output_events"]]
    theirs = listed_events(text)
    assert [(interval, slot) for _, interval, slot in ours] == [(interval, slot) for _, interval, slot in theirs]
    assert all(name in names for (name, _, _), (names, _, _) in zip(theirs, ours, strict=True))


@examples("final", "the final assignment of every value")
def test_final_assignment(compiled, listings, number):
    assert working(compiled(number))["slots"] == drawn_slots(listings[EXAMPLES[number]["final"]])


@examples("drawing", "the drawing of the intervals: the same slots, and the ends that phase 2 gives")
def test_drawing(compiled, listings, number):
    text = listings[EXAMPLES[number]["drawing"]].partition("After ")[2] or listings[EXAMPLES[number]["drawing"]]
    found = working(compiled(number))
    slots = drawn_slots(text)
    assert slots == {name: found["slots"][name] for name in slots} and set(slots) == set(found["slots"])
    drawn = {name: int(end) for name, _, end in re.findall(r"(%\w+) +\[(\d)─+(\d)\]", text)}
    ends = {each["value"]: {each["interval"][1], each["merged"][1]} for each in found["intervals"]}
    # A copy that is used at once is drawn to the end of the op that overwrites it.
    assert all(end in ends[name] for name, end in drawn.items())


@examples("unroll", "the unroll factor: min((capacity - footprint) / outputs, tiles)")
def test_unroll_factor(compiled, listings, number):
    text = listings[EXAMPLES[number]["unroll"]]
    program = compiled(number)
    found = working(program)
    assert found["footprint"] == int(re.search(r"footprint = (\d)", text)[1])
    assert found["outputs_per_tile"] == int(re.search(r"numOutputs = (\d)", text)[1])
    assert found["capacity"] == int(re.search(r"= (\d) - \d = \d", text)[1])
    assert found["unroll_factor"] == int(re.search(r"= (\d)\s*$", text)[1])
    ir = program.trace.stage("ttl-tile-and-assign-dst").ir
    assert f"ttl.unroll_factor = {found['unroll_factor']} : i32" in ir


@examples("code", "the generated calls, argument by argument")
def test_generated_calls(compiled, call_sequence, listings, number):
    """The listings write copies as source, destination; the document says that 0.62 takes the destination first."""
    listed = call_sequence.listed(listings[EXAMPLES[number]["code"]], BUFFERS)
    expected = [re.sub(r"copy_dest_values\((\w+), (\w+)\)", r"copy_dest_values(\2, \1)", line) for line in listed]
    assert call_sequence.emitted(compiled(number).cpp["compute"]) == expected
