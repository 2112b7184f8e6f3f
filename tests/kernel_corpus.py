"""Kernels whose text is checked as a whole: every row of the op table, every structural form, and real kernels.

Each is one expression (or a few statements) between a reader and a writer. Tests and the vendor job compile all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import Composite, TileOp, release_key
from tilewright.options import Options
from tilewright.passes.dst_assignment.fused_forms import EQUIVALENTS, SAME_BITS

Shape = tuple[int, int]
BROADCAST, SUM, MAX = "ttl.math.broadcast", "ttl.math.reduce_sum", "ttl.math.reduce_max"
REPLACED = {rule.row for rule in EQUIVALENTS if rule.exactness == SAME_BITS}  # cheaper calls give the same; linear scan has only their own
OPERATORS = ("+", "-", "*", "/", "**", "%", "//", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True, kw_only=True)
class CorpusKernel:
    name: str
    inputs: tuple[tuple[str, Shape], ...]  # shapes in tiles; the block of input ``a`` is called ``ab``
    outputs: tuple[Shape, ...]  # their blocks are o0, o1, ...
    body: str
    dtype: str = "bf16"
    out_dtype: str = ""  # empty: as the inputs
    options: tuple[tuple[str, Any], ...] = ()
    blocks: int = 1  # how often each thread runs
    grid: Shape = (1, 1)

    @property
    def tensors(self) -> list[tuple[Shape, str]]:
        """Shape in elements and dtype of every argument."""
        columns = self.blocks * self.grid[0] * self.grid[1]
        inputs = [((rows * 32, cols * 32 * columns), self.dtype) for _, (rows, cols) in self.inputs]
        return inputs + [((rows * 32, cols * 32 * columns), self.out_dtype or self.dtype) for rows, cols in self.outputs]

    @property
    def source(self) -> str:
        names = [name for name, _ in self.inputs]
        outs = [f"out{number}" for number in range(len(self.outputs))]
        shapes = {**dict(self.inputs), **dict(zip(outs, self.outputs, strict=True))}
        lines = ["from tilewright import ttl", "", "", f"@ttl.operation(grid={self.grid})", f"def kernel({', '.join([*names, *outs])}):"]
        for tensor, shape in shapes.items():
            lines.append(f"    {tensor}_cb = ttl.make_dataflow_buffer_like({tensor}, shape={shape}, block_count=2)")
        held = [f"{name}_cb.wait() as {name}b" for name in names]
        held += [f"{out}_cb.reserve() as o{number}" for number, out in enumerate(outs)]
        compute = [f"with {', '.join(held)}:", *(f"    {line}" for line in self.body.splitlines())]
        read: list[str] = []
        for name in names:
            read += [f"with {name}_cb.reserve() as block:", f"    ttl.copy({self._part(name, shapes[name])}, block).wait()"]
        write: list[str] = []
        for out in outs:
            write += [f"with {out}_cb.wait() as block:", f"    ttl.copy(block, {self._part(out, shapes[out])}).wait()"]
        for kind, thread, body in (("compute", "compute", compute), ("datamovement", "read", read), ("datamovement", "write", write)):
            lines += ["", f"    @ttl.{kind}()", f"    def {thread}():", *(f"        {line}" for line in self._looped(body or ["pass"]))]
        return "\n".join(lines) + "\n"

    def _part(self, tensor: str, shape: Shape) -> str:
        rows, cols = shape
        if self.blocks == 1 and self.grid == (1, 1):
            return f"{tensor}[0:{rows}, 0:{cols}]"
        return f"{tensor}[0:{rows}, step * {cols} : (step + 1) * {cols}]"

    def _looped(self, body: list[str]) -> list[str]:
        lines: list[str] = []
        first = "0"
        if self.grid != (1, 1):
            lines.append("core_x, core_y = ttl.node(dims=2)")
            first = f"(core_y * {self.grid[0]} + core_x) * {self.blocks}"
        if self.blocks == 1 and self.grid == (1, 1):
            return body
        return [*lines, f"for turn in range({self.blocks}):", f"    step = {first} + turn", *(f"    {line}" for line in body)]


def corpus() -> list[CorpusKernel]:
    return [*row_kernels(), *structural_kernels(), *real_kernels()]


# Rows -----------------------------------------------------------------------------------------------------------------------


def row_kernels() -> Iterator[CorpusKernel]:
    """Every row, on every dtype it has; with ``approx`` where it has that."""
    for row in tile_ops.ROWS:
        expression = row_expression(row)
        if expression is None:
            continue
        for dtype in (dtype for dtype in row.dtypes if dtype != "bfp8_b"):
            yield row_kernel(row, dtype, expression)
            if row.name in REPLACED:
                yield row_kernel(row, dtype, expression, "by its own call", allocator="linear-scan")
        if any(param.name == "approx" for param in row.params):
            yield row_kernel(row, "bf16", expression.replace("approx=False", "approx=True"), "approx")
    for source, target in tile_ops.TYPECASTS:
        if "bfp8_b" in (source, target) or "bfp4_b" in (source, target):
            continue
        inputs = (("a", (1, 1)),)
        body = f"o0.store(ttl.math.typecast(ab, dtype={target!r}))"
        yield CorpusKernel(name=f"typecast {source} to {target}", inputs=inputs, outputs=((1, 1),), body=body, dtype=source, out_dtype=target)


def row_kernel(row: TileOp, dtype: str, expression: str, note: str = "", **more: Any) -> CorpusKernel:
    inputs = tuple((name, (1, 2)) for name in "abc"[: max(1, row.arity)])
    body = f"o0.store({expression})"
    newest = max((form.since for form in row.forms), key=release_key)
    options = (("metal", newest),) if release_key(newest) > release_key(Options().metal) else ()
    name = f"{row.name} {dtype} {note}".strip()
    return CorpusKernel(name=name, inputs=inputs, outputs=((1, 2),), body=body, dtype=dtype, options=(*options, *more.items()))


def row_expression(row: TileOp) -> str | None:
    """Python that ends in this row; None if it is only reached by a pattern."""
    if row.name == "typecast":
        return None
    if row.name == "exp_scaled":
        return "ttl.math.exp(ab, scale=0.5, approx=True)"
    if row.name in ("pow_int", "pow_scalar"):
        return f"ab ** {row.params[0].sample}"
    operands = ["ab", "bb", "cb"][: row.arity]
    if row.python:
        named = [f"{param.name}={param.sample!r}" for param in row.params if not param.hidden]
        return f"ttl.{row.python[0]}({', '.join([*(operands or ['o0']), *named])})"
    return _through_a_parent(row, operands)


def _through_a_parent(row: TileOp, operands: list[str]) -> str | None:
    """Rows without a name of their own: numbers as operands, and integers."""
    for parent in (*tile_ops.ROWS, *tile_ops.COMPOSITES):
        if row.name == parent.scalar:
            return _applied(parent, ["ab", repr(row.params[0].sample)])
        if row.name == parent.rscalar:
            return _applied(parent, [repr(row.params[0].sample), "ab"])
    for parent in (*tile_ops.ROWS, *tile_ops.COMPOSITES):
        if row.name in dict(parent.by_dtype).values():
            named = [f"{param.name}={param.sample!r}" for param in row.params if not param.hidden]
            return _applied(parent, operands or ["o0"], named)
    return None


def _applied(op: TileOp | Composite, operands: list[str], named: list[str] | None = None) -> str | None:
    if op.python:
        return f"ttl.{op.python[0]}({', '.join([*operands, *(named or [])])})"
    if op.operator in OPERATORS and len(operands) == 2:
        return f"{operands[0]} {op.operator} {operands[1]}"
    return _through_a_number(op, operands)


def _through_a_number(op: TileOp | Composite, operands: list[str]) -> str | None:
    """``add_int_scalar`` is the scalar of ``add_int``, which is ``add`` on integers."""
    for parent in (*tile_ops.ROWS, *tile_ops.COMPOSITES):
        if op.name in dict(parent.by_dtype).values():
            return _applied(parent, operands)
    return None


# Structure -------------------------------------------------------------------------------------------------------------------


def _both(name: str, inputs: dict[str, Shape], outputs: tuple[Shape, ...], body: str, **more: Any) -> Iterator[CorpusKernel]:
    for dtype in ("bf16", "f32"):
        yield CorpusKernel(name=f"{name} {dtype}", inputs=tuple(inputs.items()), outputs=outputs, body=body, dtype=dtype, **more)


def structural_kernels() -> Iterator[CorpusKernel]:
    """Matrix-unit forms, dest reuse, broadcasts, reductions, transposes, copies, loops, grids, sync modes."""
    two, three = {"a": (2, 3), "b": (2, 3)}, {"a": (2, 2), "b": (2, 2), "c": (2, 2)}
    for op in ("+", "-", "*"):
        yield from _both(f"matrix unit {op}", two, ((2, 3),), f"o0.store(ab {op} bb)")
        yield from _both(f"dest reuse left {op}", three, ((2, 2),), f"o0.store(ttl.math.exp(ab * bb) {op} cb)")
        yield from _both(f"dest reuse right {op}", three, ((2, 2),), f"o0.store(cb {op} ttl.math.exp(ab * bb))")
        for dims, shape in (("[1]", (2, 1)), ("[0]", (1, 3)), ("[0, 1]", (1, 1))):
            body = f"o0.store(ab {op} {BROADCAST}(bb, dims={dims}, shape=(2, 3)))"
            yield from _both(f"broadcast {dims} {op}", {"a": (2, 3), "b": shape}, ((2, 3),), body)
            body = f"o0.store(ttl.math.exp(ab) {op} {BROADCAST}(ttl.math.abs(bb), dims={dims}, shape=(2, 3)))"
            yield from _both(f"broadcast of a result {dims} {op}", {"a": (2, 3), "b": shape}, ((2, 3),), body)
    for dims, shape in (("[1]", (2, 1)), ("[0]", (1, 3)), ("[0, 1]", (1, 1))):
        body = f"o0.store({BROADCAST}(ab, dims={dims}, shape=(2, 3)))"
        yield from _both(f"broadcast alone {dims}", {"a": shape}, ((2, 3),), body)
        for reduction in (SUM, MAX):
            yield from _both(f"{reduction[9:]} {dims}", {"a": (2, 3)}, (shape,), f"o0.store({reduction}(ab, dims={dims}))")
            body = f"o0.store(ttl.math.exp({reduction}(ttl.math.abs(ab), dims={dims})))"
            yield from _both(f"fused {reduction[9:]} {dims}", {"a": (2, 3)}, (shape,), body)
        words = "t = {0}(ab, dims={1})\nm = ttl.math.min(ttl.math.max(t, 2.0 / t), ttl.math.recip(t + 2.0 ** t))\n"
        body = words.format(MAX, dims) + f"o0.store(ab * {BROADCAST}(ttl.math.exp(m), dims={dims}, shape=(2, 3)))"
        yield from _both(f"faces {dims}", {"a": (2, 3)}, ((2, 3),), body)
    yield from _both("transpose", {"a": (2, 3)}, ((3, 2),), "o0.store(ttl.math.transpose(ab))")
    yield from _both("transpose of a result", {"a": (2, 3)}, ((3, 2),), "o0.store(ttl.math.transpose(ttl.math.exp(ab)))")
    yield from _both("matmul", {"a": (2, 3), "b": (3, 4)}, ((2, 4),), "o0.store(ab @ bb)")
    yield from _both("matmul wide", {"a": (1, 2), "b": (2, 9)}, ((1, 9),), "o0.store(ab @ bb)")
    yield from _both("matmul with transpose", {"a": (2, 2), "b": (3, 2)}, ((2, 3),), "o0.store(ab @ ttl.math.transpose(bb))")
    yield from _both("relu inside", {"a": (2, 2)}, ((2, 2),), "o0.store(ttl.math.exp(ttl.math.relu(ab)))")
    yield from _both("f32 read both ways", {"a": (2, 2), "b": (2, 2)}, ((2, 2),), "o0.store(ab - ab @ bb)")
    yield from _both("reduced block as a factor", {"a": (2, 2), "b": (1, 2)}, ((2, 2),), f"o0.store({SUM}(ab, dims=[1]) @ bb)")
    yield from _both("matmul, bias, relu", {"a": (2, 3), "b": (3, 2), "c": (2, 2)}, ((2, 2),), "o0.store(ttl.math.relu(ab @ bb + cb))")
    yield from _both("matmul of results", {"a": (2, 2), "b": (2, 2)}, ((2, 2),), "o0.store(ttl.math.exp(ab) @ ttl.math.abs(bb))")
    yield from _both("two outputs", three, ((2, 2), (2, 2)), "m = ab * bb\no0.store(ttl.math.abs(m))\no1.store(m + cb)")
    yield from _both("value used twice", three, ((2, 2),), "m = ttl.math.exp(ab)\no0.store((m + cb) * ttl.math.abs(m) - ttl.math.sqrt(m))")
    yield from _both("copy", {"a": (2, 3)}, ((2, 3),), "o0.store(ab)")
    yield from _both("accumulate in the output", two, ((2, 3),), "o0.store(ab)\no0 += bb")
    yield from _both("loop", three, ((2, 2),), "o0.store(ab * bb + cb)", blocks=5)
    yield from _both("grid", three, ((2, 2),), "o0.store(ttl.math.exp(ab * bb + cb))", blocks=3, grid=(4, 2))
    yield from _both("full sync", three, ((2, 2),), "o0.store(ab * bb + cb)", options=(("full_sync", True),))
    yield from _both("wide DST", three, ((2, 2),), "o0.store(ab * bb + cb)", options=(("fp32_dest_acc", True),))
    yield from _both("unrolled", three, ((2, 2),), "o0.store(ab * bb + cb)", options=(("enable_unroll", True),))
    yield from _both("linear scan", three, ((2, 2),), "o0.store(ab * bb + cb)", options=(("allocator", "linear-scan"),))
    yield CorpusKernel(name="f32 from bf16", inputs=(("a", (2, 2)), ("b", (2, 2))), outputs=((2, 2),), body="o0.store(ttl.math.typecast(ab * bb, dtype='f32'))", out_dtype="f32")


# Real kernels ------------------------------------------------------------------------------------------------------------------


def real_kernels() -> Iterator[CorpusKernel]:
    row = f"{BROADCAST}({{}}, dims=[1], shape=(2, 3))"
    softmax = f"e = ttl.math.exp(xb - {row.format(f'{MAX}(xb, dims=[1])')})\no0.store(e * {row.format(f'ttl.math.recip({SUM}(e, dims=[1]))')})"
    yield from _both("softmax", {"x": (2, 3)}, ((2, 3),), softmax)
    log_softmax = f"d = xb - {row.format(f'{MAX}(xb, dims=[1])')}\no0.store(d - {row.format(f'ttl.math.log({SUM}(ttl.math.exp(d), dims=[1]))')})"
    yield from _both("log softmax", {"x": (2, 3)}, ((2, 3),), log_softmax)
    weight = f"{BROADCAST}({{}}, dims=[0], shape=(2, 3))"
    rms = f"r = ttl.math.rsqrt({SUM}(xb * xb, dims=[1]) * (1 / 96.0) + 1e-5)\no0.store(xb * {row.format('r')} * {weight.format('wb')})"
    yield from _both("RMS norm", {"x": (2, 3), "w": (1, 3)}, ((2, 3),), rms)
    layer = f"""d = xb - {row.format(f"{SUM}(xb, dims=[1]) * (1 / 96.0)")}
v = {SUM}(d * d, dims=[1]) * (1 / 96.0)
o0.store(d * {row.format("ttl.math.rsqrt(v + 1e-5)")} * {weight.format("gb")} + {weight.format("bb")})"""
    yield from _both("layer norm", {"x": (2, 3), "g": (1, 3), "b": (1, 3)}, ((2, 3),), layer)
    gates = dict.fromkeys("ifgoc", (2, 2))
    lstm = """c2 = ttl.math.sigmoid(fb) * cb + ttl.math.sigmoid(ib) * ttl.math.tanh(gb)
o0.store(c2)
o1.store(ttl.math.sigmoid(ob) * ttl.math.tanh(c2))"""
    yield from _both("LSTM cell", gates, ((2, 2), (2, 2)), lstm)
    yield from _both("SwiGLU", {"g": (2, 2), "u": (2, 2)}, ((2, 2),), "o0.store(gb * ttl.math.sigmoid(gb) * ub)")
    horner = "o0.store(((((ab * xb + bb) * xb + cb) * xb + db) * xb + eb) * xb + fb)"
    yield from _both("Horner", dict.fromkeys("abcdefx", (2, 2)), ((2, 2),), horner)
    complex_product = "o0.store(ab * cb - bb * db)\no1.store(ab * db + bb * cb)"
    yield from _both("complex product", dict.fromkeys("abcd", (2, 2)), ((2, 2), (2, 2)), complex_product)
    attention = f"e = ttl.math.exp((qb @ kb) * 0.125)\no0.store((e * {row.format(f'ttl.math.recip({SUM}(e, dims=[1]))')}) @ vb)"
    yield from _both("attention", {"q": (2, 2), "k": (2, 3), "v": (3, 2)}, ((2, 2),), attention)
    bias = f"{BROADCAST}(bb, dims=[0], shape=(2, 3))"
    dense = f"h = ttl.math.relu(xb @ wb + {bias})\no0.store(h - {row.format(f'{SUM}(h, dims=[1]) * (1 / 96.0)')})"
    yield from _both("dense layer", {"x": (2, 2), "w": (2, 3), "b": (1, 3)}, ((2, 3),), dense)
    gelu = "o0.store(0.5 * xb * (1.0 + ttl.math.tanh(0.7978845608 * (xb + 0.044715 * xb * xb * xb))))"
    yield from _both("gelu by hand", {"x": (2, 2)}, ((2, 2),), gelu)
