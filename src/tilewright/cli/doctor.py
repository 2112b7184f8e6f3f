"""Say what is installed and what works here.

A small kernel is compiled and simulated, so that a broken installation shows at once. Exit code 0 means that the
simulator works; everything else is optional.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import shutil
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tilewright.records import record

GOOD, MISSING, BROKEN = "ok", "missing", "broken"


@record
class Finding:
    name: str
    state: str
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.add_argument("--verbose", action="store_true", help="show tracebacks")


def run(arguments: argparse.Namespace) -> int:
    findings = [
        python(),
        package("tilewright", "this compiler"),
        package("xdsl", "the IR", required=True),
        package("numpy", "values", required=True),
        package("ml_dtypes", "bfloat16", required=True),
        simulator(arguments.verbose),
        host_compiler(),
        package("torch", "torch tensors as kernel arguments; scripts that import torch"),
        package("ttnn", "running on a device"),
        package("tilelang", "reading TileLang PrimFuncs"),
        device(),
    ]
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.state:<8} {finding.name:<12} {finding.detail}")
    return 1 if any(finding.state == BROKEN for finding in findings) else 0


def python() -> Finding:
    supported = (3, 10) <= sys.version_info[:2] <= (3, 13)
    detail = f"{platform.python_version()} at {sys.executable}"
    if not supported:
        return Finding("python", BROKEN, f"{detail}; 3.10 to 3.13 are supported")
    return Finding("python", GOOD, detail)


def package(name: str, purpose: str, *, required: bool = False) -> Finding:
    """Looks without importing: torch alone would take seconds."""
    if importlib.util.find_spec(name) is None:
        return Finding(name, BROKEN if required else MISSING, f"for {purpose}: pip install {name}")
    try:
        found = version(name)
    except PackageNotFoundError:
        found = "from the source tree"
    return Finding(name, GOOD, f"{found} ({purpose})")


def simulator(verbose: bool) -> Finding:
    from tilewright.cli.doctor_kernel import largest_error

    try:
        error = largest_error()
    except Exception as failure:
        if verbose:
            import traceback

            traceback.print_exc()
        return Finding("simulator", BROKEN, f"{type(failure).__name__}: {failure}")
    if error != 0.0:
        return Finding("simulator", BROKEN, f"a one-tile add is wrong by {error}")
    return Finding("simulator", GOOD, "compiled and simulated a one-tile add, exact")


def host_compiler() -> Finding:
    for name in ("g++", "clang++", "c++"):
        found = shutil.which(name)
        if found:
            return Finding("C++ compiler", GOOD, f"{found} (for run --native, check and faster simulation)")
    return Finding("C++ compiler", MISSING, "for run --native, check and faster simulation: install g++ or clang++")


def device() -> Finding:
    nodes = sorted(Path("/dev/tenstorrent").glob("*")) if Path("/dev/tenstorrent").is_dir() else []
    if not nodes:
        return Finding("device", MISSING, "no /dev/tenstorrent; kernels run in the simulator")
    return Finding("device", GOOD, ", ".join(str(node) for node in nodes))
