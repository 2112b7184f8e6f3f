"""Calls in a thread: the language's own functions, methods, Python builtins, and helpers, which are inlined."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tilewright.code_reads import reads_of
from tilewright.diagnostics import KernelError, Note
from tilewright.frontend import block_functions, containers, early_ends, movement, objects, pipes, places, semaphores, source
from tilewright.frontend.describe import described
from tilewright.frontend.generators import Generated, is_generator
from tilewright.frontend.host_calls import SPECIAL, Deferred, container_method, host_call, is_kernel_value, make_range
from tilewright.frontend.known_values import native
from tilewright.frontend.numbers import plain_number
from tilewright.frontend.semaphores import RemoteSemaphore
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block, BoundMethod, Frame, LocalFunction, Transfer, TransferGroup
from tilewright.integers import is_dynamic, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.building import ThreadFunction
from tilewright.lang.grid import folded_places, folded_sizes, grid_size
from tilewright.lang.kernel import Kernel
from tilewright.lang.language import FunctionFamily, LanguageFunction, NotYetSupported, unsupported
from tilewright.lang.pipes import Pipe, PipeNet
from tilewright.lang.semaphores import Semaphore
from tilewright.lang.tensors import TensorAccessor

UNROLL_LIMIT = 4096
MOST_NESTED = 32  # calls of a helper inside itself


def local_function(thread: Thread, node: ast.FunctionDef | ast.Lambda, name: str) -> LocalFunction:
    """Defaults are evaluated here, as in Python: ``lambda pipe, step=step: …`` keeps what ``step`` is now."""
    given = node.args
    kinds = inspect.Parameter
    positional = [(arg, kinds.POSITIONAL_ONLY) for arg in given.posonlyargs]
    positional += [(arg, kinds.POSITIONAL_OR_KEYWORD) for arg in given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    found = [(arg, kind, default) for (arg, kind), default in zip(positional, defaults, strict=True)]
    found += [(given.vararg, kinds.VAR_POSITIONAL, None)] if given.vararg else []
    found += [(arg, kinds.KEYWORD_ONLY, default) for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    found += [(given.kwarg, kinds.VAR_KEYWORD, None)] if given.kwarg else []
    parameters = [
        kinds(arg.arg, kind, default=kinds.empty if default is None else thread.evaluate(default)) for arg, kind, default in found
    ]
    return LocalFunction(node, name, thread.frame, inspect.Signature(parameters))


def call(thread: Thread, node: ast.Call) -> Any:
    callee = thread.evaluate(node.func)
    args, named = _arguments(thread, node)
    return invoke(thread, callee, args, named, node)


def invoke(thread: Thread, callee: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    """A call with values, whoever makes it: the source, or Python's own function that was given ``callee``."""
    callee, args, named = _unwrapped(callee, args, named)
    if isinstance(callee, BoundMethod):
        return _method(thread, callee, args, named, node)
    if isinstance(callee, LanguageFunction):
        return _language(thread, callee, args, named, node)
    if callee is grid_size:
        return _grid_size(thread, args, named, node)
    if callee is TensorAccessor:
        return TensorAccessor(*args, **named)
    if callee is range:
        return make_range(thread, args, named, node)
    owner = getattr(callee, "__self__", None)
    if isinstance(owner, (list, dict)):
        return container_method(thread, owner, callee, args, named, node)
    handler = SPECIAL.get(callee) if isinstance(callee, types.BuiltinFunctionType | type) else None
    if handler is not None:
        return handler(thread, args, named, node)
    if isinstance(callee, LocalFunction):
        if is_generator(callee):
            return Generated(callee.name, node, partial(_generate, thread, callee, args, named, node))
        return _inline_local(thread, callee, args, named, node)
    if isinstance(callee, (ThreadFunction, Kernel)):
        what = "thread" if isinstance(callee, ThreadFunction) else "kernel"
        raise thread.error(
            "TW001", f"{what} '{callee.name}' is called inside a thread", node, help="call a plain helper function"
        )
    if isinstance(callee, types.FunctionType) and callee.__module__.startswith("tilewright."):
        raise thread.error(
            "TW001", f"ttl.{callee.__name__} inside a thread", node, help="make buffers and threads in the body of the kernel"
        )
    if isinstance(callee, type) and objects.is_built_here(thread, callee, args, named):
        return objects.build(thread, callee, args, named, node)
    if isinstance(callee, types.FunctionType) and not _is_host_function(thread, callee, args, named):
        if is_generator(callee):
            return Generated(callee.__name__, node, partial(_generate, thread, callee, args, named, node))
        return _inline(thread, callee, args, named, node)
    return host_call(thread, callee, args, named, node)


def _unwrapped(callee: Any, args: list[Any], named: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """The function behind a method, a ``functools.partial`` or an object of the user's that can be called."""
    while isinstance(callee, (functools.partial, Deferred)):
        if isinstance(callee, functools.partial):
            args, named = [*callee.args, *args], {**callee.keywords, **named}
        callee = callee.func
    if isinstance(callee, types.MethodType) and isinstance(callee.__func__, types.FunctionType):
        return callee.__func__, [callee.__self__, *args], named
    called = getattr(type(callee), "__call__", None)  # noqa: B004 - the function itself is wanted
    if isinstance(called, types.FunctionType) and not called.__module__.startswith("tilewright."):
        return called, [callee, *args], named
    return callee, args, named


def _arguments(thread: Thread, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args += containers.static_sequence(thread, thread.evaluate(arg.value), arg)
        else:
            args.append(thread.evaluate(arg))
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = thread.evaluate(keyword.value)
        if keyword.arg is None:
            native(thread, keyword.value, named.update, value)
        else:
            named[keyword.arg] = value
    return args, named


def _method(thread: Thread, method: BoundMethod, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    owner, name = method.owner, method.name
    if isinstance(owner, (Pipe, PipeNet)):
        return pipes.method(thread, owner, name, args, named, node, lambda callback, ends: _invoke(thread, callback, ends, node))
    if isinstance(owner, (Semaphore, RemoteSemaphore)):
        return semaphores.method(thread, owner, name, args, named, node)
    if isinstance(owner, Block) and name == "store":
        accumulate = named.pop("acc", False)
        if len(args) != 1 or named or not isinstance(accumulate, bool):
            raise thread.error("TW004", "store takes one block expression", node, help="block.store(x), block.store(x, acc=True)")
        movement.store(thread, owner, args[0], accumulate, node)
        return None
    if isinstance(owner, TransferGroup) and not named and (args or name == "wait_all"):
        return movement.group_method(thread, owner, name, args, node)
    if args or named:
        raise thread.error("TW004", f"{name}() takes no arguments", node, help=f"write {name}(), with nothing in it")
    if isinstance(owner, CircularBuffer):
        if name in movement.RELEASE_OF:
            return movement.acquire(thread, owner, name, node)
        if name == "publish":
            return movement.publish(thread, owner, node)
        return movement.release_buffer(thread, owner, name, node)
    if isinstance(owner, Block):
        return movement.release_block(thread, owner, name, node)
    assert isinstance(owner, Transfer)
    return movement.wait(thread, owner, node)


def _invoke(thread: Thread, function: Any, args: list[Any], node: ast.Call) -> Any:
    """A function of the user's, inlined here."""
    if isinstance(function, LocalFunction):
        return _inline_local(thread, function, args, {}, node)
    return _inline(thread, function, args, {}, node)


def _language(thread: Thread, function: LanguageFunction, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    if isinstance(function, NotYetSupported):
        raise unsupported(function.name, thread.span(node))
    if function.name == "copy":
        return movement.copy(thread, args, named, node)
    if function.name == "GroupTransfer":
        return TransferGroup(thread.depth)
    if function.name == "core":
        return _core(thread, args, named, node)
    if function.name == "core_linear":
        return places.core_linear(thread, args, named, node)
    if function.name == "grid_slice":
        return places.grid_slice(thread, args, named, node)
    if function.name == "signpost":
        return None
    thread.at(node)
    numbers = {name: plain_number(value) for name, value in named.items()}
    return block_functions.call_function(thread, function.name, [plain_number(arg) for arg in args], numbers, node)


def _dims(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> int:
    values = [*args, *named.values()]
    if len(values) > 1 or (named and "dims" not in named):
        raise thread.error("TW004", "only dims= can be given here", node, help="for example dims=2")
    dims = values[0] if values else 2
    if not isinstance(dims, int) or not 1 <= dims <= 3:
        raise thread.error("TW004", f"dims is {described(dims)}", node, help="the number of coordinates: 1, 2 or 3")
    return dims


def _core(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    """Coordinates of this core; with fewer dimensions than the grid has, the highest ones are counted as one."""
    dims = _dims(thread, args, named, node)
    thread.at(node)
    places = folded_places(thread.coordinates(), thread.build.grid, dims, make)
    return places[0] if dims == 1 else tuple(places)


def _grid_size(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    dims = _dims(thread, args, named, node)
    sizes = folded_sizes(thread.build.grid, dims)
    return sizes[0] if dims == 1 else sizes


def _is_host_function(thread: Thread, function: types.FunctionType, args: list[Any], named: dict[str, Any]) -> bool:
    """Whether a helper has nothing to do with the kernel: plain arguments, and nothing of the language in reach."""
    if any(is_kernel_value(value) or objects.holds_values(thread, value) for value in (*args, *named.values())):
        return False
    return not _reaches_kernel(function, set())


def _reaches_kernel(function: types.FunctionType, seen: set[Any]) -> bool:
    if function in seen:
        return False
    seen.add(function)
    outer = outer_names(function)
    names = {path[0] for path in reads_of(function.__code__).outer}
    for name in (*sorted(names), *function.__code__.co_freevars):
        value = outer.get(name)
        if is_kernel_value(value) or isinstance(value, (LanguageFunction, FunctionFamily)):
            return True
        if isinstance(value, types.ModuleType) and value.__name__ in ("tilewright.ttl", "ttl", "ttlang"):
            return True
        if isinstance(value, types.FunctionType) and _reaches_kernel(value, seen):
            return True
    return False


def outer_names(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Captured variables before globals."""
    captured: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:
            continue
    return ChainMap(captured, function.__globals__)


def _generate(
    thread: Thread,
    function: types.FunctionType | LocalFunction,
    args: list[Any],
    named: dict[str, Any],
    node: ast.Call,
    at_yield: Callable[[Any, ast.AST], None],
) -> None:
    inline = _inline_local if isinstance(function, LocalFunction) else _inline
    inline(thread, function, args, named, node, at_yield)  # pyright: ignore[reportArgumentType]


def _inline(
    thread: Thread,
    function: types.FunctionType,
    args: list[Any],
    named: dict[str, Any],
    node: ast.Call,
    at_yield: Callable[[Any, ast.AST], None] | None = None,
) -> Any:
    definition = source.function_node(function)
    try:
        bound = inspect.signature(function).bind(*args, **named)
    except TypeError as error:
        raise thread.error("TW004", f"{function.__name__}: {error}", node) from None
    bound.apply_defaults()
    frame = Frame(
        function.__name__,
        function.__code__.co_filename,
        dict(bound.arguments),
        outer_names(function),
        thread.depth,
        function.__code__,
        at_yield=at_yield,
    )
    return _run_inlined(thread, frame, definition, node)


def _inline_local(
    thread: Thread,
    function: LocalFunction,
    args: list[Any],
    named: dict[str, Any],
    node: ast.Call,
    at_yield: Callable[[Any, ast.AST], None] | None = None,
) -> Any:
    try:
        bound = function.signature.bind(*args, **named)
    except TypeError as error:
        remedy = f"it is {function.name}{function.signature}"
        raise thread.error("TW004", f"{function.name}: {error}", node, help=remedy) from None
    bound.apply_defaults()
    outer: Mapping[str, Any] = ChainMap(function.frame.names, dict(function.frame.outer))
    names = dict(bound.arguments)
    frame = Frame(
        function.name, function.frame.file, names, outer, thread.depth, function.node, at_yield=at_yield, parent=function.frame
    )
    return _run_inlined(thread, frame, function.node, node)


def _run_inlined(thread: Thread, frame: Frame, definition: ast.FunctionDef | ast.Lambda, node: ast.Call) -> Any:
    if sum(open_frame.code is frame.code for open_frame in thread.frames) >= MOST_NESTED:
        remedy = "helpers are inlined: what ends the recursion must be known at compile time; use a loop"
        raise thread.error("TW005", f"'{frame.function_name}' calls itself without end", node, help=remedy)
    caller = thread.span(node)
    thread.frames.append(frame)
    try:
        if isinstance(definition, ast.Lambda):
            return thread.evaluate(definition.body)
        thread.execute(early_ends.function_body(frame.function_name, definition.body, gives_value=True))
        return frame.returned
    except KernelError as error:
        note = Note(f"while inlining '{frame.function_name}', called here", caller)
        raise KernelError(*(replace(found, notes=(*found.notes, note)) for found in error.diagnostics)) from None
    finally:
        thread.frames.pop()
        thread.at(node)


def bind_target(thread: Thread, target: ast.expr, value: Any, node: ast.AST) -> None:
    """``target = value`` for names, elements of lists and tables, and nested tuples of them."""
    if isinstance(target, ast.Name):
        bind_name(thread, target.id, value, node)
        return
    if isinstance(target, ast.Subscript):
        containers.set_element(thread, target, value, node)
        return
    if isinstance(target, (ast.Tuple, ast.List)):
        items = _starred(target, value if isinstance(value, (tuple, list, range)) else None)
        if items is None or len(items) != len(target.elts):
            found = described(value) if items is None else f"{len(items)} values"
            count = len(target.elts)
            raise thread.error("TW004", f"{found} cannot be unpacked into {count} names", node, help=f"give {count} values")
        for part, item in zip(target.elts, items, strict=True):
            bind_target(thread, part.value if isinstance(part, ast.Starred) else part, item, node)
        return
    if isinstance(target, ast.Attribute):
        objects.set_attribute(thread, target, value)
        return
    raise thread.error("TW001", "assignment to this", target, help="assign to a plain name")


def _starred(target: ast.Tuple | ast.List, items: Any) -> Any:
    """``first, *rest = items``: what the star takes is one item."""
    place = next((index for index, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
    if place is None or items is None or len(items) < len(target.elts) - 1:
        return items
    behind = len(items) - (len(target.elts) - 1 - place)
    return [*items[:place], list(items[place:behind]), *items[behind:]]


def bind_name(thread: Thread, name: str, value: Any, node: ast.AST) -> None:
    owner = thread.frame.shared.get(name)
    if owner is not None and owner.depth != thread.depth:
        remedy = "change it outside of loops and of branches that are decided per core, or return the new value"
        raise thread.error("TW012", f"'{name}' of the function around this one changes here", node, help=remedy)
    (owner or thread.frame).names[name] = value
    if is_dynamic(value):
        thread.at(node)
        ssa = thread.emitter.integer(value)  # here, where the source computes it
        ssa.name_hint = ssa.name_hint or _hint(name)
    elif isinstance(value, Block) and value.held is None:
        value.ssa.name_hint = value.ssa.name_hint or _hint(name)


def _hint(name: str) -> str | None:
    """Names in IR and C++ are ASCII; Python's need not be."""
    return name if name.isascii() else None
