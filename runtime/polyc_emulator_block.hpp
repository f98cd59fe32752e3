/* polyc_emulator_block.hpp: one block, its CUDA threads run in turn on one processor.

   A thread runs until it has to wait for others (pc_meet) or ends; then another that can go on is
   taken, at random if a seed is set. The fiber of a thread that has ended runs the next that has not
   begun, so that a kernel without barriers costs one call a thread. */

#ifndef POLYC_EMULATOR_BLOCK_HPP
#define POLYC_EMULATOR_BLOCK_HPP

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
    struct pc_thread *first, *last; /* linked by `next`, in the order in which they came */
    int count;
    int line;      /* where they wait */
    unsigned phase; /* how often it was passed */
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
    pc_barrier *waits; /* for this one, if it cannot go on */
    int ended;
    int declared; /* shared arrays so far */
    pc_copy_request *copies; /* asked for and not yet performed, in order; groups[g] in group g */
    int copy_count, copy_room;
    int *groups;
    int group_count, group_room, open; /* requests that belong to no group yet */
};

struct pc_shared_array {
    const char *name;
    char *data;
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
    pc_thread *ready[PC_MOST_THREADS]; /* a ring */
    unsigned ready_first, ready_count;
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

/* Ends the launch with a message that begins with where the current thread is. */
PC_HIDDEN void pc_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
PC_HIDDEN void pc_stop(pc_worker *worker, const char *where, const char *format, va_list arguments)
{
    worker->failed = 1;
    if (__atomic_exchange_n(&pc_has_failed, 1, __ATOMIC_ACQ_REL))
        return;
    int n = snprintf(pc_message, sizeof pc_message, "kernel %s, block (%d, %d, %d)%s: ",
        worker->call->name, worker->block_x, worker->block_y, worker->block_z, where);
    vsnprintf(pc_message + n, sizeof pc_message - (size_t)n, format, arguments);
}
PC_HIDDEN void pc_fail(const char *format, ...)
{
    pc_worker *worker = pc_self->worker;
    char where[64];
    snprintf(where, sizeof where, ", thread (%d, %d, %d)", pc_self->x, pc_self->y, pc_self->z);
    va_list arguments;
    va_start(arguments, format);
    pc_stop(worker, where, format, arguments);
    va_end(arguments);
    pc_change_fiber(pc_self->fiber, &worker->main, &worker->previous);
    abort(); /* nobody changes back */
}

/* ---- Who runs next --------------------------------------------------------------------------- */

PC_HIDDEN void pc_make_ready(pc_worker *worker, pc_thread *thread)
{
    worker->ready[(worker->ready_first + worker->ready_count++) % PC_MOST_THREADS] = thread;
}

PC_HIDDEN u64 pc_draw(u64 *state) /* xorshift64 */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

PC_HIDDEN pc_thread *pc_take_ready(pc_worker *worker)
{
    if (worker->ready_count == 0)
        return NULL;
    pc_thread **first = &worker->ready[worker->ready_first % PC_MOST_THREADS];
    if (worker->random) {
        u64 k = (pc_draw(&worker->random) >> 32) * worker->ready_count >> 32;
        pc_thread **other = &worker->ready[(worker->ready_first + k) % PC_MOST_THREADS];
        pc_thread *taken = *other;
        *other = *first;
        *first = taken;
    }
    worker->ready_first++;
    worker->ready_count--;
    return *first;
}

#ifdef PC_RACES
enum { PC_STACK = 64 << 10 };
#elif defined __SANITIZE_ADDRESS__ || defined PC_COUNT || !defined __OPTIMIZE__
enum { PC_STACK = (256 << 10) + 832 };
#else
enum { PC_STACK = (32 << 10) + 832 }; /* not of the same cache set as the next */
#endif

PC_HIDDEN void pc_run_threads(void);

PC_HIDDEN void *pc_allocate(size_t alignment, size_t bytes)
{
    void *data;
    PC_UNSEEN_BEGIN
    if (posix_memalign(&data, alignment, bytes))
        abort();
    PC_UNSEEN_END
    return data;
}
PC_HIDDEN void pc_free(void *data)
{
    PC_UNSEEN_BEGIN
    free(data);
    PC_UNSEEN_END
}

/* A fiber for a thread that begins: one that is done with another thread, or a new one. */
PC_HIDDEN pc_fiber *pc_get_fiber(pc_worker *worker, const pc_thread *thread)
{
#ifdef PC_RACES
    pc_fiber *fiber = &worker->set->fibers[thread->index];
    if (fiber->stack)
        return fiber;
#else
    (void)thread;
    if (worker->idle_count)
        return worker->idle[--worker->idle_count];
    pc_fiber *fiber = &worker->set->fibers[worker->fiber_count++];
#endif
    char *stack = fiber->stack ? fiber->stack : (char *)pc_allocate(64, PC_STACK);
    pc_prepare_fiber(fiber, stack, PC_STACK, pc_run_threads);
    return fiber;
}

/* After a failure: no fiber of the block will be gone on with. */
PC_HIDDEN void pc_abandon_fibers(pc_worker *worker)
{
    worker->fiber_count = worker->idle_count = 0;
#ifdef PC_RACES
    for (int t = 0; t < PC_MOST_THREADS; t++)
        worker->set->fibers[t].stack = NULL;
#endif
}

/* Reports of ThreadSanitizer call it so. */
PC_HIDDEN void pc_name_fiber(const pc_thread *thread)
{
    (void)thread;
#ifdef PC_RACES
    const pc_worker *worker = thread->worker;
    char name[128];
    snprintf(name, sizeof name, "%s, block (%d, %d, %d), thread (%d, %d, %d)", worker->call->name,
        worker->block_x, worker->block_y, worker->block_z, thread->x, thread->y, thread->z);
    PC_UNSEEN_BEGIN
    __tsan_set_fiber_name(thread->fiber->shadow, name);
    PC_UNSEEN_END
#endif
}

/* Leaves `fiber` for a thread that is ready, or for the block's own fiber. */
PC_HIDDEN void pc_leave(pc_worker *worker, pc_fiber *fiber)
{
#ifdef PC_RACES
    pc_thread *next = fiber == &worker->main ? pc_take_ready(worker) : NULL;
#else
    pc_thread *next = pc_take_ready(worker);
#endif
    pc_fiber *target = &worker->main;
    if (next) {
        if (next->fiber == NULL) {
            next->fiber = pc_get_fiber(worker, next);
            pc_name_fiber(next);
        }
        pc_self = next;
        target = next->fiber;
    }
    if (target != fiber)
        pc_change_fiber(fiber, target, &worker->previous);
}

/* What a fiber does: run the current thread, then others that have not begun. */
PC_HIDDEN void pc_run_threads(void)
{
    pc_worker *worker = pc_self->worker;
    pc_fiber *fiber = pc_self->fiber;
    pc_arrive(fiber, worker->previous);
    for (;;) {
        PC_ACQUIRE(&worker->begun);
        worker->call->run(worker->call->arguments);
        PC_RELEASE(&worker->finished);
        pc_self->ended = 1;
        worker->live--;
        if (PC_SETS == 1)
            worker->idle[worker->idle_count++] = fiber;
        pc_leave(worker, fiber);
    }
}

/* Waits at a barrier of the given number of threads; returns the parity of the phase that ends. With
   an `order`, what they did before is seen by all after. `line` is that of the program text. */
PC_HIDDEN unsigned pc_meet(pc_barrier *barrier, int expected, int line, char order[2])
{
    pc_thread *self = pc_self;
    pc_worker *worker = self->worker;
    const unsigned parity = barrier->phase & 1;
    if (barrier->count && barrier->line != line)
        pc_fail("waits at line %d while thread (%d, %d, %d) waits at line %d", line,
            barrier->first->x, barrier->first->y, barrier->first->z, barrier->line);
    if (order)
        PC_RELEASE(order + parity);
    barrier->line = line;
    if (barrier->count++)
        barrier->last->next = self;
    else
        barrier->first = self;
    barrier->last = self;
    self->waits = barrier;
    if (barrier->count == expected) {
        pc_thread *woken = barrier->first;
        for (int k = 0; k < expected; k++, woken = woken->next) {
            woken->waits = NULL;
            pc_make_ready(worker, woken);
        }
        barrier->count = 0;
        barrier->phase++;
    }
    pc_leave(worker, self->fiber);
    if (order)
        PC_ACQUIRE(order + parity);
    return parity;
}

/* ---- The block -------------------------------------------------------------------------------- */

PC_HIDDEN void pc_explain_deadlock(pc_worker *worker, ...)
{
    const pc_thread *waiting = NULL, *ended = NULL;
    for (int t = 0; t < worker->size; t++) {
        const pc_thread *thread = &worker->threads[t];
        if (thread->ended)
            ended = ended ? ended : thread;
        else if (waiting == NULL)
            waiting = thread;
    }
    char where[64];
    snprintf(where, sizeof where, ", thread (%d, %d, %d)", waiting->x, waiting->y, waiting->z);
    va_list arguments;
    va_start(arguments, worker);
    pc_stop(worker, where, "", arguments);
    va_end(arguments);
    size_t n = strlen(pc_message);
    n += (size_t)snprintf(pc_message + n, sizeof pc_message - n, "waits for ever at line %d",
        waiting->waits ? waiting->waits->line : 0);
    if (ended)
        snprintf(pc_message + n, sizeof pc_message - n, "; thread (%d, %d, %d) has ended",
            ended->x, ended->y, ended->z);
}

/* Takes back what the last block left; its threads are all ready to begin. */
PC_HIDDEN void pc_reset_block(pc_worker *worker)
{
    const pc_dim3 shape = worker->call->block;
    worker->size = worker->live = (int)shape.count();
    worker->ready_first = worker->ready_count = 0;
    worker->array_count = 0;
    memset(worker->barriers, 0, sizeof worker->barriers);
    for (int w = 0; w <= (worker->size - 1) / 32; w++)
        memset(&worker->warps[w].barrier, 0, sizeof(pc_barrier));
    int t = 0;
    for (int z = 0; z < shape.z; z++)
        for (int y = 0; y < shape.y; y++)
            for (int x = 0; x < shape.x; x++, t++) {
                pc_thread *thread = &worker->threads[t];
                thread->worker = worker;
                thread->index = t;
                thread->x = x, thread->y = y, thread->z = z;
                thread->fiber = NULL;
                thread->waits = NULL;
                thread->ended = thread->declared = 0;
                thread->copy_count = thread->group_count = thread->open = 0;
                pc_make_ready(worker, thread);
            }
}

/* Runs the block (x, y, z); false if it failed. */
PC_HIDDEN bool pc_run_block(pc_worker *worker, int x, int y, int z)
{
    worker->block_x = x, worker->block_y = y, worker->block_z = z;
    worker->set = &worker->sets[worker->blocks++ % PC_SETS];
    pc_reset_block(worker);
    PC_RELEASE(&worker->begun);
    while (worker->live && !worker->failed) {
        if (worker->ready_count == 0) {
            pc_explain_deadlock(worker);
            break;
        }
        pc_leave(worker, &worker->main);
    }
    if (worker->failed)
        pc_abandon_fibers(worker);
    return !worker->failed;
}

#endif
