"""Which way each one-dimensional fragment lies in its tiles: in the first column, or in the first row."""

from __future__ import annotations

from tilewright.frontend.tilelang.liveness import read_by
from tilewright.frontend.tilelang.symbols import COLUMN_FORM, ROW_FORM, Apply, Cast, Expression, Fragment, Read, Reduction
from tilewright.frontend.tilelang.tile_program import COLUMN, ROW, Assign, Load, Store, TileProgram, walk


def layouts_of(program: TileProgram) -> dict[Fragment, str]:
    """A reduction's result lies where the unit leaves it; a loaded vector is a row; others follow what they are computed from
    or used with."""
    chosen: dict[Fragment, str] = {}
    vectors: dict[Fragment, None] = {}
    assigns = [s for s in walk(program.body) if isinstance(s, Assign)]
    for statement in walk(program.body):
        targets = [statement.target] if isinstance(statement, (Load, Assign)) else []
        sources = [statement.source] if isinstance(statement, Store) else []
        vectors |= {fragment: None for fragment in (*targets, *sources) if fragment.is_vector}
    for statement in assigns:
        dim = _reduced(statement.value)
        if statement.target.is_vector and dim is not None:
            chosen.setdefault(statement.target, COLUMN if dim == 1 else ROW)
    _by_company(assigns, chosen)
    for statement in assigns:
        for read in _vector_reads(statement.value):
            if read.form in (COLUMN_FORM, ROW_FORM):
                chosen.setdefault(read.fragment, COLUMN if read.form == COLUMN_FORM else ROW)
    loaded = {s.target for s in walk(program.body) if isinstance(s, Load)}
    changed = {s.target for s in assigns}
    for fragment in vectors:
        if fragment in loaded and fragment not in changed:
            chosen[fragment] = ROW
    _by_company(assigns, chosen)
    return {fragment: chosen.get(fragment, ROW if fragment in loaded else COLUMN) for fragment in vectors}


def _by_company(assigns: list[Assign], chosen: dict[Fragment, str]) -> None:
    """Vectors computed from each other lie the same way."""
    before = -1
    while len(chosen) != before:
        before = len(chosen)
        for statement in assigns:
            if not statement.target.is_vector or _reduced(statement.value) is not None:
                continue
            group = [statement.target, *(fragment for fragment in read_by(statement.value) if fragment.is_vector)]
            known = next((chosen[fragment] for fragment in group if fragment in chosen), None)
            if known is not None:
                for fragment in group:
                    chosen.setdefault(fragment, known)


def _reduced(value: Expression) -> int | None:
    if isinstance(value, Reduction):
        return value.dim
    if isinstance(value, Apply):
        return next((dim for argument in value.arguments if (dim := _reduced(argument)) is not None), None)
    return _reduced(value.argument) if isinstance(value, Cast) else None


def _vector_reads(value: Expression) -> list[Read]:
    if isinstance(value, Read):
        return [value] if value.fragment.is_vector else []
    if isinstance(value, Apply):
        return [read for argument in value.arguments for read in _vector_reads(argument)]
    return _vector_reads(value.argument) if isinstance(value, (Cast, Reduction)) else []
