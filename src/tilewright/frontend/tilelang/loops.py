"""The loops of a kernel: ``for`` over ranges, over ``T.Persistent``, and over the elements of ``T.Parallel``."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any

from tilewright.frontend.assigned import assigned_names, read_before_assigned
from tilewright.frontend.tilelang.domains import Counted, ParallelDomain, PersistentDomain
from tilewright.frontend.tilelang.symbols import Fragment, is_integer, is_symbolic, plain, raw
from tilewright.frontend.tilelang.tile_program import Branch, Loop, Statement
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import Leaf, Value, bounds, make

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reader import Reader

MOST_UNROLLED = 64  # iterations that are written out where a number changes from one to the next


class Changed(Exception):
    """A number that an iteration leaves for the next one: statements of a loop are read once, so it would be lost."""

    def __init__(self, name: str) -> None:
        self.trouble = Trouble(
            "TW012",
            f"'{name}' changes from one iteration to the next",
            help="compute it from the loop variable, or keep it in a fragment of 32 elements",
        )


def counted_loop(reader: Reader, node: ast.For, domain: Counted) -> None:
    if not isinstance(node.target, ast.Name):
        raise Trouble("TW004", "this loop has one variable", help="for k in T.Pipelined(…)")
    if not is_integer(domain.start) or not is_integer(domain.stop):
        raise Trouble(
            "TW007", "the length of this loop is data", help="loop to the largest length, with `if k < length[bx]:` inside"
        )
    start, stop, step = raw(domain.start), raw(domain.stop), domain.step
    if not isinstance(step, int) or step < 1:
        raise Trouble("TW008", f"a loop with step {step!r}", help="count up, and compute the index from the variable")
    if step != 1:
        start, stop = 0, make("//", make("+", make("-", stop, start), step - 1), step)
    around, reader.stages = (reader.stages, reader.pipelined), domain.stages or reader.stages
    reader.pipelined = reader.pipelined or domain.stages > 0
    name = node.target.id

    def give(number: Value) -> None:
        reader.names[name] = plain(number if step == 1 else make("+", make("*", number, step), raw(domain.start)))

    if make("-", stop, start) == 1:
        give(start)
        reader.execute(node.body)
    elif not isinstance(stop, int) or not isinstance(start, int) or stop > start:
        variable = reader.leaf(name, bounds(start)[0], bounds(stop)[1] - 1)
        give(variable)
        tensors, names, scalars = len(reader.tensors), dict(reader.names), dict(reader.scalars)
        try:
            body = _iteration(reader, node.body, variable)
            reader.emit(Loop(variable, start, stop, body, reader.place))
        except Changed as changed:
            if not isinstance(start, int) or not isinstance(stop, int) or stop - start > MOST_UNROLLED:
                raise changed.trouble from None
            del reader.tensors[tensors:]
            reader.names.clear()
            reader.names.update(names)
            reader.scalars = scalars
            for number in range(start, stop):
                give(number)
                reader.execute(node.body)
        reader.names.pop(name, None)
    reader.stages, reader.pipelined = around


def _iteration(reader: Reader, statements: list[ast.stmt], variable: Leaf) -> list[Statement]:
    """The body of a loop. What it gives a buffer of one element is gone after it."""
    carried = assigned_names(statements) & read_before_assigned(statements)
    known: dict[str, Any] = {each: reader.names[each] for each in carried if each in reader.names}
    scalars = dict(reader.scalars)
    reader.loop_variables.append(variable)
    body = reader.nested(statements)
    reader.loop_variables.pop()
    for name, value in known.items():
        if reader.names.get(name) is not value and not isinstance(value, Fragment):
            raise Changed(name)
    for fragment, value in scalars.items():
        if reader.scalars.get(fragment) is not value:
            raise Changed(fragment.name)
    reader.scalars = scalars
    return body


def persistent_loop(reader: Reader, node: ast.For, domain: PersistentDomain) -> None:
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(targets) != len(domain.sizes):
        raise Trouble("TW004", f"{len(targets)} variables for {len(domain.sizes)} sizes", word="Persistent")
    total = math.prod(domain.sizes)
    waves = -(-total // domain.wave_size)
    wave = reader.leaf("wave", 0, waves - 1)
    tile = make("+", make("*", wave, domain.wave_size), reader.integer(domain.index))
    rest = tile
    for target, size in zip(targets, domain.sizes, strict=True):
        reader.bind(target, plain(make("%", rest, size) if target is not targets[-1] else rest))
        rest = make("//", rest, size)
    try:
        body = _iteration(reader, node.body, wave)
    except Changed as changed:
        raise changed.trouble from None
    inside: list[Statement] = [Branch(make("<", tile, total), body, [], reader.place)]
    reader.emit(Loop(wave, 0, waves, body if bounds(tile)[1] < total else inside, reader.place))


def parallel_loop(reader: Reader, node: ast.For, domain: ParallelDomain) -> None:
    if reader.parallel:
        raise Trouble("TW001", "T.Parallel inside T.Parallel", help="give all extents to one: T.Parallel(M, N)")
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(domain.extents) > 2:
        raise Trouble(
            "TW001",
            f"T.Parallel over {len(domain.extents)} dimensions",
            help="blocks are matrices of tiles: put a serial loop around T.Parallel(M, N), with fragments of two dimensions",
            word="Parallel",
        )
    if len(targets) != len(domain.extents):
        raise Trouble("TW004", f"{len(targets)} variables for {len(domain.extents)} extents", word="Parallel")
    for target, extent in zip(targets, domain.extents, strict=True):
        if not isinstance(target, ast.Name):
            raise Trouble("TW004", f"T.Parallel counts '{ast.unparse(target)}'", help="give its variables plain names")
        leaf = reader.leaf(target.id, 0, extent - 1)
        reader.parallel[leaf] = extent
        reader.names[target.id] = plain(leaf)
    reader.loaded = {}
    before = dict(reader.names)
    reader.execute(node.body)
    reader.parallel, reader.loaded = {}, {}
    for name in [name for name, value in reader.names.items() if is_symbolic(value) and before.get(name) is not value]:
        if not isinstance(reader.names[name], Fragment):  # elements exist inside only
            del reader.names[name]
    for target in targets:
        reader.names.pop(target.id, None)  # pyright: ignore
