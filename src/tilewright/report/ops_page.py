"""Writes ``docs/ops.md`` from the op table: ``python -m tilewright.report.ops_page [FILE]``."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import Composite, Param, TileOp, Unit, UnitForm, Writes
from tilewright.timing_constants import call_cost

UNITS = {
    Unit.SFPU: "SFPU",
    Unit.FPU: "FPU",
    Unit.REUSE_A: "FPU, a in DST",
    Unit.REUSE_B: "FPU, b in DST",
}
RULES = {
    Writes.IN_PLACE: "in place",
    Writes.ANY: "any slot, may be an operand's",
    Writes.ACCUMULATES: "adds to the slot: needs a zero one",
}
HEADING = """\
# Tile ops

Made from the op table by `python -m tilewright.report.ops_page docs/ops.md`; a test compares the two. One op is one row in
`src/tilewright/dialects/float_rows.py` or `src/tilewright/dialects/integer_rows.py`, and every part of Tilewright reads that row.

* **Wormhole** and **Blackhole** are cycles of the math engine per 32x32 tile, with 16-bit / 32-bit DST, at HiFi4. A cycle
  is 1 ns on Wormhole (1 GHz) and 0.74 ns on Blackhole (1.35 GHz). Wormhole's are counted instructions; Blackhole's were
  published for that chip where they are bold, else they are Wormhole's. `~` marks an estimate.
* **rounds** says how the result gets into 16-bit DST. 32-bit DST keeps what the op computed.
* **error** is the largest distance from float64 NumPy in bf16 ULP over all finite inputs, or those that are named, results
  near 2^-126 (which may flush to 0) apart; measured on the outputs of the vendor's simulators in both DST widths with the
  example parameters, the larger of both chips'; *not measured* where there are none. `approx=True` has its own.
  [numerics.md](numerics.md) has the bits.
* An op with several lines has several forms, and the compiler takes the cheapest. FPU forms (the matrix unit) read
  operands straight from buffers; SFPU forms (the vector unit) want every operand in DST. The calls themselves are
  [below](#the-c-calls), with the oldest release (`--metal`) that has them.
"""
COLUMNS = "| Python | dtypes | unit | Wormhole | Blackhole | rounds | error |"
RULER = "|---|---|---|---|---|---|---|"
CALL_COLUMNS = "| op | unit | init and call | result slot | since |\n|---|---|---|---|---|"


def page() -> str:
    parts = [HEADING]
    for family, rows in tile_ops.FAMILIES.items():
        parts.append(f"\n## {family.capitalize()}\n\n{COLUMNS}\n{RULER}")
        parts.extend(line for row in rows for line in row_lines(row))
        noted = [row for row in rows if row.notes]
        if noted:
            parts.append("")
        parts.extend(f"* `{row.name}`: {row.notes}" for row in noted)
    parts.append(composite_section())
    parts.append(typecast_section())
    parts.append(calls_section())
    return "\n".join(parts) + "\n"


def row_lines(row: TileOp) -> list[str]:
    """One line per form; the first carries what all forms share."""
    lines: list[str] = []
    for index, form in enumerate(row.forms):
        shared = (example(row), ", ".join(row.dtypes), error(row)) if index == 0 else ("", "", "")
        cells = (
            shared[0], shared[1], UNITS[form.unit], cycles(row, form, "wormhole_b0"), cycles(row, form, "blackhole"), form.rounds,
            shared[2],
        )  # fmt: skip
        lines.append(table_line(cells))
    return lines


def table_line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def calls_section() -> str:
    lines = ["\n## The C++ calls\n", "`d0`, `d1`, `o` are slots of DST, `b0` and `t0` a buffer and a tile of it.\n", CALL_COLUMNS]
    for row in tile_ops.ROWS:
        for index, form in enumerate(row.forms):
            name = f"`{row.name}`" if index == 0 else ""
            lines.append(table_line((name, UNITS[form.unit], cpp(row, form), RULES[form.writes], form.since)))
    return "\n".join(lines)


def example(row: TileOp) -> str:
    """A Python line that uses the row."""
    names = ["x"] if row.arity == 1 else ["a", "b", "c"][: row.arity]
    given = [f"{param.name}={param.sample!r}" for param in row.params if is_argument(param)]
    if row.operator in ("neg", "abs", "~"):
        return {"neg": "`-x`", "abs": "`abs(x)`", "~": "`~x`"}[row.operator] + spelled(row.python, names, given)
    if row.operator:
        return f"`a {row.operator} b`" + spelled(row.python, names, given)
    if row.python:
        return spelled(row.python, names, given).removeprefix(", ")
    return through_another(row)


def is_argument(param: Param) -> bool:
    return not param.hidden and param.name != "approx" and "not used" not in param.summary


def spelled(python: tuple[str, ...], names: list[str], given: list[str]) -> str:
    return "".join(f", `ttl.{spelling}({', '.join((*names, *given))})`" for spelling in python)


def through_another(row: TileOp) -> str:
    """Rows without a spelling of their own are reached from the row a number or an integer dtype leads away from."""
    if row.name == "pow_int":
        return "`x ** 3`"
    scalar = row.params[0].sample if row.params else ""
    for other in (*tile_ops.ROWS, *tile_ops.COMPOSITES):
        sign = other.operator if other.operator else ""
        if other.scalar == row.name:
            return f"`x {sign} {scalar}`" if sign else f"`ttl.{other.python[0]}(x, {scalar})`" if other.python else "*"
        if other.rscalar == row.name and sign:
            return f"`{scalar} {sign} x`"
        if row.name in dict(other.by_dtype).values():
            return f"`{other.name}` on {', '.join(dtype for dtype, name in other.by_dtype if name == row.name)}"
    return f"*{row.name}*"


def cpp(row: TileOp, form: UnitForm) -> str:
    """Init and call as the newest release of the 0.78 generation spells them, with parameters by name."""
    values = {"fmt": "DataFormat", "fp32": "fp32"}
    samples = {param.name: param.sample for param in row.params}
    form = form.at("0.78")
    template = form.call_template({**samples, **values})
    init_template = form.init_call_template({**samples, **values})
    arguments = ", ".join(argument.split(":")[0] for argument in form.args)
    init_arguments = ", ".join(argument.split(":")[0] for argument in form.init_args)
    call = f"{form.call}{angle(template)}({arguments})"
    return f"`{form.init}{angle(init_template)}({init_arguments})` `{call}`"


def angle(template: tuple[str, ...]) -> str:
    return f"<{', '.join(template)}>" if template else ""


def cycles(row: TileOp, form: UnitForm, chip: str) -> str:
    if row.name == "fill_int" or row.dtypes[0] in ("i32", "u32"):
        return figure(form, chip, dst32=True)
    both = [figure(form, chip, dst32=dst32) for dst32 in (False, True)]
    text = " / ".join(both)
    if any(param.name == "approx" for param in row.params):
        fast = [figure(form, chip, dst32=dst32, approx=True) for dst32 in (False, True)]
        if fast != both:
            text += f"; approx {' / '.join(fast)}"
    return text


def figure(form: UnitForm, chip: str, *, dst32: bool, approx: bool = False) -> str:
    cost = call_cost(form.call, dst32=dst32, chip=chip, approx=approx, template=form.template)
    number = f"{cost.math_cycles:g}"
    if "estimate" in cost.evidence:
        return f"~{number}"
    return f"**{number}**" if chip != "wormhole_b0" and "Wormhole" not in cost.evidence else number


def error(row: TileOp) -> str:
    if not row.golden:
        return "exact" if row.bound_ulp == 0.0 else "not measured"
    text = (f"{row.bound_ulp:g}" if row.bound_ulp else "exact") + range_text(row)
    if row.approx_bound_ulp and math.isfinite(row.approx_bound_ulp):
        text += f"; approx {row.approx_bound_ulp:g}"
    return text


def range_text(row: TileOp) -> str:
    """Inputs for which the error holds, if not for all."""
    low, high = row.faithful
    words = [f"from {low:g}"] if math.isfinite(low) and -low != high else []
    words += [f"to {high:g}"] if math.isfinite(high) and -low != high else []
    words += [f"to ±{high:g}"] if math.isfinite(high) and -low == high else []
    words += [f"from ±{row.faithful_from:g}"] if row.faithful_from else []
    return f" {' '.join(words)}" if words else ""


def composite_section() -> str:
    lines = [
        "\n## Composed\n",
        "The kernel API has no usable call for these; the front end writes the steps, which fuse like any others.\n",
        "| Python | meaning | steps | why |",
        "|---|---|---|---|",
    ]
    lines.extend(composite_line(op) for op in tile_ops.COMPOSITES)
    return "\n".join(lines)


def composite_line(op: Composite) -> str:
    spellings = [f"`a {op.operator} b`"] if op.operator else []
    spellings.extend(f"`ttl.{spelling}`" for spelling in op.python)
    steps = ", ".join(f"{step.op}({', '.join(step.operands)})" for step in op.steps)
    return f"| {', '.join(spellings) or f'*{op.name}*'} | {op.summary} | `{steps}` | {op.notes} |"


def typecast_section() -> str:
    def pairs(found: frozenset[tuple[str, str]]) -> str:
        targets: dict[str, list[str]] = {}
        for source, target in sorted(found):
            targets.setdefault(source, []).append(target)
        return "; ".join(f"{source} to {', '.join(names)}" for source, names in targets.items())

    return (
        f"\n## Typecasts\n\nBy a call: {pairs(tile_ops.TYPECASTS)}.\n\n"
        f"Free, done by the unpacker or packer: {pairs(tile_ops.FREE_TYPECASTS)}. The numbers in DST stay what they are; "
        "a format rounds where the value is stored."
    )


def main() -> None:
    text = page()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
        return
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
