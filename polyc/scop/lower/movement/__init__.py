"""Lowerings of operators that move elements: views, frames, and indices that are data."""

from polyc.scop.lower.movement import (  # noqa: F401  (imported to fill the table of lowerings)
    choose,
    gather,
    merging,
    padding,
    places,
    reshape,
    scatter,
    selection,
    steps,
    views,
)
