"""What a TileLang kernel says about its tensors: shapes that may hold sizes known only at the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.diagnostics import fail
from tilewright.lang.kernel import KernelFunction
from tilewright.lang.tensors import is_tensor
from tilewright.narrowing import as_tuple, is_tuple
from tilewright.options import Options

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
            raise fail(
                "TW109", f"'{name}' has shape {shape}, the kernel declares {self.shape}", span, help="pass a tensor of that rank"
            )
        for wanted, found in zip(self.shape, shape, strict=True):
            if isinstance(wanted, Dimension):
                if wanted.size is None:
                    wanted.size = found
                wanted = wanted.size
            if wanted != found:
                raise fail(
                    "TW104",
                    f"'{name}' has shape {shape}, the kernel declares {self.shape}",
                    span,
                    help="pass a tensor of that shape",
                )


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


def outer_scope(function: Callable[..., Any]) -> dict[str, Any]:
    """Global and captured names of a function."""
    scope = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            continue
    return scope


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
                kind = eval(kind, outer_scope(function))
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
