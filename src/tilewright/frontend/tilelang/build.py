"""A TileLang kernel and its arguments become a ``ttl`` module with reader, compute and writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import fail
from tilewright.dialects.walking import span_of_node
from tilewright.frontend.build import BuiltKernel
from tilewright.frontend.tilelang.compute import ComputeThread
from tilewright.frontend.tilelang.layouts import Buffers, layouts_of, tensor_layouts
from tilewright.frontend.tilelang.reader import read_kernel
from tilewright.frontend.tilelang.symbols import Tensor, Trouble
from tilewright.frontend.tilelang.threads import MoverThread, TileThread
from tilewright.frontend.tilelang.tile_program import Load, Store, TileProgram, walk
from tilewright.grid import cores_for
from tilewright.hardware import CHIPS
from tilewright.lang.cores import resolve_grid
from tilewright.lang.kernel import Build
from tilewright.lang.tilelang_tensors import TensorLayout, TileLangFunction
from tilewright.options import Options
from tilewright.records import record


@record(frozen=False, kw_only=True)
class BuiltTileLang(BuiltKernel):
    """``layouts`` say how the caller's tensors are laid out for the kernel; ``outputs`` are those the kernel creates."""

    layouts: tuple[TensorLayout, ...]
    outputs: tuple[int, ...]
    tile_program: TileProgram


def build_tilelang(kernel: TileLangFunction, values: Sequence[Any], options: Options, *, shallow: bool = False) -> BuiltTileLang:
    """``shallow``: buffers of one block, where two would only let threads overlap."""
    if options.arch not in CHIPS:
        raise fail("TW015", f"unknown arch '{options.arch}'", kernel.span, help=", ".join(CHIPS))
    chip = options.chip
    program, outputs = read_kernel(kernel, values)
    wanted = kernel.grid if options.grid is None else options.grid
    grid = cores_for(program.blocks, chip) if wanted is None else resolve_grid(wanted, chip, kernel.span)
    try:
        module, layouts = write_module(kernel, program, Build(grid=grid, metal=options.metal), shallow)
    except Trouble as trouble:
        span = span_of_node(program.place.file, program.place.node)
        raise fail(trouble.code, trouble.message, span, help=trouble.help) from None
    return BuiltTileLang(
        module=module,
        name=kernel.name,
        grid=grid,
        tensors=tuple(layout.spec for layout in layouts),
        source_file=program.place.file,
        layouts=layouts,
        outputs=outputs,
        tile_program=program,
    )


def write_module(
    kernel: TileLangFunction, program: TileProgram, build: Build, shallow: bool
) -> tuple[ModuleOp, tuple[TensorLayout, ...]]:
    _check(program)
    layouts = tensor_layouts(program)
    buffers = Buffers(program, layouts, shallow=shallow)
    threads: list[TileThread] = [
        ComputeThread(kernel.function, program, build, buffers, layouts_of(program)),
        MoverThread("writer", kernel.function, program, build, buffers),
    ]
    if any(isinstance(s, Load) for s in walk(program.body)):
        threads.insert(0, MoverThread("reader", kernel.function, program, build, buffers))
    return ModuleOp([thread.write() for thread in threads]), tuple(layouts[tensor] for tensor in program.tensors)


def _check(program: TileProgram) -> None:
    if not any(isinstance(s, Store) for s in walk(program.body)):
        message = f"kernel '{program.name}' writes no tensor"
        remedy = "copy a fragment to a tensor at the end"
        raise fail("TW209", message, span_of_node(program.place.file, program.place.node), help=remedy)
    _check_order(program)


def _check_order(program: TileProgram) -> None:
    """The reader runs ahead of the writer: what a kernel writes it cannot read back, except block by block in place."""
    stored: dict[Tensor, list[Store]] = {}
    loaded: dict[Tensor, list[Load]] = {}
    for statement in walk(program.body):
        if isinstance(statement, Store):
            stored.setdefault(statement.window.tensor, []).append(statement)
        elif isinstance(statement, Load):
            loaded.setdefault(statement.window.tensor, []).append(statement)
            earlier = stored.get(statement.window.tensor, [])
            if earlier:
                raise _read_back(statement)
    for tensor, stores in stored.items():
        for load in loaded.get(tensor, []):
            if any(store.window.starts != load.window.starts or store.window.extents != load.window.extents for store in stores):
                raise _read_back(load)


def _read_back(load: Load) -> Exception:
    message = f"'{load.window.tensor.name}' is read and written by this kernel at different places"
    remedy = "reader and writer do not wait for each other: keep the value in a fragment, or write another tensor"
    return fail("TW001", message, span_of_node(load.place.file, load.place.node), help=remedy)
