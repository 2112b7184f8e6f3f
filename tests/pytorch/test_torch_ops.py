"""Kernels as operators of PyTorch: eager, compiled, exported, differentiated. The folder is collected where torch is installed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilewright.torch
from tilewright import ttl
from tilewright.diagnostics import KernelError


def _stream(names: str, outs: str, body: str) -> str:
    """A kernel that walks over the tiles of equal tensors: inputs ``names``, outputs ``outs``, blocks ``xb`` and ``yo``."""
    inputs, outputs = names.split(), outs.split()
    every = [*inputs, *outputs]
    text = ["@ttl.operation(grid=(1, 1))", f"def kernel({', '.join(every)}):", f"    rows, cols = {inputs[0]}.shape"]
    text += [f"    {each}_dfb = ttl.make_dataflow_buffer_like({each}, shape=(1, 1), block_count=2)" for each in every]
    loops = ["for i in range(rows // 32):", "    for j in range(cols // 32):"]
    held = [f"{each}_dfb.wait() as {each}b" for each in inputs] + [f"{each}_dfb.reserve() as {each}o" for each in outputs]
    compute = [f"        with {', '.join(held)}:", *(f"            {line}" for line in body.splitlines())]
    read: list[str] = []
    for each in inputs:
        read += [f"        with {each}_dfb.reserve() as block:", f"            ttl.copy({each}[i, j], block).wait()"]
    write: list[str] = []
    for each in outputs:
        write += [f"        with {each}_dfb.wait() as block:", f"            ttl.copy(block, {each}[i, j]).wait()"]
    for kind, thread, lines in (("compute", "compute", compute), ("datamovement", "read", read), ("datamovement", "write", write)):
        text += ["", f"    @ttl.{kind}()", f"    def {thread}():", *(f"        {line}" for line in [*loops, *lines])]
    return "\n".join(text) + "\n"


@pytest.fixture
def stream(tmp_path: Any) -> Any:
    import kernel_text

    count = iter(range(100))

    def load(names: str, outs: str, body: str) -> Any:
        folder = tmp_path / f"kernel{next(count)}"
        folder.mkdir()
        return kernel_text.load("from tilewright import ttl\n\n\n" + _stream(names, outs, body), folder)

    return load


def bf16(*shape: int, seed: int = 0, grad: bool = False) -> Any:
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)
    return made.requires_grad_(grad)


SILU = "yo.store(ttl.math.silu(xb))"


def test_functional_operator_returns_what_the_kernel_writes(stream: Any) -> None:
    silu = tilewright.torch.op(stream("x", "y", SILU), name="test::silu")
    x = bf16(64, 96)
    y = silu(x)
    assert y.dtype is torch.bfloat16 and y.shape == x.shape
    torch.testing.assert_close(y.float(), torch.nn.functional.silu(x.float()), rtol=2e-2, atol=2e-2)
    torch.library.opcheck(silu.torch_op, (x,))
    torch.library.opcheck(silu.torch_op, (x.t(),))  # a view with strides is read as what it is


def test_native_and_simulator_agree(stream: Any) -> None:
    kernel = stream("x", "y", SILU)
    x = bf16(32, 64)
    simulated = tilewright.torch.op(kernel, name="test::silu_sim", mode="sim")(x)
    native = tilewright.torch.op(kernel, name="test::silu_native", mode="native")(x)
    assert torch.equal(simulated, native)


def test_two_outputs_and_their_shapes(stream: Any) -> None:
    kernel = stream("x w", "y z", "yo.store(xb + wb)\nzo.store(xb * wb)")
    both = tilewright.torch.op(kernel, outputs={"y": "x", "z": lambda x, w: x.shape}, name="test::both")
    x, w = bf16(32, 64), bf16(32, 64, seed=1)
    y, z = both(x, w)
    torch.testing.assert_close(y, x + w)
    torch.testing.assert_close(z, x * w, rtol=1e-2, atol=1e-2)
    torch.library.opcheck(both.torch_op, (x, w))


def test_in_place_operator_changes_its_argument(stream: Any) -> None:
    double = tilewright.torch.op(stream("x", "y", "yo.store(xb * 2.0)"), in_place="y", name="test::double_into")
    x, y = bf16(32, 32), torch.zeros(32, 32, dtype=torch.bfloat16)
    assert double(x, y) is None
    torch.testing.assert_close(y, x * 2)
    torch.library.opcheck(double.torch_op, (x, torch.zeros_like(x)))


def test_number_is_an_argument_of_the_operator() -> None:
    @ttl.operation(grid=(1, 1))
    def scaled(x: Any, y: Any, factor: float = 2.0) -> None:
        x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

        @ttl.compute()
        def compute() -> None:
            with x_dfb.wait() as xb, y_dfb.reserve() as yb:
                yb.store(xb * factor)

        @ttl.datamovement()
        def read() -> None:
            with x_dfb.reserve() as block:
                ttl.copy(x[0, 0], block).wait()

        @ttl.datamovement()
        def write() -> None:
            with y_dfb.wait() as block:
                ttl.copy(block, y[0, 0]).wait()

    scale = tilewright.torch.op(scaled, outputs="y", name="test::scaled")
    assert scale.schema() == "(Tensor x, float factor=2.0) -> Tensor"
    x = bf16(32, 32)
    torch.testing.assert_close(scale(x, factor=4.0), x * 4)
    torch.testing.assert_close(scale(x), x * 2)
    torch.library.opcheck(scale.torch_op, (x, 4.0))


def block_operators(stream: Any) -> tuple[Any, Any, Any]:
    """SiLU, gated product and residual sum, each with its gradient as a second kernel."""
    silu_back = tilewright.torch.op(
        stream("g x", "d", "s = ttl.math.sigmoid(xb)\ndo.store(gb * (s + xb * s * (1.0 - s)))"), name="test::block_silu_back"
    )
    silu = tilewright.torch.op(stream("x", "y", SILU), name="test::block_silu", backward=silu_back)
    gate_back = tilewright.torch.op(
        stream("g a b", "da db", "dao.store(gb * bb)\ndbo.store(gb * ab)"), outputs=("da", "db"), name="test::block_gate_back"
    )
    gate = tilewright.torch.op(stream("a b", "y", "yo.store(ab * bb)"), name="test::block_gate", backward=gate_back)
    join = tilewright.torch.op(stream("a b", "y", "yo.store(ab + bb)"), name="test::block_join", backward=lambda g, a, b: (g, g))
    return silu, gate, join


class Block(torch.nn.Module):
    """A transformer's block: attention with torch's products, a gated MLP, a residual sum; three operators are given."""

    def __init__(self, silu: Any, gate: Any, join: Any) -> None:
        super().__init__()
        self.silu, self.gate, self.join = silu, gate, join
        generator = torch.Generator().manual_seed(5)
        for name in ("q", "k", "v", "up", "gates", "down"):
            weight = torch.randn(64, 64, generator=generator).to(torch.bfloat16) / 8
            self.register_parameter(name, torch.nn.Parameter(weight))

    def forward(self, x: Any) -> Any:
        scores = torch.softmax((x @ self.q) @ (x @ self.k).t() / 8, dim=-1)
        x = self.join(x, scores @ (x @ self.v))
        return self.join(x, self.gate(self.silu(x @ self.gates), x @ self.up) @ self.down)


def test_transformer_block_under_compile_forward_and_backward(stream: Any) -> None:
    operators = block_operators(stream)
    ours, theirs = Block(*operators), Block(torch.nn.functional.silu, torch.mul, torch.add)
    compiled = torch.compile(ours, fullgraph=True)
    x, y = bf16(64, 64, seed=3, grad=True), bf16(64, 64, seed=3, grad=True)
    got, want = compiled(x), theirs(y)
    torch.testing.assert_close(got.float(), want.float(), rtol=5e-2, atol=5e-2)
    got.float().square().sum().backward()
    want.float().square().sum().backward()
    for mine, other in [(x, y), *zip(ours.parameters(), theirs.parameters(), strict=True)]:
        scale = float(other.grad.float().abs().max())
        assert float((mine.grad.float() - other.grad.float()).abs().max()) < 0.05 * scale
    a, b = bf16(32, 32, grad=True), bf16(32, 32, seed=1, grad=True)
    torch.library.opcheck(operators[0].torch_op, (a,))
    torch.library.opcheck(operators[1].torch_op, (a, b))
    torch.library.opcheck(operators[2].torch_op, (a, b))


def test_exported_graph_holds_the_operator(stream: Any) -> None:
    silu = tilewright.torch.op(stream("x", "y", SILU), name="test::exported_silu")

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return silu(x) + 1

    x = bf16(32, 32)
    exported = torch.export.export(Model(), (x,))
    assert "test.exported_silu" in exported.graph_module.code
    assert torch.equal(exported.module()(x), Model()(x))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"outputs": "nothing"}, "has no parameter 'nothing'"),
        ({"outputs": (), "in_place": ("x",)}, "writes 'y', which the operator calls an input"),
        ({"in_place": ("x", "y")}, "does not write 'x'"),
        ({"in_place": ("y",), "backward": lambda *_: None}, "works in place and has a backward"),
        ({"mode": "quick"}, "mode='quick'"),
        ({"saves": "all"}, "saves='all'"),
    ],
)
def test_wrong_descriptions_are_refused(stream: Any, arguments: dict[str, Any], text: str) -> None:
    number = abs(hash(text)) % 10**8
    with pytest.raises(KernelError, match=text):
        made = tilewright.torch.op(stream("x", "y", SILU), name=f"test::wrong{number}", **arguments)
        made(bf16(32, 32), bf16(32, 32))


def test_gradient_of_the_wrong_number_is_refused(stream: Any) -> None:
    gate = tilewright.torch.op(stream("a b", "y", "yo.store(ab * bb)"), name="test::short", backward=lambda g, a, b: g)
    with pytest.raises(KernelError, match="returned 1 gradients"):
        gate(bf16(32, 32, grad=True), bf16(32, 32)).sum().backward()


def test_a_wrong_tensor_is_told_at_the_line_that_passed_it(stream: Any) -> None:
    """Torch's own frames stand between that line and the kernel."""
    silu = tilewright.torch.op(stream("x", "y", SILU), name="test::silu_of_anything")
    with pytest.raises(KernelError) as found:
        silu(torch.ones(32, 32, dtype=torch.float64))
    (diagnostic,) = found.value.diagnostics
    assert diagnostic.code == "TW106" and diagnostic.span is not None and diagnostic.span.file == __file__
