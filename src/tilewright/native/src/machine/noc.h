#pragma once
#include "scheduler.h"

namespace tw {

// A transfer under way must not be overtaken: pages pushed before their reads landed, popped before their writes left.
void check_reads_landed(const Thread& thread, u32 l1, u32 bytes, Loc at);
void check_writes_sent(const Thread& thread, u32 l1, u32 bytes, Loc at);
void finish_transfers(Thread& thread);  // at the end of a kernel
[[noreturn]] void halt_run();           // the kernel cannot go on at all

}  // namespace tw
