"""The compute thread of a TileLang kernel.

Inside a straight piece of code a fragment is a value: the passes fuse what depends on it. Where a loop or a branch begins, values
that are still needed go into a buffer of their own; a loop that changes one takes it from there and puts the new one back. A
fragment that a loop only adds to is an accumulating store instead, which the passes keep in DST or in L1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright.builder import movement
from tilewright.builder.values import Acquisition, Block
from tilewright.frontend.tilelang.block_writer import BlockWriter, Tile, held_as, is_narrowing, math_of, rounded
from tilewright.frontend.tilelang.layouts import Buffers, fragment_tiles
from tilewright.frontend.tilelang.symbols import Apply, Expression, Fragment, Number, Product, Read
from tilewright.frontend.tilelang.threads import TileThread
from tilewright.frontend.tilelang.tile_program import (
    FULL,
    ROW,
    Assign,
    Branch,
    Fragments,
    Liveness,
    Load,
    Loop,
    Place,
    Statement,
    Store,
    TileProgram,
    bodies,
    read_by,
    reads,
    used,
    walk,
    written,
)
from tilewright.hardware import dst_tiles
from tilewright.integers import bounds, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.kernel import Build
from tilewright.records import record

SMALLEST_DST = dst_tiles(fp32_dest_acc=True, full_sync=False)


@record(eq=False)
class Accumulator:
    """A fragment that a loop only adds to: decided by what reads and writes it, never by names."""

    fragment: Fragment
    update: Assign
    runs: bool  # the loop runs at least once
    store: Store | None  # the sum goes straight to this store's buffer


def summand(statement: Assign) -> Expression | None:
    """``x`` of ``total = total + x`` where ``x`` does not read ``total``."""
    value, target = statement.value, statement.target
    if not isinstance(value, Apply) or value.op != "+":
        return None
    for own, other in (value.arguments, value.arguments[::-1]):
        if isinstance(own, Read) and own.fragment is target and all(read is not target for read in read_by(other)):
            return other
    return None


def find_accumulators(loop: Loop, around: Sequence[Statement], liveness: Liveness) -> list[Accumulator]:
    found: list[Accumulator] = []
    inside = list(walk(loop.body))
    conditional = {id(s) for branch in inside if isinstance(branch, Branch) for body in bodies(branch) for s in walk(body)}
    for statement in inside:
        if not isinstance(statement, Assign) or id(statement) in conditional or summand(statement) is None:
            continue
        target = statement.target
        writes = [s for s in inside if isinstance(s, (Load, Assign)) and s.target is target]
        readers = [s for s in inside for read in reads(s) if read is target]
        if len(writes) != 1 or len(readers) != 1 or target not in liveness.after[loop] or target.is_vector:
            continue
        store = _only_store(target, loop, around, liveness)
        if store is not None and not _same_precision(statement, store, loop):
            store = None
        found.append(Accumulator(target, statement, _always_runs(loop, statement), store))
    return found


def _always_runs(loop: Loop, statement: Assign) -> bool:
    """Every loop from this one down to the statement has at least one iteration."""
    chain = [inner for inner in (loop, *walk(loop.body)) if isinstance(inner, Loop)]
    chain = [inner for inner in chain if any(s is statement for s in walk(inner.body))]
    return all(bounds(make("-", inner.stop, inner.start))[0] >= 1 for inner in chain)


def _only_store(target: Fragment, loop: Loop, around: Sequence[Statement], liveness: Liveness) -> Store | None:
    """The store after the loop that is the only reader of the sum."""
    position = next((i for i, s in enumerate(around) if s is loop), None)
    if position is None:
        return None
    later = list(walk(around[position + 1 :]))
    readers = [s for s in later for read in reads(s) if read is target]
    direct = [s for s in around[position + 1 :] if isinstance(s, Store) and s.source is target]
    if len(readers) != 1 or len(direct) != 1 or target in liveness.after[direct[0]]:
        return None
    changed = any(isinstance(s, (Load, Assign)) and s.target is target for s in later)
    return None if changed else direct[0]


def _same_precision(statement: Assign, store: Store, loop: Loop) -> bool:
    """Partial sums do not lose bits in the output's buffer: it is as wide, or they stay in DST."""
    if store.window.tensor.format == statement.target.format:
        return True
    value = summand(statement)
    plain = isinstance(value, Product) and not value.transpose_left and not value.transpose_right
    alone = all(isinstance(s, Load) or s is statement for s in loop.body)
    return plain and alone and math.prod(fragment_tiles(statement.target)) <= SMALLEST_DST


@record(frozen=False)
class Slot:
    """Where a fragment's value is: an expression or block (``tile``), or in its buffer, not yet waited for (``queued``)."""

    tile: Tile | None = None
    needs: frozenset[Acquisition] = frozenset()  # blocks that the value reads
    queued: bool = False
    zero: bool = False
    block: bool = False  # the tile is a block of a buffer, not an expression


class ComputeThread(TileThread):
    def __init__(
        self, function: Callable[..., Any], program: TileProgram, build: Build, buffers: Buffers, vectors: dict[Fragment, str]
    ) -> None:
        super().__init__("compute", function, program, build, buffers)
        self.vectors = vectors  # layout of each vector
        self.liveness = Liveness(program.body)
        self.slots: dict[Fragment, Slot] = {}
        self.regions: list[list[Acquisition]] = []  # blocks waited for in each loop body or branch that is being written
        self.running: dict[Fragment, tuple[Accumulator, Block]] = {}
        self.done: set[Store] = set()

    def layout(self, fragment: Fragment) -> str:
        return self.vectors.get(fragment, FULL)

    # Blocks of buffers ------------------------------------------------------------------------------------------------

    def wait(self, buffer: CircularBuffer) -> tuple[Block, Acquisition]:
        self.free(buffer, frozenset(self.slots))
        block = movement.acquire(self, buffer, "wait")
        assert block.held is not None
        self.regions[-1].append(block.held)
        return Block(block.ssa, block.shape, block.dtype), block.held

    def wait_kept(self, fragment: Fragment) -> tuple[Block, Acquisition]:
        return self.wait(self.buffers.kept(fragment, self.layout(fragment)))

    def collect(self, live: Fragments) -> None:
        """Free blocks of this region that no value still needs."""
        needed = {held for fragment, slot in self.slots.items() if fragment in live for held in slot.needs}
        blocked: set[int] = set()
        for held in list(self.regions[-1]):
            if held in needed or held.buffer.index in blocked:
                blocked.add(held.buffer.index)  # a buffer is a queue: later blocks wait for this one
                continue
            movement.release_buffer(self, held.buffer, "pop")
            self.regions[-1].remove(held)
            for fragment in [fragment for fragment, slot in self.slots.items() if held in slot.needs]:
                del self.slots[fragment]  # dead: what is written next does not depend on it

    def free(self, buffer: CircularBuffer, live: Fragments) -> None:
        """Give back the block of a buffer that is held, if one is, before the next is taken: two might not lie in one piece."""
        earlier = {held for held in self.regions[-1] if held.buffer is buffer}
        if earlier:
            self.keep([other for other, slot in self.slots.items() if other in live and slot.needs & earlier])
            self.collect(live)

    def keep(self, fragments: Iterable[Fragment], also: Sequence[tuple[CircularBuffer, Tile]] = ()) -> None:
        """Put the values of fragments into their own buffers (and ``also`` into others): reserve, store, push. All stores stand
        together, so that what they share is computed once."""
        values = list(also)
        for fragment in sorted(fragments, key=lambda each: each.ident):
            slot, layout = self.slots[fragment], self.layout(fragment)
            if slot.queued:
                continue
            assert slot.tile is not None
            tile = BlockWriter(self, fragment, layout).placed(slot.tile, layout)
            values.append((self.buffers.kept(fragment, layout), tile))
            self.slots[fragment] = Slot(queued=True)
        blocks = [movement.acquire(self, buffer, "reserve") for buffer, _ in values]
        for block, (_, tile) in zip(blocks, values, strict=True):
            self.store(block, tile)
        for buffer, _ in values:
            movement.release_buffer(self, buffer, "push")

    def store(self, block: Block, tile: Tile, *, accumulate: bool = False) -> None:
        movement.store(self, block, held_as(self, tile.block, block.dtype), accumulate)

    def drain(self, fragment: Fragment) -> None:
        """Take a value nobody wants out of its buffer."""
        if self.slots.pop(fragment).queued:
            self.wait_kept(fragment)

    def read(self, fragment: Fragment) -> Tile:
        slot = self.slots.get(fragment)
        if slot is None:
            raise self._unwritten(fragment)
        if slot.queued:
            block, held = self.wait_kept(fragment)
            slot = self.slots[fragment] = Slot(Tile(block, self.layout(fragment)), frozenset({held}), block=True)
        assert slot.tile is not None
        return slot.tile

    def read_narrow(self, fragment: Fragment) -> Tile:
        """The value for an expression: one that was computed in more bits than its fragment has is rounded, once."""
        tile, slot = self.read(fragment), self.slots[fragment]
        if not slot.block and is_narrowing(tile.block.dtype, fragment.format):
            tile = slot.tile = rounded(self, tile)
        return tile

    def _unwritten(self, fragment: Fragment) -> Exception:
        return self.problem(
            "TW203",
            f"fragment '{fragment.name}' is read before anything was written to it",
            help=f"copy into it, T.clear({fragment.name}) or T.fill({fragment.name}, value) first",
        )

    # Statements -------------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement) -> None:
        live = self.liveness.after[statement]
        if isinstance(statement, Load):
            self._load(statement, live)
        elif isinstance(statement, Assign):
            self._assign(statement, live)
        elif isinstance(statement, Store) and statement not in self.done:
            self._store(statement, live)

    def _store(self, statement: Store, live: Fragments) -> None:
        layout = FULL if self.layout(statement.source) == FULL else ROW
        # A buffer that holds no more than the fragment rounds by itself.
        wide = is_narrowing(statement.window.tensor.format, statement.source.format)
        value = self.read_narrow(statement.source) if wide else self.read(statement.source)
        tile = BlockWriter(self, statement.source, layout).placed(value, layout)
        math = math_of(tile.block.ssa)
        related = [f for f, s in self.slots.items() if f in live and s.tile is not None and math & math_of(s.tile.block.ssa)]
        self.keep(related, [(self.buffers.of(statement), tile)])
        self.collect(live)

    def _load(self, statement: Load, live: Fragments) -> None:
        fragment, buffer = statement.target, self.buffers.of(statement)
        if fragment in self.slots:
            self.drain(fragment)
        self.free(buffer, live)
        block, held = self.wait(buffer)
        layout = FULL if self.layout(fragment) == FULL else ROW
        # Values with more bits than the fragment are rounded where they are used, as those of an assignment are.
        whole = not is_narrowing(block.dtype, fragment.format)
        self.slots[fragment] = Slot(self._widened(Tile(block, layout), fragment), frozenset({held}), block=whole)

    def _assign(self, statement: Assign, live: Fragments) -> None:
        fragment, added = statement.target, summand(statement)
        if fragment in self.running:
            accumulator, block = self.running[fragment]
            assert statement is accumulator.update and added is not None
            self.store(block, self._value(fragment, added), accumulate=True)
            self.collect(live - {fragment})
            return
        if fragment not in live:
            return
        old = self.slots.get(fragment)
        value = added if added is not None and old is not None and old.zero else statement.value
        tile = self._value(fragment, value)
        needs = frozenset(held for read in read_by(value) for held in self.slots[read].needs)
        if self.slots.get(fragment) is old and old is not None and old.queued:
            self.wait_kept(fragment)
        self.slots[fragment] = Slot(tile, needs, zero=isinstance(value, Number) and value.value == 0)

    def _value(self, fragment: Fragment, value: Expression) -> Tile:
        for read in read_by(value):
            self.read(read)
        tile = self._widened(BlockWriter(self, fragment, self.layout(fragment)).write(value), fragment)
        if tile.block.ssa.name_hint is None and fragment.name:
            tile.block.ssa.name_hint = fragment.name
        return tile

    def _widened(self, tile: Tile, fragment: Fragment) -> Tile:
        """16 bits in a fragment of 32: what is computed from them has 32 bits."""
        wider = (tile.block.dtype, fragment.format) == ("bf16", "f32")
        return Tile(held_as(self, tile.block, "f32"), tile.layout) if wider else tile

    # Loops and branches -----------------------------------------------------------------------------------------------

    def region(
        self, statements: Sequence[Statement], place: Place, carried: Fragments = frozenset(), kept: Fragments = frozenset()
    ) -> None:
        """``carried`` went in through their buffers, ``kept`` of them go on through them."""
        self.regions.append([])
        super().region(statements, place)
        self._leave(carried, kept)

    def _enter(self, changed: Fragments, inside: Fragments, head: Fragments, after: Fragments) -> Fragments:
        """Before a loop or branch: returns the fragments that travel through their buffers."""
        carried = changed & (head | after)
        for fragment in [fragment for fragment in self.slots if fragment not in head | after or fragment in changed - carried]:
            if fragment not in self.running:
                self.drain(fragment)
        for fragment in sorted(carried, key=lambda each: each.ident):
            if fragment not in self.slots:
                self.slots[fragment] = Slot(BlockWriter(self, fragment, self.layout(fragment)).write(Number(0.0)))
        expressions = [fragment for fragment, slot in self.slots.items() if not slot.queued and not slot.block]
        self.keep({*carried, *expressions})
        for fragment in [fragment for fragment in self.slots if fragment in inside and fragment not in carried]:
            self.read(fragment)
        self.collect(head | after)
        return carried

    def _leave(self, carried: Fragments, kept: Fragments) -> None:
        """At the end of a loop body or branch: what travels on is in its buffer, every block is given back."""
        self.keep(carried & kept)
        for fragment in sorted(carried - kept, key=lambda each: each.ident):
            if fragment in self.slots:
                self.drain(fragment)
        for fragment, slot in list(self.slots.items()):
            if slot.needs & set(self.regions[-1]):
                assert fragment not in carried
                del self.slots[fragment]
            elif len(self.regions) == 1:
                self.drain(fragment)
        for held in self.regions.pop():
            movement.release_buffer(self, held.buffer, "pop")

    def loop(self, statement: Loop, around: Sequence[Statement]) -> None:
        after, head = self.liveness.after[statement], self.liveness.head[statement]
        started = self._start_sums(statement, around)
        sums = frozenset(self.running)
        changed = written(statement.body) - sums
        carried = self._enter(changed, used(statement.body) - sums, head - sums, after - sums)
        outside = dict(self.slots)
        self.open_loop(statement)
        self.region(statement.body, statement.place, carried, carried)
        self.emitter.close_loop([])
        self.slots = {fragment: Slot(queued=True) if fragment in carried else slot for fragment, slot in outside.items()}
        for accumulator in started:
            self._finish_sum(accumulator)
        for fragment in sorted(carried - after, key=lambda each: each.ident):
            self.drain(fragment)
        self.collect(after)

    def branch(self, statement: Branch) -> None:
        after, head = self.liveness.after[statement], self.liveness.head[statement]
        both = [*statement.then, *statement.otherwise]
        carried = self._enter(written(both), used(both), head, after)
        outside = dict(self.slots)
        then, otherwise = self.emitter.branch(self.value(statement.condition))
        for block, body in ((then, statement.then), (otherwise, statement.otherwise)):
            self.slots = dict(outside)
            self.emitter.enter(block)
            self.region(body, statement.place, carried, carried & after)
            self.emitter.close_branch()
        self.slots = {
            fragment: Slot(queued=True) if fragment in carried else slot
            for fragment, slot in outside.items()
            if fragment not in carried or fragment in after
        }

    # Sums -------------------------------------------------------------------------------------------------------------

    def _start_sums(self, statement: Loop, around: Sequence[Statement]) -> list[Accumulator]:
        started: list[Accumulator] = []
        for accumulator in find_accumulators(statement, around, self.liveness):
            fragment = accumulator.fragment
            if fragment in self.running:
                continue
            slot = self.slots.get(fragment)
            if slot is None:
                raise self._unwritten(fragment)
            first = None if slot.zero and accumulator.runs else self.read(fragment)
            block = movement.acquire(self, self._sum_buffer(accumulator), "reserve")
            if first is not None:
                self.store(block, first)
            self.slots.pop(fragment)
            self.running[fragment] = (accumulator, block)
            started.append(accumulator)
        return started

    def _sum_buffer(self, accumulator: Accumulator) -> CircularBuffer:
        if accumulator.store is not None:
            return self.buffers.of(accumulator.store)
        return self.buffers.kept(accumulator.fragment, self.layout(accumulator.fragment))

    def _finish_sum(self, accumulator: Accumulator) -> None:
        del self.running[accumulator.fragment]
        movement.release_buffer(self, self._sum_buffer(accumulator), "push")
        if accumulator.store is not None:
            self.done.add(accumulator.store)
        else:
            self.slots[accumulator.fragment] = Slot(queued=True)
