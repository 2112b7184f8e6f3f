"""The device of the ttnn stand-in: a handle with a chip's name and grid, and nothing behind it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tilewright.hardware import WORMHOLE_B0, Chip
from tilewright.lang.standin_ttnn.cores import CoreCoord, CoreGrid


class Device:
    """A stand-in for one chip."""

    def __init__(self, device_id: int = 0, chip: Chip = WORMHOLE_B0) -> None:
        self._id = device_id
        self._chip = chip
        self.is_open = True

    def id(self) -> int:
        return self._id

    def arch(self) -> str:
        return self._chip.name

    def compute_with_storage_grid_size(self) -> CoreCoord:
        columns, rows = self._chip.grid
        return CoreCoord(columns, rows)

    @property
    def core_grid(self) -> CoreGrid:
        columns, rows = self._chip.grid
        return CoreGrid(y=rows, x=columns)

    @property
    def shape(self) -> tuple[int, int]:
        return (1, 1)  # a mesh of one

    def get_num_devices(self) -> int:
        return 1

    def get_device_ids(self) -> list[int]:
        return [self._id]

    def enable_program_cache(self) -> None:
        """Programs are cached by the decorated kernel; nothing to switch on."""

    def disable_and_clear_program_cache(self) -> None:
        """See `enable_program_cache`."""

    def __repr__(self) -> str:
        return f"Device(id={self._id}, arch={self._chip.name}, tilewright stand-in)"


_default: Device | None = None


def open_device(device_id: int = 0, **_settings: Any) -> Device:
    from tilewright import execution
    from tilewright.options import Options

    return Device(device_id, execution.current().options(Options()).chip)


def close_device(device: Device) -> None:
    global _default
    device.is_open = False
    if device is _default:
        _default = None


@contextmanager
def manage_device(device_id: int = 0, **settings: Any) -> Generator[Device, None, None]:
    device = open_device(device_id, **settings)
    try:
        yield device
    finally:
        close_device(device)


def SetDefaultDevice(device: Device | None) -> None:
    global _default
    _default = device


def GetDefaultDevice() -> Device:
    global _default
    if _default is None:
        _default = open_device()
    return _default


def GetNumAvailableDevices() -> int:
    return 1


def synchronize_device(device: Device | None = None, **_settings: Any) -> None:
    """Kernel calls have finished when they return; there is nothing to wait for."""
