"""A decorated kernel and its arguments become a ``ttl`` module: one function per thread."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from linecache import getline
from typing import Any, TypeVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from tilewright.builder.extents import KernelExtents, ThreadSites
from tilewright.builder.movement import start_sums
from tilewright.builder.thread import Unrolling
from tilewright.diagnostics import Diagnostic, KernelError, Note, Span, caller_span, fail, span_in_line
from tilewright.dialects.attributes import NOC_THREAD, SliceType
from tilewright.dialects.ttl_buffers import CopyOp
from tilewright.dialects.walking import operations
from tilewright.frontend import calls, expressions, statements, syntax
from tilewright.frontend.thread import Frame, Thread
from tilewright.hardware import CHIPS
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.cores import Pipe, PipeNet, Semaphore, choosing, resolve_grid
from tilewright.lang.kernel import (
    Arguments,
    Build,
    Kernel,
    KernelFunction,
    ThreadFunction,
    building,
    call_options,
    mismatch,
    outer_names,
)
from tilewright.lang.tensors import KernelTensor, check_aligned, describe, in_rows
from tilewright.narrowing import is_dict, is_list
from tilewright.options import Options
from tilewright.program import ROW_MAJOR, TensorSpec
from tilewright.records import record


class Evaluator(Thread):
    """The parts of the visitor as one: each is a function of the thread."""

    evaluate = expressions.evaluate
    execute = statements.execute
    combine = expressions.binary
    invoke = calls.invoke


ROLES = ("reader", "writer")


@record(frozen=False, kw_only=True)
class BuiltKernel:
    """What the front end hands to the pipeline."""

    module: ModuleOp
    name: str
    grid: tuple[int, ...]
    tensors: tuple[TensorSpec, ...]
    source_file: str
    reads_values: bool = False  # of its tensors, or anything that `visible` does not tell
    flags: Mapping[str, Any] = field(default_factory=dict[str, Any])  # options that the body itself gives
    meanings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # functions, of external code, by their names in IR


def build_kernel(kernel: KernelFunction, values: Arguments, options: Options) -> BuiltKernel:
    """Tensors among ``values`` may be `TensorSpec`s."""
    if options.arch not in CHIPS:
        raise fail("TW015", f"unknown arch '{options.arch}'", kernel.span, help=", ".join(CHIPS))
    grid = resolve_grid(kernel.grid if options.grid is None else options.grid, options.chip, kernel.span)
    tensors: list[KernelTensor] = []

    def seen_by_body(name: str, value: Any) -> KernelTensor:
        source = None if isinstance(value, TensorSpec) else value
        tensors.append(KernelTensor(describe(value, name, kernel.span), len(tensors), source))
        return tensors[-1]

    build = run_body(kernel, values, values.replaced(seen_by_body), grid, options.chip.grid[0])
    build.metal = options.metal
    _name_buffers(build)
    _settle_rows(kernel, build, tensors)
    if any(thread.operation for thread in build.running_threads()):
        from tilewright.frontend.composition import joined  # late: most kernels call no other

        build.threads, build.chosen = joined(build, lambda threads: _check_threads(kernel, threads)), None
    if tensors or build.running_threads():  # without either, the body has said all: its assertions hold
        _check_threads(kernel, build.running_threads())
    functions, problems = _translate_threads(build)
    if problems:
        raise KernelError(*problems)
    return BuiltKernel(
        module=ModuleOp(functions),
        name=kernel.name,
        grid=grid,
        tensors=tuple(tensor.spec for tensor in tensors),
        source_file=kernel.function.__code__.co_filename,
        reads_values=build.reads_files or any(tensor.is_opened for tensor in tensors),
        meanings=build.meanings,
        flags={name: value for text, span in build.flags for name, value in call_options(text, span).items()},
    )


def _settle_rows(kernel: KernelFunction, build: Build, tensors: list[KernelTensor]) -> None:
    """Row-major tensors move by rows if a buffer counts elements, else by tiles, of which they then must consist."""
    rows = any(buffer.tile[0] == 1 for buffer in build.buffers)
    for tensor in tensors:
        if tensor.spec.layout == ROW_MAJOR and rows:
            tensor.spec = in_rows(tensor.spec, kernel.span)
        elif tensor.spec.layout == ROW_MAJOR:
            check_aligned(tensor.spec, caller_span(kernel.name))


def run_body(kernel: KernelFunction, arguments: Arguments, values: dict[str, Any], grid: tuple[int, ...], columns: int) -> Build:
    """The body runs once as plain Python: it makes buffers and registers threads."""
    build = Build(grid=grid, columns=columns)
    try:
        with building(build), choosing():
            call_body(kernel, arguments, values, build)
    except KernelError:
        raise
    except Exception as error:
        message = f"the body of '{kernel.name}' raised {type(error).__name__}: {error}"
        remedy = "the body runs on the host when the kernel is compiled"
        raise fail("TW017", message, _raised_at(error, kernel), help=remedy) from error
    return build


def call_body(kernel: KernelFunction, arguments: Arguments, values: dict[str, Any], build: Build) -> None:
    function = kernel.function
    definition = syntax.known_definition(function)
    if definition is None or syntax.has_threads(definition):
        arguments.call(function, values)
        return
    from tilewright.frontend import one_body
    from tilewright.frontend.inlining import call_between

    outer = dict(outer_names(function))
    start = one_body.first_action(definition, outer)
    if start is None:
        arguments.call(function, values)
        return
    names = arguments.call(one_body.host_part(definition, start, function, outer), values)
    names = {**outer, **names}
    operation = build.operation
    for part in one_body.segments(definition.body[start:], names):
        if isinstance(part, tuple):
            call_between(*part, names, function.__code__.co_filename)
            operation = build.new_operation(kernel.name)  # what follows comes behind that one
            continue
        for thread in one_body.threads_of(part, function, names, partial(_host_part, build)):
            thread.operation = operation
            build.threads.append(thread)


def _host_part(build: Build, kernel: KernelFunction, arguments: Arguments) -> tuple[list[ast.stmt], Mapping[str, Any]]:
    """What an operation that is called in one body does on the cores, and the names that its part on the host has made."""
    from tilewright.frontend import one_body

    check_called(kernel, arguments, build)
    definition, outer = syntax.known_definition(kernel.function), dict(outer_names(kernel.function))
    start = one_body.first_action(definition, outer) if definition is not None else None
    if definition is None or start is None:
        return [], {}
    names = arguments.call(one_body.host_part(definition, start, kernel.function, outer), dict(arguments.values))
    return definition.body[start:], {**outer, **names}


def check_called(kernel: KernelFunction, arguments: Arguments, build: Build) -> None:
    """Whether an operation may be called in the body of another."""
    span = caller_span(kernel.name)
    if kernel.grid is not None and not isinstance(kernel.grid, str) and not callable(kernel.grid):
        own = (kernel.grid,) if isinstance(kernel.grid, int) else tuple(kernel.grid)
        if own != build.grid:
            remedy = 'give both the same grid, or let the inner one take what it gets: grid="full" and ttl.grid_size()'
            raise fail("TW015", f"'{kernel.name}' wants grid {own}, and is called in one of grid {build.grid}", span, help=remedy)
    for name, tensor in arguments.tensors():
        if not isinstance(tensor, (KernelTensor, CircularBuffer)):
            remedy = "give the tensor to the outer operation, and from there to this one"
            raise fail("TW106", f"'{name}' of '{kernel.name}' is no argument of the operation around it", span, help=remedy)


def _raised_at(error: BaseException, kernel: KernelFunction) -> Span:
    import traceback

    file = kernel.function.__code__.co_filename
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return span_in_line(file, places[-1].lineno or 1) if places else kernel.span


def _name_buffers(build: Build) -> None:
    """A buffer is called what the user's variable is called."""
    for thread in build.threads:
        names = outer_names(thread.function)
        for name in thread.function.__code__.co_freevars:
            _name_value(names.get(name), name)
        for name, value in (thread.outer or {}).items():  # of one body: what its part on the host has made
            _name_value(value, name)
    for semaphore in build.semaphores:
        semaphore.name = semaphore.name or f"semaphore{semaphore.number}"
    taken: set[str] = set()
    for buffer in build.buffers:
        if not buffer.name:
            written = re.match(r"\s*(\w+)\s*=", getline(buffer.span.file, buffer.span.line))
            buffer.name = written.group(1) if written else f"cb{buffer.index}"
        if buffer.name in taken:
            buffer.name = f"{buffer.name}_{buffer.index}"
        taken.add(buffer.name)


def _name_value(value: Any, name: str) -> None:
    if isinstance(value, (CircularBuffer, PipeNet, Pipe, Semaphore)):
        value.name = value.name or name
    elif is_list(value):
        for position, item in enumerate(value):
            _name_value(item, f"{name}_{position}")
    elif is_dict(value):
        for key, item in value.items():
            _name_value(item, re.sub(r"\W", "_", f"{name}_{key}"))


def _check_threads(kernel: KernelFunction, threads: list[ThreadFunction]) -> None:
    if not threads:
        remedy = "mark functions in it with @ttl.compute() and @ttl.datamovement()"
        raise fail("TW010", f"kernel '{kernel.name}' has no threads", kernel.span, help=remedy)
    for kind, most, words in (("compute", 1, "compute threads"), ("noc", 2, "data-movement threads")):
        found = [thread for thread in threads if thread.kind == kind]
        if len(found) > most:
            message = f"kernel '{kernel.name}' has {len(found)} {words}; a core has {most}"
            remedy = "join them into one"
            raise fail("TW010", message, found[most].span, notes=(Note("an earlier one is here", found[0].span),), help=remedy)
    named: dict[Kernel, ThreadFunction] = {}
    for thread in threads:
        if thread.kernel is None:
            continue
        if (wrong := mismatch(thread.kernel, thread.kind)) is not None:
            raise fail("TW004", f"thread '{thread.name}': {wrong[0]}", thread.span, help=wrong[1])
        if isinstance(thread.kernel, Kernel) and (first := named.setdefault(thread.kernel, thread)) is not thread:
            notes = (Note(f"'{first.name}' has it", first.span),)
            message = f"thread '{thread.name}' has the kernel= of another thread"
            raise fail("TW010", message, thread.span, notes=notes, help="make a ttl.Kernel for each thread")


def _translate_threads(build: Build) -> tuple[list[FuncOp], list[Diagnostic]]:
    """Data movement first: it says which buffers the compute thread does not fill itself."""
    threads = build.running_threads()
    extents = KernelExtents(build.grid)
    translated: dict[int, FuncOp] = {}
    failed: dict[int, tuple[Diagnostic, ...]] = {}
    for number, function in sorted(enumerate(threads), key=lambda item: item[1].kind == "compute"):
        taken = any(other.name == function.name for other in threads[:number])
        try:
            movers = list(translated.values())
            translated[number] = _translate_settled(function, number, build, extents, movers, f"_{number}" if taken else "")
        except KernelError as error:
            failed[number] = error.diagnostics
    functions = [translated[number] for number in sorted(translated)]
    problems = [diagnostic for number in sorted(failed) for diagnostic in failed[number]]
    movers = [function for function in functions if function.attributes["ttl.kernel_thread"] == NOC_THREAD]
    roles = ROLES if len(movers) != 1 or not _only_writes(movers[0]) else ROLES[1:]
    for function, role in zip(movers, roles, strict=False):
        function.attributes["ttl.role"] = StringAttr(role)
    return functions, problems


def _translate_settled(
    function: ThreadFunction, number: int, build: Build, extents: KernelExtents, movers: list[FuncOp], suffix: str
) -> FuncOp:
    buffers = len(build.buffers)

    def again() -> None:
        del build.buffers[buffers:]  # those of values that a loop carries

    def translate(unrolling: Unrolling) -> FuncOp:
        return translate_thread(function, build, extents.thread(number, unrolling.chosen), suffix, unrolling)

    while True:
        result = with_retries(translate, again)
        if function.kind != "compute" or extents.settled(number, [*movers, result]):
            return result
        again()


def _only_writes(function: FuncOp) -> bool:
    copies = [op for op in operations(function) if isinstance(op, CopyOp)]
    return bool(copies) and all(isinstance(op.target.type, SliceType) for op in copies)


def translate_thread(
    function: ThreadFunction,
    build: Build,
    sites: ThreadSites,
    suffix: str,
    unrolling: Unrolling,
) -> FuncOp:
    thread = Evaluator(function, build, sites, unrolling)
    places = [_translate_part(thread, part) for part in function.parts or (function,)]
    start_sums(thread)
    thread.emitter.span = places[0]
    return thread.finish(function.name + suffix, places[0])


def _translate_part(thread: Evaluator, function: ThreadFunction) -> Span:
    """What one operation has the thread do; where that is written."""
    code = function.function.__code__
    outer = outer_names(function.function) if function.outer is None else function.outer
    ours = function.span if function.made else None
    thread.frames.append(Frame(function.name, code.co_filename, {}, outer, 0, code, place=ours))
    definition = function.definition or syntax.function_node(function.function)
    assert not isinstance(definition.body, list) or definition.body
    place = thread.at(definition)
    body = definition.body if isinstance(definition.body, list) else []
    thread.execute(syntax.function_body(function.name, body, gives_value=False))
    thread.frames.pop()
    return place


Result = TypeVar("Result")


def with_retries(translate: Callable[[Unrolling], Result], again: Callable[[], None]) -> Result:
    """``translate`` with the fewest names kept by loops and loops unrolled that let it succeed; ``again`` undoes a failed one."""
    chosen: set[Span] = set()
    kept: set[tuple[Span, str]] = set()
    failures: dict[Span | None, KernelError] = {}  # by place, as they were before loops around it were unrolled
    while True:
        unrolling = Unrolling(chosen, kept)
        try:
            return translate(unrolling)
        except KernelError as error:
            failure = failures.setdefault(error.diagnostics[0].span, error)
            loop = unrolling.next_loop()
            if loop is not None:
                chosen = chosen | {loop.place}
            elif unrolling.outlives is not None and unrolling.outlives not in kept:
                kept = kept | {unrolling.outlives}
            else:
                raise failure from None
            again()
