"""One body for all threads: a block that is filled by a copy cannot be stored to as well."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    with a_cb.reserve() as filled:
        ttl.copy(lhs[0:2, 0:2], filled).wait()
    with a_cb.wait() as a, out_cb.reserve() as result:
        result.store(a * 2.0)
    with out_cb.wait() as result_out:
        ttl.copy(result_out + 1, out[0:2, 0:2])  # error TW018 at `ttl.copy(result_out + 1, out[0:2, 0:2])`: belongs to two threads


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
