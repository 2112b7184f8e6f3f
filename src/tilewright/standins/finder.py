"""Answers ``import ttl``, ``ttlang``, ``tilelang`` and ``ttnn`` with Tilewright's own modules, in this process only.

Scripts written for those packages then run on a machine that has none of them. torch stays the installed one; it learns to do
without a GPU. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    Loader = MetaPathFinder = object  # those of importlib.abc bring a dozen modules along

LANGUAGE = "tilewright.ttl"


def fill_ttl(module: ModuleType) -> None:
    """``ttl`` is our language module itself, so that names compare equal however they were imported."""
    sys.modules[module.__name__] = importlib.import_module(LANGUAGE)


def fill_namespace(attribute: str) -> Callable[[ModuleType], None]:
    def fill(module: ModuleType) -> None:
        take(module, public_names(getattr(importlib.import_module(LANGUAGE), attribute)))

    return fill


def fill_ttlang(module: ModuleType) -> None:
    language = importlib.import_module(LANGUAGE)
    take(module, public_names(language))
    module.__dict__["ttl"] = language


def fill_operators(module: ModuleType) -> None:
    """``ttlang.operators`` has the free functions: copies and everything of ``ttl.math`` and ``ttl.block``."""
    language = importlib.import_module(LANGUAGE)
    for space in ("block", "math"):
        take(module, public_names(getattr(language, space, None)))
    take(module, public_names(language))


def fill_ttnn(module: ModuleType) -> None:
    from tilewright.standins.ttnn import names

    take(module, names.build())

    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"Tilewright's stand-in for ttnn has no '{name}'; `tilewright run --real-modules` uses the installed ttnn"
        )

    module.__dict__["__getattr__"] = missing


def fill_simulator(module: ModuleType) -> None:
    """``from sim import ttl, ttnn``, as examples in the language's own repository write it."""
    module.__dict__["ttl"] = importlib.import_module("ttl")
    module.__dict__["ttnn"] = importlib.import_module("ttnn")


def fill_checks(module: ModuleType) -> None:
    """``from utils import assert_with_ulp``, or from ``utils.correctness``."""
    take(module, public_names(importlib.import_module("tilewright.standins.checks")))


def fill_tilelang(module: ModuleType) -> None:
    ours = importlib.import_module("tilewright.tilelang")
    take(module, public_names(ours))
    module.__dict__["__getattr__"] = ours.__getattr__


def fill_tilelang_language(module: ModuleType) -> None:
    language = importlib.import_module("tilewright.tilelang").language

    def found(name: str) -> Any:
        return getattr(language, name)

    module.__dict__["__getattr__"] = found


def fill_tilelang_part(module: ModuleType) -> None:
    """A module of tilelang's around the language."""
    ours: ModuleType = getattr(importlib.import_module("tilewright.tilelang"), module.__name__.rpartition(".")[2])
    take(module, vars(ours))


FILLERS: dict[str, Callable[[ModuleType], None]] = {
    "ttl": fill_ttl,
    "ttl.math": fill_namespace("math"),
    "ttl.block": fill_namespace("block"),
    "ttlang": fill_ttlang,
    "ttlang.ttl": fill_ttl,
    "ttlang.ttl_api": fill_ttlang,
    "ttlang.operators": fill_operators,
    "ttnn": fill_ttnn,
    "tilelang": fill_tilelang,
    "tilelang.language": fill_tilelang_language,
    **{f"tilelang.{part}": fill_tilelang_part for part in ("autotuner", "profiler", "layout", "math", "testing")},
}
# Names that are common in scripts: answered only where nothing else answers, so that the script's own modules win.
LAST_FILLERS: dict[str, Callable[[ModuleType], None]] = {
    "sim": fill_simulator,
    "ttl.sim": fill_simulator,
    "utils": fill_checks,
    "utils.correctness": fill_checks,
    "ttl.utils": fill_checks,
    "ttl.utils.correctness": fill_checks,
}
LAST_PACKAGES = ("sim", "utils", "ttl.sim", "ttl.utils")
PACKAGES = ("ttl", "ttlang", "ttnn", "tilelang")


def public_names(holder: Any) -> dict[str, Any]:
    """Public names of a module or of any object that groups functions."""
    return {name: getattr(holder, name) for name in dir(holder) if not name.startswith("_")}


def take(module: ModuleType, names: dict[str, Any]) -> None:
    module.__dict__.update(names)


class StandInLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        """Python's own kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__tilewright_standin__"] = True
        (FILLERS.get(module.__name__) or LAST_FILLERS[module.__name__])(module)


class StandInFinder(MetaPathFinder):
    """First on ``sys.meta_path``, so that it answers even where the real packages are installed."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in FILLERS or root(fullname) not in self.packages:
            return None
        return ModuleSpec(fullname, StandInLoader(), origin="tilewright", is_package=fullname in PACKAGES)


class LastFinder(MetaPathFinder):
    """Last on ``sys.meta_path``."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in LAST_FILLERS:
            return None
        return ModuleSpec(fullname, StandInLoader(), origin="tilewright", is_package=fullname in LAST_PACKAGES)


def root(name: str) -> str:
    return name.partition(".")[0]


@contextmanager
def installed(packages: Sequence[str] = PACKAGES) -> Generator[None, None, None]:
    """Stand-ins for ``packages`` answer imports inside the block; what was loaded before is put back after it."""
    before = {name: module for name, module in sys.modules.items() if root(name) in packages}
    known = set(sys.modules)
    for name in before:
        del sys.modules[name]
    finder = StandInFinder(packages)
    last = LastFinder()
    sys.meta_path.insert(0, finder)
    if packages:
        sys.meta_path.append(last)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if last in sys.meta_path:
            sys.meta_path.remove(last)
        ours = [name for name in LAST_FILLERS if name in sys.modules and name not in known]
        for name in {*ours, *(name for name in sys.modules if root(name) in packages)}:
            del sys.modules[name]
        sys.modules.update(before)


class TorchFinder(MetaPathFinder):
    """Finds the installed torch, and has it told when its import is complete."""

    def __init__(self, imported: Callable[[Any], None]) -> None:
        self.imported = imported
        self.asked = False

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "torch" or self.asked:
            return None
        self.asked = True  # the others find it
        spec = importlib.util.find_spec("torch")
        self.asked = False
        if spec is None or spec.loader is None:
            return None
        complete = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            complete(module)
            self.imported(module)

        spec.loader.exec_module = exec_module
        return spec


@contextmanager
def cuda_on_host() -> Generator[None, None, None]:
    """Scripts for a GPU name it: inside the block torch takes "cuda" for the host, unless it has a GPU of its own."""
    undo: list[Callable[[], None]] = []

    def tell(torch: Any) -> None:
        if not torch.cuda.is_available():
            from tilewright.standins.host_torch import host_for_cuda

            undo.append(host_for_cuda(torch))

    finder = TorchFinder(tell)
    if sys.modules.get("torch") is not None:
        tell(sys.modules["torch"])
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for each in undo:
            each()
