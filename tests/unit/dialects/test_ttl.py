"""Block ops that are not elementwise: they parse, print and refuse wrong shapes."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects import builtin, func
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.attributes import TTCore
from tilewright.dialects.text_input import TTL


def block(*shape: int) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x!ttcore.tile<32x32, bf16>>"


def parse(line: str, *arguments: str):
    context = Context()
    for dialect in (builtin.Builtin, func.Func, TTL, TTCore):
        context.load_dialect(dialect)
    names = ", ".join(f"%{'abc'[index]} : {kind}" for index, kind in enumerate(arguments))
    return Parser(context, f"func.func @f({names}) {{\n{line}\nfunc.return\n}}").parse_module()


GOOD = [
    (f"%r = ttl.matmul %a, %b : {block(2, 3)}, {block(3, 4)} -> {block(2, 4)}", block(2, 3), block(3, 4)),
    (f'%r = ttl.reduce %a {{kind = "sum", dims = [1 : i64]}} : {block(2, 3)} -> {block(2, 1)}', block(2, 3)),
    (
        f'%r = ttl.reduce %a, %b {{kind = "max", dims = [0 : i64, 1 : i64]}} : {block(2, 3)}, {block(1, 1)} -> {block(1, 1)}',
        block(2, 3),
        block(1, 1),
    ),
    (f"%r = ttl.bcast %a {{dims = [1 : i64]}} : {block(2, 1)} -> {block(2, 5)}", block(2, 1)),
    (f"%r = ttl.transpose %a : {block(2, 3)} -> {block(3, 2)}", block(2, 3)),
    (f"%r = ttl.fill_block {{value = 5.000000e-01 : f32}} : {block(2, 3)}",),
]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case[0].split()[2])
def test_round_trip(case):
    line, *arguments = case
    module = parse(line, *arguments)
    module.verify()
    assert line in str(module)


@pytest.mark.parametrize(
    ("line", "arguments", "rule"),
    [
        (f"%r = ttl.matmul %a, %b : {block(2, 3)}, {block(2, 4)} -> {block(2, 4)}", (block(2, 3), block(2, 4)), "inner sizes"),
        (f"%r = ttl.matmul %a, %b : {block(2, 3)}, {block(3, 4)} -> {block(4, 2)}", (block(2, 3), block(3, 4)), "the product"),
        (f'%r = ttl.reduce %a {{kind = "sum", dims = [1 : i64]}} : {block(2, 3)} -> {block(1, 3)}', (block(2, 3),), "gives"),
        (f'%r = ttl.reduce %a {{kind = "mean", dims = [1 : i64]}} : {block(2, 3)} -> {block(2, 1)}', (block(2, 3),), "kind"),
        (f'%r = ttl.reduce %a {{kind = "sum", dims = [2 : i64]}} : {block(2, 3)} -> {block(2, 3)}', (block(2, 3),), "dims lie"),
        (f'%r = ttl.reduce %a {{kind = "sum"}} : {block(2, 3)} -> {block(2, 3)}', (block(2, 3),), "needs dims"),
        (f"%r = ttl.bcast %a {{dims = [1 : i64]}} : {block(2, 3)} -> {block(2, 5)}", (block(2, 3),), "cannot repeat"),
        (f"%r = ttl.transpose %a : {block(2, 3)} -> {block(2, 3)}", (block(2, 3),), "turns"),
        (f"%r = ttl.fill_block : {block(2, 3)}", (), "value"),
    ],
)
def test_refused(line, arguments, rule):
    with pytest.raises(VerifyException, match=rule):
        parse(line, *arguments).verify()
