"""The command line as such: help, unknown commands, options."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from tilewright.cli import invocation, main
from tilewright.options import Options


def test_without_arguments_it_says_what_it_can_do(capsys: pytest.CaptureFixture[str]):
    assert main.main([]) == 2
    text = capsys.readouterr().out
    for command in ("run", "compile", "explain", "opt", "doctor"):
        assert f"\n  {command}" in text
    assert main.main(["--help"]) == 0


def test_an_unknown_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]):
    assert main.main(["complie"]) == 2
    assert "did you mean 'compile'?" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]):
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tilewright ")


@pytest.mark.parametrize("command", ["run", "compile", "explain", "opt", "doctor"])
def test_every_command_has_help_with_its_purpose(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main.main([command, "--help"])
    assert stop.value.code == 0
    assert f"usage: tilewright {command}" in capsys.readouterr().out


def parsed(*words: str) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    invocation.add_option_flags(parser)
    return invocation.given_options(parser.parse_args(words))


def test_every_option_is_a_flag():
    parser = argparse.ArgumentParser()
    invocation.add_option_flags(parser)
    flags = {action.dest for action in parser._actions}
    assert set(Options.names()) <= flags
    assert set(invocation.HELP) == set(Options.names())


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["kernel.py"], set[str]()),
        (["--metal=0.62", "kernel.py", "--no-fpu-binary-ops"], {"metal", "fpu_binary_ops"}),
        (["kernel.py", "--help"], set(Options.names())),
    ],
)
def test_flags_are_made_where_they_are_named(words: list[str], made: set[str]):
    parser = main.CommandLine(words)
    invocation.add_option_flags(parser)
    assert {action.dest for action in parser._actions} - {"help"} == made


def test_only_what_was_given_overrides():
    assert parsed() == {}
    assert parsed("--allocator", "linear-scan", "--no-fpu-binary-ops", "--dst-capacity", "4") == {
        "allocator": "linear-scan",
        "fpu_binary_ops": False,
        "dst_capacity": 4,
    }


def test_grids():
    assert parsed("--grid", "8x4") == {"grid": (8, 4)}
    assert parsed("--grid", "full") == {"grid": "full"}
    with pytest.raises(SystemExit):
        parsed("--grid", "eight")


@pytest.mark.parametrize("words", [("--metal", "abc"), ("--metal", "0.5"), ("--dst-capacity", "0"), ("--arch", "grayskull")])
def test_values_that_mean_nothing_are_refused(words: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        parsed(*words)
    assert words[1] in capsys.readouterr().err


def test_releases():
    assert parsed("--metal", "0.81.1") == {"metal": "0.81.1"}


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from tilewright.cli import main; main.main(['--help']);"
        "heavy = {'xdsl', 'numpy', 'torch'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
