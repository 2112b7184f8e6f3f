"""The listings of the specification parse, verify, print and come back the same."""

from __future__ import annotations

import lowering_stages
import pytest
from xdsl.context import Context
from xdsl.parser import Parser

from tilewright.dialects.text_input import check_dominance, load_dialects

STAGES = range(1, 8)


def parse(text: str):
    return Parser(load_dialects(Context()), text).parse_module()


def text_of(stage: int) -> str:
    return lowering_stages.module(stage, lowering_stages.listing(stage))


@pytest.mark.parametrize("stage", STAGES)
def test_listing_round_trips(stage):
    module = parse(text_of(stage))
    module.verify()
    check_dominance(module)
    printed = str(module)
    again = parse(printed)
    again.verify()
    assert str(again) == printed
    assert [op.name for op in again.walk()] == [op.name for op in module.walk()]


@pytest.mark.parametrize("stage", STAGES)
def test_generic_form_is_the_same_module(stage):
    """What `xdsl-opt --print-op-generic` writes is read back to the same ops, attributes and types."""
    from io import StringIO

    from xdsl.printer import Printer

    module = parse(text_of(stage))
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    assert module.is_structurally_equivalent(parse(stream.getvalue()))


@pytest.mark.parametrize(("written", "is_set"), [("false", False), ("true", True)])
def test_pack_order_as_the_listings_write_it(written, is_set):
    cb = "!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>"
    module = parse(
        f"""func.func @f(%i : index, %cb : {cb}) {{
          ttkernel.pack_tile(%i, %cb, %i, {written}) : (index, {cb}, index) -> ()
          return
        }}"""
    )
    (pack,) = [op for op in module.walk() if op.name == "ttkernel.pack_tile"]
    assert ("out_of_order" in pack.attributes) is is_set
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize(
    "text",
    [
        "!ttcore.tile<32x32, bf16>",
        "!ttcore.tile<32x32, f32>",
        "!ttcore.tile<32x32, bfp8_b>",
        "!ttcore.tile<32x32, u16>",
        "!ttl.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>",
        "!ttkernel.cb<[1, 8], !ttcore.tile<32x32, f32>, 3>",
        '!ttl.accessor<[4, 4], !ttcore.tile<32x32, bf16>, "dram">',
        '!ttl.slice<[2, 2], !ttcore.tile<32x32, bf16>, "l1">',
        "!ttl.dst",
        "!ttl.transfer",
        "!ttl.semaphore",
        "#ttkernel.thread<compute>",
        "#ttkernel.thread<noc>",
    ],
)
def test_types_and_attributes_round_trip(text):
    context = load_dialects(Context())
    attribute = Parser(context, text).parse_attribute()
    assert str(attribute) == text
    assert Parser(context, str(attribute)).parse_attribute() == attribute
