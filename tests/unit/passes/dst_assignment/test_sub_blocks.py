"""Blocks larger than DST: runs of consecutive tiles with the remainder peeled, and packs that stay in order."""

from __future__ import annotations

import re

import pytest


def runs(ir: str) -> list[tuple[int, int]]:
    """(tiles, how often) of every acquire in the loop IR, from the shape of the region's output and the loop around it."""
    found, trips = [], [1]
    numbers: dict[str, int] = {}
    for line in ir.splitlines():
        constant = re.search(r"(%\w+) = arith.constant (\d+) : index", line)
        if constant:
            numbers[constant[1]] = int(constant[2])
        loop = re.search(r"scf.for %\w+ = (%\w+) to (%\w+) step (%\w+)", line)
        if loop:
            low, high, step = (numbers[name] for name in loop.groups())
            trips.append((high - low) // step)
        elif re.match(r"\s*\}( \{.*\})?$", line) and len(trips) > 1:
            trips.pop()
        compute = re.search(r"ttl.compute ins.* outs\(.* : tensor<([\dx]+)x!", line)
        if compute:
            tiles = 1
            for size in compute[1].split("x"):
                tiles *= int(size)
            found.append((tiles, trips[-1]))
            trips.append(trips[-1])  # the region's own braces
        if line.strip().startswith("} -> tensor"):
            trips.pop()
    return found


def program_for(kernels, make_array, expression, block, dtype="bf16", **options):
    source = kernels.text.elementwise({"out": expression}, "ab", block=block, count=1)
    return kernels.compile(source, *[make_array(block, dtype) for _ in range(3)], keep_ir=True, **options)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ((1, 1), [(1, 1)]),
        ((2, 4), [(8, 1)]),
        ((3, 3), [(8, 1), (1, 1)]),
        ((7, 5), [(8, 4), (3, 1)]),
        ((8, 8), [(8, 8)]),
        ((1, 11), [(8, 1), (3, 1)]),
        ((13, 1), [(8, 1), (5, 1)]),
    ],
)
def test_one_slot_per_tile_fills_dst(kernels, make_array, block, expected):
    """`a * b` on the matrix unit takes one register per tile, of eight: prime shapes keep DST full too."""
    program = program_for(kernels, make_array, "a * b", block)
    assert runs(program.trace.stage("ttl-tile-and-assign-dst").ir) == expected
    assert sum(tiles * trips for tiles, trips in expected) == block[0] * block[1]


def test_linear_scan_takes_its_unroll_factor(kernels, make_array):
    """Two input slots leave six of eight for outputs: 35 tiles are five runs of six and one of five."""
    program = program_for(kernels, make_array, "a * b", (7, 5), allocator="linear-scan", fpu_binary_ops=False)
    assert runs(program.trace.stage("ttl-tile-and-assign-dst").ir) == [(6, 5), (5, 1)]


def test_f32_halves_the_runs(kernels, make_array):
    program = program_for(kernels, make_array, "ttl.math.exp(a) * b", (4, 4), "f32", full_sync=False)
    (whole, *rest) = runs(program.trace.stage("ttl-tile-and-assign-dst").ir)
    assert whole[0] <= 4 and whole[0] * whole[1] + sum(t * n for t, n in rest) == 16


@pytest.mark.parametrize("block", [(3, 3), (7, 5), (2, 9)])
@pytest.mark.parametrize("options", [{}, {"allocator": "linear-scan", "fpu_binary_ops": False}, {"enable_unroll": True}])
def test_every_tile_is_packed_once_in_order(kernels, make_array, block, options):
    """The packer writes in order: over the whole kernel, the places of the packs count up from 0."""
    program = program_for(kernels, make_array, "a * b", block, combine_packs=False, **options)
    places = [place for place, _ in executed_packs(program.module)]
    assert places == list(range(block[0] * block[1]))


@pytest.mark.parametrize("block", [(3, 3), (7, 5)])
def test_combined_packs_cover_the_same_tiles(kernels, make_array, block):
    program = program_for(kernels, make_array, "a * b", block)
    counts = [count for _, count in executed_packs(program.module)]
    assert sum(counts) == block[0] * block[1] and len(counts) < sum(counts)


def executed_packs(module) -> list[tuple[int, int]]:
    """(place, tiles) of each pack as the loops run; a block pack has no place of its own."""
    function = next(op for op in module.ops if str(op.attributes["ttl.kernel_thread"]) == "#ttkernel.thread<compute>")
    found: list[tuple[int, int]] = []
    _execute(function.body.blocks[0], {}, found)
    return found


def _execute(block, values, found) -> None:
    for op in block.ops:
        if op.name == "arith.constant":
            values[op.results[0]] = op.value.value.data
        elif op.name in ("arith.addi", "arith.muli"):
            left, right = (values[operand] for operand in op.operands)
            values[op.results[0]] = left + right if op.name == "arith.addi" else left * right
        elif op.name == "scf.for":
            for number in range(*(values[bound] for bound in (op.lb, op.ub, op.step))):
                values[op.body.blocks[0].args[0]] = number
                _execute(op.body.blocks[0], values, found)
        elif op.name == "ttkernel.pack_tile":
            found.append((values[op.operands[2]], 1))
        elif op.name == "ttkernel.pack_tile_block":
            found.append((-1, values[op.operands[2]]))
