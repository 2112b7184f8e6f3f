"""What an op may say about where its result lies in DST, from text to the allocator."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

PINNED = "ttl.dst_reg"  # the register that the result of the first tile lies in
REQUIRED = "ttl.require_dst"  # the result may not go through a buffer


def pins_of(op: Operation) -> dict[str, Attribute]:
    """Those of an op, for the one that stands for it."""
    return {key: op.attributes[key] for key in (PINNED, REQUIRED) if key in op.attributes}
