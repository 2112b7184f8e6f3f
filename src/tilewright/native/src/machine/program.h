#pragma once
#include <string>
#include <utility>
#include <vector>

#include "machine.h"

namespace tw {

struct BufferPlan {
    u32 id = 0, page_bytes = 0, pages = 0, offset = 0;
    Format format = Format::Float16_b;
    bool to_dst = false;
    bool backed = false;
};

// The pages of one tensor that lie in a core's L1, in order; kNoPage beyond the tensor's edge.
struct ShardPlan {
    u32 tensor = 0;
    std::vector<u32> pages;
};
constexpr u32 kNoPage = 0xFFFFFFFF;

struct CorePlan {
    u32 x = 0, y = 0;
    std::vector<u32> arguments[kRoles];
    std::vector<ShardPlan> shards;
};

struct Program {
    void (*entries[kRoles])() = {};
    std::vector<u32> common[kRoles];
    std::vector<BufferPlan> buffers;
    std::vector<std::pair<u32, u32>> semaphores;
    std::vector<CorePlan> cores;
    bool alone = false;    // a compute kernel without reader and writer
    bool coupled = false;  // cores talk to each other, so all run at once
};

Program read_program(const std::string& path);
Core* build_core(const Program& program, const CorePlan& plan, u32 slot);
void save_shards(const Core& core, const CorePlan& plan);  // back to their tensors, after the run

}  // namespace tw
