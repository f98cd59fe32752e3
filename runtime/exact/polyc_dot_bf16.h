/* polyc_dot_bf16.h of the exact run: sums of two products of elements, added to PC_LANES others. */

#define V PC_PASTE(f32x, PC_LANES)
#define PAIRS PC_PASTE(bf16x, PC_PASTE(PC_TWICE_, PC_LANES))

PC_INLINE V PC_PASTE(pc_dot2_bf16bf16_, V)(V acc, PAIRS a, PAIRS b)
{
    for (int k = 0; k < 2 * PC_LANES; k++)
        acc[k / 2] += f32::of(a.r[k]) * f32::of(b.r[k]);
    return acc;
}

#undef PAIRS
#undef V
#undef PC_LANES
