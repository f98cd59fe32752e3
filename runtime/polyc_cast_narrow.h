/* polyc_cast_narrow.h: a vector conversion between a type that is only stored and its wide type
   (polyc_cast.h includes it). It does what polyc_narrow.h does, on all lanes. */

#if FROM_KIND == PC_STORED
#define NARROW(name) PC_PASTE3(PC_, name##_, PC_FROM)
#else
#define NARROW(name) PC_PASTE3(PC_, name##_, PC_TO)
#endif
#define U OF(u32)
#ifdef PC_HAS_F16
#define HARDWARE (NARROW(FRACTION) == 10)
#endif

PC_INLINE OF(PC_TO) PC_PASTE3(NAME, x, PC_LANES)(OF(PC_FROM) a)
{
#if NARROW(DIGITS)
    const OF(u8) digits = (OF(u8))a & ((1 << NARROW(DIGITS)) - 1);
#if FROM_KIND == PC_STORED && TO_KIND == PC_SIGNED
    return (OF(i8))(digits - (digits & (1 << (NARROW(DIGITS) - 1))) * 2);
#else
    return (OF(PC_TO))digits;
#endif

#elif FROM_KIND == PC_STORED && HARDWARE && PC_LANES == 16 && defined __AVX512F__
    typedef short H __attribute__((vector_size(32)));
    return __builtin_ia32_vcvtph2ps512_mask((H)a, (OF(f32)){0}, 0xffff, 4);
#elif FROM_KIND == PC_STORED && HARDWARE && PC_LANES == 8
    typedef short H __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps256((H)a);
#elif HARDWARE && PC_LANES == 16 && defined __AVX512F__
    typedef short H __attribute__((vector_size(32)));
    return (OF(PC_TO))__builtin_ia32_vcvtps2ph512_mask(a, 0, (H){0}, 0xffff);
#elif HARDWARE && PC_LANES == 8
    return (OF(PC_TO))__builtin_ia32_vcvtps2ph256(a, 0);

#elif FROM_KIND == PC_STORED && NARROW(BIAS) == 127
#if defined __AVX512F__ && !defined __clang__ && PC_LANES == 16 /* gcc 12 would take four for it */
    typedef short H __attribute__((vector_size(32)));
    typedef int I __attribute__((vector_size(64)));
    return (OF(f32))((U)__builtin_ia32_pmovzxwd512_mask((H)a, (I){0}, 0xffff) << 16);
#else
    return (OF(f32))(RESIZE(u, FROM_BITS, 32, a) << 16);
#endif
#elif NARROW(BIAS) == 127
    /* The sign stays where it is, and a carry makes an infinity of the largest number. */
    const U bits = (U)a, even = bits + 0x7fff + (bits >> 16 & 1), number = (U)(a == a);
    return (OF(PC_TO))RESIZE(u, 32, TO_BITS, ((even & number) | (~number & 0x7fc00000)) >> 16);

#elif FROM_KIND == PC_STORED && NARROW(POWER)
    const U code = RESIZE(u, FROM_BITS, 32, a);
    return (OF(f32))(code << 23 | ((U)((code == 0) | (code == 0xff)) & (1u << 22)));
#elif NARROW(POWER)
    return (OF(PC_TO))RESIZE(u, 32, TO_BITS, (U)a >> 23 & 0xff);

#elif FROM_KIND == PC_STORED
    const u32 minus = 1u << NARROW(SIGN);
    const U whole = RESIZE(u, FROM_BITS, 32, a), code = whole & (minus - 1);
    const U sign = (U)((whole & minus) != 0) << 31;
    const U moved = (U)((OF(f32))(code << (23 - NARROW(FRACTION))) *
                        pc_value_f32((254u - NARROW(BIAS)) << 23));
    U special = (U)(code > NARROW(LARGEST)) & 0x7f800000;
#if NARROW(ZEROS) == 1
    special = (U)(whole == minus) & 0x7fc00000;
#endif
    return (OF(f32))(sign | moved | special);
#else
    const u32 dropped = 23 - NARROW(FRACTION), moved = 127 - NARROW(BIAS);
    const u32 steps = (moved + 1 + dropped) << 23;
    const U size = (U)a & 0x7fffffff;
    U sign = (U)a >> 31 << NARROW(SIGN);
    U code = ((size + ((1u << (dropped - 1)) - 1) + (size >> dropped & 1)) >> dropped) -
             (moved << NARROW(FRACTION));
#define CHOOSE(condition, chosen) (((U)(condition) & (chosen)) | (~(U)(condition) & code))
    code = CHOOSE(size < (moved + 1) << 23, (U)((OF(f32))size + pc_value_f32(steps)) - steps);
    code = CHOOSE(code > NARROW(LARGEST), NARROW(BEYOND));
    code = CHOOSE(size > 0x7f800000, NARROW(NAN));
#undef CHOOSE
#if NARROW(ZEROS) == 1
    sign &= (U)(code != 0);
#endif
    return (OF(PC_TO))RESIZE(u, 32, TO_BITS, code | sign);
#endif
}

#undef HARDWARE
#undef U
#undef NARROW
