/* polyc_team.h: how the threads of a model share its loops, and when they wait for one another.

   A shared loop of n iterations is cut into one range a thread. A thread takes iterations from its
   own range first, half of what is left at a time, and then from the ranges of others. Threads that
   keep pace so compute the same ranges in every loop, and find in their caches what they wrote; and
   nobody waits for a thread that comes late or has lost its core to another process, because the
   others do its part. Only iterations that someone has begun are waited for (Blumofe and Leiserson
   1999, "Scheduling multithreaded computations by work stealing", is the ancestor; here a loop is
   known to all threads beforehand, so one word a range holds all there is to steal).

   All threads go through the same loops in the same order and number them alike, from the first
   call of the model on. A range's word names the loop that it was last used for: a thread that is
   behind sees from it that its loop is over, and nothing is ever reset. */

#ifndef POLYC_TEAM_H
#define POLYC_TEAM_H

#include <time.h>

#define PC_THREADS 256 /* the most that a team may have */

/* What threads share; on lines of their own, and not on neighbours that are fetched together. */
typedef struct {
    struct {
        _Alignas(128) u64 taken; /* number of the loop << 16 | units taken of the range */
    } ranges[PC_THREADS];
    _Alignas(128) i64 done; /* iterations finished, of all loops so far */
    int stopped;            /* the call is to end early */
} pc_team;

#define PC_UNITS 0xffff /* the most that a range is divided into */

/* One thread of a team. Rank 0 is the caller; a team of one shares nothing. */
typedef struct {
    pc_team *team;
    int size;
    int rank;
    int spins; /* see PC_SPINS */
    u64 loops; /* shared loops begun so far, */
    i64 due;   /* and all their iterations: the same for all threads at the same place */
    i64 question; /* the caller's: when to ask again whether to stop (polyc_stop.h), */
    int stopped;  /* and the answer */
    int late;     /* the call is over: see pc_hear */
} pc_thread;

/* What decides which way a call goes, and the loop in which it was found out; one for each place. */
typedef struct {
    u64 loop;
    i64 value;
} pc_decision;

/* A loop on its way through one thread: iterations [begin, end) are this thread's. */
typedef struct {
    pc_thread *thread;
    i64 count;
    i64 begin;
    i64 end;
    i64 finished; /* by this thread, but not yet told to the others */
    int visited;  /* ranges in which nothing is left, counted from the thread's own */
} pc_part;

PC_INLINE void pc_pause(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

PC_INLINE pc_part pc_share(pc_thread *self, i64 count)
{
    self->loops += 1;
    self->due += count;
    return (pc_part){.thread = self, .count = count};
}

static __attribute__((noinline, unused)) int pc_claim_from_team(pc_part *part)
{
    const pc_thread *self = part->thread;
    part->finished += part->end - part->begin;
    for (; part->visited < self->size; part->visited++) {
        const i64 owner = (self->rank + part->visited) % self->size;
        const i64 first = part->count * owner / self->size;
        const i64 size = part->count * (owner + 1) / self->size - first;
        if (!size)
            continue;
        const i64 unit = size / PC_UNITS + 1, units = (size + unit - 1) / unit;
        u64 *word = &self->team->ranges[owner].taken;
        u64 seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        for (;;) {
            const i64 taken = seen >> 16 < self->loops ? 0 : (i64)(seen & PC_UNITS);
            if (seen >> 16 > self->loops || taken >= units)
                break;
            const i64 after = taken + (units - taken + 1) / 2;
            const u64 wanted = self->loops << 16 | (u64)after;
            if (__atomic_compare_exchange_n(
                    word, &seen, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                part->begin = first + taken * unit;
                part->end = first + (after < units ? after * unit : size);
                return 1;
            }
        }
    }
    part->begin = part->end = 0;
    if (part->finished)
        __atomic_add_fetch(&self->team->done, part->finished, __ATOMIC_RELEASE);
    part->finished = 0;
    return 0;
}

/* Take iterations of the loop; false when none are left. Taking again says that they are done. */
PC_INLINE int pc_claim(pc_part *part)
{
    if (part->thread->size > 1)
        return pc_claim_from_team(part);
    part->begin = part->end;
    part->end = part->count;
    return part->begin < part->end;
}

/* PC_SHARE(count) { … pc_n … }: iterations 0 to count - 1, shared out among the team of pc_self. */
#define PC_SHARE(count)                                                   \
    for (pc_part pc_mine = pc_share(pc_self, count); pc_claim(&pc_mine);) \
        for (i64 pc_n = pc_mine.begin, pc_end = pc_mine.end; pc_n < pc_end; pc_n++)

/* Tell all threads a value, in a loop of one iteration that is shared: who runs it finds the value
   out. A second caller runs alone, beside the team, and keeps it to itself. */
PC_INLINE void pc_tell(const pc_thread *self, pc_decision *told, i64 *own, i64 value)
{
    *own = value;
    if (self->size > 1) {
        __atomic_store_n(&told->loop, 0, __ATOMIC_RELAXED); /* of no loop while it changes */
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(&told->value, value, __ATOMIC_RELAXED);
        __atomic_store_n(&told->loop, self->loops, __ATOMIC_RELEASE);
    }
}

/* What was told in the last loop, behind the barrier after it. A thread that comes so late that
   another call has told something since is told that instead: its own call is over, and there is
   nothing left for it to do. */
PC_INLINE int pc_hear(pc_thread *self, const pc_decision *told, i64 *own)
{
    if (self->size > 1) {
        const u64 before = __atomic_load_n(&told->loop, __ATOMIC_ACQUIRE);
        *own = __atomic_load_n(&told->value, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        const u64 after = __atomic_load_n(&told->loop, __ATOMIC_RELAXED);
        self->late = before != self->loops || after != self->loops;
    }
    return !self->late;
}

/* The number of iterations of: for (i = lower; i < upper; i += step). */
PC_INLINE i64 pc_trips(i64 lower, i64 upper, i64 step)
{
    return lower < upper ? (upper - lower + step - 1) / step : 0;
}

/* How often a thread that waits looks again before it sleeps: 1 ms where a pause takes 25 ns (AMD
   Zen 5). Most waits are far shorter. To sleep early is dear on a machine with other work to do, and
   to yield the core is dearer: anything else that runs there, however low its priority, may then
   keep it for milliseconds. */
#define PC_SPINS 40000

/* The same with fewer cores than threads: what is waited for may need this core. */
#define PC_SPINS_CROWDED 400

#define PC_NAP_NS 20000

/* pc_barrier of a team of several: a function, since kernels and drivers have many barriers. */
static __attribute__((noinline, unused)) void pc_wait(const pc_thread *self)
{
    for (int spins = 0; __atomic_load_n(&self->team->done, __ATOMIC_ACQUIRE) < self->due; spins++) {
        if (spins < self->spins)
            pc_pause();
        else
            nanosleep(&(struct timespec){.tv_nsec = PC_NAP_NS}, NULL);
    }
}

/* Wait until all iterations of all loops so far are finished: everything before is seen by
   everything after. */
PC_INLINE void pc_barrier(const pc_thread *self)
{
    if (self->size > 1)
        pc_wait(self);
}

#endif
