// What inits leave behind, by the lists that are written from the op table. Everything not named there owns the programmable constants.
#include "op_facts.h"
#include "sfpu.h"

namespace tw {

bool writes_constants(const char* call) { return kWriteConstants.count(call) != 0; }
bool stops_stepping(const char* init) { return kStopStepping.count(init) != 0; }
bool fills_replay(const char* init) { return kFillReplay.count(init) != 0; }

InitClass init_class(const char* init, u32 variant) {
    const std::string_view name = init;
    if (kStateless.count(name)) return InitClass::Stateless;
    if (kAddressMode.count(name)) return InitClass::AddressMode;
    if (kMacros.count(name)) return InitClass::Macros;
    if ((variant & 1u) && kLookupIfApproximate.count(name)) return InitClass::Lookup;
    if ((variant & 1u) && (name == "exp_tile_init" || name == "exp_packthread_tile_init")) return InitClass::Macros;
    return InitClass::Constants;
}

}  // namespace tw
