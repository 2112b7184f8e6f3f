"""Options that state what the host side of hand-written kernels would, on the command line or in lines of the files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.native.kernel_check import KernelFile, ProgramSetup

SUFFIXES = (".cpp", ".cc", ".h", ".hpp")
ROLES = ("reader", "compute", "writer")


def is_kernel_file(name: str | None) -> bool:
    return name is not None and name.endswith(SUFFIXES)


def add_setup_options(parser: argparse.ArgumentParser, *, shared: bool = False) -> None:
    """``shared``: the parser has options of compilations too, some of which mean the same here."""
    group = parser.add_argument_group(
        "hand-written kernels",
        "a kernel may state these itself, in lines such as  // tilewright check: --cb 0:bf16:8 --arg 4",
    )
    add = group.add_argument
    add("--reader", metavar="FILE", help="the kernel that reads, of a whole program")
    add("--compute", metavar="FILE", help="the kernel that computes")
    add("--writer", metavar="FILE", help="the kernel that writes")
    add("--role", choices=ROLES, default="", help="who runs KERNEL.cpp (by its includes: compute, or the reader)")
    add("--cb", action="append", default=[], metavar="INDEX:DTYPE:PAGES", help="a circular buffer, like 0:bf16:8; once each")
    add(
        "--tensor", action="append", default=[], metavar="NAME:DTYPE:SHAPE[:l1]",
        help="a tensor of random tiles, like a:bf16:64x128, or by its tiles, a:bf16:8",
    )  # fmt: skip
    add("--semaphore", action="append", default=[], metavar="LEVELS", help="semaphores with their initial levels, in order")
    add(
        "--ct-arg", action="append", default=[], metavar="WORDS",
        help="compile-time arguments, in order, separated by commas; a tensor's name stands for the words of its accessor",
    )  # fmt: skip
    add(
        "--arg", action="append", default=[], metavar="WORDS",
        help="run-time arguments; a tensor's name is its address, x, y, core, cores, columns and rows say where a core is, "
        "NAME=WORD names one. Of a program begin with the kernel they are for: reader:a,4",
    )  # fmt: skip
    add("-D", "--define", action="append", default=[], metavar="NAME=VALUE", help="a preprocessor definition")
    add("-I", "--include", action="append", default=[], metavar="FOLDER", help="a folder with headers of your own")
    add("--unpack-to-dest", action="append", default=[], metavar="INDEX", help="buffers in UnpackToDestFp32 mode")
    add("--cores", default="", metavar="COLUMNSxROWS", help="run on a grid of cores (1x1)")
    add("--timeout", type=int, default=60, metavar="SECONDS", help="stop the kernels after this time (60)")
    add("--fp32", action="store_true", help="fp32_dest_acc_en: 32-bit DST")
    add("--fidelity", default="", metavar="NAME", help="LoFi, HiFi2, HiFi3 or HiFi4 (HiFi4)")
    if not shared:
        add("--full-sync", action="store_true", help="dst_full_sync_en: one DST section instead of two")
        add("--arch", default="", metavar="CHIP", help="wormhole_b0 or blackhole (wormhole_b0)")
        add("--metal", default="", metavar="RELEASE", help="ttnn release whose API the kernel uses (0.78)")


def setup_of(arguments: argparse.Namespace, path: Path | None) -> ProgramSetup:
    """The program around ``path``, or of ``--reader``, ``--compute`` and ``--writer``. What the command line says, wins."""
    from tilewright.native import kernel_check
    from tilewright.native.program import ComputeConfig

    files, stated = _files(arguments, path)
    given = vars(arguments)

    def all_of(name: str) -> list[str]:
        return given[name] or [text for own in stated.values() for text in getattr(own, name)]

    def first_of(name: str) -> str:
        return given.get(name) or next((getattr(own, name) for own in stated.values() if getattr(own, name)), "")

    config = ComputeConfig(
        fp32_dest_acc_en=bool(first_of("fp32")),
        dst_full_sync_en=bool(first_of("full_sync")),
        math_fidelity=kernel_check.parse_fidelity(first_of("fidelity") or "HiFi4"),
        unpack_to_dest=frozenset(kernel_check.parse_words(all_of("unpack_to_dest"))),
    )
    buffers = {buffer.index: buffer for buffer in map(kernel_check.parse_buffer, all_of("cb"))}
    tensors = {tensor.name: tensor for tensor in map(kernel_check.parse_tensor, all_of("tensor"))}
    return kernel_check.ProgramSetup(
        kernels=[_kernel(arguments, role, file, stated[role], alone=path is not None and role == next(iter(files)))
                 for role, file in files.items()],
        buffers=tuple(buffers.values()),
        tensors=tuple(tensors.values()),
        semaphores=kernel_check.parse_words(all_of("semaphore")),
        grid=kernel_check.parse_grid(first_of("cores") or "1x1"),
        config=config,
        metal=first_of("metal") or "0.78",
        chip=kernel_check.parse_chip(first_of("arch") or "wormhole_b0"),
    )  # fmt: skip


def _files(arguments: argparse.Namespace, path: Path | None) -> tuple[dict[str, Path], dict[str, argparse.Namespace]]:
    """Files by role, the one named first; and what each of them says about itself."""
    from tilewright.native import kernel_check

    files: dict[str, Path] = {}
    stated: dict[str, argparse.Namespace] = {}
    if path is not None:
        text = path.read_text(encoding="utf-8", errors="replace")
        own = _stated(path, text)
        role = arguments.role or own.role or kernel_check.role_of(text)
        files[role], stated[role] = path, own
        named = {each: path.parent / getattr(own, each) for each in ROLES if getattr(own, each)}
    else:
        named = {}
    for role in ROLES:
        other = Path(getattr(arguments, role)) if getattr(arguments, role) else named.get(role)
        if other is not None and role not in files:
            files[role], stated[role] = other, _stated(other, other.read_text(encoding="utf-8", errors="replace"))
    return files, stated


def _stated(path: Path, text: str) -> argparse.Namespace:
    from tilewright.native import kernel_check

    own = argparse.ArgumentParser(prog=str(path), add_help=False)
    add_setup_options(own)
    return own.parse_args(kernel_check.options_in_file(text))


def _kernel(arguments: argparse.Namespace, role: str, path: Path, stated: argparse.Namespace, *, alone: bool) -> KernelFile:
    from tilewright.native.kernel_check import KernelFile

    def own(name: str) -> list[str]:
        given: list[str] = getattr(arguments, name)
        mine = [text.removeprefix(f"{role}:") for text in given if text.startswith(f"{role}:")]
        plain = [text for text in given if not text.startswith(tuple(f"{each}:" for each in ROLES))]
        return mine or (plain if alone else []) or getattr(stated, name)

    folders = [Path(name) for name in arguments.include] + [path.parent / name for name in stated.include]
    return KernelFile(
        role=role, path=path, compile_time_args=own("ct_arg"), runtime_args=own("arg"),
        defines={name: value for name, _, value in (text.partition("=") for text in own("define"))},
        include_folders=folders,
    )  # fmt: skip

