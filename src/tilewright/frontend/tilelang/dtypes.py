"""TileLang's names of element types, and the tile formats that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.frontend.tilelang.trouble import Trouble

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reading import Reading

TILE_FORMATS = {
    "float16": "f32",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
    "tfloat32": "f32",
    "int32": "i32",
    "uint32": "u32",
    "uint16": "u16",
    "bool": "bf16",
    "bf16": "bf16",
    "f32": "f32",
    "i32": "i32",
}
OTHER_INTEGERS = ("int16", "int64")
TILE_FORMATS.update(dict.fromkeys(OTHER_INTEGERS, "i32"))
SMALL_INTEGERS = ("int8", "uint8")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
TILE_FORMATS.update(dict.fromkeys((*SMALL_INTEGERS, *SMALL_FLOATS), "bf16"))
OTHER_NAMES = {"half": "float16", "float8_e4m3": "float8_e4m3fn"}
INFINITY = {"float16": 65504.0}


class DataType(str):
    """``T.float16``: a string that can be called to convert, as in ``T.float32(0)``."""

    __slots__ = ()

    def __call__(self, value: Any) -> Any:
        from tilewright.frontend.tilelang.elements import converted

        return converted(self, value)

    @property
    def bits(self) -> int:
        digits = "".join(character for character in self.partition("_")[0] if character.isdigit())
        return int(digits) if digits else {"float": 32, "half": 16, "bool": 8}.get(str(self), 32)

    def as_torch(self) -> Any:
        """``torch.float16`` of ``T.float16``."""
        import torch  # pyright: ignore

        return getattr(torch, OTHER_NAMES.get(str(self), str(self)))  # pyright: ignore


def element_name(dtype: Any) -> str:
    """``T.float16``, ``torch.float16``, ``numpy.float16``, ``"float16"`` -> ``float16``."""
    name = getattr(dtype, "name", None)
    word = (name if isinstance(name, str) else str(dtype)).strip("<>' ").split(".")[-1].strip("'> ").lower()
    return OTHER_NAMES.get(word, word)


def tile_dtype(dtype: Any, reading: Reading | None = None) -> str:
    name = element_name(dtype)
    found = TILE_FORMATS.get(name)
    if found is None:
        raise Trouble(
            "TW107",
            f"tiles cannot hold {name}",
            help="use float16 (held as float32), 8-bit types (held as bfloat16), bfloat16, float32, int32, uint32 or uint16",
        )
    if name == "float16" and reading is not None:
        reading.note("float16 travels as float32, which keeps its bits", "no unit computes in IEEE half; bfloat16 is faster")
    if name in (*SMALL_INTEGERS, *SMALL_FLOATS) and reading is not None:
        reading.note(f"{name} is held as bfloat16", "bfloat16 has all its values; the tensor takes twice the memory")
    if name in OTHER_INTEGERS and reading is not None:
        reading.note(f"{name} is held as int32", "numbers beyond 32 bits are an error of the call")
    return found
