"""Each call runs under its init on every path, and no init that is left could be left out."""

from __future__ import annotations

import pytest

KERNELS = {
    "one op": ({"out": "a + b"}, {"block": (2, 2)}),
    "two functions": ({"out": "ttl.math.exp(ttl.math.tanh(a)) + ttl.math.sigmoid(b)"}, {"block": (2, 2)}),
    "matrix and vector": ({"out": "ttl.math.exp(a * b) - b"}, {"block": (3, 3), "blocks": (2, 1)}),
    "two outputs": ({"out": "ttl.math.abs(a * b)", "other": "ttl.math.exp(a * b) + a"}, {"block": (2, 2)}),
    "in loops": ({"out": "ttl.math.sqrt(ttl.math.abs(a)) * b"}, {"block": (1, 1), "blocks": (3, 3)}),
    "on a grid": ({"out": "ttl.math.exp(a) * ttl.math.log(b)"}, {"block": (1, 2), "blocks": (5, 3), "grid": (2, 2)}),
    "split": ({"out": "ttl.math.exp(a + b) * (a - b) + ttl.math.tanh(a - b)"}, {"block": (2, 2), "dst_capacity": 2}),
}


def program_of(kernels, make_array, name, dtype="bf16", **options):
    outputs, choices = KERNELS[name]
    layout = {key: value for key, value in choices.items() if key != "dst_capacity"}
    options |= {key: value for key, value in choices.items() if key == "dst_capacity"}
    source = kernels.text.elementwise(outputs, "ab", **layout)
    block, blocks = layout["block"], layout.get("blocks", (1, 1))
    tiles = (block[0] * blocks[0], block[1] * blocks[1])
    return kernels.compile(source, *[make_array(tiles, dtype) for _ in range(2 + len(outputs))], **options)


def compute_thread(module):
    return next(op for op in module.ops if str(op.attributes["ttl.kernel_thread"]) == "#ttkernel.thread<compute>")


def setup_calls(function):
    words = ("_init", "_init_short", "_init_common", "init_sfpu", "reconfig_data_format", "reduce_uninit")
    return [op for op in function.walk() if op.name.startswith("ttkernel.") and any(word in op.name for word in words)]


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
def test_no_init_could_be_left_out(kernels, make_array, init_states, name, dtype, allocator):
    """Taking any one away leaves a call without its init: the placed ones are needed, and the checker sees what is missing."""
    program = program_of(kernels, make_array, name, dtype, allocator=allocator)
    count = len(setup_calls(compute_thread(program.module)))
    assert count > 0
    for position in range(count):
        function = compute_thread(program.module).clone()
        call = setup_calls(function)[position]
        call.detach()
        with pytest.raises(init_states.MissingInit):
            init_states.check_function(function)


@pytest.mark.parametrize("name", KERNELS)
def test_one_before_each_call_where_asked(kernels, make_array, name):
    program = program_of(kernels, make_array, name, inits="each")
    for op in compute_thread(program.module).walk():
        form = getattr(op, "FORM", None)
        if form is not None and form.init and op.CALL.name == form.call:
            before = op.prev_op
            assert before is not None and before.CALL.name == form.init
        if op.name == "ttkernel.copy_tile":
            assert op.prev_op is not None and op.prev_op.CALL.name == "copy_tile_init"


def test_hoisting_never_needs_more_than_each(kernels, make_array):
    for name in KERNELS:
        hoisted, each = (
            setup_calls(compute_thread(program_of(kernels, make_array, name, inits=how).module)) for how in ("hoist", "each")
        )
        assert len(hoisted) <= len(each)


def test_setup_leaves_the_loop_when_one_configuration_serves_it(kernels, make_array):
    program = program_of(kernels, make_array, "in loops", allocator="linear-scan", fpu_binary_ops=False)
    inside = [op for op in setup_calls(compute_thread(program.module)) if op.parent_op().name == "scf.for"]
    names = [op.CALL.name for op in inside]
    assert "copy_tile_init" not in names, "all loads use one configuration"


def test_products_at_both_ends_of_a_loop_share_their_init(kernels, make_array, block_kernels, init_states):
    """Flash attention: an exponential takes the replay buffer between them, but the last product records its instructions again."""
    source = block_kernels.flash_attention(rows=1, keys=2, depth=2, steps=4, scale=0.125, masked=False)
    shapes = ((1, 2), (2, 8), (8, 2), (1, 2))
    program = kernels.compile(source, *[make_array(shape, "bf16") for shape in shapes])
    function = compute_thread(program.module)
    inits = [op for op in setup_calls(function) if op.CALL.name == "mm_block_init_short"]
    assert [op.parent_op().name for op in inits] == ["func.func", "scf.for"]
    init_states.check_function(function)
    inits[1].detach()
    with pytest.raises(init_states.MissingInit):
        init_states.check_function(function)


def test_formats_switch_only_where_they_change(kernels, make_array):
    """All buffers are bf16: no format is ever set after start-up."""
    for name in KERNELS:
        module = program_of(kernels, make_array, name).module
        assert not [op for op in module.walk() if "reconfig_data_format" in op.name]


MIXED = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, wide, out, wide_out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_buffer = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    wide_buffer = ttl.make_dataflow_buffer_like(wide, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    wide_out_buffer = ttl.make_dataflow_buffer_like(wide_out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for n in range(3):
            with a_buffer.wait() as x, b_buffer.wait() as y, out_buffer.reserve() as o:
                o.store(ttl.math.exp(x) + y)
            if n > 0:
                with wide_buffer.wait() as w, wide_out_buffer.reserve() as o:
                    o.store(ttl.math.tanh(w))

    @ttl.datamovement()
    def read():
        for n in range(3):
            with a_buffer.reserve() as x, b_buffer.reserve() as y:
                ttl.copy(a[0:1, n : n + 1], x).wait()
                ttl.copy(b[0:1, n : n + 1], y).wait()
            if n > 0:
                with wide_buffer.reserve() as w:
                    ttl.copy(wide[0:1, n : n + 1], w).wait()

    @ttl.datamovement()
    def write():
        for n in range(3):
            with out_buffer.wait() as o:
                ttl.copy(o, out[0:1, n : n + 1]).wait()
            if n > 0:
                with wide_out_buffer.wait() as o:
                    ttl.copy(o, wide_out[0:1, n : n + 1]).wait()
"""


def test_two_formats_and_a_branch_in_a_loop(kernels, make_array, rounding):
    """bf16 and f32 buffers alternate under a condition: formats and inits must be right on both paths around the loop."""
    a, b = make_array((1, 3), "bf16", -1, 1), make_array((1, 3), "bf16", -1, 1)
    wide = make_array((1, 3), "f32", -1, 1)
    out, wide_out = make_array((1, 3), "bf16"), make_array((1, 3), "f32")
    before = wide_out[:, :32].copy()
    program = kernels.run(MIXED, a, b, wide, out, wide_out)
    assert [op for op in program.module.walk() if op.name == "ttkernel.pack_reconfig_data_format"]
    model = rounding.Model("bf16")
    rounding.assert_close(out, model.op("add", model.op("exp", model.leaf(a)), model.leaf(b)))
    rounding.assert_close(wide_out[:, 32:], rounding.Model("f32").op("tanh", model.leaf(wide[:, 32:])))
    assert (wide_out[:, :32] == before).all(), "the first block is never written"


def test_the_checker_sees_a_wrong_init(kernels, make_array, init_states):
    """Mutants of the finished code: an init moved behind its call, start-up twice, another op's init in its place."""
    program = program_of(kernels, make_array, "two functions")
    function = compute_thread(program.module).clone()
    start = next(op for op in function.walk() if op.name == "ttkernel.init_sfpu" or op.name == "ttkernel.binary_op_init_common")
    start.parent.insert_op_after(start.clone({v: v for v in start.operands}), start)
    with pytest.raises(init_states.MissingInit, match="once"):
        init_states.check_function(function)
    function = compute_thread(program.module).clone()
    init = next(op for op in function.walk() if op.name == "ttkernel.exp_tile_init")
    use = next(op for op in function.walk() if op.name == "ttkernel.exp_tile")
    init.detach()
    use.parent.insert_op_after(init, use)
    with pytest.raises(init_states.MissingInit):
        init_states.check_function(function)


GUARDED = """
from tilewright import ttl

@ttl.operation(grid=(2, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        x, _ = ttl.node(dims=2)
        for i in range(2):
            if x * 2 + i < 3:
                with a_cb.wait() as block, out_cb.reserve() as result:
                    result.store(block / ttl.math.reduce_sum(block * block, dims=[1]))

    @ttl.datamovement()
    def read():
        x, _ = ttl.node(dims=2)
        for i in range(2):
            if x * 2 + i < 3:
                ttl.copy(a[x * 2 + i, 0:2], a_cb.reserve()).wait()

    @ttl.datamovement()
    def write():
        x, _ = ttl.node(dims=2)
        for i in range(2):
            if x * 2 + i < 3:
                ttl.copy(out_cb.wait(), out[x * 2 + i, 0:2]).wait()
"""


def test_the_packers_mask_is_taken_off_once_where_work_is_guarded_in_a_loop(kernels, make_array, init_states):
    program = kernels.compile(GUARDED, *(make_array((3, 2), "bf16") for _ in range(2)))
    function = compute_thread(program.module)
    assert [op.CALL.name for op in setup_calls(function)].count("reduce_uninit") == 1
    init_states.check_function(function)
