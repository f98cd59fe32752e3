/* polyc_dot_bf16.h: sums of two products of bfloat16, added to each of PC_LANES floats.

       pc_dot2_bf16bf16_f32x16(acc, a, b):   acc[l] + a[2 l] b[2 l] + a[2 l + 1] b[2 l + 1]

   A product of two bfloat16 is a float, exactly, but for overflow; sums are rounded to float. With
   AVX512_BF16 it is one instruction (vdpbf16ps), which takes numbers below the smallest normal one,
   2^-126, for zeros, in what it reads and in what it makes of it. Else both are widened, by a shift
   and a mask, and multiplied and added as floats. */

#define V PC_PASTE(f32x, PC_LANES)
#define W PC_PASTE(u32x, PC_LANES)
#define FN PC_PASTE(pc_dot2_bf16bf16_, V)
#define PAIRS PC_PASTE(bf16x, PC_PASTE(PC_TWICE_, PC_LANES))

#if defined __AVX512BF16__ && (PC_LANES == 16 || (defined __AVX512VL__ && PC_LANES >= 4))
#define SIZE (4 * PC_LANES)
/* What compilers call the type of pairs. */
#if defined __clang__ ? __clang_major__ >= 16 : __GNUC__ >= 13
typedef __bf16 PC_PASTE(FN, _pairs) __attribute__((vector_size(SIZE)));
#elif defined __clang__
typedef int PC_PASTE(FN, _pairs) __attribute__((vector_size(SIZE)));
#else
typedef short PC_PASTE(FN, _pairs) __attribute__((vector_size(SIZE)));
#endif
#ifndef __clang__
#define DOT PC_PASTE3(__builtin_ia32_dpbf16ps_v, PC_LANES, sf)
#elif PC_LANES == 16
#define DOT __builtin_ia32_dpbf16ps_512
#elif PC_LANES == 8
#define DOT __builtin_ia32_dpbf16ps_256
#else
#define DOT __builtin_ia32_dpbf16ps_128
#endif
PC_INLINE V FN(V acc, PAIRS a, PAIRS b)
{
    return DOT(acc, (PC_PASTE(FN, _pairs))a, (PC_PASTE(FN, _pairs))b);
}
#undef DOT
#undef SIZE
#else
PC_INLINE V FN(V acc, PAIRS a, PAIRS b)
{
    const W odd = (W){0} + 0xffff0000u;
    acc += (V)((W)a & odd) * (V)((W)b & odd);
    return acc + (V)((W)a << 16) * (V)((W)b << 16);
}
#endif

#undef PAIRS
#undef FN
#undef W
#undef V
#undef PC_LANES
