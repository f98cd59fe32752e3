/* polyc_emulator_state.hpp: what the emulator knows of a block and its threads, and how a launch fails. */

#ifndef POLYC_EMULATOR_STATE_HPP
#define POLYC_EMULATOR_STATE_HPP

#include "polyc_emulator_fibers.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct pc_dim3 {
    int x, y, z;
    pc_dim3(i64 x, i64 y, i64 z) : x((int)x), y((int)y), z((int)z) {}
    i64 count() const { return (i64)x * y * z; }
};

/* Threads that wait for one another: the whole block's, or a warp's. */
struct pc_barrier {
    int count, line; /* how many wait, and where */
    int first;       /* the one that came first */
    unsigned phase;  /* how often it was passed */
    u32 lanes[32];   /* who waits, by warps from a first one on */
};

struct pc_copy_request {
    void *shared;
    const void *global;
    int bytes, filled; /* to copy, and in all: the rest becomes 0 */
};

/* One CUDA thread. */
struct pc_thread {
    struct pc_worker *worker;
    int index, x, y, z;
    pc_fiber *fiber; /* none before it begins */
    pc_thread *next;
    int line; /* where it waits, if it cannot go on */
    int ended;
    pc_copy_request *copies; /* asked for and not yet performed, in order; groups[g] in group g */
    int copy_count, copy_room;
    int *groups;
    int group_count, group_room, open; /* requests that belong to no group yet */
    struct pc_hopper_state *hopper; /* see polyc_emulator_hopper.hpp */
};

struct pc_shared_array {
    const void *site; /* where it is declared */
    const char *name;
    char *data;
    char *seen; /* what copies of tiles and warpgroups' products see there; made when asked for */
    size_t bytes;
    i64 offset; /* in what the launch reserves, or -1 */
};

enum { PC_MOST_THREADS = 1024, PC_MOST_ARRAYS = 64, PC_NAMED_BARRIERS = 16 };

/* To ThreadSanitizer a fiber is a thread. One is dear to make, so those of a block are used again, but
   not by the blocks right after it, with which it must not seem to be in order. */
#ifdef PC_RACES
enum { PC_SETS = 4 };
#else
enum { PC_SETS = 1 };
#endif

/* Fibers for the threads of a block, and what orders them: places to release and to acquire, two a
   barrier, as a thread may release at the next one before another has acquired at this. */
struct pc_fiber_set {
    pc_fiber fibers[PC_MOST_THREADS];
    char block_order[PC_NAMED_BARRIERS][2];
    char warp_order[PC_MOST_THREADS / 32][2];
    void *engine; /* stands for the hardware that copies tiles */
};

struct pc_kernel_call {
    const char *name;
    pc_dim3 grid, block;
    i64 shared_bytes;
    void (*run)(const void *);
    const void *arguments;
};

struct pc_warp {
    pc_barrier barrier;
    u64 slots[2][32][8]; /* what its threads exchange, by parity of the barrier's phase */
};

/* One thread of the system, and the block that it runs. */
struct pc_worker {
    const pc_kernel_call *call;
    int block_x, block_y, block_z;
    int size; /* threads of the block */
    int live; /* of these, the ones that have not ended */
    int failed;
    u64 random; /* 0: threads in order */
    u64 barriers_passed;
    pc_fiber main, *previous;
    char begun, finished; /* what threads acquire first and release last */
    pc_thread threads[PC_MOST_THREADS];
    u32 ready_lanes[32]; /* threads that can go on, by the rank of their warp */
    u32 ready_ranks;     /* of these, which are not 0 */
    u8 rank_of[32], warp_at[32];
    u64 wander; /* how often another warp than that of the lowest rank is taken: of 2^16 times */
    u64 hurry;  /* how often something pending happens before it has to */
    int pending; /* things that happen by themselves some time, which `perform` does one of */
    void (*perform)(pc_worker *);
    pc_thread *awaiting; /* threads that wait for barriers in shared memory */
    pc_fiber_set sets[PC_SETS], *set;
    u64 blocks; /* begun so far */
    pc_fiber *idle[PC_MOST_THREADS];
    int fiber_count, idle_count;
    pc_barrier barriers[PC_NAMED_BARRIERS];
    pc_warp warps[PC_MOST_THREADS / 32];
    pc_shared_array arrays[PC_MOST_ARRAYS];
    int array_count;
};

/* The thread that is running, to which kernels ask for their coordinates. */
static thread_local pc_thread *pc_self;

/* ---- Failing --------------------------------------------------------------------------------- */

static char pc_message[1024]; /* of the first failure; see polyc_emulator_launch.hpp */
static int pc_has_failed;

/* Marks the launch as failed, at a thread of it; the first message is kept. */
PC_HIDDEN void pc_stop(const pc_thread *thread, const char *format, va_list arguments)
{
    const pc_worker *worker = thread->worker;
    thread->worker->failed = 1;
    if (__atomic_exchange_n(&pc_has_failed, 1, __ATOMIC_ACQ_REL))
        return;
    int n = snprintf(pc_message, sizeof pc_message,
        "kernel %s, block (%d, %d, %d), thread (%d, %d, %d): ", worker->call->name, worker->block_x,
        worker->block_y, worker->block_z, thread->x, thread->y, thread->z);
    vsnprintf(pc_message + n, sizeof pc_message - (size_t)n, format, arguments);
}
PC_HIDDEN __attribute__((format(printf, 2, 3))) void pc_stop_at(const pc_thread *thread, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pc_stop(thread, format, arguments);
    va_end(arguments);
}

/* The thread that runs has done what it may not: nothing of the block goes on. */
PC_HIDDEN __attribute__((format(printf, 1, 2), noreturn)) void pc_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pc_stop(pc_self, format, arguments);
    va_end(arguments);
    pc_change_fiber(pc_self->fiber, &pc_self->worker->main, &pc_self->worker->previous);
    abort(); /* nobody changes back */
}

#endif
