/* polyc_vector.h of the exact run: PC_LANES values of PC_TYPE, in the field if that is a float. */

#if !PC_PASTE(PC_FIELD_, PC_TYPE)
#ifdef PC_QUANTISED
#undef PC_QUANTISED
#include "polyc_quantised.h"
#endif
#include "../polyc_vector.h"
#else

#define T PC_TYPE
#define V PC_PASTE3(PC_TYPE, x, PC_LANES)
#define B PC_PASTE(b8x, PC_LANES)
#define FN(name) PC_PASTE3(pc_, name##_, V)
#define KIND PC_PASTE(PC_KIND_, PC_TYPE)
#define UV PC_PASTE3(PC_PASTE(u, PC_PASTE(PC_BITS_, PC_TYPE)), x, PC_LANES)
#define EACH_LANE for (int l = 0; l < PC_LANES; l++)

/* ---- Memory: as polyc_memory.h has it ---------------------------------------------------------- */

typedef V::raw FN(memory) __attribute__((aligned(sizeof(T)), may_alias));

PC_INLINE V FN(load)(const T *p)
{
    V v;
    v.r = *(const FN(memory) *)p;
    return v;
}
PC_INLINE void FN(store)(T *p, V v) { *(FN(memory) *)p = v.r; }
PC_INLINE V FN(loads)(const T *p, i64 stride)
{
    V v;
    EACH_LANE v.r[l] = p[l * stride].r;
    return v;
}
PC_INLINE void FN(stores)(T *p, V v, i64 stride) { EACH_LANE p[l * stride].r = v.r[l]; }
PC_INLINE V FN(loadn)(const T *p, i64 n)
{
    V v;
    EACH_LANE v.r[l] = l < n ? p[l].r : 0;
    return v;
}
PC_INLINE void FN(storen)(T *p, V v, i64 n)
{
    EACH_LANE if (l < n) p[l].r = v.r[l];
}
PC_INLINE V FN(repeat)(const T *p, i64 n)
{
    V v;
    EACH_LANE v.r[l] = p[l % n].r;
    return v;
}
PC_INLINE V FN(pick)(V v, PC_PASTE3(i, PC_PASTE(PC_BITS_, PC_TYPE), PC_PASTE(x, PC_LANES)) lanes)
{
    V r;
    EACH_LANE r.r[l] = v.r[lanes[l]];
    return r;
}
PC_INLINE void FN(transpose)(T *p)
{
    for (int k = 0; k < PC_LANES; k++)
        for (int l = 0; l < k; l++) {
            const T t = p[k * PC_LANES + l];
            p[k * PC_LANES + l] = p[l * PC_LANES + k];
            p[l * PC_LANES + k] = t;
        }
}
PC_INLINE void FN(interleave)(T *p, i64 rows)
{
    T from[PC_LANES * PC_LANES];
    for (int k = 0; k < rows * PC_LANES; k++)
        from[k] = p[k];
    for (int k = 0; k < rows * PC_LANES; k++)
        p[k] = from[k % rows * PC_LANES + k / rows];
}
PC_INLINE V FN(splat)(T a)
{
    V v;
    EACH_LANE v.r[l] = a.r;
    return v;
}

/* ---- Choice: a lane of b8 is 0 or -1 --------------------------------------------------------------- */

PC_INLINE V FN(select)(B condition, V a, V b)
{
    V v;
    EACH_LANE v.r[l] = condition[l] ? a.r[l] : b.r[l];
    return v;
}
PC_INLINE V FN(fill)(V v, i64 n, T e)
{
    EACH_LANE v.r[l] = l < n ? v.r[l] : e.r;
    return v;
}
PC_INLINE UV FN(as_bits)(V a) { return (UV)a.r; }
PC_INLINE V FN(from_bits)(UV bits)
{
    V v;
    EACH_LANE v.r[l] = bits[l] % pc_field::P;
    return v;
}

#if KIND == PC_FLOAT

#define PREDICATE(name) \
    PC_INLINE B PC_PASTE(FN(name), _of)(V a, V b) \
    { \
        B v; \
        EACH_LANE v[l] = pc_field::name(a.r[l], b.r[l]) ? -1 : 0; \
        return v; \
    }
#define COMPARISON(name) \
    PREDICATE(name) \
    PC_INLINE B FN(name)(V a, V b) { return PC_PASTE(FN(name), _of)(a, b); } \
    PC_INLINE V FN(select_##name)(V a, V b, V x, V y) \
    { \
        return FN(select)(PC_PASTE(FN(name), _of)(a, b), x, y); \
    }
COMPARISON(eq) COMPARISON(ne) COMPARISON(lt) COMPARISON(le) COMPARISON(gt) COMPARISON(ge)
PREDICATE(isnan) PREDICATE(isinf)
PC_INLINE B FN(isnan)(V a) { return PC_PASTE(FN(isnan), _of)(a, a); }
PC_INLINE B FN(isinf)(V a) { return PC_PASTE(FN(isinf), _of)(a, a); }
#undef COMPARISON
#undef PREDICATE

PC_INLINE V FN(min)(V a, V b) { return pc_field::smaller(a, b); }
PC_INLINE V FN(max)(V a, V b) { return pc_field::larger(a, b); }
PC_INLINE V FN(smaller)(V a, V b) { return pc_field::smaller(a, b); }
PC_INLINE V FN(larger)(V a, V b) { return pc_field::larger(a, b); }
PC_INLINE V FN(neg)(V a) { return pc_field::negative(a); }
PC_INLINE V FN(reciprocal)(V a) { return pc_field::reciprocal(a); }
PC_INLINE V FN(add)(V a, V b) { return a + b; }
PC_INLINE V FN(sub)(V a, V b) { return a - b; }
PC_INLINE V FN(mul)(V a, V b) { return a * b; }
PC_INLINE V FN(div)(V a, V b) { return a / b; }
PC_INLINE V FN(fma)(V a, V b, V c) { return a * b + c; }
PC_INLINE V FN(rounded)(V a) { return a; }

PC_RANDOM_1(sign, V) PC_RANDOM_1(abs, V) PC_RANDOM_1(sqrt, V)
PC_RANDOM_1(floor, V) PC_RANDOM_1(ceil, V) PC_RANDOM_1(trunc, V) PC_RANDOM_1(round, V)
PC_RANDOM_1(power_above, V) PC_RANDOM_1(power_nearest, V) PC_RANDOM_1(round_odd, V)
PC_RANDOM_2(copysign, V) PC_RANDOM_2(mod, V) PC_RANDOM_2(fmod, V)

PC_INLINE V FN(iota)(T start)
{
    V v;
    EACH_LANE v.r[l] = (start + T(l)).r;
    return v;
}

#define REDUCTION(name) \
    PC_INLINE T FN(reduce_##name)(V v) \
    { \
        T total = v[0]; \
        for (int l = 1; l < PC_LANES; l++) \
            total = PC_PASTE3(pc_, name##_, PC_TYPE)(total, v[l]); \
        return total; \
    }
REDUCTION(add) REDUCTION(mul) REDUCTION(min) REDUCTION(max) REDUCTION(smaller) REDUCTION(larger)
#undef REDUCTION

#endif

#undef EACH_LANE
#undef UV
#undef KIND
#undef FN
#undef B
#undef V
#undef T
#undef PC_QUANTISED
#undef PC_TRANSPOSITIONS
#undef PC_STRIDES
#undef PC_REDUCTIONS
#undef PC_LANES
#undef PC_TYPE

#endif
