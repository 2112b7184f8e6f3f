"""The calls of an emitted kernel, or of a listing, as comparable text."""

from __future__ import annotations

import re

CALL = re.compile(r"\b(\w+)(<[^;()]*>)?\((.*)\);")
SETUP = re.compile(r"(_init|_init_short|_init_common|init_sfpu|hw_startup|_uninit|^(pack_)?reconfig\w*)$")
LOOP = re.compile(r"for \(\w+ (\w+) = (\w+); \w+ < (\w+);")


def emitted(cpp: str, *, inits: bool = False) -> list[str]:
    """From acquire to release: calls as ``name(arguments)``, loops as ``for variable < bound`` and ``}``."""
    lines = cpp.splitlines()
    starts = [number for number, line in enumerate(lines) if "tile_regs_acquire" in line]
    ends = [number for number, line in enumerate(lines) if "tile_regs_release" in line]
    assert len(starts) == len(ends) == 1, "one acquire"
    return calls(lines[starts[0] : ends[0] + 1], inits=inits)


def calls(lines: list[str], *, inits: bool = False) -> list[str]:
    found: list[str] = []
    names: dict[str, str] = {}
    for line in lines:
        text = line.split("//")[0].strip()
        constant = re.match(r"const uint32_t (\w+) = (.*);", text)
        if constant:
            names[constant[1]] = constant[2]
            continue
        loop = LOOP.match(text)
        if loop:
            found.append(f"for {loop[1]} < {loop[3]}")
        elif text == "}":
            found.append("}")
        match = None if loop else CALL.match(text)
        if match is None or (not inits and SETUP.search(match[1])):
            continue
        arguments = re.sub(r"\b\w+\b", lambda word: names.get(word[0], word[0]), match[3])
        found.append(f"{match[1]}({arguments})")
    return found


def listed(text: str, buffers: dict[str, str]) -> list[str]:
    """A listing of the specification: ``DST[3]`` is 3, buffers get the names the kernel gave them."""
    found: list[str] = []
    for line in text.strip().splitlines():
        code = line.split("//")[0].strip().rstrip(";")
        if not code:
            continue
        code = re.sub(r"DST\[([^\]]*)\]", r"\1", code)
        for name, ours in buffers.items():
            code = re.sub(rf"\b{name}\b", ours, code)
        found.append(code)
    return found
