"""Buffers that only some cores have: their ranges lie on the grid, and nobody uses them elsewhere."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import Diagnostic, Note
from tilewright.dialects.ttl_buffers import CORE_RANGES
from tilewright.dialects.ttl_network import nested_value
from tilewright.grid import cores_in, cores_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.events import Buffer, functions_of, problem
from tilewright.passes.validation.traces import Unpredictable, trace_thread

NAME = "ttl-validate"


def check_core_ranges(module: ModuleOp, buffers: dict[int, Buffer], context: PassContext) -> list[Diagnostic]:
    limited = {index: buffer for index, buffer in buffers.items() if CORE_RANGES in buffer.binds[0].attributes}
    if not limited:
        return []
    grid = context.grid
    held = {index: set(cores_in(nested_value(buffer.binds[0].attributes[CORE_RANGES]))) for index, buffer in limited.items()}
    everywhere = set(cores_of(grid))
    outside = {index: sorted(cores - everywhere) for index, cores in held.items()}
    problems = [
        problem(
            "TW110",
            f"core_ranges of '{limited[index].name}' has core {cores[0]}, which the grid {grid} does not have",
            limited[index].binds[0],
            help=f"one [start, stop, step] for each of the {len(grid)} dimensions",
        )
        for index, cores in outside.items()
        if cores
    ]
    return problems or _used_elsewhere(module, limited, held, context)


def _used_elsewhere(
    module: ModuleOp, limited: dict[int, Buffer], held: dict[int, set[tuple[int, ...]]], context: PassContext
) -> list[Diagnostic]:
    """The first use of each buffer on a core without it."""
    found: dict[int, Diagnostic] = {}
    try:
        traces = [trace_thread(function) for function in functions_of(module)]
        for core in cores_of(context.grid):
            for trace in traces:
                for event in (event for chunk, _ in trace.items(core, context.grid) for event in chunk):
                    buffer = limited.get(event.buffer)
                    if buffer is None or event.buffer in found or core in held[event.buffer]:
                        continue
                    found[event.buffer] = problem(
                        "TW220",
                        f"core {core} uses '{buffer.name}', which its core_ranges do not give it",
                        event.op,
                        notes=(Note("the buffer is made here", buffer.span),),
                        help="widen core_ranges, or put the use under an if that only cores with the buffer enter",
                    )
    except Unpredictable:
        context.trace.decide(NAME, "core_ranges not compared before the run", "a loop or if depends on values of the device")
    return list(found.values())
