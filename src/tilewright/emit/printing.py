"""Prints as the kernel API's debug prints. They cost nothing on a device unless it is started with prints on."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dialects.attributes import int_value, text_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.walking import line_of

FORMATTED = (0, 78)  # from here on DPRINT takes a format; before, it is a stream
NEW_PATHS = (0, 69)
MACROS = {"unpack": "DPRINT_UNPACK", "math": "DPRINT_MATH", "pack": "DPRINT_PACK", "": "DPRINT"}


def print_headers(calls: Sequence[KernelCallOp], release: tuple[int, int]) -> list[str]:
    folder = "api/debug" if release >= NEW_PATHS else "debug"
    prints = [op for op in calls if op.CALL.name == "dprint"]
    tiles = any(text_value(op, "subject") in ("waited", "reserved") for op in prints)
    return [f'#include "{folder}/dprint.h"'] * bool(prints) + [f'#include "{folder}/dprint_tile.h"'] * tiles


def print_lines(op: KernelCallOp, arguments: Sequence[str], release: tuple[int, int], *, wanted: bool) -> list[str]:
    """The statements of one print, or a comment in its place."""
    if not wanted:
        return [f"// line {line_of(op)} prints; compile with debug_print to see it on a device"]
    subject, text = text_value(op, "subject"), text_value(op, "text")
    numbers = list(arguments[1:] if subject else arguments)
    macro = MACROS[text_value(op, "processor")]
    lines = [_statement(macro, text, numbers, release)] if text or not subject else []
    if subject in ("waited", "reserved"):
        return lines + _tiles(op, macro, arguments[0], subject, release)
    if subject:
        lines.append(f"// the state of a {subject} is printed by the simulator only")
    return lines


def _statement(macro: str, text: str, values: Sequence[str], release: tuple[int, int]) -> str:
    if release >= FORMATTED:
        return f"{macro}({', '.join([_quoted(text + chr(10)), *values])});"
    stream = "DPRINT"
    pieces = text.replace("{{", "\0").replace("}}", "\1").split("{}")
    for position, piece in enumerate(pieces):
        plain = piece.replace("\0", "{").replace("\1", "}")
        stream += f" << {_quoted(plain)}" if plain else ""
        stream += f" << {values[position]}" if position < len(values) else ""
    stream += " << ENDL()"
    return f"{stream};" if macro == "DPRINT" else f"{macro}({stream});"


def _tiles(op: KernelCallOp, macro: str, buffer: str, subject: str, release: tuple[int, int]) -> list[str]:
    """Row by row, as much as one message holds."""
    first = int_value(op, "first", 0)
    count = int_value(op, "rows", 1) * int_value(op, "cols", 1)
    pointer = "TSLICE_RD_PTR" if subject == "waited" else "TSLICE_WR_PTR"
    moving = ", TSLICE_INPUT_CB, " + pointer if macro == "DPRINT" else ""
    rows = "SliceRange{.h0 = row, .h1 = (uint8_t)(row + 1), .hs = 1, .w0 = 0, .w1 = 32, .ws = 1}"
    kind = "TileSlice<128>" if "wide" in op.attributes else "TileSlice"  # bytes of one row
    piece = f"{kind}({buffer}, tile, {rows}{moving}, false, true)"
    statement = _statement(macro, "{}", [piece], release)
    return [
        f"for (int tile = {first}; tile < {first + count}; ++tile) {{",
        "  for (uint8_t row = 0; row < 32; ++row) {",
        f"    {statement}",
        "  }",
        "}",
    ]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
