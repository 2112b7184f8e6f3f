"""What a notebook draws of a kernel, a program and a profile: small tables of their own style, nothing asked for; how cells are
named."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

MOST_LINES = 8


LEFT = "style='text-align:left'"



def escape(text: str) -> str:
    from html import escape as escaped  # every diagnostic loads this file, and few processes draw anything

    return escaped(text)


def shown_file(file: str) -> str:
    """``Cell In[3]`` where ``file`` is what IPython calls the text of that cell; any other as it is."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    named = name_of(file) if name_of is not None else None
    return " ".join(named) if named else file


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    first = "".join(f"<th {LEFT}>{escape(text)}</th>" for text in head)
    others = ["".join(f"<td {LEFT}>{escape(str(cell))}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in (first, *others))}</table>"


def folded(title: str, text: str) -> str:
    shown = f"<pre style='max-height:30em;overflow:auto'>{escape(text.rstrip())}</pre>"
    return f"<details><summary>{escape(title)}</summary>{shown}</details>"


def kernel(name: str, grid: object, place: str, latest: str) -> str:
    """A kernel, and the program it was compiled to last."""
    said = latest or "not compiled yet: call it, or .compile(…) it"
    return f"<div><b>kernel {escape(name)}</b>, grid {escape(str(grid))}, {escape(place)}<br>{said}</div>"


def by(sizes: Iterable[int]) -> str:
    return "x".join(map(str, sizes))


def program(name: str, grid: Iterable[int], buffers: Iterable[Any], cpp: Mapping[str, str], decisions: Iterable[Any]) -> str:
    rows = [(one.index, one.name, f"{one.block_count} × {by(one.shape)}", one.dtype, one.origin) for one in buffers]
    parts = [f"<b>{escape(name)}</b>, grid {by(grid)}", table(("#", "buffer", "blocks × tiles", "type", "made by"), rows)]
    made = [f"{each.stage}: {each.title}{f' [{each.place}]' if each.place else ''}\n    {each.detail}" for each in decisions]
    parts += [folded("decisions", "\n".join(made))] if made else []
    parts += [folded(f"{role}.cpp", text) for role, text in cpp.items()]
    return f"<div>{''.join(parts)}</div>"


def profile(told: Mapping[str, Any]) -> str:
    """A profile's plain data."""
    cycles: float = told["cycles"] or 1.0
    title = f"<b>{escape(told['kernel'])}: {told['microseconds']:.2f} µs</b>"
    title += f" ({told['cycles']:,.0f} cycles, ±{told['uncertainty']:.0%})"
    where = f" on {escape(told['chip'])}, grid {by(told['grid'])}, bound by <b>{escape(told['bound'])}</b>"
    engines: list[tuple[object, ...]] = []
    for name, engine in told["engines"].items():
        why = max(engine["reasons"], key=engine["reasons"].__getitem__, default="")
        engines.append((name, f"{engine['busy']:,.0f} ({engine['busy'] / cycles:.0%})", f"{engine['stalled']:,.0f}", why))
    lines: list[tuple[object, ...]] = []
    for line in told["lines"][:MOST_LINES]:
        engine, spent = max(line["cycles"].items(), key=lambda entry: entry[1])
        lines.append((f"{spent:,.0f}", engine, line["line"], line["text"]))
    off = [(each["tensor"], f"{each['measured']:.2g}", f"{each['bound']:.2g}") for each in told["errors"]]
    helps = "".join(f"<li>{each['gain']:.0%} faster: {escape(each['change'])}</li>" for each in told["advice"])
    parts = [f"{title}{where}", table(("tensor", "off by, of its largest element", "at most"), off) if off else ""]
    parts += [table(("engine", "busy", "stalled", "mostly because"), engines)]
    parts += [table(("cycles", "engine", "line", "source"), lines), f"<ul>{helps}</ul>" if helps else ""]
    return f"<div>{''.join(parts)}</div>"
