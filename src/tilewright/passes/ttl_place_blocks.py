"""Says where blocks of one buffer lie that are held together.

Requires: every acquire has its release. Ensures: a block that is not the first one held carries ``tiles`` (how many to wait for)
and ``tile_offset``; what is read after a release has moved the block forward goes through a view of its new place.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import Diagnostic
from tilewright.dialects.attributes import buffer_type_of, i32_attr, text_value, trip_count
from tilewright.dialects.ttl import ExternCallOp, StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CopyOp, ReadElementOp, WriteElementOp
from tilewright.dialects.walking import block_ops, insert_after, insert_before, runs_after
from tilewright.passes.buffers import ACQUIRES, RELEASES, attached, buffer_name, effects, functions_of, key_of, problem
from tilewright.passes.context import PassContext

NAME = "ttl-place-blocks"
Key = tuple[int, str]
BY_ADDRESS = (StoreOp, CopyOp, ReadElementOp, WriteElementOp, ExternCallOp)


def run(module: ModuleOp, context: PassContext) -> bool:
    placed: list[Operation] = []
    for function in functions_of(module):
        problems: list[Diagnostic] = []
        if function.sym_name.data not in context.unresolved:
            _place_blocks(function.body.block, {}, problems, placed)
        if problems:
            context.unresolved[function.sym_name.data] = problems
    return bool(placed)


def _place_blocks(
    block: Block, outer: dict[Key, int], problems: list[Diagnostic], placed: list[Operation]
) -> dict[Key, int]:
    """Blocks of one buffer held together lie one behind the other; a release moves the rest forward.

    Returns how many blocks are held at the end; ``placed`` gets the acquires and releases that find another block held.
    """
    held: dict[Key, list[AttachCBOp]] = {}
    count = dict(outer)
    for op in block_ops(block):
        if type(op) in ACQUIRES:
            key = key_of(op)
            before = count.get(key, 0)
            count[key] = before + 1
            kind = buffer_type_of(op.operands[0])
            tiles, depth = kind.block_tiles, kind.factor.data
            if before + 1 > depth and not _is_own(op):
                problems.append(_too_many(op, before + 1, depth))
            if before:
                placed.append(op)
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
            if queue:
                placed.append(op)
            held[key] = [_moved_forward(view, op) for view in queue]
        elif type(op) is scf.IfOp:
            after = [_place_blocks(region.block, count, problems, placed) for region in op.regions if region.blocks]
            _forget_released(held, count, after[0])
        elif type(op) is scf.ForOp:
            once = _place_blocks(op.body.block, count, problems, placed)
            trips = trip_count(op) or 0
            _forget_released(held, count, {key: count.get(key, 0) - trips * (count.get(key, 0) - n) for key, n in once.items()})
    return count


def _forget_released(held: dict[Key, list[AttachCBOp]], count: dict[Key, int], after: dict[Key, int]) -> None:
    """A loop or branch released blocks of this region; those that stay are not used any more."""
    for key, number in after.items():
        gone = count.get(key, 0) - number
        held[key] = held.get(key, [])[gone:]
        count[key] = number


def _is_own(op: Operation) -> bool:
    """Of a buffer that the compiler made: it gets the depth it needs (`ttl-deepen-buffers`)."""
    bind = op.operands[0].owner
    return isinstance(bind, Operation) and text_value(bind, "origin") == "compiler"


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
    tiles = buffer_type_of(view.buffer).block_tiles
    offset = view.tile_offset - tiles
    attributes: dict[str, Attribute] = {"tile_offset": i32_attr(offset)} if offset > 0 else {}
    if "first_tile" in view.attributes:
        attributes["first_tile"] = view.attributes["first_tile"]
    used_after = [
        effect for effect in effects(view.results[0]) if isinstance(effect, BY_ADDRESS) and runs_after(effect, release)
    ]
    if not used_after:
        return view
    later = AttachCBOp.create(
        operands=list(view.operands), result_types=[view.results[0].type], attributes=attributes, location=view.location
    )
    insert_after(later, release)
    for effect in used_after:
        known: dict[SSAValue, SSAValue] = {view.results[0]: later.results[0]}
        for index, operand in enumerate(effect.operands):
            effect.operands[index] = _rebuilt(operand, known, effect)
    return later


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
        insert_before(copy, before)
        result = copy.results[0]
    known[value] = result
    return result
