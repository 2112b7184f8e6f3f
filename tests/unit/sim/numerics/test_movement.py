"""Copies, transposes, broadcasts into DST, packs and L1 accumulation against the recordings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.sim.numerics import formats, fpu, packer
from tilewright.sim.numerics.formats import FormatError

RELU = {
    "pack_relu_zero": packer.Relu("zero"),
    "pack_relu_min": packer.Relu("min", 0x3F00),
    "pack_relu_max": packer.Relu("max", 0x40C0),
}


@pytest.mark.recorded(r"(copy|pack_round|bfp8_in|bfp8_out|bfp8_out_all)\..*")
def test_copy_and_pack(entry: Any) -> None:
    entry.assert_equal(entry.pack(entry.dst(0)))


@pytest.mark.recorded(r"bfp8_out_precise\..*")
def test_pack_bfp8_precise(entry: Any) -> None:
    entry.assert_equal(entry.pack(entry.dst(0), precise=True))


@pytest.mark.recorded(r"pack_relu_.*")
def test_pack_relu(entry: Any) -> None:
    entry.assert_equal(entry.pack(entry.dst(0), relu=RELU[entry.name]))


@pytest.mark.recorded(r"l1_acc\..*")
def test_l1_accumulation(entry: Any) -> None:
    first = entry.pack(entry.dst(0))
    entry.assert_equal(entry.pack(entry.dst(1), old_l1=first, l1_acc=True))


@pytest.mark.recorded(r"transpose\..*")
def test_transpose(entry: Any) -> None:
    to_dest = entry.to_dest(0)
    data = entry.l1[0] if to_dest else entry.src(0)
    entry.assert_equal(entry.pack(fpu.transpose(data, dst32=entry.dst32, unpack_to_dest=to_dest)))


@pytest.mark.recorded(r"unary_bcast_(col|scalar)\..*|unary_bcast_row\.(bf16|fp32)")
def test_unary_broadcast(entry: Any) -> None:
    to_dest = entry.to_dest(0)
    data = entry.l1[0] if to_dest else entry.src(0)
    kind = entry.name.split("_")[-1]
    entry.assert_equal(entry.pack(fpu.unary_bcast(data, kind, dst32=entry.dst32, unpack_to_dest=to_dest)))


def test_row_broadcast_with_wide_dst_is_refused() -> None:
    """The one recorded program whose hardware result is garbage."""
    with pytest.raises(fpu.UnreliableOperation, match="garbage"):
        fpu.unary_bcast(np.zeros((32, 32), dtype=np.uint32), "row", dst32=True)


def test_errors_name_what_is_possible() -> None:
    tile = np.zeros((32, 32), dtype=np.uint32)
    with pytest.raises(FormatError, match="bf16, f32, bfp8_b"):
        packer.pack(tile, "fp4", dst32=True)
    with pytest.raises(FormatError, match="needs an f32 buffer"):
        packer.copy_to_dst(tile.astype(np.uint16), "bf16", dst32=True, unpack_to_dest=True)
    with pytest.raises(FormatError, match="32-bit DST"):
        packer.copy_to_dst(tile, "i32", dst32=False, unpack_to_dest=False)
    with pytest.raises(FormatError, match="not available for bfp8_b"):
        packer.pack(tile, "bfp8_b", dst32=False, l1_acc=True, old_l1=tile)
    with pytest.raises(ValueError, match="old contents"):
        packer.pack(tile, "bf16", dst32=False, l1_acc=True)
    with pytest.raises(ValueError, match="non-negative"):
        packer.Relu("min", 0xBF80)


def test_face_order_round_trip() -> None:
    tile = np.arange(2048, dtype=np.uint32).reshape(2, 32, 32)
    faces = formats.faces_from_tile(tile)
    assert faces[0, 16, 0] == 16  # second face starts at column 16
    assert (formats.tile_from_faces(faces) == tile).all()
