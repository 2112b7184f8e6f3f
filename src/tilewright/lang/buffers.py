"""Circular (dataflow) buffers as the user's code makes them: like a tensor, from a dtype, or in a tensor's shard; who shares
memory.

Which buffers may share memory, the compiler finds out by itself (`ttl-share-buffers`). A group asks for it where it would not
be needed; boundaries between uses need no action, because buffers share a queue only if its order keeps their blocks apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright import hardware
from tilewright.diagnostics import KernelError, Span, caller_span, fail
from tilewright.grid import chip_place, cores_of
from tilewright.lang.kernel import Build, current_build, thread_only
from tilewright.lang.names import BUFFER_ARGUMENTS, dtype_name
from tilewright.lang.tensors import KernelTensor, describe, is_tensor, not_a_tensor, tiles_of
from tilewright.narrowing import as_tuple, is_integer
from tilewright.program import ROW_MAJOR, TensorSpec
from tilewright.records import record
from tilewright.tile_pages import pages_by_place, shard_tiles


class AllocationGroup:
    """Buffers made with ``allocation_group=`` this get one piece of L1, if they are never in use together."""


def make_dfb_allocation_group() -> AllocationGroup:
    return AllocationGroup()


def group_number(groups: list[AllocationGroup], group: Any) -> int | None:
    """The number that the IR knows a group by."""
    if group is None:
        return None
    if not isinstance(group, AllocationGroup):
        remedy = "make one with ttl.make_dfb_allocation_group()"
        raise fail("TW004", f"allocation_group is {group!r}", caller_span("make_dfb", "make_dataflow_buffer_like"), help=remedy)
    if group not in groups:
        groups.append(group)
    return groups.index(group)


@record
class DFBReset:
    """``ttl.reset_dfbs(reset, dfbs=[…])``: the listed buffers are empty here."""

    participants: tuple[Any, ...] = ()


@record
class DFBReconfiguration:
    """``ttl.reconfigure_dfbs(boundary)``: what comes behind it uses other buffers."""

    participants: tuple[Any, ...] = ()
    discard_dfb_state: bool = False


BOUNDARIES: dict[str, type] = {"reset_dfbs": DFBReset, "reset_all_dfbs": DFBReset, "reconfigure_dfbs": DFBReconfiguration}


class CircularBuffer:
    """A queue of blocks between threads of one core. ``shape`` is the block's, in tiles."""

    def __init__(
        self,
        *,
        shape: tuple[int, ...],
        dtype: str,
        block_count: int,
        index: int,
        span: Span,
        tensor: KernelTensor | None = None,
        first_tile: int = 0,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.block_count = block_count
        self.index = index
        self.span = span
        self.tensor = tensor  # the argument whose shard is its memory
        self.first_tile = first_tile  # of that shard
        self.name = ""
        self.origin = "user"  # or "compiler"
        self.tile: tuple[int, int] = (hardware.TILE_ROWS, hardware.TILE_COLS)  # one row of elements, of a block that counts those
        self.group: int | None = None  # of buffers that the author says may share memory

    @property
    def buffer_factor(self) -> int:
        return self.block_count

    @property
    def tiles(self) -> int:
        return self.block_count * prod(self.shape)

    wait, reserve, push, pop, publish = (thread_only(word, "a buffer") for word in ("wait", "reserve", "push", "pop", "publish"))

    def __repr__(self) -> str:
        return f"CircularBuffer({self.name or self.index}, shape={self.shape}, block_count={self.block_count})"


def make_circular_buffer_like(
    tensor: Any,
    shape: Sequence[int] | None = None,
    buffer_factor: int | None = None,
    allocation_group: Any = None,
    **arguments: Any,
) -> CircularBuffer:
    """A buffer for blocks of ``shape`` tiles with the dtype of ``tensor``; ``block_count`` blocks (``buffer_factor`` before)."""
    build = current_build("make_circular_buffer_like(…)")
    span = caller_span("make_circular_buffer_like", "make_dataflow_buffer_like")
    count = buffer_factor
    tile = checked_tile(arguments.pop("tile", None), span, tensor.spec.tile if isinstance(tensor, KernelTensor) else None)
    for name, value in arguments.items():
        if BUFFER_ARGUMENTS.get(name) != "buffer_factor":
            raise fail("TW004", f"a buffer has no argument '{name}'", span, help="shape= and block_count=")
        if count is not None:
            raise fail("TW004", "block_count and buffer_factor are two names of one argument", span, help="give one of them")
        count = value
    if shape is None:
        raise fail("TW004", "the buffer needs shape=, the size of one block in tiles", span, help="for example shape=(2, 2)")
    if not is_tensor(tensor):
        raise not_a_tensor("a buffer is made like a tensor, not like", tensor, span)
    dims = checked_shape(shape, span)
    row = row_elements(tensor, shape)
    buffer = CircularBuffer(
        shape=(*dims[:-1], 1) if row else dims,
        dtype=describe(tensor, "tensor", span).dtype if not isinstance(tensor, KernelTensor) else tensor.spec.dtype,
        block_count=checked_count(2 if count is None else count, span),
        index=len(build.buffers),
        span=span,
    )
    buffer.group = group_number(build.groups, allocation_group)
    buffer.tile = (1, row) if row else tile
    return build.add_buffer(buffer)


def row_elements(tensor: Any, shape: Any) -> int:
    """The last size of a block that counts elements: one of whole rows of a row-major tensor. 0 if it counts tiles.

    A tensor that is not made of tiles has no others, and neither has a block that the tensor has too few tiles for.
    """
    spec = tensor.spec if isinstance(tensor, KernelTensor) else None
    if spec is None or spec.layout != ROW_MAJOR:
        return 0
    last = spec.shape[-1]
    sizes: tuple[int, ...] = tuple(as_tuple(shape))
    tiles = tiles_of(spec)
    fits = len(sizes) > 1 and all(have >= want for have, want in zip(tiles[::-1], sizes[::-1], strict=False))
    whole = len(spec.shape) > 1 and not spec.shape[-1] % hardware.TILE_COLS and not spec.shape[-2] % hardware.TILE_ROWS
    return last if sizes[-1:] == (last,) and not (fits and whole) else 0


def checked_tile(tile: Any, span: Span, like: tuple[int, int] | None = None) -> tuple[int, int]:
    """``tile=(16, 32)``, or an object of ttnn's with that ``tile_shape``; that of the tensor if there is none."""
    whole = (hardware.TILE_ROWS, hardware.TILE_COLS)
    if tile is None:
        return like or whole
    given = as_tuple(getattr(tile, "tile_shape", tile))
    sizes = next((each for each in hardware.TILE_SIZES if each == given), None)
    if sizes is None:
        known = ", ".join("x".join(map(str, each)) for each in hardware.TILE_SIZES)
        raise fail("TW115", f"tiles of {'x'.join(map(str, given))}", span, help=f"the chip's tiles here are {known}")
    if like is not None and sizes != like:
        found = "x".join(map(str, like))
        raise fail("TW115", f"tile={sizes} for a tensor in tiles of {found}", span, help="leave tile= out: it is the tensor's")
    return sizes


MOST_TILES = 2**31 - 1  # of what 32-bit integers of the device count; L1 holds far less, which is said with its size


def checked_shape(shape: Any, span: Span) -> tuple[int, ...]:
    dims = as_tuple(shape)
    if not dims or not all(is_integer(dim) for dim in dims):
        raise fail("TW108", f"block shape {shape!r} is not a tuple of integers", span, help="give whole tiles, e.g. shape=(2, 2)")
    if any(dim > MOST_TILES for dim in dims):
        raise fail("TW108", f"block shape {dims} is larger than any memory", span, help="blocks of a buffer lie in L1")
    if any(dim < 1 for dim in dims):
        raise fail("TW108", f"block shape {dims} has a dimension below 1", span, help="a block is at least one tile")
    whole = tuple(int(dim) for dim in dims)
    return (1, *whole) if len(whole) == 1 else whole


def checked_count(count: Any, span: Span) -> int:
    if not is_integer(count) or not 1 <= count <= MOST_TILES:
        remedy = "a buffer holds at least one block; two let producer and consumer work at the same time"
        raise fail("TW213", f"block_count is {count!r}", span, help=remedy)
    return int(count)


SHARDED_CONFIG = "ttnn.create_sharded_memory_config(tensor.shape, core_grid, ttnn.ShardStrategy.HEIGHT)"


def make_dfb(
    dtype: Any, shape: Sequence[int], block_count: int = 2, tile: Any = None, allocation_group: Any = None
) -> CircularBuffer:
    """A buffer for blocks of ``shape`` tiles of ``dtype``."""
    build = current_build("make_dfb(…)")
    span = caller_span("make_dfb")
    name = dtype_name(str(getattr(dtype, "name", None) or dtype))
    if name is None:
        raise fail("TW004", f"{dtype!r} is no dtype of a tile", span, help='for example "bf16" or ttnn.float32')
    sizes = checked_tile(tile, span)
    buffer = CircularBuffer(
        shape=checked_shape(shape, span),
        dtype=name,
        block_count=checked_count(block_count, span),
        index=len(build.buffers),
        span=span,
    )
    buffer.tile = sizes
    buffer.group = group_number(build.groups, allocation_group)
    return build.add_buffer(buffer)


def make_tensor_backed_dfb(
    tensor: Any, shape: Sequence[int] | None = None, block_count: int = 1, byte_offset: int = 0
) -> CircularBuffer:
    """A buffer in the memory of ``tensor``'s shard on each core, ``block_count`` blocks of ``shape`` tiles from ``byte_offset``.

    Without a shape one block is the whole shard.
    """
    build = current_build("make_tensor_backed_dfb(…)")
    span = caller_span("make_tensor_backed_dfb")
    if not isinstance(tensor, KernelTensor):
        raise fail("TW111", "a tensor-backed buffer needs a tensor argument of the kernel", span, help="give the tensor itself")
    spec = tensor.spec
    _check_sharded(spec, span)
    dims = shard_tiles(spec) if shape is None else checked_shape(shape, span)
    buffer = CircularBuffer(
        shape=dims,
        dtype=spec.dtype,
        block_count=checked_count(block_count, span),
        index=len(build.buffers),
        span=span,
        tensor=tensor,
        first_tile=_first_tile(byte_offset, spec, span),
    )
    _check_range(buffer, spec, span)
    _check_cores(build, spec, span)
    return build.add_buffer(buffer)


def _check_sharded(spec: TensorSpec, span: Span) -> None:
    if spec.memory == "l1" and spec.shard_cores:
        return
    if spec.memory == "l1" and spec.shard_shape is not None:
        found = f"its shards of {spec.shard_shape} elements are not whole tiles"
    elif spec.sharding:
        found = "its shards lie in DRAM" if spec.memory != "l1" else "it has more than two sharded dimensions"
    else:
        found = "it is not sharded"
    remedy = f"place it with {SHARDED_CONFIG}, in tiles"
    raise fail("TW111", f"tensor '{spec.name}' cannot hold a buffer: {found}", span, help=remedy)


def _first_tile(byte_offset: Any, spec: TensorSpec, span: Span) -> int:
    size = hardware.tile_bytes(spec.dtype)
    if not is_integer(byte_offset) or byte_offset < 0 or byte_offset % size:
        raise fail("TW111", f"byte_offset is {byte_offset!r}", span, help=f"a multiple of {size}, the bytes of a tile")
    return int(byte_offset) // size


def _check_range(buffer: CircularBuffer, spec: TensorSpec, span: Span) -> None:
    rows, columns = shard_tiles(spec)
    wanted = buffer.first_tile + buffer.tiles
    if wanted > rows * columns:
        message = f"the buffer ends at tile {wanted} of a shard of '{spec.name}', which has {rows}x{columns}"
        raise fail("TW111", message, span, help="block_count blocks of shape tiles must fit one shard")


def _check_cores(build: Build, spec: TensorSpec, span: Span) -> None:
    held = pages_by_place(spec)
    for core in cores_of(build.grid):
        place = chip_place(core, build.grid, build.columns)
        if place not in held:
            raise _no_shard(core, spec, build, span)


def _no_shard(core: tuple[int, ...], spec: TensorSpec, build: Build, span: Span) -> KernelError:
    count = len(spec.shard_cores)
    return fail(
        "TW111",
        f"core {core} of the grid {build.grid} holds no shard of '{spec.name}', which lies on {count} core{'s' * (count != 1)}",
        span,
        help="use the grid of cores the tensor is sharded over",
    )
