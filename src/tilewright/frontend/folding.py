"""Blocks of more than two dimensions: tiles lie row by row, so all dimensions but the last are rows of one matrix of tiles.

The IR knows rows and columns only. A block of (4, 2, 3) tiles is one of (8, 3) there; what a function may do with it depends on
whether its dimensions still mean rows and columns after that.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from tilewright.dialects.attributes import block_type
from tilewright.frontend.thread import Thread, folded
from tilewright.frontend.values import Block

MATRICES_APART = "matrices of a block are not told apart: loop over them, with blocks of one matrix each"


def value_type(shape: Sequence[int], dtype: str) -> TensorType[Attribute]:
    return block_type(folded(tuple(shape)), dtype)


def fold(block: Block) -> Block:
    """The block as the IR has it."""
    if len(block.shape) <= 2:
        return block
    shift = len(block.shape) - 2
    found = Block(block.ssa, folded(block.shape), block.dtype, block.held, open=block.open, weak=block.weak)
    return _shifted(found, block, -shift)


def unfold(block: Block, shape: tuple[int, ...]) -> Block:
    """What the IR has, with the dimensions the author gave it."""
    if block.shape == shape:
        return block
    shift = len(shape) - len(block.shape)
    return _shifted(Block(block.ssa, shape, block.dtype, open=block.open, weak=block.weak), block, shift)


def _shifted(found: Block, block: Block, shift: int) -> Block:
    """The elements that count in ``block``, whose rows and columns have other numbers in ``found``."""
    found.counting_as(block)
    found.reduced = tuple(dim + shift for dim in block.reduced if dim + shift >= 0)
    found.uniform = tuple(dim + shift for dim in block.uniform if dim + shift >= 0)
    found.unknown = tuple(dim + shift for dim in block.unknown if dim + shift >= 0)
    return found


def matrices(shape: Sequence[int]) -> int:
    """How many matrices of tiles a block of this shape holds."""
    return math.prod(shape[:-2])


def require_one_matrix(thread: Thread, what: str, block: Block, node: ast.AST) -> None:
    if matrices(block.shape) != 1:
        raise thread.error("TW101", f"{what} of a block of {block.describe()}", node, help=MATRICES_APART)


def grows_in_place(small: Sequence[int], large: Sequence[int]) -> bool:
    """Whether repeating ``small`` to ``large``, of equal rank, is repeating rows or columns of the folded blocks."""
    if matrices(large) == 1 or tuple(small[:-1]) == tuple(large[:-1]):
        return True
    return math.prod(small[:-1]) == 1
