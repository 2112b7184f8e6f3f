"""The host part of the kernel fails."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, out):
    depth = lhs.shape[5]  # error TW017 at `depth = lhs.shape[5]`: raised IndexError

    @ttl.compute()
    def compute():
        print(depth)


TENSORS = [("lhs", 64, 64), ("out", 64, 64)]
