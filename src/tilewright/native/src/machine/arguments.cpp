// Run-time arguments and the place of the running core.
#include "findings.h"
#include "scheduler.h"

namespace tw {

namespace {

const std::vector<u32>& list_of(bool common) {
    const Core& core = self_core();
    const int role = static_cast<int>(self_role());
    return common ? core.common_arguments[role] : core.arguments[role];
}

}  // namespace

u32 argument(u32 index, bool common, Loc at) {
    self().last = at;
    const std::vector<u32>& list = list_of(common);
    if (index < list.size()) return list[index];
    report("argument-out-of-range", at, "%sargument %u, but the host gave %zu", common ? "common " : "run-time ", index, list.size());
    return 0;
}

// Arguments also lie in L1, for kernels that take their address.
u32 argument_address(u32 index, bool common, Loc at) {
    const Core& core = self_core();
    const std::vector<u32>& list = list_of(common);
    const u32 base = core.argument_base + (static_cast<u32>(self_role()) * 2 + (common ? 1 : 0)) * 0x800;
    if (index >= list.size()) argument(index, common, at);
    std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(base)), list.data(), list.size() * sizeof(u32));
    return base + index * 4;
}

u32 processor() {
    switch (self_role()) {
        case Role::Unpack: return 1;
        case Role::Math: return 2;
        case Role::Pack: return 3;
        default: return 0;
    }
}

u32 core_coordinate(bool y, bool logical) {
    const Core& core = self_core();
    const u32 place = y ? core.y : core.x;
    return logical ? place : place + (y ? machine.noc_y : machine.noc_x);
}

}  // namespace tw
