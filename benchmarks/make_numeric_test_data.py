"""Builds ``tests/golden_data``: what the numeric tests compare with.

    python benchmarks/make_numeric_test_data.py GOLDEN_FOLDER

Every recorded file of ttnn 0.78.0 (see ``make_numeric_tables.py``) is kept as: the SHA-256 of its whole output, so
that a test can prove equality of all elements without carrying them; the call that made it; and a sample of raw
outputs to show where a difference lies. The inputs are kept whole. Rows of the op table (``blackhole`` and ``wormhole_rows`` in the
folder, see ``tests/recorded_rows.py``) are kept whole too.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import make_numeric_tables as tables
import numpy as np

TARGET = tables.ROOT / "tests/golden_data"
KEPT = (
    "name", "mode", "fidelity", "fp32_dest_acc_en", "in_dtypes", "out_dtype", "unpack_to_dest", "gens", "init", "call",
    "in_tiles", "out_tiles",
)  # fmt: skip
SAMPLE_STRIDE = 61  # prime: does not fall into step with tile rows
ROW_FOLDERS = {"wormhole_b0": "wormhole_rows", "blackhole": "blackhole"}
EVERY_BF16 = 65536


def row_recordings(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
    """Outputs as differences between neighbours, inputs once each, and which rows were compared."""
    arrays: dict[str, np.ndarray] = {}
    rows: dict[str, dict[str, Any]] = {}
    for chip, name in ROW_FOLDERS.items():
        rows[chip] = {}
        with (folder / name / "rows.csv").open(encoding="utf-8") as file:
            for row, _, differing, *_ in list(csv.reader(file))[1:]:
                if differing.isdigit():
                    rows[chip][row] = {"differing": int(differing)}
        for path in sorted((folder / name).glob("*.npz")):
            row = path.name.removesuffix(".npz")
            with np.load(path) as archive:
                given = [archive[f"in{place}"] for place in range(3) if f"in{place}" in archive.files]
                arrays[f"{chip}/{row}"] = differences(archive["out"])
            if given[0].size == EVERY_BF16:  # all patterns in order
                continue
            names = [f"in/{hashlib.sha256(bits.tobytes()).hexdigest()[:12]}" for bits in given]
            arrays.update(zip(names, map(differences, given), strict=True))
            rows[chip][row]["inputs"] = names
    return arrays, rows


def differences(bits: np.ndarray) -> np.ndarray:
    """64 tiles stand as 8 x 8; kept one after the other."""
    if bits.size == EVERY_BF16:
        bits = bits.reshape(8, 32, 8, 32).transpose(0, 2, 1, 3)
    return np.diff(bits.ravel(), prepend=bits.dtype.type(0))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    golden = tables.load_reader(Path(sys.argv[1]))
    records: dict[str, Any] = {}
    samples: dict[str, np.ndarray] = {}
    inputs: dict[str, np.ndarray] = {}
    for tag in golden.tags():
        if tag.endswith(".v81"):
            continue
        operands, outputs, meta = golden.load(tag)
        record = {field: meta[field] for field in KEPT}
        record["inputs"] = [
            f"{generator}.{golden.fam(dtype)}" for generator, dtype in zip(meta["gens"], meta["in_dtypes"], strict=True)
        ]
        record["sha256"] = hashlib.sha256(np.ascontiguousarray(outputs).tobytes()).hexdigest()
        record["shape"] = list(outputs.shape)
        record["stride"] = SAMPLE_STRIDE
        records[tag] = record
        samples[tag] = outputs.ravel()[::SAMPLE_STRIDE].copy()
        inputs.update(zip(record["inputs"], operands, strict=True))
    tables.write_npz(TARGET / "inputs.npz", inputs)
    tables.write_npz(TARGET / "samples.npz", {"u2": concatenated(samples, 2), "u4": concatenated(samples, 4)})
    offsets = {2: 0, 4: 0}
    for tag in sorted(samples):
        size = samples[tag].itemsize
        records[tag]["sample"] = [size, offsets[size], samples[tag].size]
        offsets[size] += samples[tag].size
    text = json.dumps(records, sort_keys=True, separators=(",", ":")).replace('},"', '},\n"')
    (TARGET / "records.json").write_text(text + "\n", encoding="utf-8")
    arrays, rows = row_recordings(Path(sys.argv[1]))
    tables.write_npz(TARGET / "rows.npz", arrays)
    text = json.dumps(rows, sort_keys=True, separators=(",", ":")).replace('},"', '},\n"')
    (TARGET / "rows.json").write_text(text + "\n", encoding="utf-8")
    total = sum(path.stat().st_size for path in TARGET.iterdir())
    print(f"{len(records)} recordings, {total} bytes in {TARGET.relative_to(tables.ROOT)}")


def concatenated(samples: dict[str, np.ndarray], size: int) -> np.ndarray:
    parts = [samples[tag] for tag in sorted(samples) if samples[tag].itemsize == size]
    return np.concatenate(parts)


if __name__ == "__main__":
    main()
