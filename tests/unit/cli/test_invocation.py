"""Which failure looks how."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

from tilewright.cli import invocation
from tilewright.cli.main import main
from tilewright.diagnostics import fail


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("command", ["run", "compile", "explain"])
def test_an_error_of_the_script_is_a_diagnostic_of_its_line(command: str, script, capsys: pytest.CaptureFixture[str]):
    assert main([command, script("def f():\n    return 1 / 0\nf()\n")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error[TW605]: the script failed with ZeroDivisionError: division by zero\n")
    assert "script.py:2:5" in error and "called here" in error and "script.py:3:1" in error
    assert "runpy" not in error and "Traceback" not in error


def test_an_error_of_the_script_as_json_and_with_its_traceback(script, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--json", script("import no_such_package_here\n")]) == 1
    (found,) = json.loads(capsys.readouterr().err)
    assert found["code"] == "TW605" and "no_such_package_here" in found["message"] and found["span"]["line"] == 1
    assert main(["run", "--verbose", script("assert 1 > 2, 'too small'\n")]) == 1
    error = capsys.readouterr().err
    assert "AssertionError: too small" in error and "Traceback" in error


def test_a_syntax_error_shows_the_scripts_line_only(script, capsys: pytest.CaptureFixture[str]):
    assert main(["run", script("x = 1\ndef f(:\n    pass\n")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error[TW605]: the script failed with SyntaxError: ")
    assert "script.py:2:7" in error and "runpy" not in error


def test_exit_codes_pass_through(script, capsys: pytest.CaptureFixture[str]):
    assert main(["run", script("import sys\nsys.exit(7)\n")]) == 7
    assert main(["run", script("import sys\nsys.exit()\n")]) == 0
    assert main(["run", script("import sys\nsys.exit('gone')\n")]) == 1
    assert "gone" in capsys.readouterr().err


def test_arguments_reach_the_script(script, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--fast", script("import sys\nprint(sys.argv[1:])\n"), "--size", "3", "--fast"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "['--size', '3', '--fast']\n"
    assert "--fast stands after the script" in captured.err


def test_the_folder_of_the_script_is_importable(tmp_path: Path, script, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "neighbour_of_script.py").write_text("NUMBER = 41\n", encoding="utf-8")
    assert main(["run", script("import neighbour_of_script as n\nprint(n.NUMBER + 1)\n")]) == 0
    assert capsys.readouterr().out == "42\n"


@pytest.mark.parametrize("command", ["run", "compile", "explain"])
def test_a_missing_file_is_said_plainly(command: str, capsys: pytest.CaptureFixture[str]):
    assert main([command, "no_such_script.py"]) == 2
    assert capsys.readouterr().err == f"tilewright {command}: no such file: no_such_script.py\n"


def test_missing_torch_is_a_diagnostic_with_a_hint(script, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of None fails as a missing package does
    assert main(["run", script("import ttl\nimport torch\n")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error[TW601]: the script imports torch, which is not installed")
    assert "script.py:2" in error and "pip install torch" in error
    assert "Traceback" not in error


def test_diagnostics_as_json(capsys: pytest.CaptureFixture[str]):
    assert invocation.report(fail("TW401", "too much", help="less"), as_json=True) == 1
    (found,) = json.loads(capsys.readouterr().err)
    assert (found["code"], found["message"], found["help"]) == ("TW401", "too much", "less")


def broken_pass(tmp_path: Path) -> Exception:
    """An error raised from a file that looks like one of our passes."""
    file = Path(invocation.PACKAGE) / "passes" / "ttl_lower_to_loops.py"
    code = compile("def run():\n    assert False, 'tiles went missing'\nrun()\n", str(file), "exec")
    try:
        exec(code, {})
    except AssertionError as error:
        return error
    raise RuntimeError("unreachable")


def test_our_own_defects_name_the_pass_and_show_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    error = broken_pass(tmp_path)
    assert invocation.report(error) == 1
    text = capsys.readouterr().err
    assert text.startswith("internal error in ttl-lower-to-loops: AssertionError: tiles went missing\n")
    assert "report it" in text and "Traceback" not in text
    assert invocation.report(error, verbose=True) == 1
    assert "Traceback" in capsys.readouterr().err


def test_our_own_defects_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    invocation.report(broken_pass(tmp_path), as_json=True)
    found = json.loads(capsys.readouterr().err)
    assert (found["internal_error"], found["where"]) == ("AssertionError", "ttl-lower-to-loops")


def test_interrupting_is_not_an_error_message(capsys: pytest.CaptureFixture[str]):
    assert invocation.report(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "tilewright: interrupted\n"
