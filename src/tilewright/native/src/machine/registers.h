#pragma once
#include "machine.h"

namespace tw {

void prepare_registers(Core& core);
DstHalf& current_half();  // of the running thread
u32* slot_values(u32 slot);

// Each reports what is wrong; false means that the slot does not exist.
bool may_use_slot(u32 slot, const char* name, Loc at);
bool may_read_slot(u32 slot, const char* name, Loc at);
void wrote_slot(u32 slot, Kind writer, bool reduced, Loc at);

void start_anew(Loc at);  // math goes back to the first half, as start-ups make it

}  // namespace tw
