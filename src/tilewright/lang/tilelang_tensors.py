"""Tensors of TileLang: what a kernel says about them (shapes that may hold sizes known only at the call), and the caller's
tensors as the kernel wants them: padded to whole tiles, tiled dimensions last, halves as float32.

A kernel may also want tensors that no caller has: positions of elements, elements of another tensor in another order, parts of
sums. They are made before the launch, or added up after it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import fail
from tilewright.integers import ARITHMETIC, COMPARISONS, Leaf, Node, Value
from tilewright.lang.kernel import KernelFunction, outer_names
from tilewright.lang.tensors import TRAVELS_AS, from_array, is_tensor, tensor_dtype, to_array
from tilewright.narrowing import as_tuple, is_array, is_dict, is_list, is_tuple
from tilewright.options import Options
from tilewright.program import TensorSpec
from tilewright.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray


OTHER_INTEGERS = ("int16", "int64")  # held as int32
SMALL_INTEGERS = ("int8", "uint8")  # held as bfloat16
OTHER_NAMES = {"half": "float16", "float8_e4m3": "float8_e4m3fn"}


def element_name(dtype: Any) -> str:
    """``T.float16``, ``torch.float16``, ``numpy.float16``, ``"float16"`` -> ``float16``."""
    name = getattr(dtype, "name", None)
    word = (name if isinstance(name, str) else str(dtype)).strip("<>' ").split(".")[-1].strip("'> ").lower()
    return OTHER_NAMES.get(word, word)


class Dimension:
    """``T.dynamic("m")``, ``T.const("M")``: a size that the arguments of the call decide."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.size: int | None = None

    def __repr__(self) -> str:
        return self.name or "a size computed from others"

    def _computed(self, *_other: Any) -> Dimension:
        """A size that follows from this one; it has no name of its own, and is computed again once this one is known."""
        return Dimension("")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _computed
    __neg__ = _computed


class TensorType:
    """``T.Tensor((M, K), "float16")``."""

    def __init__(self, shape: Any, dtype: Any = "float32", data: Any = None, *_rest: Any, **_hints: Any) -> None:
        self.shape = as_tuple(shape)
        self.dtype = dtype
        self.data = data  # of the tensor that it is another shape of

    def known_shape(self) -> tuple[int, ...] | None:
        sizes = [size.size if isinstance(size, Dimension) else size for size in self.shape]
        return None if any(size is None for size in sizes) else tuple(int(size) for size in sizes)  # pyright: ignore

    def match(self, shape: tuple[int, ...], name: str, span: Any) -> None:
        """Sizes the call decides get their value here; the others must agree."""
        if len(shape) != len(self.shape):
            remedy = "pass a tensor of that rank"
            raise fail("TW109", f"'{name}' has shape {shape}, the kernel declares {self.shape}", span, help=remedy)
        for wanted, found in zip(self.shape, shape, strict=True):
            if isinstance(wanted, Dimension):
                if wanted.size is None:
                    wanted.size = found
                wanted = wanted.size
            if wanted != found:
                remedy = "pass a tensor of that shape"
                raise fail("TW104", f"'{name}' has shape {shape}, the kernel declares {self.shape}", span, help=remedy)


class TensorFactory:
    """``T.Tensor(shape, dtype)`` and ``T.Tensor[shape, dtype]``."""

    def __call__(self, shape: Any, dtype: Any = "float32", *rest: Any, **hints: Any) -> TensorType:
        return TensorType(shape, dtype, *rest, **hints)

    def __getitem__(self, key: Any) -> TensorType:
        shape, dtype = key if is_tuple(key) and len(key) == 2 else (key, "float32")
        return TensorType(shape, dtype)


class DynamicFactory:
    """``T.dynamic("m")`` and ``T.dyn["m"]``; several names give several sizes."""

    def __call__(self, names: str, _dtype: Any = "int32") -> Any:
        words = [word.strip() for word in names.split(",")]
        return Dimension(words[0]) if len(words) == 1 else tuple(Dimension(word) for word in words)

    def __getitem__(self, names: str) -> Any:
        return self(names)


class TileLangFunction(KernelFunction):
    """A function in TileLang as the front end reads it: with declared types of tensors, and sizes that a call decides."""

    is_eager = False  # the function itself launches: ``@tilelang.jit`` on it

    def __init__(self, function: Callable[..., Any], grid: Any, options: Options) -> None:
        super().__init__(function, grid, options)
        self.types = _annotations(function)
        self.known_sizes: dict[str, int] = {}  # of an eager one, by the names T.const gives them

    def sizes(self, values: Sequence[Any]) -> dict[str, int]:
        """Values of the kernel's dynamic sizes for these arguments."""
        found: dict[str, int] = {}
        for name, value in zip(self.signature.parameters, values, strict=True):
            kind = self.types.get(name)
            if kind is None or value is None or isinstance(value, TensorType) or not is_tensor(value):
                continue
            shape = tuple(int(size) for size in value.shape)
            fresh = TensorType(tuple(_fresh(size, found) for size in kind.shape), kind.dtype)
            fresh.match(shape, name, self.span)
            found |= {size.name: size.size for size in fresh.shape if isinstance(size, Dimension) and size.size is not None}
        return found


def _fresh(size: Any, known: dict[str, int]) -> Any:
    if not isinstance(size, Dimension):
        return size
    return known[size.name] if size.name in known else Dimension(size.name)


def _annotations(function: Callable[..., Any]) -> dict[str, TensorType]:
    """Declared tensor types; with postponed annotations they are evaluated here."""
    found: dict[str, TensorType] = {}
    for name, kind in inspect.get_annotations(function).items():
        if isinstance(kind, str):
            try:
                kind = eval(kind, dict(outer_names(function)))
            except Exception:
                continue
        if isinstance(kind, TensorType):
            found[name] = kind
    return found


class Undeclared:
    """A tensor that was not given; the annotation in the kernel's body says what it is."""

    def __repr__(self) -> str:
        return "a tensor that the kernel declares"


UNDECLARED = Undeclared()


# What `Tensor.made` says of a tensor that no caller has.
ALONG, ROWS, COLUMNS, SCALARS = "along", "rows", "columns", "scalars"  # positions along its only dimension, …, its slice's number
ELEMENTS = "elements"  # each element of another tensor, repeated along a last dimension
GATHERED = "gathered"  # elements of another tensor, in another order
PARTS = "parts"  # of sums onto another tensor
VIEW = "view"  # another tensor in another shape
ELEMENT = "element"  # of an integer tensor, as an op of integers: its number, then the indices


@record
class Origin:
    """The tensor (by its number) that a made one repeats the elements of; ``fixed`` are the indices that never change."""

    tensor: int
    fixed: tuple[int | None, ...]


@record
class View:
    """The tensor (by its number) whose elements, in order, have another shape here."""

    tensor: int


@record
class Gather:
    """Where the elements of a made tensor are: indices of the tensor with this number, by the variables of its dimensions."""

    tensor: int
    indices: tuple[Value, ...]
    variables: tuple[Leaf, ...]


@record
class Parts:
    """The tensor (by its number) that the parts are added to, and how many of the made one's dimensions tell parts apart."""

    tensor: int
    dimensions: int


@record
class TensorLayout:
    """``order`` are the tensor's axes: untiled ones first, then those of tile rows and columns (rows: None for a vector)."""

    name: str
    shape: tuple[int, ...]  # as the user has it
    dtype: str
    lead: tuple[int, ...]
    rows: int | None
    columns: int
    padded: tuple[int, ...]  # untiled sizes, then tiled ones in whole tiles
    element: str = ""  # the type as the kernel names it
    made: str = ""  # what the launcher fills it with; empty for the user's tensors
    origin: Any = None  # of what it holds of another tensor: an `Origin`, a `Gather`, a `View`, `Parts`
    stored: bool = True  # the kernel writes to it

    @property
    def spec(self) -> TensorSpec:
        element = self.element if self.element in TRAVELS_AS else ""
        return TensorSpec(name=self.name, shape=self.padded, dtype=self.dtype, element=element)

    @property
    def is_plain(self) -> bool:
        """The user's tensor itself can be used."""
        return self.padded == self.shape and self.lead == tuple(range(len(self.lead)))

    @property
    def order(self) -> tuple[int, ...]:
        return (*self.lead, *(() if self.rows is None else (self.rows,)), self.columns)

    def packed(self, array: NDArray[Any]) -> NDArray[Any]:
        """The values in a padded array of this layout; padding is zero."""
        import numpy as np

        inner = np.transpose(array, self.order)
        if self.rows is None:
            inner = np.expand_dims(inner, -2)
        result = np.zeros(self.padded, array.dtype)
        result[tuple(slice(0, size) for size in inner.shape)] = inner
        return result

    def unpacked(self, padded: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        sizes = [self.shape[axis] for axis in self.order]
        if self.rows is None:
            sizes.insert(len(sizes) - 1, 1)
        inner = padded[tuple(slice(0, size) for size in sizes)]
        if self.rows is None:
            inner = np.squeeze(inner, -2)
        return np.transpose(inner, np.argsort(self.order))


@record
class CallerTensors:
    """Every tensor of a program, and which of them (by their numbers) the caller gets instead of giving them."""

    layouts: tuple[TensorLayout, ...]
    created: tuple[int, ...]  # by ``T.empty`` in the kernel
    returned: tuple[int, ...] = ()  # by ``out_idx``: the caller of the kernel gives their types

    @property
    def inputs(self) -> CallerTensors:
        """The same for a caller that has no types to give."""
        return CallerTensors(self.layouts, tuple(sorted({*self.created, *self.returned})))

    def owner(self, number: int) -> int:
        """Whose tensor it is that a write to this one changes: sums and other shapes of a tensor belong to it."""
        origin = self.layouts[number].origin
        return self.owner(origin.tensor) if isinstance(origin, (View, Parts)) else number

    @property
    def taken(self) -> list[TensorLayout]:
        return [layout for number, layout in enumerate(self.layouts) if number not in self.created and not layout.made]


class TensorArguments:
    """``arrays`` go to the launcher; `finish` puts results back and gives what the kernel returns."""

    def __init__(self, facts: CallerTensors, given: Sequence[Any]) -> None:
        created = facts.created
        self.layouts = facts.layouts
        self.given: list[Any] = []
        self.arrays: list[Any] = []
        self.returned: list[int] = sorted({*facts.returned, *created})
        sources = iter(given)
        like = next((value for value in given if hasattr(value, "__array__") or _is_torch(value)), None)
        for number, layout in enumerate(self.layouts):
            source = None if number in created or layout.made else next(sources)
            if isinstance(layout.origin, View):
                source = _reshaped(layout, self.given[layout.origin.tensor])
            if number in self.returned and (source is None or isinstance(source, TensorType)):
                source = _created(layout, like, getattr(source, "dtype", None))
            self.given.append(source)
            made = bool(layout.made) and not isinstance(layout.origin, View)
            self.arrays.append(self._made(layout) if made else _argument(layout, source))

    def _made(self, layout: TensorLayout) -> Any:
        import numpy as np

        origin = layout.origin
        if origin is None:
            return layout.packed(made_values(layout.made, layout.shape))
        source = self._content(origin.tensor)
        if not _on_host(source):
            remedy = "pass a host tensor"
            raise fail("TW105", f"parts of a tensor on a device are gathered or added up ('{layout.name}')", help=remedy)
        if isinstance(origin, Parts):
            return layout.packed(np.zeros(layout.shape, _values(np.zeros(1), layout.dtype).dtype))
        values = _values(source, layout.dtype)
        if isinstance(origin, Gather):
            return layout.packed(_gathered(values, origin, lambda number: _values(self.given[number], "i32")))
        chosen = values[tuple(slice(None) if index is None else index for index in origin.fixed)]
        return layout.packed(np.ascontiguousarray(np.broadcast_to(chosen[..., None], layout.shape)))

    def _content(self, number: int) -> Any:
        """The values of a tensor before this one: the caller's, or those that were made for the kernel (a gather of a gather)."""
        made = self.given[number] is None
        return self.layouts[number].unpacked(self.arrays[number]) if made else self.given[number]

    @property
    def callers(self) -> list[Any]:
        """The caller's tensor in place of every one of the kernel's; None for those that are made for it."""
        return [None if layout.made else source for layout, source in zip(self.layouts, self.given, strict=True)]

    def finish(self, *, run: bool) -> Any:
        for layout, source, array in zip(self.layouts, self.given, self.arrays, strict=True):
            if run and layout.stored and source is not None and array is not source:
                _write_back(layout, source, array)
            if run and isinstance(layout.origin, Parts):
                _add(layout, self.given[layout.origin.tensor], array)
        results = [self.given[index] for index in self.returned]
        return None if not results else results[0] if len(results) == 1 else tuple(results)


def _argument(layout: TensorLayout, source: Any) -> Any:
    """A tensor of the caller: itself where the launcher takes it as it is."""
    if not _on_host(source):
        if not layout.is_plain:
            message = f"tensor '{layout.name}' of shape {layout.shape} must lie in tiles as {layout.padded}"
            raise fail("TW105", message, help="permute and pad it on the device first: ttnn.permute, ttnn.pad")
        return source
    usable = tensor_dtype(source) is not None and layout.element not in (*SMALL_INTEGERS, *OTHER_INTEGERS)
    return source if layout.is_plain and usable else layout.packed(_values(source, layout.dtype))


def _reshaped(layout: TensorLayout, tensor: Any) -> Any:
    """The same memory in another shape."""

    contiguous = tensor.flags.c_contiguous if is_array(tensor) else _is_torch(tensor) and tensor.is_contiguous()
    if not contiguous:
        raise fail("TW105", f"'{layout.name}' needs memory in order, of NumPy or torch", help="pass a contiguous host tensor")
    return tensor.reshape(layout.shape)


def _values(source: Any, dtype: str) -> Any:
    import ml_dtypes
    import numpy as np

    array = np.asarray(source) if is_array(source) else None
    if array is None:
        array = _torch_values(source) if _is_torch(source) else to_array(source)
    kinds = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32, "u32": np.uint32, "u16": np.uint16}
    if dtype == "i32" and array.dtype == np.int64 and np.abs(array).max(initial=0) > np.iinfo(np.int32).max:
        raise fail("TW105", "a number of an int64 tensor is beyond 32 bits", help="tiles hold int32")
    return array.astype(kinds[dtype])


def _write_back(layout: TensorLayout, source: Any, array: Any) -> None:
    values = layout.unpacked(array)
    old = layout.unpacked(layout.packed(_values(source, layout.dtype)))
    if values.tobytes() != old.tobytes():
        _assign(source, values)


def _add(layout: TensorLayout, target: Any, array: Any) -> None:
    """Parts that the blocks of a kernel have written, added up onto the tensor they belong to."""
    import numpy as np

    parts = layout.unpacked(array)
    wide = np.int64 if parts.dtype.kind in "iu" else np.float64
    total = parts.sum(axis=tuple(range(layout.origin.dimensions)), dtype=wide)
    _assign(target, _values(target, layout.dtype).astype(wide) + total)


def _assign(target: Any, values: Any) -> None:
    import numpy as np

    if is_array(target):
        with np.errstate(over="ignore"):  # a float16 overflows to infinity
            target[...] = values.astype(target.dtype)
    else:
        from_array(target, values.astype(np.float32))


def _created(layout: TensorLayout, like: Any, dtype: Any) -> Any:
    """An output, of the library the inputs are from."""
    name = element_name(layout.element if dtype is None else dtype)
    name = {"float": "float32"}.get(name, name)
    if _is_torch(like):
        import torch  # pyright: ignore

        return torch.zeros(layout.shape, dtype=getattr(torch, name))  # pyright: ignore
    import ml_dtypes
    import numpy as np

    return np.zeros(layout.shape, getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else np.dtype(name))


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _torch_values(value: Any) -> Any:
    plain = value.detach().cpu()
    return plain.float().numpy() if plain.is_floating_point() else plain.numpy()


def _on_host(value: Any) -> bool:
    from tilewright.lang.tensors import lives_on_device

    return not lives_on_device(value)


# Tensors that are made ----------------------------------------------------------------------------------------------------


def made_values(kind: str, shape: tuple[int, ...]) -> Any:
    """The contents of a made tensor: positions along its only dimension, along its rows or columns, or each slice its number."""
    import numpy as np

    axis = {ALONG: 0, ROWS: 0, COLUMNS: 1, SCALARS: 0}[kind]
    return np.ascontiguousarray(np.broadcast_to(np.indices(shape, np.float32)[axis], shape))


def _gathered(values: Any, gather: Gather, tensor: Callable[[int], Any]) -> Any:
    """The contents of a made tensor, from the tensor's own; ``tensor`` gives those of another by its number."""
    import numpy as np

    ranges = [np.arange(leaf.low, leaf.high + 1) for leaf in gather.variables]
    places = dict(zip(gather.variables, np.meshgrid(*ranges, indexing="ij", sparse=True), strict=True))
    shape = tuple(len(each) for each in ranges)
    positions = [np.broadcast_to(_evaluated(index, places, tensor), shape) for index in gather.indices]
    inside = np.logical_and.reduce([(at >= 0) & (at < size) for at, size in zip(positions, values.shape, strict=True)])
    clipped = tuple(np.clip(at, 0, size - 1) for at, size in zip(positions, values.shape, strict=True))
    return np.where(inside, values[clipped], np.zeros((), values.dtype))


def _evaluated(value: Value, places: dict[Leaf, Any], tensor: Callable[[int], Any]) -> Any:
    import numpy as np

    if isinstance(value, Leaf):
        return places[value]
    if not isinstance(value, Node):
        return np.asarray(value)
    arguments = [_evaluated(argument, places, tensor) for argument in value.args]
    if value.op == ELEMENT:
        table = tensor(int(arguments[0]))
        inside = tuple(np.clip(at, 0, size - 1) for at, size in zip(arguments[1:], table.shape, strict=True))
        return table[inside].astype(np.int64)
    logic = {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}
    named: dict[str, Callable[..., Any]] = {"min": np.minimum, "max": np.maximum, "select": np.where, **logic}
    return (named.get(value.op) or ARITHMETIC.get(value.op) or COMPARISONS[value.op])(*arguments)


# As data of a file ----------------------------------------------------------------------------------------------------------

STORED = {kind.__name__: kind for kind in (CallerTensors, TensorLayout, Origin, View, Gather, Parts, Leaf, Node)}


def plain(value: Any) -> Any:
    """A record of this file with only what JSON has."""
    if type(value).__name__ in STORED:
        return {"kind": type(value).__name__, **{field.name: plain(getattr(value, field.name)) for field in fields(value)}}
    return [plain(each) for each in value] if is_list(value) else value


def from_plain(value: Any) -> Any:
    """What `plain` was given; a ``KeyError`` or ``TypeError`` for anything else."""
    if is_dict(value):
        named = {str(name): from_plain(each) for name, each in value.items()}
        return STORED[named.pop("kind")](**named)
    return tuple(from_plain(each) for each in value) if is_list(value) else value
