/* A team that goes through loops of many sizes, each iteration reading what the last loop wrote. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "polyc.h"

struct call {
    u64 *rows; /* loops + 1 rows of `width` numbers; row 0 is given */
    int loops;
    int width;
    int late;  /* microseconds that all but the caller come late */
    int slow;  /* microseconds that an iteration takes at most */
    int waits; /* whether there are barriers */
    int ends;  /* the loop at which the caller ends the call, or -1 */
};

/* Iterations of loop k: how much of its row it writes. Threads that are late must not ask the memory
   of their call how often to loop, which is why this is no array. */
static int count(int k, int width)
{
    return k * 7919 % 101 % (width + 1);
}

static void body(pc_thread *pc_self, const struct call *call)
{
    const int width = call->width;
    if (pc_self->rank && call->late)
        usleep(call->late);
    for (int k = 0; k < call->loops; k++) {
        if (pc_self->rank == 0 && k == call->ends)
            pc_self->stopped = 1;
        if (pc_self->rank ? __atomic_load_n(&pc_self->team->stopped, __ATOMIC_RELAXED)
                          : pc_self->stopped)
            return;
        const u64 *before = call->rows + k * width;
        u64 *after = call->rows + (k + 1) * width;
        PC_SHARE(count(k, width)) {
            u64 total = 0;
            for (int j = 0; j < width; j++)
                total = 31 * total + before[j];
            if (call->slow)
                usleep(total % call->slow);
            after[pc_n] += total + pc_n; /* twice would show */
        }
        if (call->waits)
            pc_barrier(pc_self);
    }
}

#define PC_CALL struct call
#define PC_BODY body
#include "polyc_pool.h"

void run(u64 *rows, int loops, int width, int late, int slow, int threads)
{
    struct call call = {rows, loops, width, late, slow, 1, -1};
    pc_run(&call, threads);
}

int run_until(u64 *rows, int loops, int width, int slow, int ends, int threads)
{
    struct call call = {rows, loops, width, 0, slow, 0, ends};
    return pc_run(&call, threads);
}

#ifdef ALONE
/* ./team BARRIERS: several calls, on four threads, for ThreadSanitizer to watch. */
int main(int number, char **arguments)
{
    (void)number;
    enum { LOOPS = 40, WIDTH = 16, CALLS = 20 };
    for (int n = 0; n < CALLS; n++) {
        u64 *rows = calloc((LOOPS + 1) * WIDTH, sizeof(u64));
        struct call call = {rows, LOOPS, WIDTH, 0, 50, *arguments[1] == '1', n % 3 - 1};
        pc_run(&call, 4);
        free(rows);
    }
    return 0;
}
#endif
