"""The same source through the installed tilelang and through Tilewright's own reader.

    python tests/tilelang_real/check_same_program.py [WORD…]

Every typed example and every kernel of ``kernels.py`` (or those with a word in their name): tilelang builds its PrimFunc, which
Tilewright imports; Tilewright reads the source without tilelang. Both must be the same tile program, line for line, and give the
same bits on the same random tensors, in the simulator, values only, and from the compiled C++.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "tilelang"
MODES = ("fast", "sim", "native")
OTHER_ORDER = ("persistent_blocks",)  # tilelang takes the blocks in an order that is good for caches: only the numbers are the same
# What each example's kernels are built with; 01 and 02 are the specification's own text, which no tilelang accepts.
EXAMPLE_CASES: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    "03_gemm_bias_relu": [("gemm_bias_relu", (256, 256, 128))],
    "04_row_softmax": [("row_softmax", (128, 256))],
    "05_online_softmax": [("online_softmax", (128, 256))],
    "06_normalisation": [("rms_norm", (128, 256)), ("layer_norm", (128, 256))],
    "07_flash_attention": [("flash_attention", (1, 2, 256, 64, False)), ("flash_attention", (1, 2, 256, 64, True))],
    "08_linear_attention": [("linear_attention", (1, 2, 256, 64))],
    "09_dynamic_rows": [("gemm", (128, 96))],
    "10_retention": [("retention", (1, 2, 256, 64, 0.9))],
    "11_convolution": [("convolution", (2, 12, 12, 32, 64))],
    "12_split_sums": [("split_product", (64, 64, 512, 8))],
}


def loaded(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pairs(words: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Name, tilelang's PrimFunc, our kernel."""
    from tilewright.standins import finder

    files = [(EXAMPLES / f"{stem}.py", [(n, a, {}) for n, a in cases]) for stem, cases in EXAMPLE_CASES.items()]
    kernels = loaded(HERE / "kernels.py", "kernels")
    files.append((HERE / "kernels.py", [(name, (), named) for name, named in kernels.CASES]))
    for path, cases in files:
        theirs = loaded(path, f"theirs_{path.stem}")
        with finder.installed(("tilelang",)):
            ours = loaded(path, f"ours_{path.stem}")
        for name, args, named in cases:
            if words and not any(word in name for word in words):
                continue
            text = ", ".join([*map(str, args), *(f"{key}={value}" for key, value in named.items())])
            yield f"{name}({text})", _prim_func(getattr(theirs, name), args, named), _own(getattr(ours, name), args, named)


def _prim_func(factory: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return factory.get_tir(*args, **named) if hasattr(factory, "get_tir") else factory(*args, **named)


def _own(factory: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    from tilewright.jit.tilelang_kernel import EagerKernel

    return factory.compile(**named) if isinstance(factory, EagerKernel) else factory(*args, **named)


def arguments(prim_func: Any) -> list[Any]:
    """Random tensors for every parameter; sizes that the call decides are 100."""
    import ml_dtypes

    rng = np.random.default_rng(1)
    kinds = {"bfloat16": ml_dtypes.bfloat16}
    result: list[Any] = []
    for parameter in prim_func.params:
        buffer = prim_func.buffer_map[parameter]
        shape = [int(size) if type(size).__name__ == "IntImm" else 100 for size in buffer.shape]
        kind = kinds.get(str(buffer.dtype)) or np.dtype(str(buffer.dtype))
        result.append(rng.uniform(-1, 1, shape).astype(kind))
    return result


def without_copies(text: str) -> str:
    """tilelang copies a shared buffer to a fragment of its own before it reduces it: ``x_frag = x``."""
    for name, source in re.findall(r"^ *(\w+_frag)\[[^]]*\] \w+ = (\w+)$", text, re.MULTILINE):
        text = re.sub(rf"^ *{name}\[[^]]*\] \w+ = {source}\n", "", text, flags=re.MULTILINE)
        text = re.sub(rf"\b{name}\b", source, text)
    return text


def problem(prim_func: Any, own: Any, same_text: bool) -> str:
    """Why the two differ; empty if they do not."""
    from tilewright import execution, tilelang
    from tilewright.frontend.tilelang.tile_program import listing
    from tilewright.lang.tilelang_tensors import UNDECLARED

    imported = tilelang.compile(prim_func)
    given = arguments(prim_func)
    inputs = (
        given if own.types else given[: sum(value is UNDECLARED for value in own.bind((), {}))]
    )  # eager kernels create outputs
    texts = [listing(kernel.build(*tensors).tile_program) for kernel, tensors in ((own, inputs), (imported, given))]
    ours, theirs = ([line for line in without_copies(text).splitlines()[1:] if "tensor " not in line] for text in texts)
    if same_text and ours != theirs:
        return "\n".join(difflib.unified_diff(ours, theirs, "source", "PrimFunc", lineterm=""))
    for mode in MODES:
        with execution.session(mode=mode):
            first, second = ([each.copy() for each in given] for _ in range(2))
            returned = own(*first[: len(inputs)])
            imported(*second)
            results = [*first[: len(inputs)], *([returned] if len(inputs) < len(given) else [])]
            if any(a.tobytes() != b.tobytes() for a, b in zip(results, second, strict=True)):
                return f"{mode}: different numbers"
            if all(np.array_equal(a, b) for a, b in zip(second, given, strict=True)):
                return f"{mode}: nothing was computed"
    return ""


def main(words: list[str]) -> int:
    os.environ.setdefault("TILELANG_CACHE_DIR", tempfile.mkdtemp(prefix="tilelang"))
    import tilelang as real

    count = failed = 0
    for name, prim_func, own in pairs(words):
        found = problem(prim_func, own, not name.startswith(OTHER_ORDER))
        count, failed = count + 1, failed + bool(found)
        print(f"{name}: {found or 'same'}", flush=True)
    print(f"tilelang {real.__version__}: {count} kernels, {failed} differ")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
