/* polyc_pool.h: the threads of a model: made by the first call that can use them, asleep between
   calls. The driver includes it once, after saying what a call is:

       #define PC_CALL struct call     // plain data: the arguments of a call
       #define PC_BODY launches        // void launches(pc_thread *self, const PC_CALL *call)
       #include "polyc_pool.h"         // pc_run(&call, threads): whether it was ended early

   The pool itself is in polyc_team.c.

   A call is a team: the caller opens the pool's door, runs the body itself, and shuts the door when
   every iteration is finished. Workers that see the door open run the same body. One that comes
   late finds nothing left to do, and nobody waits for it, not even at the end: it works on a copy
   of the call, and follows its pointers only for iterations that it has claimed.

   A worker looks out for the next call for a millisecond, and then sleeps: waking it takes 5 us of
   the caller's time, and 20 to 40 us until it runs.
   A second caller at the same time runs alone: the pool's threads are at work already.

   A body may leave early (polyc_stop.h). The caller then waits for workers that are inside, because
   they may have got further than itself, and numbers loops from the beginning again. */

/* What all calls of a driver have in common; letter: room for the arguments, in words of 8 bytes. */
typedef struct {
    void (*body)(pc_thread *self, const void *arguments);
    u64 *letter;
    int words;
    int pinned;
} pc_job;

/* The same as pc_run, of arguments that fill whole words. */
PC_SHARED int pc_run_job(const pc_job *job, const u64 *arguments, int threads);

#ifdef PC_CALL

#ifndef PC_PINNED
#define PC_PINNED 0 /* 1: each worker stays on one core */
#endif

typedef union {
    PC_CALL call;
    u64 words[(sizeof(PC_CALL) + 7) / 8];
} pc_letter;

static void pc_body(pc_thread *self, const void *arguments)
{
    PC_BODY(self, (const PC_CALL *)arguments);
}

/* Run the body on up to that many threads, the caller's among them; done when all is done, or when
   the body has left early, which is returned. */
static int pc_run(const PC_CALL *call, int threads)
{
    static pc_letter letter;
    static const pc_job job = {pc_body, letter.words, sizeof letter / 8, PC_PINNED};
    if (threads <= 1) {
        pc_thread alone = {.size = 1};
        PC_BODY(&alone, call);
        return alone.stopped;
    }
    const pc_letter copy = {*call};
    return pc_run_job(&job, copy.words, threads);
}

#endif
