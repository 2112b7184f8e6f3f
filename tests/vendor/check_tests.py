"""Launches the programs of end-to-end tests through the installed ttnn on a mock device, as ``check_kernels.py`` does its own.

    python tests/vendor/check_tests.py FOLDER [WORD…] [--arch wormhole_b0|blackhole] [--api 1.0|2.0]

The tests run in this process, compiled for the chip and the installed release; the first programs that each compiles are kept, each text
once. They simulate but nothing runs natively. Without words: the files of `FORMS`, which use what the corpus does not.
Needs pytest and hypothesis.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import stand_in

ROOT = Path(__file__).resolve().parents[2]
MOST_OF_A_TEST = 3  # programs of one test function, which may have many cases
FORMS = (
    "any_size", "batched_transfers", "block_parts", "external_code", "integer_reductions", "kernel_names", "many_nets",
    "more_dimensions", "networks", "numbers_from_data", "reads_ahead", "row_blocks", "row_major", "scans", "shards", "shared_buffers", "slices",
    "tile_sizes", "wait_any", "whole_operation",
)  # fmt: skip


def main(folder: Path, words: list[str], arch: str, api: str) -> int:
    stand_in.prepare(folder, arch)
    import mock_device
    import ttnn

    from tilewright.runtime.devices import installed_release

    files = [path for path in sorted((ROOT / "tests" / "end_to_end").glob("test_*.py")) if named(path, words)]
    found = collected(files, {"metal": installed_release(), "arch": arch, "api": api})
    device = ttnn.open_device(device_id=0)
    failed = 0
    for name, program in found:
        problem = mock_device.problem_of(ttnn, device, program)
        failed += bool(problem)
        if problem:
            print(f"{name}: {problem}", flush=True)
    ttnn.close_device(device)
    warned = mock_device.warnings([unit["messages"] for unit in mock_device.units(folder)])
    print(*(f"warning: {text}" for text in warned), f"{len(found)} kernels of {len(files)} tests, {failed} failed, {len(warned)} warnings", sep="\n")
    return 1 if failed or warned or not found else 0


def named(path: Path, words: list[str]) -> bool:
    return any(word in path.stem for word in words) if words else path.stem.removeprefix("test_") in FORMS


def collected(files: list[Path], target: dict[str, str]) -> list[tuple[str, Any]]:
    """Every program that a test compiles, with the name of the test."""
    import pytest

    from tilewright.native import driver
    from tilewright.sim import run as sim_run

    programs = Programs(target)
    ttnn = sys.modules.pop("ttnn")  # kernels that are given arrays stay off the device
    native, driver.run = driver.run, lambda program, arrays, *, scalars=None, **_: Simulated(sim_run.simulate(program, arrays, scalars=scalars))
    try:
        pytest.main(["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", *map(str, files)], plugins=[programs])
    finally:
        driver.run = native
        sys.modules["ttnn"] = ttnn
    return programs.found


class Simulated:
    """What a test asks of a native run."""

    errors = ()

    def __init__(self, result: Any) -> None:
        self.result = result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.result, name)


class Programs:
    """A plugin of pytest: compiles every kernel for ``target`` and keeps the programs."""

    def __init__(self, target: dict[str, str]) -> None:
        self.target = target
        self.found: list[tuple[str, Any]] = []
        self.texts: set[Any] = set()
        self.test = ""

    def pytest_runtest_protocol(self, item: Any) -> None:
        self.test = getattr(item, "originalname", item.name)

    def pytest_configure(self) -> None:
        from tilewright.jit.kernel import Kernel

        made = Kernel._program

        def program(kernel: Any, values: Any, options: Any, *given: Any, **named: Any) -> Any:
            result = made(kernel, values, options.updated(**self.target), *given, **named)
            text = tuple(sorted(result.cpp.items()))
            if text not in self.texts and sum(name == self.test for name, _ in self.found) < MOST_OF_A_TEST:
                self.texts.add(text)
                self.found.append((self.test, result))
            return result

        Kernel._program = program
        self.undo = lambda: setattr(Kernel, "_program", made)

    def pytest_unconfigure(self) -> None:
        self.undo()

    @staticmethod
    def pytest_collection_finish() -> None:
        """conftest.py has made it by now: what was simulated would run natively at the end of each test."""
        from native_twin import NativeTwin

        NativeTwin.settle = lambda _: None


if __name__ == "__main__":
    given = stand_in.arguments(__doc__)
    sys.exit(main(given.folder, given.words, given.arch, given.api))
