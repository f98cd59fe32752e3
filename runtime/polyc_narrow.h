/* polyc_narrow.h: formats that memory holds and nothing computes with, one element at a time;
   vectors of them are in polyc_cast.h. C11 and C++17, and functions of host and device.

       pc_widen_f16(bits)    the value, exact, in its wide type (f32, of integers i8 or u8)
       pc_round_f16(value)   the bits of the nearest one, ties to even; an integer's lowest bits

   Beyond the largest number lies what the format has there: infinity, NaN, or the largest number.

   What the preprocessor may ask about a float, all codes being without the sign: */

#ifndef POLYC_NARROW_H
#define POLYC_NARROW_H

#define PC_SIGN_f16 15 /* the place of the sign, the bits of the fraction, the bias of the exponent */
#define PC_FRACTION_f16 10
#define PC_BIAS_f16 15
#define PC_LARGEST_f16 0x7bff /* the largest number, what is beyond it, and NaN */
#define PC_BEYOND_f16 0x7c00
#define PC_NAN_f16 0x7e00
#define PC_ZEROS_f16 2 /* how many zeros there are */

#define PC_SIGN_bf16 15
#define PC_FRACTION_bf16 7
#define PC_BIAS_bf16 127
#define PC_LARGEST_bf16 0x7f7f
#define PC_BEYOND_bf16 0x7f80
#define PC_NAN_bf16 0x7fc0
#define PC_ZEROS_bf16 2

#define PC_SIGN_f8e4m3fn 7
#define PC_FRACTION_f8e4m3fn 3
#define PC_BIAS_f8e4m3fn 7
#define PC_LARGEST_f8e4m3fn 0x7e
#define PC_BEYOND_f8e4m3fn 0x7f
#define PC_NAN_f8e4m3fn 0x7f
#define PC_ZEROS_f8e4m3fn 2

#define PC_SIGN_f8e4m3fnuz 7
#define PC_FRACTION_f8e4m3fnuz 3
#define PC_BIAS_f8e4m3fnuz 8
#define PC_LARGEST_f8e4m3fnuz 0x7f
#define PC_BEYOND_f8e4m3fnuz 0x80
#define PC_NAN_f8e4m3fnuz 0x80
#define PC_ZEROS_f8e4m3fnuz 1

#define PC_SIGN_f8e5m2 7
#define PC_FRACTION_f8e5m2 2
#define PC_BIAS_f8e5m2 15
#define PC_LARGEST_f8e5m2 0x7b
#define PC_BEYOND_f8e5m2 0x7c
#define PC_NAN_f8e5m2 0x7e
#define PC_ZEROS_f8e5m2 2

#define PC_SIGN_f8e5m2fnuz 7
#define PC_FRACTION_f8e5m2fnuz 2
#define PC_BIAS_f8e5m2fnuz 16
#define PC_LARGEST_f8e5m2fnuz 0x7f
#define PC_BEYOND_f8e5m2fnuz 0x80
#define PC_NAN_f8e5m2fnuz 0x80
#define PC_ZEROS_f8e5m2fnuz 1

#define PC_SIGN_f6e3m2 5
#define PC_FRACTION_f6e3m2 2
#define PC_BIAS_f6e3m2 3
#define PC_LARGEST_f6e3m2 0x1f
#define PC_BEYOND_f6e3m2 0x1f
#define PC_NAN_f6e3m2 0x20
#define PC_ZEROS_f6e3m2 2

#define PC_SIGN_f6e2m3 5
#define PC_FRACTION_f6e2m3 3
#define PC_BIAS_f6e2m3 1
#define PC_LARGEST_f6e2m3 0x1f
#define PC_BEYOND_f6e2m3 0x1f
#define PC_NAN_f6e2m3 0x20
#define PC_ZEROS_f6e2m3 2

#define PC_SIGN_f4e2m1 3
#define PC_FRACTION_f4e2m1 1
#define PC_BIAS_f4e2m1 1
#define PC_LARGEST_f4e2m1 0x7
#define PC_BEYOND_f4e2m1 0x7
#define PC_NAN_f4e2m1 0x8
#define PC_ZEROS_f4e2m1 2

/* e8m0 is the exponent of an f32 and nothing else. Of an integer: its bits. */
#define PC_POWER_f8e8m0 1
#define PC_DIGITS_i4 4
#define PC_DIGITS_u4 4
#define PC_DIGITS_i2 2
#define PC_DIGITS_u2 2

PC_INLINE u32 pc_bits_f32(f32 value)
{
    u32 bits;
    PC_COPY(&bits, &value, 4);
    return bits;
}
PC_INLINE f32 pc_value_f32(u32 bits)
{
    f32 value;
    PC_COPY(&value, &bits, 4);
    return value;
}

/* The code of |value|. Numbers below the smallest normal one are counted in steps, to which adding
   1 << 23 of them rounds. */
PC_INLINE u32 pc_round_size(f32 value, int fraction, int bias, u32 largest, u32 beyond, u32 nan)
{
    const int dropped = 23 - fraction, moved = 127 - bias;
    const u32 size = pc_bits_f32(value) & 0x7fffffff, steps = (u32)(moved + 1 + dropped) << 23;
    if (size > 0x7f800000)
        return nan;
    if (moved && size < (u32)(moved + 1) << 23)
        return pc_bits_f32(pc_value_f32(size) + pc_value_f32(steps)) - steps;
    const u32 half = (1u << (dropped - 1)) - 1 + (size >> dropped & 1);
    const u32 code = ((size + half) >> dropped) - ((u32)moved << fraction);
    return code > largest ? beyond : code;
}

/* The value of a code without sign: its bits as those of an f32, whose exponent is then moved. */
PC_INLINE f32 pc_widen_size(u32 code, int fraction, int bias, u32 largest)
{
    const u32 bits = code << (23 - fraction);
    if (code > largest)
        return pc_value_f32(0x7f800000 | bits);
    return pc_value_f32(bits) * pc_value_f32((u32)(254 - bias) << 23);
}

#define PC_NARROW(type, bits_type) \
    PC_INLINE bits_type pc_round_##type(f32 value) \
    { \
        const u32 sign = pc_bits_f32(value) >> 31 << PC_SIGN_##type; \
        const u32 code = pc_round_size(value, PC_FRACTION_##type, PC_BIAS_##type, PC_LARGEST_##type, \
                                       PC_BEYOND_##type, PC_NAN_##type); \
        return (bits_type)(code || PC_ZEROS_##type == 2 ? sign | code : 0); \
    } \
    PC_INLINE f32 pc_widen_##type(bits_type bits) \
    { \
        const u32 sign = 1u << PC_SIGN_##type, code = bits & (sign - 1); \
        const f32 size = \
            PC_ZEROS_##type == 1 && bits == sign \
                ? pc_value_f32(0x7fc00000) \
                : pc_widen_size(code, PC_FRACTION_##type, PC_BIAS_##type, PC_LARGEST_##type); \
        return bits & sign ? -size : size; \
    }

PC_NARROW(f8e4m3fn, u8) PC_NARROW(f8e4m3fnuz, u8)
PC_NARROW(f8e5m2, u8) PC_NARROW(f8e5m2fnuz, u8)
PC_NARROW(f6e3m2, u8) PC_NARROW(f6e2m3, u8)
PC_NARROW(f4e2m1, u8)

/* The power of two in a number, without its sign; infinities become NaN. */
PC_INLINE u8 pc_round_f8e8m0(f32 value) { return (u8)(pc_bits_f32(value) >> 23); }
PC_INLINE f32 pc_widen_f8e8m0(u8 bits)
{
    return pc_value_f32(bits == 0xff ? 0x7fc00000 : bits ? (u32)bits << 23 : 1u << 22);
}

PC_INLINE u8 pc_round_i4(i8 value) { return value & 15; }
PC_INLINE u8 pc_round_u4(u8 value) { return value & 15; }
PC_INLINE u8 pc_round_i2(i8 value) { return value & 3; }
PC_INLINE u8 pc_round_u2(u8 value) { return value & 3; }
PC_INLINE i8 pc_widen_i4(u8 bits) { return (i8)((bits & 15) - (bits & 8) * 2); }
PC_INLINE u8 pc_widen_u4(u8 bits) { return bits & 15; }
PC_INLINE i8 pc_widen_i2(u8 bits) { return (i8)((bits & 3) - (bits & 2) * 2); }
PC_INLINE u8 pc_widen_u2(u8 bits) { return bits & 3; }

#if defined __CUDA_ARCH__ || (defined __F16C__ && !defined __clang__)
#define PC_HAS_F16
#ifdef __CUDA_ARCH__
PC_INLINE u16 pc_round_f16(f32 value)
{
    u16 rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
}
PC_INLINE f32 pc_widen_f16(u16 bits)
{
    f32 value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
#else
typedef f32 pc_f32x4 __attribute__((vector_size(16)));
typedef short pc_i16x8 __attribute__((vector_size(16)));
PC_INLINE u16 pc_round_f16(f32 value)
{
    return (u16)__builtin_ia32_vcvtps2ph((pc_f32x4){value}, 0)[0];
}
PC_INLINE f32 pc_widen_f16(u16 bits)
{
    return __builtin_ia32_vcvtph2ps((pc_i16x8){(short)bits})[0];
}
#endif
#else
PC_NARROW(f16, u16)
#endif

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
PC_INLINE u16 pc_round_bf16(f32 value)
{
    u16 rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
}
PC_INLINE f32 pc_widen_bf16(u16 bits) { return pc_value_f32((u32)bits << 16); }
#else
PC_NARROW(bf16, u16)
#endif

#endif
