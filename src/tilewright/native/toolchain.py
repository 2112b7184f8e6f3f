"""Finds the system C++ compiler and compiles runner and kernels, each once per content: with the facts about ops that the
machine must know, as a header written from the op table, and with headers of the user's own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from tilewright.dialects import tile_op, tile_ops
from tilewright.host_compiler import Compiler, at_once, cache_folder, digest, publish, system_compiler
from tilewright.native.findings import KernelCompileError, NativeError, NoCompilerError
from tilewright.native.header_tree import INCLUDE, tree_digest, write_tree
from tilewright.progress import progress

FACTS = "op_facts.h"


def lookup_inits() -> frozenset[str]:
    """Inits whose approximate form fills a table in registers; on the packer's processor they have names of their own."""
    inits = {form.init for row in tile_ops.ROWS for form in row.forms if form.lookup}
    return frozenset({*inits, *(f"{init}_pack" for init in inits)})


def facts_header() -> str:
    facts = {
        "kStateless": tile_op.STATELESS,
        "kAddressMode": tile_op.ADDRESS_MODE,
        "kMacros": tile_op.MACROS,
        "kLookupIfApproximate": lookup_inits(),
        "kWriteConstants": tile_op.WRITE_CONSTANTS,
        "kStopStepping": tile_op.STOP_STEPPING,
        "kFillReplay": tile_op.FILL_REPLAY,
    }
    lists = "".join(f"inline const std::set<std::string_view> {name} = {_words(words)};\n" for name, words in facts.items())
    includes = "#pragma once\n#include <set>\n#include <string_view>\n"
    return f"// Written by native/toolchain.py.\n{includes}\nnamespace tw {{\n\n{lists}\n}}  // namespace tw\n"


def _words(words: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{word}"' for word in sorted(words)) + "}"


_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

# What stands below the kernel API: instructions and registers of the chip, which this model does not have.
_BELOW = (
    (re.compile(r"\bsfpi::|\bdst_reg\s*\[|\bv_if\s*\("), "code for the lanes of the vector unit (sfpi)"),
    (re.compile(r"\bTTI?_[A-Z0-9]+\s*\("), "instructions of the Tensix (TT_ and TTI_ macros)"),
    (
        re.compile(r'#\s*include\s*["<](?:[\w/]*/)?(?:sfpi|ckernel_sfpu_|llk_|ckernel_ops)[^">]*[">]'),
        "a header of the low-level kernels (LLK)",
    ),
    (re.compile(r"\b_?llk_\w+\s*[<(]"), "a call of the low-level kernels (LLK)"),
    (re.compile(r"\bTT_KERNEL\b"), "a TT_KERNEL entry point, around which the vendor's host generates kernel_main()"),
)


def included(text: str, folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Files in ``folders`` that ``text`` includes, and those that they include."""
    pending, seen = [text], set[Path]()
    while pending:
        for name in _INCLUDE.findall(pending.pop()):
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is None or path in seen:
                continue
            seen.add(path)
            found = path.read_text(encoding="utf-8", errors="replace")
            pending.append(found)
            yield path, found


def refuse_unmodelled(label: str, text: str, folders: Sequence[Path]) -> None:
    """Raises where a kernel goes below the kernel API, with the line: a compiler would only say that a header is missing."""
    for name, content in ((label, text), *((str(path), found) for path, found in included(text, folders))):
        code = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), content)
        for pattern, what in _BELOW:
            match = pattern.search(code)
            if match is None:
                continue
            line = code.count("\n", 0, match.start()) + 1
            raise NativeError(
                f"{name}:{line}: {what}: the native run models calls of the kernel API on whole tiles, not what they are made of"
            )


SOURCES = Path(__file__).parent / "src"
RUNNER_FLAGS = ("-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-pthread")
# By folder: the loops over numbers are in one of them, of the other -O1 takes a third longer to compile and saves nothing.
OPTIMISED = {"machine": "-Og", "numerics": "-O3"}
KERNEL_FLAGS = (
    "-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
    "-fno-asynchronous-unwind-tables", "-fvisibility=hidden", "-nostdlib",  # the runner has the libraries
)  # fmt: skip
GCC_KERNEL_FLAGS = ("-fno-gnu-unique",)  # threads load the same template twice and must not share its statics


def kernel_flags(compiler: Compiler) -> tuple[str, ...]:
    return KERNEL_FLAGS if "clang" in compiler.version.lower() else KERNEL_FLAGS + GCC_KERNEL_FLAGS


@cache
def find_compiler() -> Compiler:
    compiler = system_compiler()
    if compiler is None:
        raise NoCompilerError("a native run needs a C++17 compiler: install g++ (apt-get install g++) or set CXX")
    return compiler


@cache
def include_folder(release: int) -> Path:
    """The generated include tree of one release."""
    folder = cache_folder() / f"include-{tree_digest(release)}"
    if not folder.exists():
        temporary = Path(tempfile.mkdtemp(dir=cache_folder()))
        write_tree(release, temporary)
        publish(temporary, folder)
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


@cache
def runner_path() -> Path:
    """The host runner, compiled on first use."""
    compiler = find_compiler()
    files = sorted((*SOURCES.rglob("*.cpp"), *SOURCES.rglob("*.h"), INCLUDE / "tw" / "runtime.h"))
    facts = facts_header()
    content = facts + "".join(path.read_text() for path in files)
    runner = cache_folder() / f"runner-{digest(compiler.version, *RUNNER_FLAGS, *OPTIMISED.values(), content)}"
    if runner.exists():
        return runner
    parts = sorted({path.parent for path in SOURCES.rglob("*.cpp")})
    bar = progress("compiling the native machine, once per version", len(parts))
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder, bar:
        (Path(folder) / FACTS).write_text(facts)
        objects = [Path(folder) / f"{part.name}.o" for part in parts]

        def compile_part(pair: tuple[Path, Path]) -> subprocess.CompletedProcess[str]:
            """All files of a folder as one unit: most of the time goes into reading the same headers again."""
            part, target = pair
            unit = target.with_suffix(".cpp")
            unit.write_text("".join(f'#include "{path}"\n' for path in sorted(part.glob("*.cpp"))))
            done = compiler.run(*RUNNER_FLAGS, OPTIMISED[part.name], f"-I{folder}", "-c", str(unit), "-o", str(target))
            bar.advance()
            return done

        results = at_once(compile_part, zip(parts, objects, strict=True), os.cpu_count() or 1)
        linked = Path(folder) / "runner"
        link = [*RUNNER_FLAGS, "-rdynamic", *map(str, objects), "-o", str(linked), "-ldl"]
        failed = [result for result in results if result.returncode] or [compiler.run(*link)]
        if failed[0].returncode:
            raise NativeError(f"the host runner does not compile with {compiler.version}:\n{failed[0].stderr}")
        publish(linked, runner)
    return runner


def compile_kernel(name: str, text: str, release: int, folders: Sequence[Path] = ()) -> Path:
    """One translation unit -> one shared object in the cache. ``folders`` hold headers of the user's own."""
    compiler = find_compiler()
    headers = include_folder(release)
    own = [content for _, content in included(text, folders)]
    library = cache_folder() / f"kernel-{digest(compiler.version, headers.name, *kernel_flags(compiler), text, *own)}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        source = Path(folder) / "kernel.cpp"
        source.write_text(text)
        built = Path(folder) / "kernel.so"
        paths = [f"-I{folder}" for folder in (headers, INCLUDE, *folders)]
        command = [*kernel_flags(compiler), *paths, str(source), "-o", str(built)]
        result = compiler.run(*command)
        if result.returncode:
            raise KernelCompileError(name, result.stderr.strip())
        publish(built, library)
    return library
