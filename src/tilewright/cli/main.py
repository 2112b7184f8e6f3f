"""``tilewright``: finds the command and runs it. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple


class Command(NamedTuple):
    usage: str
    summary: str

    def module(self, name: str) -> str:
        """Where it lives: a module with ``add_arguments(parser)`` and ``run(arguments) -> exit code``."""
        return f"tilewright.cli.{name}"


COMMANDS = {
    "run": Command("[OPTIONS] SCRIPT|FILE.mlir|-|-m MODULE [ARGS …]", "run a script: kernel calls are compiled and simulated"),
    "compile": Command(
        "[OPTIONS] SCRIPT|FILE.mlir [-o DIR] [-- ARGS …]", "write the C++ of the kernels a script calls, or of an .mlir file"
    ),
    "explain": Command(
        "[OPTIONS] SCRIPT|CODE [-o PAGE.html] [-- ARGS …]", "why the code is what it is, or what an error code means"
    ),
    "profile": Command(
        "[OPTIONS] SCRIPT|KERNEL.cpp [-o DIR] [-- ARGS …]", "how long kernels take on the chip, and what binds them"
    ),
    "build": Command("[OPTIONS] SCRIPT -o FOLDER [-- ARGS …]", "a script's kernels as a package that runs without the source"),
    "score": Command("[OPTIONS] KERNEL.py --reference REF.py", "a verdict on a kernel nobody trusts: right, how wrong, how fast"),
    "tune": Command(
        "[OPTIONS] SCRIPT [-o DIR] [-- ARGS …]", "the fastest configuration of the tuned kernels that a script calls"
    ),
    "opt": Command("[OPTIONS] FILE.mlir -p PASSES", "run passes on MLIR text"),
    "check": Command("[OPTIONS] KERNEL.cpp …", "run a hand-written C++ kernel on the host and report what it does wrong"),
    "lsp": Command("[--on-save]", "a language server: errors, DST slots, cycles and the emitted C++ in your editor"),
    "doctor": Command("[--json]", "what is installed and what works here"),
}

WITH_SCRIPT_AFTER_DASHES = ("compile", "explain", "profile", "build", "tune")

EXAMPLES = """examples:
  tilewright run examples/01_add.py                simulate
  tilewright run --native examples/01_add.py       compile the emitted C++ with the system compiler and run it
  tilewright compile examples/01_add.py -o build   write build/<kernel>/compute.cpp, reader.cpp, writer.cpp
  tilewright explain examples/01_add.py            what each pass decided, and why
  tilewright profile examples/02_fused.py          predicted time, what binds, cycles per line
  tilewright explain TW401                         what an error means

`tilewright COMMAND --help` lists the options of a command."""


def available() -> dict[str, Command]:
    """Commands whose module is part of this installation."""
    return {name: command for name, command in COMMANDS.items() if importlib.util.find_spec(command.module(name))}


def overview() -> str:
    commands = available()
    width = max(len(name) for name in commands)
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in commands.items()]
    start = "usage: tilewright COMMAND [OPTIONS] …\n\nTilewright compiles Tenstorrent tile kernels.\n\ncommands:"
    return "\n".join([start, *lines, "", EXAMPLES])


def main(argv: Sequence[str] | None = None) -> int:
    try:
        code = run_command(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def run_command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from tilewright.package import version

        print(f"tilewright {version()}")
        return 0
    commands = available()
    command = commands.get(words[0])
    if command is None:
        print(f"tilewright: unknown command {words[0]!r}{suggestion(words[0], commands)}", file=sys.stderr)
        return 2
    module = importlib.import_module(command.module(words[0]))
    parser = CommandLine(
        words,
        prog=f"tilewright {words[0]}",
        usage=f"tilewright {words[0]} {command.usage}",
        description=module.__doc__,
        formatter_class=functools.partial(argparse.RawDescriptionHelpFormatter, width=help_width(words)),
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    ours, theirs = words[1:], list[str]()
    if words[0] in WITH_SCRIPT_AFTER_DASHES:
        ours, theirs = split_at_dashes(ours)
    elif words[0] == "run":
        ours, theirs = split_at_module(ours)
    given = parser.parse_args(ours)
    given.arguments = theirs or getattr(given, "arguments", [])
    if not getattr(given, "quiet", False):
        return int(module.run(given))
    from tilewright.progress import silenced

    with silenced():
        return int(module.run(given))


class CommandLine(argparse.ArgumentParser):
    """Knows the words it is going to read, so that flags nobody wrote need not be made: a command has forty."""

    def __init__(self, words: Sequence[str], **settings: Any) -> None:
        super().__init__(**settings)
        self._words = {word.partition("=")[0] for word in words}

    def may_read(self, flag: str) -> bool:
        """Whether ``flag`` or its opposite stands among the words; help is about all flags."""
        return not self._words.isdisjoint((flag, "--no-" + flag.removeprefix("--"), "-h", "--help"))


def help_width(words: list[str]) -> int | None:
    """None asks the terminal, which costs more than reading all arguments: only where help will be printed."""
    return None if {"-h", "--help"} & set(words) else 80


def split_at_dashes(words: list[str]) -> tuple[list[str], list[str]]:
    """Options of ours may stand on both sides of the script, so the script's own come after ``--``."""
    if "--" not in words:
        return words, []
    cut = words.index("--")
    return words[:cut], words[cut + 1 :]


def split_at_module(words: list[str]) -> tuple[list[str], list[str]]:
    """``-m MODULE`` ends our options: what follows belongs to the module. A ``-m`` behind a script is the script's."""
    for place, word in enumerate(words):
        if word == "-" or word.endswith((".py", ".mlir")):
            break
        if word == "-m":
            return words[: place + 2], words[place + 2 :]
    return words, []


def suggestion(word: str, commands: dict[str, Command]) -> str:
    import difflib

    close = difflib.get_close_matches(word, list(commands), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; one of {', '.join(commands)}"


if __name__ == "__main__":
    sys.exit(main())
