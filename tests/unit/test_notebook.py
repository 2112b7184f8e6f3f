"""Cells of a notebook: kernels, programs and profiles draw themselves, mistakes end at the user's line, cells are redefined."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

KERNEL = '''
import numpy as np
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_dfb.wait() as x, y_dfb.reserve() as out:
            out.store({body})

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as block:
            ttl.copy(a[0:1, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0:1, 0:1]).wait()

a, y = np.full((32, 32), 2.0, np.float32), np.zeros((32, 32), np.float32)
'''


@pytest.fixture
def shell() -> Generator[InteractiveShell, None, None]:
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    yield made
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, text: str) -> Any:
    result = shell.run_cell(text)
    assert result.error_in_exec is None, result.error_in_exec
    return result.result


def html(shell: InteractiveShell, text: str) -> str:
    data, _ = shell.display_formatter.format(run(shell, text))  # pyright: ignore
    return data["text/html"]


def test_a_cell_that_is_run_again_is_compiled_again(shell: InteractiveShell):
    run(shell, KERNEL.format(body="x + x") + "kernel(a, y)")
    assert shell.user_ns["y"][0, 0] == 4
    run(shell, KERNEL.format(body="x * x * x") + "kernel(a, y)")
    assert shell.user_ns["y"][0, 0] == 8
    run(shell, "kernel(a, y)")
    assert shell.user_ns["y"][0, 0] == 8


@pytest.mark.parametrize("first", ["", "import asyncio\nawait asyncio.sleep(0)\n", "%precision 4\n!true\n"], ids=["plain", "awaits", "magic"])
def test_a_kernel_of_a_cell_is_compiled_once(first: str, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch):
    from tilewright.jit.kernel import Kernel

    compiled: list[str] = []
    compile_now = Kernel._compiled  # pyright: ignore[reportPrivateUsage]

    def counted(self: Kernel, *args: Any) -> Any:
        compiled.append(self.name)
        return compile_now(self, *args)

    monkeypatch.setattr(Kernel, "_compiled", counted)
    run(shell, first + KERNEL.format(body="x + x"))
    for _ in range(3):
        run(shell, "kernel(a, y)")
    assert shell.user_ns["y"][0, 0] == 4 and compiled == ["kernel"]
    run(shell, first + KERNEL.format(body="x * x * x"))
    for _ in range(3):
        run(shell, "kernel(a, y)")
    assert shell.user_ns["y"][0, 0] == 8 and compiled == ["kernel", "kernel"]


def test_a_timed_cell_says_what_to_do(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    shell.run_cell("%%time\n" + KERNEL.format(body="x + x") + "kernel(a, y)")
    assert "define the kernel in a cell of its own" in capsys.readouterr().out


def test_names_in_other_cells_are_seen_anew(shell: InteractiveShell):
    run(shell, "FACTOR = 3.0")
    run(shell, KERNEL.format(body="x * FACTOR") + "kernel(a, y)")
    assert shell.user_ns["y"][0, 0] == 6
    run(shell, "FACTOR = 5.0\nkernel(a, y)")
    assert shell.user_ns["y"][0, 0] == 10


def test_objects_draw_themselves(shell: InteractiveShell):
    run(shell, KERNEL.format(body="ttl.math.exp(x)"))
    assert "not compiled yet" in html(shell, "kernel")
    program = html(shell, "kernel.compile(a, y)")
    assert "a_dfb" in program and "exp_tile" in program and "<script" not in program and "http" not in program
    assert "exp_tile" in html(shell, "kernel")
    profile = html(shell, "kernel.profile(a, y)")
    assert "bound by" in profile and "out.store(ttl.math.exp(x))" in profile and "<script" not in profile
    assert max(map(len, (program, profile))) < 60_000


def test_a_mistake_ends_at_the_users_line(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    result = shell.run_cell(KERNEL.format(body="x.nothing(3)") + "kernel(a, y)")
    assert type(result.error_in_exec).__name__ == "KernelError"
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "error[TW003]" in text and "out.store(x.nothing(3))" in text
    assert "--> Cell In[" in text, "the cell has its name of the notebook"
    assert "kernel.py" not in text and "build.py" not in text, "no frame of ours"
    assert text.rstrip().splitlines()[-1].lstrip().startswith("= help:")
