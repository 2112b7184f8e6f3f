"""A core has one compute thread."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, out):
    @ttl.compute()
    def first():
        pass

    @ttl.compute()  # error TW010 at `@ttl.compute()`: has 2 compute threads
    def second():
        pass


TENSORS = [("lhs", 64, 64), ("out", 64, 64)]
