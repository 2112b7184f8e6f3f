"""Everything ``import ttnn`` gives when the stand-in answers."""

from __future__ import annotations

from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

from tilewright.hardware import TILE_COLS
from tilewright.standins.ttnn import arithmetic, devices, functions, placement
from tilewright.standins.ttnn.tensor import DataType, Tensor


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
    "TILE_LAYOUT": placement.Layout.TILE,
    "ROW_MAJOR_LAYOUT": placement.Layout.ROW_MAJOR,
    "TILE_SIZE": TILE_COLS,
    "MathFidelity": MathFidelity,
    "CreateDevice": devices.open_device,
    "CloseDevice": devices.close_device,
    "MeshDevice": devices.Device,
}

MODULES: tuple[ModuleType, ...] = (placement, devices, functions)


def build() -> dict[str, Any]:
    """The names, by defining file; only what a file defines itself is taken from it."""
    names: dict[str, Any] = {}
    for module in MODULES:
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
                names[name] = value
    names["DRAM_MEMORY_CONFIG"] = placement.DRAM_MEMORY_CONFIG
    names["L1_MEMORY_CONFIG"] = placement.L1_MEMORY_CONFIG
    names.update(arithmetic.operations())
    names.update(CONSTANTS)
    names["device"] = SimpleNamespace(**{name: value for name, value in vars(devices).items() if not name.startswith("_")})
    for internal in ("folded", "padded", "set_default_dtype"):
        names.pop(internal, None)
    return names
