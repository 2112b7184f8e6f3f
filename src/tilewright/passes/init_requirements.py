"""What a kernel call needs of the engines' state before it may run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tilewright.dialects import tile_ops
from tilewright.dialects.ir_types import KernelCBType
from tilewright.dialects.tile_op import Unit
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.passes.kernel_buffers import call

ANY = "any"  # some init of that engine ran; which one does not matter

INITS = frozenset({form.init for row in tile_ops.ROWS for form in row.forms if form.init})
STRUCTURAL_INITS = frozenset({"copy_tile_init", "copy_dest_values_init"})


@dataclass(frozen=True)
class Requirement:
    state: str  # fpu, sfpu, srca, srcb, pack
    key: str
    make: Callable[[], Operation]  # the call that establishes it


def is_init(op: KernelCallOp) -> bool:
    return op.CALL.name in INITS or op.CALL.name in STRUCTURAL_INITS


def requirements(op: KernelCallOp, init: Operation | None) -> tuple[Requirement, ...]:
    """Needs of one call; ``init`` is the init that stood before it."""
    name = op.CALL.name
    if name in ("pack_tile", "pack_tile_block"):
        return (_format("pack", op.operands[1], "pack_reconfig_data_format"),)
    if name == "copy_tile":
        buffer = op.operands[0]
        return (_format("srca", buffer, "reconfig_data_format_srca"), _engine("fpu", init, [buffer]))
    if name == "copy_dest_values":
        return (_engine("sfpu", init, [], stateless=True),)
    if op.FORM is None or op.FORM.call != name:
        return ()
    unit = op.FORM.unit
    if unit is Unit.SFPU:
        return (_engine("sfpu", init, [], stateless=not op.FORM.stateful),)
    buffers = [operand for operand in op.operands if isinstance(operand.type, KernelCBType)]
    formats: tuple[Requirement, ...]
    if unit is Unit.FPU:
        formats = (
            _format("srca", buffers[0], "reconfig_data_format_srca"),
            _format("srcb", buffers[1], "reconfig_data_format_srcb"),
        )
    elif "DEST_TO_SRCA" in str(op.attributes.get("template")):
        formats = (_format("srcb", buffers[0], "reconfig_data_format_srcb"),)  # the reused tile takes SrcA
    else:
        formats = (_format("srca", buffers[0], "reconfig_data_format_srca"),)
    return (*formats, _engine("fpu", init, buffers))


def _format(state: str, buffer: SSAValue, reconfig: str) -> Requirement:
    return Requirement(state, _dtype(buffer), lambda: call(reconfig, [buffer]))


def _engine(state: str, init: Operation | None, buffers: list[SSAValue], *, stateless: bool = False) -> Requirement:
    if init is None:
        return Requirement(state, ANY, _impossible)
    template, params = init.attributes.get("template"), init.attributes.get("params")
    key = f"{init.name}{template or ''}{params or ''}{[_dtype(buffer) for buffer in buffers]}"

    def make() -> Operation:
        return init.clone({operand: operand for operand in init.operands})

    return Requirement(state, ANY if stateless else key, make)


def _impossible() -> Operation:
    raise AssertionError("a call without its init reached init placement")


def _dtype(buffer: SSAValue) -> str:
    assert isinstance(buffer.type, KernelCBType)
    return buffer.type.tile.dtype
