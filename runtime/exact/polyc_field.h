/* polyc_field.h: the floating-point types of the exact run, whose elements are those of a prime
   field (see polyc.h beside this file).

   f32, f64 and the narrow floats are classes over an unsigned number below PC_PRIME that takes as
   much memory as the type itself. In the field

       + - * / fma      are exact; division multiplies by the inverse, and that of 0 is 0
       < max min        go by an order in which pc_exact.zero says where zero stands, and infinity
                        and its negative, elements of their own, at the ends
       exp floor abs …  are pseudo-random functions, which pc_exact.salt chooses
       conversions      between floats change nothing; from a float to an integer they are
                        pseudo-random functions; a whole number n becomes n modulo PC_PRIME

   so that what is equal for all real numbers by the laws of addition and multiplication is equal
   here, without rounding, and what is not differs in all but some PC_PRIME-th of the cases. */

#ifndef POLYC_FIELD_H
#define POLYC_FIELD_H

#include <type_traits>

#ifndef PC_PRIME
#define PC_PRIME 2147483647
#endif

/* What one run of a library goes by; the library defines it (pc_exact.c), and sets it before. */
extern "C" {
extern struct pc_exact_choice {
    u64 zero, salt;
} pc_exact;
}

namespace pc_field {

constexpr u64 P = PC_PRIME;
constexpr bool is_mersenne = (P & (P + 1)) == 0;
constexpr int exponent = 31; /* of the Mersenne prime 2^31 - 1 */

/* ---- Numbers below P ------------------------------------------------------------------------ */

PC_INLINE constexpr u64 times(u64 a, u64 b) { return a * b % P; }

PC_INLINE constexpr u64 power(u64 a, u64 n)
{
    u64 result = 1;
    for (; n; n >>= 1, a = times(a, a))
        if (n & 1)
            result = times(result, a);
    return result;
}

/* The number that is a / b, if b is not 0: a^(P - 1) = 1 by Fermat. */
PC_INLINE constexpr u64 inverse(u64 a) { return power(a, P - 2); }

/* 2^n, n of any sign; of a Mersenne prime 2^exponent - 1, where 2^exponent = 1, without a loop. */
PC_INLINE constexpr u64 power_of_two(int n)
{
    if constexpr (is_mersenne)
        return (u64)1 << (n % exponent + exponent) % exponent;
    return n < 0 ? inverse(power(2, (u64)-n)) : power(2, (u64)n);
}

/* A pseudo-random number of 64 bits: the finaliser of SplitMix64 (Steele, Lea, Flood 2014). */
PC_INLINE u64 mix(u64 x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* A number for the name of a function. */
constexpr u64 name_of(const char *text)
{
    u64 h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

PC_INLINE u64 draw(u64 function, u64 a, u64 b)
{
    return mix(mix(mix(pc_exact.salt ^ function) + a) + b * 0x9e3779b97f4a7c15u);
}

/* What stands for infinity, minus infinity and NaN. */
constexpr u64 HIGHEST = P - 1, LOWEST = P - 2, NOT_A_NUMBER = P - 3;

/* The place of an element in the order of the run. */
PC_INLINE u64 place(u64 a)
{
    return a == LOWEST ? 0 : a == HIGHEST ? P + 1 : 1 + (a + pc_exact.zero) % P;
}

/* The element that a whole number is. */
template <class N> PC_INLINE constexpr u64 whole(N n)
{
    if constexpr (std::is_unsigned_v<N> || std::is_same_v<N, bool>)
        return (u64)n % P;
    const i64 rest = (i64)n % (i64)P;
    return (u64)(rest < 0 ? rest + (i64)P : rest);
}

/* The element that a floating-point number m 2^e is; only literals are such numbers here. */
consteval u64 literal(double n)
{
    const u64 bits = __builtin_bit_cast(u64, n), fraction = bits & ((u64)1 << 52) - 1;
    const int scale = (int)(bits >> 52 & 0x7ff);
    if (scale == 0x7ff)
        return fraction ? NOT_A_NUMBER : bits >> 63 ? LOWEST : HIGHEST;
    const u64 m = (scale ? fraction | (u64)1 << 52 : fraction) % P;
    const u64 size = times(m, power_of_two((scale ? scale : 1) - 1075));
    return bits >> 63 ? (P - size) % P : size;
}

/* ---- Elements ------------------------------------------------------------------------------- */

/* An element in as much memory as S takes; Tag tells types of one width apart. */
template <class S, int Tag> struct number {
    typedef S raw;
    S r;

    number() = default;
    template <class N, class = std::enable_if_t<std::is_integral_v<N>>>
    constexpr number(N n) : r((S)whole(n)) {}
    consteval number(double n) : r((S)literal(n)) {}
    consteval number(float n) : r((S)literal(n)) {}

    friend number operator+(number a, number b) { return of(((u64)a.r + b.r) % P); }
    friend number operator-(number a, number b) { return of(((u64)a.r + P - b.r) % P); }
    friend number operator*(number a, number b) { return of(times(a.r, b.r)); }
    friend number operator/(number a, number b) { return of(times(a.r, inverse(b.r))); }
    number &operator+=(number b) { return *this = *this + b; }
    number &operator*=(number b) { return *this = *this * b; }

    static number of(u64 r)
    {
        number n;
        n.r = (S)r;
        return n;
    }
};

PC_INLINE b8 of_mask(i64 lane) { return lane ? 1 : 0; }

/* ---- Vectors of elements ---------------------------------------------------------------------- */

template <class E, int N> struct lanes {
    typedef typename E::raw S;
    typedef S raw __attribute__((vector_size(N * sizeof(S))));
    typedef u64 wide __attribute__((vector_size(N * sizeof(u64))));
    raw r;

    lanes() = default;
    /* (f32x4){a, b, c}: as in C, lanes that are not given are 0. */
    template <class... A, class = std::enable_if_t<0 < sizeof...(A) && sizeof...(A) <= N>>
    explicit lanes(A... a) : r{E(a).r...} {}
    E operator[](int l) const { return E::of(r[l]); }
    E &operator[](int l) { return reinterpret_cast<E *>(&r)[l]; }

    /* A vector of numbers below 2 P, below P. */
    static lanes below(raw t)
    {
        lanes v;
        const raw less = t - (S)P;
        v.r = less < t ? less : t;
        return v;
    }
    friend lanes operator+(lanes a, lanes b) { return below(a.r + b.r); }
    friend lanes operator-(lanes a, lanes b) { return below(a.r + ((S)P - b.r)); }
    friend lanes operator*(lanes a, lanes b)
    {
        wide x = __builtin_convertvector(a.r, wide) * __builtin_convertvector(b.r, wide);
        if constexpr (is_mersenne) { /* 2^exponent = 1 */
            x = (x & P) + (x >> exponent);
            x = (x & P) + (x >> exponent);
        } else {
            x = x % P;
        }
        return below(__builtin_convertvector(x, raw));
    }
    friend lanes operator/(lanes a, lanes b)
    {
        lanes v;
        for (int l = 0; l < N; l++)
            v.r[l] = (S)times(a.r[l], inverse(b.r[l]));
        return v;
    }
    lanes &operator+=(lanes b) { return *this = *this + b; }
    lanes &operator*=(lanes b) { return *this = *this * b; }
};

/* ---- Functions, of elements and lane by lane ----------------------------------------------------- */

template <class T> struct shape;
template <class S, int Tag> struct shape<number<S, Tag>> {
    static constexpr int count = 1;
    static u64 get(number<S, Tag> v, int) { return v.r; }
    static void set(number<S, Tag> &v, int, u64 r) { v.r = (S)r; }
};
template <class E, int N> struct shape<lanes<E, N>> {
    static constexpr int count = N;
    static u64 get(const lanes<E, N> &v, int l) { return v.r[l]; }
    static void set(lanes<E, N> &v, int l, u64 r) { v.r[l] = (typename E::raw)r; }
};

template <class T, class F> PC_INLINE T each(F function, T a, T b)
{
    T v;
    for (int l = 0; l < shape<T>::count; l++)
        shape<T>::set(v, l, function(shape<T>::get(a, l), shape<T>::get(b, l)));
    return v;
}

template <class T> PC_INLINE T random(u64 function, T a, T b)
{
    return each([=](u64 x, u64 y) { return draw(function, x, y) % P; }, a, b);
}
template <class T> PC_INLINE T negative(T a)
{
    return each([](u64 x, u64) { return (P - x) % P; }, a, a);
}
template <class T> PC_INLINE T reciprocal(T a)
{
    return each([](u64 x, u64) { return inverse(x); }, a, a);
}
template <class T> PC_INLINE T larger(T a, T b)
{
    return each([](u64 x, u64 y) { return place(x) < place(y) ? y : x; }, a, b);
}
template <class T> PC_INLINE T smaller(T a, T b)
{
    return each([](u64 x, u64 y) { return place(y) < place(x) ? y : x; }, a, b);
}

PC_INLINE int eq(u64 x, u64 y) { return x == y; }
PC_INLINE int ne(u64 x, u64 y) { return x != y; }
PC_INLINE int lt(u64 x, u64 y) { return place(x) < place(y); }
PC_INLINE int le(u64 x, u64 y) { return place(x) <= place(y); }
PC_INLINE int gt(u64 x, u64 y) { return place(x) > place(y); }
PC_INLINE int ge(u64 x, u64 y) { return place(x) >= place(y); }
PC_INLINE int isnan(u64 x, u64) { return draw(name_of("isnan"), x, 0) % 8 == 0; }
PC_INLINE int isinf(u64 x, u64) { return draw(name_of("isinf"), x, 0) % 8 == 0; }

/* ---- Types ---------------------------------------------------------------------------------------- */

} /* namespace pc_field */

typedef pc_field::number<u32, 0> f32;
typedef pc_field::number<u64, 1> f64;
typedef pc_field::number<u16, 2> f16;
typedef pc_field::number<u16, 3> bf16;
typedef pc_field::number<u8, 4> f8e4m3fn;
typedef pc_field::number<u8, 5> f8e4m3fnuz;
typedef pc_field::number<u8, 6> f8e5m2;
typedef pc_field::number<u8, 7> f8e5m2fnuz;
typedef pc_field::number<u8, 8> f8e8m0;
typedef pc_field::number<u8, 9> f6e3m2;
typedef pc_field::number<u8, 10> f6e2m3;
typedef pc_field::number<u8, 11> f4e2m1;

/* PC_PASTE(PC_FIELD_, type) is 1 for these, and for no others. */
#define PC_FIELD_f32 1
#define PC_FIELD_f64 1
#define PC_FIELD_f16 1
#define PC_FIELD_bf16 1
#define PC_FIELD_f8e4m3fn 1
#define PC_FIELD_f8e4m3fnuz 1
#define PC_FIELD_f8e5m2 1
#define PC_FIELD_f8e5m2fnuz 1
#define PC_FIELD_f8e8m0 1
#define PC_FIELD_f6e3m2 1
#define PC_FIELD_f6e2m3 1
#define PC_FIELD_f4e2m1 1

#define PC_FIELD_TYPES(X, n) \
    X(f32, n) X(f64, n) X(f16, n) X(bf16, n) X(f8e4m3fn, n) X(f8e4m3fnuz, n) X(f8e5m2, n) \
    X(f8e5m2fnuz, n) X(f8e8m0, n) X(f6e3m2, n) X(f6e2m3, n) X(f4e2m1, n)

/* Integers that floats were converted to are arbitrary here, and may be meant as indices: one out of
   range counts from where the dimension ends, again and again, and is no error. */
PC_INLINE i64 pc_index(i64 i, i64 extent, int *status)
{
    (void)status;
    if (extent < 1)
        return pc_index_checked(i, extent, status);
    return pc_mod(i, extent);
}

/* A function of F, which is a type or a vector of it, under the name that generated code calls. */
#define PC_RANDOM_1(name, F) \
    PC_INLINE F PC_PASTE(pc_##name##_, F)(F a) \
    { \
        return pc_field::random(pc_field::name_of(#name), a, F(a - a)); \
    }
#define PC_RANDOM_2(name, F) \
    PC_INLINE F PC_PASTE(pc_##name##_, F)(F a, F b) \
    { \
        return pc_field::random(pc_field::name_of(#name), a, b); \
    }

#endif
