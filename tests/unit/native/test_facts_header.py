"""What the native machine knows about inits is what the op table says, and stands in C++ nowhere else."""

from __future__ import annotations

import re

from tilewright.dialects import tile_op, tile_ops
from tilewright.dialects.tile_op import Unit
from tilewright.native import toolchain

FORMS = [form for row in tile_ops.ROWS for form in row.forms if form.unit is Unit.SFPU and form.init]


def written(name: str) -> set[str]:
    (line,) = [line for line in toolchain.facts_header().splitlines() if f" {name} = " in line]
    return set(re.findall(r'"(\w+)"', line))


def test_an_init_is_stateless_in_both():
    """A row is stateful as well if its call writes a constant that others need, as clamp does: its own init leaves nothing."""
    stateless, writing = written("kStateless"), written("kWriteConstants")
    for form in FORMS:
        assert form.stateful == (form.init not in stateless or form.call in writing), form.call


def test_every_kind_of_state_belongs_to_a_stateful_row():
    stateful = {form.init for form in FORMS if form.stateful}
    inits = {form.init for form in FORMS}
    for name in ("kAddressMode", "kMacros", "kLookupIfApproximate", "kFillReplay"):
        assert written(name) & inits <= stateful, name
    assert written("kLookupIfApproximate") & inits == {form.init for form in FORMS if form.lookup}


def test_an_init_leaves_one_kind_of_state():
    lists = [tile_op.STATELESS, tile_op.ADDRESS_MODE, tile_op.MACROS, toolchain.lookup_inits()]
    assert sum(map(len, lists)) == len(frozenset().union(*lists))


def test_no_list_of_inits_is_kept_by_hand():
    """The machine may name the few inits it treats one by one; lists come from the header."""
    for path in toolchain.SOURCES.rglob("*.cpp"):
        named = set(re.findall(r'"(\w+_init)"', path.read_text()))
        assert len(named & {form.init for form in FORMS}) <= 4, path.name
