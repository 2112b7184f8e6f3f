// Functions the driver evaluates: a request on standard output, the values on standard input (see native/driver.py).
#include <unistd.h>

#include <string>
#include <vector>

#include "../numerics/sfpu.h"
#include "machine.h"

namespace tw {

namespace {

bool send(const void* data, std::size_t bytes) {
    const char* next = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t sent = write(1, next, bytes);
        if (sent <= 0) return false;
        next += sent;
        bytes -= static_cast<std::size_t>(sent);
    }
    return true;
}

bool receive(void* data, std::size_t bytes) {
    char* next = static_cast<char*>(data);
    while (bytes > 0) {
        const ssize_t got = read(0, next, bytes);
        if (got <= 0) return false;
        next += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

}  // namespace

bool ask_function(const char* name, const VectorCall& call, u32 inputs, u32 count, const u32* const* in, u32* out) {
    const std::string text = name;
    std::vector<u32> params;
    if (text == "exp_tile:approx_scaled") {
        params.push_back(call.init_param(0));
    } else if (text == "exp_tile:scaled") {
        params.push_back(call.param(0) >> 16);
    } else if (text.rfind("exp_tile", 0) != 0) {  // the other forms of exp have their scale and clamping in the name
        params.assign(call.params, call.params + call.param_count);
        params.insert(params.end(), call.init_params, call.init_params + call.init_param_count);
    }
    const u32 header[] = {static_cast<u32>(text.size()), inputs, call.wide ? 1u : 0u, count, static_cast<u32>(params.size())};
    std::vector<u32> words;
    for (u32 i = 0; i < inputs; ++i) words.insert(words.end(), in[i], in[i] + count);
    u32 known = 0;
    if (!send(header, sizeof header) || !send(text.data(), text.size()) || !send(params.data(), params.size() * 4) ||
        !send(words.data(), words.size() * 4) || !receive(&known, 4) || !known) {
        return false;
    }
    return receive(out, static_cast<std::size_t>(count) * 4);
}

}  // namespace tw
