"""Which header declares which call, and in which order headers stand."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.dialects import tile_ops

STRUCTURAL = {
    "copy_tile": "tile_move_copy.h",
    "copy_tile_init": "tile_move_copy.h",
    "copy_dest_values": "copy_dest_values.h",
    "copy_dest_values_init": "copy_dest_values.h",
    "pack_tile": "pack.h",
    "pack_tile_block": "pack.h",
    "reconfig_data_format": "reconfig_data_format.h",
    "reconfig_data_format_srca": "reconfig_data_format.h",
    "reconfig_data_format_srcb": "reconfig_data_format.h",
    "pack_reconfig_data_format": "reconfig_data_format.h",
    "pack_reconfig_l1_acc": "pack.h",
    "pack_relu_config": "pack.h",
    "mm_init": "matmul.h",
    "mm_init_short": "matmul.h",
    "mm_block_init_short": "matmul.h",
    "matmul_tiles": "matmul.h",
    "matmul_block": "matmul.h",
    "reduce_init": "reduce.h",
    "reduce_tile": "reduce.h",
    "reduce_uninit": "reduce.h",
    "sfpu_reduce": "compute_kernel_api.h",
    "sfpu_reduce_init": "compute_kernel_api.h",
    "unary_bcast": "bcast.h",
    "unary_bcast_init": "bcast.h",
}

# The order of hand-written kernels: start-up, then what reaches the unpacker, the packer and the matrix unit, then vector
# functions, unary ones last. It is not taste: some vector headers open the math library's namespace in every thread, and an
# unpacker header after them finds two functions of one name (`is_32bit_input`: digamma.h before tile_move_copy.h in ttnn 0.78).
FIRST = (
    "common.h", "compute_kernel_hw_startup.h", "eltwise_unary/eltwise_unary.h",
    "tile_move_copy.h", "reconfig_data_format.h", "pack.h", "transpose.h", "transpose_wh.h",
    "bcast.h", "eltwise_binary.h", "matmul.h", "reduce.h",
)  # fmt: skip
UNARY = "eltwise_unary/"

FROM_TABLE = {name: form.header for row in tile_ops.ROWS for form in row.forms for name in (form.call, form.init) if name}
NEEDED_FIRST = {form.call: form.includes_first for row in tile_ops.ROWS for form in row.forms if form.includes_first}


def headers(calls: Iterable[str], release: tuple[int, int]) -> list[str]:
    """Include lines of a compute kernel."""
    folder = "compute_kernel_api/" if release < (0, 69) else "api/compute/"
    found: set[str] = {f"{folder}common.h"}
    for name in calls:
        header = STRUCTURAL.get(name) or FROM_TABLE.get(name) or _family(name, release)
        if header is not None:
            found.add(_path(header, folder, release))
        found.update(_path(first, folder, release) for first in NEEDED_FIRST.get(name, ()))  # its name sorts before
        if name == "init_sfpu":
            found.add(f"{folder}eltwise_unary/eltwise_unary.h" if release < (0, 78) else f"{folder}compute_kernel_hw_startup.h")
        if name == "mm_init" and release >= (0, 74):
            found.add(f"{folder}compute_kernel_hw_startup.h")
        if name == "binary_op_init_common":
            found.add(f"{folder}eltwise_binary.h" if release < (0, 77) else f"{folder}compute_kernel_hw_startup.h")
    ordered = sorted(found, key=lambda path: _place(path.removeprefix(folder)))
    return ["#include <cstdint>", "", *(f'#include "{path}"' for path in ordered)]


def _place(header: str) -> tuple[int, str]:
    if header in FIRST:
        return FIRST.index(header), header
    return len(FIRST) + header.startswith(UNARY), header


def _family(name: str, release: tuple[int, int]) -> str | None:
    if name.startswith("transpose_wh"):
        return "transpose_wh.h" if release < (0, 74) else "transpose.h"
    if name.startswith("sfpu_") and "_bcast_" in name:
        return "sfpu_binary_bcast.h"
    return "bcast.h" if "_bcast_" in name else None


def _path(header: str, folder: str, release: tuple[int, int]) -> str:
    if release < (0, 69):
        # The oldest release keeps its general header one folder up and pack in it, and names the copy header alike.
        if header == "compute_kernel_api.h":
            return "compute_kernel_api.h"
        if header == "binary_max_min.h":
            return "compute_kernel_api.h"
    return f"{folder}{header}"
