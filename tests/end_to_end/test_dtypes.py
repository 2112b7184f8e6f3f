"""Several dtypes in one kernel, integers, and every typecast: DST's width, formats and conversions follow, and the numbers are right."""

from __future__ import annotations

import re

import numpy as np
import pytest

import op_kernels
from tilewright.diagnostics import KernelError
from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import INTEGER_DTYPES
from tilewright.native import driver
from tilewright.program import TensorSpec
from tilewright.sim.run import simulate

PAIRS = sorted(pair for pair in tile_ops.TYPECASTS | tile_ops.FREE_TYPECASTS if set(pair) <= set(op_kernels.HOST))
WHOLE = (*INTEGER_DTYPES, "u8")
TILES = (64, 64)


class Mixed:
    """A kernel whose tensors have their own dtypes, compiled, simulated and run natively; both must agree on every bit."""

    def __init__(self, kernels, outputs, inputs, results, **options):
        self.options = {"block": (2, 2), **{key: options.pop(key) for key in ("lets", "block") if key in options}}
        source = kernels.text.elementwise(outputs, tuple(inputs), **self.options)
        shapes = {**{name: (dtype, array.shape) for name, (dtype, array) in inputs.items()}, **{n: (d, TILES) for n, d in results.items()}}
        specs = [TensorSpec(name=name, shape=shape, dtype=dtype) for name, (dtype, shape) in shapes.items()]
        self.program = kernels.compile(source, *specs, **options)
        arrays = [array for _, array in inputs.values()]
        simulated, native = ([np.zeros(TILES, op_kernels.HOST[dtype]) for dtype in results.values()] for _ in range(2))
        simulate(self.program, [*arrays, *simulated])
        driver.run(self.program, [*arrays, *native])
        for name, one, other in zip(results, simulated, native, strict=True):
            assert np.array_equal(one.view(np.uint8), other.view(np.uint8)), f"native and simulator differ in {name}"
        self.results = dict(zip(results, simulated, strict=True))
        self.cpp = self.program.cpp["compute"]


def floats(dtype, seed, low=-4.0, high=4.0):
    return dtype, op_kernels.stored(np.random.default_rng(seed).uniform(low, high, TILES), dtype)


def integers(dtype, seed, low=0, high=1000):
    return dtype, np.random.default_rng(seed).integers(low, high, TILES).astype(op_kernels.HOST[dtype])


def values(array):
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


# Typecasts -------------------------------------------------------------------------------------------------------------


def converted(array, source, target):
    """What each conversion gives: floats to 32-bit integers cut, to u16 round; all clamp but u8, which wraps; to bf16 they round."""
    numbers = values(array)
    if target == "u8":
        return np.trunc(numbers).astype(np.int64) % 256
    if target in WHOLE:
        low, high = op_kernels.LIMITS[target]
        if source not in WHOLE:
            numbers = np.floor(numbers + 0.5) if target == "u16" else np.trunc(numbers)
        return np.clip(numbers, low, high - 1).astype(np.int64)
    return numbers.astype(np.float64)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{source}-{target}" for source, target in PAIRS])
def test_typecast(kernels, source, target):
    low, high = op_kernels.LIMITS.get(source, (0, 0))
    given = integers(source, 3, max(low, -300), min(high, 70000)) if source in WHOLE else (
        floats(source, 3, -300.0, 300.0)
    )  # fmt: skip
    kernel = Mixed(kernels, {"out": f"ttl.math.typecast(a, '{target}')"}, {"a": given}, {"out": target})
    wanted = converted(given[1], source, target)
    found = values(kernel.results["out"])
    if target in WHOLE or target == "f32":
        assert np.array_equal(found, wanted)
    else:
        rounding = op_kernels.step(wanted) / 2
        if target in op_kernels.BLOCK_FLOATS:
            largest = np.abs(wanted).reshape(-1, 16).max(axis=1).repeat(16).reshape(TILES)
            quantum = np.ldexp(1.0, np.frexp(largest * 1.01)[1] - 7)
            rounding = op_kernels.step(wanted) * 1.5 + quantum / 2 + (16 * quantum if target == "bfp4_b" else 0)
        assert (np.abs(found - wanted) <= rounding).all()
    assert ("typecast_tile<" in kernel.cpp) == ((source, target) in tile_ops.TYPECASTS), "free conversions need no call"
    wide = {source, target} & {"f32", "i32", "u32", "u8"}
    assert kernel.program.config.fp32_dest_acc_en == bool(wide)


def test_typecast_in_the_middle_decides_the_width_of_dst(kernels):
    """All buffers are bf16, but the expression is computed in f32: expm1 by hand loses nothing in between."""
    a = floats("bf16", 4, 0.01, 0.02)
    text = "ttl.math.typecast(ttl.math.exp(ttl.math.typecast(a, 'f32')) - 1.0, 'bf16')"
    kernel = Mixed(kernels, {"out": text, "narrow": "ttl.math.exp(a) - 1.0"}, {"a": a}, {"out": "bf16", "narrow": "bf16"})
    assert kernel.program.config.fp32_dest_acc_en
    exact = np.expm1(values(a[1]))
    assert (np.abs(values(kernel.results["out"]) - exact) / op_kernels.step(exact)).max() < 1.0
    narrow = Mixed(kernels, {"out": "ttl.math.exp(a) - 1.0"}, {"a": a}, {"out": "bf16"})
    assert not narrow.program.config.fp32_dest_acc_en
    assert (np.abs(values(narrow.results["out"]) - exact) / op_kernels.step(exact)).max() > 10.0, "16-bit DST would not do"


def test_integers_between_floats(kernels):
    """bf16 buffers, whole-number arithmetic inside: DST must be 32 bits wide."""
    a = floats("bf16", 5, 0.0, 100.0)
    text = "ttl.math.typecast((ttl.math.typecast(a, 'i32') // 7) * 7 + 3, 'bf16')"
    kernel = Mixed(kernels, {"out": text}, {"a": a}, {"out": "bf16"})
    assert kernel.program.config.fp32_dest_acc_en
    assert np.array_equal(values(kernel.results["out"]), np.trunc(values(a[1])) // 7 * 7 + 3)
    assert "div_int32_floor_tile" in kernel.cpp and "fill_tile_int<DataFormat::Int32>" in kernel.cpp


def test_rounding_typecast_inside(kernels):
    """f32 to bf16 and back in one expression leaves eight bits."""
    a = floats("f32", 6)
    kernel = Mixed(kernels, {"out": "a - ttl.math.typecast(ttl.math.typecast(a, 'bf16'), 'f32')"}, {"a": a}, {"out": "f32"})
    assert np.array_equal(kernel.results["out"], a[1] - op_kernels.stored(a[1], "bf16").astype(np.float32))


# Mixed formats ---------------------------------------------------------------------------------------------------------


def test_three_float_formats(kernels):
    """Inputs and outputs of three formats, one region each way: every change of format has its call."""
    inputs = {"a": floats("bf16", 1), "b": floats("f32", 2), "c": floats("bfp8_b", 3)}
    wide = "ttl.math.typecast(a, 'f32') * b + ttl.math.typecast(c, 'f32')"
    outputs = {"exact": wide, "half": f"ttl.math.typecast({wide}, 'bf16')", "blocked": f"ttl.math.typecast({wide}, 'bfp8_b')"}
    kernel = Mixed(kernels, outputs, inputs, {"exact": "f32", "half": "bf16", "blocked": "bfp8_b"})
    a, b, c = (values(array) for _, array in inputs.values())
    wanted = a * b + c
    magnitude = np.abs(a * b) + np.abs(c)
    assert (np.abs(values(kernel.results["exact"]) - wanted) <= magnitude * 2.0**-22).all()
    assert (np.abs(values(kernel.results["half"]) - wanted) <= op_kernels.step(wanted) / 2 + magnitude * 2.0**-22).all()
    largest = np.abs(wanted).reshape(-1, 16).max(axis=1).repeat(16).reshape(TILES)
    quantum = np.ldexp(1.0, np.frexp(largest * 1.01)[1] - 7)
    assert (np.abs(values(kernel.results["blocked"]) - wanted) <= quantum / 2 + 1.5 * op_kernels.step(wanted)).all()
    assert len(re.findall(r"\breconfig_data_format_srca\(", kernel.cpp)) >= 2, "the unpacker changes format between the inputs"
    assert len(re.findall(r"\bpack_reconfig_data_format\(", kernel.cpp)) >= 2, "the packer changes format between the outputs"


def test_one_format_needs_no_reconfiguration(kernels):
    inputs = {"a": floats("bf16", 1), "b": floats("bf16", 2)}
    kernel = Mixed(kernels, {"out": "ttl.math.exp(a) * b"}, inputs, {"out": "bf16"})
    assert "reconfig_data_format" not in kernel.cpp


def test_bfp8_on_the_matrix_unit_beside_f32(kernels):
    """bfp8_b operands use the matrix unit; the f32 expression of the same kernel stays off it."""
    inputs = {"p": floats("bfp8_b", 4), "q": floats("bfp8_b", 5), "x": floats("f32", 6), "y": floats("f32", 7)}
    outputs = {"blocked": "p + q", "exact": "x * y"}
    kernel = Mixed(kernels, outputs, inputs, {"blocked": "bfp8_b", "exact": "f32"})
    p, q, x, y = (values(array) for _, array in inputs.values())
    assert (np.abs(values(kernel.results["exact"]) - x * y) <= np.abs(x * y) * 2.0**-23).all()
    assert (np.abs(values(kernel.results["blocked"]) - (p + q)) <= 2.0**-3).all()
    assert "add_tiles(p_buffer, q_buffer" in kernel.cpp and "mul_binary_tile(" in kernel.cpp


@pytest.mark.parametrize("source", ["bf16", "bfp8_b"])
def test_matmul_of_one_format_stored_in_another(kernels, source):
    inputs = {"a": floats(source, 1), "b": floats(source, 2)}
    kernel = Mixed(kernels, {"out": "ttl.math.typecast(a @ b, 'f32')"}, inputs, {"out": "f32"})
    a, b = (values(array) for _, array in inputs.values())
    assert (np.abs(values(kernel.results["out"]) - a @ b) <= np.abs(a) @ np.abs(b) * 2.0**-8).all()


# Integers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_integer_kernel(kernels, dtype):
    """Sums, products, comparisons, bits and shifts in one kernel; wrap-around included."""
    low, high = op_kernels.LIMITS[dtype]
    inputs = {"a": integers(dtype, 1, low, high), "b": integers(dtype, 2, max(low, -50), 50)}
    outputs = {
        "total": "a + b * 3 - 1", "less": "a < b", "bits": "(a & 255) | (b ^ a)", "shifted": "(a << 2) + (a >> 3)",
        "chosen": "ttl.math.where(a > b, a, 7)", "nothing": "ttl.math.logical_not(b) + (a != a)",
    }  # fmt: skip
    if dtype not in tile_ops.BY_NAME["where"].dtypes:
        del outputs["chosen"]
    kernel = Mixed(kernels, outputs, inputs, dict.fromkeys(outputs, dtype))
    a, b = (array.astype(np.int64) for _, array in inputs.values())
    wanted = {
        "total": a + b * 3 - 1, "less": a < b, "bits": (a & 255) | (b ^ a),
        "shifted": (((a << 2) & (2 * high - 1 if low else high - 1)) + (a >> 3)), "chosen": np.where(a > b, a, 7), "nothing": b == 0,
    }  # fmt: skip
    for name in outputs:
        assert np.array_equal(kernel.results[name], wanted[name].astype(np.int64).astype(op_kernels.HOST[dtype])), name
    word = {"i32": "Int32", "u32": "UInt32", "u16": "UInt16"}[dtype]
    assert f"add_int_tile<DataFormat::{word}>" in kernel.cpp and "DataFormat::Float" not in kernel.cpp
    assert kernel.program.config.fp32_dest_acc_en == (dtype != "u16")


def test_integer_division_and_powers(kernels):
    inputs = {"a": integers("i32", 1, -1000, 1000), "b": integers("i32", 2, 1, 40)}
    outputs = {"floor": "a // b", "rest": "a % b", "cube": "b ** 3", "sign": "-abs(a)", "small": "ttl.math.clamp(a, -5, 7)"}
    kernel = Mixed(kernels, outputs, inputs, dict.fromkeys(outputs, "i32"))
    a, b = (array.astype(np.int64) for _, array in inputs.values())
    wanted = {"floor": a // b, "rest": a % b, "cube": b**3, "sign": -abs(a), "small": np.clip(a, -5, 7)}
    for name, expected in wanted.items():
        assert np.array_equal(kernel.results[name], expected), name


def test_copy_of_an_integer_keeps_its_bits(kernels):
    """An integer is a denormal to a float copy: the copy between slots must be told."""
    inputs = {"a": integers("i32", 1), "b": integers("i32", 2)}
    lets = [("s", "(a + b) * b")]
    outputs = {"low": "-s", "high": "s + 1", "same": "s ^ b"}
    kernel = Mixed(kernels, outputs, inputs, dict.fromkeys(outputs, "i32"), lets=lets)
    a, b = (array.astype(np.int64) for _, array in inputs.values())
    s = (a + b) * b
    for name, expected in {"low": -s, "high": s + 1, "same": s ^ b}.items():
        assert np.array_equal(kernel.results[name], expected), name
    for word in re.findall(r"copy_dest_values<(.*?)>", kernel.cpp):
        assert word == "DataFormat::Int32"


def test_integers_need_a_wide_dst(kernels):
    source = kernels.text.elementwise({"out": "a + b"}, "ab")
    specs = [TensorSpec(name=name, shape=(32, 32), dtype="i32") for name in ("a", "b", "out")]
    with pytest.raises(KernelError) as caught:
        kernels.compile(source, *specs, fp32_dest_acc=False)
    first = caught.value.diagnostics[0]
    assert first.code == "TW107" and "16-bit DST" in first.message and first.span is not None and first.help


MATRIX_PAIRS = [
    ("bf16", "bfp8_b"), ("bfp8_b", "bf16"), ("f32", "bf16"), ("bf16", "f32"), ("f32", "bfp8_b"), ("bfp8_b", "bfp8_b"),
    ("bf16", "bfp4_b"), ("bfp4_b", "bfp8_b"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), MATRIX_PAIRS, ids=[f"{left} @ {right}" for left, right in MATRIX_PAIRS])
def test_matmul_of_two_formats(kernels, left, right):
    """Each source register has its own format; the product has the finer one. Two products in a row change the formats back."""
    inputs = {"a": floats(left, 1), "b": floats(right, 2)}
    wide = next(dtype for dtype in ("f32", "bf16", "bfp8_b") if dtype in (left, right))
    outputs = {"product": "a @ b", "turned": "b @ a"}
    kernel = Mixed(kernels, outputs, inputs, dict.fromkeys(outputs, wide))
    a, b = (values(array) for _, array in inputs.values())
    # bf16 and bfp8_b results round once; f32 operands are cut to 11 bits on their way to the matrix unit.
    allowed = {"f32": 2.0**-10, "bf16": 2.0**-8, "bfp8_b": 2.0**-6}[wide]
    for name, wanted in (("product", a @ b), ("turned", b @ a)):
        assert np.max(np.abs(values(kernel.results[name]) - wanted)) <= allowed * np.max(np.abs(wanted)), name
    if left != right:
        assert len(re.findall(r"\breconfig_data_format(_srca|_srcb)?\(", kernel.cpp)) >= 1


def test_bytes_between_floats(kernels):
    """u8 in, whole numbers inside, u8 out; DST is 32 bits wide and bytes do not go straight to it."""
    a, b = integers("u8", 11, 0, 256), floats("bf16", 12, 0.0, 3.0)
    outputs = {
        "scaled": "ttl.math.typecast(ttl.math.typecast(a, 'f32') * ttl.math.typecast(b, 'f32'), 'u8')",
        "same": "a",
        "wide": "ttl.math.typecast(a, 'u16') + 300",
    }
    kernel = Mixed(kernels, outputs, {"a": a, "b": b}, {"scaled": "u8", "same": "u8", "wide": "u16"})
    assert kernel.program.config.fp32_dest_acc_en and not kernel.program.config.unpack_to_dest
    assert np.array_equal(kernel.results["same"], a[1])
    assert np.array_equal(values(kernel.results["wide"]), values(a[1]) + 300)
    assert np.array_equal(values(kernel.results["scaled"]), np.trunc(values(a[1]) * values(b[1])).astype(np.int64) % 256)


def test_arithmetic_on_bytes_is_refused(kernels):
    with pytest.raises(KernelError, match="u8") as error:
        Mixed(kernels, {"out": "a + a"}, {"a": integers("u8", 1, 0, 256)}, {"out": "u8"})
    assert "typecast" in str(error.value)


def test_weights_in_bfp4(kernels):
    """bf16 activations times bfp4_b weights, the product in bf16: both are exact operands of the matrix unit."""
    a, w = floats("bf16", 13), floats("bfp4_b", 14)
    wide = "ttl.math.typecast(w, 'bf16')"
    kernel = Mixed(kernels, {"out": f"a * {wide}", "total": f"a + {wide}"}, {"a": a, "w": w}, {"out": "bf16", "total": "bf16"})
    for name, exact in (("out", values(a[1]) * values(w[1])), ("total", values(a[1]) + values(w[1]))):
        assert (np.abs(values(kernel.results[name]) - exact) <= 1.5 * op_kernels.step(exact) + 2.0**-8).all(), name


@pytest.mark.parametrize(
    ("dtype", "want"),
    [("i32", [1, 0, 2, 300, -1]), ("u32", [1, 0, 2, 300, 0]), ("u16", [2, 1, 3, 301, 0]), ("u8", [1, 0, 2, 44, 255])],
)
def test_fractions_are_cut_off_except_in_u16(kernels, dtype, want):
    """What the notes of typecast say: the chip's conversion to u16 rounds."""
    text = f"""
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, y):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=1)
    whole_buffer = ttl.make_dfb("{dtype}", shape=(1, 1), block_count=1)
    y_buffer = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with x_buffer.wait() as block, whole_buffer.reserve() as whole:
            whole.store(ttl.math.typecast(block, "{dtype}"))
        with whole_buffer.wait() as whole, y_buffer.reserve() as out:
            out.store(ttl.math.typecast(whole, "f32"))

    @ttl.datamovement()
    def read():
        with x_buffer.reserve() as block:
            ttl.copy(x[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with y_buffer.wait() as block:
            ttl.copy(block, y[0, 0]).wait()
"""
    x, y = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    x[0, :5] = 1.7, 0.5, 2.5, 300.5, -1.7
    kernels.run(text, x, y)
    assert y[0, :5].tolist() == want


STAGED = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, y):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2))
    staged_dfb = ttl.make_dfb("{dtype}", shape=(1, 2))

    @ttl.compute()
    def compute():
        with x_dfb.wait() as block, staged_dfb.reserve() as staged:
            staged.store(ttl.math.exp(block))
        with staged_dfb.wait() as staged, y_dfb.reserve() as result:
            result.store(staged * 1.0)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as block:
            ttl.copy(x[0, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0, 0:2]).wait()
"""


@pytest.mark.parametrize(("dtype", "bits"), [("bfp8_b", 7), ("bfp4_b", 3)])
def test_a_buffer_of_block_floats_rounds_what_the_same_thread_reads_back(kernels, dtype, bits):
    x = np.random.default_rng(15).uniform(-1, 1, (32, 64)).astype(np.float32)
    y = np.zeros_like(x)
    kernels.run_everywhere(STAGED.format(dtype=dtype), x, y)
    rows = y.astype(np.float64).reshape(32, 4, 16)  # 16 elements beside each other share the exponent of the largest
    largest = np.exp(x.astype(np.float64)).reshape(32, 4, 16).max(axis=2, keepdims=True)
    step = 2.0 ** (np.floor(np.log2(largest)) + 1 - bits)
    assert np.array_equal(rows / step, np.round(rows / step))
    assert np.abs(rows - np.exp(x.astype(np.float64)).reshape(rows.shape)).max() <= step.max()
