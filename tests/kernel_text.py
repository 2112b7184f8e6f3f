"""Kernels as source text: the tests need many of them, and the front end reads source files.

A kernel here is elementwise: every input block is waited for, expressions of the input names are stored to the outputs. Loops,
grids and both generations of names are written around that.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NUMBERS = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """One generation of names."""

    decorator: str
    buffer: str
    count: str
    node: str
    math: str


OLD = Spelling(decorator="kernel", buffer="make_circular_buffer_like", count="buffer_factor", node="core", math="math")
NEW = Spelling(decorator="operation", buffer="make_dataflow_buffer_like", count="block_count", node="node", math="block")


def elementwise(
    outputs: Mapping[str, str],
    inputs: Sequence[str] = ("a", "b"),
    *,
    lets: Sequence[tuple[str, str]] = (),
    block: tuple[int, int] = (1, 1),
    blocks: tuple[int, int] = (1, 1),
    grid: tuple[int, int] = (1, 1),
    count: int = 2,
    spelling: Spelling = NEW,
    name: str = "kernel",
) -> str:
    """Source of a kernel that computes ``outputs``, expressions of inputs and ``lets``, on blocks of ``block`` tiles."""
    tensors = (*inputs, *outputs)
    lines = ["from tilewright import ttl", "", f"@ttl.{spelling.decorator}(grid={grid})", f"def {name}({', '.join(tensors)}):"]
    if grid != (1, 1):
        lines += [
            "    grid_columns, grid_rows = ttl.grid_size(dims=2)",
            f"    rows_each = -(-{blocks[0]} // grid_rows)",
            f"    columns_each = -(-{blocks[1]} // grid_columns)",
        ]
    for tensor in tensors:
        lines.append(f"    {tensor}_buffer = ttl.{spelling.buffer}({tensor}, shape={block}, {spelling.count}={count})")
    compute = [f"{tensor} = {tensor}_buffer.wait()" for tensor in inputs]
    compute += [f"{tensor}_block = {tensor}_buffer.reserve()" for tensor in outputs]
    compute += [f"{target} = {value}" for target, value in lets]
    compute += [f"{tensor}_block.store({value})" for tensor, value in outputs.items()]
    compute += [f"{tensor}_buffer.pop()" for tensor in inputs] + [f"{tensor}_buffer.push()" for tensor in outputs]
    read: list[str] = []
    for tensor in inputs:
        read += [f"{tensor}_block = {tensor}_buffer.reserve()", f"ttl.copy({_part(tensor, block)}, {tensor}_block).wait()"]
        read.append(f"{tensor}_buffer.push()")
    write: list[str] = []
    for tensor in outputs:
        write += [f"{tensor}_block = {tensor}_buffer.wait()", f"ttl.copy({tensor}_block, {_part(tensor, block)}).wait()"]
        write.append(f"{tensor}_buffer.pop()")
    for decorator, thread, body in (
        ("compute", "compute", compute),
        ("datamovement", "read", read),
        ("datamovement", "write", write),
    ):
        lines += ["", f"    @ttl.{decorator}()", f"    def {thread}():", *_looped(body, blocks, grid, spelling)]
    return "\n".join(lines) + "\n"


def _part(tensor: str, block: tuple[int, int]) -> str:
    rows, columns = block
    return f"{tensor}[row * {rows} : row * {rows} + {rows}, column * {columns} : column * {columns} + {columns}]"


def _looped(body: Sequence[str], blocks: tuple[int, int], grid: tuple[int, int], spelling: Spelling) -> list[str]:
    if grid == (1, 1):
        heads = [f"for row in range({blocks[0]}):", f"for column in range({blocks[1]}):"]
        if blocks == (1, 1):
            return [f"        {line}" for line in ("row = 0", "column = 0", *body)]
        return _nested(heads, body, 2)
    lines = [f"        node_column, node_row = ttl.{spelling.node}(dims=2)", "        for local_row in range(rows_each):"]
    lines += ["            row = node_row * rows_each + local_row", f"            if row < {blocks[0]}:"]
    lines += ["                for local_column in range(columns_each):"]
    lines += [
        "                    column = node_column * columns_each + local_column",
        f"                    if column < {blocks[1]}:",
    ]
    return lines + [f"                        {line}" for line in body]


def _nested(heads: Sequence[str], body: Sequence[str], depth: int) -> list[str]:
    lines: list[str] = []
    for head in heads:
        lines.append("    " * depth + head)
        depth += 1
    return lines + ["    " * depth + line for line in body]


def load(source: str, folder: Path, name: str = "kernel") -> Any:
    """The kernel object of a source text, from a file in ``folder``."""
    path = folder / f"{name}_{next(NUMBERS)}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
