// Stands in for reader and writer when a compute kernel runs alone: gives the pages it waits for, takes the ones it makes.
#pragma once
#include "scheduler.h"

namespace tw {

bool feed_and_drain(const std::vector<Thread*>& threads);
void drain_all(Core& core);

}  // namespace tw
