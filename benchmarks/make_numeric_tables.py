"""Builds the simulator's tables of functions, and the list of what was recorded.

    python benchmarks/make_numeric_tables.py GOLDEN_FOLDER

GOLDEN_FOLDER holds ``golden.py`` and ``data/*.npz``: outputs of the kernels of ttnn 0.78.0, compiled by the vendor's
compiler and run on ttsim 1.10.0, the vendor's bit-accurate simulator of a Wormhole core (no silicon involved); and rows of the op
table recorded on both chips (see ``make_numeric_test_data.py``). Two results, both in ``src/tilewright/sim/numerics/data``:

* ``unary_bf16.npz``: for every unary SFPU call without parameters the algorithm's result for each of the 65,536 bf16
  inputs, as differences between neighbours (uint16), compressed with LZMA. Calls that differ on Blackhole are there twice.
* ``recorded.json``: how many values of every modelled SFPU call were compared with a recording, by chip. It is an error
  if one of them differs.
"""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

WORMHOLE, BLACKHOLE = "wormhole_b0", "blackhole"
ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "src/tilewright/sim/numerics/data/unary_bf16.npz"
RECORDED = ROOT / "src/tilewright/sim/numerics/data/recorded.json"

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


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name in sorted(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_LZMA
            archive.writestr(info, buffer.getvalue())


def build_tables() -> dict[str, np.ndarray]:
    from tilewright.hardware import CHIPS
    from tilewright.sim.numerics import sfpu
    from tilewright.sim.numerics.mad import on_chip
    from tilewright.sim.numerics.sfpu import CHEAP, UNARY

    arrays: dict[str, np.ndarray] = {}
    for key in sorted(set(UNARY) - set(CHEAP) - sfpu.INTEGERS):
        try:
            results = {chip: on_chip(sfpu.computed_table)(chip, key) for chip in CHIPS}
        except IndexError:  # takes parameters
            continue
        for chip, table in results.items():
            name = key if chip == WORMHOLE else f"{chip}/{key}"
            if chip == WORMHOLE or not np.array_equal(table, results[WORMHOLE]):
                arrays[name] = np.diff((table >> np.uint32(16)).astype(np.uint16), prepend=np.uint16(0))
    return arrays


def recorded_calls(golden: ModuleType) -> dict[str, int]:
    """Run every recorded SFPU call through the models."""
    from tilewright.sim.numerics import packer, sfpu

    formats = {"bfloat16": "bf16", "float32": "f32"}
    rows: dict[str, int] = {}
    for tag in golden.tags():
        if tag.endswith(".v81") or tag.split(".")[-1] not in ("bf16", "fp32"):
            continue
        inputs, outputs, meta = golden.load(tag)
        calls_sfpu = re.match(r"\w+_(tile|binary_tile)?(<[^>]*>)?\(0", meta["call"]) or "binary_m" in meta["call"]
        if not calls_sfpu or "sfpu_" in meta["call"] or "typecast" in meta["call"] or "reduce" in meta["call"]:
            continue
        wide = bool(meta["fp32_dest_acc_en"])
        dst = [
            packer.copy_to_dst(
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
            result = sfpu.unary(WORMHOLE, name, dst[0], dst32=wide, params=params, variant=variant)
        elif len(dst) == 2:
            params = BINARY_PARAMS.get((name, wide), ())
            result = sfpu.binary(WORMHOLE, name, dst[0], dst[1], dst32=wide, params=params, nearest_even=nearest)
        else:
            result = sfpu.ternary(WORMHOLE, name, *dst, dst32=wide, params=(float_bits("0.7"),))
        got = packer.pack(result, formats[meta["out_dtype"]], dst32=wide)
        if not np.array_equal(got, outputs):
            raise ValueError(f"{tag}: {np.count_nonzero(got != outputs)} of {outputs.size} values differ")
        key = f"{key}{':nearest_even' if nearest else ''}@{'32' if wide else '16'}"
        rows[key] = rows.get(key, 0) + outputs.size
    return rows


def recorded_rows_by_call(chip: str) -> dict[str, int]:
    """Which call a compared row of the op table makes on the vector unit, as the emitted kernel has it."""
    import recorded_rows
    from tilewright.dialects.tile_op import Unit
    from tilewright.program import TensorSpec

    rows: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in recorded_rows.compared()[chip]:
            row, dtype, approx = recorded_rows.parts(name)
            form = row.form(Unit.SFPU)
            if form is None or dtype not in ("bf16", "f32"):
                continue
            shape = (256, 256) if dtype == "bf16" and row.arity <= 1 else (32, 32)
            specs = [TensorSpec(name=letter, shape=shape, dtype=dtype) for letter in (*"abc"[: max(row.arity, 1)], "o")]
            loaded = kernel_of(recorded_rows.kernel(name, shape), Path(folder))
            program = loaded.compile(*specs, arch=chip)
            if not re.search(rf"\b{form.call}\b", program.cpp["compute"]):  # on the matrix unit, or composed
                continue
            variant = "ieee" if form.call == "recip_tile" else "approx" if approx else ""
            key = f"{form.call}:{variant}" if variant else form.call
            key += f"@{32 if program.config.fp32_dest_acc_en else 16}"
            rows[key] = rows.get(key, 0) + shape[0] * shape[1]
    return rows


def kernel_of(text: str, folder: Path) -> Any:
    import kernel_text

    return kernel_text.load(text, folder)


BINARY_PARAMS: dict[tuple[str, bool], tuple[int, ...]] = {
    ("isclose_binary_tile", False): (float_bits("1e-2"), float_bits("1e-3")),
    ("isclose_binary_tile", True): (float_bits("1e-2"), float_bits("1e-3")),
    ("mask_tile", True): (0,),
}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    tables = build_tables()
    write_npz(TABLES, tables)
    print(f"{len(tables)} tables, {TABLES.stat().st_size} bytes: {TABLES.relative_to(ROOT)}")
    rows = {WORMHOLE: recorded_calls(load_reader(Path(sys.argv[1]))), BLACKHOLE: recorded_rows_by_call(BLACKHOLE)}
    RECORDED.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(", ".join(f"{len(calls)} calls on {chip}" for chip, calls in rows.items()) + f": {RECORDED.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
