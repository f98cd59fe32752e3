/* polyc_emulator_block.hpp: one block, its CUDA threads run in turn on one processor.

   A thread runs until it has to wait for others (pc_meet) or ends; then another that can go on is
   taken, at random if a seed is set. The fiber of a thread that has ended runs the next that has not
   begun, so that a kernel without barriers costs one call a thread. */

#ifndef POLYC_EMULATOR_BLOCK_HPP
#define POLYC_EMULATOR_BLOCK_HPP

#include "polyc_emulator_state.hpp"

/* ---- Who runs next --------------------------------------------------------------------------- */

PC_HIDDEN void pc_make_lanes_ready(pc_worker *worker, int warp, u32 lanes)
{
    const int rank = worker->rank_of[warp];
    worker->ready_lanes[rank] |= lanes;
    worker->ready_ranks |= 1u << rank;
}
PC_HIDDEN void pc_make_ready(pc_thread *thread)
{
    pc_make_lanes_ready(thread->worker, thread->index / 32, 1u << thread->index % 32);
}

PC_HIDDEN u64 pc_draw(u64 *state) /* xorshift64 */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* The first of the bits that are set, not all 0, from a place on. */
PC_HIDDEN int pc_pick_bit(u32 bits, unsigned place)
{
    const u32 turned = bits >> (place & 31) | bits << (-place & 31);
    return (int)((place + (unsigned)__builtin_ctz(turned)) & 31);
}

/* Who goes on: a thread of the warp of the lowest rank, so that warps run ahead of others as far as
   they can; in random order ranks are random, and now and then another warp is taken. */
PC_HIDDEN pc_thread *pc_take_ready(pc_worker *worker)
{
    const u64 random = worker->random ? pc_draw(&worker->random) : 0;
    while (worker->pending && (worker->ready_ranks == 0 || (random >> 48) < worker->hurry)) {
        worker->perform(worker);
        if (worker->ready_ranks)
            break;
    }
    if (worker->ready_ranks == 0)
        return NULL;
    const int rank = pc_pick_bit(worker->ready_ranks, (random >> 32 & 0xffff) < worker->wander ? (unsigned)random : 0);
    u32 *lanes = &worker->ready_lanes[rank];
    const int lane = pc_pick_bit(*lanes, (unsigned)(random >> 8));
    *lanes &= ~(1u << lane);
    if (*lanes == 0)
        worker->ready_ranks &= ~(1u << rank);
    return &worker->threads[32 * worker->warp_at[rank] + lane];
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

/* Waits at a barrier of the given number of threads, of warps from `warp` on; returns the parity of the
   phase that ends. With an `order`, what they did before is seen by all after. `line` is that of the
   program text. */
PC_HIDDEN unsigned pc_meet(pc_barrier *barrier, int warp, int expected, int line, char order[2])
{
    pc_thread *self = pc_self;
    pc_worker *worker = self->worker;
    const unsigned parity = barrier->phase & 1;
    if (barrier->count == 0) {
        barrier->first = self->index;
        barrier->line = line;
    } else if (barrier->line != line) {
        const pc_thread *first = &worker->threads[barrier->first];
        pc_fail("waits at line %d while thread (%d, %d, %d) waits at line %d", line, first->x, first->y,
            first->z, barrier->line);
    }
    if (order)
        PC_RELEASE(order + parity);
    self->line = line;
    barrier->lanes[self->index / 32 - warp] |= 1u << self->index % 32;
    if (++barrier->count == expected) {
        for (int w = warp; w <= (worker->size - 1) / 32 && barrier->count > 0; w++) {
            const u32 lanes = barrier->lanes[w - warp];
            if (lanes == 0)
                continue;
            pc_make_lanes_ready(worker, w, lanes);
            barrier->count -= __builtin_popcount(lanes);
            barrier->lanes[w - warp] = 0;
        }
        barrier->phase++;
    }
    pc_leave(worker, self->fiber);
    if (order)
        PC_ACQUIRE(order + parity);
    return parity;
}

/* ---- The block -------------------------------------------------------------------------------- */

/* No thread can go on, and not all have ended. */
PC_HIDDEN void pc_explain_deadlock(pc_worker *worker)
{
    const pc_thread *waiting = NULL, *ended = NULL;
    for (int t = worker->size - 1; t >= 0; t--)
        *(worker->threads[t].ended ? &ended : &waiting) = &worker->threads[t];
    if (ended)
        pc_stop_at(waiting, "waits for ever at line %d; thread (%d, %d, %d) has ended", waiting->line,
            ended->x, ended->y, ended->z);
    else
        pc_stop_at(waiting, "waits for ever at line %d", waiting->line);
}

/* The order in which warps run, and how strictly. */
PC_HIDDEN void pc_order_warps(pc_worker *worker)
{
    static const u64 shares[4] = {0, 0, 0x400, 0xffff};
    const int warps = (worker->size + 31) / 32;
    for (int w = 0; w < warps; w++)
        worker->warp_at[w] = (u8)w;
    worker->wander = worker->hurry = 0;
    if (worker->random) {
        for (int w = warps - 1; w > 0; w--) {
            const int other = (int)(pc_draw(&worker->random) % (u64)(w + 1));
            const u8 taken = worker->warp_at[other];
            worker->warp_at[other] = worker->warp_at[w];
            worker->warp_at[w] = taken;
        }
        worker->wander = shares[pc_draw(&worker->random) >> 62];
        worker->hurry = shares[pc_draw(&worker->random) >> 62];
    }
    for (int r = 0; r < warps; r++)
        worker->rank_of[worker->warp_at[r]] = (u8)r;
}

/* Takes back what the last block left; its threads are all ready to begin. */
PC_HIDDEN void pc_reset_block(pc_worker *worker)
{
    const pc_dim3 shape = worker->call->block;
    worker->size = worker->live = (int)shape.count();
    worker->ready_ranks = 0;
    worker->array_count = worker->pending = 0;
    worker->awaiting = NULL;
    memset(worker->ready_lanes, 0, sizeof worker->ready_lanes);
    memset(worker->barriers, 0, sizeof worker->barriers);
    pc_order_warps(worker);
    int t = 0;
    for (int z = 0; z < shape.z; z++)
        for (int y = 0; y < shape.y; y++)
            for (int x = 0; x < shape.x; x++, t++) {
                pc_thread *thread = &worker->threads[t];
                thread->worker = worker;
                thread->index = t;
                thread->x = x, thread->y = y, thread->z = z;
                thread->fiber = NULL;
                thread->ended = 0;
                thread->copy_count = thread->group_count = thread->open = 0;
            }
    for (int w = 0; 32 * w < worker->size; w++) {
        const int left = worker->size - 32 * w;
        pc_make_lanes_ready(worker, w, left < 32 ? (1u << left) - 1 : ~0u);
        memset(&worker->warps[w].barrier, 0, sizeof(pc_barrier));
    }
}

PC_HIDDEN void pc_check_strips(pc_worker *worker);

/* Runs the block (x, y, z); false if it failed. */
PC_HIDDEN bool pc_run_block(pc_worker *worker, int x, int y, int z)
{
    worker->block_x = x, worker->block_y = y, worker->block_z = z;
    worker->set = &worker->sets[worker->blocks++ % PC_SETS];
    pc_reset_block(worker);
    PC_RELEASE(&worker->begun);
    while (worker->live && !worker->failed) {
        if (worker->ready_ranks == 0 && worker->pending == 0) {
            pc_explain_deadlock(worker);
            break;
        }
        pc_leave(worker, &worker->main);
    }
    if (worker->pending && !worker->failed)
        pc_stop_at(&worker->threads[0], "its block ends while tiles are being copied");
    pc_check_strips(worker);
    if (worker->failed)
        pc_abandon_fibers(worker);
    return !worker->failed;
}

#endif
