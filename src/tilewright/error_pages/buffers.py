"""Buffers and synchronisation (TW2)."""

from __future__ import annotations

from tilewright.error_pages.page import Code

BUFFERS: dict[str, Code] = {
    "TW201": Code(
        "missing push or pop",
        "A block from reserve() ends with push(), a block from wait() with pop(). A missing one is inserted after the"
        " last use when the block's whole life is in one straight piece of code. Here there is no such single place. "
        "`with buffer.wait() as block:` never forgets.",
    ),
    "TW202": Code(
        "push or pop without a block",
        "push() hands over a block that was reserved, pop() frees a block that was waited for. There is none, it was "
        "already released, or an older block must be released first: buffers are queues. `with` releases by itself at"
        " its end.",
    ),
    "TW203": Code(
        "read of a reserved block",
        "reserve() gives space to write; it holds old data until something is stored or copied to it. Read what you "
        "stored, or wait() for the block after the push.",
    ),
    "TW204": Code(
        "write to a block that is not reserved",
        "wait() gives a block that another thread filled; it may only be read. Reserve a block of the output buffer "
        "and store there.",
    ),
    "TW205": Code(
        "push of a block that was not written",
        "The consumer would read whatever was in memory. Store to the block, or copy tiles into it, on every path "
        "before the push.",
    ),
    "TW206": Code(
        "use after release",
        "After pop() the producer may overwrite the block; after push() it belongs to the consumer. A value that was "
        "computed from the block while it was held (y = x * 2) may be used after that; the block itself may not.",
    ),
    "TW207": Code(
        "more than one producer or consumer",
        "A buffer connects one producing thread with one consuming thread; two writers or two readers would take each"
        " other's blocks. Use one buffer per connection. Cores are judged apart: another core may give the role to "
        "another thread.",
    ),
    "TW208": Code(
        "nobody fills the buffer",
        "A thread waits for blocks of this buffer, but no thread reserves and pushes any: the kernel would hang.",
    ),
    "TW209": Code(
        "nobody reads the buffer",
        "A thread pushes blocks to this buffer, but no thread waits for them: the producer would hang when it is "
        "full, and the work is lost in any case.",
    ),
    "TW210": Code(
        "pushes and waits do not match",
        "On some core the producer pushes another number of blocks than the consumer takes, with the loop bounds and "
        "conditions as they are there. Too few pushes hang the consumer; left-over blocks mean lost work. Use the "
        "same bounds and guards in both threads.",
    ),
    "TW211": Code(
        "deadlock",
        "With buffers of this depth the threads of some core come to a point where each waits for another. The notes "
        "name the lines. A larger block_count helps if one thread runs ahead; a wrong order of waits has to be "
        "changed.",
    ),
    "TW213": Code(
        "wrong block count",
        "block_count (buffer_factor before) is the number of blocks a buffer holds: 1 or more. With 2, producer and "
        "consumer overlap.",
    ),
    "TW214": Code(
        "copy not waited for",
        "A copy only starts a transfer. Its wait() must come before the block is handed over. A missing wait is "
        "inserted before the push or pop of its block; here there is no such place.",
    ),
    "TW215": Code(
        "wrong end of a pipe",
        "Only the source of a pipe sends into it, only its destinations receive from it, and on every core one thread "
        "does each. net.if_src(f) and net.if_dst(f) run f on the right cores.",
    ),
    "TW216": Code(
        "blocks of a pipe do not match",
        "A pipe copies the bytes of a block: both sides need the same block shape and dtype. A multicast writes to one "
        "address, so all its receivers must fill the same buffer and must have pushed equally many blocks of it before.",
    ),
    "TW217": Code(
        "race on a pipe",
        "The next receive of a net was started before the one before it was waited for. A net has one signal per core, "
        "so the two could not be told apart. Wait first, or use a second net.",
    ),
    "TW218": Code(
        "sends and receives do not match",
        "With the loop bounds and conditions of each core, the source of a pipe sends another number of blocks than a "
        "destination receives. One of them would wait for ever. Use the same bounds and ifs on both sides.",
    ),
    "TW219": Code(
        "overwritten in place before it is read",
        "Two buffers share the memory of one shard. A store into one of them overwrites the other tile by tile, so each "
        "tile of the result may only depend on the same tile of the block it replaces, and nothing may read that block "
        "after the store. Store into a buffer of its own instead.",
    ),
    "TW220": Code(
        "buffer used on a core without it",
        "core_ranges of ttl.create_cb says which cores have the buffer; a wait or reserve on another core would use L1 that "
        "belongs to nobody. Widen the ranges, or guard the use by the core's coordinates.",
    ),
}
