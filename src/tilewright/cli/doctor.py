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
from typing import Any

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


def largest_error() -> float:
    """Of a one-tile add. Small integers are exact in every format, so the error is zero or something is broken."""
    import numpy as np

    from tilewright import ttl

    @ttl.kernel(grid=(1, 1))
    def doctor_add(a: Any, b: Any, out: Any) -> None:
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1), buffer_factor=2)
        out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

        @ttl.compute()
        def add() -> None:
            with a_cb.wait() as left, b_cb.wait() as right, out_cb.reserve() as result:
                result.store(left + right)

        @ttl.datamovement()
        def read() -> None:
            with a_cb.reserve() as left, b_cb.reserve() as right:
                ttl.copy(a[0:1, 0:1], left).wait()
                ttl.copy(b[0:1, 0:1], right).wait()

        @ttl.datamovement()
        def write() -> None:
            with out_cb.wait() as result:
                ttl.copy(result, out[0:1, 0:1]).wait()

    a = np.arange(1024, dtype=np.float32).reshape(32, 32) % 64
    b = np.ones((32, 32), dtype=np.float32)
    out = np.zeros((32, 32), dtype=np.float32)
    doctor_add(a, b, out)
    return float(np.max(np.abs(out - (a + b))))


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
