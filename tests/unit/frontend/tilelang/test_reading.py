"""What the reader understands: statements of the tile program, forms of reads, copies, macros, Python around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import tilelang
from tilewright.frontend.tilelang.layouts import layouts_of
from tilewright.frontend.tilelang.symbols import Apply, Cast, Number, Product, Read, Reduction
from tilewright.frontend.tilelang.tile_program import Assign, Branch, Liveness, Load, Loop, Store, walk

T = tilelang.language

A = np.zeros((128, 128), np.float32)
C = np.zeros((128, 128), np.float32)


def program_of(body: Any, *arguments: Any) -> Any:
    return T.prim_func(body).build(*(arguments or (A, C))).tile_program


def kinds(program: Any) -> list[str]:
    return [type(statement).__name__ for statement in walk(program.body)]


def test_whole_fragment_expression():
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32 : (by + 1) * 32, bx * 32 : (bx + 1) * 32], x)
            y = x * 2.0 + x
            T.copy(y, C[by * 32, bx * 32])

    program = program_of(kernel)
    assert program.grid == (4, 4) and kinds(program) == ["Load", "Assign", "Store"]
    load, assign, store = program.body
    assert load.window.extents == (32, 32) and store.window.extents == (32, 32)
    assert isinstance(assign.value, Apply) and assign.value.op == "+" and assign.target.name == "y"
    assert [variable.name for variable in program.variables] == ["bx", "by"]


@pytest.mark.parametrize(
    ("written", "form"), [("x[i, j]", "same"), ("x[j, i]", "transposed"), ("v[i]", "column"), ("v[j]", "row")]
)
def test_forms_of_elements(written: str, form: str):
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            v = T.alloc_fragment((32,), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.reduce_sum(x, v, dim=1)
            for i, j in T.Parallel(32, 32):
                y[i, j] = {"x[i, j]": x[i, j], "x[j, i]": x[j, i], "v[i]": v[i], "v[j]": v[j]}[written]
            T.copy(y, C[by * 32, bx * 32])

    value = program_of(kernel).body[2].value
    assert isinstance(value, Read) and value.form == form


def test_reductions_are_sums_and_maxima():
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            low = T.alloc_fragment((32,), "float32")
            size = T.alloc_fragment((32,), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.reduce_min(x, low, dim=1)
            T.reduce_abssum(x, size, dim=-1, clear=False)
            for i, j in T.Parallel(32, 32):
                x[i, j] = low[i] + size[i]
            T.copy(x, C[by * 32, bx * 32])

    def readable(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            low = T.alloc_fragment((32,), "float32")
            size = T.alloc_fragment((32,), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.clear(size)
            T.reduce_min(x, low, dim=1)
            T.reduce_abssum(x, size, dim=-1, clear=False)
            for i, j in T.Parallel(32, 32):
                x[i, j] = low[i] + size[i]
            T.copy(x, C[by * 32, bx * 32])

    _, _, smallest, total, *_ = program_of(readable).body
    assert smallest.value.op == "neg" and isinstance(smallest.value.arguments[0], Reduction)
    assert total.value.op == "+" and total.value.arguments[1].argument.op == "abs"
    with pytest.raises(Exception, match="'size' is read before"):
        program_of(kernel)


def test_products():
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_shared((32, 64), "float32")
            y = T.alloc_shared((32, 64), "float32")
            z = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, 0], x)
            T.copy(A[bx * 32, 64], y)
            T.gemm(x, y, z, transpose_B=True, clear_accum=True)
            T.gemm(x, y, z, False, True)
            T.copy(z, C[by * 32, bx * 32])

    first, second = (s for s in program_of(kernel).body if isinstance(s, Assign))
    assert isinstance(first.value, Product) and first.value.transpose_right
    assert second.value.op == "+" and isinstance(second.value.arguments[1], Product)


def test_python_around_the_kernel_is_plain_python():
    sizes = {"block": 32}

    def kernel(A, C):
        block = sizes["block"]
        starts = [0, 32]
        with T.Kernel(A.shape[0] // block, 1) as (bx, _):
            parts = [T.alloc_fragment((block, block), A.dtype) for _ in starts]
            total = T.alloc_fragment((block, block), "float32")
            T.clear(total)
            for part, start in zip(parts, starts):  # noqa: B905
                T.copy(A[bx * block, start], part)
                total = total + part
            if block == 32:
                T.copy(total, C[bx * block, 0])
            else:
                T.copy(parts[0], C[bx * block, 0])

    program = program_of(kernel)
    assert kinds(program) == ["Assign", "Load", "Assign", "Load", "Assign", "Store"]
    assert program.grid == (4, 1)


def test_loops_and_branches():
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_shared((32, 32), "float32")
            for k in T.serial(1, 4):
                if k < by and bx != 2:
                    T.copy(A[k * 32, bx * 32], x)
                    T.copy(x, C[k * 32, bx * 32])
            for k in T.Pipelined(1):
                T.copy(A[by * 32, k * 32], x)

    program = program_of(kernel)
    assert kinds(program) == ["Loop", "Branch", "Load", "Store", "Load"]  # a loop of one iteration is none
    loop, branch = program.body[0], program.body[0].body[0]
    assert isinstance(loop, Loop) and (loop.start, loop.stop) == (1, 4) and isinstance(branch, Branch)


def test_macros_stand_where_they_are_called():
    @T.macro
    def scaled(target, factor=2.0):
        for i, j in T.Parallel(32, 32):
            target[i, j] = target[i, j] * factor

    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            scaled(x)
            scaled(x, factor=3.0)
            T.copy(x, C[by * 32, bx * 32])

    factors = [s.value.arguments[1] for s in program_of(kernel).body if isinstance(s, Assign)]
    assert [factor.value for factor in factors if isinstance(factor, Number)] == [2.0, 3.0]


def test_conversions():
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "bfloat16")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, y)
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.cast(y[i, j], "float32") + T.float32(1)
                x[i, j] = T.cast(y[i, j], "float32") * x[i, j] + T.cast(x[i, j] * 3.0, "bfloat16")
            T.copy(x, C[by * 32, bx * 32])

    copied, added, mixed = (s for s in program_of(kernel).body if isinstance(s, Assign))
    assert isinstance(copied.value, Read)  # the fragment's own type says it
    assert isinstance(added.value.arguments[0], Cast) and added.value.arguments[0].dtype == "f32"
    product, narrow = mixed.value.arguments
    assert isinstance(product.arguments[0], Read)  # its company is float32
    assert isinstance(narrow, Cast) and narrow.dtype == "bf16"


def test_hints_change_nothing():
    def plain(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, C[by * 32, bx * 32])

    def hinted(A, C):
        with T.Kernel(4, 4, threads=256) as (bx, by):
            x = T.alloc_shared((32, 32), "float32", scope="shared.dyn")
            T.use_swizzle(panel_size=10, enable=True)
            T.annotate_layout({x: None})
            T.no_set_max_nreg()
            T.copy(A[by * 32, bx * 32], x, coalesced_width=8)
            T.sync_threads()
            T.copy(x, C[by * 32, bx * 32])

    assert str(T.prim_func(plain).build(A, C).module) == str(T.prim_func(hinted).build(A, C).module)


def test_vectors_lie_where_their_makers_leave_them():
    def kernel(A, B, C):
        with T.Kernel(4) as bx:
            x = T.alloc_fragment((32, 128), "float32")
            rows = T.alloc_fragment((32,), "float32")
            columns = T.alloc_fragment((128,), "float32")
            derived = T.alloc_fragment((32,), "float32")
            bias = T.alloc_fragment((128,), "float32")
            T.copy(A[bx * 32, 0], x)
            T.copy(B, bias)
            T.reduce_max(x, rows, dim=1)
            T.reduce_max(x, columns, dim=0)
            for i in T.Parallel(32):
                derived[i] = rows[i] * 2.0
            for i, j in T.Parallel(32, 128):
                x[i, j] = x[i, j] * derived[i] + columns[j] + bias[j]
            T.copy(x, C[bx * 32, 0])

    layouts = layouts_of(program_of(kernel, A, np.zeros(128, np.float32), C))
    assert {f.name: layout for f, layout in layouts.items()} == {
        "rows": "column", "columns": "row", "derived": "column", "bias": "row",
    }  # fmt: skip


def test_liveness_goes_round_loops():
    def kernel(A, C):
        with T.Kernel(4) as bx:
            x = T.alloc_fragment((32, 32), "float32")
            total = T.alloc_fragment((32, 32), "float32")
            T.clear(total)
            for k in T.serial(4):
                T.copy(A[bx * 32, k * 32], x)
                for i, j in T.Parallel(32, 32):
                    total[i, j] = total[i, j] * 0.5 + x[i, j]
            T.copy(total, C[bx * 32, 0])

    program = program_of(kernel)
    liveness = Liveness(program.body)
    clear, loop, store = program.body
    load, update = loop.body
    assert isinstance(clear, Assign) and isinstance(load, Load) and isinstance(store, Store)
    names = {key: {f.name for f in live} for key, live in liveness.after.items()}
    assert names[clear] == {"total"} and names[load] == {"total", "x"} and names[update] == {"total"} and names[store] == set()
    assert not liveness.entry


def test_four_dimensional_tensors_are_tiled_along_the_copied_dimensions():
    def kernel(Q, Out):
        with T.Kernel(2, 3, 2) as (bx, by, bz):
            x = T.alloc_shared((64, 64), "float32")
            T.copy(Q[bz, bx * 64 : (bx + 1) * 64, by, :], x)
            T.copy(x, Out[bz, bx * 64 : (bx + 1) * 64, by, :])

    q = np.arange(2 * 128 * 3 * 64, dtype=np.float32).reshape(2, 128, 3, 64)
    out = np.zeros_like(q)
    layout = T.prim_func(kernel).build(q, out).layouts[0]
    assert layout.lead == (0, 2) and layout.padded == (2, 3, 128, 64)
    assert np.array_equal(layout.unpacked(layout.packed(q)), q)
    T.prim_func(kernel)(q, out)
    assert np.array_equal(out, q.astype(np.float32))


def test_padding_is_zero_and_comes_off_again():
    def kernel(A, v, C):
        with T.Kernel(2) as bx:
            x = T.alloc_shared((64, 96), "float32")
            w = T.alloc_fragment((96,), "float32")
            T.copy(A[bx * 64, 0], x)
            T.copy(v, w)
            for i, j in T.Parallel(64, 96):
                x[i, j] = x[i, j] + w[j]
            T.copy(x, C[bx * 64, 0])

    a, v = np.ones((100, 70), np.float32), np.arange(96, dtype=np.float32)
    c = np.zeros((100, 70), np.float32)
    matrix, vector, _ = T.prim_func(kernel).build(a, v, c).layouts
    assert matrix.padded == (128, 96) and vector.padded == (32, 96)
    assert matrix.packed(a)[100:].max() == 0 and matrix.packed(a)[:, 70:].max() == 0
    T.prim_func(kernel)(a, v, c)
    assert np.array_equal(c, np.ones((100, 70)) + np.arange(70))
