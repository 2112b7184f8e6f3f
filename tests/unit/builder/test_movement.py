"""A kernel written with the builder alone, without any Python syntax: it compiles, computes, and its errors name their place."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

from tilewright.builder import blocks, functions, movement
from tilewright.builder.extents import KernelExtents
from tilewright.builder.thread import ThreadBuilder
from tilewright.compiler import compile_module
from tilewright.diagnostics import KernelError, Span
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.kernel import Build, ThreadFunction
from tilewright.lang.tensors import KernelTensor
from tilewright.options import Options
from tilewright.program import TensorSpec
from tilewright.sim.run import simulate

PLACE = Span("kernel.txt", 3, 5)
TENSORS = tuple(TensorSpec(name=name, shape=(32, 64), dtype="f32") for name in ("a", "y"))


def buffer(index, name, shape=(1, 2)):
    made = CircularBuffer(shape=shape, dtype="f32", block_count=2, index=index, span=PLACE)
    made.name = name
    return made


def thread(kind, build, extents, number):
    found = ThreadBuilder(ThreadFunction(function=thread, kind=kind, span=PLACE, title=kind), build, extents.thread(number))
    found.emitter.span = PLACE
    return found


def moved(builder, tensor, queue, *, reads):
    """One block from or to a tensor."""
    block = movement.acquire(builder, queue, "reserve" if reads else "wait")
    part = movement.emit_slice(builder, tensor, [0, 0], (1, 2))
    movement.wait(builder, movement.copy(builder, [part, block] if reads else [block, part], {}))
    movement.release_buffer(builder, queue, "push" if reads else "pop")


def test_a_kernel_from_the_builder():
    first, last = buffer(0, "a_cb"), buffer(1, "y_cb")
    build, extents = Build(grid=(1, 1), buffers=[first, last]), KernelExtents()
    tensors = [KernelTensor(spec, number) for number, spec in enumerate(TENSORS)]
    reader, compute, writer = (thread(kind, build, extents, n) for n, kind in enumerate(("noc", "compute", "noc")))
    moved(reader, tensors[0], first, reads=True)
    taken, given = movement.acquire(compute, first, "wait"), movement.acquire(compute, last, "reserve")
    value = blocks.binary(compute, "*", functions.call_function(compute, "math.exp", [taken], {}), 2.0)
    movement.store(compute, given, blocks.apply_op(compute, BY_NAME["add"], [value, taken], {}), False)
    movement.release_block(compute, taken, "pop")
    movement.release_block(compute, given, "push")
    moved(writer, tensors[1], last, reads=False)
    found = [each.finish(name, PLACE) for each, name in ((reader, "read"), (compute, "compute"), (writer, "write"))]
    found[0].attributes["ttl.role"], found[2].attributes["ttl.role"] = StringAttr("reader"), StringAttr("writer")
    program = compile_module(ModuleOp(found), name="built", grid=(1, 1), tensors=TENSORS, options=Options())
    a = np.linspace(-2, 2, 32 * 64, dtype=np.float32).reshape(32, 64)
    y = np.zeros_like(a)
    simulate(program, [a, y])
    np.testing.assert_allclose(y, 2 * np.exp(a) + a, rtol=1e-2, atol=1e-2)


def test_errors_name_the_place_that_is_written():
    first, last = buffer(0, "a_cb"), buffer(1, "y_cb", shape=(2, 2))
    builder = thread("compute", Build(grid=(1, 1), buffers=[first, last]), KernelExtents(), 0)
    taken, given = movement.acquire(builder, first, "wait"), movement.acquire(builder, last, "reserve")
    builder.emitter.span = Span("kernel.txt", 7, 1)
    with pytest.raises(KernelError) as caught:
        movement.store(builder, given, taken, False)
    (found,) = caught.value.diagnostics
    assert found.code == "TW101"
    assert (found.span.file, found.span.line) == ("kernel.txt", 7)
    assert found.notes[0].span == PLACE
