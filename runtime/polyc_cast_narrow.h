/* polyc_cast_narrow.h: a vector conversion between f32 and a type that is only stored (polyc_cast.h
   includes it). It does what polyc_narrow.h does, on all lanes. */

#define U OF(u32)

PC_INLINE OF(PC_TO) PC_PASTE3(NAME, x, PC_LANES)(OF(PC_FROM) a)
{
#if FROM_KIND == PC_STORED
#define NARROW(name) PC_PASTE3(PC_, name##_, PC_FROM)
#if defined PC_HAS_F16 && NARROW(FRACTION) == 10 && PC_LANES == 16 && defined __AVX512F__
    typedef short H __attribute__((vector_size(32)));
    return __builtin_ia32_vcvtph2ps512_mask((H)a, (OF(f32)){0}, 0xffff, 4);
#elif defined PC_HAS_F16 && NARROW(FRACTION) == 10 && PC_LANES == 8
    typedef short H __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps256((H)a);
#elif NARROW(BIAS) == 127
#if defined __AVX512F__ && !defined __clang__ && PC_LANES == 16 /* gcc 12 would take four for it */
    typedef short H __attribute__((vector_size(32)));
    typedef int I __attribute__((vector_size(64)));
    return (OF(f32))((U)__builtin_ia32_pmovzxwd512_mask((H)a, (I){0}, 0xffff) << 16);
#else
    return (OF(f32))(RESIZE(u, FROM_BITS, 32, a) << (32 - FROM_BITS));
#endif
#else
    const U whole = RESIZE(u, FROM_BITS, 32, a), code = whole & ((1u << (FROM_BITS - 1)) - 1);
    const U sign = whole >> (FROM_BITS - 1) << 31, bits = code << (23 - NARROW(FRACTION));
    const U moved = (U)((OF(f32))bits * pc_value_f32((254u - NARROW(BIAS)) << 23));
    return (OF(f32))(sign | moved | ((U)(code > NARROW(LARGEST)) & 0x7f800000));
#endif

#else
#define NARROW(name) PC_PASTE3(PC_, name##_, PC_TO)
#if defined PC_HAS_F16 && NARROW(FRACTION) == 10 && PC_LANES == 16 && defined __AVX512F__
    typedef short H __attribute__((vector_size(32)));
    return (OF(PC_TO))__builtin_ia32_vcvtps2ph512_mask(a, 0, (H){0}, 0xffff);
#elif defined PC_HAS_F16 && NARROW(FRACTION) == 10 && PC_LANES == 8
    return (OF(PC_TO))__builtin_ia32_vcvtps2ph256(a, 0);
#elif NARROW(BIAS) == 127
    /* The sign stays where it is, and a carry makes an infinity of the largest number. */
    const u32 dropped = 32 - TO_BITS;
    const U bits = (U)a, even = bits + ((1u << (dropped - 1)) - 1) + (bits >> dropped & 1);
    const U number = (U)(a == a);
    return (OF(PC_TO))RESIZE(u, 32, TO_BITS, ((even & number) | (~number & 0x7fc00000)) >> dropped);
#else
    const u32 dropped = 23 - NARROW(FRACTION), moved = 127 - NARROW(BIAS);
    const U size = (U)a & 0x7fffffff, sign = (U)a >> 31 << (TO_BITS - 1);
    U code = ((size + ((1u << (dropped - 1)) - 1) + (size >> dropped & 1)) >> dropped) -
             (moved << NARROW(FRACTION));
#define CHOOSE(condition, chosen) (((U)(condition) & (chosen)) | (~(U)(condition) & code))
    const u32 steps = (moved + 1 + dropped) << 23;
    code = CHOOSE(size < (moved + 1) << 23, (U)((OF(f32))size + pc_value_f32(steps)) - steps);
    code = CHOOSE(code > NARROW(LARGEST), NARROW(BEYOND));
    code = CHOOSE(size > 0x7f800000, NARROW(NAN));
#undef CHOOSE
    return (OF(PC_TO))RESIZE(u, 32, TO_BITS, code | sign);
#endif
#endif
#undef NARROW
}

#undef U
