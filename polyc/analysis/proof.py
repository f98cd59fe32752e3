"""What was proven of a kernel, as counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """The facts that `verify_kernel` established by set algebra on the loops as printed.

    statements: every instance is executed, and once only;
    dependences: pairs of statements whose dependences run forwards in time;
    accesses: places that are where the storage maps say, and in bounds;
    parallel_loops, vector_loops: loops that carry no dependence that they must not carry;
    locals: private arrays whose values never leave one execution of their block.
    """

    kernel: str
    statements: int = 0
    dependences: int = 0
    accesses: int = 0
    parallel_loops: int = 0
    vector_loops: int = 0
    locals: int = 0

    def __str__(self) -> str:
        facts = [
            f"{_count(self.statements, 'statement')} executed in full",
            f"{_count(self.dependences, 'dependence')} in order",
            f"{_count(self.accesses, 'access', 'accesses')} in bounds",
            f"{_count(self.parallel_loops, 'parallel loop')}",
            f"{_count(self.vector_loops, 'vector loop')}",
            f"{_count(self.locals, 'private array')}",
        ]
        return f"{self.kernel}: proven: {', '.join(facts)}"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
