"""Compares rows of the op table with recordings of a chip's simulator, bit for bit.

    python benchmarks/compare_rows.py FOLDER CHIP [--native] [ROW.DTYPE…]

FOLDER holds ``ROW.DTYPE[.approx].npz``: the bits that went in (``in0``, ``in1``, ``in2``) and came out (``out``) of the kernel
that is emitted for one row with its sample parameters, run by the vendor's simulator of CHIP. Prints rows that differ, with how many
lanes and the first of them. Lanes with a NaN whose sign is set are left out: recording lost the sign.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import kernel_text  # noqa: E402
import op_kernels  # noqa: E402

from tilewright.dialects import tile_ops  # noqa: E402
from tilewright.native.driver import run as run_native  # noqa: E402
from tilewright.sim.run import simulate  # noqa: E402

SHOWN = 3
ROWS = {row.name: row for row in tile_ops.ROWS}


def recorded(folder: Path, words: list[str]) -> Iterator[tuple[str, list[Any], Any]]:
    for path in sorted(folder.glob("*.npz")):
        name = path.name.removesuffix(".npz")
        if words and not any(name == word or name.startswith(f"{word}.") for word in words):
            continue
        with np.load(path) as archive:
            yield name, [archive[f"in{place}"] for place in range(3) if f"in{place}" in archive.files], archive["out"]


def computed(name: str, inputs: list[Any], chip: str, folder: Path, *, native: bool) -> Any:
    """What the row's kernel gives for patterns."""
    row_name, dtype, *form = name.split(".")
    row = ROWS[row_name]
    names = op_kernels.names_of(row)
    tiles = tuple(size // 32 for size in inputs[0].shape)
    text = kernel_text.elementwise({"o": op_kernels.expression(row, dtype, approx=bool(form))}, names, blocks=tiles)
    arrays = [array.view(op_kernels.HOST[dtype]) for array in inputs]
    arrays.append(np.zeros(inputs[0].shape, op_kernels.HOST[dtype]))
    program = kernel_text.load(text, folder).compile(*arrays, arch=chip)
    (run_native if native else simulate)(program, arrays)
    return arrays[-1].view(inputs[0].dtype)


def differing(inputs: list[Any], got: Any, want: Any) -> Any:
    """Lanes that differ, those with a negative NaN among the inputs left out."""
    top = np.dtype(got.dtype).type(1 << (8 * got.itemsize - 1))
    infinity = np.dtype(got.dtype).type(0x7F80 << (8 * got.itemsize - 16))
    lost = np.zeros(got.shape, bool)
    for bits in inputs:
        lost |= bits > (top | infinity)
    return (got != want) & ~lost


def main(folder: Path, chip: str, words: list[str], *, native: bool) -> int:
    wrong = 0
    count = 0
    with tempfile.TemporaryDirectory() as place:
        for name, inputs, want in recorded(folder, words):
            count += 1
            got = computed(name, inputs, chip, Path(place), native=native)
            lanes = np.argwhere(differing(inputs, got, want))
            if not len(lanes):
                continue
            wrong += 1
            print(f"{name}: {len(lanes)} of {got.size}")
            for lane in map(tuple, lanes[:: max(1, len(lanes) // SHOWN)][:SHOWN]):
                given = ", ".join(f"{bits[lane]:#x}" for bits in inputs)
                print(f"    {given} gives {got[lane]:#x}, recorded {want[lane]:#x}")
    print(f"{count - wrong} of {count} rows equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    options = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(options) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(options[0]), options[1], options[2:], native="--native" in sys.argv))
