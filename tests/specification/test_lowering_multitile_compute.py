"""`lowering-multitile-compute.md`: a 2x2 add from Python through seven stages to C++.

Every listing is used twice: what our passes leave at that stage is held against it, and it is compiled from there on, together with
the data movement of the Python program at that stage, and run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import documents
import lowering_stages
import ml_dtypes
import numpy as np
import pytest

from tilewright import pipeline
from tilewright.cli import mlir_files
from tilewright.cli.main import main
from tilewright.compiler import compile_module
from tilewright.options import Options

DOCUMENT = lowering_stages.DOCUMENT
SPEC = {"metal": "0.62", "allocator": "linear-scan", "fpu_binary_ops": False, "combine_packs": False, "inits": "each"}
FLAGS = ["--metal", "0.62", "--allocator", "linear-scan", "--no-fpu-binary-ops", "--no-combine-packs", "--inits", "each"]
# The pass behind which our IR is at the stage of that number; the data movement of a listing comes from there.
PASS_OF = {
    1: "frontend",
    2: "convert-ttl-to-compute",
    3: "ttl-tile-and-assign-dst",
    4: "ttl-insert-tile-regs-sync",
    5: "ttl-lower-to-loops",
    6: "convert-ttl-to-ttkernel",
    7: "lower-affine",
}
MOVEMENT = """
    @ttl.datamovement()
    def dm_read():
        lhs_block = lhs_cb.reserve()
        copy(lhs[0:2, 0:2], lhs_block).wait()
        lhs_cb.push()
        rhs_block = rhs_cb.reserve()
        copy(rhs[0:2, 0:2], rhs_block).wait()
        rhs_cb.push()

    @ttl.datamovement()
    def dm_write():
        out_block = out_cb.wait()
        copy(out_block, out[0:2, 0:2]).wait()
        out_cb.pop()
"""
CALL = """
import numpy as np
from ml_dtypes import bfloat16
rng = np.random.default_rng(3)
lhs, rhs = (rng.uniform(-2, 2, (64, 64)).astype(bfloat16) for _ in range(2))
out = np.zeros_like(lhs)
add_multitile_kernel(lhs, rhs, out)
expected = lhs.astype(np.float32) + rhs.astype(np.float32)
assert np.abs(out.astype(np.float32) - expected).max() <= 2**-6
print("right")
"""


def spec(section: str, item: str, **more):
    return pytest.mark.spec(document=DOCUMENT, section=section, item=item, **more)


def script(source: str) -> str:
    assert source.count("    # ...data movement...\n") == 1
    return source.replace("    # ...data movement...\n", MOVEMENT)


@pytest.fixture(scope="module")
def program(kernels):
    """The Python input, compiled as the listings are spelled, with the IR of every pass."""
    from tilewright.standins import finder

    zeros = np.zeros((64, 64), ml_dtypes.bfloat16)
    source = script(documents.listing(DOCUMENT, "Python Input", 1))
    with finder.installed(("ttl", "ttlang")):
        kernel = kernels.text.load(source, kernels.folder, "add_multitile_kernel")
        return kernel.compile(zeros, zeros, zeros, keep_ir=True, **SPEC)


def compute_function(module):
    return next(op for op in module.ops if "compute" in str(op.attributes.get("ttl.kernel_thread")))


def with_movement(text: str, program, stage: int):
    """A module with the listing's compute thread and the data movement of the Python program at that stage."""
    module = mlir_files.parse(program.trace.stage(PASS_OF[stage]).ir, "trace.mlir")
    compute_function(module).detach()
    threads = [str(op) for op in module.ops]
    return text + "\n".join(threads)


def compiled(text: str, folder: Path, **options):
    file = folder / "listing.mlir"
    file.write_text(text)
    return mlir_files.compile_file(str(file), {**SPEC, **options})


def check_sum(program, make_array, run_both):
    lhs, rhs = (make_array((2, 2), "bf16") for _ in range(2))
    out = np.zeros_like(lhs)
    run_both(program, [lhs, rhs, out])
    exact = lhs.astype(np.float32) + rhs.astype(np.float32)
    np.testing.assert_allclose(out.astype(np.float32), exact, rtol=2**-7, atol=2**-7)


# Python input -----------------------------------------------------------------------------------------------------------------


@spec("Python Input", "the script runs as written, with its imports of ttlang, to right numbers", listings=(1,))
@pytest.mark.parametrize("flag", [[], ["--native"]])
def test_python_input(tmp_path, capfd, listings, flag):
    file = tmp_path / "add.py"
    file.write_text(script(listings[1]) + CALL)
    assert main(["run", *flag, str(file)]) == 0
    assert capfd.readouterr().out == "right\n"


@spec("Pass Pipeline", "the passes of the stages, under the document's names and in its order")
def test_pipeline():
    named = [PASS_OF[stage] for stage in range(2, 8)]
    ours = [stage.name for stage in pipeline.PASSES]
    assert [name for name in ours if name in named] == named


@spec("Pass Pipeline", "the IR after every pass is there to be read: --print-ir-after-all and --print-ir-after PASS")
def test_printed_stages(program, tmp_path, capfd, kernels):
    assert [stage.name for stage in program.trace.stages] == ["frontend", *(stage.name for stage in pipeline.PASSES)]
    file = tmp_path / "stage1.mlir"
    file.write_text(lowering_stages.module(1, lowering_stages.listing(1)))
    assert main(["compile", str(file), "--print-ir-after-all"]) == 0
    printed = re.findall(r"IR after ([\w-]+)", capfd.readouterr().out)
    assert printed == ["frontend", *(stage.name for stage in pipeline.PASSES)]
    assert main(["compile", str(file), "--print-ir-after", "ttl-assign-dst"]) == 0
    assert re.findall(r"IR after ([\w-]+)", capfd.readouterr().out) == ["ttl-tile-and-assign-dst"]


# Stages as inputs -------------------------------------------------------------------------------------------------------------


def as_input(stage: int):
    """Compiled from this stage on, simulated and run natively."""

    @spec(f"Stage {stage}", "the listing is an input of compile, from this stage on, to C++ that gives right numbers", listings=(1,))
    def test(program, tmp_path, make_array, listings, run_both):
        text = with_movement(lowering_stages.module(stage, listings[1]), program, stage)
        found = compiled(text, tmp_path)
        left = pipeline.remaining(mlir_files.parse(text, "listing.mlir"))
        assert [each.name for each in found.trace.stages] == pipeline.passes_of(left)
        check_sum(found, make_array, run_both)

    return test


test_stage_1_as_input = as_input(1)
test_stage_2_as_input = as_input(2)
test_stage_3_as_input = as_input(3)
test_stage_4_as_input = as_input(4)
test_stage_5_as_input = as_input(5)
test_stage_6_as_input = as_input(6)
test_stage_7_as_input = as_input(7)


def opened(stage: int):
    @spec(f"Stage {stage}", "the listing is an input of opt -p all, which does what is left to do")
    def test(tmp_path, capfd):
        file = tmp_path / "stage.mlir"
        file.write_text(lowering_stages.module(stage, lowering_stages.listing(stage)))
        assert main(["opt", str(file), "-p", "all", "--verify", *FLAGS]) == 0
        text = capfd.readouterr().out
        assert "ttl." not in re.sub(r'"?ttl\.\w+"? = |ttl\.dst_footprint', "", text)
        names = re.findall(r"ttkernel\.(copy_tile|add_binary_tile|pack_tile|tile_regs_\w+)\(", text)
        assert names == [
            "tile_regs_acquire", "copy_tile", "copy_tile", "add_binary_tile",
            "tile_regs_commit", "tile_regs_wait", "pack_tile", "tile_regs_release",
        ]  # fmt: skip

    return test


test_opt_from_stage_1 = opened(1)
test_opt_from_stage_2 = opened(2)
test_opt_from_stage_3 = opened(3)
test_opt_from_stage_4 = opened(4)
test_opt_from_stage_5 = opened(5)
test_opt_from_stage_6 = opened(6)
test_opt_from_stage_7 = opened(7)


@spec("Pass Pipeline", "the IR text that our own passes print is an input at every stage, and gives the same C++")
@pytest.mark.parametrize("stage", ["frontend", *(stage.name for stage in pipeline.PASSES)])
def test_printed_text_is_an_input(program, tmp_path, stage):
    found = compiled(program.trace.stage(stage).ir, tmp_path)
    assert {role: code(text) for role, text in found.cpp.items()} == {role: code(text) for role, text in program.cpp.items()}


def code(text: str) -> list[str]:
    """Without comments, which name the Python lines."""
    return [line for line in (re.sub(r"\s*//.*", "", line) for line in text.splitlines()) if line]


@spec("Pass Pipeline", "both documented orders: ttl-insert-tile-regs-sync before ttl-lower-to-loops, and behind it")
@pytest.mark.parametrize("unroll", [False, True])
def test_both_orders(program, tmp_path, make_array, run_both, unroll):
    """Loops first, as `dst-register-allocation.md` has it: one pass at a time, and from the loops on by itself."""
    text = program.trace.stage("ttl-tile-and-assign-dst").ir
    flags = ["--enable-unroll"] if unroll else []
    file = tmp_path / "assigned.mlir"
    file.write_text(text)
    loops = opt(file, "ttl-lower-to-loops,ttl-unroll-compute-loops", flags)
    assert "tile_regs_acquire" not in loops and "ttl.compute" not in loops
    file.write_text(loops)
    synced = opt(file, "ttl-insert-tile-regs-sync", flags)
    order = re.findall(r"ttl\.(tile_regs_\w+|store|tile_add)", synced)
    count = 4 if unroll else 1
    expected = ["tile_regs_acquire", *["tile_add"] * count, "tile_regs_commit", "tile_regs_wait", *["store"] * count]
    assert order == [*expected, "tile_regs_release"]
    found = compiled(loops, tmp_path, enable_unroll=unroll)
    check_sum(found, make_array, run_both)
    if not unroll:
        assert code(found.cpp["compute"]) == code(program.cpp["compute"])


def opt(file: Path, passes: str, flags: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tilewright.cli.main", "opt", str(file), "-p", passes, *FLAGS, *flags],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# What each stage says ---------------------------------------------------------------------------------------------------------

SKIPPED = {"arith.constant", "func.return", "func.func", "builtin.module"}


def ops_of(module) -> list[str]:
    return [op.name for op in compute_function(module).walk() if op.name not in SKIPPED]


def names_at(program, stage: int) -> tuple[list[str], list[str]]:
    """Names of ops at a stage: ours, and the listing's."""
    ours = mlir_files.parse(program.trace.stage(PASS_OF[stage]).ir, "trace.mlir")
    theirs = mlir_files.parse(lowering_stages.module(stage, lowering_stages.listing(stage)), "listing.mlir")
    return ops_of(ours), ops_of(theirs)


@spec("Stage 1", "wait, wait, reserve, one ttl.add on the whole block, pop, pop, push")
def test_initial_ops(program):
    ours, theirs = names_at(program, 1)
    assert [name for name in ours if name != "ttl.attach_cb"] == [name for name in theirs if name != "ttl.attach_cb"]


@spec("Stage 2", "ttl.add becomes a ttl.compute over tensor.empty and attach_cb, with ttl.tile_add in its body")
def test_region_ops(program):
    ours, theirs = names_at(program, 2)
    assert [name for name in ours if name != "ttl.attach_cb"] == [name for name in theirs if name != "ttl.attach_cb"]


@spec("Stage 2", "identity indexing maps and parallel iterators; the listing's attributes are ours", listings=(1,))
def test_region_attributes(program, listings):
    pattern = r"affine_map<\(d0, d1\) -> \(d0, d1\)>"
    ir = program.trace.stage(PASS_OF[2]).ir
    assert len(re.findall(pattern, ir)) == len(re.findall(pattern, listings[1])) == 3
    iterators = 'iterator_types = ["parallel", "parallel"]'
    assert iterators in ir and iterators in listings[1]


@spec("Stage 3", "copy_tile into constant slots 0 and 1, tile_add in slot 2, ttl.dst_footprint = 2")
def test_assigned_ops(program):
    ours, theirs = names_at(program, 3)
    assert [name for name in ours if name != "ttl.attach_cb"] == [name for name in theirs if name != "ttl.attach_cb"]
    ir = program.trace.stage(PASS_OF[3]).ir
    assert re.search(r"ttl\.tile_add %\w+, %\w+ \{[^}]*dst_idx = 2 : i32", ir)
    assert "ttl.dst_footprint = 2 : i32" in ir
    constants = dict(re.findall(r"(%\w+) = arith\.constant (\d+) : index", ir))
    assert [constants[slot] for slot in re.findall(r"ttl\.copy_tile %\w+, %\w+, (%\w+)", ir)] == ["0", "1"]


@spec("Stage 3", "ttl.linearized_index maps (0,0) to 0, (0,1) to 1, (1,0) to 2, (1,1) to 3", listings=(1,))
def test_linearized_index(program, listings):
    for text in (lowering_stages.module(3, listings[1]), program.trace.stage(PASS_OF[3]).ir):
        indices = [op for op in mlir_files.parse(text, "stage.mlir").walk() if op.name == "ttl.linearized_index"]
        assert len(indices) == 2
        for op in indices:
            assert [op.attributes["map"].data.eval([i, j], []) for i in range(2) for j in range(2)] == [(0,), (1,), (2,), (3,)]


@spec("Stage 3", "a unary op is in place: its result has the slot of its operand")
def test_unary_in_place(kernels):
    zeros = np.zeros((64, 64), ml_dtypes.bfloat16)
    source = kernels.text.elementwise({"out": "ttl.math.abs(a * b)"}, "ab", block=(2, 2))
    ir = kernels.compile(source, zeros, zeros, zeros, keep_ir=True, **SPEC).trace.stage(PASS_OF[3]).ir
    assert re.findall(r"ttl\.tile_(mul|abs) [^\n]*dst_idx = (\d+)", ir) == [("mul", "2"), ("abs", "2")]


BAD_STAGES = {
    "commit without acquire": (6, r"ttkernel\.tile_regs_acquire\(\) : \(\) -> \(\)", "TW404", "tile_regs_commit where tile_regs_acquire is due"),
    "wait without commit": (5, r"ttl\.tile_regs_commit", "TW404", "tile_regs_wait where tile_regs_commit is due"),
    "never released": (4, r"ttl\.tile_regs_release", "TW404", "the thread ends where tile_regs_release is due"),
    "a call without its init": (6, r"ttkernel\.add_binary_tile_init.*", "TW603", "has no init in front of it"),
    "nothing packed": (7, r"ttkernel\.pack_tile.*", "TW603", "the compute thread packs nothing"),
    "pushed and not reserved": (4, r"%7 = ttl\.cb_reserve.*", "TW202", "no block of it is held here"),
    "a block that nobody waited for": (2, r"%3 = ttl\.cb_wait.*\n.*attach_cb.*", "TW603", "%4"),
}


@spec("Pass Pipeline", "text of a later stage is checked as Python code is: what is missing gets a code and a sentence")
@pytest.mark.parametrize("case", BAD_STAGES)
def test_bad_stages(tmp_path, capfd, case):
    stage, removed, number, message = BAD_STAGES[case]
    text, count = re.subn(removed, "", lowering_stages.module(stage, lowering_stages.listing(stage)))
    assert count
    file = tmp_path / "bad.mlir"
    file.write_text(text)
    assert main(["compile", str(file)]) == 1
    found = capfd.readouterr().err
    assert f"error[{number}]" in found and message in found and "internal error" not in found


@spec("Pass Pipeline", "a pop or push that text of a later stage leaves out is put behind the last use")
@pytest.mark.parametrize("left_out", ["ttl.cb_pop %0", "ttl.cb_push %2"])
def test_completed_releases(program, tmp_path, make_array, run_both, left_out):
    text = re.sub(rf"{left_out} :.*", "", lowering_stages.module(2, lowering_stages.listing(2)))
    check_sum(compiled(with_movement(text, program, 2), tmp_path), make_array, run_both)


BAD_INDICES = {
    "both inputs in one slot": (3, "%c1 = arith.constant 1", "%c1 = arith.constant 0", "reads DST[0]"),
    "no index": (3, " {dst_idx = 2 : i32}", "", "has no DST index"),
    "more than DST holds": (3, '"ttl.dst_footprint" = 2', '"ttl.dst_footprint" = 5', "needs 9 DST tiles, 8 are there"),
    "packed and never computed": (5, "%16 = ttl.tile_add %dst_tile, %dst_tile_2 {dst_idx = 0 : i32} : " + lowering_stages.TILE, "", "never"),
}


@spec("Stage 3", "text whose DST indices do not hold together is refused, with a code (TW404) and what is wrong")
@pytest.mark.parametrize("case", BAD_INDICES)
def test_bad_indices(tmp_path, capfd, case):
    stage, old, new, message = BAD_INDICES[case]
    text = lowering_stages.module(stage, lowering_stages.listing(stage))
    assert old in text
    text = text.replace(old, new)
    if stage == 5:  # no copies either: the lifecycle is to be inserted around a nest that leaves nothing in DST
        text = re.sub(r"%dst_token.*|ttl\.tile_regs_\w+|ttl\.init_sfpu.*", "", text)
        message = "packed that no op before left in DST"
    file = tmp_path / "bad.mlir"
    file.write_text(text)
    assert main(["compile", str(file)]) == 1
    found = capfd.readouterr().err
    assert "error[TW404]" in found and message in found


@spec("Stage 4", "init_sfpu and acquire before the region; commit, wait, store and release behind it")
def test_sync_ops(program):
    ours, theirs = names_at(program, 4)
    assert [name for name in ours if name != "ttl.attach_cb"] == [name for name in theirs if name != "ttl.attach_cb"]


@spec("Stage 4", "the store names the result of the region, and dst_idx keeps the value of stage 3", decision="0005", listings=(1,))
def test_store_of_the_region(program, listings):
    assert "ttl.store %result, %output_cb" in listings[1] and "%result =" not in listings[1]
    assert "{dst_idx = 0 : i32}" in listings[1]
    ir = program.trace.stage(PASS_OF[4]).ir
    region = re.search(r"(%\w+) = ttl\.compute", ir)[1]
    assert re.search(rf"ttl\.store {region}, %\w+ :", ir)
    assert re.search(r"ttl\.tile_add [^\n]*dst_idx = 2 : i32", ir)


@spec("Stage 5", "two nests of scf.for over 2x2 tiles: copies and math, then stores and tensor.insert carried by iter_args")
def test_loop_ops(program):
    ours, theirs = names_at(program, 5)
    # Each tile is taken out of its block where it is loaded; the listing takes out both first.
    taken = {"ttl.attach_cb", "affine.apply", "tensor.extract"}
    assert [name for name in ours if name not in taken] == [name for name in theirs if name not in taken]
    assert ours.count("tensor.extract") == theirs.count("tensor.extract") == 2


@spec("Stage 5", "the linearised index is an affine.apply of the induction variables", listings=(1,))
def test_affine_apply(program, listings):
    maps = []
    for text in (lowering_stages.module(5, listings[1]), program.trace.stage(PASS_OF[5]).ir):
        applied = [op for op in mlir_files.parse(text, "stage.mlir").walk() if op.name == "affine.apply"]
        maps.append({op.properties["map"] for op in applied})
        assert all(argument.block.parent_op().name == "scf.for" for op in applied for argument in op.operands)
    assert len(maps[0]) == 1 and maps[0] == maps[1]


@spec("Stage 5", "ttl.dst_footprint stands on the outermost loop of each nest, behind its body", decision="0005", listings=(1,))
def test_footprint_on_loops(program, listings):
    assert len(re.findall(r'scf\.for .*\{"ttl\.dst_footprint" = 2 : i32\}', listings[1])) == 2
    assert len(re.findall(r"\} \{[^}\n]*ttl\.dst_footprint = 2 : i32", program.trace.stage(PASS_OF[5]).ir)) == 2


@spec("Stage 6", "copy_tile_init, copy_tile, add_binary_tile_init, add_binary_tile, pack_tile in the listing's order")
def test_call_ops(program):
    ours, theirs = names_at(program, 6)
    math = [name for name in theirs if name.startswith("ttkernel.") and "get_compile" not in name]
    found = [name for name in ours if name.startswith("ttkernel.") and "get_compile" not in name and "init_sfpu" not in name]
    assert found == math


@spec("Stage 6", "constant DST indices for copies, footprint + tile for the sum and for its pack", listings=(1,))
def test_call_indices(program, listings):
    """The listing compiled to C++ and our kernel have the same index at every call."""
    theirs = mlir_files.parse(lowering_stages.module(6, listings[1]), "listing.mlir")
    listed = compile_module(
        theirs, name="listing", grid=(1, 1), tensors=(), options=Options(**SPEC), passes=pipeline.remaining(theirs)
    )
    sides = [indexed_calls(text) for text in (listed.cpp["compute"], program.cpp["compute"])]
    assert sides[0] == sides[1] == [
        ("copy_tile", "cb0, i * 2 + j, 0"),
        ("copy_tile", "cb1, i * 2 + j, 1"),
        ("add_binary_tile", "0, 1, i * 2 + j + 2"),
        ("pack_tile", "i * 2 + j + 2, cb2, i * 2 + j"),
    ]  # fmt: skip


def indexed_calls(text: str) -> list[tuple[str, str]]:
    """Calls with their arguments, indices written out, buffers and loop variables under one name on both sides."""
    names = dict(re.findall(r"const uint32_t (\w+) = (\w+ \* 2 \+ \w+);", text))
    names |= {"arg0": "i", "arg1": "j", "lhs_cb": "cb0", "rhs_cb": "cb1", "out_cb": "cb2"}
    calls = []
    for name, arguments in re.findall(r"(copy_tile|add_binary_tile|pack_tile)(?:<false>)?\((.*)\);", text):
        for _ in range(2):  # an index that has a name is made of loop variables
            arguments = re.sub(r"\b\w+\b", lambda word: names.get(word[0], word[0]), arguments)
        calls.append((name, arguments))
    return calls


@spec("Stage 7", "no affine.apply is left: the linearised index is arith.muli and arith.addi", listings=(1,))
def test_lowered_affine(program, listings):
    before, after = program.trace.stage("ttkernel-combine-pack-tiles").ir, program.trace.stage(PASS_OF[7]).ir
    assert "affine.apply" in before and "affine." not in after and "affine." not in listings[1]
    for text in (after, listings[1]):
        product = re.search(r"(%\w+) = arith\.muli %\w+, %\w+ : index", text)
        assert re.search(rf"arith\.addi (?:{product[1]}, %\w+|%\w+, {product[1]}) : index", text)


# C++ --------------------------------------------------------------------------------------------------------------------------


@spec("C++ Output", "three files: compute, reader and writer, each once")
def test_three_files(program, tmp_path, call_sequence):
    assert set(program.cpp) == {"compute", "reader", "writer"}
    reader = [line for line in call_sequence.calls(program.cpp["reader"].splitlines()) if line.startswith(("cb_", "noc_", "for"))]
    one = ["cb_reserve_back({0}_cb, 4)", "for row < 2", "for col < 2", "noc_async_read_tile", "noc_async_read_barrier()"]
    one += ["cb_push_back({0}_cb, 4)"]
    expected = [line.format(name) for name in ("lhs", "rhs") for line in one]
    assert [line.split("(")[0] if "read_tile" in line else line for line in reader] == expected
    writer = [line for line in call_sequence.calls(program.cpp["writer"].splitlines()) if line.startswith(("cb_", "noc_"))]
    assert [line.split("(")[0] for line in writer] == [
        "cb_wait_front", "noc_async_write_tile", "noc_async_write_barrier", "cb_pop_front",
    ]  # fmt: skip


def listed_calls(text: str) -> list[str]:
    """Calls and loops of the listing, its constants and sums in place of their names."""
    values: dict[str, str] = {}
    found: list[str] = []
    for line in text.splitlines():
        line = re.sub(r"//.*", "", line).strip()
        definition = re.match(r"(?:int32_t|size_t) (v\d+) = (.*);", line)
        if definition:
            values[definition[1]] = expanded(definition[2], values)
        elif loop := re.match(r"for \(size_t (\w)\d+ = \w+; \w+ < (\w+);", line):
            found.append(f"for {loop[1]} < {values[loop[2]]}")
        elif line == "}":
            found.append("}")
        elif call := re.match(r"(\w+)(?:<false>)?\((.*)\);", line):
            arguments = re.sub(r"get_compile_time_arg_val\((\d)\)", lambda n: ("lhs_cb", "rhs_cb", "out_cb")[int(n[1])], call[2])
            found.append(f"{call[1]}({expanded(arguments, values)})")
    return found


def expanded(text: str, values: dict[str, str]) -> str:
    text = re.sub(r"\b(v\d+)\b", lambda name: values[name[0]], text)
    return re.sub(r"\b([ij])\d+\b", r"\1", text)


@spec("Compute Kernel", "the calls of the listing, in its order, with its DST indices and its two nests", listings=(1,))
def test_compute_kernel(program, call_sequence, listings):
    text = program.cpp["compute"]
    found = call_sequence.calls(text.splitlines(), inits=True)
    math = ("tile_regs", "copy_tile", "add_binary", "pack_tile", "for ", "}")
    ours = [line for line in found if line.startswith(math)][: found.index("cb_push_back(out_cb, 4)")]
    theirs = [line for line in listed_calls(listings[1]) if line.startswith(math)]
    assert ours[: ours.index("tile_regs_release()") + 1] == theirs[: theirs.index("tile_regs_release()") + 1]
    assert text.index("init_sfpu(lhs_cb, out_cb)") < text.index("tile_regs_acquire")


@spec("Compute Kernel", "namespace NAMESPACE, MAIN that calls kernel_main, pack_tile<false>, buffers as compile-time arguments", listings=(1,))
def test_compute_kernel_text(program, listings):
    text = program.cpp["compute"]
    for piece in ("namespace NAMESPACE {", "void kernel_main() {", "void MAIN { kernel_main(); }", "pack_tile<false>("):
        assert piece in text and piece in listings[1]
    for number, name in enumerate(("lhs_cb", "rhs_cb", "out_cb")):
        assert f"constexpr uint32_t {name} = get_compile_time_arg_val({number});" in text
        assert f"get_compile_time_arg_val({number})" in listings[1]


@spec(
    "Compute Kernel",
    "reserve and push stand around the block, with the pops; the listing has them in the pack loop and no pops",
    decision="0004",
    listings=(1,),
)
def test_reserve_and_push(program, call_sequence, listings):
    listed = listed_calls(listings[1])
    inside = listed[listed.index("tile_regs_wait()") : listed.index("tile_regs_release()")]
    assert "cb_reserve_back(out_cb, 4)" in inside and "cb_push_back(out_cb, 4)" in inside
    found = [line for line in call_sequence.calls(program.cpp["compute"].splitlines()) if line.startswith(("cb_", "tile_regs"))]
    assert found == [
        "cb_wait_front(lhs_cb, 4)", "cb_wait_front(rhs_cb, 4)", "cb_reserve_back(out_cb, 4)",
        "tile_regs_acquire()", "tile_regs_commit()", "tile_regs_wait()", "tile_regs_release()",
        "cb_pop_front(lhs_cb, 4)", "cb_pop_front(rhs_cb, 4)", "cb_push_back(out_cb, 4)",
    ]  # fmt: skip


@spec("Compute Kernel", "the kernel runs natively to right numbers")
def test_compute_kernel_runs(program, make_array, run_both):
    check_sum(program, make_array, run_both)


@spec("Generating This Documentation", "TTLANG_VERBOSE_PASSES=1 prints the IR after every pass to standard output", listings=(1,))
@pytest.mark.parametrize("command", [["-m", "tilewright.cli.main", "run"], []])
def test_verbose_passes(tmp_path, listings, command):
    """The command of the listing, with its redirection; the script imports the language by our name, so plain Python runs it."""
    variable, value = re.match(r"(\w+)=(\w+) python \S+ 2>&1 > \S+", listings[1]).groups()
    source = script(documents.listing(DOCUMENT, "Python Input", 1)) + CALL
    source = source[source.index("@ttl.kernel") :]
    names = "from tilewright import ttl\ncopy, Program, make_circular_buffer_like = ttl.copy, ttl.Program, ttl.make_circular_buffer_like\n"
    file = tmp_path / "your_test.py"
    file.write_text(names + source)
    done = subprocess.run(
        [sys.executable, *command, str(file)], capture_output=True, text=True, check=False, env={**os.environ, variable: value}
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"IR after ([\w-]+)", done.stdout) == ["frontend", *(stage.name for stage in pipeline.PASSES)]
    assert done.stdout.endswith("right\n")
