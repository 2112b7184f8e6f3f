"""Fast Fourier transforms of eight points, 1024 signals at a time: three rounds of butterflies, written with Python's lists.

A tile holds one sample of 1024 signals, so a butterfly is plain arithmetic on tiles. The lists exist while the kernel is
compiled; what is left of them is which value goes where.

    tilewright run examples/gallery/fft.py

Look at `explain`: factors that are 1 or -i cost nothing, and results that share values share a region.
"""

import cmath

import numpy as np

from tilewright import ttl

POINTS = 8


def butterfly(a, b, turn):
    """``a + turn * b`` and ``a - turn * b``; numbers are pairs."""
    (ar, ai), (br, bi) = a, b
    if abs(turn - 1) < 1e-9:
        cr, ci = br, bi
    elif abs(turn + 1j) < 1e-9:
        cr, ci = bi, -br
    else:
        cr, ci = br * turn.real - bi * turn.imag, br * turn.imag + bi * turn.real
    return (ar + cr, ai + ci), (ar - cr, ai - ci)


def transformed(values):
    if len(values) == 1:
        return values
    even, odd = transformed(values[0::2]), transformed(values[1::2])
    turns = [cmath.exp(-2j * cmath.pi * i / len(values)) for i in range(len(even))]
    pairs = [butterfly(a, b, turn) for a, b, turn in zip(even, odd, turns, strict=True)]
    return [first for first, _ in pairs] + [second for _, second in pairs]


@ttl.operation(grid=(4, 1))
def fft(re, im, out_re, out_im):
    signal = ttl.node(dims=1)
    shape = (POINTS, 1)
    re_dfb = ttl.make_dataflow_buffer_like(re, shape=shape, block_count=2)
    im_dfb = ttl.make_dataflow_buffer_like(im, shape=shape, block_count=2)
    out_re_dfb = ttl.make_dataflow_buffer_like(out_re, shape=shape, block_count=2)
    out_im_dfb = ttl.make_dataflow_buffer_like(out_im, shape=shape, block_count=2)
    with re_dfb.reserve() as real, im_dfb.reserve() as imaginary:
        ttl.copy(re[:, signal], real).wait()
        ttl.copy(im[:, signal], imaginary).wait()
    with re_dfb.wait() as real, im_dfb.wait() as imaginary, out_re_dfb.reserve() as x, out_im_dfb.reserve() as y:
        found = transformed([(real[i, 0], imaginary[i, 0]) for i in range(POINTS)])
        for i in range(POINTS):
            x[i, 0].store(found[i][0])
            y[i, 0].store(found[i][1])
    with out_re_dfb.wait() as x, out_im_dfb.wait() as y:
        ttl.copy(x, out_re[:, signal]).wait()
        ttl.copy(y, out_im[:, signal]).wait()


def main() -> None:
    random = np.random.default_rng(20)
    re, im = (random.normal(0, 1, (POINTS * 32, 128)).astype(np.float32) for _ in range(2))
    out_re, out_im = np.zeros_like(re), np.zeros_like(im)
    fft(re, im, out_re, out_im)

    samples = (re + 1j * im.astype(np.float64)).reshape(POINTS, 32, 128)
    exact = np.fft.fft(samples, axis=0).reshape(re.shape)
    error = np.abs(out_re + 1j * out_im - exact).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 1e-4


if __name__ == "__main__":
    main()
