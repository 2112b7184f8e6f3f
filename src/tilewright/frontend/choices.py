"""What differs by branch: ``v = a if node == 0 else b``, or a name that both branches of an ``if`` assign.

The condition is known on each core only. Integers are selected where they are needed (`integers`). The rest goes two ways:

* A block value of the compute thread is computed by the branch a core takes and goes through a buffer, so behind the branches
  it is a value like any other (`Parted`). That happens when the name is read: most names of a branch are not read behind it.
* Everything else (a tensor, a slice of one, a buffer, a held block, a number) exists at compile time, so the choice stays open
  (`Choice`) and each statement that reads it is written once per side, under the same condition (`split`).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from xdsl.dialects.scf import YieldOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation

from tilewright.builder.blocks import BareFill, at_whole_tiles, computed, filled, is_core_number, whole
from tilewright.builder.buffers import acquired, early, loops_since, new_buffer, store_in
from tilewright.builder.extents import joined
from tilewright.builder.thread import FREE_OPS
from tilewright.builder.values import Acquisition, Block, Choice, TensorSlice, Transfer, described
from tilewright.diagnostics import KernelError
from tilewright.dialects.ttl_buffers import CBPushOp, TensorSliceOp, WaitOp
from tilewright.frontend.thread import MISSING, Branches, Parted, Thread, Unusable, truth
from tilewright.integers import Value, bounds, is_dynamic, is_int_like, is_truth, make
from tilewright.narrowing import is_list, is_tuple

READS = "tilewright_reads"  # names that a statement reads, kept with the node
INLINE = "tilewright_choices"  # its conditional expressions and subscripts, kept with the node
NAMING = (ast.Assign, ast.AnnAssign, ast.Return)
SIMPLE = (*NAMING, ast.Expr, ast.AugAssign)
OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.BoolOp)
# Of indices that may be evaluated twice.
SYNTAX_OF_INDICES = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.List, ast.Tuple)
WORDS_OF_INDICES = (ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)
TABLES = (list, tuple, dict)


def merged(thread: Thread, name: str, branches: Branches, first: Any, second: Any) -> Any:
    """What a name stands for behind the branches that gave it these values."""
    condition = branches.condition
    if first is second or (type(first) is type(second) and _equal(first, second)):
        return first
    integer = _known_per_core(condition, first, second)
    if integer is not None:
        return integer
    if _unrolls(thread, condition):
        return _no_value()
    for value in (first, second):
        if isinstance(value, Unusable) and value.outlives is not None:
            return value
    kinds = (_is_value(thread, first), _is_value(thread, second))
    if any(kinds) and all(kind or isinstance(value, BareFill) for kind, value in zip(kinds, (first, second), strict=True)):
        return Parted(name, branches, (first, second))
    if _is_copy(first) and _is_copy(second):
        return Parted(name, branches, (first, second))
    tuples = is_tuple(first) and is_tuple(second) and len(first) == len(second)
    if tuples and any(_is_value(thread, item) for item in (*first, *second)):
        items = [merged(thread, name, branches, *pair) for pair in zip(first, second, strict=True)]
        if not any(isinstance(item, Unusable) for item in items):
            return tuple(settled(thread, item, branches.node) for item in items)
    if _stays(thread, first) and _stays(thread, second):
        thread.chooses = True
        return Choice(condition, first, second)
    return _no_value()


Content = tuple[Block | None, Callable[[], Block] | None, Operation | None]
Contents = dict[Acquisition, Content]  # of reserved blocks, as `builder.buffers` notes them


def contents(held: Sequence[Acquisition]) -> Contents:
    return {each: (each.stored, each.joined, each.store) for each in held if each.kind == "reserve"}


def put_back(known: Contents) -> None:
    """Each branch begins with what the blocks held before."""
    for held, content in known.items():
        held.stored, held.joined, held.store = content


def merge_contents(thread: Thread, branches: Branches, before: Contents, first: Contents, second: Contents) -> None:
    """What reserved blocks hold behind the branches: a value that differs by branch, if both have left one."""
    for held, unchanged in before.items():
        ways = (first[held], second[held])
        if ways != (unchanged, unchanged):
            known = all(_is_one_value(thread, content, way) for content, way in zip(ways, branches.ways, strict=True))
            if known:
                join = partial(_joined_content, thread, held, branches, ways)
                held.stored, held.joined, held.store = None, join, branches.op
            else:
                held.stored, held.joined, held.store = None, None, next(way[2] for way in ways if way != unchanged)


def _is_one_value(thread: Thread, content: Content, way: IRBlock) -> bool:
    """Whether it is known what a block holds at the end of a branch, which has stored that or found it."""
    stored, join, store = content
    place = None if store is None else store.parent
    found = place is not None and place in thread.emitter.open_blocks() and not loops_since(thread, place)
    return (place is way or found) and (stored is not None or join is not None)


def _joined_content(thread: Thread, held: Acquisition, branches: Branches, ways: tuple[Content, Content]) -> Block:
    values: list[Block] = []
    for stored, join, store in ways:
        value = stored if join is None else join()
        assert value is not None and store is not None
        values.append(early(thread, held, value, store, thread.emitter.span))
    return _joined(thread, Parted(f"{held.buffer.name}_value", branches, (values[0], values[1])), branches.node)


def _no_value() -> Unusable:
    return Unusable(
        "depends on which branch of an if ran, which is known per core only",
        "use it inside the branch, or give it a value of the same kind in both branches",
    )


def _unrolls(thread: Thread, condition: Value) -> bool:
    """A condition on the counter of a short loop is known once the loop is unrolled, and that costs nothing on the device."""
    return thread.emitter.varies(condition) and thread.unrolling.next_loop() is not None


def _equal(first: Any, second: Any) -> bool:
    if is_tuple(first):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(
            a is b or (type(a) is type(b) and _equal(a, b))
            for a, b in pairs
        )
    plain = (int, float, str, bool, type(None))
    return (isinstance(first, plain) or is_dynamic(first)) and first == second


def _is_value(thread: Thread, value: Any) -> bool:
    if isinstance(value, Parted):
        return not _is_copy(value)
    return thread.kind == "compute" and isinstance(value, Block) and (value.held is None or value.held.kind == "wait")


def _is_copy(value: Any) -> bool:
    return isinstance(value, Transfer) or (isinstance(value, Parted) and isinstance(value.values[0], Transfer))


def _stays(thread: Thread, value: Any) -> bool:
    """Whether something made in a branch can be used behind it."""
    if isinstance(value, Block):
        return thread.emitter.is_open(value.ssa)
    if isinstance(value, TensorSlice):
        return value.again is not None
    if is_tuple(value):
        return all(_stays(thread, item) for item in value)
    if isinstance(value, Choice):
        return _stays(thread, value.when_true) and _stays(thread, value.when_false)
    return not isinstance(value, (Unusable, Transfer, Parted, list, dict)) and value is not MISSING


def choose(thread: Thread, condition: Value, node: ast.IfExp) -> Any:
    """``a if condition else b``: each core evaluates one side."""
    if _unrolls(thread, condition):
        return _selected(thread, condition, node)
    held = list(thread.held)
    with thread.emitter.on_trial() as take_back:
        ways = thread.emitter.branch(condition)
        values: list[Any] = []
        for way, side in zip(ways, (node.body, node.orelse), strict=True):
            thread.emitter.enter(way)
            values.append(thread.evaluate(side))
            thread.at(node)
            thread.emitter.close_branch()
            thread.held = list(held)
    if _known_per_core(condition, *values) is not None:
        take_back()
        return _selected(thread, condition, node)
    result = merged(thread, "value", Branches(condition, ways, node), *values)
    if isinstance(result, Unusable):
        raise _no_choice(thread, values, node)
    if isinstance(result, Parted):
        return settled(thread, result, node)
    if all(type(op) in FREE_OPS or isinstance(op, (TensorSliceOp, YieldOp)) for way in ways for op in way.ops):
        take_back()  # slices are written where they are used
    return result


def _selected(thread: Thread, condition: Value, node: ast.IfExp) -> Value:
    values: list[Any] = []
    for side, holds in ((node.body, condition), (node.orelse, make("not", condition))):
        with thread.emitter.given(holds):
            values.append(thread.evaluate(side))
    found = _known_per_core(condition, *values)
    if found is None:
        raise _no_choice(thread, values, node)
    return found


def _known_per_core(condition: Value, first: Any, second: Any) -> Value | None:
    """An integer or a truth that differs by core."""
    if is_int_like(first) and is_int_like(second):
        return make("select", condition, first, second)
    if is_truth(first) and is_truth(second):
        return make("or", make("and", condition, first), make("and", make("not", condition), second))
    return None


def _no_choice(thread: Thread, values: list[Any], node: ast.IfExp) -> KernelError:
    message = f"a choice per core between {' and '.join(map(described, values))}"
    return thread.error("TW001", message, node, help="put the work under an if statement, once per branch")


def settled(thread: Thread, value: Any, node: ast.AST) -> Any:
    """The value of a name that is read: one that the branches have apart is put together."""
    if isinstance(value, Choice) and not _is_table_of_numbers(value):
        message = f"what is read here is {value.describe()}, which is known per core only"
        raise thread.error("TW012", message, node, help="give it a name of its own and use that, or put the work under an if")
    if not isinstance(value, Parted):
        return value
    if value.found is None:
        value.found = _waited_copies(thread, value) if _is_copy(value) else _joined(thread, value, node)
    return value.found


def _joined(thread: Thread, parted: Parted, node: ast.AST) -> Block:
    """Each branch stores its value to the same buffer, and behind them it is waited for."""
    thread.at(node)
    branches = parted.branches
    span = thread.span(branches.node)
    values: list[Any] = []
    for way, value in zip(branches.ways, parted.values, strict=True):
        with _at_end(thread, way):
            values.append(value if isinstance(value, BareFill) else computed(thread, whole(thread, settled(thread, value, node))))
    blocks = sorted((value for value in values if isinstance(value, Block)), key=lambda block: block.weak is not None)
    like = blocks[0]
    for position, value in enumerate(values):
        if isinstance(value, BareFill) or (value.weak is not None and value.dtype != like.dtype):
            number = value.number if isinstance(value, BareFill) else value.weak
            with _at_end(thread, branches.ways[position]):
                values[position] = filled(thread, number, like.shape, like.dtype)
    first, second = values
    if (first.shape, first.dtype) != (second.shape, second.dtype):
        message = f"'{parted.name}' is {described(first)} in one branch and {described(second)} in the other"
        raise thread.error("TW012", message, node, help="give both the same shape and dtype")
    alike = [
        tuple(dim for dim in value.reduced if dim in (*value.uniform, *other.reduced, *other.unknown))
        for value, other in ((first, second), (second, first))
    ]
    stored: list[Block] = []
    buffer = new_buffer(thread, parted.name, first.shape, first.dtype, span, "chosen")
    for way, value, kept in zip(branches.ways, values, alike, strict=True):
        with _at_end(thread, way):
            stored.append(at_whole_tiles(thread, value, kept))
            store_in(thread, buffer, stored[-1])
            thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    with thread.emitter.aside() as ops:
        ssa, _ = acquired(thread, buffer, "wait")
    ssa.name_hint = parted.name if parted.name.isascii() and parted.name.isidentifier() else None
    block = branches.op.parent
    assert block is not None
    block.insert_ops_after(ops, branches.op)
    differ = (*stored[0].differ, *stored[1].differ)
    chosen = Block(ssa, first.shape, first.dtype).with_extent(joined(value.extent for value in stored), differ)
    chosen.open = all(value.open and not value.grows for value in values)  # a fill in either branch
    return chosen


def _waited_copies(thread: Thread, parted: Parted) -> Transfer:
    """Each branch waits for its own copy at its end; behind them nothing is under way."""
    for way, value in zip(parted.branches.ways, parted.values, strict=True):
        transfer = settled(thread, value, parted.branches.node)
        assert isinstance(transfer, Transfer)
        with _at_end(thread, way):
            for op in transfer.ops if not transfer.waited else ():
                thread.emitter.add(WaitOp, [op.results[0]])
    return Transfer([], thread.span(parted.branches.node), waited=True)


@contextmanager
def _at_end(thread: Thread, way: IRBlock) -> Generator[None, None, None]:
    """What is added meanwhile ends up at the end of a branch that was closed."""
    with thread.emitter.aside() as ops:
        yield
    last = way.last_op
    assert last is not None
    way.insert_ops_before(ops, last)


def localised(thread: Thread, value: Any) -> Any:
    """One side of a choice as the branch that uses it sees it: slices are written there, under its condition."""
    if isinstance(value, TensorSlice) and value.again is not None:
        return value.again()
    if is_tuple(value):
        return tuple(localised(thread, item) for item in value)
    return value


def split(thread: Thread, statement: ast.stmt) -> tuple[Value, dict[str, Choice]] | None:
    """The condition on which a statement must be written twice, and the names it decides."""
    if not thread.chooses:
        return None
    names = thread.frame.names.items()
    open_names = {name: value for name, value in names if isinstance(value, Choice) and not _is_table_of_numbers(value)}
    if not open_names or isinstance(statement, ast.FunctionDef) or _passes_on(statement):
        return None
    read = _names_read(thread, statement, set())
    found = {name: value for name, value in open_names.items() if name in read}
    if not found:
        return None
    condition = next(iter(found.values())).condition
    return condition, {name: value for name, value in open_names.items() if value.condition == condition}


def _is_table_of_numbers(value: Choice) -> bool:
    """A number of which cores have more than two variants: a statement per variant would be much code for one number."""
    return any(isinstance(side, Choice) for side in (value.when_true, value.when_false)) and value.numbers is not None


MOST_NUMBERS = 64  # that a number of this core may take in arithmetic with fractions: each becomes a fill in the program


def tabulated(thread: Thread, value: Any, function: Callable[[Any], Any]) -> Any:
    """A function of a number that every core knows from its start, worked out at compile time for each number it may be."""
    if isinstance(value, Choice):
        first, second = (tabulated(thread, side, function) for side in (value.when_true, value.when_false))
        return chosen(thread, value.condition, first, second)
    if not is_dynamic(value):
        return function(value)
    low, high = bounds(value)
    result = function(high)
    for number in range(high - 1, low - 1, -1):
        result = chosen(thread, make("==", value, number), function(number), result)
    return result


def chosen(thread: Thread, condition: Value, first: Any, second: Any) -> Any:
    """One of two things that exist whichever branch a core takes."""
    if first is second:
        return first
    known = _known_per_core(condition, first, second)
    if known is not None:
        return known
    thread.chooses = True
    return Choice(condition, first, second)


def may_tabulate(thread: Thread, value: Any) -> bool:
    """Whether arithmetic with it can be worked out at compile time for each number it may be."""
    if not is_core_number(thread, value):
        return False
    if isinstance(value, Choice):
        return True
    low, high = bounds(value)
    return high - low < MOST_NUMBERS


def _passes_on(statement: ast.stmt) -> bool:
    """``return src``: the caller gets the choice."""
    return isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name)


def _names_read(thread: Thread, node: ast.AST, seen: set[ast.AST]) -> set[str]:
    """Names read by a statement, and by functions written in the thread that it names."""
    if node in seen:
        return set()
    seen.add(node)
    known = node.__dict__.get(READS)
    if known is None:
        inside = list(ast.walk(node))
        known = {inner.id for inner in inside if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}
        known |= {n.target.id for n in inside if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
        node.__dict__[READS] = known
    found = set(known)
    for name in known:
        function = getattr(thread.frame.names.get(name), "node", None)
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            found |= _names_read(thread, function, seen)
    return found


def with_names(thread: Thread, statement: ast.stmt) -> ast.stmt:
    """The statement with a name for every choice written in it: ``ttl.copy(a[0, 0] if first else b[0, 0], block)``."""
    inline = statement.__dict__.get(INLINE)
    if inline is None:
        inline = statement.__dict__[INLINE] = _inline(statement)
    if not inline:
        return statement
    instead: dict[ast.AST, ast.expr] = {}
    inside: set[ast.AST] = set()  # parts of what has a name already
    for position, node in enumerate(inline):
        if node in inside or not _is_open(thread, node):
            continue
        value = thread.evaluate(node)
        if not is_int_like(value):
            name = f"choice {node.lineno}:{node.col_offset} {position}"
            thread.frame.names[name] = value
            instead[node] = ast.copy_location(ast.Name(name, ast.Load()), node)
            inside.update(ast.walk(node))
    return _replaced(statement, instead) if instead else statement


def _is_open(thread: Thread, node: ast.IfExp | ast.Subscript) -> bool:
    """Whether each core chooses; found out without doing anything twice."""
    if isinstance(node, ast.IfExp):
        return not isinstance(truth(thread, thread.evaluate(node.test), node.test), bool)
    if _is_held_block(thread, node.value):
        ends = [part for part in _ends(node.slice) if not isinstance(part, ast.Constant)]
        return any(is_dynamic(thread.evaluate(part)) for part in ends)
    if not all(isinstance(part, (*SYNTAX_OF_INDICES, *WORDS_OF_INDICES)) for part in ast.walk(node.slice)) or not _is_table(
        thread, node.value
    ):
        return False
    index = thread.evaluate(node.slice)
    return is_dynamic(index) and not thread.emitter.varies(index)


def _is_held_block(thread: Thread, node: ast.expr) -> bool:
    """Whether parts of it are places that a statement names: what compute reads is a value, which is chosen as such."""
    value = thread.frame.names.get(node.id) if isinstance(node, ast.Name) else None
    held = value.held if isinstance(value, Block) else None
    return held is not None and (held.kind == "reserve" or thread.kind != "compute")


def _ends(index: ast.expr | None) -> list[ast.expr]:
    """The integers of an index into a block."""
    if isinstance(index, ast.Tuple):
        return [end for part in index.elts for end in _ends(part)]
    if isinstance(index, ast.Slice):
        return [end for part in (index.lower, index.upper, index.step) for end in _ends(part)]
    return [] if index is None else [index]


def _is_table(thread: Thread, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        frame = thread.frame
        value = frame.names.get(node.id, frame.outer.get(node.id))
        return isinstance(value, TABLES) or getattr(value, "ndim", 0) == 1
    return isinstance(node, (ast.List, ast.Tuple, ast.Dict))


def _inline(statement: ast.stmt) -> list[ast.IfExp | ast.Subscript]:
    """Conditional expressions and subscripts that a statement evaluates exactly once, outermost first."""
    if isinstance(statement, ast.With):
        parts: list[ast.AST] = [item.context_expr for item in statement.items]
    elif isinstance(statement, ast.If):
        parts = [statement.test]
    elif isinstance(statement, SIMPLE):
        parts = [] if statement.value is None else [statement.value]
        if isinstance(statement, NAMING) and isinstance(statement.value, (ast.IfExp, ast.Subscript)):
            parts = [] if isinstance(statement.value, ast.IfExp) else [statement.value.slice]  # the whole gets its name there
    else:
        return []
    found: list[ast.IfExp | ast.Subscript] = []
    while parts:
        part = parts.pop(0)
        if isinstance(part, (ast.IfExp, ast.Subscript)):
            found.append(part)
        if not isinstance(part, (ast.IfExp, *OWN_SCOPE)):
            parts = [*ast.iter_child_nodes(part), *parts]
    return found


def _replaced(node: Any, instead: dict[ast.AST, ast.expr]) -> Any:
    """A copy of the header of a statement with some of its expressions replaced; bodies are shared."""
    if node in instead:
        return instead[node]
    changed = copy.copy(node)
    changed.__dict__.pop(READS, None)
    changed.__dict__.pop(INLINE, None)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            setattr(changed, field, _replaced(value, instead))
        elif is_list(value) and field != "body":
            items = [_replaced(item, instead) if isinstance(item, ast.AST) else item for item in value]
            setattr(changed, field, items)
    return changed
