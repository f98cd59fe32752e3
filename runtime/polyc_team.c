/* polyc_team.c: the part of the runtime that is compiled once for all libraries, and linked to each -
   what polyc_team.h, polyc_pool.h and polyc_stop.h only declare, and describe. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "polyc_types.h"
#include "polyc_team.h"
#include "polyc_pool.h"
#include "polyc_stop.h"

/* ---- Shared loops, and waiting --------------------------------------------------------------- */

#define PC_UNITS 0xffff /* the most that a range is divided into */

int pc_claim_from_team(pc_part *part)
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

/* How often a thread that waits looks again before it sleeps: 1 ms where a pause takes 25 ns (AMD
   Zen 5). Most waits are far shorter. To sleep early is dear on a machine with other work to do, and
   to yield the core is dearer: anything else that runs there, however low its priority, may then
   keep it for milliseconds. */
#define PC_SPINS 40000

/* The same with fewer cores than threads: what is waited for may need this core. */
#define PC_SPINS_CROWDED 400

#define PC_NAP_NS 20000

PC_INLINE void pc_pause(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

void pc_wait(const pc_thread *self)
{
    for (int spins = 0; __atomic_load_n(&self->team->done, __ATOMIC_ACQUIRE) < self->due; spins++) {
        if (spins < self->spins)
            pc_pause();
        else
            nanosleep(&(struct timespec){.tv_nsec = PC_NAP_NS}, NULL);
    }
}

/* ---- Between launches ----------------------------------------------------------------------- */

static double pc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double pc_begin(const pc_thread *self)
{
    pc_barrier(self);
    return pc_now();
}

void pc_finish(const pc_thread *self, double began, double *seconds)
{
    pc_barrier(self);
    if (self->rank == 0)
        *seconds += pc_now() - began;
}

#define PC_QUESTION_NS 250000000 /* from one question to the next */

static int (*pc_watcher)(void);

void polyc_watch(int (*watcher)(void))
{
    __atomic_store_n(&pc_watcher, watcher, __ATOMIC_RELAXED);
}

static int pc_ask(pc_thread *self, int (*watcher)(void))
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    const i64 now = (i64)t.tv_sec * 1000000000 + t.tv_nsec;
    if (self->question && now >= self->question && syscall(SYS_gettid) == getpid())
        self->stopped = watcher();
    if (!self->question || now >= self->question)
        self->question = now + PC_QUESTION_NS;
    return self->stopped;
}

int pc_is_stopped(pc_thread *self)
{
    if (self->rank)
        return __atomic_load_n(&self->team->stopped, __ATOMIC_RELAXED);
    int (*const watcher)(void) = __atomic_load_n(&pc_watcher, __ATOMIC_RELAXED);
    return watcher && (self->stopped || pc_ask(self, watcher));
}

/* ---- The pool ------------------------------------------------------------------------------- */

static struct {
    pc_team team;

    /* The call under way; readers copy it and check that `door` has not moved meanwhile. */
    _Alignas(128) u64 door; /* odd: open */
    int size;               /* of the team */
    int spins;
    u64 loops;              /* where its numbering starts */
    i64 due;
    const pc_job *job;      /* that of the library, from the first worker on */

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
        const pc_job *const job = pc_pool.job;
        u64 copy[job->words];
        pc_thread self = {
            .team = &pc_pool.team,
            .size = __atomic_load_n(&pc_pool.size, __ATOMIC_ACQUIRE),
            .rank = (int)(intptr_t)rank,
            .spins = __atomic_load_n(&pc_pool.spins, __ATOMIC_ACQUIRE),
            .loops = __atomic_load_n(&pc_pool.loops, __ATOMIC_ACQUIRE),
            .due = __atomic_load_n(&pc_pool.due, __ATOMIC_ACQUIRE),
        };
        for (int k = 0; k < job->words; k++)
            copy[k] = __atomic_load_n(&job->letter[k], __ATOMIC_ACQUIRE);
        /* In this order: who shuts the door and then finds nobody inside is alone. */
        __atomic_add_fetch(&pc_pool.inside, 1, __ATOMIC_SEQ_CST);
        const u64 now = __atomic_load_n(&pc_pool.door, __ATOMIC_SEQ_CST);
        if (now == door && door & 1 && self.rank < self.size)
            job->body(&self, copy);
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
static void pc_hire(const pc_job *job, int enough)
{
    static int forkable;
    if (!forkable)
        forkable = pthread_atfork(NULL, NULL, pc_forget) == 0;
    if (!pc_pool.job)
        pc_pool.job = job;
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
static void pc_place(int pinned)
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
        if (pinned) {
            do
                core = (core + 1) % CPU_SETSIZE;
            while (!CPU_ISSET(core, &cores));
            CPU_ZERO(&one);
            CPU_SET(core, &one);
        }
        pthread_setaffinity_np(pc_pool.threads[k], sizeof cores, pinned ? &one : &cores);
    }
}

static void pc_open(const pc_job *job, const u64 *arguments, int size, int spins)
{
    for (int k = 0; k < job->words; k++)
        __atomic_store_n(&job->letter[k], arguments[k], __ATOMIC_RELEASE);
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

int pc_run_job(const pc_job *job, const u64 *arguments, int threads)
{
    const int size = threads < PC_THREADS ? threads : PC_THREADS;
    if (size <= 1 || __atomic_exchange_n(&pc_pool.busy, 1, __ATOMIC_ACQUIRE)) {
        pc_thread alone = {.size = 1};
        job->body(&alone, arguments);
        return alone.stopped;
    }
    if (pc_pool.workers < size - 1)
        pc_hire(job, size - 1);
    pc_place(job->pinned);
    pc_thread self = {
        .team = &pc_pool.team,
        .size = size,
        .spins = pc_pool.cores < size - 1 ? PC_SPINS_CROWDED : PC_SPINS,
        .loops = pc_pool.loops,
        .due = pc_pool.due,
    };
    pc_open(job, arguments, size, self.spins);
    job->body(&self, arguments);
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
