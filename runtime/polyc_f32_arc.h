/* polyc_f32_arc.h: the series and constants of polyc_arc.h for PC_LANES floats. */

#include "polyc_f32_begin.h"

#define PI_2_HI 0x1.921fb6p+0f
#define PI_2_LO -0x1.777a5cp-25f
#define TAN_PI_8 0x1.a8279ap-2f
#define COT_PI_8 0x1.3504f4p+1f

/* asin s - s, |s| <= 1/2, with z = s^2. */
PC_INLINE F FN(asin_tail)(F s, F z)
{
    F a = (0x1.595c92p-5f * z + 0x1.8c3e28p-6f) * z + 0x1.747bbap-5f;
    a = (a * z + 0x1.330204p-4f) * z + 0x1.5555c8p-3f;
    return s * z * a;
}

/* atan s - s, |s| <= tan(pi/8), with z = s^2. */
PC_INLINE F FN(atan_tail)(F s, F z)
{
    F p = ((0x1.49e63ap-4f * z - 0x1.1c37eap-3f) * z + 0x1.9924d8p-3f) * z - 0x1.555454p-2f;
    return s * z * p;
}

#include "polyc_arc.h"
#include "polyc_f32_end.h"
