"""The two kernels of the DST specification, verbatim: structure of the expected listings, numbers, and its success criteria."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tilewright import execution, tilelang

T = tilelang.language

SECTION = ("tile_regs_acquire", "tile_regs_commit", "tile_regs_wait", "pack_tile", "tile_regs_release")


@T.prim_func
def elem_add(A, B, C):
    with T.Kernel(8, 8) as (bx, by):
        A_tile = T.alloc_fragment((32, 32), "float16")
        B_tile = T.alloc_fragment((32, 32), "float16")
        C_tile = T.alloc_fragment((32, 32), "float16")

        T.copy(A[by*32:(by+1)*32, bx*32:(bx+1)*32], A_tile)
        T.copy(B[by*32:(by+1)*32, bx*32:(bx+1)*32], B_tile)
        C_tile = A_tile + B_tile
        T.copy(C_tile, C[by*32:(by+1)*32, bx*32:(bx+1)*32])


@T.prim_func
def matmul(A, B, C):
    with T.Kernel(8, 8) as (bx, by):
        C_acc = T.alloc_fragment((32, 32), "float16")
        T.clear(C_acc)

        for k in range(8):
            A_tile = T.alloc_fragment((32, 32), "float16")
            B_tile = T.alloc_fragment((32, 32), "float16")
            T.copy(A[by*32:(by+1)*32, k*32:(k+1)*32], A_tile)
            T.copy(B[k*32:(k+1)*32, bx*32:(bx+1)*32], B_tile)
            T.gemm(A_tile, B_tile, C_acc)

        T.copy(C_acc, C[by*32:(by+1)*32, bx*32:(bx+1)*32])


@pytest.fixture
def arrays() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(7)
    a, b = (rng.uniform(-1, 1, (256, 256)).astype(np.float16) for _ in range(2))
    return a, b, np.zeros((256, 256), np.float16)


def words(text: str) -> list[str]:
    """Calls, loops and ends of loops of the kernel, in the order of the text."""
    body = re.sub(r"//.*", "", text[text.index("void kernel_main() {") :])
    found = re.findall(r"\bfor \(uint32_t (\w+)|\b([a-z]\w+)(?:<\w+>)?\(|(\})", body)
    return [f"for {loop}" if loop else call or "end" for loop, call, _ in found if call != "kernel_main"]


def compute_of(kernel: Any, arrays: tuple[Any, Any, Any]) -> list[str]:
    return words(kernel.compile(*arrays).cpp["compute"])


def test_elementwise_add_has_the_structure_of_its_listing(arrays: tuple[Any, Any, Any]):
    found = compute_of(elem_add, arrays)
    assert found[: found.index("for i")].count("get_arg_val") == 3  # start_id, count, grid_x
    loop = found[found.index("for i") :]
    assert loop == [
        "for i",
        "cb_wait_front", "cb_wait_front", "cb_reserve_back",
        "tile_regs_acquire", "add_tiles", "tile_regs_commit",
        "tile_regs_wait", "pack_tile", "tile_regs_release",
        "cb_push_back", "cb_pop_front", "cb_pop_front",
        "end", "end",
    ]  # fmt: skip


def test_product_holds_dst_across_k(arrays: tuple[Any, Any, Any]):
    found = compute_of(matmul, arrays)
    loop = found[found.index("for i") :]
    assert loop == [
        "for i", "cb_reserve_back", "tile_regs_acquire",
        "for k", "cb_wait_front", "cb_wait_front", "matmul_tiles", "cb_pop_front", "cb_pop_front", "end",
        "tile_regs_commit", "tile_regs_wait", "pack_tile", "tile_regs_release", "cb_push_back",
        "end", "end",
    ]  # fmt: skip


@pytest.mark.parametrize("role", ["reader", "compute", "writer"])
def test_every_thread_recovers_its_blocks_from_the_arguments(role: str, arrays: tuple[Any, Any, Any]):
    text = elem_add.compile(*arrays).cpp[role]
    for name in ("start_id", "count", "grid_x"):
        assert re.search(rf"const uint32_t {name} = get_arg_val<uint32_t>\(\d+\);", text)
    assert "for (uint32_t i = 0; i < count; ++i)" in text
    if role != "compute":
        assert "tid = start_id + i" in text and "tid / grid_x" in text and "tid % grid_x" in text


@pytest.mark.parametrize("mode", ["sim", "fast", "native"])
def test_numbers(mode: str, arrays: tuple[Any, Any, Any]):
    a, b, c = arrays
    wide = a.astype(np.float32), b.astype(np.float32)
    with execution.session(mode=mode):
        elem_add(a, b, c)
        # The matrix unit brings both operands to 11 bits of the larger one, and the host rounds to the 11 bits of a float16.
        assert (np.abs(c - (wide[0] + wide[1])) <= 2**-10).all()
        c[...] = 0
        matmul(a, b, c)
    assert np.abs(c - wide[0] @ wide[1]).max() < 0.02


@pytest.mark.parametrize("kernel", [elem_add, matmul])
def test_the_compiled_text_gives_the_bits_of_the_simulator(kernel: Any, arrays: tuple[Any, Any, Any]):
    a, b, c = arrays
    results: list[bytes] = []
    for mode in ("sim", "native"):
        c[...] = 0
        with execution.session(mode=mode):
            kernel(a, b, c)
        results.append(c.tobytes())
    assert results[0] == results[1] and any(results[0])


@pytest.mark.parametrize(("kernel", "sections"), [(elem_add, 64), (matmul, 64)])
def test_calls_are_balanced_and_one_section_serves_one_output_tile(kernel: Any, sections: int, arrays: tuple[Any, Any, Any]):
    seen: list[Any] = []
    with execution.session(mode="sim", listeners=(seen.append,)):
        kernel(*arrays)
    calls = seen[0].result.calls
    assert [calls[name] for name in SECTION] == [sections] * 5
    assert calls["cb_wait_front"] == calls["cb_pop_front"] and calls["cb_reserve_back"] == calls["cb_push_back"]


@pytest.mark.parametrize("kernel", [elem_add, matmul])
def test_dst_is_released_only_after_the_pack(kernel: Any, arrays: tuple[Any, Any, Any]):
    section = [word for word in compute_of(kernel, arrays) if word in SECTION]
    assert tuple(section) == SECTION


@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (8, 8)])
def test_blocks_are_shared_out_over_any_grid(grid: tuple[int, int], arrays: tuple[Any, Any, Any]):
    a, b, c = arrays
    program = elem_add.compile(a, b, c, grid=grid)
    assert program.grid == grid
    with execution.session(mode="fast", overrides={"grid": grid}):
        elem_add(a, b, c)
    assert np.abs(c - (a.astype(np.float32) + b.astype(np.float32))).max() <= 2**-10


def test_half_precision_is_noted(arrays: tuple[Any, Any, Any]):
    notes = [note.message for note in elem_add.compile(*arrays).diagnostics]
    assert notes == ["float16 travels as float32, which keeps its bits"]
