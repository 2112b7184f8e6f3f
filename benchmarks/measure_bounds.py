"""How far the chip's results are from the rows' references, in bf16 ULP, from the vendor simulator's outputs.

    python benchmarks/measure_bounds.py GOLDEN_DIR

Prints one line per row that names its data: the bound the row states, and the largest error over the row's domain in
16-bit and in 32-bit DST. Inputs below 2**-10 in magnitude, other than +0, are left out: there results are flushed.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.dialects.tile_op import TileOp
from tilewright.dialects.tile_ops import ROWS

SMALLEST = 2.0**-10


def load_golden(directory: Path) -> Any:
    spec = importlib.util.spec_from_file_location("golden", directory / "golden.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(bits: Any) -> Any:
    """float64 values of bf16 (uint16) or fp32 (uint32) bits."""
    wide = bits.astype(np.uint32) << 16 if bits.dtype == np.uint16 else bits
    with np.errstate(invalid="ignore"):
        return wide.view(np.float32).astype(np.float64).ravel()


def bf16_ulp(reference: Any) -> Any:
    exponent = np.floor(np.log2(np.maximum(np.abs(reference), 2.0**-126)))
    return 2.0 ** (exponent - 7)


def as_given(row: TileOp) -> dict[str, Any]:
    """Parameters as the call takes them: floats in fp32."""
    params = {param.name: param.sample for param in row.params if not param.hidden}
    return {name: float(np.float32(value)) if isinstance(value, float) else value for name, value in params.items()}


def measured(row: TileOp, golden: Any, tag: str) -> tuple[float, tuple[float, ...]]:
    inputs, out, _ = golden.load(tag)
    tiles = [numbers(tile) for tile in inputs][: row.arity]
    low, high = row.domain
    usable = np.ones(out.size, dtype=bool)
    for tile in tiles:
        usable &= (tile >= low) & (tile <= high) & ((np.abs(tile) >= SMALLEST) | ((tile == 0.0) & ~np.signbit(tile)))
    tiles = [tile[usable] for tile in tiles]
    result = numbers(out)[usable]
    with np.errstate(all="ignore"):
        reference = np.asarray(row.reference(*tiles, **as_given(row)), dtype=np.float64)
        reference = np.broadcast_to(reference, result.shape)
        error = np.abs(result - reference) / bf16_ulp(reference)
    error = np.where(np.isfinite(reference), np.where(np.isnan(error), math.inf, error), 0.0)
    worst = int(np.argmax(error))
    return float(error[worst]), tuple(float(tile[worst]) for tile in tiles)


def report(row: TileOp, golden: Any, directory: Path, tag: str, stated: float, label: str) -> None:
    tags = [f"{tag}.{mode}" for mode in ("bf16", "fp32") if (directory / "data" / f"{tag}.{mode}.npz").exists()]
    if not tags:
        return
    results = {name: measured(row, golden, name) for name in tags}
    worst = max(error for error, _ in results.values())
    rounded = math.ceil(worst * 10) / 10 if math.isfinite(worst) else worst
    mark = "" if stated >= worst else f"  <-- should be {rounded}"
    shown = ", ".join(f"{name} {error:.3g} at {at}" for name, (error, at) in results.items())
    print(f"{label:26} {stated:6.1f}  {shown}{mark}")


def main() -> None:
    directory = Path(sys.argv[1])
    golden = load_golden(directory)
    for row in ROWS:
        if not row.golden:
            continue
        report(row, golden, directory, row.golden, row.bound_ulp, row.name)
        if any(param.name == "approx" for param in row.params):
            report(row, golden, directory, f"{row.golden}_approx", row.approx_bound_ulp, f"{row.name} approx")


if __name__ == "__main__":
    main()
