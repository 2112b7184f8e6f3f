"""Calls in a thread: the language's own functions, methods, classes of the user's, and helpers, which are inlined."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import types
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tilewright.builder import elements, external, functions, movement
from tilewright.builder.blocks import plain_number
from tilewright.builder.network import RemoteSemaphore, core_linear, for_each_pipe, is_end, net_of, semaphore_method
from tilewright.builder.values import Block, ReadyReceive, Transfer, TransferGroup, described
from tilewright.cache_key import is_users_own
from tilewright.code_reads import reads_of
from tilewright.diagnostics import KernelError, Note
from tilewright.frontend import carried
from tilewright.frontend.containers import is_object_of, static_sequence
from tilewright.frontend.host_calls import (
    SHOWING,
    SPECIAL,
    Deferred,
    container_method,
    host_call,
    is_kernel_value,
    kernel_values_in,
)
from tilewright.frontend.loops import make_range
from tilewright.frontend.syntax import function_body, function_node
from tilewright.frontend.thread import BoundMethod, Frame, Generated, LocalFunction, Signpost, Thread, native
from tilewright.grid import folded_grid
from tilewright.integers import make
from tilewright.lang.buffers import BOUNDARIES, CircularBuffer
from tilewright.lang.cores import Pipe, PipeNet, Semaphore, folded_places, grid_size
from tilewright.lang.external import FUNCTIONS as EXTERNAL_NAMES
from tilewright.lang.kernel import KernelFunction, ThreadFunction, outer_names
from tilewright.lang.names import FunctionFamily, LanguageFunction, NotYetSupported, is_of_language, unsupported
from tilewright.lang.tensors import TensorAccessor
from tilewright.narrowing import class_of

SIDES = {"is_src": ("src",), "is_dst": ("dst",), "is_active": ("src", "dst")}
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


def invoke(thread: Thread, callee: Any, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
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
        if callee not in SHOWING:
            args = carried.typed(thread, args, node)
        return handler(thread, args, named, node)
    if isinstance(callee, LocalFunction):
        return _called(thread, callee, callee.name, args, named, node)
    if isinstance(callee, (ThreadFunction, KernelFunction)):
        what = "thread" if isinstance(callee, ThreadFunction) else "kernel"
        remedy = "call a plain helper function" if what == "thread" else "call it in the body of the kernel, or make it a helper"
        raise thread.error("TW001", f"{what} '{callee.name}' is called inside a thread", node, help=remedy)
    if isinstance(callee, types.FunctionType) and is_of_language(callee):
        message = f"ttl.{callee.__name__} inside a thread"
        raise thread.error("TW001", message, node, help="make buffers and threads in the body of the kernel")
    if isinstance(callee, type) and is_built_here(thread, callee, args, named):
        return build_object(thread, callee, args, named, node)
    if isinstance(callee, types.FunctionType) and not _is_host_function(thread, callee, args, named):
        return _called(thread, callee, callee.__name__, args, named, node)
    return host_call(thread, callee, args, named, node)


def _called(
    thread: Thread, callee: types.FunctionType | LocalFunction, name: str, args: list[Any], named: dict[str, Any], node: ast.AST
) -> Any:
    """A helper that yields waits for the loop that runs it; any other is inlined now."""
    if is_generator(callee):
        return Generated(name, node, partial(_inline, thread, callee, args, named, node))
    return _inline(thread, callee, args, named, node)


def _unwrapped(callee: Any, args: list[Any], named: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """The function behind a method, a ``functools.partial`` or an object of the user's that can be called."""
    if isinstance(callee, (BoundMethod, LanguageFunction)):  # as most are
        return callee, args, named
    while isinstance(callee, (functools.partial, Deferred)):
        if isinstance(callee, functools.partial):
            args, named = [*callee.args, *args], {**callee.keywords, **named}
        callee = callee.func
    if isinstance(callee, types.MethodType) and isinstance(callee.__func__, types.FunctionType):
        return callee.__func__, [callee.__self__, *args], named
    called = getattr(class_of(callee), "__call__", None)  # noqa: B004 - the function itself is wanted
    if isinstance(called, types.FunctionType) and not is_of_language(called):
        return called, [callee, *args], named
    return callee, args, named


def _arguments(thread: Thread, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args += static_sequence(thread, thread.evaluate(arg.value), arg)
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


def _method(thread: Thread, method: BoundMethod, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    owner, name = method.owner, method.name
    thread.at(node)
    if isinstance(owner, (Pipe, PipeNet)):
        return _pipe_method(thread, owner, name, args, named, node)
    if isinstance(owner, (Semaphore, RemoteSemaphore)):
        return semaphore_method(thread, owner, name, args, named)
    if isinstance(owner, Block) and name == "store":
        accumulate = named.pop("acc", False)
        if len(args) != 1 or named or not isinstance(accumulate, bool):
            raise thread.error("TW004", "store takes one block expression", node, help="block.store(x), block.store(x, acc=True)")
        movement.store(thread, owner, carried.for_store(thread, args[0], owner, node), accumulate)
        return None
    if isinstance(owner, TransferGroup) and not named and (args or name == "wait_all"):
        return movement.group_method(thread, owner, name, args)
    if args or named:
        raise thread.error("TW004", f"{name}() takes no arguments", node, help=f"write {name}(), with nothing in it")
    if isinstance(owner, CircularBuffer):
        if name in movement.RELEASE_OF:
            return movement.acquire(thread, owner, name)
        if name == "publish":
            return movement.publish(thread, owner)
        return movement.release_buffer(thread, owner, name)
    if isinstance(owner, Block):
        return movement.release_block(thread, owner, name)
    if isinstance(owner, ReadyReceive):
        return owner.number
    assert isinstance(owner, Transfer)
    return movement.wait(thread, owner)


def _pipe_method(thread: Thread, owner: Pipe | PipeNet, name: str, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """``net.is_src()`` and such, and ``net.if_src(work)``, which inlines the function for each pipe."""
    net = net_of(thread, owner)
    if name in SIDES:
        if args or named:
            raise thread.error("TW004", f"{name}() takes no arguments", node)
        return is_end(thread, net, SIDES[name], name)
    callback = [*args, *named.values()]
    if len(callback) != 1 or not (callable(callback[0]) or isinstance(callback[0], LocalFunction)):
        raise thread.error("TW004", f"{name} takes one function", node, help=f"def work(pipe): …; {net.name}.{name}(work)")
    function: Any = callback[0]
    for_each_pipe(thread, net, name.removeprefix("if_"), lambda end: thread.invoke(function, [end], {}, node))
    return None


def _language(thread: Thread, function: LanguageFunction, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if isinstance(function, NotYetSupported):
        raise unsupported(function.name, thread.span(node))
    thread.at(node)
    if function.name == "GroupTransfer":
        return TransferGroup(thread.depth)
    if (written := WRITTEN.get(function.name)) is not None:
        return written(thread, args, named)
    if (read := READ.get(function.name)) is not None:
        return read(thread, args, named, node)
    if function.name in EXTERNAL_NAMES:
        return external.external_name(thread, function.name, args, named)
    if function.name in BOUNDARIES:
        return _boundary(thread, function.name, args, named, node)
    if function.name in elements.FUNCTIONS:
        return elements.call_element(thread, function.name, args, named)
    numbers = {name: plain_number(value) for name, value in named.items()}
    values = carried.typed(thread, [plain_number(arg) for arg in args], node)
    thread.at(node)
    return functions.call_function(thread, function.name, values, numbers)


def _signpost(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Signpost:
    name = [*args, *named.values()]
    if len(name) != 1 or not isinstance(name[0], str):
        raise thread.error("TW004", "signpost takes a name", node, help='with ttl.signpost("load"): …')
    return Signpost(name[0])


def _boundary(thread: Thread, name: str, args: list[Any], named: dict[str, Any], node: ast.AST) -> None:
    """``reset_dfbs`` and such. Blocks that are still in a buffer at its end are an error anyway, so there is nothing to do."""
    wanted = BOUNDARIES[name].__name__
    buffers = named.get("dfbs", [])
    lists = {"dfbs"} if name == "reset_dfbs" else set[str]()
    given = len(args) == 1 and isinstance(args[0], BOUNDARIES[name]) and named.keys() <= lists
    if not given or not all(isinstance(buffer, CircularBuffer) for buffer in static_sequence(thread, buffers, node)):
        listed = ", dfbs=[a_cb, b_cb]" if lists else ""
        remedy = f"boundary = ttl.{wanted}(participants=(…)) outside of the threads, and ttl.{name}(boundary{listed}) in each"
        raise thread.error("TW004", f"{name} takes a ttl.{wanted}{' and buffers' * bool(listed)}", node, help=remedy)


def _dims(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> int:
    values = [*args, *named.values()]
    if len(values) > 1 or (named and "dims" not in named):
        raise thread.error("TW004", "only dims= can be given here", node, help="for example dims=2")
    dims = values[0] if values else 2
    if not isinstance(dims, int) or not 1 <= dims <= 3:
        raise thread.error("TW004", f"dims is {described(dims)}", node, help="the number of coordinates: 1, 2 or 3")
    return dims


def _core(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """Coordinates of this core; with fewer dimensions than the grid has, the highest ones are counted as one."""
    dims = _dims(thread, args, named, node)
    places = folded_places(thread.coordinates(), thread.build.grid, dims, make)
    return places[0] if dims == 1 else tuple(places)


def _grid_size(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    dims = _dims(thread, args, named, node)
    sizes = folded_grid(thread.build.grid, dims)
    return sizes[0] if dims == 1 else sizes


# Functions of the language that the builder writes as they stand, and those that are read here.
WRITTEN: dict[str, Callable[..., Any]] = {
    "copy": movement.copy, "wait_any": movement.wait_any, "grid_slice": movement.grid_slice, "core_linear": core_linear,
}  # fmt: skip
READ: dict[str, Callable[..., Any]] = {"core": _core, "signpost": _signpost}


def _is_host_function(thread: Thread, function: types.FunctionType, args: list[Any], named: dict[str, Any]) -> bool:
    """Whether a helper has nothing to do with the kernel: plain arguments, and nothing of the language in reach."""
    if any(is_kernel_value(value) or holds_values(thread, value) for value in (*args, *named.values())):
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


def _inline(
    thread: Thread,
    function: types.FunctionType | LocalFunction,
    args: list[Any],
    named: dict[str, Any],
    node: ast.AST,
    at_yield: Callable[[Any, ast.AST], None] | None = None,
) -> Any:
    """A function of the user's, written in the thread or outside of it, where it is called."""
    local = isinstance(function, LocalFunction)
    name = function.name if local else function.__name__
    definition = function.node if local else function_node(function)
    signature = function.signature if local else inspect.signature(function)
    try:
        bound = signature.bind(*args, **named)
    except TypeError as error:
        remedy = f"it is {name}{signature}" if local else ""
        raise thread.error("TW004", f"{name}: {error}", node, help=remedy) from None
    bound.apply_defaults()
    names, depth = dict(bound.arguments), thread.depth
    if local:
        outer: Mapping[str, Any] = ChainMap(function.frame.names, dict(function.frame.outer))
        frame = Frame(name, function.frame.file, names, outer, depth, function.node, at_yield=at_yield, parent=function.frame)
    else:
        code = function.__code__
        frame = Frame(name, code.co_filename, names, outer_names(function), depth, code, at_yield=at_yield)
    return _run_inlined(thread, frame, definition, node)


def _run_inlined(thread: Thread, frame: Frame, definition: ast.FunctionDef | ast.Lambda, node: ast.AST) -> Any:
    if sum(open_frame.code is frame.code for open_frame in thread.frames) >= MOST_NESTED:
        raise _endless(thread, frame, node)
    caller = thread.span(node)
    thread.frames.append(frame)
    try:
        if isinstance(definition, ast.Lambda):
            return thread.evaluate(definition.body)
        thread.execute(function_body(frame.function_name, definition.body, gives_value=True))
        return frame.returned
    except KernelError as error:
        note = Note(f"while inlining '{frame.function_name}', called here", caller)
        raise KernelError(*(replace(found, notes=(*found.notes, note)) for found in error.diagnostics)) from None
    except RecursionError:  # Python's stack ends first where a helper is called from callbacks of pipes
        raise _endless(thread, frame, node) from None
    finally:
        thread.frames.pop()
        thread.at(node)


def _endless(thread: Thread, frame: Frame, node: ast.AST) -> KernelError:
    remedy = "helpers are inlined: what ends the recursion must be known at compile time; use a loop"
    return thread.error("TW005", f"'{frame.function_name}' calls itself without end", node, help=remedy)


YIELDS = (ast.Yield, ast.YieldFrom)


def is_generator(function: Any) -> bool:
    if isinstance(function, types.FunctionType):
        return inspect.isgeneratorfunction(function)
    definition = getattr(function, "node", None)
    return isinstance(definition, ast.FunctionDef) and any(isinstance(node, YIELDS) for node in ast.walk(definition))


def holds_values(thread: Thread, value: Any) -> bool:
    """Whether this is an object of the thread that holds values of the kernel, so that its methods must be inlined."""
    if not is_object_of(thread, value):
        return False
    held: dict[str, Any] = getattr(value, "__dict__", {})
    return any(kernel_values_in(item) or (item is not value and holds_values(thread, item)) for item in held.values())


def is_built_here(thread: Thread, kind: type, args: list[Any], named: dict[str, Any]) -> bool:
    """Whether values of the kernel are given to a class of the user's. Named tuples only keep them."""
    if kind.__module__.startswith("tilewright.") or issubclass(kind, (BaseException, tuple)) or not is_users_own(kind):
        return False
    return any(kernel_values_in(value) or holds_values(thread, value) for value in (*args, *named.values()))


def build_object(thread: Thread, kind: type, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """``kind(…)``: an object of this thread, with its ``__init__`` inlined."""
    if kind.__new__ is not object.__new__:
        remedy = "give it an __init__ instead"
        raise thread.error("TW001", f"an object of '{kind.__name__}', which has a __new__", node, help=remedy)
    made = native(thread, node, object.__new__, kind)
    thread.remember(made)
    if dataclasses.is_dataclass(class_of(made)) and "__init__" in kind.__dict__ and _is_generated(kind):
        _fill_fields(thread, made, kind, args, named, node)
    elif isinstance(kind.__init__, types.FunctionType):
        thread.invoke(kind.__init__, [made, *args], named, node)
    elif args or named:
        raise thread.error("TW004", f"{kind.__name__}() takes no arguments", node, help="give the class an __init__")
    return made


def _is_generated(kind: Any) -> bool:
    """Whether ``dataclass`` wrote the ``__init__``, which then has no source."""
    return kind.__init__.__code__.co_filename == "<string>" or kind.__init__.__module__ == "dataclasses"


def _fill_fields(thread: Thread, made: Any, kind: Any, args: list[Any], named: dict[str, Any], node: ast.AST) -> None:
    try:
        bound = inspect.signature(kind).bind(*args, **named)
    except TypeError as error:
        remedy = f"it is {kind.__name__}{inspect.signature(kind)}"
        raise thread.error("TW004", f"{kind.__name__}: {error}", node, help=remedy) from None
    for field in dataclasses.fields(kind):
        if field.name in bound.arguments:
            value = bound.arguments[field.name]
        elif field.default_factory is not dataclasses.MISSING:
            value = native(thread, node, field.default_factory)
            if type(value) in (list, dict):
                thread.remember(value)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        else:
            continue
        object.__setattr__(made, field.name, value)
    finish = getattr(kind, "__post_init__", None)
    if isinstance(finish, types.FunctionType):
        thread.invoke(finish, [made], {}, node)
