"""Runs `tilewright opt` on every .mlir beside this file, as its RUN line says, and matches the output against its CHECK lines."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from tilewright import pipeline
from tilewright.cli.main import main

FILES = sorted(Path(__file__).parent.glob("*.mlir"))
RUN = "// RUN: tilewright "


def commands(path: Path) -> list[str]:
    return [line.removeprefix(RUN) for line in path.read_text().splitlines() if line.startswith(RUN)]


def output_of(command: str, path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    words = shlex.split(command.partition(" | ")[0].replace("%s", str(path)))
    capsys.readouterr()
    code = main(words)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def matches(path: Path, text: str, prefix: str) -> bool:
    options = Options(match_filename=str(path), check_prefixes=[prefix])
    checks = Parser(options, io.StringIO(path.read_text()), *pattern_for_opts(options))
    return Matcher(options, FInput("<output>", text), checks).run() == 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_filecheck(path, capsys):
    found = commands(path)
    assert found, f"{path.name} has no RUN line"
    for command in found:
        prefix = command.partition("--check-prefix ")[2].strip() or "CHECK"
        assert f"{prefix}:" in path.read_text(), f"{path.name} checks nothing for {command}"
        text = output_of(command, path, capsys)
        matched = matches(path, text, prefix)
        assert matched, f"{capsys.readouterr().err}\n{text}"


def test_a_wrong_check_is_noticed(tmp_path, capsys):
    path = tmp_path / "wrong.mlir"
    path.write_text("// CHECK: ttl.tile_sub\n")
    assert not matches(path, "%0 = ttl.tile_add %a, %b\n", "CHECK")
    capsys.readouterr()


def test_every_pass_has_a_file():
    named = {path.stem for path in FILES}
    assert not {stage.name for stage in pipeline.PASSES} - named
