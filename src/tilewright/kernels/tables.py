"""Where the choices that come with the package lie."""

from __future__ import annotations

from pathlib import Path

TABLE = Path(__file__).with_name("tuned.json")  # made by benchmarks/tune.py --table
