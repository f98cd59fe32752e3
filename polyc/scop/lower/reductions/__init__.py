"""Lowerings of what sums up along dimensions: reductions, norms, softmax, running totals."""

from polyc.scop.lower.reductions import (  # noqa: F401  (imported to fill the table of lowerings)
    batch_normalization,
    greedy,
    normalization,
    reduction,
    scan,
    softmax,
)
