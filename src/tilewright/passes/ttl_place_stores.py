"""What each region hands to the packer, as stores behind it.

Requires: DST assigned. Ensures: every result of a region is stored; of a section (regions around and in a loop that share one
acquire) only the last regions, behind the loop, are. Text may have its stores already.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.ttl import StoreOp, compute_functions
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import insert_after, of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.running_values import SECTION, ends_of, sections_of

NAME = "ttl-place-stores"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        regions = of_kind(function, ComputeOp)
        for region in regions:
            if SECTION not in region.attributes:
                _insert_stores([region], region)
        for section in sections_of(regions):
            ends = ends_of(section)
            _insert_stores(ends, ends[-1])


def _insert_stores(regions: list[ComputeOp], after: ComputeOp) -> None:
    stores = [
        StoreOp.create(operands=[result, target], location=region.location)
        for region in regions
        for result, target in zip(region.results, region.outputs, strict=True)
        if result.first_use is None
    ]
    insert_after(stores, after)
