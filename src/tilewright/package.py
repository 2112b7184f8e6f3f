"""Built kernels as a folder: ``tilewright build SCRIPT -o DIR`` writes it, ``tilewright.load(DIR)`` runs it without the source.

    package/package.json            what is in it: versions, kernels, the tensors each was compiled for, a checksum per file
    package/tuned.json              what tuning found for the script, if it was tuned
    package/KERNEL/*.cpp            the kernel files, as ``tilewright compile`` writes them
    package/KERNEL/program.json     what a launcher must set up
    package/KERNEL/program.mlir     the program after its last pass, which the simulator runs
    package/KERNEL/runner.py        launches the files through ttnn on machines without Tilewright
    package/KERNEL/kernel_artifact.json   what tt-xla and tt-mlir take for a TT-Lang operation, if it was asked for

The program is text, not the values that the cache has (`dialects/stored_ir.py`): whoever is given a package can read it.
Nothing in a package is executed when it is loaded: it is data, and every byte of it is checked first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import fail
from tilewright.narrowing import is_dict
from tilewright.records import record

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.lang.tilelang_tensors import CallerTensors
    from tilewright.program import Program, TensorSpec, ThreadSpec

FORMAT = 2
INDEX = "package.json"
PROGRAM_TEXT = "program.mlir"
TUNED = "tuned.json"
ARTIFACT = "kernel_artifact.json"
SAME = ("shape", "dtype", "element", "logical_shape", "layout", "memory", "sharding", "shard_shape", "shard_cores")  # of a tensor


def version() -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed_version

    try:
        return installed_version("tilewright")
    except PackageNotFoundError:
        return "(not installed: running from the source tree)"


# Writing --------------------------------------------------------------------------------------------------------------------


def write(
    programs: Sequence[Program], target: Path, *, source: str, extra: Mapping[str, str] | None = None, artifacts: bool = False
) -> Path:
    """The package of ``programs`` at ``target``: whole, or not at all. ``extra`` files go in as they are."""
    import json
    import shutil
    import tempfile
    from pathlib import Path

    if target.exists() and not is_package(target):
        raise fail("TW607", f"{target} exists and is no package", help="name a new folder, or remove this one")
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        named = zip(folder_names(programs), programs, strict=True)
        kernels = [_kernel(program, made, name, artifact=artifacts) for name, program in named]
        checksums: dict[str, str] = {}
        for name, text in (extra or {}).items():
            checksums[name] = _save(made / name, text)
        index: dict[str, Any] = {"format": FORMAT, "tilewright": version(), "source": source}
        index |= {"kernels": kernels, "files": checksums}
        _save(made / INDEX, json.dumps({**index, "checksum": _checksum(_canonical(index))}, indent=2) + "\n")
        made.chmod(0o755)
        _replace(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target


def distinct(programs: Sequence[Program]) -> list[Program]:
    """Each once: the same kernel may have been made several times."""
    found: dict[Any, Program] = {}
    for program in programs:
        setup = (program.grid, program.tensors, program.buffers, program.threads, program.semaphores, program.config)
        found.setdefault((program.name, setup, tuple(sorted(program.cpp.items()))), program)
    return list(found.values())


def described(program: Program) -> dict[str, Any]:
    """What a launcher must set up, and what the compiler decided."""
    from tilewright.report import dst_assignment

    return {
        "name": program.name,
        "grid": list(program.grid),
        "options": plain(asdict(program.options)),
        "tensors": [plain(asdict(tensor)) for tensor in program.tensors],
        "buffers": [{**plain(asdict(buffer)), "tiles": buffer.tiles} for buffer in program.buffers],
        "semaphores": [plain(asdict(semaphore)) for semaphore in program.semaphores],
        "threads": [_thread(thread) for thread in program.threads],
        "compute_config": plain(asdict(program.config)),
        "dst": plain(dst_assignment.regions(program.trace)),
        "decisions": [
            {"pass": made.stage, "title": made.title, "detail": made.detail, "place": made.place}
            for made in program.trace.decisions
        ],
    }


def _thread(thread: ThreadSpec) -> dict[str, Any]:
    """Arguments are pairs of a kind and what it is about."""
    given = {"compile_time_args": thread.compile_time_args, "runtime_args": thread.runtime_args}
    lists = {name: [[each.KIND, plain(asdict(each)["what"])] for each in arguments] for name, arguments in given.items()}
    return {**plain(asdict(thread)), **lists, "file": f"{thread.role}.cpp"}


def plain(value: Any) -> Any:
    """``value`` with only what JSON has."""
    if is_dict(value):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def folder_names(programs: Sequence[Program]) -> list[str]:
    """Names of the kernels; a kernel compiled for several shapes gets a number from the second on."""
    counts: dict[str, int] = {}
    names: list[str] = []
    for program in programs:
        count = counts.get(program.name, 0) + 1
        counts[program.name] = count
        names.append(program.name if count == 1 else f"{program.name}-{count}")
    return names


def _kernel(program: Program, package: Path, folder: str, *, artifact: bool) -> dict[str, Any]:
    """Writes one program's files; what the index says about them."""
    import json

    from tilewright.kernel_artifact import kernel_artifact
    from tilewright.lang import tilelang_tensors
    from tilewright.runtime.runner import script

    texts = {f"{role}.cpp": text for role, text in program.cpp.items()}
    texts[PROGRAM_TEXT] = str(program.module) + "\n"
    texts["program.json"] = json.dumps(described(program), indent=2) + "\n"
    texts["runner.py"] = script(program)
    if artifact:
        texts[ARTIFACT] = json.dumps(kernel_artifact(program), indent=1) + "\n"
    known = described(program)
    return {
        "name": program.name,
        "folder": folder,
        "grid": list(program.grid),
        "options": plain(known["options"]),
        "tensors": plain(known["tensors"]),
        "written": program.written,
        "numbers": program.number_names,
        "caller": None if program.argument_layouts is None else tilelang_tensors.plain(program.argument_layouts.inputs),
        "files": {name: _save(package / folder / name, text) for name, text in texts.items()},
    }


def _save(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(data)
    return _checksum(data)


def _checksum(data: bytes) -> str:
    from tilewright.digests import sha256

    return sha256(data).hexdigest()


def _canonical(index: Mapping[str, Any]) -> bytes:
    import json

    return json.dumps(index, sort_keys=True, separators=(",", ":")).encode()


def _replace(made: Path, target: Path) -> None:
    """A reader sees the old package or the new one. If the second rename fails the old one comes back."""
    import shutil
    import tempfile
    from pathlib import Path

    if not target.exists():
        os.rename(made, target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    os.rename(target, old / target.name)
    try:
        os.rename(made, target)
    except OSError:
        os.rename(old / target.name, target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def is_package(folder: Path) -> bool:
    return (folder / INDEX).is_file()


# Reading --------------------------------------------------------------------------------------------------------------------


@record(kw_only=True)
class Variant:
    """One kernel for one set of tensors."""

    name: str
    folder: str
    grid: tuple[int, ...]
    options: Mapping[str, Any]
    tensors: tuple[TensorSpec, ...]
    written: tuple[str, ...]
    numbers: tuple[str, ...]
    files: Mapping[str, str]
    caller: CallerTensors | None  # of TileLang, whose kernels also get tensors that are made for them

    @property
    def taken(self) -> list[TensorSpec]:
        """What the caller passes. TileLang lays it out anew for the kernel, so only its shape and type count there."""
        from tilewright.lang.tilelang_tensors import element_name
        from tilewright.program import TensorSpec

        if self.caller is None:
            return list(self.tensors)
        layouts = self.caller.taken
        return [TensorSpec(name=each.name, shape=each.shape, dtype=element_name(each.element)) for each in layouts]

    def described(self, tensors: Sequence[Any]) -> list[TensorSpec]:
        """The tensors of a call, in the same terms."""
        from tilewright.lang.tensors import describe
        from tilewright.lang.tilelang_tensors import element_name
        from tilewright.program import TensorSpec

        names = [each.name for each in self.taken]
        named = [(names[place] if place < len(names) else f"#{place + 1}", each) for place, each in enumerate(tensors)]
        if self.caller is None:
            return [describe(each, name) for name, each in named]
        return [TensorSpec(name=name, shape=tuple(each.shape), dtype=element_name(each.dtype)) for name, each in named]

    def takes(self, tensors: Sequence[Any]) -> bool:
        given, taken = self.described(tensors), self.taken
        return len(given) == len(taken) and all(
            getattr(one, each) == getattr(other, each) for one, other in zip(given, taken, strict=True) for each in SAME
        )

    @property
    def text(self) -> str:
        """``(x: 64x64 bf16, out: 64x64 bf16)``."""
        return f"({', '.join(f'{each.name}: {_shown(each)}' for each in self.taken)})"


class Package:
    """Built kernels, ready to call: ``package.softmax(x, out)``, or ``package(x, out)`` if there is one kernel."""

    def __init__(self, folder: Path, variants: Sequence[Variant]) -> None:
        self.folder = folder
        self.variants = tuple(variants)
        self._programs: dict[str, Program] = {}

    @property
    def kernels(self) -> list[str]:
        return list(dict.fromkeys(each.name for each in self.variants))

    def __repr__(self) -> str:
        return f"<package {self.folder.name}: {', '.join(each.name + each.text for each in self.variants)}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.kernels]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.kernels:
            raise AttributeError(f"package {self.folder.name} has no kernel '{name}'; it has {', '.join(self.kernels)}")
        return partial(self.run, name)

    def __call__(self, *tensors: Any, **numbers: int) -> Any:
        if len(self.kernels) != 1:
            raise fail("TW607", f"package {self.folder.name} has several kernels", help=f"call one: {', '.join(self.kernels)}")
        return self.run(self.kernels[0], *tensors, **numbers)

    def run(self, name: str, *tensors: Any, **numbers: int) -> Any:
        """Where the session wants it: simulator, native, or the device that the tensors live on."""
        return self._call(self.variant(name, tensors), tensors, numbers)

    def __getitem__(self, folder: str) -> Callable[..., Any]:
        """The kernel in one folder of the package: ``package["scaled-2"](x, out)``."""
        found = [each for each in self.variants if each.folder == folder]
        if not found:
            raise fail("TW607", f"package {self.folder.name} has no folder '{folder}'", help=self._listed(self.variants))
        return lambda *tensors, **numbers: self._call(self._only(found, folder, tensors), tensors, numbers)

    def _call(self, variant: Variant, tensors: Sequence[Any], numbers: Mapping[str, int]) -> Any:
        from tilewright import execution
        from tilewright.lang.tilelang_tensors import TensorArguments

        if sorted(numbers) != sorted(variant.numbers):
            given, wanted = (", ".join(sorted(names)) or "none" for names in (numbers, variant.numbers))
            raise fail("TW607", f"'{variant.name}' was given the numbers {given}", help=f"it takes {wanted}")
        if variant.caller is None:
            execution.run(self.program(variant), tensors, numbers)
            return None
        arguments = TensorArguments(variant.caller, tensors)
        execution.run(self.program(variant), arguments.arrays, numbers)
        return arguments.finish(run=execution.current().mode != execution.COMPILE)

    def variant(self, name: str, tensors: Sequence[Any]) -> Variant:
        """The one built for tensors like these."""
        return self._only([each for each in self.variants if each.name == name], name, tensors)

    def _only(self, built: Sequence[Variant], name: str, tensors: Sequence[Any]) -> Variant:
        found = [each for each in built if each.takes(tensors)]
        if len(found) > 1:  # kernels of one name, or one with other constants: the tensors do not tell which is meant
            raise fail("TW607", f"{len(found)} kernels '{name}' were built for these tensors", help=self._listed(found))
        if not found:
            shown = ", ".join(_shown(spec) for spec in built[0].described(tensors)) if built else ""
            covered = "; ".join(each.text for each in built)
            raise fail("TW607", f"'{name}' was not built for ({shown})", help=f"build that shape too; it was built for {covered}")
        return found[0]

    @staticmethod
    def _listed(variants: Sequence[Variant]) -> str:
        return f"name a folder of the package: {', '.join(f'package[{each.folder!r}]' for each in variants)}"

    def program(self, variant: Variant) -> Program:
        """The program, from its text. Files were checked when the package was loaded and are checked again here."""
        kept = self._programs.get(variant.folder)
        if kept is None:
            kept = self._programs[variant.folder] = self._read(variant)
        return kept

    def _read(self, variant: Variant) -> Program:
        from tilewright.compiler import compile_module
        from tilewright.dialects.text_input import parse
        from tilewright.options import Options

        texts = {name: _checked(self.folder / variant.folder / name, wanted) for name, wanted in variant.files.items()}
        options = Options(**{name: _tuples(value) for name, value in variant.options.items()})
        program = compile_module(
            parse(texts[PROGRAM_TEXT], PROGRAM_TEXT),
            name=variant.name,
            grid=variant.grid,
            tensors=variant.tensors,
            options=options,
            passes=(),  # they have all run
        )
        program.cpp = {name.removesuffix(".cpp"): text for name, text in texts.items() if name.endswith(".cpp")}
        return program


def load(folder: str | os.PathLike[str]) -> Package:
    """The package in ``folder``. A changed, missing or foreign file is an error that names it (TW607)."""
    from pathlib import Path  # late: every process imports this file, few read a package

    place = Path(folder)
    if not is_package(place):
        raise fail("TW607", f"{place} is no package", help="`tilewright build SCRIPT -o FOLDER` writes one")
    index = _index(place)
    if index.get("format") != FORMAT or index.get("tilewright") != version():
        made = f"Tilewright {index.get('tilewright')} (format {index.get('format')})"
        raise fail("TW607", f"{place} was built by {made}, this is {version()}", help="build it again with this version")
    try:
        variants = [_variant(known) for known in index["kernels"]]
        outside = dict(index["files"])
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(place / INDEX, f"it lacks {error}") from None
    for name, wanted in outside.items():
        _checked(place / name, wanted)
    for variant in variants:
        for name, wanted in variant.files.items():
            _checked(place / variant.folder / name, wanted)
    return Package(place, variants)


def _index(place: Path) -> dict[str, Any]:
    import json

    try:
        index: dict[str, Any] = json.loads((place / INDEX).read_bytes())
        checksum = index.pop("checksum")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise damaged(place / INDEX, f"{type(error).__name__}: {error}") from None
    if checksum != _checksum(_canonical(index)):
        raise damaged(place / INDEX, "its checksum is another")
    return index


def _variant(known: Mapping[str, Any]) -> Variant:
    from tilewright.lang.tilelang_tensors import from_plain
    from tilewright.program import TensorSpec

    names = [field.name for field in fields(TensorSpec)]
    tensors = tuple(TensorSpec(**{name: _tuples(each[name]) for name in names}) for each in known["tensors"])
    plain = {name: known[name] for name in ("name", "folder", "options", "files")}
    return Variant(
        **plain, grid=tuple(known["grid"]), tensors=tensors, written=tuple(known["written"]), numbers=tuple(known["numbers"]),
        caller=from_plain(known["caller"]),
    )  # fmt: skip


def _checked(path: Path, wanted: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged(path, error.strerror or type(error).__name__) from None
    if _checksum(data) != wanted:
        raise damaged(path, "its checksum is another")
    with suppress(UnicodeDecodeError):
        return data.decode()
    raise damaged(path, "it is no text")


def damaged(path: Path, why: str) -> Exception:
    return fail("TW607", f"{path} is damaged: {why}", help="build the package again, or copy it again")


def _tuples(value: Any) -> Any:
    """JSON has lists where records have tuples."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _shown(spec: TensorSpec) -> str:
    words = ["x".join(map(str, spec.logical_shape or spec.shape)), spec.element or spec.dtype, spec.sharding]
    return " ".join(word for word in (*words, "" if spec.layout == "tile" else "row-major") if word)
