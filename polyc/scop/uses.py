"""What the rewrites of a scop ask: who writes and who reads each array, and what is multiplied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyc.scop.expr import Call, Load
from polyc.scop.scop import Scop, Statement


@dataclass(frozen=True)
class Uses:
    """Array name -> its writers, and its explicit loads with the statements that contain them."""

    writers: Mapping[str, tuple[Statement, ...]]
    readers: Mapping[str, tuple[tuple[Statement, Load], ...]]

    def writes(self, array: str) -> tuple[Statement, ...]:
        return self.writers.get(array, ())

    def reads(self, array: str) -> tuple[tuple[Statement, Load], ...]:
        return self.readers.get(array, ())

    def is_accumulator(self, array: str) -> bool:
        """Whether the array holds the running value of a declared reduction."""
        return any(w.reduction for w in self.writes(array))


def find_uses(statements: tuple[Statement, ...]) -> Uses:
    writers: dict[str, list[Statement]] = {}
    readers: dict[str, list[tuple[Statement, Load]]] = {}
    for statement in statements:
        writers.setdefault(statement.array, []).append(statement)
        for load in statement.loads:
            readers.setdefault(load.array, []).append((statement, load))
    return Uses(
        {k: tuple(v) for k, v in writers.items()}, {k: tuple(v) for k, v in readers.items()}
    )


def find_factors(s: Statement, kinds: str = "iu") -> tuple[Load, Load] | None:
    """The two arrays whose products a statement sums up, if these are numbers of such a kind."""
    match s.value:
        case Call("mul", (Load() as a, Load() as b)) if s.reduction == "add":
            plain = s.time is None and not (a.dynamic or b.dynamic)
            return (a, b) if plain and s.value.dtype.kind in kinds else None
    return None


def drop_dead(scop: Scop) -> Scop:
    """The scop without statements whose arrays nobody reads, and without arrays nobody names."""
    live = set(scop.outputs)
    while True:  # what a step writes may be read further up, by the next one
        known = len(live)
        for statement in reversed(scop.statements):
            if statement.array in live:
                live.update(load.array for load in statement.loads)
                live.update(scop.home(load.array) for load in statement.loads)
                live.update(branch.condition for branch in statement.branches)
        if len(live) == known or not any(s.step for s in scop.statements):
            break
    kept = tuple(s for s in scop.statements if s.array in live)
    named = live | set(scop.inputs)
    arrays = {name: array for name, array in scop.arrays.items() if name in named}
    return replace(scop, statements=kept, arrays=arrays)
