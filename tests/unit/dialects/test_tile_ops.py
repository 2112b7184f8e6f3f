"""The op table: every row is complete, means what it says, and calls what the kernel API has."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from tilewright.dialects import row_references as references
from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import (
    DATA_FORMATS,
    INTEGER_DTYPES,
    Composite,
    Param,
    Spelling,
    TileOp,
    Unit,
    UnitForm,
    Writes,
    encode,
    template_text,
    written_template,
)
from tilewright.report import ops_page
from tilewright.timing_constants import call_cost

SIGNATURES = json.loads(Path(__file__).with_name("signatures.json").read_text(encoding="utf-8"))
NEWEST = "0.81"
FORMS = [pytest.param(row, form, id=f"{row.name}-{form.unit.value}") for row in tile_ops.ROWS for form in row.forms]
ROWS = [pytest.param(row, id=row.name) for row in tile_ops.ROWS]

# The peer's compiler and simulator functions, and the spec's inventory. Reductions, broadcasts, matmul, transpose and
# shape functions are not elementwise and have no row.
PEER_COMPILER = (
    "add", "sub", "mul", "div", "max", "min", "exp", "exp2", "expm1", "log", "sqrt", "rsqrt", "square", "recip",
    "tanh", "sin", "cos", "tan", "asin", "acos", "atan", "abs", "neg", "sign", "signbit", "floor", "ceil",
    "trunc", "frac", "relu", "sigmoid", "gelu", "silu", "hardsigmoid", "softsign",
)  # fmt: skip
PEER_SIMULATOR = (
    "logp1", "atanh", "asinh", "acosh", "selu", "rsub", "relu_max", "relu_min", "leaky_relu", "elu", "celu",
    "prelu", "softplus", "hardtanh", "round", "clamp", "threshold", "gt", "lt", "eq", "ne", "where", "mask",
    "mask_posinf", "fill", "typecast", "pow",
)  # fmt: skip
ASKED = (
    "erf", "erfc", "erfinv", "log1p", "log2", "log10", "minimum", "maximum", "ge", "le", "mish", "hardswish",
    "gelu_tanh", "lerp", "addcmul", "addcdiv", "mac", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    "left_shift", "right_shift", "sinh", "cosh", "cbrt", "i0", "i1", "atan2", "xlogy", "fmod", "remainder",
    "isinf", "isnan", "isfinite", "isposinf", "isneginf", "heaviside", "softshrink", "hardshrink", "tanhshrink",
    "logsigmoid", "logical_not", "relu6", "floordiv",
)  # fmt: skip


def newest_name(form: UnitForm, name: str) -> str:
    """The name a call has in the newest release, where that is not the canonical one."""
    if name in ("add_tiles_init", "sub_tiles_init", "mul_tiles_init"):
        return name.replace("_tiles_init", "_init")
    if name.startswith("binary_dest_reuse_tiles"):
        kind = form.template[0].rsplit("ELW", 1)[1].lower()
        return f"{kind}_reuse_dest_init" if name.endswith("_init") else f"{kind}_reuse_dest_tiles"
    return name


def sample_values(row: TileOp) -> dict[str, object]:
    values = {param.name: param.sample for param in row.params}
    return {"fmt": "DataFormat::Float32", "fp32": "true", **values}


def sample_params(op: TileOp | Composite) -> dict[str, object]:
    return {param.name: param.sample for param in op.params if not param.hidden}


def sample_tiles(op: TileOp, count: int = 257) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    low, high = op.domain
    if op.dtypes[0] in INTEGER_DTYPES:
        return [random.integers(int(low), int(high), count, endpoint=True) for _ in range(op.arity)]
    return [random.uniform(low, high, count) for _ in range(op.arity)]


def check_declared(name: str, arguments: int, template: tuple[str, ...], headers: tuple[str, ...]) -> None:
    assert name in SIGNATURES, f"{name} is not in the API"
    for header, fewest, most, fewest_template, most_template, deprecated in SIGNATURES[name]:
        fits = fewest <= arguments <= most and fewest_template <= len(template) <= most_template
        if fits and header in headers and not deprecated:
            return
    raise AssertionError(f"{name}<{', '.join(template)}> with {arguments} arguments, in {headers}: {SIGNATURES[name]}")


def test_the_table_has_the_size_the_documentation_says() -> None:
    assert len(tile_ops.ROWS) >= 170
    assert len(tile_ops.BY_NAME) == len(tile_ops.ROWS)


def test_no_spelling_or_operator_is_taken_twice() -> None:
    operations = (*tile_ops.ROWS, *tile_ops.COMPOSITES)
    names = [op.name for op in operations]
    spellings = [spelling for op in operations for spelling in op.python]
    operators = [op.operator for op in operations if op.operator]
    for taken in (names, spellings, operators):
        assert len(taken) == len(set(taken)), sorted(word for word in taken if taken.count(word) > 1)


@pytest.mark.parametrize(("row", "form"), FORMS)
def test_calls_are_declared_in_the_newest_release(row: TileOp, form: UnitForm) -> None:
    values = sample_values(row)
    form = form.at(NEWEST)
    template = form.call_template(values)
    init_template = form.init_call_template(values)
    if "reuse" in form.call:
        template, init_template = template[1:], init_template[1:]  # the op is in the name
    headers = (form.header, *form.includes_first)
    check_declared(newest_name(form, form.call), len(form.args), template, headers)
    check_declared(newest_name(form, form.init), len(form.init_args), init_template, headers)
    for header in form.includes_first:
        assert any(header == signature[0] for found in SIGNATURES.values() for signature in found)


@pytest.mark.parametrize(
    ("name", "arguments", "template", "header"),
    [
        ("no_such_tile", 1, (), "x.h"),
        ("abs_tile", 2, (), "compute_kernel_api.h"),
        ("abs_tile", 1, ("true",), "compute_kernel_api.h"),
        ("abs_tile", 1, (), "eltwise_unary/abs.h"),
        ("copy_tile_init", 1, (), "tile_move_copy.h"),  # deprecated
    ],
)
def test_a_wrong_call_is_found(name: str, arguments: int, template: tuple[str, ...], header: str) -> None:
    with pytest.raises(AssertionError):
        check_declared(name, arguments, template, (header,))


@pytest.mark.parametrize("form", [form for row in tile_ops.ROWS for form in row.forms if form.by_faces], ids=lambda form: form.call)
def test_a_vector_mode_may_follow_the_arguments(form: UnitForm) -> None:
    check_declared(form.call, len(form.args) + 1, (), (form.at(NEWEST).header,))


@pytest.mark.parametrize(("row", "form"), FORMS)
def test_arguments_are_well_formed(row: TileOp, form: UnitForm) -> None:
    params = {param.name for param in row.params}
    used: set[str] = set()
    for argument in (*form.args, *form.init_args):
        if ":" in argument:
            name, encoding = argument.split(":")
            assert name in params
            assert encoding in ("f32", "recip", "int", "float")
            used.add(name)
        else:
            assert re.fullmatch(r"[dbt][0-2]|o", argument)
            assert argument == "o" or int(argument[1]) < row.arity
    for entry in (*form.template, *form.init_template):
        used.update(re.findall(r"\{(\w+)", entry))
    needed = {p.name for p in row.params if p.kind != "str" and "not used" not in p.summary}
    assert needed <= used, f"no call takes {needed - used}"
    assert ("o" in form.args) == (form.writes is not Writes.IN_PLACE)
    assert form.rounds in ("truncate", "nearest-even", "nearest-away", "exact")
    assert form.since in ("0.62", "0.69", "0.78", "0.81")


@pytest.mark.parametrize(("row", "form"), FORMS)
def test_operands_are_where_the_unit_needs_them(row: TileOp, form: UnitForm) -> None:
    slots = {argument for argument in form.args if re.fullmatch(r"d\d", argument)}
    buffers = {argument for argument in form.args if re.fullmatch(r"b\d", argument)}
    expected = {
        Unit.SFPU: ({f"d{index}" for index in range(row.arity)}, set()),
        Unit.FPU: (set(), {"b0", "b1"}),
        Unit.REUSE_A: ({"d0"}, {"b1"}),
        Unit.REUSE_B: ({"d1"}, {"b0"}),
    }
    assert (slots, buffers) == expected[form.unit]


@pytest.mark.parametrize("row", ROWS)
def test_parameters_have_legal_samples(row: TileOp) -> None:
    kinds = {"float": (int, float), "int": int, "bool": bool, "str": str}
    for param in row.params:
        assert isinstance(param.sample, kinds[param.kind]), param.name
        assert param.low is None or param.sample >= param.low
        assert param.high is None or param.sample <= param.high
        assert not param.hidden or param.default is not None


@pytest.mark.parametrize("row", ROWS)
def test_reference_gives_numbers_on_the_domain(row: TileOp) -> None:
    tiles = sample_tiles(row)
    result = np.asarray(row.reference(*tiles, **sample_params(row)))
    assert row.arity == 0 or result.shape == tiles[0].shape
    assert np.all(np.isfinite(result))


@pytest.mark.parametrize("row", ROWS)
def test_other_rows_it_names_exist_and_match(row: TileOp) -> None:
    for name in (row.scalar, row.rscalar):
        if name:
            assert tile_ops.BY_NAME[name].arity == row.arity - 1
    for dtype, name in row.by_dtype:
        other = tile_ops.BY_NAME[name]
        assert dtype in other.dtypes
        assert dtype not in row.dtypes
        assert other.arity == row.arity
    assert all(dtype in DATA_FORMATS for dtype in row.dtypes)


@pytest.mark.parametrize(("row", "form"), FORMS)
@pytest.mark.parametrize("chip", ["wormhole_b0", "blackhole"])
def test_every_call_has_a_cost(row: TileOp, form: UnitForm, chip: str) -> None:
    for dst32 in (False, True):
        cost = call_cost(form.call, dst32=dst32, chip=chip, template=form.call_template(sample_values(row)))
        assert 10 <= cost.math_cycles <= 10_000
        assert cost.evidence


def test_spec_and_peer_functions_all_have_a_row_or_steps() -> None:
    spellings = {*tile_ops.BY_PYTHON, *tile_ops.COMPOSITE_BY_PYTHON}
    wanted = (*PEER_COMPILER, *PEER_SIMULATOR, *ASKED)
    missing = [name for name in wanted if f"math.{name}" not in spellings]
    assert missing == []
    assert {"block.fill", "block.where", "block.mask", "block.mask_posinf"} <= spellings


def test_python_operators() -> None:
    both = {**tile_ops.BY_OPERATOR, **tile_ops.COMPOSITE_BY_OPERATOR}
    assert set(both) == {
        "+", "-", "*", "/", "**", "%", "//", "neg", "abs", "==", "!=", "<", ">", "<=", ">=",
        "&", "|", "^", "~", "<<", ">>",
    }  # fmt: skip
    for sign in ("+", "-", "*", "/", "**"):
        assert tile_ops.BY_OPERATOR[sign].scalar and tile_ops.BY_OPERATOR[sign].rscalar


@pytest.mark.parametrize("name", [row.name for row in tile_ops.ROWS if row.scalar])
def test_scalar_rows_mean_the_same_as_the_tile_row(name: str) -> None:
    row = tile_ops.BY_NAME[name]
    x = sample_tiles(row)[0]
    for other, swapped in ((row.scalar, False), (row.rscalar, True)):
        if not other:
            continue
        scalar_row = tile_ops.BY_NAME[other]
        value = scalar_row.params[0].sample
        constant = np.full_like(x, value)
        tiles = (constant, x) if swapped else (x, constant)
        expected = row.reference(*tiles)
        given = scalar_row.reference(x, **{scalar_row.params[0].name: value})
        np.testing.assert_allclose(given, expected)


@pytest.mark.parametrize("composite", [pytest.param(op, id=op.name) for op in tile_ops.COMPOSITES])
def test_steps_of_composites_compute_their_reference(composite: Composite) -> None:
    random = np.random.default_rng(3)
    tiles = [random.uniform(0.5, 4.0, 200) * random.choice([-1.0, 1.0], 200) for _ in range(composite.arity)]
    if composite.name.startswith("mask"):
        tiles[1] = (tiles[1] > 0.0).astype(np.float64)
    params = sample_params(composite)
    values = {f"a{index}": tile for index, tile in enumerate(tiles)}
    for number, step in enumerate(composite.steps):
        row = tile_ops.BY_NAME[step.op]
        given = {name: params[value[1:]] if str(value).startswith("=") else value for name, value in step.params}
        defaults = {param.name: param.default for param in row.params if not param.hidden}
        values[f"s{number}"] = row.reference(*(values[name] for name in step.operands), **{**defaults, **given})
    result = values[f"s{len(composite.steps) - 1}"]
    np.testing.assert_allclose(result, composite.reference(*tiles, **params), rtol=1e-12, atol=1e-12)
    for name in (composite.scalar, *(row for _, row in composite.by_dtype)):
        assert not name or name in tile_ops.BY_NAME or name in tile_ops.COMPOSITE_BY_NAME


def test_stateless_and_stateful_inits() -> None:
    stateful = {row.name: row.forms[0].stateful for row in tile_ops.ROWS}
    for name in ("abs", "neg", "relu", "add", "mul", "add_scalar", "elu", "floor", "fill", "eq_scalar", "lerp"):
        assert not stateful[name], name
    for name in ("exp", "log", "sqrt", "recip", "tanh", "gelu", "square", "max", "where", "div", "eqz", "typecast", "clamp", "eq", "lt_int"):
        assert stateful[name], name


def test_reciprocal_is_spelled_per_release() -> None:
    form = tile_ops.BY_NAME["recip"].forms[0]
    assert form.at("0.62").template == ()
    assert form.at("0.69").template == form.at("0.78").template == ("false",)
    assert form.at("0.81").template == form.at("0.81.1").init_template == ()


def test_default_template_arguments_are_not_written() -> None:
    exponential = tile_ops.BY_NAME["exp"].forms[0]
    assert exponential.call_template({"approx": False}) == ()
    assert exponential.call_template({"approx": True}) == ("true",)
    clamped = "InputClamping::ClampToNegative"
    assert exponential.call_template({"approx": False, "narrow": True}) == ("false", "false", clamped, "8", "false")
    assert exponential.init_call_template({"approx": False, "narrow": True}) == ("false", "0x3F800000", clamped, "false")
    assert exponential.at("0.69").call_template({"approx": False, "narrow": True}) == ()
    gelu = tile_ops.BY_NAME["gelu"].forms[0]  # its default is the approximate form
    assert gelu.call_template({"approx": False}) == gelu.init_call_template({"approx": False}) == ("false",)
    sigmoid = tile_ops.BY_NAME["sigmoid"].forms[0]
    assert sigmoid.call_template({"approx": True}) == ("VectorMode::RC", "true")
    assert sigmoid.init_call_template({"approx": True}) == ("true",)
    assert sigmoid.call_template({"approx": False, "narrow": True}) == ("VectorMode::RC", "false", "false")
    assert sigmoid.init_call_template({"approx": False, "narrow": True}) == ()
    assert written_template(("a", "{n}"), ("a", "b"), {"n": "c"}) == ("a", "c")


def test_release_of_a_form() -> None:
    form = UnitForm(unit=Unit.SFPU, init="x_init", call="x", header="x.h", writes=Writes.ANY, args=("o",), since="0.78",
                    spellings=(Spelling(since="0.80", template=("true",)),))  # fmt: skip
    assert not form.exists_in("0.69")
    assert form.exists_in("0.78") and form.exists_in("0.81.1")
    assert form.at("0.79").template == ()
    assert form.at("0.100").template == ("true",)


@pytest.mark.parametrize(
    ("operator", "number", "left", "row", "params"),
    [
        ("+", 2.0, False, "add_scalar", {"scalar": 2.0}), ("+", 2.0, True, "add_scalar", {"scalar": 2.0}),
        ("-", 2.0, False, "sub_scalar", {"scalar": 2.0}), ("-", 1.0, True, "rsub_scalar", {"scalar": 1.0}),
        ("/", 3.0, False, "div_scalar", {"scalar": 3.0}), ("/", 3.0, True, "rdiv_scalar", {"scalar": 3.0}),
        ("**", 2, False, "square", {}), ("**", 3, False, "pow_int", {"exponent": 3}), ("**", 0.5, False, "sqrt", {}),
        ("**", 2.5, False, "pow_scalar", {"scalar": 2.5}), ("**", -3, False, "pow_scalar", {"scalar": -3.0}),
        ("**", math.inf, False, "pow_scalar", {"scalar": math.inf}),
        ("**", 100, False, "pow_scalar", {"scalar": 100.0}), ("**", 2.0, True, "rpow_scalar", {"scalar": 2.0}),
        ("<", 1.5, False, "lt_scalar", {"scalar": 1.5}), ("<", 1.5, True, "gt_scalar", {"scalar": 1.5}),
        ("//", 2.0, False, "floordiv_scalar", {"scalar": 2.0}), ("%", 3.0, False, "remainder_scalar", {"scalar": 3.0}),
    ],
)  # fmt: skip
def test_row_for_a_python_number(operator: str, number: float, left: bool, row: str, params: dict[str, object]) -> None:
    op = tile_ops.BY_OPERATOR.get(operator) or tile_ops.COMPOSITE_BY_OPERATOR[operator]
    found = tile_ops.with_number(op, number, left=left)
    assert found is not None
    assert (found[0].name, found[1]) == (row, params)


def test_row_for_a_python_number_on_integers() -> None:
    add, shift = tile_ops.BY_NAME["add"], tile_ops.BY_NAME["left_shift"]
    found = tile_ops.with_number(add, 3, dtype="i32")
    assert found is not None and found[0].name == "add_int_scalar"
    assert tile_ops.with_number(add, 3, dtype="u32") is None  # the API adds numbers to Int32 only
    assert tile_ops.with_number(shift, 3, left=True, dtype="i32") is None
    assert tile_ops.with_number(tile_ops.BY_NAME["atan2"], 3.0) is None


def test_whole_powers_in_the_oldest_release() -> None:
    form = tile_ops.BY_NAME["pow_int"].forms[0]
    assert (form.at("0.62").call, form.at("0.69").call) == ("power_tile", "power_iterative_tile")


def test_encodings() -> None:
    assert encode(1.5, "f32") == 0x3FC00000
    assert encode(3.0, "recip") == 0x3EAAAAAB
    assert encode(0.0, "recip") == 0x7F800000
    assert encode(3, "int") == 3
    assert encode(0.1, "float") == 0.1
    assert template_text("{scale:f32}", {"scale": 0.5}) == "0x3F000000"
    assert template_text("{on}", {"on": True}) == "true"
    assert template_text("DataFormat::{dtype:format}", {"dtype": "bfp8_b"}) == "DataFormat::Bfp8_b"
    assert Param(name="x", default=2.0).sample == 2.0


def test_documentation_is_what_the_table_says() -> None:
    written = Path(__file__).parents[3] / "docs" / "ops.md"
    assert written.read_text(encoding="utf-8") == ops_page.page(), "run python -m tilewright.report.ops_page docs/ops.md"


def test_typecasts_are_either_a_call_or_free() -> None:
    assert not tile_ops.TYPECASTS & tile_ops.FREE_TYPECASTS
    assert ("f32", "bf16") in tile_ops.TYPECASTS and ("bf16", "f32") in tile_ops.FREE_TYPECASTS
    assert ("i32", "f32") in tile_ops.TYPECASTS and ("u8", "i32") not in tile_ops.TYPECASTS
    assert {dtype for pair in tile_ops.TYPECASTS for dtype in pair} <= set(DATA_FORMATS)


@pytest.mark.parametrize(
    ("own", "theirs", "low", "high"),
    [
        (references.erf, special.erf, -6.0, 6.0),
        (references.erfc, special.erfc, -6.0, 6.0),
        (references.erfinv, special.erfinv, -0.9999, 0.9999),
        (references.i0, special.i0, -20.0, 20.0),
        (references.i1, special.i1, -20.0, 20.0),
        (references.digamma, special.digamma, 0.1, 40.0),
        (references.sigmoid, special.expit, -30.0, 30.0),
        (references.gelu, lambda x: x * special.ndtr(x), -8.0, 8.0),
    ],
)
def test_own_functions_agree_with_scipy(own, theirs, low: float, high: float) -> None:
    x = np.linspace(low, high, 1001)
    np.testing.assert_allclose(own(x), theirs(x), rtol=1e-10, atol=1e-14)


def test_logarithms_to_a_base() -> None:
    x = np.linspace(0.1, 8.0, 50)
    np.testing.assert_allclose(tile_ops.BY_NAME["log2"].reference(x), np.log2(x), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(tile_ops.BY_NAME["log10"].reference(x), np.log10(x), rtol=1e-14, atol=1e-15)


def test_special_values_of_own_functions() -> None:
    assert references.erfinv(np.array([1.0, -1.0])).tolist() == [math.inf, -math.inf]
    assert np.isnan(references.erfinv(np.array([1.5, np.nan]))).all()
    assert np.isnan(references.digamma(np.array([0.0, -1.0, -np.inf, np.nan]))).all()
    assert references.i0(np.array([np.inf])) == np.inf
    assert references.i1(np.array([-np.inf])) == -np.inf
    assert references.xlogy(np.array([0.0]), np.array([0.0])) == 0.0
    assert references.trunc_division(np.array([-7, 7]), np.array([2, -2])).tolist() == [-3, -3]


def test_the_table_and_the_passes_load_without_numpy() -> None:
    """Only calling a meaning loads it; a compilation calls none."""
    code = "import sys, tilewright.compiler as _, tilewright.frontend.build; from tilewright.dialects import tile_ops; "
    code += "before = 'numpy' in sys.modules; print(before, *(float(tile_ops.BY_NAME[n].reference(0.5)) for n in ('exp', 'erf')))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert printed[0] == "False"
    np.testing.assert_allclose([float(number) for number in printed[1:]], [math.exp(0.5), math.erf(0.5)])
