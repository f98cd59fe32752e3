/* polyc_quantised.h of the exact run: the functions that it stands for, one after the other, each as
   polyc_vector.h and polyc_cast.h have it. PC_TYPE is an integer of 8 bits. */

PC_INLINE PC_PASTE3(PC_TYPE, x, PC_LANES) PC_PASTE3(pc_quantised_, PC_PASTE(PC_TYPE, x), PC_LANES)(
    PC_PASTE(f32x, PC_LANES) x, f32 y, PC_TYPE zero)
{
    PC_PASTE3(PC_TYPE, x, PC_LANES) v;
    for (int l = 0; l < PC_LANES; l++) {
        const f32 whole = pc_field::random(pc_field::name_of("round"), x[l] / y, f32(0));
        const f32 moved = whole + f32(zero);
        v[l] = (PC_TYPE)(pc_field::draw(pc_field::name_of("integer"), moved.r, 0) >> 1);
    }
    return v;
}

PC_INLINE PC_PASTE(f32x, PC_LANES) PC_PASTE3(pc_levels_, PC_PASTE(PC_TYPE, x), PC_LANES)(
    PC_PASTE(f32x, PC_LANES) x, f32 y, PC_TYPE zero)
{
    const auto bytes = PC_PASTE3(pc_quantised_, PC_PASTE(PC_TYPE, x), PC_LANES)(x, y, zero);
    PC_PASTE(f32x, PC_LANES) v;
    for (int l = 0; l < PC_LANES; l++)
        v[l] = f32((i32)bytes[l] - (i32)zero);
    return v;
}
