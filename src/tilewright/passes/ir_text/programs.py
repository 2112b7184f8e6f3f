"""Programs, kernels and their inputs as functions, one per thread, with the resources they use at their head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DictionaryAttr, IndexType, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from tilewright.diagnostics import Span, fail
from tilewright.dialects.attributes import (
    COMPUTE_THREAD,
    INDEX,
    NOC_THREAD,
    AccessorType,
    PipeType,
    SliceType,
    add,
    buffer_type_of,
    constant,
    constant_of,
    i32_attr,
    i64_attr,
    int_value,
    is_array_attr,
    is_tensor_type,
    multiply,
    text_value,
)
from tilewright.dialects.ttl import CoreOp, GridSizeOp
from tilewright.dialects.ttl_buffers import CORE_RANGES, BindCBOp, CopyOp, TensorAccessorOp, TensorSliceOp
from tilewright.dialects.ttl_network import CreateSemaphoreOp, NetPipeOp, RuntimeArgumentOp, nested_attr, nested_value
from tilewright.dialects.ttl_program import (
    ComputeThreadOp,
    CoreDimOp,
    CoreLinearOp,
    CreateCBOp,
    CreatePipeOp,
    DataMovementThreadOp,
    GridSliceOp,
    KernelOp,
    ProgramOp,
)
from tilewright.dialects.walking import erase, insert_before, of_kind, operations, place_of
from tilewright.grid import Core, folded_grid
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.passes.context import PassContext
from tilewright.program import ROW_MAJOR, TensorSpec
from tilewright.records import record

# Program forms ------------------------------------------------------------------------------------------------------------
# ``ttl.program`` and ``ttl.kernel`` become functions, one per thread, with the resources they use at their head.
#
# Afterwards there are only functions with ``ttl.kernel_thread``; coordinates have as many dimensions as the grid.


ROLES = ("reader", "writer")
HINTED = {"NOC0": "reader", "NOC1": "writer"}  # microcore_hint -> the processor that talks through this network
PLACE_OPS: frozenset[type[Operation]] = frozenset({CoreOp, GridSizeOp, CoreLinearOp, CoreDimOp, GridSliceOp})
RESOURCES = (TensorAccessorOp, CreateCBOp, CreatePipeOp, CreateSemaphoreOp, RuntimeArgumentOp)


def expand_programs(module: ModuleOp, context: PassContext) -> None:
    wholes = outermost(module)
    if len(wholes) > 1:
        raise fail("TW603", "a module holds one program", place_of(wholes[1]), help="compile one file per program")
    for whole in wholes:
        inner = [op for op in of_kind(whole, KernelOp) if op is not whole]
        if len(inner) > 1:
            raise fail("TW603", "a program holds one kernel", place_of(inner[1]), help="compile one file per kernel")
        kernel = inner[0] if inner else whole
        context.grid = context.options.grid if isinstance(context.options.grid, tuple) else kernel.grid
        configure(kernel, context)
        bind_inputs(kernel, whole)
        _functions(kernel, whole, module)
        function = whole.parent_op()
        gone = function if isinstance(function, FuncOp) else whole
        gone.detach()
        gone.erase(safe_erase=False)
    for function in module.ops:
        if isinstance(function, FuncOp):
            _expand_places(function, context.grid)


def outermost(module: ModuleOp) -> list[ProgramOp | KernelOp]:
    """Programs at the top of the module, or in a function whose arguments they take."""
    found: list[ProgramOp | KernelOp] = []
    for op in module.ops:
        inside = list(op.body.block.ops) if isinstance(op, FuncOp) and op.body.blocks else [op]
        found += [each for each in inside if isinstance(each, (ProgramOp, KernelOp))]
    return found


@record(frozen=False)
class Resources:
    """What threads capture: how each is made anew inside a function."""

    buffers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    nets: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    semaphores: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])


def _functions(kernel: Operation, whole: Operation, module: ModuleOp) -> None:
    blocks = [op.regions[0].block for op in dict.fromkeys((whole, kernel))]
    around = whole.parent_op()
    blocks = [around.body.block, *blocks] if isinstance(around, FuncOp) else blocks
    structure = (ProgramOp, KernelOp, ComputeThreadOp, DataMovementThreadOp, ReturnOp)
    outside = [op for block in blocks for op in block.ops if not isinstance(op, structure)]
    for op in outside:
        if not isinstance(op, RESOURCES) and not op.name.startswith("arith."):
            raise fail("TW603", f"{op.name} stands outside of threads", place_of(op), help="threads compute and move data")
    for op in operations(kernel):
        if isinstance(op, (CreateCBOp, CreatePipeOp, CreateSemaphoreOp)) and op not in outside:
            raise fail("TW603", f"{op.name} in a thread", place_of(op), help="what threads share is made outside of them")
    resources = _numbered(outside)
    threads = [op for op in kernel.regions[0].block.ops if isinstance(op, (ComputeThreadOp, DataMovementThreadOp))]
    if not threads:
        raise fail("TW010", "the kernel has no threads", place_of(kernel))
    roles = _roles(threads)
    for index, thread in enumerate(threads):
        function = _function(thread, f"thread_{index}", outside, resources)
        if thread in roles:
            function.attributes["ttl.role"] = StringAttr(roles[thread])
            if "microcore_hint" in thread.attributes:
                function.attributes["ttl.role_given"] = UnitAttr()
        module.body.block.add_op(function)


def _roles(threads: Sequence[Operation]) -> dict[Operation, str]:
    """Reader and writer: as ``microcore_hint`` says, else in their order."""
    movers = [thread for thread in threads if isinstance(thread, DataMovementThreadOp)]
    computing = [thread for thread in threads if isinstance(thread, ComputeThreadOp)]
    if len(movers) > len(ROLES):
        raise fail("TW010", "a core has two data-movement threads", place_of(movers[2]), help="join them into one")
    if len(computing) > 1:
        raise fail("TW010", "a core has one compute thread", place_of(computing[1]), help="join them into one")
    roles = {mover: HINTED[text_value(mover, "microcore_hint")] for mover in movers if "microcore_hint" in mover.attributes}
    if len(set(roles.values())) != len(roles):
        raise fail("TW010", "two data-movement threads on one processor", place_of(movers[1]), help="NOC0 and NOC1")
    free = iter([role for role in ROLES if role not in roles.values()])
    return {mover: roles[mover] if mover in roles else next(free) for mover in movers}


def _numbered(outside: Sequence[Operation]) -> Resources:
    resources = Resources()
    numbered = [op for op in outside if isinstance(op, CreateCBOp) and "buffer_index" in op.attributes]
    given = {int_value(op, "buffer_index") for op in numbered}
    for place, op in enumerate(numbered):
        if any(int_value(op, "buffer_index") == int_value(other, "buffer_index") for other in numbered[:place]):
            raise fail("TW603", f"two buffers have the number {int_value(op, 'buffer_index')}", place_of(op))
    free = (index for index in range(1 << 10) if index not in given)
    for op in outside:
        if isinstance(op, CreateCBOp):
            resources.buffers[op.results[0]] = int_value(op, "buffer_index") if "buffer_index" in op.attributes else next(free)
        elif isinstance(op, CreatePipeOp):
            resources.nets[op.results[0]] = len(resources.nets)
        elif isinstance(op, CreateSemaphoreOp):
            resources.semaphores[op.results[0]] = len(resources.semaphores)
    return resources


def _function(thread: Operation, name: str, outside: Sequence[Operation], resources: Resources) -> FuncOp:
    body = Block()
    known: dict[SSAValue, SSAValue] = {}
    source = thread.regions[0].block
    for op in outside:
        if isinstance(op, CreatePipeOp):
            continue
        new = _resource(op, resources) or op.clone(known)
        body.add_op(new)
        for old, result in zip(op.results, new.results, strict=True):
            known[old] = result
    _make_pipes(source, resources)
    for op in list(source.ops):
        if op.name not in ("func.return", "ttl.yield"):
            body.add_op(op.clone(known))
    body.add_op(ReturnOp())
    _erase_unused(body)
    function = FuncOp(name, ([], []), Region(body))
    function.attributes["ttl.kernel_thread"] = COMPUTE_THREAD if isinstance(thread, ComputeThreadOp) else NOC_THREAD
    function.location = thread.location
    return function


def _resource(op: Operation, resources: Resources) -> Operation | None:
    if isinstance(op, CreateCBOp):
        kind = buffer_type_of(op.results[0])
        index = resources.buffers[op.results[0]]
        attributes: dict[str, Attribute] = {
            "cb_index": i64_attr(index),
            "buffer_factor": i64_attr(kind.factor.data),
            "name": StringAttr(op.results[0].name_hint or f"cb{index}"),
        }
        if CORE_RANGES in op.attributes:
            attributes[CORE_RANGES] = op.attributes[CORE_RANGES]
        return BindCBOp.create(result_types=[kind], attributes=attributes, location=op.location)
    if isinstance(op, CreateSemaphoreOp):
        number = resources.semaphores[op.results[0]]
        attributes = {
            "initial_value": i32_attr(op.initial),
            "number": i32_attr(number),
            "name": StringAttr(op.results[0].name_hint or f"semaphore{number}"),
        }
        return CreateSemaphoreOp.create(result_types=[op.results[0].type], attributes=attributes, location=op.location)
    return None


def _make_pipes(source: Block, resources: Resources) -> None:
    """Each copy gets the pipe as seen from its side."""
    for op in [op for op in source.walk() if isinstance(op, CopyOp)]:
        for position, operand in enumerate(op.operands):
            if not isinstance(operand.type, PipeType):
                continue
            create = operand.owner
            if not isinstance(create, CreatePipeOp):
                continue
            pipe = _net_pipe(create, resources.nets[operand], "src" if position == 1 else "dst", op)
            insert_before(pipe, op)
            op.operands[position] = pipe.results[0]


def _net_pipe(create: CreatePipeOp, number: int, side: str, op: Operation) -> NetPipeOp:
    single = "dst_core" in create.attributes
    target = nested_value(create.attributes["dst_core" if single else "dst_core_range"])
    ranges = [(place, place + 1, 1) for place in target] if single else [(*entry, 1)[:3] for entry in target]
    attributes: dict[str, Attribute] = {
        "net": i32_attr(number),
        "name": StringAttr(create.results[0].name_hint or f"pipe{number}"),
        "side": StringAttr(side),
        "src_cores": nested_attr([nested_value(create.attributes["src_core"])]),
        "dst_core_ranges": nested_attr([ranges]),
    }
    if single:
        attributes["unicast"] = UnitAttr()
    return NetPipeOp.create(result_types=[PipeType()], attributes=attributes, location=op.location)


def _erase_unused(body: Block) -> None:
    for op in reversed(list(body.ops)):
        unused = ("ttl.bind_cb", "ttl.create_semaphore", "ttl.tensor_accessor", "ttl.argument")
        free = op.name in unused or op.name.startswith("arith.")
        if free and not any(result.uses for result in op.results):
            erase(op)


# Coordinates ------------------------------------------------------------------------------------------------------------------


def _expand_places(function: FuncOp, grid: Core) -> None:
    for op in [op for op in operations(function) if type(op) in PLACE_OPS]:
        if isinstance(op, GridSizeOp):
            sizes = folded_grid(grid, int_value(op, "dims", len(op.results)))
            _replace(op, [constant(size) for size in sizes])
        elif isinstance(op, CoreLinearOp) or (isinstance(op, CoreDimOp) and op.dims == 1):
            _replace(op, _linear(op, grid))
        elif isinstance(op, CoreDimOp):
            last = CoreOp.create(result_types=[INDEX] * op.dims, location=op.location)
            insert_before(last, op)
            op.results[0].replace_all_uses_with(last.results[-1])
            erase(op)
            if op.dims != len(grid):
                _replace(last, _folded(last, grid))
        elif isinstance(op, GridSliceOp):
            _grid_slice(op, grid)
        elif type(op) is CoreOp and len(op.results) != len(grid):
            _replace(op, _folded(op, grid))


def _replace(op: Operation, new: list[Operation]) -> None:
    """Puts ops in the place of one; the last ones give its results."""
    insert_before(new, op)
    for old, made in zip(op.results, new[-len(op.results) :], strict=True):
        made.results[0].name_hint = old.name_hint
        old.replace_all_uses_with(made.results[0])
    erase(op)


def _coordinates(op: Operation, grid: Core) -> CoreOp:
    return CoreOp.create(result_types=[INDEX] * len(grid), location=op.location)


def _row_major(places: Sequence[SSAValue], sizes: Sequence[int]) -> list[Operation]:
    """Ops whose last one gives the number of a position."""
    ops: list[Operation] = []
    total: SSAValue = places[0]
    for place, size in zip(places[1:], sizes[1:], strict=True):
        factor = constant(size)
        scaled = multiply(total, factor.results[0])
        both = add(scaled.results[0], place)
        ops += [factor, scaled, both]
        total = both.results[0]
    if not ops:
        zero = constant(0)
        ops = [zero, add(total, zero.results[0])]
    return ops


def _linear(op: Operation, grid: Core) -> list[Operation]:
    core = _coordinates(op, grid)
    places, sizes = list(core.results), list(grid)
    if len(grid) == 2:
        places, sizes = places[::-1], sizes[::-1]
    return [core, *_row_major(places, sizes)]


def _folded(op: Operation, grid: Core) -> list[Operation]:
    """Coordinates with fewer or more dimensions than the grid has."""
    core = _coordinates(op, grid)
    dims = len(op.results)
    zero = constant(0)
    head: list[Operation] = [core, zero]
    if dims > len(grid):
        return [*head, *(add(place, zero.results[0]) for place in core.results), *(constant(0) for _ in range(dims - len(grid)))]
    last = _row_major(list(core.results[dims - 1 :]), grid[dims - 1 :])
    return [*head, *last[:-1], *(add(place, zero.results[0]) for place in core.results[: dims - 1]), last[-1]]


def _grid_slice(op: GridSliceOp, grid: Core) -> None:
    kind = op.results[0].type
    assert isinstance(kind, SliceType)
    core = _coordinates(op, grid)
    ops: list[Operation] = [core]
    starts: list[SSAValue] = []
    for dim, extent in enumerate(kind.dims):
        if dim >= len(grid):
            ops.append(constant(0))
        else:
            factor = constant(extent)
            ops += [factor, multiply(core.results[dim], factor.results[0])]
        starts.append(ops[-1].results[0])
    ops.append(TensorSliceOp.create(operands=[op.accessor, *starts], result_types=[kind], location=op.location))
    _replace(op, ops)


# Kernel inputs ------------------------------------------------------------------------------------------------------------
# What ``ttl.kernel`` says about its inputs and its configuration, carried out.
#
# Arguments of threads and kernels are the values they stand for; a tensor becomes the number of the argument it is, an integer a
# constant (``compile_time_args``) or an argument of the run.


CONFIG_OPTIONS = {  # keys of compute_config -> options
    "math_fidelity": "math_fidelity",
    "fp32_dest_acc_en": "fp32_dest_acc",
    "dst_full_sync_en": "full_sync",
    "math_approx_mode": "math_approx_mode",
}


def configure(kernel: Operation, context: PassContext) -> None:
    """The kernel's ``compute_config``, where the command line says nothing else."""
    config = kernel.attributes.get("compute_config")
    for key, value in config.data.items() if isinstance(config, DictionaryAttr) else ():
        option = CONFIG_OPTIONS[key]
        if getattr(context.options, option) is None:
            plain = value.data if isinstance(value, StringAttr) else bool(value.value.data)  # pyright: ignore
            context.options = context.options.updated(**{option: plain})


def bind_inputs(kernel: Operation, whole: Operation) -> None:
    for op in operations(whole):
        if isinstance(op, (ComputeThreadOp, DataMovementThreadOp)):
            _resolve(op.regions[0].block, op.operands)
    inputs = list(kernel.regions[0].block.args)
    behind: list[SSAValue] = [_behind(argument) for argument in inputs]
    constants = _compile_time(kernel, behind)
    for number, (argument, value) in enumerate(zip(inputs, behind, strict=True)):
        if isinstance(argument.type, IndexType):
            _integer(kernel, argument, value, number in constants)
    _number_tensors(kernel, whole)


def _resolve(block: Block, operands: Sequence[SSAValue]) -> None:
    for argument, operand in zip(list(block.args), operands, strict=False):
        argument.replace_all_uses_with(operand)


def _behind(value: SSAValue) -> SSAValue:
    """The value outside that an argument of a kernel or program stands for."""
    while isinstance(value, BlockArgument):
        owner = value.block.parent_op()
        if not isinstance(owner, (KernelOp, ProgramOp)) or not owner.operands:
            return value
        value = owner.operands[value.index]
    return value


def _compile_time(kernel: Operation, behind: list[SSAValue]) -> set[int]:
    given = kernel.attributes.get("compile_time_args")
    numbers: tuple[int, ...] = nested_value(given) if is_array_attr(given) else ()
    for number in numbers:
        if not 0 <= number < len(behind):
            message = f"compile_time_args names input {number}, the kernel has {len(behind)}"
            raise fail("TW603", message, place_of(kernel), help="inputs are counted from 0")
        if isinstance(behind[number].type, IndexType) and constant_of(behind[number]) is None:
            message = f"input {number} is a compile-time argument, but its value is not known when the kernel is compiled"
            raise fail("TW603", message, place_of(kernel), help="give an arith.constant, or leave it out of compile_time_args")
    return set(numbers)


def _integer(kernel: Operation, argument: BlockArgument, value: SSAValue, constant: bool) -> None:
    block = kernel.regions[0].block
    first = block.first_op
    assert first is not None
    if constant:
        owner = value.owner
        assert isinstance(owner, ConstantOp)
        new: Operation = owner.clone()
    else:
        known = constant_of(value)
        attributes: dict[str, Attribute] = {"name": StringAttr(argument.name_hint or f"argument{argument.index}")}
        if known is not None:
            attributes["given"] = i64_attr(known)
        new = RuntimeArgumentOp.create(result_types=[IndexType()], attributes=attributes, location=kernel.location)
    block.insert_op_before(new, first)
    argument.replace_all_uses_with(new.results[0])


def _number_tensors(kernel: Operation, whole: Operation) -> None:
    around = whole.parent_op()
    outer = around.body.block if isinstance(around, FuncOp) else whole.regions[0].block
    if outer is not kernel.regions[0].block and not whole.operands and whole.regions[0].block.args:
        outer = whole.regions[0].block
    tensors = [argument for argument in outer.args if is_tensor_type(argument.type)]
    accessors: dict[int, AccessorType] = {}
    for op in operations(around if isinstance(around, FuncOp) else whole):
        if not isinstance(op, TensorAccessorOp):
            continue
        if op.operands:
            _name_tensor(op, tensors)
        kind = op.results[0].type
        assert isinstance(kind, AccessorType)
        accessors[op.tensor_index] = kind
        _check_tiled(op, kind, kernel, whole)
    for block in {outer, whole.regions[0].block, kernel.regions[0].block}:
        for user in [use.operation for argument in block.args for use in argument.uses]:
            if not isinstance(user, (ProgramOp, KernelOp)):
                message = f"{user.name} takes an input of the kernel"
                remedy = "ttl.tensor_accessor reaches a tensor; other inputs are integers"
                raise fail("TW603", message, place_of(user), help=remedy)
    _share_out(kernel, whole, accessors)


def _name_tensor(op: TensorAccessorOp, tensors: list[BlockArgument]) -> None:
    value = _behind(op.tensor)
    if not isinstance(value, BlockArgument) or value not in tensors:
        raise fail("TW603", f"{op.name}: the tensor is no argument of the program", place_of(op))
    number = tensors.index(value)
    op.operands = []
    op.attributes["tensor_index"] = i32_attr(number)
    op.attributes.setdefault("name", StringAttr(value.name_hint or f"tensor{number}"))


def _check_tiled(op: TensorAccessorOp, kind: AccessorType, kernel: Operation, whole: Operation) -> None:
    rows = op.by_rows or not kind.tiled
    for stated in {whole, kernel}:
        if "tiled" in stated.attributes and bool(int_value(stated, "tiled", 1)) == rows:
            found = f"tensor '{op.tensor_name}' {'lies row by row' if rows else 'is in tiles'}"
            raise fail(
                "TW603", f"{found}, and {stated.name} says tiled = {'true' if rows else 'false'}", place_of(op),
                help=f"layout = \"{ROW_MAJOR}\" is for tensors that are not in tiles",
            )  # fmt: skip


def _share_out(kernel: Operation, whole: Operation, accessors: dict[int, AccessorType]) -> None:
    """``block_factors``: what each core has of each tensor; a ``ttl.grid_slice`` without its own takes them from here."""
    given = kernel.attributes.get("block_factors")
    factors: tuple[tuple[int, ...], ...] | None = nested_value(given) if is_array_attr(given) else None
    grid: tuple[int, ...] = nested_value(kernel.attributes["grid"])
    if factors is not None:
        if len(factors) != len(accessors):
            message = f"block_factors has {len(factors)} entries for {len(accessors)} tensors"
            raise fail("TW603", message, place_of(kernel), help="[rows, columns] of tiles per core, for each tensor")
        for number, kind in accessors.items():
            _check_factors(kernel, number, factors[number], kind, grid)
    for op in operations(whole):
        if not isinstance(op, GridSliceOp):
            continue
        accessor = op.accessor.owner
        number = accessor.tensor_index if isinstance(accessor, TensorAccessorOp) else -1
        stated = None if factors is None or number < 0 else factors[number]
        kind = op.results[0].type
        assert isinstance(kind, SliceType)
        shape = kind.dims
        if stated is None and "block_factors" not in op.attributes:
            raise fail("TW603", f"{op.name} needs block_factors", place_of(op), help="its own, or those of the kernel")
        if stated is not None and stated != shape:
            message = f"{op.name}: a slice of {list(shape)}, and the kernel's block_factors are {list(stated)}"
            raise fail("TW603", message, place_of(op))


def _check_factors(kernel: Operation, number: int, own: tuple[int, ...], kind: AccessorType, grid: tuple[int, ...]) -> None:
    sizes = (*grid, *(1 for _ in kind.dims))
    fits = len(own) == len(kind.dims) and all(
        extent in (factor, factor * size) for extent, factor, size in zip(kind.dims, own, sizes, strict=False)
    )
    if not fits:
        message = f"block_factors {list(own)} of tensor {number} do not share {list(kind.dims)} out over the grid {list(grid)}"
        remedy = "per dimension the tensor's size is the factor, or the factor times the grid's size"
        raise fail("TW603", message, place_of(kernel), help=remedy)


# Text tensors -------------------------------------------------------------------------------------------------------------
# The tensors of a program in text: those its accessors name.


def tensors_of(module: ModuleOp) -> tuple[TensorSpec, ...]:
    found: dict[int, TensorSpec] = {}
    last: Span | None = None
    for op in operations(module):
        kind = _kind(op)
        if kind is None:
            continue
        index = int_value(op, "tensor_index")
        spec, last = _spec(op, kind, index), place_of(op)
        known = found.setdefault(index, spec)
        if known != spec:
            message = f"tensor {index} is '{known.name}', {known.shape} of {known.dtype}, at another accessor"
            raise fail("TW603", message, place_of(op), help="accessors of one tensor agree")
    missing = [number for number in range(max(found, default=-1) + 1) if number not in found]
    if missing:
        raise fail("TW603", f"no accessor names tensor {missing[0]}, but one names tensor {max(found)}", last)
    return tuple(found[number] for number in sorted(found))


def _kind(op: Operation) -> AccessorType | None:
    """The type an accessor has; once it is a call, the type it was made from."""
    if isinstance(op, TensorAccessorOp):
        kind = op.results[0].type
    else:
        kind = op.attributes.get("tensor") if op.name == "ttkernel.tensor_accessor" else None
    return kind if isinstance(kind, AccessorType) else None


def _spec(op: Operation, kind: AccessorType, index: int) -> TensorSpec:
    if len(kind.dims) < 2:
        raise fail("TW603", f"{op.name}: a tensor has two dimensions or more", place_of(op))
    rows, columns = kind.dims[-2] * TILE_ROWS, kind.dims[-1] * TILE_COLS
    return TensorSpec(
        name=op.tensor_name if isinstance(op, TensorAccessorOp) else text_value(op, "name", f"tensor{index}"),
        shape=(*kind.dims[:-2], rows, columns),
        dtype=kind.tile.dtype,
        layout=ROW_MAJOR if (op.by_rows if isinstance(op, TensorAccessorOp) else "page_bytes" in op.attributes) else "tile",
        memory="l1" if kind.memory.data == "l1" else "dram",
    )
