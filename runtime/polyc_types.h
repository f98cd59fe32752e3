/* polyc_types.h: what C for the CPU and CUDA for a GPU have in common - scalar types, what the
   preprocessor may ask about them, index checks. C11 and C++17, and functions of host and device
   under nvcc. */

#ifndef POLYC_TYPES_H
#define POLYC_TYPES_H

/* PC_COPY is memcpy. In C no header is needed for it: every kernel reads this file, and the system's
   take as long as the rest of it. */
#ifdef __cplusplus
#include <stdint.h>
#include <string.h>
#define PC_COPY memcpy
#else
#define PC_COPY __builtin_memcpy
#endif

typedef float f32;
typedef double f64;
typedef __INT8_TYPE__ i8;
typedef __INT16_TYPE__ i16;
typedef __INT32_TYPE__ i32;
typedef __INT64_TYPE__ i64;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef u8 b8; /* 0 or 1 */

#ifdef __CUDACC__
#define PC_INLINE static __host__ __device__ __forceinline__ __attribute__((unused))
#else
#define PC_INLINE static inline __attribute__((always_inline, unused))
#endif

/* Pasting that expands its operands first: with PC_TYPE f32, PC_PASTE(pc_max_, PC_TYPE) is
   pc_max_f32. */
#define PC_PASTE(a, b) PC_PASTE_(a, b)
#define PC_PASTE_(a, b) a##b
#define PC_PASTE3(a, b, c) PC_PASTE(PC_PASTE(a, b), c)

/* Twice as many lanes: PC_PASTE(PC_TWICE_, 16) is 32. */
#define PC_TWICE_2 4
#define PC_TWICE_4 8
#define PC_TWICE_8 16
#define PC_TWICE_16 32

/* What the preprocessor may ask about a type: PC_PASTE(PC_KIND_, PC_TYPE) == PC_FLOAT. */
#define PC_BOOL 0
#define PC_UNSIGNED 1
#define PC_SIGNED 2
#define PC_FLOAT 3
#define PC_STORED 4 /* loaded, stored, chosen and converted, and nothing else */

#define PC_KIND_b8 PC_BOOL
#define PC_KIND_u8 PC_UNSIGNED
#define PC_KIND_u16 PC_UNSIGNED
#define PC_KIND_u32 PC_UNSIGNED
#define PC_KIND_u64 PC_UNSIGNED
#define PC_KIND_i8 PC_SIGNED
#define PC_KIND_i16 PC_SIGNED
#define PC_KIND_i32 PC_SIGNED
#define PC_KIND_i64 PC_SIGNED
#define PC_KIND_f32 PC_FLOAT
#define PC_KIND_f64 PC_FLOAT
#define PC_KIND_f16 PC_STORED
#define PC_KIND_bf16 PC_STORED
#define PC_KIND_f8e4m3fn PC_STORED
#define PC_KIND_f8e4m3fnuz PC_STORED
#define PC_KIND_f8e5m2 PC_STORED
#define PC_KIND_f8e5m2fnuz PC_STORED
#define PC_KIND_f8e8m0 PC_STORED
#define PC_KIND_f6e3m2 PC_STORED
#define PC_KIND_f6e2m3 PC_STORED
#define PC_KIND_f4e2m1 PC_STORED
#define PC_KIND_i4 PC_STORED
#define PC_KIND_u4 PC_STORED
#define PC_KIND_i2 PC_STORED
#define PC_KIND_u2 PC_STORED

/* Bits in memory, where an element takes at least a byte. */
#define PC_BITS_b8 8
#define PC_BITS_u8 8
#define PC_BITS_u16 16
#define PC_BITS_u32 32
#define PC_BITS_u64 64
#define PC_BITS_i8 8
#define PC_BITS_i16 16
#define PC_BITS_i32 32
#define PC_BITS_i64 64
#define PC_BITS_f32 32
#define PC_BITS_f64 64
#define PC_BITS_f16 16
#define PC_BITS_bf16 16
#define PC_BITS_f8e4m3fn 8
#define PC_BITS_f8e4m3fnuz 8
#define PC_BITS_f8e5m2 8
#define PC_BITS_f8e5m2fnuz 8
#define PC_BITS_f8e8m0 8
#define PC_BITS_f6e3m2 8
#define PC_BITS_f6e2m3 8
#define PC_BITS_f4e2m1 8
#define PC_BITS_i4 8
#define PC_BITS_u4 8
#define PC_BITS_i2 8
#define PC_BITS_u2 8

/* Sets *status, which threads share: all write the same value, and nobody reads it before they have
   met. An atomic store would be the C standard's way to say so, but gcc takes one to change all
   memory, and would read again behind it what a loop has read before. */
PC_INLINE void pc_raise(int *status) { *(volatile int *)status = 1; }

/* The index that ONNX means by i along a dimension of the given extent: negative ones count from the
   end. One that is out of range sets *status, which the driver turns into an error after the call,
   and becomes the nearest valid index, so that no memory outside is touched; 0 of an extent of 0,
   where nothing may be read. */
PC_INLINE i64 pc_index(i64 i, i64 extent, int *status)
{
    i64 wrapped = i < 0 ? i + extent : i;
    if (__builtin_expect((u64)wrapped >= (u64)extent, 0)) {
        pc_raise(status);
        return i < 0 || extent < 1 ? 0 : extent - 1;
    }
    return wrapped;
}

/* ---- Loop bounds and subscripts ------------------------------------------------------------- */

/* floor(a / d) and a - d * floor(a / d), for d > 0. For a literal d that is a power of 2 a shift; else
   ~a counts from -1 downwards where a is negative, and ~(~a / d) is the floor. */
PC_INLINE i64 pc_floordiv(i64 a, i64 d)
{
    if (__builtin_constant_p(d) && (d & (d - 1)) == 0) return a >> __builtin_ctzll((u64)d);
    i64 sign = a >> 63;
    return (i64)((u64)(a ^ sign) / (u64)d) ^ sign;
}
PC_INLINE i64 pc_mod(i64 a, i64 d) { return a - d * pc_floordiv(a, d); }
PC_INLINE i64 pc_min(i64 a, i64 b) { return a < b ? a : b; }
PC_INLINE i64 pc_max(i64 a, i64 b) { return a > b ? a : b; }

/* On a GPU subscripts are ints, which it divides in a fifth of the time. */
#if defined __cplusplus && !defined PC_C_AS_CPP
PC_INLINE int pc_floordiv(int a, int d) { return a / d - (a % d < 0); }
PC_INLINE int pc_mod(int a, int d) { return a % d + (a % d < 0 ? d : 0); }
#ifndef __CUDA_ARCH__
PC_INLINE int pc_min(int a, int b) { return a < b ? a : b; }
PC_INLINE int pc_max(int a, int b) { return a > b ? a : b; }
#else
/* max(0, k - 2) becomes one instruction on Hopper. Where a loop that ptxas 13.0 unrolls makes a constant
   of k, it subtracts twice: for k = 3 it computed max(0, 1 - 3). Of a comparison and a choice it makes
   two instructions, which it folds. */
#define PC_CHOICE(name, type, compared) \
    PC_INLINE type name(type a, type b) \
    { \
        type chosen; \
        asm("{ .reg .pred first; setp." compared " first, %1, %2; selp.b32 %0, %1, %2, first; }" \
            : "=r"(chosen) : "r"(a), "r"(b)); \
        return chosen; \
    }
PC_CHOICE(pc_min, int, "lt.s32")
PC_CHOICE(pc_max, int, "gt.s32")
#endif
#endif

#endif
