"""The statements that move one tile between L1 and a row-major tensor, whose pages are rows of elements."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.dialects.attributes import int_value, text_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.hardware import FACE_COLS, FACE_ROWS, TILE_COLS, TILE_ELEMENTS, TILE_ROWS, tile_bytes

TILE_ROWS_CALLS = ("noc_async_read_tile_rows", "noc_async_write_tile_rows")


def tile_rows(op: KernelCallOp, arguments: list[str], names: list[str]) -> str:
    """Two transfers per row: 16 elements for the left face, 16 for the right one. One where memory is read in larger steps."""
    row, column, tensor, address = arguments
    counter, stick, face = names
    accessor = op.operands[2].owner
    assert isinstance(accessor, Operation)
    element = tile_bytes(text_value(accessor, "dtype")) // TILE_ELEMENTS
    part, face_bytes = FACE_COLS * element, FACE_ROWS * FACE_COLS * element
    if int_value(op, "row_bytes", part) > part:
        return _read_and_part(arguments, counter, part)
    first = "" if row == "0" else f"{row} * {TILE_ROWS} + "
    across = "0" if column == "0" else f"{column} * {TILE_COLS * element}"
    left, right = (stick, face), (f"{stick} + {part}", f"{face} + {face_bytes}")
    name = "noc_async_read" if op.CALL.name == "noc_async_read_tile_rows" else "noc_async_write"
    sides = [side if name == "noc_async_read" else side[::-1] for side in (left, right)]
    place = f"{counter} / {FACE_ROWS} * {2 * face_bytes} + {counter} % {FACE_ROWS} * {part}"
    head = f"for (uint32_t {counter} = 0; {counter} < {TILE_ROWS}; ++{counter})"
    return "\n".join(
        (
            f"{head} {{  // a page of {tensor} is one row of elements",
            f"  const uint64_t {stick} = {tensor}.get_noc_addr({first}{counter}, {across});",
            f"  const uint32_t {face} = {address} + {place};",
            *(f"  {name}({', '.join(side)}, {part});" for side in sides),
            "}",
        )
    )


def _read_and_part(arguments: list[str], counter: str, part: int) -> str:
    """Both faces' elements of a row at once, into the tile as it lies; then faces are made of it in place.

    A row is L R. Swapping the middle two of four parts makes L L R R of two rows, of those four L and four R of four rows, and so
    on up to the sixteen rows of two faces.
    """
    row, column, tensor, address = arguments
    first = "" if row == "0" else f"{row} * {TILE_ROWS} + "
    across = "0" if column == "0" else f"{column} * {2 * part}"
    words = part // 4
    head = f"for (uint32_t {counter} = 0; {counter} < {TILE_ROWS}; ++{counter})"
    source, target = f"{tensor}.get_noc_addr({first}{counter}, {across})", f"{address} + {counter} * {2 * part}"
    return "\n".join(
        (
            f"{head} {{  // a page of {tensor} is one row of elements",
            f"  noc_async_read({source}, {target}, {2 * part});",
            "}",
            "noc_async_read_barrier();",
            "{",
            f"  // Rows of {2 * part} bytes, the least this chip reads from DRAM, become faces with rows of {part}.",
            f"  auto* words = reinterpret_cast<volatile uint32_t*>({address});",
            f"  for (uint32_t width = {words}; width < {words * FACE_ROWS}; width *= 2) {{",
            f"    for (uint32_t group = 0; group < {2 * TILE_ROWS * words}; group += 4 * width) {{",
            "      for (uint32_t i = group + width; i < group + 2 * width; ++i) {",
            "        const uint32_t word = words[i];",
            "        words[i] = words[i + width];",
            "        words[i + width] = word;",
            "      }",
            "    }",
            "  }",
            "}",
        )
    )
