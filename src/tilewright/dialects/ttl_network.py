"""``ttl`` ops through which cores talk: pipes, semaphores, and numbers that differ from core to core."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import traits_def
from xdsl.traits import Pure

from tilewright.dialects.assembly import ONE_INDEX, FlatOp, Operand, expect, integer, mark, text
from tilewright.dialects.attributes import PipeType, SemaphoreType, SliceAttr, i64_attr, int_value, is_array_attr, text_value
from tilewright.grid import NetSpec, PipeSpec

NET = "tilewright_net"


def nested_attr(value: Any) -> Attribute:
    """Integers in lists of lists."""
    if isinstance(value, int):
        return i64_attr(value)
    return ArrayAttr([nested_attr(item) for item in value])


def is_range(given: Attribute) -> bool:
    """``[start, stop, step]`` or ``#ttl.slice<start, stop, step>``; the step may be left out."""
    if isinstance(given, SliceAttr):
        numbers: list[int] = list(nested_value(given))
    else:
        items = list(given) if is_array_attr(given) else []
        numbers = [item.value.data for item in items if isinstance(item, IntegerAttr)]
        if len(numbers) != len(items):
            return False
    return len(numbers) in (2, 3) and 0 <= numbers[0] < numbers[1] and min(numbers[2:], default=1) > 0


def are_places(given: Attribute | None, *, low: int = 0) -> bool:
    """``[x, y]``: up to three numbers."""
    if not is_array_attr(given) or not 1 <= len(given) <= 3:
        return False
    return all(isinstance(item, IntegerAttr) and item.value.data >= low for item in given)


def nested_value(attribute: Attribute | None) -> Any:
    if is_array_attr(attribute):
        return tuple(nested_value(item) for item in attribute)
    if isinstance(attribute, SliceAttr):
        return (attribute.start.data, attribute.stop.data, attribute.step.data)
    assert isinstance(attribute, IntegerAttr), attribute
    return attribute.value.data


class CoreTableOp(FlatOp):
    """``%n = ttl.core_table {name = "partner", values = [[1], [0]]} : index``: one number per core, by core number.

    With an operand, the core's list is indexed by it.
    """

    name = "ttl.core_table"
    traits = traits_def(Pure())
    GIVES = ONE_INDEX
    position = Operand(0)  # if there is one
    table_name = text("name", "number")

    def verify_(self) -> None:
        expect(self, len(self.operands) <= 1, "takes at most an index into the core's numbers")
        super().verify_()
        expect(self, isinstance(self.attributes.get("values"), ArrayAttr), "needs values, a list per core")

    @property
    def values(self) -> tuple[tuple[int, ...], ...]:
        return nested_value(self.attributes["values"])


class RuntimeArgumentOp(FlatOp):
    """``%n = ttl.argument {name = "n", low = 0, high = 64, given = 8} : index``: an integer given when the kernel is called.

    ``given`` is one such value, by which loops can be checked before the run.
    """

    name = "ttl.argument"
    TAKES = 0
    GIVES = ONE_INDEX
    traits = traits_def(Pure())

    def verify_(self) -> None:
        super().verify_()
        expect(self, isinstance(self.attributes.get("name"), StringAttr), "needs a name")

    @property
    def bounds(self) -> tuple[int, int]:
        return int_value(self, "low", 0), int_value(self, "high", 2**31 - 1)

    @property
    def given(self) -> int | None:
        return int_value(self, "given", -1) if "given" in self.attributes else None

    @property
    def checked_value(self) -> int | None:
        """The value slices are checked with: the largest, if the user set one, else the one given."""
        return self.bounds[1] if self.bounds[1] < 2**31 - 1 else self.given


class WaitAnyOp(FlatOp):
    """``%k = ttl.wait_any %start, %t0, %t1 : index, !ttl.transfer_handle, … -> index``: which receive has arrived.

    The first that has, looked for from number ``start`` on and around. It stays to be waited for.
    """

    name = "ttl.wait_any"
    GIVES = ONE_INDEX
    start = Operand(0)

    def verify_(self) -> None:
        expect(self, len(self.operands) >= 2, "takes a number and receives")
        super().verify_()

    @property
    def bounds(self) -> tuple[int, int]:
        return 0, len(self.operands) - 2


class NetPipeOp(FlatOp):
    """``%p = ttl.net_pipe %k {net = 0 : i32, side = "src", src_cores = …, dst_core_ranges = …} : index -> !ttl.pipe``

    The k-th pipe (without an operand, the first) of the net that has this core at the given side. Ranges are ``[start, stop,
    step]`` per dimension.
    """

    name = "ttl.net_pipe"
    traits = traits_def(Pure())
    GIVES = (PipeType, "gives a pipe")
    number = Operand(0)  # if there is one
    side = text("side")

    def verify_(self) -> None:
        expect(self, len(self.operands) <= 1, "takes at most the number of the pipe")
        super().verify_()
        expect(self, self.side in ("src", "dst"), "side is src or dst")
        for key in ("src_cores", "dst_core_ranges"):
            expect(self, isinstance(self.attributes.get(key), ArrayAttr), f"needs {key}")

    @property
    def net(self) -> NetSpec:
        known: NetSpec | None = getattr(self, NET, None)
        if known is None:  # nets of a large grid have many pipes, and passes ask often
            known = _net(self)
            setattr(self, NET, known)
        return known


def _net(op: NetPipeOp) -> NetSpec:
    number, single = int_value(op, "net"), "unicast" in op.attributes
    sources, targets = nested_value(op.attributes["src_cores"]), nested_value(op.attributes["dst_core_ranges"])
    pipes = tuple(PipeSpec(source, target, single) for source, target in zip(sources, targets, strict=True))
    return NetSpec(number, text_value(op, "name", f"net{number}"), pipes)


A_SEMAPHORE = (SemaphoreType, "gives a semaphore")


class CreateSemaphoreOp(FlatOp):
    """``%s = ttl.create_semaphore {initial_value = 0 : i32, number = 0 : i32, name = "go"} : !ttl.semaphore``

    ``is_remote``: whether other cores reach it; text that says no may not.
    """

    name = "ttl.create_semaphore"
    TAKES = 0
    TAKES_OPERANDS = False
    GIVES = A_SEMAPHORE
    initial = integer("initial_value")
    number = integer("number", 0)

    def verify_(self) -> None:
        super().verify_()
        initial = self.attributes.get("initial_value")
        expect(self, isinstance(initial, IntegerAttr), "needs initial_value")
        assert isinstance(initial, IntegerAttr)
        expect(self, 0 <= initial.value.data < 2**32, "initial_value is a count of 32 bits")
        remote = any(isinstance(use.operation, REMOTE_SEMAPHORES) for use in self.results[0].uses)
        expect(self, "is_remote" not in self.attributes or remote == bool(int_value(self, "is_remote", 2)), IS_REMOTE)

    @property
    def semaphore_name(self) -> str:
        return text_value(self, "name", f"semaphore{self.number}")


class GetRemoteSemaphoreOp(FlatOp):
    """``%r = ttl.get_remote_semaphore %s, %x, %y``: the counter of another core. Text may give ``core = [x, y]`` instead."""

    name = "ttl.get_remote_semaphore"
    GIVES = A_SEMAPHORE
    semaphore = Operand(0)

    def verify_(self) -> None:
        expect(self, bool(self.operands) and isinstance(self.semaphore.type, SemaphoreType), "takes a semaphore")
        super().verify_()
        given = "core" in self.attributes
        expect(self, not given or are_places(self.attributes["core"]), "core is a list of coordinates")
        expect(self, given != (len(self.operands) > 1), "needs the core, as operands or as the attribute core")
        for operand in self.operands[1:]:
            expect(self, isinstance(operand.type, IndexType), "coordinates are of type index")


class GetRemoteMulticastSemaphoreOp(FlatOp):
    """``%r = ttl.get_remote_multicast_semaphore %s {core_range = [[0, 8, 1], [0, 1, 1]]}``: those of a range; all without one."""

    name = "ttl.get_remote_multicast_semaphore"
    TAKES = 1
    GIVES = A_SEMAPHORE
    semaphore = Operand(0, SemaphoreType, "takes a semaphore")

    def verify_(self) -> None:
        super().verify_()
        given = self.attributes.get("core_range")
        ranges = given is None or (is_array_attr(given) and all(map(is_range, given)))
        expect(self, ranges, "core_range is a list of [start, stop, step], one per dimension")


REMOTE_SEMAPHORES = (GetRemoteSemaphoreOp, GetRemoteMulticastSemaphoreOp)
IS_REMOTE = "is_remote is true where another core's counter is asked for, and false where none is"


class _SemaphoreChangeOp(FlatOp):
    """``name %s, %value : !ttl.semaphore, index``"""

    TAKES = 2
    semaphore = Operand(0, SemaphoreType, "takes a semaphore")
    value = Operand(1, IndexType, "the value is of type index")


class SemaphoreSetOp(_SemaphoreChangeOp):
    name = "ttl.semaphore_set"


class SemaphoreIncOp(_SemaphoreChangeOp):
    name = "ttl.semaphore_inc"

    def verify_(self) -> None:
        super().verify_()
        owner = self.semaphore.owner
        expect(self, not isinstance(owner, GetRemoteMulticastSemaphoreOp), "semaphores of a range can be set, not increased")


class SemaphoreWaitOp(_SemaphoreChangeOp):
    """``ttl.semaphore_wait %s, %value {at_least}``: this core's counter is the value, or not below it."""

    name = "ttl.semaphore_wait"
    at_least = mark("at_least")

    def verify_(self) -> None:
        super().verify_()
        expect(self, isinstance(self.semaphore.owner, CreateSemaphoreOp), "a core waits for its own semaphore only")


NETWORK_OPS: tuple[type[Operation], ...] = (
    WaitAnyOp, CoreTableOp, RuntimeArgumentOp, NetPipeOp, CreateSemaphoreOp, GetRemoteSemaphoreOp, GetRemoteMulticastSemaphoreOp,
    SemaphoreSetOp, SemaphoreIncOp, SemaphoreWaitOp,
)  # fmt: skip
