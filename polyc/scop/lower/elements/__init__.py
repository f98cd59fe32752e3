"""Lowerings of operators that compute each element by a formula of its own."""

from polyc.scop.lower.elements import (  # noqa: F401  (imported to fill the table of lowerings)
    activation,
    conversion,
    generate,
    pointwise,
    random,
)
