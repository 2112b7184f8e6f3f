"""What the allocator is asked, and what it answers.

Asked: a straight-line tile computation, how each op may be run, and how many slots there are. The library knows no op names. An
op is an index; a *form* is one way to execute it (which operands must already be in DST, which come straight from a buffer,
what happens to the result's slot, what it costs). Values are integers: leaves are ``0 .. len(leaves) - 1``, the result of op
``i`` is ``len(leaves) + i``. Ops are listed in a valid (source) order.

Answered: steps on slots, how many tiles share an acquire, and what it cost. A *slot* is a DST tile as one tile of the block
sees it. Several tiles are processed per acquire; ``Allocation.dst_index`` maps (slot, tile) to the physical DST index for the
chosen layout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum
from functools import cached_property

from tilewright.records import record


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


@record
class Operand:
    value: int
    place: Place


@record(kw_only=True)
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


@record(kw_only=True)
class Leaf:
    """A tile in a buffer. It can be loaded into DST any number of times."""

    name: str = ""
    load_math_cycles: int = 0
    load_unpack_cycles: int = 0
    init: str = "copy"
    init_cycles: int = 0


@record(kw_only=True)
class Op:
    operands: tuple[int, ...]
    forms: tuple[Form, ...]
    name: str = ""  # for messages only
    storage: str = ""  # format of its result in a buffer: results of equal storage may take turns in one


@record(kw_only=True)
class Costs:
    """Per-region constants, in cycles. This library knows no chip: what nobody states costs nothing."""

    sync: int = 0  # exposed on the math thread per acquire
    copy: int = 0  # DST to DST, math thread
    copy_init: str = "copy_dest_values"
    copy_init_cycles: int = 0
    pack: int = 0  # per packed tile, pack thread
    spill_unpack: int = 0  # reading a spilled tile back
    spill_overhead: int = 0  # math per spilled value and tile
    hand_over: int = 0  # from the commit of a part until math has the first tile of it that it reads, beside packing it
    full_sync_serialises_pack: bool = True


@record(kw_only=True)
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

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Kept: a problem is looked up once by every pass that asks about its region. Forms mostly follow from what is here."""
        ops = tuple([(op.name, op.operands, len(op.forms)) for op in self.ops])
        return hash((len(self.leaves), ops, self.outputs, self.capacity, self.tiles))

    @property
    def value_count(self) -> int:
        return len(self.leaves) + len(self.ops)

    def is_leaf(self, value: int) -> bool:
        return value < len(self.leaves)

    def op_of(self, value: int) -> int:
        return value - len(self.leaves)

    def result_of(self, op: int) -> int:
        return len(self.leaves) + op


class Layout(Enum):
    OP_MAJOR = "op-major"  # every op runs over all tiles of the sub-block before the next op; tiles share no slot
    TILE_MAJOR = "tile-major"  # all ops of one tile, then the next; slots below ``footprint`` are shared by tiles


@record
class Load:
    """Bring a leaf from its buffer into a slot (copy_tile)."""

    leaf: int
    slot: int


@record
class Copy:
    """DST to DST (copy_dest_values)."""

    value: int
    source: int
    target: int


@record
class Execute:
    """Run op ``op`` in its form number ``form``. ``slots`` has one entry per form operand, None for a buffer operand.
    """

    op: int
    form: int
    slots: tuple[int | None, ...]
    target: int


Step = Load | Copy | Execute


def on_slots(step: Step, place: Callable[[int], int]) -> Step:
    """The step with every slot renamed. Slots are alike, so steps that are all renamed alike mean the same."""
    if isinstance(step, Load):
        return Load(step.leaf, place(step.slot))
    if isinstance(step, Copy):
        return Copy(step.value, place(step.source), place(step.target))
    slots = tuple(None if slot is None else place(slot) for slot in step.slots)
    return Execute(step.op, step.form, slots, place(step.target))


@record
class Remedy:
    """Something done because the plain answer did not fit or cost more; shown to the user."""

    kind: str  # reorder, reload, form, recompute, full-sync, split
    detail: str
    cycles: int


@record(kw_only=True)
class Allocation:
    """One acquire-to-release section, for ``tiles_per_acquire`` tiles."""

    steps: tuple[Step, ...]
    output_slots: tuple[int, ...]  # one per problem output, in pack order
    slots: int  # slots one tile uses (op-major), or footprint + outputs (tile-major)
    layout: Layout
    footprint: int  # tile-major: slots shared by all tiles (inputs and intermediates); op-major: 0
    tiles_per_acquire: int
    math_cycles: int = 0  # per tile, without sync and inits
    unpack_cycles: int = 0
    pack_cycles: int = 0
    init_cycles: int = 0  # per acquire
    init_switches: int = 0  # per acquire
    cycles_per_tile: float = 0.0  # the modelled T

    def dst_index(self, slot: int, tile: int) -> int:
        if self.layout is Layout.TILE_MAJOR:
            if slot < self.footprint:
                return slot
            return self.footprint + (slot - self.footprint) * self.tiles_per_acquire + tile
        return slot * self.tiles_per_acquire + tile

    @property
    def copies(self) -> int:
        return sum(isinstance(step, Copy) for step in self.steps)

    @property
    def loads(self) -> int:
        return sum(isinstance(step, Load) for step in self.steps)

    @property
    def distinct_loads(self) -> int:
        return len({step.leaf for step in self.steps if isinstance(step, Load)})


@record(kw_only=True)
class Part:
    """One compute of a (possibly split) region. ``leaves`` and ``outputs`` are values of the original problem."""

    ops: tuple[int, ...]  # original op indices this part executes or recomputes
    leaves: tuple[int, ...]  # original values this part reads from buffers, by Load.leaf and BUFFER operands
    outputs: tuple[int, ...]  # original values this part packs, in pack order (spills first, then region outputs)
    allocation: Allocation  # its steps name original ops and original values
    requirements: object = None  # a ``Requirements``, for those who explain
    spilled: int = 0  # how many of ``outputs``, from the front, go to intermediate buffers instead of region outputs


@record(kw_only=True)
class Plan:
    """The whole answer. One part unless the region had to be split, or is cheaper in several."""

    parts: tuple[Part, ...]
    allocator: str  # linear-scan, lars, optimal
    exact: bool  # proven least cost, or a heuristic above the size limit
    remedies: tuple[Remedy, ...] = ()
    full_sync: bool = False  # the plan needs (or gains from) full sync
    split_by_choice: bool = False  # the region fits, but some values go through a buffer at less cost
    notes: tuple[str, ...] = field(default=())
    lower_bound: float = 0.0  # cycles per tile no plan without a cut can beat, 0 if unknown
    buffers: tuple[tuple[int, int], ...] = ()  # (value, intermediate buffer) of every spill; a buffer serves one after the other
    explanation: object = None  # what the allocator can show of its own working (``LinearScanTrace`` for linear-scan)

    @property
    def spills(self) -> tuple[int, ...]:
        """Values that travel between parts through an intermediate buffer."""
        return tuple(dict.fromkeys(value for part in self.parts for value in part.outputs[: part.spilled]))

    @property
    def cycles_per_tile(self) -> float:
        return sum(part.allocation.cycles_per_tile for part in self.parts)

    @property
    def copies(self) -> int:
        return sum(part.allocation.copies for part in self.parts)

    @property
    def reloads(self) -> int:
        """Loads beyond the first of each leaf in each part."""
        return sum(part.allocation.loads - part.allocation.distinct_loads for part in self.parts)
