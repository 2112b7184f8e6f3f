"""The trusted side of a verdict: inputs, the reference, the recorded calls on the simulator, the error and the time.

What decides ``correct``: every shape of the reference, on random numbers and on zeros. Harder inputs (denormals, large numbers,
infinities, sizes that are no multiple of a tile) are run too and told one by one; ``robust`` is true if all of them hold. Where
the reference itself is not finite nothing is compared.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import execution, package
from tilewright.comparison import difference, tolerance_of
from tilewright.diagnostics import KernelError, fail
from tilewright.narrowing import as_tuple
from tilewright.records import record
from tilewright.score import sandbox
from tilewright.score.candidate import CONSTANTS, PACKAGE, RESULT, changed

if TYPE_CHECKING:
    from tilewright.program import Program

DTYPES = {"bf16": "bf16", "bfloat16": "bf16", "float32": "float32", "f32": "float32"}  # as written, as NumPy calls it


@record(kw_only=True)
class Limits:
    seconds: float = 60.0  # for the candidate, and again for running it
    memory: int = 4 * 2**30


@record(kw_only=True)
class Task:
    """What the reference file says."""

    function: Callable[..., Any]
    shapes: list[dict[str, tuple[int, ...]]]  # by the name of the input; each is a case
    dtype: str  # bf16 or float32
    tolerance: tuple[float, float]
    made: Callable[..., Any] | None  # inputs(rng, shapes), where uniform numbers will not do


def task_of(reference: Path) -> Task:
    """``reference(*inputs)`` in float64 NumPy, and ``INPUTS`` (or ``SHAPES``, a list of them): shapes by name."""
    names = runpy.run_path(str(reference), run_name="reference")
    if not callable(names.get("reference")):
        raise fail("TW608", f"{reference} defines no function 'reference'", help="def reference(x, w): return x @ w, in NumPy")
    shapes = names.get("SHAPES") or ([names["INPUTS"]] if "INPUTS" in names else [])
    if not shapes:
        raise fail("TW608", f"{reference} defines no INPUTS", help='INPUTS = {"x": (64, 64), "w": (64, 64)}')
    written = names.get("DTYPE", "bf16")
    if written not in DTYPES:
        raise fail("TW608", f"DTYPE = {written!r} in {reference}", help="bf16 or float32")
    dtype = DTYPES[written]
    return Task(
        function=names["reference"],
        shapes=[{name: tuple(shape) for name, shape in each.items()} for each in shapes],
        dtype=dtype,
        tolerance=tuple(names.get("TOLERANCE", tolerance_of("bf16" if dtype == "bf16" else "f32"))),
        made=names.get("inputs"),
    )


def verdict(
    kernel: Path, reference: Path, folder: Path, *,
    baseline: Path | None = None, arch: str, entry: str | None, limits: Limits, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """The whole verdict as one JSON object. ``folder`` is empty and private."""
    task = task_of(reference)
    told: dict[str, Any] = {
        "kernel": kernel.name, "correct": False, "robust": False, "verdict": "", "message": "", "error": None, "time": None,
        "bound": None, "speedup": None, "cases": [], "diagnostics": [], "errors_by_code": {}, "arch": arch, "seed": seed,
    }  # fmt: skip
    for number, shapes in enumerate(task.shapes):
        place = folder / f"shape{number}"
        place.mkdir()
        ended = shape_verdict(task, shapes, kernel, reference, place, arch=arch, entry=entry, limits=limits, seed=seed, told=told)
        if not ended:
            break
    else:
        compared = [case for case in told["cases"] if not case["hard"]]
        wrong = next((case for case in compared if not case["holds"]), None)
        told["correct"] = wrong is None
        told["robust"] = all(case["holds"] for case in told["cases"])
        told["verdict"] = "correct" if wrong is None else "wrong"
        told["message"] = "" if wrong is None else f"{wrong['name']}: {wrong['message']}"
        told["error"] = max((case["error"] for case in compared if case["error"] is not None), default=None)
    if baseline is not None and told["time"] is not None:
        place = folder / "baseline"
        place.mkdir()
        other = verdict(baseline, reference, place, arch=arch, entry=None, limits=limits, seed=seed)
        told["baseline"] = {name: other[name] for name in ("correct", "verdict", "message", "time")}
        if other["time"]:
            told["speedup"] = round(other["time"]["microseconds"] / told["time"]["microseconds"], 3)
    for found in told["diagnostics"]:
        code = found.get("code", "")
        told["errors_by_code"][code] = told["errors_by_code"].get(code, 0) + 1
    return told


def shape_verdict(
    task: Task, shapes: Mapping[str, tuple[int, ...]], kernel: Path, reference: Path, place: Path, *,
    arch: str, entry: str | None, limits: Limits, seed: int, told: dict[str, Any],
) -> bool:  # fmt: skip
    """Compiles and runs the candidate for one set of shapes; whether the verdict is still open."""
    outputs = [list(each.shape) for each in _reference(task, _arrays(task, shapes, "random", seed))]
    job = {
        "kernel": str(kernel.resolve()),
        "entry": entry,
        "arch": arch,
        "inputs": [{"shape": list(shape), "dtype": task.dtype} for shape in shapes.values()],
        "outputs": [{"shape": shape, "dtype": task.dtype} for shape in outputs],
    }
    (place / "job.json").write_text(json.dumps(job))
    found = _confined("candidate", place / "job.json", RESULT, limits)
    if found["verdict"] != "compiled":
        told |= {"diagnostics": found.get("diagnostics", []), "verdict": found["verdict"], "message": found["message"]}
        return False
    run = {"reference": str(reference.resolve()), "shapes": dict(shapes), "seed": seed, **found}
    (place / "run.json").write_text(json.dumps(run))
    found = _confined("judge", place / "run.json", "verdict.json", limits)
    if found["verdict"] != "run":
        told |= {"diagnostics": found.get("diagnostics", []), "verdict": found["verdict"], "message": found["message"]}
        return False
    shown = ", ".join("x".join(map(str, shape)) for shape in shapes.values())
    told["cases"] += [{**case, "shapes": shown} for case in found["cases"]]
    if told["time"] is None:  # of the first shape
        told["time"], told["bound"] = found["time"], found["bound"]
    return True


def _confined(module: str, job: Path, result: str, limits: Limits) -> dict[str, Any]:
    """What a confined process wrote beside its job, or what became of it."""
    function, path = f"tilewright.score.{module}:main", job.with_name(result)
    ended = sandbox.run(function, [str(job)], folder=job.parent, seconds=limits.seconds, memory=limits.memory)
    if ended.late:
        return {"verdict": "timeout", "message": f"it did not end within {ended.seconds:.0f} s"}
    if ended.full:
        return {"verdict": "memory", "message": "it wrote more files than it may"}
    try:
        found = json.loads(path.read_text())
        if {type(found["verdict"]), type(found["message"])} != {str}:
            raise TypeError
        return found
    except (KeyError, TypeError):
        return {"verdict": "cheating", "message": "it wrote a result of its own"}
    except (OSError, ValueError):
        memory = "MemoryError" in ended.errors or "Cannot allocate memory" in ended.errors
        last = ended.errors.strip().splitlines()[-1:] or [f"it ended with code {ended.code}"]
        return {"verdict": "memory" if memory else "crashed", "message": last[0][:500]}


# In a confined process, but our own code on data only ----------------------------------------------------------------------


def main(words: Sequence[str]) -> int:
    path = Path(words[0])
    try:
        told = replayed(json.loads(path.read_text()), path.parent)
    except KernelError as error:
        found = [each.as_json() for each in error.diagnostics]
        told = {"verdict": "refused", "message": error.diagnostics[0].message, "diagnostics": found}
    except MemoryError:
        told = {"verdict": "memory", "message": "running it takes more memory than it may"}
    path.with_name("verdict.json").write_text(json.dumps(told))
    return 0


def replayed(run: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The recorded calls on every kind of input, and their time."""
    import numpy as np

    from tilewright.lang.tilelang_tensors import CallerTensors

    task = task_of(Path(run["reference"]))
    shapes = {name: tuple(shape) for name, shape in run["shapes"].items()}
    try:
        built = package.load(folder / PACKAGE)
        programs = [built.program(variant) for variant in built.variants]
        for program, variant in zip(programs, built.variants, strict=True):
            program.argument_layouts = None if variant.caller is None else CallerTensors(variant.caller.layouts, ())
        with np.load(folder / CONSTANTS, allow_pickle=False) as stored:
            constants = {int(name): stored[name] for name in stored.files}
        written = set[int]()
        for call in run["calls"]:
            written |= _written(call, programs, {*range(len(shapes)), *constants})
    except (KernelError, KeyError, TypeError, ValueError, IndexError, AttributeError, OSError) as error:
        # Files that the candidate's process has made or changed itself: ours can be read.
        return {"verdict": "cheating", "message": f"what it left behind is no program: {error}"[:500]}
    if not written.issuperset(run["results"]):
        return {"verdict": "cheating", "message": "a result is not what a kernel wrote"}
    cases: list[dict[str, Any]] = []
    for name, hard, inputs in kinds(task, shapes, run["seed"]):
        case: dict[str, Any] = {"name": name, "hard": hard, "holds": False, "error": None, "message": ""}
        try:
            got = _called(run, programs, inputs, constants)
            case |= compared(task, got, _reference(task, inputs))
        except KernelError as error:
            case["message"] = error.diagnostics[0].message
        cases.append(case)
    time, bound = _time(run, programs)
    return {"verdict": "run", "message": "", "cases": cases, "time": time, "bound": bound}


def _written(call: Mapping[str, Any], programs: Sequence[Program], known: set[int]) -> set[int]:
    """Tensors that a call writes; a ``ValueError`` if its program takes others than it gives."""
    number: int = call["program"]
    program, tensors = programs[number], call["tensors"]
    layouts = () if program.argument_layouts is None else program.argument_layouts.layouts
    given = [tensor for index, tensor in enumerate(tensors) if not layouts or not layouts[index].made]
    whole = known.issuperset(given) and len(tensors) == len(program.tensors)
    if not whole or sorted(call["numbers"]) != program.number_names:
        raise ValueError("a call that its program does not take")
    return {tensors[index] for index in changed(program)}


def kinds(task: Task, shapes: Mapping[str, tuple[int, ...]], seed: int) -> Iterator[tuple[str, bool, list[Any]]]:
    """Name, whether it is a hard one, and the arrays."""
    yield "random", False, _arrays(task, shapes, "random", seed)
    yield "random again", False, _arrays(task, shapes, "random", seed + 1)
    yield "zeros", False, _arrays(task, shapes, "zeros", seed)
    for name in ("denormals", "large", "infinities"):
        yield name, True, _arrays(task, shapes, name, seed)


def _arrays(task: Task, shapes: Mapping[str, tuple[int, ...]], kind: str, seed: int) -> list[Any]:
    import ml_dtypes
    import numpy as np

    rng = np.random.default_rng(seed)
    stored = ml_dtypes.bfloat16 if task.dtype == "bf16" else np.float32
    if task.made is not None and kind == "random":
        return [np.asarray(each).astype(stored) for each in task.made(rng, dict(shapes))]
    found: list[Any] = []
    for shape in shapes.values():
        values = rng.uniform(-1, 1, shape)
        if kind == "zeros":
            values = np.zeros(shape)
        elif kind == "denormals":
            values *= 1e-39
        elif kind == "large":
            values *= 1e4
        elif kind == "infinities":
            values[rng.uniform(size=shape) < 0.02] = np.inf
            values[rng.uniform(size=shape) < 0.02] = -np.inf
        found.append(values.astype(stored))
    return found


def _reference(task: Task, inputs: Sequence[Any]) -> list[Any]:
    import numpy as np

    with np.errstate(all="ignore"):
        found = task.function(*(each.astype(np.float64) for each in inputs))
    return [np.asarray(each, dtype=np.float64) for each in (as_tuple(found))]


def _called(run: Mapping[str, Any], programs: Sequence[Any], inputs: Sequence[Any], constants: Mapping[int, Any]) -> list[Any]:
    import ml_dtypes

    from tilewright.lang.tilelang_tensors import TensorArguments

    values: dict[int, Any] = dict(enumerate(each.copy() for each in inputs))
    for number, array in constants.items():
        values[number] = array.view(ml_dtypes.bfloat16) if array.dtype.itemsize == 2 and array.dtype.kind == "u" else array.copy()
    for call in run["calls"]:
        program = programs[call["program"]]
        given = [values[number] for number in call["tensors"] if number is not None]
        with execution.session(mode=execution.SIM, silent=True):
            if program.argument_layouts is None:
                execution.run(program, given, call["numbers"])
                continue
            arguments = TensorArguments(program.argument_layouts, given)
            execution.run(program, arguments.arrays, call["numbers"])
            arguments.finish(run=True)
    return [values[number] for number in run["results"]]


def compared(task: Task, got: Sequence[Any], wanted: Sequence[Any]) -> dict[str, Any]:
    """Whether every finite element of the reference is met; ``error`` is the worst one over the largest element."""
    import numpy as np

    found = [difference(np.asarray(seen), want, task.tolerance) for seen, want in zip(got, wanted, strict=True)]
    worst = max(each.worst for each in found)
    message = next((f"output {number} {each.message}" for number, each in enumerate(found) if not each.holds), "")
    return {"holds": not message, "error": worst if np.isfinite(worst) else None, "message": message}


def _time(run: Mapping[str, Any], programs: Sequence[Any]) -> tuple[dict[str, Any], str]:
    """All calls one after another."""
    from tilewright.timing.profile import profile

    found = [profile(programs[call["program"]], call["numbers"], advise=False)[0] for call in run["calls"]]
    slowest = max(found, key=lambda each: each.microseconds)
    cycles, microseconds = sum(each.cycles for each in found), sum(each.microseconds for each in found)
    total = {"cycles": round(cycles, 1), "microseconds": round(microseconds, 3)}
    return {**total, "uncertainty": slowest.uncertainty, "chip": slowest.chip, "calls": len(found)}, slowest.bound
