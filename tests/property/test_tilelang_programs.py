"""Random TileLang kernels with loops, branches and fragments that live across them, against the same text run by NumPy."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel_text import load
from tilewright import execution

ROWS, COLS, BLOCKS = 64, 64, 3
LOADS, STORES = 4, 6
MATRICES, VECTORS = ("a", "b", "c"), ("u", "v")

matrix, vector = st.sampled_from(MATRICES), st.sampled_from(VECTORS)
factor = st.sampled_from([0.25, 0.5, -0.5])


@st.composite
def statement(draw: Any, depth: int, loops: int) -> list[str]:
    """Lines of one statement. ``loops`` is how many loop variables k0, k1 … are in scope."""
    simple = ["load", "mix", "scale", "reduce", "vector", "store", "copy", "sum", "gemm"]
    kind = draw(st.sampled_from([*simple, "for", "if"] if depth else simple))
    one, two, three = draw(matrix), draw(matrix), draw(matrix)
    first, second = draw(vector), draw(vector)
    if kind == "load":
        block = f"k{draw(st.integers(0, loops - 1))}" if loops and draw(st.booleans()) else str(draw(st.integers(0, LOADS - 1)))
        return [f"T.copy(A[bx * {ROWS}, ({block}) * {COLS}], {one})"]
    if kind == "mix":
        return [
            f"for i, j in T.Parallel({ROWS}, {COLS}):",
            f"    {one}[i, j] = {two}[i, j] * {draw(factor)} + {three}[i, j] * 0.5",
        ]
    if kind == "scale":
        return [
            f"for i, j in T.Parallel({ROWS}, {COLS}):",
            f"    {one}[i, j] = T.max({two}[i, j] * 0.5 - {first}[i], -2.0) * 0.5",
        ]
    if kind == "reduce":
        return [f"T.reduce_max({one}, {first}, dim=1, clear={draw(st.booleans())})"]
    if kind == "vector":
        return [f"for i in T.Parallel({ROWS}):", f"    {first}[i] = {first}[i] * {draw(factor)} + {second}[i] * 0.25"]
    if kind == "gemm":
        turned = f"transpose_A={draw(st.booleans())}, transpose_B={draw(st.booleans())}, clear_accum={draw(st.booleans())}"
        bounded = f"    {one}[i, j] = T.min(T.max({one}[i, j] * 0.03, -2.0), 2.0)"
        return [f"T.gemm({two}, {three}, {one}, {turned})", f"for i, j in T.Parallel({ROWS}, {COLS}):", bounded]
    if kind == "copy":
        return [f"T.copy({one}, {two})"]
    if kind == "sum":
        return [f"for i, j in T.Parallel({ROWS}, {COLS}):", f"    {one}[i, j] += {two}[i, j] * 0.25"] if one != two else []
    if kind == "store":
        return [f"T.copy({one}, C[bx * {ROWS}, {draw(st.integers(0, STORES - 1)) * COLS}])"]
    body = draw(statements(depth - 1, loops + (kind == "for")))
    inner = ["    " + line for line in body]
    if kind == "for":
        return [f"for k{loops} in T.serial({draw(st.integers(1, 3))}):", *inner]
    condition = f"k{draw(st.integers(0, loops - 1))} < {draw(st.integers(1, 2))}" if loops else "bx < 1"
    other = ["    " + line for line in draw(statements(depth - 1, loops))]
    return [f"if {condition}:", *inner, *(["else:", *other] if draw(st.booleans()) else [])]


@st.composite
def statements(draw: Any, depth: int, loops: int) -> list[str]:
    lines = [line for one in draw(st.lists(statement(depth, loops), min_size=1, max_size=4)) for line in one]
    return lines or ["T.sync_threads()"]


def text_of(body: list[str]) -> str:
    head = [f'{name} = T.alloc_fragment(({ROWS}, {COLS}), "float32")' for name in MATRICES]
    head += [f'{name} = T.alloc_fragment(({ROWS},), "float32")' for name in VECTORS]
    head += [f"T.fill({name}, {0.5 * index})" for index, name in enumerate((*MATRICES, *VECTORS))]
    tail = [f"T.copy({name}, C[bx * {ROWS}, {(STORES + index) * COLS}])" for index, name in enumerate(MATRICES)]
    inner = textwrap.indent("\n".join([*head, *body, *tail]), " " * 8)
    top = "from tilewright import tilelang\n\nT = tilelang.language\n\n\n@T.prim_func\ndef kernel(A, C):\n"
    return f"{top}    with T.Kernel({BLOCKS}) as bx:\n{inner}\n"


class Plain:
    """The same names on NumPy arrays: fragments are arrays, a parallel loop runs element by element over whole arrays."""

    serial = staticmethod(range)
    max = staticmethod(np.maximum)
    min = staticmethod(np.minimum)

    def __init__(self, bx: int) -> None:
        self.bx = bx

    @staticmethod
    def alloc_fragment(shape: tuple[int, ...], _dtype: str) -> Any:
        return np.zeros(shape)

    @staticmethod
    def fill(target: Any, value: float) -> None:
        target[...] = value

    @staticmethod
    def sync_threads() -> None:
        return None

    @staticmethod
    def reduce_max(source: Any, target: Any, dim: int, clear: bool) -> None:
        target[...] = source.max(dim) if clear else np.maximum(target, source.max(dim))

    @staticmethod
    def gemm(left: Any, right: Any, total: Any, *, transpose_A: bool, transpose_B: bool, clear_accum: bool) -> None:
        product = (left.T if transpose_A else left) @ (right.T if transpose_B else right)
        total[...] = product if clear_accum else total + product

    @staticmethod
    def copy(source: Any, target: Any) -> None:
        target[...] = source

    @staticmethod
    def Parallel(rows: int, cols: int = 0) -> list[Any]:
        """One iteration whose variables are index arrays."""
        return [(np.arange(rows)[:, None], np.arange(cols)[None, :])] if cols else [np.arange(rows)]


class Whole:
    """A tensor whose corner stands for the block that starts there."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, corner: tuple[int, int]) -> Any:
        return self.array[corner[0] : corner[0] + ROWS, corner[1] : corner[1] + COLS]


def expected(text: str, a: Any, shape: tuple[int, int]) -> Any:
    result = np.zeros(shape)
    body = textwrap.dedent(text[text.index("as bx:\n") + len("as bx:\n") :])
    # A vector under i of a two-dimensional loop is a column.
    for name in VECTORS:
        body = body.replace(f"- {name}[i]", f"- {name}[i[:, 0]][:, None]")
    for bx in range(BLOCKS):
        exec(body, {"T": Plain(bx), "A": Whole(a), "C": Whole(result), "bx": bx})
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tilelang")


# Found: the writer takes what the loop leaves in `a`; what it starts from must not pass through the same buffer.
KEPT_START = ["T.copy(A[bx * 64, 0], a)", "T.copy(A[bx * 64, 0], a)", "if bx < 1:", "    for k0 in T.serial(2):"]


@example(body=[*KEPT_START, "        T.copy(A[bx * 64, 0], a)"])
@given(body=statements(2, 0))
def test_random_kernels_compute_what_their_text_says(folder: Path, body: list[str]):
    text = text_of(body)
    a = np.random.default_rng(len(text)).uniform(-1, 1, (BLOCKS * ROWS, LOADS * COLS)).astype(np.float32)
    shape = (BLOCKS * ROWS, (STORES + len(MATRICES)) * COLS)
    c = np.zeros(shape, np.float32)
    with execution.session(mode="fast"):
        load(text, folder)(a, c)
    assert np.abs(c - expected(text, a, shape)).max() < 1e-4, text
