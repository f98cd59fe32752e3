/* How fast this machine computes and moves data. Every function returns the best of many tries, each
   of a millisecond or less: a ceiling is wanted, other work on the machine only ever makes a try
   slower, and a short one is likely to run alone.

   SIMD_BYTES and REGISTERS, those of the target, are defined in front of this text. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef int64_t i64;
typedef float vec __attribute__((vector_size(SIMD_BYTES)));
enum { LANES = SIMD_BYTES / 4, SUMS = REGISTERS - 4, STREAMS = 8 };

static volatile float sink;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double better(double best, double rate)
{
    return rate > best ? rate : best;
}

/* ---- Threads ---- */

enum { THREADS = 1024, SPINS = 100000 };

typedef struct job {
    void (*work)(struct job *job, int rank);
    int threads;
    const float *x;
    float *y;
    i64 n, slices;
    int repeats;
    double best; /* a rate, of rank 0 */
    int go;      /* 1 when all threads are there, -1 if some are missing */
    _Alignas(128) int arrived;
    _Alignas(128) int generation;
} job;

typedef struct {
    job *job;
    int rank;
} member;

/* Wait for all threads. One that waits for long gives its core away: there may be too few. */
static void meet(job *j)
{
    int generation = __atomic_load_n(&j->generation, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&j->arrived, 1, __ATOMIC_ACQ_REL) == j->threads) {
        __atomic_store_n(&j->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&j->generation, generation + 1, __ATOMIC_RELEASE);
        return;
    }
    for (int spins = 0; __atomic_load_n(&j->generation, __ATOMIC_ACQUIRE) == generation; spins++) {
        if (spins > SPINS)
            sched_yield();
#ifdef __x86_64__
        _mm_pause();
#endif
    }
}

static void *enter(void *argument)
{
    member *m = argument;
    int go;
    while (!(go = __atomic_load_n(&m->job->go, __ATOMIC_ACQUIRE)))
        sched_yield();
    if (go > 0)
        m->job->work(m->job, m->rank);
    return 0;
}

/* The job's rate, with all its threads at work; 0 where they cannot be started. */
static double run(job *j)
{
    static pthread_t handles[THREADS];
    static member members[THREADS];
    if (j->threads > THREADS)
        j->threads = THREADS;
    int made = 0;
    for (int k = 0; k < j->threads; k++)
        members[k] = (member){j, k};
    while (made + 1 < j->threads && !pthread_create(&handles[made], 0, enter, &members[made + 1]))
        made++;
    __atomic_store_n(&j->go, made + 1 == j->threads ? 1 : -1, __ATOMIC_RELEASE);
    enter(&members[0]);
    for (int k = 0; k < made; k++)
        pthread_join(handles[k], 0);
    return j->best;
}

/* ---- Rates ---- */

/* Operations a second: SUMS independent chains of multiply-adds in registers. */
double fma_rate(long rounds, int repeats)
{
    double best = 0;
    for (int r = 0; r < repeats; r++) {
        vec sum[SUMS], factor, term;
        for (int l = 0; l < LANES; l++) {
            factor[l] = 0.999f - 0.001f * (float)r;
            term[l] = 0.5f + (float)l;
        }
        for (int k = 0; k < SUMS; k++)
            sum[k] = term * (float)k;
        double start = now();
        for (long i = 0; i < rounds; i++) {
#pragma GCC unroll 64
            for (int k = 0; k < SUMS; k++)
                sum[k] = sum[k] * factor + term;
        }
        double seconds = now() - start;
        for (int k = 0; k < SUMS; k++)
            for (int l = 0; l < LANES; l++)
                sink = sum[k][l];
        best = better(best, 2.0 * LANES * SUMS * (double)rounds / seconds);
    }
    return best;
}

/* The same of products of bfloat16, where an instruction adds two to each lane; else 0. */
double pair_rate(long rounds, int repeats)
{
    double best = 0;
#if defined __AVX512BF16__ && SIMD_BYTES == 64
    for (int r = 0; r < repeats; r++) {
        __m512 sum[SUMS];
        __m512bh factors = (__m512bh)_mm512_set1_epi32(0x3f7f3f7f - r);
        for (int k = 0; k < SUMS; k++)
            sum[k] = _mm512_set1_ps((float)k);
        double start = now();
        for (long i = 0; i < rounds; i++) {
#pragma GCC unroll 64
            for (int k = 0; k < SUMS; k++)
                sum[k] = _mm512_dpbf16_ps(sum[k], factors, factors);
        }
        double seconds = now() - start;
        for (int k = 0; k < SUMS; k++)
            sink = _mm512_reduce_add_ps(sum[k]);
        best = better(best, 4.0 * LANES * SUMS * (double)rounds / seconds);
    }
#endif
    return best;
}

/* Multiply-adds a second of which each needs the result of the one before. */
double chain_rate(long rounds, int repeats)
{
    double best = 0;
    for (int r = 0; r < repeats; r++) {
        vec sum = {0}, factor, term;
        for (int l = 0; l < LANES; l++) {
            factor[l] = 0.999f - 0.001f * (float)r;
            term[l] = 0.5f + (float)l;
        }
        double start = now();
        for (long i = 0; i < rounds; i++)
            sum = sum * factor + term;
        double seconds = now() - start;
        sink = sum[0];
        best = better(best, (double)rounds / seconds);
    }
    return best;
}

/* The sum of n elements, n a multiple of STREAMS * LANES. */
static float sum_up(const float *x, i64 n)
{
    vec sum[STREAMS] = {0}, total = {0};
    for (i64 i = 0; i < n; i += STREAMS * LANES) {
#pragma GCC unroll 8
        for (int k = 0; k < STREAMS; k++)
            sum[k] += *(const vec *)&x[i + k * LANES];
    }
    for (int k = 0; k < STREAMS; k++)
        total += sum[k];
    return total[0];
}

/* Bytes a second that one core reads `passes` times from n elements, which stay in a cache. */
double cache_rate(const float *x, i64 n, i64 passes, int repeats)
{
    double best = 0;
    float total = sum_up(x, n);
    for (int r = 0; r < repeats; r++) {
        double start = now();
        for (i64 p = 0; p < passes; p++) {
            total += sum_up(x, n);
            __asm__ volatile("" ::: "memory"); /* the next pass reads again */
        }
        best = better(best, 4.0 * (double)(n * passes) / (now() - start));
    }
    sink = total;
    return best;
}

static void read_slices(job *j, int rank)
{
    float total = 0;
    for (i64 s = 0; s < j->slices * j->repeats; s++) {
        meet(j);
        double start = now();
        total += sum_up(j->x + (s % j->slices * j->threads + rank) * j->n, j->n);
        meet(j);
        if (rank == 0 && s >= j->slices)
            j->best = better(j->best, 4.0 * (double)(j->n * j->threads) / (now() - start));
    }
    sink = total;
}

/* Bytes a second that `threads` read from memory: a slice of n elements each is a try, and the
   slices of a try follow one another through all `slices` before any is read again. The first walk
   does not count: caches may hold what was written last. */
double read_rate(const float *x, i64 n, i64 slices, int threads, int repeats)
{
    job j = {.work = read_slices, .threads = threads, .x = x, .n = n, .slices = slices,
             .repeats = repeats};
    return run(&j);
}

/* Store past the caches, where the instruction set can; an ordinary store where not. */
static void store_past(float *y, vec value)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    _mm512_stream_ps(y, (__m512)value);
#elif defined(__AVX__) && SIMD_BYTES == 32
    _mm256_stream_ps(y, (__m256)value);
#elif defined(__SSE2__) && SIMD_BYTES == 16
    _mm_stream_ps(y, (__m128)value);
#else
    *(vec *)y = value;
#endif
}

static void copy_plainly(const float *x, float *y, i64 n)
{
    for (i64 i = 0; i < n; i += LANES)
        *(vec *)&y[i] = *(const vec *)&x[i] + 1.0f;
}

static void copy_past(const float *x, float *y, i64 n)
{
    for (i64 i = 0; i < n; i += LANES)
        store_past(&y[i], *(const vec *)&x[i] + 1.0f);
}

static void copy_slices(job *j, int rank)
{
    for (i64 s = 0; s < j->slices * j->repeats; s++) {
        i64 first = (s % j->slices * j->threads + rank) * j->n;
        meet(j);
        double start = now();
        /* Whole walks of one kind: a slice never finds the other kind's lines in a cache. */
        (s / j->slices % 2 ? copy_past : copy_plainly)(j->x + first, j->y + first, j->n);
        meet(j);
        if (rank == 0 && s >= j->slices)
            j->best = better(j->best, 8.0 * (double)(j->n * j->threads) / (now() - start));
    }
}

/* Bytes read and written a second, in tries as above: y = x + 1, by either kind of store. */
double copy_rate(const float *x, float *y, i64 n, i64 slices, int threads, int repeats)
{
    job j = {.work = copy_slices, .threads = threads, .x = x, .y = y, .n = n, .slices = slices,
             .repeats = repeats};
    return run(&j);
}

static void meet_often(job *j, int rank)
{
    for (int r = 0; r < j->repeats; r++) {
        meet(j);
        double start = now();
        for (i64 i = 0; i < j->n; i++)
            meet(j);
        if (rank == 0)
            j->best = better(j->best, (double)j->n / (now() - start));
    }
}

/* Meetings a second of all threads. */
double barrier_rate(i64 rounds, int threads, int repeats)
{
    job j = {.work = meet_often, .threads = threads, .n = rounds, .repeats = repeats};
    return run(&j);
}
