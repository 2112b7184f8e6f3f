"""Words a variable of a kernel file cannot have: C++ keywords, and functions and types the file may use."""

from __future__ import annotations

from functools import cache

from tilewright.dialects import tile_ops
from tilewright.dialects.ttkernel import CALLS

CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return
co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast
else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned
using virtual void volatile wchar_t while xor xor_eq uint32_t int32_t std
"""

# Spellings of calls in newer releases, and what the top of a file uses.
API = """
kernel_main MAIN NAMESPACE compute_kernel_hw_startup copy_init add_init sub_init mul_init pack_block matmul_init
matmul_block_init transpose_init transpose_tile noc_async_read_tile noc_async_write_tile TensorAccessor TensorAccessorArgs
InterleavedAddrGenFast DataFormat SrcOrder
"""


@cache
def reserved_words() -> frozenset[str]:
    words = {*CPP.split(), *API.split(), *CALLS}
    for row in tile_ops.ROWS:
        for form in row.forms:
            for spelling in (form, *form.spellings):
                words.update(name for name in (spelling.call, spelling.init) if name)
    for op in ("add", "sub", "mul"):
        words.update((f"{op}_reuse_dest_init", f"{op}_reuse_dest_tiles"))
        words.update(f"{op}_bcast_{dim}_init" for dim in ("rows", "cols", "scalar"))
        words.update(f"{op}_tiles_bcast_{dim}_init_short" for dim in ("rows", "cols", "scalar"))
    return frozenset(words)
