"""Puts in the waits, pushes and pops that have exactly one right place, and says where several held blocks lie. In between values
that outlive a block are computed before its pop (`eager_values`).

Requires: structured control flow (``scf.for``, ``scf.if``).
Ensures: inside every region each acquire is followed by its release; a block that is not the first one held carries
``tiles`` (how many to wait for) and ``tile_offset``; problems without a single answer are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import Diagnostic, Note
from tilewright.dialects.attributes import constant_of, i32_attr
from tilewright.dialects.location import line_of
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp
from tilewright.dialects.ttl_movement import CopyOp, WaitOp
from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext
from tilewright.passes.validation.branch_values import store_in_branches
from tilewright.passes.validation.eager_values import compute_before_releases
from tilewright.passes.validation.events import (
    ACQUIRES,
    RELEASE_OF,
    RELEASES,
    acquire_of,
    ancestor_in,
    attached,
    buffer_name,
    effects,
    key_of,
    problem,
)
from tilewright.records import record
from tilewright.source_places import place_of

NAME = "ttl-validate"
Key = tuple[int, str]


def complete(function: FuncOp, context: PassContext) -> list[Diagnostic]:
    _insert_copy_waits(function, context)
    completion = Completion(context)
    taken = completion.suite(function.body.block)
    for releases in taken.values():
        for op in releases:
            completion.problems.append(_nothing_held(op))
    if not completion.problems:
        store_in_branches(function, context)
        compute_before_releases(function, context)
        _place_blocks(function.body.block, {}, completion.problems)
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
        if not isinstance(op, CopyOp) or any(isinstance(use.operation, WaitOp) for use in op.results[0].uses):
            continue
        held = next((acquire for value in op.operands if (acquire := acquire_of(value)) is not None), None)
        if held is None:
            continue
        following = op.next_op
        while following is not None and not _releases(following, key_of(held)):
            following = following.next_op
        wait = WaitOp.create(operands=[op.results[0]], location=op.location)
        block = op.parent
        assert block is not None
        if following is None:
            block.insert_op_after(wait, op)
        else:
            block.insert_op_before(wait, following)
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
        for op in list(block.ops):
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
        order = {op: position for position, op in enumerate(block.ops)}
        for key, queue in held.items():
            self._finish(block, key, queue, ends, order)
        return outside

    def _taken(self, op: Operation) -> dict[Key, list[Operation]]:
        """Releases an op makes of blocks that are held around it."""
        if type(op) in RELEASES:
            return {key_of(op): [op]}
        if isinstance(op, scf.IfOp):
            return self._branches(op)
        if isinstance(op, scf.ForOp):
            taken = self.suite(op.body.block)
            trips = _trips(op)
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
    found = (op for op in block.ops if isinstance(op, AttachCBOp) and isinstance(op.operands[0].owner, EmptyOp))
    return [op for op in found if op.operands[1] is acquire.operands[0]]


def _used_in(op: Operation, queue: Sequence[Operation]) -> bool:
    """Whether a block of ``queue`` is used inside ``op``."""
    block = op.parent
    assert block is not None
    return any(ancestor_in(effect, block) is op for effect in _uses(queue))


def _used_from(op: Operation, queue: Sequence[Operation]) -> bool:
    """Whether a block of ``queue`` is used in ``op`` or after it: its place would depend on the path."""
    return _used_in(op, queue) or any(_after(effect, op) for effect in _uses(queue))


def _uses(queue: Sequence[Operation]) -> Iterator[Operation]:
    return (effect for acquire in queue for view in attached(acquire) for effect in effects(view.results[0]))


def _trips(loop: scf.ForOp) -> int | None:
    bounds = [constant_of(value) for value in (loop.lb, loop.ub, loop.step)]
    if any(bound is None for bound in bounds):
        return None
    low, high, step = (bound or 0 for bound in bounds)
    return max(0, -(-(high - low) // step))


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


def _place_blocks(block: Block, outer: dict[Key, int], problems: list[Diagnostic]) -> dict[Key, int]:
    """Blocks of one buffer held together lie one behind the other; a release moves the rest forward.

    Returns how many blocks are held at the end.
    """
    held: dict[Key, list[AttachCBOp]] = {}
    count = dict(outer)
    for op in list(block.ops):
        if type(op) in ACQUIRES:
            key = key_of(op)
            before = count.get(key, 0)
            count[key] = before + 1
            tiles, depth = op.operands[0].type.block_tiles, op.operands[0].type.factor.data  # pyright: ignore
            if before + 1 > depth:
                problems.append(_too_many(op, before + 1, depth))
            if before:
                op.attributes.setdefault("tiles", i32_attr((before + 1) * tiles))
                for view in attached(op):
                    view.attributes.setdefault("tile_offset", i32_attr(before * tiles))
            held.setdefault(key, []).extend(attached(op))
        elif type(op) in RELEASES:
            key = key_of(op)
            count[key] = count.get(key, 0) - 1
            queue = held.get(key, [])
            if queue:
                queue.pop(0)
            held[key] = [_moved_forward(view, op) for view in queue]
        elif isinstance(op, scf.IfOp):
            after = [_place_blocks(region.block, count, problems) for region in op.regions if region.blocks]
            _forget_released(held, count, after[0])
        elif isinstance(op, scf.ForOp):
            once = _place_blocks(op.body.block, count, problems)
            trips = _trips(op) or 0
            _forget_released(held, count, {key: count.get(key, 0) - trips * (count.get(key, 0) - n) for key, n in once.items()})
    return count


def _forget_released(held: dict[Key, list[AttachCBOp]], count: dict[Key, int], after: dict[Key, int]) -> None:
    """A loop or branch released blocks of this region; those that stay are not used any more."""
    for key, number in after.items():
        gone = count.get(key, 0) - number
        held[key] = held.get(key, [])[gone:]
        count[key] = number


def _too_many(op: Operation, wanted: int, depth: int) -> Diagnostic:
    _, side = key_of(op)
    return problem(
        "TW304",
        f"block {wanted} of '{buffer_name(op)}' is held at once, but the buffer has {depth}",
        op,
        label=f"{wanted - 1} held already",
        help=f"release blocks before the next {side}(), or set block_count={wanted}",
    )


def _moved_forward(view: AttachCBOp, release: Operation) -> AttachCBOp:
    """After a release the block lies one block nearer: everything that reads it from here on uses a new view."""
    block = release.parent
    assert block is not None
    tiles = view.operands[1].type.block_tiles  # pyright: ignore
    offset = view.tile_offset - tiles
    attributes: dict[str, Attribute] = {"tile_offset": i32_attr(offset)} if offset > 0 else {}
    if view.first_tile:
        attributes["first_tile"] = view.attributes["first_tile"]
    later = AttachCBOp.create(
        operands=list(view.operands), result_types=[view.results[0].type], attributes=attributes, location=view.location
    )
    used_after = [
        effect for effect in effects(view.results[0]) if isinstance(effect, (StoreOp, CopyOp)) and _after(effect, release)
    ]
    if not used_after:
        return view
    block.insert_op_after(later, release)
    for effect in used_after:
        known: dict[SSAValue, SSAValue] = {view.results[0]: later.results[0]}
        for index, operand in enumerate(effect.operands):
            effect.operands[index] = _rebuilt(operand, known, effect)
    return later


def _after(op: Operation, other: Operation) -> bool:
    block = other.parent
    assert block is not None
    top = ancestor_in(op, block)
    current = other.next_op
    while current is not None and current is not top:
        current = current.next_op
    return current is top and top is not None


def _rebuilt(value: SSAValue, known: dict[SSAValue, SSAValue], before: Operation) -> SSAValue:
    """The same expression with some blocks replaced; only what depends on them is computed anew."""
    if value in known:
        return known[value]
    owner = value.owner
    if not isinstance(owner, Operation) or (isinstance(owner, AttachCBOp) or type(owner) in ACQUIRES):
        return value
    operands = [_rebuilt(operand, known, before) for operand in owner.operands]
    result = value
    if any(new is not old for new, old in zip(operands, owner.operands, strict=True)):
        copy = owner.create(
            operands=operands,
            result_types=[r.type for r in owner.results],
            attributes=dict(owner.attributes),
            location=owner.location,
        )
        block = before.parent
        assert block is not None
        block.insert_op_before(copy, before)
        result = copy.results[0]
    known[value] = result
    return result
