"""Kernel texts with one thing wrong: a line left out, an index or a count moved, two arguments swapped.

Mutants of one file stand together in one translation unit, each in a namespace, and an environment variable chooses one: headers
are parsed once per file instead of once per mutant.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

CHOICE = "TILEWRIGHT_MUTANT"
CALL = re.compile(r"^(\s*)(\w+)(<[^;]*>)?\((.*)\);(\s*//.*)?$")
BUFFER = re.compile(r"constexpr uint32_t (\w+) = get_compile_time_arg_val")
KEPT_APART = ("get_arg_val", "get_compile_time_arg_val", "TensorAccessor")
PAGES = ("noc_async_read_page", "noc_async_write_page")  # page, tensor, L1 address
ALIGNED = 32  # bytes
COMMUTATIVE = ("add_binary_tile", "mul_binary_tile", "binary_max_tile", "binary_min_tile")  # swapping operands changes nothing
COUNTED = ("cb_wait_front", "cb_pop_front", "cb_reserve_back", "cb_push_back", "pack_block")


@dataclass(frozen=True)
class Mutant:
    role: str
    line: int  # counts from 1
    what: str
    before: str
    after: str  # empty: the line is gone

    def __str__(self) -> str:
        return f"{self.role}:{self.line} {self.what}: {self.before.strip()} -> {self.after.strip() or 'nothing'}"

    def applied(self, text: str) -> str:
        lines = text.split("\n")
        lines[self.line - 1] = self.after
        return "\n".join(lines)


def mutants_of(role: str, text: str) -> Iterator[Mutant]:
    """Every mutant of one file, in the order of its lines."""
    buffers = set(BUFFER.findall(text))
    for number, line in enumerate(text.split("\n"), start=1):
        match = CALL.match(line)
        if match is None or match[2] in KEPT_APART:
            continue
        yield Mutant(role, number, "left out", line, "")
        space, name, template = match[1], match[2], match[3] or ""
        arguments = split_arguments(match[4])
        for what, changed in changed_arguments(name, arguments, buffers):
            yield Mutant(role, number, what, line, f"{space}{name}{template}({', '.join(changed)});{match[5] or ''}")


def changed_arguments(name: str, arguments: list[str], buffers: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Other arguments of one call. Numbers that select an algorithm or are values stay as they are."""
    if "init" in name or name.startswith(("reconfig", "pack_reconfig", "compute_kernel")):
        return
    if name in COUNTED:
        last = arguments[-1]
        if name != "cb_reserve_back":  # it would only wait for more room than it uses
            yield "one more", [*arguments[:-1], f"{last} + 1"]
        if last != "1":
            yield "one less", [*arguments[:-1], f"{last} - 1"]
        return
    places = [place for place, argument in enumerate(arguments) if is_index(argument) and argument not in buffers]
    if name in PAGES:
        places = [0, 2]
    for place in places:
        step = ALIGNED if name in PAGES and place == 2 else 1
        yield f"argument {place} further by {step}", [*arguments[:place], f"{arguments[place]} + {step}", *arguments[place + 1 :]]
    swappable = [place for place in places if name not in PAGES and (name != "matmul_block" or place < 5)]
    for first, second in itertools.pairwise(swappable):
        if arguments[first] != arguments[second] and not (name in COMMUTATIVE and second == 1):
            swapped = list(arguments)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            yield f"arguments {first} and {second} swapped", swapped


def is_index(argument: str) -> bool:
    """A tile, a page, a DST slot or an address: not a buffer, a tensor or a constant in hexadecimal."""
    return bool(re.fullmatch(r"[a-z0-9_ +*]*", argument)) and not re.fullmatch(r"t\d+|0x\w+", argument)


def split_arguments(text: str) -> list[str]:
    """At commas outside brackets and comments."""
    text = re.sub(r"/\*.*?\*/", "", text)
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += letter in "(<[" and text[place - 1 : place] != "-"
        depth -= letter in ")>]"
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def together(texts: list[str]) -> str:
    """One file that runs the text ``CHOICE`` names, which must all include the same."""
    includes = [line for line in texts[0].split("\n") if line.startswith("#include")]
    bodies = ["\n".join(line for line in text.split("\n") if not line.startswith("#include")) for text in texts]
    spaces = [f"namespace mutant_{number} {{\n{body}\n}}" for number, body in enumerate(bodies)]
    cases = [f"    case {number}: return mutant_{number}::kernel_main();" for number in range(len(texts))]
    choose = f'  switch (std::atoi(std::getenv("{CHOICE}"))) {{'
    return "\n".join([*includes, "#include <cstdlib>", *spaces, "void kernel_main() {", choose, *cases, "  }", "}", ""])
