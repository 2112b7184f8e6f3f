"""Everything ``import ttnn`` gives when the stand-in answers."""

from __future__ import annotations

from enum import Enum
from types import ModuleType
from typing import Any

from tilewright.hardware import TILE_COLS
from tilewright.lang.standin_ttnn import arithmetic, conversion, cores, creation, device, memory
from tilewright.lang.standin_ttnn.data_types import DataType
from tilewright.lang.standin_ttnn.tensor import Tensor


class MathFidelity(Enum):
    LoFi = "LoFi"
    HiFi2 = "HiFi2"
    HiFi3 = "HiFi3"
    HiFi4 = "HiFi4"


CONSTANTS: dict[str, Any] = {
    "Tensor": Tensor,
    "DataType": DataType,
    "bfloat16": DataType.BFLOAT16,
    "float32": DataType.FLOAT32,
    "bfloat8_b": DataType.BFLOAT8_B,
    "bfloat4_b": DataType.BFLOAT4_B,
    "int32": DataType.INT32,
    "uint32": DataType.UINT32,
    "uint16": DataType.UINT16,
    "uint8": DataType.UINT8,
    "TILE_LAYOUT": memory.Layout.TILE,
    "ROW_MAJOR_LAYOUT": memory.Layout.ROW_MAJOR,
    "TILE_SIZE": TILE_COLS,
    "MathFidelity": MathFidelity,
    "CreateDevice": device.open_device,
    "CloseDevice": device.close_device,
    "MeshDevice": device.Device,
}

MODULES: tuple[ModuleType, ...] = (cores, memory, device, creation, conversion)


def build() -> dict[str, Any]:
    """The names, by defining file; only what a file defines itself is taken from it."""
    names: dict[str, Any] = {}
    for module in MODULES:
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
                names[name] = value
    names["DRAM_MEMORY_CONFIG"] = memory.DRAM_MEMORY_CONFIG
    names["L1_MEMORY_CONFIG"] = memory.L1_MEMORY_CONFIG
    names.update(arithmetic.operations())
    names.update(CONSTANTS)
    for internal in ("folded", "padded"):
        names.pop(internal, None)
    return names
