"""Build the kernels that a script calls into a package that runs without the source.

The script is run with its kernel calls intercepted, as `tilewright compile` does: each shape it calls a kernel with becomes part
of the package. The package holds C++, the compiled program, a launcher, what tuning found for the script, and checksums.
`tilewright.load("package/")` runs it in the simulator, natively, or on a device.

examples:
  tilewright build examples/02_fused.py -o package
  tilewright build examples/02_fused.py -o package --artifact
  python -c 'import tilewright; print(tilewright.load("package"))'
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tilewright.cli import invocation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="the package; one that exists is replaced")
    artifact = "also write kernel_artifact.json, which tt-xla and tt-mlir take for TT-Lang operations"
    parser.add_argument("--artifact", action="store_true", help=artifact)
    invocation.add_output_flags(parser)
    invocation.add_printing_flags(parser)
    invocation.add_option_flags(parser)
    parser.add_argument("source", metavar="SCRIPT", help="arguments of the script follow after --")


def run(arguments: argparse.Namespace) -> int:
    from tilewright import package
    from tilewright.cli import compile as compiling

    problem = invocation.missing_file(arguments.source)
    if problem:
        return invocation.refused("build", problem)
    try:
        programs = compiling.collect(arguments)
        if not programs:
            return invocation.refused("build", f"{arguments.source} called no kernel", 1)
        target = package.write(
            package.distinct(programs), Path(arguments.output), source=Path(arguments.source).name,
            extra=tuned_configs(arguments.source), artifacts=arguments.artifact,
        )  # fmt: skip
    except BaseException as error:
        return invocation.report(error, as_json=arguments.json, verbose=arguments.verbose)
    found = package.load(target)
    if arguments.json:
        kernels = [{"name": each.name, "tensors": each.text} for each in found.variants]
        print(json.dumps({"package": str(target), "kernels": kernels}))
    else:
        for each in found.variants:
            print(f"{target / each.folder}: {each.name}{each.text}")
    return 0


def tuned_configs(script: str) -> dict[str, str]:
    """The tuner's results beside the script, which its tuned kernels were compiled with: they stay with what they made."""
    from tilewright import package
    from tilewright.tune import results

    found = results.beside(script)
    return {package.TUNED: found.read_text(encoding="utf-8")} if found.is_file() else {}
