/* polyc.h of the exact run: the ground that generated C stands on when it is compiled to compute in
   a prime field.

   The text that is compiled is the same, letter by letter, but as C++, with this folder in front of
   runtime/: the floating-point types are classes (polyc_field.h), integers, indices, loops, threads
   and barriers are those of any run. An element takes as many bytes as the type that it stands for,
   so that offsets, arenas and weights are the same too, and the driver is compiled as C as ever.

   What a float function computes is so not looked at (that is tested against correctly rounded
   values), but all that is done with it: which elements meet, in which order, and where they go. */

#ifndef POLYC_EXACT_H
#define POLYC_EXACT_H

#include <stdlib.h>
#include <string.h>

/* What C has and C++ spells otherwise. */
#define PC_C_AS_CPP
#define restrict __restrict__
#define _Alignas alignas

/* The types of the runtime's own headers under other names: those of polyc_field.h take theirs. */
#define f32 pc_native_f32
#define f64 pc_native_f64
#define f16 pc_native_f16
#define bf16 pc_native_bf16
#define f8e4m3fn pc_native_f8e4m3fn
#define f8e4m3fnuz pc_native_f8e4m3fnuz
#define f8e5m2 pc_native_f8e5m2
#define f8e5m2fnuz pc_native_f8e5m2fnuz
#define f8e8m0 pc_native_f8e8m0
#define f6e3m2 pc_native_f6e3m2
#define f6e2m3 pc_native_f6e2m3
#define f4e2m1 pc_native_f4e2m1
#define pc_index pc_index_checked
#include "../polyc.h"
#undef pc_index
#undef f4e2m1
#undef f6e2m3
#undef f6e3m2
#undef f8e8m0
#undef f8e5m2fnuz
#undef f8e5m2
#undef f8e4m3fnuz
#undef f8e4m3fn
#undef bf16
#undef f16
#undef f64
#undef f32

#include "polyc_field.h"

/* Integers that floats were converted to are arbitrary here, and may be meant as indices: one out of
   range counts from where the dimension ends, again and again, and is no error. */
PC_INLINE i64 pc_index(i64 i, i64 extent, int *status)
{
    (void)status;
    if (extent < 1)
        return pc_index_checked(i, extent, status);
    return pc_mod(i, extent);
}

#undef PC_VECTORS
#define PC_FIELD_VECTOR(type, n) typedef pc_field::lanes<type, n> type##x##n;
#define PC_VECTORS(n) \
    PC_VECTOR(b8, i8, n) \
    PC_VECTOR(i8, i8, n) PC_VECTOR(i16, i16, n) PC_VECTOR(i32, i32, n) PC_VECTOR(i64, i64, n) \
    PC_VECTOR(u8, u8, n) PC_VECTOR(u16, u16, n) PC_VECTOR(u32, u32, n) PC_VECTOR(u64, u64, n) \
    PC_VECTOR(i4, u8, n) PC_VECTOR(u4, u8, n) PC_VECTOR(i2, u8, n) PC_VECTOR(u2, u8, n) \
    PC_FIELD_TYPES(PC_FIELD_VECTOR, n)

#endif
