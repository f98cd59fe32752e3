/* How fast this machine computes and moves data. Every function returns the best of many tries, each
   of a millisecond or less: a ceiling is wanted, other work on the machine only ever makes a try
   slower, and a short one is likely to run alone.

   SIMD_BYTES and REGISTERS, those of the target, are defined in front of this text. */
#include <omp.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "polyc.h"

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

/* Bytes a second that `threads` read from memory: a slice of n elements each is a try, and the
   slices of a try follow one another through all `slices` before any is read again. The first walk
   does not count: caches may hold what was written last. */
double read_rate(const float *x, i64 n, i64 slices, int threads, int repeats)
{
    double best = 0;
#pragma omp parallel num_threads(threads)
    {
        i64 me = omp_get_thread_num();
        float total = 0;
        for (i64 s = 0; s < slices * repeats; s++) {
#pragma omp barrier
            double start = now();
            total += sum_up(x + (s % slices * threads + me) * n, n);
#pragma omp barrier
#pragma omp master
            best = better(best, 4.0 * (double)(n * threads) / (now() - start) * (s >= slices));
        }
        sink = total;
    }
    return best;
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

/* Bytes read and written a second, in tries as above: y = x + 1, by either kind of store. */
double copy_rate(const float *x, float *y, i64 n, i64 slices, int threads, int repeats)
{
    double best = 0;
#pragma omp parallel num_threads(threads)
    {
        i64 me = omp_get_thread_num();
        for (i64 s = 0; s < slices * repeats; s++) {
            i64 first = (s % slices * threads + me) * n;
#pragma omp barrier
            double start = now();
            /* Whole rounds of one kind: a slice never finds the other kind's lines in a cache. */
            (s / slices % 2 ? copy_past : copy_plainly)(x + first, y + first, n);
#pragma omp barrier
#pragma omp master
            best = better(best, 8.0 * (double)(n * threads) / (now() - start) * (s >= slices));
        }
    }
    return best;
}

/* Meetings a second of all threads, at the barrier that kernels have between them. */
double barrier_rate(long rounds, int threads, int repeats)
{
    double best = 0;
    for (int r = 0; r < repeats; r++) {
        double start = 0, stop = 0;
        pc_team team = {threads, 0, 0};
#pragma omp parallel num_threads(threads)
        {
            pc_barrier(&team);
#pragma omp master
            start = now();
            for (long i = 0; i < rounds; i++)
                pc_barrier(&team);
#pragma omp master
            stop = now();
        }
        best = better(best, (double)rounds / (stop - start));
    }
    return best;
}
