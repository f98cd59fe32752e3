/* polyc_emulator_warp.hpp: what the threads of a warp do together. Each puts its operands into a slot,
   waits for the others, and takes what it needs from theirs. Slots are used in turns: a thread may
   be at the next operation while another still takes from this one, but no further. */

#ifndef POLYC_EMULATOR_WARP_HPP
#define POLYC_EMULATOR_WARP_HPP

#include "polyc_emulator_block.hpp"

typedef u64 pc_slot[8];

/* The slot that the current thread may fill for its warp's next operation. */
PC_HIDDEN pc_slot *pc_own_slot(void)
{
    pc_warp *warp = &pc_self->worker->warps[pc_self->index / 32];
    return &warp->slots[warp->barrier.phase & 1][pc_self->index % 32];
}

/* Waits until the whole warp is at this line; the slots of its 32 threads, which have been filled.
   It is a barrier for memory only if it `orders`. */
PC_HIDDEN const pc_slot *pc_meet_warp(int line, int orders)
{
    pc_worker *worker = pc_self->worker;
    const int first = pc_self->index & ~31;
    const int size = worker->size - first < 32 ? worker->size - first : 32;
    pc_warp *warp = &worker->warps[first / 32];
    char *order = worker->set->warp_order[first / 32];
    return warp->slots[pc_meet(&warp->barrier, first / 32, size, line, orders ? order : NULL)];
}

/* v of the thread `lane` of the warp, one's own if there is none. */
template <class T> PC_HIDDEN T pc_exchange(T v, int lane, int line)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    pc_move(pc_own_slot(), &v, sizeof v);
    const pc_slot *slots = pc_meet_warp(line, 0);
    if (0 <= lane && lane < 32 && (pc_self->index & ~31) + lane < pc_self->worker->size)
        pc_move(&v, &slots[lane], sizeof v);
    return v;
}

template <class T> static T pc_shuffle(T v, int lane, int line = __builtin_LINE())
{
    return pc_exchange(v, lane & 31, line);
}
template <class T> static T pc_shuffle_xor(T v, int mask, int line = __builtin_LINE())
{
    return pc_exchange(v, pc_self->index % 32 ^ mask, line);
}
template <class T> static T pc_shuffle_down(T v, int lanes, int line = __builtin_LINE())
{
    return pc_exchange(v, pc_self->index % 32 + lanes, line);
}
template <class T> static T pc_shuffle_up(T v, int lanes, int line = __builtin_LINE())
{
    return pc_exchange(v, pc_self->index % 32 - lanes, line);
}

PC_HIDDEN u32 pc_ballot(int condition, int line = __builtin_LINE())
{
    const int first = pc_self->index & ~31;
    (*pc_own_slot())[0] = condition != 0;
    const pc_slot *slots = pc_meet_warp(line, 0);
    u32 all = 0;
    for (int l = 0; l < 32 && first + l < pc_self->worker->size; l++)
        all |= (u32)slots[l][0] << l;
    return all;
}

/* ---- Atomics: of the processor, as blocks may run side by side --------------------------------- */

static inline __attribute__((unused)) void pc_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* Replaces *p by change(*p, v); returns what it was. */
template <class T, class Change> static T pc_atomic(T *p, T v, Change change)
{
    T old, updated;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do
        updated = change(old, v);
    while (!__atomic_compare_exchange(p, &old, &updated, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
template <class T> struct pc_itself { typedef T type; };
#define PC_ATOMIC(name, expression) \
    template <class T> static T pc_atomic_##name(T *p, typename pc_itself<T>::type v) \
    { \
        return pc_atomic(p, v, [](T a, T b) -> T { return expression; }); \
    }
PC_ATOMIC(add, a + b)
PC_ATOMIC(min, b != b ? b : b < a ? b : a)
PC_ATOMIC(max, b != b ? b : a < b ? b : a)
#undef PC_ATOMIC

#endif
