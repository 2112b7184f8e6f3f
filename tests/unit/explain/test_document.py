"""The document: valid by its schema, and true to the compilation it tells of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from explained import ROOT, THREE, WRONG, example, explained
from tilewright.cli.main import main
from tilewright.explain.document import applied
from tilewright.report import dst_assignment

SCHEMA = json.loads((ROOT / "docs" / "explain.schema.json").read_text())
EXAMPLES = ("02_fused", "07_ring", "10_matmul", "tilelang/07_flash_attention")


def checked(document: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    plain = json.loads(json.dumps(document))
    assert complaints(plain) == []
    return plain


def complaints(plain: dict[str, Any]) -> list[str]:
    """What the schema says, without the document."""
    found = jsonschema.Draft202012Validator(SCHEMA).iter_errors(plain)
    return [f"{each.json_path}: {each.message[-200:]}" for error in found for each in error.context or (error,)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_documents_are_valid(name: str):
    checked(example(name)[0])


@pytest.mark.parametrize("name", EXAMPLES)
def test_lines_of_cpp_and_of_the_source_point_at_each_other(name: str):
    document, programs = example(name)
    for kernel, program in zip(document["kernels"], programs, strict=True):
        for file in kernel["cpp"]:
            assert "\n".join(file["lines"]) + "\n" == program.cpp[file["role"]]
            assert len(file["from"]) == len(file["lines"])
            for text, place in zip(file["lines"], file["from"], strict=True):
                said = re.search(r"// (?:.*, )?line (\d+)$", text)  # not of a buffer, whose values have lines too
                if said:
                    assert place is not None and place[1] == int(said[1]), text
                if place is not None:
                    assert 1 <= place[1] <= len(document["files"][place[0]]["lines"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_edits_give_the_ir_of_every_stage(name: str):
    document, programs = example(name)
    for kernel, program in zip(document["kernels"], programs, strict=True):
        text: list[str] = []
        for told, stage in zip(kernel["stages"], program.trace.stages, strict=True):
            text = applied(text, told["edits"])
            assert text == stage.ir.splitlines(), stage.name


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_value_of_the_trace_has_its_life(name: str):
    document, programs = example(name)
    for kernel, program in zip(document["kernels"], programs, strict=True):
        told = [life for region in kernel["dst"] for part in region["parts"] for life in part["requirements"]["values"]]
        known = [life for _, plan in program.trace.plans for part in plan.parts for life in part.requirements.lives]  # pyright: ignore
        assert len(told) == len(known) > 0
        for region in kernel["dst"]:
            for part in region["parts"]:
                assert all(0 <= index < region["capacity"] for tiles in part["slots"] for index in tiles)
                assert {life["value"] for life in part["requirements"]["values"]} <= region["values"].keys()


def test_names_of_the_fused_kernel():
    (kernel,) = example("02_fused")[0]["kernels"]
    (region,) = kernel["dst"]
    assert region["values"]["input 2"]["name"] == "c_dfb"
    assert [step["accumulates"] for step in region["parts"][0]["steps"] if "op" in step] == [True, False]
    flow = {each["thread"]: each for each in kernel["data_flow"]}
    assert flow["read"]["reads"] == [0, 1, 2] and flow["compute"]["pushes"] == [3] and flow["write"]["writes"] == [3]
    assert kernel["memory"]["used"] == 4 * 2 * 64 * 2048 <= kernel["memory"]["room"]


def test_cycles_per_line_are_those_of_the_profile():
    document, _ = example("02_fused")
    (kernel,) = document["kernels"]
    dearest = kernel["time"]["lines"][0]
    assert "ttl.math.exp" in document["files"][dearest["place"][0]]["lines"][dearest["place"][1] - 1]
    assert dearest["cycles"]["math"] == pytest.approx(kernel["time"]["engines"]["math"]["busy"], rel=0.02)


def test_slices_of_an_engine_are_its_time():
    (kernel,) = example("02_fused")[0]["kernels"]
    time = kernel["time"]
    (core,) = time["timeline"]["cores"]
    for engine in core["engines"]:
        assert engine["grain"] == 0
        work = sum(end - start for start, end, _, reason in engine["slices"] if not reason)
        assert work == pytest.approx(time["engines"][engine["name"]]["busy"], rel=0.02, abs=len(engine["slices"]))
        assert all(one[1] <= two[0] for one, two in zip(engine["slices"], engine["slices"][1:], strict=False))


def test_long_timelines_are_thinned():
    from tilewright.explain.times import MOST_OF_ENGINE, thinned
    from tilewright.timing.clock import Engine

    engine = Engine("math", 1, 0.0, depth=0, record=True)
    assert engine.slices is not None
    engine.slices += [(2.0 * i, 2.0 * i + 1.5, i % 3, "" if i % 2 else "why") for i in range(10 * MOST_OF_ENGINE)]
    slices, grain = thinned(engine)
    assert len(slices) <= MOST_OF_ENGINE + 1 and grain == pytest.approx(20, rel=0.01)
    assert slices[0][0] == 0 and slices[-1][1] >= 2 * 10 * MOST_OF_ENGINE - 2


def test_a_ring_says_who_sends_to_whom():
    (kernel,) = example("07_ring")[0]["kernels"]
    (net,) = kernel["pipes"]
    assert net["net"] == "ring"
    assert [(pipe["from"], pipe["to"]) for pipe in net["pipes"]] == [([i], [[(i + 1) % 8]]) for i in range(8)]
    pairs = {(tuple(a), tuple(b)) for a, b, _ in kernel["time"]["traffic"]["between"]}
    assert {((i,), ((i + 1) % 8,)) for i in range(8)} <= pairs


def test_names_of_the_compiler_are_explained():
    for kernel in example("tilelang/07_flash_attention")[0]["kernels"]:
        made = [buffer for buffer in kernel["buffers"] if buffer["origin"] == "compiler"]
        assert made and all(buffer["meaning"] and buffer["meaning"] != "made by the compiler" for buffer in made)
        assert not any(buffer["meaning"] for buffer in kernel["buffers"] if buffer["name"] == "Q_shared")


def test_several_kernels_have_their_calls(tmp_path: Path):
    script = tmp_path / "three.py"
    script.write_text(THREE)
    document = checked(explained(script)[0])
    lines = THREE.splitlines()
    calls = [[lines[place[1] - 1] for place in kernel["calls"]] for kernel in document["kernels"]]
    assert [kernel["name"] for kernel in document["kernels"]] == ["square", "root", "summed"]
    assert calls == [["square(a, y)"], ["root(a, y)", "root(a, y)"], ["summed(a, y)"]]
    assert any(buffer["name"].startswith("ones_") and "ones" in buffer["meaning"] for buffer in document["kernels"][2]["buffers"])


def test_a_wrong_kernel_has_its_error_notes_and_page(tmp_path: Path):
    script = tmp_path / "wrong.py"
    script.write_text(WRONG)
    document = checked(explained(script)[0])
    (error,) = document["errors"]
    assert document["kernels"] == [] and error["code"] == "TW101"
    lines = WRONG.splitlines()
    assert "out.store(left + left)" in lines[error["place"][1] - 1]
    assert "y_dfb = " in lines[error["notes"][0]["place"][1] - 1]
    assert "same number of tiles" in error["page"]


def test_the_command_prints_the_document(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "--json", str(ROOT / "examples" / "16_older_names.py")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert complaints(document) == []
    assert [kernel["name"] for kernel in document["kernels"]] == ["add_multitile_kernel"]


def test_the_working_of_linear_scan_is_told():
    document, _ = explained(ROOT / "examples" / "02_fused.py", allocator="linear-scan")
    scan = checked(document)["kernels"][0]["dst"][0]["linear_scan"]
    assert scan["intervals"] and scan["output_events"]


def test_regions_of_the_report_have_the_same_steps():
    document, programs = example("02_fused")
    (region,) = dst_assignment.regions(programs[0].trace)
    assert [part["steps"] for part in document["kernels"][0]["dst"][0]["parts"]] == [part["steps"] for part in region["parts"]]
