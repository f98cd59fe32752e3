/* polyc_scalar.h: scalar arithmetic of the type PC_TYPE (see polyc.h for the form of use).

   Every function is total: no input traps or is undefined behaviour.
     float    min and max return NaN if either operand is one; sign keeps NaN and zeros; round goes
              to the nearest, ties to even; + - * / are C's own and have no function here
     integer  sums, products and negations wrap; division truncates; x / 0, fmod(x, 0) and mod(x, 0)
              are 0; a shift by the width or more, or by a negative count, is 0; pow by a negative
              exponent truncates 1 / x^|n| (so it is 0 unless |x| is 1, and x / 0 again is 0)
     both     mod takes the sign of the divisor (Python, NumPy), fmod that of the dividend (C)

   Vector functions are these lane by lane, so vector loops and their remainders agree. */

#define T PC_TYPE
#define FN(name) PC_PASTE3(pc_, name##_, PC_TYPE)
#define KIND PC_PASTE(PC_KIND_, PC_TYPE)
#define BITS PC_PASTE(PC_BITS_, PC_TYPE)

PC_INLINE T FN(select)(b8 condition, T a, T b) { return condition ? a : b; }

/* The bits of an element in memory as an unsigned number, and back. */
PC_INLINE PC_PASTE(u, BITS) FN(as_bits)(T a)
{
    PC_PASTE(u, BITS) bits;
    PC_COPY(&bits, &a, sizeof a);
    return bits;
}
PC_INLINE T FN(from_bits)(PC_PASTE(u, BITS) bits)
{
    T a;
    PC_COPY(&a, &bits, sizeof a);
    return a;
}

#if KIND != PC_STORED
PC_INLINE b8 FN(eq)(T a, T b) { return a == b; }
PC_INLINE b8 FN(ne)(T a, T b) { return a != b; }
#endif

#if KIND == PC_BOOL

PC_INLINE T FN(and)(T a, T b) { return a & b; }
PC_INLINE T FN(or)(T a, T b) { return a | b; }
PC_INLINE T FN(xor)(T a, T b) { return a ^ b; }
PC_INLINE T FN(not)(T a) { return a ^ 1; }

#elif KIND != PC_STORED

PC_INLINE b8 FN(lt)(T a, T b) { return a < b; }
PC_INLINE b8 FN(le)(T a, T b) { return a <= b; }
PC_INLINE b8 FN(gt)(T a, T b) { return a > b; }
PC_INLINE b8 FN(ge)(T a, T b) { return a >= b; }

PC_INLINE T FN(select_eq)(T a, T b, T x, T y) { return a == b ? x : y; }
PC_INLINE T FN(select_ne)(T a, T b, T x, T y) { return a != b ? x : y; }
PC_INLINE T FN(select_lt)(T a, T b, T x, T y) { return a < b ? x : y; }
PC_INLINE T FN(select_le)(T a, T b, T x, T y) { return a <= b ? x : y; }
PC_INLINE T FN(select_gt)(T a, T b, T x, T y) { return a > b ? x : y; }
PC_INLINE T FN(select_ge)(T a, T b, T x, T y) { return a >= b ? x : y; }

#endif

#if KIND == PC_FLOAT

#if BITS == 32
#define LIBM(name) __builtin_##name##f
#else
#define LIBM(name) __builtin_##name
#endif

/* In this order a comparison with NaN is false where it should be, and a constant b leaves one
   instruction of the two. */
PC_INLINE T FN(min)(T a, T b) { return b != b ? b : b < a ? b : a; }
PC_INLINE T FN(max)(T a, T b) { return b != b ? b : a < b ? b : a; }
PC_INLINE T FN(smaller)(T a, T b) { return b < a ? b : a; }
PC_INLINE T FN(larger)(T a, T b) { return a < b ? b : a; }
PC_INLINE T FN(sign)(T a) { return a > 0 ? 1 : a < 0 ? -1 : a; }
PC_INLINE T FN(copysign)(T magnitude, T sign) { return LIBM(copysign)(magnitude, sign); }
PC_INLINE T FN(neg)(T a) { return -a; }
PC_INLINE T FN(abs)(T a) { return LIBM(fabs)(a); }
PC_INLINE T FN(reciprocal)(T a) { return 1 / a; }
PC_INLINE T FN(sqrt)(T a) { return LIBM(sqrt)(a); }
PC_INLINE T FN(floor)(T a) { return LIBM(floor)(a); }
PC_INLINE T FN(ceil)(T a) { return LIBM(ceil)(a); }
PC_INLINE T FN(trunc)(T a) { return LIBM(trunc)(a); }
PC_INLINE T FN(round)(T a) { return LIBM(nearbyint)(a); }
PC_INLINE T FN(fmod)(T a, T b) { return LIBM(fmod)(a, b); }
PC_INLINE T FN(mod)(T a, T b)
{
    T r = LIBM(fmod)(a, b);
    if (r == 0)
        return LIBM(copysign)(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}
/* One rounding where the target has fused multiply-add and contraction is on, else two. */
PC_INLINE T FN(fma)(T a, T b, T c) { return a * b + c; }
/* A product that no addition is fused with: every machine rounds it. */
PC_INLINE T FN(rounded)(T a)
{
#if defined __CUDA_ARCH__
    return BITS == 32 ? (T)__fmul_rn((float)a, 1.0f) : (T)__dmul_rn(a, 1.0);
#elif defined __SSE2__
    __asm__("" : "+x"(a));
#elif defined __aarch64__
    __asm__("" : "+w"(a));
#else
    __asm__("" : "+m"(a));
#endif
    return a;
}
#if BITS == 32
/* The power of two at or above the size of a finite number, and the nearest one, of two the larger:
   2^-126 or above, or 0. */
PC_INLINE T FN(power_above)(T a)
{
    return FN(from_bits)(((FN(as_bits)(a) & 0x7fffffff) + 0x7fffff) & 0x7f800000);
}
PC_INLINE T FN(power_nearest)(T a)
{
    const u32 size = FN(as_bits)(a) & 0x7fffffff;
    return FN(from_bits)((size + 0x400000 - (size == 0x400000)) & 0x7f800000);
}
#endif
#if BITS == 64
/* With the 24 bits of an f32, the last of which is set if anything is lost: rounded from there to
   fewer bits it becomes what a itself would. */
PC_INLINE T FN(round_odd)(T a)
{
    const u64 lost = ((u64)1 << 29) - 1;
    u64 bits;
    PC_COPY(&bits, &a, 8);
    bits = (bits & ~lost) | (bits & lost ? lost + 1 : 0);
    PC_COPY(&a, &bits, 8);
    return a;
}
#endif
PC_INLINE b8 FN(isnan)(T a) { return a != a; }
PC_INLINE b8 FN(isinf)(T a) { return LIBM(fabs)(a) == LIBM(inf)(); }

#undef LIBM

#elif KIND == PC_SIGNED || KIND == PC_UNSIGNED

/* Wrapping arithmetic is done in an unsigned type no narrower than int: `1u *` keeps u16 * u16 from
   being promoted to int, where it could overflow. */
#define U PC_PASTE(u, BITS)
#define WRAP(x) (1u * (U)(x))

#if !defined __CUDA_ARCH__ || BITS == 64
PC_INLINE T FN(min)(T a, T b) { return b < a ? b : a; }
PC_INLINE T FN(max)(T a, T b) { return a < b ? b : a; }
#elif BITS < 32 /* each is an int */
PC_INLINE T FN(min)(T a, T b) { return (T)pc_min((int)a, (int)b); }
PC_INLINE T FN(max)(T a, T b) { return (T)pc_max((int)a, (int)b); }
#elif KIND == PC_SIGNED
PC_CHOICE(FN(min), T, "lt.s32")
PC_CHOICE(FN(max), T, "gt.s32")
#else
PC_CHOICE(FN(min), T, "lt.u32")
PC_CHOICE(FN(max), T, "gt.u32")
#endif
PC_INLINE T FN(add)(T a, T b) { return (T)(WRAP(a) + WRAP(b)); }
PC_INLINE T FN(sub)(T a, T b) { return (T)(WRAP(a) - WRAP(b)); }
PC_INLINE T FN(mul)(T a, T b) { return (T)(WRAP(a) * WRAP(b)); }
PC_INLINE T FN(neg)(T a) { return (T)(0 - WRAP(a)); }
PC_INLINE T FN(fma)(T a, T b, T c) { return (T)(WRAP(a) * WRAP(b) + WRAP(c)); }
PC_INLINE T FN(bitand)(T a, T b) { return a & b; }
PC_INLINE T FN(bitor)(T a, T b) { return a | b; }
PC_INLINE T FN(bitxor)(T a, T b) { return a ^ b; }
PC_INLINE T FN(bitnot)(T a) { return (T)~a; }
PC_INLINE T FN(shl)(T a, T b) { return (U)b >= BITS ? 0 : (T)(WRAP(a) << ((U)b % BITS)); }
PC_INLINE T FN(shr)(T a, T b) { return (U)b >= BITS ? 0 : (T)(a >> ((U)b % BITS)); }

#if KIND == PC_SIGNED
PC_INLINE T FN(sign)(T a) { return (a > 0) - (a < 0); }
PC_INLINE T FN(abs)(T a) { return a < 0 ? FN(neg)(a) : a; }
/* b = -1 is apart because MIN / -1 traps. */
PC_INLINE T FN(div)(T a, T b) { return b == 0 ? 0 : b == -1 ? FN(neg)(a) : (T)(a / b); }
PC_INLINE T FN(fmod)(T a, T b) { return b == 0 || b == -1 ? 0 : (T)(a % b); }
PC_INLINE T FN(mod)(T a, T b)
{
    T r = FN(fmod)(a, b);
    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
#else
PC_INLINE T FN(sign)(T a) { return a > 0; }
PC_INLINE T FN(abs)(T a) { return a; }
PC_INLINE T FN(div)(T a, T b) { return b == 0 ? 0 : a / b; }
PC_INLINE T FN(fmod)(T a, T b) { return b == 0 ? 0 : a % b; }
PC_INLINE T FN(mod)(T a, T b) { return FN(fmod)(a, b); }

#if BITS == 32
/* The first word of Philox4x32-10 of the counter (counter, stream, 0, 0): Salmon, Moraes, Dror and
   Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). A number depends on nothing but its
   place, so that they are drawn in any order. */
PC_INLINE T FN(philox)(T counter, T stream, T key0, T key1)
{
    T a = counter, b = stream, c = 0, d = 0;
    for (int round = 0; round < 10; round++) {
        u64 p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
        a = (T)(q >> 32) ^ b ^ key0;
        b = (T)q;
        c = (T)(p >> 32) ^ d ^ key1;
        d = (T)p;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return a;
}
#endif
#endif

/* Square and multiply, from the lowest bit of the exponent up. */
PC_INLINE T FN(pow)(T base, T exponent)
{
    T result = 1;
#if KIND == PC_SIGNED
    if (exponent < 0) {
        base = FN(div)(1, base);
        exponent = exponent & 1 ? 1 : 2; /* the inverse is -1, 0 or 1: parity decides */
    }
#endif
    for (U n = (U)exponent; n; n >>= 1) {
        if (n & 1)
            result = FN(mul)(result, base);
        base = FN(mul)(base, base);
    }
    return result;
}

#undef WRAP
#undef U

#endif

#undef BITS
#undef KIND
#undef FN
#undef T
#undef PC_TYPE
