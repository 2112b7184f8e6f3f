"""What the native machine must know about ops, written as a C++ header from the op table when the machine is built."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.dialects import tile_op, tile_ops

NAME = "op_facts.h"


def lookup_inits() -> frozenset[str]:
    """Inits whose approximate form fills a table in registers; on the packer's processor they have names of their own."""
    inits = {form.init for row in tile_ops.ROWS for form in row.forms if form.lookup}
    return frozenset({*inits, *(f"{init}_pack" for init in inits)})


def header() -> str:
    facts = {
        "kStateless": tile_op.STATELESS,
        "kAddressMode": tile_op.ADDRESS_MODE,
        "kMacros": tile_op.MACROS,
        "kLookupIfApproximate": lookup_inits(),
        "kWriteConstants": tile_op.WRITE_CONSTANTS,
        "kStopStepping": tile_op.STOP_STEPPING,
        "kFillReplay": tile_op.FILL_REPLAY,
    }
    lists = "".join(f"inline const std::set<std::string_view> {name} = {_words(words)};\n" for name, words in facts.items())
    includes = "#pragma once\n#include <set>\n#include <string_view>\n"
    return f"// Written by native/op_facts.py.\n{includes}\nnamespace tw {{\n\n{lists}\n}}  // namespace tw\n"


def _words(words: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{word}"' for word in sorted(words)) + "}"
