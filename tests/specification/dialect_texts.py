"""What tests of ``ttl-compute-operations.md`` share: its listings made whole, and texts of the forms it only describes."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import documents
import numpy as np
import pytest
from text_programs import block, buffer, compiled, program, run, tile, values, zeros

from tilewright.diagnostics import KernelError

DOCUMENT = "ttl-compute-operations.md"


def spec(section: str, item: str, **more: Any) -> Any:
    return pytest.mark.spec(document=DOCUMENT, section=section, item=item, **more)


def wide(array: Any) -> Any:
    return array.astype(np.float64)


def relative(found: Any, wanted: Any) -> float:
    return float(np.abs(wide(found) - wanted).max() / np.abs(wanted).max())


def refused(text: str, folder: Path, code: str, line: str, message: str, **options: Any) -> None:
    """``text`` is refused with this code, at the line that contains ``line``."""
    with pytest.raises(KernelError, match=message) as caught:
        compiled(text, folder, **options)
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert found.span is not None and line in text.splitlines()[found.span.line - 1]


# Listings -------------------------------------------------------------------------------------------------------------------------
# What they leave out is added: the % of names, MLIR's comments, types, a store. Nothing that stands there is changed.


def dense_layer(listing: str) -> str:
    """4.4.1, listing 1. Its first line has names without %."""
    text = re.sub(r"^# ", "// ", listing, flags=re.MULTILINE)
    return re.sub(r"(?<![%\w.])(result|\w+_blk)\b", r"%\1", text)


def attention(listing: str) -> str:
    """4.4.1, listing 2: the example of ttl.compute_region. Its ones come from outside; a region takes what it reads as an input."""
    text = _from(listing, "%result = ttl.compute_region", "{keep_in_dst = true}").replace(" : ...", "")
    text = text.replace("%scale)", "%scale, %ones)").replace("%scale_blk)", "%scale_blk, %ones_blk)")
    return text.replace("%exp_s, %ones\n", "%exp_s, %ones_blk\n")


def register(listing: str) -> str:
    """4.4.5, listing 1: the example of ttl.acquire_dst at the level of blocks, with a store."""
    return _from(listing, "%dst0 = ttl.acquire_dst", "ttl.release_dst %dst0") + "\nttl.block_store %o, %result\n"


def chain(listing: str) -> str:
    """5.6.1, listing 1, with MLIR's comments and a store."""
    return listing.replace("# ", "// ") + "ttl.block_store %out, %result3\n"


def region_and_generic(listing: str) -> tuple[str, str]:
    """5.6.4, listing 1: input and output of phase 1."""
    region, mark, generic = listing.partition("// Output")
    return region, mark + generic


def _from(text: str, first: str, last: str) -> str:
    start = text.rindex("\n", 0, text.index(first)) + 1
    return textwrap.dedent(text[start : text.index(last, start) + len(last)])


def kept(section: str, number: int) -> str:
    return documents.listing(DOCUMENT, section, number)


REGISTER = register(kept("4.4.5", 1))
GENERIC = region_and_generic(kept("5.6.4", 1))[1]

# Forms that the document describes ----------------------------------------------------------------------------------------------


ADD = "%s = ttl.block_add %a, %b\nttl.block_store %o, %s"
PAIR = {"a": (2, 2), "b": (2, 2)}


def added(folder: Path, text: str | None = None, **options: Any) -> Any:
    arrays = [values((2, 2), seed=1), values((2, 2), seed=2), zeros((2, 2))]
    made = run(text or program(ADD, PAIR, {"o": (2, 2)}), arrays, folder, **options)
    assert np.array_equal(arrays[2], arrays[0] + arrays[1])
    return made


ROW_MAJOR = """
ttl.kernel attributes {{grid = [1, 1], tiled = false}} {{
^bb0(%x: tensor<128x64x{scalar}>, %y: tensor<128x64x{scalar}>):
  %in = ttl.create_cb {{shape = [64, 32], element_type = {scalar}, buffer_factor = 2}} : !ttl.cb<[64, 32], {scalar}, 2>
  %out = ttl.create_cb {{shape = [64, 32], element_type = {scalar}, buffer_factor = 2}} : !ttl.cb<[64, 32], {scalar}, 2>
  %xs = ttl.tensor_accessor %x : tensor<128x64x{scalar}> -> !ttl.accessor<[128, 64], {scalar}, "dram">
  %ys = ttl.tensor_accessor %y
  ttl.compute_thread {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    scf.for %i = %zero to %two step %one {{
      scf.for %j = %zero to %two step %one {{
        %a = ttl.cb_wait %in : !ttl.cb<[64, 32], {scalar}, 2> -> tensor<64x32x{scalar}>
        %o = ttl.cb_reserve %out
        %r = ttl.abs %a : tensor<64x32x{scalar}> -> tensor<64x32x{scalar}>
        ttl.store %r, %o
        ttl.cb_pop %a
        ttl.cb_push %o
      }}
    }}
  }}
  ttl.datamovement_thread {{
{reader}
  }}
  ttl.datamovement_thread {{
{writer}
  }}
}}
"""


def by_rows(scalar: str) -> str:
    kind, part = f'!ttl.accessor<[128, 64], {scalar}, "dram">', f'!ttl.slice<[64, 32], {scalar}, "dram">'

    def mover(acquire: str, release: str, queue: str, accessor: str, ends: str) -> str:
        return f"""
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %rows = arith.constant 64 : index
    %columns = arith.constant 32 : index
    scf.for %i = %zero to %two step %one {{
      scf.for %j = %zero to %two step %one {{
        %row = arith.muli %i, %rows : index
        %column = arith.muli %j, %columns : index
        %s = ttl.tensor_slice %{accessor}, %row, %column : {kind}, index, index -> {part}
        %b = ttl.{acquire} %{queue}
        %t = ttl.copy {ends}
        ttl.wait %t
        ttl.{release} %b
      }}
    }}"""

    reader = mover("cb_reserve", "cb_push", "in", "xs", "%s, %b")
    return ROW_MAJOR.format(scalar=scalar, reader=reader, writer=mover("cb_wait", "cb_pop", "out", "ys", "%b, %s"))


PIPE = """
ttl.program attributes {{grid = [4, 1]}} {{
^bb0(%x: {block}, %y: {tall}):
  %in = ttl.create_cb shape=[1,1], element_type={tile}, buffer_factor=2
  %out = ttl.create_cb shape=[1,1], element_type={tile}, buffer_factor=2
  %pipe = {pipe}
  ttl.compute_thread {{
    %a = ttl.cb_wait %in
    %o = ttl.cb_reserve %out
    %s = ttl.block_add %a, %a
    ttl.block_store %o, %s
    ttl.cb_pop %a
    ttl.cb_push %o
  }}
  ttl.datamovement_thread {{
    %xs = ttl.tensor_accessor %x
    %zero = arith.constant 0 : index
    %n = ttl.core_linear
    %first = arith.cmpi eq, %n, %zero : index
    %guard = arith.cmpi slt, %n, %reach : index
    %b = ttl.cb_reserve %in
    scf.if %first {{
      %part = ttl.tensor_slice %xs, %zero, %zero : !ttl.accessor<[1, 1], {tile}, "dram">, index, index -> !ttl.slice<[1, 1], {tile}, "dram">
      %t = ttl.copy %part, %b
      ttl.wait %t
      %u = ttl.copy %b, %pipe
      ttl.wait %u
    }} else {{
      {receive}
    }}
    ttl.cb_push %b
  }}
  ttl.datamovement_thread {{
    %ys = ttl.tensor_accessor %y
    %b = ttl.cb_wait %out
    %part = ttl.grid_slice %ys {{block_factors = [1, 1]}}
    %t = ttl.copy %b, %part
    ttl.wait %t
    ttl.cb_pop %b
  }}
}}
"""
RECEIVE = "%v = ttl.copy %pipe, %b\n      ttl.wait %v"


def piped(pipe: str) -> str:
    text = PIPE.format(block=block((1, 1), "f32"), tall=block((4, 1), "f32"), tile=tile("f32"), pipe=pipe, receive=RECEIVE)
    return text.replace("    %guard = arith.cmpi slt, %n, %reach : index\n", "")


SEMAPHORE = f"""
ttl.program attributes {{{{grid = [2, 1]}}}} {{{{
^bb0(%x: {block((1, 1), "f32")}, %y: {block((1, 1), "f32")}):
  %in = ttl.create_cb shape=[1,1], element_type={tile("f32")}, buffer_factor=2
  %go = ttl.create_semaphore {{{{initial_value = {{initial}} : i32, is_remote = {{remote}}}}}}
  ttl.datamovement_thread {{{{
    %xs = ttl.tensor_accessor %x
    %ys = ttl.tensor_accessor %y
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = ttl.core_linear
    %first = arith.cmpi eq, %n, %zero : index
    scf.if %first {{{{
      {{signal}}
    }}}} else {{{{
      ttl.semaphore_wait %go, %one
      %b = ttl.cb_reserve %in
      %part = ttl.tensor_slice %xs, %zero, %zero : !ttl.accessor<[1, 1], {tile("f32")}, "dram">, index, index -> !ttl.slice<[1, 1], {tile("f32")}, "dram">
      %t = ttl.copy %part, %b
      ttl.wait %t
      ttl.cb_push %b
    }}}}
  }}}}
  ttl.datamovement_thread {{{{
    %ys = ttl.tensor_accessor %y
    %zero = arith.constant 0 : index
    %n = ttl.core_linear
    %second = arith.cmpi ne, %n, %zero : index
    scf.if %second {{{{
      %b = ttl.cb_wait %in
      %part = ttl.tensor_slice %ys, %zero, %zero : !ttl.accessor<[1, 1], {tile("f32")}, "dram">, index, index -> !ttl.slice<[1, 1], {tile("f32")}, "dram">
      %t = ttl.copy %b, %part
      ttl.wait %t
      ttl.cb_pop %b
    }}}}
  }}}}
}}}}
"""
SIGNALS = {
    "unicast": "%r = ttl.get_remote_semaphore %go {core = [1, 0]} : !ttl.semaphore -> !ttl.semaphore\n      ttl.semaphore_inc %r, %one",
    "range": "%r = ttl.get_remote_multicast_semaphore %go {core_range = [#ttl.slice<1,2,1>, #ttl.slice<0,1,1>]} : !ttl.semaphore -> !ttl.semaphore\n      ttl.semaphore_set %r, %one",
    "grid": "%r = ttl.get_remote_multicast_semaphore %go : !ttl.semaphore -> !ttl.semaphore\n      ttl.semaphore_set %r, %one",
}


TILES = """
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%four = arith.constant 4 : index
scf.for %i = %zero to %four step %one {{
  {acquire}
  %t = ttl.get_tile %a_cb, %i
  %u = ttl.get_tile %b_cb, %i
  %s = ttl.tile_add %t, %u
  %e = ttl.tile_exp %s {{dst_idx = {register} : i32}}
  ttl.pack_tile %d, %o_cb, %i
}}
"""


SPILL = """
%result = ttl.compute ins(%a, %b : {block}, {block}) outs(%o : {block})
  {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
   iterator_types = ["parallel", "parallel"]}} {{
^bb0(%ta: {tile}, %tb: {tile}, %to: {tile}):
  %t_result = ttl.tile_add %ta, %tb
  {spill}
  %t_next = ttl.tile_mul %ta, %tb
  %restored = ttl.restore_tile_from_l1 %spilled
  %sum = ttl.tile_sub %restored, %t_next
  ttl.yield %sum : {tile}
}}
"""
SPILLS = {
    "a number": "%spilled = ttl.spill_tile_to_l1 %t_result, 0",
    "a constant": "%r = arith.constant 2 : index\n  %spilled = ttl.spill_tile_to_l1 %t_result, %r",
    "no register": "%spilled = ttl.spill_tile_to_l1 %t_result",
}


PLACES = """
ttl.program attributes {{grid = [{grid}]}} {{
^bb0(%x: {tensor}, %y: {tensor}):
  %pass = ttl.create_cb shape=[1,1], element_type={tile}, buffer_factor=2
  ttl.datamovement_thread {{
    %xs = ttl.tensor_accessor %x
    %zero = arith.constant 0 : index
    {place}
    %part = ttl.tensor_slice %xs, %row, %zero : !ttl.accessor<[{cores}, 1], {tile}, "dram">, index, index -> !ttl.slice<[1, 1], {tile}, "dram">
    %b = ttl.cb_reserve %pass
    %t = ttl.copy %part, %b
    ttl.wait %t
    ttl.cb_push %b
  }}
  ttl.datamovement_thread {{
    %ys = ttl.tensor_accessor %y
    %zero = arith.constant 0 : index
    %n = ttl.core_linear
    %part = ttl.tensor_slice %ys, %n, %zero : !ttl.accessor<[{cores}, 1], {tile}, "dram">, index, index -> !ttl.slice<[1, 1], {tile}, "dram">
    %b = ttl.cb_wait %pass
    %t = ttl.copy %b, %part
    ttl.wait %t
    ttl.cb_pop %b
  }}
}}
"""


THREE = {"a": (8, 8), "b": (8, 8), "c": (8, 8)}
MEMREF = "memref<8x8x!ttcore.tile<32x32,f32>, #L1>"


def in_function(listing: str, memref: str, names: tuple[str, ...], shape: tuple[int, int], dtype: str, shapes: dict[str, tuple[int, int]] | None = None) -> str:
    """A listing on memrefs: one function that takes them, one that fills the inputs' buffers and one that empties the output's."""
    arguments = ", ".join(f"%{name}: {(memref if shapes is None else memref.replace('8x8', 'x'.join(map(str, shapes[name]))))}" for name in names)
    functions = [f"func.func @compute({arguments}) {{\n{listing}\nfunc.return\n}}"]
    for role, chosen in (("reader", range(len(names) - 1)), ("writer", [len(names) - 1])):
        lines = ["%zero = arith.constant 0 : index"]
        for number in chosen:
            size = shape if shapes is None else shapes[names[number]]
            kind, name = buffer(size, dtype, 1), names[number]
            accessor, part = (f'!ttl.{word}<[{size[0]}, {size[1]}], {tile(dtype)}, "dram">' for word in ("accessor", "slice"))
            lines += [
                f'%{name}_cb = ttl.bind_cb{{cb_index = {number}, buffer_factor = 1, name = "{name}"}} : {kind}',
                f'%{name}_accessor = ttl.tensor_accessor {{tensor_index = {number} : i32, name = "{name}"}} : {accessor}',
                f"%{name}_part = ttl.tensor_slice %{name}_accessor, %zero, %zero : {accessor}, index, index -> {part}",
                f"%{name}_block = ttl.{'cb_reserve' if role == 'reader' else 'cb_wait'} %{name}_cb",
                f"%{name}_transfer = ttl.copy {f'%{name}_part, %{name}_block' if role == 'reader' else f'%{name}_block, %{name}_part'}",
                f"ttl.wait %{name}_transfer",
                f"ttl.{'cb_push' if role == 'reader' else 'cb_pop'} %{name}_cb",
            ]
        body = "\n".join(lines)
        attributes = f'{{ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "{role}"}}'
        functions.append(f"func.func @{role}() attributes {attributes} {{\n{body}\nfunc.return\n}}")
    return "\n".join(functions)


MATMUL = """
linalg.generic {{
  indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
  iterator_types = ["parallel", "parallel", "reduction"]
}} ins(%a, %b : {a}, {b}) outs(%out : {out}) {{
^bb0(%x: {tile}, %y: {tile}, %sum: {tile}):
  %p = ttl.tile_matmul %x, %y {{k = 1 : i32, columns = 1 : i32}}
  %s = ttl.tile_add %sum, %p
  linalg.yield %s : {tile}
}}
"""
FILL = "%zero_f = arith.constant 0.0 : f32\nlinalg.fill ins(%zero_f : f32) outs(%out : {out})\n"
SIZES = {"a": (2, 3), "b": (3, 2), "out": (2, 2)}


def memrefs(dtype: str, listing: str) -> str:
    kinds = {name: f"memref<{shape[0]}x{shape[1]}x{tile(dtype)}, #L1>" for name, shape in SIZES.items()}
    return listing.format(tile=tile(dtype), **kinds)
