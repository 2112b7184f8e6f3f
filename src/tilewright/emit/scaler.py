"""The statements that make a scaler tile in L1."""

from __future__ import annotations

import struct

from xdsl.dialects.builtin import FloatAttr

from tilewright.dialects.ir_types import KernelCBType
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.hardware import FACE_COLS, FACE_ROWS


def fill_scaler(op: KernelCallOp, buffer: str) -> str:
    """The value in the first row of every face, zeros elsewhere."""
    kind = op.operands[0].type
    value = op.attributes["value"]
    assert isinstance(kind, KernelCBType) and isinstance(value, FloatAttr)
    (bits,) = struct.unpack("<I", struct.pack("<f", value.value.data))
    per_word = 4 // (kind.tile.bytes // 1024)  # datums in a 32-bit word
    word = bits if per_word == 1 else (bits >> 16) << 16 | bits >> 16
    face_words = FACE_ROWS * FACE_COLS // per_word
    row_words = FACE_COLS // per_word
    return "\n".join(
        (
            "{",
            f"  // {value.value.data:g} in the first row of every face: what a reduction multiplies with.",
            f"  auto* words = reinterpret_cast<volatile uint32_t*>(get_write_ptr({buffer}));",
            f"  for (uint32_t i = 0; i < {4 * face_words}; ++i) {{",
            f"    words[i] = i % {face_words} < {row_words} ? 0x{word:08x}u : 0u;",
            "  }",
            "}",
        )
    )
