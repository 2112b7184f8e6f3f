"""Every call of the op table is declared by the header its row names."""

from __future__ import annotations

import re
import subprocess
from functools import cache

import pytest

from tilewright.dialects import tile_ops
from tilewright.native import toolchain
from tilewright.native.header_tree import INCLUDE

RELEASE = 78


@cache
def declared(header: str) -> frozenset[str]:
    """Words of a header after preprocessing."""
    text = f'#define TW_METAL {RELEASE}\n#define DST_ACCUM_MODE false\n#include "api/compute/{header}"\n'
    command = [toolchain.find_compiler().path, "-std=c++17", "-E", "-P", "-xc++", "-"]
    command += [f"-I{toolchain.include_folder(RELEASE)}", f"-I{INCLUDE}"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return frozenset(re.findall(r"\w+", result.stdout))


VECTOR_FORMS = sorted(
    {
        (form.header, name)
        for row in tile_ops.ROWS
        for form in row.forms
        if form.unit.value == "sfpu"
        for name in (form.call, form.init)
        if name
    }
)


@pytest.mark.parametrize("header", sorted({header for header, _ in VECTOR_FORMS}))
def test_vector_calls_are_declared_where_the_table_says(header: str) -> None:
    wanted = {name for other, name in VECTOR_FORMS if other == header}
    assert wanted <= declared(header), wanted - declared(header)


def test_headers_do_not_leak_into_each_other() -> None:
    assert "relu_tile" not in declared("eltwise_unary/sqrt.h")
    assert "matmul_tiles" not in declared("eltwise_binary.h")
