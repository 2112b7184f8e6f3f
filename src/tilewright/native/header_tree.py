"""The include tree a kernel of one release sees: every public header path, as a thin file over ``include/tw``.

The files are generated, so that 130 paths times every spelling stay one table.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tilewright.native.vector_families import FAMILIES, NEW_FAMILIES, OLD_FAMILIES, SPECIAL, macro_lines

INCLUDE = Path(__file__).parent / "include"

FIRST_NEW_PATHS = 69  # from 0.69 on: api/compute/ instead of compute_kernel_api/
FIRST_TRANSPOSE = 74  # from 0.74 on: transpose.h instead of transpose_wh.h

BASE = "tw/compute/base.h"
VECTOR = "tw/compute/vector_special.h"
DATAFLOW = "tw/dataflow/api.h"

# Header below the compute root -> the file of ours that has its functions.
COMPUTE_HEADERS = {
    "common.h": BASE,
    "common_globals.h": BASE,
    "blank.h": BASE,
    "cb_api.h": BASE,
    "reg_api.h": BASE,
    "pack.h": BASE,
    "reconfig_data_format.h": BASE,
    "compute_kernel_hw_startup.h": BASE,
    "eltwise_unary/sfpu_split_includes.h": BASE,
    "tile_move_copy.h": "tw/compute/move.h",
    "eltwise_unary/eltwise_unary.h": "tw/compute/unary_start.h",
    "eltwise_binary.h": "tw/compute/binary.h",
    "bcast.h": "tw/compute/bcast.h",
    "matmul.h": "tw/compute/matmul.h",
    "reduce.h": "tw/compute/reduce.h",
    "reduce_custom.h": "tw/compute/reduce.h",
}
OLD_COMPUTE_HEADERS = {
    "transpose_wh.h": "tw/compute/transpose.h",
    "transpose_wh_dest.h": "tw/compute/transpose.h",
}
NEW_COMPUTE_HEADERS = {
    "transpose.h": "tw/compute/transpose.h",
    "transpose_dest.h": "tw/compute/transpose.h",
}
OLD_PATHS = {
    "dataflow_api.h": DATAFLOW,
    "accessor/tensor_accessor.h": DATAFLOW,
    "debug/dprint.h": "tw/kernel_args.h",
}
NEW_PATHS = {
    "api/dataflow/dataflow_api.h": DATAFLOW,
    "api/dataflow/noc.h": "tw/dataflow/objects.h",
    "api/dataflow/endpoints.h": "tw/dataflow/objects.h",
    "api/dataflow/noc_semaphore.h": "tw/dataflow/objects.h",
    "api/semaphore.h": "tw/dataflow/objects.h",
    "api/core_local_mem.h": "tw/dataflow/objects.h",
    "api/dataflow/circular_buffer.h": "tw/dataflow/circular_buffer.h",
    "api/dataflow/dataflow_buffer.h": "tw/dataflow/circular_buffer.h",
    "experimental/kernel_args.h": "tw/named_args.h",
    "api/tensor/tensor_accessor.h": DATAFLOW,
    "api/tensor/tensor_accessor_args.h": DATAFLOW,
    "api/tensor/noc_traits.h": "tw/dataflow/objects.h",
    "api/compile_time_args.h": "tw/kernel_args.h",
    "api/debug/dprint.h": "tw/kernel_args.h",
}
ALL_PATHS = {"hostdevcommon/kernel_structs.h": "tw/types.h"}
FIRST_FORMATTED_PRINT = 78  # from 0.78 on: DPRINT("{}", x) instead of DPRINT << x


def _forward(target: str) -> str:
    return f'#pragma once\n#include "{target}"\n'


def _vector_header(name: str, release: int) -> str:
    dated = OLD_FAMILIES if release < FIRST_NEW_PATHS else NEW_FAMILIES
    families = FAMILIES[name] + "; " + dated.get(name, "")
    lines = "\n".join(macro_lines(families))
    return f'#pragma once\n#include "{VECTOR}"\nnamespace ckernel {{\n{lines}\n}}\n'


def header_files(release: int) -> dict[str, str]:
    """Path -> text of every header a kernel may include."""
    root = "compute_kernel_api/" if release < FIRST_NEW_PATHS else "api/compute/"
    moved = OLD_COMPUTE_HEADERS if release < FIRST_TRANSPOSE else NEW_COMPUTE_HEADERS
    files = {root + name: _forward(target) for name, target in {**COMPUTE_HEADERS, **moved}.items()}
    files |= {root + name: _forward(VECTOR) for name in SPECIAL}
    files |= {root + name: _vector_header(name, release) for name in FAMILIES}
    paths = {**ALL_PATHS, **(OLD_PATHS if release < FIRST_NEW_PATHS else NEW_PATHS)}
    files |= {path: _forward(target) for path, target in paths.items()}
    if release >= FIRST_FORMATTED_PRINT:
        files |= {f"api/debug/{name}": _forward("tw/debug.h") for name in ("dprint.h", "dprint_tile.h", "device_print.h")}
    if release < FIRST_NEW_PATHS:
        files["compute_kernel_api.h"] = _forward(root + "compute_kernel_api.h")
    return files


def tree_digest(release: int) -> str:
    """Changes whenever a header a kernel can see changes."""
    digest = hashlib.sha256()
    for path in sorted(INCLUDE.rglob("*.h")):
        digest.update(path.relative_to(INCLUDE).as_posix().encode() + b"\0" + path.read_bytes())
    for name, text in sorted(header_files(release).items()):
        digest.update(f"{name}\0{text}".encode())
    return digest.hexdigest()[:16]


def write_tree(release: int, folder: Path) -> None:
    for name, text in header_files(release).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
