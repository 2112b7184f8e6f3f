"""docs/numerics.md is what the generator writes, and says what was measured."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from tilewright.sim.numerics import report
from tilewright.sim.numerics.report import differing_calls, values_by_call

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "numerics.md"


def test_document_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == report.page()


def test_every_recorded_call_has_a_row() -> None:
    text = report.page()
    for calls in values_by_call().values():
        for key, values in calls.items():
            assert f"| `{key.split('@')[0]}` |" in text and f" {values:,} |" in text


def test_every_large_difference_of_the_chips_has_a_word() -> None:
    large = {
        call.split("[")[0]
        for call, *found in differing_calls("wormhole_b0", "blackhole")
        if any(part is not None and part.largest >= report.LARGE for part in found)
    }
    assert {"fmod_tile", "softsign_tile"} <= large <= set(report.WORDS)


def test_counts_of_recorded_programs(recordings: ModuleType) -> None:
    """The numbers of programs in the page's first table."""
    patterns = {
        r"copy\..*|bfp8_in\..*": 8,
        r"fpu_(add|sub|mul)(\..*)?": 30,
        r"fpu_(add|sub)_acc\..*|fpu_mul_onto_.*|fpu_mulacc\..*|fpu_erratum\..*": 27,
        r"fpu_(add|sub|mul)_bcast_.*": 18,
        r"fpu_(add|sub|mul)_reuse_.*": 31,
        r"mm.*": 69,
        r"reduce_.*": 87,
        r"transpose\..*|unary_bcast_(col|scalar)\..*|unary_bcast_row\.(bf16|fp32)": 11,
        r"pack_.*|l1_acc\..*|bfp8_out.*": 22,
    }
    for pattern, count in patterns.items():
        assert len(recordings.tags(pattern)) == count, pattern
