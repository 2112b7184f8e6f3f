"""Launches kernels through the installed ttnn on a mock device, which builds them with ``compiler.py``.

    python tests/vendor/check_kernels.py FOLDER [WORD…] [--arch wormhole_b0|blackhole] [--api 1.0|2.0]

All structural and real kernels of the corpus, every example, and prints; with words, the kernels of the corpus that have one in their name;
``examples`` stands for the examples and prints alone.
For each: it builds without an error or a warning, the descriptor hashes alike when it is described again, ``runner.py`` makes a
descriptor with the same hash and arguments, and clang-format, if there is one, has nothing to change.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stand_in

ROOT = Path(__file__).resolve().parents[2]


def main(folder: Path, words: list[str], arch: str, api: str) -> int:
    stand_in.prepare(folder, arch)
    import mock_device
    import ttnn

    from tilewright.progress import progress, say
    from tilewright.runtime.devices import installed_release

    device = ttnn.open_device(device_id=0)
    count, failed = 0, 0
    lost = bits_problem(ttnn)
    if lost:
        failed += 1
        print(f"tensors: {lost}", flush=True)
    with progress("kernels through ttnn") as shown:
        for name, program in programs(folder, {"metal": installed_release(), "arch": arch, "api": api}, words):
            problem = mock_device.problem_of(ttnn, device, program) or file_problem(ttnn, device, program, folder)
            count, failed = count + 1, failed + bool(problem)
            if problem:
                say(f"{name}: {problem}")
            shown.tell(count, 0, f"{failed} failed, last {name}")
    ttnn.close_device(device)
    warned = mock_device.warnings([unit["messages"] for unit in mock_device.units(folder)])
    print(*(f"warning: {text}" for text in warned), f"{count} kernels, {failed} failed, {len(warned)} warnings", sep="\n")
    return 1 if failed or warned else 0


def programs(folder: Path, target: dict[str, str], words: list[str]) -> Iterator[tuple[str, Any]]:
    import mock_device

    import kernel_corpus

    if words == ["examples"]:
        chosen = []
        yield from example_programs(target)
        yield from printing_programs(target)
    elif words:
        chosen = [kernel for kernel in kernel_corpus.corpus() if any(word in kernel.name for word in words)]
    else:
        chosen = [*kernel_corpus.structural_kernels(), *kernel_corpus.real_kernels()]
        yield from example_programs(target)
        yield from printing_programs(target)
    for kernel in chosen:
        yield kernel.name, mock_device.compiled(kernel, folder, target)


def example_programs(target: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Programs of the examples: their host code is run, their kernels are only compiled."""
    from tilewright import execution
    from tilewright.cli import invocation

    for path in sorted((ROOT / "examples").rglob("*.py")):
        found: list[Any] = []
        compile_only = execution.session(
            mode=execution.COMPILE, overrides=target, on_compiled=(found.append,), cache=False
        )
        with compile_only, without_ttnn(), contextlib.suppress(AssertionError):  # it checks results, and nothing was computed
            invocation.run_script(str(path), [])
        distinct = {id(program): program for program in found}
        yield from ((f"{path.name}: {program.name}", program) for program in distinct.values())


def printing_programs(target: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Debug prints of every kind."""
    import ml_dtypes
    import numpy

    import print_kernel

    for dtype in (ml_dtypes.bfloat16, numpy.float32):
        yield f"prints {dtype.__name__}", print_kernel.doubled.compile(*print_kernel.tensors(dtype), debug_print=True, **target)


@contextlib.contextmanager
def without_ttnn() -> Iterator[None]:
    """Scripts that import ttnn get the stand-in, whose tensors need no device."""
    ours = sys.modules.pop("ttnn")
    try:
        yield
    finally:
        sys.modules["ttnn"] = ours


def bits_problem(ttnn: Any) -> str:
    """Every bfloat16 pattern, NaNs too, through ttnn's host tensors: a mock device holds nothing, so it ends there."""
    import ml_dtypes
    import numpy

    from tilewright.program import TensorSpec
    from tilewright.runtime import devices

    class Host:
        """Of ttnn, only that nothing goes to a device and nothing comes from one."""

        def __getattr__(self, name: str) -> Any:
            return getattr(ttnn, name)

        def to_device(self, tensor: Any, device: Any, memory_config: Any) -> Any:
            return tensor

        def from_device(self, tensor: Any) -> Any:
            return tensor

    given = numpy.arange(65536, dtype=numpy.uint16).reshape(256, 256).view(ml_dtypes.bfloat16)
    for layout in ("tile", "row_major"):
        spec = TensorSpec(name="a", shape=(256, 256), dtype="bf16", layout=layout)
        back = numpy.zeros_like(given)
        devices.to_host(Host(), devices.to_device(Host(), given, spec, None), back, spec)
        if back.tobytes() != given.tobytes():
            return f"{numpy.count_nonzero(back.view('u2') != given.view('u2'))} bfloat16 patterns change on the way ({layout})"
    return ""


def style_problem(files: list[Path]) -> str:
    """Lines clang-format would write differently; nothing where it is not installed."""
    if shutil.which("clang-format") is None:
        return ""
    command = ["clang-format", "--dry-run", "-Werror", f"--style=file:{ROOT / '.clang-format'}", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True).stderr


def file_problem(ttnn: Any, device: Any, program: Any, folder: Path) -> str:
    import mock_device

    from tilewright.cli.compile import write_all
    from tilewright.runtime import launch
    from tilewright.runtime.descriptor import arguments
    from tilewright.runtime.runner import facts

    numbers = dict.fromkeys(program.number_names, 1)
    tensors = mock_device.tensors_of(ttnn, device, program)
    first = launch.describe(program, tensors, numbers, device=device)
    described = ttnn.compute_program_descriptor_hash(first)
    again = launch.describe(program, mock_device.tensors_of(ttnn, device, program), numbers, device=device)
    if ttnn.compute_program_descriptor_hash(again) != described:
        return "its descriptor hashes differently for other addresses"
    written = write_all([program], folder / "runner", runner=True)
    style = style_problem([path for path in written.values() if path.suffix == ".cpp"])
    if style:
        return style
    scope: dict[str, Any] = {"__file__": str(folder / "runner" / program.name / "runner.py"), "__name__": "runner"}
    exec(compile(Path(scope["__file__"]).read_text(encoding="utf-8"), scope["__file__"], "exec"), scope)
    alone = scope["describe"](tensors, numbers, device)
    if ttnn.compute_program_descriptor_hash(alone) != described:
        return "runner.py describes another program"
    ours = [[list(words) for _, words in kernel] for kernel in arguments(ttnn, facts(program), tensors, numbers, device)]
    theirs = [[list(kernel.runtime_args[x][y]) for x, y in scope["PROGRAM"]["cores"]] for kernel in alone.kernels]
    return "" if ours == theirs else "runner.py passes other run-time arguments"


if __name__ == "__main__":
    given = stand_in.arguments(__doc__)
    sys.exit(stand_in.exit_code(lambda: main(given.folder, given.words, given.arch, given.api), quiet=given.quiet))
