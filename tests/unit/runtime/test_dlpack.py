"""bfloat16 bits through DLPack: what a consumer of the capsule sees, and what comes back."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.lang.tensors import from_bits, to_bits
from tilewright.runtime import dlpack

PATTERNS = np.array([0x7FC0, 0xFFC0, 0xFFC1, 0x7F81, 0xFF81, 0x0001, 0x8001, 0x8000, 0x7F80, 0xFF80, 0x3F80, 0xBF81], np.uint16)


def test_every_pattern_comes_back():
    bits = np.arange(65536, dtype=np.uint16).reshape(64, 4, 256)
    array = dlpack.Bfloat16Array(bits)
    assert array.__dlpack_device__() == (1, 0)
    assert np.array_equal(dlpack.bits_of(array), bits)


def test_it_lives_until_it_is_given_back():
    before = set(dlpack.lent)
    array = dlpack.Bfloat16Array(PATTERNS)
    address = dlpack.ctypes.addressof(array.managed)
    capsule = array.__dlpack__()
    del array
    assert set(dlpack.lent) - before == {address}
    dlpack.Managed.from_address(address).deleter(address)
    assert set(dlpack.lent) == before and capsule is not None


def test_strides_are_respected():
    bits = np.arange(12, dtype=np.uint16).reshape(3, 4)
    array = dlpack.Bfloat16Array(bits)
    steps = (dlpack.ctypes.c_int64 * 2)(1, 4)
    sizes = (dlpack.ctypes.c_int64 * 2)(4, 3)
    array.managed.tensor.strides, array.managed.tensor.shape = steps, sizes
    assert np.array_equal(dlpack.bits_of(array), bits.T)


def test_rounding_agrees_with_ml_dtypes_and_keeps_nans():
    words = np.random.default_rng(0).integers(0, 1 << 32, 100000, dtype=np.uint32)
    values = words.view(np.float32)
    found, nan = dlpack.rounded_bits(values), np.isnan(values)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(found[~nan], values[~nan].astype(ml_dtypes.bfloat16).view(np.uint16))
    assert np.isnan(dlpack.widened(found[nan])).all() and ((found[nan] >> 15) == (words[nan] >> 31)).all()
    assert np.array_equal(dlpack.rounded_bits(PATTERNS.view(ml_dtypes.bfloat16)), PATTERNS)


def test_bits_of_tensors_keep_nans():
    array = np.resize(PATTERNS, (32, 32)).view(ml_dtypes.bfloat16)
    bits = to_bits(array)
    assert np.array_equal(bits, np.resize(PATTERNS, (32, 32)))
    other = np.zeros((32, 32), ml_dtypes.bfloat16)
    from_bits(other, bits)
    assert other.tobytes() == array.tobytes()
