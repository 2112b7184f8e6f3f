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
};

struct CorePlan {
    u32 x = 0, y = 0;
    std::vector<u32> arguments[kRoles];
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

}  // namespace tw
