"""The untrusted side of a verdict: runs the file, compiles its kernels, records which tensors each call got. Nothing is computed.

The file gets inputs of the right shapes whose values mean nothing, twice, with other values each time. A kernel's program must
not depend on them, and neither may data that the host makes: whoever computes on the host is seen by that. What leaves the
process is a package, a list of calls and the constants they use.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright import execution, package
from tilewright.diagnostics import KernelError, fail
from tilewright.jit.kernel import Kernel
from tilewright.narrowing import as_tuple
from tilewright.program import Program
from tilewright.score.sandbox import Forbidden, confine
from tilewright.standins import finder

RESULT = "result.json"
CONSTANTS = "constants.npz"
PACKAGE = "package"


class Recorder:
    """Which tensor is which: an input, something an earlier call got, or a constant of the host."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.values: list[Any] = list(inputs)  # kept, so that an identity is not used again
        self.numbers = {id(value): number for number, value in enumerate(inputs)}
        self.inputs = len(inputs)
        self.constants: dict[int, Any] = {}
        self.programs: list[Program] = []
        self.calls: list[dict[str, Any]] = []
        self.written: set[int | None] = set()

    def __call__(self, program: Program, tensors: Sequence[Any], numbers: Mapping[str, int]) -> None:
        given = [None if tensor is None else self.number(tensor) for tensor in tensors]
        known = next((place for place, each in enumerate(self.programs) if each is program), None)
        if known is None:
            known = len(self.programs)
            self.programs.append(program)
        self.written |= {given[index] for index in changed(program)}
        self.calls.append({"program": known, "tensors": given, "numbers": dict(numbers)})

    def number(self, tensor: Any) -> int:
        from tilewright.lang.tensors import elements

        known = self.numbers.get(id(tensor))
        if known is None:
            known = self.numbers[id(tensor)] = len(self.values)
            self.values.append(tensor)
            self.constants[known] = elements(tensor).copy()
        return known


def changed(program: Program) -> set[int]:
    """Numbers of the caller's tensors that a run changes."""
    caller = program.argument_layouts
    return {index if caller is None else caller.owner(index) for index in program.written_tensors}


def main(words: Sequence[str]) -> int:
    """``JOB.json``: the file, its entry, shapes and dtypes of the inputs and outputs; the result lies beside the job."""
    job = json.loads(Path(words[0]).read_text())
    folder = Path(words[0]).parent
    for needed in ("numpy", "ml_dtypes", "tilewright.compiler", "tilewright.runtime.runner"):
        importlib.import_module(needed)  # before the doors close: loading a library is what `confine` refuses
    confine(folder, [Path(job["kernel"])])
    try:
        told = recorded(job, folder)
    except Forbidden as error:
        told = {"verdict": "forbidden", "message": str(error)}
    except KernelError as error:
        found = [each.as_json() for each in error.diagnostics]
        told = {"verdict": "refused", "message": error.diagnostics[0].message, "diagnostics": found}
    except MemoryError:
        told = {"verdict": "memory", "message": "it used more memory than it may"}
    except BaseException as error:
        told = {"verdict": "crashed", "message": f"{type(error).__name__}: {error}"[:500]}
    (folder / RESULT).write_text(json.dumps(told))
    return 0


def recorded(job: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Runs the file on two sets of meaningless inputs; what it called, if both say the same."""
    import numpy as np

    with finder.installed(finder.PACKAGES):
        names = runpy.run_path(job["kernel"], run_name="candidate")
        entry = chosen(names, job.get("entry"))
        first, second = (_traced(entry, job, seed) for seed in (1, 2))
    recorder, results = first
    if not recorder.calls:
        return {"verdict": "cheating", "message": "no kernel was called: the host computes the result"}
    if (recorder.calls, results) != (second[0].calls, second[1]) or _texts(recorder) != _texts(second[0]):
        return {"verdict": "cheating", "message": "what is compiled depends on the values of the inputs"}
    for number, array in recorder.constants.items():
        if array.tobytes() != second[0].constants[number].tobytes():
            return {"verdict": "cheating", "message": "the host computes on the inputs: a kernel was given what it made of them"}
    strange = [number for number in results if number is None or number not in recorder.written]
    if strange:
        return {"verdict": "cheating", "message": "a result is not what a kernel wrote: the host made or changed it"}
    package.write(recorder.programs, folder / PACKAGE, source=Path(job["kernel"]).name)
    np.savez(folder / CONSTANTS, **{str(number): array for number, array in recorder.constants.items()})
    return {"verdict": "compiled", "message": "", "calls": recorder.calls, "results": results}


def chosen(names: Mapping[str, Any], entry: str | None) -> Any:
    """The kernel or host function to judge: the one named, ``run``, or the only kernel of the file."""
    if entry is not None:
        if not callable(names.get(entry)):
            raise fail("TW608", f"the file has no '{entry}' that can be called")
        return names[entry]
    if callable(names.get("run")):
        return names["run"]
    kernels = {id(value): value for value in names.values() if isinstance(value, Kernel)}
    if len(kernels) != 1:
        found = f"the file has {len(kernels)} kernels" if kernels else "the file has no kernel"
        raise fail("TW608", f"{found} and no function 'run'", help="define run(*inputs), or name the kernel with --entry")
    return next(iter(kernels.values()))


def _traced(entry: Any, job: Mapping[str, Any], seed: int) -> tuple[Recorder, list[int | None]]:
    inputs = [meaningless(each, seed + place) for place, each in enumerate(job["inputs"])]
    outputs = [meaningless(each, 0) * 0 for each in job["outputs"]]
    recorder = Recorder(inputs)
    overrides = {"arch": job["arch"]}
    with execution.session(mode=execution.SIM, runner=recorder, overrides=overrides, cache=False):
        if isinstance(entry, Kernel):
            for output in outputs:
                recorder.number(output)
            entry(*inputs, *outputs)
            found: Sequence[Any] = outputs
        else:
            returned = entry(*inputs)
            found = as_tuple(returned)
    if len(found) != len(outputs):
        raise fail("TW608", f"the candidate returned {len(found)} tensors, the reference {len(outputs)}")
    return recorder, [recorder.numbers.get(id(each)) for each in found]


def meaningless(described: Mapping[str, Any], seed: int) -> Any:
    import ml_dtypes
    import numpy as np

    kind = ml_dtypes.bfloat16 if described["dtype"] == "bf16" else np.dtype(described["dtype"])
    shape: tuple[int, ...] = tuple(described["shape"])
    return (np.random.default_rng(seed).uniform(1, 2, shape) * 8).astype(kind)


def _texts(recorder: Recorder) -> list[dict[str, str]]:
    return [program.cpp for program in recorder.programs]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
