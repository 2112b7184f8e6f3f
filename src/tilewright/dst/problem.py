"""What the allocator is asked: a straight-line tile computation, how each op may be run, and how many slots there
are.

The library knows no op names. An op is an index; a *form* is one way to execute it (which operands must already be in
DST, which come straight from a buffer, what happens to the result's slot, what it costs). Values are integers: leaves
are ``0 .. len(leaves) - 1``, the result of op ``i`` is ``len(leaves) + i``. Ops are listed in a valid (source) order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Place(Enum):
    """Where a form wants one operand."""

    DST = "dst"
    BUFFER = "buffer"  # read straight from L1 by the unpacker; only leaves are there


class ResultRule(Enum):
    """Which slot a form may write."""

    FREE = "free"  # any slot without a live value; a slot whose value dies at this op counts (SFPU result, FPU add)
    ZEROED = "zeroed"  # a slot nobody has written since the acquire: the unit adds to what is there (FPU mul, matmul)
    IN_PLACE = "in_place"  # the slot of operand ``reuses``, whose value is destroyed (unary SFPU, dest-reuse FPU)
    ACCUMULATE = "accumulate"  # as IN_PLACE, and the unit adds its product to the value there (multiply-add)


@dataclass(frozen=True, slots=True)
class Operand:
    value: int
    place: Place


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One way to execute an op. ``key`` is opaque to the allocator and given back in the result."""

    key: str
    operands: tuple[Operand, ...]  # may differ from the op's own operands when the form absorbs or repeats producers
    result: ResultRule
    reuses: int | None = None  # position in ``operands`` for IN_PLACE and ACCUMULATE
    absorbs: tuple[int, ...] = ()  # ops (indices) computed inside this form; each has no other use and is no output
    repeats: tuple[int, ...] = ()  # ops (indices) on values in buffers, computed once more; their results stay until it has run
    math_cycles: int = 0
    unpack_cycles: int = 0
    init: str = ""  # forms with equal keys share one init; "" needs none
    init_cycles: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """A tile in a buffer. It can be loaded into DST any number of times."""

    name: str = ""
    load_math_cycles: int = 0
    load_unpack_cycles: int = 0
    init: str = "copy"
    init_cycles: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Op:
    operands: tuple[int, ...]
    forms: tuple[Form, ...]
    name: str = ""  # for messages only
    storage: str = ""  # format of its result in a buffer: results of equal storage may take turns in one


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Per-region constants, in cycles. This library knows no chip: what nobody states costs nothing."""

    sync: int = 0  # exposed on the math thread per acquire
    copy: int = 0  # DST to DST, math thread
    copy_init: str = "copy_dest_values"
    copy_init_cycles: int = 0
    pack: int = 0  # per packed tile, pack thread
    spill_unpack: int = 0  # reading a spilled tile back
    spill_overhead: int = 0  # buffer handshake per spilled value and tile
    full_sync_serialises_pack: bool = True


@dataclass(frozen=True, kw_only=True)
class Problem:
    leaves: tuple[Leaf, ...]
    ops: tuple[Op, ...]
    outputs: tuple[int, ...]  # values packed at the end, in pack order; a value may stand twice
    capacity: int  # DST tiles per acquire
    tiles: int = 1  # tiles of the block; the body runs once for each
    costs: Costs = Costs()
    full_sync: bool = False
    spill_limit: int = 32  # intermediate buffers there is room for; values that travel take turns in them
    round_trips: int = 0  # of these, how many may be used where nothing forces it but it costs less
    lasting_inits: frozenset[str] = frozenset()  # keys that nothing in the region undoes: set for one tile, they serve the next
    round_trip_saving: float = 0.0  # share of the cycles that such a use has to save

    @property
    def value_count(self) -> int:
        return len(self.leaves) + len(self.ops)

    def is_leaf(self, value: int) -> bool:
        return value < len(self.leaves)

    def op_of(self, value: int) -> int:
        return value - len(self.leaves)

    def result_of(self, op: int) -> int:
        return len(self.leaves) + op
