"""What sizes are taken for where that is a matter of speed, and never of meaning."""

from __future__ import annotations

from polyc.types.ranges import STEP, SizeRange, assumed_ranges
from polyc.types.sizes import Extent, Size, assumed_range

TYPICAL = 128
"""What kernels are chosen for where nobody says: tokens, rows, images."""


def estimate(extent: Extent) -> int:
    """The extent for the sizes that kernels are chosen for: a matter of speed, never of meaning."""
    if not isinstance(extent, Size):
        return extent
    value = extent.at({name: _typical(assumed_range(name)) for name in extent.names})
    assert not isinstance(value, Size)
    return value


def _typical(size: SizeRange) -> int:
    """The hint; a loop that may run more often than once is not planned to run once.

    A state is planned to have room for a call: what it grows by is at most half of its capacity.
    """
    if size.name.startswith(STEP):
        return 0  # which every loop has
    if size.same is not None:
        return max(estimate(size.same), size.lower)
    least, most = max(size.lower, 2), size.upper or TYPICAL
    for state in assumed_ranges():
        if state.upper and isinstance(state.next, Size) and size.name in state.next.names:
            left = state.upper // 2
            if size.name == state.name:
                left = state.upper - estimate(state.next - Size.of(size.name))
            least, most = min(least, max(left, size.lower)), min(most, max(left, size.lower))
    return max(least, min(TYPICAL if size.hint is None else size.hint, most))
