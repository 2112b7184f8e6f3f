"""Functions of TVM as TileLang source, on stand-ins for its nodes: they are told apart by the names of their classes only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright import tilelang
from tilewright.diagnostics import KernelError
from tilewright.frontend.tilelang.prim_func_text import text_of


def node(class_name: str, /, **fields: Any) -> Any:
    made = type(class_name, (), {})()
    made.__dict__.update({"dtype": "float32", **fields})
    return made


def number(value: int) -> Any:
    return node("IntImm", value=value, dtype="int32")


def real(value: float) -> Any:
    return node("FloatImm", value=value)


def variable(name: str) -> Any:
    return node("Var", name=name, dtype="int32")


def two(kind: str, a: Any, b: Any, dtype: str = "float32") -> Any:
    return node(kind, a=a, b=b, dtype=dtype)


def buffer(name: str, *shape: Any, scope: str = "global", dtype: str = "float32") -> Any:
    sizes = [number(size) if isinstance(size, int) else size for size in shape]
    return node("Buffer", name=name, shape=sizes, dtype=dtype, scope=lambda: scope)


def load(holder: Any, *indices: Any) -> Any:
    return node("BufferLoad", buffer=holder, indices=list(indices), dtype=holder.dtype)


def call(name: str, *args: Any, dtype: str = "float32") -> Any:
    return node("Call", op=SimpleNamespace(name=name), args=list(args), dtype=dtype)


def region(holder: Any, starts: list[Any], extents: list[int]) -> Any:
    return call("tl.region", load(holder, *starts), number(1), *(number(extent) for extent in extents))


def do(name: str, *args: Any) -> Any:
    return node("Evaluate", value=call(name, *args))


def loop(var: Any, extent: Any, body: Any, *, kind: int = 0, tag: str = "", **annotations: Any) -> Any:
    binding = SimpleNamespace(thread_tag=tag) if tag else None
    return node(
        "For", loop_var=var, min=number(0), extent=extent, kind=kind, thread_binding=binding, annotations=annotations, body=body
    )


def block(buffers: list[Any], *body: Any) -> Any:
    inner = node("SBlock", alloc_buffers=buffers, init=None, body=node("SeqStmt", seq=list(body)))
    return node("SBlockRealize", block=inner)


def function(parameters: list[Any], body: Any) -> Any:
    handles = [variable(f"{each.name}_handle") for each in parameters]
    maps = dict(zip(handles, parameters, strict=True))
    return node("PrimFunc", params=handles, buffer_map=maps, body=body, attrs={"global_symbol": "main"})


def scaled(statement: Any, rows: Any = 64) -> Any:
    """``C = A * 2 + exp(A)`` by blocks of 32 rows, with one more statement in it."""
    a, c = buffer("A", rows, 32), buffer("C", rows, 32)
    x = buffer("x", 32, 32, scope="shared.dyn")
    bx, i, j, tx = variable("bx"), variable("i"), variable("j"), variable("tx")
    start = two("Mul", bx, number(32), "int32")
    value = two("Add", two("Mul", load(x, i, j), real(2.0)), call("tirx.exp", load(x, i, j)))
    store = node("BufferStore", buffer=x, indices=[i, j], value=value)
    element = loop(i, number(32), loop(j, number(32), store, kind=1), kind=1)
    body = block(
        [x],
        node("Bind", var=tx, value=call("tl.launch_thread_idx", number(0))),
        do("tl.tileop.copy", region(a, [start, number(0)], [32, 32]), region(x, [number(0), number(0)], [32, 32])),
        *([statement(x, bx, tx)] if statement else []),
        element,
        do("tl.tileop.copy", region(x, [number(0), number(0)], [32, 32]), region(c, [start, number(0)], [32, 32])),
    )
    extent = two("FloorDiv", rows, number(32), "int32") if not isinstance(rows, int) else number(rows // 32)
    return function([a, c], loop(bx, extent, body, tag="blockIdx.x"))


def run(prim_func: Any, rows: int = 64) -> Any:
    a = np.random.default_rng(0).uniform(-1, 1, (rows, 32)).astype(np.float32)
    c = np.zeros_like(a)
    tilelang.compile(prim_func)(a, c)
    return a, c


def test_text_is_the_kernel():
    text = text_of(scaled(None)).text
    assert text == (
        "@T.prim_func\n"
        'def main(A: T.Tensor((64, 32, ), "float32"), C: T.Tensor((64, 32, ), "float32")):\n'
        "    with T.Kernel(2) as bx:\n"
        '        x = T.alloc_shared((32, 32, ), "float32")\n'
        "        T.copy(A[(bx * 32) : (bx * 32) + 32, 0 : 32], x)\n"
        "        for i, j in T.Parallel(32, 32):\n"
        "            x[i, j] = ((x[i, j] * 2.0) + T.exp(x[i, j]))\n"
        "        T.copy(x, C[(bx * 32) : (bx * 32) + 32, 0 : 32])\n"
    )


def test_a_binding_before_the_loop_it_belongs_to():
    """T.Persistent: tilelang names the coordinates before the loop over waves."""

    def persistent(x: Any, bx: Any, _tx: Any) -> Any:
        wave, tile = variable("w"), variable("tile")
        number_of = two("Add", two("Mul", wave, number(2), "int32"), bx, "int32")
        fill = do("tl.tileop.fill", region(x, [number(0)] * 2, [32, 32]), real(0.0))
        guarded = node("IfThenElse", condition=two("LT", tile, number(3), "bool"), then_case=fill, else_case=None)
        bound = node("Bind", var=tile, value=two("Mod", number_of, number(3), "int32"))
        return node("SeqStmt", seq=[bound, loop(wave, number(2), guarded)])

    text = text_of(scaled(persistent)).text
    assert "        for w in T.serial(2):\n            tile = T.truncmod(((w * 2) + bx), 3)\n            if (tile < 3):\n" in text
    _, c = run(scaled(persistent))
    assert (c == 1).all()


def test_numbers():
    a, c = run(scaled(None))
    assert np.abs(c - (a * 2 + np.exp(a))).max() < 1e-5


def test_sizes_that_the_call_decides():
    rows = variable("m")
    written = text_of(scaled(None, rows))
    assert written.dimensions == ("m",) and "with T.Kernel((m // 32)) as bx:" in written.text
    a, c = run(scaled(None, rows), 96)
    assert np.abs(c - (a * 2 + np.exp(a))).max() < 1e-5


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        (lambda x, bx, tx: do("tl.tileop.fill", region(x, [number(0)] * 2, [32, 32]), real(3.0)), "T.fill(x, 3.0)"),
        (lambda x, bx, tx: node("IfThenElse", condition=two("LT", bx, number(1), "bool"), else_case=None,
                                then_case=do("tl.tileop.fill", region(x, [number(0)] * 2, [32, 32]), real(0.0))), "if (bx < 1):"),
        (lambda x, bx, tx: loop(variable("k"), number(3), do("tl.no_set_max_nreg"), num_stages=2), "for k in T.Pipelined(3, num_stages=2):"),
        (lambda x, bx, tx: do("tl.tileop.gemm", *[region(x, [number(0)] * 2, [32, 32])] * 3, node("IntImm", value=0, dtype="bool"),
                              node("IntImm", value=1, dtype="bool"), *[number(32)] * 4, node("IntImm", value=1, dtype="bool")),
         "T.gemm(x, x, x, transpose_A=False, transpose_B=True, clear_accum=True)"),
    ],
)  # fmt: skip
def test_statements(statement: Any, line: str):
    prim_func = scaled(statement)
    assert line in text_of(prim_func).text
    run(prim_func)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (lambda x, bx, tx: node("BufferStore", buffer=x, indices=[tx, number(0)], value=real(0.0)), "T.get_thread_binding"),
        (lambda x, bx, tx: do("tl.tileop.atomicadd", load(x, number(0), number(0)), real(1.0)), "element of fragment 'x'"),
        (lambda x, bx, tx: do("tl.tma_load", number(1)), "T.tma_load"),
        (lambda x, bx, tx: node("AttrStmt", attr_key="warp_specialize", node=None, value=None, body=do("tl.sync_warp")), "T.ws"),
        (lambda x, bx, tx: node("Prefetch"), "T has no 'prefetch'"),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_at_its_line_of_the_text(statement: Any, message: str):
    with pytest.raises(KernelError) as caught:
        tilelang.compile(scaled(statement)).compile()
    found = caught.value.diagnostics[0]
    assert message in found.message and found.span is not None and found.span.file.startswith("<PrimFunc main")


def test_widening_that_only_the_company_asks_for_is_left_out():
    half = buffer("h", 32, 32, scope="local.fragment", dtype="bfloat16")
    element = load(half, variable("i"), variable("j"))
    wide = node("Cast", value=element, dtype="float32")
    from tilewright.frontend.tilelang.prim_func_text import ExpressionText, Names

    written = ExpressionText(Names(), lambda buffer: None)
    assert written(two("Mul", wide, real(2.0))) == "(h[i, j] * 2.0)"
    assert written(two("Mul", wide, wide)) == '(T.cast(h[i, j], "float32") * T.cast(h[i, j], "float32"))'
    assert written(call("tl.infinity")) == 'T.infinity("float32")'
    assert written(node("Select", condition=two("GT", number(1), number(2)), true_value=real(1.0), false_value=real(float("inf")))) == (
        "T.if_then_else((1 > 2), 1.0, float('inf'))"
    )
