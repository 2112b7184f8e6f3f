"""The two innermost loops in compiled form, where the machine has a C++ compiler; NumPy does the same elsewhere.

The library is built when a process has done about as much work as building costs, and kept in the user's cache: every later
process finds it there. Both ways give the same bits, which the tests compare. ``TILEWRIGHT_COMPILED=0`` switches it off.
"""

from __future__ import annotations

import ctypes
import os
import platform
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.host_compiler import cache_folder, digest, publish, system_compiler
from tilewright.sim.numerics.accumulate import Erratum
from tilewright.sim.numerics.formats import U32

SOURCES = Path(__file__).parent / "compiled"
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fPIC", "-shared", "-w")
SWITCH = "TILEWRIGHT_COMPILED"
KINDS = {"add": 0, "sub": 1, "mul": 2}
LANES = 16  # element counts must be multiples of it

_WORTH_BUILDING = 2.0e9  # nanoseconds NumPy would take
_PRODUCT = 2.0  # nanoseconds of NumPy per product and phase,
_ELEMENT = 25.0  # and per element and phase of an element-wise operation
_MOST_WORKERS = 8
_THREADED_PRODUCTS = 1 << 22

_Pointer = ctypes.c_void_p
_Size, _Choice = ctypes.c_int64, ctypes.c_int32


class Library:
    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))
        self._products: Any = loaded.tw_products
        self._products.restype = _Choice
        self._products.argtypes = [_Pointer] * 3 + [_Size] * 4 + [_Choice] * 2
        self._elementwise: Any = loaded.tw_elementwise
        self._elementwise.restype = _Choice
        self._elementwise.argtypes = [_Pointer] * 3 + [_Size] + [_Choice] * 4

    def products(self, left: U32, right: U32, dst: U32, *, dst32: bool, erratum: Erratum | None, phases: int) -> U32:
        """``dst + left @ right`` on contiguous ``[batch, rows, inner]`` and ``[batch, inner, columns]``."""
        out = dst.copy()
        batch, rows, inner = left.shape
        columns = right.shape[-1]

        def compute(part: slice) -> None:
            count = part.stop - part.start
            width = _width(dst32, erratum)
            hit = self._products(_at(left[part]), _at(right[part]), _at(out[part]), count, rows, inner, columns, width, phases)
            _note(erratum, hit)

        workers = min(os.cpu_count() or 1, batch, _MOST_WORKERS)
        if workers < 2 or out.size * inner < _THREADED_PRODUCTS:
            compute(slice(0, batch))
            return out
        bounds = [batch * number // workers for number in range(workers + 1)]
        with ThreadPoolExecutor(workers) as pool:  # calls into the library release the interpreter lock
            list(pool.map(compute, [slice(*pair) for pair in pairwise(bounds)]))
        return out

    def elementwise(
        self, kind: str, a: U32, b: U32, dst: U32, *, dst32: bool, erratum: Erratum | None, phases: int, onto: bool
    ) -> U32:
        out = np.array(np.broadcast_to(dst, a.shape), order="C")
        hit = self._elementwise(_at(a), _at(b), _at(out), out.size, KINDS[kind], phases, onto, _width(dst32, erratum))
        _note(erratum, hit)
        return out


def _width(dst32: bool, erratum: Erratum | None) -> int:
    """`Width` of lanes.h: 16 bits, 32 bits, or 32 bits with the erratum."""
    return 0 if not dst32 else 1 if erratum is None else 2


def _note(erratum: Erratum | None, hit: int) -> None:
    if erratum is not None and hit:
        erratum.seen = True


def _at(array: U32) -> int:
    return array.ctypes.data


class Builder:
    """The library of this process: loaded, not yet worth building, or not to be had."""

    def __init__(self) -> None:
        self.library: Library | None = None
        self.settled = os.environ.get(SWITCH, "1") == "0"
        self.work = 0.0

    def ask(self, work: float) -> Library | None:
        if self.settled:
            return self.library
        path = library_path()
        self.work += work
        if not path.exists():
            if self.work < _WORTH_BUILDING:
                return None
            build(path)
        self.settled = True
        try:
            self.library = Library(path) if path.exists() else None
        except OSError:  # built for another machine, or the folder does not allow execution
            self.library = None
        return self.library


_builder = Builder()


def for_products(count: int, phases: int) -> Library | None:
    """The library, if it is there or ``count`` products in ``phases`` phases make it worth having."""
    return _builder.ask(count * phases * _PRODUCT)


def for_elements(count: int, phases: int) -> Library | None:
    return None if count % LANES else _builder.ask(count * phases * _ELEMENT)


@cache
def library_path() -> Path:
    """One file per source and kind of processor: a home folder may be shared by machines."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.iterdir())]
    return cache_folder("simulator") / f"numerics-{digest(_processor(), *FLAGS, *texts)}.so"


def _processor() -> str:
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        described = []
    features = next((line for line in described if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.system()} {platform.machine()} {features}"


def build(path: Path) -> bool:
    """Whether the library is at ``path`` now."""
    compiler = system_compiler()
    if compiler is None:
        return False
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        built = Path(folder) / path.name
        units = [str(unit) for unit in sorted(SOURCES.glob("*.cpp"))]
        if compiler.run(*FLAGS, *units, "-o", str(built)).returncode:
            return False
        publish(built, path)
    return True
