"""Other orders of what a data-movement thread does, for the question what they would gain.

A rewrite keeps what is moved and where to. Whether the kernel still ends is seen by running it: the timeline executes every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation

from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.program import Program

READ_BARRIER, WRITE_BARRIER, FLUSHED = "noc_async_read_barrier", "noc_async_write_barrier", "noc_async_writes_flushed"
_MOVES = {
    READ_BARRIER: ("noc_async_read_page", "noc_async_read_tile_rows", "noc_async_read"),
    WRITE_BARRIER: ("noc_async_write_page", "noc_async_write_tile_rows"),
}


def variants(program: Program) -> Iterator[tuple[str, Program]]:
    """Programs that move the same in another order."""
    for change, rewrite in (
        ("reads before waiting for results", _reads_first),
        ("operands read in the opposite order", _swap_reads),
        ("one barrier for reads that follow each other", _one_barrier),
    ):
        module = program.module.clone()
        changed = _rewrite(module, rewrite)
        if changed:
            yield f"{change} in {', '.join(changed)}", replace(program, module=module)


def _rewrite(module: ModuleOp, rewrite: Callable[[Block], bool]) -> list[str]:
    """Names of the threads that changed."""
    changed: list[str] = []
    for function in module.walk():
        if isinstance(function, func.FuncOp) and "ttl.role" in function.attributes:
            blocks = [block for op in function.walk() for region in op.regions for block in region.blocks]
            if sum(rewrite(block) for block in blocks):
                changed.append(function.sym_name.data)
    return changed


def _call(op: Operation) -> str:
    return op.CALL.name if isinstance(op, KernelCallOp) else ""


def _calls(op: Operation) -> list[str]:
    return [name for inner in op.walk() if (name := _call(inner))]


def _buffers(op: Operation) -> set[object]:
    """The buffers that calls name."""
    calls = [inner for inner in op.walk() if _call(inner).startswith(("cb_", "get_")) and inner.operands]
    return {call.operands[0] for call in calls}


# Order --------------------------------------------------------------------------------------------------------------------------

Group = list[Operation]


def _groups(block: Block) -> list[Group]:
    """What a thread does with one buffer after the other: each group ends with what lets go."""
    groups: list[Group] = [[]]
    ends = False
    for op in block.ops:
        names = _calls(op)
        lets_go = any(name in ("cb_push_back", "cb_pop_front") for name in names)
        if ends and not lets_go and names:
            groups.append([])
            ends = False
        if names or groups[-1]:
            groups[-1].append(op)
        ends = ends or lets_go
    return groups


def _names(group: Group) -> set[str]:
    return {name for op in group for name in _calls(op)}


def _is_read(group: Group) -> bool:
    allowed = {"cb_reserve_back", "cb_push_back", "get_write_ptr", "tensor_accessor", READ_BARRIER, *_MOVES[READ_BARRIER]}
    return {"cb_reserve_back", "cb_push_back", READ_BARRIER} <= _names(group) <= allowed


def _is_write(group: Group) -> bool:
    allowed = {"cb_wait_front", "cb_pop_front", "get_read_ptr", "tensor_accessor", WRITE_BARRIER, FLUSHED, *_MOVES[WRITE_BARRIER]}
    return {"cb_wait_front", "cb_pop_front"} <= _names(group) <= allowed


def _swap(first: Group, second: Group) -> bool:
    """Moves ``second`` before ``first``, if neither needs the other."""
    made = {result for op in first for inner in op.walk() for result in inner.results}
    arithmetic = [op for op in first if not _calls(op)]
    needed = {operand for op in second for inner in op.walk() for operand in inner.operands} & made
    if needed - {result for op in arithmetic for result in op.results}:
        return False
    if {buffer for op in first for buffer in _buffers(op)} & {buffer for op in second for buffer in _buffers(op)}:
        return False
    if _tensors(first) & _tensors(second) and (_is_write(first) or _is_write(second)):
        return False
    block, place = first[0].parent_block(), first[0]
    assert block is not None
    for op in (*arithmetic, *second):
        if op is place:
            continue
        op.detach()
        block.insert_op_before(op, place)
    return True


def _tensors(group: Group) -> set[int]:
    """Numbers of the tensors that calls of a group name."""
    found: set[int] = set()
    for op in group:
        for inner in op.walk():
            for operand in inner.operands:
                owner = operand.owner
                number = owner.attributes.get("tensor_index") if isinstance(owner, Operation) else None
                if isinstance(number, IntegerAttr):
                    found.add(number.value.data)
    return found


def _reads_first(block: Block) -> bool:
    return _swap_pairs(_groups(block), lambda first, second: _is_write(first) and _is_read(second))


def _swap_reads(block: Block) -> bool:
    return _swap_pairs(_groups(block), lambda first, second: _is_read(first) and _is_read(second))


def _one_barrier(block: Block) -> bool:
    """Reads of several buffers wait once, behind the last; then all are pushed. The compiler joins those it knows to gain."""
    changed = False
    run: list[Group] = []
    for group in (*_groups(block), []):
        used = {buffer for each in run for op in each for buffer in _buffers(op)}
        if group and _is_read(group) and _tail(group) and not used & {buffer for op in group for buffer in _buffers(op)}:
            run.append(group)
            continue
        tails = [_tail(each) for each in run]
        for barrier, *pushes in tails[:-1]:
            for op in pushes:
                op.detach()
                block.insert_op_before(op, tails[-1][1])
            barrier.detach()
            barrier.erase()
            changed = True
        run = []
    return changed


def _tail(group: Group) -> Group:
    """The barrier of a read and the pushes behind it, if nothing else stands there."""
    places = [place for place, op in enumerate(group) if _call(op) == READ_BARRIER]
    if len(places) != 1:
        return []
    tail = [op for op in group[places[0] :] if _calls(op)]  # arithmetic may stay where it is
    return tail if len(tail) > 1 and all(_call(op) == "cb_push_back" for op in tail[1:]) else []


def _swap_pairs(groups: Sequence[Group], wanted: Callable[[Group, Group], bool]) -> bool:
    changed, position = False, 0
    while position + 1 < len(groups):
        first, second = groups[position], groups[position + 1]
        if first and second and wanted(first, second) and _swap(first, second):
            changed = True
            position += 1
        position += 1
    return changed
