"""What only a number can do: a size that is known when a model runs refuses it, and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyc.errors import NotFixed

if TYPE_CHECKING:
    from polyc.types.sizes import Extent


class Unknown:
    """Raises `NotFixed` for whatever wants the value, which is not known yet."""

    def __rfloordiv__(self, dividend: Extent) -> Extent:
        raise self._unknown(f"{dividend} divided by it")

    def __rmod__(self, dividend: Extent) -> int:
        raise self._unknown(f"the remainder of {dividend} by it")

    def __truediv__(self, divisor: object) -> float:
        raise self._unknown(f"its quotient by {divisor}")

    def __rtruediv__(self, dividend: object) -> float:
        raise self._unknown(f"{dividend} divided by it")

    def __pow__(self, exponent: object) -> Extent:
        raise self._unknown(f"its power {exponent}")

    def __index__(self) -> int:
        raise self._unknown("its value")

    __int__ = __index__

    def __float__(self) -> float:
        raise self._unknown("its value")

    def _unknown(self, what: str, cases: tuple[tuple[Extent, ...], ...] = ()) -> NotFixed:
        return NotFixed(
            f"the size {self} is known only at run time, but {what} must be known",
            "give the model's inputs fixed sizes",
            cases=cases,
        )
