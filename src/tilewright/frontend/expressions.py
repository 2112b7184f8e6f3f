"""Python expressions to values: folded where they are known, IR where they are not."""

from __future__ import annotations

import ast
import builtins
import operator
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tilewright.builder import blocks, functions
from tilewright.builder.blocks import is_number, plain_number
from tilewright.builder.elements import Element, compare_elements
from tilewright.builder.network import REMOTE_METHODS, PipeEnd, RemoteSemaphore, pipe_attribute
from tilewright.builder.values import Block, Choice, ReadyReceive, TensorSlice, Transfer, TransferGroup, described
from tilewright.diagnostics import KernelError
from tilewright.frontend import calls, carried, choices, containers
from tilewright.frontend.containers import is_object_of
from tilewright.frontend.thread import (
    RUNTIME_VALUES,
    BoundMethod,
    LocalFunction,
    Parted,
    Scope,
    Thread,
    Unusable,
    native,
    of_thread,
    truth,
    without_value,
)
from tilewright.integers import ARITHMETIC, COMPARISONS, OPERATOR_METHODS, OPERATORS, is_dynamic, is_int_like, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.cores import NET_METHODS, SEMAPHORE_METHODS, Pipe, PipeNet, Semaphore
from tilewright.lang.names import FunctionFamily, function_names, suggestion
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import class_of, is_row

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
PYTHON_ONLY_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
PYTHON_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
METHODS: dict[type, tuple[str, ...]] = {
    CircularBuffer: ("wait", "reserve", "push", "pop", "publish"),
    Block: ("store", "push", "pop"),
    Transfer: ("wait",),
    TransferGroup: ("add", "wait_all"),
    ReadyReceive: ("index",),
    PipeNet: NET_METHODS,
    Pipe: NET_METHODS,
    Semaphore: SEMAPHORE_METHODS,
    RemoteSemaphore: REMOTE_METHODS,
}


@lru_cache(maxsize=256)
def _methods(kind: type) -> tuple[str, ...]:
    return next((methods for known, methods in METHODS.items() if issubclass(kind, known)), ())


# What arrays of other libraries have, and the function that does it for blocks.
ARRAY_METHODS = {"T": "transpose", "mT": "transpose", "t": "transpose", "astype": "typecast", "to": "typecast"}
# What a buffer or block has and a tensor has not: what was meant.
TENSOR_METHODS = {
    "store": "compute stores into a reserved block; ttl.copy(block, tensor[…]) in a data-movement thread writes it out",
    "wait": "a buffer made like the tensor has wait(); ttl.copy(tensor[…], block) in a data-movement thread fills it",
    "reserve": "a buffer made like the tensor has reserve(); ttl.copy(block, tensor[…]) in a data-movement thread writes it out",
    "push": "push() ends what reserve() of a buffer began",
    "pop": "pop() ends what wait() of a buffer began",
}


def evaluate(thread: Thread, node: ast.expr) -> Any:
    handler = HANDLERS.get(type(node))
    if handler is None:
        name = type(node).__name__
        word = {"Await": "await", "YieldFrom": "yield"}.get(name, f"'{name}'")
        raise thread.error("TW001", f"{word} in a kernel", node, help="compute it before the thread, in the kernel's body")
    return handler(thread, node)


def _name(thread: Thread, node: ast.Name) -> Any:
    frame = thread.frames[-1]
    own = node.id in frame.names
    try:
        value = frame.names[node.id] if own else frame.outer[node.id]
    except KeyError:
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise thread.error("TW002", f"name '{node.id}' is not defined", node, help=_name_instead(thread, node.id)) from None
    kind = class_of(value)
    if kind is Unusable:
        raise without_value(thread, node.id, value, node)
    if kind is Choice or kind is Parted:
        value = choices.settled(thread, value, node)
    elif kind is Scope:
        return carried.read(thread, value, None, node)
    return value if own else of_thread(thread, value, node)


def _name_instead(thread: Thread, word: str) -> str:
    threads = [other for other in thread.build.threads if word in other.function.__code__.co_varnames]
    if any(other.name == thread.function.name for other in threads):
        return "give it a value before it is read; a sum starts from ttl.block.fill(0.0, shape=…)"
    import difflib

    known = [name for name in (*thread.frame.names, *thread.frame.outer, *dir(builtins)) if not name.startswith("__")]
    close = [name for name in known if name.lower() == word.lower()] or difflib.get_close_matches(word, known, 1, 0.7)
    if close:
        return f"did you mean '{close[0]}'?"
    if threads:
        return f"it is a variable of thread '{threads[0].name}'; threads share what the kernel's body defines"
    return "give it a value before, here or in the kernel's body"


def _attribute(thread: Thread, node: ast.Attribute) -> Any:
    owner = evaluate(thread, node.value)
    if isinstance(owner, Scope) and node.attr == "shape" and isinstance(owner.carried.start, Block):
        return owner.carried.start.shape  # known before its dtype is
    kind = class_of(owner)
    if node.attr in _methods(kind):
        return BoundMethod(owner, node.attr)
    if isinstance(owner, PipeEnd):
        thread.at(node)
        return pipe_attribute(thread, owner, node.attr)
    if isinstance(owner, Block) and node.attr in ("shape", "dtype"):
        return getattr(owner, node.attr)
    if isinstance(owner, RUNTIME_VALUES) or is_dynamic(owner):
        message = f"{described(owner)} has no '{node.attr}'"
        raise thread.error("TW003", message, node, help=_what_it_has(owner, node.attr))
    if isinstance(owner, KernelTensor) and (remedy := TENSOR_METHODS.get(node.attr)):
        raise thread.error("TW003", f"{described(owner)} has no '{node.attr}'", node, help=remedy)
    if is_object_of(thread, owner) and isinstance(found := getattr(class_of(owner), node.attr, None), property):
        return thread.invoke(found.fget, [owner], {}, ast.copy_location(ast.Call(node, [], []), node))
    try:
        return of_thread(thread, getattr(owner, node.attr), node)
    except AttributeError:
        pass
    except KernelError:
        raise
    except Exception as error:  # a property of the user's
        raise thread.error("TW017", f"{type(error).__name__}: {error}", node, help="this is read at compile time") from None
    language = isinstance(owner, FunctionFamily) or getattr(owner, "__name__", "") in ("tilewright.ttl", "ttl")
    name = repr(owner) if isinstance(owner, FunctionFamily) else ast.unparse(node.value)
    hint = suggestion(name, node.attr, [*dir(owner), *(dir(owner.math) if name == "ttl" and language else ())])
    remedy = hint or ("see docs/ops.md for what exists" if language else f"it is {described(owner)}")
    raise thread.error("TW003", f"{name} has no '{node.attr}'", node, help=remedy)


def _what_it_has(owner: Any, word: str) -> str:
    import difflib

    names = _methods(class_of(owner))
    if isinstance(owner, Block):
        names += ("shape", "dtype")
    close = difflib.get_close_matches(word, names, 1, 0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    if isinstance(owner, Block) and (function := _function_instead(word)):
        return f"blocks are arguments of functions: {function}(x)"
    return f"it has {', '.join(names)}" if names else "it has no attributes in a kernel"


def _function_instead(method: str) -> str | None:
    """The function that does what other libraries have as a method or attribute of arrays."""
    names = {name.split(".")[1]: f"ttl.{name}" for name in function_names()}
    wanted = (f"reduce_{method}", ARRAY_METHODS.get(method, method))
    return next((names[word] for word in wanted if word in names), None)


COMPUTES_ON_BLOCKS = "copy the tiles into a buffer, and compute with its block in the compute thread"
NOT_OPERANDS: dict[type, str] = {
    CircularBuffer: "wait() for a block of a buffer and compute with it",
    KernelTensor: COMPUTES_ON_BLOCKS,
    TensorSlice: COMPUTES_ON_BLOCKS,
    Element: "elements are moved and compared; ttl.read_index gives an integer, and floats are computed with in blocks",
}


def binary(thread: Thread, symbol: str, left: Any, right: Any, node: ast.AST) -> Any:
    left, right = carried.typed(thread, [plain_number(left), plain_number(right)], node)
    if (isinstance(left, Block) or isinstance(right, Block)) and not has_operators(thread, left, right):
        thread.at(node)
        if symbol == "@":
            return functions.matmul(thread, left, right)
        return blocks.binary(thread, symbol, left, right)
    method = operator_method(thread, symbol, left, right)
    if method is not None:
        return thread.invoke(*method, {}, node)
    for side in (left, right):
        if isinstance(side, (*RUNTIME_VALUES, CircularBuffer, KernelTensor)):
            remedy = NOT_OPERANDS.get(type(side), "")
            raise thread.error("TW004", f"{symbol} on {described(side)}", node, help=remedy)
    if not is_dynamic(left) and not is_dynamic(right) and not (isinstance(left, Choice) or isinstance(right, Choice)):
        return native(thread, node, OPERATORS[symbol], left, right)
    if isinstance(left, Choice) or isinstance(right, Choice) or symbol == "/" or _is_fraction(left) or _is_fraction(right):
        sides = [side for side in (left, right) if not is_number(side)]
        if all(choices.may_tabulate(thread, side) for side in sides):
            first = sides[0] is left

            def applied(number: Any) -> Any:
                return binary(thread, symbol, number, right, node) if first else binary(thread, symbol, left, number, node)

            return choices.tabulated(thread, sides[0], applied)
    return _dynamic_binary(thread, symbol, left, right, node)


def _dynamic_binary(thread: Thread, symbol: str, left: Any, right: Any, node: ast.AST) -> Any:
    for side in (left, right):
        if not is_int_like(side):
            message = f"{symbol} on an integer of this core and {described(side)}"
            remedy = "give a block one after the other: x * i * 0.5" if _is_fraction(side) else "both sides must be integers"
            raise thread.error("TW004", message, node, help=remedy)
    thread.at(node)
    if symbol in ("<<", ">>") and isinstance(right, int) and right >= 0:
        return make("*" if symbol == "<<" else "//", left, 1 << right)
    if symbol == "**" and isinstance(right, int) and 0 <= right <= 4:
        result: Any = 1
        for _ in range(right):
            result = make("*", result, left)
        return result
    if symbol in ("//", "%") and right == 0:
        raise thread.error("TW016", "division by zero", node, help="divide by a positive number")
    if symbol not in ARITHMETIC:
        remedy = "use // for whole-number division, or divide a block: x / (i + 1)" if symbol == "/" else "use + - * // %"
        raise thread.error("TW001", f"operator {symbol} on integers that are known per core or iteration only", node, help=remedy)
    return make(symbol, left, right)


def _is_fraction(value: Any) -> bool:
    return is_number(value) and not isinstance(value, int)


def _bin_op(thread: Thread, node: ast.BinOp) -> Any:
    left, right = evaluate(thread, node.left), evaluate(thread, node.right)
    return binary(thread, BINARY[type(node.op)], left, right, node)


def _unary_op(thread: Thread, node: ast.UnaryOp) -> Any:
    operand = carried.typed(thread, [evaluate(thread, node.operand)], node)[0]
    if isinstance(node.op, ast.Not):
        return make("not", truth(thread, operand, node.operand))
    if isinstance(operand, Block):
        thread.at(node)
        if isinstance(node.op, ast.UAdd):
            return blocks.value_of(thread, blocks.readable(thread, operand))
        return blocks.unary(thread, "neg" if isinstance(node.op, ast.USub) else "~", operand)
    if isinstance(operand, Choice) and operand.numbers is not None:
        return choices.tabulated(thread, operand, PYTHON_UNARY[type(node.op)])
    if is_dynamic(operand):
        if isinstance(node.op, ast.Invert):
            raise thread.error("TW001", "operator ~ on an integer known per core only", node)
        return make("-", 0, operand) if isinstance(node.op, ast.USub) else operand
    if isinstance(operand, (*RUNTIME_VALUES, CircularBuffer, KernelTensor)):
        raise thread.error("TW004", f"arithmetic on {described(operand)}", node)
    return native(thread, node, PYTHON_UNARY[type(node.op)], operand)


def _bool_op(thread: Thread, node: ast.BoolOp) -> Any:
    word = "and" if isinstance(node.op, ast.And) else "or"
    result: Any = None
    for index, part in enumerate(node.values):
        so_far = True if index == 0 else truth(thread, result, node)
        with thread.emitter.given(so_far if word == "and" else make("not", so_far) if index else True):
            value = evaluate(thread, part)
        result = value if index == 0 else make(word, truth(thread, result, node), truth(thread, value, part))
        if not is_dynamic(result) and bool(truth(thread, result, part)) is (word == "or"):
            return result  # decided: Python does not look at the rest either
    return result


def compare(thread: Thread, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    only = PYTHON_ONLY_COMPARE.get(type(op))
    if only is not None:
        if is_dynamic(left) and isinstance(op, (ast.In, ast.NotIn)) and is_row(right):
            found: Any = False
            for item in right:
                found = make("or", found, compare(thread, ast.Eq(), left, item, node))
            return make("not", found) if isinstance(op, ast.NotIn) else found
        return native(thread, node, only, left, right)
    symbol = COMPARE[type(op)]
    if isinstance(left, Block) or isinstance(right, Block):
        thread.at(node)
        left, right = plain_number(left), plain_number(right)
        return blocks.compare(thread, symbol, left, right)
    if isinstance(left, Element) or isinstance(right, Element):
        thread.at(node)
        return compare_elements(thread, symbol, plain_number(left), plain_number(right))
    if isinstance(left, Choice) and left.numbers is not None:
        return choices.tabulated(thread, left, lambda number: compare(thread, op, number, right, node))
    if isinstance(right, Choice) and right.numbers is not None:
        return choices.tabulated(thread, right, lambda number: compare(thread, op, left, number, node))
    if not is_dynamic(left) and not is_dynamic(right):
        return native(thread, node, COMPARISONS[symbol], left, right)
    if not (is_int_like(left) and is_int_like(right)):
        raise thread.error("TW004", f"{symbol} between {described(left)} and {described(right)}", node, help="compare integers")
    return make(symbol, left, right)


def _compare(thread: Thread, node: ast.Compare) -> Any:
    left = evaluate(thread, node.left)
    result: Any = True
    for index, (op, part) in enumerate(zip(node.ops, node.comparators, strict=True)):
        right = evaluate(thread, part)
        left, right = carried.typed(thread, [left, right], node)
        answer = compare(thread, op, left, right, node)
        result = answer if index == 0 else make("and", truth(thread, result, node), truth(thread, answer, node))
        left = right
    return result


def _if_exp(thread: Thread, node: ast.IfExp) -> Any:
    condition = truth(thread, evaluate(thread, node.test), node.test)
    if isinstance(condition, bool):
        return evaluate(thread, node.body if condition else node.orelse)
    return choices.choose(thread, condition, node)


def _named(thread: Thread, node: ast.NamedExpr) -> Any:
    value = evaluate(thread, node.value)
    containers.bind_target(thread, node.target, value, node)
    return value


def _yield(thread: Thread, node: ast.Yield) -> None:
    at_yield = thread.frame.at_yield
    if at_yield is None:
        raise thread.error("TW001", "yield in a kernel", node, help="a helper that yields is used in a for statement")
    at_yield(None if node.value is None else evaluate(thread, node.value), node)


HANDLERS: dict[type[ast.expr], Callable[[Thread, Any], Any]] = {
    ast.Constant: lambda thread, node: node.value,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: calls.call,
    ast.BinOp: _bin_op,
    ast.UnaryOp: _unary_op,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.IfExp: _if_exp,
    ast.Tuple: containers.sequence,
    ast.List: containers.sequence,
    ast.Dict: containers.table,
    ast.Subscript: containers.subscript,
    ast.ListComp: containers.comprehension,
    ast.GeneratorExp: containers.comprehension,
    ast.DictComp: containers.table_comprehension,
    ast.Set: containers.collection,
    ast.SetComp: containers.collection,
    ast.JoinedStr: containers.joined,
    ast.NamedExpr: _named,
    ast.Yield: _yield,
    ast.Lambda: lambda thread, node: calls.local_function(thread, node, "lambda"),
}



def has_operators(thread: Thread, *values: Any) -> bool:
    return any(is_object_of(thread, value) and not isinstance(value, LocalFunction) for value in values)


def operator_method(thread: Thread, symbol: str, left: Any, right: Any) -> tuple[Any, list[Any]] | None:
    """The method of the user's class that does ``left symbol right``, and its arguments."""
    for owner, other, prefix in ((left, right, "__"), (right, left, "__r")):
        method = getattr(class_of(owner), f"{prefix}{OPERATOR_METHODS[symbol]}__", None) if is_object_of(thread, owner) else None
        if isinstance(method, types.FunctionType):
            return method, [owner, other]
    return None
