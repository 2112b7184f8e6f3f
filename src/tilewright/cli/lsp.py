"""A language server for editors, over standard input and output.

Errors as you type, DST slots, cycles and decisions of a line on hover, and the emitted C++ of a line. `docs/editor.md` says
how to set up VS Code and Neovim. It needs `pip install 'tilewright[lsp]'`.

The script is run to find its kernel calls; no kernel is computed. `--on-save` waits until it is saved.
"""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--on-save", action="store_true", help="look at a file when it is opened and saved, not as it is typed")
    parser.add_argument("--stdio", action="store_true", help="as editors start it; there is no other way")


def run(arguments: argparse.Namespace) -> int:
    try:
        from tilewright.editor import server
    except ImportError as error:
        print(f"tilewright lsp needs pygls: pip install 'tilewright[lsp]' ({error})", file=sys.stderr)
        return 2
    server.make(only_saved=arguments.on_save).start_io()
    return 0
