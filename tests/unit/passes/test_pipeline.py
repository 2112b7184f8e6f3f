"""What holds between passes: IR verifies, dominates, prints and comes back; nothing is left that a stage must have removed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.parser import Parser

import accumulation_kernels
from tilewright import pipeline
from tilewright.dialects.attributes import text_attr
from tilewright.dialects.text_input import check_dominance, load_dialects
from tilewright.hardware import CHIPS
from tilewright.options import Options
from tilewright.passes.census import FACTS, Census
from tilewright.passes.context import PassContext
from tilewright.pipeline import PASS_NAMES, RULES, STAGES
from tilewright.universe import TILEWRIGHT_UNIVERSE

CASES = {
    "add": ({"out": "a + b"}, {"block": (2, 2)}, {}),
    "spec": ({"out": "ttl.math.exp(a * b) + a"}, {"block": (2, 2)}, {"allocator": "linear-scan", "fpu_binary_ops": False}),
    "unrolled": ({"out": "ttl.math.abs(a) - b"}, {"block": (2, 3)}, {"enable_unroll": True}),
    "remainder": ({"out": "a * b", "other": "ttl.math.exp(a)"}, {"block": (3, 5)}, {}),
    "split": ({"out": "ttl.math.exp(a + b) * (a - b)"}, {"block": (2, 2)}, {"dst_capacity": 2, "fpu_binary_ops": False}),
    "grid": ({"out": "ttl.math.relu(a) * 2.5"}, {"blocks": (5, 3), "grid": (2, 2)}, {}),
}
ALL = pytest.mark.parametrize("name", CASES)


def built(kernels, make_array, name, dtype="bf16"):
    outputs, layout, given = CASES[name]
    inputs = "ab" if any("b" in text for text in outputs.values()) else "a"
    source = kernels.text.elementwise(outputs, inputs, **layout)
    block, blocks = layout.get("block", (1, 1)), layout.get("blocks", (1, 1))
    arrays = [make_array((block[0] * blocks[0], block[1] * blocks[1]), dtype) for _ in range(len(inputs) + len(outputs))]
    kernel = kernels.load(source).build(*arrays, **given)
    options = Options(**given)
    return kernel.module, PassContext(options=options, chip=CHIPS[options.arch], grid=kernel.grid, tensors=kernel.tensors)


@ALL
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_every_stage_verifies_and_dominates(kernels, make_array, name, dtype):
    module, context = built(kernels, make_array, name, dtype)
    module.verify()
    check_dominance(module)
    for each in pipeline.PASSES:
        pipeline.run_pass(each.name, module, context)
        module.verify()
        check_dominance(module)


def test_a_condition_is_counted_again_after_a_change(kernels, make_array):
    module, context = built(kernels, make_array, "add")
    census = Census(module)
    assert census.holds("ttl.add", context) and not census.holds("ttl.compute", context)
    pipeline.run_pass("ttl-simplify", module, context, census)  # it ran: whatever it did, nothing is known any more
    for name in STAGES["convert-ttl-to-compute"]:
        pipeline.run_pass(name, module, context, census)
    assert census.holds("ttl.compute", context) and not census.holds("ttl.add", context)


@pytest.mark.parametrize("given", [{}, {"enable_unroll": True}])
def test_an_option_is_a_condition(kernels, make_array, given):
    module, _ = built(kernels, make_array, "add")
    context = PassContext(options=Options(**given), chip=CHIPS["wormhole_b0"])
    assert pipeline.applies("ttl-unroll-compute-loops", Census(module), context) is bool(given)


def test_every_condition_is_a_word_that_exists():
    """An op of a dialect, an option, a fact, or an attribute that something else in the tree names."""
    dialects = load_dialects(Context())
    folder = Path(pipeline.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name != "pipeline.py")
    for each in pipeline.PASSES:
        for word in each.on:
            option = word.startswith("--") and word[2:].replace("-", "_") in Options.names()
            op = dialects.get_optional_op(word) is not None
            assert option or op or word in FACTS or f'"{word}"' in source, f"{each.name}: {word}"


@ALL
def test_text_between_all_passes(kernels, make_array, name):
    """Printing and parsing between any two passes changes nothing: what a pass needs is in the IR."""
    direct, context = built(kernels, make_array, name)
    through_text, _ = built(kernels, make_array, name)
    _, other = built(kernels, make_array, name)
    for each in pipeline.PASSES:
        pipeline.run_pass(each.name, direct, context)
        through_text = Parser(load_dialects(Context()), str(through_text)).parse_module()
        pipeline.run_pass(each.name, through_text, other)
        assert str(through_text) == str(direct), f"after {each.name}"


@pytest.mark.parametrize("tiles", [1, 3])
def test_text_between_the_passes_of_a_running_sum(kernels, make_array, tiles):
    """One that stays in DST, and one that the packer adds up."""
    body = f"""
with out_dfb.reserve() as o, c_dfb.wait() as start:
    total = ttl.block.fill(0.0, shape=({tiles}, {tiles}))
    for step in range(4):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total = total + left @ right
    o.store(total + start)
"""
    source = accumulation_kernels.kernel(body, block=(tiles, tiles, 1))
    arrays = [make_array(shape, "bf16") for shape in ((tiles, 4), (4, tiles), (tiles, tiles), (tiles, tiles))]
    modules = [kernels.load(source).build(*arrays) for _ in range(2)]
    direct, through_text = (each.module for each in modules)
    contexts = [PassContext(options=Options(), chip=CHIPS["wormhole_b0"], grid=each.grid, tensors=each.tensors) for each in modules]
    for each in pipeline.PASSES:
        pipeline.run_pass(each.name, direct, contexts[0])
        through_text = Parser(load_dialects(Context()), str(through_text)).parse_module()
        pipeline.run_pass(each.name, through_text, contexts[1])
        assert str(through_text) == str(direct), f"after {each.name}"
        if each.name in STAGES:
            RULES.check(each.name, Census(direct).names)


def test_what_a_pass_says_to_another_is_heard(kernels, make_array):
    module, context = built(kernels, make_array, "add")
    pipeline.run(module, context, ["ttl-validate", "convert-ttl-to-compute", "ttl-set-compute-config", "ttl-tile-and-assign-dst"])
    region = next(op for op in module.walk() if op.name == "ttl.compute")
    region.attributes["ttl.results"] = text_attr("-1")
    with pytest.raises(AssertionError, match=r"ttl\.results is left after ttl-tile-and-assign-dst"):
        RULES.check("ttl-tile-and-assign-dst", Census(module).names)


def test_no_running_value_is_left_without_its_place(kernels, make_array):
    source = accumulation_kernels.kernel("""
with c_dfb.wait() as start, out_dfb.reserve() as o:
    o.store(start)
    for step in range(4):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            o += left @ right
""", block=(1, 1, 1))  # fmt: skip
    built = kernels.load(source).build(*(make_array(shape, "bf16") for shape in ((1, 4), (4, 1), (1, 1), (1, 1))))
    context = PassContext(options=Options(), chip=CHIPS["wormhole_b0"], grid=built.grid, tensors=built.tensors)
    stages = ["ttl-validate", "convert-ttl-to-compute", "ttl-set-compute-config"]
    pipeline.run(built.module, context, [*stages, "ttl-raise-running-values"])
    with pytest.raises(AssertionError, match=r"ttl\.running is left after ttl-tile-and-assign-dst"):
        RULES.check("ttl-tile-and-assign-dst", Census(built.module).names)
    assert RULES.unmet("ttl-tile-and-assign-dst", built.module)[0] == "run ttl-accumulate-in-l1 first"


def test_stage_check_names_what_is_left(kernels, make_array):
    module, context = built(kernels, make_array, "add")
    with pytest.raises(AssertionError, match=r"ttl\.add is left after convert-ttl-to-compute"):
        RULES.check("convert-ttl-to-compute", Census(module).names)
    pipeline.run(module, context, ["ttl-validate", "convert-ttl-to-compute", "ttl-set-compute-config"])
    with pytest.raises(AssertionError, match=r"ttl\.compute is left after ttl-lower-to-loops"):
        RULES.check("ttl-lower-to-loops", Census(module).names)


def test_what_is_gone_stays_gone():
    for earlier, later in zip(pipeline.PASSES, pipeline.PASSES[1:], strict=False):
        assert set(RULES.forbidden_after(earlier.name)) <= set(RULES.forbidden_after(later.name))
    assert "ttl." in RULES.forbidden_after("lower-affine") and "affine." in RULES.forbidden_after("lower-affine")


def test_xdsl_finds_our_passes():
    """`xdsl-opt` runs them: all but xDSL's own lower-affine, under our names."""
    ours = [each.name for each in pipeline.PASSES]
    assert set(TILEWRIGHT_UNIVERSE.all_passes) >= {*ours} - {"lower-affine"}


def test_a_stage_ends_with_the_pass_of_its_name():
    """Its IR is what the specification shows, and the name stands for the stage."""
    assert all(passes[-1] == stage for stage, passes in STAGES.items())
    assert pipeline.passes_of(STAGES) == list(PASS_NAMES)
    assert pipeline.passes_of(["LowerCompute", "ttl-hoist-invariants"]) == [*STAGES["convert-ttl-to-compute"], "ttl-hoist-invariants"]


def test_a_pass_is_a_file_of_its_name():
    for each in pipeline.PASSES:
        module = sys.modules[pipeline.loaded(each.name).__module__]
        assert module.__name__ == f"tilewright.passes.{each.name.replace('-', '_')}"
        assert each.name == "lower-affine" or each.name == module.NAME


def test_passes_run_through_xdsl(kernels, make_array):
    module, _ = built(kernels, make_array, "add")
    direct, context = built(kernels, make_array, "add")
    names = ("convert-ttl-to-compute", "ttl-set-compute-config", "ttl-tile-and-assign-dst")
    for name in names:
        TILEWRIGHT_UNIVERSE.all_passes[name]()().apply(load_dialects(Context()), module)
    pipeline.run(direct, context, names)
    assert str(module) == str(direct)


def test_alias_is_the_same_pass(kernels, make_array):
    texts = []
    for name in ("ttl-tile-and-assign-dst", "ttl-assign-dst"):
        module, context = built(kernels, make_array, "add")
        pipeline.run(module, context, ["convert-ttl-to-compute", "ttl-set-compute-config", name])
        texts.append(str(module))
        assert context.trace.stages[-1].name == "ttl-tile-and-assign-dst"
    assert texts[0] == texts[1]
