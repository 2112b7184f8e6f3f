"""The vector unit: every SFPU form of the op table, by its argument list."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import FILL_REPLAY, WHOLE, Unit, is_approximate, is_narrow
from tilewright.sim.call_parameters import same_variant, variant_of
from tilewright.sim.machine import Machine
from tilewright.sim.numerics.lanes import UnknownOperation
from tilewright.sim.registry import Site, call, earlier, fault, find


@dataclass(frozen=True, slots=True)
class VectorPlan:
    """Which operands of a call are DST slots it reads, and which one it writes."""

    reads: tuple[int, ...]
    writes: int


def plan_of(site: Site) -> VectorPlan:
    assert site.form is not None
    slots = [argument for argument in site.form.args if ":" not in argument]
    reads = tuple(index for index, argument in enumerate(slots) if argument.startswith("d"))
    writes = slots.index("o") if "o" in slots else slots.index("d0")
    return VectorPlan(reads, writes)


def vector_init(machine: Machine, site: Site, *operands: int) -> None:
    machine.vector.ready = True
    if site.form is not None and site.form.stateful:
        machine.vector.owner = site.name
        machine.vector.site = site
        machine.vector.table = site.form.lookup and is_approximate(
            site.form.init_template, site.form.init_defaults, site.template
        )


def need_vector(machine: Machine, site: Site, init: str, *, stateful: bool) -> None:
    """The init the call needs must be the last one that left state; others only need any init."""
    setup = machine.vector
    if stateful and setup.owner != init:
        found = f"the vector unit was last set up by {setup.owner}" if setup.owner else "the vector unit was never set up"
        if setup.site is not None and setup.site.name == init:
            found = "another vector call has overwritten the table in the registers"
        remedy = f"call {init} before it"
        raise fault("TW503", site, f"{found}, not by {init}", help=remedy, notes=earlier("the init that is in force", setup.site))
    if not setup.ready:
        raise fault("TW503", site, "no vector-unit init ran yet", help=f"call {init} before it")


def vector_call(machine: Machine, site: Site, *operands: int) -> None:
    if site.plan is None:
        site.plan = plan_of(site)
    plan: VectorPlan = site.plan
    form = site.form
    assert form is not None
    if form.init:
        need_vector(machine, site, form.init, stateful=form.stateful)
    setup = machine.vector
    exact_exp = site.name == "exp_tile" and not is_approximate(form.template, form.defaults, site.template)
    short = not machine.program.config.fp32_dest_acc_en or is_narrow(form.template, site.template)
    if form.init in FILL_REPLAY or (exact_exp and short):
        machine.matrix["m"].replay_taken = site.name
    if setup.table and setup.owner != form.init:
        setup.owner, setup.table = "", False
    init = setup.site if form.stateful else None
    if init is not None and not same_variant(site, init):
        message = f"{form.init} prepared the {'exact' if variant_of(site, init) else 'approximate'} form"
        remedy = "give call and init the same template arguments"
        raise fault("TW503", site, message, help=remedy, notes=earlier("the init that is in force", init))
    dst = machine.dst
    values = [dst.get(site, operands[index]) for index in plan.reads]
    try:
        result = machine.arithmetic.vector(site, init, values, machine.tile_shape)
    except UnknownOperation as error:
        raise fault("TW514", site, str(error.args[0])) from error
    target = operands[plan.writes]
    part = site.attributes.get("faces", WHOLE)
    if part != WHOLE:
        result = machine.arithmetic.only_faces(part, result, dst.old(site, target))
    dst.put(site, target, result, reduced=any(dst.is_reduced(operands[index]) for index in plan.reads))


@call("copy_dest_values_init", on="m")
def init_copy_dest(machine: Machine, site: Site) -> None:
    machine.vector.ready = True


@call("copy_dest_values", on="m")
def copy_dest(machine: Machine, site: Site, destination: int, source: int) -> None:
    need_vector(machine, site, "copy_dest_values_init", stateful=False)
    if machine.vector.table:
        machine.vector.owner, machine.vector.table = "", False
    if source == destination:  # only sets the address the next broadcast starts from
        return
    value = machine.arithmetic.copy_slot(machine.dst.get(site, source), integer="format" in site.attributes)
    machine.dst.put(site, destination, value, reduced=machine.dst.is_reduced(source))


def register_rows() -> None:
    """Every SFPU form of the table that has no function of its own."""
    for row in tile_ops.ROWS:
        for form in row.forms:
            if form.unit is not Unit.SFPU:
                continue
            if find(form.call, "m") is None:
                call(form.call, on="m")(vector_call)
            if form.init and find(form.init, "m") is None:
                call(form.init, on="m")(vector_init)
