"""Every vector-unit row of the op table runs on the machine model, and means what its reference says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import DATA_FORMATS, Unit
from tilewright.sim.run import simulate

ROWS = [row for row in tile_ops.ROWS if row.form(Unit.SFPU) is not None]
HOST = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32, "u32": np.uint32}
SLOTS = {"d0": 0, "d1": 1, "d2": 2, "o": 3}


def sample(row):
    values = {param.name: param.sample for param in row.params}
    if row.name == "typecast":
        values = {"dtype": "i32", "source": "f32"}
    return values


def call_text(name, arguments, template, values):
    slots = [str(SLOTS[argument]) for argument in arguments if ":" not in argument]
    params = tuple(values[argument.split(":")[0]] for argument in arguments if ":" in argument)
    words = ([f"params={params!r}"] if params else []) + ([f"template={tuple(template)!r}"] if template else [])
    return f"{name}({', '.join([*slots, *words])})"


def kernel_text(row, values, dtype):
    form = row.form(Unit.SFPU)
    filled = {**values, "fmt": f"DataFormat::{DATA_FORMATS[dtype]}", "fp32": "true"}
    loads = "".join(f"    copy_tile(i{number}, 0, {number})\n" for number in range(row.arity))
    init = call_text(form.init, form.init_args, form.init_call_template(filled), values) if form.init else "pass"
    call = call_text(form.call, form.args, form.call_template(filled), values)
    result = 3 if "o" in form.args else 0
    waits = "".join(f"    cb_wait_front(i{number}, 1)\n" for number in range(row.arity))
    reads = "".join(
        f"    cb_reserve_back(i{number}, 1)\n    noc_async_read_page(0, I{number}, get_write_ptr(i{number}))\n"
        f"    noc_async_read_barrier()\n    cb_push_back(i{number}, 1)\n"
        for number in range(row.arity)
    )
    return f"""
def reader():
{reads}    pass

def compute():
    init_sfpu(i0, o)
{waits}    cb_reserve_back(o, 1)
    tile_regs_acquire()
{loads}    {init}
    {call}
    tile_regs_commit()
    tile_regs_wait()
    pack_tile({result}, o, 0)
    tile_regs_release()
    cb_push_back(o, 1)

def writer():
    cb_wait_front(o, 1)
    noc_async_write_page(0, O, get_read_ptr(o))
    noc_async_write_barrier()
    cb_pop_front(o, 1)
"""


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(make_program, row, fast):
    values = sample(row)
    dtype = "f32" if "f32" in row.dtypes else row.dtypes[0]
    out_dtype = values["dtype"] if row.name == "typecast" else dtype
    inputs = max(row.arity, 1)
    program = make_program(
        kernel_text(row, values, dtype), fp32_dest_acc_en=True, unpack_to_dest=tuple(range(inputs)),
        buffers=[*((f"i{number}", dtype, 1) for number in range(inputs)), ("o", out_dtype, 1)],
        tensors=[*((f"I{number}", dtype, (32, 32)) for number in range(inputs)), ("O", out_dtype, (32, 32))],
    )  # fmt: skip
    generator = np.random.default_rng(11)
    tiles = [generator.uniform(*row.domain, (32, 32)).astype(HOST[dtype]) for _ in range(inputs)]
    if dtype != "f32":
        tiles[1:] = [tile % 7 + 1 for tile in tiles[1:]]
    out = np.zeros((32, 32), HOST[out_dtype])
    simulate(program, [*tiles, out], fast=fast)
    wide = [tile.astype(np.float64 if dtype == "f32" else np.int64) for tile in tiles[: row.arity]]
    expected = np.broadcast_to(row.reference(*wide, **values), (32, 32)).astype(out.dtype)
    if out_dtype != "f32":
        assert np.array_equal(out, expected)
        return
    # The row's bound is in units of bf16; results near a jump of the function (floor, compare) may fall on either side.
    step = 2.0**-8 * np.maximum(np.abs(expected), 2.0**-6)
    within = np.abs(out.astype(np.float64) - expected) <= (2 * row.bound_ulp + 1) * step
    assert np.mean(within) > 0.99
