"""Loops of a thread: on the device where their number of rounds is known there, else unrolled here."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

from xdsl.dialects.scf import IfOp

from tilewright.builder.blocks import whole
from tilewright.builder.buffers import kept_together
from tilewright.builder.thread import Turns
from tilewright.builder.values import Block, CountedLoop, described
from tilewright.frontend import carried, choices
from tilewright.frontend.containers import UNROLL_LIMIT, bind_target, static_sequence
from tilewright.frontend.syntax import loop_body, loop_names, replaced_names, steps
from tilewright.frontend.thread import DynamicRange, Generated, LeaveBody, Parted, Thread, Unusable, truth
from tilewright.grid import cores_of
from tilewright.integers import UNBOUNDED, Leaf, Value, bounds, is_dynamic, is_int_like, leaves, make, replaced
from tilewright.lang.buffers import CircularBuffer


def make_range(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
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


def for_loop(thread: Thread, node: ast.For) -> None:
    if node.orelse:
        raise thread.error("TW001", "'else' of a for loop", node.orelse[0], help="put it after the loop")
    other = rewritten(thread, node)
    if other is not None:
        for_loop(thread, other)
        return
    sequence = thread.evaluate(node.iter)
    if isinstance(sequence, Generated):
        body = loop_body(node.body)
        run_loop(thread, node, sequence, lambda item: bind_target(thread, node.target, item, node), body)
        return
    if isinstance(sequence, DynamicRange) and isinstance(node.target, ast.Name):
        _counted_loop(thread, node, sequence, node.target.id, None)
        return
    if not isinstance(sequence, range) or not isinstance(node.target, ast.Name):
        items = static_sequence(thread, sequence, node.iter)
        _unrolled(thread, node, (partial(bind_target, thread, node.target, item, node) for item in items))
        return
    if not sequence:
        return
    if max(abs(bound) for bound in (sequence.start, sequence.stop, sequence.step)) >= UNBOUNDED:
        raise thread.error("TW004", "a loop counts further than 32 bits reach", node.iter, help="keep it below 2**31")
    loop = CountedLoop(thread.span(node), len(sequence))
    thread.unrolling.around.append(loop)
    if loop.place in thread.unrolling.chosen:
        _unrolled(thread, node, (partial(bind_target, thread, node.target, item, node) for item in sequence))
    else:
        _counted_loop(thread, node, sequence, node.target.id, loop)
    thread.unrolling.around.pop()


def _unrolled(thread: Thread, node: ast.For | ast.While, starts: Iterable[Callable[[], None]]) -> None:
    """The body once per start; ``break`` and ``continue`` are exceptions on their way here."""
    body = loop_body(node.body)
    thread.loops.append(thread.depth)
    buffers: dict[str, CircularBuffer | None] = {}
    for start in starts:
        start()
        try:
            thread.execute(body)
        except LeaveBody as leaving:
            if leaving.kind is ast.Break:
                break
        _keep_blocks(thread, node, buffers)
    thread.loops.pop()


def _keep_blocks(thread: Thread, node: ast.For | ast.While, buffers: dict[str, CircularBuffer | None]) -> None:
    """Block values that the next copy of the body reads are computed before blocks they come from are released."""
    if thread.kind != "compute":
        return
    assigned, exposed = loop_names(node)
    _settle(thread, assigned & exposed, node)
    values: dict[str, Block] = {}
    for name in sorted(assigned & exposed):
        value = thread.frame.names.get(name)
        if isinstance(value, Block) and value.held is None:
            thread.at(node)
            values[name] = thread.frame.names[name] = whole(thread, value)
    thread.frame.names.update(kept_together(thread, values, buffers, thread.span(node)))


def _settle(thread: Thread, names: set[str], node: ast.AST) -> None:
    """Values that branches before this have apart are put together: the loop may change them."""
    for name in names & thread.frame.names.keys():
        if isinstance(value := thread.frame.names[name], Parted):
            thread.frame.names[name] = choices.settled(thread, value, node)


def while_loop(thread: Thread, node: ast.While) -> None:
    """A ``while`` whose condition is known every time it is asked; the body is repeated here, not on the device."""
    if node.orelse:
        raise thread.error("TW001", "'else' of a while loop", node.orelse[0], help="put it after the loop")
    _unrolled(thread, node, _known_rounds(thread, node))


def _known_rounds(thread: Thread, node: ast.While) -> Generator[Callable[[], None], None, None]:
    for _ in range(UNROLL_LIMIT):
        condition = truth(thread, thread.evaluate(node.test), node.test)
        if is_dynamic(condition):
            remedy = "use `for … in range(…)`: the number of iterations must be known on every core"
            raise thread.error("TW001", "'while' on a condition that is known per core or iteration only", node, help=remedy)
        if not condition:
            return
        yield lambda: None
    remedy = "change what the condition asks for in the body, or use `for … in range(…)`"
    raise thread.error("TW001", f"'while' does not end within {UNROLL_LIMIT} iterations, which are unrolled", node, help=remedy)


def leave_loop(thread: Thread, node: ast.Break | ast.Continue) -> None:
    if thread.loops and thread.loops[-1] == thread.depth:
        raise LeaveBody(type(node))
    word = "break" if isinstance(node, ast.Break) else "continue"
    remedy = "put the rest of the loop body under an if"
    if isinstance(node, ast.Break):
        remedy += ", or choose the range: the number of iterations must be known on every core"
    raise thread.error("TW001", f"'{word}' in a loop that runs on the device", node, help=remedy)


def _may_not_run(thread: Thread, sequence: range | DynamicRange) -> bool:
    """Whether there may be a core, or an iteration around, for which the range is empty."""
    if isinstance(sequence, range):
        return False
    low, high = (sequence.stop, sequence.start) if sequence.step < 0 else (sequence.start, sequence.stop)
    length = make("-", high, low)
    if bounds(length)[0] > 0:
        return False
    for core in cores_of(thread.build.grid):
        own = {leaf: place for leaf, place in zip(thread.coordinates_read, core, strict=False) if isinstance(leaf, Leaf)}
        if bounds(replaced(length, own))[0] <= 0:
            return True
    return False


def _counted_loop(thread: Thread, node: ast.For, sequence: range | DynamicRange, name: str, counted: CountedLoop | None) -> None:
    frame, place = thread.frame, thread.span(node)
    assigned, exposed = loop_names(node)
    exposed = exposed | {kept for loop, kept in thread.unrolling.kept if loop == place}
    _settle(thread, assigned & exposed, node)
    assigned = assigned - _accumulated(thread, node, assigned)
    changed = [n for n in sorted(assigned & exposed) if n in frame.names and n != name]
    blocks = [n for n in changed if carried.may_carry(thread, frame.names[n])]
    integers = _carried_integers(thread, [n for n in changed if n not in blocks], node)
    outside = dict(frame.names)
    before = {n: frame.names[n] for n in integers}
    thread.at(node)
    start, stop, step = sequence.start, sequence.stop, sequence.step
    backwards = step < 0
    if backwards:  # run forwards and count down from the start
        count = make("//", make("+", make("-", start, stop), -step - 1), -step)
        loop = thread.emitter.for_loop(0, make("max", count, 0), 1, list(before.values()), name)
    else:
        loop = thread.emitter.for_loop(start, stop, step, list(before.values()), name)
    if thread.kind == "compute" and _may_not_run(thread, sequence):
        thread.skippable.add(loop)
    body = loop.body.block
    frame.names[name] = _counter(thread, body.args[0], name, start, stop, step, backwards)
    for index, carried_name in enumerate(integers):
        body.args[1 + index].name_hint = carried_name if carried_name.isascii() else None
        low, high = _bounds_inside(node, carried_name, before[carried_name])
        frame.names[carried_name] = thread.emitter.leaf(body.args[1 + index], carried_name, low, high)
    inside = [frame.names[carried_name] for carried_name in integers]
    scopes = {n: carried.enter(thread, n, outside[n], loop, node) for n in blocks}
    frame.names.update(scopes)
    held = list(thread.held)
    thread.execute(loop_body(node.body))
    thread.held = held
    results = [frame.names[carried_name] for carried_name in integers]
    for carried_name, value in zip(integers, results, strict=True):
        if not is_int_like(value):
            raise thread.error("TW012", f"'{carried_name}' is an integer before the loop and {described(value)} in it", node)
    thread.at(node)
    carried.leave(thread, list(scopes.values()), [choices.settled(thread, frame.names[n], node) for n in blocks], node)
    thread.emitter.close_loop(results)
    for ended in assigned | {name}:
        frame.names[ended] = Unusable(
            "was assigned in a loop that has ended",
            "use it inside the loop, or give it a value before the loop and update it there",
            counted,
            place if ended != name and _can_keep(thread, outside.get(ended)) else None,
        )
    for index, carried_name in enumerate(integers):
        loop.results[index].name_hint = carried_name if carried_name.isascii() else None
        low, high = _bounds_after(sequence, before[carried_name], inside[index], results[index])
        least, most = _bounds_inside(node, carried_name, before[carried_name])
        low, high = max(low, least), min(high, most)
        known = _sum_of_steps(thread, sequence, before[carried_name], inside[index], results[index])
        frame.names[carried_name] = thread.emitter.leaf(loop.results[index], carried_name, low, high) if known is None else known
    frame.names.update(carried.after(thread, scopes, outside, node))


def _sum_of_steps(thread: Thread, sequence: range | DynamicRange, before: Value, inside: Value, after: Value) -> Value | None:
    """An integer behind a loop in a branch, where every turn adds the same: so it has a value behind the branch too."""
    if not any(isinstance(block.parent_op(), IfOp) for block in thread.emitter.open_blocks()):
        return None
    start, stop, step = sequence.start, sequence.stop, sequence.step
    each = make("-", after, inside)
    outside = {leaf for value in (start, stop, before, *thread.coordinates_read) for leaf in leaves(value)}
    if not leaves(each) <= outside:
        return None
    low, high = (stop, start) if step < 0 else (start, stop)
    turns = make("//", make("+", make("max", make("-", high, low), 0), abs(step) - 1), abs(step))
    return make("+", before, make("*", each, turns))


def _can_keep(thread: Thread, before: Any) -> bool:
    """Whether a name with this value may change in a loop that never reads it."""
    if isinstance(before, Unusable):
        return before.outlives is not None
    parted = isinstance(before, Parted) and thread.kind == "compute"  # put together before the loop
    return parted or carried.may_carry(thread, before) or is_int_like(before)


def _bounds_inside(loop: ast.For, name: str, before: Value) -> tuple[int, int]:
    """Of an integer that the loop changes: one that only grows is at least what it was before, one that only shrinks at most."""
    changes, (low, high) = steps(loop, name), bounds(before)
    falls = changes is None or any(step < 0 for step in changes)
    rises = changes is None or any(step > 0 for step in changes)
    return -UNBOUNDED if falls else low, UNBOUNDED if rises else high


def _bounds_after(sequence: range | DynamicRange, before: Value, inside: Value, after: Value) -> tuple[int, int]:
    """Of an integer that every turn changes by a step within bounds."""
    (first, _), (_, last) = bounds(sequence.start), bounds(sequence.stop)
    if sequence.step < 0:
        (first, _), (_, last) = bounds(sequence.stop), bounds(sequence.start)
    turns = max(0, -((first - last) // abs(sequence.step)))
    least, most = bounds(make("-", after, inside))
    low, high = bounds(before)
    return max(-UNBOUNDED, low + min(0, least * turns)), min(UNBOUNDED, high + max(0, most * turns))


def _accumulated(thread: Thread, loop: ast.For, assigned: set[str]) -> set[str]:
    """Blocks the loop only adds to: ``block += x`` stores into the block, the name stays."""
    reserved = {
        name
        for name in assigned
        if isinstance(block := thread.frame.names.get(name), Block) and block.held is not None and block.held.kind == "reserve"
    }
    return reserved and reserved - replaced_names(loop)


def _counter(thread: Thread, argument: Any, name: str, start: Value, stop: Value, step: int, backwards: bool) -> Value:
    emitter = thread.emitter
    low, high = bounds(start)[0], bounds(stop)[1] - 1
    most = max(0, (bounds(start)[1] - bounds(stop)[0] - 1) // -step) if backwards else max(low, high)
    leaf = emitter.leaf(argument, name, 0 if backwards else low, most)
    if backwards and isinstance(start, int) and isinstance(stop, int):
        emitter.counters[leaf] = Turns(emitter.block, 0, len(range(start, stop, step)), 1)
    elif not backwards:
        emitter.counters[leaf] = Turns(emitter.block, start, stop, step)
    return make("-", start, make("*", leaf, -step)) if backwards else leaf


def _carried_integers(thread: Thread, names: list[str], node: ast.For) -> list[str]:
    """The names of integers; anything else that is left cannot change in a loop."""
    for name in names:
        value = thread.frame.names[name]
        if isinstance(value, Unusable) or is_int_like(value):
            continue
        help_text = "only blocks (in the compute thread) and integers can change from one iteration to the next"
        raise thread.error("TW012", f"'{name}' ({described(value)}) changes from one iteration to the next", node, help=help_text)
    return [name for name in names if not isinstance(thread.frame.names[name], Unusable)]


RANGES = (range, DynamicRange)


def rewritten(thread: Thread, node: ast.For) -> ast.For | None:
    """The loop over ranges that ``node`` stands for; None if it is another kind of loop."""
    call = node.iter
    if not isinstance(call, ast.Call) or call.keywords or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or not _mentions(call.func, ("product", "enumerate")):
        return None
    callee = thread.evaluate(call.func)
    if callee is itertools.product and not _leaves(node.body):
        return _product(thread, node, call)
    return _enumerate(thread, node, call) if callee is enumerate and len(call.args) == 1 else None


def _mentions(function: ast.expr, words: tuple[str, ...]) -> bool:
    return (function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")) in words


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a ``break`` may end the loop: of nested loops it would end one only."""
    return any(isinstance(inner, ast.Break) for statement in body for inner in ast.walk(statement))


def _product(thread: Thread, node: ast.For, call: ast.Call) -> ast.For | None:
    values = [thread.evaluate(arg) for arg in call.args]
    if not values or not all(isinstance(value, RANGES) for value in values):
        return None
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else []
    plain = len(targets) == len(values) and all(isinstance(target, ast.Name) for target in targets)
    names = [target.id for target in targets if isinstance(target, ast.Name)] if plain else _hidden(thread, "index", len(values))
    body: list[ast.stmt] = list(node.body)
    if not plain:
        body.insert(0, _assign(node, node.target, ast.Tuple([_read(node, name) for name in names], ast.Load())))
    for name, value in zip(reversed(names), reversed(values), strict=True):
        body = [_loop(thread, node, name, value, body)]
    loop = body[0]
    assert isinstance(loop, ast.For)
    return loop


def _enumerate(thread: Thread, node: ast.For, call: ast.Call) -> ast.For | None:
    """``for n, i in enumerate(range(a, b, s))`` counts i, and n is ``(i - a) // s``."""
    value = thread.evaluate(call.args[0])
    pair = node.target.elts if isinstance(node.target, ast.Tuple) else []
    if not isinstance(value, RANGES) or len(pair) != 2 or not isinstance(pair[1], ast.Name):
        return None
    (start,) = _hidden(thread, "start", 1)
    thread.frame.names[start] = value.start
    item = _read(node, pair[1].id)
    sides = (item, _read(node, start)) if value.step > 0 else (_read(node, start), item)
    distance = ast.BinOp(sides[0], ast.Sub(), sides[1])
    number = ast.BinOp(distance, ast.FloorDiv(), ast.Constant(abs(value.step)))
    return _loop(thread, node, pair[1].id, value, [_assign(node, pair[0], number), *node.body])


def _hidden(thread: Thread, word: str, count: int) -> list[str]:
    taken = {*thread.frame.names, *thread.frame.outer}
    free = (name for number in itertools.count() if (name := f"{word}_{number}") not in taken)
    return list(itertools.islice(free, count))


def _loop(thread: Thread, node: ast.For, name: str, value: Any, body: list[ast.stmt]) -> ast.For:
    (source,) = _hidden(thread, "range", 1)
    thread.frame.names[source] = value
    new = ast.For(ast.Name(name, ast.Store()), ast.Name(source, ast.Load()), body, [], None)
    ast.copy_location(new, node)
    ast.copy_location(new.iter, node.iter)
    return ast.fix_missing_locations(new)


def _read(node: ast.For, name: str) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), node.target)


def _assign(node: ast.For, target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), node.target))


def run_loop(thread: Thread, node: ast.For, generated: Generated, bind: Callable[[Any], None], body: list[ast.stmt]) -> None:
    """``for target in generated: body``."""
    if any(isinstance(inner, (ast.Break, ast.Return)) for statement in body for inner in ast.walk(statement)):
        remedy = "write the helper's loop in the thread, or put the rest under an if"
        raise thread.error("TW001", f"leaving a loop over {generated.describe()}", node, help=remedy)
    frame, depth = thread.frame, thread.depth
    assigned, exposed = loop_names(node)
    carried = sorted(name for name in assigned & exposed if _changes(frame.names.get(name)))
    inside = False

    def at_yield(value: Any, place: ast.AST) -> None:
        nonlocal inside
        inside = inside or thread.depth > depth
        if inside and carried:
            remedy = "write the helper's loop in the thread: there a loop may change names"
            raise thread.error("TW012", f"'{carried[0]}' changes in a loop that '{generated.name}' runs", place, help=remedy)
        helper = thread.frames.pop()
        try:
            bind(value)
            thread.execute(body)
        finally:
            thread.frames.append(helper)

    generated.run(at_yield)
    for name in assigned if inside else ():
        if name not in exposed or not isinstance(frame.names.get(name), Block):
            frame.names[name] = Unusable("was assigned in a loop that has ended", "use it inside the loop")


def _changes(value: Any) -> bool:
    """Names that a loop would have to carry; a reserved block that is added to stays the same name."""
    if isinstance(value, Block):
        return value.held is None or value.held.kind != "reserve"
    return isinstance(value, (int, float, Parted)) or is_dynamic(value)
