"""From the front end's module to a finished program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright import pipeline
from tilewright.diagnostics import fail
from tilewright.dialects.attributes import KernelCBType, int_value, text_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import ALIAS_OF, CORE_RANGES
from tilewright.dialects.ttl_network import NetPipeOp, nested_value
from tilewright.dialects.walking import of_kind
from tilewright.emit.arguments import Launch, buffer_name, calls_of, thread_arguments
from tilewright.emit.cpp import Line, emit, emit_lines
from tilewright.emit.spelling import release
from tilewright.grid import cores_in
from tilewright.hardware import Chip
from tilewright.options import Options
from tilewright.passes.context import PassContext, config_of
from tilewright.program import AccessorWords, BufferSpec, ComputeConfig, Program, SemaphoreSpec, TensorSpec, ThreadSpec
from tilewright.trace import Stage, Trace, attach

SHARDED_ACCESSORS = (0, 69)  # the first release whose accessors know shards
# Calls that write, and the operand that says where: a tensor or a buffer.
WRITTEN = {
    "noc_async_write_page": "accessor", "noc_async_write_tile_rows": "accessor", "get_write_ptr": "buffer",
    "pack_tile": "buffer", "pack_tile_block": "buffer",
}  # fmt: skip

if TYPE_CHECKING:
    from tilewright.frontend.build import BuiltKernel


def compile_built(built: BuiltKernel, options: Options, *, keep_ir: bool = False) -> Program:
    """Compile what the front end built. The module is consumed."""
    options = options.updated(**built.flags) if built.flags else options
    return compile_module(
        built.module, name=built.name, grid=built.grid, tensors=built.tensors, options=options, keep_ir=keep_ir
    )


def compile_module(
    module: ModuleOp,
    *,
    name: str,
    grid: tuple[int, ...],
    tensors: tuple[TensorSpec, ...],
    options: Options,
    keep_ir: bool = False,
    passes: Sequence[str] | None = None,
) -> Program:
    """All passes, or the named ones for text that has some behind it."""
    trace = Trace(keep_ir=keep_ir)
    if keep_ir:
        trace.stages.append(Stage(name="frontend", seconds=0.0, ir=str(module)))
        trace.nets += {op.net.number: op.net for op in of_kind(module, NetPipeOp)}.values()
    context = PassContext(options=options, chip=options.chip, trace=trace, grid=grid, tensors=tensors)
    try:
        pipeline.run(module, context, passes)
    except Exception as error:
        attach(error, trace, name)
        raise
    grid, tensors = context.grid, context.tensors  # text states them itself
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    calls = [calls_of(function) for function in functions]
    threads = tuple(_thread(function, made) for function, made in zip(functions, calls, strict=True))
    _check_arguments(threads, options.chip)
    _check_accessors(threads, tensors, options.metal)
    config = next((config_of(f) for f in functions if thread_kind(f) == "compute"), ComputeConfig())
    cpp = {
        thread.role: emit(
            function, made, thread, config, kernel=name, metal=options.metal, prints=options.debug_print, api=options.api
        )
        for function, made, thread in zip(functions, calls, threads, strict=True)
    }
    every_call = [op for made in calls for op in made]
    return Program(
        name=name,
        options=options,
        module=module,
        grid=grid,
        tensors=tensors,
        buffers=_buffers(every_call),
        threads=threads,
        config=config,
        cpp=cpp,
        trace=trace,
        semaphores=_semaphores(every_call),
        written_tensors=written_tensors(every_call),
    )


def _thread(function: FuncOp, calls: list[KernelCallOp]) -> ThreadSpec:
    compile_time, runtime = thread_arguments(calls)
    role = "compute" if thread_kind(function) == "compute" else text_value(function, "ttl.role", "reader")
    symbol = function.sym_name.data
    return ThreadSpec(name=symbol, role=role, function=symbol, compile_time_args=compile_time, runtime_args=runtime)


def _check_arguments(threads: tuple[ThreadSpec, ...], chip: Chip) -> None:
    for thread in threads:
        count, limit = len(thread.runtime_args), chip.max_runtime_args
        if count > limit:
            message = f"thread '{thread.name}' needs {count} run-time arguments, {chip.name} has room for {limit}"
            raise fail("TW306", message, help="fewer pipes at one core: gather along rows first, then along a column")


def _check_accessors(threads: tuple[ThreadSpec, ...], tensors: tuple[TensorSpec, ...], metal: str) -> None:
    """The oldest releases find pages of interleaved tensors only."""
    if release(metal) >= SHARDED_ACCESSORS:
        return
    arguments = [each for thread in threads for each in thread.compile_time_args if tensors]
    for tensor in [tensors[each.what] for each in arguments if isinstance(each, AccessorWords)]:
        if tensor.sharding:
            message = f"tensor '{tensor.name}' is sharded, and kernels of ttnn {metal} find pages of interleaved tensors only"
            raise fail("TW106", message, help="metal='0.69' or newer, or a buffer in its shards (make_tensor_backed_dfb)")


def _buffers(calls: list[KernelCallOp]) -> tuple[BufferSpec, ...]:
    found: dict[int, BufferSpec] = {}
    for op in calls:
        kind = op.results[0].type if op.results else None
        if type(kind) is not KernelCBType:
            continue
        index = int_value(op, "cb_index")
        found[index] = BufferSpec(
            index=index,
            name=buffer_name(op),
            shape=kind.dims,
            dtype=kind.tile.dtype,
            block_count=kind.factor.data,
            origin=text_value(op, "origin", "user"),
            alias_of=int_value(op, ALIAS_OF) if ALIAS_OF in op.attributes else None,
            tensor=int_value(op, "tensor_index") if "tensor_index" in op.attributes else None,
            first_tile=int_value(op, "first_tile", 0),
            cores=tuple(cores_in(nested_value(op.attributes[CORE_RANGES]))) if CORE_RANGES in op.attributes else (),
        )
    return tuple(found[index] for index in sorted(found))


def written_tensors(calls: list[KernelCallOp]) -> tuple[int, ...]:
    """Numbers of the tensors that some thread writes to: page by page, or as the memory of a buffer it fills."""
    written = [op.operand(WRITTEN[op.CALL.name]).owner for op in calls if op.CALL.name in WRITTEN]
    found = {int_value(op, "tensor_index", -1) for op in written if isinstance(op, Operation)}
    return tuple(sorted(found - {-1}))


def _semaphores(calls: list[KernelCallOp]) -> tuple[SemaphoreSpec, ...]:
    """Every semaphore some thread uses. One with a run-time offset stands for as many as its largest offset says."""
    found: dict[int, SemaphoreSpec] = {}
    for op in calls:
        if op.CALL.name != "get_semaphore":
            continue
        first, name, initial = int_value(op, "index"), text_value(op, "name"), int_value(op, "initial", 0)
        for offset in range(int_value(op, "count", 1)):
            found[first + offset] = SemaphoreSpec(index=first + offset, name=name, initial=initial)
    return tuple(found[index] for index in sorted(found))


def respelled(program: Program, metal: str) -> dict[str, str]:
    """The C++ of a program for another release; the IR does not depend on it."""
    return {role: "\n".join(line.text for line in lines) + "\n" for role, lines in cpp_lines(program, metal).items()}


def cpp_lines(program: Program, metal: str = "", launch: Launch | None = None) -> dict[str, list[Line]]:
    """The C++ of a program line by line, with the places of the user's source, by role."""
    functions = {op.sym_name.data: op for op in program.module.ops if isinstance(op, FuncOp)}
    options = program.options
    return {
        thread.role: emit_lines(
            function, calls_of(function), thread, program.config, kernel=program.name, metal=metal or options.metal,
            prints=options.debug_print, api=options.api, launch=launch,
        )
        for thread in program.threads
        for function in (functions[thread.function],)
    }  # fmt: skip
