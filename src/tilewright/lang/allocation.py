"""What authors say about the memory of buffers: which may share it, and where one use of it ends and the next begins.

The compiler finds that out by itself (`ttl-share-buffers`). A group asks for it where it would not be needed; boundaries need no
action, because buffers share a queue only if its order keeps their blocks apart.
"""

from __future__ import annotations

from typing import Any

from tilewright.diagnostics import fail
from tilewright.lang.building import caller_span
from tilewright.records import record


class AllocationGroup:
    """Buffers made with ``allocation_group=`` this get one piece of L1, if they are never in use together."""


def make_dfb_allocation_group() -> AllocationGroup:
    return AllocationGroup()


def group_number(groups: list[AllocationGroup], group: Any) -> int | None:
    """The number that the IR knows a group by."""
    if group is None:
        return None
    if not isinstance(group, AllocationGroup):
        raise fail(
            "TW004", f"allocation_group is {group!r}", caller_span("make_dfb", "make_dataflow_buffer_like"),
            help="make one with ttl.make_dfb_allocation_group()",
        )  # fmt: skip
    if group not in groups:
        groups.append(group)
    return groups.index(group)


@record
class DFBReset:
    """``ttl.reset_dfbs(reset, dfbs=[…])``: the listed buffers are empty here."""

    participants: tuple[Any, ...] = ()


@record
class DFBReconfiguration:
    """``ttl.reconfigure_dfbs(boundary)``: what comes behind it uses other buffers."""

    participants: tuple[Any, ...] = ()
    discard_dfb_state: bool = False


BOUNDARIES: dict[str, type] = {"reset_dfbs": DFBReset, "reset_all_dfbs": DFBReset, "reconfigure_dfbs": DFBReconfiguration}
