/* polyc_f32_rational.h: tanh and erf of PC_LANES floats, as x P(x^2) / Q(x^2).

   Both are odd and reach 1 to within half an ulp at a small x, so that one quotient serves the whole
   interval, with x limited to it: no exp, no branch. All coefficients are positive, so nothing
   cancels and the rounding errors stay at a few ulp. Rational minimax fits of the relative error by
   the differential correction algorithm (Cheney & Loeb 1961), each step a linear program. */

#include "polyc_f32_begin.h"

/* Limits x to [-most, most]; NaN stays. */
PC_INLINE F FN(limit)(F x, float most)
{
    x = FN(blend)(x < -most, ALL(-most), x);
    return FN(blend)(x > most, ALL(most), x);
}

/* ERF_ULP. */
PC_INLINE F FN(erf)(F x)
{
    x = FN(limit)(x, 3.925f);
    F z = x * x, z2 = z * z;
    F p = (0x1.7ed26cp-3f * z + 0x1.20dd74p+0f) + z2
        * ((0x1.da11bcp-9f * z + 0x1.ac5828p-5f) + z2 * (0x1.16f894p-19f * z + 0x1.275f38p-12f));
    F q = (0x1.fef782p-2f * z + 1) + z2
        * ((0x1.e0b822p-7f * z + 0x1.cd7f36p-4f) + z2 * (0x1.409c3ep-15f * z + 0x1.2761e2p-10f));
    return x * p / q;
}

SCALAR_1(erf)

#include "polyc_f32_end.h"
