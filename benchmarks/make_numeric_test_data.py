"""Builds ``tests/golden_data``: what the numeric tests compare with.

    python benchmarks/make_numeric_test_data.py GOLDEN_FOLDER

Every recorded file of ttnn 0.78.0 (see ``make_numeric_tables.py``) is kept as: the SHA-256 of its whole output, so
that a test can prove equality of all elements without carrying them; the call that made it; and a sample of raw
outputs to show where a difference lies and to measure distances. The inputs are kept whole.
"""

from __future__ import annotations

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
DENSE_STRIDE = 13  # for calls whose model is a formula: distances are measured on these


def is_formula(meta: dict[str, Any], accuracy: dict[str, dict[str, Any]]) -> bool:
    try:
        name, _ = tables.parse_call(meta)
    except ValueError:
        return False
    variant = tables.VARIANTS.get(meta["name"], "")
    key = f"{name}:{variant}" if variant else name
    row = accuracy.get(f"{key}@{'32' if meta['fp32_dest_acc_en'] else '16'}")
    return row is not None and not row["exact"]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    golden = tables.load_reader(Path(sys.argv[1]))
    accuracy = json.loads(tables.ACCURACY.read_text(encoding="utf-8"))
    records: dict[str, Any] = {}
    samples: dict[str, np.ndarray] = {}
    inputs: dict[str, np.ndarray] = {}
    for tag in golden.tags():
        if tag.endswith(".v81"):
            continue
        operands, outputs, meta = golden.load(tag)
        stride = DENSE_STRIDE if is_formula(meta, accuracy) else SAMPLE_STRIDE
        record = {field: meta[field] for field in KEPT}
        record["inputs"] = [
            f"{generator}.{golden.fam(dtype)}" for generator, dtype in zip(meta["gens"], meta["in_dtypes"], strict=True)
        ]
        record["sha256"] = hashlib.sha256(np.ascontiguousarray(outputs).tobytes()).hexdigest()
        record["shape"] = list(outputs.shape)
        record["stride"] = stride
        records[tag] = record
        samples[tag] = outputs.ravel()[::stride].copy()
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
    total = sum(path.stat().st_size for path in TARGET.iterdir())
    print(f"{len(records)} recordings, {total} bytes in {TARGET.relative_to(tables.ROOT)}")


def concatenated(samples: dict[str, np.ndarray], size: int) -> np.ndarray:
    parts = [samples[tag] for tag in sorted(samples) if samples[tag].itemsize == size]
    return np.concatenate(parts)


if __name__ == "__main__":
    main()
