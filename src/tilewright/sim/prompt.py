"""A debugger's prompt at the user's line, with what its names stand for on one core.

The threads run as a translated program, so there is no frame of the user's function. One is made for the prompt: its file and
line are those of the source, its names hold the blocks as arrays. Whatever answers ``breakpoint()`` in this process gets it:
Python's debugger, or the one that a notebook, pytest or PYTHONBREAKPOINT put in its place.
"""

from __future__ import annotations

import ast
import os
import pdb
import sys
from bdb import BdbQuit
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np

from tilewright.progress import paused
from tilewright.sim import inspection
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site

VARIABLE = "PYTHONBREAKPOINT"
WORDS = "names hold values; also dst, buffers, cores, on_core(x, y); c goes on, q ends the run"


def ask(machine: Machine, site: Site, operands: tuple[Any, ...], function: str) -> None:
    """Returns when the user goes on."""
    if os.environ.get(VARIABLE) == "0":
        return
    file, line = (site.span.file, site.span.line) if site.span is not None else ("<kernel>", 1)
    core = "(" + ", ".join(map(str, machine.cores[0])) + ")"
    others = f" and {machine.core_count - 1} more that do the same" if machine.core_count > 1 else ""

    def on_core(*place: int) -> SimpleNamespace:
        return SimpleNamespace(**names_on(machine, site, operands, machine.cores.index(place)))

    names = {**names_on(machine, site, operands, 0), "cores": list(machine.cores), "on_core": on_core}
    call = ast.increment_lineno(ast.parse("stop()", file), line - 1)
    with paused():
        print(f"breakpoint in {function}, core {core}{others}; {WORDS}", flush=True)
        try:
            code = compile(call, file, "exec").replace(co_name=function)
            exec(code, {"__name__": "__main__", "__file__": file, "np": np, "stop": _hook()}, names)
        except BdbQuit:
            raise KeyboardInterrupt(f"ended at the breakpoint, {file}:{line}") from None


def names_on(machine: Machine, site: Site, operands: tuple[Any, ...], position: int) -> dict[str, Any]:
    """What every name stands for on one core of the machine."""
    told = site.attributes
    found: dict[str, Any] = {tensor.spec.name: inspection.TensorValues(machine, tensor) for tensor in machine.tensors}
    found |= ast.literal_eval(told["constants"])
    found |= {name: inspection.Words(text) for name, text in ast.literal_eval(told["others"]).items()}
    for name, kind, shape, operand in zip(told["names"], told["kinds"], told["shapes"], operands, strict=True):
        if kind in ("number", "truth"):
            number = inspection.number_of(operand, position)
            found[name] = bool(number) if kind == "truth" else number
            continue
        rows, cols, first = shape
        tiles = inspection.block_tiles(operand, kind, first, rows * cols)
        if tiles:
            found[name] = inspection.block_values(machine, operand.dtype, tiles, rows, cols)[position]
        else:
            found[name] = inspection.Words(f"{inspection.block_title(operand, rows, cols)}, not written yet")
    slots = {slot: inspection.of_core(value, position) for slot, value in inspection.dst_values(machine).items()}
    found["dst"] = inspection.Registers(slots, machine.dst.capacity)
    found["buffers"] = inspection.BufferStates(
        {buffer.name: inspection.BufferState(machine, buffer, position) for buffer in machine.buffers.values()}
    )
    return found


def _hook() -> Any:
    """Python's own debugger learns about threads; any other is asked as it is."""
    own = sys.breakpointhook is sys.__breakpointhook__ and os.environ.get(VARIABLE, "") in ("", "pdb.set_trace")
    return _own_prompt if own else sys.breakpointhook


def _own_prompt() -> None:
    prompt = Prompt(nosigint=True)
    prompt.reset()
    prompt.interaction(sys._getframe(1), None)  # pyright: ignore[reportPrivateUsage]
    if prompt.quitting:
        raise BdbQuit


class Prompt(pdb.Pdb):
    """Python's debugger at a place that has no next line, and no frames above it that are the user's."""

    def get_stack(self, f: FrameType | None, t: Any) -> tuple[list[tuple[FrameType, int]], int]:
        assert f is not None
        return [(f, f.f_lineno)], 0

    def _cannot_step(self, arg: str) -> None:
        self.message("a thread runs as a translated program and cannot be stepped: put breakpoint() where to stop next, then c")

    do_next = do_n = do_step = do_s = do_until = do_unt = do_return = do_r = do_jump = do_j = _cannot_step  # pyright: ignore
