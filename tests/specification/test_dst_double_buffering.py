"""`dst-double-buffering.md`: the life of DST per tile, per reduction and across a K loop, with TileLang as the front door.

The kernels are the document's text. Its C++ listings are used twice: our kernel is held against them, call by call, and they are run
themselves, natively, in the place of our compute kernel. Their names for the handshake are roles (decision 0008).
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import documents
import ml_dtypes
import numpy as np
import pytest

from tilewright import execution
from tilewright.diagnostics import KernelError
from tilewright.native import driver
from tilewright.program import dst_facts

DOCUMENT = "dst-double-buffering.md"
HEADER = "from tilewright import tilelang\nT = tilelang.language\n"
SECTION = ("acquire", "commit", "wait", "release")
ROLES = {f"tile_regs_{role}": role for role in SECTION} | {"acquire_dst": "acquire", "commit_dst": "commit", "release_dst": "release"}
NAMES = {"A_tile": "cb_a", "B_tile": "cb_b", "C_tile": "cb_c", "C_acc": "cb_c"}
METAL = {"metal": "0.62"}


def spec(section: str, item: str, **more):
    return pytest.mark.spec(document=DOCUMENT, section=section, item=item, **more)


def kernel_of(kernels, text: str, dtype: str = "float16") -> Any:
    """A kernel of the document, as written or in another dtype."""
    name = re.search(r"def (\w+)\(", text)[1]
    return kernels.text.load(HEADER + text.replace('"float16"', f'"{dtype}"'), kernels.folder, name)


@pytest.fixture(scope="module")
def elem_add(kernels):
    return kernel_of(kernels, documents.listing(DOCUMENT, "Test 1", 1))


@pytest.fixture(scope="module")
def matmul(kernels):
    return kernel_of(kernels, documents.listing(DOCUMENT, "Test 2", 1))


@pytest.fixture
def arrays() -> list[Any]:
    rng = np.random.default_rng(7)
    a, b = (rng.uniform(-1, 1, (256, 256)).astype(np.float16) for _ in range(2))
    return [a, b, np.zeros((256, 256), np.float16)]


def compute_text(kernel: Any, arrays: list[Any]) -> str:
    return kernel.compile(*arrays, **METAL).cpp["compute"]


def calls(text: str) -> list[str]:
    """Calls with arguments, loops and their ends; the handshake by role, buffers as the listings call them, no inits."""
    start = re.search(r"void (?:MAIN|kernel_main\(\)) \{", text)
    body = re.sub(r"//.*|/\*.*?\*/", "", text[start.end() :].partition("void MAIN")[0])
    found = []
    for loop, call, arguments in re.findall(r"\bfor \(uint32_t (\w+)|\b([a-z]\w+)(?:<[^;()]*>)?\(([^;{}]*)\);|\}", body):
        if loop:
            found.append("for")
        elif not call:
            found.append("end")
        elif call in ROLES:
            found.append(ROLES[call])
        elif not re.search("init|get_|reconfig", call):
            arguments = re.sub(r"\w+", lambda word: NAMES.get(word[0], word[0]), arguments)
            found.append(f"{call}({arguments})")
    while found[-1] == "end" and found.count("end") > found.count("for"):
        found.pop()
    return found


def normal(found: list[str]) -> list[str]:
    """What a listing and our text write differently: the pack's tile number, the transpose flag of old matmul, the packer's wait."""
    changed = [re.sub(r"pack_tile\(0, cb_c(?:, 0)?\)", "pack_tile(0, cb_c)", line) for line in found]
    changed = [re.sub(r"(matmul_tiles\(cb_a, cb_b, 0, 0, 0), (?:false|0) *\)", r"\1)", line) for line in changed]
    return [line for line in changed if line != "wait"]


def same_order(ours: list[str], theirs: list[str]) -> None:
    """The same calls in the same loops; the handshake and the math in the same order; each buffer's calls in the same order."""
    assert sorted(ours) == sorted(theirs)
    chains = [("acquire", "add", "matmul", "commit", "pack", "release", "for", "end")]
    chains += [(f"cb_{verb}_front({cb}" for verb in ("wait", "pop")) for cb in ("cb_a", "cb_b")]
    chains += [("cb_reserve_back(cb_c", "cb_push_back(cb_c")]
    for chain in map(tuple, chains):
        assert [line for line in ours if line.startswith(chain)] == [line for line in theirs if line.startswith(chain)]
    for side in (ours, theirs):
        math = next(number for number, line in enumerate(side) if line.startswith(("add_tiles", "matmul_tiles")))
        pack = next(number for number, line in enumerate(side) if line.startswith("pack_tile"))
        assert all(side.index(f"cb_wait_front({cb}, 1)") < math < side.index(f"cb_pop_front({cb}, 1)") for cb in ("cb_a", "cb_b"))
        assert side.index("cb_reserve_back(cb_c, 1)") < pack < side.index("cb_push_back(cb_c, 1)")


INCLUDES = '#include <cstdint>\n#include "compute_kernel_api/common.h"\n#include "compute_kernel_api/eltwise_binary.h"\n'
INCLUDES += '#include "compute_kernel_api/matmul.h"\n#include "compute_kernel_api/pack.h"\n'


def completed(listing: str, order: str) -> str:
    """A C++ listing that compiles against the headers of 0.62: real names for the handshake and the inits, buffers and arguments.
    ``order`` of the buffers as compile-time arguments: ``abc``."""
    buffers = "".join(f"  constexpr uint32_t cb_{name} = get_compile_time_arg_val({n});\n" for n, name in enumerate(order))
    text = listing.replace("acquire_dst();", "tile_regs_acquire();").replace("release_dst();", "tile_regs_release();")
    text = text.replace("commit_dst();", "tile_regs_commit();\n  tile_regs_wait();")
    text = text.replace("add_tiles_init();", "add_tiles_init(cb_a, cb_b);").replace("matmul_tiles_init(cb_c);", "mm_init(cb_a, cb_b, cb_c);")
    text = re.sub(r"matmul_tiles\(cb_a, cb_b, 0, 0, 0, false[^)]*\)", "matmul_tiles(cb_a, cb_b, 0, 0, 0, 0)", text)
    start = "" if "matmul_tiles" in text else "  binary_op_init_common(cb_a, cb_b, cb_c);\n"
    known = "".join(
        f"  const uint32_t {name} = {value};\n"
        for name, value in (
            ("num_tiles", "get_arg_val<uint32_t>(1)"), ("num_output_tiles", "get_arg_val<uint32_t>(1)"), ("Kt", "8"),
            ("count", "get_arg_val<uint32_t>(1)"),
        )
        if re.search(rf"\b{name}\b", text) and not re.search(rf"uint32_t {name} =", text)
    )  # fmt: skip
    head = re.search(r"void (?:MAIN|kernel_main\(\)) \{\n", text)
    text = text[: head.start()] + "void kernel_main() {\n" + buffers + known + start + text[head.end() :]
    return f"{INCLUDES}namespace NAMESPACE {{\n{text}\nvoid MAIN {{ kernel_main(); }}\n}}\n"


def runs_natively(kernels, listing: str, text: str, *, product: bool) -> None:
    """The listing in the place of our compute kernel, with our reader and writer of the document's TileLang kernel, in bfloat16."""
    rng = np.random.default_rng(11)
    a, b = (rng.uniform(-1, 1, (256, 256)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros_like(a)
    program = kernel_of(kernels, text, "bfloat16").compile(a, b, c, **METAL)
    order = "".join(buffer.name[0] for buffer in program.buffers).lower()
    replaced = dataclasses.replace(program, cpp={**program.cpp, "compute": completed(listing, order)})
    driver.run(replaced, [a, b, c])
    exact = a.astype(np.float32) @ b.astype(np.float32) if product else a.astype(np.float32) + b.astype(np.float32)
    assert np.abs(c.astype(np.float32) - exact).max() < (0.3 if product else 2**-6)


# Overview ---------------------------------------------------------------------------------------------------------------------


@spec("Overview", "acquire, commit, wait for the tile, release: in this order around every section, as tile_regs_*", decision="0008")
def test_handshake(elem_add, matmul, arrays):
    for kernel in (elem_add, matmul):
        found = [line for line in calls(compute_text(kernel, arrays)) if line in SECTION or line.startswith("pack_tile")]
        assert found == ["acquire", "commit", "wait", "pack_tile(0, cb_c, 0)", "release"]


@spec("Overview", "half of DST belongs to the math, half to the packer: two sections are under way at once")
def test_two_halves(elem_add, arrays):
    program = elem_add.compile(*arrays)
    assert not program.config.dst_full_sync_en
    facts = dst_facts(program)
    full = dst_facts(elem_add.compile(*arrays, full_sync=True))
    assert full["dst_capacity"] == 2 * facts["dst_capacity"]


@spec("Metalium Reference", "the element-wise example: our kernel makes its calls, in its loop", listings=(1,))
def test_reference_add(elem_add, arrays, listings):
    same_order(normal(calls(compute_text(elem_add, arrays))), normal(calls(listings[1])))


@spec("Metalium Reference", "the element-wise example runs natively, with the names that exist", listings=(1,), decision="0008")
def test_reference_add_runs(kernels, listings):
    runs_natively(kernels, listings[1], documents.listing(DOCUMENT, "Test 1", 1), product=False)


@spec("Metalium Reference", "the matmul example: one acquire for the whole K loop, with the same calls", listings=(2,))
def test_reference_matmul(matmul, arrays, listings):
    same_order(normal(calls(compute_text(matmul, arrays))), normal(calls(listings[2])))


@spec("Metalium Reference", "the matmul example runs natively, with the names that exist", listings=(2,), decision="0008")
def test_reference_matmul_runs(kernels, listings):
    runs_natively(kernels, listings[2], documents.listing(DOCUMENT, "Test 2", 1), product=True)


# Patterns ---------------------------------------------------------------------------------------------------------------------

ELEMENTWISE = {
    "add": ("ttl.math.relu(a) + b", lambda a, b: np.maximum(a, 0) + b),
    "multiply": ("a * b", lambda a, b: a * b),
    "relu": ("ttl.math.relu(a)", lambda a, b: np.maximum(a, 0)),
    "gelu": ("ttl.math.gelu(a)", None),
}


def lifecycle(text: str) -> list[str]:
    """``acquire_dst() → init() → for inputs: compute() → commit_dst() → pack() → release_dst()`` as roles; work is ``compute``."""
    words = re.findall(r"(for) \w+:|(\w+)\(\)", text)
    found = []
    for loop, call in words:
        found.append("for" if loop else ROLES.get(call, "pack" if call == "pack" else "init" if "init" in call else "compute"))
    return found


def roles(text: str) -> list[str]:
    """Our kernel from acquire to release: roles, one entry for a run of math calls; the packer's own wait is left out."""
    found: list[str] = []
    inside = False
    for line in calls(text):
        inside = inside or line == "acquire"
        if not inside or line == "wait" or line.startswith("cb_") or line == "end":
            continue
        kind = line if line in ("for", *SECTION) else "pack" if line.startswith("pack_tile") else "compute"
        if found[-1:] != [kind]:
            found.append(kind)
        if line == "release":
            break
    return found


@spec("Pattern Classification", "DST is held per tile, per reduction or across K, by what the source computes")
def test_three_patterns(kernels, elem_add, matmul, arrays, block_kernels, make_array):
    reduced = reduction(kernels, block_kernels, make_array, "reduce_sum")[0].cpp["compute"]
    texts = [compute_text(elem_add, arrays), reduced, compute_text(matmul, arrays)]
    held = [roles(text)[1 : roles(text).index("commit")] for text in texts]
    assert held == [["compute"], ["for", "compute"], ["for", "compute"]]


@spec("Pattern 1", "acquire, compute one tile, commit, pack, release, for every tile", listings=(1,))
def test_elementwise_lifecycle(elem_add, arrays, listings):
    assert roles(compute_text(elem_add, arrays)) == lifecycle(listings[1])


@spec("Pattern 1", "add, multiply, relu, gelu: one section per tile, right numbers")
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_examples(kernels, make_array, name):
    expression, function = ELEMENTWISE[name]
    inputs = {key: make_array((2, 2), "bf16") for key in ("ab" if "b" in expression.replace("abs", "") else "a")}
    program, results = kernels.elementwise({"out": expression}, inputs, block=(1, 1), blocks=(2, 2))
    assert roles(program.cpp["compute"]) == ["acquire", "compute", "commit", "pack", "release"]
    wide = [array.astype(np.float64) for array in inputs.values()]
    if function is None:
        exact = 0.5 * wide[0] * (1 + np.vectorize(math.erf)(wide[0] / np.sqrt(2)))
    else:
        exact = function(wide[0], wide[-1])
    np.testing.assert_allclose(results["out"].astype(np.float64), exact, rtol=2**-6, atol=2**-6)


@spec("Pattern 1", "type conversion: one section per tile")
def test_type_conversion(kernels, make_array):
    source = kernels.text.elementwise({"out": "ttl.math.typecast(a, 'f32')"}, "a")
    array = make_array((1, 1), "bf16")
    out = np.zeros((32, 32), np.float32)
    program = kernels.run(source, array, out)
    assert roles(program.cpp["compute"]) == ["acquire", "compute", "commit", "pack", "release"]
    assert (out == array.astype(np.float32)).all()


def reduction(kernels, block_kernels, make_array, function: str):
    source = block_kernels.single_block({"x": (1, 4)}, [(1, 1)], f"o0.store(ttl.math.{function}(x, dims=[1]))")
    array = make_array((1, 4), "bf16")
    out = np.zeros((32, 32), ml_dtypes.bfloat16)
    return kernels.run(source, array, out), array, out


@spec("Pattern 2", "acquire, start the accumulator, accumulate over the inputs, commit, pack, release", listings=(1,))
def test_reduction_lifecycle(kernels, block_kernels, make_array, listings):
    """DST is zero after an acquire, which is the start of a sum."""
    program, _, _ = reduction(kernels, block_kernels, make_array, "reduce_sum")
    assert roles(program.cpp["compute"]) == [role for role in lifecycle(listings[1]) if role != "init"]


@spec("Pattern 2", "row sums and row maxima over several tiles: one section, right numbers")
@pytest.mark.parametrize(("function", "exact"), [("reduce_sum", np.sum), ("reduce_max", np.max)])
def test_reductions(kernels, block_kernels, make_array, function, exact):
    program, array, out = reduction(kernels, block_kernels, make_array, function)
    assert program.cpp["compute"].count("tile_regs_acquire") == 1
    wanted = exact(array.astype(np.float64), axis=1)
    assert np.abs(out[:, 0].astype(np.float64) - wanted).max() <= 2**-6 * max(1, np.abs(wanted).max())


@spec("Pattern 2", "softmax statistics max(A) and sum(exp(A)) in TileLang give right numbers")
def test_softmax_statistics(kernels):
    source = """
@T.prim_func
def statistics(A, C):
    with T.Kernel(8) as bx:
        x = T.alloc_fragment((32, 128), "float32")
        largest = T.alloc_fragment((32,), "float32")
        total = T.alloc_fragment((32,), "float32")
        T.copy(A[bx*32:(bx+1)*32, 0:128], x)
        T.reduce_max(x, largest, dim=1)
        for i, j in T.Parallel(32, 128):
            x[i, j] = T.exp(x[i, j] - largest[i])
        T.reduce_sum(x, total, dim=1)
        for i, j in T.Parallel(32, 128):
            x[i, j] = x[i, j] / total[i]
        T.copy(x, C[bx*32:(bx+1)*32, 0:128])
"""
    kernel = kernels.text.load(HEADER + source, kernels.folder, "statistics")
    a = np.random.default_rng(3).uniform(-3, 3, (256, 128)).astype(np.float32)
    exact = np.exp(a - a.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    for mode in ("sim", "native"):
        c = np.zeros_like(a)
        with execution.session(mode=mode):
            kernel(a, c)
        assert np.abs(c - exact).max() < 1e-3


@spec("Pattern 3", "acquire, init, accumulate for every k, commit, pack, release", listings=(1,))
def test_matmul_lifecycle(matmul, arrays, listings):
    assert roles(compute_text(matmul, arrays)) == [role for role in lifecycle(listings[1]) if role != "init"]


@spec("Pattern 3", "a batched product: DST is held across K for every output tile, right numbers")
def test_batched_product(kernels):
    source = """
@T.prim_func
def batched(A, B, C):
    with T.Kernel(2, 2, 3) as (bx, by, bz):
        C_acc = T.alloc_fragment((32, 32), "float32")
        T.clear(C_acc)
        for k in range(4):
            A_tile = T.alloc_fragment((32, 32), "float32")
            B_tile = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bz, by*32:(by+1)*32, k*32:(k+1)*32], A_tile)
            T.copy(B[bz, k*32:(k+1)*32, bx*32:(bx+1)*32], B_tile)
            T.gemm(A_tile, B_tile, C_acc)
        T.copy(C_acc, C[bz, by*32:(by+1)*32, bx*32:(bx+1)*32])
"""
    kernel = kernels.text.load(HEADER + source, kernels.folder, "batched")
    rng = np.random.default_rng(5)
    a, b = rng.uniform(-1, 1, (3, 64, 128)).astype(np.float32), rng.uniform(-1, 1, (3, 128, 64)).astype(np.float32)
    for mode in ("sim", "native"):
        c = np.zeros((3, 64, 64), np.float32)
        with execution.session(mode=mode):
            kernel(a, b, c)
        assert np.abs(c - a @ b).max() < 0.15
    assert roles(compute_text(kernel, [a, b, c])) == ["acquire", "for", "compute", "commit", "pack", "release"]


# Implementation strategy ------------------------------------------------------------------------------------------------------


@spec("Implementation Strategy", "the pattern follows from the loops and accumulators of the TileLang source; nothing is annotated")
def test_no_annotations():
    for section in ("Test 1", "Test 2"):
        assert not re.search("dst|acquire|pattern", documents.listing(DOCUMENT, section, 1), re.IGNORECASE)


def loop_nest(text: str) -> list[tuple[int, bool]]:
    """Depth of every loop of the pseudo-code, and whether an accumulation is in it."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = []
    for number, line in enumerate(lines):
        if line.lstrip().startswith("for "):
            depth = len(line) - len(line.lstrip())
            body = []
            for later in lines[number + 1 :]:
                if len(later) - len(later.lstrip()) <= depth:
                    break
                body.append(later)
            found.append((depth // 4, any("+=" in each for each in body)))
    return found


@spec("Step 1", "the element-wise loop has its section inside, the K loop has it around: as the pseudo-code's accumulation says", listings=(1,))
def test_pattern_by_accumulation(elem_add, matmul, arrays, listings):
    elementwise, product = listings[1].split("# K-loop pattern")
    assert loop_nest(elementwise) == [(0, False)] and loop_nest(product) == [(0, True), (1, True)]
    for kernel, nest in ((elem_add, elementwise), (matmul, product)):
        found = calls(compute_text(kernel, arrays))
        loops = [number for number, line in enumerate(found) if line == "for"]
        assert len(loops) == len(loop_nest(nest))
        accumulating = [position for position, (_, adds) in zip(loops, loop_nest(nest), strict=True) if adds]
        assert loops[0] < found.index("acquire")
        assert all(position > found.index("acquire") for position in accumulating[1:])


def emitted_strings(listing: str) -> str:
    """What the document's visitor would emit: its strings, one after the other, in a kernel."""
    strings = re.findall(r'EmitString\("(.*?)"\);', listing)
    return "void kernel_main() {\n" + "\n".join(strings) + "\n}\n"


@spec("Step 2", "the tile index of a block is recovered from start_id and grid_x where it is used")
def test_tile_index_recovery(elem_add, arrays):
    program = elem_add.compile(*arrays)
    for role, text in program.cpp.items():
        for name in ("start_id", "count", "grid_x"):
            assert re.search(rf"const uint32_t {name} = get_arg_val<uint32_t>\(\d+\);", text)
        assert "for (uint32_t i = 0; i < count; ++i)" in text
        if role == "compute":
            continue
        assert "tid = start_id + i" in text and "tid / grid_x" in text and "tid % grid_x" in text


@spec("For Element-Wise (Pattern 1)", "what the visitor emits: the same calls as ours, and it runs natively", listings=(1,), decision="0008")
def test_visitor_elementwise(kernels, elem_add, arrays, listings):
    text = emitted_strings(listings[1])
    same_order(normal(calls(compute_text(elem_add, arrays))), normal(calls(text)))
    runs_natively(kernels, text, documents.listing(DOCUMENT, "Test 1", 1), product=False)


@spec("For K-Loop GEMM (Pattern 3)", "what the visitor emits: the same calls as ours, and it runs natively", listings=(1,), decision="0008")
def test_visitor_gemm(kernels, matmul, arrays, listings):
    text = emitted_strings(listings[1])
    same_order(normal(calls(compute_text(matmul, arrays))), normal(calls(text)))
    runs_natively(kernels, text, documents.listing(DOCUMENT, "Test 2", 1), product=True)


# Tests ------------------------------------------------------------------------------------------------------------------------


@spec("Testing Strategy", "both kernels, as written, in the simulator, with values only, and natively, which has the simulator's bits")
def test_numbers(elem_add, matmul, arrays):
    a, b, c = arrays
    wide = a.astype(np.float32), b.astype(np.float32)
    found = {}
    for mode in ("sim", "fast", "native"):
        with execution.session(mode=mode):
            elem_add(a, b, c)
            # The matrix unit brings both operands to 11 bits of the larger one, and the host rounds to the 11 bits of a float16.
            assert (np.abs(c - (wide[0] + wide[1])) <= 2**-10).all()
            bits = c.tobytes()
            c[...] = 0
            matmul(a, b, c)
            assert np.abs(c - wide[0] @ wide[1]).max() < 0.02
            found[mode] = bits + c.tobytes()
    assert found["sim"] == found["native"]


@spec("Testing Strategy", "float16 of the kernels keeps its bits, which a note says")
def test_half_precision_is_noted(elem_add, arrays):
    notes = [note.message for note in elem_add.compile(*arrays).diagnostics]
    assert notes == ["float16 travels as float32, which keeps its bits"]


@spec("Test 1", "the TileLang text compiles as written and gives right numbers", listings=(1,))
def test_elementwise_input(kernels, arrays, listings):
    a, b, c = arrays
    kernel_of(kernels, listings[1])(a, b, c)
    assert np.abs(c - (a.astype(np.float32) + b.astype(np.float32))).max() < 2**-6


@spec("Test 1", "the expected kernel: start_id, count, grid_x, a section in the loop over blocks, the same calls", listings=(2,))
def test_elementwise_kernel(elem_add, arrays, listings):
    text = compute_text(elem_add, arrays)
    for name in ("start_id", "count", "grid_x"):
        assert re.search(rf"uint32_t {name} = get_arg_val<uint32_t>\(\d\);", text)
        assert re.search(rf"uint32_t {name} = get_arg_val<uint32_t>\(\d\);", listings[2])
    assert "for (uint32_t i = 0; i < count; ++i)" in text
    same_order(normal(calls(text)), normal(calls(listings[2])))


@spec("Test 1", "the expected kernel runs natively in the place of ours, with the names that exist", listings=(2,), decision="0008")
def test_elementwise_kernel_runs(kernels, listings):
    runs_natively(kernels, listings[2], documents.listing(DOCUMENT, "Test 1", 1), product=False)


@spec("Test 2", "the TileLang text compiles as written and gives right numbers", listings=(1,))
def test_gemm_input(kernels, arrays, listings):
    a, b, c = arrays
    kernel_of(kernels, listings[1])(a, b, c)
    assert np.abs(c - a.astype(np.float32) @ b.astype(np.float32)).max() < 0.15


@spec("Test 2", "the expected kernel: acquire before the K loop, commit behind it, the same calls", listings=(2,))
def test_gemm_kernel(matmul, arrays, listings):
    same_order(normal(calls(compute_text(matmul, arrays))), normal(calls(listings[2])))


@spec("Test 2", "the expected kernel runs natively in the place of ours, with the names that exist", listings=(2,), decision="0008")
def test_gemm_kernel_runs(kernels, listings):
    runs_natively(kernels, listings[2], documents.listing(DOCUMENT, "Test 2", 1), product=True)


# Success criteria -------------------------------------------------------------------------------------------------------------


def counted_calls(kernel: Any, arrays: list[Any]) -> Any:
    seen: list[Any] = []
    with execution.session(mode="sim", listeners=(seen.append,)):
        kernel(*arrays)
    return seen[0].result.calls


@spec("Success Criteria", "element-wise kernels have one section per tile: 64 tiles, 64 sections")
def test_sections_per_tile(elem_add, arrays):
    assert counted_calls(elem_add, arrays)["tile_regs_acquire"] == 64


@spec("Success Criteria", "GEMM kernels have one section per output tile, across K: 64 tiles of 8 products, 64 sections")
def test_sections_per_output_tile(matmul, arrays):
    found = counted_calls(matmul, arrays)
    assert (found["tile_regs_acquire"], found["matmul_tiles"]) == (64, 512)


@spec("Success Criteria", "acquire, commit, wait and release are balanced, and so are the calls on buffers")
def test_balance(elem_add, matmul, arrays):
    for kernel in (elem_add, matmul):
        found = counted_calls(kernel, arrays)
        assert len({found[f"tile_regs_{role}"] for role in SECTION}) == 1
        assert found["cb_wait_front"] == found["cb_pop_front"] and found["cb_reserve_back"] == found["cb_push_back"]


@spec("Success Criteria", "DST is released behind the pack; a kernel that releases before it is reported")
def test_release_behind_pack(elem_add, arrays, kernels):
    a, b, c = (array.astype(ml_dtypes.bfloat16) for array in arrays)
    program = kernel_of(kernels, documents.listing(DOCUMENT, "Test 1", 1), "bfloat16").compile(a, b, c, **METAL)
    text = program.cpp["compute"]
    assert text.index("pack_tile") < text.index("tile_regs_release")
    early = re.sub(r"( *pack_tile[^\n]*\n)( *tile_regs_release\(\);\n)", r"\2\1", text)
    assert early != text
    with pytest.raises(KernelError, match=r"pack_tile outside tile_regs_wait\(\) \.\. tile_regs_release\(\)"):
        driver.run(dataclasses.replace(program, cpp={**program.cpp, "compute": early}), [a, b, c])


@spec("Success Criteria", "the blocks of a kernel are shared out over any grid, with the same sections in total")
@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (8, 8)])
def test_any_grid(elem_add, arrays, grid):
    a, b, c = arrays
    with execution.session(mode="fast", overrides={"grid": grid}):
        elem_add(a, b, c)
    assert np.abs(c - (a.astype(np.float32) + b.astype(np.float32))).max() < 2**-6
