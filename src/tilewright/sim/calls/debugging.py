"""What a kernel shows of itself: prints, one line per core (``(0, 1) read: row 3``), and breakpoints (`inspection`)."""

from __future__ import annotations

from typing import Any

from tilewright import hardware
from tilewright.machine.threads import Wait
from tilewright.sim import inspection
from tilewright.sim.buffers import Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.registry import ROLES, Site, call
from tilewright.sim.tensors import Tensor

MOST_OPERANDS = 64  # numbers in one print or at one breakpoint that may differ between cores
PROCESSORS = frozenset("ump")
OVER = "over"


@call("dprint", on="umpd", per_core=tuple(range(MOST_OPERANDS)))
def dprint(machine: Machine, site: Site, *operands: Any) -> None:
    if not machine.is_watched:
        return
    if site.role != "d" and ROLES[site.role] != site.attributes["processor"]:
        return
    subject = site.attributes.get("subject", "")
    numbers = operands[1:] if subject else operands
    numbers = operands if subject == "dst" else numbers  # DST is nobody's operand
    shown = _shown(machine, site, subject, operands[0] if operands else None) if subject else [""] * machine.core_count
    thread = thread_name(machine, site)
    for position, core in enumerate(machine.cores):
        own = [inspection.number_of(number, position) for number in numbers]
        text = " ".join(part for part in (site.attributes["text"].format(*own), shown[position]) if part)
        place = ", ".join(str(coordinate) for coordinate in core)
        for line in text.split("\n"):
            print(f"({place}) {thread}: {line}", flush=True)


def thread_name(machine: Machine, site: Site) -> str:
    """The user's function, and its processor where a compute thread has three."""
    found = next((thread for thread in machine.program.threads if site.thread in (thread.role, thread.function)), None)
    name = site.thread if found is None else found.function
    return name if site.role == "d" else f"{name} ({ROLES[site.role]})"


def _shown(machine: Machine, site: Site, subject: str, thing: Any) -> list[str]:
    """The object of the print as every core of the machine has it."""
    if subject == "tensor":
        return [_tensor_text(machine, thing, site.attributes.get("pages", 1))] * machine.core_count
    if subject == "dst":
        return _dst_texts(machine)
    assert isinstance(thing, Buffer)
    if subject == "buffer":
        return [inspection.buffer_text(thing)] * machine.core_count
    rows, cols = site.attributes["rows"], site.attributes["cols"]
    title = inspection.block_title(thing, rows, cols)
    tiles = inspection.block_tiles(thing, subject, site.attributes.get("first", 0), rows * cols)
    if not tiles:
        return [f"{title}, not written yet"] * machine.core_count
    blocks = inspection.block_values(machine, thing.dtype, tiles, rows, cols)
    return [f"{title}:\n{inspection.array_text(values)}" for values in blocks]


def _dst_texts(machine: Machine) -> list[str]:
    values = inspection.dst_values(machine)
    return [
        inspection.dst_text({slot: inspection.of_core(value, position) for slot, value in values.items()}, machine.dst.capacity)
        for position in range(machine.core_count)
    ]


def _tensor_text(machine: Machine, tensor: Tensor, count: int) -> str:
    spec = tensor.spec
    array = inspection.tensor_values(machine, tensor)
    flat = array.reshape(-1, *array.shape[-2:])
    across = -(-array.shape[-1] // hardware.TILE_COLS)
    pages: list[str] = []
    for page in range(min(count, tensor.count)):
        row, column = page // across * hardware.TILE_ROWS, page % across * hardware.TILE_COLS
        tile = flat.reshape(-1, array.shape[-1])[row : row + hardware.TILE_ROWS, column : column + hardware.TILE_COLS]
        pages.append(f"page {page}:\n{inspection.array_text(tile)}")
    return f"tensor '{spec.name}' of shape {spec.shape}, {spec.dtype}, " + "\n".join(pages)


@call("breakpoint", on="umpd", per_core=tuple(range(MOST_OPERANDS)))
def stop(machine: Machine, site: Site, *operands: Any) -> Wait | None:
    """Of a compute thread all three processors come first: what stands before the line is done, what follows has not begun."""
    if not machine.is_watched:
        return None
    if site.role != "d":
        meeting = machine.meetings.setdefault(site.thread, set())
        if site.role in meeting and OVER in meeting:
            meeting.discard(site.role)
            if meeting == {OVER}:
                meeting.clear()
            return None
        meeting.add(site.role)
        if not meeting >= PROCESSORS:
            return Wait(site, lambda: OVER in meeting, lambda: "waits at a breakpoint for the other processors")
        meeting.discard(site.role)
        meeting.add(OVER)
    from tilewright.sim import inspection  # late: few kernels stop, and a debugger is large

    inspection.ask(machine, site, operands, thread_name(machine, site).split(" ")[0])
    return None
