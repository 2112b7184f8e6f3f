"""``runner.py`` launches what the launcher launches, with ttnn alone."""

from __future__ import annotations

import ast

import pytest

from tilewright.cli.compile import write_all
from tilewright.program import TensorSpec
from tilewright.runtime import launch, runner

PLAIN = "ttl.math.exp(a) * b"
KERNELS = {
    "one core": ("bf16", {}, PLAIN),
    "grid": ("bf16", {"blocks": (4, 4), "grid": (2, 2)}, PLAIN),
    "f32": ("f32", {"blocks": (2, 2)}, PLAIN),
    "two indices over one allocation": ("f32", {}, "a @ b"),
}


@pytest.fixture(params=list(KERNELS), ids=list(KERNELS))
def program(request, kernels):
    dtype, layout, expression = KERNELS[request.param]
    source = kernels.text.elementwise({"x": expression, "y": "a - b"}, **layout)
    rows, columns = layout.get("blocks", (1, 1))
    shape = (32 * rows, 32 * columns)
    return kernels.compile(source, *(TensorSpec(name=name, shape=shape, dtype=dtype) for name in ("a", "b", "x", "y")), metal="0.81")


def test_same_descriptor(ttnn, make_tensor, make_device, program, tmp_path):
    written = write_all([program], tmp_path, runner=True)
    path = written["kernel/runner"]
    scope = {"__file__": str(path), "__name__": "runner"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    device = make_device()
    tensors = [make_tensor(device, 4096 * place, words=(place, 2048)) for place in range(4)]
    assert scope["describe"](tensors, {}, device) == launch.describe(program, tensors, device=device)
    scope["run"](*tensors)
    launch.run(program, tensors)
    assert ttnn.launched[0] == ttnn.launched[1]


def test_needs_no_tilewright(program):
    tree = ast.parse(runner.script(program))
    plain = {node.names[0].name for node in ast.walk(tree) if isinstance(node, ast.Import)}
    parts = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert plain == {"ctypes", "importlib", "os", "sys", "numpy"} and parts == {"__future__", "collections.abc", "importlib", "pathlib", "typing"}
    assert "tilewright" not in runner.script(program)


def test_run_time_numbers_are_data(ttnn, make_device, program):
    """Whatever a core is told follows from tables in the script; addresses, numbers and NoC places are looked up."""
    for kernel, thread in zip(runner.facts(program)["kernels"], program.threads, strict=True):
        assert len(kernel["runtime"]) == len(thread.runtime_args)
        for kind, value in kernel["runtime"]:
            assert kind in ("address", "each", "noc_x", "noc_y", "number")
            assert kind != "each" or len(value) == len(runner.facts(program)["cores"])


def test_it_says_which_releases_its_files_are_for(kernels, monkeypatch, ttnn):
    specs = [TensorSpec(name=name, shape=(32, 32), dtype="bf16") for name in ("a", "b", "y")]
    plain = kernels.compile(kernels.text.elementwise({"y": "ttl.math.exp(a) * b"}), *specs)
    assert runner.releases(plain) == ((0, 78), None)
    changed = kernels.compile(kernels.text.elementwise({"y": "ttl.math.recip(a) * b"}), *specs)  # 0.79 spells recip otherwise
    assert runner.releases(changed) == ((0, 78), (0, 78))
    assert "through ttnn 0.78 to 0.78" in runner.script(changed)
    scope = {"__file__": "runner.py", "__name__": "runner"}
    exec(compile(runner.script(changed), "runner.py", "exec"), scope)
    for version, fits in (("0.78.0", True), ("0.81.1", False), ("0.77.0", False)):
        monkeypatch.setattr("importlib.metadata.version", lambda _name, version=version: version)
        if fits:
            scope["check_release"]()
        else:
            with pytest.raises(RuntimeError, match="compile them with --metal 0"):
                scope["check_release"]()
