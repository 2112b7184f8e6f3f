// A list of the calls that every thread made, for the timeline: native/driver.py reads it.
#pragma once
#include <initializer_list>
#include <string>

#include "machine.h"

namespace tw {

void record_to(const std::string& path);
bool recording();
// One call of the running thread. It is written when the call begins, so that a thread that hangs ends with what it hangs in.
void note(const char* name, Loc at, std::initializer_list<u64> words = {});
void note(const char* name, Loc at, const Mode& mode, std::initializer_list<u64> words);
void note_words(const char* name, Loc at, std::initializer_list<u64> first, const u32* words, u32 count);
void note_blocked(const struct Thread& thread);  // of a thread that never went on

// Changes of semaphores, so that a wait can name the change that ended it.
void note_change(const char* name, Loc at, const Core& core, u32 id, u32 level);
u64 last_change(const Core& core, u32 id);

}  // namespace tw
