"""What a TileLang kernel cannot do here is an error at its line that says what to do instead."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import tilelang
from tilewright.diagnostics import KernelError

T = tilelang.language

A = np.zeros((64, 64), np.float32)
C = np.zeros((64, 64), np.float32)


def error_of(kernel: Any, *arguments: Any) -> Any:
    with pytest.raises(KernelError) as caught:
        kernel.compile(*(arguments or (A, C)))
    return caught.value.diagnostics[0]


def refused(body: Callable[..., Any], code: str, marked: str, help_text: str, *arguments: Any) -> None:
    """The error has this code, stands at the line with ``marked``, and its help names the way out."""
    found = error_of(T.prim_func(body), *arguments)
    assert found.code == code, found.render()
    assert marked in linecache.getline(found.span.file, found.span.line), found.render()
    assert help_text in found.help, found.render()


def test_atomics():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.atomic_max(C[by * 32, bx * 32], x)

    refused(kernel, "TW001", "T.atomic_max", "second kernel")


def test_places_and_lengths_that_data_decides():
    def scattered(A, N, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[N[by] * 32, bx * 32])

    def endless(A, N, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            for _ in T.serial(N[bx]):
                T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 32, bx * 32])

    numbers = np.zeros(2, np.int32)
    refused(scattered, "TW001", "T.copy(x, C", "integer tensors", A, numbers, C)
    refused(endless, "TW007", "T.serial", "largest length", A, numbers, C)


def test_parts_that_are_no_whole():
    def uncovered(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 64), "float32")
            for i, j in T.Parallel(32, 32):
                x[i, j + 32] = A[bx * 32 + i, j]
            T.copy(x, C[bx * 32, 0])

    def changed(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 64), "float32")
            T.clear(x)
            for i, j in T.Parallel(32, 32):
                x[i, j + 32] = A[bx * 32 + i, j]
            T.copy(x, C[bx * 32, 0])

    def summed(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 64), "float32")
            total = T.alloc_fragment((32,), "float32")
            for i, j in T.Parallel(32, 32):
                x[i, j] = A[bx * 32 + i, j]
                x[i, j + 32] = A[bx * 32 + i, j]
            T.reduce_sum(x, total, dim=1)
            T.copy(total, C[bx * 32, 0])

    refused(uncovered, "TW104", "T.copy(x, C", "each part")
    refused(changed, "TW001", "x[i, j + 32]", "C[i, j]")
    refused(summed, "TW104", "T.reduce_sum", "each part")


def test_atomics_of_numbers():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.atomic_add(x, 1.0)

    refused(kernel, "TW004", "T.atomic_add", "T.Parallel")


def test_builders_if_without_then():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            with T.If(bx > 0):
                T.clear(x)
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW001", "with T.If", "T.Then")


def test_thread_level_code():
    def kernel(A, C):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            lane = T.get_thread_binding(0)
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            x[lane, 0] = 0.0
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW001", "get_thread_binding", "T.Parallel")


def test_element_outside_parallel():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            x[0, 0] = 1.0
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW001", "x[0, 0]", "T.Parallel")


def test_tma():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_shared((32, 32), "float32")
            T.tma_load(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW001", "T.tma_load", "num_stages")


def test_barriers():
    def kernel(A, C):
        with T.Kernel(2, 2):
            ready = T.alloc_barrier(arrive_count=128)
            T.mbarrier_wait_parity(ready, 0)

    refused(kernel, "TW001", "T.alloc_barrier", "T.copy")


def test_warp_specialisation():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            with T.ws(0):
                T.copy(A[by * 32, bx * 32], x)

    refused(kernel, "TW001", "T.ws", "reader, compute, writer")


def test_packed_bytes():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.reinterpret("int32", x[i, j])
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW001", "T.reinterpret", "T.cast")


def test_size_that_is_no_tile():
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((16, 16), "float32")
            T.copy(A[by * 16, bx * 16], x)
            T.copy(x, C[by * 16, bx * 16])

    refused(kernel, "TW105", "T.alloc_fragment((16, 16)", "(32, 32)")


def test_start_that_is_no_tile():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 8, bx * 32])

    refused(kernel, "TW105", "C[by * 8", "multiples of 32")


def test_gather():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = x[i, j] * 2.0  # what is computed lies in tiles; a loaded fragment is gathered from its tensor
            for i, j in T.Parallel(32, 32):
                y[i, j] = x[i, j // 2]
            T.copy(y, C[by * 32, bx * 32])

    refused(kernel, "TW001", "j // 2", "gathers")


def test_index_from_data():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                y[i, j] = x[x[i, j], j]
            T.copy(y, C[by * 32, bx * 32])

    refused(kernel, "TW001", "x[x[i, j], j]", "integer tensors")


def test_store_that_does_not_cover_the_fragment():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(16, 32):
                x[i, j] = 0.0
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW104", "x[i, j] = 0.0", "whole fragment")


def test_read_before_written():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.gemm(x, x, y)
            T.copy(y, C[by * 32, bx * 32])

    refused(kernel, "TW203", "T.gemm", "T.clear(y)")


def test_number_carried_by_a_loop():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            n = T.alloc_var("int32", 0)
            for k in T.serial(bx + 1):
                T.copy(A[n, k * 32], x)
                n = n + 32
                T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW012", "T.serial", "loop variable")


def test_while():
    def kernel(A, C):
        with T.Kernel(2, 2):
            while True:
                pass

    refused(kernel, "TW001", "while True", "T.serial")


def test_sizes_of_a_product():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 64), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, 0], x)
            T.clear(y)
            T.gemm(x, x, y)
            T.copy(y, C[by * 32, bx * 32])

    refused(kernel, "TW101", "T.gemm", "transpose_B")


def test_type_that_tiles_cannot_hold():
    def kernel(A, C):
        with T.Kernel(2, 2):
            T.alloc_fragment((32, 32), "float64")

    refused(kernel, "TW107", "float64", "bfloat16")


def test_rounding_to_a_small_float():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float8_e4m3fn")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, y)
            T.copy(y, C[by * 32, bx * 32])

    refused(kernel, "TW107", "T.copy(x, y)", "convert it on the host")


def test_sums_of_products_as_integers():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_shared((32, 32), "int8")
            y = T.alloc_fragment((32, 32), "int32")
            T.copy(A[by * 32, bx * 32], x)
            T.gemm(x, x, y, clear_accum=True)
            T.copy(y, C[by * 32, bx * 32])

    refused(kernel, "TW107", "T.gemm", "adds in float32", np.zeros((64, 64), np.int8), np.zeros((64, 64), np.int32))


def test_store_under_a_condition_on_elements():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < 63 and bx * 32 + j < 64:
                    C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j]

    refused(kernel, "TW001", "C[by * 32 + i", "T.if_then_else")


def test_store_where_data_decides():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            if A[bx, by] > 0.0:
                T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW007", "T.copy(x, C", "store in any case")


def test_prefix_sums_into_another_shape():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 64), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.cumsum(x, y, dim=1)
            T.copy(y, C[by * 32, 0])

    refused(kernel, "TW104", "T.cumsum", "same shape")


def test_device_value_as_python_truth():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = max(x[i, j], 0.0)
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW007", "max(x[i, j], 0.0)", "T.if_then_else")


def test_two_launches():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 32, bx * 32])
        with T.Kernel(1, 1):
            pass

    refused(kernel, "TW008", "T.Kernel(1, 1)", "one function per launch")


def test_kernel_that_writes_nothing():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)

    refused(kernel, "TW209", "def kernel", "copy a fragment")


def test_unknown_name_of_the_language():
    def kernel(A, C):
        with T.Kernel(2, 2):
            T.alloc_fragmnt((32, 32), "float32")

    found = error_of(T.prim_func(kernel))
    assert found.code == "TW003"
    assert "T.alloc_fragment" in found.message and "alloc_fragmnt" in linecache.getline(found.span.file, found.span.line)


def test_wrong_number_of_arguments():
    def kernel(A, C):
        with T.Kernel(2, 2):
            T.clear()

    refused(kernel, "TW004", "T.clear()", "")


def test_shape_against_declaration():
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 32, bx * 32])

    found = error_of(kernel)
    assert found.code == "TW104" and "(128, 64)" in found.message


def test_tensor_that_is_read_back():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 32, bx * 32])
            T.copy(C[by * 32, bx * 32], x)
            T.copy(x, A[by * 32, bx * 32])

    refused(kernel, "TW001", "T.copy(C[by * 32, bx * 32], x)", "keep the value in a fragment")


def test_tensor_whose_neighbour_is_read():
    def kernel(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[0, bx * 32], x)
            T.copy(x, A[32, bx * 32])

    refused(kernel, "TW001", "T.copy(A[0, bx * 32], x)", "another tensor")


def test_element_that_leaves_its_loop():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                y = x[j, i]
            x = y + 1.0
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW002", "x = y + 1.0", "")


def test_variable_that_leaves_its_loop():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            for k in T.serial(2):
                T.copy(A[by * 32, k * 32], x)
                last = k * 32
                T.copy(x, C[by * 32, bx * 32])
            T.copy(A[by * 32, last], x)
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW012", "A[by * 32, last]", "inside that loop")


def test_copy_inside_parallel():
    def kernel(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            for _ in T.Parallel(32):
                T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 32, bx * 32])

    refused(kernel, "TW001", "T.copy(A[by * 32, bx * 32], x)", "before or after")


def test_python_error_in_the_body():
    def kernel(A, C):
        with T.Kernel(2) as bx:
            (x, y) = 3
            T.copy(x, C[y, bx * 32])

    refused(kernel, "TW017", "(x, y) = 3", "compiled")


def test_names_given_in_one_branch_only():
    def kernel(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 32), "float32")
            if bx < 1:
                start = 0
                T.copy(A[0, 0], x)
            else:
                T.copy(A[32, 0], x)
            T.copy(x, C[start, bx * 32])

    refused(kernel, "TW002", "C[start, bx * 32]", "")


def test_arguments_that_would_have_been_dropped():
    def turned(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.clear(y)
            T.gemm(x, x, y, transpose_C=True)
            T.copy(y, C[by * 32, bx * 32])

    def reduced(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((64,), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.reduce_sum(x, y, dim=1)

    def indexed(A, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = x[i] + 1.0
            T.copy(x, C[by * 32, bx * 32])

    refused(turned, "TW004", "T.gemm", "T.gemm(A, B, C, transpose_A")
    refused(reduced, "TW101", "T.reduce_sum", "(32,)")
    refused(indexed, "TW109", "x[i] + 1.0", "one index per dimension")
