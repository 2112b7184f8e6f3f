"""A kernel without threads does nothing."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))  # error TW010 at `@ttl.operation(grid=(1, 1))`: has no threads
def kernel(lhs, out):
    ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))


TENSORS = [("lhs", 64, 64), ("out", 64, 64)]
