// Reads the description of a run and builds its cores. The description is lines of words; see native/program.py.
#include "program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "recording.h"
#include "registers.h"

namespace tw {

Machine machine;
Stats stats;

bool Machine::says_accumulate(Loc at) const {
    for (const auto& line : intended) {
        if (line.second == at.line && line.first == at.file) return true;
    }
    return false;
}

namespace {

constexpr u32 kSemaphoreOffset = 0x400, kArgumentOffset = 0x1000, kBufferOffset = 0x8000;

u8* map_file(const std::string& path, std::size_t& bytes) {
    const int file = open(path.c_str(), O_RDWR);
    if (file < 0) throw std::runtime_error("cannot open " + path);
    struct stat info;
    fstat(file, &info);
    bytes = static_cast<std::size_t>(info.st_size);
    if (bytes == 0) {
        close(file);
        return nullptr;
    }
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    return static_cast<u8*>(memory);
}

// L1 must lie below 4 GiB so that kernels may turn 32-bit addresses into pointers.
u8* map_low(std::size_t bytes) {
    for (u64 hint = 0x10000000; hint + bytes < 0xF0000000; hint += 0x4000000) {
        void* wanted = reinterpret_cast<void*>(static_cast<std::uintptr_t>(hint));
        void* memory = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == wanted) return static_cast<u8*>(memory);
        if (memory != MAP_FAILED) munmap(memory, bytes);
    }
    throw std::runtime_error("no room for L1 below 4 GiB");
}

Role role_of(const std::string& name) {
    for (int i = 0; i < kRoles; ++i) {
        if (name == role_name(static_cast<Role>(i))) return static_cast<Role>(i);
    }
    throw std::runtime_error("unknown role " + name);
}

std::vector<u32> numbers(std::istringstream& words) {
    std::vector<u32> values;
    for (u64 value; words >> value;) values.push_back(static_cast<u32>(value));
    return values;
}

void load_kernel(Program& program, const std::string& role, const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(std::string("cannot load a kernel: ") + dlerror());
    void* entry = dlsym(library, "tw_entry");
    if (!entry) throw std::runtime_error("kernel without an entry: " + path);
    program.entries[static_cast<int>(role_of(role))] = reinterpret_cast<void (*)()>(entry);
}

}  // namespace

Program read_program(const std::string& path) {
    Program program;
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    u8* data = nullptr;
    std::size_t data_bytes = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string key, text;
        words >> key;
        if (key == "metal") words >> machine.metal;
        else if (key == "noc_origin") words >> machine.noc_x >> machine.noc_y;
        else if (key == "chip") { words >> text; machine.blackhole = text == "blackhole"; }
        else if (key == "l1") words >> machine.l1_bytes;
        else if (key == "compute") words >> machine.wide >> machine.full_sync >> machine.phases >> machine.precise;
        else if (key == "coupled") words >> program.coupled;
        else if (key == "erratum") words >> machine.erratum;
        else if (key == "alone") words >> program.alone;
        else if (key == "data") { words >> text; data = map_file(text, data_bytes); }
        else if (key == "record") { std::getline(words >> std::ws, text); record_to(text); }
        else if (key == "functions") words >> machine.functions;
        else if (key == "tensor") {
            TensorPages tensor;
            u64 offset;
            words >> tensor.base >> tensor.page_bytes >> tensor.pages >> offset >> tensor.read_alignment;
            tensor.data = data + offset;
            machine.tensors.push_back(tensor);
        } else if (key == "buffer") {
            BufferPlan plan;
            u32 format;
            words >> plan.id >> format >> plan.page_bytes >> plan.pages >> plan.to_dst >> plan.offset >> plan.backed;
            plan.format = static_cast<Format>(format);
            program.buffers.push_back(plan);
        } else if (key == "shards") {
            u32 index, offset;
            words >> index >> offset;
            TensorPages& tensor = machine.tensors[index];
            tensor.in_l1 = true;
            tensor.l1_offset = kBufferOffset + offset;
            tensor.homes.resize(tensor.pages);
        } else if (key == "shard") {
            ShardPlan shard;
            words >> shard.tensor;
            shard.pages = numbers(words);
            CorePlan& core = program.cores.back();
            for (u32 slot = 0; slot < shard.pages.size(); ++slot) {
                if (shard.pages[slot] != kNoPage) machine.tensors[shard.tensor].homes[shard.pages[slot]] = {core.x, core.y, slot};
            }
            core.shards.push_back(shard);
        } else if (key == "semaphore") {
            u32 id, value;
            words >> id >> value;
            program.semaphores.push_back({id, value});
        } else if (key == "intended") {
            int number;
            words >> number;
            std::getline(words >> std::ws, text);
            machine.intended.emplace_back(text, number);
        } else if (key == "kernel") {
            words >> text;
            std::string library;
            std::getline(words >> std::ws, library);
            load_kernel(program, text, library);
        } else if (key == "core") {
            CorePlan plan;
            words >> plan.x >> plan.y;
            program.cores.push_back(plan);
        } else if (key == "args") {
            words >> text;
            program.cores.back().arguments[static_cast<int>(role_of(text))] = numbers(words);
        } else if (key == "common") {
            words >> text;
            program.common[static_cast<int>(role_of(text))] = numbers(words);
        }
    }
    if (program.cores.empty()) throw std::runtime_error("no cores");
    const std::size_t slots = program.coupled ? program.cores.size() : 1;
    machine.arena_bytes = slots * machine.l1_bytes;
    machine.arena = map_low(machine.arena_bytes);
    return program;
}

namespace {

// Calls visit(bytes in L1, bytes of the tensor, count) for every page of a core's shards.
template <typename Visit>
void each_shard_page(const Core& core, const CorePlan& plan, Visit visit) {
    for (const ShardPlan& shard : plan.shards) {
        const TensorPages& tensor = machine.tensors[shard.tensor];
        for (std::size_t slot = 0; slot < shard.pages.size(); ++slot) {
            if (shard.pages[slot] == kNoPage) continue;
            visit(core.l1 + tensor.l1_offset + slot * tensor.page_bytes, tensor.data + u64{shard.pages[slot]} * tensor.page_bytes,
                  tensor.page_bytes);
        }
    }
}

}  // namespace

void save_shards(const Core& core, const CorePlan& plan) {
    each_shard_page(core, plan, [](const u8* l1, u8* page, u32 bytes) { std::memcpy(page, l1, bytes); });
}

Core* build_core(const Program& program, const CorePlan& plan, u32 slot) {
    Core* core = new Core;
    core->x = plan.x;
    core->y = plan.y;
    core->l1 = machine.arena + static_cast<u64>(slot) * machine.l1_bytes;
    core->l1_base = static_cast<u32>(reinterpret_cast<std::uintptr_t>(core->l1));
    std::memset(core->l1, 0xCD, machine.l1_bytes);  // what nobody wrote looks wrong
    core->wide = machine.wide;
    core->full_sync = machine.full_sync;
    core->semaphore_base = core->l1_base + kSemaphoreOffset;
    core->argument_base = core->l1_base + kArgumentOffset;
    std::memset(core->l1 + kSemaphoreOffset, 0, kMaxSemaphores * 16);
    for (const auto& semaphore : program.semaphores) std::memcpy(core->l1 + kSemaphoreOffset + semaphore.first * 16, &semaphore.second, 4);
    for (const BufferPlan& wanted : program.buffers) {
        Buffer& buffer = core->buffers[wanted.id];
        buffer.present = true;
        buffer.id = wanted.id;
        buffer.base = core->l1_base + kBufferOffset + wanted.offset;
        buffer.page_bytes = wanted.page_bytes;
        buffer.pages = wanted.pages;
        buffer.format = wanted.format;
        buffer.to_dst = wanted.to_dst;
        for (const BufferPlan& other : program.buffers) {
            if (&other == &wanted) break;
            if (other.offset == wanted.offset) core->buffers[other.id].alias = &buffer;
        }
        buffer.backed = wanted.backed;
    }
    each_shard_page(*core, plan, [](u8* l1, const u8* page, u32 bytes) { std::memcpy(l1, page, bytes); });
    for (int role = 0; role < kRoles; ++role) {
        core->arguments[role] = plan.arguments[role];
        core->common_arguments[role] = program.common[role];
    }
    prepare_registers(*core);
    return core;
}

}  // namespace tw
