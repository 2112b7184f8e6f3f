"""The caller's tensors as a TileLang kernel wants them: padded to whole tiles, tiled dimensions last, halves as float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import fail
from tilewright.lang.tensors import from_array, to_array

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.layouts import TensorLayout


class TensorArguments:
    """``arrays`` go to the launcher; `finish` puts results back and gives what the kernel returns."""

    def __init__(self, facts: Any, given: Sequence[Any], out_idx: Sequence[int]) -> None:
        from tilewright.frontend.tilelang.symbols import View

        layouts, created = facts
        self.layouts: tuple[TensorLayout, ...] = layouts
        self.given: list[Any] = []
        self.arrays: list[Any] = []
        self.returned: list[int] = sorted({*out_idx, *created})
        sources = iter(given)
        like = next((value for value in given if hasattr(value, "__array__") or _is_torch(value)), None)
        for number, layout in enumerate(self.layouts):
            source = None if number in created or layout.made else next(sources)
            if isinstance(layout.origin, View):
                source = _reshaped(layout, self.given[layout.origin.tensor])
            if number in self.returned and (source is None or not _has_values(source)):
                source = _created(layout, like, getattr(source, "dtype", None))
            self.given.append(source)
            origin = None if isinstance(layout.origin, View) else layout.origin
            self.arrays.append(_argument(layout, source if origin is None else self.given[origin.tensor], self._integers))

    def _integers(self, number: int) -> Any:
        return _values(self.given[number], "i32")

    def finish(self, *, run: bool) -> Any:
        from tilewright.frontend.tilelang.primitives import Parts

        for layout, source, array in zip(self.layouts, self.given, self.arrays, strict=True):
            if run and layout.stored and source is not None and array is not source:
                _write_back(layout, source, array)
            if run and isinstance(layout.origin, Parts):
                _add(layout, self.given[layout.origin.tensor], array)
        results = [self.given[index] for index in self.returned]
        return None if not results else results[0] if len(results) == 1 else tuple(results)


def _argument(layout: TensorLayout, source: Any, table: Callable[[int], Any]) -> Any:
    """``table`` gives the integers of the caller's tensor of this number."""
    import numpy as np

    from tilewright.frontend.tilelang.gathers import Gather, gathered_values
    from tilewright.frontend.tilelang.primitives import Parts
    from tilewright.frontend.tilelang.symbols import View

    if layout.made and not isinstance(layout.origin, View):
        from tilewright.frontend.tilelang.positions import made_values, repeated_elements

        if layout.origin is None:
            return layout.packed(made_values(layout.made, layout.shape))
        if not _on_host(source):
            raise fail(
                "TW105", f"parts of a tensor on a device are gathered or added up ('{layout.name}')", help="pass a host tensor"
            )
        if isinstance(layout.origin, Parts):
            return layout.packed(np.zeros(layout.shape, _values(np.zeros(1), layout.dtype).dtype))
        if isinstance(layout.origin, Gather):
            return layout.packed(gathered_values(_values(source, layout.dtype), layout.origin, table))
        return layout.packed(repeated_elements(_values(source, layout.dtype), layout.origin.fixed, layout.shape))
    if not _on_host(source):
        if not layout.is_plain:
            raise fail(
                "TW105",
                f"tensor '{layout.name}' of shape {layout.shape} must lie in tiles as {layout.padded}",
                help="permute and pad it on the device first: ttnn.permute, ttnn.pad",
            )
        return source
    if layout.is_plain and _usable(source, layout):
        return source
    return layout.packed(_values(source, layout.dtype))


def _reshaped(layout: TensorLayout, tensor: Any) -> Any:
    """The same memory in another shape."""
    import numpy as np

    contiguous = tensor.flags.c_contiguous if isinstance(tensor, np.ndarray) else _is_torch(tensor) and tensor.is_contiguous()
    if not contiguous:
        raise fail("TW105", f"'{layout.name}' needs memory in order, of NumPy or torch", help="pass a contiguous host tensor")
    return tensor.reshape(layout.shape)


def _values(source: Any, dtype: str) -> Any:
    import ml_dtypes
    import numpy as np

    array = np.asarray(source) if isinstance(source, np.ndarray) else None
    if array is None:
        array = _torch_values(source) if _is_torch(source) else to_array(source)
    kinds = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32, "u32": np.uint32, "u16": np.uint16}
    if dtype == "i32" and array.dtype == np.int64 and np.abs(array).max(initial=0) > np.iinfo(np.int32).max:
        raise fail("TW105", "a number of an int64 tensor is beyond 32 bits", help="tiles hold int32")
    return array.astype(kinds[dtype])


def _write_back(layout: TensorLayout, source: Any, array: Any) -> None:
    import numpy as np

    values = layout.unpacked(array)
    old = layout.unpacked(layout.packed(_values(source, layout.dtype)))
    if values.tobytes() == old.tobytes():
        return
    if isinstance(source, np.ndarray):
        with np.errstate(over="ignore"):  # a float16 overflows to infinity
            source[...] = values.astype(source.dtype)
    elif _is_torch(source):
        from_array(source, values.astype(np.float32))
    else:
        from_array(source, values.astype(np.float32))


def _add(layout: TensorLayout, target: Any, array: Any) -> None:
    """Parts that the blocks of a kernel have written, added up onto the tensor they belong to."""
    import numpy as np

    parts = layout.unpacked(array)
    wide = np.int64 if parts.dtype.kind in "iu" else np.float64
    total = parts.sum(axis=tuple(range(layout.origin.dimensions)), dtype=wide)
    values = _values(target, layout.dtype).astype(wide) + total
    if isinstance(target, np.ndarray):
        target[...] = values.astype(target.dtype)
    else:
        from_array(target, values.astype(np.float32))


def _created(layout: TensorLayout, like: Any, dtype: Any) -> Any:
    """An output, of the library the inputs are from."""
    from tilewright.frontend.tilelang.dtypes import element_name

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


def _has_values(value: Any) -> bool:
    from tilewright.lang.tilelang_types import TensorType

    return not isinstance(value, TensorType)


def _on_host(value: Any) -> bool:
    from tilewright.execution import lives_on_device

    return not lives_on_device(value)


def _usable(value: Any, layout: TensorLayout) -> bool:
    """Whether the simulator takes the tensor as it is."""
    from tilewright.frontend.tilelang.dtypes import OTHER_INTEGERS, SMALL_INTEGERS
    from tilewright.lang.tensors import tensor_dtype

    return tensor_dtype(value) is not None and layout.element not in (*SMALL_INTEGERS, *OTHER_INTEGERS)
