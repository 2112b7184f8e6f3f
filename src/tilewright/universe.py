"""Our dialects and passes for xDSL's own tools: ``xdsl-opt`` finds them through this entry point."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from tilewright.pipeline import PASS_NAMES, run

LOWER_AFFINE = "lower-affine"  # xDSL has it under this name


def _ttl() -> Dialect:
    from tilewright.dialects.text_input import TTL

    return TTL


def _ttkernel() -> Dialect:
    from tilewright.dialects.text_input import TTKernel

    return TTKernel


def _ttcore() -> Dialect:
    from tilewright.dialects.attributes import TTCore

    return TTCore


def _pass(name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        def apply(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
            from tilewright.hardware import WORMHOLE_B0
            from tilewright.options import Options
            from tilewright.passes.context import PassContext

            run(op, PassContext(options=Options(), chip=WORMHOLE_B0), [name], check=False)

        words = "".join(word.capitalize() for word in name.split("-"))
        return type(f"{words}Pass", (ModulePass,), {"name": name, "apply": apply})

    return load


TILEWRIGHT_UNIVERSE = Universe(
    all_dialects={"ttl": _ttl, "ttkernel": _ttkernel, "ttcore": _ttcore},
    all_passes={name: _pass(name) for name in PASS_NAMES if name != LOWER_AFFINE},
)
