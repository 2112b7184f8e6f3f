"""A right program of three kernels, broken in one place at a time: every break is reported, at its line or where it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tilewright.native.driver import NativeProgram, NativeResult, run

COMPUTE = """#include <cstdint>
#include "api/compute/common.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/tile_move_copy.h"
void kernel_main() {
    constexpr uint32_t a = 0, b = 1, out = 16, tiles = 2;
    const uint32_t iterations = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup(a, b, out);
    for (uint32_t i = 0; i < iterations; ++i) {
        cb_wait_front(a, tiles);
        cb_wait_front(b, tiles);
        cb_reserve_back(out, tiles);
        tile_regs_acquire();
        copy_init(a);
        for (uint32_t t = 0; t < tiles; ++t) copy_tile(a, t, t + 2);
        exp_tile_init();
        for (uint32_t t = 0; t < tiles; ++t) exp_tile(t + 2);
        log_tile_init();
        mul_init(a, b);
        for (uint32_t t = 0; t < tiles; ++t) mul_tiles(a, b, t, t, t);
        add_reuse_dest_init<EltwiseBinaryReuseDestType::DEST_TO_SRCA>(b);
        for (uint32_t t = 0; t < tiles; ++t) add_reuse_dest_tiles<EltwiseBinaryReuseDestType::DEST_TO_SRCA>(b, t, t + 2);
        for (uint32_t t = 0; t < tiles; ++t) log_tile(t + 2);
        tile_regs_commit();
        tile_regs_wait();
        for (uint32_t t = 0; t < tiles; ++t) pack_tile(t + 2, out);
        tile_regs_release();
        cb_push_back(out, tiles);
        cb_pop_front(a, tiles);
        cb_pop_front(b, tiles);
    }
}
"""
ITERATIONS = 4

MUTANTS = [
    ("compute", "compute_kernel_hw_startup(a, b, out);", "", "missing-startup"),
    ("compute", "copy_init(a);", "", "missing-init"),
    ("compute", "exp_tile_init();", "", "missing-init"),
    ("compute", "log_tile_init();", "", "wrong-init"),
    ("compute", "mul_init(a, b);", "", "wrong-init"),
    ("compute", "add_reuse_dest_init<EltwiseBinaryReuseDestType::DEST_TO_SRCA>(b);", "", "wrong-init"),
    ("compute", "init<EltwiseBinaryReuseDestType::DEST_TO_SRCA", "init<EltwiseBinaryReuseDestType::DEST_TO_SRCB", "wrong-init"),
    ("compute", "exp_tile(t + 2);", "exp_tile(t + 1);", "read-unwritten"),
    ("compute", "copy_tile(a, t, t + 2);", "copy_tile(a, t, t + 7);", "dst-out-of-range"),
    ("compute", "mul_tiles(a, b, t, t, t);", "mul_tiles(a, b, t, t, t + 2);", "dirty-accumulate"),
    ("compute", "mul_tiles(a, b, t, t, t);", "mul_tiles(a, b, t, t + 1, t);", "missing-wait"),
    ("compute", "cb_wait_front(a, tiles);", "", "missing-wait"),
    ("compute", "cb_wait_front(b, tiles);", "cb_wait_front(b, 1);", "missing-wait"),
    ("compute", "cb_reserve_back(out, tiles);", "", "missing-reserve"),
    ("compute", "tile_regs_acquire();", "", "math-outside-window"),
    ("compute", "tile_regs_commit();", "", "deadlock"),
    ("compute", "tile_regs_wait();", "", "pack-outside-window"),
    ("compute", "tile_regs_release();", "", "deadlock"),
    ("compute", "pack_tile(t + 2, out);", "pack_tile(t + 3, out);", "read-unwritten"),
    ("compute", "pack_tile(t + 2, out);", "", "push-unwritten"),
    ("compute", "cb_push_back(out, tiles);", "", "deadlock"),
    ("compute", "cb_pop_front(a, tiles);", "", "deadlock"),
    ("compute", "cb_pop_front(b, tiles);", "cb_pop_front(b, 1);", "buffer-wrap"),
    ("compute", "cb_pop_front(b, tiles);", "cb_pop_front(b, 3);", "missing-wait"),
    ("reader", "noc_async_read_barrier();", "", "missing-barrier"),
    ("reader", "cb_reserve_back(cb, tiles);", "", "missing-reserve"),
    ("reader", "cb_push_back(cb, tiles);", "", "deadlock"),
    ("reader", "iteration * tiles + t, tensor", "iteration * tiles + t + 1, tensor", "tensor-out-of-range"),
    ("reader", "l1 + t * get_tile_size(cb)", "l1 + (t + 1) * get_tile_size(cb)", "missing-reserve"),
    ("reader", "get_arg_val<uint32_t>(1 + kIndex)", "get_arg_val<uint32_t>(3 + kIndex)", "argument-out-of-range"),
    ("reader", "get_arg_val<uint32_t>(1 + kIndex)", "1 + get_arg_val<uint32_t>(1 + kIndex)", "unknown-tensor"),
    ("writer", "noc_async_write_barrier();", "", "missing-barrier"),
    ("writer", "cb_wait_front(cb, tiles);", "", "missing-wait"),
    ("writer", "cb_pop_front(cb, tiles);", "", "deadlock"),
    ("writer", "l1 + t * get_tile_size(cb)", "l1 + (t + 2) * get_tile_size(cb)", "missing-wait"),
]  # fmt: skip


@pytest.fixture
def program(make_program: Callable[..., NativeProgram]) -> NativeProgram:
    rng = np.random.default_rng(21)
    inputs = [("bf16", rng.uniform(0.5, 2.0, ITERATIONS * 2 * 1024).astype(np.float32).view(np.uint32) >> 16) for _ in range(2)]
    halves = [(dtype, data.astype(np.uint16)) for dtype, data in inputs]
    return make_program(COMPUTE, halves, "bf16", tiles=(2, 2), out_tiles=2)


def broken(program: NativeProgram, role: str, old: str, new: str) -> NativeResult:
    kernels = []
    for kernel in program.kernels:
        if kernel.role == role:
            assert old in kernel.text
            kernel = replace(kernel, text=kernel.text.replace(old, new))
        kernels.append(kernel)
    return run(replace(program, kernels=kernels))


def test_the_program_itself_is_right(program: NativeProgram) -> None:
    assert run(program).findings == ()


@pytest.mark.parametrize(("role", "old", "new", "code"), MUTANTS)
def test_mutants_are_caught(program: NativeProgram, role: str, old: str, new: str, code: str) -> None:
    findings = broken(program, role, old, new).findings
    assert code in {finding.code for finding in findings}, "\n".join(map(str, findings))


def test_findings_point_at_the_line(program: NativeProgram) -> None:
    findings = broken(program, "compute", "exp_tile_init();", "").findings
    assert {(finding.file, finding.line, finding.thread) for finding in findings} == {("compute.cpp", 19, "math")}
    assert [finding.code for finding in findings] == ["missing-init", "wrong-init"]  # log_tile_init() ran before the second round
    assert sum(finding.count for finding in findings) == ITERATIONS * 2
