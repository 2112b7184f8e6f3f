"""Every diagnostic code, its title and the page ``tilewright explain CODE`` prints.

TW0xx language, TW1xx shapes and types, TW2xx buffers and synchronisation, TW3xx hardware limits, TW4xx DST, TW5xx found while
running, TW6xx device and environment.
"""

from __future__ import annotations

from tilewright.records import record


@record
class Code:
    title: str
    page: str  # what ``tilewright explain CODE`` prints


# What the language does not take (TW0).
LANGUAGE: dict[str, Code] = {
    "TW001": Code(
        "construct not supported in a kernel",
        "Kernel threads are compiled, not interpreted. They may use assignments, `for … in range(…)`, `if`, `with`, "
        "integer arithmetic, tuples, block expressions and calls to plain helper functions. Move anything else to "
        "host code.",
    ),
    "TW002": Code(
        "unknown name",
        "The name is not a variable of the thread, of the enclosing kernel, of the module, or a Python builtin. "
        "Values of the kernel's body are visible in its threads; values of one thread are not visible in another.",
    ),
    "TW003": Code(
        "unknown function or attribute",
        "ttl.math and ttl.block offer the functions of docs/ops.md. Other Python functions run at compile time and "
        "take plain Python values only: np.exp(block) cannot work, ttl.math.exp(block) does.",
    ),
    "TW004": Code(
        "wrong argument",
        "A function of the language got something it does not take: too many or too few arguments, a number where a "
        "block belongs, or the other way round. The help line says what it takes.",
    ),
    "TW005": Code(
        "recursion",
        "Calls to helper functions are replaced by the helper's body. A helper may call itself, directly or through others,"
        " up to 32 calls deep, if what ends the recursion is known at compile time. Otherwise write a loop over range(…).",
    ),
    "TW006": Code(
        "no source text",
        "Kernels are compiled from their source. Functions typed into a plain `python` prompt or made with exec() "
        "have none, unless the text is registered in linecache. Put the kernel into a file or a notebook cell.",
    ),
    "TW007": Code(
        "must be known at compile time",
        "Core coordinates and loop variables get their values on the device. Tuple indices, steps, shapes and "
        "assertions need values that are the same on every core and in every iteration.",
    ),
    "TW008": Code(
        "not supported yet",
        "The name belongs to the language, but this release does not compile it. Nothing was ignored: the kernel was "
        "not compiled.",
    ),
    "TW009": Code(
        "used in the wrong place",
        "Buffers and threads are made in the body of a kernel, which runs once on the host. Waiting, copying and "
        "arithmetic on blocks happen inside threads, which run on the device. The name was used on the wrong side.",
    ),
    "TW010": Code(
        "threads of a kernel",
        "A core runs one compute thread and two data-movement threads. A kernel has at least one of the three and no "
        "more than that.",
    ),
    "TW012": Code(
        "no single value here",
        "A name was assigned in a branch or loop whose course is known on the device only, and is used where its "
        "value would depend on it. Integers, block values, tensors, slices and buffers may differ by branch if both "
        "branches give the name one; blocks then have the same shape and dtype. Integers may be updated by a loop if they "
        "have a value before it; so may blocks in the compute thread, if the loop keeps their shape and dtype.",
    ),
    "TW013": Code(
        "arithmetic in a data-movement thread",
        "Data-movement processors copy tiles; they have no vector or matrix unit. Compute in the thread marked "
        "@ttl.compute() and pass blocks between the threads through buffers.",
    ),
    "TW014": Code(
        "copy in the compute thread",
        "The compute processors cannot reach memory outside the core. Copy tensor tiles in a thread marked "
        "@ttl.datamovement() and hand them over through a buffer.",
    ),
    "TW015": Code(
        "wrong option",
        "An option of the decorator, of compile() or of the command line is unknown or has a value it cannot have. "
        "All three places use the same names.",
    ),
    "TW016": Code(
        "integer division",
        "Index arithmetic on the device is unsigned. Divisors must be positive. A left side that may be negative is "
        "handled when the divisor is a constant, otherwise add a multiple of the divisor first.",
    ),
    "TW017": Code(
        "Python raised an error at compile time",
        "The kernel's body and everything in a thread that depends on plain Python values is evaluated when the "
        "kernel is compiled. That evaluation raised the exception shown.",
    ),
    "TW018": Code(
        "a statement belongs to two threads",
        "A kernel without @ttl.compute() and @ttl.datamovement() functions is one body, which is cut into threads: copies from "
        "tensors for the reader, copies to tensors for the writer, arithmetic and stores for the compute thread. A statement, "
        "and a block, belong to one of them. Hand data over through a buffer, or write the threads yourself.",
    ),
    "TW019": Code(
        "nothing to tune",
        "@ttl.autotune needs a space with at least one configuration: space={...} with values for each parameter, or "
        "configs=[...]. Each name is a parameter of the kernel, or of the function that makes it, or a compile option. "
        "`where` may refuse configurations, but not all. `key` and the functions name arguments of the call, sizes that "
        "`dims` names, and `chip`.",
    ),
    "TW020": Code(
        "no configuration compiles",
        "Every configuration of a tuned kernel was refused by the compiler. The notes list what it said; `tilewright tune "
        "--verbose` prints the reason of each. Usual causes: blocks that do not divide the tensors, or buffers beyond L1.",
    ),
    "TW021": Code(
        "a configuration leaves out part of the outputs",
        "Blocks that do not divide a tensor make loops end early: the kernel is fast because it does less. The tuner refuses "
        "configurations that write less of the output tensors than others do. Say what is allowed with `where=`.",
    ),
}

# Shapes and types that do not agree (TW1).
SHAPES: dict[str, Code] = {
    "TW101": Code(
        "shapes differ",
        "Blocks combine element by element, so both must have the same number of tiles in each dimension; matmul "
        "needs equal inner sizes. ttl.block.broadcast repeats a row, a column or a tile to a larger block.",
    ),
    "TW102": Code(
        "dtypes differ",
        "Floats of different format combine in the finest, and a store converts between them. Integers and floats, and "
        "integers of different width, do not: convert with ttl.math.typecast, or make the buffer like a tensor of the "
        "right dtype. A copy never converts.",
    ),
    "TW103": Code(
        "slice outside the tensor",
        "Tensor indices count tiles of 32x32 elements: a 128x64 tensor has rows 0 to 3 and columns 0 to 1. Every core"
        " and iteration was checked; the message names one that leaves the tensor. Guard the copy with an if when the"
        " work does not divide evenly, and use the same guard in all threads.",
    ),
    "TW104": Code(
        "slice unlike its block",
        "A copy fills a whole block, so the slice must have exactly as many tiles as the block in each dimension, the"
        " same on every core and in every iteration. tensor[r, c] is one tile; tensor[r:r+2, c:c+2] is 2x2 tiles. A side that"
        " does not divide by 32 ends with a part of a tile, which counts: -(-n // 32) tiles, not n // 32.",
    ),
    "TW105": Code(
        "tensor not tile-aligned",
        "Tiles need two dimensions, none of them empty. Arrays and tiled tensors of any size are padded to multiples of 32; a "
        "row-major tensor has no padding, so its last two dimensions must be multiples of 32 already.",
    ),
    "TW106": Code(
        "not a tensor the compiler takes",
        "Tensors are NumPy arrays (float32, float16, ml_dtypes.bfloat16, int32, uint32, uint16), torch tensors or "
        "ttnn tensors, in tiles or, if they are interleaved and the chip's alignment allows it, row by row. "
        "ttl.bf16(array) uses a float32 array as bfloat16.",
    ),
    "TW107": Code(
        "operation not defined for this dtype",
        "Not every operation exists for every tile format; docs/ops.md lists them. Convert with ttl.math.typecast first.",
    ),
    "TW108": Code(
        "wrong block shape",
        "shape= of a buffer is the size of one block in tiles: positive integers, usually two, for example shape=(2, 2).",
    ),
    "TW109": Code(
        "wrong number of indices",
        "A slice gives one index or range per dimension of the tensor. The last two dimensions are counted in tiles; "
        "of the others one entry at a time can be copied.",
    ),
    "TW110": Code(
        "core outside the grid",
        "The source or a destination of a pipe, or the core of a remote semaphore, is not a core of the kernel's grid. "
        "Coordinates count from 0 in the order of grid=(x, y); the stop of a slice is not part of it. Guard the cores "
        "at the edge with an if.",
    ),
    "TW111": Code(
        "tensor cannot hold a buffer",
        "make_tensor_backed_dfb makes a buffer in the memory of a tensor's shard. The tensor must be in tiles and sharded "
        "over the L1 of cores (height, width or block); every core of the grid must hold a shard, and block_count blocks "
        "of shape tiles, from byte_offset on, must fit into it.",
    ),
    "TW112": Code(
        "reduced or full, depending on when",
        "A reduced block has one element per row or column, which repeats beside full tiles. Which of the two a block is "
        "follows from what was stored into its buffer or sent through its pipe. Here a wait() gets a reduced block in some "
        "iterations or on some cores and a full one in others, and the result would depend on it. Give each its own buffer, "
        "or repeat the element where it is stored: ttl.block.broadcast(x, dims=[1], shape=block.shape).",
    ),
    "TW113": Code(
        "padding at a place that is not known",
        "Tensors whose sides are no multiples of 32 end in padding, and blocks may stick out of a tensor. Elementwise math may "
        "do as it likes there, but a maximum or a sum must not see it, so the compiler puts minus infinity or zero in its "
        "place. For that it must know which elements of the block are padding. It does if the edge is at the same place in "
        "every block of the buffer, and if the block that was read is reduced itself. Here neither holds: the value went "
        "through another buffer or a pipe, or came from blocks whose edges differ. Reduce the block that was read, let one "
        "block hold the whole dimension, or pad the tensor to multiples of 32 with the number that does no harm.",
    ),
    "TW114": Code(
        "blocks that count elements",
        "A buffer made like a row-major tensor, with the tensor's last size as its own last size, counts elements: its blocks "
        "are whole rows, each in a tile of L1 of its own. They are copied, sent through pipes, and taken by elementwise math. A "
        "reduction, a product or a transpose would find other rows and columns than the author means. A buffer in tiles of the "
        "same tensor works for those: the reader makes tiles of the rows. All buffers of one expression are of one kind.",
    ),
    "TW115": Code(
        "tiles of another size",
        "tile= is 32x32, 16x32, 32x16 or 16x16; a tensor has the tiles that ttnn gave it. The smaller ones are copied, sent "
        "through pipes and taken by elementwise math. In 16x32, which is the upper half of a tile, sums along rows, broadcasts "
        "and the left side of products are right, too. What would look at the rest of the tile, or find other rows and columns, "
        "takes tiles of 32x32. All buffers of one expression have the same tiles, but for the right side of a product.",
    ),
}

# Buffers and synchronisation (TW2).
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

# What the hardware cannot hold (TW3) and DST (TW4).
LIMITS: dict[str, Code] = {
    "TW301": Code(
        "too many buffers",
        "A core has a fixed number of circular buffers: 32 on Wormhole, 64 on Blackhole. Buffers of one block shape and dtype "
        "share one where the same two threads fill and empty them, nobody holds blocks of both at once, and blocks leave in the "
        "order in which they came; `tilewright explain` lists which do. If that is not enough: use one shape for more of them, "
        "take blocks in the order in which they are filled, or store fewer values. A region that fits DST only in parts "
        "needs buffers for what its parts hand on; the message says how many, and how many are left.",
    ),
    "TW302": Code(
        "buffers do not fit in L1",
        "All buffers of a core lie in its L1 memory: tiles per block times block_count times bytes per tile. The "
        "notes list each. Use smaller blocks or fewer blocks per buffer.",
    ),
    "TW303": Code(
        "grid does not fit the chip",
        'The grid has more columns or rows than the chip has cores for programs. grid="full" takes all of them.',
    ),
    "TW304": Code(
        "more blocks held than the buffer has",
        "A thread holds several blocks of one buffer at once, more than its block_count. The wait or reserve could never end.",
    ),
    "TW305": Code(
        "too many semaphores",
        "A core has 16 semaphores. Every net takes one for arrivals and one for each pipe of its busiest source; "
        "multicasts share one more. Let several nets be one, or let data travel along a ring or tree.",
    ),
    "TW306": Code(
        "too many run-time arguments",
        "A kernel gets at most 341 words per core: tensor addresses, coordinates, and for a core that is an end of many "
        "pipes the other end of each. Let data travel in two steps.",
    ),
    "TW307": Code(
        "held blocks wrap around",
        "A buffer is a ring of block_count blocks, and the blocks that a thread holds at once are addressed as one piece. "
        "They must not pass the end of the ring. The compiler makes the ring deeper where that helps and L1 has room; this error "
        "means that neither is so. Hold blocks in groups, release a whole group before the next, and make block_count a "
        "multiple of the group.",
    ),
    "TW401": Code(
        "does not fit the DST register file",
        "Every value of a compute region lives in DST (4 to 16 tiles). Tilewright reorders, reloads, recomputes and "
        "splits before it gives up; this error means that one single operation needs more tiles than there are.",
    ),
    "TW402": Code(
        "the allocator's answer failed its check",
        "The register assignment was replayed on a model of DST and an output did not hold the value the source asks "
        "for. This is a defect in Tilewright: please report it with the kernel.",
    ),
    "TW403": Code(
        "faces are read that a confined call left out",
        "A call with ttl.faces computes only the upper left part of a tile (its left or upper half, or one face) and leaves the "
        "rest as it was. Such a value may only be broadcast from its first column, row or element; a product, a reduction, "
        "another thread or a broadcast along the other dimension would read what nobody computed. Remove ttl.faces, or "
        "report it if the compiler wrote it.",
    ),
    "TW404": Code(
        "DST in IR text does not hold together",
        "IR text may come with its DST indices assigned. What an op reads must be what the last op that wrote this index left "
        "there, an op that works in place has the index of its operand, every index is below the capacity, and what is computed "
        "is packed before DST is released. tile_regs_acquire, commit, wait and release follow each other on every path. Leave "
        "the indices and these ops out (the text before ttl-tile-and-assign-dst) to have them chosen.",
    ),
}

# Found while running (TW5); device and environment (TW6).
RUNS: dict[str, Code] = {
    "TW501": Code(
        "deadlock while running",
        "Every processor that has not finished waits for another one. The notes list who waits at which line for "
        "what, how much of it there is, and who could provide it. Typical causes: a wait for more tiles than are ever"
        " pushed, a reserve in a full buffer whose consumer waits too, or a missing push or pop.",
    ),
    "TW502": Code(
        "read of a DST slot that nothing wrote",
        "DST is zeroed when the packer releases it, so an unwritten slot silently reads as zero on the device. Write "
        "the slot between tile_regs_acquire and its use, or use another index.",
    ),
    "TW503": Code(
        "stale or missing init",
        "Each engine keeps the set-up of the last *_init call that touched it. A matrix-unit call needs its own init "
        "as the last one on the unpacker and the matrix unit; a vector-unit call with constants or macros needs its "
        "own init as the last such one; any other vector-unit call needs some *_tile_init before it. After reduce_init the "
        "packer writes zeros outside the result of a reduction until reduce_uninit.",
    ),
    "TW504": Code(
        "DST index outside the acquired section",
        "One acquire gives 8 tiles (16-bit) or 4 (32-bit), twice that with full sync. The device does not check: a "
        "larger index corrupts the other half.",
    ),
    "TW505": Code(
        "circular buffer overrun",
        "A block must lie inside the buffer: pushes and pops have to land exactly on its end in every lap, and nobody"
        " can reserve or wait for more tiles than it holds. Make the block size divide the number of tiles.",
    ),
    "TW506": Code(
        "tile used without waiting for it",
        "A consumer may read only tiles that a cb_wait_front since the last pop has covered; a producer may write "
        "only tiles that a cb_reserve_back covers.",
    ),
    "TW507": Code("push without reserve", "cb_push_back publishes tiles that a cb_reserve_back must have reserved first."),
    "TW508": Code("pop without wait", "cb_pop_front frees tiles that a cb_wait_front must have waited for first."),
    "TW509": Code(
        "DST used outside its section",
        "Math owns a half of DST from tile_regs_acquire to tile_regs_commit, the packer from tile_regs_wait to "
        "tile_regs_release. The two pairs alternate on each processor.",
    ),
    "TW510": Code(
        "transfer not finished",
        "A NoC read has landed only after noc_async_read_barrier; the source of a NoC write may be freed only after "
        "the data has left (noc_async_write_barrier or noc_async_writes_flushed). Put the barrier before the push or "
        "pop.",
    ),
    "TW511": Code(
        "engine configured for another data format",
        "The formats of the two source registers and of the packer are set at start-up and by reconfig_data_format "
        "and pack_reconfig_data_format; *_init calls do not change them. Reconfigure before using a buffer of another"
        " format.",
    ),
    "TW512": Code(
        "tile that nobody wrote",
        "The tile was reserved and pushed, but no transfer and no pack_tile wrote it; on the device it holds whatever was there.",
    ),
    "TW513": Code(
        "transfer outside a tensor or buffer",
        "The page number is outside the tensor, or the L1 address is not the start of a tile of a circular buffer.",
    ),
    "TW514": Code(
        "the simulator cannot run this",
        "The program uses a call, type or layout that the simulator has no model of.",
    ),
    "TW515": Code(
        "two producers or two consumers of one buffer",
        "Read and write pointers belong to one processor each. Give the second one a buffer of its own.",
    ),
    "TW516": Code(
        "arguments do not fit the program",
        "The arrays or numbers given to a simulated call differ in count, shape or dtype from what the program was compiled for.",
    ),
    "TW517": Code(
        "left over at the end of the kernel",
        "A kernel should end with empty buffers, finished transfers and released DST. What is left over does no harm "
        "in the simulator but is a sign of unequal counts, and an unfinished write may be lost on the device.",
    ),
    "TW518": Code(
        "source registers hold other tiles than the operation expects",
        "The unpacker delivered operands for another operation than the one the matrix unit executes: the two "
        "processors disagree on the order of calls.",
    ),
    "TW519": Code(
        "cores race for a tile",
        "Cores run at the same time and in no order. A tile that two of them write ends with the values of whoever comes "
        "last; a tile that one reads and another writes may be read before or after. Split the work with ttl.node(), write "
        "from one core only, or order the cores with pipes or semaphores.",
    ),
    "TW520": Code(
        "an erratum of the chip changed results",
        "When a sum in a 32-bit DST cancels to minus one unit of its 24-bit grid, Wormhole's matrix unit gives -2^4 times the "
        "scale of the sum instead: a result near 0 becomes -8, -32 or -128. Blackhole computes it right. In six products of "
        "2048x2048x2048 bf16 numbers it met 6 of 25 million results at HiFi4, at most 2 in one, and at LoFi, HiFi2 and HiFi3 "
        "none; HiFi3 is as accurate for bf16 (3.2e-4 instead of 3.1e-4 rms). Another order of K, or partial sums, move it to "
        "other results. A 16-bit DST does not have it, at 2.4e-2 rms. The simulator and the native run compute again without "
        "the erratum when it struck, and report the results that differ.",
    ),
    "TW521": Code(
        "a number from data is outside its bounds",
        "The kernel reads an element as an integer (ttl.read_index) and says how large it can be with low= and high=, both "
        "included; without them it is from 0 to 2**31 - 1. Slices and loops were checked for those numbers only. Give data that "
        "keeps to them, or declare what the data can be.",
    ),
    "TW522": Code(
        "external code has no meaning in the simulator",
        "ttl.call_extern_func runs C++ of the author's own. The simulator knows what it does to buffers, as declared, but not "
        "what it computes. meaning= is a function of NumPy arrays: it is given the blocks that the code waits for, then the "
        "integers of func_args that a core computes, and returns the blocks that it pushes. A native run (--native) executes "
        "the C++ itself.",
    ),
    "TW523": Code(
        "a breakpoint that does not stop",
        "breakpoint() in a thread stops the simulator, with the blocks, DST and the buffers at hand. In C++ it is a comment: a "
        "native run and a device go on. Leave out --native to stop, or print the block: print(block) works in both.",
    ),
    "TW601": Code(
        "a package is not installed",
        "The script or the option needs a package that this Python does not have. Tilewright itself needs neither "
        "torch nor ttnn; `tilewright doctor` lists what is here and what each missing piece would give.",
    ),
    "TW602": Code(
        "no device to run on",
        "`--device` and calls with ttnn tensors go through the installed ttnn to a Tenstorrent card. Without one, "
        "leave the option out: the simulator is the default.",
    ),
    "TW603": Code(
        "the text is not valid MLIR",
        "`tilewright opt` and `tilewright compile FILE.mlir` read the ttl and ttkernel dialects with builtin, func, "
        "arith, scf, affine and tensor. The message names the line and what was expected there.",
    ),
    "TW604": Code(
        "unknown pass, or one out of its order",
        "Passes are named as in the pipeline; `tilewright opt --list` prints them in their order. `ttl-assign-dst` is accepted "
        "for `ttl-tile-and-assign-dst`. A pass that `tilewright opt` runs needs what the passes before it leave: the message "
        "names the one to run first, or the one that has run already.",
    ),
    "TW605": Code(
        "the script itself failed",
        "Python raised this in the script's own code, outside of any kernel: a name it does not know, a package that is not "
        "there, an assertion about a result. The message names the line; the notes are the calls that led there, outermost "
        "last. `--verbose` prints Python's traceback.",
    ),
    "TW606": Code(
        "ttnn did not run the kernel",
        "ttnn took the program and could not build or launch it. The message has its reason, or what its compiler said about the "
        "kernel files. `tilewright compile` writes these files; that the installed ttnn cannot build them is a defect in "
        "Tilewright, unless the release was chosen by hand with `--metal`.",
    ),
    "TW607": Code(
        "a package cannot be used",
        "`tilewright.load` runs what `tilewright build` wrote. Every file in the package has a checksum: one that was changed, "
        "cut or lost is refused, and so is a package of another version of Tilewright. A kernel in it runs for the shapes and "
        "dtypes that the script called it with when the package was built; the message lists them.",
    ),
    "TW608": Code(
        "a question that has no verdict",
        "`tilewright score` needs two files that fit together: a kernel file with one kernel or a function `run(*inputs)`, and a "
        "reference file with a function `reference(*inputs)` and the shapes of its inputs. The message says what is missing.",
    ),
    "TW609": Code(
        "no cluster to tune on",
        "`tilewright tune --scheduler tcp://HOST:PORT` hands configurations to a Dask cluster. It needs dask.distributed "
        "(pip install 'tilewright[cluster]'), a scheduler that answers at that address, at least one worker, and the same "
        "release of Tilewright on the workers. Without the option the processors of this machine are used.",
    ),
    "TW610": Code(
        "a kernel_artifact cannot say this",
        "`tilewright build --artifact` writes what tt-mlir launches for a TT-Lang operation. Version 1 of that format has one "
        "rectangle of cores, buffers in L1 of their own, and the same arguments for every core. It has no semaphores, no numbers "
        "per core or per call, no buffers in shards and no unpacking to DST. The message names what the kernel needs; without "
        "`--artifact` the package runs on a device by itself.",
    ),
}

CODES: dict[str, Code] = {**LANGUAGE, **SHAPES, **BUFFERS, **LIMITS, **RUNS}
