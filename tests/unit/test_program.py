"""What a compiled program tells about itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np


def test_program_gives_its_ir_plans_and_cost(kernels):
    source = kernels.text.elementwise({"out": "ttl.math.exp(a * b)"}, ("a", "b"), block=(2, 2))
    arrays = [np.zeros((64, 64), ml_dtypes.bfloat16) for _ in range(3)]
    program = kernels.load(source).compile(*arrays, keep_ir=True)
    assert "ttl.compute" in program.ir["convert-ttl-to-compute"]
    assert "ttkernel.exp_tile" in program.ir["convert-ttl-to-ttkernel"]
    assert [plan.allocator for plan in program.dst] == ["optimal"]
    assert program.cost == sum(part.allocation.cycles_per_tile for part in program.dst[0].parts) > 0
