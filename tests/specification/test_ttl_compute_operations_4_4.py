"""``ttl-compute-operations.md``, section 4.4 and 4.8: compute operations, as IR text: compiled, simulated and run natively against NumPy."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dialect_texts import (
    ADD,
    PAIR,
    REGISTER,
    SPILL,
    SPILLS,
    added,
    attention,
    dense_layer,
    refused,
    register,
    relative,
    spec,
    wide,
)
from text_programs import DTYPES, block, compiled, program, run, tile, values, zeros

from tilewright.cli.main import main

# 4.4.1 Fusion -------------------------------------------------------------------------------------------------------------------

def dense(folder: Path, text: str, rows: int, inner: int, columns: int, dtype: str) -> Any:
    shapes = {"x_blk": (rows, inner), "w_blk": (inner, columns), "bias_blk": (rows, columns), "ones_blk": (1, 1)}
    arrays = [values(shape, dtype, seed=number) for number, shape in enumerate(shapes.values())]
    arrays[3][:] = 1
    arrays.append(zeros((rows, columns), dtype))
    made = run(program(text, shapes, {"o_blk": (rows, columns)}, dtype=dtype), arrays, folder)
    x, w, bias, _, found = (wide(array) for array in arrays)
    activated = np.maximum(x @ w + bias, 0)
    assert relative(found, activated - activated.sum(axis=1, keepdims=True)) < 0.01
    return made


@spec("4.4.1", "the dense layer: one ttl.compute_region with keep_in_dst, and no intermediate buffer", listings=(1,))
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 2)])
def test_dense_layer(tmp_path: Path, listings: Any, dtype: str, shape: tuple[int, int]):
    made = dense(tmp_path, dense_layer(listings[1]), *shape, 1, dtype)
    assert [each.name for each in made.buffers if each.origin != "user"] == []


@spec("4.4.1", "the same without keep_in_dst, and with rows of several tiles: through buffers, to the same numbers", listings=(1,))
@pytest.mark.parametrize("columns", [1, 2])
def test_dense_layer_through_buffers(tmp_path: Path, listings: Any, columns: int):
    text = dense_layer(listings[1])
    text = text if columns > 1 else text.replace("keep_in_dst = true", "keep_in_dst = false")
    made = dense(tmp_path, text, 2, 2, columns, "bf16")
    assert [each for each in made.buffers if each.origin != "user"]


@spec("4.4.1", "the attention kernel: softmax between two products in one ttl.compute_region", listings=(2,))
@pytest.mark.parametrize("columns", [1, 2])
def test_attention(tmp_path: Path, listings: Any, columns: int):
    shapes = {"q": (2, 1), "k": (1, columns), "v": (columns, 2), "scale": (2, columns), "ones": (1, 1)}
    arrays = [values(shape, "bf16", seed=number) for number, shape in enumerate(shapes.values())]
    arrays[3][:] = 0.25
    arrays[4][:] = 1
    arrays.append(zeros((2, 2), "bf16"))
    run(program(attention(listings[2]), shapes, {"out": (2, 2)}, dtype="bf16"), arrays, tmp_path)
    q, k, v, scale, _, found = (wide(array) for array in arrays)
    weights = np.exp(q @ k * scale)
    wanted = weights / weights.sum(axis=1, keepdims=True) @ v
    assert np.abs(found - wanted).max() < 0.01


@spec("4.4.1", "ttl.block_compute: arithmetic on blocks and stores, nothing else")
def test_block_compute(tmp_path: Path):
    added(tmp_path, program(f"ttl.block_compute {{\n{ADD}\n}}", PAIR, {"o": (2, 2)}))
    wrong = program(f"ttl.block_compute {{\n{ADD}\nttl.cb_pop %a_cb\n}}", PAIR, {"o": (2, 2)})
    refused(wrong, tmp_path, "TW603", "ttl.cb_pop %a_cb", "ttl.cb_pop in ttl.block_compute")


# 4.4.2 Arithmetic and 4.8 the inventory ------------------------------------------------------------------------------------------


def erf(x: Any) -> Any:
    """Abramowitz and Stegun 7.1.26, good to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * np.exp(-x * x))


# TTL operation: the calls the document maps it to, what it means, and the Python that writes it
INVENTORY: dict[str, tuple[str, Any, str]] = {
    "block_add": ("add_tiles", lambda a, b: a + b, "a + b"),
    "block_sub": ("sub_tiles", lambda a, b: a - b, "a - b"),
    "block_mul": ("mul_tiles", lambda a, b: a * b, "a * b"),
    "block_matmul": ("matmul", lambda a, b: a @ b, "a @ b"),
    "block_exp": ("exp_tile", np.exp, "ttl.math.exp(a)"),
    "block_log": ("log_tile", np.log, "ttl.math.log(a)"),
    "block_sqrt": ("sqrt_tile", np.sqrt, "ttl.math.sqrt(a)"),
    "block_rsqrt": ("rsqrt_tile", lambda a: 1 / np.sqrt(a), "ttl.math.rsqrt(a)"),
    "block_relu": ("relu", lambda a: np.maximum(a, 0), "ttl.math.relu(a)"),
    "block_gelu": ("gelu_tile", lambda a: a * (1 + erf(a / np.sqrt(2))) / 2, "ttl.math.gelu(a)"),
    "block_sigmoid": ("sigmoid_tile", lambda a: 1 / (1 + np.exp(-a)), "ttl.math.sigmoid(a)"),
    "block_tanh": ("tanh_tile", np.tanh, "ttl.math.tanh(a)"),
    "block_sin": ("sin_tile", np.sin, "ttl.math.sin(a)"),
    "block_cos": ("cos_tile", np.cos, "ttl.math.cos(a)"),
    "block_tan": ("tan_tile", np.tan, "ttl.math.tan(a)"),
}
BINARY = ("block_add", "block_sub", "block_mul", "block_matmul")
KERNEL = """
from tilewright import ttl

@ttl.kernel(grid=(1, 1))
def kernel({arguments}, out):
    {buffers}
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2), buffer_factor=2)

    @ttl.compute()
    def compute():
        with {waits}, out_cb.reserve() as o:
            o.store({expression})

    @ttl.datamovement()
    def read():
        {reads}

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:2, 0:2]).wait()

    return ttl.Program(compute, read, write)({arguments}, out)
"""


def python_kernel(names: list[str], expression: str) -> str:
    buffers = "\n    ".join(f"{n}_cb = ttl.make_circular_buffer_like({n}, shape=(2, 2), buffer_factor=2)" for n in names)
    waits = ", ".join(f"{n}_cb.wait() as {n}_blk" for n in names)
    reads = "\n        ".join(f"with {n}_cb.reserve() as {n}_blk:\n            ttl.copy({n}[0:2, 0:2], {n}_blk).wait()" for n in names)
    renamed = re.sub(r"\b([ab])\b", r"\1_blk", expression)
    return KERNEL.format(arguments=", ".join(names), buffers=buffers, waits=waits, reads=reads, expression=renamed)


@spec("4.8", "every operation of the inventory, from Python and from text, simulated and native, with the document's calls")
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("op", INVENTORY)
def test_inventory(tmp_path: Path, kernels: Any, op: str, dtype: str):
    call, reference, expression = INVENTORY[op]
    names = ["a", "b"] if op in BINARY else ["a"]
    arrays = [values((2, 2), dtype, 0.1, 1.5, seed=number) for number in range(len(names))]
    text = program(f"%r = ttl.{op} {', '.join(f'%{name}' for name in names)}\nttl.block_store %o, %r", dict.fromkeys(names, (2, 2)), {"o": (2, 2)}, dtype=dtype)
    found = zeros((2, 2), dtype)
    made = run(text, [*arrays, found], tmp_path)
    wanted = reference(*(wide(array) for array in arrays))
    assert relative(found, wanted) < (0.02 if dtype == "bf16" or op == "block_matmul" else 0.001)
    from_python = zeros((2, 2), dtype)
    other = kernels.run_everywhere(python_kernel(names, expression), *arrays, from_python)
    assert np.array_equal(wide(from_python), wide(found))
    for each in (made, other):
        binary_on_vectors = dtype == "f32" and op in ("block_add", "block_sub", "block_mul")
        assert (call.replace("_tiles", "_binary_tile") if binary_on_vectors else call) in each.cpp["compute"]


@spec("4.4.2", "ttl.block_add, ttl.block_mul and ttl.block_matmul lower to one loop over tiles with the document's calls")
@pytest.mark.parametrize("op", ["block_add", "block_mul"])
def test_one_loop_per_operation(tmp_path: Path, op: str):
    text = program(f"%r = ttl.{op} %a, %b\nttl.block_store %o, %r", PAIR, {"o": (2, 2)}, dtype="bf16")
    cpp = compiled(text, tmp_path, metal="0.62").cpp["compute"]
    kind = op.removeprefix("block_")
    assert cpp.count(f"{kind}_tiles_init(") == 1 and cpp.count(f"{kind}_tiles(") == 1 and cpp.count("for (") >= 1


# 4.4.3 Reductions and broadcasts --------------------------------------------------------------------------------------------------


@spec("4.4.3", "ttl.block_reduce_sum with its scaling block, along both axes")
@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_sum(tmp_path: Path, axis: int):
    shape = (1, 3) if axis == 0 else (2, 1)
    body = f"%r = ttl.block_reduce_sum %a, %ones {{axis = {axis} : i64}}\nttl.block_store %o, %r"
    arrays = [values((2, 3), "bf16"), np.ones((32, 32), DTYPES["bf16"]), zeros(shape, "bf16")]
    run(program(body, {"a": (2, 3), "ones": (1, 1)}, {"o": shape}, dtype="bf16"), arrays, tmp_path)
    found = wide(arrays[2])[0, :] if axis == 0 else wide(arrays[2])[:, 0]
    assert np.abs(found - wide(arrays[0]).sum(axis=axis)).max() < 0.1


@spec("4.4.3", "ttl.block_reduce_max along both axes")
@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_max(tmp_path: Path, axis: int):
    shape = (1, 3) if axis == 0 else (2, 1)
    body = f"%r = ttl.block_reduce_max %a {{axis = {axis} : i64}}\nttl.block_store %o, %r"
    arrays = [values((2, 3), "bf16"), zeros(shape, "bf16")]
    run(program(body, {"a": (2, 3)}, {"o": shape}, dtype="bf16"), arrays, tmp_path)
    found = wide(arrays[1])[0, :] if axis == 0 else wide(arrays[1])[:, 0]
    assert np.array_equal(found, wide(arrays[0]).max(axis=axis))


@spec("4.4.3", "ttl.block_bcast along both axes")
@pytest.mark.parametrize("axis", [0, 1])
def test_bcast(tmp_path: Path, axis: int):
    shape = (1, 2) if axis == 0 else (2, 1)
    body = f"%r = ttl.block_bcast %a {{axis = {axis} : i64}} : {block(shape, 'bf16')} -> {block((2, 2), 'bf16')}\nttl.block_store %o, %r"
    arrays = [values(shape, "bf16"), zeros((2, 2), "bf16")]
    run(program(body, {"a": shape}, {"o": (2, 2)}, dtype="bf16"), arrays, tmp_path)
    first = wide(arrays[0])[:1, :] if axis == 0 else wide(arrays[0])[:, :1]
    assert np.array_equal(wide(arrays[1]), np.broadcast_to(first, (64, 64)))


@spec("4.4.3", "an axis that is none is refused at its line")
@pytest.mark.parametrize("op", ["block_reduce_sum %a, %ones", "block_reduce_max %a"])
def test_wrong_axis(tmp_path: Path, op: str):
    text = program(f"%r = ttl.{op} {{axis = 2 : i64}}", {"a": (2, 2), "ones": (1, 1)}, {"o": (2, 1)})
    refused(text, tmp_path, "TW603", op, "there is no axis 2")


# 4.4.4 Materialization -----------------------------------------------------------------------------------------------------------


REUSED = """
%o1 = ttl.cb_reserve %o_cb          // Reserve output slot
%intermediate = ttl.block_add %a, %a
ttl.block_store %o1, %intermediate  // Materialize result
ttl.cb_push %o1                     // Signal available

%again = ttl.cb_wait %o_cb          // Re-acquire from CB
%next = ttl.block_mul %again, %b    // ... use intermediate in next computation ...
%r1 = ttl.cb_reserve %r_cb
ttl.block_store %r1, %next
ttl.cb_push %r1
ttl.cb_pop %again                   // Release slot
"""


@spec("4.4.4", "the store/wait/pop pattern: a thread takes its own result back from a buffer")
def test_store_wait_pop(tmp_path: Path):
    text = program("%a = ttl.cb_wait %a_cb\n%b = ttl.cb_wait %b_cb" + REUSED + "ttl.cb_pop %a\nttl.cb_pop %b", PAIR, {"o": (2, 2), "r": (2, 2)}, acquire=False)
    writer = text.rindex("ttl.datamovement_thread")
    text = text[:writer] + re.sub(r"%o_\w+ = .*\n|ttl.wait %o_transfer\n|ttl.cb_pop %o_cb\n", "", text[writer:])
    text = re.sub(r"%o_accessor.*\n", "", text).replace(f", %o_tensor: {block((2, 2), 'f32')}", "")
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    run(text, arrays, tmp_path)
    assert np.array_equal(arrays[2], 2 * arrays[0] * arrays[1])


@spec("4.4.4", "a reserve without its push, or a push without a reserve, is found by ttl-validate")
def test_unmatched_push(tmp_path: Path):
    text = program(ADD, PAIR, {"o": (2, 2)}).replace("ttl.cb_push %o\n", "ttl.cb_push %o\nttl.cb_push %o_cb\n", 1)
    refused(text, tmp_path, "TW202", "ttl.cb_push %o_cb", "push")


@spec("4.4.4", "ttl.require_dst: fine for what stays in DST, an error for what a unit reads from a buffer")
def test_require_dst(tmp_path: Path):
    body = "%s = ttl.block_add %a, %b\nttl.require_dst %s\n%e = ttl.block_abs %s\nttl.block_store %o, %e"
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    run(program(body, PAIR, {"o": (2, 2)}), arrays, tmp_path)
    assert np.array_equal(arrays[2], np.abs(arrays[0] + arrays[1]))
    wrong = body.replace("%e = ttl.block_abs %s", "%e = ttl.block_matmul %s, %b")
    refused(program(wrong, PAIR, {"o": (2, 2)}), tmp_path, "TW401", "ttl.block_add", "goes through a buffer")


STORE_WAIT_POP = """
from tilewright import ttl

@ttl.kernel(grid=(1, 1))
def kernel(a, b, r, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 2), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(2, 2), buffer_factor=2)
    r_cb = ttl.make_circular_buffer_like(r, shape=(2, 2), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2), buffer_factor=2)
    done_cb = ttl.make_circular_buffer_like(out, shape=(2, 2), buffer_factor=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a_blk, b_cb.wait() as b_blk:
            intermediate = a_blk + a_blk
{listing}
            o.store(a_blk - b_blk)
            out_cb.push()
            with out_cb.wait() as again, done_cb.reserve() as done:
                done.store(again + again)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as a_blk, b_cb.reserve() as b_blk:
            ttl.copy(a[0:2, 0:2], a_blk).wait()
            ttl.copy(b[0:2, 0:2], b_blk).wait()

    @ttl.datamovement()
    def write():
        with r_cb.wait() as r_blk:
            ttl.copy(r_blk, r[0:2, 0:2]).wait()
        with done_cb.wait() as done:
            ttl.copy(done, out[0:2, 0:2]).wait()

    return ttl.Program(compute, read, write)(a, b, r, out)
"""


@spec("4.4.4", "the store/wait/pop listing, in a Python kernel: the same slot serves the next result", listings=(1,))
def test_store_wait_pop_in_python(kernels: Any, listings: Any):
    use = "# ... use intermediate in next computation ...\nwith r_cb.reserve() as r_blk:\n    r_blk.store(intermediate * b_blk)"
    text = listings[1].replace("# ... use intermediate in next computation ...", use)
    assert text != listings[1]
    source = STORE_WAIT_POP.format(listing=textwrap.indent(text, " " * 12))
    a, b, r, out = values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2)), zeros((2, 2))
    kernels.run_everywhere(source, a, b, r, out)
    assert np.array_equal(r, 2 * a * b) and np.array_equal(out, 2 * (a - b))


# 4.4.5 DST registers ----------------------------------------------------------------------------------------------------------------


@spec("4.4.5", "ttl.acquire_dst and ttl.release_dst around an operation; without an index the compiler chooses", listings=(1,))
def test_acquire_dst(tmp_path: Path, listings: Any):
    shapes = {"a": (2, 1), "b": (2, 1)}
    arrays = [values((2, 1), seed=1), values((2, 1), seed=2), zeros((2, 1))]
    run(program(register(listings[1]), shapes, {"o": (2, 1)}), arrays, tmp_path)
    assert np.array_equal(arrays[2], arrays[0] + arrays[1])


@spec("4.4.5", "the index of ttl.acquire_dst binds: the result lies in that register")
@pytest.mark.parametrize("register", [0, 1, 3, 7])
def test_acquire_dst_index(tmp_path: Path, register: int):
    """The document's own lowering copies both operands and adds DST[0] and DST[1] into DST[2]."""
    shapes = {"a": (2, 1), "b": (2, 1)}
    text = program(REGISTER.replace("ttl.acquire_dst", f"ttl.acquire_dst {{index = {register} : i32}}"), shapes, {"o": (2, 1)}, dtype="bf16")
    arrays = [values((2, 1), "bf16", seed=1), values((2, 1), "bf16", seed=2), zeros((2, 1), "bf16")]
    made = run(text, arrays, tmp_path, fpu_binary_ops=False, allocator="linear-scan")
    assert relative(arrays[2], wide(arrays[0]) + wide(arrays[1])) < 0.01
    (call,) = re.findall(r"add_binary_tile\((\w+), (\w+), (\w+)\)", made.cpp["compute"])
    assert call[2] == str(register)


@spec("4.4.5", "a register that DST does not have, one for two values and a use after its release are refused")
def test_wrong_registers(tmp_path: Path):
    shapes = {"a": (2, 1), "b": (2, 1)}
    text = program(REGISTER.replace("ttl.acquire_dst", "ttl.acquire_dst {index = 99 : i32}"), shapes, {"o": (2, 1)})
    refused(text, tmp_path, "TW401", "ttl.block_add", "DST register 99 is asked for")
    below = "%r = arith.constant -1 : index\n  %spilled = ttl.spill_tile_to_l1 %t_result, %r"
    text = program(SPILL.format(block=block((2, 2), "f32"), tile=tile("f32"), spill=below), PAIR, {"o": (2, 2)})
    refused(text, tmp_path, "TW401", "ttl.tile_add", "DST register -1 is asked for")
    used = REGISTER.replace("ttl.block_store %o, %result", "%e = ttl.block_abs %result\nttl.block_store %o, %e")
    refused(program(used, shapes, {"o": (2, 1)}), tmp_path, "TW603", "ttl.block_abs", "after its DST register was released")


@spec("4.4.5", "ttl.spill_tile_to_l1 with its register, and ttl.restore_tile_from_l1: through a buffer of the compiler")
@pytest.mark.parametrize("form", SPILLS)
@pytest.mark.parametrize("config_first", [False, True])
def test_spill_and_restore(tmp_path: Path, form: str, config_first: bool, capsys: pytest.CaptureFixture[str]):
    body = SPILL.format(block=block((2, 2), "f32"), tile=tile("f32"), spill=SPILLS[form])
    text = program(body, PAIR, {"o": (2, 2)})
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    made = run(text, arrays, tmp_path)
    assert np.allclose(arrays[2], arrays[0] + arrays[1] - arrays[0] * arrays[1], atol=1e-6)
    assert [each.name for each in made.buffers if each.origin == "compiler"]
    if config_first:
        assert main(["opt", str(tmp_path / "listing.mlir"), "-p", "convert-ttl-to-compute,ttl-set-compute-config"]) == 0
        assert "ttl.spill_tile" not in capsys.readouterr().out


@spec("4.4.5", "a spill from a register that no attribute can hold is refused at its line")
def test_spill_from_a_register_beyond_all_numbers(tmp_path: Path):
    spill = "%far = arith.constant 4294967296 : index\n      %spilled = ttl.spill_tile_to_l1 %t_result, %far"
    body = SPILL.format(block=block((2, 2), "f32"), tile=tile("f32"), spill=spill)
    refused(program(body, PAIR, {"o": (2, 2)}), tmp_path, "TW603", "ttl.spill_tile_to_l1", "no DST register 4294967296")
