"""The object spelling of the kernel API (Device 2.0): ``Noc``, ``CircularBuffer`` and ``Semaphore`` instead of free functions.

Numbers stay what they are: compute calls name buffers by number, and places of semaphores are computed with. An object stands
beside the number it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from tilewright.dialects.attributes import int_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.emit.arguments import claim
from tilewright.emit.statements import word_arguments

FIRST_RELEASE = (0, 81)  # whose headers have all of it
BUFFER_METHODS = {
    "cb_wait_front": "wait_front",
    "cb_pop_front": "pop_front",
    "cb_reserve_back": "reserve_back",
    "cb_push_back": "push_back",
}
BARRIERS = ("noc_async_read_barrier", "noc_async_write_barrier", "noc_async_writes_flushed", "noc_async_atomic_barrier")
READ_ID_BARRIER = "noc_async_read_barrier_with_trid"  # the id is set by a free function, once for all reads of a block
OWN_SEMAPHORE = {"noc_semaphore_set": "set", "noc_semaphore_wait": "wait", "noc_semaphore_wait_min": "wait_min"}
NOC_CALLS = (
    *BARRIERS, "noc_async_read_page", "noc_async_write_page", "noc_async_read_tile_rows", "noc_async_write_tile_rows",
    "noc_async_write", "noc_async_read", "noc_async_write_multicast", "noc_async_write_multicast_loopback_src",
    "noc_semaphore_inc", "noc_semaphore_set_remote", "noc_semaphore_set_multicast", "noc_semaphore_set_multicast_loopback_src",
)  # fmt: skip
SEMAPHORE_CALLS = (*OWN_SEMAPHORE, *(name for name in NOC_CALLS if name.startswith("noc_semaphore")))


def includes(calls: Sequence[KernelCallOp], *, computes: bool) -> list[str]:
    """Header lines beside those of the other spelling."""
    names = {op.CALL.name for op in calls}
    found = ["api/dataflow/circular_buffer.h"] if names & {*BUFFER_METHODS, "get_write_ptr", "get_read_ptr"} else []
    if not computes and names & {*NOC_CALLS}:
        found += ["api/core_local_mem.h", "api/dataflow/endpoints.h", "api/dataflow/noc.h", "api/tensor/noc_traits.h"]
    if names & {*SEMAPHORE_CALLS}:
        found.append("api/dataflow/noc_semaphore.h")
    return [f'#include "{path}"' for path in sorted(found)]


def local(address: str) -> str:
    return f"CoreLocalMem<uint32_t>({address})"


def transfer(name: str, address: str, l1: str, size: str) -> str:
    """A transfer whose NoC address is known already."""
    far, near = ("PrecomposedUnicastEndpoint()", f"{{.noc_addr = {address}}}"), (local(l1), "{}")
    first, second = (far, near) if name == "noc_async_read" else (near, far)
    return f"noc.{name.removeprefix('noc_')}({first[0]}, {second[0]}, {size}, {first[1]}, {second[1]})"


class Objects:
    """Objects of one kernel file."""

    def __init__(self, text: Callable[[SSAValue], str]) -> None:
        self.text = text
        self._of: dict[SSAValue, str] = {}

    def lines(self, calls: Sequence[KernelCallOp], used: set[str]) -> list[str]:
        """Declarations; the numbers they are made of have been declared."""
        found: list[str] = []
        if any(op.CALL.name in NOC_CALLS for op in calls):
            used.add("noc")
            found.append("Noc noc;")
        for op in calls:
            kind = {"get_compile_time_arg_val": "CircularBuffer", "get_semaphore": "Semaphore"}.get(op.CALL.name)
            if kind is None or not self._needs_object(op.results[0]) or op.operands:
                continue
            number = self.text(op.results[0])
            name = self._of[op.results[0]] = claim(f"{number}_{'cb' if kind == 'CircularBuffer' else 'semaphore'}", used)
            made_of = number if kind == "CircularBuffer" else str(int_value(op, "index"))
            found.append(f"{kind} {name}({made_of});")
        return found

    def _needs_object(self, number: SSAValue) -> bool:
        for use in number.uses:
            op = use.operation
            if not isinstance(op, KernelCallOp):
                continue
            if op.CALL.name in (*BUFFER_METHODS, *SEMAPHORE_CALLS, "get_write_ptr", "get_read_ptr"):
                return True
            if op.CALL.name in ("get_noc_addr", "get_noc_multicast_addr"):
                users = [each.operation for each in op.results[0].uses]
                if any(isinstance(user, KernelCallOp) and user.CALL.name in SEMAPHORE_CALLS for user in users):
                    return True
        return False

    def pointer(self, op: KernelCallOp) -> str:
        """``get_write_ptr`` and ``get_read_ptr``."""
        return f"{self._of[op.operands[0]]}.{op.CALL.name}()"

    def call(self, op: KernelCallOp) -> str | None:
        """The statement, or None for a call that is spelled as before."""
        name = op.CALL.name
        if name in BUFFER_METHODS:
            return f"{self._of[op.operands[0]]}.{BUFFER_METHODS[name]}({self.text(op.operands[1])})"
        if name in BARRIERS:
            return f"noc.{name.removeprefix('noc_')}()"
        if name == READ_ID_BARRIER:
            return f"noc.async_read_barrier<NocOptions::TXN_ID>({{.trid = {self.text(op.operands[0])}}})"
        if name in OWN_SEMAPHORE:
            number = word_arguments(name, [self.text(operand) for operand in op.operands])[1]
            return f"{self._semaphore(op.operands[0])}.{OWN_SEMAPHORE[name]}({number})"
        spelled = {
            "noc_async_read_page": self._page, "noc_async_write_page": self._page, "noc_async_write": self._core,
            "noc_async_read": self._core, "noc_async_write_multicast": self._multicast,
            "noc_async_write_multicast_loopback_src": self._multicast, "noc_semaphore_inc": self._increment,
            "noc_semaphore_set_remote": self._relay, "noc_semaphore_set_multicast": self._relay,
            "noc_semaphore_set_multicast_loopback_src": self._relay,
        }.get(name)  # fmt: skip
        return spelled(op) if spelled is not None else None

    def _page(self, op: KernelCallOp) -> str:
        page, tensor, address = (self.text(operand) for operand in op.operands)
        size = f"{tensor}.get_aligned_page_size()"
        if op.CALL.name == "noc_async_read_page":
            return f"noc.async_read({tensor}, {local(address)}, {size}, {{.page_id = {page}}}, {{}})"
        return f"noc.async_write({local(address)}, {tensor}, {size}, {{}}, {{.page_id = {page}}})"

    def _core(self, op: KernelCallOp) -> str:
        reads = op.CALL.name == "noc_async_read"
        far, near = (op.operands[0], op.operands[1]) if reads else (op.operands[1], op.operands[0])
        x, y, target = (self.text(operand) for operand in _address(far).operands)
        place, size = f"{{.noc_x = {x}, .noc_y = {y}, .addr = {target}}}", self.text(op.operands[2])
        if reads:
            return f"noc.async_read(UnicastEndpoint(), {local(self.text(near))}, {size}, {place}, {{}})"
        return f"noc.async_write({local(self.text(near))}, UnicastEndpoint(), {size}, {{}}, {place})"

    def _multicast(self, op: KernelCallOp) -> str:
        source, address, size, count = op.operands
        *corners, target = (self.text(operand) for operand in _address(address).operands)
        fields = zip(("noc_x_start", "noc_y_start", "noc_x_end", "noc_y_end", "addr"), (*corners, target), strict=True)
        place = f"{{{', '.join(f'.{field} = {text}' for field, text in fields)}}}"
        options = "<NocOptions::MCAST_INCL_SRC>" if op.CALL.name.endswith("loopback_src") else ""
        words = [local(self.text(source)), "MulticastEndpoint()", self.text(size), self.text(count), "{}", place]
        return f"noc.async_write_multicast{options}({', '.join([*words, *_linked(op)])})"

    def _increment(self, op: KernelCallOp) -> str:
        x, y, target = _address(op.operands[0]).operands
        return f"{self._semaphore(target)}.up(noc, {self.text(x)}, {self.text(y)}, {self.text(op.operands[1])})"

    def _relay(self, op: KernelCallOp) -> str:
        """The level of a semaphore of this core goes to another one, of one core or of many."""
        *corners, target = _address(op.operands[1]).operands
        places = [self.text(corner) for corner in corners]
        source = self._semaphore(op.operands[0])
        if op.CALL.name == "noc_semaphore_set_remote":
            return f"{source}.relay_unicast(noc, {', '.join([self._semaphore(target), *places])})"
        words = [*places, self.text(op.operands[2]), *_linked(op)]
        options = "<NocOptions::MCAST_INCL_SRC>" if op.CALL.name.endswith("loopback_src") else ""
        return f"{source}.relay_multicast{options}(noc, {', '.join([self._semaphore(target), *words])})"

    def _semaphore(self, value: SSAValue) -> str:
        if value in self._of:
            return self._of[value]
        op = value.owner
        assert isinstance(op, KernelCallOp) and op.CALL.name == "get_semaphore"
        return f"Semaphore({int_value(op, 'index')} + {self.text(op.operands[0])})"


def _address(value: SSAValue) -> KernelCallOp:
    op = value.owner
    assert isinstance(op, KernelCallOp), "addresses stand where they are used"
    return op


def _linked(op: KernelCallOp) -> list[str]:
    return ["true"] if "linked" in op.attributes else []
