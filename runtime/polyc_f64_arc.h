/* polyc_f64_arc.h: the series and constants of polyc_arc.h for PC_LANES doubles. */

#include "polyc_f64_begin.h"

#define PI_2_HI 0x1.921fb54442d18p+0
#define PI_2_LO 0x1.1a62633145c07p-54
#define TAN_PI_8 0x1.a827999fcef32p-2
#define COT_PI_8 0x1.3504f333f9de6p+1

/* asin s - s, |s| <= 1/2, with z = s^2. */
PC_INLINE F FN(asin_tail)(F s, F z)
{
    F a = (0x1.0be9caa8e224dp-5 * z - 0x1.5a0621dc8e82fp-6) * z + 0x1.650bd8666a7b8p-6;
    a = ((a * z + 0x1.e13f09165b8f6p-9) * z + 0x1.618c4ea1a2fb6p-7) * z + 0x1.75775339f757cp-7;
    a = ((a * z + 0x1.ca21497d64417p-7) * z + 0x1.1c49dde030005p-6) * z + 0x1.6e8bdfe714e1ep-6;
    a = ((a * z + 0x1.f1c71a8ba5f73p-6) * z + 0x1.6db6db722b267p-5) * z + 0x1.333333332df1dp-4;
    return s * z * (a * z + 0x1.5555555555578p-3);
}

/* atan s - s, |s| <= tan(pi/8), with z = s^2. */
PC_INLINE F FN(atan_tail)(F s, F z)
{
    F p = (-0x1.257696cc8884ap-6 * z + 0x1.37dc21229b23dp-5) * z - 0x1.9cd5a0b7caabep-5;
    p = ((p * z + 0x1.df1001200cde7p-5) * z - 0x1.10ebc5d9b1fb7p-4) * z + 0x1.3b111a6121b46p-4;
    p = ((p * z - 0x1.745cf8ef4d648p-4) * z + 0x1.c71c70e6b61acp-4) * z - 0x1.24924922aee52p-3;
    p = (p * z + 0x1.9999999995897p-3) * z - 0x1.555555555553dp-2;
    return s * z * p;
}

#include "polyc_arc.h"
#include "polyc_f64_end.h"
