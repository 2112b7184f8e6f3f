"""What may exist after which pass, and which passes a module in text has behind it.

``pipeline.py`` holds every result against the first and begins with what the second leaves to do. The order of passes is its
own: the rules are given it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects import tile_ops
from tilewright.dialects.walking import operations

# After the pass: op-name prefixes that must be gone. Each list also holds for every later pass.
GONE: dict[str, tuple[str, ...]] = {
    "convert-ttl-to-compute": tuple(f"ttl.{row.name}" for row in tile_ops.ROWS),
    "ttl-set-compute-config": ("ttl.spill_tile_to_l1", "ttl.restore_tile_from_l1"),
    "ttl-accumulate-in-l1": ("ttl.running",),
    "ttl-lower-to-loops": ("ttl.compute", "ttl.linearized_index", "ttl.yield"),
    "convert-ttl-to-ttkernel": ("ttl.", "tensor."),
    "lower-affine": ("affine.",),
}

# After the pass: what one pass says to another on a region, and nobody else reads.
HEARD: dict[str, str] = {"ttl-tile-and-assign-dst": "ttl.results"}


INITS_PLACED = "ttkernel.inits_placed"  # on a function: its inits are where they are needed, not one before every call
CONFIGURED = "ttl.fp32_dest_acc_en"  # on a function: its compute configuration is chosen
ASSIGNED = "ttl.dst_footprint"  # on a region: DST is assigned
ON_LOOPS = ("ttl-insert-tile-regs-sync", "ttl-complete-dst-indices")  # on regions and on loops
TILE_FORMS = {"ttl.get_tile", "ttl.pack_tile"}  # loops over tiles that text writes by hand: the passes make regions of them


# What a pass needs from the text it is given, beside ops that are gone: each names the pass that provides it.
COMPUTED = ("matmul", "reduce", "bcast", "reshape", "transpose", "fill_block", *(row.name for row in tile_ops.ROWS))


class StageRules:
    """The rules for passes in this order."""

    def __init__(self, order: tuple[str, ...]) -> None:
        self.order = order
        self.place = {name: number for number, name in enumerate(order)}
        self._gone: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}

    def forbidden_after(self, name: str) -> tuple[str, ...]:
        reached = [prefixes for stage, prefixes in GONE.items() if self.place[stage] <= self.place[name]]
        return tuple(prefix for prefixes in reached for prefix in prefixes)

    def check(self, name: str, ops: Mapping[str, Sequence[Operation]]) -> None:
        """What must be gone after a pass is gone. ``ops``: all of the module by name."""
        if name not in self._gone:
            gone = self.forbidden_after(name)
            self._gone[name] = frozenset(gone), tuple(prefix for prefix in gone if prefix.endswith("."))
        names, dialects = self._gone[name]
        if not names:
            return
        left = [each for each in ops if each in names or each.startswith(dialects)]
        if left:
            raise AssertionError(f"{min(left)} is left after {name}")
        marks = [mark for stage, mark in HEARD.items() if self.place[stage] <= self.place[name]]
        for op in ops.get("ttl.compute", ()) if marks else ():
            if any(mark in op.attributes for mark in marks):
                raise AssertionError(f"{next(mark for mark in marks if mark in op.attributes)} is left after {name}")

    def done(self, module: ModuleOp) -> frozenset[str]:
        """The passes that IR text has behind it, by what it holds: any stage of the trace is a legal input."""
        ops = operations(module)
        names = {op.name for op in ops}
        marks = {name for op in ops if op.name == "func.func" for name in op.attributes}
        if any(name.startswith("ttkernel.") for name in names):
            return self._up_to("ttkernel-place-inits" if INITS_PLACED in marks else "convert-ttl-to-ttkernel")
        synced = {"ttl-insert-tile-regs-sync"} if "ttl.tile_regs_acquire" in names else set[str]()
        regions = [op for op in ops if op.name == "ttl.compute"]
        if any(_in_dst(op) for op in ops) and not regions and not names & TILE_FORMS:
            # The two documented orders: sync before the loops or after them.
            return self._up_to("ttl-lower-to-loops") - {"ttl-insert-tile-regs-sync"} | synced
        if regions and all(ASSIGNED in op.attributes for op in regions):
            return self._up_to("ttl-tile-and-assign-dst") | synced
        if regions and CONFIGURED in marks:
            return self._up_to("ttl-set-compute-config")
        return frozenset()

    def _up_to(self, name: str) -> frozenset[str]:
        """The passes that turn one stage into the next, to this one."""
        return frozenset(self.order[self.place["convert-ttl-to-compute"] : self.place[name] + 1])

    def unmet(self, name: str, module: ModuleOp) -> tuple[str, Operation] | None:
        """Why a pass cannot run on a module yet, or any more, and where: text may come from any stage, passes in any order."""
        place, calls = self.place[name], self.place["convert-ttl-to-ttkernel"]
        for op in operations(module):
            if op.name.startswith("ttkernel."):
                if place <= calls:
                    return "convert-ttl-to-ttkernel has run already", op
                if name == "ttkernel-place-inits" and op.name == "ttkernel.pack_tile_block":
                    return "ttkernel-combine-pack-tiles has run already", op
            elif op.name.startswith("ttl.") and place > calls and name != "lower-affine":
                return "run convert-ttl-to-ttkernel first", op
            reason = self._unmet(name, op)
            if reason:
                return reason, op
        return None

    def _unmet(self, name: str, op: Operation) -> str:
        place, regions = self.place[name], self.place["convert-ttl-to-compute"]
        if place > regions and op.name.startswith("ttl.") and op.name[4:] in COMPUTED:
            return "run convert-ttl-to-compute first"
        if place > self.place["ttl-set-compute-config"] and op.name in GONE["ttl-set-compute-config"]:
            return "run ttl-split-at-spills first"
        if place > self.place["ttl-accumulate-in-l1"] and op.name in GONE["ttl-accumulate-in-l1"]:
            return "run ttl-accumulate-in-l1 first"
        if op.name == "ttl.compute":
            assigned = ASSIGNED in op.attributes
            if assigned and regions <= place <= self.place["ttl-tile-and-assign-dst"]:
                return "ttl-tile-and-assign-dst has run already"
            if not assigned and name in ("ttl-place-stores", "ttl-insert-tile-regs-sync", "ttl-lower-to-loops"):
                return "run ttl-tile-and-assign-dst first"
            if name in ("ttl-unroll-compute-loops", "convert-ttl-to-ttkernel"):
                return "run ttl-lower-to-loops first"
        if op.name == "func.func" and name == "convert-ttl-to-ttkernel" and _unguarded(op):
            return "run ttl-insert-tile-regs-sync first"
        if op.name == "ttl.dst_tile" or (op.name.startswith("ttl.tile_") and not _in_region(op) and "regs" not in op.name):
            # The sync may come after the loops: that is the second of the two documented orders.
            late = place <= self.place["ttl-lower-to-loops"] and name not in ON_LOOPS
            return "ttl-lower-to-loops has run already" if late else ""
        return ""


def _in_dst(op: Operation) -> bool:
    """A tile in a loop, with its place in DST."""
    parent = op.parent_op()
    if parent is None or parent.name == "ttl.compute":
        return False
    return op.name == "ttl.dst_tile" or (op.name.startswith("ttl.tile_") and "dst_idx" in op.attributes)


def _in_region(op: Operation) -> bool:
    """In an op whose body is about single tiles."""
    parent = op.parent_op()
    while parent is not None and parent.name not in ("ttl.compute", "linalg.generic"):
        if parent.name == "func.func":
            return any(inner.name in ("ttl.get_tile", "ttl.pack_tile") for inner in operations(parent))
        parent = parent.parent_op()
    return True


def _unguarded(function: Operation) -> bool:
    """Tiles are computed, and nobody acquires DST for them."""
    names = {op.name for op in operations(function)}
    computes = any(name.startswith("ttl.tile_") and "regs" not in name for name in names) or "ttl.copy_tile" in names
    return computes and "ttl.tile_regs_acquire" not in names
