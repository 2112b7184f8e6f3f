"""``ttl-compute-operations.md``, section 5.6: tiling by the capacity of DST, as IR text: compiled, simulated and run natively against NumPy."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dialect_texts import (
    FILL,
    GENERIC,
    MATMUL,
    MEMREF,
    SIZES,
    THREE,
    chain,
    in_function,
    kept,
    memrefs,
    refused,
    region_and_generic,
    relative,
    spec,
    wide,
)
from text_programs import DTYPES, block, compiled, program, run, tile, values, zeros

from tilewright.cli.main import main
from tilewright.native import driver

# 5.6 Structured ops and tiling by capacity ----------------------------------------------------------------------------------------


def chained(arrays: list[Any]) -> Any:
    a, b, c = (wide(array) for array in arrays[:3])
    return np.exp((a + b) * c)


def sub_blocks(made: Any) -> tuple[int, int]:
    """How many acquires the 64 tiles take, and the tiles of each."""
    (plan,) = made.dst
    (part,) = plan.parts
    count = part.allocation.tiles_per_acquire
    return 64 // count, count


@spec("5.6.1", "three operations on an 8x8 block, written one by one, share one pass through DST", listings=(1,))
def test_chain_of_three(tmp_path: Path, listings: Any):
    made = run_chain(tmp_path, program(chain(listings[1]), THREE, {"out": (8, 8)}, dtype="bf16").replace("buffer_factor = 2", "buffer_factor = 1").replace(", 2>", ", 1>"), "bf16")
    assert sub_blocks(made) == (8, 8)


def run_chain(folder: Path, text: str, dtype: str) -> Any:
    arrays = [values((8, 8), dtype, seed=number) for number in range(3)] + [zeros((8, 8), dtype)]
    made = run(text, arrays, folder)
    assert relative(arrays[3], chained(arrays)) < (0.02 if dtype == "bf16" else 1e-5)
    return made


@spec("5.6.4", "phase 1, its input: the fused region of three operations on an 8x8 block", listings=(1,))
def test_region_of_three(tmp_path: Path, listings: Any):
    text = program(region_and_generic(listings[1])[0], THREE, {"out": (8, 8)}, dtype="bf16").replace("buffer_factor = 2", "buffer_factor = 1").replace(", 2>", ", 1>")
    made = run_chain(tmp_path, text, "bf16")
    assert [each for each in made.buffers if each.origin != "user"] == []


@spec("5.6.4", "phase 1, its output: linalg.generic on memrefs of tiles compiles and runs as it stands in the document", listings=(1,))
def test_generic_of_three(tmp_path: Path, listings: Any):
    run_chain(tmp_path, in_function(region_and_generic(listings[1])[1], MEMREF, ("a", "b", "c", "out"), (8, 8), "f32"), "f32")


@spec("5.6.6", "iterator types: parallel for elementwise, reduction for the inner dimension of a product")
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_generic_with_a_reduction(tmp_path: Path, dtype: str):
    """linalg.fill says what the sum starts from."""
    listing = memrefs(dtype, FILL + MATMUL)
    kind = f"memref<8x8x{tile(dtype)}, #L1>"
    text = in_function(listing, kind, ("a", "b", "out"), (2, 2), dtype, SIZES)
    arrays = [values((2, 3), dtype, seed=1), values((3, 2), dtype, seed=2), zeros((2, 2), dtype)]
    run(text, arrays, tmp_path)
    assert relative(arrays[2], wide(arrays[0]) @ wide(arrays[1])) < 0.01


@spec("5.6.6", "a reduction on blocks of buffers continues from what its output block holds")
def test_reduction_continues(tmp_path: Path):
    shapes = {"a": (2, 3), "b": (3, 2), "c": (2, 2)}
    kinds = {name: block(shape, "bf16") for name, shape in {**shapes, "out": (2, 2)}.items()}
    body = "%r = " + MATMUL.format(tile=tile("bf16"), a=kinds["a"], b=kinds["b"], out=kinds["out"]).strip().replace("outs(%out", "outs(%c")
    text = program(f"{body} -> {kinds['out']}\nttl.block_store %out, %r", shapes, {"out": (2, 2)}, dtype="bf16")
    arrays = [values(shape, "bf16", seed=number) for number, shape in enumerate(shapes.values())] + [zeros((2, 2), "bf16")]
    run(text, arrays, tmp_path)
    a, b, c, found = (wide(array) for array in arrays)
    assert relative(found, c + a @ b) < 0.01
    wrong = text.replace("outs(%c", "outs(%out")
    refused(wrong, tmp_path, "TW603", "linalg.generic", "reads its output, and nobody has written that block")


@spec("5.6.6", "a memref that is read before anybody has written it is refused at the op")
def test_output_that_nobody_has_written(tmp_path: Path):
    kind = f"memref<8x8x{tile('bf16')}, #L1>"
    text = in_function(memrefs("bf16", MATMUL), kind, ("a", "b", "out"), (2, 2), "bf16", SIZES)
    refused(text, tmp_path, "TW603", "linalg.generic", "reads its output, and nobody has written that block")
    fills = text.replace("ttl.cb_wait %out_cb", "ttl.cb_reserve %out_cb").replace("ttl.cb_pop %out_cb", "ttl.cb_push %out_cb")
    refused(fills, tmp_path, "TW603", "linalg.generic", "reads its output, which another thread fills")


@spec("5.6.6", "rows and columns of tiles reduced by linalg.generic")
@pytest.mark.parametrize(("dim", "axis"), [("row", 1), ("col", 0)])
def test_generic_of_rows(tmp_path: Path, dim: str, axis: int):
    shape = (2, 1) if axis == 1 else (1, 3)
    kinds = {"x": block((2, 3), "bf16"), "ones": block((1, 1), "bf16"), "o": block(shape, "bf16")}
    place = "(d0, 0)" if axis == 1 else "(0, d1)"
    iterators = '["parallel", "reduction"]' if axis == 1 else '["reduction", "parallel"]'
    t = tile("bf16")
    body = f"""
    %number = arith.constant 0.0 : f32
    %init = linalg.fill ins(%number : f32) outs(%o : {kinds["o"]}) -> {kinds["o"]}
    %r = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, 0)>, affine_map<(d0, d1) -> {place}>],
      iterator_types = {iterators}
    }} ins(%x, %ones : {kinds["x"]}, {kinds["ones"]}) outs(%init : {kinds["o"]}) {{
    ^bb0(%tx: {t}, %t1: {t}, %to: {t}):
      %part = ttl.tile_reduce %tx, %t1 {{kind = "sum", dim = "{dim}"}}
      %sum = ttl.tile_add %to, %part
      linalg.yield %sum : {t}
    }} -> {kinds["o"]}
    ttl.block_store %o, %r
    """
    arrays = [values((2, 3), "bf16"), np.ones((32, 32), DTYPES["bf16"]), zeros(shape, "bf16")]
    run(program(body, {"x": (2, 3), "ones": (1, 1)}, {"o": shape}, dtype="bf16"), arrays, tmp_path)
    found = wide(arrays[2])[:, 0] if axis == 1 else wide(arrays[2])[0, :]
    assert np.abs(found - wide(arrays[0]).sum(axis=axis)).max() < 0.1


@spec("5.6.6", "a reduction that no unit has, a window and maps that are none are refused at the op")
def test_wrong_generics(tmp_path: Path):
    listing = memrefs("bf16", FILL + MATMUL)
    kind = f"memref<8x8x{tile('bf16')}, #L1>"
    text = in_function(listing, kind, ("a", "b", "out"), (2, 2), "bf16", SIZES)
    product = "%p = ttl.tile_matmul %x, %y {k = 1 : i32, columns = 1 : i32}"
    refused(text.replace(product, "%p = ttl.tile_mul %x, %y"), tmp_path, "TW603", "linalg.generic", "no unit has this reduction")
    refused(text.replace('"reduction"', '"window"'), tmp_path, "TW603", "linalg.generic", "parallel or reduction")
    refused(text.replace("(m, n, k) -> (m, k)", "(m, n, k) -> (m * 0, k)"), tmp_path, "TW603", "linalg.generic", "dimension")
    every = text.replace('"reduction"', '"parallel"')
    refused(every, tmp_path, "TW603", "linalg.generic", "has its parallel iterators as dimensions")


def in_bf16() -> str:
    """The fused generic of phase 1 on bf16, whose DST has the 8 registers that the document counts with."""
    return in_function(GENERIC.replace("f32", "bf16"), MEMREF.replace("f32", "bf16"), ("a", "b", "c", "out"), (8, 8), "bf16")


WORDS = {"Init": "init", "Inner tile loop": "for", "Apply": "apply", "Pack": "pack"}


def nest(listing: str) -> list[str]:
    """5.6.2: what one run of the sub-block loop does, with the loop over operations written out for three of them."""
    lines = [line.strip() for line in listing.splitlines()]
    assert lines[0].startswith("Outer sub-block loop") and lines[2].startswith("For each operation")
    found = [word for line in lines for start, word in WORDS.items() if line.startswith(start)]
    return [*found[:-1] * 3, found[-1]]


def emitted_nest(cpp: str) -> list[str]:
    """The same of an emitted kernel; inits that hold for all runs stand before the loop over them."""
    section = cpp[cpp.index("tile_regs_acquire") : cpp.index("tile_regs_release")]
    found: list[str] = []
    for line in section.splitlines():
        call = re.match(r"(for) |(\w+)(?:<.*>)?\(", line.strip())
        name = call and (call[1] or call[2])
        if name and not name.startswith("tile_regs"):
            found.append("for" if name == "for" else "init" if "init" in name else "pack" if name.startswith("pack") else "apply")
    return found


@spec("5.6.2", "block, sub-block, tile, operation: per sub-block one init and one tile loop per operation, one pack", listings=(1,))
def test_loop_nest(tmp_path: Path, listings: Any):
    made = compiled(in_bf16(), tmp_path, metal="0.62")
    assert sub_blocks(made) == (8, 8)
    before, _, loop = made.cpp["compute"].partition("for (")
    found = emitted_nest(loop)
    hoisted = before.count("exp_tile_init")  # no other operation of the chain programs the vector unit
    assert hoisted == 1
    found.insert(len(found) - 3, "init")
    assert found == nest(listings[1])


@spec("5.6.3", "what the transform script of phase 2 does is done by ttl-tile-and-assign-dst: target_size is the capacity of DST", decision="0022")
@pytest.mark.parametrize(("capacity", "runs"), [(8, 8), (4, 16), (2, 32), (1, 64)])
def test_tiling_by_capacity(tmp_path: Path, capacity: int, runs: int):
    """multitile_sizes {target_size = capacity}, split and tile_using_for: see docs/decisions/0022."""
    arrays = [values((8, 8), "bf16", seed=number) for number in range(3)] + [zeros((8, 8), "bf16")]
    made = run(in_bf16(), arrays, tmp_path, dst_capacity=capacity)
    assert sub_blocks(made) == (runs, capacity)
    assert relative(arrays[3], chained(arrays)) < 0.02


@spec("5.6.4", "phase 2: the transform script is refused at its line; --dst-capacity with its target_size tiles the same", decision="0022", listings=(2,))
def test_transform_script(tmp_path: Path, listings: Any):
    refused(in_bf16() + "\n" + listings[2], tmp_path, "TW603", "transform.sequence", "Operation transform.sequence")
    target = re.search(r"target_size = (\d+)", listings[2])
    rows, columns = re.findall(r"tile_using_for %low \[(\d), (\d)\]", listings[2])[0]
    assert target is not None and (rows, columns) == ("1", "0")  # one row, all columns
    arrays = [values((8, 8), "bf16", seed=number) for number in range(3)] + [zeros((8, 8), "bf16")]
    assert sub_blocks(run(in_bf16(), arrays, tmp_path, dst_capacity=int(target[1]))) == (8, 8)
    assert relative(arrays[3], chained(arrays)) < 0.02


@spec("5.6.4", "phase 2, its result: a loop over sub-blocks, each with the listing's chain on its 8 tiles", listings=(3,))
def test_result_of_tiling(tmp_path: Path, capsys: pytest.CaptureFixture[str], listings: Any):
    path = tmp_path / "generic.mlir"
    path.write_text(in_bf16())
    assert main(["opt", str(path), "-p", "ttl-expand-text-forms,convert-ttl-to-compute,ttl-set-compute-config,ttl-assign-dst"]) == 0
    text = capsys.readouterr().out
    runs = re.search(r"scf.for %row = 0 to (\d+) step 1", listings[3])
    tiles = re.search(r"memref<(\d+)x!ttcore.tile", listings[3])
    assert runs is not None and tiles is not None
    words = re.compile(r"scf\.for|ttl\.tile_\w+")
    compute = text[text.index("func.func @compute") :].partition("func.func @reader")[0]
    assert words.findall(compute) == words.findall(re.sub(r"//.*", "", listings[3]))
    assert int(runs[1]) * int(tiles[1]) == 64 and f"ttl.unroll_factor = {tiles[1]}" in text


BOUNDS = "".join(f"%{name} = arith.constant {number} : index\n" for name, number in (("zero", 0), ("rows", 8), ("one", 1)))
LOOP = "scf.for %row = %zero to %rows step %one {"


def by_rows(listing: str) -> str:
    """The loop of the listing as the compute thread. Its subviews are what two other loops bring and take, a row at a time."""
    lines = [re.sub(r"//.*", "", line) for line in listing.splitlines()]
    loop = "\n".join(lines).replace("scf.for %row = 0 to 8 step 1 {", LOOP).replace("%sub_result = ", "")
    assert LOOP in loop
    kind, names = tile("f32"), ("a_sub", "b_sub", "c_sub", "out_sub")
    functions = [f"func.func @compute({', '.join(f'%{name}: memref<8x{kind}, #L1>' for name in names)}) {{\n{BOUNDS}{loop}\nfunc.return\n}}"]
    for role, chosen, acquire, release in (("reader", range(3), "reserve", "push"), ("writer", [3], "wait", "pop")):
        made, moved = "", ""
        for number in chosen:
            name, accessor = names[number], f'!ttl.accessor<[8, 8], {kind}, "dram">'
            ends = f"%{name}_row, %{name}_block" if role == "reader" else f"%{name}_block, %{name}_row"
            made += f'%{name}_cb = ttl.bind_cb{{cb_index = {number}, buffer_factor = 1, name = "{name}"}} : !ttl.cb<[8], {kind}, 1>\n'
            made += f'%{name}_tensor = ttl.tensor_accessor {{tensor_index = {number} : i32, name = "{name}"}} : {accessor}\n'
            moved += f'%{name}_row = ttl.tensor_slice %{name}_tensor, %row, %zero : {accessor}, index, index -> !ttl.slice<[8], {kind}, "dram">\n'
            moved += f"%{name}_block = ttl.cb_{acquire} %{name}_cb\n%{name}_copy = ttl.copy {ends}\nttl.wait %{name}_copy\nttl.cb_{release} %{name}_cb\n"
        attributes = f'{{ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "{role}"}}'
        functions.append(f"func.func @{role}() attributes {attributes} {{\n{BOUNDS}{made}{LOOP}\n{moved}}}\nfunc.return\n}}")
    return "\n".join(functions)


@spec("5.6.4", "phase 2, its result runs as it stands: a linalg.generic of one dimension per row of 8 tiles", listings=(3,))
def test_result_of_tiling_runs(tmp_path: Path, listings: Any):
    run_chain(tmp_path, by_rows(listings[3]), "f32")


REUSE = "<EltwiseBinaryType::ELWMUL, EltwiseBinaryReuseDestType::DEST_TO_SRCA>"
CALLS = {  # of the listings, where the kernel API has another name or other arguments
    r"ttkernel\.mul_tiles_init %dst, %cb_c": f"binary_dest_reuse_tiles_init{REUSE}(c);",
    r"ttkernel\.mul_tiles %dst, %cb_c, %dst_idx, %col, %dst_idx": f"binary_dest_reuse_tiles{REUSE}(c, row * 8 + col, dst_idx);",
    r"ttkernel\.add_tiles %cb_a, %cb_b, %col, %col, %dst_idx": "add_tiles(a, b, row * 8 + col, row * 8 + col, dst_idx);",
    r"ttkernel\.exp_tiles_init %dst": "exp_tile_init();",
    r"ttkernel\.pack_tile %dst_idx, %cb_out, %col": "pack_tile<true>(dst_idx, out, col);",
    r"(?:%\w+ = )?ttkernel\.(\w+) (.*)": r"\1(\2);",
    r"%dst_idx = affine\.apply affine_map<\(c\) -> \(c\)>\(%col\)": "const uint32_t dst_idx = col;",
    r"(?:affine|scf)\.for %(\w+) = 0 to (\d+)(?: step 1)? \{": r"for (uint32_t \1 = 0; \1 < \2; ++\1) {",
    r"%\w+_sub = memref\.subview .*": "",  # rows of the block: the calls count from its first tile
}


def as_cpp(listing: str) -> str:
    """Phase 3 as C++. The handshake, which the listing leaves out, stands around the arithmetic and around the packs."""
    lines = [re.sub(r"//.*", "", line).strip() for line in listing.splitlines()]
    for pattern, call in CALLS.items():
        lines = [re.sub(f"^{pattern}$", call, line) for line in lines]
    text = "\n".join(re.sub(r"%cb_|%", "", line) for line in lines if line)
    acquire, commit = "tile_regs_acquire();\n", "tile_regs_commit();\ntile_regs_wait();\n"
    packs = text.rindex("for (", 0, text.index("pack_tile"))
    first = text.index("add_tiles_init")
    end = text.index("cb_push_back")
    return text[:first] + acquire + text[first:packs] + commit + text[packs:end] + "tile_regs_release();\n" + text[end:]


def run_listing(folder: Path, loop: str) -> None:
    """The listing in the place of what our kernel does between its waits and its pops, natively."""
    made = compiled(in_bf16(), folder, metal="0.62")
    cpp = made.cpp["compute"]
    start, end = cpp.index("  exp_tile_init();"), cpp.index("  cb_push_back(out, 64)")
    cpp = cpp[:start] + loop + "\n" + cpp[cpp.index("\n", end) + 1 :]
    arrays = [values((8, 8), "bf16", seed=number) for number in range(3)] + [zeros((8, 8), "bf16")]
    ours = [array.copy() for array in arrays]
    driver.run(dataclasses.replace(made, cpp={**made.cpp, "compute": cpp}), arrays)
    driver.run(made, ours)
    assert arrays[3].tobytes() == ours[3].tobytes()
    assert relative(arrays[3], chained(arrays)) < 0.02


@spec("5.6.4", "phase 3: the listing runs natively in the place of our loop, with the names that exist, to our bits", listings=(4,), decision="0008")
def test_phase_3_runs(tmp_path: Path, listings: Any):
    run_listing(tmp_path, as_cpp(listings[4]))


@spec("5.6.5", "the walkthrough of one sub-block runs natively for all eight, to our bits", listings=(1,), decision="0008")
def test_walkthrough_runs(tmp_path: Path, listings: Any):
    run_listing(tmp_path, f"for (uint32_t row = 0; row < 8; ++row) {{\n{as_cpp(listings[1])}\n}}")


@spec("5.6.5", "the walkthrough: eight adds into DST[0..7], eight products onto them, eight exponentials, eight packs")
def test_walkthrough(tmp_path: Path):
    made = run_chain(tmp_path, in_bf16(), "bf16")
    (plan,) = made.dst
    allocation = plan.parts[0].allocation
    assert allocation.slots == 1 and [allocation.dst_index(0, number) for number in range(8)] == list(range(8))


def blocks_of(listing: str) -> str:
    """5.6.7, listing 1: the chain of tile ops, as ops on blocks with a store."""
    return listing.replace("ttl.tile_", "ttl.block_") + "ttl.block_store %o, %exp\n"


@spec("5.6.7", "a chain needs one register per tile, as each operation takes over its operand's", listings=(1,))
def test_registers_per_tile(tmp_path: Path, listings: Any):
    text = program(blocks_of(listings[1]), {"a": (2, 2), "b": (2, 2), "c": (2, 2)}, {"o": (2, 2)}, dtype="bf16")
    (plan,) = compiled(text, tmp_path).dst
    peak = re.search(r"Peak usage: (\d+) DST per tile", listings[1])
    assert peak is not None and plan.parts[0].allocation.slots == int(peak[1])


def targets(listing: str) -> list[tuple[int, int, int]]:
    """5.6.7, listing 2: registers per tile, capacity and the tiles of a sub-block."""
    pattern = r"peak usage is (\d+) DST per tile.*?total capacity (\d+).*?target_size = (\d+)"
    return [(int(peak), int(capacity), int(size)) for peak, capacity, size in re.findall(pattern, listing, re.DOTALL)]


@spec("5.6.7", "capacity 16: the chain takes 16 tiles at once, as the script's target_size", listings=(2,))
def test_target_size_of_a_chain(tmp_path: Path, listings: Any):
    peak, capacity, size = targets(listings[2])[0]
    text = program(blocks_of(kept("5.6.7", 1)), dict.fromkeys("abc", (4, 8)), {"o": (4, 8)}, dtype="bf16")
    arrays = [values((4, 8), "bf16", seed=number) for number in range(3)] + [zeros((4, 8), "bf16")]
    (plan,) = run(text, arrays, tmp_path, full_sync=True).dst
    allocation = plan.parts[0].allocation
    assert (allocation.slots, allocation.tiles_per_acquire) == (peak, size) and capacity == 16  # of a bf16 DST in full sync
    assert relative(arrays[3], chained(arrays)) < 0.02


@spec("5.6.7", "a product takes one register per output tile instead of four", listings=(2,), decision="0009")
def test_target_size_of_a_product(tmp_path: Path, listings: Any):
    peak, _, _ = targets(listings[2])[1]
    text = program("%t = ttl.block_matmul %a, %b\nttl.block_store %o, %t", {"a": (2, 2), "b": (2, 2)}, {"o": (2, 2)}, dtype="bf16")
    (plan,) = compiled(text, tmp_path).dst
    assert plan.parts[0].allocation.slots == 1 < peak
