/* polyc_stop.h: how a call that takes long is ended early. The driver includes it once.

   Who watches a model's calls (polyc_watch) is asked between launches, a few times a second, whether
   the call is to end: so Python hears of signals, which it looks for only while it runs itself. It
   does that on the first thread of a process only, so no other asks. */

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PC_STOPPED (-2147483647 - 1) /* what polyc_run returns then */
#define PC_QUESTION_NS 250000000     /* from one question to the next */

static int (*pc_watcher)(void);

/* Let calls ask a function, which ends them by anything but 0; NULL: ask nobody. */
void polyc_watch(int (*watcher)(void))
{
    __atomic_store_n(&pc_watcher, watcher, __ATOMIC_RELAXED);
}

static __attribute__((noinline, unused)) int pc_ask(pc_thread *self, int (*watcher)(void))
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

/* Whether a thread is to leave the call; the caller decides, and the others follow. Not inlined: a
   driver of thousands of launches would take the C compiler long. */
static __attribute__((noinline, unused)) int pc_is_stopped(pc_thread *self)
{
    if (self->rank)
        return __atomic_load_n(&self->team->stopped, __ATOMIC_RELAXED);
    int (*const watcher)(void) = __atomic_load_n(&pc_watcher, __ATOMIC_RELAXED);
    return watcher && (self->stopped || pc_ask(self, watcher));
}
