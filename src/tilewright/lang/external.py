"""Names for C++ of the author's own: the call, what it does to buffers, and what it is given."""

from __future__ import annotations

from typing import Any

from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.names import LanguageFunction
from tilewright.lang.tensors import KernelTensor
from tilewright.records import record


class DFBEffect:
    """What external code does to a buffer by itself: ``ttl.DFBEffect.wait(a_cb, tiles=1)``."""

    reserve, push, wait, pop, repeat = (
        LanguageFunction(f"DFBEffect.{word}") for word in ("reserve", "push", "wait", "pop", "repeat")
    )


class DFBAccess:
    """External code that looks at a block which the thread holds: ``ttl.DFBAccess.inspect(a_cb)``."""

    inspect = LanguageFunction("DFBAccess.inspect")


@record
class Effect:
    word: str
    buffer: CircularBuffer
    tiles: int

    def describe(self) -> str:
        return f"a {self.word} of '{self.buffer.name}'"


@record
class BufferArgument:
    """A buffer as an argument of C++: its number, or a type that tells its number and sizes."""

    buffer: CircularBuffer
    as_type: bool

    def describe(self) -> str:
        return f"buffer '{self.buffer.name}'"


@record
class AddressArgument:
    """Where a tensor starts."""

    tensor: KernelTensor

    def describe(self) -> str:
        return f"the address of '{self.tensor.name}'"


EFFECTS = ("reserve", "push", "wait", "pop")
FUNCTIONS = (
    "call_extern_func", "dfb_descriptor", "get_dfb_id", "raw_addr", "DFBAccess.inspect", "DFBEffect.repeat",
    *(f"DFBEffect.{word}" for word in EFFECTS),
)  # fmt: skip
ARGUMENTS: dict[str, Any] = {"dfb_descriptor": True, "get_dfb_id": False}
