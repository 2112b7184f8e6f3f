"""An operation written as one body, without threads: each statement goes to the thread that can carry it out.

Copies from tensors and receives are the reader's, copies to tensors and sends the writer's, arithmetic and stores the compute
thread's. A block belongs to the thread of the statements that use it. Where numbers are read from blocks, the reader does all
copies: those that the numbers place must stand where they are known. Loops, ifs and integers stand in every thread that needs
them. What comes before the first such statement runs on the host as the body of any other kernel does.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import FunctionType
from typing import Any

from tilewright.diagnostics import KernelError, Span, fail
from tilewright.dialects.walking import span_of_node
from tilewright.frontend.inlining import HostPart, Inliner, acts_in_helpers, called_helper, distinct_blocks
from tilewright.frontend.syntax import has_threads, own_nodes
from tilewright.lang.kernel import PIPE_SOURCE_KERNEL, KernelFunction, KernelKind, ThreadFunction, kind_of
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import as_tuple
from tilewright.records import record

READ, WRITE, COMPUTE, SEND = "read", "write", "compute", "send"
THREADS = ((READ, "noc"), (COMPUTE, "compute"), (WRITE, "noc"))
ACQUIRES = ("reserve", "wait")
SIGNALS = ("wait_ge", "wait_eq", "inc", "set", "get_remote", "get_remote_multicast", "publish")
EXTERNAL = "call_extern_func"
ELEMENTS = ("read_index", "raw_element_read", "raw_element_write")
BLOCKS = (ast.For, ast.While, ast.If, ast.With)


def first_action(definition: ast.FunctionDef, names: Mapping[str, Any]) -> int | None:
    """Where the work starts in a body that reserves blocks itself, or in helpers; None for kernels with threads."""
    if has_threads(definition):
        return None
    nested = {node.name: node for node in definition.body if isinstance(node, ast.FunctionDef)}

    def in_helpers(statement: ast.stmt) -> bool:
        return acts_in_helpers(statement, names, acts) or _acts_in_nested(statement, nested)

    for index, statement in enumerate(definition.body):
        if isinstance(statement, ast.FunctionDef):
            continue
        if in_helpers(statement):
            return index
        if _acts(own_nodes([statement])):
            reserves = any(_method(node) == "reserve" or _is_external(node) for node in own_nodes(definition.body))
            return index if reserves or any(map(in_helpers, definition.body[index:])) else None
    return None


def _acts_in_nested(statement: ast.stmt, nested: Mapping[str, ast.FunctionDef], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a statement calls a function of the same body that copies, acquires or stores."""
    for node in own_nodes([statement]):
        value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
        inner = nested[name].body if name in nested and name not in seen else []
        if _acts(own_nodes(inner)) or any(_acts_in_nested(part, nested, seen | {name}) for part in inner):
            return True
    return False


def host_part(definition: ast.FunctionDef, count: int, function: FunctionType, outer: Mapping[str, Any]) -> FunctionType:
    """The first ``count`` statements as a function that returns its names."""
    new = copy.deepcopy(definition)
    new.decorator_list, new.returns, new.args.defaults = [], None, []
    new.args.kw_defaults = [None] * len(new.args.kwonlyargs)
    for argument in ast.walk(new.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    names = ast.copy_location(ast.Call(ast.Name("locals", ast.Load()), [], []), definition.body[count])
    new.body = [*new.body[:count], ast.Return(names)]
    module = ast.fix_missing_locations(ast.Module([new], []))
    scope = dict(outer)
    exec(compile(module, function.__code__.co_filename, "exec"), scope)
    return scope[definition.name]


def segments(work: list[ast.stmt], names: Mapping[str, Any]) -> list[list[ast.stmt] | tuple[ast.Call, KernelFunction]]:
    """The work between calls of other operations, and those calls. Integers assigned before a call stand behind it too."""
    found: list[list[ast.stmt] | tuple[ast.Call, KernelFunction]] = []
    shared: list[ast.stmt] = []
    current: list[ast.stmt] = []
    repeated = 0
    for statement in work:
        call = called_helper(statement, names)
        if call is not None and isinstance(call[1], KernelFunction) and isinstance(statement, ast.Expr):
            found += [current] if len(current) > repeated else []
            found.append((call[0], call[1]))
            current, repeated = list(shared), len(shared)
            continue
        current.append(statement)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and not _acts(own_nodes([statement])):
            shared.append(statement)
    return [*found, current] if len(current) > repeated else found


def threads_of(
    work: list[ast.stmt], function: FunctionType, names: Mapping[str, Any], host_part: HostPart
) -> list[ThreadFunction]:
    """One function for each thread that has something to do."""
    file = function.__code__.co_filename
    inliner = Inliner(file, names, acts, host_part)
    work = inliner.written(work)
    names = inliner.names
    split = _Split(file, names)
    try:
        split.learn(work)
    except KernelError:
        work = distinct_blocks(work, ACQUIRES)  # one name may stand for a block of the reader here, of the writer there
        split = _Split(file, names)
        split.learn(work)
    found: list[ThreadFunction] = []
    for thread, kind in THREADS:
        body, owned = split.part(work, thread)
        if owned:
            node = ast.copy_location(ast.FunctionDef(thread, _no_arguments(), body, [], None), work[0])
            ast.fix_missing_locations(node)
            span = span_of_node(file, work[0])
            found.append(ThreadFunction(function=function, kind=kind, span=span, title=thread, definition=node, outer=names))
    return found


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def _method(node: ast.AST) -> str:
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _is_copy(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    named = isinstance(called, ast.Name) and called.id == "copy"
    return isinstance(node, ast.Call) and len(node.args) == 2 and (named or _method(node) == "copy")


def _is_element(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return _method(node) in ELEMENTS or (isinstance(called, ast.Name) and called.id in ELEMENTS)


def _is_external(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return _method(node) == EXTERNAL or (isinstance(called, ast.Name) and called.id == EXTERNAL)


def acts(node: ast.AST) -> bool:
    return _is_copy(node) or _is_element(node) or _is_external(node) or _method(node) in (*ACQUIRES, "store")


def _acts(nodes: Iterable[ast.AST]) -> bool:
    return any(acts(node) for node in nodes)


@record(frozen=False)
class _Split:
    file: str
    names: Mapping[str, Any]  # of the host part
    blocks: dict[str, set[str]] = field(default_factory=dict[str, "set[str]"])  # acquired name -> what is done with it
    queues: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])  # (buffer text, acquire) -> name
    values: dict[str, str] = field(default_factory=dict[str, str])  # copies and computed values -> their thread
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict[str, ast.FunctionDef])
    movers: list[Any] = field(default_factory=list[Any])  # names of data-movement threads, in order
    one_mover: bool = False  # numbers are read from blocks

    # What each name is ------------------------------------------------------------------------------------------------

    def learn(self, work: list[ast.stmt]) -> None:
        nodes = [node for statement in work for node in ast.walk(statement)]
        self.one_mover = any(map(_is_element, nodes))
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            for target, value in _bindings(node):
                word = _method(value)
                if word in ACQUIRES and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                    self.blocks.setdefault(target, set())
                    self.queues.setdefault((ast.unparse(value.func.value), word), target)
        for node in nodes:
            if _is_copy(node):
                assert isinstance(node, ast.Call)
                role = self._copy_role(node)
                for argument in node.args:
                    if isinstance(argument, ast.Name) and argument.id in self.blocks:
                        self.blocks[argument.id].add(role)
        statements = [node for node in nodes if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr))]
        for _ in range(2):  # values of values
            for statement in statements:
                self._learn_statement(statement)
        for name, roles in self.blocks.items():
            if len(self._threads(roles)) > 1:
                place = next(n for n in nodes if isinstance(n, ast.Name) and n.id == name)
                raise self._two_threads(f"block '{name}'", place)

    def _learn_statement(self, statement: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr) -> None:
        copies = [node for node in ast.walk(statement) if _is_copy(node)]
        if copies:
            assert isinstance(copies[0], ast.Call)
            for target, _ in _bindings(statement):
                self.values[target] = self._thread_of_copy(copies[0])
            return
        if self._is_handover(statement):
            return
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if any(map(_is_element, ast.walk(statement))):
            for name in used & self.blocks.keys():
                self.blocks[name].add(READ)
            self.values.update((target, READ) for target, _ in _bindings(statement))
            return
        computed = any(self.values.get(name) == COMPUTE for name in used)
        if not computed and not used & self.blocks.keys():
            return
        for name in used & self.blocks.keys():
            self.blocks[name].add(COMPUTE)
        for target, _ in _bindings(statement):
            if target not in self.blocks:
                self.values[target] = COMPUTE

    def _is_handover(self, statement: ast.stmt) -> bool:
        """Acquires and releases say nothing about who works on the block."""
        values = [value for _, value in _bindings(statement)] or [getattr(statement, "value", None)]
        return all(isinstance(value, ast.AST) and _method(value) in (*ACQUIRES, "push", "pop") for value in values)

    def _copy_role(self, node: ast.Call) -> str:
        source, target = node.args
        if self._is_slice(source) or self.one_mover:
            return READ
        if self._is_slice(target):
            return WRITE
        sends = _method(source) == "wait" or (isinstance(source, ast.Name) and source.id in self.blocks)
        return SEND if sends else READ

    def _is_slice(self, node: ast.expr) -> bool:
        base = node.value if isinstance(node, ast.Subscript) else None
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        return isinstance(base, ast.Name) and isinstance(self.names.get(base.id), (KernelTensor, list, tuple, dict))

    @staticmethod
    def _threads(roles: set[str]) -> set[str]:
        """A send is done where the block is filled or copied out; one of a block that compute filled is the writer's."""
        return (roles - {SEND}) or ({WRITE} if SEND in roles else set())

    def _thread_of_block(self, name: str) -> str:
        found = self._threads(self.blocks[name])
        return next(iter(found)) if found else COMPUTE

    def _thread_of_copy(self, node: ast.Call) -> str:
        role = self._copy_role(node)
        source = node.args[0]
        if role != SEND:
            return role
        return self._thread_of_block(source.id) if isinstance(source, ast.Name) else WRITE

    # The part of one thread -------------------------------------------------------------------------------------------

    def part(self, work: list[ast.stmt], thread: str) -> tuple[list[ast.stmt], bool]:
        """Statements of ``thread`` and those it shares with others; whether any is its own."""
        kept: list[ast.stmt] = []
        any_owned = False
        for statement in work:
            new, owned = self._statement(statement, thread)
            kept += new
            any_owned = any_owned or owned
        return kept, any_owned

    def _statement(self, statement: ast.stmt, thread: str) -> tuple[list[ast.stmt], bool]:
        if isinstance(statement, ast.FunctionDef):
            body, owned = self.part(statement.body, thread)
            return [_with_bodies(statement, body or [_nothing(statement)])], owned
        if isinstance(statement, ast.With):
            return self._with(statement, thread)
        if isinstance(statement, BLOCKS):
            body, owned = self.part(statement.body, thread)
            otherwise, also = self.part(getattr(statement, "orelse", []), thread)
            if not owned and not also and _acts(ast.walk(statement)):
                return [], False
            return [_with_bodies(statement, body or [_nothing(statement)], otherwise)], owned or also
        if (chosen := self._chosen(statement)) is not None:
            return ([chosen[0]], True) if thread in chosen[1] else ([], False)
        owner = self._owner(statement)
        if owner is None:
            return [statement], False
        if isinstance(owner, str):
            return ([statement], True) if owner == thread else ([], False)
        assert isinstance(statement, ast.Assign)
        pairs = [pair for pair in _bindings(statement) if self._thread_of_block(pair[0]) == thread]
        return [_assignment(statement, *pair) for pair in pairs], bool(pairs)

    def _chosen(self, statement: ast.stmt) -> tuple[ast.stmt, set[str]] | None:
        """A call of external code, and the threads that its kernel= names; it is the compute thread's if it has none."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not _is_external(call):
            return None
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "kernel"), None)
        if given is None:
            return statement, {COMPUTE}
        try:
            found: Any = eval(compile(ast.Expression(given), self.file, "eval"), {}, dict(self.names))
        except Exception:
            found = ast.unparse(given)  # names a thread by nothing that the body knows
        plain = copy.copy(call)
        plain.keywords = [keyword for keyword in call.keywords if keyword.arg != "kernel"]
        threads = {self._thread_called(selector, given) for selector in as_tuple(found)}
        return ast.copy_location(ast.Expr(plain), statement), threads

    def _thread_called(self, selector: Any, node: ast.expr) -> str:
        """The first name for data movement is the reader, the second the writer."""
        kind = kind_of(selector)
        if kind is None:
            remedy = "a ttl.Kernel, a ttl.KernelKind, or a tuple of them"
            raise fail("TW004", f"kernel is {selector!r}", span_of_node(self.file, node), help=remedy)
        if kind is KernelKind.COMPUTE:
            return COMPUTE
        if selector is PIPE_SOURCE_KERNEL or isinstance(selector, KernelKind):
            return WRITE if selector is PIPE_SOURCE_KERNEL else READ
        if selector not in self.movers:
            self.movers.append(selector)
        if len(self.movers) > 2:
            remedy = "a core has two; let two calls share a ttl.Kernel"
            raise fail("TW010", "a third data-movement thread", span_of_node(self.file, node), help=remedy)
        return (READ, WRITE)[self.movers.index(selector)]

    def _with(self, statement: ast.With, thread: str) -> tuple[list[ast.stmt], bool]:
        items = [item for item in statement.items if self._item_thread(item) in (thread, None)]
        owned = any(self._item_thread(item) == thread for item in items)
        body, inner = self.part(statement.body, thread)
        if not items:
            return body, inner
        new = copy.copy(statement)
        new.items, new.body = items, body or [_nothing(statement)]
        return [new], owned or inner

    def _item_thread(self, item: ast.withitem) -> str | None:
        if _method(item.context_expr) not in ACQUIRES:
            return None
        return self._thread_of_block(item.optional_vars.id) if isinstance(item.optional_vars, ast.Name) else COMPUTE

    def _owner(self, statement: ast.stmt) -> str | list[str] | None:
        """The thread of a simple statement; a list for several acquires in one assignment; None if every thread may have it."""
        acquired = [name for name, value in _bindings(statement) if _method(value) in ACQUIRES and name in self.blocks]
        if acquired:
            owners = [self._thread_of_block(name) for name in acquired]
            return owners[0] if len(acquired) == 1 else owners
        found = {owner for node in ast.walk(statement) if (owner := self._node_owner(node)) is not None}
        if len(found) > 1:
            raise self._two_threads("this statement", statement)
        return found.pop() if found else None

    def _node_owner(self, node: ast.AST) -> str | None:
        if _is_copy(node):
            assert isinstance(node, ast.Call)
            return self._thread_of_copy(node)
        word = _method(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = ast.unparse(node.func.value)
            if word == "store":
                return COMPUTE
            if word in ("push", "pop") and base not in self.blocks:
                queue = self.queues.get((base, "reserve" if word == "push" else "wait"))
                return self._thread_of_block(queue) if queue is not None else None
            if word in SIGNALS:
                return READ
        if isinstance(node, ast.Name) and node.id in self.functions:
            owners = {thread for thread, _ in THREADS if self.part(self.functions[node.id].body, thread)[1]}
            return owners.pop() if len(owners) == 1 else None
        if isinstance(node, ast.Name) and node.id in self.blocks:
            return self._thread_of_block(node.id)
        return self.values.get(node.id) if isinstance(node, ast.Name) else None

    def _two_threads(self, what: str, node: ast.AST) -> Exception:
        span: Span = span_of_node(self.file, node)
        remedy = "store what is computed into a buffer and copy from there, or write the threads as functions of their own"
        return fail("TW018", f"{what} belongs to two threads", span, help=remedy)


def _bindings(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """``name = value`` pairs of an assignment or a with item."""
    if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        return [(node.optional_vars.id, node.context_expr)]
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return [(node.target.id, node.value)] if isinstance(node.target, ast.Name) and node.value is not None else []
    if not isinstance(node, ast.Assign):
        return []
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return [(t.id, v) for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name)]
    return [(target.id, value)] if isinstance(target, ast.Name) else []


def _assignment(place: ast.stmt, name: str, value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), value)], value), place)


def _nothing(place: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Pass(), place)


def _with_bodies(statement: Any, body: list[ast.stmt], otherwise: list[ast.stmt] | None = None) -> Any:
    new = copy.copy(statement)
    new.body = body
    if hasattr(new, "orelse"):
        new.orelse = otherwise or []
    return new
