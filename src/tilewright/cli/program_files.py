"""A compiled program as files: one C++ file per thread, and program.json for whoever launches them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.program import Program
from tilewright.report import dst_assignment

ROLES = ("compute", "reader", "writer")


def described(program: Program) -> dict[str, Any]:
    """What a launcher must set up, and what the compiler decided."""
    return {
        "name": program.name,
        "grid": list(program.grid),
        "options": plain(asdict(program.options)),
        "tensors": [plain(asdict(tensor)) for tensor in program.tensors],
        "buffers": [{**plain(asdict(buffer)), "tiles": buffer.tiles} for buffer in program.buffers],
        "semaphores": [plain(asdict(semaphore)) for semaphore in program.semaphores],
        "threads": [{**plain(asdict(thread)), "file": f"{thread.role}.cpp"} for thread in program.threads],
        "compute_config": plain(asdict(program.config)),
        "dst": plain(dst_assignment.regions(program.trace)),
        "decisions": [
            {"pass": made.stage, "title": made.title, "detail": made.detail, "place": made.place}
            for made in program.trace.decisions
        ],
    }


def plain(value: Any) -> Any:
    """``value`` with only what JSON has."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def folder_names(programs: Sequence[Program]) -> list[str]:
    """Names of the kernels; a kernel compiled for several shapes gets a number from the second on."""
    counts: dict[str, int] = {}
    names: list[str] = []
    for program in programs:
        count = counts.get(program.name, 0) + 1
        counts[program.name] = count
        names.append(program.name if count == 1 else f"{program.name}-{count}")
    return names


def write_all(programs: Sequence[Program], target: Path, *, runner: bool = False) -> dict[str, Path]:
    """Writes every program below ``target``, with a script that launches it if wanted; paths by ``<folder>/<file>``."""
    import json

    written: dict[str, Path] = {}
    for name, program in zip(folder_names(programs), programs, strict=True):
        folder = target / name
        folder.mkdir(parents=True, exist_ok=True)
        for role, text in program.cpp.items():
            written[f"{name}/{role}"] = save(folder / f"{role}.cpp", text)
        text = json.dumps(described(program), indent=2) + "\n"
        written[f"{name}/program"] = save(folder / "program.json", text)
        if runner:
            written[f"{name}/runner"] = save(folder / "runner.py", runner_script(program))
    return written


def runner_script(program: Program) -> str:
    from tilewright.runtime.runner import script

    return script(program)


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def sources_as_text(program: Program) -> str:
    parts = [f"// ===== {program.name}: {role}.cpp =====\n{program.cpp[role].rstrip()}\n" for role in program.cpp]
    return "\n".join(parts)
