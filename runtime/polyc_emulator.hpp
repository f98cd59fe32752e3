/* polyc_emulator.hpp: CUDA on a CPU, for tests: what polyc_cuda.cuh describes, as C++17.

   A kernel is a function that is called once for each CUDA thread, on a stack of its own where it
   has to wait. It is meant to make mistakes visible rather than to be fast:
     - shared memory is full of NaN at first, and made to the byte for AddressSanitizer;
     - between barriers threads run in any order that a seed gives, and so do blocks;
     - copies in the background happen as late as the program allows;
     - a barrier that not all threads reach at one line is an error, with kernel, block and thread;
     - with -fsanitize=thread each CUDA thread is a thread to ThreadSanitizer, and what orders them is
       what orders them on a GPU: it reports a missing barrier with both threads, lines and variable.
   What it does not show: speed, registers, and what the hardware's memory model allows beyond that. */

#ifndef POLYC_EMULATOR_HPP
#define POLYC_EMULATOR_HPP

#include "polyc_emulator_block.hpp"
#include "polyc_emulator_shared.hpp"
#include "polyc_emulator_launch.hpp"
#include "polyc_emulator_warp.hpp"
#include "polyc_emulator_async.hpp"

#define PC_KERNEL(threads, min_blocks) extern "C" __attribute__((noinline))
#define PC_DEVICE static inline __attribute__((unused))
#define PC_UNROLL
#define PC_ROLLED

#define PC_BLOCK_X pc_where(0)
#define PC_BLOCK_Y pc_where(1)
#define PC_BLOCK_Z pc_where(2)
#define PC_THREAD_X pc_where(3)
#define PC_THREAD_Y pc_where(4)
#define PC_THREAD_Z pc_where(5)
#define PC_THREAD pc_where(6)
#define PC_WARP (PC_THREAD >> 5)
#define PC_LANE (PC_THREAD & 31)

PC_HIDDEN inline int pc_where(int coordinate)
{
    const pc_thread *thread = pc_self;
    switch (coordinate) {
    case 0: return thread->worker->block_x;
    case 1: return thread->worker->block_y;
    case 2: return thread->worker->block_z;
    case 3: return thread->x;
    case 4: return thread->y;
    case 5: return thread->z;
    default: return thread->index;
    }
}

#define PC_SHARED(type, name, count) PC_SHARED_AT(type, name, count, -1)
#define PC_SHARED_AT(type, name, count, offset) \
    type *const name = (type *)pc_declare_shared( \
        [] { static const char site = 0; return &site; }(), #name, (i64)sizeof(type) * (count), offset)

#define PC_SYNC() pc_sync(0, 0, __LINE__)
#define PC_SYNC_SOME(id, threads) pc_sync(id, threads, __LINE__)
#define PC_SYNC_WARP() ((void)pc_meet_warp(__LINE__, 1))

/* The barrier `id` of the given number of threads; 0: of all. */
PC_HIDDEN void pc_sync(int id, int threads, int line)
{
    pc_worker *worker = pc_self->worker;
    if (id < 0 || id >= PC_NAMED_BARRIERS || threads % 32)
        pc_fail("waits at line %d for barrier %d of %d threads", line, id, threads);
    pc_barrier *barrier = &worker->barriers[id];
    if (id == 0 && barrier->count == 0)
        worker->barriers_passed++;
    pc_meet(barrier, 0, threads ? threads : worker->size, line, worker->set->block_order[id]);
}

#endif
