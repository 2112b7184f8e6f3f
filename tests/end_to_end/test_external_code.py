"""C++ of the author's own in threads: its effects on buffers are declared, the native run executes it, the simulator its meaning."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import execution
from tilewright.diagnostics import KernelError
from tilewright.timing.profile import profile

MULTIPLY = """
#pragma once
#include "api/compute/eltwise_binary.h"
#include "api/compute/reconfig_data_format.h"

template <uint32_t Left, uint32_t Right, typename Out>
void multiply_tiles(uint32_t count) {
  reconfig_data_format(Left, Right);
  pack_reconfig_data_format(Out::id);
  mul_init(Left, Right);
  cb_wait_front(Left, count);
  cb_wait_front(Right, count);
  cb_reserve_back(Out::id, Out::block_tiles);
  for (uint32_t tile = 0; tile < count; ++tile) {
    tile_regs_acquire();
    mul_tiles(Left, Right, tile, tile, 0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, Out::id);
    tile_regs_release();
  }
  cb_push_back(Out::id, Out::block_tiles);
  cb_pop_front(Left, count);
  cb_pop_front(Right, count);
}
"""

COMPUTED = """
from tilewright import ttl

def multiply(left, right):
    return left * right

@ttl.operation(grid=(1, 1))
def kernel(a, b, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=2)
    product_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        for row in range(3):
            ttl.call_extern_func(
                "HEADER",
                "multiply_tiles",
                template_args=[a_cb, ttl.get_dfb_id(b_cb), ttl.dfb_descriptor(product_cb)],
                func_args=[2],
                dfb_effects=[
                    ttl.DFBEffect.wait(a_cb, tiles=2),
                    ttl.DFBEffect.wait(b_cb, tiles=2),
                    ttl.DFBEffect.reserve(product_cb, tiles=2),
                    ttl.DFBEffect.push(product_cb, tiles=2),
                    ttl.DFBEffect.pop(a_cb, tiles=2),
                    ttl.DFBEffect.pop(b_cb, tiles=2),
                ],
                meaning=multiply,
            )
            with product_cb.wait() as p, out_cb.reserve() as o:
                o.store(p + 1)

    @ttl.datamovement()
    def read():
        for row in range(3):
            with a_cb.reserve() as x, b_cb.reserve() as y:
                ttl.copy(a[row, 0:2], x).wait()
                ttl.copy(b[row, 0:2], y).wait()

    @ttl.datamovement()
    def write():
        for row in range(3):
            with out_cb.wait() as block:
                ttl.copy(block, out[row, 0:2]).wait()
"""


@pytest.fixture
def header(tmp_path):
    path = tmp_path / "multiply.h"
    path.write_text(MULTIPLY)
    return str(path)


def integers(seed, shape=(96, 64)):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def test_external_code_computes_between_ours(kernels, header):
    """What comes behind it is set up anew: it may have left the engines in any state."""
    a, b, out = integers(1), integers(2), np.zeros((96, 64), np.float32)
    program = kernels.run(COMPUTED.replace("HEADER", header), a, b, out)
    assert (out == a * b + 1).all()
    text = program.cpp["compute"]
    assert "multiply_tiles<a_cb, b_cb, dfb<product_cb, 2, 2>>(2);" in text and "cb_wait_front(a_cb" not in text
    loop = text[text.index("for (") : text.index("cb_push_back(out_cb")]
    assert "init" in loop[loop.index("multiply_tiles<") :]
    assert profile(program, advise=False)[0].cycles > 0


def test_a_compute_thread_of_external_code_alone_starts_the_engines(kernels, header):
    """Once, first of all, for the buffers of its first call."""
    ours = """            with product_cb.wait() as p, out_cb.reserve() as o:
                o.store(p + 1)
"""
    source = COMPUTED.replace("HEADER", header).replace(ours, "").replace("out_cb.wait()", "product_cb.wait()")
    a, b, out = integers(1), integers(2), np.zeros((96, 64), np.float32)
    a[a == 0] = b[b == 0] = 1  # NumPy's product of zero and a negative number is minus zero, the matrix unit's is not
    kernel = kernels.load(source)
    program = kernel.compile(a, b, out)
    kernel(a, b, out)
    assert (out == a * b).all()
    text = program.cpp["compute"]
    assert text.count("hw_startup(") == 1
    assert text.index("hw_startup(a_cb, b_cb, product_cb);") < text.index("multiply_tiles<a_cb")


def test_without_a_meaning_it_runs_natively_only(kernels, header):
    source = COMPUTED.replace("HEADER", header).replace("                meaning=multiply,\n", "")
    a, b, out = integers(1), integers(2), np.zeros((96, 64), np.float32)
    kernel = kernels.load(source)
    with pytest.raises(KernelError, match="TW522"):
        kernel(a, b, out)
    with execution.session(mode="native"):
        kernel(a, b, out)
    assert (out == a * b + 1).all()


SHIFT = """
template <uint32_t From, uint32_t To>
void shifted(uint32_t amount, uint32_t address) {
  cb_wait_front(From, 1);
  cb_reserve_back(To, 1);
  auto* source = reinterpret_cast<volatile uint32_t*>(get_read_ptr(From));
  auto* target = reinterpret_cast<volatile uint32_t*>(get_write_ptr(To));
  for (uint32_t word = 0; word < 1024; ++word) {
    target[word] = source[word] + amount + (address == 0);
  }
  cb_push_back(To, 1);
  cb_pop_front(From, 1);
}
"""

MOVED = """
from tilewright import ttl

def shift(block, amount):
    return block + amount

@ttl.operation(grid=(2, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    b_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    column, _ = ttl.node(dims=2)

    @ttl.compute()
    def compute():
        pass

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as block:
            ttl.copy(a[0, column], block).wait()
        effects = [ttl.DFBEffect.wait(a_cb, tiles=1), ttl.DFBEffect.pop(a_cb, tiles=1)]
        effects += [ttl.DFBEffect.reserve(b_cb, tiles=1), ttl.DFBEffect.push(b_cb, tiles=1)]
        ttl.call_extern_func(
            "HEADER", "shifted", template_args=[a_cb, b_cb], func_args=[column + 5, ttl.raw_addr(a)],
            dfb_effects=effects, meaning=shift,
        )

    @ttl.datamovement()
    def write():
        with b_cb.wait() as block:
            ttl.copy(block, out[0, column]).wait()
"""


def test_a_mover_runs_external_code_with_numbers_of_its_core(kernels, tmp_path):
    path = tmp_path / "shift.h"
    path.write_text(SHIFT)
    a = np.random.default_rng(3).integers(0, 1000, (32, 64)).astype(np.int32)
    out = np.zeros((32, 64), np.int32)
    kernels.load(MOVED.replace("HEADER", str(path)))(a, out)  # the native twin runs it, too
    assert (out == a + np.repeat([5, 6], 32)).all()


WRONG = {
    "an effect without its end": ("ttl.DFBEffect.pop(a_cb, tiles=2),", "", "TW202", "waits 2 tiles of 'a_cb' and pops 0"),
    "part of a block": ("ttl.DFBEffect.wait(a_cb, tiles=2)", "ttl.DFBEffect.wait(a_cb, tiles=1)", "TW004", "whose blocks have 2"),
    "no header": ('"HEADER"', '"nowhere.h"', "TW004", "no header 'nowhere.h'"),
    "a wrong argument": ("func_args=[2]", "func_args=[2.5]", "TW004", "func_args has 2.5"),
    "an unknown setting": ("func_args=[2]", "func_args=[2], volatile=True", "TW008", "volatile="),
    "a missing producer": ("                ttl.copy(b[row", "                # ttl.copy(b[row", "TW205", "nothing was written"),
    "a meaning of the thread": ("meaning=multiply", "meaning=lambda x, y: x * y", "TW004", "meaning is function"),
    "too many waits": (
        "            with product_cb.wait() as p",
        "            with product_cb.wait() as q:\n                pass\n            with product_cb.wait() as p",
        "TW210",
        "gets 3 blocks",
    ),
    "effects of nothing": ("dfb_effects=[", "dfb_effects=[1,", "TW004", "dfb_effects has 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(kernels, header, case):
    old, new, code, message = WRONG[case]
    assert old in COMPUTED
    with pytest.raises(KernelError) as found:
        kernels.compile(COMPUTED.replace(old, new).replace("HEADER", header), *(np.zeros((96, 64), np.float32) for _ in range(3)))
    (first, *_) = found.value.diagnostics
    assert first.code == code and message in first.message and first.span is not None and first.help
