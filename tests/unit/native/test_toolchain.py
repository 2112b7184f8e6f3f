"""Compiler, cache, header tree and the ways a run can fail before or while it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tilewright.native import toolchain
from tilewright.native.driver import BufferSpec, KernelSource, NativeProgram, TensorSpec, compile_kernels, run
from tilewright.native.findings import KernelCompileError, NativeError, NoCompilerError
from tilewright.native.header_tree import header_files
from tilewright.native.program import accumulating_lines, needs_three_units, release_of

IDLE = '#include "api/compute/common.h"\nvoid kernel_main() {}\n'


def alone(text: str, *, pages: int = 2, metal: str = "0.78", seconds: int = 20, **settings: object) -> list[str]:
    kernel = KernelSource(role="compute", text=text)
    buffers = [BufferSpec(index=index, dtype="bf16", pages=pages) for index in (0, 1, 16)]
    program = NativeProgram(kernels=[kernel], buffers=buffers, alone=True, metal=metal, **settings)  # type: ignore[arg-type]
    return [finding.code for finding in run(program, seconds=seconds).findings]


def test_no_compiler_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    toolchain.find_compiler.cache_clear()
    try:
        with pytest.raises(NoCompilerError, match="install g\\+\\+"):
            toolchain.find_compiler()
    finally:
        toolchain.find_compiler.cache_clear()


def test_the_cache_follows_the_user_and_the_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    toolchain.include_folder.cache_clear()
    try:
        program = NativeProgram(kernels=[KernelSource(role="compute", text=IDLE)], buffers=[])
        first = compile_kernels(program)["math"]
        assert first.is_relative_to(tmp_path / "tilewright")
        stamp = first.stat().st_mtime_ns
        assert compile_kernels(program)["math"] == first
        assert first.stat().st_mtime_ns == stamp
        changed = NativeProgram(kernels=[KernelSource(role="compute", text=IDLE + "\n")], buffers=[])
        assert compile_kernels(changed)["math"] != first
    finally:
        toolchain.include_folder.cache_clear()


def test_compile_errors_carry_the_kernel_line() -> None:
    kernel = KernelSource(
        role="compute", text='#include "api/compute/common.h"\n\nvoid kernel_main() { nonsense(); }\n', name="mine.cpp"
    )
    with pytest.raises(KernelCompileError, match=r"mine\.cpp:3:.*nonsense"):
        compile_kernels(NativeProgram(kernels=[kernel], buffers=[]))


@pytest.mark.parametrize(
    ("release", "present", "absent"),
    [
        (62, "compute_kernel_api/eltwise_unary/exp.h", "api/compute/eltwise_unary/exp.h"),
        (69, "api/compute/transpose_wh.h", "api/compute/transpose.h"),
        (78, "api/compute/transpose.h", "compute_kernel_api/common.h"),
    ],
)
def test_each_release_has_its_own_paths(release: int, present: str, absent: str) -> None:
    files = header_files(release)
    assert present in files
    assert absent not in files


@pytest.mark.parametrize(
    ("metal", "call", "header"),
    [
        ("0.78", "mul_tiles_init(0, 1)", "eltwise_binary.h"),
        ("0.78", "pack_tile_block(0, 16, 1)", "pack.h"),
        ("0.69", "mul_init(0, 1)", "eltwise_binary.h"),
        ("0.69", "copy_init(0)", "tile_move_copy.h"),
        ("0.78", "mm_init(0, 1, 16)", "matmul.h"),
    ],
)
def test_names_of_other_releases_do_not_compile(metal: str, call: str, header: str) -> None:
    text = f'#include "api/compute/{header}"\nvoid kernel_main() {{ {call}; }}\n'
    with pytest.raises(KernelCompileError):
        alone(text, metal=metal)


def test_every_header_compiles_in_every_release() -> None:
    for metal in ("0.62", "0.69", "0.74", "0.76", "0.77", "0.78", "0.81"):
        includes = [path for path in header_files(release_of(metal)) if "dataflow" not in path and "accessor" not in path]
        includes = [path for path in includes if not path.startswith("api/tensor")]
        text = "".join(f'#include "{path}"\n' for path in includes if "reverseops" not in path) + "void kernel_main() {}\n"
        compile_kernels(NativeProgram(kernels=[KernelSource(role="compute", text=text)], buffers=[], metal=metal))


def test_a_kernel_that_spins_is_stopped() -> None:
    text = '#include "api/compute/common.h"\nvoid kernel_main() { volatile int x = 0; for (;;) x = x + 1; }\n'
    assert alone(text, seconds=1) == ["timeout"]


def test_a_kernel_that_leaves_its_memory_is_reported() -> None:
    text = '#include "api/compute/common.h"\nvoid kernel_main() { *reinterpret_cast<volatile int*>(16) = 1; }\n'
    assert alone(text) == ["crash"]


def test_unknown_buffer() -> None:
    assert alone('#include "api/compute/common.h"\nvoid kernel_main() { cb_wait_front(7, 1); }\n') == ["unknown-buffer"]


def test_too_many_buffers_for_l1() -> None:
    with pytest.raises(NativeError, match="bytes of L1"):
        alone(IDLE, pages=2000)


def test_tensor_bytes_must_match_their_pages() -> None:
    tensor = TensorSpec(name="x", address=1, page_bytes=2048, pages=2, data=np.zeros(1024, np.uint16))
    with pytest.raises(NativeError, match="2 pages of 2048"):
        run(NativeProgram(kernels=[KernelSource(role="compute", text=IDLE)], buffers=[], tensors=[tensor]))


def test_thread_macros_need_three_units(make_compute: Callable[..., str]) -> None:
    assert not needs_three_units(make_compute((), "", ""))
    assert needs_three_units("void kernel_main() { PACK((x())); }")
    assert needs_three_units("static int counter = 0;\nvoid kernel_main() {}")
    assert not needs_three_units("static constexpr int kOne = 1;\nvoid kernel_main() {}  // PACK((this))")


def test_threads_do_not_share_globals() -> None:
    text = (
        '#include "api/compute/common.h"\nuint32_t counter = 0;\n'
        "void kernel_main() { ++counter; if (counter != 1) cb_wait_front(99, 1); }\n"
    )
    assert alone(text) == []


def test_comments_say_that_an_op_accumulates() -> None:
    text = "mul_tiles(a);  // accumulates onto c\n// accumulate\nmul_tiles(b);\nmul_tiles(c);  // BUG: dirty-accumulate\n"
    assert accumulating_lines(text) == [1, 3]


@pytest.mark.parametrize(("text", "number"), [("0.62.2", 62), ("0.78", 78), ("0.81.1", 81)])
def test_releases(text: str, number: int) -> None:
    assert release_of(text) == number


def test_not_a_release() -> None:
    with pytest.raises(NativeError):
        release_of("newest")
