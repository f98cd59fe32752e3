"""How places in shared memory are exchanged, so that neighbouring rows meet other banks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Swizzle:
    """An exchange of places in an array: bits [to, to + bits) of the number of an element are
    exclusive-ored with bits [source, source + bits). What is below `to` stays together.

    It is a matter of printing: every access to the array goes through it, and none sees it.
    """

    bits: int
    to: int
    source: int

    @property
    def period(self) -> int:
        """Elements whose places are exchanged among each other."""
        return 1 << (self.source + self.bits)

    @property
    def mask(self) -> int:
        return ((1 << self.bits) - 1) << self.to
