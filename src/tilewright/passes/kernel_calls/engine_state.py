"""What a kernel call needs of the engines' state before it may run, and the calls that establish it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import KernelCBType, defining_op, int_value, is_array_attr, text_attr, text_value
from tilewright.dialects.tile_op import Unit, is_approximate, is_narrow
from tilewright.dialects.ttkernel import CALLS, DATA_IN_SRCA, KernelCallOp
from tilewright.passes.kernel_calls.buffers import call
from tilewright.records import record

ANY = "any"  # some init of that engine ran; which one does not matter

INITS = frozenset({form.init for row in tile_ops.ROWS for form in row.forms if form.init})
FULL_INIT = "unary_bcast_full_init"  # starts the packer anew and goes back to the first half of DST
BLOCK_INITS = ("mm_init_short", "mm_block_init_short", "reduce_init", "unary_bcast_init", FULL_INIT, "transpose_wh_init_short")
STRUCTURAL_INITS = frozenset({"copy_tile_init", "copy_dest_values_init", *BLOCK_INITS})
WHOLE_TILES = "whole"  # the packer writes every datum
UNKNOWN = "unknown"  # nothing may rely on it
STATEFUL = frozenset((
    "pack_tile", "pack_tile_block", "copy_tile", "copy_dest_values", "matmul_tiles", "matmul_block", "reduce_tile", "unary_bcast",
    "transpose_wh_tile",
))  # fmt: skip
REPLAY_FILLERS = ("gcd_tile", "lcm_tile", "rand_tile")  # calls that need more than half of the replay buffer


@record
class Requirement:
    state: str  # fpu, sfpu, srca, srcb, pack
    key: str
    make: Callable[[], Operation]  # the call that establishes it
    also: tuple[tuple[str, str], ...] = ()  # other states that call sets


def is_init(op: KernelCallOp) -> bool:
    return _names_init(op.CALL.name)


@lru_cache(maxsize=1024)
def _names_init(name: str) -> bool:
    is_bcast = name.endswith("_init_short") or (name.startswith("sfpu_") and name.endswith("_init"))
    return name in INITS or name in STRUCTURAL_INITS or is_bcast


def _template(op: KernelCallOp) -> list[str]:
    template = op.attributes.get("template")
    return [str(word.data) for word in template if isinstance(word, StringAttr)] if is_array_attr(template) else []


def keeps_table(op: KernelCallOp) -> bool:
    """Whether the call reads a table that any other vector call would overwrite."""
    form = op.FORM
    return form is not None and form.lookup and form.call == op.CALL.name and form.keeps_table(_template(op))


def fills_replay(op: KernelCallOp, *, wide: bool) -> bool:
    """Whether the call overwrites what the matrix unit keeps in its half of the replay buffer.

    Exact exp for a 16-bit DST does so: it is twenty instructions, recorded each time.
    """
    form = op.FORM
    if op.CALL.name == "exp_tile" and form is not None:
        template = _template(op)
        short = not wide or is_narrow(form.template, template)
        return short and not is_approximate(form.template, form.defaults, template)
    return op.CALL.name in REPLAY_FILLERS


def records(key: str) -> bool:
    """Whether the init of the matrix unit with this key keeps instructions in the replay buffer."""
    sum_of_rows = "reduce_init" in key and "SUM" in key and "REDUCE_ROW" in key
    return "mm_init" in key or "mm_block_init" in key or "transpose_wh" in key or sum_of_rows


def requirements(op: KernelCallOp, init: Operation | None, *, tables: bool = False) -> tuple[Requirement, ...]:
    """Needs of one call; ``init`` is the init that stood before it.

    With ``tables`` some call of the kernel keeps one (see ``keeps_table``), so every other vector call sets up its own state.
    """
    name = op.CALL.name
    if not _needs_state(name):
        return ()
    if name in ("pack_tile", "pack_tile_block"):
        edge = text_value(op, "edge", WHOLE_TILES)
        if edge == WHOLE_TILES:
            masked = Requirement("edge", edge, lambda: call("reduce_uninit"))
        else:
            masked = Requirement("edge", edge, _not_written)  # its reduction has run in this section
        relu = text_value(op, "relu", "none")
        clipped = Requirement("relu", relu, lambda: call("pack_relu_config", attributes={"mode": text_attr(relu)}))
        return (_format("pack", op.operands[1], "pack_reconfig_data_format"), masked, clipped)
    if name == "copy_tile":
        buffer = op.operands[0]
        return (_format("srca", buffer, "reconfig_data_format_srca"), _engine("fpu", init, [buffer]))
    if name == "copy_dest_values":
        return (_engine("sfpu", init, [], stateless=not tables),)
    if op.FORM is None:
        return _block_requirements(op, init)
    if op.FORM.call != name:
        return ()
    unit = op.FORM.unit
    if unit is Unit.SFPU:
        return (_engine("sfpu", init, [], stateless=not op.FORM.stateful and not tables),)
    buffers = [operand for operand in op.operands if type(operand.type) is KernelCBType]
    formats: tuple[Requirement, ...]
    if unit is Unit.FPU:
        formats = _formats(buffers[0], buffers[1])
    elif "DEST_TO_SRCA" in _written_template(op):
        formats = (_format("srcb", buffers[0], "reconfig_data_format_srcb"),)  # the reused tile takes SrcA
    else:
        formats = (_format("srca", buffers[0], "reconfig_data_format_srca"),)
    return (*formats, _engine("fpu", init, buffers))


@lru_cache(maxsize=1024)
def _needs_state(name: str) -> bool:
    """Whether `requirements` of a call may say anything: of most calls, which move data or wait, nothing."""
    return CALLS[name].FORM is not None or name in STATEFUL or name.startswith("sfpu_") or "_tiles_bcast_" in name


def _block_requirements(op: KernelCallOp, init: Operation | None) -> tuple[Requirement, ...]:
    """Calls outside the op table."""
    name = op.CALL.name
    if name == "sfpu_reduce":
        # A maximum of rows records other instructions over those its init left for columns.
        return (_engine("sfpu", init, [], _written_template(op)),)
    if name.startswith("sfpu_"):
        return (_engine("sfpu", init, []),)
    if name in ("matmul_tiles", "matmul_block"):
        left, right = op.operands[:2]  # the left matrix takes SrcB
        return (*_formats(right, left), _engine("fpu", init, [left, right], _shape_key(op)))
    if name == "reduce_tile":
        data, scaler = op.operands[:2]
        edge = _written_template(op)
        swapped = "SUM" in edge and "REDUCE_ROW" in edge and DATA_IN_SRCA not in op.attributes
        engine = _engine("fpu", init, [data, scaler])
        masked = Requirement("edge", edge, engine.make, also=(("fpu", engine.key),))
        both = Requirement("fpu", engine.key, engine.make, also=(("edge", edge),))
        return (*(_formats(scaler, data) if swapped else _formats(data, scaler)), both, masked)
    if name == "unary_bcast":
        engine = _engine("fpu", init, [op.operands[0]])
        if init is not None and init.name == f"ttkernel.{FULL_INIT}":
            source = source_format(op.operands[0])
            packer = (("pack", pack_format(init.operands[1])), ("edge", UNKNOWN), ("relu", "none"))
            also = (("srca", source), ("srcb", source), *packer)
            engine = Requirement("fpu", f"{engine.key}{packer[0][1]}", engine.make, also=also)
        return (*_formats(op.operands[0], op.operands[0]), engine)
    if name == "transpose_wh_tile":
        buffer = op.operands[0]
        return (_format("srca", buffer, "reconfig_data_format_srca"), _engine("fpu", init, [buffer]))
    if "_tiles_bcast_" in name:
        return (*_formats(*op.operands[:2]), _engine("fpu", init, list(op.operands[:2])))
    return ()


def _written_template(op: Operation) -> str:
    """The template arguments of a call; empty if it has none."""
    return _text(op.attributes["template"]) if "template" in op.attributes else ""


@lru_cache(maxsize=1024)
def _text(words: Attribute) -> str:
    return str(words)


def _shape_key(op: KernelCallOp) -> str:
    return ",".join([str(int_value(op, key)) if key in op.attributes else "" for key in ("transpose", "ct", "rt", "kt")])


def _formats(first: SSAValue, second: SSAValue) -> tuple[Requirement, Requirement]:
    return (
        _format("srca", first, "reconfig_data_format_srca"),
        _format("srcb", second, "reconfig_data_format_srcb"),
    )


def _format(state: str, buffer: SSAValue, reconfig: str) -> Requirement:
    key = pack_format(buffer) if state == "pack" else source_format(buffer)
    return Requirement(state, key, lambda: call(reconfig, [buffer]))


def _engine(
    state: str, init: Operation | None, buffers: list[SSAValue], detail: str = "", *, stateless: bool = False
) -> Requirement:
    if init is None:
        return Requirement(state, ANY, _not_written)
    params = init.attributes.get("params")
    key = f"{init.name}{_written_template(init)}{params or ''}{[source_format(buffer) for buffer in buffers]}{detail}"

    def make() -> Operation:
        return type(init).create(operands=init.operands, attributes=init.attributes, location=init.location)

    return Requirement(state, ANY if stateless else key, make)


class NoInit(Exception):
    """A call needs an init, and no call like it has one in front."""


def _not_written() -> Operation:
    raise NoInit


def source_format(buffer: SSAValue) -> str:
    """What a source register is configured for; tiles that go straight to DST need their own setting."""
    assert type(buffer.type) is KernelCBType
    straight = "unpack_to_dest" in defining_op(buffer).attributes
    return f"{buffer.type.tile.dtype}{' to DST' if straight else ''}"


def pack_format(buffer: SSAValue) -> str:
    assert type(buffer.type) is KernelCBType
    return buffer.type.tile.dtype
