"""Threads take no arguments."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    @ttl.compute()  # error TW004 at `@ttl.compute()`: thread 'compute' takes arguments
    def compute(block):
        pass


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
