"""Pipes in a thread: ``if_src``/``if_dst`` callbacks are inlined under guards, ``copy`` to and from a pipe becomes IR."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute

from tilewright.diagnostics import Note
from tilewright.dialects.attributes import INDEX, PipeType, TransferType, i32_attr
from tilewright.dialects.ttl_buffers import CopyOp
from tilewright.dialects.ttl_network import CoreTableOp, NetPipeOp, nested_attr
from tilewright.dialects.walking import location
from tilewright.frontend.describe import described
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block, LocalFunction, Transfer
from tilewright.integers import Value, make
from tilewright.lang.pipes import Pipe, PipeNet
from tilewright.network import Core, Field, NetSpec, cores_of, form_of, table_of
from tilewright.records import record

Invoke = Callable[[Any, list[Any]], Any]  # calls a function of the user's with arguments


@record(frozen=False, eq=False)
class PipeEnd:
    """A pipe as a callback sees it: this core is its source (``side`` src) or one of its destinations (dst)."""

    net: NetSpec
    side: str
    position: Value  # which of this core's pipes

    def describe(self) -> str:
        return f"a pipe of '{self.net.name}' that {'starts' if self.side == 'src' else 'ends'} at this core"


def net_of(thread: Thread, owner: Pipe | PipeNet) -> NetSpec:
    """The net, checked against the grid; a pipe by itself is a net of one."""
    build = thread.build
    for known, spec in build.nets:
        if known is owner:
            return spec
    pipes = owner.pipes if isinstance(owner, PipeNet) else (owner,)
    name = owner.name or f"net{len(build.nets)}"
    if any(spec.name == name for _, spec in build.nets):
        name = f"{name}_{len(build.nets)}"
    spec = NetSpec(len(build.nets), name, tuple(pipe.spec(build.grid) for pipe in pipes))
    build.nets.append((owner, spec))
    return spec


def method(
    thread: Thread, owner: Pipe | PipeNet, name: str, args: list[Any], named: dict[str, Any], node: ast.Call, invoke: Invoke
) -> Any:
    net = net_of(thread, owner)
    thread.at(node)
    if name in ("is_src", "is_dst", "is_active"):
        if args or named:
            raise thread.error("TW004", f"{name}() takes no arguments", node)
        sides = {"is_src": ("src",), "is_dst": ("dst",), "is_active": ("src", "dst")}[name]
        cores = {core for side in sides for core in net.ends(side, thread.build.grid)}
        return membership(thread, cores, f"{net.name}_{name}")
    callback = [*args, *named.values()]
    if len(callback) != 1 or not callable_value(callback[0]):
        raise thread.error("TW004", f"{name} takes one function", node, help=f"def work(pipe): …; {net.name}.{name}(work)")
    _for_each_pipe(thread, net, name.removeprefix("if_"), callback[0], node, invoke)
    return None


def guarded(node: ast.With) -> ast.If | None:
    """``with pipe.if_src():``, as the first generation writes it, is ``if pipe.is_src():``."""
    call = node.items[0].context_expr
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("if_src", "if_dst")):
        return None
    if call.args or call.keywords or node.items[0].optional_vars is not None:
        return None
    body: list[ast.stmt] = node.body if len(node.items) == 1 else [ast.copy_location(ast.With(node.items[1:], node.body), node)]
    asked = ast.Attribute(call.func.value, call.func.attr.replace("if_", "is_"), ast.Load())
    test = ast.copy_location(ast.Call(ast.copy_location(asked, call.func), [], []), call)
    return ast.copy_location(ast.If(test, body, []), node)


def callable_value(value: Any) -> bool:
    return callable(value) or isinstance(value, LocalFunction)


def _for_each_pipe(thread: Thread, net: NetSpec, side: str, callback: Any, node: ast.Call, invoke: Invoke) -> None:
    grid = thread.build.grid
    ends = net.ends(side, grid)
    condition = membership(thread, set(ends), f"{net.name}_is_{side}")
    most = max(len(pipes) for pipes in ends.values())
    if condition is False:
        return

    def body() -> None:
        if most == 1:
            invoke(callback, [PipeEnd(net, side, 0)])
            return
        count = number(thread, {(core, 0): len(pipes) for core, pipes in ends.items()}, 0, f"{net.name}_{side}_pipes")
        loop = thread.emitter.for_loop(0, count, 1, [], "pipe")
        position = thread.emitter.leaf(loop.body.block.args[0], "pipe", 0, most - 1)
        in_region(thread, lambda: invoke(callback, [PipeEnd(net, side, position)]))
        thread.at(node)
        thread.emitter.close_loop([])

    if condition is True:
        body()
        return
    then, otherwise = thread.emitter.branch(condition)
    thread.emitter.enter(then)
    in_region(thread, body)
    thread.at(node)
    thread.emitter.close_branch()
    thread.emitter.enter(otherwise)
    thread.emitter.close_branch()


def in_region(thread: Thread, work: Callable[[], Any]) -> None:
    """Code that some cores run and others do not, or that runs several times: what it holds it must release."""
    held = list(thread.held)
    thread.depth += 1
    work()
    thread.depth -= 1
    thread.held = held


def membership(thread: Thread, cores: set[Core], name: str) -> Value:
    """Whether this core is one of ``cores``: comparisons of coordinates if they form a box, else a table."""
    grid = thread.build.grid
    bounds = [(min(core[dim] for core in cores), max(core[dim] for core in cores)) for dim in range(len(grid))]
    size = 1
    for low, high in bounds:
        size *= high - low + 1
    if size != len(cores):
        field = {(core, 0): int(core in cores) for core in cores_of(grid)}
        return make("!=", number(thread, field, 0, name), 0)
    inside: Value = True
    for place, (low, high) in zip(thread.coordinates(), bounds, strict=True):
        tests = [make("==", place, low)] if low == high else [make(">=", place, low), make("<=", place, high)]
        for test in tests:
            inside = make("and", inside, test)
    return inside


def number(thread: Thread, field: Field, position: Value, name: str) -> Value:
    """A number per core (and pipe), in its plainest form."""
    form = form_of(field)
    if form.kind == "constant":
        return form.offset
    if form.kind == "core":
        return make("+", thread.coordinates()[form.dim], form.offset)
    if form.kind == "pipe":
        return make("+", position, form.offset)
    if form.kind in ("pipe_column", "pipe_row"):
        return make("%" if form.kind == "pipe_column" else "//", make("+", position, form.offset), form.size)
    span = thread.emitter.span
    values = table_of(field, thread.build.grid)
    attributes: dict[str, Attribute] = {"name": StringAttr(name), "values": nested_attr(values)}
    single = len(values[0]) == 1
    operands = [] if single else [thread.emitter.integer(position)]
    op = CoreTableOp.create(
        operands=operands,
        result_types=[INDEX],
        attributes=attributes,
        location=location(span.file, span.line, span.column),
    )
    op.results[0].name_hint = name
    low, high = min(field.values()), max(field.values())
    if single:
        return thread.entry_leaf(op, name, low, high)
    thread.emitter.block.add_op(op)
    return thread.emitter.leaf(op.results[0], name, low, high)


def attribute(thread: Thread, end: PipeEnd, word: str, node: ast.Attribute) -> Any:
    """``pipe.src`` at a destination, ``pipe.dst`` at the source: numbers of this core."""
    grid = thread.build.grid
    thread.at(node)
    entries = {
        (core, position): end.net.pipes[pipe]
        for core, pipes in end.net.ends(end.side, grid).items()
        for position, pipe in enumerate(pipes)
    }
    if word in ("src", "src_core"):
        dims = len(next(iter(entries.values())).source)
        places = [
            number(thread, {key: p.source[dim] for key, p in entries.items()}, end.position, f"source_{'xyz'[dim]}")
            for dim in range(dims)
        ]
        return places[0] if dims == 1 else tuple(places)
    if word in ("dst", "dst_core", "dst_core_range"):
        dims = len(next(iter(entries.values())).targets)
        ranges: list[Any] = []
        for dim in range(dims):
            parts = [
                number(thread, {key: p.targets[dim][part] for key, p in entries.items()}, end.position, f"target_{'xyz'[dim]}")
                for part in range(1 if end.net.pipes[0].single else 3)
            ]
            ranges.append(parts[0] if len(parts) == 1 else slice(*parts))
        return ranges[0] if dims == 1 else tuple(ranges)
    raise thread.error("TW003", f"a pipe has no '{word}'", node, help="pipe.src and pipe.dst; ttl.copy(block, pipe)")


def copy(thread: Thread, args: list[Any], node: ast.Call) -> Transfer:
    """``copy(block, pipe)`` sends, ``copy(pipe, block)`` receives."""
    sending = isinstance(args[1], (PipeEnd, Pipe))
    block, pipe = (args[0], args[1]) if sending else (args[1], args[0])
    side = "src" if sending else "dst"
    if not isinstance(block, Block) or block.held is None:
        raise thread.error(
            "TW004", f"copy from {described(args[0])} to {described(args[1])}", node, help="the other side of a pipe is a block"
        )
    end = pipe if isinstance(pipe, PipeEnd) else PipeEnd(net_of(thread, pipe), side, 0)
    if end.side != side:
        word, needed = ("sent into", "if_src") if sending else ("taken out of", "if_dst")
        raise thread.error(
            "TW215", f"a block is {word} {end.describe()}", node, help=f"do this in the callback of {end.net.name}.{needed}"
        )
    if not sending and block.held.kind != "reserve":
        raise thread.error(
            "TW204",
            f"a pipe delivers into a block of '{block.held.buffer.name}' that was waited for",
            node,
            notes=(Note("waited for here", block.held.span),),
            help="reserve() a block to receive into",
        )
    span = thread.at(node)
    ssa = net_pipe(thread, end)
    operands = [block.ssa, ssa] if sending else [ssa, block.ssa]
    assert block.held.site is not None
    if sending:
        thread.sites.sends.append((end.net.number, block.held.site))
    else:
        block.held.site.store(end.net.number, thread.emitter.block, span)
    op = thread.emitter.add(CopyOp, operands, [TransferType()])
    return Transfer([op], span)


def net_pipe(thread: Thread, end: PipeEnd) -> Any:
    net = end.net
    attributes: dict[str, Attribute] = {
        "net": i32_attr(net.number),
        "name": StringAttr(net.name),
        "side": StringAttr(end.side),
        "src_cores": nested_attr([pipe.source for pipe in net.pipes]),
        "dst_core_ranges": nested_attr([pipe.targets for pipe in net.pipes]),
    }
    if net.pipes[0].single:
        attributes["unicast"] = UnitAttr()
    operands = [] if end.position == 0 else [thread.emitter.integer(end.position)]
    return thread.emitter.add(NetPipeOp, operands, [PipeType()], attributes).results[0]
