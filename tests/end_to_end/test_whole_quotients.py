"""``a // b`` and other cuts to whole numbers of what was computed: 41 // 41 is 1 in bf16 too."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_exact_multiples(kernels, dtype):
    divisor = np.arange(1, 129, dtype=np.float64)[:, None] * np.ones((1, 64))
    product = divisor * np.arange(64)
    a, b = product.astype(dtype), divisor.astype(dtype)
    representable = a.astype(np.float64) == product
    assert representable.sum() > 3000
    out = np.zeros(a.shape, dtype)
    kernels.run_everywhere(kernels.text.elementwise({"out": "a // b"}, "ab", block=(2, 2), blocks=(2, 1)), a, b, out)
    assert np.array_equal(out[representable].astype(np.float64), (product / divisor)[representable])


@pytest.mark.parametrize(
    ("expression", "wide"),
    [
        ("ttl.math.floor(a / b)", True),
        ("ttl.math.round(a * b)", True),
        ("ttl.math.floor(a) + b", False),
        ("ttl.math.trunc(ttl.math.abs(a)) + b", False),
    ],
)
def test_only_computed_values_need_a_wide_dst(kernels, make_array, expression, wide):
    text = kernels.text.elementwise({"out": expression}, "ab", block=(2, 2))
    program = kernels.compile(text, *[make_array((2, 2), "bf16") for _ in range(3)])
    assert program.config.fp32_dest_acc_en is wide
