"""Tensors a kernel may be called with: NumPy arrays, torch tensors, and anything that looks like a ttnn tensor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.diagnostics import Diagnostic, KernelError, Span, fail
from tilewright.dtypes import DTYPES, WORDS
from tilewright.lang.names import dtype_name
from tilewright.narrowing import class_of, is_array
from tilewright.program import ROW_MAJOR, ROWS, TensorSpec
from tilewright.tile_pages import block_places, cores_in_order, shard_grid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NUMPY_DTYPES = {dtype.api: dtype.name for dtype in DTYPES if dtype.word}
TRAVELS_AS = {"float16": "f32"}  # element types no tile holds, and the dtype that keeps all their bits
BIT_DTYPES = WORDS


PLACEMENT = ("layout", "memory_config", "padded_shape")  # of ttnn tensors


class BFloat16View:
    """A float32 NumPy array that the kernel sees as bfloat16; results are written back into it. Made by ``ttl.bf16``."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = "bfloat16"


class KernelTensor:
    """What the kernel's body sees in place of a tensor argument: its shape and dtype, not its values."""

    def __init__(self, spec: TensorSpec, index: int, source: Any = None) -> None:
        self.spec = spec
        self.index = index
        self.source = source
        self.is_opened = False  # more of the tensor was read than `visible` says

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.logical_shape or self.spec.shape

    @property
    def dtype(self) -> Any:
        return getattr(self.source, "dtype", self.spec.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        return tiles_of(self.spec)

    def __getattr__(self, word: str) -> Any:
        source = self.__dict__.get("source")
        if source is None or word.startswith("__"):
            raise AttributeError(word)
        found = getattr(source, word)
        self.is_opened = self.is_opened or word not in PLACEMENT
        return found

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"tensor {self.name}{list(self.shape)} {self.spec.dtype}"


def tiles_of(spec: TensorSpec) -> tuple[int, ...]:
    """The shape in tiles; a vector is one row of tiles high. What moves by rows has a tile for each of them."""
    shape = (1, *spec.shape) if len(spec.shape) == 1 else spec.shape
    if spec.layout == ROWS:
        return (*shape[:-1], 1)
    down, across = spec.tile
    rows, cols = shape[-2], shape[-1]
    return (*shape[:-2], -(-rows // down), -(-cols // across))


def is_tensor(value: Any) -> bool:
    """Anything with a shape and a dtype; a number of NumPy's or torch's is a number, one that ttnn keeps in a tile is not."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return False
    shape = value.shape
    return not (isinstance(shape, tuple) and len(shape) == 0) or hasattr(value, "padded_shape")  # pyright: ignore


def describe(value: Any, name: str, span: Span | None = None) -> TensorSpec:
    """What the compiler must know of a tensor argument."""
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, KernelTensor):
        return value.spec
    if not is_tensor(value):
        raise not_a_tensor(f"argument '{name}' is not a tensor but", value, span)
    shape, logical = stored_shape(value), tuple(int(size) for size in value.shape)
    dtype = tensor_dtype(value)
    if dtype is None:
        remedy = "convert it to bfloat16, float32, bfloat8_b, int32, uint32 or uint16, for example array.astype(numpy.float32)"
        raise fail("TW106", f"tensor '{name}' has dtype {value.dtype}, which tiles cannot hold", span, help=remedy)
    padded_from = logical if logical != shape else ()
    element = element_of(value)
    element = element if element in TRAVELS_AS else ""
    spec = TensorSpec(name=name, shape=shape, dtype=dtype, element=element, logical_shape=padded_from, **_placement(value))
    if (tile := tile_of(value)) != spec.tile:
        spec = replace(spec, tile=tile)
        if tile not in hardware.TILE_SIZES or spec.sharding or dtype not in BIT_DTYPES:
            kind = "" if tile not in hardware.TILE_SIZES else "sharded and " if spec.sharding else f"{dtype} and "
            message = f"tensor '{name}' is {kind}in {'x'.join(map(str, tile))} tiles"
            raise fail("TW115", message, span, help="keep it in tiles of 32x32: leave tile= of ttnn.from_torch out")
    if spec.layout == ROW_MAJOR and (spec.sharding or dtype not in BIT_DTYPES):
        found = "sharded" if spec.sharding else dtype
        remedy = "give from_torch layout=ttnn.TILE_LAYOUT, or call ttnn.to_layout(tensor, ttnn.TILE_LAYOUT)"
        raise fail("TW106", f"tensor '{name}' is {found} and stored row by row, not in tiles", span, help=remedy)
    if spec.layout != ROW_MAJOR or 0 in spec.shape:  # of rows, the body says whether they move as such (`in_rows`)
        check_aligned(spec, span)
    return spec


def in_rows(spec: TensorSpec, span: Span) -> TensorSpec:
    """A row-major tensor of a kernel whose blocks count elements."""
    if spec.shape[-1] > hardware.TILE_ELEMENTS:
        message = f"rows of '{spec.name}' have {spec.shape[-1]} elements, more than the {hardware.TILE_ELEMENTS} of a tile"
        raise fail("TW114", message, span, help="make the buffers in tiles, or reshape the tensor to shorter rows")
    return replace(spec, layout=ROWS)


def tile_of(value: Any) -> tuple[int, int]:
    """Rows and columns of the tiles of a tensor, of ttnn's or another."""
    found = getattr(value, "tile", None) if hasattr(value, "padded_shape") and not _is_row_major(value) else None
    found = value.get_tile() if found is None and hasattr(value, "get_tile") and not _is_row_major(value) else found
    sizes = getattr(found, "tile_shape", None)
    return (hardware.TILE_ROWS, hardware.TILE_COLS) if sizes is None else (int(sizes[0]), int(sizes[1]))


def visible(name: str, value: Any) -> tuple[Any, ...]:
    """What a program may depend on of a tensor: all but its values, and how its library writes its type and place."""
    spec = describe(value, name)
    if value is spec:
        return (spec,)
    kind = class_of(value)
    found = [getattr(value, word, None) for word in PLACEMENT]
    placement = [str(part() if callable(part) else part) for part in found if part is not None]
    return spec, kind.__module__, kind.__qualname__, getattr(value.dtype, "str", None) or str(value.dtype), *placement


def not_a_tensor(message: str, value: Any, span: Span | None) -> KernelError:
    word = type(value).__name__
    found = "None" if value is None else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
    remedy = "call the kernel with NumPy, torch or ttnn tensors"
    remedy += "; numpy.array(…) makes one of a list" if isinstance(value, (list, tuple)) else ""
    return fail("TW106", f"{message} {found}", span, help=remedy)


def is_writable(value: Any) -> bool:
    """Results come back in place, so arrays that are written must allow it."""
    flags = getattr(value.array if isinstance(value, BFloat16View) else value, "flags", None)
    return bool(getattr(flags, "writeable", True))


def stored_shape(value: Any) -> tuple[int, ...]:
    """Shape in memory: the last two dimensions are rounded up to whole tiles, with zeros. ttnn does that with tiled tensors, the
    host with arrays.

    A vector is the first row of its tiles in ttnn, a number the first element of one.
    """
    if not hasattr(value, "padded_shape"):
        return padded_to_tiles(tuple(int(size) for size in value.shape))
    shape = tuple(int(size) for size in value.padded_shape)
    if len(shape) >= 2 or _is_row_major(value):
        return shape
    columns = shape[0] if shape else 1
    return (hardware.TILE_ROWS, -(-columns // hardware.TILE_COLS) * hardware.TILE_COLS)


def padded_to_tiles(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Rows and columns in whole tiles."""
    if len(shape) < 2:
        return shape
    sizes = zip(shape[-2:], (hardware.TILE_ROWS, hardware.TILE_COLS), strict=True)
    return (*shape[:-2], *(-(-size // tile) * tile for size, tile in sizes))


def check_aligned(spec: TensorSpec, span: Span | None) -> None:
    """What is left are tensors whose memory has no padding: rows of elements, and tensors without any."""
    rows, cols = spec.tile
    if len(spec.shape) < 2:
        remedy = "reshape it to (1, n) padded to tiles"
        raise fail("TW105", f"tensor '{spec.name}' has shape {spec.shape}; tiles need two dimensions", span, help=remedy)
    if spec.shape[-2] % rows or spec.shape[-1] % cols or 0 in spec.shape:
        padded = padded_to_tiles((*spec.shape[:-2], spec.shape[-2] or rows, spec.shape[-1] or cols))
        message = f"tensor '{spec.name}' of shape {spec.shape} does not divide into {rows}x{cols} tiles"
        raise fail("TW105", message, span, help=f"pad it to {padded}")


def tensor_dtype(value: Any) -> str | None:
    dtype = value.dtype
    name = getattr(dtype, "name", None)
    if isinstance(name, str) and name in NUMPY_DTYPES:
        return NUMPY_DTYPES[name]
    return TRAVELS_AS.get(element_of(value)) or dtype_name(str(dtype) if name is None else str(name))


def element_of(value: Any) -> str:
    """``float16`` of NumPy's, torch's and ttnn's spelling."""
    name = getattr(value.dtype, "name", None)
    return (name if isinstance(name, str) else str(value.dtype)).rpartition(".")[2].lower()


def element_notes(tensors: Iterable[TensorSpec], span: Span | None) -> tuple[Diagnostic, ...]:
    """What travels as another type than the caller's, said once."""
    names = ", ".join(f"'{spec.name}'" for spec in tensors if spec.element)
    if not names:
        return ()
    message = f"float16 travels as float32, which keeps its bits: {names}"
    remedy = "results are rounded to float16 when they are handed back; bfloat16 halves the traffic"
    return (Diagnostic(code="TW106", message=message, span=span, help=remedy, severity="note"),)


def _placement(value: Any) -> dict[str, Any]:
    """Layout and memory of tensors that have them (ttnn's and its stand-in's)."""
    facts: dict[str, Any] = {}
    if _is_row_major(value):
        facts["layout"] = ROW_MAJOR
    config = getattr(value, "memory_config", None)
    if not callable(config):
        return facts
    settings = config()
    text = str(getattr(settings, "buffer_type", settings)).upper()
    facts["memory"] = "l1" if "L1" in text else "dram"
    return {**facts, **_sharding(settings, stored_shape(value))}


def _is_row_major(value: Any) -> bool:
    return "ROW_MAJOR" in str(getattr(value, "layout", "")).upper()


def _sharding(settings: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """How a tensor is cut into shards, and which core holds which."""
    layout = str(getattr(settings, "memory_layout", "")).upper()
    kind = next((name for name in ("height", "width", "block") if name.upper() + "_SHARDED" in layout), "")
    if not kind:
        return {"sharding": "nd"} if "SHARDED" in layout else {}
    shard = settings.shard_spec
    if shard is None:
        return {"sharding": "nd"}
    size = tuple(int(length) for length in shard.shape)
    if size[0] % hardware.TILE_ROWS or size[1] % hardware.TILE_COLS:
        return {"sharding": kind, "shard_shape": size}
    facts = {"sharding": kind, "shard_shape": size}
    ranges, row_wise = shard.grid.ranges(), "COL" not in str(shard.orientation).upper()
    shards = shard_grid(TensorSpec(name="", shape=shape, dtype="", shard_shape=size))
    places = block_places(ranges, shards, row_wise=row_wise) if kind == "block" else cores_in_order(ranges, row_wise=row_wise)
    return {**facts, "shard_cores": tuple(places[: shards[0] * shards[1]])}


def bf16(array: Any) -> BFloat16View:
    """``ttl.bf16(array)``: use a float32 array as bfloat16 tensor; values round on the way in, results come back in place."""
    if str(getattr(array, "dtype", "")) != "float32":
        raise fail("TW106", "ttl.bf16 takes a float32 NumPy array", help="array.astype(numpy.float32)")
    return BFloat16View(array)


def TensorAccessor(tensor: Any) -> Any:
    """The tensor itself: older scripts wrap tensors before they slice them."""
    return tensor


def to_array(value: Any) -> NDArray[Any]:
    """Elements as float32 (bf16 and f32 tensors) or as their own integers, row by row in memory."""
    import numpy as np

    dtype = tensor_dtype(value)
    host = _padded(value)
    if dtype == "bf16":
        return _round_to_bf16(host).astype(np.float32, order="C")
    if dtype in ("f32", "bfp8_b", "bfp4_b"):
        return np.ascontiguousarray(host, dtype=np.float32)
    return np.ascontiguousarray(host)


def elements(value: Any) -> NDArray[Any]:
    """The same, without what fills up the last tiles."""
    return _cut(value, to_array(value)).reshape(tuple(int(size) for size in value.shape))


def _padded(value: Any) -> NDArray[Any]:
    """The elements with those that fill up the last tiles."""
    import numpy as np

    host = _host_array(value)
    whole = stored_shape(value)
    host = host.reshape((1,) * (len(whole) - host.ndim) + host.shape)
    missing = [(0, length - size) for length, size in zip(whole, host.shape, strict=True)]
    return np.pad(host, missing) if any(after for _, after in missing) else host


def to_bits(value: Any) -> NDArray[Any]:
    """Elements as the unsigned integers that memory holds; a NaN keeps its bits."""
    import numpy as np

    dtype = tensor_dtype(value)
    assert dtype in BIT_DTYPES, f"{dtype} has no bits per element"
    array = _round_to_bf16(_padded(value)) if dtype == "bf16" else to_array(value)
    return np.ascontiguousarray(array).view(BIT_DTYPES[dtype])


def from_array(value: Any, array: NDArray[Any]) -> None:
    """Writes elements into ``value`` in place, rounded to what it holds."""
    if isinstance(value, BFloat16View):
        value.array[...] = _round_to_bf16(_cut(value, array)).astype(value.array.dtype).reshape(value.array.shape)
        return
    if _is_torch(value):
        _write_torch(value, _cut(value, array))
        return
    import numpy as np

    target = _host_array(value)
    inside = _cut(value, array)
    with np.errstate(over="ignore"):  # a float16 overflows to infinity, as it does in arithmetic
        target[...] = inside.reshape(target.shape).astype(target.dtype)


def _cut(value: Any, array: NDArray[Any]) -> NDArray[Any]:
    """What the caller's tensor has room for of an array in whole tiles."""
    whole, shape = stored_shape(value), tuple(int(size) for size in value.shape)
    sizes = (1,) * (len(whole) - len(shape)) + shape
    return array.reshape(whole)[tuple(slice(size) for size in sizes)]


def from_bits(value: Any, bits: NDArray[Any]) -> None:
    """The inverse of `to_bits`, in place."""
    import ml_dtypes
    import numpy as np

    dtype = tensor_dtype(value)
    element = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32}.get(dtype or "")
    contiguous = np.ascontiguousarray(bits)
    array = contiguous if element is None else contiguous.view(element)
    from_array(value, array.astype(np.float32) if dtype == "bf16" and _is_torch(value) else array)


def _round_to_bf16(array: Any) -> NDArray[Any]:
    import ml_dtypes
    import numpy as np

    return np.asarray(array).astype(ml_dtypes.bfloat16)


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _write_torch(value: Any, array: NDArray[np.float32]) -> None:
    import numpy as np
    import torch  # pyright: ignore

    source = torch.from_numpy(np.array(array)).reshape(value.shape)  # pyright: ignore
    with torch.no_grad():  # pyright: ignore
        value.copy_(source)


def _host_array(value: Any) -> NDArray[Any]:
    """The NumPy array behind a host tensor. Stand-in tensors keep theirs in ``array``."""

    if isinstance(value, BFloat16View):
        return value.array
    if is_array(value):
        return value
    if _is_torch(value):
        plain = value.detach().cpu()
        return plain.float().numpy() if plain.is_floating_point() else plain.numpy()
    inner = getattr(value, "array", None)
    if inner is None:
        remedy = "pass NumPy or torch tensors to the simulator"
        raise fail("TW106", f"{type(value).__name__} has no values on the host", help=remedy)
    return inner


def lives_on_device(tensor: Any) -> bool:
    """Whether ``tensor`` is the real ttnn's, not NumPy's, torch's or the stand-in's."""
    return type(tensor).__module__.partition(".")[0] in ("ttnn", "_ttnn")

