"""Pictures for the gallery: what the page of ``tilewright explain`` draws of a kernel, as one small SVG.

The page is opened in a browser. Its DST chart is taken as it stands. Its timeline draws onto a canvas; here it draws onto a recorder
instead, which writes down rectangles, lines and texts. Nothing is drawn that the page does not draw.
"""

from __future__ import annotations

import math
import re
import tempfile
from pathlib import Path
from typing import Any

from headless import Browser
from tilewright.report import page

WIDTH = 900
SMALLEST = 0.75  # of the page's size
FONT = 'font-family="system-ui, DejaVu Sans, sans-serif"'
STYLE = """
text { fill: #1b1f24; font: 12px system-ui, "DejaVu Sans", sans-serif; }
.soft { fill: #57606a; } .sync { fill: #57606a; opacity: .16; } .edge { fill: none; stroke: #57606a; stroke-width: 1.3; }
.interval { stroke: #ffffff; stroke-width: 1; } .other { opacity: .55; }
"""

# The chart with most steps, and how many there are.
CHART = """
const all = [...document.querySelectorAll('.dst-chart')];
const steps = svg => svg.querySelectorAll('.step').length;
const best = all.reduce((a, b) => (steps(b) > steps(a) ? b : a), all[0]);
if (!best) return null;
return {text: best.outerHTML, width: best.width.baseVal.value, height: best.height.baseVal.value, charts: all.length};
"""

# The timeline once more, onto a context that writes down what is drawn; colours are those of the light page.
RECORD = """
const canvas = document.querySelector('.timeline canvas'), real = canvas.getContext('2d');
const marks = [];
let path = [];
const recorder = {
  fillRect(x, y, w, h) { marks.push(['rect', this.fillStyle, this.globalAlpha, x, y, w, h]); },
  fillText(text, x, y) { marks.push(['text', this.fillStyle, this.textAlign, x, y, text]); },
  beginPath() { path = []; }, moveTo(x, y) { path.push(x, y); }, lineTo(x, y) { path.push(x, y); },
  stroke() { marks.push(['line', this.strokeStyle, this.globalAlpha, ...path]); },
  measureText(text) { real.font = this.font; return real.measureText(text); },
  clearRect() { marks.length = 0; }, save() {}, restore() {}, rect() {}, clip() {}, setTransform() {}, globalAlpha: 1,
};
canvas.getContext = () => recorder;
canvas.dispatchEvent(new KeyboardEvent('keydown', {key: '0'}));
const named = [...document.querySelectorAll('#time .keys > span')].filter(each => each.querySelector('.swatch'));
const keys = named.map(each => [getComputedStyle(each.querySelector('.swatch')).backgroundColor, each.textContent]);
return {marks, width: canvas.clientWidth, height: canvas.clientHeight, keys};
"""


def picture(browser: Browser, document: dict[str, Any]) -> str:
    """One SVG of the first kernel of a document: DST of its longest region above, the engines of its slowest core below."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        page.write(file, document)
        browser.open(file, width=WIDTH + 32)
        chart, line = browser.ask(CHART), browser.ask(RECORD)
    parts: list[str] = []
    y = 8.0
    if chart is not None:
        strips, high = folded(without_names(chart["text"]), chart["width"], chart["height"], y)
        parts += strips
        y += high + 14
    x = 16.0
    for colour, words in line["keys"]:
        wide = 24 + 6.6 * len(words)
        if x + wide > WIDTH:
            x, y = 16.0, y + 18
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="11" height="11" rx="3" fill="{hexadecimal(colour)}"/>')
        parts.append(f'<text x="{x + 16:g}" y="{y + 10:g}">{escaped(words)}</text>')
        x += wide
    y += 22
    wide = (WIDTH - 16) / line["width"]
    parts.append(f'<g transform="translate(8 {y:g}) scale({wide:.3f} 1)" {FONT} font-size="11.5">{timeline(line["marks"])}</g>')
    y += line["height"] + 8
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" width="{WIDTH}" height="{y:.0f}" role="img">'
    frame = f'<rect width="{WIDTH}" height="{y:.0f}" rx="8" fill="#ffffff" stroke="#d0d7de"/>'
    return f"{head}<style>{STYLE}</style>{frame}{''.join(parts)}</svg>\n"


def folded(svg: str, width: float, height: float, y: float) -> tuple[list[str], float]:
    """A chart that would be too small to read goes on in a strip below."""
    room = WIDTH - 16
    if width * SMALLEST <= room:
        scale = min(1.0, room / width)
        return [f'<g transform="translate(8 {y:g}) scale({scale:.3f})">{svg}</g>'], height * scale
    window, high = room / SMALLEST, height * SMALLEST
    count = math.ceil(width / window)
    window = width / count + 1
    strips = [f'<defs><g id="chart">{svg}</g></defs>']
    for number in range(count):
        view = f'viewBox="{number * (window - 1):.0f} 0 {window:.0f} {height:.0f}" preserveAspectRatio="xMinYMin"'
        strips.append(f'<svg x="8" y="{y + number * (high + 6):.0f}" width="{room}" height="{high:.0f}" {view}><use href="#chart"/></svg>')
    return strips, count * (high + 6)


def timeline(marks: list[list[Any]]) -> str:
    """Rectangles of one colour and row are one path, in whole pixels; what falls onto the same pixels is drawn once."""
    rows: dict[tuple[str, float, float, float], list[list[int]]] = {}
    others: list[str] = []
    for kind, colour, *rest in marks:
        if kind == "rect":
            alpha, x, y, w, h = rest
            spans = rows.setdefault((colour, alpha, y, h), [])
            start, end = round(x), max(round(x + w), round(x) + 1)
            if spans and start <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([start, end])
        elif kind == "line":
            alpha, *points = rest
            ends = " ".join(f'{name}="{value:.0f}"' for name, value in zip(("x1", "y1", "x2", "y2"), points, strict=True))
            others.append(f'<line {ends} stroke="{colour}" opacity="{alpha:g}"/>')
        else:
            align, x, y, text = rest
            anchor = {"left": "start", "right": "end", "center": "middle"}[align]
            style = f"fill:{colour};font-size:11.5px"
            others.append(f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="{anchor}" style="{style}">{escaped(text)}</text>')
    bars = [
        f'<path fill="{colour}" opacity="{alpha:g}" d="{"".join(f"M{a} {y:g}h{b - a}v{h:g}h{a - b}z" for a, b in spans)}"/>'
        for (colour, alpha, y, h), spans in rows.items()
    ]
    return "".join([*bars, *others])


def without_names(svg: str) -> str:
    """What only the page needs: names for scripts, the variables of its style."""
    svg = re.sub(r' (?:role|aria-label|data-\w+)="[^"]*"', "", svg)
    return svg.replace("var(--line)", "#d0d7de").replace(' xmlns="http://www.w3.org/2000/svg"', "")


def hexadecimal(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
