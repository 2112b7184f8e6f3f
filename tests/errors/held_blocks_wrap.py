"""Groups of three blocks in a ring of four: the second group would pass its end, and L1 has no room for a deeper ring."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(8, 10), block_count=4)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(3):
            first = a_cb.wait()
            second = a_cb.wait()  # error TW307 at `a_cb.wait()`: the 2 blocks of 'a_cb' held here would pass the end
            third = a_cb.wait()
            with out_cb.reserve() as o:
                o.store(ttl.math.reduce_max(first + second * third, dims=[0, 1]))
            first.pop()
            second.pop()
            third.pop()

    @ttl.datamovement()
    def read():
        for i in range(9):
            with a_cb.reserve() as block:
                ttl.copy(a[8 * i : 8 * i + 8, 0:10], block).wait()

    @ttl.datamovement()
    def write():
        for i in range(3):
            with out_cb.wait() as block:
                ttl.copy(block, out[i, 0]).wait()


TENSORS = [("a", 2304, 320, "f32"), ("out", 96, 32, "f32")]
