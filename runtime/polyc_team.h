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
   behind sees from it that its loop is over, and nothing is ever reset.

   What is here is inlined, and is all that a team of one needs; the rest is in polyc_team.c. */

#ifndef POLYC_TEAM_H
#define POLYC_TEAM_H

/* A function of polyc_team.c, which every library has once. */
#ifdef __cplusplus
#define PC_SHARED extern "C" __attribute__((visibility("hidden")))
#else
#define PC_SHARED extern __attribute__((visibility("hidden")))
#endif

#define PC_THREADS 256 /* the most that a team may have */

/* What threads share; on lines of their own, and not on neighbours that are fetched together. */
typedef struct {
    struct {
        _Alignas(128) u64 taken; /* number of the loop << 16 | units taken of the range */
    } ranges[PC_THREADS];
    _Alignas(128) i64 done; /* iterations finished, of all loops so far */
    int stopped;            /* the call is to end early */
} pc_team;

/* One thread of a team. Rank 0 is the caller; a team of one shares nothing. */
typedef struct {
    pc_team *team;
    int size;
    int rank;
    int spins; /* looks of one that waits before it sleeps */
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

PC_INLINE pc_part pc_share(pc_thread *self, i64 count)
{
    self->loops += 1;
    self->due += count;
    return (pc_part){.thread = self, .count = count};
}

PC_SHARED int pc_claim_from_team(pc_part *part);

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

PC_SHARED void pc_wait(const pc_thread *self);

/* Wait until all iterations of all loops so far are finished: everything before is seen by
   everything after. */
PC_INLINE void pc_barrier(const pc_thread *self)
{
    if (self->size > 1)
        pc_wait(self);
}

#endif
