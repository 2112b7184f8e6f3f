"""The statements that make a tile of ones and zeros in L1."""

from __future__ import annotations

import struct

from xdsl.dialects.builtin import FloatAttr

from tilewright.dialects.attributes import KernelCBType, text_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.hardware import FACE_COLS, FACE_ROWS

PLACES = {
    "faces": "the first row of every face: what a reduction multiplies with",
    "row": "the first row, where a reduction of columns has its result",
    "column": "the first column, where a reduction of rows has its result",
    "corner": "the first element, where a reduction of everything has its result",
}


def fill_scaler(op: KernelCallOp, buffer: str) -> str:
    """The value in one place of the tile, zeros elsewhere."""
    kind = op.operands[0].type
    value = op.attributes["value"]
    assert isinstance(kind, KernelCBType) and isinstance(value, FloatAttr)
    (bits,) = struct.unpack("<I", struct.pack("<f", value.value.data))
    per_word = 4 // (kind.tile.bytes // 1024)  # datums in a 32-bit word
    word = bits if per_word == 1 else (bits >> 16) << 16 | bits >> 16
    face_words = FACE_ROWS * FACE_COLS // per_word
    row_words = FACE_COLS // per_word
    pattern = text_value(op, "pattern", "faces")
    assert per_word == 1 or pattern == "faces", "masks are f32"
    condition = {
        "faces": f"i % {face_words} < {row_words}",
        "row": f"i < {2 * face_words} && i % {face_words} < {row_words}",
        "column": f"i / {face_words} % 2 == 0 && i % {row_words} == 0",
        "corner": "i == 0",
    }[pattern]
    return "\n".join(
        (
            "{",
            f"  // {value.value.data:g} in {PLACES[pattern]}.",
            f"  auto* words = reinterpret_cast<volatile uint32_t*>(get_write_ptr({buffer}));",
            f"  for (uint32_t i = 0; i < {4 * face_words}; ++i) {{",
            f"    words[i] = {condition} ? 0x{word:08x}u : 0u;",
            "  }",
            "}",
        )
    )
