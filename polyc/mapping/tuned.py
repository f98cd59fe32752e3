"""What a search has found about clusters, as text: nothing of isl is needed to read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Tuned:
    """What is known about a cluster.

    schedule: the best, with positions for names (`schedule/canonical.py`); gain: the share of the
    time that it saves on that of the cost model, 0 where this is the best; finished: whether
    everything was tried.
    """

    schedule: str
    gain: float
    finished: bool = False


def spell_choices(keys: Iterable[str], tuned: Mapping[str, Tuned]) -> dict[str, str]:
    """The schedule for each key; empty where the cost model's is as good as any."""
    found = {key: tuned.get(key) for key in keys}
    return {key: one.schedule if one and one.gain else "" for key, one in found.items()}
