"""Fragments that loops change: sums and others, in one piece of code or in several, one behind the other or replacing each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import execution, tilelang
from tilewright.program import Program

T = tilelang.language


@T.prim_func
def two_sums(A: T.Tensor((32, 128), "float32"), C: T.Tensor((32, 32), "float32"), D: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((32, 32), "float32")
        total = T.alloc_fragment((32, 32), "float32")
        squares = T.alloc_fragment((32, 32), "float32")
        T.clear(total)
        T.clear(squares)
        for k in T.serial(4):
            T.copy(A[0, k * 32], x)
            for i, j in T.Parallel(32, 32):
                total[i, j] += x[i, j]
                squares[i, j] += x[i, j] * x[i, j]
        T.copy(total, C)
        T.copy(squares, D)


@T.prim_func
def change_places(A: T.Tensor((32, 128), "float32"), C: T.Tensor((32, 32), "float32"), D: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((32, 32), "float32")
        p = T.alloc_fragment((32, 32), "float32")
        q = T.alloc_fragment((32, 32), "float32")
        old = T.alloc_fragment((32, 32), "float32")
        T.fill(p, 1.0)
        T.fill(q, 2.0)
        for k in T.serial(4):
            T.copy(A[0, k * 32], x)
            T.copy(p, old)
            T.copy(q, p)
            for i, j in T.Parallel(32, 32):
                q[i, j] = old[i, j] * 0.5 + x[i, j]
        T.copy(p, C)
        T.copy(q, D)


@T.prim_func
def one_loop_after_the_other(A: T.Tensor((32, 128), "float32"), C: T.Tensor((32, 32), "float32"), D: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((32, 32), "float32")
        total = T.alloc_fragment((32, 32), "float32")
        T.clear(total)
        for k in T.serial(4):
            T.copy(A[0, k * 32], x)
            for i, j in T.Parallel(32, 32):
                total[i, j] += x[i, j]
        T.copy(total, C)
        for k in T.serial(4):
            T.copy(A[0, k * 32], x)
            for i, j in T.Parallel(32, 32):
                total[i, j] = T.max(total[i, j] * 0.5, x[i, j])
        T.copy(total, D)


@T.prim_func
def in_a_branch(A: T.Tensor((32, 128), "float32"), C: T.Tensor((32, 32), "float32"), D: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((32, 32), "float32")
        total = T.alloc_fragment((32, 32), "float32")
        both = T.alloc_fragment((32, 32), "float32")
        T.clear(total)
        T.clear(both)
        for k in T.serial(4):
            T.copy(A[0, k * 32], x)
            if k > 1:
                for i, j in T.Parallel(32, 32):
                    total[i, j] += x[i, j]
                    both[i, j] += x[i, j]
            else:
                for i, j in T.Parallel(32, 32):
                    both[i, j] -= x[i, j] * 2.0
        T.copy(total, C)
        T.copy(both, D)


@T.prim_func
def in_an_inner_loop(A: T.Tensor((32, 128), "float32"), C: T.Tensor((32, 32), "float32"), D: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((32, 32), "float32")
        total = T.alloc_fragment((32, 32), "float32")
        halved = T.alloc_fragment((32, 32), "float32")
        T.clear(total)
        T.clear(halved)
        for k in T.serial(2):
            for n in T.serial(2):
                T.copy(A[0, (k * 2 + n) * 32], x)
                for i, j in T.Parallel(32, 32):
                    total[i, j] = T.max(total[i, j] * 0.5, x[i, j])
                    halved[i, j] += x[i, j]
            for i, j in T.Parallel(32, 32):
                halved[i, j] = halved[i, j] * 0.5
        T.copy(total, C)
        T.copy(halved, D)


@T.prim_func
def stored_and_carried(A: T.Tensor((32, 128), "float32"), C: T.Tensor((32, 128), "float32"), D: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((32, 32), "float32")
        total = T.alloc_fragment((32, 32), "float32")
        last = T.alloc_fragment((32, 32), "float32")
        T.clear(total)
        T.clear(last)
        for k in T.serial(4):
            T.copy(A[0, k * 32], x)
            for i, j in T.Parallel(32, 32):
                total[i, j] = T.exp(total[i, j] * 0.5) + x[i, j]
            T.copy(total, C[0, k * 32])
            for i, j in T.Parallel(32, 32):
                last[i, j] = x[i, j] - last[i, j]
        T.copy(last, D)


def pieces(a: np.ndarray) -> list[np.ndarray]:
    return np.split(a.astype(np.float64), 4, axis=1)


def wanted(kernel: Any, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    xs, zero = pieces(a), np.zeros((32, 32))
    if kernel is two_sums:
        return sum(xs, zero), sum((x * x for x in xs), zero)
    if kernel is change_places:
        p, q = np.full((32, 32), 1.0), np.full((32, 32), 2.0)
        for x in xs:
            p, q = q, p * 0.5 + x
        return p, q
    if kernel is one_loop_after_the_other:
        first = total = sum(xs, zero)
        for x in xs:
            total = np.maximum(total * 0.5, x)
        return first, total
    if kernel is in_a_branch:
        return xs[2] + xs[3], xs[2] + xs[3] - 2 * xs[0] - 2 * xs[1]
    if kernel is in_an_inner_loop:
        total = zero
        for x in xs:
            total = np.maximum(total * 0.5, x)
        return total, ((xs[0] + xs[1]) * 0.5 + xs[2] + xs[3]) * 0.5
    assert kernel is stored_and_carried
    totals, total, last = [], zero, zero
    for x in xs:
        total, last = np.exp(total * 0.5) + x, x - last
        totals.append(total)
    return np.concatenate(totals, axis=1), last


KERNELS = [two_sums, change_places, one_loop_after_the_other, in_a_branch, in_an_inner_loop, stored_and_carried]
NAMES = ["two sums", "change places", "one loop after the other", "in a branch", "in an inner loop", "stored and carried"]


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
@pytest.mark.parametrize("mode", [execution.SIM, execution.NATIVE])
def test_they_are_what_numpy_says(kernel, mode):
    a = np.random.default_rng(5).uniform(-1, 1, (32, 128)).astype(np.float32)
    first, second = wanted(kernel, a)
    c, d = np.zeros(first.shape, np.float32), np.zeros(second.shape, np.float32)
    with execution.session(mode=mode):
        kernel(a, c, d)
    np.testing.assert_allclose(c, first, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(d, second, rtol=1e-2, atol=1e-3)


def compiled(kernel: Any) -> Program:
    found: list[Program] = []
    a = np.zeros((32, 128), np.float32)
    c, d = wanted(kernel, a)
    with execution.session(mode=execution.COMPILE, keep_ir=True, on_compiled=(found.append,), cache=False):
        kernel(a, c.astype(np.float32), d.astype(np.float32))
    return found[0]


@pytest.mark.parametrize(("kernel", "count"), [(two_sums, 2), (change_places, 2), (in_a_branch, 1), (in_an_inner_loop, 2)])
def test_the_front_end_writes_one_op_for_each(kernel, count):
    """Those that change in one piece of code; an inner loop may have one of its own."""
    text = next(stage.ir for stage in compiled(kernel).trace.stages if stage.name == "frontend")
    assert text.count("= ttl.running ") == count


def test_two_results_are_packed_where_they_are_copied_to():
    program = compiled(two_sums)
    assert not [buffer for buffer in program.buffers if buffer.name.endswith("_kept")]
    assert program.cpp["compute"].count("tile_regs_acquire();") == 1


@pytest.mark.parametrize(("size", "blocks"), [(384, 2), (512, 1)])
def test_a_sum_that_fills_l1_needs_no_memory_beside_its_result(size, blocks):
    """The packer adds it up where it is read from, even if nothing can go on meanwhile."""

    @T.prim_func
    def gemm(A: T.Tensor((size, 128), "float32"), B: T.Tensor((128, size), "float32"), C: T.Tensor((size, size), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((size, 32), "float32")
            b = T.alloc_shared((32, size), "float32")
            c = T.alloc_fragment((size, size), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    found: list[Program] = []
    with execution.session(mode=execution.COMPILE, on_compiled=(found.append,), cache=False):
        gemm(*(np.zeros(shape, np.float32) for shape in ((size, 128), (128, size), (size, size))))
    assert {buffer.name: buffer.block_count for buffer in found[0].buffers} == {"a": 2, "b": 2, "c": blocks}
