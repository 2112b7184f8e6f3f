"""``tilewright check``: runs hand-written kernels on the host and reports what they do wrong, with line numbers."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.cli import kernel_files

SUMMARY = "run a hand-written C++ kernel on the host and report what it does wrong"
DESCRIPTION = """Runs kernels alone: buffers they wait for are fed with random tiles, buffers they push are drained.
Reader, compute and writer together are a whole program. A kernel may state its own options in lines such as

  // tilewright check: --cb 0:bf16:8 --cb 16:bf16:8 --arg 4
  // tilewright check: --reader reader.cpp --writer writer.cpp --tensor a:bf16:64x64

Exit code: 0 if nothing is wrong, 1 if a kernel has errors, 2 if it could not be run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("kernels", nargs="*", type=Path, metavar="KERNEL.cpp", help="kernel files, one program each")
    kernel_files.add_setup_options(parser)
    parser.add_argument("--json", action="store_true", help="findings as JSON on standard output")


def run(arguments: argparse.Namespace) -> int:
    from tilewright.native import kernel_check
    from tilewright.native.driver import run_native
    from tilewright.native.findings import KernelCompileError, NativeError

    if not arguments.kernels and not any(getattr(arguments, role) for role in kernel_files.ROLES):
        print("tilewright check: name a kernel file, or --reader, --compute and --writer", file=sys.stderr)
        return 2
    worst = 0
    listed: list[dict[str, Any]] = []
    for path in arguments.kernels or [None]:
        name = path or "program"
        try:
            program = kernel_check.native_program(kernel_files.setup_of(arguments, path))
            result = run_native(program, seconds=arguments.timeout)
        except KernelCompileError as error:
            print(error.output, file=sys.stderr)
            print(f"{error.kernel}: does not compile", file=sys.stderr)
            worst = max(worst, 1)
            continue
        except (NativeError, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
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
        print(f"{name}: {len(result.errors)} errors, {len(findings) - len(result.errors)} warnings")
    if arguments.json:
        print(json.dumps(listed, indent=2))
    return worst
