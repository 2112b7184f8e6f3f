"""Builds the simulator's numeric tables from recordings of real kernels.

    python benchmarks/make_numeric_tables.py GOLDEN_FOLDER

GOLDEN_FOLDER holds ``golden.py`` and ``data/*.npz``: outputs of the kernels of ttnn 0.78.0, compiled by the vendor's
compiler and run on ttsim 1.10.0, the vendor's bit-accurate simulator of a Wormhole core (no silicon involved).
Two results, both in ``src/tilewright/sim/numerics/data``:

* ``unary_bf16.npz``: for every unary SFPU call whose 16-bit model is a table, the result for each of the 65,536 bf16
  inputs, as differences between neighbours (uint16), compressed with LZMA.
* ``accuracy.json``: how far every modelled SFPU call is from its recording, for the documentation and ``available``.

The packer writes NaN as infinity and -0 or denormals as +0, so a bf16 recording cannot show them. Such an entry is
completed from the 32-bit recording of the same call at the nearest input, if that value packs to the same bf16 number.
"""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

CHIP = "wormhole_b0"
ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "src/tilewright/sim/numerics/data/unary_bf16.npz"
ACCURACY = ROOT / "src/tilewright/sim/numerics/data/accuracy.json"

VARIANTS = {
    "exp_approx": "approx",
    "exp_approx_noclamp": "approx_unclamped",
    "exp_approx_scale_half": "approx_scale_half",
    "exp_scale_half": "scaled",
    "erf_approx": "approx",
    "expm1_approx": "approx",
    "gelu_approx": "approx",
    "log1p_approx": "approx",
    "log_approx": "approx",
    "log2_base2": "base2",
    "mish_approx": "approx",
    "recip_nolegacy": "ieee",
    "rsqrt_approx": "approx",
    "rsqrt_legacy": "legacy",
    "sigmoid_approx": "approx",
    "sqrt_approx": "approx",
    "tanh_approx": "approx",
}


def load_reader(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden", folder / "golden.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def float_bits(text: str) -> int:
    numbers = [float(part) for part in text.replace("f", "").split("/")]
    value = numbers[0] if len(numbers) == 1 else numbers[0] / numbers[1]
    return int(np.float32(value).view(np.uint32))


def parse_call(meta: dict[str, Any]) -> tuple[str, tuple[int, ...]]:
    """Call name and parameters as integers, from the recorded C++ text."""
    match = re.match(r"(\w+)(?:<[^>]*>)?\((.*)\);", meta["call"])
    if match is None:
        raise ValueError(f"cannot read the call {meta['call']!r}")
    name, arguments = match.groups()
    params: list[int] = []
    for argument in arguments.split(",")[1:]:
        argument = argument.strip()
        wrapped = re.fullmatch(r"fb\((.*)\)", argument)
        if wrapped:
            params.append(float_bits(wrapped.group(1)))
        elif re.fullmatch(r"-?\d+", argument):
            params.append(int(argument))
        elif name == "fill_tile":
            params.append(float_bits(argument))
    if not params:
        params = [float_bits(text) for text in re.findall(r"fb\(([^)]*)\)", meta["init"])]
    return name, tuple(params)


def operation_key(meta: dict[str, Any]) -> str:
    """``call``, ``call:variant``, with ``[p0,p1]`` in hex appended when the call has parameters."""
    name, params = parse_call(meta)
    variant = VARIANTS.get(meta["name"], "")
    key = f"{name}:{variant}" if variant else name
    return f"{key}[{','.join(f'{value:x}' for value in params)}]" if params else key


def is_unary(meta: dict[str, Any]) -> bool:
    return (
        meta["gens"] == ["u0"]
        and re.match(r"\w+(<[^>]*>)?\(0", meta["call"]) is not None
        and "typecast" not in meta["name"]
    )


def complete(packed: np.ndarray, inputs32: np.ndarray, outputs32: np.ndarray) -> np.ndarray:
    """Replace what the packer hid (see the module text) in a table indexed by input pattern."""
    order = np.argsort(inputs32, kind="stable")
    keys, results = inputs32[order], outputs32[order]
    wanted = np.arange(65536, dtype=np.uint32) << 16
    right = np.clip(np.searchsorted(keys, wanted), 0, keys.size - 1)
    left = np.clip(right - 1, 0, keys.size - 1)
    distance_right = np.abs(keys[right].astype(np.int64) - wanted)
    distance_left = np.abs(keys[left].astype(np.int64) - wanted)
    nearest = np.where(distance_left < distance_right, left, right)
    candidate = (results[nearest] >> 16).astype(np.uint16)
    same_sign = (keys[nearest] >> 31) == (wanted >> 31)
    magnitude = candidate & 0x7FFF
    cleaned = np.where(magnitude > 0x7F80, (candidate & 0x8000) | 0x7F80, np.where(magnitude < 0x80, 0, candidate))
    hidden = (packed & 0x7FFF == 0) | (packed & 0x7FFF == 0x7F80)
    candidate = np.where(magnitude < 0x80, candidate & 0x8000, candidate)  # stores flush denormals
    return np.where(hidden & same_sign & (cleaned == packed), candidate, packed)


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name in sorted(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_LZMA
            archive.writestr(info, buffer.getvalue())


def build_tables(golden: ModuleType, exact: set[str], algorithms: set[str]) -> dict[str, np.ndarray]:
    """``exact``: calls cheap enough without a table. Calls with parameters need one only if they have no algorithm."""
    arrays: dict[str, np.ndarray] = {}
    for tag in golden.tags():
        if not tag.endswith(".bf16") or tag.count(".") != 1:
            continue
        inputs, outputs, meta = golden.load(tag)
        if not is_unary(meta):
            continue
        key = operation_key(meta)
        if key.split("[")[0] in exact or ("[" in key and key.split("[")[0] in algorithms):
            continue
        table = np.empty(65536, dtype=np.uint16)
        table[inputs[0].ravel()] = outputs.ravel()
        wide_inputs, wide_outputs, _ = golden.load(tag.replace(".bf16", ".fp32"))
        table = complete(table, wide_inputs[0].ravel(), wide_outputs.ravel()).astype(np.uint16)
        arrays[key] = np.diff(table, prepend=np.uint16(0)).astype(np.uint16)
    return arrays


def ordered(bits: np.ndarray) -> np.ndarray:
    width = 31 if bits.dtype == np.uint32 else 15
    magnitude = (bits & bits.dtype.type((1 << width) - 1)).astype(np.int64)
    return np.where(bits >> width, -magnitude, magnitude)


def compare(got: np.ndarray, want: np.ndarray, operands: list[np.ndarray]) -> dict[str, Any]:
    """Mismatches over everything, and the largest distance over ordinary inputs with finite results."""
    infinity = 0x7F800000 if got.dtype == np.uint32 else 0x7F80
    ordinary = np.ones(got.shape, dtype=bool)
    for bits in operands:
        size = np.abs(bits.view(np.float32).astype(np.float64))
        ordinary &= (size >= 2.0**-10) & (size < 64.0)
    unsigned = got.dtype.type((1 << (8 * got.itemsize - 1)) - 1)
    ordinary &= ((got & unsigned) < infinity) & ((want & unsigned) < infinity)
    distance = np.abs(ordered(got) - ordered(want))
    wrong = got != want
    return {
        "exact": not wrong.any(),
        "mismatches": int(wrong.sum()),
        "compared": int(wrong.size),
        "max_ulp": int(distance[ordinary].max(initial=0)),
    }


def merge(rows: dict[str, dict[str, Any]], key: str, row: dict[str, Any]) -> None:
    """Several recordings of one call (different parameters) count together."""
    old = rows.get(key)
    if old is None:
        rows[key] = row
        return
    old["exact"] = old["exact"] and row["exact"]
    old["max_ulp"] = max(old["max_ulp"], row["max_ulp"])
    old["mismatches"] += row["mismatches"]
    old["compared"] += row["compared"]


def measure(golden: ModuleType) -> dict[str, dict[str, Any]]:
    """Run every recorded SFPU call through the models."""
    from tilewright.sim.numerics import packer, registry, sfpu, tables, unpack

    formats = {"bfloat16": "bf16", "float32": "f32"}
    rows: dict[str, dict[str, Any]] = {}
    for tag in golden.tags():
        if tag.endswith(".v81") or tag.split(".")[-1] not in ("bf16", "fp32"):
            continue
        inputs, outputs, meta = golden.load(tag)
        calls_sfpu = re.match(r"\w+_(tile|binary_tile)?(<[^>]*>)?\(0", meta["call"]) or "binary_m" in meta["call"]
        if not calls_sfpu or "sfpu_" in meta["call"] or "typecast" in meta["call"] or "reduce" in meta["call"]:
            continue
        wide = bool(meta["fp32_dest_acc_en"])
        dst = [
            unpack.copy_to_dst(
                bits, formats[dtype], dst32=wide, unpack_to_dest=index in meta["unpack_to_dest"]
            )
            for index, (bits, dtype) in enumerate(zip(inputs, meta["in_dtypes"], strict=True))
        ]
        name, params = parse_call(meta)
        variant = VARIANTS.get(meta["name"], "")
        key = f"{name}:{variant}" if variant else name
        nearest = "NearestEven" in meta["call"]
        if len(dst) == 1:
            params = (0x3F00,) if variant == "scaled" else params
            result = sfpu.unary(CHIP, name, dst[0], dst32=wide, params=params, variant=variant)
            table = not wide and tables.table_key(key, params) in tables.table_names()
            method = "table" if table else "algorithm" if key in registry.UNARY else "formula"
            method = "formula" if wide and key in registry.FORMULA_IN_32_BIT else method
        elif len(dst) == 2:
            params = BINARY_PARAMS.get((name, wide), ())
            result = sfpu.binary(CHIP, name, dst[0], dst[1], dst32=wide, params=params, nearest_even=nearest)
            by_formula = name in FORMULA_BINARY or (wide and name in registry.FORMULA_IN_32_BIT)
            method = "formula" if by_formula else "algorithm"
        else:
            result = sfpu.ternary(CHIP, name, *dst, dst32=wide, params=(float_bits("0.7"),))
            method = "algorithm"
        got = packer.pack(result, formats[meta["out_dtype"]], dst32=wide)
        row = {"method": method, **compare(got, outputs, dst)}
        merge(rows, f"{key}{':nearest_even' if nearest else ''}@{'32' if wide else '16'}", row)
    return rows


FORMULA_BINARY = {
    "fmod_binary_tile", "remainder_binary_tile", "atan2_binary_tile", "xlogy_binary_tile",
}  # fmt: skip
BINARY_PARAMS: dict[tuple[str, bool], tuple[int, ...]] = {
    ("isclose_binary_tile", False): (float_bits("1e-2"), float_bits("1e-3")),
    ("isclose_binary_tile", True): (float_bits("1e-2"), float_bits("1e-3")),
    ("mask_tile", True): (0,),
}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.path.insert(0, str(ROOT / "src"))
    from tilewright.sim.numerics.registry import CHEAP, UNARY

    golden = load_reader(Path(sys.argv[1]))
    tables = build_tables(golden, set(CHEAP), set(UNARY))
    write_npz(TABLES, tables)
    print(f"{len(tables)} tables, {TABLES.stat().st_size} bytes: {TABLES.relative_to(ROOT)}")
    rows = measure(golden)
    ACCURACY.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    exact = sum(row["exact"] for row in rows.values())
    print(f"{len(rows)} calls measured, {exact} exact: {ACCURACY.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
