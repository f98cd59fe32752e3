"""Lowerings of sums of products: contractions, and those of quantised numbers."""

from polyc.scop.lower.products import (  # noqa: F401  (imported to fill the table of lowerings)
    blocks,
    contraction,
    quantization,
)
