"""Results on disk: what is a hit, what must not be one, and that nothing here can fail a compilation."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tilewright import cache, cache_key, execution
from tilewright.cli.compile import described
from tilewright.compiler import respelled
from tilewright.diagnostics import KernelError
from tilewright.program import dst_facts

KERNEL = """
import math
from tilewright import ttl
{header}

@ttl.kernel(grid=(1, 1))
def scaled(a, out):
    {body}
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, out_cb.reserve() as o:
            o.store({value})

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as block:
            ttl.copy(a[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()
"""


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tilewright"


def loaded(folder: Path, value: str = "x * 2.0", header: str = "", body: str = "pass") -> ModuleType:
    """A fresh module, as another process would have it: nothing is remembered in memory."""
    path = folder / "kernel_file.py"
    text = KERNEL.format(value=value, header=header, body=body)
    path.write_text(text, encoding="utf-8")
    module = ModuleType("kernel_file")
    module.__dict__["__file__"] = str(path)
    exec(compile(text, str(path), "exec"), module.__dict__)  # not imported: bytecode files know times by the second
    return module


def arrays() -> list[Any]:
    return [np.full((32, 32), 3, np.float32), np.zeros((32, 32), np.float32)]


def compiled(module: ModuleType, **options: Any) -> Any:
    with execution.session(cache=True):
        return module.scaled.compile(*arrays(), **options)


def is_hit(program: Any) -> bool:
    return isinstance(program, cache.StoredProgram)


def entries(disk: Path) -> list[Path]:
    return sorted(disk.glob("*"))


def test_a_second_compilation_comes_from_disk_and_says_the_same(tmp_path: Path, disk: Path) -> None:
    first, second = compiled(loaded(tmp_path)), compiled(loaded(tmp_path))
    assert not is_hit(first) and is_hit(second)
    assert [path.suffix for path in entries(disk)] == [cache.SUFFIX]
    assert second.cpp == first.cpp
    assert described(second) == described(first)
    assert dst_facts(second) == dst_facts(first) != {}
    assert second.semaphores == first.semaphores
    assert [stage.name for stage in second.trace.stages] == [stage.name for stage in first.trace.stages]
    assert second.written_tensors == first.written_tensors == (1,)


def test_the_ir_of_a_hit_is_compiled_when_it_is_asked_for(tmp_path: Path, disk: Path) -> None:
    first, second = compiled(loaded(tmp_path)), compiled(loaded(tmp_path))
    assert "module" not in vars(second)
    values = arrays()
    with execution.session(mode=execution.FAST):
        execution.run(second, values)
    assert (values[1] == 6).all()
    assert second.module is second.module
    assert str(second.module) == str(first.module)
    assert respelled(second, "0.62") == respelled(first, "0.62")


def test_the_ir_of_a_hit_is_that_of_its_program_or_none(tmp_path: Path, disk: Path) -> None:
    compiled(loaded(tmp_path, "x * N", "N = 2.0"))
    module = loaded(tmp_path, "x * N", "N = 2.0")
    found = compiled(module)
    assert is_hit(found)
    module.N = 3.0
    assert "2.0" in found.cpp["compute"] or "0x40000000" in found.cpp["compute"]
    assert "2.000000e+00" in str(found.module)
    # Of another version: the kernel is compiled again, if it still is that kernel.
    unknown = compiled(loaded(tmp_path, "x * N", "N = 2.0"))
    unknown._stored = None
    assert "2.000000e+00" in str(unknown.module)
    changed = loaded(tmp_path, "x * N", "N = 2.0")
    other = compiled(changed)
    other._stored = None
    changed.N = 3.0
    with pytest.raises(KernelError, match="has changed since this program was stored"):
        other.module  # noqa: B018


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"value": "x * 2.0"}, {"value": "x * 3.0"}),
        ({"value": "x * N", "header": "N = 2.0"}, {"value": "x * N", "header": "N = 3.0"}),
        ({"header": ""}, {"header": "# the C++ names lines"}),
    ],
)
def test_a_changed_file_is_another_kernel(tmp_path: Path, disk: Path, before: dict[str, str], after: dict[str, str]) -> None:
    compiled(loaded(tmp_path, **before))
    assert not is_hit(compiled(loaded(tmp_path, **after)))
    assert is_hit(compiled(loaded(tmp_path, **after)))


@pytest.mark.parametrize(
    ("header", "changed", "value"),
    [
        ("N = 2.0", 3.0, "x * N"),
        ("N = [2.0]", [3.0], "x * N[0]"),
        ("N = {'factor': 2.0}", {"factor": 3.0}, "x * N['factor']"),
    ],
)
def test_a_value_set_from_outside_is_part_of_the_key(tmp_path: Path, disk: Path, header: str, changed: Any, value: str) -> None:
    first = compiled(loaded(tmp_path, value, header))
    module = loaded(tmp_path, value, header)
    module.N = changed
    second = compiled(module)
    assert not is_hit(second) and second.cpp != first.cpp


def test_functions_that_are_called_are_part_of_the_key(tmp_path: Path, disk: Path) -> None:
    helper = "N = 2.0\ndef times(block):\n    return block * N\n"
    first = compiled(loaded(tmp_path, "times(x)", helper))
    assert is_hit(compiled(loaded(tmp_path, "times(x)", helper)))
    module = loaded(tmp_path, "times(x)", helper)
    module.N = 3.0  # only the helper reads it
    second = compiled(module)
    assert not is_hit(second) and second.cpp != first.cpp


def test_options_and_tensors_are_part_of_the_key(tmp_path: Path, disk: Path) -> None:
    compiled(loaded(tmp_path))
    assert not is_hit(compiled(loaded(tmp_path), metal="0.62"))
    with execution.session(cache=True):
        larger = [np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)]
        assert not is_hit(loaded(tmp_path).scaled.compile(*larger))
    assert len(entries(disk)) == 3


def test_another_compiler_is_a_miss(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(loaded(tmp_path))
    monkeypatch.setattr(cache_key, "compiler_fingerprint", lambda: "another")
    assert not is_hit(compiled(loaded(tmp_path)))


def test_the_fingerprint_follows_the_files_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    (package / "below" / "__pycache__").mkdir(parents=True)
    (package / "below" / "one.py").write_text("1")
    monkeypatch.setattr(cache_key, "__file__", str(package / "cache_key.py"))
    fingerprint = cache_key.compiler_fingerprint.__wrapped__
    first = fingerprint()
    (package / "below" / "__pycache__" / "one.pyc").write_text("compiled")
    assert fingerprint() == first
    (package / "below" / "one.py").write_text("22")
    assert fingerprint() != first


@pytest.mark.parametrize(
    "choices",
    [
        {"header": "import os", "value": "x * 2.0", "body": "os.getcwd()"},
        {"header": "import random", "value": "x * 2.0", "body": "random.random()"},
        {"value": "x * 2.0", "body": "import os"},
        {"value": "x * 2.0", "body": "open(__file__).close()"},
        {"header": "import time", "value": "x * 2.0", "body": "time.time()"},
        {"header": "import numpy as np", "value": "x * 2.0", "body": "np.random.rand()"},
        {"header": "S = iter((2.0, 3.0))", "value": "x * 2.0", "body": "S"},
        {"header": "import random", "value": "x * 2.0", "body": "S = random.Random"},
    ],
)
def test_what_depends_on_the_outside_is_never_stored(tmp_path: Path, disk: Path, choices: dict[str, str]) -> None:
    for _ in range(2):
        assert not is_hit(compiled(loaded(tmp_path, **choices)))
    assert entries(disk) == []


def test_known_libraries_do_not_prevent_storing(tmp_path: Path, disk: Path) -> None:
    choices = {"header": "import numpy as np", "value": "x * math.pi", "body": "np.float32; math.sqrt(2)"}
    compiled(loaded(tmp_path, **choices))
    assert is_hit(compiled(loaded(tmp_path, **choices)))


def test_ordinary_calls_leave_the_disk_alone(tmp_path: Path, disk: Path) -> None:
    loaded(tmp_path).scaled(*arrays())
    loaded(tmp_path).scaled.compile(*arrays())
    with execution.session(mode=execution.COMPILE, cache=False):
        loaded(tmp_path).scaled(*arrays())
    with execution.session(mode=execution.COMPILE, keep_ir=True):
        loaded(tmp_path).scaled(*arrays())
    assert not disk.exists()


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 500, None])
def test_a_damaged_entry_is_a_miss_and_is_replaced(tmp_path: Path, disk: Path, damage: bytes | None) -> None:
    first = compiled(loaded(tmp_path))
    (entry,) = entries(disk)
    entry.write_bytes(entry.read_bytes()[:-1] if damage is None else damage)
    again = compiled(loaded(tmp_path))
    assert not is_hit(again) and again.cpp == first.cpp
    assert is_hit(compiled(loaded(tmp_path)))


def test_an_entry_makes_only_the_classes_of_a_result(tmp_path: Path, disk: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    payload = pickle.dumps({"name": Evil()})
    disk.mkdir(parents=True)
    (disk / f"k{cache.SUFFIX}").write_bytes(hashlib.sha256(payload).digest() + payload)
    assert cache.load("k", lambda: pytest.fail("not needed")) is None
    assert not (tmp_path / "made").exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert compiled(loaded(tmp_path)).cpp
    assert not is_hit(compiled(loaded(tmp_path)))


def test_old_entries_go_when_there_are_too_many(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_ENTRIES", 4)
    program = compiled(loaded(tmp_path))
    for entry in entries(disk):
        entry.unlink()
    for number in range(5):
        assert cache.save(f"key{number}", program)
        os.utime(disk / f"key{number}{cache.SUFFIX}", (number, number))
        if number == 2:
            assert cache.load("key0", lambda: program) is not None  # used: now the newest
    assert {path.stem for path in entries(disk)} == {"key0", "key4"}


def test_a_hit_on_the_command_line_does_not_load_the_compiler(tmp_path: Path, disk: Path) -> None:
    script = tmp_path / "script.py"
    call = "import numpy as np\nscaled(np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32))\n"
    script.write_text(KERNEL.format(value="x * 2.0", header="", body="pass") + call, encoding="utf-8")
    command = "import sys; from tilewright.cli.main import main; code = main(sys.argv[1:]); "
    command += "print('xdsl' in sys.modules, file=sys.stderr); sys.exit(code)"
    runs = [
        subprocess.run(
            [sys.executable, "-c", command, "compile", *flags, str(script)], capture_output=True, text=True, check=True
        )
        for flags in ([], [], ["--no-cache"])
    ]
    assert [run.stderr.strip() for run in runs] == ["True", "False", "True"]
    assert runs[0].stdout == runs[1].stdout == runs[2].stdout != ""
