// Threads of the modelled cores. They run one at a time and change places only when one must wait, so a run is reproducible
// and "nobody can go on" is seen at once.
#pragma once
#include <ucontext.h>

#include <string>

#include "machine.h"

namespace tw {

struct Wait {
    const char* call = "";  // API function
    std::string (*describe)(void*) = nullptr;  // what it waits for, as it stands now
    void* describe_state = nullptr;
    Loc at{0, ""};
    Buffer* buffer = nullptr;  // of cb_wait_front and cb_reserve_back
    u32 pages = 0;
    bool space = false;
};

struct Thread {
    Core* core = nullptr;
    Role role = Role::Reader;
    void (*entry)() = nullptr;
    bool done = false, blocked = false;
    bool (*ready)(void*) = nullptr;
    void* ready_state = nullptr;
    Wait wait;
    Loc last{0, ""};  // the last API call
    ucontext_t context{};
    void* stack = nullptr;

    // NoC transfers this thread has under way
    std::vector<PendingRead> reads;
    u32 read_id = 0;  // of reads from now on
    std::vector<PendingWrite> writes;
    std::vector<Loc> increments;  // of semaphores, not known to have arrived
};

// `help` is asked when nobody can go on; it returns whether it changed something.
void run_threads(std::vector<Thread*>& threads, bool (*help)(const std::vector<Thread*>&));
void block(bool (*ready)(void*), void* state, const char* call, Loc at);
void yield_now();
bool stopped();
std::string where_everyone_is();

// Blocks the running thread until `ready()` holds; `describe()` is called only for a report.
template <typename Ready, typename Describe>
void wait_until(Ready ready, const char* call, Loc at, Describe describe, Buffer* buffer = nullptr, u32 pages = 0, bool space = false) {
    if (ready()) return;
    Wait& wait = self().wait;
    wait.buffer = buffer;
    wait.pages = pages;
    wait.space = space;
    wait.describe = [](void* state) { return (*static_cast<Describe*>(state))(); };
    wait.describe_state = &describe;
    block([](void* state) { return (*static_cast<Ready*>(state))(); }, &ready, call, at);
}

}  // namespace tw
