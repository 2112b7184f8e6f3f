"""The language: what ``from tilewright import ttl`` gives, in both generations of names."""

from __future__ import annotations

from typing import Any

from tilewright.diagnostics import KernelError
from tilewright.jit.kernel import kernel
from tilewright.lang.buffers import (
    BOUNDARIES,
    CircularBuffer,
    DFBReconfiguration,
    DFBReset,
    make_circular_buffer_like,
    make_dfb,
    make_dfb_allocation_group,
    make_tensor_backed_dfb,
)
from tilewright.lang.buffers import AllocationGroup as DFBAllocationGroup
from tilewright.lang.cores import CoreFunction, DstPipeIdentity, Pipe, PipeNet, Semaphore, SrcPipeIdentity, grid_size
from tilewright.lang.external import FUNCTIONS as EXTERNAL_NAMES
from tilewright.lang.external import DFBAccess, DFBEffect
from tilewright.lang.kernel import PIPE_SOURCE_KERNEL, Kernel, KernelKind, Program, compute, datamovement, runtime_int
from tilewright.lang.names import (
    INSTEAD,
    MODULE_NAMES,
    FunctionFamily,
    LanguageFunction,
    NotYetSupported,
    annotation_names,
    find_function,
    unknown_name,
)
from tilewright.lang.tensors import TensorAccessor, bf16

copy = LanguageFunction("copy")
core = CoreFunction("core")
GroupTransfer = LanguageFunction("GroupTransfer")
core_linear = LanguageFunction("core_linear")
grid_slice = LanguageFunction("grid_slice")
signpost = LanguageFunction("signpost")
read_index = LanguageFunction("read_index")
raw_element_read = LanguageFunction("raw_element_read")
raw_element_write = LanguageFunction("raw_element_write")
reset_dfbs, reset_all_dfbs, reconfigure_dfbs = (LanguageFunction(name) for name in BOUNDARIES)
wait_any = LanguageFunction("wait_any")
call_extern_func, dfb_descriptor, get_dfb_id, raw_addr = (LanguageFunction(name) for name in EXTERNAL_NAMES[:4])
math = FunctionFamily("math")
block = FunctionFamily("block")

UNSUPPORTED = tuple(INSTEAD)


def _later_names() -> dict[str, Any]:
    spellings = {new: globals()[old] for new, old in MODULE_NAMES.items()}
    return {**spellings, **annotation_names(), **{name: NotYetSupported(name) for name in UNSUPPORTED}}


globals().update(_later_names())


def autotune(target: Any = None, **choices: Any) -> Any:
    """``@ttl.autotune(space={…})``: parameters of a kernel, chosen for each call (`tilewright.tune.autotune`)."""
    from tilewright.tune.autotune import autotune as decorator

    return decorator(target, **choices)


def __getattr__(name: str) -> Any:
    """Functions of ``ttl.math`` also stand directly below ``ttl``, as newer scripts write them."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "SRAMStorage":
        from tilewright.runtime.sram_storage import SRAMStorage

        return SRAMStorage
    found = find_function(f"math.{name}")
    if found is None:
        raise unknown_name("ttl", name, [*__all__, *dir(math)])
    return LanguageFunction(found)


__all__ = [
    "PIPE_SOURCE_KERNEL", "CircularBuffer", "DFBAccess", "DFBAllocationGroup", "DFBEffect", "DFBReconfiguration", "DFBReset",
    "DstPipeIdentity", "GroupTransfer", "Kernel", "KernelError", "KernelKind", "Pipe", "PipeNet", "Program", "Semaphore",
    "SrcPipeIdentity", "TensorAccessor", "autotune", "bf16", "block", "call_extern_func", "compute", "copy", "core",
    "core_linear", "datamovement", "dfb_descriptor", "get_dfb_id", "grid_size", "grid_slice", "kernel",
    "make_circular_buffer_like", "make_dfb", "make_dfb_allocation_group", "make_tensor_backed_dfb", "math", "raw_addr",
    "raw_element_read", "raw_element_write", "read_index", "reconfigure_dfbs", "reset_all_dfbs", "reset_dfbs", "runtime_int",
    "signpost", "wait_any",
]  # fmt: skip
LATER = ("SRAMStorage",)  # what `__getattr__` imports when it is asked for
__all__ += [*LATER, *MODULE_NAMES, *annotation_names(), *UNSUPPORTED]
