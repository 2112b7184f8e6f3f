"""``tilewright check``: runs hand-written compute kernels on the host and reports what they do wrong, with line numbers."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

SUMMARY = "run a hand-written C++ kernel on the host and report what it does wrong"
DESCRIPTION = """Runs compute kernels alone: buffers they wait for are fed with random tiles, buffers they push are drained.
A kernel may state its own options in lines such as  // tilewright check: --cb 0:bf16:8 --cb 16:bf16:8 --arg 4
Exit code: 0 if nothing is wrong, 1 if a kernel has errors, 2 if it could not be run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("kernels", nargs="+", type=Path, metavar="KERNEL.cpp", help="compute kernel files")
    _add_setup_options(parser)
    parser.add_argument("--timeout", type=int, default=60, metavar="SECONDS", help="stop a kernel after this time (60)")
    parser.add_argument("--json", action="store_true", help="findings as JSON on standard output")


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser("check", help=SUMMARY)
    add_arguments(parser)
    return parser


def _add_setup_options(parser: argparse.ArgumentParser) -> None:
    """What the host program would set up; also the options a kernel file may state for itself."""
    add = parser.add_argument
    add(
        "--cb", action="append", default=[], metavar="INDEX:DTYPE:PAGES", help="a circular buffer, like 0:bf16:8; once per buffer"
    )
    add("--ct-arg", action="append", default=[], metavar="WORDS", help="compile-time arguments, in order, separated by commas")
    add("--arg", action="append", default=[], metavar="WORDS", help="run-time arguments, in order, separated by commas")
    add("-D", "--define", action="append", default=[], metavar="NAME=VALUE", help="a preprocessor definition")
    add("--fp32", action="store_true", help="fp32_dest_acc_en: 32-bit DST")
    add("--full-sync", action="store_true", help="dst_full_sync_en: one DST section instead of two")
    add("--fidelity", default="", metavar="NAME", help="LoFi, HiFi2, HiFi3 or HiFi4 (HiFi4)")
    add("--unpack-to-dest", action="append", default=[], metavar="INDEX", help="buffers in UnpackToDestFp32 mode")
    add("--arch", default="", metavar="CHIP", help="wormhole_b0 or blackhole (wormhole_b0)")
    add("--metal", default="", metavar="RELEASE", help="ttnn release whose API the kernel uses (0.78)")


def _setup(arguments: argparse.Namespace, path: Path) -> Any:
    from tilewright.native import kernel_check
    from tilewright.native.program import ComputeConfig

    own = argparse.ArgumentParser(prog=str(path), add_help=False)
    _add_setup_options(own)
    stated = own.parse_args(kernel_check.options_in_file(path.read_text()))

    def both(name: str) -> list[str]:
        return getattr(arguments, name) or getattr(stated, name)

    config = ComputeConfig(
        fp32_dest_acc_en=arguments.fp32 or stated.fp32,
        dst_full_sync_en=arguments.full_sync or stated.full_sync,
        math_fidelity=kernel_check.parse_fidelity(arguments.fidelity or stated.fidelity or "HiFi4"),
        unpack_to_dest=frozenset(kernel_check.parse_words(both("unpack_to_dest"))),
    )
    return kernel_check.CheckSetup(
        buffers=tuple(kernel_check.parse_buffer(text) for text in both("cb")),
        compile_time_args=kernel_check.parse_words(both("ct_arg")),
        runtime_args=kernel_check.parse_words(both("arg")),
        defines={name: value for name, _, value in (text.partition("=") for text in both("define"))},
        config=config,
        metal=arguments.metal or stated.metal or "0.78",
        chip=kernel_check.parse_chip(arguments.arch or stated.arch or "wormhole_b0"),
    )


def run(arguments: argparse.Namespace) -> int:
    from tilewright.native import kernel_check
    from tilewright.native.findings import KernelCompileError, NativeError

    worst = 0
    listed: list[dict[str, Any]] = []
    for path in arguments.kernels:
        try:
            result = kernel_check.check_kernel(path, _setup(arguments, path), seconds=arguments.timeout)
        except KernelCompileError as error:
            print(error.output, file=sys.stderr)
            print(f"{path}: does not compile", file=sys.stderr)
            worst = max(worst, 1)
            continue
        except (NativeError, OSError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            worst = 2
            continue
        findings = sorted(result.findings, key=lambda finding: (finding.file, finding.line))
        listed += [{**asdict(finding), "severity": finding.severity} for finding in findings]
        if result.errors:
            worst = max(worst, 1)
        if arguments.json:
            continue
        for finding in findings:
            print(finding)
        if any(finding.code == "unknown-buffer" for finding in findings):
            print("  = help: state every buffer of the kernel, like --cb 0:bf16:8 (number, dtype, tiles)")
        print(f"{path}: {len(result.errors)} errors, {len(findings) - len(result.errors)} warnings")
    if arguments.json:
        print(json.dumps(listed, indent=2))
    return worst
