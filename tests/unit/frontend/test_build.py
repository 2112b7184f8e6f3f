"""The module the front end makes: the specification's first listing, in every spelling of the language."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import FileLineColLoc

from tilewright.dialects.walking import line_of

OLD = """
from tilewright.standins.finder import installed
with installed():
    from ttlang import make_circular_buffer_like, ttl
    from ttlang.operators import copy
    from ttlang.ttl_api import Program

@ttl.kernel(grid=(1, 1))
def add(lhs, rhs, out):
    lhs_cb = make_circular_buffer_like(lhs, shape=(2, 2), buffer_factor=2)
    rhs_cb = make_circular_buffer_like(rhs, shape=(2, 2), buffer_factor=2)
    out_cb = make_circular_buffer_like(out, shape=(2, 2), buffer_factor=2)

    @ttl.compute()
    def add_compute():
        l = lhs_cb.wait()
        r = rhs_cb.wait()
        o = out_cb.reserve()
        result = l + r
        o.store(result)
        out_cb.push()
        rhs_cb.pop()
        lhs_cb.pop()

    @ttl.datamovement()
    def dm_read():
        lhs_cb.reserve()
        tx = copy(lhs[0, 0], lhs_cb)
        tx.wait()
        lhs_cb.push()
        rhs_cb.reserve()
        tx = copy(rhs[0, 0], rhs_cb)
        tx.wait()
        rhs_cb.push()

    @ttl.datamovement()
    def dm_write():
        out_cb.wait()
        tx = copy(out_cb, out[0, 0])
        tx.wait()
        out_cb.pop()

    return Program(add_compute, dm_read, dm_write)(lhs, rhs, out)
"""

NEW = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def add(lhs, rhs, out):
    lhs_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    rhs_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def add_compute():
        with lhs_cb.wait() as l, rhs_cb.wait() as r, out_cb.reserve() as o:
            result = l + r
            o.store(result)

    @ttl.datamovement()
    def dm_read():
        with lhs_cb.reserve() as block:
            ttl.copy(lhs[0:2, 0:2], block).wait()
        with rhs_cb.reserve() as block:
            ttl.copy(rhs[0:2, 0:2], block).wait()

    @ttl.datamovement()
    def dm_write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0:2, 0:2]).wait()
"""

MIXED = NEW.replace("ttl.operation", "ttl.kernel").replace("block_count", "buffer_factor").replace("l + r", "ttl.math.add(l, r)")


@pytest.fixture
def add(load, tensor):
    def build(text: str):
        built = load(text)["add"].build(tensor("lhs"), tensor("rhs"), tensor("out"))
        built.module.verify()
        return built

    return build


def test_first_listing_of_the_specification(add):
    text = str(add(OLD).module)
    pattern = r"""
    func.func @add_compute\(\) attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
    %0 = ttl.bind_cb{cb_index = 0 .*, buffer_factor = 2 .*, name = "lhs_cb"} : <\[2, 2\], !ttcore.tile<32x32, bf16>, 2>
    %1 = ttl.bind_cb{cb_index = 1 .*, buffer_factor = 2 .*, name = "rhs_cb"} : <\[2, 2\], !ttcore.tile<32x32, bf16>, 2>
    %2 = ttl.bind_cb{cb_index = 2 .*, buffer_factor = 2 .*, name = "out_cb"} : <\[2, 2\], !ttcore.tile<32x32, bf16>, 2>
    %3 = ttl.cb_wait %0 : .* -> tensor<2x2x!ttcore.tile<32x32, bf16>>
    %4 = ttl.attach_cb %3, %0 : .*
    %5 = ttl.cb_wait %1 : .* -> tensor<2x2x!ttcore.tile<32x32, bf16>>
    %6 = ttl.attach_cb %5, %1 : .*
    %7 = ttl.cb_reserve %2 : .* -> tensor<2x2x!ttcore.tile<32x32, bf16>>
    %8 = ttl.attach_cb %7, %2 : .*
    %result = ttl.add %4, %6 : .* -> tensor<2x2x!ttcore.tile<32x32, bf16>>
    ttl.store %result, %8 : .*
    ttl.cb_push %2 : .*
    ttl.cb_pop %1 : .*
    ttl.cb_pop %0 : .*
    func.return
    """
    lines = [line.strip() for line in pattern.strip().splitlines()]
    assert re.search(r"\n\s*".join(lines), text), text


@pytest.mark.parametrize("other", [NEW, MIXED], ids=["new", "mixed"])
def test_spellings_mean_the_same(add, other):
    old, new = add(OLD).module, add(other).module
    assert str(old) == str(new)


def test_every_op_knows_its_line(add):
    built = add(NEW)
    for op in built.module.walk():
        if op is not built.module:
            assert isinstance(op.location, FileLineColLoc), op.name
    (addition,) = [op for op in built.module.walk() if op.name == "ttl.add"]
    assert NEW.splitlines()[line_of(addition) - 1].strip() == "result = l + r"


def test_facts_of_the_built_kernel(add):
    built = add(NEW)
    assert (built.name, built.grid) == ("add", (1, 1))
    assert [spec.name for spec in built.tensors] == ["lhs", "rhs", "out"]
    assert built.source_file.endswith(".py")


def roles(module):
    return {op.sym_name.data: op.attributes["ttl.role"].data for op in module.ops if "ttl.role" in op.attributes}


def test_roles(add):
    assert roles(add(NEW).module) == {"dm_read": "reader", "dm_write": "writer"}


def test_fewer_threads(add):
    without_reader = (
        NEW[: NEW.index("    @ttl.datamovement()\n    def dm_read")]
        + NEW[NEW.index("    @ttl.datamovement()\n    def dm_write") :]
    )
    assert roles(add(without_reader).module) == {"dm_write": "writer"}
    without_writer = NEW[: NEW.index("    @ttl.datamovement()\n    def dm_write")]
    assert roles(add(without_writer).module) == {"dm_read": "reader"}


def test_program_chooses_threads(add):
    built = add(OLD.replace("Program(add_compute, dm_read, dm_write)", "Program(dm_write, add_compute)"))
    assert [op.sym_name.data for op in built.module.ops] == ["add_compute", "dm_write"]


def test_host_body_is_plain_python(load, tensor):
    scope = load(
        """
        from tilewright import ttl

        @ttl.operation(grid="full")
        def kernel(lhs, count=3):
            rows, columns = (size // 32 for size in lhs.shape)
            buffers = [ttl.make_dataflow_buffer_like(lhs, shape=(rows, columns)) for _ in range(count)]
            named = {"extra": ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count=rows + 1)}
            gx, gy = ttl.grid_size(dims=2)
            assert (gx, gy, ttl.grid_size(dims=1)) == (8, 8, 64)

            @ttl.datamovement()
            def read():
                for buffer in buffers:
                    ttl.copy(lhs[0:rows, 0:columns], buffer.reserve()).wait()
                ttl.copy(lhs[0, 0], named["extra"].reserve()).wait()
        """
    )
    text = str(scope["kernel"].build(tensor(shape=(64, 96))).module)
    assert re.findall(r'name = "(\w+)"', text) == ["buffers_0", "buffers_1", "buffers_2", "named_extra", "lhs"]
    assert "<[2, 3], !ttcore.tile<32x32, bf16>, 2>" in text and "<[1, 1], !ttcore.tile<32x32, bf16>, 3>" in text


def test_higher_rank_tensors_and_memory(load):
    from tilewright.program import TensorSpec

    scope = load(
        """
        from tilewright import ttl

        @ttl.operation(grid=(1, 1))
        def kernel(lhs):
            cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 2))

            @ttl.datamovement()
            def read():
                for batch in range(4):
                    ttl.copy(lhs[batch, 1:2, :], cb.reserve()).wait()
        """
    )
    built = scope["kernel"].build(TensorSpec(name="lhs", shape=(4, 64, 64), dtype="f32", memory="l1"))
    built.module.verify()
    assert '!ttl.accessor<[4, 2, 2], !ttcore.tile<32x32, f32>, "l1">' in str(built.module)
    assert '!ttl.slice<[1, 2], !ttcore.tile<32x32, f32>, "l1">' in str(built.module)


def test_source_from_linecache():
    """Text that was never a file works if linecache knows it, as in notebooks."""
    import linecache

    from tilewright.program import TensorSpec

    text = NEW
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(keepends=True), "<cell 1>")
    scope = {"__name__": "cell"}
    exec(compile(text, "<cell 1>", "exec"), scope)
    specs = [TensorSpec(name=name, shape=(64, 64), dtype="bf16") for name in ("lhs", "rhs", "out")]
    assert scope["add"].build(*specs).source_file == "<cell 1>"
