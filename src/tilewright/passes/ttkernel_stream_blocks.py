"""What the compute thread packs for itself is handed over as it is packed, and waited for where it is read.

A block that goes through L1 between two sections of DST is pushed as a whole when it is there, and its reader waits for all of
it. Math stands still from the commit of the last section to the first tile of the next. Here every run of tiles is pushed when it
is packed, every tile if one section packs them all; a wait stands where the first of its tiles is read, and asks for no more than
that. So the packer and the unpacker work beside each other, and math goes on when one tile has come through. What another thread
makes for the compiler, tiles of numbers and masks, is waited for where it is read as well.

Requires: calls, with their inits placed; packs are not combined. Ensures: a block that the thread itself reads is pushed run by
run, or tile by tile, where its packs are in order; waits for blocks of the compiler and of the thread itself stand where they
are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.diagnostics import counted
from tilewright.dialects.attributes import KernelCBType, add, constant, constant_of, int_value, text_value
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import ALIAS_OF
from tilewright.dialects.walking import (
    ancestor_in,
    block_ops,
    erase,
    insert_after,
    insert_before,
    move_before,
    operations,
    users,
    with_inner,
)
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import call

NAME = "ttkernel-stream-blocks"

RESERVE, PUSH = "ttkernel.cb_reserve_back", "ttkernel.cb_push_back"
WAIT, POP = "ttkernel.cb_wait_front", "ttkernel.cb_pop_front"
HAND_OVERS = frozenset((RESERVE, PUSH, WAIT, POP))
PACK, ADDING = "ttkernel.pack_tile", "ttkernel.pack_reconfig_l1_acc"
BUFFER = "ttkernel.get_compile_time_arg_val"
SUB_BLOCKS = "ttl.sub_blocks"  # of a loop over runs of tiles, a section of DST each
# Calls that read one tile of each of their buffers; indices stand behind the buffers, in the same order.
BINARY = [f"{kind}_tiles{form}" for kind in ("add", "sub", "mul") for form in ("", "_bcast_cols", "_bcast_rows", "_bcast_scalar")]
ONE_TILE = ("copy_tile", "unary_bcast", "transpose_wh_tile", "binary_dest_reuse_tiles", "reduce_tile")
TILE_CALLS = frozenset(f"ttkernel.{name}" for name in (*ONE_TILE, *BINARY))


def run(module: ModuleOp, context: PassContext) -> None:
    for function in [op for op in module.ops if isinstance(op, FuncOp) and thread_kind(op) == "compute"]:
        ops = operations(function)
        binds = [op for op in ops if op.name == BUFFER and isinstance(op.results[0].type, KernelCBType)]
        aliased = {int_value(op, ALIAS_OF) for op in binds if ALIAS_OF in op.attributes}
        for owner in binds:
            buffer = owner.results[0]
            if ALIAS_OF in owner.attributes or int_value(owner, "cb_index", -1) in aliased:
                continue
            takers = users(buffer)
            waits = [op for op in takers if op.name == WAIT]
            pushes = [op for op in takers if op.name == PUSH]
            if not pushes and text_value(owner, "origin") == "compiler":  # another thread makes it while math begins
                for wait in waits:
                    _wait_where_read(wait, buffer, by_parts=False)
            if not waits or not pushes or not any(op.name == PACK for op in takers):
                continue
            parts = [_push_by_parts(push, buffer) for push in pushes]
            for wait in waits:
                _wait_where_read(wait, buffer, by_parts=all(parts))
            if all(parts):
                title = f"'{text_value(owner, 'name')}' is pushed {counted(min(parts), 'tile')} at a time"
                context.trace.decide(NAME, title, "the thread reads it itself, and goes on when the first tile has come through")


# Packs ------------------------------------------------------------------------------------------------------------------------


def _push_by_parts(push: Operation, buffer: SSAValue) -> int:
    """How many tiles are pushed at a time now; 0 if the block is still pushed as a whole."""
    count, packs = constant_of(push.operands[1]), _packs_of(push, buffer)
    if count is None or packs is None or sum(_trips(_loops(pack, push)) for pack in packs) != count:
        return 0
    sizes: list[int] = []
    for pack in packs:
        loops = _loops(pack, push)
        tiles = [loop for loop in loops if SUB_BLOCKS not in loop.attributes]
        alone = len(packs) == 1 and tiles == loops  # one section: nothing else is done while it is packed
        sizes.append(1 if alone else _trips(tiles))
        last = pack if alone or not tiles else tiles[0]
        insert_after(call("cb_push_back", [buffer, _number(sizes[-1], last)], like=push), last)
    erase(push)
    return max(sizes)


def _packs_of(push: Operation, buffer: SSAValue) -> list[Operation] | None:
    """What is packed between the reserve and the push of a block; ``None`` if that is not all, each tile once and in order."""
    block = push.parent
    assert block is not None
    takers = set(users(buffer))
    found: list[Operation] = []
    earlier = push._prev_op  # pyright: ignore[reportPrivateUsage]
    while earlier is not None and not (earlier in takers and earlier.name == RESERVE):
        packs: list[Operation] = []
        for op in with_inner(earlier):
            if op.name == ADDING:
                return None
            if op not in takers or _names_setup(op.name):
                continue
            if op.name != PACK or "out_of_order" in op.attributes:  # or it is handed over
                return None
            packs.append(op)
        found = [*packs, *found]
        earlier = earlier._prev_op  # pyright: ignore[reportPrivateUsage]
    if earlier is None or not found or any(not _is_counted(_loops(pack, push)) for pack in found):
        return None
    # The tiles of two packs in one loop would take turns; a pack beside others of its section is pushed with them.
    together = len({ancestor_in(pack, block) for pack in found}) < len(found) or any(not _loops(pack, push) for pack in found)
    return None if together else found


@lru_cache(maxsize=1024)
def _names_setup(call: str) -> bool:
    return "init" in call or "reconfig" in call or "startup" in call


# Waits ------------------------------------------------------------------------------------------------------------------------


def _wait_where_read(wait: Operation, buffer: SSAValue, *, by_parts: bool) -> None:
    count = constant_of(wait.operands[1])
    reader = _next_reader(wait, buffer)
    if count is None or reader is None:
        return
    move_before(wait, reader)
    if not by_parts:
        return
    takers = set(users(buffer))
    covered, last = 0, wait
    while reader is not None and covered < count:
        runs = covered == 0 and isinstance(reader, ForOp) and SUB_BLOCKS in reader.attributes
        reached = _wait_for_runs(wait, reader, buffer) if runs else _wait_for_tiles(wait, reader, buffer, covered)
        if reached is None:
            break
        covered, last = reached, reader
        reader = _next_reader(reader, buffer)
    if covered == count:
        erase(wait)
    elif covered:  # all of a block is there before it is popped, though only its first tiles are read
        move_before(wait, reader or _next_user(last, takers))


def _wait_for_tiles(wait: Operation, top: Operation, buffer: SSAValue, covered: int) -> int | None:
    """One more tile before each call that is the first to take it; how many tiles were waited for by the end of ``top``.

    ``covered`` tiles were waited for before. ``None`` if tiles are not taken one after the other, or not whenever ``top`` runs.
    """
    ahead: dict[Operation, bool] = {}  # for each call: does it always take a new tile, or never?
    for op, tiles, _ in _reads(top, buffer):
        reached = max(tiles) + 1
        if min(tiles) < 0 or reached > covered + 1 or ahead.setdefault(op, reached > covered) != (reached > covered):
            return None
        covered = max(covered, reached)
    new = [op for op, is_new in ahead.items() if is_new]
    if not ahead or any(len(set(_indices(op, buffer))) > 1 for op in new):
        return None
    for op in new:
        place = op
        while (earlier := place.prev_op) is not None and _names_setup(earlier.name):  # an init of its own stays beside the call
            place = earlier
        index = _indices(op, buffer)[0]
        number = constant_of(index)
        so_far = _sum(index, _number(1, place), place) if number is None else _number(number + 1, place)
        insert_before(call("cb_wait_front", [buffer, so_far], like=wait), place)
    return covered


def _reads(top: Operation, buffer: SSAValue) -> Iterator[tuple[Operation, list[int], dict[SSAValue, int]]]:
    """The calls that read tiles of the buffer as they run, which tiles (``-1`` where nobody can say), and the loops' counters."""
    takers = set(users(buffer))
    readers = [op for op in with_inner(top) if op in takers and not _names_setup(op.name)]
    on_the_way = {top, *readers}
    for op in readers:
        while (around := op.parent_op()) is not None and op is not top and around not in on_the_way:
            on_the_way.add(around)
            op = around

    def run(op: Operation, known: dict[SSAValue, int]) -> Iterator[tuple[Operation, list[int], dict[SSAValue, int]]]:
        if not op.regions:
            indices = _indices(op, buffer) if op.name in TILE_CALLS else []
            yield op, [_evaluated(index, dict(known)) for index in indices] or [-1], known
        elif not isinstance(op, ForOp) or not _is_counted([op]):
            yield op, [-1], known
        else:
            body = op.body.block
            inside = [inner for inner in block_ops(body) if inner in on_the_way]
            for number in _range(op):
                for inner in inside:
                    yield from run(inner, {**known, body.args[0]: number})

    return run(top, {})


def _wait_for_runs(wait: Operation, runs: Operation, buffer: SSAValue) -> int | None:
    """The tiles of a run before the first call of the run that reads them; how many tiles the runs have waited for."""
    assert isinstance(runs, ForOp)
    body = runs.body.block
    step, end, start = constant_of(runs.step), constant_of(runs.ub), body.args[0]
    if step is None or end is None or constant_of(runs.lb) != 0:
        return None
    readers: dict[Operation, None] = {}
    for op, tiles, known in _reads(runs, buffer):
        if any(tile < 0 or not 0 <= tile - known[start] < step for tile in tiles):
            return None
        readers[op] = None
    if not readers:
        return None
    first = next(op for op in body.ops if any(ancestor_in(reader, body) is op for reader in readers))
    so_far = _sum(start, _number(step, first), first)
    insert_before(call("cb_wait_front", [buffer, so_far], like=wait), first)
    return end


def _next_reader(op: Operation, buffer: SSAValue) -> Operation | None:
    """The next op of the block that reads tiles, or has one inside that does."""
    takers = {user for user in users(buffer) if not _names_setup(user.name)}
    if not takers:
        return None
    later = op.next_op
    while later is not None:
        if later in takers:
            return None if later.name in HAND_OVERS else later
        if later.regions and (found := takers.intersection(operations(later))):
            return None if any(inner.name in HAND_OVERS for inner in found) else later
        later = later._next_op  # pyright: ignore[reportPrivateUsage]
    return None


def _next_user(op: Operation, takers: set[Operation]) -> Operation:
    """The next op of the block that names the buffer, or has one inside that does; the end of the block if there is none."""
    later = op.next_op
    while later is not None and later.next_op is not None and takers.isdisjoint(with_inner(later)):
        later = later.next_op
    assert later is not None  # the block has a terminator
    return later


def _indices(op: Operation, buffer: SSAValue) -> list[SSAValue]:
    """Which tiles of the buffer a call reads."""
    count = sum(type(operand.type) is KernelCBType for operand in op.operands)
    return [op.operands[count + position] for position in range(count) if op.operands[position] is buffer]


# Loops ------------------------------------------------------------------------------------------------------------------------


def _loops(op: Operation, beside: Operation) -> list[ForOp]:
    """The loops around ``op`` inside the block of ``beside``, the outermost first."""
    found: list[ForOp] = []
    parent = op.parent_op() if op.parent is not beside.parent else None
    while parent is not None:
        if isinstance(parent, ForOp):
            found.insert(0, parent)
        parent = parent.parent_op() if parent.parent is not beside.parent else None
    return found


def _is_counted(loops: Sequence[ForOp]) -> bool:
    return all(constant_of(bound) is not None for loop in loops for bound in loop.operands[:3])


def _range(loop: ForOp) -> range:
    low, high, step = map(constant_of, loop.operands[:3])
    assert low is not None and high is not None and step is not None
    return range(low, high, step)


def _trips(loops: Sequence[ForOp]) -> int:
    count = 1
    for loop in loops:
        count *= len(_range(loop))
    return count


def _evaluated(value: SSAValue, known: dict[SSAValue, int]) -> int:
    if value in known:
        return known[value]
    number = constant_of(value)
    if number is None:
        op: Any = value.owner
        if isinstance(value, BlockArgument) or op.name not in ("arith.addi", "arith.muli"):
            return -1
        left, right = (_evaluated(operand, known) for operand in op.operands)
        if left < 0 or right < 0:
            return -1
        number = left + right if op.name == "arith.addi" else left * right
    known[value] = number
    return number


# Ops --------------------------------------------------------------------------------------------------------------------------


def _number(value: int, before: Operation) -> SSAValue:
    op = constant(value)
    insert_before(op, before)
    return op.results[0]


def _sum(left: SSAValue, right: SSAValue, before: Operation) -> SSAValue:
    op = add(left, right)
    insert_before(op, before)
    return op.results[0]
