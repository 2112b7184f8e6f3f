"""Reads ``tests/golden_data`` and replays recorded calls on the models."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.sim.numerics import packer
from tilewright.sim.numerics.formats import faces_from_tile, tile_from_faces

DATA = Path(__file__).resolve().parents[3] / "golden_data"
DTYPES = {"bfloat16": "bf16", "float32": "f32", "bfloat8_b": "bfp8_b", "int32": "i32", "uint32": "u32"}
VARIANTS = {
    "exp_approx": "approx", "exp_approx_noclamp": "approx_unclamped", "exp_approx_scale_half": "approx_scale_half",
    "exp_scale_half": "scaled", "erf_approx": "approx", "expm1_approx": "approx", "gelu_approx": "approx",
    "log1p_approx": "approx", "log_approx": "approx", "log2_base2": "base2", "mish_approx": "approx",
    "recip_nolegacy": "ieee", "rsqrt_approx": "approx", "rsqrt_legacy": "legacy", "sigmoid_approx": "approx",
    "sqrt_approx": "approx", "tanh_approx": "approx",
}  # fmt: skip


@cache
def records() -> dict[str, dict[str, Any]]:
    return json.loads((DATA / "records.json").read_text(encoding="utf-8"))


@cache
def _inputs() -> dict[str, np.ndarray]:
    with np.load(DATA / "inputs.npz") as archive:
        return {name: archive[name] for name in archive.files}


@cache
def _samples() -> dict[int, np.ndarray]:
    with np.load(DATA / "samples.npz") as archive:
        return {2: archive["u2"], 4: archive["u4"]}


def tags(pattern: str) -> list[str]:
    return sorted(tag for tag in records() if re.fullmatch(pattern, tag))


def to_rows(raw: np.ndarray) -> np.ndarray:
    """Recorded tile order (faces) to row-major tiles; packed bfp8 stays bytes."""
    if raw.shape[-1] == 272:
        return np.ascontiguousarray(raw).view(np.uint8)
    return tile_from_faces(raw.reshape(*raw.shape[:-1], 64, 16).astype(np.uint32)).astype(raw.dtype)


def to_recorded(tiles: np.ndarray) -> np.ndarray:
    if tiles.dtype == np.uint8:
        return np.ascontiguousarray(tiles).view(np.uint32)
    faces = faces_from_tile(tiles.astype(np.uint32)).reshape(*tiles.shape[:-2], 1024)
    return faces.astype(tiles.dtype)


@dataclass
class Recording:
    """One recorded program: its operands in L1 form and what it must write."""

    tag: str
    record: dict[str, Any]

    @property
    def name(self) -> str:
        return self.record["name"]

    @property
    def fidelity(self) -> Any:
        return self.record["fidelity"]

    @property
    def dst32(self) -> bool:
        return self.record["fp32_dest_acc_en"]

    @property
    def out_dtype(self) -> str:
        return DTYPES[self.record["out_dtype"]]

    @property
    def in_dtypes(self) -> list[str]:
        return [DTYPES[dtype] for dtype in self.record["in_dtypes"]]

    @property
    def l1(self) -> list[np.ndarray]:
        return [to_rows(_inputs()[name]) for name in self.record["inputs"]]

    def to_dest(self, index: int) -> bool:
        return index in self.record["unpack_to_dest"]

    def src(self, index: int) -> np.ndarray:
        return packer.to_src(self.l1[index], self.in_dtypes[index], dst32=self.dst32)

    def dst(self, index: int) -> np.ndarray:
        return packer.copy_to_dst(
            self.l1[index], self.in_dtypes[index], dst32=self.dst32, unpack_to_dest=self.to_dest(index)
        )

    def pack(self, dst: np.ndarray, **options: Any) -> np.ndarray:
        return packer.pack(dst, self.out_dtype, dst32=self.dst32, **options)

    def call(self) -> tuple[str, tuple[int, ...], str]:
        """Call name, parameters and variant of an SFPU recording."""
        match = re.match(r"(\w+)(?:<[^>]*>)?\((.*)\);", self.record["call"])
        assert match is not None
        name, arguments = match.groups()
        params: list[int] = []
        for argument in arguments.split(",")[1:]:
            wrapped = re.fullmatch(r"fb\((.*)\)", argument.strip())
            if wrapped:
                params.append(float_bits(wrapped.group(1)))
            elif re.fullmatch(r"-?\d+", argument.strip()):
                params.append(int(argument))
            elif name == "fill_tile":
                params.append(float_bits(argument))
        if not params:
            params = [float_bits(text) for text in re.findall(r"fb\(([^)]*)\)", self.record["init"])]
        if self.name == "exp_scale_half":
            params = [0x3F00]
        return name, tuple(params), VARIANTS.get(self.name, "")

    def sample(self) -> tuple[slice, np.ndarray]:
        size, offset, count = self.record["sample"]
        return slice(None, None, self.record["stride"]), _samples()[size][offset : offset + count]

    def assert_equal(self, tiles: np.ndarray) -> None:
        """Every element of the output, by its digest; the sample names the first difference it can see."""
        raw = np.ascontiguousarray(to_recorded(tiles))
        assert list(raw.shape) == self.record["shape"]
        if hashlib.sha256(raw.tobytes()).hexdigest() == self.record["sha256"]:
            return
        part, want = self.sample()
        got = raw.ravel()[part]
        wrong = np.flatnonzero(got != want)
        first = "none in the sample"
        if wrong.size:
            first = f"first in the sample: got {got[wrong[0]]:#x}, want {want[wrong[0]]:#x}"
        raise AssertionError(f"{self.tag}: {wrong.size} of {got.size} sampled outputs differ; {first}")


def float_bits(text: str) -> int:
    numbers = [float(part) for part in text.replace("f", "").split("/")]
    value = numbers[0] if len(numbers) == 1 else numbers[0] / numbers[1]
    return int(np.float32(value).view(np.uint32))


def recording(tag: str) -> Recording:
    return Recording(tag, records()[tag])


def is_unary(tag: str) -> bool:
    record = records()[tag]
    one_tile = record["gens"] in (["u0"], ["const0@1"])
    return one_tile and re.match(r"\w+(<[^>]*>)?\(0", record["call"]) is not None and "typecast" not in record["name"]


def call_key(entry: Recording) -> str:
    name, _, variant = entry.call()
    nearest = ":nearest_even" if "NearestEven" in entry.record["call"] else ""
    return f"{name}:{variant}{nearest}" if variant else f"{name}{nearest}"
