"""Devices of the ttnn stand-in: one chip, also as a mesh of one, whose tensors are whole."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from tilewright.diagnostics import fail
from tilewright.hardware import WORMHOLE_B0, Chip
from tilewright.standins.ttnn.placement import CoreCoord, CoreGrid


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


def get_max_worker_l1_unreserved_size() -> int:
    """Bytes of L1 that buffers and tensors of a core can have."""
    from tilewright import execution
    from tilewright.options import Options

    return execution.current().options(Options()).chip.l1_usable_bytes


def close_device(device: Device) -> None:
    global _default
    device.is_open = False
    if device is _default:
        _default = None


class MeshShape(tuple[int, ...]):
    """Rows and columns of devices; the stand-in has one device."""

    def __new__(cls, *sizes: Any) -> MeshShape:
        return super().__new__(cls, sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)


def open_mesh_device(mesh_shape: Any = (1, 1), **_settings: Any) -> Device:
    sizes = tuple(mesh_shape)
    if any(size != 1 for size in sizes):
        message = f"a mesh of {'x'.join(map(str, sizes))} devices; this machine has none, and the stand-in stands for one"
        raise fail("TW602", message, help="ttnn.open_mesh_device(ttnn.MeshShape(1, 1)), or --device where the mesh is")
    return open_device()


def close_mesh_device(device: Device) -> None:
    close_device(device)


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


class FabricConfig(Enum):
    """How chips are connected; the stand-in has one chip, so that nothing is."""

    DISABLED = "DISABLED"
    FABRIC_1D = "FABRIC_1D"
    FABRIC_1D_RING = "FABRIC_1D_RING"
    FABRIC_2D = "FABRIC_2D"
    FABRIC_2D_TORUS_XY = "FABRIC_2D_TORUS_XY"


def set_fabric_config(config: FabricConfig, *_settings: Any, **_named: Any) -> None:
    """Connections between chips: there is one chip."""


class _MeshMapper:
    """Says how a tensor is shared out over a mesh, or put together again; a mesh of one device holds all of it."""

    def __init__(self, mesh_device: Any = None, *_settings: Any, dim: int | None = None, **_named: Any) -> None:
        self.mesh_device = mesh_device
        self.dim = dim


class ShardTensorToMesh(_MeshMapper): ...


class ShardTensor2dMesh(_MeshMapper): ...


class ReplicateTensorToMesh(_MeshMapper): ...


class ConcatMeshToTensor(_MeshMapper): ...


class ConcatMesh2dToTensor(_MeshMapper): ...


def synchronize_device(device: Device | None = None, **_settings: Any) -> None:
    """Kernel calls have finished when they return; there is nothing to wait for."""


def all_reduce(tensor: Any, *_settings: Any, **_named: Any) -> Any:
    """The sum over the devices of a mesh: there is one."""
    return tensor


def all_gather(tensor: Any, *_settings: Any, **_named: Any) -> Any:
    """The parts of all devices of a mesh: one device has all."""
    return tensor
