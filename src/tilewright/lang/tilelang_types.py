"""What a TileLang kernel says about its tensors: shapes that may hold sizes known only at the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import fail

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
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
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
        shape, dtype = key if isinstance(key, tuple) and len(key) == 2 else (key, "float32")
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
