/* polyc_f32_piecewise.h: erf and tanh of PC_LANES floats.

   Both are odd and soon 1. |x| falls into one of 16 pieces; in each the function is a polynomial of
   degree 5 in the distance r from a point of the piece, whose coefficients every lane looks up in
   tables of 16 (P. T. P. Tang, Table-lookup algorithms for elementary functions, ARITH 1991): one
   shuffle a coefficient where a register holds 16 floats, and no branch, exponential or division.
   Infinity falls into the last piece, whose end is nearer to 1 than any other float. */

#ifndef POLYC_PIECES
#define POLYC_PIECES

/* Row d holds the coefficients of r^d. Piece k of erf: |x| within 1/8 of k/4, r = |x| - k/4. In
   piece 0, r itself stands in for c0, so that the others are those of erf r - r. The polynomials
   are off by less than 2^-25 of the function, which is the rounding of c0. */
static const f32 pc_erf_pieces[6][16] __attribute__((aligned(64))) = {
    {0, 0x1.1af54ep-2f, 0x1.0a7ef6p-1f, 0x1.6c1c98p-1f,
     0x1.af767ap-1f, 0x1.d8865ep-1f, 0x1.eea556p-1f, 0x1.f92d08p-1f,
     0x1.fd9ae2p-1f, 0x1.ff4048p-1f, 0x1.ffcaa8p-1f, 0x1.fff2dp-1f,
     0x1.fffd1ap-1f, 0x1.ffff7p-1f, 0x1.ffffe8p-1f, 0x1.fffffcp-1f},
    {0x1.06eba8p-3f, 0x1.0f5d18p+0f, 0x1.c1efccp-1f, 0x1.492e44p-1f,
     0x1.a911fp-2f, 0x1.e4653p-3f, 0x1.e72372p-4f, 0x1.b0553p-5f,
     0x1.529bap-6f, 0x1.d4143cp-8f, 0x1.1d8316p-9f, 0x1.3360cep-11f,
     0x1.2408eap-13f, 0x1.e9b5eap-16f, 0x1.6a5972p-18f, 0x1.fc207cp-21f},
    {0x1.650d36p-22f, -0x1.0f5be6p-2f, -0x1.c1ef0ap-2f, -0x1.edc70cp-2f,
     -0x1.a91048p-2f, -0x1.2ec176p-2f, -0x1.6d6032p-3f, -0x1.7a53acp-4f,
     -0x1.52b36ep-5f, -0x1.0771d6p-6f, -0x1.63e968p-8f, -0x1.a7d642p-10f,
     -0x1.a9b412p-12f, -0x1.a5e6c2p-14f, -0x1.1607aep-15f, 0x1.639034p-20f},
    {-0x1.812c02p-2f, -0x1.3c9e56p-2f, -0x1.2bfde8p-3f, 0x1.b6aa2p-6f,
     0x1.1b6258p-3f, 0x1.571c16p-3f, 0x1.1c2a1cp-3f, 0x1.71494cp-4f,
     0x1.8b0aep-5f, 0x1.63ef4ap-6f, 0x1.119d74p-7f, 0x1.69cc48p-9f,
     0x1.9db108p-11f, 0x1.9a9914p-13f, 0x1.62bd58p-15f, 0x1.96fedcp-17f},
    {0x1.57169ep-12f, 0x1.023d0cp-3f, 0x1.74ff7p-3f, 0x1.3492fcp-3f,
     0x1.1a037cp-4f, -0x1.5a71dp-8f, -0x1.65469ap-5f, -0x1.8456d6p-5f,
     -0x1.1428bep-5f, -0x1.2fc9a8p-6f, -0x1.3b4686p-7f, -0x1.884cc4p-9f,
     -0x1.da653p-10f, 0x1.3d6d0ap-14f, 0x1.b9dd18p-11f, -0x1.08728cp-12f},
    {0x1.c5c882p-4f, 0x1.4c56f8p-4f, 0x1.10fef8p-7f, -0x1.aa9ad6p-5f,
     -0x1.1ae6f2p-4f, -0x1.81188cp-5f, -0x1.e9753cp-7f, 0x1.aa2298p-8f,
     0x1.ab11dcp-7f, 0x1.5ce842p-7f, 0x1.918f9ap-8f, 0x1.6b436ep-9f,
     0x1.0cdbfep-10f, 0x1.4d42fp-12f, 0x1.5e3328p-14f, 0x1.3aa39ep-16f},
};

/* The pieces of tanh begin where 5/8 + |x| has two bits after its leading one, r = |x| - beginning:
   wide where the function is flat. They stand in the order of these bits, below those of the
   exponent, modulo 16: |x| = 11/8, 15/8, ..., 59/8, 0, 1/8, ..., 9/8. Off by less than 2^-24.5. */
static const f32 pc_tanh_pieces[6][16] __attribute__((aligned(64))) = {
    {0x1.c278a4p-1f, 0x1.e8789ep-1f, 0x1.f73776p-1f, 0x1.fcc04cp-1f,
     0x1.fecd6cp-1f, 0x1.ffd678p-1f, 0x1.fffa6p-1f, 0x1.ffff3ep-1f,
     0x1.ffffe6p-1f, 0, 0x1.fd5992p-4f, 0x1.f597eap-3f,
     0x1.6ef53ep-2f, 0x1.1bf47ep-1f, 0x1.68665p-1f, 0x1.9e5cb6p-1f},
    {0x1.ceaa06p-3f, 0x1.6fd1dep-4f, 0x1.16ab54p-5f, 0x1.9e9b86p-7f,
     0x1.3210fep-8f, 0x1.4bbe4cp-11f, 0x1.6cf984p-14f, 0x1.5ed9f6p-17f,
     0x1.5b7a0ep-20f, 0x1p+0f, 0x1.f8154ep-1f, 0x1.e149ccp-1f,
     0x1.be3f92p-1f, 0x1.62854ep-1f, 0x1.0250a8p-1f, 0x1.614facp-2f},
    {-0x1.975186p-3f, -0x1.5f0724p-4f, -0x1.1205b8p-5f, -0x1.9d0338p-7f,
     -0x1.2f6492p-8f, -0x1.47483cp-11f, -0x1.900a3p-14f, -0x1.3a90ep-19f,
     -0x1.c3617ep-22f, 0x1.4ee944p-22f, -0x1.f5ce48p-4f, -0x1.d7adccp-3f,
     -0x1.3fc316p-2f, -0x1.895e5p-2f, -0x1.6bd2ep-2f, -0x1.1de7b8p-2f},
    {0x1.9ca114p-4f, 0x1.a973cep-5f, 0x1.6140fcp-6f, 0x1.145f6cp-7f,
     0x1.815a9ep-9f, 0x1.95a0b4p-12f, 0x1.5b0f26p-14f, -0x1.34675ap-16f,
     -0x1.66c0cep-21f, -0x1.555b2ep-2f, -0x1.3e9754p-2f, -0x1.053316p-2f,
     -0x1.707c92p-3f, -0x1.0c4a06p-6f, 0x1.57738ep-4f, 0x1.c5dfcp-4f},
    {-0x1.af4096p-6f, -0x1.59946cp-6f, -0x1.42a84p-7f, -0x1.17b582p-8f,
     -0x1.3a169p-10f, -0x1.355a0ep-13f, -0x1.ca73ap-15f, 0x1.bb1888p-16f,
     0x1.42035p-21f, 0x1.efcf78p-12f, 0x1.04ca54p-4f, 0x1.fa98fcp-4f,
     0x1.6f3e7cp-3f, 0x1.0e4992p-3f, 0x1.98763ep-5f, 0x1.49a716p-9f},
    {0x1.3b502cp-10f, 0x1.3d75bep-8f, 0x1.5f9c5cp-9f, 0x1.6ce066p-10f,
     0x1.f64b32p-13f, 0x1.b63406p-16f, 0x1.23f7f8p-16f, -0x1.76b976p-17f,
     -0x1.27d9b2p-23f, 0x1.0a35e2p-3f, 0x1.445a36p-3f, 0x1.c1ecacp-4f,
     -0x1.9f7f5ap-6f, -0x1.a5a412p-5f, -0x1.1b7612p-5f, -0x1.81344cp-6f},
};

#endif

#include "polyc_f32_begin.h"

/* (p(r) - c0) / r in piece i mod 16. */
PC_INLINE F FN(quotient)(const f32 pieces[6][16], I i, F r)
{
    F p = FN(look_up)(pieces[5], i) * r + FN(look_up)(pieces[4], i);
    p = p * r + FN(look_up)(pieces[3], i);
    p = p * r + FN(look_up)(pieces[2], i);
    return p * r + FN(look_up)(pieces[1], i);
}

/* y with the sign of x, for y of sign +. */
PC_INLINE F FN(odd)(F y, F x) { return (F)((I)y | ((I)x & (I)(-ALL(0)))); }

/* Within 1.5 ulp. Adding 1.5 * 2^21 rounds to a multiple of 1/4 and leaves its number in the low
   bits. */
PC_INLINE F FN(erf)(F x)
{
    F a = FN(smaller)(FN(abs)(x), ALL(0x1.effffep+1f)); /* just in piece 15 */
    F shifted = a + 0x1.8p21f, r = a - (shifted - 0x1.8p21f);
    I piece = (I)shifted;
    F start = FN(larger)(FN(look_up)(pc_erf_pieces[0], piece), r);
    return FN(odd)(FN(quotient)(pc_erf_pieces, piece, r) * r + start, x);
}

/* Within 1.4 ulp. r is exact: the beginning of piece 0 is 0, and |x| is less than twice the others'
   or has no lower bits than them. */
PC_INLINE F FN(tanh)(F x)
{
    F a = FN(smaller)(FN(abs)(x), ALL(9.25f));
    I bits = (I)(a + 0.625f), piece = bits >> 21;
    F r = a - ((F)(bits & -0x200000) - 0.625f);
    F start = FN(look_up)(pc_tanh_pieces[0], piece);
    return FN(odd)(FN(quotient)(pc_tanh_pieces, piece, r) * r + start, x);
}

SCALAR_1(erf)
SCALAR_1(tanh)

#include "polyc_f32_end.h"
