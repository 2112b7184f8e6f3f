"""The compute thread of a TileLang kernel.

Inside a straight piece of code a fragment is a value: the passes fuse what depends on it. Where a loop or a branch begins, values
that are still needed go into a buffer of their own; a loop that changes one takes it from there and puts the new one back. A
fragment that a loop only adds to is an accumulating store instead, which the passes keep in DST or in L1.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

from tilewright.builder import movement
from tilewright.builder.values import Block
from tilewright.diagnostics import fail
from tilewright.dialects.walking import span_of_node
from tilewright.frontend.tilelang.block_writer import BlockWriter, Tile, held_as, is_narrowing, math_of, rounded
from tilewright.frontend.tilelang.layouts import Buffers, fragment_tiles
from tilewright.frontend.tilelang.symbols import Apply, Expression, Fragment, Number, Product, Read
from tilewright.frontend.tilelang.threads import ThreadWriter
from tilewright.frontend.tilelang.tile_program import (
    FULL,
    ROW,
    Assign,
    Branch,
    Fragments,
    Liveness,
    Load,
    Loop,
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
from tilewright.lang.building import Build
from tilewright.records import record

SMALLEST_DST = dst_tiles(fp32_dest_acc=True, full_sync=False)


@record(eq=False)
class Accumulator:
    fragment: Fragment
    update: Assign
    runs: bool  # the loop runs at least once
    store: Store | None  # the sum goes straight to this store's buffer
    buffer: CircularBuffer | None

    def added(self, statement: Assign) -> Expression:
        """What an update adds."""
        assert statement is self.update
        found = summand(statement)
        assert found is not None
        return found


def summand(statement: Assign) -> Expression | None:
    """``x`` of ``total = total + x`` where ``x`` does not read ``total``."""
    value, target = statement.value, statement.target
    if not isinstance(value, Apply) or value.op != "+":
        return None
    for own, other in (value.arguments, value.arguments[::-1]):
        if isinstance(own, Read) and own.fragment is target and all(read is not target for read in read_by(other)):
            return other
    return None


def find_accumulators(loop: Loop, around: Sequence[Statement], liveness: Liveness, buffers: Buffers) -> list[Accumulator]:
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
        runs = _always_runs(loop, statement)
        found.append(Accumulator(target, statement, runs, store, None if store is None else buffers.of(store)))
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


@record(frozen=False, eq=False)
class Held:
    """A block that was waited for."""

    buffer: CircularBuffer


@record(frozen=False)
class Slot:
    """Where a fragment's value is: an expression or block (``tile``), or in its buffer, not yet waited for (``queued``)."""

    tile: Tile | None = None
    needs: frozenset[Held] = frozenset()
    queued: bool = False
    zero: bool = False
    block: bool = False  # the tile is a block of a buffer, not an expression


@record(frozen=False)
class Region:
    """A loop body or branch being written: blocks that were waited for in it."""

    held: list[Held] = field(default_factory=list[Held])


class ComputeWriter(ThreadWriter):
    def __init__(
        self,
        function: Callable[..., Any],
        program: TileProgram,
        build: Build,
        buffers: Buffers,
        vectors: dict[Fragment, str],
    ) -> None:
        super().__init__("compute", function, program, build)
        self.buffers = buffers
        self.vectors = vectors  # layout of each vector
        self.liveness = Liveness(program.body)
        self.slots: dict[Fragment, Slot] = {}
        self.regions: list[Region] = []
        self.sums: dict[Fragment, tuple[Accumulator, Block]] = {}
        self.done: set[Store] = set()

    def concerns(self, statements: Sequence[Statement]) -> bool:
        return bool(statements)

    def layout(self, fragment: Fragment) -> str:
        return self.vectors.get(fragment, FULL)

    # Blocks of buffers ------------------------------------------------------------------------------------------------

    def wait(self, buffer: CircularBuffer, node: ast.AST) -> tuple[Block, Held]:
        self.free(buffer, frozenset(self.slots), node)
        block = movement.acquire(self.thread, buffer, "wait")
        held = Held(buffer)
        self.regions[-1].held.append(held)
        return Block(block.ssa, block.shape, block.dtype), held

    def collect(self, live: Fragments, node: ast.AST) -> None:
        """Free blocks of this region that no value still needs."""
        needed = {held for fragment, slot in self.slots.items() if fragment in live for held in slot.needs}
        region = self.regions[-1]
        blocked: set[int] = set()
        for held in list(region.held):
            if held in needed or held.buffer.index in blocked:
                blocked.add(held.buffer.index)  # a buffer is a queue: later blocks wait for this one
                continue
            movement.release_buffer(self.thread, held.buffer, "pop")
            region.held.remove(held)
            for fragment in [fragment for fragment, slot in self.slots.items() if held in slot.needs]:
                del self.slots[fragment]  # dead: what is written next does not depend on it

    def free(self, buffer: CircularBuffer, live: Fragments, node: ast.AST) -> None:
        """Give back the block of a buffer that is held, if one is, before the next is taken: two might not lie in one piece."""
        earlier = {held for held in self.regions[-1].held if held.buffer is buffer}
        if earlier:
            self.keep([other for other, slot in self.slots.items() if other in live and slot.needs & earlier], node)
            self.collect(live, node)

    def put(self, values: Sequence[tuple[CircularBuffer, Tile]], node: ast.AST) -> None:
        """Reserve, store, push; all stores stand together, so that what they share is computed once."""
        blocks = [movement.acquire(self.thread, buffer, "reserve") for buffer, _ in values]
        for block, (buffer, tile) in zip(blocks, values, strict=True):
            movement.store(self.thread, block, held_as(self.thread, tile.block, buffer.dtype, node), False)
        for buffer, _ in values:
            movement.release_buffer(self.thread, buffer, "push")

    def keep(self, fragments: Iterable[Fragment], node: ast.AST, also: Sequence[tuple[CircularBuffer, Tile]] = ()) -> None:
        """Put the values of fragments into their own buffers (and ``also`` into others)."""
        values = list(also)
        for fragment in sorted(fragments, key=lambda each: each.ident):
            slot, layout = self.slots[fragment], self.layout(fragment)
            if slot.queued:
                continue
            assert slot.tile is not None
            tile = BlockWriter(self.thread, node, fragment, layout, self.read).placed(slot.tile, layout)
            values.append((self.buffers.kept(fragment, layout), tile))
            self.slots[fragment] = Slot(queued=True)
        self.put(values, node)

    def drain(self, fragment: Fragment, node: ast.AST) -> None:
        """Take a value nobody wants out of its buffer."""
        if self.slots.pop(fragment).queued:
            self.wait(self.buffers.kept(fragment, self.layout(fragment)), node)

    def read(self, fragment: Fragment) -> Tile:
        slot = self.slots.get(fragment)
        if slot is None:
            raise self._unwritten(fragment)
        if slot.queued:
            node, buffer = self.current.place.node, self.buffers.kept(fragment, self.layout(fragment))
            block, held = self.wait(buffer, node)
            slot = self.slots[fragment] = Slot(Tile(block, self.layout(fragment)), frozenset({held}), block=True)
        assert slot.tile is not None
        return slot.tile

    def read_narrow(self, fragment: Fragment) -> Tile:
        """The value for an expression: one that was computed in more bits than its fragment has is rounded, once."""
        tile, slot = self.read(fragment), self.slots[fragment]
        if not slot.block and is_narrowing(tile.block.dtype, fragment.format):
            tile = slot.tile = rounded(self.thread, tile, self.current.place.node)
        return tile

    def _unwritten(self, fragment: Fragment) -> Exception:
        place = self.current.place
        return fail(
            "TW203",
            f"fragment '{fragment.name}' is read before anything was written to it",
            span_of_node(place.file, place.node),
            help=f"copy into it, T.clear({fragment.name}) or T.fill({fragment.name}, value) first",
        )

    # Statements -------------------------------------------------------------------------------------------------------

    def write(self) -> Any:
        self.current: Statement = self.program.body[0]
        self.regions.append(Region())
        return super().write()

    def body(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.current = statement
            if isinstance(statement, Loop):
                self.loop(statement, statements)
            elif isinstance(statement, Branch):
                self.branch(statement)
            else:
                self.statement(statement)
        if len(self.regions) == 1:
            self._leave(frozenset(), frozenset(), self.at(self.program.place))

    def statement(self, statement: Statement) -> None:
        node = self.at(statement.place)
        live = self.liveness.after[statement]
        if isinstance(statement, Load):
            self._load(statement, live, node)
        elif isinstance(statement, Assign):
            self._assign(statement, live, node)
        elif isinstance(statement, Store) and statement not in self.done:
            layout = FULL if self.layout(statement.source) == FULL else ROW
            writer = BlockWriter(self.thread, node, statement.source, layout, self.read)
            # A buffer that holds no more than the fragment rounds by itself.
            wide = is_narrowing(statement.window.tensor.format, statement.source.format)
            tile = writer.placed(self.read_narrow(statement.source) if wide else self.read(statement.source), layout)
            math = math_of(tile.block.ssa)
            related = [f for f, s in self.slots.items() if f in live and s.tile is not None and math & math_of(s.tile.block.ssa)]
            self.keep(related, node, [(self.buffers.of(statement), tile)])
            self.collect(live, node)

    def _load(self, statement: Load, live: Fragments, node: ast.AST) -> None:
        fragment, buffer = statement.target, self.buffers.of(statement)
        old = self.slots.pop(fragment, None)
        if old is not None and old.queued:
            self.wait(self.buffers.kept(fragment, self.layout(fragment)), node)
        self.free(buffer, live, node)
        block, held = self.wait(buffer, node)
        layout = FULL if self.layout(fragment) == FULL else ROW
        # Values with more bits than the fragment are rounded where they are used, as those of an assignment are.
        whole = not is_narrowing(block.dtype, fragment.format)
        self.slots[fragment] = Slot(self._widened(Tile(block, layout), fragment, node), frozenset({held}), block=whole)

    def _assign(self, statement: Assign, live: Fragments, node: ast.AST) -> None:
        fragment = statement.target
        if fragment in self.sums:
            accumulator, block = self.sums[fragment]
            tile = self._value(fragment, accumulator.added(statement), node)
            value = held_as(self.thread, tile.block, block.dtype, node)
            movement.store(self.thread, block, value, True)
            self.collect(live - {fragment}, node)
            return
        if fragment not in live:
            return
        old = self.slots.get(fragment)
        added = summand(statement)
        value = added if added is not None and old is not None and old.zero else statement.value
        tile = self._value(fragment, value, node)
        needs = frozenset(held for read in read_by(value) for held in self.slots[read].needs)
        if self.slots.get(fragment) is old and old is not None and old.queued:
            self.wait(self.buffers.kept(fragment, self.layout(fragment)), node)
        zero = isinstance(value, Number) and value.value == 0
        self.slots[fragment] = Slot(tile, needs, zero=zero)

    def _value(self, fragment: Fragment, value: Expression, node: ast.AST) -> Tile:
        for read in read_by(value):
            self.read(read)
        layout = self.layout(fragment)
        writer = BlockWriter(self.thread, node, fragment, layout, self.read, self.buffers.turned, self.read_narrow)
        tile = self._widened(writer.write(value), fragment, node)
        if tile.block.ssa.name_hint is None and fragment.name:
            tile.block.ssa.name_hint = fragment.name
        return tile

    def _widened(self, tile: Tile, fragment: Fragment, node: ast.AST) -> Tile:
        """16 bits in a fragment of 32: what is computed from them has 32 bits."""
        if (tile.block.dtype, fragment.format) != ("bf16", "f32"):
            return tile
        return Tile(held_as(self.thread, tile.block, "f32", node), tile.layout)

    # Loops and branches -----------------------------------------------------------------------------------------------

    def _enter(self, changed: Fragments, inside: Fragments, head: Fragments, after: Fragments, node: ast.AST) -> Fragments:
        """Before a loop or branch: returns the fragments that travel through their buffers."""
        carried = changed & (head | after)
        for fragment in [fragment for fragment in self.slots if fragment not in head | after or fragment in changed - carried]:
            if fragment not in self.sums:
                self.drain(fragment, node)
        for fragment in sorted(carried, key=lambda each: each.ident):
            if fragment not in self.slots:
                tile = BlockWriter(self.thread, node, fragment, self.layout(fragment), self.read).write(Number(0.0))
                self.slots[fragment] = Slot(tile)
        expressions = [fragment for fragment, slot in self.slots.items() if not slot.queued and not slot.block]
        self.keep({*carried, *expressions}, node)
        for fragment in [fragment for fragment in self.slots if fragment in inside and fragment not in carried]:
            self.read(fragment)
        self.collect(head | after, node)
        return carried

    def _leave(self, carried: Fragments, kept: Fragments, node: ast.AST) -> None:
        """At the end of a loop body or branch: what travels on is in its buffer, every block is given back."""
        self.keep(carried & kept, node)
        for fragment in sorted(carried - kept, key=lambda each: each.ident):
            if fragment in self.slots:
                self.drain(fragment, node)
        region = self.regions[-1]
        for fragment, slot in list(self.slots.items()):
            if slot.needs & set(region.held):
                assert fragment not in carried
                del self.slots[fragment]
            elif len(self.regions) == 1:
                self.drain(fragment, node)
        for held in region.held:
            movement.release_buffer(self.thread, held.buffer, "pop")
        region.held.clear()

    def loop(self, statement: Loop, around: Sequence[Statement] = ()) -> None:
        node = self.at(statement.place)
        after, head = self.liveness.after[statement], self.liveness.head[statement]
        started = self._start_sums(statement, around, node)
        sums = frozenset(self.sums)
        changed = written(statement.body) - sums
        carried = self._enter(changed, used(statement.body) - sums, head - sums, after - sums, node)
        outside = dict(self.slots)
        self.at(statement.place)
        self.open_loop(statement)
        self.regions.append(Region())
        self.body(statement.body)
        node = self.at(statement.place)
        self._leave(carried, carried, node)
        self.regions.pop()
        self.emitter.close_loop([])
        self.slots = {fragment: Slot(queued=True) if fragment in carried else slot for fragment, slot in outside.items()}
        for accumulator in started:
            self._finish_sum(accumulator, node)
        for fragment in sorted(carried - after, key=lambda each: each.ident):
            self.drain(fragment, node)
        self.collect(after, node)

    def branch(self, statement: Branch) -> None:
        node = self.at(statement.place)
        after, head = self.liveness.after[statement], self.liveness.head[statement]
        both = [*statement.then, *statement.otherwise]
        carried = self._enter(written(both), used(both), head, after, node)
        outside = dict(self.slots)
        self.at(statement.place)
        then, otherwise = self.emitter.branch(self.value(statement.condition))
        for block, body in ((then, statement.then), (otherwise, statement.otherwise)):
            self.slots = dict(outside)
            self.emitter.enter(block)
            self.regions.append(Region())
            self.body(body)
            node = self.at(statement.place)
            self._leave(carried, carried & after, node)
            self.regions.pop()
            self.emitter.close_branch()
        self.slots = {
            fragment: Slot(queued=True) if fragment in carried else slot
            for fragment, slot in outside.items()
            if fragment not in carried or fragment in after
        }

    # Sums -------------------------------------------------------------------------------------------------------------

    def _start_sums(self, statement: Loop, around: Sequence[Statement], node: ast.AST) -> list[Accumulator]:
        started: list[Accumulator] = []
        for accumulator in find_accumulators(statement, around, self.liveness, self.buffers):
            fragment = accumulator.fragment
            if fragment in self.sums:
                continue
            slot = self.slots.get(fragment)
            if slot is None:
                self.current = statement
                raise self._unwritten(fragment)
            first = None if slot.zero and accumulator.runs else self.read(fragment)
            buffer = accumulator.buffer or self.buffers.kept(fragment, self.layout(fragment))
            block = movement.acquire(self.thread, buffer, "reserve")
            if first is not None:
                movement.store(self.thread, block, held_as(self.thread, first.block, buffer.dtype, node), False)
            self.slots.pop(fragment)
            self.sums[fragment] = (accumulator, block)
            started.append(accumulator)
        return started

    def _finish_sum(self, accumulator: Accumulator, node: ast.AST) -> None:
        fragment = accumulator.fragment
        del self.sums[fragment]
        if accumulator.store is not None:
            movement.release_buffer(self.thread, self.buffers.of(accumulator.store), "push")
            self.done.add(accumulator.store)
            return
        movement.release_buffer(self.thread, self.buffers.kept(fragment, self.layout(fragment)), "push")
        self.slots[fragment] = Slot(queued=True)
