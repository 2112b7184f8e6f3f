"""What ``ttl.kernel`` says about its inputs and its configuration, carried out.

Arguments of threads and kernels are the values they stand for; a tensor becomes the number of the argument it is, an integer a
constant (``compile_time_args``) or an argument of the run.
"""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import AccessorType, constant_of, i32_attr, i64_attr, int_value
from tilewright.dialects.ttl_buffers import TensorAccessorOp
from tilewright.dialects.ttl_network import RuntimeArgumentOp, nested_value
from tilewright.dialects.ttl_program import ComputeThreadOp, DataMovementThreadOp, GridSliceOp, KernelOp, ProgramOp
from tilewright.dialects.walking import operations, place_of
from tilewright.passes.context import PassContext
from tilewright.program import ROW_MAJOR

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


def _resolve(block: Block, operands: object) -> None:
    for argument, operand in zip(list(block.args), operands, strict=False):  # pyright: ignore
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
    numbers: tuple[int, ...] = nested_value(given) if isinstance(given, ArrayAttr) else ()
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
    tensors = [argument for argument in outer.args if isinstance(argument.type, TensorType)]
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
    value = _behind(op.operands[0])
    if value not in tensors:
        raise fail("TW603", f"{op.name}: the tensor is no argument of the program", place_of(op))
    number = tensors.index(value)  # pyright: ignore
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
    factors: tuple[tuple[int, ...], ...] | None = nested_value(given) if isinstance(given, ArrayAttr) else None
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
        accessor = op.operands[0].owner
        number = accessor.tensor_index if isinstance(accessor, TensorAccessorOp) else -1
        stated = None if factors is None or number < 0 else factors[number]
        shape = op.results[0].type.dims  # pyright: ignore
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
