"""``breakpoint()`` in a thread: the simulation stops, and `prompt` shows what is there."""

from __future__ import annotations

from typing import Any

from tilewright.machine.processes import Wait
from tilewright.sim.calls.printing import MOST_OPERANDS, thread_name
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site, call

PROCESSORS = frozenset("ump")
OVER = "over"


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
    from tilewright.sim import prompt  # late: few kernels stop, and a debugger is large

    prompt.ask(machine, site, operands, thread_name(machine, site).split(" ")[0])
    return None
