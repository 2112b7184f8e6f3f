"""What every pass is given besides the module, and the configuration that a compute function carries."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from xdsl.dialects.func import FuncOp

from tilewright.diagnostics import Diagnostic
from tilewright.dialects.attributes import int_list, int_value, text_value
from tilewright.hardware import Chip
from tilewright.options import Options
from tilewright.program import ComputeConfig, TensorSpec
from tilewright.records import record
from tilewright.trace import Trace


@record(frozen=False, kw_only=True)
class PassContext:
    options: Options
    chip: Chip
    trace: Trace = field(default_factory=Trace)
    grid: tuple[int, ...] = (1, 1)
    tensors: tuple[TensorSpec, ...] = ()
    from_text: bool = False  # `ttl-expand-text-forms` has found the tensors: no front end made the module
    # By thread: what no pass can complete by itself. ttl-validate reports it together with what it finds.
    unresolved: dict[str, list[Diagnostic]] = field(default_factory=dict[str, list[Diagnostic]])
    # What regions ask of the allocator, by region and configuration, each with what it was made from (`dst_problem`).
    problems: dict[Any, tuple[Any, Any]] = field(default_factory=dict[Any, "tuple[Any, Any]"])

    # What threads say to each other, by thread (`communication_trace`), until a pass changes something.
    threads: dict[Any, Any] = field(default_factory=dict[Any, Any])

    @property
    def l1_left(self) -> int:
        """Bytes that buffers of the compiler may still take."""
        return self.chip.l1_usable_bytes - (self.trace.memory.bytes if self.trace.memory is not None else 0)


def config_of(function: FuncOp) -> ComputeConfig:
    """The settings a function carries; defaults for text that has none."""
    return ComputeConfig(
        fp32_dest_acc_en=bool(int_value(function, "ttl.fp32_dest_acc_en", 0)),
        dst_full_sync_en=bool(int_value(function, "ttl.dst_full_sync_en", 0)),
        math_fidelity=text_value(function, "ttl.math_fidelity", "HiFi4"),
        unpack_to_dest=int_list(function, "ttl.unpack_to_dest"),
    )
