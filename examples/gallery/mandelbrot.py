"""The Mandelbrot set: how many steps of ``z = z * z + c`` every point stays inside, for all points of a block at once.

Points that have left are held back by a clamp, so that nothing becomes infinite; they are counted no more.

    tilewright run examples/gallery/mandelbrot.py

Look at the DST chart: real part, imaginary part and count are three values that the loop changes.
"""

import numpy as np

from tilewright import ttl

STEPS = 16


@ttl.operation(grid=(4, 4))
def mandelbrot(re, im, counts):
    column, row = ttl.node(dims=2)
    re_dfb = ttl.make_dataflow_buffer_like(re, shape=(1, 1), block_count=2)
    im_dfb = ttl.make_dataflow_buffer_like(im, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(counts, shape=(1, 1), block_count=2)
    with re_dfb.reserve() as real, im_dfb.reserve() as imaginary:
        ttl.copy(re[row, column], real).wait()
        ttl.copy(im[row, column], imaginary).wait()
    with re_dfb.wait() as real, im_dfb.wait() as imaginary, out_dfb.reserve() as out:
        x, y, count = (ttl.block.fill(0.0, shape=(1, 1)) for _ in range(3))
        for _ in range(STEPS):
            new = x * x - y * y + real
            y = ttl.math.clamp(x * y * 2.0 + imaginary, -100.0, 100.0)
            x = ttl.math.clamp(new, -100.0, 100.0)
            count = count + (x * x + y * y <= 4.0)
        out.store(count)
    with out_dfb.wait() as out:
        ttl.copy(out, counts[row, column]).wait()


def main() -> None:
    re, im = (plane.astype(np.float32) for plane in np.meshgrid(np.linspace(-2, 0.6, 128), np.linspace(-1.3, 1.3, 128)))
    counts = np.zeros_like(re)
    mandelbrot(re, im, counts)

    c, z, exact = re + 1j * im.astype(np.complex128), np.zeros(re.shape, complex), np.zeros(re.shape)
    for _ in range(STEPS):
        z = np.where(np.abs(z) <= 100, z * z + c, z)
        exact += np.abs(z) <= 2
    wrong = (counts != exact).mean()
    print(f"points with another count than in NumPy: {wrong:.2%}")
    for line in counts[8::16, ::3]:
        print("".join(" .:-=+*#%@"[int(count * 9 / STEPS)] for count in line))
    assert wrong < 0.01  # float32 and float64 part at the edge of the set


if __name__ == "__main__":
    main()
