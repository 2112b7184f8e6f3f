"""Functions built by TileLang itself (``tvm.tirx.PrimFunc``) as kernels of ours."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

from tilewright.lang.tilelang_kernel import TileLangKernel
from tilewright.lang.tilelang_language import language
from tilewright.lang.tilelang_types import Dimension

_numbers = itertools.count(1)


def is_prim_func(value: Any) -> bool:
    """By its parts, so that TVM is not imported."""
    return all(hasattr(value, part) for part in ("params", "buffer_map", "body", "attrs"))


def prim_func_of(value: Any) -> Any:
    """The function inside what TileLang's own ``jit`` or ``compile`` gives, or ``value`` itself; None if there is none."""
    inner = getattr(value, "prim_func", None)
    return next((one for one in (value, inner) if is_prim_func(one)), None)


def imported(function: Any) -> TileLangKernel:
    """The kernel, from source text written for it; the text stands in linecache like a file."""
    from tilewright.frontend.tilelang.prim_func_text import text_of

    written = text_of(function)
    file = f"<PrimFunc {written.name} {next(_numbers)}>"
    linecache.cache[file] = (len(written.text), None, written.text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"T": language, **{name: Dimension(name) for name in written.dimensions}}
    exec(compile(written.text, file, "exec"), scope)
    kernel = scope[written.name]
    assert isinstance(kernel, TileLangKernel)
    return kernel
