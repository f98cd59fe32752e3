/* polyc_stop.h: what a driver does between launches - asks whether the call is to end early, and
   takes the time. The functions are in polyc_team.c.

   Who watches a model's calls (polyc_watch) is asked between launches, a few times a second, whether
   the call is to end: so Python hears of signals, which it looks for only while it runs itself. It
   does that on the first thread of a process only, so no other asks. */

#define PC_STOPPED (-2147483647 - 1) /* what polyc_run returns then */

/* Let calls ask a function, which ends them by anything but 0; NULL: ask nobody. */
void polyc_watch(int (*watcher)(void));

/* Whether a thread is to leave the call; the caller decides, and the others follow. */
PC_SHARED int pc_is_stopped(pc_thread *self);

/* Around a launch: its time is that of all threads together, from a barrier to a barrier. */
PC_SHARED double pc_begin(const pc_thread *self);
PC_SHARED void pc_finish(const pc_thread *self, double began, double *seconds);
