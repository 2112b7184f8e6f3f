"""Runs every mutant of a kernel's emitted text natively: which of them does nothing notice?

A mutant is noticed if the run reports something or a tensor differs from that of the right text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.native.compiled import native_program, to_face_order
from tilewright.native.driver import NativeProgram, NativeResult, run_native
from tilewright.sim.exact_arithmetic import ExactArithmetic

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
SECONDS = 20
ROW = "ttl.math.broadcast({}, dims=[1], shape=(1, 2))"
SOFTMAX = f"""e = ttl.math.exp(xb - {ROW.format("ttl.math.reduce_max(xb, dims=[1])")})
o0.store(e * {ROW.format("ttl.math.recip(ttl.math.reduce_sum(e, dims=[1]))")})"""
THREE = {"a": (1, 2), "b": (1, 2), "c": (1, 2)}

# name: inputs and outputs in tiles, body, what else a kernel of the corpus has
KERNELS: dict[str, tuple[dict[str, tuple[int, int]], tuple[tuple[int, int], ...], str, dict[str, Any]]] = {
    "fused": (THREE, ((1, 2),), "o0.store(ttl.math.exp(ab * bb) + cb)", {}),
    "softmax": ({"x": (1, 2)}, ((1, 2),), SOFTMAX, {}),
    "dense layer": ({"a": (2, 2), "b": (2, 2), "c": (2, 2)}, ((2, 2),), "o0.store(ttl.math.relu(ab @ bb + cb))", {}),
    "float32": (
        {"a": (1, 2), "b": (1, 1)}, ((1, 2),), f"o0.store(ttl.math.sqrt(ttl.math.abs(ab)) - {ROW.format('bb')})", {"dtype": "f32"},
    ),
}  # fmt: skip
MORE_KERNELS: dict[str, tuple[dict[str, tuple[int, int]], tuple[tuple[int, int], ...], str, dict[str, Any]]] = {
    "two outputs, two cores": (
        THREE, ((1, 2), (1, 2)), "m = ab * bb\no0.store(ttl.math.abs(m))\no1.store(m + cb)", {"grid": (2, 1)},
    ),
    "sum in the output": ({"a": (1, 2), "b": (1, 2)}, ((1, 2),), "o0.store(ab)\no0 += bb", {}),
    "transpose": ({"a": (2, 1)}, ((1, 2),), "o0.store(ttl.math.transpose(ttl.math.exp(ab)))", {}),
    "value used twice": (THREE, ((1, 2),), "m = ttl.math.exp(ab)\no0.store((m + cb) * ttl.math.abs(m) - ttl.math.sqrt(m))", {}),
    "attention": (
        {"q": (1, 2), "k": (2, 2), "v": (2, 1)}, ((1, 1),),
        f"e = ttl.math.exp((qb @ kb) * 0.125)\no0.store((e * {ROW.format('ttl.math.recip(ttl.math.reduce_sum(e, dims=[1]))')}) @ vb)", {},
    ),
    "old release": (THREE, ((1, 2),), "o0.store(ttl.math.exp(ab * bb) + cb)", {"options": (("metal", "0.69"),)}),
}  # fmt: skip

# Mutants that nothing notices because nothing is different: kernel, role and line of code, reason.
EQUAL = {
    ("softmax", "compute", "cb_pop_front(ones_bf16, 1);"): "the last line: nobody asks the buffer for more",
    ("dense layer", "compute", "pack_relu_config(ReluConfig::none());"): "nothing is packed behind it; it is for the next kernel",
    ("attention", "compute", "cb_pop_front(ones_bf16, 1);"): "the last line: nobody asks the buffer for more",
    ("value used twice", "compute", "cb_wait_front(spill_4, 2);"): "these tiles were waited for before, the count is the same",
    ("value used twice", "compute", "abs_tile(tile);"): "of an exponential, which is positive",
    ("value used twice", "reader", "noc_async_read_page(turn * 2 + col, t1, b_cb_l1 + col * 2048);"): "nobody computes with this input",
}


def prepared(program: Any, tensors: Sequence[tuple[tuple[int, ...], str]]) -> NativeProgram:
    """A compiled program with random data. Negative numbers too, or abs and relu would do nothing."""
    generator = np.random.default_rng(1)
    arrays = [generator.uniform(-2.0, 2.0, shape).astype(DTYPES[dtype]) for shape, dtype in tensors]
    arithmetic = ExactArithmetic(program.config, program.options.arch)
    pages = [arithmetic.pages(spec, array) for spec, array in zip(program.tensors, arrays, strict=True)]
    return native_program(program, [to_face_order(page) for page in pages], {})


def noticed(result: NativeResult, right: NativeResult) -> bool:
    return bool(result.findings) or any(np.any(result.outputs[name] != data) for name, data in right.outputs.items())


def mutant_results(program: NativeProgram, mutants: Any, at_most: int = 0) -> Iterator[tuple[Any, bool]]:
    """Mutants of every file, all or some, and whether each was noticed. ``mutants`` is the module ``text_mutants``."""
    right = run_native(program, seconds=SECONDS)
    assert right.findings == ()
    try:
        for place, kernel in enumerate(program.kernels):
            found = evenly(list(mutants.mutants_of(kernel.role, kernel.text)), at_most)
            if not found:
                continue
            file = replace(kernel, text=mutants.together([mutant.applied(kernel.text) for mutant in found]))
            changed = replace(program, kernels=[*program.kernels[:place], file, *program.kernels[place + 1 :]])
            for number, mutant in enumerate(found):
                os.environ[mutants.CHOICE] = str(number)
                yield mutant, any(noticed(run_native(changed, seconds=SECONDS), right) for _ in schedules())
    finally:
        os.environ.pop(mutants.CHOICE, None)


def schedules() -> Iterator[str]:
    """Orders in which threads may go on: a wait that is over too early may show in one only."""
    try:
        for schedule in ("", "first first", "last first"):
            os.environ["TILEWRIGHT_SCHEDULE"] = schedule
            yield schedule
    finally:
        os.environ.pop("TILEWRIGHT_SCHEDULE", None)


def evenly(mutants: list[Any], at_most: int) -> list[Any]:
    """As many as wanted, from everywhere in the file; 0: all."""
    if not at_most or len(mutants) <= at_most:
        return mutants
    return [mutants[place * len(mutants) // at_most] for place in range(at_most)]


def is_equal(kernel: str, mutant: Any) -> bool:
    return (kernel, mutant.role, mutant.before.split("//")[0].strip()) in EQUAL


def corpus_kernel(name: str, make: Callable[..., Any]) -> Any:
    """``make`` is ``kernel_corpus.CorpusKernel``. Two rounds, so that state of the first reaches the second."""
    inputs, outputs, body, more = {**KERNELS, **MORE_KERNELS}[name]
    return make(name=name, inputs=tuple(inputs.items()), outputs=outputs, body=body, blocks=2, **more)
