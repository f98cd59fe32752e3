"""In which forms products may be computed on a target, as its rates and options decide it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyc.options import Options
from polyc.target.costs import price_pairs, streamed_bytes, summed_floats
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target

Types = frozenset[tuple[np.dtype, np.dtype]]


@dataclass(frozen=True)
class Forms:
    """streamed: how fast Winograd's weights would arrive; None where nobody wants them. lanes: of
    the vectors that multiply by what is not zero; 0 where zeros are not left out. integers, floats:
    the types of factors of which an instruction sums up several products, where that pays. rounds:
    whether floats may be rounded to these; direct: the time of sums of them, relative to float32.
    """

    streamed: float | None = None
    lanes: int = 0
    integers: Types = frozenset()
    floats: Types = frozenset()
    rounds: bool = False
    direct: float = 1.0


def choose_forms(target: Target | CudaTarget, options: Options) -> Forms:
    """What a CPU's rates say; nothing of it is for a GPU."""
    if isinstance(target, CudaTarget):
        return Forms()
    rounds = options.precision == "bf16"
    return Forms(
        streamed_bytes(target) if options.minimal_filtering else None,
        target.vectors.lanes(4) if options.sparse else 0,
        target.vectors.products,
        summed_floats(target),
        rounds,
        price_pairs(target) if rounds else 1.0,
    )
