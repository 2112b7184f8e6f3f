"""``simulate``: a compiled program on arrays, and what its machines are left with at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from weakref import WeakKeyDictionary

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import Diagnostic, Span, fail
from tilewright.dtypes import FLOATS
from tilewright.grid import chip_place
from tilewright.machine.threads import Coroutine, cores_text, deadlock, run_until_stuck
from tilewright.program import Program
from tilewright.records import record
from tilewright.sim.arithmetic import Arithmetic
from tilewright.sim.calls import catalogue
from tilewright.sim.error_bounds import BoundedArithmetic, ResultError, result_error
from tilewright.sim.exact_arithmetic import ExactArithmetic
from tilewright.sim.fast_arithmetic import FastArithmetic
from tilewright.sim.lazy_arithmetic import LazyArithmetic
from tilewright.sim.machine import Machine
from tilewright.sim.numerics.accumulate import cancellation_warnings
from tilewright.sim.registry import ROLES
from tilewright.sim.tensors import Array, Pairs, Tensor, Touches, check_argument, unordered_threads
from tilewright.sim.translate import Core, Translation, group_cores, translate
from tilewright.sim.work import watched

MANY_CORES = 32  # machines of fewer cores collect operations until there are enough tiles for one array


@record(kw_only=True)
class GroupResult:
    """What the cores of one group did; they all did the same."""

    cores: tuple[Core, ...]
    calls: dict[str, int]  # executions per core of each call, all its processors counted once
    acquires: int  # DST sections per core
    max_dst: int  # DST tiles the largest section used


@record(kw_only=True)
class SimResult:
    groups: tuple[GroupResult, ...]
    warnings: tuple[Diagnostic, ...] = field(default=())

    @property
    def calls(self) -> dict[str, int]:
        """Executions of each call, all cores together."""
        total: Counter[str] = Counter()
        for group in self.groups:
            for name, count in group.calls.items():
                total[name] += count * len(group.cores)
        return dict(total)

    @property
    def max_dst(self) -> int:
        return max((group.max_dst for group in self.groups), default=0)

    @property
    def acquires(self) -> int:
        return sum(group.acquires * len(group.cores) for group in self.groups)


_TRANSLATIONS: WeakKeyDictionary[ModuleOp, Translation] = WeakKeyDictionary()
_RACING: WeakKeyDictionary[ModuleOp, dict[int, Pairs]] = WeakKeyDictionary()  # by tensor, the threads without an order


def translation_of(program: Program) -> Translation:
    if program.module not in _TRANSLATIONS:
        catalogue.register_calls()
        _TRANSLATIONS[program.module] = translate(program)
    return _TRANSLATIONS[program.module]


def simulate(
    program: Program,
    arrays: Sequence[Array],
    *,
    fast: bool = False,
    scalars: Mapping[str, int] | None = None,
    silent: bool = False,
) -> SimResult:
    """Run ``program`` on ``arrays`` (tensor arguments in their element layout); outputs are written in place.

    bf16 tensors are ``uint16`` patterns or ``ml_dtypes.bfloat16``, f32 tensors ``float32``. Other float arrays are converted.
    ``scalars`` are the integer run-time arguments by name. ``fast`` computes values in float32 instead of modelling rounding.
    ``silent``: the kernel prints nothing and does not stop at breakpoints.
    """
    if len(arrays) != len(program.tensors):
        raise fail("TW516", f"program '{program.name}' takes {len(program.tensors)} tensors, {len(arrays)} were given")
    for spec, array in zip(program.tensors, arrays, strict=True):
        check_argument(spec, array)
    translation = translation_of(program)
    arithmetic: Arithmetic = FastArithmetic() if fast else ExactArithmetic(program.config, program.options.arch)
    numbers = dict(scalars or {})
    tensors = _tensors(program, arithmetic, arrays)
    if not translation.cross_core:
        watch(program, tensors)
    machines, counts = _carry_out(program, translation, arithmetic, tensors, numbers, silent=silent)
    warnings = [warning for machine in machines for warning in leftovers(machine)]
    warnings += [warning for tensor in tensors if tensor.touches is not None for warning in tensor.touches.found.values()]
    if isinstance(arithmetic, ExactArithmetic) and arithmetic.erratum is not None and arithmetic.erratum.seen:
        warnings += _cancellations(program, translation, arrays, tensors, numbers)
    for spec, tensor, array in zip(program.tensors, tensors, arrays, strict=True):
        if tensor.written:
            arithmetic.write_back(spec, tensor.pages, array)
    groups = tuple(
        GroupResult(
            cores=tuple(machine.cores), calls=_by_name(translation, own), acquires=machine.dst.acquires, max_dst=machine.dst.used
        )
        for machine, own in zip(machines, counts, strict=True)
    )
    return SimResult(groups=groups, warnings=tuple(warnings))


def result_errors(program: Program, arrays: Sequence[Array], *, scalars: Mapping[str, int] | None = None) -> list[ResultError]:
    """As `simulate`, and how far each float tensor that ``program`` writes is from exact arithmetic."""
    arithmetic = BoundedArithmetic(program.config, program.options.arch)
    tensors = _tensors(program, arithmetic, arrays)
    _carry_out(program, translation_of(program), arithmetic, tensors, dict(scalars or {}), silent=True)
    written = [(tensor, array) for tensor, array in zip(tensors, arrays, strict=True) if tensor.written]
    for tensor, array in written:
        arithmetic.write_back(tensor.spec, tensor.pages, array)
    return [result_error(tensor.spec, tensor.pages) for tensor, _ in written if tensor.spec.dtype in FLOATS]


def _tensors(program: Program, arithmetic: Arithmetic, arrays: Sequence[Array]) -> list[Tensor]:
    """The arguments as pages of their own: arrays change when a run has ended."""
    pages = [arithmetic.pages(spec, array) for spec, array in zip(program.tensors, arrays, strict=True)]
    own = [part.copy() if np.may_share_memory(part, array) else part for part, array in zip(pages, arrays, strict=True)]
    return [Tensor(spec, part) for spec, part in zip(program.tensors, own, strict=True)]


def _carry_out(
    program: Program,
    translation: Translation,
    arithmetic: Arithmetic,
    tensors: list[Tensor],
    numbers: dict[str, int],
    silent: bool,
) -> tuple[list[Machine], list[list[int]]]:
    """Runs all cores to their end; the machines afterwards and how often each call was made."""
    few_cores = LazyArithmetic(arithmetic) if isinstance(arithmetic, ExactArithmetic) else arithmetic
    machines = [
        Machine(program, cores, tensors, few_cores if len(cores) < MANY_CORES else arithmetic, numbers)
        for cores in group_cores(program, translation, numbers)
    ]
    for machine in machines:
        machine.silent = silent
    counts = run_machines(machines, translation)
    few_cores.settle()
    return machines, counts


def _cancellations(
    program: Program, translation: Translation, arrays: Sequence[Array], found: list[Tensor], numbers: dict[str, int]
) -> list[Diagnostic]:
    """What the erratum changed. ``arrays`` still hold what they held before the run."""
    arithmetic = ExactArithmetic(program.config, program.options.arch)
    arithmetic.erratum = None
    right = _tensors(program, arithmetic, arrays)
    _carry_out(program, translation, arithmetic, right, numbers, silent=True)  # prints have been seen
    return cancellation_warnings(program.tensors, [tensor.pages for tensor in found], [tensor.pages for tensor in right])


def watch(program: Program, tensors: list[Tensor]) -> None:
    """Looks out for races: among the cores of a grid, and among the threads of a core that read and write one tensor."""
    racing = _RACING.get(program.module)
    if racing is None:  # a program is often run again
        racing = _RACING[program.module] = unordered_threads(program.module)
    for index in program.written_tensors:
        threads = racing.get(index)
        if max(program.grid) > 1 or threads:
            tensors[index].touches = Touches.of(program.tensors[index], program.grid, tensors[index].count, threads)


def run_machines(machines: list[Machine], translation: Translation) -> list[list[int]]:
    """Machines that communicate share one schedule; the others run one after another."""
    counts = [[0] * len(translation.sites) for _ in machines]
    batches: list[list[Coroutine]] = [
        processors_of(machine, translation, own) for machine, own in zip(machines, counts, strict=True)
    ]
    if translation.cross_core:
        program = machines[0].program
        grid, columns = program.grid, program.options.chip.grid[0]
        together = {chip_place(core, grid, columns): machine for machine in machines for core in machine.cores}
        for machine in machines:
            machine.neighbours = together
        batches = [[process for batch in batches for process in batch]]
    with watched("simulating", machines[0].program, counts):
        for batch in batches:
            if run_until_stuck(batch, Coroutine.step):
                raise deadlock(batch)
    return counts


def processors_of(machine: Machine, translation: Translation, counts: list[int]) -> list[Coroutine]:
    """Reader first and writer last, so that data flows through in one round."""
    order = {"reader": 0, "u": 1, "m": 2, "p": 3, "writer": 4}
    found: list[tuple[int, Coroutine]] = []
    for thread in translation.threads:
        for role, runner in thread.runners.items():
            name = thread.name if role == "d" else ROLES[role]
            rank = order.get(thread.name if role == "d" else role, 5)
            found.append((rank, Coroutine(name, machine.cores, runner(machine, counts))))
    found.sort(key=lambda pair: pair[0])
    return [process for _, process in found]


def _by_name(translation: Translation, counts: list[int]) -> dict[str, int]:
    """A call that several processors take part in counts once: under the first of them."""
    names: Counter[str] = Counter()
    first_role: dict[tuple[str, str], str] = {}
    for site in translation.sites:
        key = (site.thread, site.name)
        if first_role.setdefault(key, site.role) == site.role:
            names[site.name] += counts[site.number]
    return {name: count for name, count in names.items() if count}


def leftovers(machine: Machine) -> list[Diagnostic]:
    where = cores_text(machine.cores)
    found: list[Diagnostic] = []
    for buffer in machine.buffers.values():
        if buffer.available and buffer.spec.tensor is None:  # what is left in a shard is its tensor's content
            span = buffer.producer.span if buffer.producer else None
            found.append(warning(f"{buffer.label} on {where} ends with {buffer.available} tiles that nobody popped", span))
    for thread, transfers in machine.transfers.items():
        count = len(transfers.reads) + len(transfers.writes)
        if count:
            span = transfers.last.span if transfers.last else None
            found.append(warning(f"{thread} on {where} ends with {count} unfinished transfers", span, "end with a barrier"))
    if machine.dst.halves.math_holds or machine.dst.halves.committed:
        found.append(warning(f"DST on {where} is still held at the end", None))
    return found


def warning(message: str, span: Span | None, help: str = "") -> Diagnostic:
    return Diagnostic(code="TW517", severity="warning", message=message, span=span, help=help)
