"""What every pass is given besides the module."""

from __future__ import annotations

from dataclasses import field

from tilewright.diagnostics import Diagnostic
from tilewright.hardware import Chip
from tilewright.options import Options
from tilewright.program import TensorSpec
from tilewright.records import record
from tilewright.trace import Trace


@record(frozen=False, kw_only=True)
class PassContext:
    options: Options
    chip: Chip
    trace: Trace = field(default_factory=Trace)
    grid: tuple[int, ...] = (1, 1)
    tensors: tuple[TensorSpec, ...] = ()
    # By thread: what no pass can complete by itself. ttl-validate reports it together with what it finds.
    unresolved: dict[str, list[Diagnostic]] = field(default_factory=dict[str, list[Diagnostic]])
