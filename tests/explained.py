"""Scripts as documents and pages, for tests of both."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

from tilewright.cli import kernel_calls
from tilewright.execution import Profiling
from tilewright.explain.document import document
from tilewright.program import Program

ROOT = Path(__file__).resolve().parents[1]

# A store of a value into a block of another shape: an error with a note at another line.
WRONG = '''import numpy as np
import ttl


@ttl.operation(grid=(1, 1))
def wrong(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_dfb.wait() as left, y_dfb.reserve() as out:
            out.store(left + left)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as block:
            ttl.copy(a[0:2, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0:1, 0:2]).wait()


a = np.ones((64, 64), dtype=np.float32)
wrong(a, np.zeros((64, 64), dtype=np.float32))
'''

# Three kernels; the second is called at two lines, the third needs a buffer of the compiler's.
THREE = '''import ml_dtypes
import numpy as np
import ttl


def made(name, body):
    def kernel(a, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

        @ttl.compute()
        def compute():
            with a_dfb.wait() as x, y_dfb.reserve() as out:
                out.store(body(x))

        @ttl.datamovement()
        def read():
            with a_dfb.reserve() as block:
                ttl.copy(a[0:1, 0:1], block).wait()

        @ttl.datamovement()
        def write():
            with y_dfb.wait() as block:
                ttl.copy(block, y[0:1, 0:1]).wait()

    kernel.__name__ = name
    return ttl.operation(grid=(1, 1))(kernel)


square = made("square", lambda x: x * x)
root = made("root", lambda x: ttl.math.sqrt(x))
summed = made("summed", lambda x: ttl.block.broadcast(ttl.math.reduce_sum(x * x, dims=[0]), shape=(1, 1), dims=[0]))
a, y = (np.ones((32, 32), dtype=ml_dtypes.bfloat16) for _ in range(2))
square(a, y)
root(a, y)
summed(a, y)
root(a, y)
'''


def explained(script: Path, **options: Any) -> tuple[dict[str, Any], list[Program]]:
    """The document of a script, and the programs it is about."""
    arguments = argparse.Namespace(source=str(script), arguments=[], verbose=False, **options)
    found = kernel_calls.collect(arguments, Profiling(record=True, advise=False), keep_ir=True)
    made = document(found.kernels, script=str(script), errors=found.diagnostics, failed=found.failed)
    return made, [each.program for each in found.kernels]


@functools.cache
def example(name: str) -> tuple[dict[str, Any], list[Program]]:
    return explained(ROOT / "examples" / f"{name}.py")
