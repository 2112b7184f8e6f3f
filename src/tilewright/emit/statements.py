"""Calls that are no plain call in C++: between cores, debug prints, and those that become several statements."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from tilewright.dialects.attributes import KernelCBType, int_value, text_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.walking import line_of
from tilewright.dtypes import FLOATS, WORDS
from tilewright.grid import COUNT_SHIFT, PLACE_UNIT
from tilewright.hardware import FACE_COLS, FACE_ROWS, TILE_COLS, TILE_ELEMENTS, TILE_ROWS, tile_bytes

# Calls between cores in C++: addresses and coordinates stand inside the call that uses them.

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


def wait_any(name: str, start: str, words: Sequence[str]) -> str:
    """Looks at one after the other until one is set."""
    count = len(words)
    places, following = f"const uint32_t places[] = {{{', '.join(words)}}}", f"{name} = ({name} + 1) % {count}"
    head = f"for ({places}; *word(places[{name}]) == 0; {following}) {{"
    return "\n".join((f"uint32_t {name} = {start} % {count};", head, "  invalidate_l1_cache();", "}"))


def word_arguments(name: str, arguments: list[str]) -> list[str]:
    if name not in ON_OWN_WORD:
        return arguments
    own, number = arguments
    if name == "noc_semaphore_wait_min" and number.isdigit() and int(number) and int(number) % (1 << COUNT_SHIFT) == 0:
        number = f"{int(number) >> COUNT_SHIFT} << {COUNT_SHIFT}"
    return [f"word({own})", number]


# Prints as the kernel API's debug prints. They cost nothing on a device unless it is started with prints on.

FORMATTED = (0, 78)  # from here on DPRINT takes a format; before, it is a stream
NEW_PATHS = (0, 69)
SUFFIXES = {"unpack": "_UNPACK", "math": "_MATH", "pack": "_PACK", "": ""}
OLD_NAME, NEW_NAME = "DPRINT", "DEVICE_PRINT"


def breakpoint_line(op: KernelCallOp) -> str:
    return f"// line {line_of(op)} is a breakpoint: the simulator stops there"


def print_headers(calls: Sequence[KernelCallOp], release: tuple[int, int], name: str = OLD_NAME) -> list[str]:
    folder = "api/debug" if release >= NEW_PATHS else "debug"
    prints = [op for op in calls if op.CALL.name == "dprint"]
    tiles = any(text_value(op, "subject") in ("waited", "reserved") for op in prints)
    return [f'#include "{folder}/{name.lower()}.h"'] * bool(prints) + [f'#include "{folder}/dprint_tile.h"'] * tiles


def print_lines(
    op: KernelCallOp, arguments: Sequence[str], release: tuple[int, int], *, wanted: bool, name: str = OLD_NAME
) -> list[str]:
    """The statements of one print, or a comment in its place."""
    if not wanted:
        return [f"// line {line_of(op)} prints; compile with debug_print to see it on a device"]
    subject, text = text_value(op, "subject"), text_value(op, "text")
    numbers = list(arguments[1:] if subject and subject != "dst" else arguments)
    macro = name + SUFFIXES[text_value(op, "processor")]
    lines = [_statement(macro, text, numbers, release)] if text or not subject else []
    if subject in ("waited", "reserved"):
        return lines + _tiles(op, macro, arguments[0], subject, release)
    if subject:
        what = "what DST holds" if subject == "dst" else f"the state of a {subject}"
        lines.append(_statement(macro, f"line {line_of(op)}: {what} is printed by the simulator only", (), release))
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
    moving = "" if text_value(op, "processor") else ", TSLICE_INPUT_CB, " + pointer
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


def _text(*lines: str) -> str:
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


# The statements that make a tile of ones and zeros in L1.

PLACES = {
    "faces": "the first row of every face: what a reduction multiplies with",
    "row": "the first row, where a reduction of columns has its result",
    "column": "the first column, where a reduction of rows has its result",
    "corner": "the first element, where a reduction of everything has its result",
    "first": "the first element: all that a broadcast of a number reads",
}


def fill_scaler(op: KernelCallOp, buffer: str) -> str:
    """The value in one place of the tile, zeros elsewhere."""
    kind = op.operand("buffer").type
    value = op.attributes["value"]
    assert isinstance(kind, KernelCBType) and isinstance(value, FloatAttr)
    (bits,) = struct.unpack("<I", struct.pack("<f", value.value.data))
    per_word = 4 // (kind.tile.bytes // 1024)  # datums in a 32-bit word
    word = bits if per_word == 1 else (bits >> 16) << 16 | bits >> 16
    face_words = FACE_ROWS * FACE_COLS // per_word
    row_words = FACE_COLS // per_word
    pattern = text_value(op, "pattern", "faces")
    if pattern == "first":
        return _text(
            "{",
            f"  // {value.value.data:g} in {PLACES[pattern]}.",
            f"  *reinterpret_cast<volatile uint32_t*>(get_write_ptr({buffer})) = 0x{word:08x}u;",
            "}",
        )
    if pattern == "column" and per_word == 2:
        word &= 0xFFFF  # of two elements in a word the first
    condition = {
        "faces": f"i % {face_words} < {row_words}",
        "row": f"i < {2 * face_words} && i % {face_words} < {row_words}",
        "column": f"i / {face_words} % 2 == 0 && i % {row_words} == 0",
        "corner": "i == 0",
    }[pattern]
    return _text(
        "{",
        f"  // {value.value.data:g} in {PLACES[pattern]}.",
        f"  auto* words = reinterpret_cast<volatile uint32_t*>(get_write_ptr({buffer}));",
        f"  for (uint32_t i = 0; i < {4 * face_words}; ++i) {{",
        f"    words[i] = {condition} ? 0x{word:08x}u : 0u;",
        "  }",
        "}",
    )


def fill_mask(op: KernelCallOp, buffer: str, start: str, names: list[str]) -> str:
    """Ones inside a tensor and zeros beside it, over the tiles of a block."""
    kind = op.operand("buffer").type
    assert isinstance(kind, KernelCBType)
    short = kind.tile.bytes == 2 * TILE_ELEMENTS
    word, one = ("uint16_t", "0x3f80") if short else ("uint32_t", "0x3f800000u")
    axis, limit = int_value(op, "axis"), int_value(op, "limit")
    face = FACE_ROWS * FACE_COLS
    i, place = names
    within = (
        f"{i} / {2 * face} % 2 * {FACE_ROWS} + {i} % {face} / {FACE_COLS}" if axis == 0
        else f"{i} / {face} % 2 * {FACE_COLS} + {i} % {FACE_COLS}"
    )  # fmt: skip
    tile = f"{i} / {TILE_ELEMENTS}" if start == "0" else f"({start} + {i} / {TILE_ELEMENTS})"
    name = ("row", "column")[axis]
    return _text(
        "{",
        f"  // Ones in {name}s that the tensor has, {limit} of them; zeros in its padding.",
        f"  auto* data = reinterpret_cast<volatile {word}*>(get_write_ptr({buffer}));",
        f"  for (uint32_t {i} = 0; {i} < {kind.block_tiles * TILE_ELEMENTS}; ++{i}) {{",
        f"    const uint32_t {place} = {tile} * {(TILE_ROWS, TILE_COLS)[axis]} + {within};",
        f"    data[{i}] = {place} < {limit} ? {one} : 0;",
        "  }",
        "}",
    )


PATTERNS = {
    "rows": ("the number of its row", "{row}"),
    "columns": ("the number of its column", "{column}"),
    "upper": ("one on and above the diagonal of the block, zero below", "{row} <= {column}"),
    "lower": ("one on and below the diagonal of the block, zero above", "{row} >= {column}"),
}


def fill_pattern(op: KernelCallOp, buffer: str, names: list[str]) -> str:
    """Every element says where it stands in its block; a bf16 is the upper half of that float."""
    kind = op.operand("buffer").type
    assert isinstance(kind, KernelCBType)
    columns = int_value(op, "columns")
    i, row, column = names
    face = FACE_ROWS * FACE_COLS
    words, value = PATTERNS[text_value(op, "pattern", "")]
    down, across = (f"{i} / {TILE_ELEMENTS} / {columns}", f"{i} / {TILE_ELEMENTS} % {columns}") if columns > 1 else (
        f"{i} / {TILE_ELEMENTS}", "0"
    )  # fmt: skip
    short = kind.tile.bytes == 2 * TILE_ELEMENTS
    word, shift = ("uint16_t", " >> 16") if short else ("uint32_t", "")
    within = f"{i} / {2 * face} % 2 * {FACE_ROWS} + {i} % {face} / {FACE_COLS}"
    beside = f"{i} / {face} % 2 * {FACE_COLS} + {i} % {FACE_COLS}"
    return _text(
        "{",
        f"  // Each element holds {words}.",
        f"  auto* data = reinterpret_cast<volatile {word}*>(get_write_ptr({buffer}));",
        f"  for (uint32_t {i} = 0; {i} < {kind.block_tiles * TILE_ELEMENTS}; ++{i}) {{",
        *([f"    const uint32_t {row} = {down} * {TILE_ROWS} + {within};"] if "{row}" in value else []),
        *([f"    const uint32_t {column} = {across} * {TILE_COLS} + {beside};"] if "{column}" in value else []),
        f"    const float value = static_cast<float>({value.format(row=row, column=column)});",
        f"    data[{i}] = __builtin_bit_cast(uint32_t, value){shift};",
        "  }",
        "}",
    )


def fill_zeros(op: KernelCallOp, address: str, i: str) -> str:
    return _text(
        "{",
        "  // A tile outside the tensor.",
        f"  auto* words = reinterpret_cast<volatile uint32_t*>({address});",
        f"  for (uint32_t {i} = 0; {i} < {int_value(op, 'bytes') // 4}; ++{i}) {{",
        f"    words[{i}] = 0;",
        "  }",
        "}",
    )


# The statements that move one tile between L1 and a row-major tensor, whose pages are rows of elements.

TILE_ROWS_CALLS = ("noc_async_read_tile_rows", "noc_async_write_tile_rows")


# Calls that are not written as the name of a call and its arguments.
OF_THEIR_OWN = frozenset((
    *INLINE, *TILE_ROWS_CALLS, "get_write_ptr", "get_read_ptr", "read_element", "write_element", "wait_any", "extern_call",
    "pipe_target", "fill_scaler", "fill_mask", "fill_pattern", "fill_zeros",
))  # fmt: skip

Transfer = Callable[[str, str, str, str], str]  # a call, a NoC address, a place in L1, bytes


def plain_transfer(name: str, address: str, l1: str, size: str) -> str:
    return f"{name}({', '.join([address, l1] if name == 'noc_async_read' else [l1, address])}, {size})"


def tile_rows(op: KernelCallOp, arguments: list[str], names: list[str], transfer: Transfer = plain_transfer) -> str:
    """Two transfers per row: 16 elements for the left face, 16 for the right one. One where memory is read in larger steps."""
    row, column, tensor, address = arguments
    counter, stick, face = names
    accessor = op.operand("accessor").owner
    assert isinstance(accessor, Operation)
    element = tile_bytes(text_value(accessor, "dtype")) // TILE_ELEMENTS
    part, face_bytes = FACE_COLS * element, FACE_ROWS * FACE_COLS * element
    if int_value(op, "row_bytes", part) > part:
        return _read_and_part(arguments, counter, part, transfer)
    first = "" if row == "0" else f"{row} * {TILE_ROWS} + "
    across = "0" if column == "0" else f"{column} * {TILE_COLS * element}"
    left, right = (stick, face), (f"{stick} + {part}", f"{face} + {face_bytes}")
    name = "noc_async_read" if op.CALL.name == "noc_async_read_tile_rows" else "noc_async_write"
    place = f"{counter} / {FACE_ROWS} * {2 * face_bytes} + {counter} % {FACE_ROWS} * {part}"
    head = f"for (uint32_t {counter} = 0; {counter} < {TILE_ROWS}; ++{counter})"
    return _text(
        f"{head} {{  // a page of {tensor} is one row of elements",
        f"  const uint64_t {stick} = {tensor}.get_noc_addr({first}{counter}, {across});",
        f"  const uint32_t {face} = {address} + {place};",
        *(f"  {transfer(name, *side, str(part))};" for side in (left, right)),
        "}",
    )


def _read_and_part(arguments: list[str], counter: str, part: int, transfer: Transfer) -> str:
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
    return _text(
        f"{head} {{  // a page of {tensor} is one row of elements",
        f"  {transfer('noc_async_read', source, target, str(2 * part))};",
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


# Single elements of a block in L1. Tiles lie one behind the other, row by row, and each of them face by face.

ELEMENT_FUNCTIONS = {
    "element_at": (
        "inline uint32_t element_at(uint32_t row, uint32_t column, uint32_t across) {  // tiles lie face by face",
        "  const uint32_t face = (row / 32 * across + column / 32) * 4 + row / 16 % 2 * 2 + column / 16 % 2;",
        "  return face * 256 + row % 16 * 16 + column % 16;",
        "}",
    ),
    "whole_number": (
        "inline uint32_t whole_number(uint32_t bits) {  // of a float that is not negative, without its fraction",
        "  const uint32_t exponent = bits >> 23 & 0xff;",
        "  const uint32_t digits = (bits & 0x7fffff) | 0x800000;",
        "  if (exponent < 127 || exponent > 157) {",
        "    return exponent < 127 ? 0 : 0x7fffffff;",
        "  }",
        "  return exponent < 150 ? digits >> (150 - exponent) : digits << (exponent - 150);",
        "}",
    ),
    "float_bits": (
        "inline uint32_t float_bits(uint32_t number) {  // as an f32, rounded to the nearest",
        "  if (number == 0) {",
        "    return 0;",
        "  }",
        "  const uint32_t sign = number & 0x80000000;",
        "  const uint32_t size = sign ? -number : number;",
        "  const uint32_t zeros = __builtin_clz(size);",
        "  const uint32_t digits = size << zeros;  // the first one is the highest bit",
        "  const uint32_t rest = digits & 0xff;",
        "  const uint32_t up = rest > 0x80 || (rest == 0x80 && (digits & 0x100));",
        "  return sign | (((157 - zeros) << 23) + (digits >> 8) + up);",
        "}",
    ),
    "bf16_bits": (
        "inline uint32_t bf16_bits(uint32_t bits) {  // of an f32, rounded to the nearest",
        "  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;",
        "}",
    ),
}


def element_functions(body: str) -> list[str]:
    """Those that the statements call."""
    used = [lines for name, lines in ELEMENT_FUNCTIONS.items() if f"{name}(" in body]
    return [line for lines in used for line in (*lines, "")]


def _element_place(op: KernelCallOp, row: str, column: str) -> str:
    """Its number among the elements of the buffer's block."""
    across, first = int_value(op, "across", 1), int_value(op, "first", 0) * TILE_ELEMENTS
    if row.isdigit() and column.isdigit():
        return str(first + element_number(int(row), int(column), across))
    place = f"element_at({row}, {column}, {across})"
    return f"{first} + {place}" if first else place


def element_number(row: int, column: int, across: int) -> int:
    tile = row // TILE_ROWS * across + column // TILE_COLS
    face = tile * 4 + row % TILE_ROWS // FACE_ROWS * 2 + column % TILE_COLS // FACE_COLS
    return face * FACE_ROWS * FACE_COLS + row % FACE_ROWS * FACE_COLS + column % FACE_COLS


def _in_l1(op: KernelCallOp, buffer: str, place: str) -> str:
    pointer = "get_write_ptr" if "reserved" in op.attributes else "get_read_ptr"
    word = f"{WORDS[text_value(op, 'dtype')]}_t"
    return f"reinterpret_cast<volatile tt_l1_ptr {word}*>({pointer}({buffer}))[{place}]"


def read_element(op: KernelCallOp, arguments: Sequence[str], *, computes: bool) -> str:
    buffer, row, column = arguments
    dtype, place = text_value(op, "dtype"), _element_place(op, row, column)
    if computes:
        found = _tile_value(buffer, place, TILE_ELEMENTS * 4 // tile_bytes(dtype))
    else:
        found = _in_l1(op, buffer, place)
    if dtype not in FLOATS or text_value(op, "form") == "bits":
        return found
    wide = found if dtype == "f32" else f"static_cast<uint32_t>({found}) << 16"
    return f"whole_number({wide})"


def _tile_value(buffer: str, place: str, per_word: int) -> str:
    """The unpacker reads a word of 32 bits and tells the other two."""
    if place.isdigit():
        tile, within = divmod(int(place), TILE_ELEMENTS)
        word = f"read_tile_value({buffer}, {tile}, {within // per_word})"
        shift = str(within % per_word * (32 // per_word))
    else:
        word = f"read_tile_value({buffer}, ({place}) / {TILE_ELEMENTS}, ({place}) % {TILE_ELEMENTS} / {per_word})"
        shift = f"({place}) % {per_word} * {32 // per_word}"
    if per_word == 1:
        return word
    return f"({word} >> ({shift}) & 0x{(1 << 32 // per_word) - 1:x})"


def write_element(op: KernelCallOp, arguments: Sequence[str]) -> str:
    buffer, row, column, value = arguments
    dtype = text_value(op, "dtype")
    if text_value(op, "form") == "number":
        value = f"float_bits({value})" if dtype == "f32" else f"bf16_bits(float_bits({value}))"
    return f"{_in_l1(op, buffer, _element_place(op, row, column))} = {value}"


# C++ of the author's own, in front of the kernel.

DESCRIPTOR = (
    "template <uint32_t Id, uint32_t BlockTiles, uint32_t BlockCount>",
    "struct dfb {  // a circular buffer as a type",
    "  static constexpr uint32_t id = Id, block_tiles = BlockTiles, block_count = BlockCount, tiles = BlockTiles * BlockCount;",
    "};",
    "",
)


def external_code(calls: Sequence[KernelCallOp]) -> list[str]:
    external = [op for op in calls if op.CALL.name == "extern_call"]
    described = any("dfb<" in text_value(op, "text") for op in external)
    texts = dict.fromkeys(text_value(op, "code") for op in external)
    return [*(DESCRIPTOR if described else ()), *(line for text in texts for line in (*text.split("\n"), ""))]
