"""Lowerings of windows that slide: convolutions, pools, and images at other sizes."""

from polyc.scop.lower.windows import (  # noqa: F401  (imported to fill the table of lowerings)
    grid_sample,
    pooling,
    resize,
    transposed,
    window,
)
