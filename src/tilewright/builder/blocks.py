"""Block arithmetic: operators and functions on blocks become tensor-level ``ttl`` ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard

from xdsl.dialects.builtin import FloatAttr, StringAttr, UnitAttr, f32
from xdsl.ir import Attribute, SSAValue

from tilewright.builder.buffers import acquired, content, new_buffer, part_of
from tilewright.builder.extents import EITHER, Count, Extent
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block, Choice, described, fold, folded, grows_in_place, unfold, value_type
from tilewright.diagnostics import KernelError, Note, Span
from tilewright.dialects.attributes import i64_list, number_attr
from tilewright.dialects.tile_op import FLOAT_DTYPES, INTEGER_DTYPES, Composite, Param, TileOp, release_key
from tilewright.dialects.tile_ops import (
    BY_NAME,
    BY_OPERATOR,
    COMPOSITE_BY_NAME,
    COMPOSITE_BY_OPERATOR,
    dtypes_of,
    in_release,
    with_number,
)
from tilewright.dialects.ttkernel import SFPU_REDUCE_SINCE
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, FillBlockOp, MatmulOp, ReduceOp, StoreOp, TransposeOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPushOp
from tilewright.dtypes import BY_PRECISION, COMPUTED_AS, COMPUTED_INTEGERS, DTYPES
from tilewright.integers import Value, bounds, is_dynamic, is_int_like, leaves, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import class_of

INTEGER_RANGES = {dtype.name: dtype.range for dtype in DTYPES if dtype.name in COMPUTED_INTEGERS}
LARGEST_F32 = (2.0 - 2.0**-23) * 2.0**127
DIVIDES = ("div", "floordiv", "remainder", "fmod")  # ops whose right-hand number must not be zero


class BareFill(float):
    """``ttl.math.fill(0)``: a block of one number whose shape is that of whatever it meets. Beside a block it is the number."""

    @property
    def number(self) -> float:
        return float(self)


def is_number(value: Any) -> TypeGuard[float]:
    """Python's numbers, and NumPy's, which register with the same abstract class."""
    return not isinstance(value, bool) and isinstance(value, Real)


def plain_number(value: Any) -> Any:
    """The number in an array or tensor without dimensions; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") and not is_number(value) else value


OTHER_SIDE: dict[type, str] = {
    CircularBuffer: "wait() for a block of the buffer and compute with that",
    KernelTensor: "copy tiles of the tensor into a buffer in a data-movement thread, and wait() for the block here",
}


def not_a_number(thread: ThreadBuilder, value: Any) -> Exception:
    return thread.problem(
        "TW004",
        f"a block does not combine with {described(value)}",
        help=OTHER_SIDE.get(class_of(value), "the other side is a block, or a number known at compile time")
        if not is_dynamic(value)
        else "numbers in block arithmetic are known at compile time; `for k in (0, 1, 2)` is unrolled, so k is known there",
    )


def check_divisor(thread: ThreadBuilder, op: TileOp | Composite, number: float) -> None:
    if op.name in DIVIDES and number == 0:
        raise thread.problem("TW004", "division of a block by zero", help="the result would be undefined everywhere")


def checked_param(thread: ThreadBuilder, row: TileOp, param: Param, dtype: str, value: Any) -> Attribute:
    """A parameter of an op on ``dtype`` as an attribute, if it has the right kind and lies in range."""
    fits = {
        "float": is_number(value),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "str": isinstance(value, str),
    }
    words = {"int": "a whole number", "float": "a number", "bool": "True or False", "str": "a text"}
    if not fits[param.kind]:
        message = f"'{param.name}' of {row.name} must be {words[param.kind]} known at compile time, not {described(value)}"
        raise thread.problem("TW004", message, help=param.summary or f"give {words[param.kind]}")
    if param.kind in ("int", "float"):
        _check_range(thread, f"'{param.name}' of {row.name}", value, _limits(param, dtype))
    return FloatAttr(float(value), f32) if param.kind == "float" else number_attr(value)


def _limits(param: Param, dtype: str) -> tuple[float | None, float | None]:
    """What the row allows and the dtype can hold."""
    low, high = param.low, param.high
    smallest, largest = INTEGER_RANGES.get(dtype, (None, None))
    if param.kind != "int" or smallest is None or largest is None:
        return low, high
    return smallest if low is None else max(low, smallest), largest if high is None else min(high, largest)


def _check_range(thread: ThreadBuilder, what: str, value: float, limits: tuple[float | None, float | None]) -> None:
    low, high = limits
    if abs(value) > LARGEST_F32 and (isinstance(value, int) or not math.isinf(value)):  # an int may exceed any float
        text = f"{value:g}" if not isinstance(value, int) else f"{'-' * (value < 0)}10**{len(str(abs(value))) - 1} or more"
        raise thread.problem("TW004", f"{what} is {text}, more than float32 holds", help=f"up to ±{LARGEST_F32:.6g}")
    if (low is not None and value < low) or (high is not None and value > high):
        possible = f"from {low} to {high}" if low is not None and high is not None else f"at least {low}"
        raise thread.problem("TW004", f"{what} is {value}", help=possible if low is not None else f"at most {high}")


def filled(thread: ThreadBuilder, value: Any, shape: tuple[int, ...], dtype: str) -> Block:
    """A block of one number."""
    if dtype not in INTEGER_RANGES:
        _check_range(thread, "the number", value, (None, None))
        attribute: Attribute = FloatAttr(float(value), f32)
    else:
        if not math.isfinite(value) or value != int(value):
            message = f"{value} is no whole number, and the block holds {dtype}"
            raise thread.problem("TW004", message, help="typecast the block first")
        _check_range(thread, f"a number in a block of {dtype}", int(value), INTEGER_RANGES[dtype])
        attribute = number_attr(int(value))
    op = thread.emitter.add(FillBlockOp, [], [value_type(shape, dtype)], {"value": attribute})
    # One number everywhere: wherever the other operands have one element, so has this.
    single = tuple(dim for dim, size in enumerate(shape) if size == 1)
    return Block(op.results[0], shape, dtype, reduced=single, uniform=single)


def retyped(thread: ThreadBuilder, fill: Block, dtype: str) -> Block:
    """A fill that named no dtype, in the one of what it meets."""
    found = filled(thread, fill.weak, fill.shape, dtype)
    found.open = fill.open
    return found


LARGEST_INTEGER_POWER = 32
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def readable(thread: ThreadBuilder, block: Block) -> Block:
    """The value of a block. A reserved block that was stored to stands for what was stored."""
    held = block.held
    if held is not None and held.kind == "wait" and held.stored is not None and block.region is None:
        held.replaced = None
        return held.stored
    if block.region is not None and held is not None:
        return part_of(thread, content(thread, held), block.region)
    return block if held is None or held.kind == "wait" else content(thread, held)


def value_of(thread: ThreadBuilder, block: Block) -> Block:
    """``+x``: what a block holds now, which stays when the block is released."""
    view = block.ssa.owner
    if thread.kind != "compute" or not isinstance(view, AttachCBOp):
        return block
    attributes = {**view.attributes, AttachCBOp.AS_VALUE: UnitAttr()}
    copied = thread.emitter.add(AttachCBOp, list(view.operands), [block.ssa.type], attributes)
    return Block(copied.results[0], block.shape, block.dtype).counting_as(block)


def whole(thread: ThreadBuilder, block: Block) -> Block:
    """The value of a block for what looks at all its elements: a broadcast that named no size repeats within its own tiles."""
    value = readable(thread, block)
    return at_size(thread, value, value.shape) if value.grows else value


def at_size(thread: ThreadBuilder, block: Block, shape: tuple[int, ...]) -> Block:
    """A broadcast that named no size, repeated to ``shape`` where that fits."""
    sizes = tuple(zip(block.shape, shape, strict=False))
    if len(block.shape) != len(shape) or any(have != want and dim not in block.reduced for dim, (have, want) in enumerate(sizes)):
        return block
    if not grows_in_place(block.shape, shape):
        return block
    flat = fold(block)
    return unfold(_grown(thread, flat, folded(shape), flat.reduced), shape)


def at_whole_tiles(thread: ThreadBuilder, block: Block, kept: tuple[int, ...]) -> Block:
    """A reduced block with one element along the dimensions ``kept`` only; along others that element repeats in its tile."""
    dims = tuple(dim for dim in block.reduced if dim not in kept)
    if not dims:
        return block
    flat = fold(block)
    lead = len(block.shape) - len(flat.shape)
    grown = unfold(_grown(thread, flat, flat.shape, tuple(dim - lead for dim in dims)), block.shape)
    grown.reduced, grown.uniform = kept, tuple(dim for dim in block.uniform if dim in kept)
    grown.unknown, grown.differ = block.unknown, block.differ
    return grown


def apply_op(thread: ThreadBuilder, op: TileOp | Composite, operands: Sequence[Block], params: dict[str, Any]) -> Block:
    """One elementwise op of the table on blocks that agree in shape and dtype."""
    require_compute(thread, f"ttl.{op.name}")
    blocks = repeated(thread, [readable(thread, operand) for operand in operands])
    blocks = _at_common_precision(thread, blocks)
    first = blocks[0]
    for other in blocks[1:]:
        check_same(thread, first, other)
    by_dtype = dict(op.by_dtype)
    if first.dtype not in by_dtype and first.dtype not in (op.dtypes if isinstance(op, TileOp) else dtypes_of(op)):
        name, possible = op.name.removesuffix("_scalar"), ", ".join(dtypes_of(op))
        raise thread.problem("TW107", f"{name} does not work on {first.dtype}", help=f"it takes {possible}; typecast first")
    if first.dtype in by_dtype:
        op = BY_NAME[by_dtype[first.dtype]]
    op = in_release(op, thread.build.metal)
    if isinstance(op, Composite):
        return _composite(thread, op, blocks, params)
    attributes = {
        param.name: checked_param(thread, op, param, first.dtype, params[param.name])
        for param in op.params
        if param.name in params
    }
    dtype = op.result_dtype.format(**params) if op.result_dtype else COMPUTED_AS[first.dtype]
    result = emit(thread, TENSOR_OPS[op.name], blocks, first.shape, dtype, attributes)
    result.counting_as(next((block for block in blocks if block.unknown), first))
    result.reduced = tuple(dim for dim in first.reduced if all(dim in block.reduced for block in blocks))
    result.uniform = tuple(dim for dim in result.reduced if all(dim in block.uniform for block in blocks))
    result.open = bool(result.reduced) and any(block.open for block in blocks)
    if not result.open and any(dim in block.uniform for dim in result.reduced if dim not in result.uniform for block in blocks):
        thread.sites.fill_met_one = True
    return result


def _at_common_precision(thread: ThreadBuilder, blocks: list[Block]) -> list[Block]:
    """Floats of different format combine in the finest of them; anything else is left for the caller to refuse."""
    dtypes = {block.dtype for block in blocks}
    if len(dtypes) == 1 or not dtypes <= set(BY_PRECISION):
        return blocks
    finest = max(dtypes, key=BY_PRECISION.index)
    return [converted(thread, block, finest) for block in blocks]


def converted(thread: ThreadBuilder, block: Block, dtype: str) -> Block:
    """The values in another format, between which there is a conversion."""
    if block.dtype == dtype:
        return block
    attributes: dict[str, Attribute] = {"dtype": StringAttr(dtype), "source": StringAttr(block.dtype)}
    result = emit(thread, TENSOR_OPS["typecast"], [block], block.shape, dtype, attributes).counting_as(block)
    result.open = block.open
    return result


def computed(thread: ThreadBuilder, block: Block) -> Block:
    """The values in the format that what is computed from them has."""
    return converted(thread, block, COMPUTED_AS[block.dtype])


def repeated(thread: ThreadBuilder, blocks: list[Block]) -> list[Block]:
    """Operands at their common size, as NumPy has it: a dimension of one tile repeats, and where a reduction left one row,
    column or element of a tile, that repeats within the tile as well. Sizes that do not fit are left as they are."""
    for dim in {dim - len(block.shape) for block in blocks for dim in block.unknown}:
        for block in blocks:
            if dim + len(block.shape) not in (*block.uniform, *block.unknown):
                other = next(block for block in blocks if dim + len(block.shape) in block.unknown)
                require_known(thread, other, other.unknown)
    if len({(block.shape, block.reduced) for block in blocks}) == 1:
        return blocks
    rank = max(len(block.shape) for block in blocks)
    padded = [(1,) * (rank - len(block.shape)) + block.shape for block in blocks]
    target = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    if any(size not in (1, wanted) for shape in padded for size, wanted in zip(shape, target, strict=True)):
        return blocks
    if rank > 2:
        return _repeated_matrices(thread, blocks, padded, target)
    single = [tuple(dim + rank - len(block.shape) for dim in block.reduced) for block in blocks]
    found: list[Block] = []
    for block, own in zip(blocks, single, strict=True):
        # What every operand has once stays once.
        dims = tuple(dim for dim in own if target[dim] > 1 or any(dim not in other for other in single))
        if block.shape != target or dims:
            grown = _grown(thread, block, target, dims)
            grown.reduced = tuple(dim for dim in own if dim not in dims)
            grown.open = block.open
            grown.uniform = tuple(dim for dim in grown.reduced if dim - rank + len(block.shape) in block.uniform)
            block = grown
        found.append(block)
    return found


def taken_for_all(block: Block, dims: Sequence[int]) -> Block:
    """The block with all of its elements along ``dims``, where one number is in all places."""
    found = Block(block.ssa, block.shape, block.dtype).counting_as(block)
    found.reduced, found.uniform = (
        tuple(dim for dim in own if dim not in dims or dim not in block.uniform) for own in (block.reduced, block.uniform)
    )
    return found


def beside(thread: ThreadBuilder, block: Block, extent: Extent) -> Block:
    """The block as it is added to a sum of which more elements count: its one element repeats."""
    flat = fold(block)
    own = flat.extent
    if any(Count.UNKNOWN in pair and pair[0] != pair[1] and Count.EITHER not in pair for pair in zip(own, extent, strict=True)):
        raise _unknown_extent(thread, "what is added to this block", "elements", block.differ)
    dims = tuple(dim for dim, (mine, sum) in enumerate(zip(own, extent, strict=True)) if mine == Count.ONE and sum == Count.ALL)
    if not dims:
        return block
    grown = _grown(thread, flat, flat.shape, dims)
    grown.reduced, grown.uniform = (tuple(d for d in known if d not in dims) for known in (flat.reduced, flat.uniform))
    return unfold(grown, block.shape)


def require_known(thread: ThreadBuilder, block: Block, dims: Sequence[int]) -> None:
    """Refuses a block of which one element or all count along one of ``dims``, where that makes a difference."""
    found = [dim for dim in dims if dim in block.unknown]
    if not found:
        return
    parts = "rows" if found == [len(block.shape) - 2] else "columns" if found == [len(block.shape) - 1] else "elements"
    raise _unknown_extent(thread, "this block", parts, block.differ)


def _unknown_extent(thread: ThreadBuilder, what: str, parts: str, differ: Sequence[Span]) -> KernelError:
    message = f"{what} has one of its {parts} in some iterations or on some cores, and all of them in others"
    remedy = "give reduced and full blocks a buffer each, or say ttl.block.broadcast(x, dims=[…]) where one element repeats"
    return thread.problem("TW112", message, notes=tuple(Note("it is made here", place) for place in differ), help=remedy)


def _repeated_matrices(
    thread: ThreadBuilder, blocks: list[Block], padded: list[tuple[int, ...]], target: tuple[int, ...]
) -> list[Block]:
    """Blocks of more than two dimensions at their common size ``target``, where that is repeating rows or columns."""
    flat: list[Block] = []
    for block, shape in zip(blocks, padded, strict=True):
        number = isinstance(block.ssa.owner, FillBlockOp)
        if not number and not grows_in_place(shape, target):
            return blocks
        whole = Block(block.ssa, (1, 1), block.dtype, reduced=(0, 1)) if number else fold(unfold(block, shape))
        flat.append(whole)
    grown = repeated(thread, flat)
    return [unfold(block, target if block.shape == folded(target) else shape) for block, shape in zip(grown, padded, strict=True)]


def _grown(thread: ThreadBuilder, block: Block, target: tuple[int, ...], dims: tuple[int, ...]) -> Block:
    owner = block.ssa.owner
    if isinstance(owner, FillBlockOp):
        if block.shape == target:
            return Block(block.ssa, target, block.dtype)
        return emit(thread, FillBlockOp, [], target, block.dtype, dict(owner.attributes))
    return broadcast(thread, block, target, dims)


def _composite(thread: ThreadBuilder, op: Composite, operands: Sequence[Block], params: dict[str, Any]) -> Block:
    """The steps of a function that the kernel API has no single call for."""
    names = {f"a{index}": block for index, block in enumerate(operands)}
    values = {param.name: params.get(param.name, param.default) for param in op.params}
    result = operands[0]
    for index, step in enumerate(op.steps):
        given: dict[str, Any] = {key: values[v[1:]] if isinstance(v, str) and v.startswith("=") else v for key, v in step.params}
        if step.op == "fill":
            result = filled(thread, given["value"], operands[0].shape, operands[0].dtype)
        else:
            chosen = BY_NAME.get(step.op) or COMPOSITE_BY_NAME[step.op]
            result = apply_op(thread, chosen, [names[name] for name in step.operands], given)
        names[f"s{index}"] = result
    return result


def emit(
    thread: ThreadBuilder,
    kind: Any,
    operands: Sequence[Block],
    shape: tuple[int, ...],
    dtype: str,
    attributes: dict[str, Attribute],
) -> Block:
    op = thread.emitter.add(kind, [block.ssa for block in operands], [value_type(shape, dtype)], attributes)
    return Block(op.results[0], shape, dtype)


def broadcast(thread: ThreadBuilder, block: Block, shape: tuple[int, ...], dims: Sequence[int]) -> Block:
    return emit(thread, BcastOp, [block], shape, block.dtype, {"dims": i64_list(dims)})


def transposed(thread: ThreadBuilder, block: Block) -> Block:
    return emit(thread, TransposeOp, [block], block.shape[::-1], COMPUTED_AS[block.dtype], {})


def product(thread: ThreadBuilder, left: Block, right: Block, dtype: str, *, transpose_right: bool = False) -> Block:
    """``transpose_right``: the tiles of the right side lie in transposed order, and each is turned by the matrix unit."""
    attributes: dict[str, Attribute] = {"transpose_b": UnitAttr()} if transpose_right else {}
    return emit(thread, MatmulOp, [left, right], (left.shape[0], right.shape[1]), COMPUTED_AS[dtype], attributes)


def reduced(
    thread: ThreadBuilder, kind: str, operands: Sequence[Block], dims: Sequence[int], dtype: str, *, exact: bool = False
) -> Block:
    """The first operand summed or maximised along ``dims``; a second one is the tile that scales it. ``exact``: whatever options
    say, no bit of an f32 may be lost."""
    shape = tuple(1 if axis in dims else size for axis, size in enumerate(operands[0].shape))
    attributes: dict[str, Attribute] = {"kind": StringAttr(kind), "dims": i64_list(dims)}
    if exact and dtype == "f32":
        if release_key(thread.build.metal) < SFPU_REDUCE_SINCE:
            message = f"ttnn {thread.build.metal} cannot reduce f32 without losing bits, which this function relies on"
            raise thread.problem("TW405", message, help="choose 0.78 or newer")
        attributes["exact"] = UnitAttr()
    return emit(thread, ReduceOp, operands, shape, COMPUTED_AS[dtype], attributes)


def require_compute(thread: ThreadBuilder, what: str) -> None:
    if thread.kind != "compute":
        message = f"arithmetic on blocks ({what}) in data-movement thread '{thread.function.name}'"
        remedy = "data-movement threads only copy; do this in the function marked @ttl.compute()"
        raise thread.problem("TW013", message, help=remedy)


def check_same(thread: ThreadBuilder, left: Block, right: Block) -> None:
    if left.shape != right.shape:
        message = f"blocks of {left.size_text} and {right.size_text} tiles do not combine"
        remedy = "each dimension must have the same size on both sides, or size 1 on one of them"
        raise thread.problem("TW101", message, label=f"{left.size_text} and {right.size_text}", help=remedy)
    if left.dtype != right.dtype:
        message = f"blocks of {left.dtype} and {right.dtype} do not combine"
        remedy = "convert one side with ttl.math.typecast"
        raise thread.problem("TW102", message, label=f"{left.dtype} and {right.dtype}", help=remedy)


def operator_op(thread: ThreadBuilder, symbol: str) -> TileOp | Composite:
    op = BY_OPERATOR.get(symbol) or COMPOSITE_BY_OPERATOR.get(symbol)
    if op is None:
        raise thread.problem("TW003", f"operator {symbol} is not supported on blocks", help="see docs/ops.md for what is")
    return op


def binary(thread: ThreadBuilder, symbol: str, left: Any, right: Any) -> Block:
    """``left symbol right`` where at least one side is a block."""
    require_compute(thread, symbol)
    return apply_pair(thread, operator_op(thread, symbol), left, right)


def apply_pair(thread: ThreadBuilder, op: TileOp | Composite, left: Any, right: Any) -> Block:
    """An op on two blocks, or on a block and a number."""
    if isinstance(left, Block) and isinstance(right, Block):
        return apply_op(thread, op, [left, right], {})
    block, number = (left, right) if isinstance(left, Block) else (right, left)
    if is_core_number(thread, number):
        value = readable(thread, block)
        other = number_block(thread, number, value)
        if other is not None:
            result = apply_op(thread, op, [value, other] if block is left else [other, value], {})
            return converted(thread, result, value.dtype)
    if not is_number(number):
        raise not_a_number(thread, number)
    number = int(number) if isinstance(number, Integral) else float(number)
    value = readable(thread, block)
    if block is left:
        check_divisor(thread, op, number)
    if op.name == "pow" and block is left and number == 1:
        return value_of(thread, value)
    if op.name == "pow" and block is left and value.dtype in INTEGER_DTYPES:
        return integer_power(thread, value, number)
    chosen = with_number(op, number, left=block is right, dtype=value.dtype, metal=thread.build.metal)
    if chosen is not None:
        return apply_op(thread, chosen[0], [value], chosen[1])
    other = filled(thread, number, value.shape, value.dtype)
    return apply_op(thread, op, [value, other] if block is left else [other, value], {})


def integer_power(thread: ThreadBuilder, value: Block, exponent: Any) -> Block:
    """Integers have no power call: repeated squares and products."""
    if not isinstance(exponent, int) or not 1 <= exponent <= LARGEST_INTEGER_POWER:
        message = f"a power of {value.dtype} needs a whole exponent, not {exponent}"
        raise thread.problem("TW004", message, help=f"from 1 to {LARGEST_INTEGER_POWER}")
    product = BY_NAME["mul"]
    result = value
    for bit in bin(exponent)[3:]:  # after the leading one: square, and multiply where the bit is set
        result = apply_op(thread, product, [result, result], {})
        if bit == "1":
            result = apply_op(thread, product, [result, value], {})
    return result


def unary(thread: ThreadBuilder, symbol: str, operand: Block) -> Block:
    require_compute(thread, symbol)
    return apply_op(thread, operator_op(thread, symbol), [operand], {})


def compare(thread: ThreadBuilder, symbol: str, left: Any, right: Any) -> Block:
    """1 where the comparison holds, else 0."""
    if not isinstance(left, Block):  # the table has the number on the right
        left, right, symbol = right, left, SWAPPED[symbol]
    return binary(thread, symbol, left, right)


MOST_BITS = 16
EXACT_IN_BF16 = 256  # whole numbers up to this


def is_core_number(thread: ThreadBuilder, value: object) -> bool:
    """Whether only the core knows the number. One that a loop changes is known if that loop can be unrolled."""
    if isinstance(value, Choice):
        return value.numbers is not None
    if not is_dynamic(value) or not is_int_like(value):
        return False
    low, high = bounds(value)
    unrollable = thread.unrolling.next_loop() is not None
    found = leaves(value)
    return high - low < 2**MOST_BITS and not (unrollable and any(thread.emitter.is_of_loop(leaf) for leaf in found))


def number_block(thread: ThreadBuilder, value: Value | Choice, like: Block) -> Block | None:
    """One tile of this number, which repeats beside ``like``; None if no tile of that dtype can be made."""
    if like.dtype not in FLOAT_DTYPES:
        return None
    if isinstance(value, Choice):
        exact = all(_exact_in_bf16(number) for number in value.numbers or ())
    else:
        exact = all(abs(end) <= EXACT_IN_BF16 for end in bounds(value))
    dtype = "bf16" if like.dtype != "f32" and exact else "f32"
    shape = (1,) * len(like.shape)
    buffer = new_buffer(thread, "number", shape, dtype, thread.emitter.span)
    place, site = acquired(thread, buffer, "reserve")
    site.store(EITHER, thread.emitter.block, thread.emitter.span)
    if isinstance(value, Choice):
        _store_chosen(thread, value, place, shape, dtype)
    else:
        _store_sum_of_bits(thread, value, place, shape, dtype)
    thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    ssa, _ = acquired(thread, buffer, "wait")
    return Block(ssa, shape, dtype).with_extent(EITHER)


def _exact_in_bf16(number: float) -> bool:
    return not math.isfinite(number) or (abs(number) < LARGEST_F32 and math.frexp(number)[0] * 256 % 1 == 0)


def _store_chosen(thread: ThreadBuilder, value: Any, place: SSAValue, shape: tuple[int, ...], dtype: str) -> None:
    """Each core stores its own number."""
    if not isinstance(value, Choice):
        thread.emitter.add(StoreOp, [filled(thread, value, shape, dtype).ssa, place])
        return
    for way, side in zip(thread.emitter.branch(value.condition), (value.when_true, value.when_false), strict=True):
        thread.emitter.enter(way)
        _store_chosen(thread, side, place, shape, dtype)
        thread.emitter.close_branch()


def _store_sum_of_bits(thread: ThreadBuilder, value: Value, place: SSAValue, shape: tuple[int, ...], dtype: str) -> None:
    low, high = bounds(value)
    thread.emitter.add(StoreOp, [filled(thread, low, shape, dtype).ssa, place])
    above = make("-", value, low)
    for bit in range((high - low).bit_length()):
        then, otherwise = thread.emitter.branch(make("==", make("%", make("//", above, 1 << bit), 2), 1))
        thread.emitter.enter(then)
        part = filled(thread, 1 << bit, shape, dtype)
        thread.emitter.add(StoreOp, [part.ssa, place], [], {"accumulate": number_attr(True)})
        thread.emitter.close_branch()
        thread.emitter.enter(otherwise)
        thread.emitter.close_branch()
