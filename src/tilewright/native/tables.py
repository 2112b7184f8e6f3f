"""The 16-bit function tables a program's vector ops use, so that native and simulated runs share them.

A function of one bf16 number that has no closed algorithm is a recording of the real kernel; the recordings belong to the
simulator's numbers. Everything else is computed by the native runner on its own.
"""

from __future__ import annotations

import re

import numpy as np

from tilewright.native.kernel_unit import without_comments
from tilewright.native.program import NativeProgram
from tilewright.native.program_file import Table
from tilewright.sim.numerics import tables

_CALL = re.compile(r"\b(\w+_tile)(?:_pack)?\b")
PACK_THREAD_NAMES = {"exp_packthread_tile": "exp_tile"}


def tables_for(program: NativeProgram) -> dict[str, Table]:
    """Every recorded table of a call some compute kernel makes; none in 32-bit DST."""
    text = " ".join(without_comments(kernel.source()) for kernel in program.kernels if kernel.role == "compute")
    if program.config.fp32_dest_acc_en and "fp32_dest_acc" not in text:
        return {}
    calls = {PACK_THREAD_NAMES.get(name, name) for name in _CALL.findall(text)}
    wanted = sorted(key for key in tables.table_names() if re.split(r"[:\[]", key)[0] in calls)
    return {key: (tables.table(key) >> np.uint32(16)).astype(np.uint16) for key in wanted}
