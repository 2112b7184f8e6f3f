"""Proves that every math and pack call runs under its init: an abstract interpreter of the engines' state over all paths.

It shares nothing with the pass that places the inits. What it knows: the matrix unit (with its unpacker) holds one
configuration, the vector unit another; each source register and the packer has a data format; start-up comes once and first.
A loop that may run zero times joins the state before it; a branch joins both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright.dialects.attributes import KernelCBType
from tilewright.dialects.tile_op import Unit

BLOCK_INIT_OF = {
    "matmul_tiles": "mm_init_short",
    "matmul_block": "mm_block_init_short",
    "reduce_tile": "reduce_init",
    "unary_bcast": "unary_bcast_init",
    "transpose_wh_tile": "transpose_wh_init_short",
}
MOST_STATES = 64


class MissingInit(AssertionError):
    """A call may run without its init, or under another op's."""


@dataclass(frozen=True)
class State:
    started: bool = False
    matrix: tuple[Any, ...] | None = None
    vector: tuple[Any, ...] | None = None
    srca: str = ""
    srcb: str = ""
    packer: str = ""
    edge: str = ""  # what a reduction lets the packer write; empty: everything
    filled: bool = False  # something is in DST since the section was acquired
    anew: bool = False  # the half of the section is known to be the first


def check_function(function: Any, *, arch: str = "wormhole_b0") -> int:
    """Raises MissingInit; returns how many calls were proven."""
    checker = _Checker(function, arch)
    checker.block(function.body.blocks[0], frozenset({State()}))
    return checker.proven


def check_module(module: Any, *, arch: str = "wormhole_b0") -> int:
    proven = 0
    for function in module.ops:
        if getattr(getattr(function.attributes.get("ttl.kernel_thread"), "kind", None), "data", "") == "compute":
            proven += check_function(function, arch=arch)
    return proven


def _dtype(buffer: Any) -> str:
    return buffer.type.tile.dtype


def _buffers(op: Any) -> list[Any]:
    return [operand for operand in op.operands if isinstance(operand.type, KernelCBType)]


def _constant(value: Any) -> int | None:
    owner = value.owner
    return owner.value.value.data if getattr(owner, "name", "") == "arith.constant" else None


class _Checker:
    def __init__(self, function: Any, arch: str) -> None:
        self.throttled = arch == "blackhole"
        attribute = function.attributes.get("ttl.unpack_to_dest")
        self.direct = {entry.value.data for entry in attribute} if attribute is not None else set()
        width = function.attributes.get("ttl.fp32_dest_acc_en")
        self.wide = width is not None and bool(width.value.data)
        self.proven = 0

    # Control flow -------------------------------------------------------------------------------------------------------

    def block(self, block: Any, states: frozenset[State]) -> frozenset[State]:
        for op in block.ops:
            if op.name == "scf.for":
                states = self.loop(op, states)
            elif op.regions:
                ends = [self.block(inner, states) for region in op.regions for inner in region.blocks]
                if len(ends) < 2:  # an if without an else
                    ends.append(states)
                states = frozenset().union(*ends)
            elif op.name.startswith("ttkernel."):
                states = frozenset(self.call(op, state) for state in states)
            assert len(states) <= MOST_STATES
        return states

    def loop(self, loop: Any, states: frozenset[State]) -> frozenset[State]:
        body = loop.body.blocks[0]
        low, high = _constant(loop.lb), _constant(loop.ub)
        runs = low is not None and high is not None and low < high
        entering, leaving = states, frozenset[State]()
        while True:
            after = self.block(body, entering)
            leaving |= after
            if after <= entering:
                break
            entering |= after
        return leaving if runs else leaving | states

    # Calls --------------------------------------------------------------------------------------------------------------

    def call(self, op: Any, state: State) -> State:
        name = op.CALL.name
        if name in ("init_sfpu", "binary_op_init_common", "mm_init"):
            return self.start(op, state)
        if name.startswith("reconfig_data_format"):
            formats = [_dtype(buffer) for buffer in _buffers(op)]
            if name.endswith("_srca"):
                return replace(state, srca=formats[0])
            if name.endswith("_srcb"):
                return replace(state, srcb=formats[0])
            return replace(state, srca=formats[0], srcb=formats[1])
        if name == "pack_reconfig_data_format":
            return replace(state, packer=_dtype(op.operands[0]))
        if name == "reduce_uninit":
            return replace(state, edge="")
        if name == "tile_regs_acquire":
            return replace(state, filled=False)
        if name == "tile_regs_commit":
            return replace(state, filled=False, anew=False)
        if name == "unary_bcast_full_init":
            return self.full_init(op, state)
        if self.is_init(op):
            return self.init(op, state)
        self.use(op, state)
        state = replace(state, filled=state.filled or ("m" in op.CALL.runs_on and len(op.CALL.runs_on) < 4))
        if name == "matmul_block" and self.throttled and state.vector is not None:
            return replace(state, vector=("disturbed",))  # slowed down by the firmware, it takes an address mode
        return replace(state, matrix=None) if self.takes_replay(op) and self.recorded(state.matrix) else state

    def takes_replay(self, op: Any) -> bool:
        """Long vector functions record themselves over the instructions of the matrix unit."""
        if op.CALL.name == "exp_tile":
            words = [word.data for word in op.attributes.get("template", ())]
            narrow = len(words) == 5 and words[4] == "false"  # as a 16-bit DST has it
            return (not self.wide or narrow) and words[:1] != ["true"]
        return op.CALL.name in ("gcd_tile", "lcm_tile")

    @staticmethod
    def recorded(matrix: tuple[Any, ...] | None) -> bool:
        if matrix is None:
            return False
        adds_rows = matrix[0] == "reduce_init" and "SUM" in matrix[1] and "REDUCE_ROW" in matrix[1]
        return "mm_" in matrix[0] or "transpose_wh" in matrix[0] or adds_rows

    def start(self, op: Any, state: State) -> State:
        self.need(op, not state.started, "start-up runs once")
        formats = [_dtype(buffer) for buffer in _buffers(op)]
        first, second, output = formats if len(formats) == 3 else (formats[0], formats[0], formats[1])
        if op.CALL.name == "mm_init":
            first, second = second, first
        return State(started=True, srca=first, srcb=second, packer=output)

    def is_init(self, op: Any) -> bool:
        name = op.CALL.name
        if op.FORM is not None:
            return name == op.FORM.init
        return name.endswith(("_init", "_init_short"))

    def init(self, op: Any, state: State) -> State:
        self.need(op, state.started, "start-up comes before any init")
        if op.CALL.runs_on == "m":
            return replace(state, vector=self.vector_key(op, op.CALL.name))
        state = replace(state, matrix=self.matrix_key(op, op.CALL.name, _buffers(op)))
        if op.CALL.name == "reduce_init":
            state = replace(state, edge=str(op.attributes["template"]))
        return state

    def full_init(self, op: Any, state: State) -> State:
        """Of releases before 0.78: it sets up all formats and the packer, and goes back to the first half of DST."""
        self.need(op, state.started, "start-up comes before any init")
        self.need(op, state.anew or not state.filled, "what is in DST may be in its second half")
        source, output = (_dtype(buffer) for buffer in _buffers(op))
        key = self.matrix_key(op, "unary_bcast_init", _buffers(op))
        return replace(state, matrix=key, srca=source, srcb=source, packer=output, edge="", anew=True)

    def vector_key(self, op: Any, init: str) -> tuple[Any, ...]:
        given = op.attributes.get("values")
        if op.FORM is None:  # a broadcast on the vector unit: no parameters
            return (init, "[]")
        prepared = " ".join((*op.FORM.init_template, *op.FORM.init_args))  # what the init is told
        known = {} if given is None else {key: str(value) for key, value in given.data.items() if key in prepared}
        return (init, str(sorted(known.items())))

    def matrix_key(self, op: Any, init: str, buffers: list[Any]) -> tuple[Any, ...]:
        if init in ("unary_bcast_init", "reduce_init"):
            buffers = buffers[: 1 if init == "unary_bcast_init" else 2]  # the output buffer is the packer's business
        kinds = tuple((_dtype(buffer), self.is_direct(buffer)) for buffer in buffers)
        shape = tuple(str(op.attributes.get(key, "")) for key in ("transpose", "ct", "rt", "kt")) if "mm_" in init else ()
        return (init, str(op.attributes.get("template", "")), kinds, shape)

    def is_direct(self, buffer: Any) -> bool:
        index = buffer.owner.attributes.get("cb_index")
        return index is not None and index.value.data in self.direct

    # What a call needs ----------------------------------------------------------------------------------------------------

    def use(self, op: Any, state: State) -> None:
        name, form = op.CALL.name, op.FORM
        buffers = _buffers(op)
        if name in ("pack_tile", "pack_tile_block"):
            self.need(op, state.packer == _dtype(buffers[0]), f"packer is set to {state.packer}")
            edge = op.attributes.get("edge")
            self.need(op, state.edge == ("" if edge is None else edge.data), f"packer edge is '{state.edge}'")
        elif name == "copy_tile":
            self.matrix(op, state, "copy_tile_init", buffers)
            self.need(op, state.srca == _dtype(buffers[0]), f"SrcA is set to {state.srca}")
        elif name == "copy_dest_values":
            self.need(op, state.vector is not None, "no vector init ran")
        elif form is not None and form.unit is Unit.SFPU:
            if form.stateful:
                key = self.vector_key(op, form.init)
                self.need(op, state.vector == key, f"the vector unit is set up for {state.vector}")
            elif form.init:
                self.need(op, state.vector is not None, "no vector init ran")
        elif form is not None and form.unit is Unit.FPU:
            self.matrix(op, state, form.init, buffers)
            self.formats(op, state, buffers[0], buffers[1])
        elif form is not None:
            self.matrix(op, state, form.init, buffers)
            from_a = "DEST_TO_SRCA" in str(op.attributes["template"])  # the tile in DST takes SrcA, the buffer SrcB
            found = state.srcb if from_a else state.srca
            self.need(op, found == _dtype(buffers[0]), f"the buffer's register is set to {found}")
        elif name.startswith("sfpu_"):
            self.need(op, state.vector == self.vector_key(op, f"{name}_init"), f"the vector unit is set up for {state.vector}")
        elif name in BLOCK_INIT_OF or "_tiles_bcast_" in name:
            self.block_call(op, state, buffers)
        else:
            return
        self.need(op, state.started, "start-up has not run")
        self.proven += 1

    def block_call(self, op: Any, state: State, buffers: list[Any]) -> None:
        name = op.CALL.name
        if "_tiles_bcast_" in name:
            self.matrix(op, state, f"{name.replace('_tiles_bcast_', '_bcast_')}_init_short", buffers)
            self.formats(op, state, *buffers)
            return
        self.matrix(op, state, BLOCK_INIT_OF[name], buffers)
        if name.startswith("matmul"):
            self.formats(op, state, buffers[1], buffers[0])
        elif name == "reduce_tile":
            template = str(op.attributes["template"])
            swapped = "SUM" in template and "REDUCE_ROW" in template and "data_in_srca" not in op.attributes
            self.formats(op, state, *(reversed(buffers) if swapped else buffers))
        else:
            found = state.srcb if name == "unary_bcast" else state.srca
            self.need(op, found == _dtype(buffers[0]), f"the buffer's register is set to {found}")

    def matrix(self, op: Any, state: State, init: str, buffers: list[Any]) -> None:
        wanted = self.matrix_key(op, init, buffers)
        self.need(op, state.matrix == wanted, f"the matrix unit is set up for {state.matrix}, not for {wanted}")

    def formats(self, op: Any, state: State, first: Any, second: Any) -> None:
        self.need(op, state.srca == _dtype(first), f"SrcA is set to {state.srca}")
        self.need(op, state.srcb == _dtype(second), f"SrcB is set to {state.srcb}")

    def need(self, op: Any, holds: bool, found: str) -> None:
        if not holds:
            raise MissingInit(f"{op}: {found}")
