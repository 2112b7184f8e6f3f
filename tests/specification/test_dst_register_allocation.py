"""`dst-register-allocation.md`: the principle, the phases, capacity, generated code and its future work."""

from __future__ import annotations

import json
import random
import re

import dst_dags as bodies
import ml_dtypes
import numpy as np
import pytest
from worked_examples import BUFFERS, EXAMPLES, SPEC, drawn_slots, source_of, spec, working

from tilewright import pipeline
from tilewright.cli.main import main
from tilewright.dst.allocate import allocate
from tilewright.dst.checker import check
from tilewright.dst.linear_scan import lars_order, scan
from tilewright.dst.problem import Form, Leaf, Op, Operand, Place, Problem, ResultRule
from tilewright.hardware import dst_tiles
from tilewright.report import dst_assignment
from tilewright.report.page import unpacked

# Core principle ---------------------------------------------------------------------------------------------------------------


@spec("Overview", "every tile op of a region has a DST index after ttl-tile-and-assign-dst")
def test_every_op_has_an_index(compiled):
    for number in EXAMPLES:
        ir = compiled(number).trace.stage("ttl-tile-and-assign-dst").ir
        ops = re.findall(r"ttl\.tile_\w+ [^\n]*", ir)
        assert ops and all("dst_idx = " in op for op in ops)


@spec("Core Principle: Unary vs Binary Operations", "a binary op: a slot for each input, a fresh one for the result, footprint = number of inputs")
@pytest.mark.parametrize("sign", ["+", "-", "*"])
def test_binary_slots(kernels, sign):
    zeros = np.zeros((32, 32), ml_dtypes.bfloat16)
    found = working(kernels.compile(kernels.text.elementwise({"out": f"a {sign} b"}, "ab"), zeros, zeros, zeros, **SPEC))
    assert found["slots"] == {"%in0": 0, "%in1": 1, "%0": 2} and found["footprint"] == 2


@spec("Core Principle: Unary vs Binary Operations", "a unary op works in place: the result has the slot of its input, footprint 0")
@pytest.mark.parametrize("name", ["exp", "abs", "neg"])
def test_unary_slots(kernels, name):
    zeros = np.zeros((32, 32), ml_dtypes.bfloat16)
    found = working(kernels.compile(kernels.text.elementwise({"out": f"ttl.math.{name}(a)"}, "a"), zeros, zeros, **SPEC))
    assert found["slots"] == {"%in": 0, "%0": 0} and found["footprint"] == 0


@spec("Lifetime Interval Visualization", "mul then abs: intervals, the merge of the in-place op, and slots 0, 1 and 2", listings=(1,))
def test_visualised_intervals(compiled, listings):
    found = working(compiled(4))
    assert found["slots"] == drawn_slots(listings[1])
    drawn = {name: [int(a), int(b)] for name, a, b in re.findall(r"(%\w+) +\[(\d)─+(\d)\]", listings[1])}
    merged = {each["value"]: each["merged"] for each in found["intervals"]}
    assert {name: merged[name] for name in ("%in0", "%in1", "%0")} == {name: drawn[name] for name in ("%in0", "%in1", "%0")}
    assert merged["%1"][1] == drawn["%1"][1], "the interval of the result reaches the yield"


# Phases -----------------------------------------------------------------------------------------------------------------------


@spec("DST Allocation Algorithm", "phases 0 to 4 in order, each with what it decided, in explain: text, JSON and page")
def test_explain_shows_every_phase(tmp_path, capfd, kernels):
    file = tmp_path / "example6.py"
    call = "import numpy, ml_dtypes\nkernel(*[numpy.zeros((32, 32), ml_dtypes.bfloat16)] * 5)\n"
    file.write_text(source_of(kernels, 6) + call)
    flags = ["--metal", "0.62", "--allocator", "linear-scan", "--schedule", "source", "--no-fpu-binary-ops"]
    assert main(["explain", *flags, str(file)]) == 0
    text = capfd.readouterr().out
    assert re.findall(r"^ +(phase \d):", text, re.MULTILINE) == [f"phase {number}" for number in range(5)]
    wanted = [
        "%0_copy_0 = copy_dest_values(%0) for abs",
        "%in2: [0, 3]",
        "merge for abs (%0_copy_0, %1): [2, 3]",
        "%0 [1,3]: allocate DST[3], expire %in0, %in1, active=[%in2, %0]",
        "inputs_and_intermediates_footprint = 4",
        "%1 [2,3]: allocate DST[4] (with %0_copy_0)",
        "%2 [3,4]: allocate DST[5]",
    ]
    assert [line for line in wanted if line not in text] == []
    page = tmp_path / "page.html"
    assert main(["explain", *flags, "-o", str(page), str(file)]) == 0
    shown = "\n".join(unpacked(page.read_text())["kernels"][0]["dst"][0]["linear_scan"]["lines"])
    assert [line for line in wanted if line not in shown] == []
    capfd.readouterr()
    assert main(["explain", *flags, "--json", str(file)]) == 0
    (described,) = json.loads(capfd.readouterr().out)["kernels"]
    found = described["dst"][0]["linear_scan"]
    assert found["footprint"] == 4 and [event["slot"] for event in found["output_events"]] == [4, 5]
    assert found["merges"] == [{"op": "abs", "values": ["%0_copy_0", "%1"], "interval": [2, 3]}]


@spec("Phase 0", "the unary user of a shared value runs last, so that example 6 needs no copy", listings=(2,))
def test_phase_0_saves_the_copy(compiled, listings):
    """The body of the listing is example 6; its comment says that add is scheduled first."""
    assert re.findall(r"= (\w+)\(", listings[2]) == ["mul", "abs", "add"] and "no copy needed" in listings[2]
    found = working(compiled(6, schedule="lars"))
    assert found["order"] == ["%0", "%2", "%1"] and found["copies"] == []
    assert working(compiled(6))["copies"] != []


@spec("Phase 0", "six metrics in lexicographic order, with the penalty for a unary op on a shared value", listings=(1,))
def test_phase_0_metrics(listings):
    """The document's loop, straight from its text, against the scheduler, on the benchmark bodies without the adaptive order."""
    order = re.search(r"\n    cost_tuple = \((.*?)\)\n", listings[1], re.DOTALL)[1]
    assert re.sub(r"\s+", " ", order).replace("critical_path_priority(op)", "critical_path").split(", ") == [
        "release_pot", "fire_pot", "primary_aff", "secondary_aff", "non_live_aff_penalty", "critical_path",
    ]  # fmt: skip
    assert "non_live_aff_penalty -= 100" in listings[1]
    for name in bodies.BODIES:
        problem = bodies.benchmark_problem(name, 8, fpu=False)
        assert lars_order(problem, "spec") == documented_order(problem), name


def documented_order(problem) -> list[int]:
    """List scheduling by the six metrics, written from the document; ties go to the source order."""
    operands = [tuple(dict.fromkeys(op.operands)) for op in problem.ops]
    results = [problem.result_of(op) for op in range(len(problem.ops))]
    users = {value: [op for op in range(len(operands)) if value in operands[op]] for value in range(problem.value_count)}
    unary = [len(form.operands) == 1 for op in problem.ops for form in op.forms[:1]]
    distance = [0] * len(operands)
    for op in reversed(range(len(operands))):
        distance[op] = max((distance[user] + 1 for user in users[results[op]]), default=0)
    scheduled: list[int] = []
    live: set[int] = set()

    def waiting(value: int) -> int:
        return sum(user not in scheduled for user in users[value]) + (value in problem.outputs)

    def is_ready(op: int, after: tuple[int, ...] = ()) -> bool:
        made = {results[done] for done in (*scheduled, *after)}
        return all(problem.is_leaf(value) or value in made for value in operands[op])

    def cost(op: int) -> tuple[int, ...]:
        release = sum(waiting(value) == 1 for value in operands[op])
        fire = sum(is_ready(user, (op,)) for user in users[results[op]])
        primary = sum(value in live for value in operands[op])
        secondary = sum(any(user in scheduled for user in users[value]) for value in operands[op])
        penalty = -sum(waiting(value) - 1 for value in operands[op])
        if unary[op] and waiting(operands[op][0]) > 1:
            penalty -= 100
        return release, fire, primary, secondary, penalty, distance[op]

    while len(scheduled) < len(operands):
        ready = [op for op in range(len(operands)) if op not in scheduled and is_ready(op)]
        best = max(ready, key=lambda op: (cost(op), -op))
        scheduled.append(best)
        live |= {*operands[best], results[best]}
    return scheduled


@spec("Phase 0", "--schedule auto applies phase 0 where it pays, and says so")
@pytest.mark.parametrize(
    ("number", "schedule", "reason"),
    [(6, "lars", "phase 0 pays: "), (5, "source", "phase 0 "), (1, "source", "phase 0 keeps the order of the source")],
)
def test_auto_schedule(compiled, number, schedule, reason):
    program = compiled(number, schedule="auto")
    found = working(program)
    assert found["schedule"] == schedule and found["schedule_reason"].startswith(reason)
    assert found["schedule_reason"] in [decision.title for decision in program.trace.decisions]
    forced = {name: compiled(number, schedule=name).trace.plans[0][1].cycles_per_tile for name in ("source", "lars")}
    assert program.trace.plans[0][1].cycles_per_tile == min(forced.values())


@spec("Phase 0", "auto never costs more by the model than either order, and fits wherever one of them does")
def test_auto_schedule_on_the_bodies():
    for capacity in (4, 8, 16):
        for name in bodies.BODIES:
            problem = bodies.benchmark_problem(name, capacity, fpu=False)
            plans = {schedule: allocate(problem, "linear-scan", schedule) for schedule in ("auto", "source", "lars")}
            check(problem, plans["auto"])
            own = [plan for plan in plans.values() if plan.allocator == "linear-scan"]
            assert (plans["auto"].allocator == "linear-scan") == bool(own)
            if own:
                assert plans["auto"].cycles_per_tile == min(plan.cycles_per_tile for plan in own)


@spec("Phase 1", "a value with several users, one of them unary: copies for the earlier ones, none for the last", listings=(2,))
def test_copies_for_unary_users(kernels, listings):
    body = re.findall(r"(%\w+) = (\w+)\((.*?)\)", listings[2])
    zeros = np.zeros((32, 32), ml_dtypes.bfloat16)
    source = kernels.text.elementwise({"o0": "ttl.math.abs(p)", "o1": "ttl.math.exp(p)"}, "ab", lets=[("p", "a * b")])
    found = working(kernels.compile(source, *[zeros] * 4, **SPEC))
    assert found["copies"] == [{"copy": "%0_copy_0", "of": "%0", "for": "abs"}]
    assert [(name, operand) for name, op, operand in body if op == "copy_dest_values"] == [("%0_copy_0", "%0")]


@spec("Phase 1", "users that only read a value need no copies, however many there are")
def test_no_copies_for_readers(kernels):
    zeros = np.zeros((32, 32), ml_dtypes.bfloat16)
    source = kernels.text.elementwise({"o0": "p + a", "o1": "p - b"}, "ab", lets=[("p", "a * b")])
    assert working(kernels.compile(source, *[zeros] * 4, **SPEC))["copies"] == []


@spec("Phase 1", "an earlier user that only reads gets no copy: the pseudo-code would copy for it too", listings=(1,), decision="0003")
def test_readers_before_a_unary_user(listings):
    assert "insert copies for all earlier consumers" in listings[1]
    copies = {True: 0, False: 0}
    for name in bodies.BODIES:
        problem = bodies.benchmark_problem(name, 8, fpu=False)
        for readers in copies:
            copies[readers] += len(scan(problem, copy_readers=readers).copies)
    assert copies[False] < copies[True], "scan(copy_readers=True) follows the pseudo-code"


@spec("Phase 1", "copy_dest_values(src, dst) at TTL level is (dst, src) in 0.62: the lowering turns the arguments round", decision="0006")
def test_order_of_copy_arguments(compiled):
    for metal, arguments in (("0.62", "3, 2"), ("0.69", "2, 3"), ("0.78", "2, 3")):
        text = compiled(5, metal=metal).cpp["compute"]
        assert re.search(r"copy_dest_values(?:<[^>]*>)?\((\d, \d)\)", text)[1] == arguments
    ir = compiled(5).trace.stage("ttl-tile-and-assign-dst").ir
    assert re.search(r"ttl\.copy_dest_values %\w+ \{dst_idx = 3 : i32\}", ir)


@spec("Phase 1", "copy_dest_values_init runs before the first copy; --inits each puts one before every copy", decision="0007")
def test_init_of_copies(compiled):
    each = compiled(5, inits="each").cpp["compute"]
    assert each.index("copy_dest_values_init()") < each.index("copy_dest_values(")
    hoisted = compiled(5).cpp["compute"]
    before = hoisted[: hoisted.index("copy_dest_values(")]
    assert re.search(r"(copy_dest_values|abs_tile|exp_tile|mul_binary_tile)_init\(", before), "some vector init has run"


@spec("Phase 2", "intervals in a forward pass: leaves from 0, results from their op, to the last use or the yield", listings=(1,))
def test_intervals_by_the_rule(listings):
    """The document's loop over ops, by its own rules, on the benchmark bodies."""
    assert "Interval(0, op.index)" in listings[1] and "intervals[yielded_val].end" in listings[1]
    for name in bodies.BODIES:
        trace = scan(bodies.benchmark_problem(name, 8, fpu=False))
        for node, interval in trace.intervals.before.items():
            uses = [place for place, op in enumerate(trace.ops, 1) if node in op.operands]
            made = [place for place, op in enumerate(trace.ops, 1) if op.result == node]
            if made:
                assert interval.start == made[0]
            if uses:
                assert interval.end >= max(uses)


@spec("Phase 2", "operand and result of an in-place op share an interval and a slot, whoever reads the result", decision="0003", listings=(1,))
def test_merging(compiled, listings):
    """The pseudo-code merges only before a yield or another unary op; example 8 merges before a binary one."""
    assert "output_val is yielded OR all uses of output_val are unary ops" in listings[1]
    found = working(compiled(8))
    assert [merge["values"] for merge in found["merges"]] == [["%0", "%1"]]
    assert found["slots"]["%0"] == found["slots"]["%1"]


@spec("Phase 3", "inputs and intermediates by start, lowest free slot; sets with an output are left to phase 4", listings=(1,))
def test_shared_region(listings):
    assert "inputs_and_intermediates_footprint = max(dst_assignment.values()) + 1" in listings[1]
    for name in bodies.BODIES:
        problem = bodies.benchmark_problem(name, 8, fpu=False)
        trace = scan(problem)
        slots = [event.slot for event in trace.shared_events]
        assert trace.footprint == max(slots, default=-1) + 1
        for event in trace.shared_events:
            assert not set(trace.intervals.sets[event.node]) & set(problem.outputs)
            others = [e for e in trace.shared_events if e.slot == event.slot and e is not event]
            assert all(e.interval.end <= event.interval.start or event.interval.end <= e.interval.start for e in others)


@spec("Phase 3", "values expire at the position of their last use", decision="0003")
def test_expiry_at_the_boundary(compiled):
    (last,) = [event for event in working(compiled(6))["shared_events"] if event["value"] == "%0"]
    assert last["expired"] == ["%in0", "%in1"] and last["active"] == ["%in2", "%0"]


@spec("Phase 3", "too few slots is no error: the region is allocated by the other allocator, reordered or split")
def test_insufficient_slots(kernels, make_array, rounding):
    inputs = {name: make_array((1, 1), "bf16") for name in "abcd"}
    program, results = kernels.elementwise({"out": "(a * b) + (c * d)"}, inputs, **{**SPEC, "dst_capacity": 3})
    ((_, plan),) = program.trace.plans
    assert plan.allocator == "optimal" and any("allocated by optimal instead" in note for note in plan.notes)
    model = rounding.Model("bf16")
    a, b, c, d = map(model.leaf, inputs.values())
    rounding.assert_close(results["out"], model.op("add", model.op("mul", a, b), model.op("mul", c, d)))


@spec("Phase 4", "outputs behind the footprint, one slot per set, none given back before the pack", listings=(1,))
def test_output_region(listings):
    assert "base_out_dst_index = inputs_and_intermediates_footprint" in listings[1]
    for name in bodies.BODIES:
        problem = bodies.benchmark_problem(name, 8, fpu=False)
        trace = scan(problem)
        slots = [event.slot for event in trace.output_events]
        assert slots == list(range(trace.footprint, trace.footprint + len(slots)))
        assert {trace.slots[value] for value in problem.outputs} <= set(slots)


# Capacity, pipeline, generated code -------------------------------------------------------------------------------------------


@spec("DST Capacity", "16 tiles, 8 with double buffering; half of that with a 32-bit DST")
def test_capacity():
    found = {(wide, full): dst_tiles(fp32_dest_acc=wide, full_sync=full) for wide in (False, True) for full in (False, True)}
    assert found == {(False, True): 16, (False, False): 8, (True, True): 8, (True, False): 4}


@spec("DST Capacity", "the capacity follows from data type, fp32_dest_acc_en and full sync, and is not a fixed number")
@pytest.mark.parametrize(("dtype", "options", "capacity"), [("bf16", {}, 8), ("f32", {}, 4), ("bf16", {"full_sync": True}, 16), ("bf16", {"fp32_dest_acc": True}, 4)])  # fmt: skip
def test_capacity_of_a_kernel(kernels, make_array, dtype, options, capacity):
    array = make_array((1, 1), dtype)
    program = kernels.compile(kernels.text.elementwise({"out": "a + b"}, "ab"), array, array, array, **{**SPEC, **options})
    assert dst_assignment.regions(program.trace)[0]["capacity"] == capacity


@spec("DST Capacity", "a product takes one slot per output tile: a 2x4 block of a 16-bit DST is one section", decision="0009")
def test_slots_of_a_product(kernels, block_kernels, make_array):
    source = block_kernels.single_block({"x": (2, 2), "y": (2, 4)}, [(2, 4)], "o0.store(x @ y)")
    x, y = make_array((2, 2), "bf16"), make_array((2, 4), "bf16")
    out = np.zeros((64, 128), ml_dtypes.bfloat16)
    program = kernels.run(source, x, y, out, fp32_dest_acc=False)
    (region,) = dst_assignment.regions(program.trace)
    (part,) = region["parts"]
    assert (part["requirements"]["peak"], part["slots_per_tile"], part["tiles_per_acquire"]) == (1, 1, 8)
    exact = x.astype(np.float32) @ y.astype(np.float32)
    assert np.abs(out.astype(np.float32) - exact).max() < 0.5


@spec("Pipeline Integration", "the names that documents have for the passes are aliases, in opt -p and --print-ir-after", decision="0026")
def test_names_of_passes(compiled, tmp_path, capfd):
    file = tmp_path / "front.mlir"
    file.write_text(compiled(8).trace.stage("frontend").ir)
    flags = ["--metal", "0.62", "--allocator", "linear-scan", "--no-fpu-binary-ops"]
    texts = []
    for names in (
        "ttl-validate,convert-ttl-to-compute,ttl-set-compute-config,ttl-tile-and-assign-dst",
        "TTLValidatePass,LowerCompute,ttl-set-compute-config,InferDSTRequirements,AssignDSTRegisters",
        "ttl-validate,TTLLowerCompute,ttl-set-compute-config,TTLAssignDSTRegisters",
        "ttl-validate,convert-ttl-to-compute,ttl-set-compute-config,ttl-assign-dst",
    ):
        assert main(["opt", str(file), "-p", names, *flags]) == 0
        texts.append(capfd.readouterr().out)
    assert len(set(texts)) == 1 and "dst_idx" in texts[0]
    assert main(["opt", str(file), "-p", "all", "--print-ir-after", "LowerCompute", *flags]) == 0
    assert "IR after convert-ttl-to-compute" in capfd.readouterr().err


@spec("Pipeline Integration", "assign, lower to loops, unroll, insert sync: this order of passes gives the same calls")
def test_documented_order(compiled, tmp_path):
    from tilewright.cli import mlir_files

    program = compiled(8)
    module = mlir_files.parse(program.trace.stage("ttl-tile-and-assign-dst").ir, "assigned.mlir")
    from tilewright.compiler import compile_module

    documented = ["ttl-lower-to-loops", "ttl-unroll-compute-loops", "ttl-insert-tile-regs-sync"]
    names = [stage.name for stage in pipeline.PASSES]
    passes = [*documented, *names[names.index("convert-ttl-to-ttkernel") :]]
    other = compile_module(
        module, name=program.name, grid=program.grid, tensors=program.tensors, options=program.options, passes=passes
    )
    strip = [[re.sub(r"\s*//.*", "", line) for line in each.cpp["compute"].splitlines()] for each in (program, other)]
    assert strip[0] == strip[1]


@spec("Pipeline Integration", "ttl.unroll_factor is on the region; loops are unrolled with --enable-unroll only")
def test_unrolling_is_optional(compiled):
    rolled, unrolled = compiled(8, enable_unroll=False), compiled(8)
    assert "ttl.unroll_factor = 4 : i32" in rolled.trace.stage("ttl-tile-and-assign-dst").ir
    assert rolled.cpp["compute"].count("mul_binary_tile(") == 1 and "for (" in rolled.cpp["compute"]
    assert unrolled.cpp["compute"].count("mul_binary_tile(") == 4


def listed_nests(call_sequence, text: str) -> list[str]:
    """The listing's ``for (i = 0..2) {`` and ``2+i*2+j`` as our emitter writes them."""
    found = []
    for line in call_sequence.listed(text, BUFFERS):
        loop = re.match(r"for \((\w) = 0\.\.(\d)\) \{", line)
        line = f"for {loop[1]} < {loop[2]}" if loop else line
        found.append(line.replace("2+i*2+j", "i * 2 + j + 2").replace("i*2+j", "i * 2 + j"))
    return found


@spec("Generated Code Example (2x2 block with binary op)", "the calls of the listing, with their two nests and dynamic indices", listings=(1,))
def test_generated_code_binary(compiled, call_sequence, listings):
    found = call_sequence.emitted(compiled(2, enable_unroll=False).cpp["compute"])
    assert found == listed_nests(call_sequence, listings[1])


@spec("Generated Code Example (2x2 block)", "mul and add: the listing's calls and index formula; the slots are those of example 8", listings=(1,), decision="0003")
def test_generated_code_chain(kernels, make_array, rounding, call_sequence, listings):
    inputs = {name: make_array((2, 2), "bf16") for name in "abc"}
    program, results = kernels.elementwise({"out": "a * b + c"}, inputs, block=(2, 2), **SPEC)
    found = call_sequence.emitted(program.cpp["compute"])
    listed = listed_nests(call_sequence, listings[1])
    assert sorted(line.split("(")[0] for line in found) == sorted(line.split("(")[0] for line in listed)
    assert "pack_tile(i * 2 + j + 4, out_buffer, i * 2 + j)" in found and "pack_tile(i * 2 + j + 2, out_buffer, i * 2 + j)" in listed
    model = rounding.Model("bf16")
    a, b, c = map(model.leaf, inputs.values())
    rounding.assert_close(results["out"], model.op("add", model.op("mul", a, b), c))


# Future work ------------------------------------------------------------------------------------------------------------------


@spec("Future Work", "phase 0 saves copies: the one of example 6, and 4 of the 32 in the benchmark bodies; it never adds one there")
def test_phase_0_on_the_bodies(compiled):
    copies = {}
    for schedule in ("source", "lars"):
        copies[schedule] = [len(scan(body_at_8(name), schedule=schedule).copies) for name in bodies.BODIES]
    assert (sum(copies["source"]), sum(copies["lars"])) == (32, 28)
    assert all(late <= plain for plain, late in zip(copies["source"], copies["lars"], strict=True))
    assert [len(working(compiled(6, schedule=schedule))["copies"]) for schedule in ("source", "lars")] == [1, 0]


@spec("Future Work", "neighbouring tiles are packed by one pack_tile_block")
def test_block_packs(compiled):
    text = compiled(2, combine_packs=True, enable_unroll=False).cpp["compute"]
    assert re.findall(r"pack_tile\w*\(.*?\)", text) == ["pack_tile_block(2, out_buffer, 4)"]


@spec("Future Work", "a region that does not fit is split in two computes with an intermediate buffer between them", listings=(1,))
def test_compute_splitting(kernels, make_array, rounding, listings):
    """A body with more live values than DST holds, in the shape of the listing: the first compute yields what the second reloads."""
    assert listings[1].count("ttl.compute {") == 3 and "yield %1" in listings[1]
    inputs = {name: make_array((1, 1), "bf16", 0.5, 1.5) for name in "abcd"}
    lets = [("p", "ttl.math.exp(a)"), ("q", "ttl.math.exp(b)"), ("r", "ttl.math.exp(c)"), ("s", "ttl.math.exp(d)")]
    expression = "((p * q) * (r * s)) + ((p + r) * (q + s))"
    program, results = kernels.elementwise({"out": expression}, inputs, lets=lets, dst_capacity=2, metal="0.62", fpu_binary_ops=False)
    ((_, plan),) = program.trace.plans
    assert len(plan.parts) > 1 and any(remedy.kind == "split" for remedy in plan.remedies)
    made = [buffer for buffer in program.buffers if buffer.origin == "compiler"]
    assert made
    assert program.cpp["compute"].count("tile_regs_acquire") == len(plan.parts)
    model = rounding.Model("bf16")
    p, q, r, s = (model.op("exp", model.leaf(array)) for array in inputs.values())
    left = model.op("mul", model.op("mul", p, q), model.op("mul", r, s))
    right = model.op("mul", model.op("add", p, r), model.op("add", q, s))
    rounding.assert_close(results["out"], model.op("add", left, right))


@spec("Future Work", "lifetime holes: a value whose users are far apart gives its slot back and is loaded or computed again")
def test_lifetime_holes(kernels, make_array, rounding):
    """The default allocator drops a leaf between two uses; the merged interval of linear scan would hold it throughout."""
    inputs = {name: make_array((1, 1), "bf16") for name in "abcd"}
    expression = "ttl.math.abs(a) * (ttl.math.abs(b) + (ttl.math.abs(c) * (ttl.math.abs(d) + a)))"
    program, results = kernels.elementwise({"out": expression}, inputs, dst_capacity=2, metal="0.62", fpu_binary_ops=False)
    ((_, plan),) = program.trace.plans
    assert len(plan.parts) == 1 and plan.reloads >= 1
    model = rounding.Model("bf16")
    a, b, c, d = map(model.leaf, inputs.values())
    inner = model.op("add", model.op("abs", d), a)
    middle = model.op("add", model.op("abs", b), model.op("mul", model.op("abs", c), inner))
    rounding.assert_close(results["out"], model.op("mul", model.op("abs", a), middle))


@spec("Future Work", "adaptive cost tuples: with much reuse the critical path goes before the affinities")
def test_adaptive_order():
    """Random bodies of one op with two operands each: below two uses per value nothing changes, above it some orders do."""
    changed = {False: 0, True: 0}
    for seed in range(60):
        choose = random.Random(seed)
        leaves, count = choose.choice((2, 24)), 24
        operands = [tuple(choose.sample(range(leaves + op), 2)) for op in range(count)]
        forms = [Form(key="add", operands=tuple(Operand(v, Place.DST) for v in row), result=ResultRule.FREE) for row in operands]
        ops = tuple(Op(operands=row, forms=(form,), name="add") for row, form in zip(operands, forms, strict=True))
        problem = Problem(leaves=(Leaf(),) * leaves, ops=ops, outputs=(leaves + count - 1,), capacity=8)
        used = {value for row in operands for value in row}
        changed[2 * count / len(used) >= 2] += lars_order(problem) != lars_order(problem, "spec")
    assert changed[True] > 0 and changed[False] == 0


def body_at_8(name: str):
    return bodies.benchmark_problem(name, 8, fpu=False)


@spec("Future Work", "the matrix unit runs add, sub and mul on tiles from buffers where that costs less")
def test_matrix_unit(kernels, make_array):
    inputs = {name: make_array((2, 2), "bf16") for name in "ab"}
    program, results = kernels.elementwise({"out": "a * b"}, inputs, block=(2, 2))
    assert "mul_tiles(" in program.cpp["compute"] and "mul_binary_tile(" not in program.cpp["compute"]
    exact = inputs["a"].astype(np.float32) * inputs["b"].astype(np.float32)
    np.testing.assert_allclose(results["out"].astype(np.float32), exact, rtol=2**-6)
