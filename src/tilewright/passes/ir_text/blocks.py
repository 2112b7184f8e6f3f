"""Ops on blocks that only text writes: regions, other names, DST registers, rows instead of tiles."""

from __future__ import annotations

from xdsl.dialects.arith import AddiOp, MuliOp
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.assembly import DST_REG
from tilewright.dialects.attributes import (
    PINNED,
    REQUIRED,
    AccessorType,
    CBType,
    SliceType,
    add,
    constant,
    constant_of,
    i32_attr,
    i64_list,
    int_array,
    int_value,
    is_tensor_type,
    multiply,
    pins_of,
    scalar_format,
    text_attr,
    tile_type,
)
from tilewright.dialects.ttl import KEEP_IN_DST, TENSOR_OPS, BcastOp, MatmulOp, ReduceOp, StoreOp, TensorMathOp, YieldOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp, TensorAccessorOp, TensorSliceOp
from tilewright.dialects.ttl_compute import SpillTileOp
from tilewright.dialects.ttl_regions import (
    AcquireDstOp,
    BlockAliasOp,
    BlockBcastOp,
    BlockComputeOp,
    BlockOp,
    BlockReduceOp,
    BlockStoreOp,
    ComputeRegionOp,
    ReleaseDstOp,
    RequireDstOp,
)
from tilewright.dialects.walking import erase, insert_before, of_kind, operations, place_of
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.passes.ir_text.rules import computation
from tilewright.program import ROW_MAJOR

# Block attachment ---------------------------------------------------------------------------------------------------------
# Every block says which buffer it lives in, also where IR text uses what a wait gives as it is; a release names its buffer.


def attach_blocks(function: FuncOp) -> None:
    for op in operations(function):
        if isinstance(op, (CBPopOp, CBPushOp)) and isinstance(op.buffer.owner, op.ACQUIRE):
            op.buffer = op.buffer.owner.operands[0]
    for op in [op for op in operations(function) if isinstance(op, (CBWaitOp, CBReserveOp))]:
        block, parent = op.results[0], op.parent
        bare = [use for use in block.uses if not isinstance(use.operation, AttachCBOp)]
        if not bare or parent is None:
            continue
        attach = AttachCBOp.create(operands=[block, op.buffer], result_types=[block.type], location=op.location)
        parent.insert_op_after(attach, op)
        for use in bare:
            use.operation.operands[use.index] = attach.results[0]


# Text forms ---------------------------------------------------------------------------------------------------------------
# What the specification's listings may write in a compute thread and the front end does not: regions and ``block_`` names.
#
# Afterwards there are only tensor-level ops, stores and ``ttl.compute``.


def inline_regions(function: FuncOp) -> None:
    for op in reversed(operations(function)):  # inner ones first
        if isinstance(op, ComputeRegionOp):
            _inline(op)
        elif isinstance(op, BlockComputeOp):
            _inline_block_compute(op)


def _inline(region: ComputeRegionOp) -> None:
    """The body in place of the region; what it yields is stored into its outputs."""
    block = region.parent
    body = region.body.block
    assert block is not None
    for argument, value in zip(body.args, region.inputs, strict=True):
        argument.replace_all_uses_with(value)
    last = body.last_op
    assert last is not None
    kept = region.attributes.get(KEEP_IN_DST)
    for op in [op for op in body.ops if op is not last]:
        op.detach()
        if kept is not None and isinstance(op, (BlockOp, TensorMathOp, ReduceOp, BcastOp, MatmulOp)):
            op.attributes[KEEP_IN_DST] = kept
        block.insert_op_before(op, region)
    for value, target in zip(last.operands, region.outputs, strict=True):
        block.insert_op_before(StoreOp.create(operands=[value, target], location=region.location), region)
    for result, target in zip(region.results, region.outputs, strict=True):
        result.replace_all_uses_with(target)
    region.detach()
    region.erase(safe_erase=False)


def _inline_block_compute(region: BlockComputeOp) -> None:
    for op in list(region.regions[0].block.ops):
        structural = op.name in ("ttl.yield", "ttl.attach_cb", "tensor.empty") or op.name.startswith("arith.")
        if not computation(op.name) and not structural:
            raise fail("TW603", f"{op.name} in ttl.block_compute", place_of(op), help="it holds arithmetic on blocks and stores")
        op.detach()
        if op.name != "ttl.yield":
            insert_before(op, region)
        elif op.operands:
            raise fail("TW603", "ttl.block_compute gives no result", place_of(op), help="ttl.block_store what it computes")
    region.detach()
    region.erase(safe_erase=False)


def rename(function: FuncOp) -> None:
    """``ttl.block_add`` and its kind become the ops the front end writes."""
    for op in operations(function):
        if isinstance(op, BlockStoreOp):
            _replace(op, StoreOp, list(op.operands)[::-1], {})
        elif isinstance(op, BlockOp):
            _rename(op)


def _rename(op: BlockOp) -> None:
    attributes: dict[str, Attribute] = dict(op.attributes)
    kind: type[Operation] = MatmulOp
    if isinstance(op, BlockAliasOp):
        kind = TENSOR_OPS[op.ROW]
    elif isinstance(op, BlockReduceOp):
        kind, attributes = ReduceOp, {"kind": text_attr(op.KIND), "dims": i64_list([op.axis])}
    elif isinstance(op, BlockBcastOp):
        kind, attributes = BcastOp, {"dims": i64_list([op.axis])}
    _replace(op, kind, list(op.operands), {**attributes, **pins_of(op), **_hint(op)})


def _hint(op: Operation) -> dict[str, Attribute]:
    """``keep_in_dst = false`` is what an op without it means."""
    return {KEEP_IN_DST: UnitAttr()} if op.attributes.pop(KEEP_IN_DST, None) in (BoolAttr.from_bool(True), UnitAttr()) else {}


def _replace(op: Operation, kind: type[Operation], operands: list[SSAValue], attributes: dict[str, Attribute]) -> None:
    attributes = {key: value for key, value in attributes.items() if key != KEEP_IN_DST or isinstance(value, UnitAttr)}
    results = [result.type for result in op.results]
    new = kind.create(operands=operands, result_types=results, attributes=attributes, location=op.location)
    insert_before(new, op)
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    erase(op)


# Dst markers --------------------------------------------------------------------------------------------------------------
# DST registers that text names: ``ttl.acquire_dst``, ``ttl.release_dst``, ``ttl.require_dst``.
#
# The allocator decides where values lie. What text says about it is kept on the op that makes the value: the register
# (``ttl.dst_reg``), and that it may not go through a buffer (``ttl.require_dst``). The markers themselves go.


BITS_OF_NUMBER = 32  # of an attribute; how many registers there are is asked where they are assigned


def bind_registers(function: FuncOp) -> None:
    """Ops that name a register keep its number; those with ``ttl.acquire_dst`` get it from there."""
    for op in operations(function):
        if isinstance(op, BlockOp) and op.register is not None:
            register = op.register
            op.operands = op.operands[:-1]
            del op.attributes[DST_REG]
            _pin(op.results[0], register, op)
        elif isinstance(op, SpillTileOp):
            if len(op.operands) == 2:
                register = op.register
                op.operands = op.operands[:1]
                del op.attributes[DST_REG]
                _pin(op.tile, register, op)
            elif "index" in op.attributes:
                _pin_number(op.tile, int_value(op, "index"), op)
                del op.attributes["index"]


def _pin(value: SSAValue, register: SSAValue, op: Operation) -> None:
    acquire = register.owner
    if isinstance(acquire, AcquireDstOp):
        _check_life(value, acquire, op)
        number = acquire.number
    else:
        number = constant_of(register)
        if number is None:
            raise fail("TW603", f"{op.name}: a register is named by ttl.acquire_dst or by a constant", place_of(op))
    if number is not None:
        _pin_number(value, number, op)


def _pin_number(value: SSAValue, number: int, op: Operation) -> None:
    maker = value.owner
    if not isinstance(maker, Operation):
        raise fail(
            "TW603",
            f"{op.name}: a tile that comes from a buffer has no register of its own",
            place_of(op),
            help="spill a value that is computed, or leave the register out",
        )
    if number.bit_length() >= BITS_OF_NUMBER:
        raise fail("TW603", f"{op.name}: there is no DST register {number}", place_of(op))
    known = maker.attributes.get(PINNED)
    if known is not None and int_value(maker, PINNED) != number:
        message = f"{op.name}: the value lies in register {int_value(maker, PINNED)}, not in {number}"
        raise fail("TW603", message, place_of(op))
    maker.attributes[PINNED] = i32_attr(number)


def _check_life(value: SSAValue, acquire: AcquireDstOp, op: Operation) -> None:
    """No arithmetic uses what lies in a register after its release."""
    for use in acquire.results[0].uses:
        release = use.operation
        if not isinstance(release, ReleaseDstOp):
            continue
        for reader in value.uses:
            stored = isinstance(reader.operation, (StoreOp, BlockStoreOp, YieldOp))  # a pack takes it from there in any case
            if not stored and reader.operation.parent is release.parent and _before(release, reader.operation):
                raise fail(
                    "TW603",
                    f"{reader.operation.name} uses a value after its DST register was released",
                    place_of(reader.operation),
                    help="release the register behind the last use",
                )


def _before(first: Operation, second: Operation) -> bool:
    block = first.parent
    assert block is not None
    return block.get_operation_index(first) < block.get_operation_index(second)


def remove_markers(function: FuncOp) -> None:
    """After the expansion of what uses them."""
    for op in of_kind(function, RequireDstOp):
        maker = op.value.owner
        if isinstance(maker, Operation):
            maker.attributes[REQUIRED] = UnitAttr()
        erase(op)
    for op in of_kind(function, ReleaseDstOp):
        erase(op)
    for op in of_kind(function, AcquireDstOp):
        if op.results[0].uses:
            user = next(iter(op.results[0].uses)).operation
            remedy = "dst_reg, ttl.pack_tile and ttl.spill_tile_to_l1 do"
            raise fail("TW603", f"{user.name} takes no DST register", place_of(user), help=remedy)
        erase(op)


# Row major blocks ---------------------------------------------------------------------------------------------------------
# Buffers whose shape counts elements (``!ttl.cb<[64, 32], f32, 2>``) hold tiles: arithmetic reads nothing else.
#
# Their blocks are put together from rows on the way in and taken apart on the way out, as for every tensor that lies row by row.
# So the types change to tiles, such tensors say that they lie row by row, and slices start at tiles.


def hold_tiles(module: ModuleOp) -> None:
    ops = [op for function in module.ops if isinstance(function, FuncOp) for op in operations(function)]
    if not any(_counts_elements(result.type) for op in ops for result in op.results):
        return
    for op in ops:
        if isinstance(op, TensorSliceOp) and _counts_elements(op.accessor.type):
            for position in range(len(op.operands) - 2, len(op.operands)):
                op.operands[position] = _in_tiles(op.operands[position], op)
    for op in ops:
        if isinstance(op, TensorAccessorOp) and _counts_elements(op.results[0].type):
            op.attributes["layout"] = StringAttr(ROW_MAJOR)
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*op.results, *arguments):
            if _counts_elements(value.type):
                Rewriter.replace_value_with_new_type(value, _tiled(value.type, op))


def _counts_elements(kind: Attribute) -> bool:
    if is_tensor_type(kind):
        return scalar_format(kind.element_type) != ""
    return isinstance(kind, (CBType, AccessorType, SliceType)) and not kind.tiled


def _tiled(kind: Attribute, op: Operation) -> Attribute:
    if is_tensor_type(kind):
        return TensorType(tile_type(scalar_format(kind.element_type)), _sizes(kind.get_shape(), op))
    assert isinstance(kind, (CBType, AccessorType, SliceType))
    return _reshaped(kind, op)


def _reshaped(kind: CBType | AccessorType | SliceType, op: Operation) -> Attribute:
    first, tile, last = int_array(_sizes(kind.dims, op)), tile_type(_format(kind, op)), kind.parameters[2]
    return type(kind).new([first, tile, last])


def _format(kind: CBType | AccessorType | SliceType, op: Operation) -> str:
    found = scalar_format(kind.element)
    if not found:
        raise fail("TW603", f"{op.name}: {kind.element} is no element of a tile", place_of(op))
    return found


def _sizes(dims: tuple[int, ...], op: Operation) -> tuple[int, ...]:
    if len(dims) < 2 or dims[-2] % TILE_ROWS or dims[-1] % TILE_COLS:
        raise _uneven(f"{list(dims)} elements", op)
    return (*dims[:-2], dims[-2] // TILE_ROWS, dims[-1] // TILE_COLS)


def _uneven(what: str, op: Operation) -> KernelError:
    message = f"{op.name}: {what}: not a whole number of tiles"
    return fail("TW106", message, place_of(op), help=f"rows in multiples of {TILE_ROWS}, columns of {TILE_COLS}")


def _in_tiles(value: SSAValue, op: TensorSliceOp) -> SSAValue:
    """An offset in elements as one in tiles."""
    number, owner = constant_of(value), value.owner
    made: Operation | None = None
    if number is not None and number % TILE_ROWS == 0:
        made = constant(number // TILE_ROWS)
    elif isinstance(owner, AddiOp):
        made = add(_in_tiles(owner.lhs, op), _in_tiles(owner.rhs, op))
    elif isinstance(owner, MuliOp):
        for factor, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            number = constant_of(factor)
            if number is not None and number % TILE_ROWS == 0:
                size = constant(number // TILE_ROWS)
                insert_before(size, op)
                made = multiply(other, size.results[0])
                break
    if made is None:
        raise _uneven("a slice starts at an element that may lie inside a tile", op)
    insert_before(made, op)
    return made.results[0]
