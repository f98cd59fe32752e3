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

#include "polyc_native_begin.h"
#include "../polyc.h"
#include "../polyc_narrow.h"
#include "polyc_native_end.h"

#include "polyc_field.h"

#undef PC_VECTORS
#define PC_FIELD_VECTOR(type, n) typedef pc_field::lanes<type, n> type##x##n;
#define PC_VECTORS(n) \
    PC_VECTOR(b8, i8, n) \
    PC_VECTOR(i8, i8, n) PC_VECTOR(i16, i16, n) PC_VECTOR(i32, i32, n) PC_VECTOR(i64, i64, n) \
    PC_VECTOR(u8, u8, n) PC_VECTOR(u16, u16, n) PC_VECTOR(u32, u32, n) PC_VECTOR(u64, u64, n) \
    PC_VECTOR(i4, u8, n) PC_VECTOR(u4, u8, n) PC_VECTOR(i2, u8, n) PC_VECTOR(u2, u8, n) \
    PC_FIELD_TYPES(PC_FIELD_VECTOR, n)

#endif
