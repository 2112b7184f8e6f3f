"""docs/gallery: a page for every program of examples/gallery, with its time on both chips, its error and a picture.

    python tests/gallery_page.py docs/gallery [NAME …]

Texts come from the programs: the docstring, what they print, what `profile` tells of them. A test compares the texts.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright import kernels
from tilewright.cli import kernel_calls
from tilewright.cli.main import main as tilewright
from tilewright.execution import Profiling
from tilewright.explain.document import document
from tilewright.timing.profile import Profile

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "examples" / "gallery"
PAGES = ROOT / "docs" / "gallery"
CHIPS = {"wormhole_b0": "Wormhole", "blackhole": "Blackhole"}

PROGRAMS = {
    "Transformers": {
        "softmax": "Softmax", "layernorm": "Layer norm", "rmsnorm": "RMS norm", "rope": "Rotary embedding", "swiglu": "SwiGLU",
        "gelu_mlp": "GELU MLP", "attention": "Attention", "flash_attention": "Flash attention", "flash_decode": "Flash decode",
        "top_k": "Top-k routing",
    },
    "Products": {
        "matmul_variants": "Matmul, three ways", "split_k": "Split-K matmul", "dequantised_matmul": "Dequantised matmul",
        "convolution": "Convolution",
    },
    "Many cores": {"stencil": "Stencil with halo", "all_reduce_ring": "All-reduce on a ring"},
    "Numbers": {
        "prefix_sum": "Prefix sum", "fft": "FFT butterflies", "mandelbrot": "Mandelbrot set", "black_scholes": "Black-Scholes",
    },
}  # fmt: skip
TITLES = {name: title for group in PROGRAMS.values() for name, title in group.items()}


@dataclass(frozen=True)
class Seen:
    """What running and timing a program showed."""

    printed: str
    profiles: dict[str, list[Profile]]  # by chip, one per kernel that it calls
    told: dict[str, Any]  # explain's document, for Wormhole


def seen(name: str) -> Seen:
    path = SOURCES / f"{name}.py"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert tilewright(["run", "--quiet", str(path)]) == 0, f"{name} is wrong"
    profiles: dict[str, list[Profile]] = {}
    told: dict[str, Any] = {}
    for chip in CHIPS:
        first = chip == next(iter(CHIPS))
        arguments = argparse.Namespace(source=str(path), arguments=[], verbose=False, arch=chip)
        found = kernel_calls.collect(arguments, Profiling(record=first, advise=False), keep_ir=False)
        profiles[chip] = [profile for profile, _ in found.times]
        if first:
            told = document(found.kernels, script=path.name)
    return Seen(printed.getvalue(), profiles, told)


def parts_of(source: str) -> tuple[str, str, str]:
    """Docstring of a program: what it is, and what to look at; then the program without it."""
    tree = ast.parse(source)
    text = ast.get_docstring(tree) or ""
    body = "\n".join(source.splitlines()[tree.body[0].end_lineno or 0 :]).strip() + "\n"
    said, look = re.split(r"\n+    tilewright run .*\n+", text)
    return said, look, body


def time_of(profile: Profile) -> str:
    return f"{profile.microseconds:.1f} µs"


def times_table(found: Seen) -> str:
    lines = ["| kernel | chip | cores | time | bound by |", "|---|---|---|---|---|"]
    for chip, profiles in found.profiles.items():
        for profile in profiles:
            cores = " x ".join(map(str, profile.grid))
            time = f"{time_of(profile)} (±{profile.uncertainty:.0%})"
            lines.append(f"| `{profile.kernel}` | {CHIPS[chip]} | {cores} | {time} | {profile.bound} |")
    return "\n".join(lines)


def library_part(body: str) -> str:
    """Source of the library's kernels that a program calls."""
    names = dict.fromkeys(re.findall(r"\bkernels\.(\w+)", body))
    texts = [inspect.getsource(getattr(kernels, name).subject.function) for name in names]
    if not texts:
        return ""
    return "\n## The kernel in the library\n\n" + "\n".join(f"```python\n{text.strip()}\n```\n" for text in texts)


def page(name: str, found: Seen) -> str:
    said, look, body = parts_of((SOURCES / f"{name}.py").read_text(encoding="utf-8"))
    return f"""# {TITLES[name]}

{said.replace("``", "`")}

![DST of the longest region, and the engines of the slowest core over time]({name}.svg)

{times_table(found)}

```console
$ tilewright run examples/gallery/{name}.py
{found.printed.rstrip()}
```

{look}

## The program

```python
{body.rstrip()}
```
{library_part(body)}"""


def index(found: dict[str, Seen]) -> str:
    lines = [
        "# Gallery",
        "",
        "Twenty kernels that people want, short enough to read. Each is a program below `examples/gallery` that checks itself against NumPy in the",
        "simulator. Its page has the source, a picture of DST and of the engines over time, and what bounds the kernel. Times are predictions",
        "([how far off they are](../timing.md)). `make gallery` writes these pages.",
    ]  # fmt: skip
    for group, titles in PROGRAMS.items():
        lines += ["", f"## {group}", "", "| kernel | Wormhole | bound by | Blackhole | bound by | beside NumPy |", "|---|---|---|---|---|---|"]
        lines += [row(name, found[name]) for name in titles]
    return "\n".join(lines) + "\n"


def row(name: str, found: Seen) -> str:
    cells = [f"[{TITLES[name]}]({name}.md)"]
    for chip in CHIPS:
        profiles = found.profiles[chip]
        cells += [", ".join(map(time_of, profiles)), ", ".join(dict.fromkeys(profile.bound for profile in profiles))]
    cells.append(found.printed.splitlines()[0].replace("max error against NumPy: ", "error "))
    return f"| {' | '.join(cells)} |"


def main(folder: Path, names: list[str]) -> None:
    from gallery_pictures import picture
    from headless import headless

    folder.mkdir(exist_ok=True)
    found = {name: seen(name) for name in TITLES}
    (folder / "index.md").write_text(index(found), encoding="utf-8")
    with headless() as browser:
        for name in names or TITLES:
            (folder / f"{name}.md").write_text(page(name, found[name]), encoding="utf-8")
            (folder / f"{name}.svg").write_text(picture(browser, found[name].told), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
