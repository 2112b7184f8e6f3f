// tilewright's kernel runner: runner PROGRAM RESULT SECONDS
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "feeder.h"
#include "findings.h"
#include "noc.h"
#include "program.h"
#include "scheduler.h"

namespace tw {

namespace {

const char* result_path = nullptr;

void write_result(const char* status, const std::string& message) {
    std::FILE* file = std::fopen(result_path, "w");
    if (!file) std::exit(3);
    std::fprintf(file, "status\t%s\t", status);
    for (char c : message) {
        if (c == '\n') std::fputs("\\n", file);
        else std::fputc(c, file);
    }
    std::fputc('\n', file);
    write_findings(file);
    std::fprintf(file, "stats\tunpacked=%llu\tmath=%llu\tvector=%llu\tpacked=%llu\tread_bytes=%llu\twritten_bytes=%llu\tswitches=%llu\n",
                 static_cast<unsigned long long>(stats.unpacked), static_cast<unsigned long long>(stats.math),
                 static_cast<unsigned long long>(stats.vector), static_cast<unsigned long long>(stats.packed),
                 static_cast<unsigned long long>(stats.read_bytes), static_cast<unsigned long long>(stats.written_bytes),
                 static_cast<unsigned long long>(stats.switches));
    std::fclose(file);
}

// The run is over in any case, so work that is not async-signal-safe is acceptable here.
void on_signal(int signal) {
    const char* status = signal == SIGALRM ? "timeout" : "crash";
    std::string message = signal == SIGALRM ? "the time limit passed" : "a kernel accessed memory it does not own";
    message += ":\n" + where_everyone_is();
    write_result(status, message);
    _exit(signal == SIGALRM ? 4 : 5);
}

void check_left_over(const Core& core, const std::vector<Thread*>& threads) {
    auto role_at = [&](Role role) { return threads[static_cast<int>(role)]; };
    const Thread* math = role_at(Role::Math);
    const Thread* pack = role_at(Role::Pack);
    for (const Thread* thread : threads) {
        if (thread && !thread->done) return;  // the deadlock says it all
    }
    if (math && core.math_holds)
        report_for("missing-commit", &core, Role::Math, math->last, "the kernel ends between tile_regs_acquire() and tile_regs_commit()");
    if (pack && core.pack_holds)
        report_for("missing-release", &core, Role::Pack, pack->last, "the kernel ends between tile_regs_wait() and tile_regs_release()");
    for (u32 i = 0; i < core.halves_in_use(); ++i) {
        if (pack && core.halves[i].ready && !core.pack_holds)
            report_for("missing-release", &core, Role::Pack, pack->last, "math committed DST, but the packer never waited for and released it");
    }
    if (pack && core.mask_active)
        report_for("mask-left", &core, Role::Pack, core.mask_at, "the kernel ends under the edge mask of this reduce_init: reduce_uninit() is missing");
    if (math && !core.sources.empty())
        report_for("source-mismatch", &core, Role::Unpack, math->last, "unpack filled Src for ops that math never ran");
    for (const Buffer& buffer : core.buffers) {
        if (!buffer.present || buffer.backed || buffer.available() == 0) continue;
        const bool computes = buffer.consumer && buffer.consumer->role == Role::Unpack;
        if (computes && buffer.waits == 1 && buffer.pops == 0) continue;  // a constant, kept to the end
        const Thread* owner = buffer.consumer ? buffer.consumer : buffer.producer;
        char text[200];
        std::snprintf(text, sizeof text, "buffer %u ends with %u pages never popped (%u waits, %u pops)", buffer.id,
                      buffer.available(), buffer.waits, buffer.pops);
        const Loc at = buffer.waits ? buffer.waited_at : owner ? owner->last : Loc{0, ""};
        report_for("pages-left", &core, owner ? owner->role : Role::Reader, at, text);
    }
}

void run_cores(const Program& program, std::size_t first, std::size_t count) {
    std::vector<Thread*> threads;
    std::vector<std::vector<Thread*>> by_core;
    for (std::size_t i = 0; i < count; ++i) {
        Core* core = build_core(program, program.cores[first + i], static_cast<u32>(i));
        machine.cores.push_back(core);
        by_core.emplace_back(kRoles, nullptr);
        for (int role = 0; role < kRoles; ++role) {
            if (!program.entries[role]) continue;
            Thread* thread = new Thread;
            thread->core = core;
            thread->role = static_cast<Role>(role);
            thread->entry = program.entries[role];
            threads.push_back(thread);
            by_core.back()[role] = thread;
        }
    }
    run_threads(threads, program.alone ? feed_and_drain : nullptr);
    if (program.alone) {
        for (Core* core : machine.cores) drain_all(*core);
    }
    for (std::size_t i = 0; i < count && !stopped(); ++i) check_left_over(*machine.cores[i], by_core[i]);
    for (std::size_t i = 0; i < count; ++i) save_shards(*machine.cores[i], program.cores[first + i]);
    for (Core* core : machine.cores) delete core;
    for (Thread* thread : threads) delete thread;
    machine.cores.clear();
}

int run(const char* program_path, unsigned seconds) {
    const Program program = read_program(program_path);
    alarm(seconds);
    if (program.coupled) {
        run_cores(program, 0, program.cores.size());
    } else {
        for (std::size_t i = 0; i < program.cores.size() && !stopped(); ++i) run_cores(program, i, 1);
    }
    write_result("done", "");
    return 0;
}

}  // namespace

}  // namespace tw

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    tw::result_path = argv[2];
    static char signal_stack[65536];
    stack_t alternate{};
    alternate.ss_sp = signal_stack;
    alternate.ss_size = sizeof signal_stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_handler = tw::on_signal;
    action.sa_flags = SA_ONSTACK;
    for (int number : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
    try {
        return tw::run(argv[1], static_cast<unsigned>(std::atoi(argv[3])));
    } catch (const std::exception& error) {
        tw::write_result("error", error.what());
        return 1;
    }
}
