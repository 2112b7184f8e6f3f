"""Found while running (TW5); device and environment (TW6)."""

from __future__ import annotations

from tilewright.error_pages.page import Code

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
}
