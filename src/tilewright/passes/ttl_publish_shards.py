"""Hands over what a shard holds from the start, where no thread does.

A buffer that lies in a tensor's shard needs nobody to fill it, but its reader waits for blocks. Requires: buffers are bound in
every thread that uses them. Ensures: a buffer in a shard that is read and that no thread fills is published by its reader.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.ttl_buffers import PublishCBOp
from tilewright.dialects.walking import line_of
from tilewright.passes.buffers import binds_of, buffers_of, functions_of
from tilewright.passes.context import PassContext

NAME = "ttl-publish-shards"


def run(module: ModuleOp, context: PassContext) -> None:
    if not any(bind.backed for function in functions_of(module) for bind in binds_of(function)):
        return
    for buffer in buffers_of(module).values():
        if not buffer.backed or buffer.producers or not buffer.consumers:
            continue
        reader = buffer.consumers[0]
        binds = binds_of(reader)
        bind = next(bind for bind in buffer.binds if bind in binds)
        publish = PublishCBOp.create(operands=[bind.results[0]], location=bind.location)
        reader.body.block.insert_op_after(publish, max(binds, key=lambda op: op.cb_index))
        context.trace.decide(
            NAME,
            f"publish() of '{buffer.name}' inserted at the start of '{reader.sym_name.data}'",
            "no thread fills the buffer, and its shard holds data already",
            place=f"line {line_of(bind)}",
        )
