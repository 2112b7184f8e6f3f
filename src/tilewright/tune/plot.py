"""The space as a picture: one panel a parameter, time over its values, a dot for every configuration.

SVG is written here, without a library. A PNG is drawn by matplotlib where that is installed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilewright.tune.search import Outcome
from tilewright.tune.trial import REFUSED, TIMED, Trial

PANEL, HEIGHT, LEFT, TOP, GAP = 220, 240, 70, 56, 24
BEST, DOT, FAINT, REFUSAL = "#c2410c", "#1d4ed8", "#94a3b8", "#9ca3af"
MOST_DOTS = 2000
DEFAULT = "default"


def label(value: Any) -> str:
    """A value below its axis; configurations that leave the parameter to its default stand there, too."""
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)  # pyright: ignore


def svg(title: str, outcome: Outcome, axes: dict[str, list[Any]]) -> str:
    """Timed configurations are full dots, others rings at what they take at least; refused ones stand below the axis."""
    shown = [trial for trial in outcome.trials if trial.state != REFUSED][:MOST_DOTS]
    panels = {name: values for name, values in axes.items() if len(values) > 1} or dict(list(axes.items())[:1])
    times = [trial.time for trial in shown if trial.time > 0]
    low, high = (math.log10(min(times)), math.log10(max(times))) if times else (0.0, 1.0)
    high = max(high, low + 0.05)
    width = LEFT + len(panels) * (PANEL + GAP)
    height = TOP + HEIGHT + 60

    def y(time: float) -> float:
        return TOP + HEIGHT * (1 - (math.log10(max(time, 1e-9)) - low) / (high - low))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="22" font-size="14">{escape(title)}</text>',
        '<text x="12" y="40" fill="#475569">microseconds (log); full: timed, ring: at least, cross: refused; best in red</text>',
    ]
    for step in range(5):
        level = low + (high - low) * step / 4
        parts.append(f'<text x="{LEFT - 8}" y="{y(10**level) + 4:.1f}" text-anchor="end">{10**level:,.3g}</text>')
    best = outcome.best
    for number, (name, values) in enumerate(panels.items()):
        left = LEFT + number * (PANEL + GAP)
        if any(name not in trial.config for trial in outcome.trials):
            values = [*values, DEFAULT]
        places = {label(value): left + PANEL * (place + 0.5) / len(values) for place, value in enumerate(values)}
        parts.append(f'<rect x="{left}" y="{TOP}" width="{PANEL}" height="{HEIGHT}" fill="none" stroke="#cbd5e1"/>')
        for text, x in places.items():
            parts.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 28}" text-anchor="middle">{escape(text)}</text>')
        parts.append(f'<text x="{left + PANEL / 2}" y="{TOP + HEIGHT + 46}" text-anchor="middle">{escape(name)}</text>')
        for text in {label(trial.config.get(name, DEFAULT)) for trial in outcome.refused}:
            x = places[text]
            parts.append(
                f'<path d="M{x - 3:.1f} {TOP + HEIGHT + 7} l6 6 m0 -6 l-6 6" stroke="{REFUSAL}" fill="none"/>'
            )
        for trial in reversed(shown):  # the best last, on top
            parts.append(_dot(trial, places[label(trial.config.get(name, DEFAULT))], y(trial.time), is_best=trial is best))
    return "\n".join([*parts, "</svg>", ""])


def _dot(trial: Trial, x: float, y: float, *, is_best: bool) -> str:
    from tilewright.tune.trial import settings

    text = f"<title>{escape(settings(trial.config))}: {trial.time:,.2f} us, {trial.how}</title>"
    if is_best:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{BEST}">{text}</circle>'
    if trial.state == TIMED:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{DOT}" fill-opacity="0.6">{text}</circle>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="none" stroke="{FAINT}">{text}</circle>'


def write(path: Path, title: str, outcome: Outcome, axes: dict[str, list[Any]]) -> list[Path]:
    """Which files there are now."""
    path.write_text(svg(title, outcome, axes), encoding="utf-8")
    png = path.with_suffix(".png")
    return [path, png] if _png(png, title, outcome, axes) else [path]


def _png(path: Path, title: str, outcome: Outcome, axes: dict[str, list[Any]]) -> bool:
    try:
        plotting: Any = importlib.import_module("matplotlib")
    except ImportError:
        return False
    plotting.use("Agg")
    drawing: Any = importlib.import_module("matplotlib.pyplot")
    several = [(name, values) for name, values in axes.items() if len(values) > 1]
    panels: Sequence[tuple[str, list[Any]]] = several or [*axes.items()]
    figure, frames = drawing.subplots(1, len(panels), sharey=True, squeeze=False, figsize=(3 * len(panels), 3.5))
    shown = [trial for trial in outcome.trials if trial.state != REFUSED][:MOST_DOTS]
    for frame, (name, values) in zip(frames[0], panels, strict=True):
        texts = [*(label(value) for value in values), DEFAULT]
        for state, style in ((TIMED, "o"), ("", ".")):
            chosen = [trial for trial in shown if (trial.state == TIMED) == (state == TIMED)]
            places = [texts.index(label(trial.config.get(name, DEFAULT))) for trial in chosen]
            frame.semilogy(places, [trial.time for trial in chosen], style, alpha=0.5)
        frame.set_xticks(range(len(texts)), texts)
        frame.set_xlabel(name)
    frames[0][0].set_ylabel("microseconds")
    figure.suptitle(title)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    drawing.close(figure)
    return True
