"""Scripts that ask torch for "cuda". torch is no dependency, so a package with its rules of interception stands for it here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilewright.cli import invocation

PACKAGE = {
    "torch/__init__.py": """
from torch import overrides

class device:
    def __init__(self, name):
        self.type = name.partition(":")[0]

class Tensor:
    def __init__(self, place):
        if place != "cpu":
            raise RuntimeError(f"no {place} here")
        self.place = place

    def cuda(self):
        return overrides.called(Tensor.cuda, (self,), {})

    def to(self, place):
        return overrides.called(Tensor._to, (self, place), {})

    def _to(self, place):
        return Tensor(place)

def _made(size, device="cpu"):
    return Tensor(device)

def randn(size, **named):
    return overrides.called(_made, (size,), named)

class cuda:
    @staticmethod
    def is_available():
        return AVAILABLE

    @staticmethod
    def synchronize():
        raise RuntimeError("no driver")

AVAILABLE = False
""",
    "torch/overrides.py": """
modes = []

class TorchFunctionMode:
    def __enter__(self):
        modes.append(self)

    def __exit__(self, *error):
        modes.remove(self)

def called(function, args, named):
    return modes[-1].__torch_function__(function, (), args, named) if modes else function(*args, **named)
""",
    "script.py": """
import torch
assert torch.randn(2, device="cuda").place == "cpu"
assert torch.randn(2, device=torch.device("cuda:0")).cuda().to("cuda:1").place == "cpu"
assert torch.randn(2).to("cpu").place == "cpu"
torch.cuda.synchronize()
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    real = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    for name in real:  # an installed torch that another test has loaded; it cannot be loaded twice, so it comes back
        del sys.modules[name]
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        del sys.modules[name]
    sys.modules.update(real)


def test_cuda_is_the_simulated_device(folder: Path):
    assert invocation.run_script(str(folder / "script.py"), []) == 0
    import torch  # pyright: ignore

    assert not torch.overrides.modes
    with pytest.raises(RuntimeError, match="no driver"):
        torch.cuda.synchronize()  # as it was


def test_a_torch_that_is_there_already(folder: Path):
    import torch  # pyright: ignore

    assert invocation.run_script(str(folder / "script.py"), []) == 0
    assert not torch.overrides.modes


def test_a_gpu_of_its_own_is_left_alone(folder: Path):
    text = (folder / "torch/__init__.py").read_text()
    (folder / "torch/__init__.py").write_text(text.replace("AVAILABLE = False", "AVAILABLE = True"))
    with pytest.raises(RuntimeError, match="no cuda here"):
        invocation.run_script(str(folder / "script.py"), [])
