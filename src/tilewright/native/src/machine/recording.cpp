#include "recording.h"

#include <cstdio>
#include <stdexcept>
#include <tuple>

#include "scheduler.h"

namespace tw {

namespace {

std::FILE* list = nullptr;
u64 changes = 0;
std::map<std::tuple<u32, u32, u32>, u64> changed;  // core and semaphore -> its last change

void begin(const Thread& thread, const char* name, Loc at) {
    std::fprintf(list, "%u\t%u\t%s\t%s\t%d\t%s", thread.core->x, thread.core->y, role_name(thread.role), at.file, at.line, name);
}

void word(u64 value) { std::fprintf(list, "\t%llu", static_cast<unsigned long long>(value)); }

void end() { std::fputc('\n', list); }

}  // namespace

void record_to(const std::string& path) {
    list = std::fopen(path.c_str(), "w");
    if (!list) throw std::runtime_error("cannot write " + path);
}

bool recording() { return list != nullptr; }

void note(const char* name, Loc at, std::initializer_list<u64> words) {
    if (!list) return;
    begin(self(), name, at);
    for (u64 value : words) word(value);
    end();
}

void note(const char* name, Loc at, const Mode& mode, std::initializer_list<u64> words) {
    if (!list) return;
    begin(self(), name, at);
    for (u64 value : {u64{static_cast<u8>(mode.kind)}, u64{mode.bcast}, u64{mode.reuse}, u64{mode.pool}, u64{mode.axis}, u64{mode.columns},
                      u64{mode.rows}})
        word(value);
    for (u64 value : words) word(value);
    end();
}

void note_words(const char* name, Loc at, std::initializer_list<u64> first, const u32* words, u32 count) {
    if (!list) return;
    begin(self(), name, at);
    for (u64 value : first) word(value);
    for (u32 i = 0; i < count; ++i) word(words[i]);
    end();
}

void note_blocked(const Thread& thread) {
    if (!list) return;
    begin(thread, "blocked", thread.wait.at);
    end();
}

void note_change(const char* name, Loc at, const Core& core, u32 id, u32 level) {
    if (!list) return;
    changed[{core.x, core.y, id}] = ++changes;
    note(name, at, {core.x, core.y, id, changes, level});
}

u64 last_change(const Core& core, u32 id) {
    const auto found = changed.find({core.x, core.y, id});
    return found == changed.end() ? 0 : found->second;
}

}  // namespace tw
