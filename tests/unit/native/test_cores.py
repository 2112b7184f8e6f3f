"""Several cores: disjoint work, multicast with semaphores, and what goes wrong between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.native.driver import BufferSpec, KernelSource, NativeProgram, NativeResult, TensorSpec, run
from tilewright.native.program import is_coupled

COLUMNS, ROWS = 4, 2
TILE = 2048

# Core (0, y) reads a tile per step and sends it to its row; every core writes what it received.
MULTICAST_READER = """
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    constexpr uint32_t cb = get_compile_time_arg_val(0), columns = get_compile_time_arg_val(1);
    constexpr auto args = TensorAccessorArgs<2>();
    const uint32_t steps = get_arg_val<uint32_t>(0), first = get_arg_val<uint32_t>(2);
    const auto tensor = TensorAccessor(args, get_arg_val<uint32_t>(1), get_tile_size(cb));
    const uint32_t ready = get_semaphore(0), sent = get_semaphore(1);
    volatile uint32_t* ready_word = reinterpret_cast<volatile uint32_t*>(ready);
    volatile uint32_t* sent_word = reinterpret_cast<volatile uint32_t*>(sent);
    const uint32_t row = my_y[noc_index];
    for (uint32_t i = 0; i < steps; ++i) {
        cb_reserve_back(cb, 1);
        if (my_x[noc_index] == 0) {
            noc_async_read_page(first + i, tensor, get_write_ptr(cb));
            noc_async_read_barrier();
            noc_semaphore_wait(ready_word, columns - 1);
            noc_semaphore_set(ready_word, 0);
            const uint64_t data = get_noc_multicast_addr(1, row, columns - 1, row, get_write_ptr(cb));
            noc_async_write_multicast(get_write_ptr(cb), data, get_tile_size(cb), RECEIVERS);
            noc_semaphore_set(sent_word, 1);
            noc_semaphore_set_multicast(sent, get_noc_multicast_addr(1, row, columns - 1, row, sent), RECEIVERS);
            noc_async_write_barrier();
        } else {
            noc_semaphore_set(sent_word, 0);
            ANSWER
            noc_semaphore_wait(sent_word, 1);
        }
        cb_push_back(cb, 1);
    }
    noc_async_atomic_barrier();
}
"""
ANSWER = "noc_semaphore_inc(get_noc_addr(0, row, ready), 1);"
WRITER = """
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    constexpr uint32_t cb = get_compile_time_arg_val(0);
    constexpr auto args = TensorAccessorArgs<1>();
    const uint32_t steps = get_arg_val<uint32_t>(0), first = get_arg_val<uint32_t>(2);
    const auto tensor = TensorAccessor(args, get_arg_val<uint32_t>(1), get_tile_size(cb));
    for (uint32_t i = 0; i < steps; ++i) {
        cb_wait_front(cb, 1);
        noc_async_write_page(first + i, tensor, get_read_ptr(cb));
        noc_async_write_barrier();
        cb_pop_front(cb, 1);
    }
}
"""
STEPS = 5


def multicast_program(reader: str) -> NativeProgram:
    rng = np.random.default_rng(7)
    data = rng.integers(0, 65536, ROWS * STEPS * 1024, dtype=np.uint16)
    cores = [(x, y) for y in range(ROWS) for x in range(COLUMNS)]
    out_pages = COLUMNS * ROWS * STEPS
    return NativeProgram(
        kernels=(
            KernelSource(
                role="reader", text=reader, compile_time_args=(0, COLUMNS, 2, TILE),
                runtime_args={core: (STEPS, 0x1000, core[1] * STEPS) for core in cores},
            ),
            KernelSource(
                role="writer", text=WRITER, compile_time_args=(0, 2, TILE),
                runtime_args={core: (STEPS, 0x2000, (core[1] * COLUMNS + core[0]) * STEPS) for core in cores},
            ),
        ),
        buffers=(BufferSpec(index=0, dtype="bf16", pages=2),),
        tensors=(
            TensorSpec(name="in", address=0x1000, page_bytes=TILE, pages=ROWS * STEPS, data=data),
            TensorSpec(name="out", address=0x2000, page_bytes=TILE, pages=out_pages, data=np.zeros(out_pages * 1024, np.uint16)),
        ),
        semaphores={0: 0, 1: 0},
        grid=(COLUMNS, ROWS),
    )  # fmt: skip


def run_reader(*, receivers: str = "columns - 1", answer: str = ANSWER) -> NativeResult:
    return run(multicast_program(MULTICAST_READER.replace("RECEIVERS", receivers).replace("ANSWER", answer)))


def test_every_core_of_a_row_gets_the_tiles() -> None:
    program = multicast_program(MULTICAST_READER.replace("RECEIVERS", "columns - 1").replace("ANSWER", ANSWER))
    assert is_coupled(program)
    result = run(program)
    assert result.findings == ()
    sent = program.tensors[0].raw().reshape(ROWS, 1, STEPS * TILE)
    received = result.outputs["out"].reshape(ROWS, COLUMNS, STEPS * TILE)
    assert np.array_equal(received, np.broadcast_to(sent, received.shape))


def test_increments_and_flags_under_way_at_the_end_are_reported() -> None:
    for barrier, what in (("noc_async_atomic_barrier", "increment"), ("noc_async_write_barrier", "NoC write")):
        reader = MULTICAST_READER.replace("RECEIVERS", "columns - 1").replace("ANSWER", ANSWER)
        (finding,) = {(each.code, each.message) for each in run(multicast_program(reader.replace(f"{barrier}();", ""))).findings}
        assert finding == ("missing-barrier", f"the kernel ends with this {what} under way: {barrier}() is missing")


ONE_TO_ONE = """
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    const uint32_t there = get_semaphore(0), word = get_semaphore(1);
    if (my_x[noc_index] == 0) {
        noc_async_write(word, get_noc_addr(1, 0, word), 16);
        BETWEEN
        noc_semaphore_inc(get_noc_addr(1, 0, there), 1);
        noc_async_write_barrier();
        noc_async_atomic_barrier();
    } else {
        noc_semaphore_wait(reinterpret_cast<volatile uint32_t*>(there), 1);
    }
}
"""


@pytest.mark.parametrize("between", ["", "noc_async_write_barrier();", "noc_async_writes_flushed();"])
@pytest.mark.parametrize("schedule", ["", "first first", "last first"])
def test_a_signal_behind_a_write_that_may_be_under_way(between: str, schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_SCHEDULE", schedule)
    kernel = KernelSource(role="reader", text=ONE_TO_ONE.replace("BETWEEN", between))
    found = run(NativeProgram(kernels=(kernel,), buffers=(), semaphores={0: 0, 1: 0}, grid=(2, 1))).findings
    assert [(each.code, each.severity) for each in found] == ([] if between else [("signal-before-data", "warning")])


def test_corners_in_the_order_of_the_other_noc_are_reported() -> None:
    reader = MULTICAST_READER.replace("RECEIVERS", "columns - 1").replace("ANSWER", ANSWER)
    swapped = reader.replace("(1, row, columns - 1, row,", "(columns - 1, row, 1, row,")
    assert swapped != reader
    assert {finding.code for finding in run(multicast_program(swapped)).findings} == {"multicast-corners"}


def test_a_wrong_number_of_receivers_is_reported() -> None:
    assert {finding.code for finding in run_reader(receivers="columns").findings} == {"multicast-count"}


def test_a_receiver_that_never_answers_deadlocks() -> None:
    findings = run_reader(answer="").findings
    assert [finding.code for finding in findings] == ["deadlock"]
    assert "noc_semaphore_wait on semaphore 0 wants 3, has 0" in findings[0].message
    assert "core (3,1) writer" in findings[0].message


def test_sending_before_the_receivers_reserved_is_reported() -> None:
    early = MULTICAST_READER.replace("noc_semaphore_wait(ready_word, columns - 1);", "").replace("RECEIVERS", "columns - 1")
    codes = {finding.code for finding in run(multicast_program(early.replace("ANSWER", ANSWER))).findings}
    assert "missing-reserve" in codes


@pytest.mark.parametrize("grid", [(1, 1), (8, 8)])
def test_independent_cores_split_the_work(grid: tuple[int, int], make_compute: Callable[..., str]) -> None:
    cores = [(x, y) for y in range(grid[1]) for x in range(grid[0])]
    reader = """
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    const uint32_t first = get_arg_val<uint32_t>(0);
    constexpr auto args = TensorAccessorArgs<0>();
    const auto tensor = TensorAccessor(args, get_arg_val<uint32_t>(1));
    for (uint32_t i = 0; i < 2; ++i) {
        cb_reserve_back(0, 1);
        noc_async_read_page(first + i, tensor, get_write_ptr(0));
        noc_async_read_barrier();
        cb_push_back(0, 1);
    }
}
"""
    compute = make_compute(
        ("tile_move_copy.h", "eltwise_unary/negative.h"), "compute_kernel_hw_startup(A, O); copy_init(A); negative_tile_init();",
        "copy_tile(A, 0, 0); negative_tile(0);",
    )  # fmt: skip
    writer = WRITER.replace("get_compile_time_arg_val(0)", "16").replace("TensorAccessorArgs<1>", "TensorAccessorArgs<0>")
    data = np.random.default_rng(3).normal(size=len(cores) * 2 * 1024).astype(np.float32).view(np.uint32) >> 16
    places = {core: i * 2 for i, core in enumerate(cores)}
    spec = {"page_bytes": TILE, "pages": len(cores) * 2}
    program = NativeProgram(
        kernels=(
            KernelSource(
                role="reader", text=reader, compile_time_args=(2, TILE), runtime_args={c: (p, 0x100) for c, p in places.items()}
            ),
            KernelSource(role="compute", text=compute, runtime_args=(2,)),
            KernelSource(
                role="writer", text=writer, compile_time_args=(2, TILE),
                runtime_args={c: (2, 0x200, p) for c, p in places.items()},
            ),
        ),
        buffers=(BufferSpec(index=0, dtype="bf16", pages=2), BufferSpec(index=16, dtype="bf16", pages=2)),
        tensors=(
            TensorSpec(name="in", address=0x100, data=data.astype(np.uint16), **spec),
            TensorSpec(name="out", address=0x200, data=np.zeros(data.size, np.uint16), **spec),
        ),
        grid=grid,
    )  # fmt: skip
    assert not is_coupled(program)
    result = run(program)
    assert result.findings == ()
    assert np.array_equal(result.outputs["out"].view(np.uint16), (data ^ 0x8000).astype(np.uint16))
    assert result.stats["packed"] == len(cores) * 2
