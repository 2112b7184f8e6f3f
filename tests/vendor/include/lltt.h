// Stands in for the vendor compiler's header of replay buffers.
#pragma once

#include <cstdint>

namespace lltt {
enum ExecBool { NoExec, Exec };
template <ExecBool = NoExec>
inline void record(uint32_t, uint32_t) {}
inline void replay(uint32_t, uint32_t) {}
constexpr uint32_t replay_insn(uint32_t, uint32_t) { return 0; }
template <ExecBool = NoExec>
constexpr uint32_t record_insn(uint32_t, uint32_t) {
  return 0;
}
}  // namespace lltt
