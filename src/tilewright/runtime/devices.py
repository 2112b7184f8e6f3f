"""The installed ttnn, its devices, and tensors on them. Host arrays are copied there and back; ttnn tensors are used where they
are.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.dtypes import BLOCK_FLOATS
from tilewright.lang.tensors import lives_on_device
from tilewright.program import ROW_MAJOR, ROWS, TensorSpec
from tilewright.runtime.descriptor import memory_config
from tilewright.runtime.dlpack import Bfloat16Array, bits_of
from tilewright.runtime.runner import DATA_TYPES, tensor_facts

# The vendor gives no types: these say what an object is, and nothing checks them.
Ttnn = Any  # the module
Device = Any
DeviceTensor = Any
Descriptor = Any  # a part of a ttnn.ProgramDescriptor, or an enumeration it takes


def prepare_environment() -> None:
    """On the vendor's simulator the host itself writes to the cores. Call before ttnn opens a device."""
    if os.environ.get("TT_METAL_SIMULATOR"):
        os.environ.setdefault("TT_METAL_SLOW_DISPATCH_MODE", "1")


def load_ttnn() -> Ttnn:
    prepare_environment()
    try:
        import ttnn  # pyright: ignore
    except ImportError as error:
        message = "running on a device needs ttnn, which cannot be imported"
        raise fail("TW601", message, help=f"pip install ttnn ({error})") from None
    return ttnn


def installed_release() -> str:
    """Release of the installed ttnn, as the speller takes it."""
    return ".".join(metadata.version("ttnn").split(".")[:2])


MOST_COMPLAINTS = 5
_opened: list[Device] = []


def device_for(ttnn: Ttnn, args: Sequence[Any]) -> Device:
    """The device of the first tensor that is on one, else ttnn's default device, else one opened for this process."""
    for value in args:
        if lives_on_device(value):
            device = value.device()
            if device is not None:
                return device
    return ttnn.GetDefaultDevice() or (_opened[0] if _opened else open_device(ttnn))


def open_device(ttnn: Ttnn) -> Device:
    """A card, or the simulator that ``TT_METAL_SIMULATOR`` names."""
    try:
        device = ttnn.open_device(device_id=0)
    except RuntimeError as error:
        reason = reason_of(str(error))
        help_text = "a Tenstorrent card with its driver, or TT_METAL_SIMULATOR; leave out --device to simulate here"
        raise fail("TW602", f"ttnn cannot open a device: {reason}", help=help_text) from None
    _opened.append(device)
    atexit.register(_close, ttnn)
    return device


def _close(ttnn: Ttnn) -> None:
    while _opened:
        ttnn.close_device(_opened.pop())


def reason_of(message: str) -> str:
    """What a ttnn error says is wrong: its compiler's complaints, else one sentence."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    complaints = [line for line in lines if "error: " in line]
    if complaints:
        return "\n  ".join(complaints[:MOST_COMPLAINTS])
    after = lines[lines.index("info:") + 1 :] if "info:" in lines else lines
    return after[0] if after else "no reason given"


def architecture(device: Device) -> str:
    """``wormhole_b0`` or ``blackhole``."""
    return str(device.arch()).rpartition(".")[2].lower()


def on_device(ttnn: Ttnn, value: Any, spec: TensorSpec, device: Device) -> DeviceTensor:
    """``value`` as a tensor of the device: itself if it is one."""
    if not lives_on_device(value):
        return to_device(ttnn, value, spec, device)
    name = spec.name
    if value.storage_type() != ttnn.StorageType.DEVICE:
        raise fail("TW106", f"tensor '{name}' is in host memory", help="ttnn.to_device(tensor, device) first")
    if value.layout != layout_of(ttnn, spec):
        missing, wanted = ("rows", "ROW_MAJOR") if spec.layout in (ROW_MAJOR, ROWS) else ("tiles", "TILE")
        message = f"tensor '{name}' is not in {missing}, for which the kernel was compiled"
        raise fail("TW106", message, help=f"ttnn.to_layout(tensor, ttnn.{wanted}_LAYOUT) first")
    if spec.layout in (ROW_MAJOR, ROWS):
        return value
    if tuple(value.get_tile().tile_shape) != spec.tile:
        sizes = "x".join(map(str, spec.tile))
        raise fail("TW106", f"tiles of tensor '{name}' are not {sizes}", help="the kernel was compiled for tiles of that size")
    return value


def zero_padded(ttnn: Ttnn, tensor: DeviceTensor, spec: TensorSpec) -> DeviceTensor:
    """With zeros in the padding, on which sums and products rely: an op of ttnn may have left anything there."""
    if spec.layout in (ROW_MAJOR, ROWS) or spec.dtype in BLOCK_FLOATS:
        return tensor
    if spec.tile[1] != hardware.TILE_COLS:
        return tensor  # nothing but elementwise math takes such tiles, and that may do as it likes there
    return ttnn.fill_implicit_tile_padding(tensor, 0)


def layout_of(ttnn: Ttnn, spec: TensorSpec) -> Descriptor:
    return ttnn.ROW_MAJOR_LAYOUT if spec.layout in (ROW_MAJOR, ROWS) else ttnn.TILE_LAYOUT


def to_device(ttnn: Ttnn, value: Any, spec: TensorSpec, device: Device) -> DeviceTensor:
    """A copy of a host array, bit for bit."""
    from tilewright.lang.tensors import to_array, to_bits

    kind, layout = getattr(ttnn, DATA_TYPES[spec.dtype]), layout_of(ttnn, spec)
    sizes = {"tile": ttnn.Tile(list(spec.tile))} if spec.tile != (hardware.TILE_ROWS, hardware.TILE_COLS) else {}
    if spec.dtype == "bf16":
        host = ttnn.Tensor(Bfloat16Array(to_bits(value)), kind, None, layout, **sizes)
        return ttnn.to_device(host, device, memory_config=memory_config(ttnn, tensor_facts(spec)))
    array = to_array(value)
    if not array.flags.writeable:
        array = array.copy()  # ttnn refuses arrays it may not write
    if spec.dtype in BLOCK_FLOATS:
        host = ttnn.to_dtype(ttnn.Tensor(array, ttnn.float32, None, layout), kind)
    else:
        host = ttnn.Tensor(array, kind, None, layout, **sizes)
    return ttnn.to_device(host, device, memory_config=memory_config(ttnn, tensor_facts(spec)))


def to_host(ttnn: Ttnn, tensor: DeviceTensor, value: Any, spec: TensorSpec) -> None:
    """Copies results into the array they were asked for in."""
    from tilewright.lang.tensors import from_array, from_bits

    host = ttnn.from_device(tensor)
    if spec.dtype == "bf16":
        from_bits(value, bits_of(host.to_numpy()))
        return
    if spec.dtype in BLOCK_FLOATS:
        host = ttnn.to_dtype(host, ttnn.float32)
    from_array(value, host.to_numpy())


def like(tensor: DeviceTensor) -> DeviceTensor:
    """An unwritten tensor of the same shape, dtype, layout, memory and device."""
    ttnn = load_ttnn()
    return ttnn.allocate_tensor_on_device(tensor.spec, tensor.device())
