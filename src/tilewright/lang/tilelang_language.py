"""``T``: the names of ``tilelang.language``, found when they are asked for."""

from __future__ import annotations

from typing import Any


class Language:
    """Behaves like the module ``tilelang.language``."""

    __name__ = "tilelang.language"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        from tilewright.frontend.tilelang import namespace
        from tilewright.lang import tilelang_jit

        decorators = {"prim_func": tilelang_jit.prim_func, "macro": tilelang_jit.macro}
        found = decorators[name] if name in decorators else namespace.find(name)
        self.__dict__[name] = found
        return found

    def key_parts(self) -> tuple[Any, ...]:
        return ()

    def __dir__(self) -> list[str]:
        from tilewright.frontend.tilelang import namespace

        return namespace.names()

    def __repr__(self) -> str:
        return "<module 'tilelang.language' of Tilewright>"


language = Language()
