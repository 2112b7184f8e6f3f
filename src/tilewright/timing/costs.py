"""What one call costs the engine that executes it: cycles the allocator counts with, and data times of packer and unpacker."""

from __future__ import annotations

import os

from tilewright import timing_constants
from tilewright.dialects.tile_op import Unit, share
from tilewright.program import ComputeConfig
from tilewright.sim.registry import Site
from tilewright.timing.clock import Cost
from tilewright.timing_constants import Constants

STARTS = ("init_sfpu", "unary_op_init_common", "binary_op_init_common", "mm_init", "mm_block_init")
INIT_INSTRUCTIONS, CALL_INSTRUCTIONS, COPY_INSTRUCTIONS, VECTOR_INSTRUCTIONS = 8, 6, 12, 24  # in the queue [count]
INIT_EXECUTED = 0.5  # share of an init that its units execute: 14 instructions in 49 cycles [count]
PUSHED = 0.8  # share of a vector call's cycles in which its RISC-V pushes: the queue keeps the two together [count]
UNKNOWN_CALL = 500.0  # cycles of a vector call that nobody counted: the median of the table
UNKNOWN_INIT = 20.0

# The vendor's switch: its kernel compiler then leaves SFPLOADMACRO out, and so do the costs.
NO_MACROS = "TT_METAL_DISABLE_SFPLOADMACRO"

# Inits whose name is not that of their call with "_init" behind it.
CALL_OF_INIT = {
    "copy_tile_to_dst_init_short": "copy_tile",
    "mm_init_short": "matmul_tiles",
    "matmul_init": "matmul_tiles",
    "mm_block_init_short": "matmul_block",
    "matmul_block_init": "matmul_block",
    "reduce_init": "reduce_tile",
    "reduce_uninit": "reduce_tile",
    "transpose_wh_init_short": "transpose_wh_tile",
}


def _block(site: Site) -> tuple[int, int]:
    """Tiles down and across that a product call makes."""
    return site.attributes.get("rt", 1), site.attributes.get("ct", 1)


def _streamed(site: Site) -> int:
    """Tiles that the unpacker brings for a product call: each of the shorter side, and then all of the longer one."""
    down, across = _block(site)
    return min(down, across) * (1 + max(down, across))


class CallCosts:
    """Costs by site, looked up once each. ``estimated`` names the calls that have no counted or measured cost."""

    def __init__(self, config: ComputeConfig, chip: str, constants: Constants) -> None:
        self.config = config
        self.chip = chip
        self.constants = constants
        self.estimated: dict[str, float] = {}
        self.buffers: dict[int, str] = {}  # by site: the buffer it waits for, pushes or pops
        self._known: dict[int, Cost] = {}
        self._macros = os.environ.get(NO_MACROS, "0") in ("", "0")

    def of(self, site: Site, dtype: str = "bf16") -> Cost:
        """For the engine ``site.role``; ``dtype`` is what the buffer holds that it unpacks or packs."""
        found = self._known.get(site.number)
        if found is None:
            found = self._known[site.number] = self._cost_of(site, self._cycles(site, dtype))
        return found

    def _cost_of(self, site: Site, cycles: float) -> Cost:
        constants = self.constants
        if site.name in STARTS or self._initialised(site) is not None or site.name in timing_constants.cost_data()["control"]:
            # Mostly the RISC-V's own work: configuration words, few instructions. Before it writes the words of a new macro for
            # the matrix unit it waits until the last macro is played.
            macro = site.role == "m" and self._initialised(site) is not None and not self._is_vector(site)
            return Cost(cycles, cycles * INIT_EXECUTED, INIT_INSTRUCTIONS, constants.macro_ahead if macro else None)
        if site.role == "m" and self._is_vector(site):
            # Pushed one by one, or played back: either way the RISC-V is not far ahead. Where its pushing binds, it never is.
            pushed = self._pushed(site)
            issue, executed = (cycles, min(pushed, cycles)) if pushed else (cycles * PUSHED, cycles)
            return Cost(issue, executed, VECTOR_INSTRUCTIONS)
        if site.role == "u" and site.name in timing_constants.COPIES:
            return Cost(constants.copy_issue, cycles, COPY_INSTRUCTIONS)
        if site.role == "u" and "matmul" in site.name:
            return Cost(constants.product_issue, cycles, CALL_INSTRUCTIONS)
        return Cost(min(constants.call_issue, cycles), cycles, CALL_INSTRUCTIONS)

    @staticmethod
    def _is_vector(site: Site) -> bool:
        return site.form is not None and site.form.unit is Unit.SFPU

    def _cycles(self, site: Site, dtype: str) -> float:
        name = site.name
        if name in STARTS:
            return {"u": self.constants.start_unpack, "m": self.constants.start_math, "p": self.constants.start_pack}[site.role]
        if name in timing_constants.cost_data()["control"]:
            control = self._cost(name, ())
            return self._by_role(site, control.math_cycles, control.unpack_cycles, control.pack_cycles)
        call = self._initialised(site)
        if call is not None:
            return self._init(site, call)
        if site.role == "u":
            return self._unpack(site, dtype)
        if site.role == "p":
            return timing_constants.pack_cost(dtype, self.chip).pack_cycles
        return self._math(site)

    def _cost(self, call: str, template: tuple[str, ...]) -> timing_constants.CallCost:
        config = self.config
        return timing_constants.call_cost(
            call, dst32=config.fp32_dest_acc_en, fidelity=config.math_fidelity, chip=self.chip, template=template,
            approx=config.math_approx_mode, macros=self._macros,
        )  # fmt: skip

    def _by_role(self, site: Site, math: float, unpack: float, pack: float) -> float:
        return {"m": math, "u": unpack, "p": pack}[site.role]

    def _initialised(self, site: Site) -> str | None:
        """The call an init prepares."""
        name = site.name
        if name in CALL_OF_INIT:
            return CALL_OF_INIT[name]
        if site.form is not None:
            return site.form.call if name == site.form.init else None
        if name.endswith(("_init", "_init_short")):
            stem = name.removesuffix("_short").removesuffix("_init")
            return stem.replace("_bcast_", "_tiles_bcast_") if "_bcast_" in stem and not stem.startswith("sfpu") else stem
        return None

    def _init(self, site: Site, call: str) -> float:
        try:
            cost = self._cost(call, site.template)
        except KeyError:
            return self._estimate(site, UNKNOWN_INIT)
        return self._by_role(site, cost.init_math_cycles, cost.init_unpack_cycles, cost.init_pack_cycles)

    def _estimate(self, site: Site, cycles: float) -> float:
        self.estimated[site.name] = cycles
        return cycles

    @staticmethod
    def _template(site: Site) -> tuple[str, ...]:
        """The template arguments of a call, also those that the C++ leaves to the API's defaults."""
        defaults = () if site.form is None or site.name != site.form.call else site.form.defaults
        return (*site.template, *defaults[len(site.template) :])

    def _math(self, site: Site) -> float:
        if "matmul" in site.name:
            return timing_constants.product_cycles(self.config.math_fidelity, *_block(site))
        try:
            cost = self._cost(site.name, self._template(site))
        except KeyError:
            return self._estimate(site, UNKNOWN_CALL)
        return cost.math_cycles * share(site.attributes.get("faces", ""))

    def _pushed(self, site: Site) -> float:
        try:
            return self._cost(site.name, self._template(site)).pushed * share(site.attributes.get("faces", ""))
        except KeyError:
            return 0.0

    def switches(self, site: Site) -> float:
        """Cycles in which math waits for the source registers to change hands: by tile for products, by face elsewhere."""
        if "matmul" in site.name:
            down, across = _block(site)
            return down * across * timing_constants.FIDELITY_PHASES[self.config.math_fidelity] * self.constants.bank_switch
        return self.constants.face_switch if site.name.startswith("mul_tiles") or "reuse" in site.name else 0.0

    def _unpack(self, site: Site, dtype: str) -> float:
        constants = self.constants
        reads = timing_constants.cost_data()["reads"].get(timing_constants.RENAMED.get(site.name, site.name), "one")
        ratio = timing_constants.dtype_ratio(reads, dtype, self.chip)
        if "matmul" in site.name:
            return constants.matmul_operand * timing_constants.streamed_share(dtype, self.chip) * _streamed(site)
        return (constants.unpack_pair if reads == "pair" else constants.unpack_tile) * ratio

    def first_operands(self, site: Site, unpack: float) -> float:
        """Cycles until math can begin: a block of products needs two tiles, everything else its tile."""
        if "matmul" not in site.name:
            return unpack
        return unpack * 2 / _streamed(site)
