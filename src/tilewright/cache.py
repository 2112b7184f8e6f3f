"""Compiled results on disk, so that a second process need not load the compiler at all.

Entries lie in ``$XDG_CACHE_HOME/tilewright`` (``~/.cache/tilewright``), one file each, named by `cache_key`. Whatever goes wrong
here, a full disk or a damaged file, is a miss and never an error.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

from tilewright.digests import sha256
from tilewright.program import CompileTimeArgument, Program, RuntimeArgument
from tilewright.trace import Stage, StoredDst, Trace

if TYPE_CHECKING:
    from pathlib import Path

    from xdsl.dialects.builtin import ModuleOp

MOST_BYTES = 64 * 2**20
MOST_ENTRIES = 2048
SUFFIX = ".program"
CHECKSUM_BYTES = 32
ALLOWED = {
    "tilewright.program": {
        "TensorSpec", "BufferSpec", "SemaphoreSpec", "ComputeConfig", "ThreadSpec",
        *(kind.__name__ for kind in get_args(CompileTimeArgument | RuntimeArgument)),
    },
    "tilewright.options": {"Options"},
    "tilewright.trace": {"Decision", "MemoryUse", "StoredDst"},
    "tilewright.grid": {"WorkArgument"},
    "tilewright.diagnostics": {"Diagnostic", "Span", "Note"},
}
KEPT = [field.name for field in fields(Program) if field.name not in ("module", "trace", "argument_layouts", "meanings")]
KEPT_OF_TRACE = ("decisions", "memory", "core_groups")  # and the DST plans as data


class StoredProgram(Program):
    """A program from the cache. Its IR is made if somebody asks for it: the simulator does, a launcher does not."""

    def __init__(self, compile_again: Callable[[], Program], stored: Any, **known: Any) -> None:
        super().__init__(module=None, **known)  # pyright: ignore[reportArgumentType]
        del self.__dict__["module"]
        self._compile_again = compile_again
        self._stored = stored

    def __getattr__(self, name: str) -> Any:
        if name != "module":
            raise AttributeError(name)
        self.module = _module(self._stored) or self._compile_again().module
        return self.module


def _module(stored: Any) -> ModuleOp | None:
    """The IR that was stored; None if there is none, or this version reads it otherwise."""
    from tilewright.dialects import stored_ir

    try:
        return None if stored is None else stored_ir.decoded(stored)
    except Exception:  # whatever it is: the kernel itself is there to be compiled
        return None


def folder() -> Path:
    from pathlib import Path  # late: it takes a tenth of what a stored result does

    return Path(_folder())


def _folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        raise RuntimeError("there is no home")
    return os.path.join(base, "tilewright")


def load(key: str, compile_again: Callable[[], Program]) -> Program | None:
    """The program stored under ``key``. ``compile_again`` serves who needs its IR."""
    try:
        path = os.path.join(_folder(), key + SUFFIX)
        with open(path, "rb") as file:
            data = file.read()
        os.utime(path)  # the least recently used entry goes first
    except (OSError, RuntimeError):
        return None
    known = _decoded(data)
    if known is None:
        with suppress(OSError):
            os.unlink(path)
        return None
    stages = [Stage(name=name, seconds=seconds) for name, seconds in known.pop("stages")]
    trace = Trace(stages=stages, stored=known.pop("stored"), **{name: known.pop(name) for name in KEPT_OF_TRACE})
    return StoredProgram(compile_again, known.pop("ir"), trace=trace, **known)


def save(key: str, program: Program) -> bool:
    """Whether ``program`` is stored now."""
    data = _encoded(program)
    if data is None:
        return False
    try:
        target = folder()
        target.mkdir(parents=True, exist_ok=True)
        _replace(target / (key + SUFFIX), data)
        _prune(target)
    except (OSError, RuntimeError):
        return False
    return True


def _replace(path: Path, data: bytes) -> None:
    """Other processes see the old file or the new one, never a part."""
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _encoded(program: Program) -> bytes | None:
    from tilewright.dialects import stored_ir
    from tilewright.program import dst_facts
    from tilewright.report import dst_assignment

    trace = program.trace
    known = {name: getattr(program, name) for name in KEPT} | {name: getattr(trace, name) for name in KEPT_OF_TRACE}
    known["stages"] = [(stage.name, stage.seconds) for stage in trace.stages]
    known["ir"] = stored_ir.encoded(program.module)
    known["stored"] = StoredDst(regions=dst_assignment.regions(trace), summary=dst_facts(program))
    try:
        payload = pickle.dumps(known, protocol=4)
    except Exception:  # a decision may carry anything
        return None
    data = sha256(payload).digest() + payload
    return data if _decoded(data) is not None else None


class _Unpickler(pickle.Unpickler):
    """Makes plain values and the classes of a compiled result, nothing else."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if global_name not in ALLOWED.get(module_name, ()):
            raise pickle.UnpicklingError(f"{module_name}.{global_name}")
        return super().find_class(module_name, global_name)


def _decoded(data: bytes) -> dict[str, Any] | None:
    payload = data[CHECKSUM_BYTES:]
    if sha256(payload).digest() != data[:CHECKSUM_BYTES]:
        return None
    try:
        known: dict[str, Any] = _Unpickler(io.BytesIO(payload)).load()
    except Exception:  # pickle raises whatever its input makes it run into
        return None
    complete = {*KEPT, *KEPT_OF_TRACE, "stages", "stored", "ir"}
    return known if known.keys() == complete else None


def _prune(target: Path) -> None:
    """Drops the entries longest unused until the rest is within bounds."""
    with os.scandir(target) as entries:
        facts = [(entry.stat(), entry.path) for entry in entries if entry.name.endswith(SUFFIX)]
    size = sum(fact.st_size for fact, _ in facts)
    count = len(facts)
    if size <= MOST_BYTES and count <= MOST_ENTRIES:
        return
    for fact, path in sorted(facts, key=lambda item: item[0].st_mtime_ns):
        if size <= MOST_BYTES // 2 and count <= MOST_ENTRIES // 2:
            return
        with suppress(FileNotFoundError):
            os.unlink(path)
        size -= fact.st_size
        count -= 1
