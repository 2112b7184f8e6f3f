"""``@record``: what ``@dataclass(frozen=True)`` gives, defined in a fifth of the time and made in half of it.

A process that compiles one kernel spends a fifth of its life in ``dataclasses``, which writes and compiles seven functions per
class. Here one is written, ``__init__``, once for all classes of a shape, and when somebody first looks at it: of many classes a
process makes no instance. The others serve all classes. ``@record(frozen=False)`` is ``@dataclass`` that way.

`defined_quickly` gives the same to a library that is being imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

Kind = TypeVar("Kind")

if TYPE_CHECKING:
    from dataclasses import field

    from typing_extensions import dataclass_transform

    @overload
    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(cls: type[Kind], /) -> type[Kind]: ...
    @overload
    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(*, kw_only: bool = False, eq: bool = True, frozen: bool = True) -> Callable[[type[Kind]], type[Kind]]: ...
    def record(cls: Any = None, /, *, kw_only: bool = False, eq: bool = True, frozen: bool = True) -> Any: ...

else:

    def record(cls=None, /, *, kw_only=False, eq=True, frozen=True):
        def decorate(target):
            return _completed(target, kw_only, eq, frozen)

        return decorate if cls is None else decorate(cls)


def _completed(cls: type[Any], kw_only: bool, eq: bool, frozen: bool) -> type[Any]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass writes the signature there, its dearest part
    made: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
    known = fields(made)
    made.__init__ = _Unwritten(made, known, frozen)
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_setting, _refuse_deleting
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _text
    if eq:
        made.__eq__, hashed = _comparison([one.name for one in known if one.compare])
        made.__hash__ = cls.__dict__.get("__hash__") or (hashed if frozen else None)
    return made


def replaced(one: Kind, **changes: Any) -> Kind:
    """`dataclasses.replace` for records that check nothing when they are made: the values are there, and in order."""
    cls: Any = type(one)
    known = cls.__dataclass_fields__
    assert changes.keys() <= known.keys() and not hasattr(cls, "__post_init__")
    made = object.__new__(cls)
    values = one.__dict__  # beside the fields it may keep what was worked out from them
    made.__dict__.update({name: values[name] for name in known}, **changes)
    return made


class _Unwritten:
    """Stands for the ``__init__`` of a class until somebody looks at it: an instance, a signature, a class derived from it."""

    def __init__(self, cls: Any, known: tuple[Field[Any], ...], frozen: bool) -> None:
        self._cls = cls
        self._known = known
        self._frozen = frozen

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        written = _initializer(self._cls, self._known, self._frozen)
        if self._cls.__dict__.get("__init__") is self:  # else another thread was first, or somebody put another one there
            self._cls.__init__ = written
        return written.__get__(instance, owner)


def _initializer(cls: Any, known: tuple[Field[Any], ...], frozen: bool) -> Any:
    """The function of this class's shape, with its names and defaults put in."""
    given = sorted([one for one in known if one.init], key=attrgetter("kw_only"))
    made = [one for one in known if not one.init and one.default_factory is not MISSING]  # a default is the class's
    code = _template(tuple([one.default_factory is MISSING for one in given]), len(made), hasattr(cls, "__post_init__"), frozen)
    names: dict[Any, Any] = {f"v{number}": one.name for number, one in enumerate([*given, *made])}
    names["known"] = ".known"  # a field may have any name
    plain = [one for one in given if not one.kw_only]
    code = code.replace(
        co_argcount=1 + len(plain),
        co_kwonlyargcount=len(given) - len(plain),
        co_varnames=tuple([names.get(word, word) for word in code.co_varnames]),
        co_names=tuple([names.get(word, word) for word in code.co_names]),
        co_consts=tuple([names.get(word, word) for word in code.co_consts]),
    )
    scope: dict[str, Any] = {f"make_{number}": one.default_factory for number, one in enumerate([*given, *made])}
    written: Any = FunctionType(code, {**scope, "MISSING": MISSING}, "__init__")
    optional = [one for one in given if not (one.default is MISSING and one.default_factory is MISSING)]
    last = [one for one in optional if not one.kw_only]
    if plain[len(plain) - len(last) :] != last:
        raise TypeError(f"a field without a default follows one with a default in {cls.__qualname__}")
    written.__defaults__ = tuple([one.default for one in last])  # MISSING: it is made
    written.__kwdefaults__ = {one.name: one.default for one in optional if one.kw_only}
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    written.__annotations__ = {one.name: one.type for one in known}
    return written


@cache
def _template(needed: tuple[bool, ...], made: int, checks: bool, frozen: bool) -> CodeType:
    """``__init__`` of all classes with so many fields: some must be given, some are made if they are not, some are always made.

    Values of a frozen class go into the instance's dictionary: assigning is refused.
    """
    head = ["self"]
    lines = ["known = self.__dict__"] if frozen else ["pass"]
    for number in range(len(needed) + made):
        name, value = f"v{number}", f"make_{number}()"
        if number < len(needed):
            head.append(name)
            value = name if needed[number] else f"{value} if {name} is MISSING else {name}"
        lines.append(f"known[{name!r}] = {value}" if frozen else f"self.{name} = {value}")
    if checks:
        lines.append("self.__post_init__()")
    scope: dict[str, Any] = {}
    exec(f"def __init__({', '.join(head)}):\n " + "\n ".join(lines), scope)
    return scope["__init__"].__code__


def _comparison(names: list[str]) -> tuple[Callable[[Any, object], Any], Callable[[Any], int]]:
    read: Callable[[Any], Any] = attrgetter(*names) if names else _nothing
    if len(names) == 1:  # compared as the only one of a tuple: what is the same object is equal

        def equal_one(self: Any, other: object) -> Any:
            return (read(self),) == (read(other),) if other.__class__ is self.__class__ else NotImplemented

        def hashed_one(self: Any) -> int:
            return hash((read(self),))

        return equal_one, hashed_one

    def equal(self: Any, other: object) -> Any:
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(read(self))

    return equal, hashed


def _nothing(_self: Any) -> tuple[()]:
    return ()


def _text(self: Any) -> str:
    values = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({values})"


def _refuse_setting(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


# Another library's dataclasses -----------------------------------------------------------------------------------------------

QUICK = {"init", "repr", "eq", "frozen"}  # options of ``dataclass`` that are done here; a class with others is left to it


@contextmanager
def defined_quickly(*packages: str) -> Generator[None, None, None]:
    """While modules of ``packages`` are imported, their dataclasses are made as records are.

    They behave as ``dataclass`` would have made them. Classes of other packages, which other threads may be importing, are left
    to ``dataclass``, and so is everything afterwards.
    """
    frozen: list[Any] = []
    inside = tuple(f"{package}." for package in packages)
    is_open = True

    def quick(cls: Any = None, /, **options: Any) -> Any:
        def decorate(target: Any) -> Any:
            ours = is_open and target.__module__.startswith(inside) and options.keys() <= QUICK
            if not ours:
                return dataclass(**options)(target)
            if options.get("frozen"):
                frozen.append(target)
            return _as_dataclass(target, **options)

        return decorate if cls is None else decorate(cls)

    dataclasses.dataclass = quick
    try:
        yield
    finally:
        is_open = False
        dataclasses.dataclass = dataclass
        for cls in frozen:  # only now: `dataclass` refuses to derive from it what is to be frozen here
            cls.__dataclass_params__.frozen = True


def _as_dataclass(cls: Any, *, init: bool = True, repr: bool = True, eq: bool = True, frozen: bool = False) -> Any:
    own = dict(cls.__dict__)
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass writes the signature there, its dearest part
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    known = fields(made)
    if init and "__init__" not in own:
        made.__init__ = _Unwritten(made, known, frozen)
    if frozen:
        made.__setattr__, made.__delattr__ = _refusals(made, frozenset(one.name for one in known))
    if repr and "__repr__" not in own:
        made.__repr__ = _text
    if eq:
        equal, hashed = _comparison([one.name for one in known if one.compare])
        if any(one.hash is not None for one in known):
            _, hashed = _comparison([one.name for one in known if (one.compare if one.hash is None else one.hash)])
        if "__eq__" not in own:
            made.__eq__ = equal
        if own.get("__hash__") is None:
            made.__hash__ = cls.__dict__.get("__hash__") or (hashed if frozen else None)
    return made


def _refusals(cls: Any, names: frozenset[str]) -> tuple[Callable[[Any, str, Any], None], Callable[[Any, str], None]]:
    """For a class that others derive from: they may have attributes beside its fields."""

    def set_other(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)  # pyright: ignore[reportUnknownMemberType]

    def delete_other(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)  # pyright: ignore[reportUnknownMemberType]

    return set_other, delete_other
