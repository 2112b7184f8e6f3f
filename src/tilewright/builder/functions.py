"""``ttl.math.*`` and ``ttl.block.*`` on blocks, in every spelling the two generations have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.ir import Operation

from tilewright import hardware
from tilewright.builder.blocks import (
    BareFill,
    apply_op,
    apply_pair,
    broadcast,
    check_same,
    converted,
    emit,
    filled,
    is_core_number,
    is_number,
    product,
    readable,
    reduced,
    require_compute,
    require_known,
    taken_for_all,
    transposed,
    whole,
)
from tilewright.builder.buffers import check_function, check_product
from tilewright.builder.scans import cumsum, dropout, integer_reduction, place_of_extreme, topk
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import MATRICES_APART, Block, described, fold, folded, grows_in_place, matrices, unfold
from tilewright.dialects.attributes import i64_list
from tilewright.dialects.tile_op import FLOAT_DTYPES, INTEGER_DTYPES, Composite, TileOp
from tilewright.dialects.tile_ops import BY_NAME, BY_PYTHON, COMPOSITE_BY_NAME, COMPOSITE_BY_PYTHON, FREE_TYPECASTS, TYPECASTS
from tilewright.dialects.ttl import MEAN, ReshapeOp
from tilewright.dtypes import BY_PRECISION
from tilewright.lang.buffers import checked_tile
from tilewright.lang.names import ANY_OPERAND_NAMES, BLOCK_FUNCTIONS, DIMS_NAMES, OPERAND_NAMES, PARAMETER_NAMES, dtype_name
from tilewright.narrowing import as_tuple, is_list

Value = Block | BareFill | tuple[Block, Block]


def by_position(name: str, args: list[Any], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Blocks that are given by name, ``where(condition=…, true_value=…, false_value=…)``, as arguments in their order."""
    if not named:
        return args, named
    op = None if name in BLOCK_FUNCTIONS else BY_PYTHON.get(name) or COMPOSITE_BY_PYTHON[name]
    count = op.arity if op is not None else 2 if name.endswith("matmul") else 1
    places = OPERAND_NAMES.get(name.partition(".")[2], ANY_OPERAND_NAMES[:count])
    taken = {param.name for param in op.params} if op is not None else set[str]()
    found, rest = list(args), dict(named)
    for spellings in places[len(args) :]:
        given = next((word for word in spellings if word in rest and word not in taken), None)
        if given is None:
            break
        found.append(rest.pop(given))
    return found, rest


def parameters(thread: ThreadBuilder, op: TileOp | Composite, rest: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    visible = [param for param in op.params if not param.hidden]
    names = [param.name for param in visible]
    known = f"its parameters are {', '.join(names)}" if names else "it has no parameters"
    if len(rest) > len(names):
        raise thread.problem("TW004", f"{op.name} takes {op.arity + len(names)} arguments at most", help=known)
    params = dict(zip(names, rest, strict=False))
    spellings = PARAMETER_NAMES.get(op.name, {})
    for word, value in named.items():
        key = word if word in names else spellings.get(word, word)
        if key not in names or key in params:
            raise thread.problem("TW004", f"{op.name} has no free argument '{word}'", help=known)
        params[key] = value
    missing = [param.name for param in visible if param.default is None and param.name not in params]
    if missing:
        raise thread.problem("TW004", f"{op.name} needs '{missing[0]}'", help=op.summary)
    return params


def require_float(thread: ThreadBuilder, what: str, block: Block) -> None:
    """The matrix unit, and what else reads whole tiles, knows floats only."""
    if block.dtype not in FLOAT_DTYPES:
        remedy = f"it takes {', '.join(FLOAT_DTYPES)}; typecast first"
        raise thread.problem("TW107", f"{what} does not work on {block.dtype}", help=remedy)


def require_rows_and_columns(thread: ThreadBuilder, what: str, block: Block) -> None:
    if len(block.shape) < 2:
        remedy = "give the buffer a shape of (rows, columns) in tiles"
        raise thread.problem("TW101", f"{what} takes two dimensions, found {block.shape}", help=remedy)


def take(
    args: list[Any], named: dict[str, Any], thread: ThreadBuilder, allowed: tuple[str, ...]
) -> tuple[list[Block], dict[str, Any]]:
    """Splits a call into its blocks and its named settings."""
    named = {"dims" if key in DIMS_NAMES and "dims" in allowed else key: value for key, value in named.items()}
    for key in named:
        if key not in allowed:
            known = f"named arguments: {', '.join(allowed)}" if allowed else "it takes a block and nothing else"
            raise thread.problem("TW004", f"no argument '{key}' here", help=known)
    blocks = [arg for arg in args if isinstance(arg, Block)]
    if not blocks:
        raise thread.problem("TW004", "this function takes a block", help="pass a block of a buffer or an expression")
    return blocks, named


def dims_of(thread: ThreadBuilder, value: Any, rank: int) -> tuple[int, ...]:
    if value is None:
        return tuple(range(rank))
    given = as_tuple(value)
    if not given or not all(isinstance(dim, int) and not isinstance(dim, bool) for dim in given):
        raise thread.problem("TW004", f"dims is {value!r}", help="whole numbers, for example dims=[0]")
    missing = [dim for dim in given if not -rank <= dim < rank]
    if missing:
        remedy = f"dimensions from {-rank} to {rank - 1}: 0 runs over rows, 1 over columns"
        raise thread.problem("TW004", f"the block has no dimension {missing[0]}", help=remedy)
    dims = tuple(sorted({dim % rank for dim in given}))
    if len(dims) < len(given):
        raise thread.problem("TW004", f"dims={value!r} names a dimension twice", help=f"dims={list(dims)}")
    return dims


def shape_of(thread: ThreadBuilder, value: Any) -> tuple[int, ...]:
    """A size in tiles that the call names."""
    if not is_list(value) or not all(isinstance(size, int) and size > 0 for size in value):
        remedy = "a size in tiles, for example shape=(2, 3) or shape=other.shape"
        raise thread.problem("TW004", f"shape is {described(value)}", help=remedy)
    return tuple(value)


def require_one_matrix(thread: ThreadBuilder, what: str, block: Block) -> None:
    if matrices(block.shape) != 1:
        raise thread.problem("TW101", f"{what} of a block of {block.describe()}", help=MATRICES_APART)


def reduction(kind: str, *, counts: bool = False) -> Callable[..., Block]:
    """``counts``: how many elements there are matters. A block of one number has them all."""

    def reduce(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
        blocks, settings = take(args, _kept_dimensions(thread, named), thread, ("dims", "shape", "scaler"))
        settings = _by_place(thread, f"reduce_{kind}", args, settings)
        if "scaler" in settings:
            blocks.append(settings["scaler"])
        source = whole(thread, blocks[0])
        if source.dtype not in INTEGER_DTYPES or len(blocks) > 1:
            require_float(thread, f"reduce_{kind}", source)
        require_rows_and_columns(thread, f"reduce_{kind}", source)
        dims = dims_of(thread, settings.get("dims"), len(source.shape))
        shape = tuple(1 if axis in dims else size for axis, size in enumerate(source.shape))
        _expect_shape(thread, settings.get("shape"), shape)
        dims = _folded_dims(thread, f"reduce_{kind}", source, dims)
        source = fold(source)
        require_known(thread, source, dims)
        # A fill has its number in all places: what nobody asked to reduce of it is full.
        full = [dim for dim in source.uniform if dim not in dims] if source.open else []
        if counts:
            source = taken_for_all(source, dims)
        dims = tuple(dim for dim in dims if dim not in source.reduced)
        if not dims:
            return unfold(source, shape)  # one element is its own sum, mean and maximum
        if source.dtype in INTEGER_DTYPES:
            return unfold(integer_reduction(thread, kind, source, dims), shape)
        # A scaler tile is an operand; a reserved block given after it only names the place of the result.
        scalers = [block for block in blocks[1:] if block.held is None or block.held.kind == "wait"]
        operands = [source, *(readable(thread, block) for block in scalers[:1])]
        for block in operands[1:]:
            if set(block.shape) != {1}:
                remedy = "its first row multiplies every tile of the block; without one the compiler makes a tile of ones"
                raise thread.problem("TW101", f"a scaler of {block.describe()}, where one tile belongs", help=remedy)
            if block.dtype != source.dtype:
                check_same(thread, Block(source.ssa, block.shape, source.dtype), block)
        result = reduced(thread, kind, operands, dims, source.dtype)
        result.counting_as(source)
        result.reduced = tuple(sorted({*dims, *(dim for dim in source.reduced if dim not in full)}))
        result.uniform = tuple(dim for dim in result.uniform if dim in result.reduced)
        return unfold(result, shape)

    return reduce


def _by_place(thread: ThreadBuilder, what: str, args: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with those that are given by place: dimensions, then a shape."""
    plain = [arg for arg in args if not isinstance(arg, Block)]
    free = [name for name in ("dims", "shape") if name not in settings]
    extra = plain[len(free) :] + [value for value in plain if is_number(value) and "dims" in settings]
    if not isinstance(settings.get("scaler"), (Block, type(None))):
        extra.append(settings["scaler"])
    if extra:
        remedy = f"{what}(x, dims=[1]); a scaler is a block of one tile, a number is a factor of the result"
        raise thread.problem("TW004", f"{described(extra[0])} is no argument of {what}", help=remedy)
    return {**settings, **dict(zip(free, plain, strict=False))}


def _kept_dimensions(thread: ThreadBuilder, named: dict[str, Any]) -> dict[str, Any]:
    """NumPy's and torch's word for what a reduction does here in any case."""
    for key in ("keepdims", "keepdim"):
        if not named.get(key, True):
            remedy = f"leave {key} out: a reduced dimension stays, with one tile, and its element repeats where the block is used"
            raise thread.problem("TW004", f"{key}=False: a block has rows and columns", help=remedy)
    return {key: value for key, value in named.items() if key not in ("keepdims", "keepdim")}


def _folded_dims(thread: ThreadBuilder, what: str, block: Block, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions to reduce, as rows and columns of the folded block. Rows of all matrices are reduced together or not at all."""
    rank = len(block.shape)
    outer = {dim for dim in range(rank - 2) if block.shape[dim] > 1}
    rows = rank - 2 in dims
    if outer and (rows or outer & set(dims)) and not (rows and outer <= set(dims)):
        raise thread.problem("TW101", f"{what} over {list(dims)} of a block of {block.describe()}", help=MATRICES_APART)
    return tuple(dim - rank + 2 for dim in dims if dim >= rank - 2)


def reduce_min(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    """The matrix unit has no minimum: it is the negated maximum of the negated block."""
    first = next((arg for arg in args if isinstance(arg, Block)), None)
    if first is not None and first.dtype in INTEGER_DTYPES:
        return reduction("min")(thread, args, named)
    negative = [apply_op(thread, BY_NAME["neg"], [arg], {}) if index == 0 and isinstance(arg, Block) else arg
                for index, arg in enumerate(args)]  # fmt: skip
    return apply_op(thread, BY_NAME["neg"], [reduction("max")(thread, negative, named)], {})


def reduce_mean(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    blocks = [arg for arg in args if isinstance(arg, Block)]
    for block in blocks:
        require_float(thread, "reduce_mean", block)
    if not blocks:
        return reduction("sum")(thread, args, named)  # which says what is missing
    source = whole(thread, blocks[0])
    total = reduction("sum")(thread, [source if arg is blocks[0] else arg for arg in args], named)
    count = 1
    dims = set(total.reduced).difference(source.reduced)
    for dim in dims:
        count *= source.shape[dim] * hardware.TILE_ROWS
    if count == 1:
        return total
    mean = apply_op(thread, BY_NAME["mul_scalar"], [total], {"scalar": 1.0 / count})
    assert isinstance(mean.ssa.owner, Operation)
    mean.ssa.owner.attributes[MEAN] = i64_list(sorted(dim - len(source.shape) + 2 for dim in dims))
    return mean


def _expect_shape(thread: ThreadBuilder, given: Any, expected: tuple[int, ...]) -> None:
    if given is not None and (found := shape_of(thread, given)) != expected:
        raise thread.problem("TW101", f"shape={found}, but the result has {expected} tiles", help="leave shape= out")


def call_function(thread: ThreadBuilder, name: str, args: list[Any], named: dict[str, Any]) -> Value:
    require_compute(thread, f"ttl.{name}")
    args, named = by_position(name, args, named)
    if name in BLOCK_FUNCTIONS:
        check_function(thread, name, BLOCK_FUNCTIONS[name], args, named)
        return HANDLERS[BLOCK_FUNCTIONS[name]](thread, args, named)
    op = BY_PYTHON.get(name) or COMPOSITE_BY_PYTHON[name]
    return _exponential(thread, op, args, dict(named)) if op.name == "exp" else call_op(thread, op, args, named)


def call_op(thread: ThreadBuilder, op: TileOp | Composite, args: list[Any], named: dict[str, Any]) -> Block:
    """Blocks first, then the op's parameters by position or name. A number in place of a block uses the scalar form."""
    tiles, rest = args[: op.arity], args[op.arity :]
    if len(tiles) < op.arity:
        remedy = f"ttl.math.reduce_{op.name}(x, dims=[1])" if f"math.reduce_{op.name}" in BLOCK_FUNCTIONS else op.summary
        raise thread.problem("TW004", f"{op.name} takes {op.arity} blocks, found {len(tiles)}", help=remedy)
    if op.arity == 2 and not rest and not named and any(is_number(tile) or is_core_number(thread, tile) for tile in tiles):
        if not any(isinstance(tile, Block) for tile in tiles):
            raise thread.problem("TW004", f"{op.name} of two numbers", help="use Python arithmetic on numbers")
        return apply_pair(thread, op, tiles[0], tiles[1])
    if op.arity > 2:
        tiles = _numbers_filled(thread, tiles)
    for tile in tiles:
        if not isinstance(tile, Block):
            raise thread.problem("TW004", f"{op.name} takes blocks, not {described(tile)}", help=op.summary)
    params = parameters(thread, op, rest, named)
    return apply_op(thread, op, tiles, params)


def _numbers_filled(thread: ThreadBuilder, tiles: list[Any]) -> list[Any]:
    """Numbers in place of some blocks become blocks: ``where(condition, x, 0.0)``."""
    like = next((tile for tile in tiles if isinstance(tile, Block)), None)
    if like is None:
        return tiles
    return [filled(thread, tile, like.shape, like.dtype) if is_number(tile) else tile for tile in tiles]


def _exponential(thread: ThreadBuilder, op: Any, args: list[Any], named: dict[str, Any]) -> Block:
    """``exp(x, approx=, scale=, skip_clamp_check=, iterations=)``: a tile has exactly 8 iterations.

    ``skip_clamp_check`` allows, and does not ask for, the form without the clamp of very negative inputs. That one leaves
    the vector unit stepping through DST and takes the part of the replay buffer that matmul and reductions need, so it is
    not used.
    """
    if named.pop("iterations", 8) != 8:
        raise thread.problem("TW004", "iterations of exp must be 8, which is the whole tile")
    named.pop("skip_clamp_check", None)
    scale = named.pop("scale", 1.0)
    if scale == 1.0:
        return call_op(thread, op, args, named)
    approximate = bool(named.pop("approx", False))
    scaled = BY_NAME["exp_scaled"] if approximate else COMPOSITE_BY_NAME["exp_of_product"]
    return call_op(thread, scaled, args, {**named, "scale": scale})


def matmul(thread: ThreadBuilder, left: Any, right: Any) -> Block:
    require_compute(thread, "@")
    for side in (left, right):
        if not isinstance(side, Block):
            raise thread.problem("TW004", f"matmul takes blocks, not {described(side)}", help="block @ block")
    check_product(thread, [left, right])
    first, second = whole(thread, left), whole(thread, right)
    for side in (first, second):
        require_float(thread, "matmul", side)
        require_rows_and_columns(thread, "matmul", side)
    sizes = f"{first.describe()} @ {second.describe()}"
    if first.shape[-1] != second.shape[-2]:
        remedy = "columns of the left block are rows of the right one"
        raise thread.problem("TW101", f"inner sizes of matmul differ: {sizes}", help=remedy)
    if matrices(second.shape) != 1:
        raise thread.problem("TW101", f"a product with several matrices at once: {sizes}", help=MATRICES_APART)
    outer = (1,) * (len(second.shape) - len(first.shape)) + first.shape[:-2]
    shape = (*outer, first.shape[-2], second.shape[-1])
    first, second = fold(first), fold(second)
    # The two source registers have a format each; the product is as exact as the finer of the two.
    dtype = max(first.dtype, second.dtype, key=BY_PRECISION.index)
    return unfold(product(thread, first, second, dtype), shape)


def _broadcast(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    blocks, settings = take(args, named, thread, ("dims", "shape"))
    source = readable(thread, blocks[0])
    if source.dtype not in INTEGER_DTYPES:
        require_float(thread, "broadcast", source)
    require_rows_and_columns(thread, "broadcast", source)
    shape = settings.get("shape")
    if shape is None and len(blocks) > 1:
        shape = blocks[1].shape
    if shape is None:
        return _open_broadcast(thread, source, settings.get("dims"))
    target = shape_of(thread, shape)
    sizes = tuple(zip(source.shape, target, strict=False))
    single = [axis for axis, (small, large) in enumerate(sizes) if small == 1 and (large != 1 or axis in source.reduced)]
    dims = dims_of(thread, settings.get("dims", single or None), len(source.shape))
    if (
        any(source.shape[dim] != 1 for dim in dims)
        or len(target) != len(source.shape)
        or any(small != large and axis not in dims for axis, (small, large) in enumerate(sizes))
    ):
        message = f"a block of {source.shape} tiles cannot be repeated along {list(dims)} to {target}"
        raise thread.problem("TW101", message, help="dimensions in dims= have size 1, all others keep their size")
    if not grows_in_place(source.shape, target):
        message = f"a block of {source.shape} tiles is repeated along {list(dims)} to {target}"
        raise thread.problem("TW101", message, help=MATRICES_APART)
    inner = tuple(dim - len(target) + 2 for dim in dims if dim >= len(target) - 2)
    source = fold(source)
    result = broadcast(thread, source, folded(target), inner)
    return unfold(result.counting_as(source, lambda own: (dim for dim in own if dim not in inner)), target)


def _open_broadcast(thread: ThreadBuilder, source: Block, given: Any) -> Block:
    """Without a size it takes that of the expression around it, or of the block it is stored to."""
    dims = dims_of(thread, given, len(source.shape))
    if any(source.shape[dim] != 1 for dim in dims):
        message = f"a block of {source.shape} tiles cannot be repeated along {list(dims)}"
        raise thread.problem("TW101", message, help="dimensions in dims= have size 1")
    result = Block(source.ssa, source.shape, source.dtype, open=True)
    result.counting_as(source, lambda own: (dim for dim in own if dim not in dims))
    result.reduced = tuple(sorted({*dims, *source.reduced}))
    return result


def _transpose(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    blocks, _ = take(args, named, thread, ())
    source = whole(thread, blocks[0])
    require_float(thread, "transpose", source)
    require_rows_and_columns(thread, "transpose", source)
    require_one_matrix(thread, "transpose", source)
    shape = (*source.shape[:-2], source.shape[-1], source.shape[-2])
    source = fold(source)
    return unfold(transposed(thread, source).counting_as(source, lambda own: sorted(1 - dim for dim in own)), shape)


def _squeeze(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    """Without ``dims`` every dimension of one tile goes, down to two."""
    blocks, settings = take(args, named, thread, ("dims",))
    source = whole(thread, blocks[0])
    given = settings.get("dims", next((arg for arg in args if not isinstance(arg, Block)), None))
    rank = len(source.shape)
    single = tuple(dim for dim, size in enumerate(source.shape) if size == 1)[: max(0, rank - 2)]
    dims = single if given is None else dims_of(thread, given, rank)
    if any(source.shape[dim] != 1 for dim in dims):
        message = f"a block of {source.shape} tiles cannot lose {list(dims)}"
        raise thread.problem("TW101", message, help="only dimensions of one tile can be dropped")
    return _reshaped(thread, source, tuple(size for dim, size in enumerate(source.shape) if dim not in dims))


def _unsqueeze(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    blocks, settings = take(args, named, thread, ("dims",))
    source = whole(thread, blocks[0])
    given = settings.get("dims", next((arg for arg in args if not isinstance(arg, Block)), None))
    if given is None:
        raise thread.problem("TW004", "unsqueeze needs the dimensions to add", help="ttl.block.unsqueeze(x, dims=[0])")
    count = len(given) if is_list(given) else 1
    rank = len(source.shape) + count
    dims = dims_of(thread, given, rank)
    sizes = iter(source.shape)
    return _reshaped(thread, source, tuple(1 if dim in dims else next(sizes) for dim in range(rank)))


def _reshaped(thread: ThreadBuilder, source: Block, shape: tuple[int, ...]) -> Block:
    if len(shape) >= 2 and folded(shape) == folded(source.shape) and (not source.reduced or shape[-2:] == source.shape[-2:]):
        return unfold(fold(source), shape)  # the same rows and columns of tiles
    require_known(thread, source, source.unknown)
    if source.reduced:
        remedy = "store it to a buffer first"
        raise thread.problem("TW101", "a reduced block keeps its dimensions: one of them has one element", help=remedy)
    kept = [[size for size in folded(each) if size != 1] for each in (source.shape, shape)]
    if kept[0] != kept[1]:
        message = f"a block of {source.shape} tiles as one of {shape}"
        remedy = "rows and columns of tiles stay what they are; add and drop dimensions in front of them"
        raise thread.problem("TW101", message, help=remedy)
    return unfold(emit(thread, ReshapeOp, [fold(source)], folded(shape), source.dtype, {}), shape)


def _fill(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block | BareFill:
    like = next((arg for arg in args if isinstance(arg, Block)), None)
    checked_tile(named.get("tile"), thread.emitter.span)
    numbers = [arg for arg in (*args, named.get("value")) if is_number(arg)]
    shape = named.get("shape", like.shape if like else None)
    if shape is None and len(args) == len(numbers) == 1 and is_number(args[0]):
        return BareFill(args[0])
    dtype = dtype_name(str(named["dtype"])) if "dtype" in named else (like.dtype if like else _expected_dtype(thread))
    if len(numbers) != 1 or shape is None or dtype is None:
        raise thread.problem("TW004", "fill needs a number and a shape", help="ttl.block.fill(0.0, shape=out.shape)")
    result = filled(thread, numbers[0], shape_of(thread, shape), dtype)
    result.open = True
    if like is None and "dtype" not in named:
        result.weak = numbers[0]
    return result


def _expected_dtype(thread: ThreadBuilder) -> str:
    """What a fill without dtype is for: the block that was reserved last, or the only dtype this kernel has."""
    reserved = [held.buffer.dtype for held in thread.held if held.kind == "reserve"]
    present = {buffer.dtype for buffer in thread.build.buffers}
    if reserved:
        return reserved[-1]
    return present.pop() if len(present) == 1 else "bf16"


def _matmul_call(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    if set(named) - {"dtype"} or len(args) not in (2, 3):
        raise thread.problem("TW004", "matmul takes two blocks", help="a @ b")
    result = matmul(thread, args[0], args[1])
    if "dtype" in named:
        result = typecast(thread, [result, named["dtype"]], {})
    place = args[2] if len(args) == 3 else None  # where the result goes
    if place is not None and not (isinstance(place, Block) and place.held is not None and place.held.kind == "reserve"):
        remedy = "a third block is the reserved one that the result is stored to; to add a block write a @ b + c"
        raise thread.problem("TW004", f"matmul takes two blocks, not also {described(place)}", help=remedy)
    return result


def typecast(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    wanted = args[1] if len(args) > 1 else named.get("dtype")
    dtype = dtype_name(str(wanted))
    if not args or not isinstance(args[0], Block):
        raise thread.problem("TW004", "typecast takes a block and a dtype", help='ttl.math.typecast(x, "float32")')
    source = readable(thread, args[0])
    possible = ", ".join(sorted({target for start, target in TYPECASTS | FREE_TYPECASTS if start == source.dtype}))
    if dtype is None:
        raise thread.problem("TW004", f"typecast to {described(wanted)}", help=f"from {source.dtype}: {possible}")
    if source.dtype == dtype:
        return source
    if (source.dtype, dtype) not in TYPECASTS | FREE_TYPECASTS:
        message = f"no conversion from {source.dtype} to {dtype}"
        raise thread.problem("TW107", message, help=f"from {source.dtype}: {possible}")
    return converted(thread, source, dtype)


HANDLERS: dict[str, Callable[..., Value]] = {
    "reduce_sum": reduction("sum", counts=True),
    "reduce_max": reduction("max"),
    "reduce_min": reduce_min,
    "reduce_mean": reduce_mean,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "fill": _fill,
    "matmul": _matmul_call,
    "typecast": typecast,
    "cumsum": cumsum,
    "argmax": partial(place_of_extreme, "argmax", False),
    "argmin": partial(place_of_extreme, "argmin", True),
    "topk": topk,
    "dropout": dropout,
}
assert set(HANDLERS) == set(BLOCK_FUNCTIONS.values()), "names.py and the handlers list the same functions"
