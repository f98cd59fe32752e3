"""What was proven of a kernel, as counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Proof:
    """The facts that `verify_kernel` established by set algebra on the loops as printed.

    statements: every instance is executed, and once only;
    dependences: pairs of statements whose dependences run forwards in time;
    accesses: places that are where the storage maps say, and in bounds;
    parallel_loops, vector_loops: loops that carry no dependence that they must not carry;
    locals: private arrays whose values never leave one execution of their block;
    barriers: of a kernel for a GPU: enough that threads of a block never meet;
    earlier: kernels that were found in the cache, of which all this was established when they were
    put there (`backends/kept.py`).
    """

    kernel: str
    statements: int = 0
    dependences: int = 0
    accesses: int = 0
    parallel_loops: int = 0
    vector_loops: int = 0
    locals: int = 0
    barriers: int = 0
    earlier: int = 0

    @property
    def facts(self) -> str:
        """3 statements executed in full, 3 dependences in order, …"""
        facts = [
            f"{counted(self.statements, 'statement')} executed in full",
            f"{counted(self.dependences, 'dependence')} in order",
            f"{counted(self.accesses, 'access', 'accesses')} in bounds",
            f"{counted(self.parallel_loops, 'parallel loop')}",
            f"{counted(self.vector_loops, 'vector loop')}",
            f"{counted(self.locals, 'private array')}",
        ]
        if self.barriers:
            facts.append(counted(self.barriers, "barrier"))
        if self.earlier:
            facts.append(f"{counted(self.earlier, 'kernel')} proven earlier and kept")
        return ", ".join(facts)

    def __str__(self) -> str:
        return f"{self.kernel}: proven: {self.facts}"


def add_up(proofs: Iterable[Proof], of: str) -> Proof:
    """The facts of several kernels together."""
    counts = [f.name for f in fields(Proof) if f.name != "kernel"]
    totals = dict.fromkeys(counts, 0)
    for proof in proofs:
        for name in counts:
            totals[name] += getattr(proof, name)
    return Proof(of, **totals)


def counted(number: int, noun: str, plural: str = "") -> str:
    """3, "access", "accesses" -> "3 accesses"; 1, "loop" -> "1 loop"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
