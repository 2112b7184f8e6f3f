"""Calls in a thread: the language's own functions, methods, Python builtins, and helpers, which are inlined."""

from __future__ import annotations

import ast
import inspect
import types
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.diagnostics import KernelError, Note
from tilewright.frontend import block_functions, blocks, movement, pipes, places, semaphores, source
from tilewright.frontend.describe import described
from tilewright.frontend.integers import is_dynamic, is_int_like, is_truth, make
from tilewright.frontend.semaphores import RemoteSemaphore
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block, BoundMethod, Frame, TensorSlice, Transfer, TransferGroup
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.building import ThreadFunction
from tilewright.lang.grid import folded_sizes, grid_size
from tilewright.lang.kernel import Kernel
from tilewright.lang.language import FunctionFamily, LanguageFunction, NotYetSupported, unsupported
from tilewright.lang.pipes import Pipe, PipeNet
from tilewright.lang.semaphores import Semaphore
from tilewright.lang.tensors import KernelTensor, TensorAccessor

UNROLL_LIMIT = 4096
HANDLED_BUILTINS = (
    len,
    tuple,
    list,
    sum,
    zip,
    enumerate,
    reversed,
    float,
    str,
    round,
    divmod,
    sorted,
    all,
    any,
    isinstance,
    repr,
    set,
)


@dataclass(eq=False)
class LocalFunction:
    """A function or lambda written inside a thread."""

    node: ast.FunctionDef | ast.Lambda
    name: str
    frame: Frame


@dataclass(frozen=True)
class DynamicRange:
    """``range`` with a bound that is known per core or iteration only."""

    start: Any
    stop: Any
    step: Any


def call(thread: Thread, node: ast.Call) -> Any:
    callee = thread.evaluate(node.func)
    args, named = _arguments(thread, node)
    if isinstance(callee, BoundMethod):
        return _method(thread, callee, args, named, node)
    if isinstance(callee, LanguageFunction):
        return _language(thread, callee, args, named, node)
    if callee is grid_size:
        return _grid_size(thread, args, named, node)
    if callee is TensorAccessor:
        return TensorAccessor(*args, **named)
    if callee is range:
        return _range(thread, args, named, node)
    owner = getattr(callee, "__self__", None)
    if isinstance(owner, list):
        return _list_method(thread, owner, callee, args, named, node)
    handler = SPECIAL.get(callee) if isinstance(callee, types.BuiltinFunctionType | type) else None
    if handler is not None:
        return handler(thread, args, named, node)
    if isinstance(callee, LocalFunction):
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
    if isinstance(callee, types.FunctionType) and not _is_host_function(callee, args, named):
        return _inline(thread, callee, args, named, node)
    return _host_call(thread, callee, args, named, node)


def _arguments(thread: Thread, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args += list(thread.evaluate(arg.value))
        else:
            args.append(thread.evaluate(arg))
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = thread.evaluate(keyword.value)
        if keyword.arg is None:
            named.update(value)
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
        raise thread.error("TW004", f"{name}() takes no arguments", node)
    if isinstance(owner, CircularBuffer):
        if name in movement.ACQUIRES:
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
    return block_functions.call_function(thread, function.name, args, named, node)


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
    grid = thread.build.grid
    places: list[Any] = list(thread.coordinates())
    if dims < len(grid):
        folded: Any = 0
        for place, size in zip(places[dims - 1 :], grid[dims - 1 :], strict=True):
            folded = make("+", make("*", folded, size), place)
        places = [*places[: dims - 1], folded]
    places += [0] * (dims - len(places))
    return places[0] if dims == 1 else tuple(places)


def _grid_size(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    dims = _dims(thread, args, named, node)
    sizes = folded_sizes(thread.build.grid, dims)
    return sizes[0] if dims == 1 else sizes


def _range(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    if named or not 1 <= len(args) <= 3 or not all(is_int_like(arg) for arg in args):
        raise thread.error("TW004", "range takes one to three integers", node, help="range(stop), range(start, stop, step)")
    if not any(is_dynamic(arg) for arg in args):
        if len(args) == 3 and args[2] == 0:
            raise thread.error("TW004", "the step of range is zero", node)
        return range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (args[0], args[1], args[2] if len(args) == 3 else 1)
    if is_dynamic(step) or step == 0:
        raise thread.error("TW007", "the step of range must be known at compile time", node)
    return DynamicRange(start, stop, step)


def _extreme(word: str) -> Callable[..., Any]:
    def choose(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        values = list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list, range)) else args
        if any(isinstance(value, Block) for value in values):
            thread.at(node)
            return block_functions.call_function(thread, f"math.{word}", args, named, node)
        if not any(is_dynamic(value) for value in values):
            return _host_call(thread, min if word == "min" else max, args, named, node)
        if named or not all(is_int_like(value) for value in values):
            raise thread.error("TW004", f"{word} takes integers here", node)
        result: Any = values[0]
        for value in values[1:]:
            result = make(word, result, value)
        return result

    return choose


def _absolute(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    if len(args) == 1 and isinstance(args[0], Block):
        thread.at(node)
        return blocks.unary(thread, "abs", args[0], node)
    if len(args) == 1 and is_dynamic(args[0]):
        return make("max", args[0], make("-", 0, args[0]))
    return _host_call(thread, abs, args, named, node)


def _whole(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    if len(args) == 1 and is_dynamic(args[0]):
        return make("select", args[0], 1, 0) if is_truth(args[0]) else args[0]
    return _host_call(thread, int, args, named, node)


def _boolean(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    if len(args) == 1 and is_dynamic(args[0]):
        return args[0] if is_truth(args[0]) else make("!=", args[0], 0)
    return _host_call(thread, bool, args, named, node)


def _print(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    raise thread.error(
        "TW008", "print inside a thread is not supported yet", node, help="remove it; the simulator can trace the kernel"
    )


def _pow(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    if len(args) == 2 and isinstance(args[0], Block):
        thread.at(node)
        return blocks.binary(thread, "**", args[0], args[1], node)
    return _host_call(thread, pow, args, named, node)


SPECIAL: dict[Any, Callable[..., Any]] = {
    min: _extreme("min"),
    max: _extreme("max"),
    abs: _absolute,
    int: _whole,
    bool: _boolean,
    print: _print,
    pow: _pow,
}


def _list_method(
    thread: Thread, items: list[Any], method: Any, args: list[Any], named: dict[str, Any], node: ast.Call
) -> Any:
    """Lists exist at compile time: one may grow only where it was made, not in a loop that runs on the device."""
    if thread.lists.get(id(items), (None, -1))[1] != thread.depth:
        raise thread.error(
            "TW012",
            f"{method.__name__}() changes a list of another loop, branch or of the kernel's body",
            node,
            help="make the list in the same loop body, or iterate over a tuple, which is unrolled",
        )
    try:
        return method(*args, **named)
    except Exception as error:
        raise thread.error("TW017", f"{type(error).__name__}: {error}", node, help="this call is made at compile time") from None


def _host_call(thread: Thread, callee: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    """Plain Python on plain values, done now."""
    if not callable(callee):
        raise thread.error("TW003", f"{described(callee)} cannot be called", node)
    values = [*args, *named.values()]
    kernel_values = [value for value in values if _is_kernel_value(value)]
    if kernel_values and callee not in HANDLED_BUILTINS:
        name = getattr(callee, "__name__", "this")
        raise thread.error(
            "TW003",
            f"'{name}' does not take {described(kernel_values[0])}",
            node,
            help="in a thread, use the functions of ttl.math",
        )
    try:
        result: Any = callee(*args, **named)
        return list(result) if callee in (zip, enumerate, reversed) else result
    except KernelError:
        raise
    except Exception as error:
        raise thread.error("TW017", f"{type(error).__name__}: {error}", node, help="this call is made at compile time") from None


def _is_kernel_value(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_is_kernel_value(item) for item in value)
    return isinstance(value, (Block, Transfer, TensorSlice, CircularBuffer, KernelTensor)) or is_dynamic(value)


def _is_host_function(function: types.FunctionType, args: list[Any], named: dict[str, Any]) -> bool:
    """Whether a helper has nothing to do with the kernel: plain arguments, and nothing of the language in reach."""
    if any(_is_kernel_value(value) for value in (*args, *named.values())):
        return False
    return not _reaches_kernel(function, set())


def _reaches_kernel(function: types.FunctionType, seen: set[Any]) -> bool:
    if function in seen:
        return False
    seen.add(function)
    outer = outer_names(function)
    for name in (*function.__code__.co_names, *function.__code__.co_freevars):
        value = outer.get(name)
        if _is_kernel_value(value) or isinstance(value, (LanguageFunction, FunctionFamily)):
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


def _inline(thread: Thread, function: types.FunctionType, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
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
    )
    return _run_inlined(thread, frame, definition, node)


def _inline_local(thread: Thread, function: LocalFunction, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    parameters = function.node.args
    names = [arg.arg for arg in (*parameters.posonlyargs, *parameters.args)]
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs or len(args) > len(names):
        raise thread.error("TW004", f"arguments of '{function.name}' do not match its parameters", node)
    bound = dict(zip(names, args, strict=False)) | named
    for name, default in zip(names[len(names) - len(parameters.defaults) :], parameters.defaults, strict=True):
        bound.setdefault(name, thread.evaluate(default) if name not in bound else None)
    if set(bound) != set(names):
        raise thread.error("TW004", f"arguments of '{function.name}' do not match its parameters", node)
    outer: Mapping[str, Any] = ChainMap(function.frame.names, dict(function.frame.outer))
    frame = Frame(function.name, function.frame.file, bound, outer, thread.depth, function.node)
    return _run_inlined(thread, frame, function.node, node)


def _run_inlined(thread: Thread, frame: Frame, definition: ast.FunctionDef | ast.Lambda, node: ast.Call) -> Any:
    if any(open_frame.code is frame.code for open_frame in thread.frames):
        raise thread.error(
            "TW005", f"'{frame.function_name}' calls itself", node, help="helpers are inlined, so they cannot recurse; use a loop"
        )
    caller = thread.span(node)
    thread.frames.append(frame)
    try:
        if isinstance(definition, ast.Lambda):
            return thread.evaluate(definition.body)
        thread.execute(definition.body)
        return frame.returned
    except KernelError as error:
        note = Note(f"while inlining '{frame.function_name}', called here", caller)
        raise KernelError(*(replace(found, notes=(*found.notes, note)) for found in error.diagnostics)) from None
    finally:
        thread.frames.pop()
        thread.at(node)


def bind_target(thread: Thread, target: ast.expr, value: Any, node: ast.AST) -> None:
    """``target = value`` for names and nested tuples of names."""
    if isinstance(target, ast.Name):
        _bind_name(thread, target.id, value, node)
        return
    if isinstance(target, (ast.Tuple, ast.List)):
        items = value if isinstance(value, (tuple, list, range)) else None
        if items is None or len(items) != len(target.elts):
            found = described(value) if items is None else f"{len(items)} values"
            raise thread.error("TW004", f"{found} cannot be unpacked into {len(target.elts)} names", node)
        for part, item in zip(target.elts, items, strict=True):
            bind_target(thread, part, item, node)
        return
    words: dict[type[ast.expr], str] = {ast.Subscript: "an element", ast.Attribute: "an attribute", ast.Starred: "a starred name"}
    help_text = "store into a block with block.store(x)" if isinstance(target, ast.Subscript) else "assign to a plain name"
    raise thread.error("TW001", f"assignment to {words.get(type(target), 'this')}", target, help=help_text)


def _bind_name(thread: Thread, name: str, value: Any, node: ast.AST) -> None:
    thread.frame.names[name] = value
    if is_dynamic(value):
        thread.at(node)
        ssa = thread.emitter.integer(value)  # here, where the source computes it
        ssa.name_hint = ssa.name_hint or name
    elif isinstance(value, Block) and value.held is None:
        value.ssa.name_hint = value.ssa.name_hint or name
