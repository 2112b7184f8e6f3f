#include "scheduler.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "findings.h"
#include "recording.h"
#include "noc.h"

namespace tw {

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kGuardBytes = 4096;

ucontext_t scheduler_context;
Thread* running = nullptr;
std::vector<Thread*>* everyone = nullptr;
bool halted = false;

void* new_stack() {
    void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(memory, kGuardBytes, PROT_NONE);
    return memory;
}

void enter() {
    Thread& thread = *running;
    thread.entry();
    finish_transfers(thread);
    thread.done = true;
    swapcontext(&thread.context, &scheduler_context);
}

// Threads take turns, or the first that can go on always does, or the last: a wait that is missing or over too early is hidden by
// the order that happens to be right.
std::string schedule() {
    const char* name = std::getenv("TILEWRIGHT_SCHEDULE");
    return name ? name : "";
}

void describe(std::string& text, const Thread& thread) {
    char line[400];
    std::snprintf(line, sizeof line, "core (%u,%u) %s at %s:%d: %s %s", thread.core->x, thread.core->y, role_name(thread.role),
                  thread.wait.at.file, thread.wait.at.line, thread.wait.call, thread.wait.describe(thread.wait.describe_state).c_str());
    if (!text.empty()) text += '\n';
    text += line;
}

}  // namespace

bool stopped() { return halted; }

void halt_run() {
    halted = true;
    running->done = true;
    swapcontext(&running->context, &scheduler_context);
    std::abort();
}

Thread& self() { return *running; }
Core& self_core() { return *running->core; }
Role self_role() { return running->role; }

std::string where_everyone_is() {
    std::string text;
    int shown = 0;
    for (const Thread* thread : *everyone) {
        if (thread->done || ++shown > 40) continue;
        if (thread->blocked) {
            describe(text, *thread);
        } else {
            char line[300];
            std::snprintf(line, sizeof line, "core (%u,%u) %s runs, last API call at %s:%d", thread->core->x, thread->core->y,
                          role_name(thread->role), thread->last.file, thread->last.line);
            if (!text.empty()) text += '\n';
            text += line;
        }
    }
    return text;
}

void block(bool (*ready)(void*), void* state, const char* call, Loc at) {
    Thread& thread = *running;
    thread.blocked = true;
    thread.ready = ready;
    thread.ready_state = state;
    thread.wait.call = call;
    thread.wait.at = at;
    swapcontext(&thread.context, &scheduler_context);
    thread.blocked = false;
}

void yield_now() {
    ++stats.switches;
    swapcontext(&running->context, &scheduler_context);
}

void run_threads(std::vector<Thread*>& threads, bool (*help)(const std::vector<Thread*>&)) {
    everyone = &threads;
    for (Thread* thread : threads) {
        thread->stack = new_stack();
        getcontext(&thread->context);
        thread->context.uc_stack.ss_sp = static_cast<char*>(thread->stack) + kGuardBytes;
        thread->context.uc_stack.ss_size = kStackBytes;
        thread->context.uc_link = nullptr;
        makecontext(&thread->context, enter, 0);
    }
    const bool last_first = schedule() == "last first", eager = last_first || schedule() == "first first";
    std::vector<Thread*> order(threads);
    if (last_first) std::reverse(order.begin(), order.end());
    for (bool progress = true; progress && !halted;) {
        progress = false;
        for (Thread* thread : order) {
            if (thread->done || halted) continue;
            if (thread->blocked && !thread->ready(thread->ready_state)) continue;
            progress = true;
            running = thread;
            ++stats.switches;
            swapcontext(&scheduler_context, &thread->context);
            if (eager) break;
        }
        if (!progress && help && !halted) progress = help(threads);
    }
    const Thread* stuck = nullptr;
    for (const Thread* thread : threads) {
        if (!thread->done && !stuck && !halted) stuck = thread;
    }
    for (const Thread* thread : threads) {
        if (!thread->done && thread->blocked) note_blocked(*thread);
    }
    if (stuck) report_for("deadlock", stuck->core, stuck->role, stuck->wait.at, "no thread can go on:\n" + where_everyone_is());
    for (Thread* thread : threads) munmap(thread->stack, kStackBytes + kGuardBytes);
    running = nullptr;
}

}  // namespace tw
