/* polyc_emulator_launch.hpp: a grid of blocks, run when the host launches it, on several processors if
   it is long; and what the host may ask. A stream is ignored: everything is done at once, in order. */

#ifndef POLYC_EMULATOR_LAUNCH_HPP
#define POLYC_EMULATOR_LAUNCH_HPP

#include "polyc_emulator_block.hpp"

#include <pthread.h>
#include <time.h>

PC_HIDDEN pc_worker *pc_get_worker(int k);

#include "polyc_emulator_counts.hpp"

enum { PC_MOST_WORKERS = 64, PC_FAILED = 719 /* cudaErrorLaunchFailure */ };

static struct {
    u64 seed; /* of random orders; 0: everything in order */
    int processors;
    u64 launches;
    u64 barriers_passed;
} pc_emulator = {0, 1, 0, 0};

/* The host's interface to the emulator, beside polyc_run. */
extern "C" {

/* Blocks, and threads between barriers, in random orders of this seed, or in order (0). A grid is
   shared out among so many threads of the system (under ThreadSanitizer: by one). */
__attribute__((unused)) void polyc_emulator_set(u64 seed, int processors)
{
    pc_emulator.seed = seed;
    pc_emulator.processors = processors < 1 ? 1
        : processors > PC_MOST_WORKERS ? (int)PC_MOST_WORKERS : processors;
#ifdef __SANITIZE_THREAD__
    pc_emulator.processors = 1;
#endif
    pc_emulator.launches = 0;
    pc_emulator.barriers_passed = 0;
}

/* What was wrong with the launch that failed first since the last call; "" if none did. */
__attribute__((unused)) const char *polyc_emulator_message(void)
{
    static char text[sizeof pc_message];
    memcpy(text, pc_message, sizeof text);
    pc_message[0] = 0;
    pc_has_failed = 0;
    return text;
}

/* Barriers passed since polyc_emulator_set, counted once a block. */
__attribute__((unused)) u64 polyc_emulator_barriers(void) { return pc_emulator.barriers_passed; }

}

/* A grid on its way. */
struct pc_grid {
    const pc_kernel_call *call;
    i64 count, taken;   /* blocks */
    const u32 *order;   /* or NULL */
    u64 random;
    int failed;
};

struct pc_share {
    pc_grid *grid;
    pc_worker *worker;
};

PC_HIDDEN u64 pc_mix(u64 x) /* splitmix64's finaliser */
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

PC_HIDDEN double pc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs blocks of the grid until all are taken, or for about so many seconds. */
PC_HIDDEN void pc_run_blocks(pc_grid *grid, pc_worker *worker, double seconds)
{
    const pc_dim3 shape = grid->call->grid;
    const double end = pc_now() + seconds;
    worker->call = grid->call;
    worker->failed = 0;
    while (!__atomic_load_n(&grid->failed, __ATOMIC_RELAXED)) {
        const i64 k = __atomic_fetch_add(&grid->taken, 1, __ATOMIC_RELAXED);
        if (k >= grid->count)
            break;
        const i64 block = grid->order ? grid->order[k] : k;
        worker->random = grid->random ? pc_mix(grid->random + (u64)block) | 1 : 0;
        const int x = (int)(block % shape.x), rest = (int)(block / shape.x);
        if (!pc_run_block(worker, x, rest % shape.y, rest / shape.y))
            __atomic_store_n(&grid->failed, 1, __ATOMIC_RELAXED);
        pc_flush_counts();
        if (pc_now() > end)
            break;
    }
}

PC_HIDDEN void *pc_work(void *argument)
{
    pc_share *share = (pc_share *)argument;
    pc_run_blocks(share->grid, share->worker, 1e9);
    return NULL;
}

/* The emulator's state of one thread of the system, which is kept for the next launch. */
PC_HIDDEN pc_worker *pc_get_worker(int k)
{
    static pc_worker *workers[PC_MOST_WORKERS];
    if (workers[k] == NULL) {
        workers[k] = (pc_worker *)calloc(1, sizeof(pc_worker));
        if (workers[k] == NULL)
            abort();
    }
#ifdef PC_RACES
    workers[k]->main.shadow = __tsan_get_current_fiber();
#endif
    return workers[k];
}

PC_HIDDEN void pc_run_grid(pc_grid *grid)
{
    pc_worker *first = pc_get_worker(0);
    /* Threads of the system are worth making only for grids that take a while. */
    pc_run_blocks(grid, first, pc_emulator.processors > 1 ? 200e-6 : 1e9);
    pthread_t threads[PC_MOST_WORKERS];
    pc_share shares[PC_MOST_WORKERS];
    int made = 0;
    while (grid->taken < grid->count && made + 1 < pc_emulator.processors) {
        shares[made].grid = grid;
        shares[made].worker = pc_get_worker(made + 1);
        if (pthread_create(&threads[made], NULL, pc_work, &shares[made]))
            break;
        made++;
    }
    pc_run_blocks(grid, first, 1e9);
    for (int k = 0; k < made; k++)
        pthread_join(threads[k], NULL);
    for (int k = 0; k <= made; k++) {
        pc_worker *worker = pc_get_worker(k);
        pc_emulator.barriers_passed += worker->barriers_passed;
        worker->barriers_passed = 0;
        PC_ACQUIRE(&worker->finished);
    }
}

PC_HIDDEN int pc_refuse(const pc_kernel_call *call, const char *reason)
{
    if (!pc_has_failed)
        snprintf(pc_message, sizeof pc_message, "kernel %s: %s", call->name, reason);
    pc_has_failed = 1;
    return 9; /* cudaErrorInvalidConfiguration */
}

PC_HIDDEN int pc_launch_call(const pc_kernel_call *call)
{
    const pc_dim3 g = call->grid, b = call->block;
    if (b.x < 1 || b.y < 1 || b.z < 1 || b.z > 64 || b.count() > PC_MOST_THREADS)
        return pc_refuse(call, "a block has 1 to 1024 threads");
    if (g.x < 1 || g.y < 1 || g.z < 1 || g.y > 65535 || g.z > 65535)
        return pc_refuse(call, "a grid has 1 to 2^31 - 1, 65535 and 65535 blocks along x, y and z");
    if (call->shared_bytes < 0 || call->shared_bytes > 227 << 10)
        return pc_refuse(call, "a block has at most 227 KiB of shared memory");
    pc_grid grid = {call, g.count(), 0, NULL, 0, 0};
    u32 *order = NULL;
    const u64 launch = ++pc_emulator.launches;
    if (pc_emulator.seed) {
        grid.random = pc_mix(pc_emulator.seed + launch * 0x9e3779b97f4a7c15u) | 1;
        u64 state = grid.random;
        order = (u32 *)malloc((size_t)grid.count * sizeof(u32));
        for (i64 k = 0; k < grid.count; k++) {
            const i64 other = (i64)((pc_draw(&state) >> 32) * (u64)(k + 1) >> 32);
            order[k] = order[other];
            order[other] = (u32)k;
        }
        grid.order = order;
    }
    pc_run_grid(&grid);
    free(order);
    return grid.failed ? PC_FAILED : 0;
}

/* Calls kernel(arguments…) for each thread of the grid; 0, or an error that has a message. */
template <class... Parameters, class... Arguments>
static int pc_launch(const char *name, pc_dim3 grid, pc_dim3 block, i64 shared_bytes,
    void (*kernel)(Parameters...), Arguments... arguments)
{
    const auto call = [=]() PC_SILENT { kernel(static_cast<Parameters>(arguments)...); };
    typedef decltype(call) Call;
    const pc_kernel_call what = {name, grid, block, shared_bytes,
        [](const void *c) PC_SILENT { (*(Call *)c)(); }, &call};
    return pc_launch_call(&what);
}

#define PC_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    ((void)(stream), pc_launch(#kernel, grid, block, shared_bytes, kernel, ##__VA_ARGS__))

__attribute__((unused)) static int pc_copy(void *target, const void *source, size_t bytes, void *stream)
{
    (void)stream;
    memmove(target, source, bytes);
    return 0;
}
__attribute__((unused)) static int pc_fill(void *target, int byte, size_t bytes, void *stream)
{
    (void)stream;
    memset(target, byte, bytes);
    return 0;
}
#endif
