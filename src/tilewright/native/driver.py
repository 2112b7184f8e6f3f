"""Compiles the kernels of a program with the system compiler and runs them on the host.

The runner asks for vector-unit functions that it has no algorithm of its own for. Those functions are recordings or ports of
the real kernels and live with the simulator's numbers; asking for them keeps both runs on one definition. A request is five
words (length of the name, operands, 32-bit DST, count, number of parameters), the name, the parameters and the operands; the
answer is 1 and the values, or 0.

The calls that every thread made are listed by ``recording.cpp``; a timeline of hand-written kernels reads them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tilewright.diagnostics import Diagnostic
from tilewright.host_compiler import at_once
from tilewright.native.findings import Finding, NativeError, parse_finding
from tilewright.native.program import (
    CALLS_FILE,
    COMPUTE_THREADS,
    BufferSpec,
    Bytes,
    ComputeConfig,
    KernelSource,
    NativeProgram,
    TensorSpec,
    needs_three_units,
    release_of,
    unit_text,
    write_program,
)
from tilewright.native.toolchain import compile_kernel, refuse_unmodelled, runner_path
from tilewright.progress import progress
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.program import Program


Words = NDArray[np.uint32]
HEADER_WORDS = 5


def evaluate(chip: str, key: str, operands: list[Words], params: tuple[int, ...], *, wide: bool) -> Words | None:
    """``name`` or ``name:variant`` of one to three operands, or None if the numeric model does not have it."""
    from tilewright.sim.numerics import sfpu
    from tilewright.sim.numerics.lanes import UnknownOperation

    name, _, variant = key.partition(":")
    try:
        if len(operands) == 1:
            return sfpu.unary(chip, name, operands[0], dst32=wide, params=params, variant=variant)
        if len(operands) == 2:
            return sfpu.binary(chip, name, *operands, dst32=wide, params=params)
        return sfpu.ternary(chip, name, *operands, dst32=wide, params=params)
    except (UnknownOperation, IndexError):
        return None


def serve(chip: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until the runner closes its end."""
    while True:
        header = requests.read(HEADER_WORDS * 4)
        if len(header) < HEADER_WORDS * 4:
            return
        length, inputs, wide, count, param_count = (int(word) for word in np.frombuffer(header, np.uint32))
        key = requests.read(length).decode()
        params = tuple(int(word) for word in np.frombuffer(requests.read(param_count * 4), np.uint32))
        operands = [np.frombuffer(requests.read(count * 4), np.uint32) for _ in range(inputs)]
        values = evaluate(chip, key, operands, params, wide=bool(wide))
        try:
            answers.write(np.uint32(values is not None).tobytes())
            if values is not None:
                answers.write(np.ascontiguousarray(values, dtype=np.uint32).tobytes())
            answers.flush()
        except BrokenPipeError:
            return


MOST_CALLS = 2_000_000  # of all threads together

Core = tuple[int, int]


@record
class RecordedCall:
    """One call, with its integers: what they mean depends on the name."""

    name: str
    words: tuple[int, ...]
    file: str
    line: int


Recording = Mapping[tuple[Core, str], list[RecordedCall]]  # by core and processor: reader, unpack, math, pack, writer


def read_recording(path: Path) -> Recording:
    """Calls that are alike share one object: loops make the same calls again and again."""
    found: dict[tuple[Core, str], list[RecordedCall]] = {}
    known: dict[str, tuple[tuple[Core, str], RecordedCall]] = {}
    for count, line in enumerate(_lines(path)):
        if count >= MOST_CALLS:
            raise NativeError(f"the kernels make more than {MOST_CALLS:,} calls: give them less to do")
        if line not in known:
            x, y, thread, file, number, name, *words = line.split("\t")
            key = ((int(x), int(y)), thread)
            known[line] = (key, RecordedCall(name, tuple(map(int, words)), file, int(number)))
        key, call = known[line]
        found.setdefault(key, []).append(call)
    return found


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            yield line.rstrip("\n")


__all__ = [
    "BufferSpec", "ComputeConfig", "Finding", "KernelSource", "NativeProgram", "NativeResult", "TensorSpec", "compile_kernels",
    "run", "run_native",
]  # fmt: skip

DEFAULT_SECONDS = 120


@record(kw_only=True)
class NativeResult:
    """``outputs`` holds every tensor's bytes after the run, by name."""

    outputs: Mapping[str, Bytes]
    findings: tuple[Finding, ...]
    stats: Mapping[str, int] = field(default_factory=dict[str, int])
    warnings: tuple[Diagnostic, ...] = ()  # of a compiled program, in its user's words
    calls: Recording = field(default_factory=dict[Any, Any])  # if the program asked for them

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")


def compile_kernels(program: NativeProgram) -> dict[str, Path]:
    """Thread -> shared object. Kernels are compiled in parallel, and only if their content is new."""
    release = release_of(program.metal)
    units: dict[str, tuple[str, str]] = {}
    for kernel in program.kernels:
        if kernel.path is not None:
            refuse_unmodelled(kernel.label(), kernel.source(), kernel.include_folders)
        if kernel.role != "compute":
            units[kernel.role] = (kernel.label(), unit_text(program, kernel, kernel.role))
            continue
        apart = needs_three_units(kernel.source())
        for thread in COMPUTE_THREADS:
            units[thread] = (kernel.label(), unit_text(program, kernel, thread if apart else "compute"))
    distinct = {text: name for name, text in units.values()}
    folders = {kernel.label(): kernel.include_folders for kernel in program.kernels}

    def build(text: str) -> Path:
        return compile_kernel(distinct[text], text, release, folders[distinct[text]])

    built = dict(zip(distinct, at_once(build, distinct, max(1, len(distinct))), strict=True))
    return {thread: built[text] for thread, (_, text) in units.items()}


def _read_result(path: Path) -> tuple[str, str, list[Finding], dict[str, int]]:
    status, message = "error", "the runner wrote no result"
    findings: list[Finding] = []
    stats: dict[str, int] = {}
    if not path.exists():
        return status, message, findings, stats
    for line in path.read_text(errors="replace").splitlines():
        key, *fields = line.split("\t")
        if key == "status":
            status, message = fields[0], fields[1].replace("\\n", "\n")
        elif key == "finding":
            findings.append(parse_finding(fields))
        elif key == "stats":
            stats = {name: int(value) for name, value in (item.split("=") for item in fields)}
    return status, message, findings, stats


def _read_outputs(program: NativeProgram, data: Path, offsets: list[int]) -> dict[str, Bytes]:
    raw = np.fromfile(data, dtype=np.uint8)
    return {
        tensor.name: raw[offset : offset + tensor.page_bytes * tensor.pages].copy()
        for tensor, offset in zip(program.tensors, offsets, strict=True)
    }


def _execute(command: list[str], chip: str) -> str:
    """Runs the runner, answering its requests; returns what it wrote to standard error."""
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints)
        assert process.stdin is not None and process.stdout is not None
        try:
            with process:
                serve(chip, process.stdout, process.stdin)  # type: ignore[arg-type]
        except BaseException:  # whoever interrupts us may have told only us
            process.kill()
            raise
        complaints.seek(0)
        return complaints.read().decode(errors="replace").strip()


def run_native(program: NativeProgram, *, seconds: int = DEFAULT_SECONDS) -> NativeResult:
    """Runs a program to its end, a deadlock or the time limit. Tensors given in are not changed."""
    steps: tuple[Callable[[], Any], ...] = (runner_path, partial(compile_kernels, program))  # the first time both take seconds
    built: list[Any] = at_once(lambda step: step(), steps, len(steps))
    runner, libraries = built
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        path, offsets = write_program(program, libraries, folder)
        with progress("running natively"):
            complaint = _execute([str(runner), str(path), str(folder / "result"), str(seconds)], program.chip.name)
        status, message, findings, stats = _read_result(folder / "result")
        if status == "error":
            raise NativeError(f"{message}{complaint and ': '}{complaint}")
        if complaint:  # what the kernels print
            print(complaint, flush=True)
        if status in ("timeout", "crash"):
            findings.append(Finding(code=status, message=message))
        outputs = _read_outputs(program, folder / "data", offsets)
        calls = read_recording(folder / CALLS_FILE) if program.record else None
        return NativeResult(outputs=outputs, findings=tuple(findings), stats=stats, calls=calls or {})


def run(
    program: NativeProgram | Program,
    arrays: Sequence[Any] | None = None,
    *,
    scalars: Mapping[str, int] | None = None,
    seconds: int = DEFAULT_SECONDS,
) -> NativeResult:
    """Runs a program stated by hand, or one of the compiler's on ``arrays``, which it changes in place."""
    if isinstance(program, NativeProgram):
        return run_native(program, seconds=seconds)
    from tilewright.native.compiled import run_program

    return run_program(program, arrays or (), scalars=scalars, seconds=seconds)
