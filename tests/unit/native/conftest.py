"""Kernels and programs the native tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.hardware import WORMHOLE_B0, Chip
from tilewright.native.driver import BufferSpec, ComputeConfig, KernelSource, NativeProgram, NativeResult, TensorSpec, run

CHECK_KERNELS = Path(__file__).resolve().parents[2] / "check"

PAGE = {"bf16": 2048, "f32": 4096, "bfp8_b": 1088, "i32": 4096, "u32": 4096, "u16": 2048}
ADDRESS = 0x10000

READER = """
#include "api/dataflow/dataflow_api.h"
template <uint32_t kIndex, uint32_t kOffset> void read_block(uint32_t iteration) {
    constexpr uint32_t cb = get_compile_time_arg_val(kOffset), tiles = get_compile_time_arg_val(kOffset + 1);
    constexpr auto args = TensorAccessorArgs<kOffset + 2>();
    const auto tensor = TensorAccessor(args, get_arg_val<uint32_t>(1 + kIndex), get_tile_size(cb));
    cb_reserve_back(cb, tiles);
    const uint32_t l1 = get_write_ptr(cb);
    for (uint32_t t = 0; t < tiles; ++t) noc_async_read_page(iteration * tiles + t, tensor, l1 + t * get_tile_size(cb));
    noc_async_read_barrier();
    cb_push_back(cb, tiles);
}
void kernel_main() {
    const uint32_t iterations = get_arg_val<uint32_t>(0);
    for (uint32_t i = 0; i < iterations; ++i) { READS }
}
"""
WRITER = """
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    constexpr uint32_t cb = get_compile_time_arg_val(0), tiles = get_compile_time_arg_val(1);
    constexpr auto args = TensorAccessorArgs<2>();
    const uint32_t iterations = get_arg_val<uint32_t>(0);
    const auto tensor = TensorAccessor(args, get_arg_val<uint32_t>(1), get_tile_size(cb));
    for (uint32_t i = 0; i < iterations; ++i) {
        cb_wait_front(cb, tiles);
        const uint32_t l1 = get_read_ptr(cb);
        for (uint32_t t = 0; t < tiles; ++t) noc_async_write_page(i * tiles + t, tensor, l1 + t * get_tile_size(cb));
        noc_async_write_barrier();
        cb_pop_front(cb, tiles);
    }
}
"""


def build_program(
    compute: str,
    inputs: Sequence[tuple[str, np.ndarray[Any, Any]]],
    out_dtype: str,
    *,
    tiles: Sequence[int] = (),
    out_tiles: int = 1,
    out_pages: int | None = None,
    **settings: Any,
) -> NativeProgram:
    """Inputs (dtype, bytes) go to buffers 0, 1, ...; buffer 16 is written out. ``tiles`` per iteration and input."""
    counts = tuple(tiles) or (1,) * len(inputs)
    raw = [np.ascontiguousarray(data).reshape(-1).view(np.uint8) for _, data in inputs]
    pages = [bytes_.size // PAGE[dtype] for bytes_, (dtype, _) in zip(raw, inputs, strict=True)]
    iterations = pages[0] // counts[0]
    tensors = [
        TensorSpec(name=f"in{i}", address=ADDRESS * (i + 1), page_bytes=PAGE[dtype], pages=pages[i], data=raw[i], dtype=dtype)
        for i, (dtype, _) in enumerate(inputs)
    ]
    total = iterations * out_tiles if out_pages is None else out_pages
    empty = np.zeros(total * PAGE[out_dtype], np.uint8)
    tensors.append(
        TensorSpec(name="out", address=ADDRESS * 16, page_bytes=PAGE[out_dtype], pages=total, data=empty, dtype=out_dtype)
    )
    reads = " ".join(f"read_block<{i}, {4 * i}>(i);" for i in range(len(inputs)))
    words = [word for i, (dtype, _) in enumerate(inputs) for word in (i, counts[i], 2, PAGE[dtype])]
    kernels = (
        KernelSource(
            role="reader", text=READER.replace("READS", reads), compile_time_args=words,
            runtime_args=(iterations, *(tensor.address for tensor in tensors[:-1])),
        ),
        KernelSource(role="compute", text=compute, runtime_args=(iterations,)),
        KernelSource(
            role="writer", text=WRITER, compile_time_args=(16, out_tiles, 2, PAGE[out_dtype]),
            runtime_args=(iterations, ADDRESS * 16),
        ),
    )  # fmt: skip
    buffers = [BufferSpec(index=i, dtype=dtype, pages=2 * counts[i]) for i, (dtype, _) in enumerate(inputs)]
    buffers.append(BufferSpec(index=16, dtype=out_dtype, pages=2 * out_tiles))
    extra: Mapping[str, Any] = {"config": ComputeConfig(), **settings}
    return NativeProgram(kernels=kernels, buffers=buffers, tensors=tensors, **extra)


def compute_text(
    headers: Sequence[str], setup: str, body: str, *, tiles: Sequence[int] = (1,), out_tiles: int = 1, pack: str = ""
) -> str:
    """A compute kernel that runs ``body`` once per iteration between acquire and commit."""
    includes = "".join(f'#include "api/compute/{header}"\n' for header in ("common.h", *headers))
    waits = "".join(f"cb_wait_front({i}, {count}); " for i, count in enumerate(tiles))
    pops = "".join(f"cb_pop_front({i}, {count}); " for i, count in enumerate(tiles))
    return f"""#include <cstdint>
{includes}
void kernel_main() {{
    constexpr uint32_t A = 0, B = 1, C = 2, O = 16;
    const uint32_t iterations = get_arg_val<uint32_t>(0);
    {setup}
    for (uint32_t i = 0; i < iterations; ++i) {{
        {waits}
        cb_reserve_back(O, {out_tiles});
        tile_regs_acquire();
        {body}
        tile_regs_commit();
        tile_regs_wait();
        {pack or f"pack_block(0, O, {out_tiles});"}
        tile_regs_release();
        cb_push_back(O, {out_tiles});
        {pops}
    }}
}}
"""


@pytest.fixture
def make_program() -> Callable[..., NativeProgram]:
    return build_program


@pytest.fixture
def make_compute() -> Callable[..., str]:
    return compute_text


@pytest.fixture
def run_op() -> Callable[..., np.ndarray[Any, Any]]:
    """Runs a compute body over tiles and returns the raw output; any finding fails the test."""

    def go(
        body: str, inputs: Sequence[tuple[str, np.ndarray[Any, Any]]], out_dtype: str, *,
        headers: Sequence[str] = (), setup: str = "",
        tiles: Sequence[int] = (), out_tiles: int = 1, pack: str = "", config: ComputeConfig | None = None,
        chip: Chip = WORMHOLE_B0,
    ) -> np.ndarray[Any, Any]:  # fmt: skip
        counts = tuple(tiles) or (1,) * len(inputs)
        text = compute_text(headers, setup, body, tiles=counts, out_tiles=out_tiles, pack=pack)
        program = build_program(text, inputs, out_dtype, tiles=counts, out_tiles=out_tiles, config=config or ComputeConfig(), chip=chip)
        result: NativeResult = run(program)
        # Wild patterns meet the erratum; the numbers are compared.
        complaints = [finding for finding in result.findings if finding.code != "near-cancellation"]
        assert not complaints, "\n".join(map(str, complaints))
        kind = {"bf16": np.uint16, "u16": np.uint16, "bfp8_b": np.uint8}.get(out_dtype, np.uint32)
        return result.outputs["out"].view(kind)

    return go


@pytest.fixture
def check_kernels() -> Path:
    return CHECK_KERNELS
