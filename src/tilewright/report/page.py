"""Compiled kernels as one HTML page that opens offline: buffers, decisions, IR after every pass, C++."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tilewright.report import dst_assignment
from tilewright.report.terminal import Kernel, by
from tilewright.trace import Decision

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; }
table { border-collapse: collapse; }
td, th { padding: .2rem .8rem; border-bottom: 1px solid var(--line); text-align: left; }
details { border-left: 3px solid var(--line); padding-left: .8rem; margin: .4rem 0; }
summary { cursor: pointer; } .place { opacity: .7; }
"""


def render(kernels: Iterable[Kernel]) -> str:
    body = "\n".join(section(kernel) for kernel in kernels)
    head = f'<meta charset="utf-8"><title>Tilewright</title><style>{STYLE}</style>'
    return f"<!doctype html>\n<html lang=\"en\"><head>{head}</head><body>\n{body}\n</body></html>\n"


def section(kernel: Kernel) -> str:
    parts = [f"<h1>{escape(kernel.name)}</h1>", f"<p>grid {by(kernel.grid)}</p>", "<h2>Buffers</h2>", buffers(kernel)]
    parts += ["<h2>Passes</h2>", *stages(kernel)]
    assigned = dst_assignment.lines(kernel.trace)
    parts += ["<h2>DST</h2>", code("\n".join(assigned))] if assigned else []
    parts.append("<h2>C++</h2>")
    parts += [folded(f"{role}.cpp", code(text), shown=role == "compute") for role, text in kernel.sources.items()]
    return "\n".join(parts)


def buffers(kernel: Kernel) -> str:
    rows = [
        f"<tr><td>{index}</td><td>{escape(name)}</td><td>{by(shape)}</td><td>{count}</td><td>{escape(dtype)}</td></tr>"
        for index, name, shape, dtype, count in kernel.buffers
    ]
    head = "<tr><th>index</th><th>name</th><th>tiles of a block</th><th>blocks</th><th>type</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def stages(kernel: Kernel) -> list[str]:
    parts: list[str] = []
    for stage in kernel.trace.stages:
        made = [decision(each) for each in kernel.trace.decisions if each.stage == stage.name]
        listed = f"<ul>{''.join(made)}</ul>" if made else ""
        title = f"{stage.name} <span class=place>{stage.seconds * 1e3:.2f} ms</span>"
        parts.append(f"{listed_title(title, listed)}{folded('IR', code(stage.ir))}")
    return parts


def listed_title(title: str, listed: str) -> str:
    return f"<h3>{title}</h3>{listed}"


def decision(made: Decision) -> str:
    place = f" <span class=place>{escape(made.place)}</span>" if made.place else ""
    return f"<li><b>{escape(made.title)}</b>{place}<br>{escape(made.detail)}</li>"


def code(text: str) -> str:
    return f"<pre>{escape(text.rstrip())}</pre>"


def folded(title: str, content: str, *, shown: bool = False) -> str:
    return f"<details{' open' if shown else ''}><summary>{escape(title)}</summary>{content}</details>"
