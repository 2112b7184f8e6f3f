"""Make ``tests/unit/dialects/signatures.json``: how every kernel call is declared in the newest release.

    python benchmarks/make_signature_digest.py metalium-api-signatures.json

Per name a list of overloads: ``[header, fewest arguments, most, fewest template arguments, most, deprecated]``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "unit" / "dialects" / "signatures.json"


def split_top(text: str) -> list[str]:
    """Comma-separated parts, commas inside brackets left alone."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += character in "<("
        depth -= character in ">)"
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [part.strip() for part in (*parts, current) if part.strip()]


def count(text: str) -> tuple[int, int]:
    """Fewest and most arguments of a parameter list."""
    parts = split_top(text)
    return sum("=" not in part for part in parts), len(parts)


def main() -> None:
    overloads: dict[str, list[list[object]]] = {}
    for entry in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        if entry["file"].startswith(("experimental/", "debug/", "sentinel/")):
            continue
        template = entry["tmpl"].strip()
        template = template[1:-1] if template.startswith("<") else template
        signature = [entry["file"], *count(entry["args"]), *count(template), bool(entry["dep"])]
        overloads.setdefault(entry["name"], []).append(signature)
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in sorted(overloads.items())]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
