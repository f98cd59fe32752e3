"""What the threads of a call tell one another: the branches that it takes, the sizes that it finds.

    DECIDE(0, *(const b8 *)(arena + 64));          all know decided[0] from here on
    if (decided[0]) { … }

One thread looks, behind a barrier, and all others hear of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polyc.printing.host_text import print_address, print_extent
from polyc.program.driver_nest import Decide, DriverNode, Find, count_told, walk
from polyc.program.program import Program
from polyc.types.found import found_in
from polyc.types.sizes import Size

_DECISIONS = """\
/* Who comes to a decision so late that another call has made it anew has nothing left to do. */
#define DECIDE(k, value)                                         \\
    do {                                                         \\
        if (PC_ENDS)                                             \\
            return;                                              \\
        PC_SHARE(1)                                              \\
            pc_tell(pc_self, &decisions[k], &decided[k], value); \\
        pc_barrier(pc_self);                                     \\
        if (!pc_hear(pc_self, &decisions[k], &decided[k]))       \\
            return;                                              \\
    } while (0)
"""


def print_decisions(nest: Sequence[DriverNode]) -> Iterator[str]:
    """How the threads of a call agree, if there is something to agree about."""
    if count := count_told(nest):
        yield f"static pc_decision decisions[{count}]; /* of the team's call */"
        yield from _DECISIONS.splitlines()
        yield ""


def places_of_found(nest: Sequence[DriverNode]) -> dict[str, str]:
    """Where a thread keeps the sizes that a call finds."""
    nodes = (node for outer in nest for node in walk(outer))
    return {node.size: f"decided[{node.number}]" for node in nodes if isinstance(node, Find)}


def print_decide(node: Decide, program: Program, indent: str) -> Iterator[str]:
    """A decision, and whether the branch that it leads to admits the sizes of the call."""
    source = f"*(const b8 *)({print_address(node.source)})"
    if not any(node.needs):
        yield f"{indent}DECIDE({node.number}, {source});"
        return
    one, other = (
        " && ".join(f"{print_extent(need)} >= 0" for need in needs) or "1" for needs in node.needs
    )
    slot = len(program.launches) + len(program.found) + node.position
    told = f"&decisions[{node.number}], &decided[{node.number}]"
    yield from (
        f"{indent}if (PC_ENDS)",
        f"{indent}    return;",
        f"{indent}PC_SHARE(1) {{",
        f"{indent}    const int holds = {source};",
        f"{indent}    const int fits = holds ? {one} : {other};",
        f"{indent}    call->failed[{slot}] = !fits;",
        f"{indent}    pc_tell(pc_self, {told}, fits ? holds : -1);",
        f"{indent}}}",
        *_print_hear(told, f"decided[{node.number}]", indent),
    )


def _print_hear(told: str, value: str, indent: str) -> Iterator[str]:
    """What all threads do about what one has told; a negative value ends the call."""
    yield from (
        f"{indent}pc_barrier(pc_self);",
        f"{indent}if (!pc_hear(pc_self, {told}))",
        f"{indent}    return;",
        f"{indent}if ({value} < 0) {{",
        f"{indent}    pc_self->late = 1; /* the call is over, for all threads */",
        f"{indent}    return;",
        f"{indent}}}",
    )


def print_find(node: Find, program: Program, indent: str) -> Iterator[str]:
    """A size that is found, checked and told; and those that follow from it.

    None is computed from a number that has not been compared with its ends: it may be anything.
    """
    follow = [
        size
        for size in program.sizes
        if isinstance(size.same, Size) and node.size in found_in([Size.of(size.name)])
    ]
    told = f"&decisions[{node.number}], &decided[{node.number}]"
    yield from (
        f"{indent}if (PC_ENDS)",
        f"{indent}    return;",
        f"{indent}PC_SHARE(1) {{",
        f"{indent}    const i64 {node.size} = *(const i64 *)({print_address(node.source)});",
        f"{indent}    int fits = {node.size} >= 0 && {node.size} <= {print_extent(node.most)};",
    )
    if node.needs:
        yield f"{indent}    if (fits) {{"
        for size in follow:
            assert isinstance(size.same, Size)
            yield f"{indent}        const i64 {size.name} = {print_extent(size.same)};"
            yield f"{indent}        (void){size.name};"
        holds = " && ".join(f"{print_extent(need)} >= 0" for need in node.needs)
        yield f"{indent}        fits = {holds};"
        yield f"{indent}    }}"
    yield from (
        f"{indent}    call->failed[{len(program.launches) + node.position}] = !fits;",
        f"{indent}    pc_tell(pc_self, {told}, fits ? {node.size} : -1);",
        f"{indent}}}",
        *_print_hear(told, f"decided[{node.number}]", indent),
        f"{indent}{node.size} = decided[{node.number}];",
    )
    for size in follow:
        assert isinstance(size.same, Size)
        yield f"{indent}{size.name} = {print_extent(size.same)};"
