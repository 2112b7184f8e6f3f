"""What may exist after which pass. ``pipeline.py`` holds every result against this."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects import tile_ops
from tilewright.dialects.pass_names import PASS_NAMES
from tilewright.dialects.walking import operations

# After the pass: op-name prefixes that must be gone. Each list also holds for every later pass.
GONE: dict[str, tuple[str, ...]] = {
    "convert-ttl-to-compute": tuple(f"ttl.{row.name}" for row in tile_ops.ROWS),
    "ttl-lower-to-loops": ("ttl.compute", "ttl.linearized_index", "ttl.yield"),
    "convert-ttl-to-ttkernel": ("ttl.", "tensor."),
    "lower-affine": ("affine.",),
}


@lru_cache(maxsize=64)
def forbidden_after(name: str) -> tuple[str, ...]:
    gone: tuple[str, ...] = ()
    for stage, prefixes in GONE.items():
        if _position(stage) <= _position(name):
            gone += prefixes
    return gone


@lru_cache(maxsize=64)
def _names_and_dialects(name: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """What is forbidden after a pass: names of ops, and dialects."""
    gone = forbidden_after(name)
    return frozenset(gone), tuple(prefix for prefix in gone if prefix.endswith("."))


def _position(name: str) -> int:
    return (*PASS_NAMES, "lower-affine").index(name)


def check_stage(name: str, module: ModuleOp) -> None:
    names, dialects = _names_and_dialects(name)
    if not names:
        return
    left = [each for each in {op.name for op in operations(module)} if each in names or each.startswith(dialects)]
    if left:
        raise AssertionError(f"{min(left)} is left after {name}")
