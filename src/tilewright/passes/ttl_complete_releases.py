"""Puts in the waits, pushes and pops that have exactly one right place.

Requires: structured control flow (``scf.for``, ``scf.if``).
Ensures: inside every region each acquire is followed by its release. Where there is no single answer, the context holds the
problem of that thread (``unresolved``): ``ttl-validate`` reports it, and the passes in between leave the thread alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Block, Operation

from tilewright.diagnostics import Diagnostic, Note
from tilewright.dialects.attributes import trip_count
from tilewright.dialects.ttl_buffers import AttachCBOp, CopyOp, WaitOp
from tilewright.dialects.walking import (
    ancestor_in,
    block_ops,
    insert_after,
    insert_before,
    line_of,
    operations,
    place_of,
    runs_after,
    users,
)
from tilewright.passes.buffers import (
    ACQUIRES,
    RELEASE_OF,
    RELEASES,
    acquire_of,
    attached,
    buffer_name,
    effects,
    functions_of,
    key_of,
    problem,
)
from tilewright.passes.context import PassContext
from tilewright.records import record

NAME = "ttl-complete-releases"
Key = tuple[int, str]


def run(module: ModuleOp, context: PassContext) -> bool:
    known = len(context.trace.decisions)
    for function in functions_of(module):
        problems = _complete(function, context)
        if problems:
            context.unresolved.setdefault(function.sym_name.data, []).extend(problems)
    return len(context.trace.decisions) > known  # every op that was put in is one


def _complete(function: FuncOp, context: PassContext) -> list[Diagnostic]:
    _insert_copy_waits(function, context)
    completion = Completion(context)
    taken = completion.suite(function.body.block)
    for releases in taken.values():
        for op in releases:
            completion.problems.append(_nothing_held(op))
    return completion.problems


def _nothing_held(op: Operation) -> Diagnostic:
    _, side = key_of(op)
    word = "pop" if side == "wait" else "push"
    return problem(
        "TW202",
        f"{word} of '{buffer_name(op)}', but no block of it is held here",
        op,
        label=f"nothing to {word}",
        help=f"each {side}() ends with one {word}(); `with` does it by itself",
    )


def _insert_copy_waits(function: FuncOp, context: PassContext) -> None:
    for op in operations(function):
        if not isinstance(op, CopyOp) or any(isinstance(user, WaitOp) for user in users(op.results[0])):
            continue
        held = next((acquire for value in op.operands if (acquire := acquire_of(value)) is not None), None)
        if held is None:
            continue
        following = op.next_op
        while following is not None and not _releases(following, key_of(held)):
            following = following.next_op
        wait = WaitOp.create(operands=[op.results[0]], location=op.location)
        if following is None:
            insert_after(wait, op)
        else:
            insert_before(wait, following)
        context.trace.decide(NAME, "wait() of a copy inserted before its block is handed over", place=f"line {line_of(op)}")


def _releases(op: Operation, key: Key) -> bool:
    return any(type(inner) in RELEASES and key_of(inner) == key for inner in op.walk())


@record(frozen=False)
class Completion:
    """Walks regions inside out and matches acquires with releases, oldest first."""

    context: PassContext
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def suite(self, block: Block) -> dict[Key, list[Operation]]:
        """Completes one region; returns the releases that belong to blocks held outside it."""
        held: dict[Key, list[Operation]] = {}
        ends: dict[Operation, Operation] = {}  # acquire -> op of this region that releases it
        outside: dict[Key, list[Operation]] = {}
        for op in block_ops(block):
            if type(op) in ACQUIRES:
                held.setdefault(key_of(op), []).append(op)
                continue
            taken = self._taken(op)
            for key, releases in taken.items():
                queue = held.get(key, [])
                gone, rest = queue[: len(releases)], queue[len(releases) :]
                ends.update(dict.fromkeys(gone, op))
                for release in releases[len(gone) :]:
                    outside.setdefault(key, []).append(release)
                if gone:
                    held[key] = rest
                    if type(op) not in RELEASES and (_used_from(op, rest) or _used_in(op, gone[1:])):
                        self.problems.append(_shifted_inside(releases[0], [*gone[1:], *rest]))
        order = {op: position for position, op in enumerate(block_ops(block))} if any(held.values()) else {}
        for key, queue in held.items():
            if queue:
                self._finish(block, key, queue, ends, order)
        return outside

    def _taken(self, op: Operation) -> dict[Key, list[Operation]]:
        """Releases an op makes of blocks that are held around it."""
        if type(op) in RELEASES:
            return {key_of(op): [op]}
        if type(op) is scf.IfOp:
            return self._branches(op)
        if type(op) is scf.ForOp:
            taken = self.suite(op.body.block)
            trips = trip_count(op)
            for releases in taken.values():
                if trips is None:
                    self.problems.append(_varying(releases[0]))
            return {key: releases * (trips or 0) for key, releases in taken.items()}
        return {}

    def _branches(self, op: scf.IfOp) -> dict[Key, list[Operation]]:
        then = self.suite(op.true_region.block)
        otherwise = self.suite(op.false_region.block) if op.false_region.blocks else {}
        for key in {**then, **otherwise}:
            if len(then.get(key, [])) != len(otherwise.get(key, [])):
                release = (then.get(key) or otherwise.get(key) or [])[0]
                self.problems.append(_one_branch(release))
                return {}
        return then

    def _finish(
        self, block: Block, key: Key, queue: Sequence[Operation], ends: dict[Operation, Operation], order: dict[Operation, int]
    ) -> None:
        """Releases what is still held, each after its last use and not before an older block of the same buffer."""
        older = [end for acquire, end in ends.items() if key_of(acquire) == key]
        last: Operation | None = max(older, key=lambda op: order[op], default=None)
        for acquire in queue:
            views = [*attached(acquire), *_filled_views(acquire, block)]
            candidates = [acquire, *views]
            for value in views:
                candidates += [top for effect in effects(value.results[0]) if (top := ancestor_in(effect, block)) is not None]
            if last is not None:
                candidates.append(last)
            anchor = max(candidates, key=lambda op: order[op])
            release = RELEASE_OF[key[1]].create(operands=[acquire.operands[0]], location=acquire.location)
            block.insert_op_after(release, anchor)
            order[release] = order[anchor]
            last = release
            word = "pop" if key[1] == "wait" else "push"
            self.context.trace.decide(
                NAME,
                f"{word} of '{buffer_name(acquire)}' inserted after the last use of its block",
                f"the {key[1]}() has no {word}()",
                place=f"line {line_of(acquire)}",
            )


def _filled_views(acquire: Operation, block: Block) -> list[AttachCBOp]:
    """Blocks that regions in text fill: they name the buffer, not the reserve."""
    found = (op for op in block_ops(block) if isinstance(op, AttachCBOp) and isinstance(op.block.owner, EmptyOp))
    return [op for op in found if op.buffer is acquire.operands[0]]


def _used_in(op: Operation, queue: Sequence[Operation]) -> bool:
    """Whether a block of ``queue`` is used inside ``op``."""
    block = op.parent
    assert block is not None
    return any(ancestor_in(effect, block) is op for effect in _uses(queue))


def _used_from(op: Operation, queue: Sequence[Operation]) -> bool:
    """Whether a block of ``queue`` is used in ``op`` or after it: its place would depend on the path."""
    return _used_in(op, queue) or any(runs_after(effect, op) for effect in _uses(queue))


def _uses(queue: Sequence[Operation]) -> Iterator[Operation]:
    return (effect for acquire in queue for view in attached(acquire) for effect in effects(view.results[0]))


def _one_branch(release: Operation) -> Diagnostic:
    _, side = key_of(release)
    word = "pop" if side == "wait" else "push"
    return problem(
        "TW201",
        f"'{buffer_name(release)}' is released in one branch of an if only",
        release,
        label=f"{word} here, none in the other branch",
        help=f"{side}() and {word}() inside the same branch, or both outside the if",
    )


def _varying(release: Operation) -> Diagnostic:
    return problem(
        "TW201",
        f"a loop of varying length releases blocks of '{buffer_name(release)}' that were acquired before it",
        release,
        help="acquire and release in the same iteration",
    )


def _shifted_inside(release: Operation, queue: list[Operation]) -> Diagnostic:
    span = place_of(queue[-1])
    return problem(
        "TW201",
        f"'{buffer_name(release)}' is released inside a loop or branch, with more blocks of it held",
        release,
        notes=(Note("another block is held since here", span),),
        help="release it outside, where the order of blocks is the same on every path",
    )
