"""Threads of the final IR as Python generators: each is translated once into source text and compiled.

The compute function becomes three generators, one per processor. Each keeps only its own calls and the integers and loops those
need. A generator yields when a call cannot proceed.

Cores whose threads take the same branches and use the same counts and indices run as one machine: the integer code of every
thread, its skeleton, says which. Integers of a thread are Python numbers, or arrays with one number per core.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import Span, fail
from tilewright.dialects.attributes import I1, ThreadAttr, is_array_attr, is_int_attr
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.walking import span_of
from tilewright.integers import FORMS, WORD, python_text
from tilewright.machine.threads import Wait
from tilewright.narrowing import is_array
from tilewright.program import Program
from tilewright.sim import registry
from tilewright.sim.buffers import backing_masks
from tilewright.sim.registry import Site


class Split(Exception):
    """Cores that were to run as one disagree on a number that decides what they do."""

    def __init__(self, values: Any) -> None:
        self.values = values
        super().__init__("cores disagree")


def need(number: Any) -> int:
    """The number all cores agree on."""
    if not isinstance(number, np.ndarray):
        return number
    first = number[0]
    if (number != first).any():
        raise Split(number)
    return first.item()


def agreed(number: Any) -> int:
    """As ``need``, where the grouping of cores already made sure of it."""
    return number[0].item() if isinstance(number, np.ndarray) else number


def divisor(number: Any, span: Span | None) -> Any:
    if np.any(number == 0):
        raise fail("TW514", "a kernel divides by zero", span)
    return number


def trip_count(start: Any, stop: Any, step: Any) -> Any:
    return maximum((stop - start + step - 1) // step, 0)


def core_range(start: Any, stop: Any, step: Any) -> Iterator[Any]:
    """A loop whose bounds differ among cores, which all run the same number of iterations."""
    for turn in range(agreed(trip_count(start, stop, step))):
        yield start + turn * step


def checked_range(start: Any, stop: Any, step: Any) -> Iterator[Any]:
    """As ``core_range``, while it is not known yet whether the cores agree."""
    for turn in range(need(trip_count(start, stop, step))):
        yield start + turn * step


def divide_toward_zero(a: Any, b: Any) -> Any:
    quotient = abs(a) // abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient) if is_array(quotient) else (
        quotient if (a < 0) == (b < 0) else -quotient
    )  # fmt: skip


def remainder_toward_zero(a: Any, b: Any) -> Any:
    return a - divide_toward_zero(a, b) * b


def unsigned(a: Any) -> Any:
    """The number as an unsigned 64-bit word, for unsigned comparisons."""
    return a.astype(np.uint64) if is_array(a) else a & WORD


def choose(condition: Any, a: Any, b: Any) -> Any:
    if is_array(condition):
        return np.where(condition, np.asarray(a), np.asarray(b))
    return a if condition else b


def minimum(a: Any, b: Any) -> Any:
    return np.minimum(a, b) if is_array(a) or is_array(b) else min(a, b)


def maximum(a: Any, b: Any) -> Any:
    return np.maximum(a, b) if is_array(a) or is_array(b) else max(a, b)


NAMES: dict[str, Any] = {
    "need": need,
    "agreed": agreed,
    "core_range": core_range,
    "checked_range": checked_range,
    "divide_toward_zero": divide_toward_zero,
    "remainder_toward_zero": remainder_toward_zero,
    "divisor": divisor,
    "unsigned": unsigned,
    "choose": choose,
    "minimum": minimum,
    "maximum": maximum,
}


Runner = Callable[[Any, list[int]], Generator[Wait, None, None]]

COMPUTE_ROLES = "ump"
SKELETON = "s"


@dataclass(eq=False)
class TranslatedThread:
    """One function: a generator per processor, and its integer skeleton if cores can differ in control flow."""

    name: str
    runners: dict[str, Runner]  # by role letter
    skeleton: Callable[[Any], None] | None
    source: str


@dataclass(eq=False)
class Translation:
    threads: list[TranslatedThread]
    sites: list[Site]
    cross_core: bool
    calls: frozenset[str] = field(default=frozenset())


@dataclass(frozen=True)
class Clocks:
    """What a timeline wants to be told: each call that is done. Before calls ``in_turn`` a core waits for those behind it.

    The function of a call ``in_steps`` is a generator: behind each step the core waits again.
    """

    function: Callable[[str, str], Callable[..., Any]]  # of a call and a role
    in_turn: Collection[str]
    in_steps: Collection[str] = ()


TURN = Wait(Site("turn", "", "d", None, {}), lambda: True, lambda: "lets others go first")


def letter(box: Collection[int], site: Site) -> Wait | None:
    """Math and pack wait for the numbers that the unpacker reads."""
    return None if box else Wait(site, lambda: bool(box), lambda: "waits for a number that the unpacker reads")


def translate(program: Program, clocks: Clocks | None = None) -> Translation:
    functions = {op.sym_name.data: op for op in program.module.walk() if isinstance(op, func.FuncOp)}
    sites: list[Site] = []
    threads: list[TranslatedThread] = []
    for name, symbol in thread_names(program, functions):
        function = functions[symbol]
        threads.append(_ThreadTranslator(name, function, sites, clocks).translate())
    calls = frozenset(op.CALL.name for op in program.module.walk() if isinstance(op, KernelCallOp))
    return Translation(threads, sites, bool(calls & registry.CROSS_CORE), calls)


def thread_names(program: Program, functions: dict[str, func.FuncOp]) -> list[tuple[str, str]]:
    """Processor name and function of each thread: its role, or the function's name where two threads have one role."""
    if program.threads:
        roles = [thread.role for thread in program.threads]
        return [
            (thread.role if roles.count(thread.role) == 1 else thread.function, thread.function) for thread in program.threads
        ]
    return [(symbol, symbol) for symbol in functions]


def _thread_kind(function: func.FuncOp) -> str:
    kind = function.attributes.get("ttl.kernel_thread")
    if not isinstance(kind, ThreadAttr):
        raise fail("TW514", f"function '{function.sym_name.data}' does not say which processor runs it", span_of(function))
    return kind.kind.data


class _ThreadTranslator:
    def __init__(self, name: str, function: func.FuncOp, sites: list[Site], clocks: Clocks | None) -> None:
        self.name = name
        self.clocks = clocks
        self.function = function
        self.sites = sites
        self.varies = core_dependent(function)
        self.names: dict[SSAValue, str] = {}
        self.scope: dict[str, Any] = {**NAMES, "TURN": TURN, "letter": letter}

    def translate(self) -> TranslatedThread:
        roles = COMPUTE_ROLES if _thread_kind(self.function) == "compute" else "d"
        texts: list[str] = []
        runners: dict[str, Runner] = {}
        for role in roles:
            body = _RoleEmitter(self, role).function_body(self.function.body.block)
            texts.append(f"def run_{role}(machine, counts):\n" + "\n".join([*body, "    if False: yield"]) + "\n")
        skeleton_body = _RoleEmitter(self, SKELETON).function_body(self.function.body.block)
        relevant = any("need(" in line or "checked_range(" in line for line in skeleton_body)
        if relevant:
            texts.append("def skeleton(machine):\n" + "\n".join(skeleton_body) + "\n")
        source = "\n".join(texts)
        exec(compile(source, f"<thread {self.name}>", "exec"), self.scope)
        for role in roles:
            runners[role] = self.scope[f"run_{role}"]
        return TranslatedThread(self.name, runners, self.scope["skeleton"] if relevant else None, source)

    def site(self, op: KernelCallOp, role: str) -> int:
        site = Site(op.CALL.name, self.name, role, span_of(op), plain_attributes(op), op.SPEC, op.FORM, len(self.sites))
        self.sites.append(site)
        self.scope[f"s{site.number}"] = site
        return site.number

    def text(self, value: SSAValue) -> str:
        if isinstance(value.owner, arith.ConstantOp):
            return _constant_text(value.owner)
        if value not in self.names:
            self.names[value] = f"v{len(self.names)}"
        return self.names[value]


class _RoleEmitter:
    """Writes one processor's version of a thread, last op first so that what nobody needs is never written."""

    def __init__(self, thread: _ThreadTranslator, role: str) -> None:
        self.thread = thread
        self.role = role
        self.live: set[SSAValue] = set()
        self.text = thread.text
        self.processor = thread.name if role == "d" else registry.ROLES.get(role, "")

    def function_body(self, block: Block) -> list[str]:
        return self.block_lines(block, "    ") or ["    pass"]

    def block_lines(self, block: Block, indent: str) -> list[str]:
        chunks: list[list[str]] = []
        for op in reversed(list(block.ops)):
            lines = self.op_lines(op, indent)
            if lines:
                chunks.append(lines)
        return [line for chunk in reversed(chunks) for line in chunk]

    def op_lines(self, op: Operation, indent: str) -> list[str]:
        if isinstance(op, KernelCallOp):
            return self.call_lines(op, indent)
        if isinstance(op, scf.ForOp):
            return self.for_lines(op, indent)
        if isinstance(op, scf.IfOp):
            return self.if_lines(op, indent)
        if isinstance(op, scf.YieldOp | func.ReturnOp | arith.ConstantOp):
            return []
        if op.name not in FORMS and not isinstance(op, arith.CmpiOp):
            raise fail("TW514", f"the simulator has no meaning for {op.name}", span_of(op))
        if op.results[0] not in self.live:
            return []
        self.live.update(op.operands)
        text = self.arithmetic_text(op)
        return [f"{indent}{self.text(op.results[0])} = {text}"]

    def arithmetic_text(self, op: Operation) -> str:
        operands = [self.text(operand) for operand in op.operands]
        if op.name in FORMS and FORMS[op.name].divides and not _is_nonzero_constant(op.operands[1]):
            name = f"p{len(self.thread.scope)}"
            self.thread.scope[name] = span_of(op)
            operands[1] = f"divisor({operands[1]}, {name})"
        text = python_text(op.name, op.predicate.value.data if isinstance(op, arith.CmpiOp) else None, operands)
        assert text is not None
        return text

    def call_lines(self, op: KernelCallOp, indent: str) -> list[str]:
        if op.results:
            return self.value_lines(op, indent)
        if self.role == SKELETON:
            return self.skeleton_lines(op, indent)
        if self.role not in op.CALL.runs_on:
            return []
        function = registry.find(op.CALL.name, self.role)
        if function is None:
            message = f"the simulator does not know the call {op.CALL.name} on the {registry.ROLES[self.role]} processor"
            raise fail("TW514", message, span_of(op))
        self.live.update(op.operands)
        number = self.thread.site(op, self.role)
        self.thread.scope[f"c{number}"] = function
        arguments = ", ".join(["machine", f"s{number}", *self.call_arguments(op)])
        lines = [f"{indent}while (wait := c{number}({arguments})): yield wait", f"{indent}counts[{number}] += 1"]
        clocks = self.thread.clocks
        if clocks is not None:
            self.thread.scope[f"k{number}"] = clocks.function(op.CALL.name, self.role)
            others_first = f"if machine.is_ahead(s{number}): yield TURN"
            if op.CALL.name in clocks.in_steps:
                lines += [f"{indent}for _ in k{number}({arguments}):", f"{indent}    {others_first}"]
            else:
                lines.append(f"{indent}k{number}({arguments})")
            if op.CALL.name in clocks.in_turn:
                lines.insert(0, f"{indent}{others_first}")
        return lines

    def call_arguments(self, op: KernelCallOp) -> list[str]:
        free = registry.CORE_DEPENDENT_OPERANDS.get(op.CALL.name, frozenset())
        texts: list[str] = []
        for index, operand in enumerate(op.operands):
            text = self.text(operand)
            texts.append(f"agreed({text})" if operand in self.thread.varies and index not in free else text)
        return texts

    def value_lines(self, op: KernelCallOp, indent: str) -> list[str]:
        mailed = op.CALL.name in registry.MAILED and self.role in COMPUTE_ROLES
        if op.results[0] not in self.live and not mailed:
            return []
        function = registry.find_value(op.CALL.name)
        if function is None:
            raise fail("TW514", f"the simulator does not know the call {op.CALL.name}", span_of(op))
        number = self.thread.site(op, self.role)
        self.live.update(op.operands)
        self.thread.scope[f"c{number}"] = function
        arguments = ", ".join(["machine", f"s{number}", *map(self.text, op.operands)])
        name = self.text(op.results[0])
        if mailed and self.role != "u":
            box = f"machine.mail[{self.role!r}]"
            lines = [f"{indent}while (wait := letter({box}, s{number})): yield wait", f"{indent}{name} = {box}.popleft()"]
        else:
            lines = [f"{indent}{name} = c{number}({arguments})"]
            lines += [f"{indent}for box in machine.mail.values(): box.append({name})"] if mailed else []
            if op.CALL.name in registry.READY and self.role != SKELETON:
                self.thread.scope[f"r{number}"] = registry.READY[op.CALL.name]
                lines.insert(0, f"{indent}while (wait := r{number}({arguments})): yield wait")
        if op.CALL.name in registry.MAILED and self.thread.clocks is not None and self.role != SKELETON:
            self.thread.scope[f"k{number}"] = self.thread.clocks.function(op.CALL.name, self.role)
            lines.append(f"{indent}k{number}({arguments})")
        return lines

    def skeleton_lines(self, op: KernelCallOp, indent: str) -> list[str]:
        free = registry.CORE_DEPENDENT_OPERANDS.get(op.CALL.name, frozenset())
        checked = [operand for index, operand in enumerate(op.operands) if operand in self.thread.varies and index not in free]
        self.live.update(checked)
        return [f"{indent}need({self.text(operand)})" for operand in checked]

    def control(self, value: SSAValue) -> str:
        """A number that decides control flow; the same on all cores of a machine."""
        self.live.add(value)
        if value not in self.thread.varies:
            return self.text(value)
        return f"{'need' if self.role == SKELETON else 'agreed'}({self.text(value)})"

    def for_lines(self, op: scf.ForOp, indent: str) -> list[str]:
        body = op.body.block
        before = set(self.live)
        yielded = terminator_operands(body)
        bounds = (op.lb, op.ub, op.step)
        varying = any(bound in self.thread.varies for bound in bounds)
        decides = varying and self.role == SKELETON
        wanted = any(result in before for result in op.results)
        inner = [] if wanted else self.block_lines(body, indent + "    ")
        if wanted or ((inner or decides) and yielded):
            # Carried values are kept only where the loop is: its body is written once more, with them.
            self.live = before | set(yielded)
            inner = self.block_lines(body, indent + "    ")
        if not inner and not decides and not wanted:
            self.live = before
            return []
        carried = [self.text(argument) for argument in body.args[1:]]
        self.live.update(op.iter_args)
        self.live.update(bounds)
        lines = [f"{indent}{name} = {self.text(start)}" for name, start in zip(carried, op.iter_args, strict=True)]
        steps = "range" if not varying else ("checked_range" if decides else "core_range")
        turns = f"{steps}({', '.join(map(self.text, bounds))})"
        if self.thread.clocks is not None and self.role != SKELETON and not varying:
            turns = f"machine.turns({self.processor!r}, {turns})"
        lines.append(f"{indent}for {self.text(body.args[0])} in {turns}:")
        lines += inner or [f"{indent}    pass"]
        if carried:
            lines.append(f"{indent}    {', '.join(carried)}, = {', '.join(map(self.text, yielded))},")
        lines += [f"{indent}{self.text(result)} = {name}" for result, name in zip(op.results, carried, strict=True)]
        return lines

    def if_lines(self, op: scf.IfOp, indent: str) -> list[str]:
        decides = self.role == SKELETON and op.cond in self.thread.varies
        wanted = any(result in self.live for result in op.results)
        branches: list[list[str]] = []
        for region in (op.true_region, op.false_region):
            branches.append(self.branch_lines(op, region.blocks[0] if region.blocks else None, indent + "    ", wanted))
        if not any(branches) and not decides:
            return []
        lines = [f"{indent}if {self.control(op.cond)}:", *(branches[0] or [f"{indent}    pass"])]
        if branches[1]:
            lines += [f"{indent}else:", *branches[1]]
        return lines

    def branch_lines(self, op: scf.IfOp, block: Block | None, indent: str, wanted: bool) -> list[str]:
        if block is None:
            return []
        yielded = terminator_operands(block) if wanted else []
        self.live.update(yielded)
        lines = self.block_lines(block, indent)
        lines += [f"{indent}{self.text(result)} = {self.text(value)}" for result, value in zip(op.results, yielded, strict=False)]
        return lines


def _constant_text(op: arith.ConstantOp) -> str:
    value = op.value
    if not isinstance(value, IntegerAttr):
        raise fail("TW514", "the simulator runs integer constants only", span_of(op))
    kind = op.result.type
    if kind == I1:
        return str(bool(value.value.data))
    number = value.value.data
    return str(number) if number >= 0 else f"({number})"


def _is_nonzero_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, arith.ConstantOp) and _constant_text(value.owner) != "0"


def terminator_operands(block: Block) -> list[SSAValue]:
    last = block.last_op
    return list(last.operands) if isinstance(last, scf.YieldOp) else []


def core_dependent(function: func.FuncOp) -> set[SSAValue]:
    """Integers that may differ from core to core."""
    varies: set[SSAValue] = set()
    before = -1
    while len(varies) != before:
        before = len(varies)
        for op in function.walk():
            _spread(op, varies)
    return varies


def _spread(op: Operation, varies: set[SSAValue]) -> None:
    if isinstance(op, scf.ForOp):
        yielded = terminator_operands(op.body.block)
        _join(varies, op.iter_args, op.body.block.args[1:], op.results)
        _join(varies, yielded, op.body.block.args[1:], op.results)
        if op.lb in varies or op.step in varies:
            # All cores of a machine run the same number of iterations, but each may start elsewhere.
            varies.add(op.body.block.args[0])
        return
    if isinstance(op, scf.IfOp):
        for region in (op.true_region, op.false_region):
            if region.blocks:
                _join(varies, terminator_operands(region.blocks[0]), op.results)
        return
    if isinstance(op, KernelCallOp):
        if op.CALL.name in registry.CORE_DEPENDENT_VALUES or any(operand in varies for operand in op.operands):
            varies.update(op.results)
        return
    if any(operand in varies for operand in op.operands):
        varies.update(op.results)


def _join(varies: set[SSAValue], sources: Iterable[SSAValue], *targets: Iterable[SSAValue]) -> None:
    for index, source in enumerate(sources):
        if source in varies:
            for target in targets:
                varies.add(list(target)[index])


def plain(attribute: Attribute) -> Any:
    if isinstance(attribute, UnitAttr):
        return True
    if isinstance(attribute, IntegerAttr):
        return attribute.value.data
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    if is_int_attr(attribute):
        return attribute.data
    if is_array_attr(attribute):
        return tuple(plain(item) for item in attribute.data)
    if isinstance(attribute, DenseArrayBase):
        return tuple(attribute.get_values())
    return attribute


def plain_attributes(op: Operation) -> dict[str, Any]:
    return {key: plain(attribute) for key, attribute in op.attributes.items()}


Core = tuple[int, ...]


class CoreNumbers:
    """The part of a machine that integer code can see."""

    def __init__(self, program: Program, cores: Sequence[Core], scalars: dict[str, int]) -> None:
        self.program = program
        self.cores = cores
        self.scalars = scalars
        self.coordinates = [np.array([core[dim] for core in cores], np.int64) for dim in range(len(cores[0]))]
        self.buffers: dict[int, None] = {spec.index: None for spec in program.buffers}


def all_cores(grid: Sequence[int]) -> list[Core]:
    """Every core of the grid, first dimension fastest."""
    return [tuple(reversed(core)) for core in product(*(range(size) for size in reversed(grid)))]


def group_cores(program: Program, translation: Translation, scalars: dict[str, int]) -> list[list[Core]]:
    """Run the integer skeleton of every thread; where cores disagree, part them and try again."""
    if translation.cross_core or translation.calls & registry.MAILED.keys():
        return [[core] for core in all_cores(program.grid)]
    alike: dict[tuple[Any, ...], list[Core]] = {}
    for core in all_cores(program.grid):
        has = tuple(buffer.exists_on(core) for buffer in program.buffers)
        alike.setdefault((has, backing_masks(program, core)), []).append(core)
    pending = list(alike.values())
    skeletons = [thread.skeleton for thread in translation.threads if thread.skeleton is not None]
    groups: list[list[Core]] = []
    while pending:
        cores = pending.pop()
        try:
            for skeleton in skeletons:
                skeleton(CoreNumbers(program, cores, scalars))
        except Split as split:
            pending += _parts(cores, split)
            continue
        groups.append(cores)
    return sorted(groups)


def _parts(cores: list[Core], split: Split) -> list[list[Core]]:
    values = split.values.tolist()
    return [[core for core, own in zip(cores, values, strict=True) if own == value] for value in sorted(set(values))]
