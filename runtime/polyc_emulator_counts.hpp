/* polyc_emulator_counts.hpp: how well a kernel's accesses suit the memories. For files compiled with
   -DPC_COUNT -fsanitize=thread and linked without: gcc then calls a function at every access to
   memory, and these are they, in place of ThreadSanitizer's.

   One access of a warp is the n-th execution, by each of its threads, of one instruction. Shared
   memory serves it in one go if no two of its words are in one bank, of 32 that are 4 bytes wide;
   accesses of 8 and 16 bytes go by half and quarter warps. Global memory serves it by sectors of 32
   bytes. Both counts are compared with the least for as many bytes. */

#ifndef POLYC_EMULATOR_COUNTS_HPP
#define POLYC_EMULATOR_COUNTS_HPP

#include "polyc_emulator_block.hpp"

#ifndef PC_COUNT
#define PC_COUNTS_ACCESS(k, address, bytes) (void)0
PC_HIDDEN void pc_flush_counts(void) {}
#else

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

struct pc_warp_access {
    u64 address[32];
    int bytes;
    u32 lanes; /* which have been there */
};

struct pc_access_totals {
    u64 accesses, parts, least; /* of warps; how often memory was asked, and had to be */
};

struct pc_access_key {
    const void *site;
    u64 thread_or_warp, occurrence;
    bool operator==(const pc_access_key &o) const
    {
        return site == o.site && thread_or_warp == o.thread_or_warp && occurrence == o.occurrence;
    }
};
struct pc_access_hash {
    size_t operator()(const pc_access_key &k) const
    {
        return ((size_t)k.site * 31 + k.thread_or_warp) * 0x9e3779b97f4a7c15u + k.occurrence * 1000003;
    }
};

static std::unordered_map<pc_access_key, u64, pc_access_hash> pc_occurrences;
static std::unordered_map<pc_access_key, pc_warp_access, pc_access_hash> pc_open_accesses;
static std::map<std::pair<std::string, std::string>, pc_access_totals> pc_totals;

static bool pc_is_counting; /* the library's own accesses come here too */

/* How many of the given parts of memory the lanes [first, last) touch; a part is `size` bytes. */
template <class Distinct>
PC_HIDDEN void pc_touch(const pc_warp_access &access, int first, int last, u64 size, Distinct *parts)
{
    for (int l = first; l < last; l++)
        if (access.lanes >> l & 1)
            for (u64 p = access.address[l] / size; p <= (access.address[l] + access.bytes - 1) / size; p++)
                (*parts)[p]++;
}

PC_HIDDEN void pc_count_shared(const pc_warp_access &access, pc_access_totals *totals)
{
    const int together = access.bytes <= 4 ? 32 : 128 / access.bytes;
    for (int first = 0; first < 32; first += together) {
        std::map<u64, int> words;
        pc_touch(access, first, first + together, 4, &words);
        u64 most = 0, banks[32] = {};
        for (const auto &word : words)
            if (++banks[word.first % 32] > most)
                most = banks[word.first % 32];
        totals->parts += most;
        totals->least += (words.size() + 31) / 32;
    }
}

PC_HIDDEN void pc_count_global(const pc_warp_access &access, pc_access_totals *totals)
{
    std::map<u64, int> bytes, sectors;
    pc_touch(access, 0, 32, 1, &bytes);
    pc_touch(access, 0, 32, 32, &sectors);
    totals->parts += sectors.size();
    totals->least += (bytes.size() + 31) / 32;
}

PC_HIDDEN void pc_close_access(const pc_warp_access &access)
{
    const pc_worker *worker = pc_get_worker(0);
    int lane = 0;
    while (!(access.lanes >> lane & 1))
        lane++;
    const char *name = "global";
    pc_warp_access moved = access;
    for (int k = 0; k < worker->array_count; k++) {
        const pc_shared_array *array = &worker->arrays[k];
        const u64 distance = access.address[lane] - (u64)array->data;
        if (distance < array->bytes) {
            name = array->name;
            for (int l = 0; l < 32; l++) /* where a GPU would have the array */
                moved.address[l] += (u64)(array->offset > 0 ? array->offset : 0) - (u64)array->data;
        }
    }
    pc_access_totals *totals = &pc_totals[{worker->call->name, name}];
    totals->accesses++;
    if (!strcmp(name, "global"))
        pc_count_global(moved, totals);
    else
        pc_count_shared(moved, totals);
}

/* The thread that runs touches memory at `site` in the program. */
PC_HIDDEN void pc_count_access(const void *site, const void *address, int bytes)
{
    const pc_thread *self = pc_self;
    if (bytes == 0 || pc_is_counting || self == NULL || self->ended)
        return;
    const pc_fiber *fiber = self->fiber;
    if ((u64)address - (u64)fiber->stack < fiber->size)
        return;
    pc_is_counting = true;
    const u64 n = pc_occurrences[{site, (u64)self->index, 0}]++;
    const pc_access_key key = {site, (u64)self->index / 32, n};
    pc_warp_access *access = &pc_open_accesses[key];
    access->address[self->index % 32] = (u64)address;
    access->bytes = bytes;
    access->lanes |= 1u << self->index % 32;
    if (access->lanes == ~0u) {
        pc_close_access(*access);
        pc_open_accesses.erase(key);
    }
    pc_is_counting = false;
}
/* The k-th access that the function makes, from where it is called. */
#define PC_COUNTS_ACCESS(k, address, bytes) \
    pc_count_access((const char *)__builtin_return_address(0) + (k), address, bytes)

/* At the end of a block: accesses that only a part of a warp did. */
PC_HIDDEN void pc_flush_counts(void)
{
    pc_is_counting = true;
    for (const auto &access : pc_open_accesses)
        pc_close_access(access.second);
    pc_open_accesses.clear();
    pc_occurrences.clear();
    pc_is_counting = false;
}

extern "C" {

/* Lines "kernel array accesses parts least", the array being "global" for what is not shared. */
PC_SILENT const char *polyc_emulator_counts(void)
{
    static std::string text;
    pc_is_counting = true;
    text.clear();
    for (const auto &item : pc_totals) {
        char numbers[128];
        snprintf(numbers, sizeof numbers, " %llu %llu %llu\n", (unsigned long long)item.second.accesses,
            (unsigned long long)item.second.parts, (unsigned long long)item.second.least);
        text += item.first.first + " " + item.first.second + numbers;
    }
    pc_is_counting = false;
    return text.c_str();
}

#define PC_CALLBACK(name, bytes) \
    PC_SILENT void __tsan_##name(void *address) { PC_COUNTS_ACCESS(0, address, bytes); }
PC_CALLBACK(read1, 1) PC_CALLBACK(read2, 2) PC_CALLBACK(read4, 4) PC_CALLBACK(read8, 8) PC_CALLBACK(read16, 16)
PC_CALLBACK(write1, 1) PC_CALLBACK(write2, 2) PC_CALLBACK(write4, 4) PC_CALLBACK(write8, 8) PC_CALLBACK(write16, 16)
PC_CALLBACK(unaligned_read2, 2) PC_CALLBACK(unaligned_read4, 4) PC_CALLBACK(unaligned_read8, 8)
PC_CALLBACK(unaligned_read16, 16)
PC_CALLBACK(unaligned_write2, 2) PC_CALLBACK(unaligned_write4, 4) PC_CALLBACK(unaligned_write8, 8)
PC_CALLBACK(unaligned_write16, 16)
#undef PC_CALLBACK
PC_SILENT void __tsan_read_range(void *address, long bytes) { PC_COUNTS_ACCESS(0, address, (int)bytes); }
PC_SILENT void __tsan_write_range(void *address, long bytes) { PC_COUNTS_ACCESS(0, address, (int)bytes); }
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_atomic_thread_fence(int) {}
#define PC_ATOMIC_CALLBACKS(bits, type) \
    PC_SILENT type __tsan_atomic##bits##_load(const volatile type *p, int) { return *p; } \
    PC_SILENT void __tsan_atomic##bits##_store(volatile type *p, type v, int) { *p = v; } \
    PC_SILENT int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *c, type v, int, int) \
    { \
        return __atomic_compare_exchange_n(p, c, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    }
PC_ATOMIC_CALLBACKS(32, u32)
PC_ATOMIC_CALLBACKS(64, u64)
#undef PC_ATOMIC_CALLBACKS

}

#endif

#endif
