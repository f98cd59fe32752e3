"""What is free to choose about a cluster, as plain data.

The cost model chooses these (`storing.py`); a search that measures may choose them better
(`polyc/tuning/`). Loops and arrays are named by position, so that equal clusters of different
models can share a choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Tile = tuple[int | None, int, int]
"""(loop to unroll, its tile, the vector loop's tile in elements)."""


@dataclass(frozen=True)
class Parameters:
    """The free choices about a cluster; d and k below are positions.

    vector: the shared loop d to run in SIMD lanes, or None; tile: the register tile; packed: arrays
    k, of those that the cluster touches, that are copied into panels first; order: the shared
    loops, outermost first, empty for the strategy's own order.
    """

    vector: int | None
    tile: Tile = (None, 1, 1)
    packed: tuple[int, ...] = ()
    order: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "vector": self.vector,
            "tile": list(self.tile),
            "packed": list(self.packed),
            "order": list(self.order),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Parameters:
        """What `to_json` wrote; ValueError, TypeError or LookupError for anything else."""
        unroll, height, width = data["tile"]
        return Parameters(
            _position(data["vector"]),
            (_position(unroll), int(height), int(width)),
            tuple(map(int, data["packed"])),
            tuple(map(int, data["order"])),
        )


@dataclass(frozen=True)
class Tuned:
    """What a search knows about a cluster.

    parameters: the best; gain: the share of the time that they save on those of the cost model, 0
    where these are the best; finished: whether everything was tried.
    """

    parameters: Parameters
    gain: float
    finished: bool = False


def _position(value: Any) -> int | None:
    return None if value is None else int(value)


def spell_choices(keys: Iterable[str], tuned: Mapping[str, Tuned]) -> dict[str, str]:
    """The parameters for each key, as text; empty where the cost model's are as good as any."""
    found = {key: tuned.get(key) for key in keys}
    return {k: json.dumps(t.parameters.to_json()) if t and t.gain else "" for k, t in found.items()}
