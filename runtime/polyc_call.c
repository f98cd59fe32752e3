/* polyc_call.c: a model's function as Python calls it, for arrays that are just as it wants them.

   What a call costs besides its kernels is Python's way to the bytes of each array: three
   microseconds, for a model that may take one. Here an array's header is read instead, which lies
   as NumPy promises to all that is compiled against it (numpy/ndarraytypes.h); `run/quick.py` looks
   whether it does before anybody calls this, and fills in `model`. All other arrays are declined:
   Python converts them, or says what is wrong. */

#include <stdint.h>

enum {
    MOST = 32, /* arrays of a call */
    IN_ORDER = 0x0001 | 0x0100 | 0x0400, /* C-contiguous, aligned, writable */
    DECLINED = 0x7fffffff,
};

typedef struct {
    intptr_t references;
    const void *type;
} object;

typedef struct {
    object head;
    const void *element;
    char kind, letter, order, flags;
    int number;
} dtype;

typedef struct {
    object head;
    char *data;
    int rank;
    const intptr_t *shape;
    const intptr_t *strides;
    object *base;
    const dtype *dtype;
    int flags;
} array;

/* What a call needs, at the beginning of an array of bytes; its arena lies behind. */
typedef struct {
    void *(*release)(void); /* the lock that Python's threads share */
    void (*acquire)(void *);
    object *(*to_number)(long);
    long (*of_number)(object *);
    int (*run)(void *const *, const void *, void *, const int64_t *, int);
    const void *weights;
    void *arena;
    const int64_t *sizes;
    const void *type; /* of arrays; not of subclasses */
    int64_t busy;
    int64_t count;
    int64_t wanted[]; /* of each array: its dtype, its rank, its shape */
} model;

/* Types of numbers are mostly one object each; what another process sent has one of its own. */
static int is_same(const dtype *a, const dtype *b)
{
    return a == b || (a->element == b->element && a->order == b->order && a->number == b->number);
}

static int is_wanted(const model *m, object *const *given, intptr_t count, void **io)
{
    const int64_t *wanted = m->wanted;
    if (count != m->count)
        return 0;
    for (intptr_t k = 0; k < count; k++) {
        const array *const a = (const array *)given[k];
        if (a->head.type != m->type || !is_same(a->dtype, (const dtype *)wanted[0]))
            return 0;
        if (a->rank != wanted[1] || (a->flags & IN_ORDER) != IN_ORDER)
            return 0;
        wanted += 2;
        for (int d = 0; d < a->rank; d++)
            if (a->shape[d] != *wanted++)
                return 0;
        io[k] = a->data;
    }
    return 1;
}

/* (threads, inputs, outputs) -> what polyc_run returns; DECLINED, having done nothing, for an array
   that is another than is wanted, and while another thread uses the arena. */
object *polyc_call(object *self, object *const *given, intptr_t count)
{
    model *const m = (model *)((array *)self)->data;
    void *io[MOST];
    const long threads = count ? m->of_number(given[0]) : 1;
    if (threads == -1)
        return 0; /* no number: Python has an exception */
    if (!is_wanted(m, given + 1, count - 1, io) || __atomic_exchange_n(&m->busy, 1, __ATOMIC_ACQUIRE))
        return m->to_number(DECLINED);
    void *const lock = m->release();
    const int status = m->run(io, m->weights, m->arena, m->sizes, (int)threads);
    __atomic_store_n(&m->busy, 0, __ATOMIC_RELEASE);
    m->acquire(lock);
    return m->to_number(status);
}
