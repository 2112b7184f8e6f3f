"""A ttnn that remembers what it was asked for: descriptors are records of their arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Record:
    """One object made by ttnn: its kind and its arguments, which stay settable."""

    def __init__(self, kind: str, *positional: Any, **named: Any) -> None:
        self.__dict__.update(kind=kind, positional=positional, **named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return f"{self.__dict__}"

    def __hash__(self) -> int:
        return hash((self.kind, self.positional))


class Tensor:
    """A device tensor; ttnn's are told by their module."""

    def __init__(self, device: Any, address: int, *, layout: str = "tile", storage: str = "device", words: tuple[int, ...] = (2, 2048)) -> None:
        self.place, self.address, self.layout, self.storage, self.words = device, address, layout, storage, words

    def device(self) -> Any:
        return self.place

    def buffer_address(self) -> int:
        return self.address

    def storage_type(self) -> str:
        return self.storage

    def get_tile(self) -> Any:
        return SimpleNamespace(tile_shape=[32, 32])


Tensor.__module__ = "ttnn._ttnn.tensor"


class Device:
    def __init__(self, *, chip: str = "WORMHOLE_B0", columns: int = 8, rows: int = 8, count: int = 1) -> None:
        self.chip, self.columns, self.rows, self.count, self.shape = chip, columns, rows, count, f"{count} devices"

    def arch(self) -> str:
        return f"Arch.{self.chip}"

    def compute_with_storage_grid_size(self) -> Any:
        return SimpleNamespace(x=self.columns, y=self.rows)

    def get_num_devices(self) -> int:
        return self.count

    def worker_core_from_logical_core(self, core: Any) -> Any:
        column, row = core.positional
        return SimpleNamespace(x=column + 18, y=row + 20)


class Ttnn(ModuleType):
    """Names that are not given here make records."""

    TILE_LAYOUT = "tile"
    StorageType = SimpleNamespace(DEVICE="device", HOST="host")
    UnpackToDestMode = SimpleNamespace(UnpackToDestFp32="exact", Default="default")

    def __init__(self) -> None:
        super().__init__("ttnn")
        self.launched: list[tuple[Any, Any]] = []

    def TensorAccessorArgs(self, tensor: Tensor) -> Any:
        return SimpleNamespace(get_compile_time_args=lambda: list(tensor.words))

    def generic_op(self, tensors: Any, described: Any) -> str:
        self.launched.append((tensors, described))
        return "result"

    def GetDefaultDevice(self) -> None:
        return None

    def open_device(self, device_id: int) -> Any:
        raise RuntimeError(f"TT_FATAL @ cluster.cpp:129\ninfo:\nNo chips detected in the cluster ({device_id})\nbacktrace:\n --- x")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "KernelDescriptor":
            return _kernel_descriptor
        if name == "MathFidelity":
            return SimpleNamespace(LoFi="LoFi", HiFi2="HiFi2", HiFi3="HiFi3", HiFi4="HiFi4")
        if name in ("bfloat16", "float32", "int32", "uint32", "uint16"):
            return name
        return lambda *positional, **named: Record(name, *positional, **named)


def _kernel_descriptor(**named: Any) -> Record:
    return Record("KernelDescriptor", **named)


_kernel_descriptor.SourceType = SimpleNamespace(SOURCE_CODE="inline")  # pyright: ignore


@pytest.fixture
def ttnn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ttnn]:
    """In place of the real ttnn, release 0.81.1."""
    stand_in = Ttnn()
    monkeypatch.setitem(sys.modules, "ttnn", stand_in)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.81.1")
    yield stand_in


@pytest.fixture
def make_tensor() -> Any:
    return Tensor


@pytest.fixture
def make_device() -> Any:
    return Device
