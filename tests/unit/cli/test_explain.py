from __future__ import annotations

import json

import pytest

from tilewright.cli.main import main
from tilewright.error_codes import codes


def test_a_code_gets_its_page(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "tw401"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("TW401: does not fit the DST register file\n")
    assert "4 to 16 tiles" in text


def test_a_code_as_json(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "--json", "TW401"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == codes()["TW401"].title


def test_an_unknown_code(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "TW999"]) == 2
    assert "no error has the code TW999" in capsys.readouterr().err


def test_the_list_has_every_code(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == sorted(codes())


def test_without_a_subject(capsys: pytest.CaptureFixture[str]):
    assert main(["explain"]) == 2
    assert "give a script or an error code" in capsys.readouterr().err
