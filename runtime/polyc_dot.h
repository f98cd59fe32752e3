/* polyc_dot.h: sums of four products of bytes, or of two of 16 bits, added to each of PC_LANES
   numbers of 32 bits.

       pc_dot4_u8i8_i32x16(acc, a, b):   acc[l] + a[4 l] b[4 l] + … + a[4 l + 3] b[4 l + 3]
       pc_dot2_i16i16_i32x16(acc, a, b): acc[l] + a[2 l] b[2 l] + a[2 l + 1] b[2 l + 1]

   modulo 2^32, whatever the machine has: no step saturates. Four products of bytes are less than
   2^18, so that only the addition to acc may wrap; two products of 16 bits are 2^31 at most, which
   wraps in vpmaddwd as it does here.

   With VNNI it is one instruction, of unsigned by signed bytes; signed ones are moved by 128, and
   128 times the sum of the others is taken off, which a tile has to compute only once for all its
   rows. Else pairs of products of 16 bits are added (vpmaddwd): a byte widened to 16 bits loses
   nothing, while vpmaddubsw would saturate. */

#define V PC_PASTE(i32x, PC_LANES)
#define W PC_PASTE(u32x, PC_LANES)
#define FN(name) PC_PASTE3(pc_, name##_, V)
#if PC_LANES == 2
#define BYTES 8
#elif PC_LANES == 4
#define BYTES 16
#elif PC_LANES == 8
#define BYTES 32
#else
#define BYTES 64
#endif
typedef u8 FN(bytes) __attribute__((vector_size(BYTES), unused));
typedef i8 FN(signed_bytes) __attribute__((vector_size(BYTES), unused));
typedef i16 FN(short) __attribute__((vector_size(BYTES), unused));
#define U8 FN(bytes)
#define I8 FN(signed_bytes)
#define S16 FN(short)

#if PC_LANES == 16 && defined __AVX512VNNI__ && defined __clang__
#define VNNI(acc, a, b) (V)__builtin_ia32_vpdpbusd512(acc, (V)(a), (V)(b))
#define SHORTS(acc, a, b) (V)__builtin_ia32_vpdpwssd512(acc, (V)(a), (V)(b))
#elif PC_LANES == 16 && defined __AVX512VNNI__
#define VNNI(acc, a, b) (V)__builtin_ia32_vpdpbusd_v16si(acc, (V)(a), (V)(b))
#define SHORTS(acc, a, b) (V)__builtin_ia32_vpdpwssd_v16si(acc, (V)(a), (V)(b))
#elif (defined __AVX512VNNI__ && defined __AVX512VL__) || defined __AVXVNNI__
#if PC_LANES == 8 && defined __clang__
#define VNNI(acc, a, b) (V)__builtin_ia32_vpdpbusd256(acc, (V)(a), (V)(b))
#define SHORTS(acc, a, b) (V)__builtin_ia32_vpdpwssd256(acc, (V)(a), (V)(b))
#elif PC_LANES == 8
#define VNNI(acc, a, b) (V)__builtin_ia32_vpdpbusd_v8si(acc, (V)(a), (V)(b))
#define SHORTS(acc, a, b) (V)__builtin_ia32_vpdpwssd_v8si(acc, (V)(a), (V)(b))
#elif PC_LANES == 4 && defined __clang__
#define VNNI(acc, a, b) (V)__builtin_ia32_vpdpbusd128(acc, (V)(a), (V)(b))
#define SHORTS(acc, a, b) (V)__builtin_ia32_vpdpwssd128(acc, (V)(a), (V)(b))
#elif PC_LANES == 4
#define VNNI(acc, a, b) (V)__builtin_ia32_vpdpbusd_v4si(acc, (V)(a), (V)(b))
#define SHORTS(acc, a, b) (V)__builtin_ia32_vpdpwssd_v4si(acc, (V)(a), (V)(b))
#endif
#endif

#if PC_LANES == 16 && defined __AVX512BW__ && defined __clang__
#define PAIRS(a, b) __builtin_ia32_pmaddwd512(a, b)
#elif PC_LANES == 16 && defined __AVX512BW__
#define PAIRS(a, b) __builtin_ia32_pmaddwd512_mask(a, b, (V){0}, 0xffff)
#elif PC_LANES == 8 && defined __AVX2__
#define PAIRS(a, b) FN(pairs)(a, b)
/* Both operands in registers: gcc would read the vector of a tile's column again for each of its
   rows, as a part of the instruction, and of loads no more begin in a cycle than of these. */
PC_INLINE V FN(pairs)(S16 a, S16 b)
{
    V r;
    __asm__("vpmaddwd %2, %1, %0" : "=x"(r) : "%x"(a), "x"(b));
    return r;
}
#elif PC_LANES == 4 && defined __SSE2__
#define PAIRS(a, b) __builtin_ia32_pmaddwd128(a, b)
#endif

#ifdef VNNI

PC_INLINE V FN(dot4_u8i8)(V acc, U8 a, I8 b) { return VNNI(acc, a, b); }
PC_INLINE V FN(dot4_i8i8)(V acc, I8 a, I8 b)
{
    const U8 middle = (U8){0} + 128;
    return (V)((W)VNNI(acc, (U8)a ^ middle, b) - (W)VNNI((V){0}, middle, b));
}

#elif defined PAIRS

typedef u16 FN(ushort) __attribute__((vector_size(BYTES)));
#define EVEN_I(v) ((FN(short))((FN(ushort))(v) << 8) >> 8)
#define ODD_I(v) ((FN(short))(v) >> 8)
#define EVEN_U(v) ((FN(short))((FN(ushort))(v) & 255))
#define ODD_U(v) ((FN(short))((FN(ushort))(v) >> 8))
PC_INLINE V FN(dot4_u8i8)(V acc, U8 a, I8 b)
{
    const W even = (W)PAIRS(EVEN_U(a), EVEN_I(b)), odd = (W)PAIRS(ODD_U(a), ODD_I(b));
    return (V)((W)acc + even + odd);
}
PC_INLINE V FN(dot4_i8i8)(V acc, I8 a, I8 b)
{
    const W even = (W)PAIRS(EVEN_I(a), EVEN_I(b)), odd = (W)PAIRS(ODD_I(a), ODD_I(b));
    return (V)((W)acc + even + odd);
}
#undef ODD_U
#undef EVEN_U
#undef ODD_I
#undef EVEN_I

#else

#define PLAIN(name, A) \
    PC_INLINE V FN(name)(V acc, A a, I8 b) \
    { \
        for (int l = 0; l < PC_LANES; l++) { \
            i32 sum = 0; \
            for (int r = 4 * l; r < 4 * l + 4; r++) \
                sum += (i32)a[r] * (i32)b[r]; \
            acc[l] = (i32)((u32)acc[l] + (u32)sum); \
        } \
        return acc; \
    }
PLAIN(dot4_u8i8, U8)
PLAIN(dot4_i8i8, I8)
#undef PLAIN

#endif

#ifdef SHORTS
PC_INLINE V FN(dot2_i16i16)(V acc, S16 a, S16 b) { return SHORTS(acc, a, b); }
#elif defined PAIRS
PC_INLINE V FN(dot2_i16i16)(V acc, S16 a, S16 b) { return (V)((W)acc + (W)PAIRS(a, b)); }
#else
PC_INLINE V FN(dot2_i16i16)(V acc, S16 a, S16 b)
{
    for (int l = 0; l < PC_LANES; l++)
        acc[l] = (i32)((u32)acc[l] + (u32)((i32)a[2 * l] * (i32)b[2 * l])
                       + (u32)((i32)a[2 * l + 1] * (i32)b[2 * l + 1]));
    return acc;
}
#endif

#undef SHORTS
#undef PAIRS
#undef VNNI
#undef S16
#undef I8
#undef U8
#undef BYTES
#undef FN
#undef W
#undef V
#undef PC_LANES
