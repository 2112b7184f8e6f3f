"""Python's own functions in a thread: on plain values they run now, on values of the kernel they mean something here."""

from __future__ import annotations

import ast
import functools
import itertools
import types
from collections.abc import Callable
from typing import Any

from tilewright.builder import blocks, functions
from tilewright.builder.blocks import BareFill
from tilewright.builder.values import Block, TensorSlice, Transfer, described
from tilewright.cache_key import is_users_own
from tilewright.diagnostics import KernelError
from tilewright.frontend.debugging import breakpoint_call, print_call
from tilewright.frontend.thread import DynamicRange, LocalFunction, Scope, Thread
from tilewright.integers import OPERATORS, is_dynamic, is_int_like, is_truth, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.names import LanguageFunction, find_function
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import class_of, is_dict, is_list, is_row, is_tuple
from tilewright.records import record

INTERNAL = ("tilewright.frontend.", "tilewright.builder.")  # classes of values that only threads have
# Python's own functions that only pass values on, or hand them to a function they are given.
LISTED: tuple[Any, ...] = (
    zip, enumerate, reversed, map, filter, itertools.chain, itertools.chain.from_iterable, itertools.accumulate,
    itertools.product, itertools.permutations, itertools.combinations, itertools.islice, itertools.starmap, itertools.zip_longest,
)  # fmt: skip
HANDLED_BUILTINS: tuple[Any, ...] = (
    len, tuple, list, dict, isinstance, slice, callable, functools.reduce, functools.partial, *LISTED,
)  # fmt: skip
SYMBOLS: dict[Any, str] = {OPERATORS[symbol]: symbol for symbol in ("+", "-", "*", "/", "//", "%", "**", "@")}

OUTSIDE_WORLD = (open, input, exec, eval, compile, globals, locals, vars, __import__)


@record(frozen=False, eq=False)
class Deferred:
    """A function of the thread as Python's own functions can call it: each call is inlined here."""

    func: Any
    thread: Thread
    node: ast.AST

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.thread.invoke(self.func, list(args), named, self.node)


def _extreme(word: str, thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    values = list(args[0]) if len(args) == 1 and is_row(args[0]) else args
    if any(isinstance(value, Block) for value in values):
        thread.at(node)
        return functions.call_function(thread, f"math.{word}", args, named)
    if not any(is_dynamic(value) for value in values):
        return host_call(thread, min if word == "min" else max, args, named, node)
    if named or not all(is_int_like(value) for value in values):
        raise thread.error("TW004", f"{word} takes integers here", node)
    result: Any = values[0]
    for value in values[1:]:
        result = make(word, result, value)
    return result


def _absolute(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if len(args) == 1 and isinstance(args[0], Block):
        thread.at(node)
        return blocks.unary(thread, "abs", args[0])
    if len(args) == 1 and is_dynamic(args[0]):
        return make("max", args[0], make("-", 0, args[0]))
    return host_call(thread, abs, args, named, node)


def _whole(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if len(args) == 1 and is_dynamic(args[0]):
        return make("select", args[0], 1, 0) if is_truth(args[0]) else args[0]
    return host_call(thread, int, args, named, node)


def _boolean(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if len(args) == 1 and is_dynamic(args[0]):
        return args[0] if is_truth(args[0]) else make("!=", args[0], 0)
    return host_call(thread, bool, args, named, node)


def _sum(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    items, start = args[0] if args else None, named.get("start", args[1] if len(args) > 1 else 0)
    if not is_row(items) or not any(is_kernel_value(item) for item in (*items, start)):
        return host_call(thread, sum, args, named, node)
    total: Any = start
    for item in items:
        total = item if isinstance(total, int) and total == 0 else thread.combine("+", total, item, node)
    return total


def _divmod(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if len(args) != 2 or named or not any(is_dynamic(arg) for arg in args):
        return host_call(thread, divmod, args, named, node)
    return thread.combine("//", args[0], args[1], node), thread.combine("%", args[0], args[1], node)


def _all_or_any(word: str, thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    items = args[0] if len(args) == 1 and is_list(args[0]) else ()
    if not any(is_dynamic(item) for item in items):
        return host_call(thread, all if word == "and" else any, args, named, node)
    result: Any = word == "and"
    for item in items:
        known = is_truth(item) or not is_dynamic(item)
        result = make(word, result, (item if is_dynamic(item) else bool(item)) if known else make("!=", item, 0))
    return result


def _pow(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if len(args) == 2 and isinstance(args[0], Block):
        thread.at(node)
        return blocks.binary(thread, "**", args[0], args[1])
    return host_call(thread, pow, args, named, node)


def _reversed(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """A range backwards is a range."""
    only = args[0] if len(args) == 1 and not named else None
    if isinstance(only, range):
        return only[::-1]
    if isinstance(only, DynamicRange) and only.step == 1:
        return DynamicRange(make("-", only.stop, 1), make("-", only.start, 1), -1)
    return host_call(thread, reversed, args, named, node)


def _round(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if args and isinstance(args[0], Block):
        thread.at(node)
        return functions.call_function(thread, "math.round", args if len(args) > 1 or named else [args[0], 0], named)
    return args[0] if len(args) == 1 and is_dynamic(args[0]) else host_call(thread, round, args, named, node)


def _super(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """``super()`` finds the class and the object in the function it stands in."""
    frame = thread.frame
    if not args and "__class__" in frame.outer and frame.names:
        args = [frame.outer["__class__"], next(iter(frame.names.values()))]
    return host_call(thread, super, args, named, node)


def _operator(
    function: Any, symbol: str, thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST
) -> Any:
    if len(args) == 2 and not named and any(is_kernel_value(arg) for arg in args):
        return thread.combine(symbol, args[0], args[1], node)
    return host_call(thread, function, args, named, node)


SHOWING = (print, breakpoint)  # functions that take any value as it is
SPECIAL: dict[Any, Callable[..., Any]] = {
    **{function: functools.partial(_operator, function, symbol) for function, symbol in SYMBOLS.items()},
    round: _round,
    super: _super,
    reversed: _reversed,
    min: functools.partial(_extreme, "min"),
    max: functools.partial(_extreme, "max"),
    abs: _absolute,
    int: _whole,
    bool: _boolean,
    print: print_call,
    breakpoint: breakpoint_call,
    pow: _pow,
    sum: _sum,
    divmod: _divmod,
    all: functools.partial(_all_or_any, "and"),
    any: functools.partial(_all_or_any, "or"),
}


READING_METHODS = ("index", "count", "copy", "get", "items", "keys", "values")


def container_method(thread: Thread, items: Any, method: Any, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """Lists and tables exist at compile time: one may change only where it was made, not in a loop that runs on the device."""
    changes = method.__name__ not in READING_METHODS
    if changes and not thread.made_here(items):
        message = f"{method.__name__}() changes a list or table of another loop, branch or of the kernel's body"
        remedy = "make the list in the same loop body, or iterate over a tuple, which is unrolled"
        raise thread.error("TW012", message, node, help=remedy)
    try:
        return _remembered(thread, method(*args, **named))
    except Exception as error:
        raise thread.error("TW017", f"{type(error).__name__}: {error}", node, help="this call is made at compile time") from None


def _remembered(thread: Thread, result: Any, callee: Any = None) -> Any:
    """A list, table, iterator or object that a call has made belongs to the thread, which may change it."""
    made = isinstance(callee, type) and type(result) is callee and is_users_own(callee) and not is_tuple(result)
    if type(result) in (list, dict) or made or hasattr(class_of(result), "__next__"):
        thread.remember(result)
    return result


def _callable(thread: Thread, value: Any, every: bool, node: ast.AST) -> Any:
    """A function among the arguments of Python's own functions; ``every`` one where they are given values of the kernel."""
    wanted = isinstance(value, LocalFunction) or (
        every and isinstance(value, (LanguageFunction, types.FunctionType, types.BuiltinFunctionType, types.MethodType))
    )
    return Deferred(value, thread, node) if wanted else value


def _is_named_tuple(callee: Any) -> bool:
    return isinstance(callee, type) and tuple in callee.__mro__ and hasattr(callee, "_fields")


def host_call(thread: Thread, callee: Any, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """Plain Python on plain values, done now."""
    if not callable(callee):
        raise thread.error("TW003", f"{described(callee)} cannot be called", node)
    if callee in OUTSIDE_WORLD:
        remedy = "threads run on the device; read and write files in host code"
        raise thread.error("TW003", f"'{callee.__name__}' in a kernel", node, help=remedy)
    kernel_values = [value for given in (*args, *named.values()) for value in kernel_values_in(given)]
    handled = any(callee == known for known in HANDLED_BUILTINS) or _is_named_tuple(callee)
    if kernel_values and not handled:
        raise _not_taken(thread, callee, kernel_values[0], node)
    every = handled and bool(kernel_values)
    args = [_callable(thread, arg, every, node) for arg in args]
    named = {name: _callable(thread, arg, every, node) for name, arg in named.items()}
    if callee is next and args and not thread.made_here(args[0]):
        remedy = "iterate over the items with for, or index them"
        raise thread.error("TW012", "next() on an iterator of another loop, branch or of the kernel's body", node, help=remedy)
    try:
        result: Any = callee(*args, **named)
        listed = callee in (zip, enumerate, reversed) or (callee in LISTED and (every or Deferred in map(type, args)))
        return _remembered(thread, list(result) if listed else result, callee)
    except KernelError:
        raise
    except Exception as error:
        if kernel_values and isinstance(error, TypeError):
            raise _not_taken(thread, callee, kernel_values[0], node) from None
        raise thread.error("TW017", f"{type(error).__name__}: {error}", node, help="this call is made at compile time") from None


def _not_taken(thread: Thread, callee: Any, value: Any, node: ast.AST) -> KernelError:
    name = getattr(callee, "__name__", "this")
    known = isinstance(value, Block) and find_function(f"math.{name}")
    remedy = f"ttl.{known} does" if known else "in a thread, use the functions of ttl.math"
    remedy = "block.shape is its size in tiles" if callee is len else remedy
    return thread.error("TW003", f"'{name}' does not take {described(value)}", node, help=remedy)


def kernel_values_in(value: Any) -> list[Any]:
    if is_dict(value):
        value = list(value.values())
    if is_list(value):
        return [found for item in value for found in kernel_values_in(item)]
    return [value] if is_kernel_value(value) else []


def is_kernel_value(value: Any) -> bool:
    if is_list(value):
        return any(is_kernel_value(item) for item in value)
    return isinstance(value, (Block, Scope, BareFill, Transfer, TensorSlice, CircularBuffer, KernelTensor)) or is_dynamic(value)
