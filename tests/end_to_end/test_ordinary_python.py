"""Python that people write without thinking of kernels: match, nonlocal, del, imports, recursion, reduce, small classes, numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernel_text
from tilewright.diagnostics import KernelError

KERNEL = """
import functools, math, operator
from collections import namedtuple
from dataclasses import dataclass, field
import numpy as np
from tilewright import ttl
{header}

@ttl.kernel(grid=({cores}, 1))
def kernel(a, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=4)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

    @ttl.compute()
    def compute():
        column, _ = ttl.core(dims=2)
        with a_cb.wait() as x, out_cb.reserve() as o:
{body}

    @ttl.datamovement()
    def read():
        column, _ = ttl.core(dims=2)
        with a_cb.reserve() as block:
            ttl.copy(a[0, column], block).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.core(dims=2)
        with out_cb.wait() as block:
            ttl.copy(block, out[0, column]).wait()
"""
A = np.arange(-512, 512, dtype=np.float32).reshape(32, 32) / 128
PAIR = "@dataclass\nclass Pair:\n    first: object\n    second: object = 3.0\n"
TOTAL = """class Total:
    def __init__(self, start):
        self.value = start
        self.parts = []
    def add(self, more):
        self.value = self.value + more
        self.parts.append(more)
        return self
    @property
    def half(self):
        return self.value * 0.5
    def __add__(self, other):
        return Total(self.value + other.value)
    def __call__(self, factor):
        return self.value * factor
"""
POWER = "def power(v, n):\n    if n == 1:\n        return v\n    return v * power(v, n - 1)\n"
CASES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "match a constant": ("", "mode = 1\nmatch mode:\n    case 0:\n        y = x\n    case 1 | 2:\n        y = x * 2.0\n    case _:\n        y = x * 3.0\no.store(y)", lambda a: a * 2),
    "match a tuple with a guard": ("", "mode = ('scale', 3.0)\nmatch mode:\n    case ('add', v):\n        y = x + v\n    case ('scale', v) if v > 2:\n        y = x * v\n    case _:\n        y = x\no.store(y)", lambda a: a * 3),
    "match a table": ("", "match {'k': 4.0, 'm': 1}:\n    case {'k': v, **rest}:\n        y = x * v * len(rest)\n    case str() | None:\n        y = x\no.store(y)", lambda a: a * 4),
    "match a class": (PAIR, "match Pair(x, 2.0):\n    case Pair(first, second=2.0):\n        y = first * 5.0\no.store(y)", lambda a: a * 5),
    "match blocks in a list": ("", "match [x, x * 2.0, x]:\n    case [first, *rest]:\n        o.store(first + sum(rest))", lambda a: a * 4),
    "nonlocal": ("", "n = 1.0\ndef more():\n    nonlocal n\n    n = n + 1.0\nmore()\nmore()\no.store(x * n)", lambda a: a * 3),
    "nonlocal block": ("", "total = x\ndef more():\n    nonlocal total\n    total = total + x\nfor _ in (0, 1):\n    more()\no.store(total)", lambda a: a * 3),
    "nonlocal in a comprehension": ("", "n = 0\ndef more():\n    nonlocal n\n    n += 1\n    return n\ncounts = [more() for _ in (0, 1, 2)]\no.store(x * n * sum(counts))", lambda a: a * 18),
    "del a name": ("", "t = x * 2.0\nu = t\ndel t\no.store(u)", lambda a: a * 2),
    "del elements": ("", "d = {'a': 1.0, 'b': 2.0}\nitems = [1.0, 2.0]\ndel d['a'], items[0]\no.store(x * d['b'] * items[0] * len(d))", lambda a: a * 4),
    "import": ("", "import math as m\nfrom math import sqrt\nimport os.path\no.store(x * m.floor(2.5) * sqrt(4.0))", lambda a: a * 4),
    "recursion": (POWER, "o.store(power(x, 3))", lambda a: a**3),
    "recursion of an inner function": ("", "def tree(items):\n    if len(items) == 1:\n        return items[0]\n    half = len(items) // 2\n    return tree(items[:half]) + tree(items[half:])\no.store(tree([x, x, x, x, x]))", lambda a: a * 5),
    "mutual recursion": ("def even(v, n):\n    return v if n == 0 else odd(v, n - 1)\ndef odd(v, n):\n    return even(v * 2.0, n - 1)\n", "o.store(even(x, 4))", lambda a: a * 4),
    "reduce": ("", "o.store(functools.reduce(lambda p, q: p + q, [x, x, x]))", lambda a: a * 3),
    "reduce with a start": ("", "o.store(functools.reduce(operator.mul, [2.0, 3.0], x))", lambda a: a * 6),
    "reduce with a function of the language": ("", "o.store(functools.reduce(ttl.math.max, [x, x * 2.0, x * 0.5]))", lambda a: np.maximum(np.maximum(a, a * 2), a / 2)),
    "reduce with a helper": ("def join(p, q):\n    return p * 2.0 + q\n", "o.store(functools.reduce(join, [x, x, x]))", lambda a: a * 7),
    "map and filter": ("", "kept = list(filter(lambda n: n > 1, [1, 2, 3]))\no.store(sum(map(lambda v: v * 2.0, [x, x])) * len(kept))", lambda a: a * 8),
    "sorted by a key": ("", "o.store(x * sorted([3.0, 1.0, 2.0], key=lambda v: -v)[0])", lambda a: a * 3),
    "partial": ("", "twice = functools.partial(lambda s, v: v * s, 2.0)\no.store(twice(x))", lambda a: a * 2),
    "dataclass": (PAIR, "p = Pair(x)\nq = Pair(second=p.first * 2.0, first=1.0)\no.store(p.first * p.second + q.second)", lambda a: a * 5),
    "named tuple": ("Both = namedtuple('Both', 'u v')\n", "b = Both(x, v=x * 2.0)\nu, v = b\no.store(b.u + v)", lambda a: a * 3),
    "small class": (TOTAL, "t = Total(x)\nt.add(x).add(x)\no.store(t.value + t.half * len(t.parts))", lambda a: a * 6),
    "operators of a class": (TOTAL, "t = Total(x) + Total(x * 2.0)\no.store(t(2.0))", lambda a: a * 6),
    "object in an unrolled loop": (TOTAL, "t = Total(x)\nfor s in (1.0, 2.0):\n    t.add(x * s)\no.store(t.value)", lambda a: a * 4),
    "a class on another": (TOTAL + "class Doubled(Total):\n    def __init__(self, start):\n        super().__init__(start * 2.0)\n    def add(self, more):\n        return super().add(more * 2.0)\n", "o.store(Doubled(x).add(x).value)", lambda a: a * 4),
    "numbers made by types": ("T = np.array([1.0, 2.0])\n", "o.store(x * float(T[1]) + int('3') + bool(1) * complex(1, 0).real)", lambda a: a * 2 + 4),
    "attributes set later": ("class Bag:\n    pass\n", "b = Bag()\nb.held = x * 2.0\nb.held = b.held + x\no.store(b.held)", lambda a: a * 3),
    "round": ("", "o.store(x * round(2.4) * round(2.26, 1))", lambda a: a * np.float32(4.6)),
    "round a block": ("", "o.store(round(x))", np.round),
    "arrays without dimensions": ("Z = np.array(2.0)\n", "o.store(Z * x + np.float32(1.0) - Z)", lambda a: a * 2 - 1),
    "array elements and sums": ("T = np.array([1.0, 2.0])\n", "o.store(x * T[1] + T.sum() + np.max(T))", lambda a: a * 2 + 5),
    "sets": ("", "seen = {1, 2, 2}\no.store(x * len(seen) if 2 in {n + 1 for n in seen} else x)", lambda a: a * 2),
    "blocks of a list in a loop": ("", "parts = [x, x * 2.0]\nfor t in range(2):\n    o += parts[t]", lambda a: a * 3),
}  # fmt: skip


def load(folder: Path, header: str, body: str, cores: int = 1) -> Any:
    indented = "\n".join(" " * 12 + line for line in body.splitlines())
    return kernel_text.load(KERNEL.format(header=header, body=indented, cores=cores), folder)


@pytest.mark.parametrize("case", CASES)
def test_it_means_what_it_says(case: str, tmp_path: Path):
    header, body, wanted = CASES[case]
    out = np.zeros_like(A)
    load(tmp_path, header, body)(A, out)
    np.testing.assert_allclose(out, wanted(A), rtol=1e-3, atol=1e-3)


def test_match_on_a_number_of_this_core(tmp_path: Path):
    body = "match column:\n    case 0:\n        o.store(x)\n    case 1 | 2:\n        o.store(x * 2.0)\n    case n:\n        o.store(x * 3.0)"
    a, out = np.tile(A, (1, 4)), np.zeros((32, 128), np.float32)
    load(tmp_path, "", body, cores=4)(a, out)
    assert (out == np.concatenate([A, A * 2, A * 2, A * 3], axis=1)).all()


def test_blocks_waited_for_in_a_list(tmp_path: Path):
    source = KERNEL.format(header="", body="", cores=1)
    compute = "taps = [a_cb.wait(), a_cb.wait()]\n        with out_cb.reserve() as o:\n            for t in range(2):\n                o += taps[t]\n"
    compute += "        a_cb.pop()\n        a_cb.pop()"
    source = source.replace("with a_cb.wait() as x, out_cb.reserve() as o:\n", compute + "\n")
    source = source.replace("        with a_cb.reserve() as block:\n            ttl.copy(a[0, column], block).wait()",
                            "        for n in range(2):\n            with a_cb.reserve() as block:\n                ttl.copy(a[0, n], block).wait()")  # fmt: skip
    a, out = np.concatenate([A, A * 2], axis=1), np.zeros_like(A)
    kernel_text.load(source, tmp_path)(a, out)
    assert (out == A * 3).all()


def test_print_of_coordinates(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    body = "print('core', ttl.core(dims=2), [column, 'x'], {'at': column})\nprint(f'{ttl.core(dims=2)} is {(column,)}')\no.store(x)"
    a, out = np.tile(A, (1, 2)), np.zeros((32, 64), np.float32)
    load(tmp_path, "", body, cores=2)(a, out)
    printed = capsys.readouterr().out
    for column in (0, 1):
        assert f"core ({column}, 0) [{column}, 'x'] {{'at': {column}}}" in printed
        assert f"({column}, 0) is ({column},)" in printed


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32, np.int32])
@pytest.mark.parametrize("layout", ["transposed", "strided", "backwards", "part", "column order"])
def test_arrays_that_are_not_contiguous(dtype: Any, layout: str, tmp_path: Path):
    """As arguments that are read, and as arguments that are written."""

    def laid_out(array: Any) -> Any:
        wide = np.zeros((128, 128), dtype)
        views = {"transposed": wide[:64, :64].T, "strided": wide[::2, ::2], "backwards": wide[63::-1, :64], "part": wide[3:67, 5:69]}
        view = views.get(layout, np.asfortranarray(np.zeros((64, 64), dtype)))
        view[...] = array
        return view

    kernel = kernel_text.load(kernel_text.elementwise({"out": "a + a"}, ("a",), blocks=(2, 2)), tmp_path)
    values = (np.arange(64 * 64).reshape(64, 64) % 50).astype(dtype)
    a, out = laid_out(values), laid_out(np.zeros((64, 64), dtype))
    kernel(a, out)
    assert (out == values + values).all()


WRONG: dict[str, tuple[str, str, str]] = {
    "TW005": (POWER.replace("n - 1", "n + 1"), "o.store(power(x, 3))", "calls itself without end"),
    "TW012": ("", "n = 1\ndef more():\n    nonlocal n\n    n += 1\nfor i in range(300):\n    more()\no.store(x * n)", "'n' of the function around"),
    "TW012 ": (TOTAL, "t = Total(x)\nfor i in range(300):\n    t.add(x)\no.store(t.value)", "was made outside of this loop"),
    "TW012  ": ("", "it = iter([1.0] * 400)\nfor i in range(300):\n    o += x * next(it)", "next() on an iterator"),
    "TW001": ("class Setting:\n    s = 1.0\nsetting = Setting()\n", "setting.s = 2.0\no.store(x)", "assignment to an attribute of a Setting"),
    "TW017": ("", "import no_such_module\no.store(x)", "ModuleNotFoundError"),
    "TW001 ": ("", "del missing\no.store(x)", "del of 'missing'"),
    "TW007": ("", "o.store(x * len({column}))", "in a set"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_said(case: str, tmp_path: Path):
    header, body, message = WRONG[case]
    cores = 2 if "column" in body else 1
    with pytest.raises(KernelError) as caught:
        load(tmp_path, header, body, cores)(np.tile(A, (1, cores)), np.zeros((32, 32 * cores), np.float32))
    found = caught.value.diagnostics[0]
    assert found.code == case.strip() and message in found.message and found.help and found.span is not None
