"""What is to be done for each pipe asks for it again."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(lhs, out):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, out_cb.reserve() as o:
            o.store(a)

    @ttl.datamovement()
    def read():
        def send(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(lhs[0, 0], blk).wait()
                net.if_src(send)  # error TW005 at `net.if_src(send)`: 'send' calls itself without end

        net.if_src(send)

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0, 0]).wait()


TENSORS = [("lhs", 32, 32), ("out", 32, 32)]
