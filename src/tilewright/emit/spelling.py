"""How each kernel call is written in each ttnn release: one table, read off the headers of the releases.

A call that is not listed is written as it is named. A listed one has spellings with the first release they hold for. Operands
arrive as C++ text in the order of the canonical (oldest) call.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.records import record


@record
class Written:
    """A call about to be written."""

    name: str
    arguments: tuple[str, ...]
    template: tuple[str, ...]
    dst_format: str = ""  # DataFormat of a DST datum
    shape: tuple[str, ...] = ()  # transpose, ct, rt, kt of a matmul


Spelling = Callable[[Written], str]


def plain(name: str) -> Spelling:
    def spell(call: Written) -> str:
        template = f"<{', '.join(call.template)}>" if call.template else ""
        return f"{name}{template}({', '.join(call.arguments)})"

    return spell


def _swapped(call: Written) -> str:
    return f"{call.name}({call.arguments[1]}, {call.arguments[0]})"


def _copy_dest_typed(call: Written) -> str:
    return f"copy_dest_values<{call.dst_format}>({call.arguments[1]}, {call.arguments[0]})"


def _reuse(suffix: str) -> Spelling:
    def spell(call: Written) -> str:
        op = call.template[0].removeprefix("EltwiseBinaryType::ELW").lower()
        return f"{op}_reuse_dest_{suffix}<{call.template[1]}>({', '.join(call.arguments)})"

    return spell


def _pack_tile(call: Written) -> str:
    out_of_order = "true" in call.template
    if out_of_order:
        return f"pack_tile<true>({', '.join(call.arguments)})"
    return f"pack_tile({', '.join(call.arguments[:2])})"


def _pack_tile_old(call: Written) -> str:
    return f"pack_tile<{'true' if 'true' in call.template else 'false'}>({', '.join(call.arguments)})"


def _bcast_init(call: Written) -> str:
    """Scalar broadcasts of two ops are named differently in old releases."""
    name = call.name
    if name in ("sub_bcast_scalar_init_short", "mul_bcast_scalar_init_short"):
        name = name.replace("_bcast_", "_tiles_bcast_")
    return plain(name)(call)


def _matmul(name: str, *shape: int) -> Spelling:
    """A matmul call with the entries of its shape the release wants."""

    def spell(call: Written) -> str:
        words = (*call.arguments, *(call.shape[entry] for entry in shape))
        return f"{name}({', '.join(words)})"

    return spell


def _startup_reverse(call: Written) -> str:
    return f"compute_kernel_hw_startup<SrcOrder::Reverse>({', '.join(call.arguments)})"


def _bcast_init_old(call: Written) -> str:
    """Old releases also want the output buffer; only its format is looked at, which the input's stands for."""
    return plain(call.name)(Written(call.name, (call.arguments[0], call.arguments[0]), call.template))


SPELLINGS: dict[str, tuple[tuple[tuple[int, int], Spelling], ...]] = {
    "init_sfpu": (((0, 62), plain("init_sfpu")), ((0, 78), plain("compute_kernel_hw_startup"))),
    "binary_op_init_common": (((0, 62), plain("binary_op_init_common")), ((0, 77), plain("compute_kernel_hw_startup"))),
    "copy_tile_init": (((0, 62), plain("copy_tile_init")), ((0, 78), plain("copy_init"))),
    "add_tiles_init": (((0, 62), plain("add_tiles_init")), ((0, 77), plain("add_init"))),
    "sub_tiles_init": (((0, 62), plain("sub_tiles_init")), ((0, 77), plain("sub_init"))),
    "mul_tiles_init": (((0, 62), plain("mul_tiles_init")), ((0, 77), plain("mul_init"))),
    "binary_dest_reuse_tiles_init": (((0, 62), plain("binary_dest_reuse_tiles_init")), ((0, 77), _reuse("init"))),
    "binary_dest_reuse_tiles": (((0, 62), plain("binary_dest_reuse_tiles")), ((0, 77), _reuse("tiles"))),
    "copy_dest_values": (((0, 62), plain("copy_dest_values")), ((0, 69), _swapped), ((0, 78), _copy_dest_typed)),
    "pack_tile": (((0, 62), _pack_tile_old), ((0, 69), _pack_tile)),
    "pack_tile_block": (((0, 62), plain("pack_tile_block")), ((0, 76), plain("pack_block"))),
    "mm_init": (((0, 62), plain("mm_init")), ((0, 74), _startup_reverse)),
    "mm_init_short": (((0, 62), _matmul("mm_init_short", 0)), ((0, 74), _matmul("matmul_init", 0))),
    "mm_block_init_short": (
        ((0, 62), _matmul("mm_block_init_short", 0, 1, 2, 3)),
        ((0, 74), _matmul("matmul_block_init", 0, 1, 2, 3)),
    ),
    "matmul_tiles": (((0, 62), _matmul("matmul_tiles", 0)), ((0, 74), _matmul("matmul_tiles"))),
    "matmul_block": (((0, 62), _matmul("matmul_block", 0, 1, 2, 3)),),
    "transpose_wh_init_short": (((0, 62), plain("transpose_wh_init_short")), ((0, 74), plain("transpose_init"))),
    "transpose_wh_tile": (((0, 62), plain("transpose_wh_tile")), ((0, 74), plain("transpose_tile"))),
    "unary_bcast_init": (((0, 62), _bcast_init_old), ((0, 78), plain("unary_bcast_init"))),
    **{
        f"{op}_bcast_{dim}_init_short": (((0, 62), _bcast_init), ((0, 77), plain(f"{op}_bcast_{dim}_init")))
        for op in ("add", "sub", "mul")
        for dim in ("rows", "cols", "scalar")
    },
    "noc_async_read_page": (((0, 62), plain("noc_async_read_tile")), ((0, 69), plain("noc_async_read_page"))),
    "noc_async_write_page": (((0, 62), plain("noc_async_write_tile")), ((0, 69), plain("noc_async_write_page"))),
}


def spell(call: Written, release: tuple[int, int]) -> str:
    """C++ text of a call, without the semicolon."""
    chosen: Spelling = plain(call.name)
    for since, spelling in SPELLINGS.get(call.name, ()):
        if since <= release:
            chosen = spelling
    return chosen(call)
