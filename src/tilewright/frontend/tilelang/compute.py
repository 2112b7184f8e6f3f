"""The compute thread of a TileLang kernel.

Inside a straight piece of code a fragment is a value: the passes fuse what depends on it. A fragment that the body of a loop
changes is a running value (`builder/running.py`), and so is one that a loop only adds to: the passes choose where it lies. Other
values that are still needed where a loop or a branch begins go into a buffer of their own; branches and inner loops that change
one take it from there and put the new one back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright.builder import movement, running
from tilewright.builder.running import Running
from tilewright.builder.values import Acquisition, Block
from tilewright.frontend.tilelang.block_writer import BlockWriter, Tile, held_as, is_narrowing, math_of, rounded
from tilewright.frontend.tilelang.layouts import Buffers
from tilewright.frontend.tilelang.symbols import Apply, Expression, Fragment, Number, Read
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
    used,
    walk,
    written,
)
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.kernel import Build
from tilewright.records import record


def summand(statement: Assign) -> Expression | None:
    """``x`` of ``total = total + x`` where ``x`` does not read ``total``."""
    value, target = statement.value, statement.target
    if not isinstance(value, Apply) or value.op != "+":
        return None
    for own, other in (value.arguments, value.arguments[::-1]):
        if isinstance(own, Read) and own.fragment is target and all(read is not target for read in read_by(other)):
            return other
    return None


def in_order(fragments: Iterable[Fragment]) -> list[Fragment]:
    return sorted(fragments, key=lambda each: each.ident)


def changes_in_one_piece(body: Sequence[Statement], fragment: Fragment) -> bool:
    """Whether one piece of code, this body or one further inside, is all that reads or changes a fragment which it changes."""
    touching = [each for each in body if fragment in used([each]) | written([each])]
    inside = [each for each in touching if isinstance(each, (Loop, Branch)) and fragment in written([each])]
    if not inside:
        return True
    pieces = [piece for piece in bodies(inside[0]) if fragment in used(piece) | written(piece)]
    return len(touching) == len(pieces) == 1 and fragment in written(pieces[0]) and changes_in_one_piece(pieces[0], fragment)


@record(frozen=False)
class Slot:
    """Where a fragment's value is: an expression or block (``tile``), or in its buffer, not yet waited for (``queued``)."""

    tile: Tile | None = None
    needs: frozenset[Acquisition] = frozenset()  # blocks that the value reads
    queued: bool = False
    zero: bool = False
    block: bool = False  # the tile is a block of a buffer, not an expression
    running: Running | None = None  # what it was where the body of the loop began, not yet read


class ComputeThread(TileThread):
    def __init__(
        self, function: Callable[..., Any], program: TileProgram, build: Build, buffers: Buffers, vectors: dict[Fragment, str]
    ) -> None:
        super().__init__("compute", function, program, build, buffers)
        self.vectors = vectors  # layout of each vector
        self.liveness = Liveness(program.body)
        self.slots: dict[Fragment, Slot] = {}
        self.regions: list[list[Acquisition]] = []  # blocks waited for in each loop body or branch that is being written
        self.stepping: dict[Fragment, Running] = {}  # running values of the loops around

    def layout(self, fragment: Fragment) -> str:
        return self.vectors.get(fragment, FULL)

    # Blocks of buffers ------------------------------------------------------------------------------------------------

    def wait(self, buffer: CircularBuffer) -> tuple[Block, Acquisition]:
        self.free(buffer, frozenset(self.slots))
        block = movement.acquire(self, buffer, "wait")
        assert block.held is not None
        self.regions[-1].append(block.held)
        return Block(block.ssa, block.shape, block.dtype), block.held

    def own_buffer(self, fragment: Fragment) -> CircularBuffer:
        """The buffer of a fragment; that of a running value is taken."""
        return self.buffers.kept(fragment, self.layout(fragment), "aside" if fragment in self.stepping else "kept")

    def wait_kept(self, fragment: Fragment) -> tuple[Block, Acquisition]:
        return self.wait(self.own_buffer(fragment))

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
        together, so that what they share is computed once. A running value that does not change any more takes its step."""
        values, steps = list(also), list[tuple[Running, Tile]]()
        mentioned = used(self.pending) | written(self.pending)
        for fragment in in_order(fragments):
            slot = self.slots[fragment]
            if slot.tile is None:
                continue
            if fragment in self.stepping and fragment not in mentioned:
                steps.append((self.stepping[fragment], self.placed(fragment)))
                del self.slots[fragment]
            else:
                values.append((self.own_buffer(fragment), self.placed(fragment)))
                self.slots[fragment] = Slot(queued=True)
        blocks = [movement.acquire(self, buffer, "reserve") for buffer, _ in values]
        for block, (_, tile) in zip(blocks, values, strict=True):
            self.store(block, tile)
        for value, tile in steps:
            running.step(self, value, held_as(self, tile.block, value.buffer.dtype))
        for buffer, _ in values:
            movement.release_buffer(self, buffer, "push")

    def placed(self, fragment: Fragment) -> Tile:
        """The value of a fragment as it lies in a buffer of its own."""
        layout, tile = self.layout(fragment), self.slots[fragment].tile
        assert tile is not None
        return BlockWriter(self, fragment, layout).placed(tile, layout)

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
        elif slot.running is not None:
            block = running.read(self, slot.running)
            tile = Tile(Block(block.ssa, block.shape, block.dtype), self.layout(fragment))
            slot = self.slots[fragment] = Slot(tile, block=True)
        assert slot.tile is not None
        return slot.tile

    def read_narrow(self, fragment: Fragment) -> Tile:
        """The value for an expression: one that was computed in more bits than its fragment has is rounded, once."""
        tile, slot = self.read(fragment), self.slots[fragment]
        if not slot.block and is_narrowing(tile.block.dtype, fragment.format):
            tile = slot.tile = rounded(self, tile)
        return tile

    def _unwritten(self, fragment: Fragment) -> Exception:
        remedy = f"copy into it, T.clear({fragment.name}) or T.fill({fragment.name}, value) first"
        return self.problem("TW203", f"fragment '{fragment.name}' is read before anything was written to it", help=remedy)

    # Statements -------------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement) -> None:
        live = self.liveness.after[statement]
        if isinstance(statement, Load):
            self._load(statement, live)
        elif isinstance(statement, Assign):
            self._assign(statement, live)
        elif isinstance(statement, Store):
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
        pending = self.pending
        super().region(statements, place)
        self.pending = ()
        self._leave(carried, kept)
        self.pending = pending

    def _enter(
        self, changed: Fragments, inside: Fragments, head: Fragments, after: Fragments, stepping: Fragments = frozenset()
    ) -> Fragments:
        """Before a loop or branch: returns the fragments that it changes. Those in ``stepping`` are running values, the others
        travel through their buffers."""
        carried = changed & (head | after)
        for fragment in [fragment for fragment in self.slots if fragment not in head | after or fragment in changed - carried]:
            self.drain(fragment)
        for fragment in in_order(carried):
            if fragment not in self.slots:
                self.slots[fragment] = Slot(BlockWriter(self, fragment, self.layout(fragment)).write(Number(0.0)))
        started: dict[Fragment, Running] = {}
        for fragment in in_order((carried & stepping) - self.stepping.keys()):
            self.read(fragment)
            buffer = self.buffers.kept(fragment, self.layout(fragment))
            first = held_as(self, self.placed(fragment).block, buffer.dtype)
            started[fragment] = running.started(self, buffer, first)
            self.slots[fragment] = Slot(running=started[fragment])
        self.stepping |= started
        expressions = [fragment for fragment, slot in self.slots.items() if slot.tile is not None and not slot.block]
        self.keep({*carried, *expressions})
        for fragment in [fragment for fragment in self.slots if fragment in inside and fragment not in carried]:
            self.read(fragment)
        self.collect(head | after)
        return carried

    def _leave(self, carried: Fragments, kept: Fragments) -> None:
        """At the end of a loop body or branch: what travels on is in its buffer, every block is given back."""
        carried = carried & self.slots.keys()  # a running value may have taken its step
        for fragment in in_order(carried & self.stepping.keys()):
            self.read(fragment)
        self.keep(carried & kept)
        for fragment in in_order(carried - kept):
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
        changed, outer = written(statement.body), dict(self.stepping)
        for fragment in in_order(changed - self.slots.keys()):
            writes = [s for s in walk(statement.body) if isinstance(s, (Load, Assign)) and s.target is fragment]
            if all(isinstance(s, Assign) and summand(s) is not None for s in writes):
                raise self._unwritten(fragment)
        here = frozenset(fragment for fragment in changed if changes_in_one_piece(statement.body, fragment))
        carried = self._enter(changed, used(statement.body), head, after, here)
        outside = dict(self.slots)
        self.open_loop(statement)
        self.region(statement.body, statement.place, carried, carried)
        self.emitter.close_loop([])
        for value in [value for fragment, value in self.stepping.items() if fragment not in outer]:
            running.ended(self, value)
        self.stepping = outer
        self.slots = self._behind(outside, carried)
        for fragment in in_order(carried - after - outer.keys()):
            self.drain(fragment)
        self.collect(after)

    def _behind(self, outside: dict[Fragment, Slot], carried: Fragments) -> dict[Fragment, Slot]:
        """What fragments stand for behind a loop or a branch. A running value of a loop around has taken its step."""
        stepped = carried & self.stepping.keys()
        return {f: Slot(queued=True) if f in carried else slot for f, slot in outside.items() if f not in stepped}

    def branch(self, statement: Branch) -> None:
        after, head = self.liveness.after[statement], self.liveness.head[statement]
        both = [*statement.then, *statement.otherwise]
        carried = self._enter(written(both), used(both), head, after)
        outside = dict(self.slots)
        then, otherwise = self.emitter.branch(self.value(statement.condition))
        for block, body in ((then, statement.then), (otherwise, statement.otherwise)):
            self.slots = dict(outside)
            self.emitter.enter(block)
            own = carried - (self.stepping.keys() - written(body))
            self.region(body, statement.place, own, own & (after | self.stepping.keys()))
            self.emitter.close_branch()
        self.slots = self._behind({f: slot for f, slot in outside.items() if f not in carried or f in after}, carried)
