"""What a compilation does without: NumPy takes as long to import as small kernels take to compile."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from tilewright import ttl
from tilewright.program import TensorSpec

@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_buffer.wait() as block, out_buffer.reserve() as result:
            result.store(ttl.math.exp(block * 0.5 + block))

    @ttl.datamovement()
    def read():
        with a_buffer.reserve() as block:
            ttl.copy(a[0:1, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0:1, 0:1]).wait()

program = kernel.compile(*(TensorSpec(name=name, shape=(32, 32), dtype="bf16") for name in ("a", "out")))
assert "exp_tile" in program.cpp["compute"]
print(*sorted({"numpy", "ml_dtypes", "torch"} & set(sys.modules)))
"""


def test_a_kernel_of_tensors_without_data_needs_no_numpy(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
