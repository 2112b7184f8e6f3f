// Threads of the modelled cores. They run one at a time and change places only when one must wait, so a run is reproducible
// and "nobody can go on" is seen at once.
#pragma once
#include <ucontext.h>

#include <string>

#include "machine.h"

namespace tw {

struct Wait {
    const char* call = "";  // API function
    std::string detail;     // what it waits for
    Loc at{0, ""};
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
    std::vector<PendingWrite> writes;
};

void run_threads(std::vector<Thread*>& threads);
void block(bool (*ready)(void*), void* state, const char* call, const std::string& detail, Loc at);
void yield_now();
bool stopped();
std::string where_everyone_is();

// Blocks the running thread until `ready()` holds; `describe()` is called only if it must wait.
template <typename Ready, typename Describe>
void wait_until(Ready ready, const char* call, Loc at, Describe describe) {
    if (ready()) return;
    block([](void* state) { return (*static_cast<Ready*>(state))(); }, &ready, call, describe(), at);
}

}  // namespace tw
