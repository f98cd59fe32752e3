/* polyc_pool.h: the threads of a model: made by the first call that can use them, asleep between
   calls. The driver includes it once, after saying what a call is:

       #define PC_CALL struct call     // plain data: the arguments of a call
       #define PC_BODY launches        // void launches(pc_thread *self, const PC_CALL *call)
       #include "polyc_pool.h"         // pc_run(&call, threads): whether it was ended early

   A call is a team: the caller opens the pool's door, runs the body itself, and shuts the door when
   every iteration is finished. Workers that see the door open run the same body. One that comes
   late finds nothing left to do, and nobody waits for it, not even at the end: it works on a copy
   of the call, and follows its pointers only for iterations that it has claimed.

   A worker looks out for the next call for a millisecond, and then sleeps: waking it takes 5 us of
   the caller's time, and 20 to 40 us until it runs.
   A second caller at the same time runs alone: the pool's threads are at work already.

   A body may leave early (polyc_stop.h). The caller then waits for workers that are inside, because
   they may have got further than itself, and numbers loops from the beginning again.
   _GNU_SOURCE must be defined. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#ifndef PC_PINNED
#define PC_PINNED 0 /* 1: each worker stays on one core */
#endif

typedef union {
    PC_CALL call;
    u64 words[(sizeof(PC_CALL) + 7) / 8];
} pc_letter;

static struct {
    pc_team team;

    /* The call under way; readers copy it and check that `door` has not moved meanwhile. */
    _Alignas(128) u64 door; /* odd: open */
    int size;               /* of the team */
    int spins;
    u64 loops;              /* where its numbering starts */
    i64 due;
    pc_letter letter;

    _Alignas(128) int inside; /* workers that may run the body */

    _Alignas(128) int busy; /* some caller has the pool; what follows is its */
    int workers;
    int home;  /* the core that workers keep off: the caller's */
    int cores; /* those that are left to them */
    pthread_t threads[PC_THREADS];

    pthread_mutex_t lock; /* for sleeping: */
    pthread_cond_t wake;
    int sleepers;
    int closing;
} pc_pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .home = -1};

/* ---- Workers -------------------------------------------------------------------------------- */

PC_INLINE int pc_is_called(u64 last)
{
    const u64 door = __atomic_load_n(&pc_pool.door, __ATOMIC_SEQ_CST);
    return (door & 1 && door != last) || __atomic_load_n(&pc_pool.closing, __ATOMIC_RELAXED);
}

/* The door of the next call, after the one of the last; 0 when the pool is closing. */
static u64 pc_await(u64 last)
{
    const int patience = __atomic_load_n(&pc_pool.spins, __ATOMIC_RELAXED);
    for (int spins = 0; spins < patience && !pc_is_called(last); spins++)
        pc_pause();
    if (!pc_is_called(last)) {
        pthread_mutex_lock(&pc_pool.lock);
        __atomic_add_fetch(&pc_pool.sleepers, 1, __ATOMIC_SEQ_CST);
        while (!pc_is_called(last))
            pthread_cond_wait(&pc_pool.wake, &pc_pool.lock);
        __atomic_sub_fetch(&pc_pool.sleepers, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&pc_pool.lock);
    }
    const int closing = __atomic_load_n(&pc_pool.closing, __ATOMIC_RELAXED);
    return closing ? 0 : __atomic_load_n(&pc_pool.door, __ATOMIC_ACQUIRE);
}

static void *pc_work(void *rank)
{
    for (u64 door = 0; (door = pc_await(door));) {
        pc_letter copy;
        pc_thread self = {
            .team = &pc_pool.team,
            .size = __atomic_load_n(&pc_pool.size, __ATOMIC_ACQUIRE),
            .rank = (int)(intptr_t)rank,
            .spins = __atomic_load_n(&pc_pool.spins, __ATOMIC_ACQUIRE),
            .loops = __atomic_load_n(&pc_pool.loops, __ATOMIC_ACQUIRE),
            .due = __atomic_load_n(&pc_pool.due, __ATOMIC_ACQUIRE),
        };
        for (unsigned k = 0; k < sizeof copy / 8; k++)
            copy.words[k] = __atomic_load_n(&pc_pool.letter.words[k], __ATOMIC_ACQUIRE);
        /* In this order: who shuts the door and then finds nobody inside is alone. */
        __atomic_add_fetch(&pc_pool.inside, 1, __ATOMIC_SEQ_CST);
        const u64 now = __atomic_load_n(&pc_pool.door, __ATOMIC_SEQ_CST);
        if (now == door && door & 1 && self.rank < self.size)
            PC_BODY(&self, &copy.call);
        __atomic_sub_fetch(&pc_pool.inside, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* ---- The caller ----------------------------------------------------------------------------- */

/* In the child of a fork there are no workers, and a call that another thread was in is lost. */
static void pc_forget(void)
{
    memset(&pc_pool, 0, sizeof pc_pool);
    pc_pool.home = -1;
    pthread_mutex_init(&pc_pool.lock, NULL);
    pthread_cond_init(&pc_pool.wake, NULL);
}

/* Make workers until there are enough, or the system gives no more. They take no signals: those are
   for the program's own threads. */
static void pc_hire(int enough)
{
    static int forkable;
    if (!forkable)
        forkable = pthread_atfork(NULL, NULL, pc_forget) == 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pc_pool.workers < enough) {
        void *rank = (void *)(intptr_t)(pc_pool.workers + 1);
        if (pthread_create(&pc_pool.threads[pc_pool.workers], NULL, pc_work, rank))
            break;
        pc_pool.workers++;
        pc_pool.home = -1;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Keep workers off the caller's core. The system may well wake a worker on the core of the thread
   that wakes it, if another has some load, and leave both there for milliseconds, each spinning
   while it waits for the other (measured: SqueezeNet on two threads took 18 ms in place of 2.5). */
static void pc_place(void)
{
    const int home = sched_getcpu();
    cpu_set_t cores;
    if (home == pc_pool.home || home < 0 || sched_getaffinity(0, sizeof cores, &cores))
        return;
    pc_pool.home = home;
    CPU_CLR(home, &cores);
    pc_pool.cores = CPU_COUNT(&cores);
    for (int k = 0, core = -1; k < pc_pool.workers && pc_pool.cores; k++) {
        cpu_set_t one;
        if (PC_PINNED) {
            do
                core = (core + 1) % CPU_SETSIZE;
            while (!CPU_ISSET(core, &cores));
            CPU_ZERO(&one);
            CPU_SET(core, &one);
        }
        pthread_setaffinity_np(pc_pool.threads[k], sizeof cores, PC_PINNED ? &one : &cores);
    }
}

static void pc_open(const PC_CALL *call, int size, int spins)
{
    const pc_letter letter = {*call};
    for (unsigned k = 0; k < sizeof letter / 8; k++)
        __atomic_store_n(&pc_pool.letter.words[k], letter.words[k], __ATOMIC_RELEASE);
    __atomic_store_n(&pc_pool.size, size, __ATOMIC_RELEASE);
    __atomic_store_n(&pc_pool.spins, spins, __ATOMIC_RELEASE);
    __atomic_add_fetch(&pc_pool.door, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pc_pool.sleepers, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&pc_pool.lock);
        pthread_cond_broadcast(&pc_pool.wake);
        pthread_mutex_unlock(&pc_pool.lock);
    }
}

/* Leave a call in which nobody waits for what is left of it. */
static void pc_abandon(void)
{
    __atomic_store_n(&pc_pool.team.stopped, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&pc_pool.door, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&pc_pool.inside, __ATOMIC_SEQ_CST))
        nanosleep(&(struct timespec){.tv_nsec = PC_NAP_NS}, NULL);
    for (int k = 0; k < PC_THREADS; k++)
        __atomic_store_n(&pc_pool.team.ranges[k].taken, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pc_pool.team.done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pc_pool.team.stopped, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pc_pool.loops, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&pc_pool.due, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&pc_pool.busy, 0, __ATOMIC_RELEASE);
}

/* Run the body on up to that many threads, the caller's among them; done when all is done, or when
   the body has left early, which is returned. */
static int pc_run(const PC_CALL *call, int threads)
{
    const int size = threads < PC_THREADS ? threads : PC_THREADS;
    if (size <= 1 || __atomic_exchange_n(&pc_pool.busy, 1, __ATOMIC_ACQUIRE)) {
        pc_thread alone = {.size = 1};
        PC_BODY(&alone, call);
        return alone.stopped;
    }
    if (pc_pool.workers < size - 1)
        pc_hire(size - 1);
    pc_place();
    pc_thread self = {
        .team = &pc_pool.team,
        .size = size,
        .spins = pc_pool.cores < size - 1 ? PC_SPINS_CROWDED : PC_SPINS,
        .loops = pc_pool.loops,
        .due = pc_pool.due,
    };
    pc_open(call, size, self.spins);
    PC_BODY(&self, call);
    if (self.stopped) {
        pc_abandon();
        return 1;
    }
    pc_barrier(&self);
    __atomic_add_fetch(&pc_pool.door, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&pc_pool.loops, self.loops, __ATOMIC_RELEASE);
    __atomic_store_n(&pc_pool.due, self.due, __ATOMIC_RELEASE);
    __atomic_store_n(&pc_pool.busy, 0, __ATOMIC_RELEASE);
    return 0;
}

/* Before the library is unloaded, or the process ends: no thread may be left in its code. */
static __attribute__((destructor)) void pc_dismiss(void)
{
    pthread_mutex_lock(&pc_pool.lock);
    __atomic_store_n(&pc_pool.closing, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&pc_pool.wake);
    pthread_mutex_unlock(&pc_pool.lock);
    for (int k = 0; k < pc_pool.workers; k++)
        pthread_join(pc_pool.threads[k], NULL);
}
