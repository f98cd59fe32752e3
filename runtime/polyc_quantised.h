/* polyc_quantised.h: floats to bytes by a scale and a zero point, a part of polyc_vector.h for the
   types of 8 bits:

       pc_quantised_u8x16(x, y, zero)[l] = u8(round(x[l] / y) + zero)    within 0 .. 255; NaN -> 0
       pc_levels_u8x16(x, y, zero)[l] = f32(i32(pc_quantised_u8x16(x, y, zero)[l]) - i32(zero))

   The latter is what a sum takes of a byte that it alone needs: no byte has to be made. The former is, in every bit and on every machine, what these functions of floats are one after the other,
   but it divides only where it has to. Let r be 1 / y, rounded: off by 2^-24 of it at most, as is
   the rounded quotient, which is so between x * r (1 - 2^-22) and x * r (1 + 2^-22), whichever way
   these are rounded. Where both go to the same whole number, so does the quotient. Elsewhere, near
   a half or for a NaN, the vector is divided: one lane in 20,000, where quotients are about 100.

   Adding 1.5 * 2^23 leaves no room for a fraction: a number below 2^22 is rounded to the nearest
   whole one, of two to the even one, once, be it fused with the product or not, and the last bits
   of the sum are that number. One beyond stays beyond what a byte holds. */

#define F PC_PASTE(f32x, PC_LANES)
#define I PC_PASTE(i32x, PC_LANES)
#define OF_FLOATS(name) PC_PASTE3(pc_, name##_f32x, PC_LANES)

#if KIND == PC_SIGNED
#define LEAST (-128)
#else
#define LEAST 0
#endif

/* Whether some lane of a is not that of b, NaN never being the same; and integers from LEAST on as
   bytes, those beyond as the last one. */
#if defined __AVX512F__ && !defined __clang__ && PC_LANES == 16
#define DIFFER(a, b) (__builtin_ia32_cmpps512_mask(a, b, 4, 0xffff, 4) != 0)
#elif defined __AVX__ && PC_LANES == 8
#define DIFFER(a, b) (__builtin_ia32_movmskps256((F)(a != b)) != 0)
#elif defined __SSE2__ && PC_LANES == 4
#define DIFFER(a, b) (__builtin_ia32_movmskps((F)(a != b)) != 0)
#else
#define DIFFER(a, b) FN(differ)(a, b)
PC_INLINE int FN(differ)(F a, F b)
{
    int some = 0;
    EACH_LANE some |= a[l] != b[l];
    return some;
}
#endif

PC_INLINE V FN(within)(I whole)
{
#if defined __AVX512F__ && !defined __clang__ && PC_LANES == 16
    typedef char bytes __attribute__((vector_size(16)));
#if KIND == PC_SIGNED
    return (V)__builtin_ia32_pmovsdb512_mask(whole, (bytes){0}, 0xffff);
#else
    return (V)__builtin_ia32_pmovusdb512_mask(whole, (bytes){0}, 0xffff);
#endif
#elif defined __AVX2__ && PC_LANES == 8
    typedef i32 four __attribute__((vector_size(16)));
    typedef i64 pair __attribute__((vector_size(16)));
    const four low = __builtin_shufflevector(whole, whole, 0, 1, 2, 3);
    const four high = __builtin_shufflevector(whole, whole, 4, 5, 6, 7);
#if KIND == PC_SIGNED
#define PACK(v) __builtin_ia32_packsswb128(v, v)
#else
#define PACK(v) __builtin_ia32_packuswb128(v, v)
#endif
    return (V)((pair)PACK(__builtin_ia32_packssdw128(low, high)))[0];
#undef PACK
#else
    const I most = (I){0} + (LEAST + 255), beyond = whole > most;
    whole = (beyond & most) | (~beyond & whole);
    return (V)PC_RESIZE_32_8(i, whole, PC_LANES);
#endif
}

#define START (12582912 /* 1.5 * 2^23 */ - (f32)zero) /* exact */

/* The byte as the last bits of a float, START + byte; above the last byte where that is beyond it. */
PC_INLINE F FN(at)(F x, f32 y, T zero)
{
    const f32 room = 12582912, start = START;
    const f32 size = __builtin_fabsf(y), r = 1 / y;
    /* Of a y that is so small, or large, that digits may be lost, all lanes differ. */
    const f32 margin = size > 0x1p-120f && size < 0x1p120f ? 0x1p-22f : __builtin_nanf("");
    F at = x * (r * (1 - margin)) + room;
    if (__builtin_expect(DIFFER(at, x * (r * (1 + margin)) + room), 0)) {
        at = x / y + room;
        at = OF_FLOATS(select_eq)(at, at, at, OF_FLOATS(splat)(start)); /* NaN -> 0 */
    }
    return OF_FLOATS(larger)(at, OF_FLOATS(splat)(start + LEAST)); /* its bits are now in order */
}

PC_INLINE V FN(quantised)(F x, f32 y, T zero)
{
    return FN(within)((I)FN(at)(x, y, zero) - (I)OF_FLOATS(splat)(START));
}

PC_INLINE F FN(levels)(F x, f32 y, T zero)
{
    const F most = OF_FLOATS(splat)(START + (LEAST + 255));
    return OF_FLOATS(smaller)(FN(at)(x, y, zero), most) - OF_FLOATS(splat)(12582912);
}

#undef START
#undef DIFFER
#undef LEAST
#undef OF_FLOATS
#undef I
#undef F
