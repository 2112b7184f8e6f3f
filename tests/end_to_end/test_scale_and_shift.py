"""``x + y * broadcast(v)``: the matrix unit repeats v as it reads it and adds the product onto x, in one call."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import block_kernels

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
BCAST = "ttl.math.broadcast({name}, dims={dims}, shape=(2, 3))"
SHAPES = {(0,): (1, 3), (1,): (2, 1), (0, 1): (1, 1)}
ADDENDS = {"a broadcast": "{b}", "a block": "x", "another block": "z", "computed": "ttl.math.abs(z)"}


def first(array, dims):
    """What a broadcast over ``dims`` repeats: the first row, column or element of the block."""
    return array[tuple(slice(0, 1) if dim in dims else slice(None) for dim in (0, 1))]


def run(kernels, dims, addend, dtype, *, flipped=False, **options):
    names = {"x": (2, 3), "z": (2, 3), "g": SHAPES[dims], "b": SHAPES[dims]}
    g, b = (BCAST.format(name=name, dims=list(dims)) for name in "gb")
    terms = [f"x * {g}", ADDENDS[addend].format(b=b)]
    body = f"o0.store({' + '.join(terms[::-1] if flipped else terms)})"
    inputs = {name: shape for name, shape in names.items() if re.search(rf"\b{name}\b", body)}
    rng = np.random.default_rng(21)
    arrays = {name: rng.uniform(-2.0, 2.0, (32 * r, 32 * c)).astype(DTYPES[dtype]) for name, (r, c) in inputs.items()}
    out = np.zeros((64, 96), DTYPES[dtype])
    program = kernels.run(block_kernels.single_block(inputs, [(2, 3)], body), *arrays.values(), out, **options)
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    added = {"a broadcast": lambda: first(wide["b"], dims), "a block": lambda: wide["x"], "another block": lambda: wide["z"],
             "computed": lambda: np.abs(wide["z"])}[addend]()  # fmt: skip
    return program.cpp["compute"], out.astype(np.float64), wide["x"] * first(wide["g"], dims) + added


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("addend", ADDENDS)
@pytest.mark.parametrize("dims", SHAPES, ids=str)
def test_one_call_multiplies_and_adds(kernels, dims, addend, flipped):
    text, found, wanted = run(kernels, dims, addend, "bf16", flipped=flipped)
    assert re.search(r"mul_tiles_bcast_(rows|cols|scalar)\(.*accumulates", text)
    assert "add_binary_tile" not in text and "binary_dest_reuse" not in text
    # Three passes are rounded to 8 bits each, and what they add to 11 bits of the larger of product and sum.
    assert np.max(np.abs(found - wanted)) <= 4 * 2.0**-9 * 8.0


@pytest.mark.parametrize(
    "dtype, options",
    [("f32", {}), ("f32", {"allow_tf32": True}), ("bf16", {"fp32_dest_acc": True}), ("bf16", {"full_sync": True})],
)
@pytest.mark.parametrize("dims", SHAPES, ids=str)
def test_other_widths_are_right(kernels, dims, dtype, options):
    _, found, wanted = run(kernels, dims, "a broadcast", dtype, **options)
    allowed = 2.0**-20 if dtype == "f32" and not options else 4 * 2.0**-9 * 8.0
    assert np.max(np.abs(found - wanted)) <= allowed


def test_a_product_that_others_read_stays(kernels):
    """Its value is stored too: it cannot disappear into the sum."""
    source = block_kernels.single_block(
        {"x": (1, 2), "g": (1, 2), "z": (1, 2)}, [(1, 2), (1, 2)],
        "p = x * ttl.math.broadcast(g, dims=[0], shape=(1, 2))\no0.store(p)\no1.store(p + z)",
    )  # fmt: skip
    rng = np.random.default_rng(2)
    x, g, z = (rng.uniform(-2.0, 2.0, (32, 64)).astype(ml_dtypes.bfloat16) for _ in range(3))
    product, total = np.zeros_like(x), np.zeros_like(x)
    kernels.run(source, x, g, z, product, total)
    wanted = x.astype(np.float64) * g.astype(np.float64)[:1]
    assert np.max(np.abs(product.astype(np.float64) - wanted)) <= 3 * 2.0**-9 * 4.0
    assert np.max(np.abs(total.astype(np.float64) - (wanted + z.astype(np.float64)))) <= 4 * 2.0**-9 * 8.0


CHAINS = {
    "scaled twice, then shifted": ("d * {r1} * {g0} + {b0}", lambda d, r, g, b: d * r * g + b),
    "shifted between": ("(d + {r1}) * {g0} + d", lambda d, r, g, b: (d + r) * g + d),
    "by rows, then by columns": ("(d * {g0} + {b0}) * {r1} + d * {r1}", lambda d, r, g, b: (d * g + b) * r + d * r),
    "functions between": ("ttl.math.abs(d * {r1}) * {g0} + {b0}", lambda d, r, g, b: np.abs(d * r) * g + b),
}


@pytest.mark.parametrize("rows, columns", [(2, 3), (4, 4), (1, 8), (8, 1), (5, 3)])
@pytest.mark.parametrize("name", CHAINS)
def test_chains_may_travel(kernels, name, rows, columns):
    """What is multiplied again may go through a buffer, where the matrix unit reads it: any shape, simulated and native."""
    text, reference = CHAINS[name]
    spread = {
        f"{vector}{dim}": f"ttl.math.broadcast({vector}, dims=[{dim}], shape=({rows}, {columns}))"
        for vector, dim in ("r1", "g0", "b0")
    }
    body = f"o0.store({text.format(**spread)})"
    shapes = {"d": (rows, columns), "r": (rows, 1), "g": (1, columns), "b": (1, columns)}
    inputs = {vector: shape for vector, shape in shapes.items() if re.search(rf"\b{vector}\b", body)}
    rng = np.random.default_rng(33)
    arrays = {vector: rng.uniform(-2.0, 2.0, (32 * r, 32 * c)).astype(ml_dtypes.bfloat16) for vector, (r, c) in inputs.items()}
    out = np.zeros((32 * rows, 32 * columns), ml_dtypes.bfloat16)
    kernels.run(block_kernels.single_block(inputs, [(rows, columns)], body), *arrays.values(), out, precision="fast")
    wide = {vector: arrays[vector].astype(np.float64) if vector in arrays else np.zeros((1, 1)) for vector in shapes}
    wanted = reference(wide["d"], wide["r"][:, :1], wide["g"][:1], wide["b"][:1])
    assert np.max(np.abs(out.astype(np.float64) - wanted)) <= 8 * 2.0**-9 * 16.0
