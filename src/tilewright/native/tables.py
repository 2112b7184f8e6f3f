"""The 16-bit function tables a program's vector ops use, so that native and simulated runs share them."""

from __future__ import annotations

from tilewright.native.program import NativeProgram
from tilewright.native.program_file import Table


def tables_for(program: NativeProgram) -> dict[str, Table]:
    return {}
