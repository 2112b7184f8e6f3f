"""``ttl-compute-operations.md``, section 4.7, and the definitions of every op, as IR text: compiled, simulated and run natively against NumPy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dialect_texts import PLACES, kept, refused, spec
from text_programs import block, run, tile, values

from tilewright.dialects.text_input import TTL, known_attributes

# 4.7 Utilities --------------------------------------------------------------------------------------------------------------------


def rows_read(folder: Path, place: str, grid: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """What ``%row`` is on every core: core n copies row %row of a column of tiles to row n."""
    cores = int(np.prod(grid))
    text = PLACES.format(
        grid=", ".join(map(str, grid)), tensor=block((cores, 1), "f32"), tile=tile("f32"), place=place, cores=cores
    )
    x = np.repeat(np.arange(cores, dtype=np.float32), 32)[:, None] * np.ones((1, 32), np.float32)
    y = np.full_like(x, -1)
    run(text, [x, y], folder)
    found = y[::32, 0].astype(int)
    order = [(i, j) for j in range(grid[1]) for i in range(grid[0])] if len(grid) == 2 else list(np.ndindex(*grid))
    return {tuple(map(int, core)): int(found[number]) for number, core in enumerate(order)}


@spec("4.7", "ttl.core: fewer dimensions are folded, more are padded with 0")
@pytest.mark.parametrize(
    ("place", "grid", "wanted"),
    [
        ("%row = ttl.core(dims=1)", (2, 3), lambda x, y: x * 3 + y),
        ("%row, %other = ttl.core", (2, 3), lambda x, y: x),
        ("%other, %row = ttl.core {dims = 2}", (2, 3), lambda x, y: y),
        ("%o1, %o2, %row = ttl.core(dims=3)", (2, 3), lambda x, y: 0),
        ("%other, %row = ttl.core(dims=2)", (2, 2, 2), lambda x, y, z: y * 2 + z),
        ("%row = ttl.core(dims=1)", (2, 2, 2), lambda x, y, z: (x * 2 + y) * 2 + z),
    ],
)
def test_core(tmp_path: Path, place: str, grid: tuple[int, ...], wanted: Any):
    for core, row in rows_read(tmp_path, place, grid).items():
        assert row == wanted(*core)


@spec("4.7", "ttl.grid_size: fewer dimensions are multiplied, more are padded with 1")
@pytest.mark.parametrize(
    ("place", "grid", "wanted"),
    [
        ("%size = ttl.grid_size(dims=1)", (2, 3), 6),
        ("%o1, %size = ttl.grid_size(dims=2)", (2, 2, 2), 4),
        ("%o1, %o2, %size = ttl.grid_size(dims=3)", (2, 3), 1),
        ("%size, %o1 = ttl.grid_size", (2, 3), 2),
    ],
)
def test_grid_size(tmp_path: Path, place: str, grid: tuple[int, ...], wanted: int):
    less = f"{place}\n    %one = arith.constant 1 : index\n    %row = arith.subi %size, %one : index"
    assert set(rows_read(tmp_path, less, grid).values()) == {wanted - 1}


@spec("4.7", "ttl.core_linear and ttl.core_dim(1): core_y * grid_x + core_x")
@pytest.mark.parametrize("place", ["%row = ttl.core_linear", "%row = ttl.core_linear : index", "%row = ttl.core_dim(1)", "%row = ttl.core_dim {dims = 1 : i64} : index"])
def test_core_linear(tmp_path: Path, place: str):
    for (x, y), row in rows_read(tmp_path, place, (3, 2)).items():
        assert row == y * 3 + x


@spec("4.7", "ttl.core_dim(2): the second of two coordinates")
def test_core_dim(tmp_path: Path):
    for (_, y), row in rows_read(tmp_path, "%row = ttl.core_dim(2)", (3, 2)).items():
        assert row == y


@spec("4.7", "dims that are none, or not the number of results, are refused at their line")
def test_wrong_dims(tmp_path: Path):
    for line, message in (("%row = ttl.core_dim(4)", "dims is 1, 2 or 3"), ("%row = ttl.core {dims = 2} : index", "dims is the number")):
        text = PLACES.format(grid="1, 1", tensor=block((1, 1), "f32"), tile=tile("f32"), place=line, cores=1)
        refused(text, tmp_path, "TW603", line, message)


@spec("4.7", "ttl.grid_slice: core (x, y) has the tiles [x, y] of a 2x2 grid with block_factors [1, 1]")
def test_grid_slice(tmp_path: Path):
    text = PLACES.format(grid="2, 2", tensor=block((2, 2), "f32"), tile=tile("f32"), place="", cores=4)
    slice_ = re.compile(r"%part = ttl.tensor_slice %(\w)s, .*")
    text = slice_.sub(r"%part = ttl.grid_slice %\1s {block_factors = [1, 1]}", text)
    x = values((2, 2))
    arrays = [x, np.zeros_like(x)]
    run(text, arrays, tmp_path)
    assert np.array_equal(arrays[1], x)


# The definitions ------------------------------------------------------------------------------------------------------------------

DEFINITION = re.compile(r'^def (\w+) : TTL_Op<"(\w+)".*?^\}', re.DOTALL | re.MULTILINE)
ARGUMENT = re.compile(r"([\w<>]+):\$(\w+)")
DEFINING = {"4.1": 1, "4.2": 1, "4.3": 1, "4.4.1": 2, "4.4.2": 1, "4.4.3": 1, "4.4.4": 2, "4.4.5": 1, "4.7": 1}  # listing of each section


def defined(section: str) -> list[str]:
    return [found[2] for found in DEFINITION.finditer(kept(section, DEFINING[section]))]


@pytest.mark.parametrize(
    ("section", "name"),
    [
        pytest.param(
            section, name, id=name,
            marks=spec(section, f"ttl.{name} is an op with the attributes of its definition", listings=(DEFINING[section],)),
        )
        for section in DEFINING
        for name in defined(section)
    ],
)  # fmt: skip
def test_definition(listings: Any, section: str, name: str):
    """Every attribute of the definition is one that our op has. What it takes and gives, the tests of its section show."""
    (text,) = [found[0] for found in DEFINITION.finditer(listings[DEFINING[section]]) if found[2] == name]
    assert f"ttl.{name}" in {op.name for op in TTL.operations}
    arguments = re.search(r"let arguments = \((.*?)\n?  ?\);|let arguments = \((.*?)\);", re.sub(r"//.*", "", text), re.DOTALL)
    listed = ARGUMENT.findall((arguments[1] or arguments[2]) if arguments else "")
    known = known_attributes(f"ttl.{name}")
    assert known is not None and {key for kind, key in listed if "Attr" in kind} <= known


@pytest.mark.parametrize("section", DEFINING)
def test_all_definitions_are_there(section: str):
    text = kept(section, DEFINING[section])
    assert len(defined(section)) == text.count("\ndef ") + text.startswith("def ")
