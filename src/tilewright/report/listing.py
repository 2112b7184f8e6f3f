"""The trace as text: IR after each pass."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.trace import Trace


def header(stage: str, kernel: str) -> str:
    return f"// -----// IR after {stage} ({kernel}) //----- //"


def stages(trace: Trace, kernel: str, wanted: Sequence[str] | None = None) -> str:
    """IR of the stages in ``wanted``, or of all; a stage that did not run is said not to have."""
    parts: list[str] = []
    for stage in trace.stages:
        if wanted is None or stage.name.partition(",")[0] in wanted:
            parts.append(f"{header(stage.name, kernel)}\n{stage.ir.rstrip()}\n")
    known = [stage.name.partition(",")[0] for stage in trace.stages]
    for name in wanted or ():
        if name not in known:
            parts.append(f"// no pass named {name} ran; these did: {', '.join(known)}\n")
    return "\n".join(parts)
