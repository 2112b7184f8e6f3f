"""``ttl`` ops on circular buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright.dialects.assembly import FlatOp, PlainOp, parse_type, print_attributes, print_type
from tilewright.dialects.ir_types import CBType
from tilewright.dialects.verify import expect, expect_operands

ALIAS_OF = "alias_of"
IN_DST = "ttl.in_dst"  # the value that this buffer is for stays in DST: nothing is written to its blocks
SPILL = "ttl.spill"  # of a buffer through which tiles pass because text says so
CORE_RANGES = "core_ranges"  # of a buffer that only some cores have


class BindCBOp(PlainOp):
    """``%0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>``

    ``alias_of`` names another index over the same memory; both are filled and released together.
    """

    name = "ttl.bind_cb"

    def print(self, printer: Printer) -> None:
        print_attributes(printer, self.attributes)
        printer.print_string(" : ")
        print_type(printer, self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(result_types=[parse_type(parser)], attributes=attributes)

    def verify_(self) -> None:
        kind = self.results[0].type
        expect(self, isinstance(kind, CBType), "gives a circular buffer")
        index = self.attributes.get("cb_index")
        expect(self, isinstance(index, IntegerAttr) and 0 <= index.value.data < 64, "needs a cb_index from 0 to 63")
        factor = self.attributes.get("buffer_factor")
        expect(
            self,
            factor is None or (isinstance(factor, IntegerAttr) and factor.value.data == kind.factor.data),  # pyright: ignore
            "buffer_factor and the type disagree",
        )

    @property
    def cb_index(self) -> int:
        attribute = self.attributes["cb_index"]
        assert isinstance(attribute, IntegerAttr)
        return attribute.value.data

    @property
    def backed(self) -> bool:
        """Whether its memory is a tensor's shard: ``tensor_index``, from tile ``first_tile`` on."""
        return "tensor_index" in self.attributes


class _AcquireOp(FlatOp):
    """``%b = ttl.cb_wait %cb : <…> -> tensor<…>``. ``tiles`` overrides the count when several blocks are held at once."""

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        kind = operands[0].type if operands else None
        if not isinstance(kind, CBType):
            raise ValueError("they follow from a circular buffer")
        return [kind.block_type]

    def verify_(self) -> None:
        expect_operands(self, 1)
        kind = self.operands[0].type
        expect(self, isinstance(kind, CBType), "takes a circular buffer")
        expect(self, len(self.results) == 1, "gives the block")
        assert isinstance(kind, CBType)
        expect(self, self.results[0].type == kind.block_type, f"the block of this buffer is {kind.block_type}")

    @property
    def tiles(self) -> int:
        attribute = self.attributes.get("tiles")
        if isinstance(attribute, IntegerAttr):
            return attribute.value.data
        kind = self.operands[0].type
        assert isinstance(kind, CBType)
        return kind.block_tiles


class CBWaitOp(_AcquireOp):
    """The consumer waits until a block is there."""

    name = "ttl.cb_wait"


class CBReserveOp(_AcquireOp):
    """The producer waits until there is room for a block."""

    name = "ttl.cb_reserve"


class _FinishOp(FlatOp):
    def verify_(self) -> None:
        expect_operands(self, 1)
        expect(self, isinstance(self.operands[0].type, CBType), "takes a circular buffer")


class _ReleaseOp(_FinishOp):
    """Takes the buffer; text may give the block that its acquire gave instead."""

    ACQUIRE: ClassVar[type[_AcquireOp]]

    def verify_(self) -> None:
        if len(self.operands) == 1 and isinstance(self.operands[0].owner, self.ACQUIRE):
            return
        super().verify_()


class CBPushOp(_ReleaseOp):
    """The producer's block is ready."""

    name = "ttl.cb_push"
    ACQUIRE = CBReserveOp


class CBPopOp(_ReleaseOp):
    """The consumer's block may be overwritten."""

    name = "ttl.cb_pop"
    ACQUIRE = CBWaitOp


class PublishCBOp(_FinishOp):
    """``ttl.cb_publish %cb``: hands over all blocks of a buffer at once, with what their memory holds already."""

    name = "ttl.cb_publish"


class AttachCBOp(FlatOp):
    """``%t = ttl.attach_cb %block, %cb``: says which buffer a block lives in; ``tile_offset`` when it is not the first held.

    ``first_tile``: only the block's tiles from there on are meant. ``as_value``: what the block holds there is meant, which stays
    when it is released (``+x``); `passes/validation/eager_values.py` takes these away.
    """

    name = "ttl.attach_cb"

    AS_VALUE: ClassVar[str] = "as_value"

    def verify_(self) -> None:
        expect_operands(self, 2)
        expect(self, isinstance(self.operands[1].type, CBType), "takes a block and its buffer")
        expect(self, self.results[0].type == self.operands[0].type, "gives the block itself")

    @property
    def tile_offset(self) -> int:
        attribute = self.attributes.get("tile_offset")
        return attribute.value.data if isinstance(attribute, IntegerAttr) else 0

    @property
    def first_tile(self) -> int:
        attribute = self.attributes.get("first_tile")
        return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def acquires_below(value: SSAValue) -> list[CBWaitOp | CBReserveOp]:
    """The acquires of all blocks that a value is computed from."""
    found: list[CBWaitOp | CBReserveOp] = []
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        owner = current.owner
        if current in seen or not isinstance(owner, Operation):
            continue
        seen.add(current)
        if isinstance(owner, (CBWaitOp, CBReserveOp)):
            found.append(owner)
        else:
            pending += owner.operands
    return found


BUFFER_OPS: tuple[type[Operation], ...] = (BindCBOp, CBWaitOp, CBReserveOp, CBPushOp, CBPopOp, PublishCBOp, AttachCBOp)
