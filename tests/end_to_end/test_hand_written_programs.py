"""Hand-written C++, whole programs and parts: checked, and put on the clock."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tilewright import execution
from tilewright.cli import invocation
from tilewright.cli.main import main
from tilewright.native import driver
from tilewright.native.driver import RecordedCall
from tilewright.native.findings import NativeError
from tilewright.native.kernel_check import parse_grid, parse_tensor
from tilewright.native.program import BufferSpec, KernelSource, NativeProgram
from tilewright.timing import recorded, timeline

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "check" / "program"
GOOD = ROOT / "tests" / "check" / "good_exp_of_product.cpp"
CHIPS = ("wormhole_b0", "blackhole")


def run_example(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, Any]]:
    """The example's calls, run natively and listed: (native program, its result, compiled program)."""
    native: list[tuple[Any, Any]] = []
    finished: list[execution.Execution] = []
    real = driver.run_native

    def listed(program: NativeProgram, *, seconds: int = 120) -> Any:
        result = real(replace(program, record=True), seconds=seconds)
        native.append((program, result))
        return result

    monkeypatch.setattr(driver, "run_native", listed)
    settings = {"mode": execution.NATIVE, "overrides": {"arch": arch}, "listeners": (finished.append,)}
    with contextlib.redirect_stdout(io.StringIO()), execution.session(**settings):
        invocation.run_script(str(ROOT / "examples" / name), [])
    return [(program, result, done.program) for (program, result), done in zip(native, finished, strict=True)]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", ["16_older_names.py", "04_two_outputs.py", "06_multicast.py", "07_ring.py", "10_matmul.py", "12_row_major.py"])
def test_the_calls_of_emitted_kernels_take_as_long_as_their_ir(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C++ text, run and listed, and the IR it came from are one program: the clocks must agree."""
    ran = run_example(name, arch, monkeypatch)
    assert ran
    for native, result, program in ran:
        from_calls = recorded.run(native, result.calls, program.name)
        from_ir = timeline.run(program, whole=True)
        assert from_calls.deadlock is None and not from_calls.estimated
        assert from_calls.cycles == pytest.approx(from_ir.cycles, rel=1e-3)


def profile(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["profile", "--json", *words]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    return told


@pytest.mark.parametrize("arch", CHIPS)
def test_a_whole_program_has_a_time(arch: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = profile(capsys, str(PROGRAM / "compute.cpp"), "--arch", arch)
    assert told["chip"] == arch and told["grid"] == [1, 1] and told["kernel"] == "compute"
    assert set(told["engines"]) == {"reader", "unpack", "math", "pack", "writer"}
    assert told["bound"] == "math" and not told["notes"]
    assert {Path(line["file"]).name for line in told["lines"]} == {"reader.cpp", "compute.cpp", "function.h", "writer.cpp"}
    more = profile(capsys, str(PROGRAM / "compute.cpp"), "--arch", arch, "--cores", "2x2", "--no-advice")
    assert more["cycles"] < told["cycles"] and more["grid"] == [2, 2] and not more["advice"]


def test_roles_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--reader", str(PROGRAM / "reader.cpp"), "--compute", str(PROGRAM / "compute.cpp"), "--writer", str(PROGRAM / "writer.cpp")]
    whole = profile(capsys, *files)
    less = profile(capsys, *files, "--arg", "compute:2", "--arg", "reader:a,b,first=0,count=2", "--arg", "writer:out,0,2")
    assert less["cycles"] < whole["cycles"]
    assert main(["check", *files]) == 0


def test_a_lone_kernel_says_what_its_time_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    told = profile(capsys, str(GOOD))
    assert sum("filled by no kernel" in note for note in told["notes"]) == 2
    assert {name for name, engine in told["engines"].items() if engine["busy"]} == {"unpack", "math", "pack"}
    assert told["advice"] and all(gain["cycles"] < told["cycles"] for gain in told["advice"])


def test_deeper_buffers_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    told = profile(capsys, str(PROGRAM / "compute.cpp"), "-D", "FUNCTION=(void)", "--cb", "0:bf16:1", "--cb", "1:bf16:1", "--cb", "16:bf16:1")
    assert any("c_0: 2 pages" in gain["change"] or "c_1: 2 pages" in gain["change"] for gain in told["advice"])


def test_files_for_other_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(PROGRAM / "compute.cpp"), "-o", str(tmp_path)]) == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any("mul_tiles" in event["name"] for event in events)
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    assert (tmp_path / "profile.csv").read_text().startswith("ARCH: wormhole_b0")


def test_a_hang_has_a_time_and_a_culprit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(ROOT / "tests" / "check" / "bad_deadlock.cpp")]) == 1
    told = capsys.readouterr()
    assert "does not end" in told.out
    assert "waits for 2 tiles of c_24, which holds 1" in told.err


def test_a_wrong_kernel_has_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(ROOT / "tests" / "check" / "bad_missing_init.cpp")]) == 1
    assert "missing-init" in capsys.readouterr().err


def test_a_call_nobody_counted_gets_a_named_estimate() -> None:
    native = NativeProgram(kernels=[KernelSource(role="compute")], buffers=[BufferSpec(index=0, dtype="bf16", pages=1)])
    calls = [RecordedCall("mystery_tile_init", (0, 15), "k.cpp", 1), RecordedCall("mystery_tile", (0, 15, 0), "k.cpp", 2)]
    found = recorded.run(native, {((0, 0), "math"): calls}, "k")
    assert set(found.estimated) == {"mystery_tile", "mystery_tile_init"} and found.cycles > 100


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def check(text: str, *words: str, name: str = "kernel.cpp") -> tuple[int, str]:
        (tmp_path / name).write_text(text)
        code = main(["check", str(tmp_path / name), *words])
        told = capsys.readouterr()
        return code, told.out + told.err

    return check


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('#include "sfpi.h"\nvoid kernel_main() {}', "LLK"),
        ('#include "api/compute/common.h"\nvoid kernel_main() { sfpi::vFloat v = sfpi::dst_reg[0]; }', "lanes of the vector unit"),
        ("void kernel_main() { TTI_SFPNOP(0); }", "instructions of the Tensix"),
        ('#include "custom.h"\nvoid kernel_main() { twice(); }', "custom.h:2"),
        ("TT_KERNEL void add(uint32_t n) {}", "TT_KERNEL"),
    ],
)
def test_what_lies_below_the_api_is_refused_with_the_reason(
    body: str, says: str, checked: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / "custom.h").write_text('#pragma once\n#include "ckernel_sfpu_exp.h"\ninline void twice() {}\n')
    code, text = checked(body)
    assert code == 2 and says in text and "models calls of the kernel API" in text


def test_a_changed_header_is_compiled_again(checked: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    kernel = '#include "api/compute/common.h"\n#include "pages.h"\nvoid kernel_main() { cb_wait_front(0, kPages); cb_pop_front(0, kPages); }\n'
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "pages.h").write_text("constexpr int kPages = 2;\n")
    assert checked(kernel, "--cb", "0:bf16:2", "-I", str(tmp_path / "headers"))[0] == 0
    (tmp_path / "headers" / "pages.h").write_text("constexpr int kPages = 3;\n")
    code, text = checked(kernel, "--cb", "0:bf16:2", "-I", str(tmp_path / "headers"))
    assert code == 1 and "beyond-capacity" in text


OBJECTS = """
// tilewright check: --cores 2x1 --semaphore 0,0 --cb 0:bf16:2 --cb 1:bf16:2 --tensor a:bf16:4 --ct-arg a --arg a
#include "api/dataflow/circular_buffer.h"
#include "api/dataflow/endpoints.h"
#include "api/dataflow/noc.h"
#include "api/dataflow/noc_semaphore.h"
#include "api/tensor/noc_traits.h"
void kernel_main() {
    constexpr auto args = TensorAccessorArgs<0>();
    const auto a = TensorAccessor(args, get_arg_val<uint32_t>(0));
    CircularBuffer cb(0);
    Noc noc;
    Semaphore ready(0), sent(1);
    if (get_absolute_logical_x() == 0) {
        cb.reserve_back(1);
        noc.async_read(a, cb, cb.get_tile_size(), {.page_id = 1}, {});
        noc.async_read_barrier();
        ready.wait(1);
        ready.set(0);
        const uint32_t target = get_write_ptr(0);
        noc.async_write(use<CircularBuffer::AddrSelector::WRITE_PTR>(cb), UnicastEndpoint{}, cb.get_tile_size(), {},
                        {.noc_x = 1, .noc_y = 0, .addr = target});
        noc.async_write_barrier();
        sent.up(noc, 1, 0, 1);
        noc.async_atomic_barrier();
        cb.push_back(1);
    } else {
        cb.reserve_back(1);
        ready.up(noc, 0, 0, 1);
        noc.async_atomic_barrier();
        sent.wait_min(1);
        cb.push_back(1);
    }
}
"""


def test_objects_of_the_newest_api(checked: Callable[..., tuple[int, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = checked(OBJECTS)
    assert (code, text.splitlines()[-1].split(": ")[1]) == (0, "0 errors, 0 warnings")
    told = profile(capsys, str(tmp_path / "kernel.cpp"))
    assert told["grid"] == [2, 1] and told["engines"]["reader"]["busy"] > 0
    code, text = checked(OBJECTS.replace("        noc.async_write_barrier();\n", ""))
    assert code == 1 and "missing-barrier" in text
    code, text = checked(OBJECTS.replace("sent.up(noc, 1, 0, 1);", ""))
    assert code == 1 and "deadlock" in text


def test_kernels_of_a_program_that_wait_for_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("reader.cpp", "compute.cpp", "writer.cpp", "function.h"):
        (tmp_path / name).write_text((PROGRAM / name).read_text())
    (tmp_path / "writer.cpp").write_text((PROGRAM / "writer.cpp").read_text().replace("8//cores", "9//cores"))
    assert main(["check", str(tmp_path / "compute.cpp")]) == 1
    assert "deadlock" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["a:half:4", "a:bf16", "a:bf16:33x32", "1:bf16:4", "a:bf16:4:l2"])
def test_tensors_that_cannot_be(text: str) -> None:
    with pytest.raises(NativeError):
        parse_tensor(text)
    assert parse_tensor("a:bf16:64x64").pages == 4 and parse_grid("3x2") == (3, 2)


def test_commands_without_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert main(["profile"]) == 2
    assert main(["check", str(GOOD), "--arg", "x*nothing"]) == 2
    assert "names known here: cores" in capsys.readouterr().err
