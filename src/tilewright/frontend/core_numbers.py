"""Integers of a core in block arithmetic: ``block * ttl.node(dims=1)``.

A kernel call takes numbers that the compiler knows. An integer that differs among cores becomes a tile of that number, which the
core adds up bit by bit in a buffer of the compiler's: ``store(low)``, then ``+= 1``, ``+= 2``, ``+= 4`` … under an if each.
"""

from __future__ import annotations

import ast

from tilewright.dialects.attributes import number_attr
from tilewright.dialects.tile_op import FLOAT_DTYPES
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import CBPushOp
from tilewright.frontend.early_values import acquired, new_buffer
from tilewright.frontend.extents import EITHER
from tilewright.frontend.numbers import filled
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block
from tilewright.integers import Value, bounds, is_dynamic, is_int_like, leaves, make

MOST_BITS = 16
EXACT_IN_BF16 = 256  # whole numbers up to this


def is_core_number(thread: Thread, value: object) -> bool:
    """Whether it is an integer that every core knows from its start; a loop that changes one is unrolled instead."""
    if not is_dynamic(value) or not is_int_like(value):
        return False
    low, high = bounds(value)  # pyright: ignore[reportArgumentType]
    return high - low < 2**MOST_BITS and all(thread.emitter.is_of_entry(leaf) for leaf in leaves(value))  # pyright: ignore


def number_block(thread: Thread, value: Value, like: Block, node: ast.AST) -> Block | None:
    """One tile of this number, which repeats beside ``like``; None if no tile of that dtype can be made."""
    if like.dtype not in FLOAT_DTYPES:
        return None
    low, high = bounds(value)
    dtype = "bf16" if like.dtype != "f32" and low >= -EXACT_IN_BF16 and high <= EXACT_IN_BF16 else "f32"
    shape = (1,) * len(like.shape)
    buffer = new_buffer(thread, "number", shape, dtype, thread.span(node))
    place, site = acquired(thread, buffer, "reserve")
    thread.emitter.add(StoreOp, [filled(thread, low, shape, dtype, node).ssa, place])
    site.store(EITHER, thread.emitter.block, thread.span(node))
    above = make("-", value, low)
    for bit in range((high - low).bit_length()):
        then, otherwise = thread.emitter.branch(make("==", make("%", make("//", above, 1 << bit), 2), 1))
        thread.emitter.enter(then)
        part = filled(thread, 1 << bit, shape, dtype, node)
        thread.emitter.add(StoreOp, [part.ssa, place], [], {"accumulate": number_attr(True)})
        thread.emitter.close_branch()
        thread.emitter.enter(otherwise)
        thread.emitter.close_branch()
    thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    ssa, _ = acquired(thread, buffer, "wait")
    return Block(ssa, shape, dtype).with_extent(EITHER)
