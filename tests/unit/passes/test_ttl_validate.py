"""What ttl-validate completes, accepts and finds; single mistakes with their carets are in tests/errors."""

from __future__ import annotations

import itertools
import random
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import pipeline
from tilewright.diagnostics import KernelError
from tilewright.hardware import CHIPS
from tilewright.machine.threads import Event
from tilewright.options import Options
from tilewright.passes.context import PassContext
from tilewright.passes.validation.communication import stopped_at
from tilewright.program import TensorSpec

HEAD = """
from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(lhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count={depth})
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count={depth})

    @ttl.compute()
    def compute():
{compute}

    @ttl.datamovement()
    def read():
{read}

    @ttl.datamovement()
    def write():
{write}
"""
COMPUTE = "with a_cb.wait() as a, o_cb.reserve() as o:\n    o.store(a + a)"
READ = "with a_cb.reserve() as blk:\n    ttl.copy(lhs[0, 0], blk).wait()"
WRITE = "with o_cb.wait() as blk:\n    ttl.copy(blk, out[0, 0]).wait()"


def loop(count: object, body: str) -> str:
    return f"for i in range({count}):\n" + textwrap.indent(body, "    ")


@pytest.fixture
def validate(tmp_path):
    """Builds and validates; gives the module and what the pass recorded."""
    numbers = itertools.count()

    def run(compute=COMPUTE, read=READ, write=WRITE, *, grid=(1, 1), depth=2, shape=(320, 320), arch="wormhole_b0"):
        bodies = {"compute": compute, "read": read, "write": write}
        threads = {name: textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) for name, body in bodies.items()}
        path = tmp_path / f"kernel_{next(numbers)}.py"
        path.write_text(HEAD.format(grid=grid, depth=depth, **threads))
        scope = {"__name__": "kernel"}
        exec(compile(path.read_text(), str(path), "exec"), scope)
        tensors = [TensorSpec(name=name, shape=shape, dtype="bf16") for name in ("lhs", "out")]
        built = scope["kernel"].build(*tensors)
        context = PassContext(options=Options(arch=arch), chip=CHIPS[arch], grid=built.grid, tensors=built.tensors)
        pipeline.run(built.module, context, ["ttl-validate"])
        built.module.verify()
        return built.module, context.trace

    return run


def ops(module, function: str) -> list[str]:
    (found,) = [op for op in module.ops if op.sym_name.data == function]
    return [op.name.removeprefix("ttl.") for op in found.walk() if op.name.startswith("ttl.") and "bind" not in op.name]


def codes(caught) -> list[str]:
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def test_complete_kernel_is_left_alone(validate):
    module, trace = validate()
    assert not trace.decisions
    assert trace.memory.buffers == {"a_cb": 4096, "o_cb": 4096}
    assert trace.core_groups == 1
    assert ops(module, "compute") == ["cb_wait", "attach_cb", "cb_reserve", "attach_cb", "add", "store", "cb_push", "cb_pop"]


def test_missing_releases_and_waits_are_inserted_and_said(validate):
    module, trace = validate(
        compute=loop(3, "a = a_cb.wait()\no = o_cb.reserve()\no.store(a + a)"),
        read=loop(3, "ttl.copy(lhs[i, 0], a_cb.reserve())"),
        write=loop(3, "ttl.copy(o_cb.wait(), out[i, 0]).wait()"),
    )
    assert ops(module, "compute")[-3:] == ["store", "cb_push", "cb_pop"]
    assert ops(module, "read")[-3:] == ["copy", "wait", "cb_push"]
    assert ops(module, "write")[-3:] == ["copy", "wait", "cb_pop"]
    titles = [decision.title for decision in trace.decisions]
    assert sum("inserted" in title for title in titles) == 5
    assert all(decision.place.startswith("line ") for decision in trace.decisions)


def test_push_comes_before_a_later_wait_for_the_same_buffer(validate):
    """An intermediate buffer that the compute thread fills and reads itself, without any explicit push or pop."""
    compute = """
    a = a_cb.wait()
    first = o_cb.reserve()
    first.store(a * 2.0)
    again = o_cb.wait()
    second = o_cb.reserve()
    second.store(again + a)
    last = o_cb.wait()
    """
    module, _ = validate(compute, write="pass")
    found = [name for name in ops(module, "compute") if name.startswith("cb_") or name == "store"]
    assert found[:5] == ["cb_wait", "cb_reserve", "store", "cb_push", "cb_wait"]
    assert found[5:7] == ["cb_reserve", "store"] and sorted(found[7:10]) == ["cb_pop", "cb_pop", "cb_push"]
    assert found[10:] == ["cb_wait", "cb_pop"]


def test_a_store_reads_its_blocks_before_they_are_popped(validate):
    compute = "a = a_cb.wait()\no = o_cb.reserve()\nx = a + a\ny = x * 2.0\no.store(y)"
    names = ops(validate(compute)[0], "compute")
    assert names.index("store") < names.index("cb_pop")


def attributes(module, kind: str, key: str) -> list[int | None]:
    found = [op for op in module.walk() if op.name == f"ttl.{kind}"]
    return [op.attributes[key].value.data if key in op.attributes else None for op in found]


def test_blocks_held_together_lie_behind_each_other(validate):
    compute = """
    first = a_cb.wait()
    second = a_cb.wait()
    o = o_cb.reserve()
    o.store(first + second)
    o.push()
    first.pop()
    second.pop()
    """
    module, _ = validate(compute, read=loop(2, READ))
    assert attributes(module, "cb_wait", "tiles")[:2] == [None, 2]
    assert attributes(module, "attach_cb", "tile_offset")[:3] == [None, 1, None]


def test_a_pop_moves_the_other_blocks_forward(validate):
    """A sliding window: after the pop the second block is the first one, also for values written down before."""
    compute = """
    first = a_cb.wait()
    second = a_cb.wait()
    planned = second * 3.0
    o = o_cb.reserve()
    o.store(first + second)
    o.push()
    first.pop()
    o = o_cb.reserve()
    o.store(planned + second)
    o.push()
    second.pop()
    """
    module, _ = validate(compute, read=loop(2, READ), write=loop(2, WRITE))
    stores = [op for op in module.walk() if op.name == "ttl.store"]

    def offsets(value):
        owner = value.owner
        if owner.name == "ttl.attach_cb":
            return [owner.tile_offset]
        return [offset for operand in owner.operands for offset in offsets(operand)]

    assert offsets(stores[0].operands[0]) == [0, 1]
    assert offsets(stores[1].operands[0]) == [0, 0]


def test_loop_may_release_blocks_held_before_it(validate):
    compute = """
    first = a_cb.wait()
    second = a_cb.wait()
    o = o_cb.reserve()
    o.store(first + second)
    o.push()
    for _ in range(2):
        a_cb.pop()
    """
    validate(compute, read=loop(2, READ))


GUARD = "x, y = ttl.node(dims=2)\nfor i in range(4):\n    row = y * 4 + i\n    if row < 10:\n{}"


def guarded(body: str) -> str:
    return GUARD.format(textwrap.indent(body, "        "))


def test_uneven_work_with_guards_is_accepted(validate):
    _, trace = validate(
        guarded(COMPUTE),
        guarded(READ.replace("0, 0", "row, x")),
        guarded(WRITE.replace("0, 0", "row, x")),
        grid=(8, 8),
        shape=(320, 256),
    )
    assert trace.core_groups == 3  # four rows, two rows, none


def test_the_guard_decides_whether_a_slice_is_inside(validate):
    read = guarded(READ.replace("0, 0", "row, x"))
    with pytest.raises(KernelError) as caught:
        validate(guarded(COMPUTE), read, guarded(WRITE), grid=(8, 8), shape=(288, 256))
    assert codes(caught) == ["TW103"]
    assert "core_y = 2" in str(caught.value) and "i = 1" in str(caught.value)


@pytest.mark.parametrize("start", ["10 - i", "i - 1", "i * 4", "(i + 7) % 11", "11 if i == 2 else 0", "min(i, 2) * 5"])
def test_slice_starts_by_iteration(validate, start):
    wrong = [i for i in range(4) if not 0 <= eval(start, {"i": i}) < 10]
    parts = (loop(4, COMPUTE), loop(4, READ.replace("0, 0", f"{start}, 0")), loop(4, WRITE))
    if not wrong:
        validate(*parts)
        return
    with pytest.raises(KernelError) as caught:
        validate(*parts)
    assert codes(caught) == ["TW103"] and f"i = {wrong[0]}" in str(caught.value)


def test_slices_in_loops_that_never_run_are_not_reached(validate):
    dead = "x, _ = ttl.core(dims=2)\nfor i in range(x, x):\n    ttl.copy(lhs[100, 0], a_cb.reserve()).wait()\n" + READ
    with pytest.raises(KernelError, match="TW103"):
        validate(read=dead, grid=(2, 1))  # a constant outside the tensor is wrong wherever it stands
    validate(read=dead.replace("100", "100 + i"), grid=(2, 1))


def test_deadlock_names_the_smallest_depth(validate):
    """One thread brings everything before it takes anything back."""
    there_and_back = loop(5, READ) + "\n" + loop(5, WRITE)
    with pytest.raises(KernelError) as caught:
        validate(loop(5, COMPUTE), there_and_back, "pass", depth=1)
    (found,) = caught.value.diagnostics
    assert (found.code, found.help.split(" is ")[0]) == ("TW211", "block_count=4 for 'o_cb'")
    assert "'compute' stops, waiting for room in 'o_cb' (1 block)" in found.message
    assert "'read' is stopped here, waiting for room in 'a_cb'" in found.notes[0].message
    with pytest.raises(KernelError, match="TW211"):
        validate(loop(9, COMPUTE), there_and_back.replace("range(5)", "range(9)"), "pass", depth=2)
    validate(loop(5, COMPUTE), there_and_back, "pass", depth=4)


def test_more_blocks_held_than_there_are(validate):
    three = "blocks = [a_cb.wait() for _ in range(3)]\n" + loop(3, "with o_cb.reserve() as o:\n    o.store(blocks[0])")
    validate(three, loop(3, READ), loop(3, WRITE), depth=3)
    with pytest.raises(KernelError) as caught:
        validate(three, loop(3, READ), loop(3, WRITE), depth=2)
    assert codes(caught) == ["TW304"]


def test_deep_enough_buffers_are_accepted(validate):
    """The reader brings all of one tensor first; a depth that holds it all is enough."""
    text = COMPUTE.replace("a + a", "a")
    read = loop(4, READ)
    validate(loop(4, text), read, loop(4, WRITE), depth=1)


def test_large_loops_are_quick(validate):
    """Loops are counted, not run, and repeated behaviour is skipped: a million iterations are as cheap as ten."""
    count = 10**6
    validate(loop(count, COMPUTE), loop(count, READ), loop(count, WRITE))
    nested = lambda body: loop(1000, loop(1000, body).replace("for i", "for j"))  # noqa: E731
    validate(nested(COMPUTE), loop(count, READ), nested(WRITE))
    with pytest.raises(KernelError) as caught:
        validate(loop(count + 1, COMPUTE), loop(count, READ), loop(count, WRITE))
    assert codes(caught) == ["TW210", "TW210"]


def test_loop_carried_integers_steer_the_threads(validate):
    counted = "n = 0\nfor i in range(4):\n    n += i\nfor j in range(n):\n{}"
    validate(loop(6, COMPUTE), counted.format(textwrap.indent(READ, "    ")), loop(6, WRITE))


def test_limits_follow_the_chip(validate):
    big = (32 * 40, 32 * 40)
    with pytest.raises(KernelError) as caught:
        validate(shape=big, depth=400)
    assert codes(caught) == ["TW302"]
    assert "a_cb" in str(caught.value) and "KB" in str(caught.value)


def test_all_problems_of_a_kernel_are_reported(validate):
    with pytest.raises(KernelError) as caught:
        validate("a_cb.pop()", "a_cb.push()", "with o_cb.wait() as blk:\n    pass\no_cb.pop()")
    assert codes(caught) == ["TW202"] * 3


def naive(courses, depths):
    """The same network, one event at a time in random order, nothing skipped."""
    filled = dict.fromkeys(depths, 0)
    threads = [[event for chunk, count in items for _ in range(count) for event in chunk] for items in courses]
    order = random.Random(1)
    while True:
        ready = []
        for thread in threads:
            if not thread:
                continue
            event = thread[0]
            room = depths[event.buffer] - filled[event.buffer]
            if event.word == "wait" and filled[event.buffer] < event.amount:
                continue
            if event.word == "reserve" and room < event.amount:
                continue
            ready.append(thread)
        if not ready:
            return [thread[0] if thread else None for thread in threads]
        event = order.choice(ready).pop(0)
        filled[event.buffer] += {"push": 1, "pop": -1}.get(event.word, 0)


def produce(buffer):
    return (Event("reserve", buffer, 1, None), Event("push", buffer, 1, None))


def consume(buffer):
    return (Event("wait", buffer, 1, None), Event("pop", buffer, 1, None))


steps = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(1, 5)), min_size=1, max_size=5)


@settings(max_examples=200)
@given(steps, steps, steps, st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_skipping_finds_the_same_stops_as_running_everything(first, second, third, sizes):
    """Three threads in a ring: each fills one buffer and empties another."""
    courses = []
    for number, plan in enumerate((first, second, third)):
        give, take = produce(number), consume((number + 2) % 3)
        chunk = {0: give, 1: take, 2: give + take}
        courses.append(tuple((chunk[kind], count * 3) for kind, count in plan))
    depths = dict(enumerate(sizes))
    assert stopped_at(tuple(courses), depths) == naive(courses, depths)


LISTING = """
func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.cb_wait %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %3 = ttl.attach_cb %2, %0 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2>
                            -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %4 = ttl.cb_reserve %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %5 = ttl.attach_cb %4, %1 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2>
                            -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %6 = ttl.add %3, %3 : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>
                      -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  ttl.store %6, STORE : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>
  return
}
"""


def parsed(text: str):
    from xdsl.context import Context
    from xdsl.dialects import builtin, func
    from xdsl.parser import Parser

    from tilewright.dialects.attributes import TTCore
    from tilewright.dialects.text_input import TTL, TTKernel

    context = Context()
    for dialect in (builtin.Builtin, func.Func, TTL, TTCore, TTKernel):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def test_text_is_checked_too():
    """A lone thread of a listing is completed; what it does wrong is found without any Python source."""
    module = parsed(LISTING.replace("STORE", "%5"))
    pipeline.run(module, PassContext(options=Options(), chip=CHIPS["wormhole_b0"]), ["ttl-validate"])
    assert ops(module, "add_compute")[-3:] == ["store", "cb_push", "cb_pop"]
    with pytest.raises(KernelError) as caught:
        pipeline.run(parsed(LISTING.replace("STORE", "%3")), PassContext(options=Options(), chip=CHIPS["wormhole_b0"]), ["ttl-validate"])
    assert sorted(codes(caught)) == ["TW204", "TW205"]
    wrong_thread = LISTING.replace("STORE", "%5").replace("thread<compute>", "thread<noc>")
    with pytest.raises(KernelError) as caught:
        pipeline.run(parsed(wrong_thread), PassContext(options=Options(), chip=CHIPS["wormhole_b0"]), ["ttl-validate"])
    assert set(codes(caught)) == {"TW013"}
