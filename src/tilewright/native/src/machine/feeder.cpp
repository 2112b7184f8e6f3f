#include "feeder.h"

#include <random>

namespace tw {

namespace {

std::mt19937 generator(20240531u);

float ordinary() {
    return std::uniform_real_distribution<float>(-2.0f, 2.0f)(generator);
}

void fill_page(const Buffer& buffer, u8* page) {
    u32 values[1024];
    for (u32& value : values) value = is_integer(buffer.format) ? generator() % 1000u : as_bits(ordinary());
    PackSetup setup;
    setup.format = buffer.format;
    setup.wide = true;
    u8 tile[4096];
    pack_tile(values, setup, tile);
    const u32 bytes = format_tile_bytes(buffer.format);
    for (u32 i = 0; i < buffer.page_bytes; ++i) page[i] = tile[i % bytes];
}

void feed(Buffer& buffer, u32 pages) {
    for (u32 i = 0; i < pages; ++i) {
        fill_page(buffer, reinterpret_cast<u8*>(static_cast<std::uintptr_t>(buffer.base)) + static_cast<u64>(buffer.write) * buffer.page_bytes);
        buffer.write = (buffer.write + 1) % buffer.pages;
        ++buffer.received;
    }
    buffer.fed = true;
}

void drain(Buffer& buffer) {
    const u32 pages = buffer.available();
    buffer.read = (buffer.read + pages) % buffer.pages;
    buffer.acked += pages;
}

}  // namespace

bool feed_and_drain(const std::vector<Thread*>& threads) {
    for (const Thread* thread : threads) {  // room first: a full output explains why an intermediate never comes
        if (thread->done || !thread->blocked) continue;
        Buffer* buffer = thread->wait.buffer;
        if (!buffer || !thread->wait.space || buffer->consumer || buffer->available() == 0) continue;
        drain(*buffer);
        return true;
    }
    for (const Thread* thread : threads) {
        if (thread->done || !thread->blocked) continue;
        Buffer* buffer = thread->wait.buffer;
        if (!buffer || thread->wait.space || buffer->producer) continue;
        const u32 missing = thread->wait.pages - buffer->available();
        if (missing > buffer->space()) continue;
        feed(*buffer, missing);
        return true;
    }
    return false;
}

void drain_all(Core& core) {
    for (Buffer& buffer : core.buffers) {
        if (buffer.present && !buffer.consumer && buffer.available()) drain(buffer);
    }
}

}  // namespace tw
