"""Records behave as frozen dataclasses do."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest

from tilewright.records import record


@record
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list[str], compare=False, repr=False)
    COUNT: ClassVar[int] = 0

    @property
    def sum(self) -> int:
        return self.x + self.y


@dataclass(frozen=True)
class PlainPoint:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list[str], compare=False, repr=False)


@record(kw_only=True)
class Named:
    """A docstring."""

    first: str
    second: str = "two"

    def __post_init__(self) -> None:
        if not self.first:
            raise ValueError("empty")


@record
class Deep(Point):
    z: int = 5


@record(eq=False)
class Own:
    value: int


def test_values_and_defaults() -> None:
    point = Point(1)
    assert (point.x, point.y, point.tags, point.sum) == (1, 2, [], 3)
    assert point.tags is not Point(1).tags
    assert (Deep(1, z=9).z, Deep(1).y) == (9, 2)


def test_comparison_and_hash_leave_out_what_a_field_says() -> None:
    assert Point(1, tags=["a"]) == Point(1) != Point(2)
    assert hash(Point(1, tags=["a"])) == hash(Point(1))
    assert Point(1) != PlainPoint(1) and Point(1) != Deep(1) and Point(1) != 1
    assert len({Own(1), Own(1)}) == 2 and len({Named(first="a"), Named(first="a")}) == 1


def test_text_is_that_of_a_dataclass() -> None:
    assert repr(Point(1)) == repr(PlainPoint(1)).replace("PlainPoint", "Point")
    assert Named.__doc__ == "A docstring."


def test_nothing_can_be_changed() -> None:
    point: Any = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    with pytest.raises(FrozenInstanceError):
        point.other = 2


def test_wrong_calls_are_type_errors() -> None:
    for call in (lambda: Point(), lambda: Point(1, z=2), lambda: Named("a")):  # type: ignore
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="empty"):
        Named(first="")


def test_tools_of_dataclasses_and_copies_work() -> None:
    point = Point(1, tags=["a"])
    assert replace(point, y=7) == Point(1, 7)
    assert asdict(point) == {"x": 1, "y": 2, "tags": ["a"]}
    assert [one.name for one in fields(Deep)] == ["x", "y", "tags", "z"]
    for copied in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert copied == point and copied.tags == ["a"]
    assert list(inspect.signature(Named).parameters) == ["first", "second"]
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


@record(frozen=False)
class Counter:
    count: int = 0
    seen: list[int] = field(default_factory=list[int])


def test_one_that_may_change_has_no_hash() -> None:
    counter = Counter()
    counter.count += 1
    del counter.seen
    assert counter.count == 1 and Counter(1) == Counter(1) != Counter(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())


class Checked(Point):
    """Not a record: its own initializer calls the inherited one."""

    def __init__(self, x: int) -> None:
        super().__init__(x, y=x + 1)


def test_an_initializer_is_written_when_somebody_looks_at_it() -> None:
    @record
    class Fresh:
        value: int

    @record
    class Derived(Fresh):
        more: int = 3

    assert not inspect.isfunction(Fresh.__dict__["__init__"])
    assert (Derived(1).value, Derived(1).more) == (1, 3)
    assert not inspect.isfunction(Fresh.__dict__["__init__"])  # a derived record has its own
    assert inspect.isfunction(Fresh.__init__) and Fresh.__dict__["__init__"] is Fresh.__init__
    assert Fresh(2).value == 2 and Fresh.__init__.__qualname__.endswith("Fresh.__init__")
    assert (Checked(4).x, Checked(4).y) == (4, 5)
