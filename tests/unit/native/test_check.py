"""``tilewright check`` finds what is planted in tests/check and passes the right kernels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilewright.cli.main import main
from tilewright.native.findings import NativeError
from tilewright.native.kernel_check import options_in_file, parse_buffer, parse_fidelity, parse_words

KERNELS = Path(__file__).resolve().parents[2] / "check"
GOOD = sorted(KERNELS.glob("good_*.cpp"))
BAD = sorted(KERNELS.glob("bad_*.cpp"))


def planted(path: Path) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        match = re.search(r"// BUG: (.+)$", line)
        if match:
            found |= {(code.strip(), number) for code in match[1].split(",")}
    return found


def test_there_are_enough_kernels() -> None:
    assert len(BAD) >= 10
    assert len(GOOD) >= 5


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_right_kernels_pass(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(path)]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_planted_bugs_are_found_on_their_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = planted(path)
    assert expected
    assert main(["check", "--json", str(path)]) == 1
    findings = json.loads(capsys.readouterr().out)
    assert {(finding["code"], finding["line"]) for finding in findings if finding["severity"] == "error"} == expected


def test_a_deadlock_names_every_thread(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(KERNELS / "bad_deadlock.cpp")]) == 1
    text = capsys.readouterr().out
    assert "cb_wait_front on buffer 24 wants 2 pages, has 1" in text
    assert "math at" in text
    assert "pack at" in text


def test_a_kernel_that_does_not_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "broken.cpp"
    kernel.write_text('#include "api/compute/common.h"\nvoid kernel_main() { exp_tile(0); }\n')
    assert main(["check", str(kernel)]) == 1
    assert "exp_tile" in capsys.readouterr().err


def test_options_on_the_command_line_win(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "wait.cpp"
    kernel.write_text(
        '// tilewright check: --cb 0:bf16:2\n#include "api/compute/common.h"\n'
        "void kernel_main() { cb_wait_front(0, 3); cb_pop_front(0, 3); }\n"
    )
    assert main(["check", str(kernel)]) == 1
    assert "beyond-capacity" in capsys.readouterr().out
    assert main(["check", str(kernel), "--cb", "0:bf16:3"]) == 0


def test_unreadable_options_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "empty.cpp"
    kernel.write_text('#include "api/compute/common.h"\nvoid kernel_main() {}\n')
    assert main(["check", str(kernel), "--cb", "0:half:2"]) == 2
    assert "INDEX:DTYPE:PAGES" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "absent.cpp")]) == 2


def test_parsing() -> None:
    assert options_in_file("// tilewright check: --cb 0:bf16:8 --arg 4\n//  tilewright check: --fp32\n") == [
        "--cb",
        "0:bf16:8",
        "--arg",
        "4",
        "--fp32",
    ]
    buffer = parse_buffer("3:bfp8_b:6")
    assert (buffer.index, buffer.dtype, buffer.pages, buffer.bytes_per_page()) == (3, "bfp8_b", 6, 1088)
    assert parse_words(["1,0x10", "-1"]) == (1, 16, 0xFFFFFFFF)
    assert parse_fidelity("hifi2") == "HiFi2"
    with pytest.raises(NativeError):
        parse_words(["one"])
