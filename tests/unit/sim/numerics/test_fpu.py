"""The matrix unit against every recorded element-wise program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.sim.numerics import fpu
from tilewright.sim.numerics.formats import scalar_bits, to_bits

pytestmark = pytest.mark.usefixtures("loops")

OPERATIONS = {"add": fpu.elwadd, "sub": fpu.elwsub, "mul": fpu.elwmul}
BROADCASTS = {"rows": "row", "cols": "col", "scalar": "scalar"}


def run(entry: Any, operation: Any, a: np.ndarray, b: np.ndarray, dst: np.ndarray, accumulate: bool) -> np.ndarray:
    return operation(a, b, dst, dst32=entry.dst32, erratum=fpu.Erratum(), fidelity=entry.fidelity, accumulate=accumulate)


@pytest.mark.recorded(r"fpu_(add|sub|mul)(\..*)?")
def test_two_operands(entry: Any) -> None:
    operation = OPERATIONS[entry.name[4:7]]
    a, b = entry.src(0), entry.src(1)
    entry.assert_equal(entry.pack(run(entry, operation, a, b, np.zeros_like(a), False)))


@pytest.mark.recorded(r"fpu_(add|sub)_acc\..*|fpu_mul_onto_.*")
def test_onto_a_value_in_dst(entry: Any) -> None:
    operation = OPERATIONS[entry.name[4:7]]
    entry.assert_equal(entry.pack(run(entry, operation, entry.src(0), entry.src(1), entry.dst(2), True)))


@pytest.mark.recorded(r"fpu_mulacc\..*")
def test_two_products_in_one_slot(entry: Any) -> None:
    a, b, c = (entry.src(index) for index in range(3))
    first = run(entry, fpu.elwmul, a, b, np.zeros_like(a), True)
    entry.assert_equal(entry.pack(run(entry, fpu.elwmul, a, c, first, True)))


@pytest.mark.recorded(r"fpu_erratum\..*")
def test_cancellation_to_minus_one_unit(entry: Any) -> None:
    a, b = (entry.src(index).reshape(-1, 3, 32, 32) for index in (0, 1))
    dst = np.zeros((a.shape[0], 32, 32), dtype=np.uint32)
    for step in range(3):
        dst = run(entry, fpu.elwmul, a[:, step], b[:, step], dst, True)
    entry.assert_equal(entry.pack(dst))


def test_erratum_example() -> None:
    """-2.0000002384 + 2*1 gives -32 in 32-bit DST."""
    two, one = (np.full((1, 32, 32), scalar_bits(value), dtype=np.uint32) for value in (2.0, 1.0))
    dst = np.full((1, 32, 32), 0xC0000001, dtype=np.uint32)
    erratum = fpu.Erratum()
    result = fpu.elwmul(two, one, dst, dst32=True, erratum=erratum, fidelity="HiFi4")
    assert (result.view(np.float32) == -32.0).all() and erratum.seen
    result = fpu.elwmul(two, one, dst, dst32=True, erratum=None, fidelity="HiFi4")  # Blackhole
    assert (result.view(np.float32) == np.float32(-2.0 * 2.0**-23)).all()


@pytest.mark.recorded(r"fpu_(add|sub|mul)_bcast_.*")
def test_broadcast(entry: Any) -> None:
    operation = OPERATIONS[entry.name[4:7]]
    a = entry.src(0)
    b = fpu.broadcast_src_b(entry.src(1), BROADCASTS[entry.name.split("_")[-1]])
    entry.assert_equal(entry.pack(run(entry, operation, a, b, np.zeros_like(a), False)))


@pytest.mark.recorded(r"fpu_(add|sub|mul)_reuse_.*")
def test_dest_reuse(entry: Any) -> None:
    """The moved operand keeps the bits of its Src's configured format: tf32 only in the programs that configure it."""
    operation = OPERATIONS[entry.name[4:7]]
    dst, other = entry.dst(0), entry.src(1)
    src_format = "tf32" if entry.name.endswith("_tf") else "bf16"
    moved = fpu.dest_to_src(dst, dst32=entry.dst32, src_format=src_format)
    a, b = (moved, other) if "srca" in entry.name else (other, moved)
    entry.assert_equal(entry.pack(run(entry, operation, a, b, dst, False)))


def test_broadcast_row_index() -> None:
    tile = np.arange(1024, dtype=np.uint32).reshape(32, 32)
    assert (fpu.broadcast_src_b(tile, "row", row=5) == tile[5]).all()


def test_unknown_broadcast_is_refused() -> None:
    with pytest.raises(ValueError, match="possible: row, col, scalar"):
        fpu.broadcast_src_b(np.zeros((32, 32), dtype=np.uint32), "diagonal")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("dst32", [False, True])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_batches_equal_single_tiles(name: str, dst32: bool) -> None:
    """Leading dimensions only repeat the tile operation; strided operands are allowed."""
    random = np.random.default_rng(7)
    a, b = (to_bits(random.normal(size=(2, 3, 32, 32))) & np.uint32(0xFFFF0000) for _ in range(2))
    old = np.zeros_like(a)
    whole = OPERATIONS[name](a, np.swapaxes(b, 0, 0), old, dst32=dst32, erratum=fpu.Erratum(), accumulate=False)
    for i in range(2):
        for j in range(3):
            single = OPERATIONS[name](a[i, j], b[i, j], old[i, j], dst32=dst32, erratum=fpu.Erratum(), accumulate=False)
            assert (whole[i, j] == single).all()
