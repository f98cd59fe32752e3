/* polyc_cuda.cuh of the exact run: the ground that generated CUDA stands on when it is compiled, for
   the emulator, to compute in a prime field. As in polyc.h beside this file the text is the same,
   letter by letter: floats are classes (polyc_field.h), and all else is the emulator's, so that
   elements go through shared memory, fragments, swizzles and copies in the background. */

#ifndef POLYC_EXACT_CUDA_CUH
#define POLYC_EXACT_CUDA_CUH

#include <stdlib.h>
#include <string.h>

#include "polyc_native_begin.h"
#include "../polyc_types.h"
#include "../polyc_narrow.h"
#include "polyc_native_end.h"

#include "polyc_field.h"
#include "polyc_cuda_floats.cuh"

#include "../polyc_cuda.cuh"

#endif
