"""Pages that are made from the code: commands, options, the Python API, JSON.

    python tests/reference_pages.py docs

Commands are asked for their arguments, options for their records, modules for their docstrings, schemas for their descriptions.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from tilewright import execution, kernels, ttl
from tilewright import torch as torch_operators
from tilewright.cli import invocation
from tilewright.cli.main import COMMANDS
from tilewright.jit.kernel import Kernel
from tilewright.lang.names import LanguageFunction, NotYetSupported
from tilewright.options import CHOICES, Options
from tilewright.tune.autotune import Tuned

ROOT = Path(__file__).resolve().parents[1]
MADE = "This page is made from the code: `make docs`."
SCHEMAS = {
    "explain.schema.json": "tilewright explain SCRIPT --json",
    "kernel_artifact.schema.json": "tilewright build SCRIPT --artifact -o FOLDER",
}


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def shown(default: Any) -> str:
    return {None: "the compiler decides", True: "on", False: "off", "": "nothing"}.get(default, f"`{default}`")


# Commands and options -----------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    parts = ["# Commands", "", f"{MADE} `tilewright COMMAND --help` prints the same. [Compile options](options.md) go with most of them."]
    for name, command in COMMANDS.items():
        module = importlib.import_module(command.module(name))
        said, _, examples = (module.__doc__ or "").partition("\nexamples:\n")
        parts += ["", f"## {name}", "", said.strip(), "", "```sh", f"tilewright {name} {command.usage}", "```"]
        rows = list(option_rows(module))
        if rows:
            parts += ["", "| option | meaning |", "|---|---|", *rows]
        if examples:
            parts += ["", "Examples:", "", "```sh", *(line.strip() for line in examples.strip().splitlines()), "```"]
    return "\n".join(parts) + "\n"


def option_rows(module: Any) -> Iterator[str]:
    parser = argparse.ArgumentParser(add_help=False)
    module.add_arguments(parser)
    compile_options = set(Options.names())
    for action in parser._actions:
        if action.dest in compile_options or (not action.option_strings and not action.help):
            continue
        given = f" {action.metavar}" if action.metavar and action.option_strings else ""
        given = f" {{{','.join(map(str, action.choices))}}}" if action.choices and action.option_strings else given
        name = ", ".join(f"`{flag}{given}`" for flag in action.option_strings) or f"`{action.metavar or action.dest}`"
        yield f"| {cell(name)} | {cell(action.help or '')} |"


def options_page() -> str:
    lines = [
        "# Compile options", "",
        f"{MADE} The decorator (`@ttl.operation(grid=(8, 8), math_fidelity=\"LoFi\")`), `kernel.compile(…)`, `execution.session(overrides={{…}})` and the",
        "command line (`--math-fidelity LoFi`) use the same names. What the command line gives wins.", "",
        "| option | flag | values | without it | meaning |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name in Options.names():
        default = getattr(Options(), name)
        flag = "--" + name.replace("_", "-")
        switch = name in invocation.SWITCHES
        values = ", ".join(f"`{value}`" for value in CHOICES.get(name, ())) or ("`True`, `False`" if switch else "")
        flags = f"`{flag}`, `--no-{flag[2:]}`" if switch else f"`{flag}`"
        lines.append(f"| `{name}` | {flags} | {values} | {shown(default)} | {cell(invocation.HELP[name])} |")
    return "\n".join(lines) + "\n"


# Python -------------------------------------------------------------------------------------------------------------------------


def signature(value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Enum):  # not how it is made, which each Python says otherwise
        return "".join(f"{'  #' if place == 0 else ','} {member.name}" for place, member in enumerate(value))
    try:
        found = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    if "Span" in found:  # made by the language, not by its user
        return "(…)"
    return re.sub(r"'|: Any\b| -> None", "", re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "…", found))


def entry(name: str, value: Any) -> list[str]:
    text = inspect.getdoc(value) or ""
    return ["", f"### {name}", "", "```python", f"{name}{signature(value)}", "```", *(["", text.replace("``", "`")] if text else [])]


def methods(owner: type, names: tuple[str, ...], prefix: str) -> list[str]:
    return [line for name in names for line in entry(f"{prefix}.{name}", getattr(owner, name))]


def api_page() -> str:
    named = {name: getattr(ttl, name) for name in ttl.__all__}
    in_threads = sorted(name for name, value in named.items() if isinstance(value, LanguageFunction))
    unsupported = sorted(name for name, value in named.items() if isinstance(value, NotYetSupported))
    told = {
        name: value
        for name, value in named.items()
        if (inspect.isfunction(value) or (inspect.isclass(value) and value.__module__.startswith("tilewright")))
        and name not in in_threads and name not in unsupported
    }  # fmt: skip
    groups: dict[int, list[str]] = {}
    for name, value in told.items():
        groups.setdefault(id(value), []).append(name)
    lines = ["# Python API", "", f"{MADE} [The language](language.md) says what may stand inside of kernels.", "", "## ttl"]
    for names in groups.values():
        first = next((name for name in names if name in ("operation", "make_dataflow_buffer_like", "DataflowBuffer")), names[0])
        others = [name for name in names if name != first]
        lines += entry(f"ttl.{first}", told[first])
        lines += ["", f"Also called {', '.join(f'`ttl.{name}`' for name in others)}."] if others else []
    lines += ["", "### Inside threads only", "", "[The language](language.md) and [many cores](multicore.md) say what they do: "]
    lines[-1] += ", ".join(f"`ttl.{name}`" for name in in_threads) + ". Functions of `ttl.math` and `ttl.block` are [tile ops](ops.md)."
    lines += ["", "### Not in this release", "", "These names exist and say what to write instead: " + ", ".join(f"`{name}`" for name in unsupported) + "."]
    lines += ["", "## Kernels", "", "What `@ttl.operation` makes of a function. Calling it compiles and runs it."]
    lines += methods(Kernel, ("compile", "profile", "with_options"), "kernel")
    lines += ["", "What `@ttl.autotune` makes of one has these too:", *methods(Tuned, ("config", "space"), "kernel")]
    lines += ["", "## tilewright.execution", *entry("execution.session", execution.session)]
    lines += ["", "## tilewright.kernels", "", "[The library](kernels.md) says what the parameters mean."]
    for name in kernels.__all__:
        lines += entry(f"kernels.{name}", getattr(kernels, name).subject.function)
    lines += ["", "## tilewright.torch", *entry("tilewright.torch.op", torch_operators.op)]
    return "\n".join(lines) + "\n"


# JSON ---------------------------------------------------------------------------------------------------------------------------


def json_page() -> str:
    lines = ["# JSON", "", f"{MADE} Commands print JSON with `--json`; what is more than a line has a schema (JSON Schema 2020-12) beside this page."]
    for file, command in SCHEMAS.items():
        schema = json.loads((ROOT / "docs" / file).read_text(encoding="utf-8"))
        lines += ["", f"## {file.removesuffix('.schema.json')}", "", f"{schema.get('title', '')}. [{file}]({file}); `{command}`."]
        lines += fields("", schema)
        for name, part in schema.get("$defs", {}).items():
            if "properties" in part:
                lines += ["", f"### {file.removesuffix('.schema.json')}: {name}", *([part["description"]] if "description" in part else [])]
                lines += fields(name, part)
    return "\n".join(lines) + "\n"


def fields(name: str, schema: Mapping[str, Any]) -> list[str]:
    lines = ["", "| field | type | meaning |", "|---|---|---|"]
    for field, part in schema.get("properties", {}).items():
        missing = "" if field in schema.get("required", [field]) else " (may be missing)"
        lines.append(f"| `{field}` | {cell(kind(part))} | {cell(part.get('description', ''))}{missing} |")
    return lines


def kind(part: Mapping[str, Any]) -> str:
    if "$ref" in part:
        return part["$ref"].rpartition("/")[2]
    for joined in ("anyOf", "oneOf"):
        if joined in part:
            return " or ".join(dict.fromkeys(kind(each) for each in part[joined]))
    if "const" in part:
        return f"`{part['const']}`"
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if part.get("type") == "array":
        inner = part.get("items")
        return f"list of {kind(inner)}" if isinstance(inner, dict) else "list"
    if part.get("type") == "object" and part.get("properties"):
        return "object with " + ", ".join(f"`{name}`" for name in part["properties"])
    if part.get("type") == "object" and isinstance(part.get("additionalProperties"), dict):
        return f"object of {kind(part['additionalProperties'])} by name"
    found = part.get("type", "anything")
    return " or ".join(found) if isinstance(found, list) else found


PAGES = {"commands.md": commands_page, "options.md": options_page, "api.md": api_page, "json.md": json_page}

if __name__ == "__main__":
    for name, made in PAGES.items():
        (Path(sys.argv[1]) / name).write_text(made(), encoding="utf-8")
