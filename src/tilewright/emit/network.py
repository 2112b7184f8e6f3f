"""Calls between cores in C++: addresses and coordinates stand inside the call that uses them."""

from __future__ import annotations

from tilewright.dialects.attributes import int_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.network import COUNT_SHIFT, PLACE_UNIT

# Calls whose first argument is a semaphore of this core, by pointer.
ON_OWN_WORD = ("noc_semaphore_set", "noc_semaphore_wait", "noc_semaphore_wait_min")
INLINE = ("noc_x", "noc_y", "get_noc_addr", "get_noc_multicast_addr", "pipe_announcement", "core_table", "get_semaphore")

WORD_FUNCTION = (
    "inline volatile tt_l1_ptr uint32_t* word(uint32_t address) {",
    "  return reinterpret_cast<volatile tt_l1_ptr uint32_t*>(address);",
    "}",
)


def inline_text(op: KernelCallOp, arguments: list[str], slot: int) -> str:
    """A value that is written where it is used. ``slot`` is the first run-time argument of a table."""
    name = op.CALL.name
    if name == "pipe_announcement":
        return f"(1 << {COUNT_SHIFT}) + ({arguments[0]} - {arguments[1]}) / {PLACE_UNIT}"
    if name == "core_table":
        return f"get_arg_val<uint32_t>({slot} + {arguments[0]})"
    if name == "get_semaphore":
        return f"get_semaphore({int_value(op, 'index')} + {arguments[0]})"
    return f"{name}({', '.join(arguments)})"


def target_text(arguments: list[str]) -> str:
    """Mean of the places the receivers announced."""
    ready, count = arguments
    mask = f"0x{(1 << COUNT_SHIFT) - 1:x}"
    share = f"(*word({ready}) & {mask})" + ("" if count == "1" else f" / {count}")
    return f"{ready} + {share} * {PLACE_UNIT}"


def word_arguments(name: str, arguments: list[str]) -> list[str]:
    if name not in ON_OWN_WORD:
        return arguments
    own, number = arguments
    if name == "noc_semaphore_wait_min" and number.isdigit() and int(number) and int(number) % (1 << COUNT_SHIFT) == 0:
        number = f"{int(number) >> COUNT_SHIFT} << {COUNT_SHIFT}"
    return [f"word({own})", number]
