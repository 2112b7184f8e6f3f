"""Fuzzing of DST allocation: random problems, all allocators, every plan checked, costs compared.

    python benchmarks/fuzz_dst.py --problems 1000000 --seed 7     (0 problems: without end)

A finding is a plan the checker refuses, an unexpected exception, or ``optimal`` costing more than another allocator. The
process then prints the seed of the problem and ends with status 1; ``--replay SEED`` runs that problem alone.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from collections import Counter
from dataclasses import replace

from dst_dags import COSTS, LEAF

from tilewright.dst.allocate import allocate, optimal, remedies
from tilewright.dst.checker import check
from tilewright.dst.linear_scan import DoesNotFit, linear_scan
from tilewright.dst.problem import Form, Op, Operand, Place, Plan, Problem, ResultRule
from tilewright.progress import interruptible, progress, say

DST, BUFFER = Place.DST, Place.BUFFER


def random_problem(seed: int, *, most_ops: int = 9) -> Problem:
    """A body with all kinds of forms; the same seed gives the same problem."""
    choose = random.Random(seed)
    leaves = choose.randint(1, 5)
    count = choose.randint(1, most_ops)
    operands: list[tuple[int, ...]] = []
    for op in range(count):
        values = leaves + op
        arity = choose.choices((0, 1, 2, 3), (1, 20, 24, 3))[0]
        recent = [max(0, values - 1 - int(choose.expovariate(0.35))) for _ in range(arity)]
        operands.append(tuple(v if choose.random() < 0.7 else choose.randrange(values) for v in recent))
    outputs = _outputs(choose, leaves, operands)
    ops = tuple(
        Op(operands=operands[op], forms=tuple(_forms(choose, op, operands, outputs, leaves)), name=f"op{op}")
        for op in range(count)
    )
    return Problem(
        leaves=tuple(replace(LEAF, name=f"leaf{i}", load_math_cycles=choose.choice((14, 14, 30))) for i in range(leaves)),
        ops=ops,
        outputs=tuple(outputs),
        capacity=choose.choice((3, 4, 4, 4, 8, 8, 16)),
        tiles=choose.choice((1, 2, 7, 64)),
        costs=replace(COSTS, copy=choose.choice((133, 133, 40)), sync=choose.choice((20, 20, 0))),
        full_sync=choose.random() < 0.15,
    )


def _outputs(choose: random.Random, leaves: int, operands: list[tuple[int, ...]]) -> list[int]:
    used = {value for values in operands for value in values}
    results = range(leaves, leaves + len(operands))
    outputs = [value for value in results if value not in used and choose.random() < 0.9]
    if choose.random() < 0.3:
        outputs.append(choose.choice(results))
    if choose.random() < 0.05:
        outputs.append(choose.randrange(leaves))
    if not outputs:
        outputs.append(results[-1])
    if choose.random() < 0.95:
        outputs = list(dict.fromkeys(outputs))
    choose.shuffle(outputs)
    return outputs[:6]


def _forms(
    choose: random.Random, op: int, operands: list[tuple[int, ...]], outputs: list[int], leaves: int
) -> list[Form]:
    own = operands[op]
    if len(own) < 2:
        rule = ResultRule.IN_PLACE if own else ResultRule.FREE
        return [_form(choose, "unary", [(v, DST) for v in own], rule, choose.randint(100, 900))]
    sfpu = _form(choose, "sfpu", [(v, DST) for v in own], ResultRule.FREE, choose.choice((143, 208, 756)))
    forms = [sfpu]
    if choose.random() < 0.25:
        forms.append(_form(choose, "inplace", [(v, DST) for v in own], ResultRule.IN_PLACE, 124))
    if len(own) == 2 and choose.random() < 0.75:
        first, second = own
        if first < leaves and second < leaves:
            rule = choose.choice((ResultRule.FREE, ResultRule.ZEROED))
            forms.append(_form(choose, "fpu", [(first, BUFFER), (second, BUFFER)], rule, choose.choice((14, 70)), 70))
        for kept, read in ((first, second), (second, first)):
            if kept != read and (read < leaves or choose.random() < 0.2):
                pair = [(kept, DST), (read, BUFFER)]
                forms.append(_form(choose, "reuse", pair, ResultRule.IN_PLACE, choose.choice((42, 54, 102)), 40))
        if choose.random() < 0.1:
            del forms[0]
        if not any(all(p.value < leaves or p.place is DST for p in form.operands) for form in forms):
            forms.append(sfpu)
    forms.extend(_absorbing(choose, op, operands, outputs, leaves))
    return forms


def _absorbing(
    choose: random.Random, op: int, operands: list[tuple[int, ...]], outputs: list[int], leaves: int
) -> list[Form]:
    forms: list[Form] = []
    for product in set(operands[op]):
        inner = product - leaves
        others = [v for v in operands[op] if v != product]
        uses = sum(product in values for values in operands)
        if inner < 0 or len(others) != 1 or len(operands[inner]) != 2:
            continue
        shared = uses != 1 or product in outputs
        whole: dict[str, tuple[int, ...]] = {"repeats" if shared else "absorbs": (inner,)}
        reached = [*operands[inner], others[0]]
        read = all(v < leaves for v in operands[inner])
        if choose.random() < 0.5 and len(set(reached)) == 3 and (read or not shared):
            fused = [(v, DST) for v in reached]
            forms.append(_form(choose, "fused", fused, ResultRule.FREE, 240, **whole))
        if read:
            parts = [(reached[0], BUFFER), (reached[1], BUFFER), (others[0], DST)]
            forms.append(_form(choose, "multiply-add", parts, ResultRule.ACCUMULATE, 70, 70, reuses=2, **whole))
    return forms


def _form(
    choose: random.Random,
    key: str,
    operands: list[tuple[int, Place]],
    rule: ResultRule,
    math: int,
    unpack: int = 0,
    *,
    reuses: int | None = None,
    absorbs: tuple[int, ...] = (),
    repeats: tuple[int, ...] = (),
) -> Form:
    if rule is ResultRule.IN_PLACE:
        reuses = 0
    init = choose.choice(("", "a", "b", "c", key))
    return Form(
        key=key,
        operands=tuple(Operand(value, place) for value, place in operands),
        result=rule,
        reuses=reuses,
        absorbs=absorbs,
        repeats=repeats,
        math_cycles=math,
        unpack_cycles=unpack,
        init=init,
        init_cycles={"": 0, "a": 49, "b": 5, "c": 16}.get(init, 30),
    )


def run_one(seed: int, *, most_ops: int = 9, search: bool = True) -> Counter[str]:
    """Allocate one problem with everything (``search`` false: without ``optimal``); raises on a finding."""
    problem = random_problem(seed, most_ops=most_ops)
    seen: Counter[str] = Counter(problems=1)
    others = _heuristic_plans(problem)
    seen["plans checked"] += len(others)
    seen["split"] += any(len(plan.parts) > 1 for plan in others.values())
    if not search:
        return seen
    try:
        best = optimal(problem)
    except DoesNotFit:
        if others:
            raise
        seen["needs more slots than there are"] += 1
        return seen
    check(problem, best)
    seen["plans checked"] += 1
    seen["searched"] += 1
    seen["proved"] += best.exact
    seen["recomputed"] += any(remedy.kind == "recompute" for remedy in remedies(problem, best))
    seen["tile-major"] += best.parts[0].allocation.layout.value == "tile-major"
    for name, plan in others.items():
        # A region that fits is not split, so a split plan may win where its outputs do not depend on one another.
        comparable = len(plan.parts) <= len(best.parts)
        if comparable and best.cycles_per_tile > plan.cycles_per_tile + 1e-6:
            raise AssertionError(f"optimal costs {best.cycles_per_tile}, {name} costs {plan.cycles_per_tile}")
    return seen


def _heuristic_plans(problem: Problem) -> dict[str, Plan]:
    """Checked plans of the other allocators, as far as the problem fits them."""
    plans: dict[str, Plan] = {}
    with contextlib.suppress(DoesNotFit):
        plans["lars"] = allocate(problem, "lars")
    for schedule in ("source", "lars"):
        with contextlib.suppress(DoesNotFit):
            plan = linear_scan(problem, schedule=schedule)
            check(problem, plan)
            plans[f"linear-scan {schedule}"] = plan
    return plans


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=0, help="how many; 0 runs without end")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--ops", type=int, default=9, help="most ops of a problem")
    parser.add_argument("--search-every", type=int, default=1, metavar="N", help="run optimal on every Nth problem")
    parser.add_argument("--replay", type=int, help="run the problem of this seed only")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    arguments = parser.parse_args()
    if arguments.replay is not None:
        print(dict(run_one(arguments.replay, most_ops=arguments.ops)))
        return 0
    total: Counter[str] = Counter()
    seed = arguments.seed
    with progress("problems", arguments.problems, quiet=arguments.quiet) as shown:
        while not arguments.problems or total["problems"] < arguments.problems:
            try:
                search = seed % arguments.search_every == 0
                total.update(run_one(seed, most_ops=arguments.ops, search=search))
            except Exception as error:  # any exception is a finding
                say(f"seed {seed}: {type(error).__name__}: {error}")
                return 1
            seed += 1
            shown.tell(total["problems"], arguments.problems, f"{total['plans checked']:,} plans checked, next seed {seed}")
    print(dict(total))
    return 0


if __name__ == "__main__":
    sys.exit(interruptible(main))
