"""The specification's examples, from Python to C++: the eight of `dst-register-allocation.md`, the two-loop structure of
`multi-tile-dst.md`, the 2x2 add of `lowering-multitile-compute.md`. Spelled for 0.62, with its allocator and vector ops only.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

SPEC = {"metal": "0.62", "allocator": "linear-scan", "fpu_binary_ops": False, "combine_packs": False}
BUFFERS = {
    "CB0": "a_buffer",
    "CB1": "b_buffer",
    "CB2": "c_buffer",
    "CB_out": "out_buffer",
    "CB_out0": "out0_buffer",
    "CB_out1": "out1_buffer",
}


class Example:
    def __init__(self, number, outputs, inputs, listing, *, footprint, unroll, slots, lets=(), block=(1, 1)):
        self.number, self.outputs, self.inputs, self.listing = number, outputs, inputs, listing
        self.footprint, self.unroll, self.slots = footprint, unroll, slots
        self.lets, self.block = lets, block

    def arrays(self, make_array):
        return {name: make_array(self.block, "bf16") for name in self.inputs}


EXAMPLES = [
    Example(
        1,
        {"out": "a * b"},
        "ab",
        """
tile_regs_acquire();
copy_tile(CB0, 0, DST[0]);       // %in0
copy_tile(CB1, 0, DST[1]);       // %in1
mul_binary_tile(DST[0], DST[1], DST[2]);
tile_regs_commit();
tile_regs_wait();
pack_tile(DST[2], CB_out, 0);
tile_regs_release();
""",
        footprint=2,
        unroll=1,
        slots={"mul": 2},
    ),
    Example(
        2,
        {"out": "a * b"},
        "ab",
        """
tile_regs_acquire();
copy_tile(CB0, 0, DST[0]);
copy_tile(CB1, 0, DST[1]);
mul_binary_tile(DST[0], DST[1], DST[2]);

copy_tile(CB0, 1, DST[0]);
copy_tile(CB1, 1, DST[1]);
mul_binary_tile(DST[0], DST[1], DST[3]);

copy_tile(CB0, 2, DST[0]);
copy_tile(CB1, 2, DST[1]);
mul_binary_tile(DST[0], DST[1], DST[4]);

copy_tile(CB0, 3, DST[0]);
copy_tile(CB1, 3, DST[1]);
mul_binary_tile(DST[0], DST[1], DST[5]);

tile_regs_commit();
tile_regs_wait();
pack_tile(DST[2], CB_out, 0);
pack_tile(DST[3], CB_out, 1);
pack_tile(DST[4], CB_out, 2);
pack_tile(DST[5], CB_out, 3);
tile_regs_release();
""",
        footprint=2,
        unroll=4,
        slots={"mul": 2},
        block=(2, 2),
    ),
    Example(
        3,
        {"out": "ttl.math.abs(a)"},
        "a",
        """
tile_regs_acquire();
copy_tile(CB0, 0, DST[0]);
abs_tile(DST[0]);               // In-place
tile_regs_commit();
tile_regs_wait();
pack_tile(DST[0], CB_out, 0);
tile_regs_release();
""",
        footprint=0,
        unroll=1,
        slots={"abs": 0},
    ),
    Example(
        4,
        {"out": "ttl.math.abs(a * b)"},
        "ab",
        """
tile_regs_acquire();
copy_tile(CB0, 0, DST[0]);
copy_tile(CB1, 0, DST[1]);
mul_binary_tile(DST[0], DST[1], DST[2]);
abs_tile(DST[2]);               // In-place
tile_regs_commit();
tile_regs_wait();
pack_tile(DST[2], CB_out, 0);
tile_regs_release();
""",
        footprint=2,
        unroll=1,
        slots={"mul": 2, "abs": 2},
    ),
    Example(
        5,
        {"out0": "ttl.math.abs(p)", "out1": "ttl.math.exp(p)"},
        "ab",
        """
tile_regs_acquire();
copy_tile(CB0, 0, DST[0]);
copy_tile(CB1, 0, DST[1]);
mul_binary_tile(DST[0], DST[1], DST[2]);
copy_dest_values(DST[2], DST[3]);        // Copy for abs (first consumer)
abs_tile(DST[3]);                        // In-place on copy
exp_tile(DST[2]);                        // In-place on original (last consumer)
tile_regs_commit();
tile_regs_wait();
pack_tile(DST[3], CB_out0, 0);           // Pack abs result
pack_tile(DST[2], CB_out1, 0);           // Pack exp result
tile_regs_release();
""",
        footprint=2,
        unroll=1,
        slots={"mul": 2, "copy": 3, "abs": 3, "exp": 2},
        lets=[("p", "a * b")],
    ),
    Example(
        6,
        {"out0": "ttl.math.abs(p)", "out1": "p + c"},
        "abc",
        """
tile_regs_acquire();
copy_tile(CB0, 0, DST[0]);
copy_tile(CB1, 0, DST[1]);
copy_tile(CB2, 0, DST[2]);
mul_binary_tile(DST[0], DST[1], DST[3]);
copy_dest_values(DST[3], DST[4]);           // Copy for abs
abs_tile(DST[4]);                            // In-place on copy
add_binary_tile(DST[3], DST[2], DST[5]);    // Binary uses original
tile_regs_commit();
tile_regs_wait();
pack_tile(DST[4], CB_out0, 0);
pack_tile(DST[5], CB_out1, 0);
tile_regs_release();
""",
        footprint=4,
        unroll=1,
        slots={"mul": 3, "copy": 4, "abs": 4, "add": 5},
        lets=[("p", "a * b")],
    ),
    Example(
        7,
        {"out": "ttl.math.relu(ttl.math.exp(ttl.math.abs(a)))"},
        "a",
        """
tile_regs_acquire();
copy_tile(CB0, 0, DST[0]);
abs_tile(DST[0]);
exp_tile(DST[0]);
relu_tile(DST[0]);
tile_regs_commit();
tile_regs_wait();
pack_tile(DST[0], CB_out, 0);
tile_regs_release();
""",
        footprint=0,
        unroll=1,
        slots={"abs": 0, "exp": 0, "relu": 0},
    ),
    Example(
        8,
        {"out": "ttl.math.abs(a * b) + c"},
        "abc",
        """
tile_regs_acquire();
// Iteration 0
copy_tile(CB0, 0, DST[0]);
copy_tile(CB1, 0, DST[1]);
copy_tile(CB2, 0, DST[2]);
mul_binary_tile(DST[0], DST[1], DST[3]);
abs_tile(DST[3]);
add_binary_tile(DST[3], DST[2], DST[4]);

// Iteration 1
copy_tile(CB0, 1, DST[0]);
copy_tile(CB1, 1, DST[1]);
copy_tile(CB2, 1, DST[2]);
mul_binary_tile(DST[0], DST[1], DST[3]);
abs_tile(DST[3]);
add_binary_tile(DST[3], DST[2], DST[5]);

// Iteration 2
copy_tile(CB0, 2, DST[0]);
copy_tile(CB1, 2, DST[1]);
copy_tile(CB2, 2, DST[2]);
mul_binary_tile(DST[0], DST[1], DST[3]);
abs_tile(DST[3]);
add_binary_tile(DST[3], DST[2], DST[6]);

// Iteration 3
copy_tile(CB0, 3, DST[0]);
copy_tile(CB1, 3, DST[1]);
copy_tile(CB2, 3, DST[2]);
mul_binary_tile(DST[0], DST[1], DST[3]);
abs_tile(DST[3]);
add_binary_tile(DST[3], DST[2], DST[7]);

tile_regs_commit();
tile_regs_wait();
pack_tile(DST[4], CB_out, 0);
pack_tile(DST[5], CB_out, 1);
pack_tile(DST[6], CB_out, 2);
pack_tile(DST[7], CB_out, 3);
tile_regs_release();
""",
        footprint=4,
        unroll=4,
        slots={"mul": 3, "abs": 3, "add": 4},
        block=(2, 2),
    ),
]
ALL = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"example {example.number}")


def run_example(kernels, make_array, example, **options):
    choices = {**SPEC, "enable_unroll": example.block != (1, 1), **options}
    inputs = example.arrays(make_array)
    program, results = kernels.elementwise(example.outputs, inputs, lets=example.lets, block=example.block, **choices)
    return program, inputs, results


def to_metal_order(line: str) -> str:
    """The examples write copies as source, destination; the document says that 0.62 takes the destination first."""
    return re.sub(r"copy_dest_values\((\w+), (\w+)\)", r"copy_dest_values(\2, \1)", line)


@ALL
def test_generated_calls(kernels, make_array, call_sequence, example):
    program, _, _ = run_example(kernels, make_array, example)
    expected = [to_metal_order(line) for line in call_sequence.listed(example.listing, BUFFERS)]
    assert call_sequence.emitted(program.cpp["compute"]) == expected


@ALL
def test_assignment_in_the_ir(kernels, make_array, example):
    """Slots, footprint, unroll factor; a copy's operand is its source and its slot the destination."""
    source = kernels.text.elementwise(example.outputs, tuple(example.inputs), lets=example.lets, block=example.block)
    count = len(example.inputs) + len(example.outputs)
    program = kernels.compile(source, *[make_array(example.block, "bf16")] * count, keep_ir=True, **SPEC)
    ir = program.trace.stage("ttl-tile-and-assign-dst").ir
    assert f"ttl.dst_footprint = {example.footprint} : i32" in ir
    assert f"ttl.unroll_factor = {example.unroll} : i32" in ir
    ops = re.findall(r"(%\w+) = ttl\.(?:tile_)?(\w+) (%\w+)[^\n]*dst_idx = (\d+) : i32", ir)
    found = {("copy" if name == "copy_dest_values" else name): int(slot) for _, name, _, slot in ops}
    assert found == example.slots
    for _, name, operand, _ in ops:
        if name == "copy_dest_values":
            producer = next(entry for entry in ops if entry[0] == operand)
            assert int(producer[3]) == example.slots["mul"], "the copy reads the product"


@ALL
def test_values(kernels, make_array, rounding, example):
    _, inputs, results = run_example(kernels, make_array, example)
    model = rounding.Model("bf16")
    values = {name: model.leaf(array) for name, array in inputs.items()}
    product = model.op("mul", values["a"], values["b"]) if "b" in values else None
    absolute = model.op("abs", values["a"] if product is None else product)
    expected = {
        1: [product],
        2: [product],
        3: [absolute],
        4: [absolute],
        5: [absolute, product and model.op("exp", product)],
        6: [absolute, product and "c" in values and model.op("add", product, values["c"])],
        7: [model.op("exp", absolute)],
        8: [product and "c" in values and model.op("add", absolute, values["c"])],
    }[example.number]
    for result, wanted in zip(results.values(), expected, strict=True):
        rounding.assert_close(result, wanted)


@ALL
@pytest.mark.parametrize("metal", ["0.69", "0.78"])
def test_copies_take_source_first_in_newer_releases(kernels, make_array, call_sequence, example, metal):
    program, _, _ = run_example(kernels, make_array, example, metal=metal)
    found = [line for line in call_sequence.emitted(program.cpp["compute"]) if line.startswith("copy_dest_values")]
    assert found == [line for line in call_sequence.listed(example.listing, BUFFERS) if line.startswith("copy_dest_values")]


MULTI_TILE = """
tile_regs_acquire
for i < 2
for j < 2
copy_tile(a_buffer, i * 2 + j, 0)
copy_tile(b_buffer, i * 2 + j, 1)
copy_tile(c_buffer, i * 2 + j, 2)
mul_binary_tile(0, 1, 3)
add_binary_tile(3, 2, i * 2 + j + 4)
}
}
tile_regs_commit
tile_regs_wait
for i < 2
for j < 2
pack_tile(i * 2 + j + 4, out_buffer, i * 2 + j)
}
}
tile_regs_release
"""


def test_two_loops_and_dynamic_dst_index(kernels, make_array, rounding, call_sequence):
    """`multi-tile-dst.md`: results at footprint + i * cols + j, packed from there by a second nest."""
    inputs = {name: make_array((2, 2), "bf16") for name in "abc"}
    program, results = kernels.elementwise({"out": "a * b + c"}, inputs, block=(2, 2), **SPEC)
    assert [line.removesuffix("()") for line in call_sequence.emitted(program.cpp["compute"])] == MULTI_TILE.split("\n")[1:-1]
    ((_, plan),) = program.trace.facts["plans"]
    assert plan.parts[0].allocation.footprint == 4
    model = rounding.Model("bf16")
    a, b, c = map(model.leaf, inputs.values())
    rounding.assert_close(results["out"], model.op("add", model.op("mul", a, b), c))


@pytest.mark.parametrize(("expression", "footprint"), [("a * b", 2), ("ttl.math.exp(a)", 0)])
def test_footprint_of_binary_and_unary(kernels, make_array, call_sequence, expression, footprint):
    """`multi-tile-dst.md`: operands of a binary op have slots of their own, that of a unary op is the result's."""
    names = "ab" if "b" in expression else "a"
    inputs = {name: make_array((2, 3), "bf16") for name in names}
    program, _ = kernels.elementwise({"out": expression}, inputs, block=(2, 3), **SPEC)
    packs = [line for line in call_sequence.emitted(program.cpp["compute"]) if line.startswith("pack_tile")]
    index = "i * 3 + j" + (f" + {footprint}" if footprint else "")
    assert packs == [f"pack_tile({index}, out_buffer, i * 3 + j)"]


ADD_COMPUTE = """
cb_wait_front(lhs_cb, 4)
cb_wait_front(rhs_cb, 4)
cb_reserve_back(out_cb, 4)
tile_regs_acquire()
for i < 2
for j < 2
copy_tile_init(lhs_cb)
copy_tile(lhs_cb, i * 2 + j, 0)
copy_tile_init(rhs_cb)
copy_tile(rhs_cb, i * 2 + j, 1)
add_binary_tile_init()
add_binary_tile(0, 1, i * 2 + j + 2)
}
}
tile_regs_commit()
tile_regs_wait()
for i < 2
for j < 2
pack_tile(i * 2 + j + 2, out_cb, i * 2 + j)
}
}
tile_regs_release()
cb_pop_front(lhs_cb, 4)
cb_pop_front(rhs_cb, 4)
cb_push_back(out_cb, 4)
"""

ADD_SOURCE = """
from tilewright import ttl

@ttl.kernel(grid=(1, 1))
def kernel(lhs, rhs, out):
    lhs_cb = ttl.make_circular_buffer_like(lhs, shape=(2, 2), buffer_factor=2)
    rhs_cb = ttl.make_circular_buffer_like(rhs, shape=(2, 2), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2), buffer_factor=2)

    @ttl.compute()
    def add_compute():
        l = lhs_cb.wait()
        r = rhs_cb.wait()
        o = out_cb.reserve()
        result = l + r
        o.store(result)
        lhs_cb.pop()
        rhs_cb.pop()
        out_cb.push()

    @ttl.datamovement()
    def dm_read():
        lhs_block = lhs_cb.reserve()
        ttl.copy(lhs[0:2, 0:2], lhs_block).wait()
        lhs_cb.push()
        rhs_block = rhs_cb.reserve()
        ttl.copy(rhs[0:2, 0:2], rhs_block).wait()
        rhs_cb.push()

    @ttl.datamovement()
    def dm_write():
        out_block = out_cb.wait()
        ttl.copy(out_block, out[0:2, 0:2]).wait()
        out_cb.pop()

    return ttl.Program(add_compute, dm_read, dm_write)(lhs, rhs, out)
"""


@pytest.fixture
def add_program(kernels):
    zeros = np.zeros((64, 64), ml_dtypes.bfloat16)
    return kernels.compile(ADD_SOURCE, zeros, zeros, zeros, inits="each", keep_ir=True, **SPEC)


def test_compute_kernel_of_the_add(add_program, call_sequence):
    """The last listing of the trace. Its reserve and push stand inside the pack loop, where four pushes of four tiles would
    overfill the buffer; ours stand around the block (decision 0004), with the pops that the listing leaves out."""
    text = add_program.cpp["compute"]
    assert text.index("init_sfpu(lhs_cb, out_cb)") < text.index("tile_regs_acquire")
    found = call_sequence.calls(text.splitlines(), inits=True)
    found = [line for line in found if not line.startswith(("init_sfpu", "get_compile"))]
    closing = found.index("cb_push_back(out_cb, 4)")
    assert found[: closing + 1] == ADD_COMPUTE.split("\n")[1:-1]
    assert "namespace NAMESPACE {" in text and "void MAIN { kernel_main(); }" in text
    assert "pack_tile<false>(" in text
    for number, name in enumerate(("lhs_cb", "rhs_cb", "out_cb")):
        assert f"constexpr uint32_t {name} = get_compile_time_arg_val({number});" in text


def test_reader_and_writer_of_the_add(add_program, call_sequence):
    reader = [
        line for line in call_sequence.calls(add_program.cpp["reader"].splitlines()) if line.startswith(("cb_", "noc_", "for"))
    ]
    one = ["cb_reserve_back({0}_cb, 4)", "for row < 2", "for col < 2", "noc_async_read_tile", "noc_async_read_barrier()"]
    one += ["cb_push_back({0}_cb, 4)"]
    expected = [line.format(name) for name in ("lhs", "rhs") for line in one]
    assert [line.split("(")[0] if "read_tile" in line else line for line in reader] == expected
    writer = [line for line in call_sequence.calls(add_program.cpp["writer"].splitlines()) if line.startswith(("cb_", "noc_"))]
    assert [line.split("(")[0] for line in writer] == [
        "cb_wait_front",
        "noc_async_write_tile",
        "noc_async_write_barrier",
        "cb_pop_front",
    ]


def test_every_stage_is_in_the_trace(add_program):
    from tilewright import pipeline

    assert [stage.name for stage in add_program.trace.stages] == ["frontend", *(stage.name for stage in pipeline.PASSES)]
    assert all("func.func @add_compute" in stage.ir for stage in add_program.trace.stages)
