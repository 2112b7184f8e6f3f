#pragma once
inline void apply(uint32_t slot) { FUNCTION(slot); }
