"""Runs of ``pack_tile`` from consecutive DST indices to consecutive places become one block pack.

Requires: inits placed. Ensures: no run of packs that one block pack could do.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation

from tilewright.dialects.attributes import constant, constant_of, int_value
from tilewright.dialects.walking import block_ops, erase, insert_before, of_kind, operations
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import call

NAME = "ttkernel-combine-pack-tiles"

PACK = "ttkernel.pack_tile"
KEPT = ("edge", "relu", "value")  # what a pack says beyond where it goes
INDEX_OPS = frozenset(("arith.addi", "arith.muli", "arith.constant", "affine.apply", "scf.yield"))


def run(module: ModuleOp, context: PassContext) -> None:
    for loop in [loop for loop in of_kind(module, ForOp) if "ttl.dst_footprint" in loop.attributes]:
        _combine_loop(loop)
    for block in dict.fromkeys(op.parent for op in operations(module) if op.name == PACK):
        assert block is not None
        _combine_run(block)


def _combine_loop(loop: ForOp) -> None:
    """A nest that only packs: its trips are the tiles, in order."""
    loops: list[ForOp] = []
    packs: list[Operation] = []
    for op in operations(loop):
        if type(op) is ForOp:
            loops.append(op)
        elif op.name == PACK:
            packs.append(op)
        elif op.name not in INDEX_OPS:
            return
    if len(packs) != 1 or not _in_order(packs[0]):
        return
    trips = 1
    for nested in loops:
        bound = constant_of(nested.operands[1])
        assert bound is not None
        trips *= bound
    _replace(loop, packs[0], int_value(packs[0], "dst_base"), trips)


def _in_order(pack: Operation) -> bool:
    return "out_of_order" not in pack.attributes and "dst_base" in pack.attributes


def _replace(old: Operation, pack: Operation, first: int, count: int) -> None:
    start, length = constant(first), constant(count)
    buffer = pack.operands[1]
    kept = {key: value for key, value in pack.attributes.items() if key in KEPT}
    combined = call("pack_tile_block", [start.results[0], buffer, length.results[0]], attributes=kept, like=pack)
    insert_before([start, length, combined], old)
    erase(old)


def _combine_run(block: Block) -> None:
    """Packs written out one after the other."""
    run_: list[Operation] = []
    for op in [*block_ops(block), None]:
        if op is not None and op.name in INDEX_OPS:
            continue
        if op is not None and op.name == PACK and _in_order(op) and constant_of(op.operands[0]) is not None:
            follows = run_ and run_[-1].operands[1] is op.operands[1] and _index(op) == _index(run_[-1]) + 1
            follows = follows and run_[-1].attributes.get("relu") == op.attributes.get("relu")
            if run_ and not follows:
                _finish(run_)
                run_ = []
            run_.append(op)
            continue
        _finish(run_)
        run_ = []


def _index(pack: Operation) -> int:
    index = constant_of(pack.operands[0])
    assert index is not None
    return index


def _finish(packs: list[Operation]) -> None:
    if len(packs) < 2:
        return
    _replace(packs[0], packs[0], _index(packs[0]), len(packs))
    for pack in packs[1:]:
        erase(pack)
