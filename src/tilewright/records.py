"""``@record``: what ``@dataclass(frozen=True)`` gives, defined in a fifth of the time and made in half of it.

A process that compiles one kernel spends a fifth of its life in ``dataclasses``, which writes and compiles seven functions per
class. Here one is written, ``__init__``; the others serve all classes. ``@record(frozen=False)`` is ``@dataclass`` that way.
"""

from __future__ import annotations

from collections.abc import Callable
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
