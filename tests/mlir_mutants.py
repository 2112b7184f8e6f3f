"""IR text with something wrong: lines left out, repeated or exchanged, words of one line replaced by others of the same kind.

What comes out is a program or an error with a code; anything else is a defect. ``benchmarks/fuzz_text.py`` runs it without end.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.cli import mlir_files
from tilewright.compiler import compile_module
from tilewright.diagnostics import KernelError
from tilewright.options import Options

WORD = re.compile(r'"[^"]*"|%[\w$.-]+|[#!^@]?[A-Za-z_][\w.]*|-?\d+|[^\s\w]')
SPARE = {  # words of a kind that the text itself may not have
    "%": ("%nobody",),
    "number": ("-1", "0", "1", "2", "31", "64", "1000000", "4294967296"),
    "word": ("ttl.core", "ttl.block_exp", "ttl.store", "ttl.cb_pop", "ttl.copy", "f32", "bf16", "i32", "index", "true", "linalg.yield"),
    '"': ('"L1"', '"HiFi9"', '"sum"', '""', '"dram"'),
    "mark": ("(", ")", "{", "}", "[", "]", ",", ":", "->", "=", "<", ">"),
}


def kind_of(word: str) -> str:
    if word[0] == "%":
        return "%"
    if word[0] == '"':
        return '"'
    if word.lstrip("-").isdigit():
        return "number"
    return "word" if word[0].isalpha() or word[0] in "#!^@_" else "mark"


def mutated(text: str, chance: random.Random) -> str:
    """Mostly one change, so that much of what comes out is nearly right."""
    for _ in range(chance.choice((1, 1, 1, 1, 2, 3))):
        text = chance.choice((replaced_word, changed_lines))(text, chance)
    return text


def replaced_word(text: str, chance: random.Random) -> str:
    words = list(WORD.finditer(text))
    if not words:
        return text
    kinds = chance.choices(("number", "%", "word", '"', "mark"), (4, 4, 3, 1, 1))
    place = chance.choice([word for word in words if kind_of(word[0]) in kinds] or words)
    kind = kind_of(place[0])
    same = sorted({word[0] for word in words if kind_of(word[0]) == kind and word[0] != place[0]})
    other = chance.choice([*same, *SPARE[kind]])
    if chance.random() < 0.1:
        other = ""
    return text[: place.start()] + other + text[place.end() :]


def changed_lines(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    how = chance.randrange(3)
    if how == 0:
        del lines[first]
    elif how == 1:
        lines.insert(second, lines[first])
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


@dataclass(frozen=True)
class Outcome:
    """What became of a text: "compiled", a code, or the traceback of a defect. ``placed``: the error names a line."""

    text: str
    what: str
    placed: bool = True
    defect: BaseException | None = None


def outcome(text: str, options: Options | None = None) -> Outcome:
    try:
        module = mlir_files.parse(text, "mutant.mlir")
        mlir_files.verify(module)
        compile_module(module, name="mutant", grid=(1, 1), tensors=(), options=options or Options())
    except KernelError as error:
        first = error.diagnostics[0]
        return Outcome(text, first.code, placed=first.span is not None)
    except RecursionError as error:
        return Outcome(text, "RecursionError", defect=error)
    except Exception as error:
        return Outcome(text, type(error).__name__, defect=error)
    return Outcome(text, "compiled")


def outcomes(texts: Sequence[str], count: int, seed: int) -> Iterator[Outcome]:
    chance = random.Random(seed)
    for _ in range(count):
        yield outcome(mutated(chance.choice(texts), chance))
