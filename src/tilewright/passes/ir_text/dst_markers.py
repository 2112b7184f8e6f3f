"""DST registers that text names: ``ttl.acquire_dst``, ``ttl.release_dst``, ``ttl.require_dst``.

The allocator decides where values lie. What text says about it is kept on the op that makes the value: the register
(``ttl.dst_reg``), and that it may not go through a buffer (``ttl.require_dst``). The markers themselves go.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.assembly import DST_REG
from tilewright.dialects.attributes import PINNED, REQUIRED, constant_of, i32_attr, int_value
from tilewright.dialects.ttl import StoreOp, YieldOp
from tilewright.dialects.ttl_compute import SpillTileOp
from tilewright.dialects.ttl_regions import AcquireDstOp, BlockOp, BlockStoreOp, ReleaseDstOp, RequireDstOp
from tilewright.dialects.walking import erase, of_kind, operations, place_of


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
                register = op.operands[1]
                op.operands = op.operands[:1]
                del op.attributes[DST_REG]
                _pin(op.operands[0], register, op)
            elif "index" in op.attributes:
                _pin_number(op.operands[0], int_value(op, "index"), op)
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
        maker = op.operands[0].owner
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
