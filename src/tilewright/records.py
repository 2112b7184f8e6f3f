"""``@record``: what ``@dataclass(frozen=True)`` gives, defined in a fifth of the time and made in half of it.

A process that compiles one kernel spends a fifth of its life in ``dataclasses``, which writes and compiles seven functions per
class. Here one is written, ``__init__``; the others serve all classes. ``@record(frozen=False)`` is ``@dataclass`` that way.

`defined_quickly` gives the same to a library that is being imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from tilewright.narrowing import class_of

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
    made.__init__ = _initializer(made, known)
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_setting, _refuse_deleting
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _text
    if eq:
        made.__eq__, hashed = _comparison([one.name for one in known if one.compare])
        made.__hash__ = hashed if frozen else None
    return made


def _initializer(cls: Any, known: tuple[Field[Any], ...]) -> Any:
    """Values go into the instance's dictionary: assigning is refused."""
    scope: dict[str, Any] = {}
    plain: list[str] = []
    named: list[str] = []
    lines: list[str] = ["known = self.__dict__"]
    for one in known:
        name = one.name
        value = name
        if not one.init:
            if one.default_factory is not MISSING:
                scope[f"make_{name}"] = one.default_factory
                lines.append(f"known[{name!r}] = make_{name}()")
            continue  # a default is the class's
        if one.default is not MISSING:
            scope[f"default_{name}"] = one.default
            (named if one.kw_only else plain).append(f"{name}=default_{name}")
        elif one.default_factory is not MISSING:
            scope |= {f"make_{name}": one.default_factory, "MISSING": MISSING}
            (named if one.kw_only else plain).append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        else:
            (named if one.kw_only else plain).append(name)
        lines.append(f"known[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    head = ", ".join(["self", *plain, *(["*", *named] if named else [])])
    exec(f"def __init__({head}):\n " + "\n ".join(lines), scope)
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {one.name: one.type for one in known}
    return made


def _comparison(names: list[str]) -> tuple[Callable[[Any, object], Any], Callable[[Any], int]]:
    read: Callable[[Any], Any] = attrgetter(*names) if names else class_of
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
def defined_quickly(package: str) -> Generator[None, None, None]:
    """While modules of ``package`` are imported, their dataclasses are made as records are.

    They behave as ``dataclass`` would have made them. Classes of other packages, which other threads may be importing, are left
    to ``dataclass``, and so is everything afterwards.
    """
    frozen: list[Any] = []
    is_open = True

    def quick(cls: Any = None, /, **options: Any) -> Any:
        def decorate(target: Any) -> Any:
            ours = is_open and target.__module__.startswith(f"{package}.") and options.keys() <= QUICK
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
    made: Any = dataclass(init=init and not frozen, repr=False, eq=False)(cls)
    known = fields(made)
    if init and frozen and "__init__" not in own:
        made.__init__ = _initializer(made, known)
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
            made.__hash__ = hashed if frozen else None
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
