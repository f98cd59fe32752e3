/* polyc_cast.h of the exact run: conversion from PC_FROM to PC_TO, of PC_LANES lanes.

   float -> float      nothing changes: both are elements of one field
   float -> integer    a pseudo-random function
   integer -> float    n modulo PC_PRIME; those of 4 and 2 bits as polyc_narrow.h widens them
   float -> b8         x != 0
   else                as polyc_cast.h has it */

#if !PC_PASTE(PC_FIELD_, PC_FROM) && !PC_PASTE(PC_FIELD_, PC_TO)
#include "../polyc_cast.h"
#else

#define NAME PC_PASTE(PC_PASTE3(pc_cast_, PC_FROM, _), PC_TO)
#define ONE PC_PASTE3(NAME, _lane_x, PC_LANES)

/* One lane; of a vector, b8 is 0 or -1. */
PC_INLINE PC_TO ONE(PC_FROM a)
{
#if PC_PASTE(PC_FIELD_, PC_FROM) && PC_PASTE(PC_FIELD_, PC_TO)
    return PC_TO::of(a.r);
#elif PC_PASTE(PC_FIELD_, PC_TO) && PC_PASTE(PC_KIND_, PC_FROM) == PC_STORED && defined PC_C_AS_CPP
    return PC_TO(PC_PASTE(pc_widen_, PC_FROM)(a));
#elif PC_PASTE(PC_FIELD_, PC_TO)
    return PC_TO(+a);
#elif PC_PASTE(PC_KIND_, PC_TO) == PC_BOOL
    return a.r != 0;
#else
    const u64 drawn = pc_field::draw(pc_field::name_of("integer"), a.r, 0) >> 1;
#if PC_PASTE(PC_KIND_, PC_TO) == PC_STORED && defined PC_C_AS_CPP
    return PC_PASTE(pc_round_, PC_TO)(drawn);
#else
    return (PC_TO)drawn;
#endif
#endif
}

#if PC_LANES == 1

PC_INLINE PC_TO NAME(PC_FROM a) { return ONE(a); }

#else

PC_INLINE PC_PASTE3(PC_TO, x, PC_LANES) PC_PASTE3(NAME, x, PC_LANES)(PC_PASTE3(PC_FROM, x, PC_LANES) a)
{
    PC_PASTE3(PC_TO, x, PC_LANES) v;
    for (int l = 0; l < PC_LANES; l++) {
#if PC_PASTE(PC_KIND_, PC_FROM) == PC_BOOL
        v.r[l] = ONE(a[l] & 1).r;
#elif PC_PASTE(PC_FIELD_, PC_TO)
        v.r[l] = ONE(a[l]).r;
#elif PC_PASTE(PC_KIND_, PC_TO) == PC_BOOL
        v[l] = ONE(a[l]) ? -1 : 0;
#else
        v[l] = ONE(a[l]);
#endif
    }
    return v;
}

#endif

#undef ONE
#undef NAME
#undef PC_LANES
#undef PC_TO
#undef PC_FROM

#endif
