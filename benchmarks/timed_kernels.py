"""Whole kernels of published measurements, in our language: products by SUMMA, and a pipe between two cores."""

from __future__ import annotations

from typing import Any

from tilewright import ttl


def summa(grid: tuple[int, int], block: tuple[int, int, int], loops: tuple[int, int], steps: int) -> Any:
    """The first core of each row reads blocks of A and sends them along the row; the first of each column does so with B.

    ``block`` is (bm, bn, bk) in tiles, ``loops`` output blocks down and across of each core, ``steps`` blocks along k.
    """
    columns, rows = grid
    bm, bn, bk = block
    down, across = loops

    @ttl.operation(grid=grid, fp32_dest_acc=True)
    def product(a, b, c):
        a_net = ttl.PipeNet([ttl.Pipe(src=(0, row), dst=(slice(1, columns), row)) for row in range(rows)])
        b_net = ttl.PipeNet([ttl.Pipe(src=(column, 0), dst=(column, slice(1, rows))) for column in range(columns)])
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(bm, bk), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(bk, bn), block_count=2)
        c_dfb = ttl.make_dataflow_buffer_like(c, shape=(bm, bn), block_count=2)

        @ttl.compute()
        def compute():
            for _ in range(down):  # loops as those of the other threads, so that all leave out the same turns
                for _ in range(across):
                    with c_dfb.reserve() as c_blk:
                        for _ in range(steps):
                            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                                c_blk += a_blk @ b_blk

        @ttl.datamovement()
        def move_a():
            _, row = ttl.node(dims=2)

            def read_and_send(pipe):
                with a_dfb.reserve() as block:
                    top, left = (row * down + i) * bm, step * bk
                    ttl.copy(a[top : top + bm, left : left + bk], block).wait()
                    ttl.copy(block, pipe).wait()

            def receive(pipe):
                with a_dfb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            for i in range(down):
                for _ in range(across):
                    for step in range(steps):
                        a_net.if_src(read_and_send)
                        a_net.if_dst(receive)

        @ttl.datamovement()
        def move_b_and_c():
            column, row = ttl.node(dims=2)

            def read_and_send(pipe):
                with b_dfb.reserve() as block:
                    top, left = step * bk, (column * across + j) * bn
                    ttl.copy(b[top : top + bk, left : left + bn], block).wait()
                    ttl.copy(block, pipe).wait()

            def receive(pipe):
                with b_dfb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            for i in range(down):
                for j in range(across):
                    for step in range(steps):
                        b_net.if_src(read_and_send)
                        b_net.if_dst(receive)
                    with c_dfb.wait() as block:
                        top, left = (row * down + i) * bm, (column * across + j) * bn
                        ttl.copy(block, c[top : top + bm, left : left + bn]).wait()

    return product


def neighbours(count: int, depth: int = 2) -> Any:
    """Tiles of DRAM, one by one, from core (0, 0) to core (1, 0), with room for ``depth`` of them at both ends."""

    @ttl.operation(grid=(2, 1))
    def send(x, y):
        net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
        own = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=depth)
        got = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=depth)

        @ttl.compute()
        def compute():
            pass

        @ttl.datamovement()
        def move():
            def sends(pipe):
                for tile in range(count):
                    with own.reserve() as block:
                        ttl.copy(x[0:1, tile : tile + 1], block).wait()
                    with own.wait() as block:
                        ttl.copy(block, pipe).wait()

            def receives(pipe):
                for _ in range(count):
                    with got.reserve() as block:
                        ttl.copy(pipe, block).wait()

            net.if_src(sends)
            net.if_dst(receives)

        @ttl.datamovement()
        def write():
            column, _ = ttl.node(dims=2)
            if column == 1:
                for tile in range(count):
                    with got.wait() as block:
                        ttl.copy(block, y[0:1, tile : tile + 1]).wait()

    return send


def k_split(grid: tuple[int, int], groups: int, block: tuple[int, int, int], loops: tuple[int, int], steps: int) -> Any:
    """Two groups of columns each compute a product over their slab of K by SUMMA; the first one adds the other's partial sums.

    ``steps`` blocks of K are in each slab; core ``(c, row)`` of a group works on the same blocks of C in every group.
    """
    columns, rows = grid
    width = columns // groups
    bm, bn, bk = block
    down, across = loops

    @ttl.operation(grid=grid, fp32_dest_acc=True)
    def product(a, b, c):
        starts = [group * width for group in range(groups)]
        a_net = ttl.PipeNet([ttl.Pipe(src=(start, row), dst=(slice(start + 1, start + width), row)) for start in starts for row in range(rows)])
        b_net = ttl.PipeNet([ttl.Pipe(src=(column, 0), dst=(column, slice(1, rows))) for column in range(columns)])
        sums = ttl.PipeNet(
            [ttl.Pipe(src=(start + place, row), dst=(place, row)) for start in starts[1:] for place in range(width) for row in range(rows)]
        )
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(bm, bk), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(bk, bn), block_count=2)
        part_dfb = ttl.make_dataflow_buffer_like(c, shape=(bm, bn), block_count=2)
        got_dfb = ttl.make_dataflow_buffer_like(c, shape=(bm, bn), block_count=2)
        out_dfb = ttl.make_dataflow_buffer_like(c, shape=(bm, bn), block_count=1)

        @ttl.compute()
        def compute():
            column, _ = ttl.node(dims=2)
            for _ in range(down):
                for _ in range(across):
                    with part_dfb.reserve() as part:
                        for _ in range(steps):
                            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                                part += a_blk @ b_blk
                    if column < width:
                        with part_dfb.wait() as own, got_dfb.wait() as other, out_dfb.reserve() as total:
                            total.store(own + other)

        @ttl.datamovement()
        def move_a():
            column, row = ttl.node(dims=2)

            def read_and_send(pipe):
                with a_dfb.reserve() as block:
                    top, left = (row * down + i) * bm, (column // width * steps + step) * bk
                    ttl.copy(a[top : top + bm, left : left + bk], block).wait()
                    ttl.copy(block, pipe).wait()

            def receive(pipe):
                with a_dfb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            def give(pipe):
                with part_dfb.wait() as block:
                    ttl.copy(block, pipe).wait()

            def take(pipe):
                with got_dfb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            for i in range(down):
                for _ in range(across):
                    for step in range(steps):
                        a_net.if_src(read_and_send)
                        a_net.if_dst(receive)
                    sums.if_src(give)
                    sums.if_dst(take)

        @ttl.datamovement()
        def move_b_and_c():
            column, row = ttl.node(dims=2)

            def read_and_send(pipe):
                with b_dfb.reserve() as block:
                    top, left = (column // width * steps + step) * bk, (column % width * across + j) * bn
                    ttl.copy(b[top : top + bk, left : left + bn], block).wait()
                    ttl.copy(block, pipe).wait()

            def receive(pipe):
                with b_dfb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            for i in range(down):
                for j in range(across):
                    for step in range(steps):
                        b_net.if_src(read_and_send)
                        b_net.if_dst(receive)
                    if column < width:
                        with out_dfb.wait() as block:
                            top, left = (row * down + i) * bm, (column % width * across + j) * bn
                            ttl.copy(block, c[top : top + bm, left : left + bn]).wait()

    return product
