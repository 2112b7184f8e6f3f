"""Runs a program of the compiler natively: its C++ text, its buffers and arguments, the caller's arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright import hardware
from tilewright import program as compiled
from tilewright.diagnostics import Diagnostic, KernelError, Span
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.walking import operations, span_of
from tilewright.dtypes import BLOCK_FLOATS
from tilewright.grid import chip_place, cores_of
from tilewright.native.findings import Finding, NativeError
from tilewright.native.program import BufferSpec, ComputeConfig, KernelSource, NativeProgram, TensorSpec
from tilewright.sim.exact_arithmetic import ExactArithmetic
from tilewright.sim.numerics.accumulate import cancellation_warnings
from tilewright.tile_pages import (
    flat_pages,
    folded_tiles,
    has_own_pages,
    join_tiles,
    page_bytes,
    page_elements,
    pages_by_place,
    shard_tiles,
    split_tiles,
)

if TYPE_CHECKING:
    from tilewright.native.driver import NativeResult

Array = NDArray[Any]
PACKED = BLOCK_FLOATS  # already in the order of L1

FIRST_ADDRESS = 0x100000  # any distinct numbers will do: kernels only hand them back
ADDRESS_STEP = 0x100000
DRAM_ACCESSOR, L1_ACCESSOR, SHARDED = 2, 0, 1

# Finding -> the code that explains it to the user.
CODES = {
    "TW501": "deadlock timeout",
    "TW502": "read-unwritten",
    "TW503": "missing-startup late-startup missing-init wrong-init missing-reduce-uninit",
    "TW504": "dst-out-of-range adjacent-slots",
    "TW505": "pop-beyond push-beyond beyond-capacity buffer-wrap",
    "TW506": "missing-wait",
    "TW507": "missing-reserve",
    "TW509": "dirty-accumulate math-outside-window pack-outside-window acquire-twice commit-without-acquire release-without-wait"
    " width-inside-window missing-commit missing-release",
    "TW510": "missing-barrier signal-before-data",
    "TW511": "format-mismatch unpack-to-dest-operand page-size",
    "TW512": "push-unwritten",
    "TW513": "address-out-of-range misaligned-read tensor-out-of-range unknown-tensor crash",
    "TW515": "two-owners",
    "TW516": "argument-out-of-range unknown-buffer unknown-semaphore",
    "TW517": "pages-left mask-left",
    "TW518": "source-mismatch",
}
CODE_OF = {finding: code for code, findings in CODES.items() for finding in findings.split()}
OTHER_CODE = "TW514"


def to_face_order(pages: Array) -> Array:
    """``[page, 32, 32]`` in rows -> the order of L1: four 16x16 faces."""
    rows, cols = hardware.FACE_ROWS, hardware.FACE_COLS
    return np.ascontiguousarray(pages.reshape(-1, 2, rows, 2, cols).swapaxes(2, 3))


def from_face_order(pages: Array) -> Array:
    rows, cols = hardware.FACE_ROWS, hardware.FACE_COLS
    faces = pages.reshape(-1, 2, 2, rows, cols).swapaxes(2, 3)
    return np.ascontiguousarray(faces).reshape(-1, hardware.TILE_ROWS, hardware.TILE_COLS)


def in_memory(spec: compiled.TensorSpec, pages: Array) -> Array:
    """Tiles ``[page, 32, 32]`` in the order the device keeps the tensor in."""
    if spec.layout == compiled.ROW_MAJOR:
        return np.ascontiguousarray(join_tiles(pages, spec.shape))
    if has_own_pages(spec):
        return np.ascontiguousarray(flat_pages(spec, pages))
    return pages if spec.dtype in PACKED else to_face_order(pages)


def from_memory(spec: compiled.TensorSpec, raw: Array) -> Array:
    if spec.layout == compiled.ROW_MAJOR:
        return split_tiles(raw.reshape(spec.shape))
    if has_own_pages(spec):
        tiles = np.zeros((raw.size // page_elements(spec), hardware.TILE_ELEMENTS), raw.dtype)
        tiles[:, : page_elements(spec)] = raw.reshape(len(tiles), -1)
        return from_face_order(tiles)
    return raw if spec.dtype in PACKED else from_face_order(raw)


def _address(number: int) -> int:
    return FIRST_ADDRESS + number * ADDRESS_STEP


def _compile_time_words(program: compiled.Program, thread: compiled.ThreadSpec) -> list[int]:
    words: list[int] = []
    for each in thread.compile_time_args:
        accessor = isinstance(each, compiled.AccessorWords)
        words += accessor_words(program.tensors[each.what]) if accessor else [each.what]
    return words


def accessor_words(tensor: compiled.TensorSpec) -> list[int]:
    """What ``TensorAccessorArgs`` reads: configuration and page size; of a sharded tensor also sizes in pages and banks."""
    config = DRAM_ACCESSOR if tensor.memory == "dram" else L1_ACCESSOR
    size = page_bytes(tensor)
    if not tensor.shard_cores:
        return [config, size]
    coordinates = [x << 8 | y for x, y in tensor.shard_cores]
    pairs = zip(coordinates[::2], [*coordinates[1::2], 0], strict=False)
    banks = [second << 16 | first for first, second in pairs]
    return [config | SHARDED, size, 2, len(coordinates), *folded_tiles(tensor.shape), *shard_tiles(tensor), *banks]


def _backing(program: compiled.Program) -> set[int]:
    """Tensors whose shards hold buffers."""
    return {buffer.tensor for buffer in program.buffers if buffer.tensor is not None}


def _reaches_shards(program: compiled.Program) -> bool | None:
    """Cores must run at once if one may read or write the shard of another; None: as their calls say."""
    arguments = [each for thread in program.threads for each in thread.compile_time_args]
    read = {each.what for each in arguments if isinstance(each, compiled.AccessorWords)}
    return True if read & _backing(program) else None


def _runtime_words(program: compiled.Program, thread: compiled.ThreadSpec, at: compiled.CallPlace) -> list[int]:
    missing = [name for name in program.number_names if name not in at.numbers]
    if missing:
        raise NativeError(f"the program needs a value for its argument '{missing[0]}'")
    return [int(argument.word(at)) for argument in thread.runtime_args]


def native_program(program: compiled.Program, pages: Sequence[Array], scalars: Mapping[str, int]) -> NativeProgram:
    """``pages`` are the tensors' bytes in the order of L1."""
    columns = program.options.chip.grid[0]
    places = {chip_place(core, program.grid, columns): core for core in cores_of(program.grid)}
    grid = (1 + max(x for x, _ in places), 1 + max(y for _, y in places))
    addresses = [_address(number) for number in range(len(program.tensors))]
    calls = {
        place: compiled.CallPlace(core=core, grid=program.grid, addresses=addresses, numbers=scalars)
        for place, core in places.items()
    }
    kernels = [
        KernelSource(
            role=thread.role, text=program.cpp[thread.role], name=f"{program.name}/{thread.role}.cpp",
            compile_time_args=_compile_time_words(program, thread),
            runtime_args={place: _runtime_words(program, thread, at) for place, at in calls.items()},
        )
        for thread in program.threads
    ]  # fmt: skip
    tensors = [
        TensorSpec(
            name=str(number), address=_address(number), page_bytes=page_bytes(spec), pages=raw.nbytes // page_bytes(spec),
            data=raw,
            dtype=spec.dtype, memory=spec.memory, shards=pages_by_place(spec) if number in _backing(program) else {},
        )
        for number, (spec, raw) in enumerate(zip(program.tensors, pages, strict=True))
    ]  # fmt: skip
    config = program.config
    return NativeProgram(
        kernels=kernels,
        buffers=[
            BufferSpec(
                index=buffer.index, dtype=buffer.dtype, pages=buffer.tiles, alias_of=buffer.alias_of, tensor=buffer.tensor,
                first_page=buffer.first_tile,
            )
            for buffer in program.buffers
        ],
        tensors=tensors,
        semaphores={semaphore.index: semaphore.initial for semaphore in program.semaphores},
        grid=grid,
        cores=list(places),
        config=ComputeConfig(
            fp32_dest_acc_en=config.fp32_dest_acc_en, dst_full_sync_en=config.dst_full_sync_en,
            math_fidelity=config.math_fidelity, unpack_to_dest=frozenset(config.unpack_to_dest),
        ),
        metal=program.options.metal,
        coupled=_reaches_shards(program),
        chip=program.options.chip,
    )  # fmt: skip


def findings_error(findings: Sequence[Finding]) -> KernelError:
    """Findings as the error a kernel call raises."""
    return KernelError(
        *(
            Diagnostic(
                code=CODE_OF.get(finding.code, OTHER_CODE), message=f"[{finding.code}] {finding.thread}: {finding.message}",
                span=Span(finding.file, finding.line) if finding.file else None,
            )
            for finding in findings
        )
    )  # fmt: skip


def run_program(
    program: compiled.Program, arrays: Sequence[Array], *, scalars: Mapping[str, int] | None = None, seconds: int
) -> NativeResult:
    """Runs the emitted C++ on ``arrays`` (as `simulate` takes them); outputs are written in place. Errors found are raised."""
    from tilewright.native.driver import run_native

    arithmetic = ExactArithmetic(program.config, program.options.arch)
    pages = [arithmetic.pages(spec, array) for spec, array in zip(program.tensors, arrays, strict=True)]
    raw = [in_memory(spec, page) for spec, page in zip(program.tensors, pages, strict=True)]
    stated = native_program(program, raw, scalars or {})
    result = run_native(stated, seconds=seconds)
    if result.errors:
        raise findings_error(result.errors)
    found = _pages_after(result, program.tensors, pages)
    if any(finding.code == "near-cancellation" for finding in result.findings):
        with contextlib.redirect_stdout(None):  # prints of the kernels have been seen
            other = run_native(replace(stated, chip=replace(stated.chip, cancellation_erratum=False)), seconds=seconds)
        right = _pages_after(other, program.tensors, pages)
        result = replace(result, warnings=tuple(cancellation_warnings(program.tensors, found, right)))
    result = replace(result, warnings=(*result.warnings, *_passed_breakpoints(program)))
    for spec, page, after, array in zip(program.tensors, pages, found, arrays, strict=True):
        if not np.array_equal(after, page):
            arithmetic.write_back(spec, after, array)
    return result


def _passed_breakpoints(program: compiled.Program) -> list[Diagnostic]:
    """Breakpoints are comments in the C++: who set one should know why nothing stopped."""
    places = {
        span_of(op): None for op in operations(program.module) if isinstance(op, KernelCallOp) and op.CALL.name == "breakpoint"
    }
    message, help = "breakpoint() stops the simulator only; this run went past it", "leave out --native to stop there"
    return [Diagnostic(code="TW523", severity="warning", message=message, span=span, help=help) for span in places]


def _pages_after(result: NativeResult, specs: Sequence[compiled.TensorSpec], before: Sequence[Array]) -> list[Array]:
    return [
        from_memory(spec, result.outputs[str(number)].view(pages.dtype)).reshape(pages.shape)
        for number, (spec, pages) in enumerate(zip(specs, before, strict=True))
    ]
