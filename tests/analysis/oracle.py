"""An enumeration that judges small loop nests as the proof does, and knows nothing of isl.

The loops are run in Python, one instance at a time; dependences come from simulating the textual
order of the cluster of `test_brute_force`, element by element.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

from polyc.loopnest.index import (
    Affine,
    Choice,
    Compare,
    Condition,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Var,
)
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import Assign, Block, Element, For, If, LoopExpr, Node, Read, Test
from polyc.scop.expr import Call

Point = tuple[int, ...]
Path = tuple[int, ...]
Place = tuple[str, Point]
Instance = tuple[str, Point]

# -- the cluster ----------------------------------------------------------------------------------


def instances(n: int, m: int) -> list[Instance]:
    """All instances, in textual order."""
    rows = [(i,) for i in range(n)]
    points = list(product(range(n), range(m)))
    domains = {"P": points, "Z": rows, "S": points, "R": rows}
    return [(name, p) for name, domain in domains.items() for p in domain]


def touched(name: str, p: Point) -> list[Place]:
    """The write of an instance, then its explicit reads in the order of its expression."""
    match name:
        case "P":
            return [("A", p), ("X", p)]
        case "Z":
            return [("s", p)]
        case "S":
            return [("s", p[:1]), ("A", p)]
        case _:
            previous = [("Y", (p[0] - 1,))] if p[0] >= 1 else []
            return [("Y", p), ("s", p), *previous]


def dependences(n: int, m: int) -> tuple[set[tuple[Instance, Instance]], ...]:
    """(flow, anti and output) of the textual order."""
    flow, others = set(), set()
    writers: dict[Place, list[Instance]] = defaultdict(list)
    readers: dict[Place, list[Instance]] = defaultdict(list)
    for instance in instances(n, m):
        write, *reads = touched(*instance)
        if instance[0] == "S":
            reads.append(write)
        for place in reads:
            flow.update((w, instance) for w in writers[place][-1:])
        others.update((other, instance) for other in readers[write] + writers[write])
        for place in reads:
            readers[place].append(instance)
        writers[write].append(instance)
    return flow, others


# -- the loops ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One execution of an assignment; `loops` are (identity, variable, kind), outermost first.

    `blocks` says which execution of which block each local in sight belongs to.
    """

    instance: Instance
    path: Path
    loops: tuple[tuple[Path, int, LoopKind], ...]
    places: tuple[Place, ...]  # the write, then the reads that are evaluated
    blocks: Mapping[str, tuple[Path, Point]]


def execute(
    node: Node,
    path: Path = (),
    env: Mapping[str, int] | None = None,
    loops: tuple[tuple[Path, int, LoopKind], ...] = (),
    blocks: Mapping[str, tuple[Path, Point]] | None = None,
) -> Iterator[Step]:
    """Every step of a nest, in sequential order."""
    env, blocks = env or {}, blocks or {}
    match node:
        case Block(body, locals_):
            fresh = {x.name: (path, tuple(c for _, c, _ in loops)) for x in locals_}
            for k, child in enumerate(body):
                yield from execute(child, (*path, k), env, loops, {**blocks, **fresh})
        case For(v, lower, upper, step, body, kind):
            for value in range(evaluate(lower, env), evaluate(upper, env), step):
                inside = (*loops, (path, value, kind))
                yield from execute(body, (*path, 0), {**env, v: value}, inside, blocks)
        case If(condition, then, _):
            if holds(condition, env):
                yield from execute(then, (*path, 0), env, loops, blocks)
        case Assign():
            elements = [node.target, *reads(node.value, env)]
            places = tuple((e.array, values(e.index, env)) for e in elements)
            yield Step((node.statement, values(node.instance, env)), path, loops, places, blocks)


def values(indices: tuple[Affine, ...], env: Mapping[str, int]) -> Point:
    return tuple(evaluate(i, env) for i in indices)


def evaluate(index: Affine, env: Mapping[str, int]) -> int:
    total = index.constant
    for atom, coefficient in index.terms:
        match atom:
            case Var(name):
                value = env[name]
            case FloorDiv(argument, divisor):
                value = evaluate(argument, env) // divisor
            case Mod(argument, divisor):
                value = evaluate(argument, env) % divisor
            case Extremum(which, arguments):
                value = (min if which == "min" else max)(evaluate(a, env) for a in arguments)
            case Choice(condition, then, otherwise):
                value = evaluate(then if holds(condition, env) else otherwise, env)
        total += coefficient * value
    return total


def holds(condition: Condition, env: Mapping[str, int]) -> bool:
    match condition:
        case Compare(operator, left):
            value = evaluate(left, env)
            return value >= 0 if operator == "ge" else value == 0
        case Logic(operator, arguments):
            return (all if operator == "and" else any)(holds(a, env) for a in arguments)


def reads(value: LoopExpr, env: Mapping[str, int]) -> Iterator[Element]:
    match value:
        case Call("select", (Test(condition), yes, no)):
            yield from reads(yes if holds(condition, env) else no, env)
        case Call(arguments=arguments):
            for argument in arguments:
                yield from reads(argument, env)
        case Read(element):
            yield element


# -- the verdict ----------------------------------------------------------------------------------


def find_fault(root: Block, n: int, m: int, totals_local: bool) -> str | None:
    """Why a nest is wrong, or None."""
    steps = list(execute(root))
    if Counter(s.instance for s in steps) != Counter(instances(n, m)):
        return "instances"
    at = {s.instance: s for s in steps}
    flow, others = dependences(n, m)
    for source, sink in flow | others:
        if not in_order(at[source], at[sink], source[0] == sink[0] == "S"):
            return f"order of {source} and {sink}"
    for step in steps:
        wanted = touched(*step.instance)
        if len(wanted) != len(step.places) or not all(map(stands, step.places, wanted)):
            return f"accesses of {step.instance}"
    return find_local_fault(steps, at, flow) if totals_local else None


def in_order(a: Step, b: Step, is_reduction: bool) -> bool:
    """Whether a is done before b, whatever the threads and lanes do."""
    for (loop, value, kind), (other, again, _) in zip(a.loops, b.loops, strict=False):
        if loop != other:
            break
        if value != again:
            return value < again and (
                kind in ("sequential", "unroll") or (kind == "vector" and is_reduction)
            )
    return a.path < b.path


def stands(place: Place, wanted: Place) -> bool:
    """Whether a printed place can stand for an element; the local t holds one total."""
    return place == wanted or (place == ("t", (0,)) and wanted[0] == "s")


def find_local_fault(
    steps: list[Step], at: Mapping[Instance, Step], flow: set[tuple[Instance, Instance]]
) -> str | None:
    for source, sink in flow:
        if touched(*source)[0][0] == "s" and at[source].blocks["t"] != at[sink].blocks["t"]:
            return f"the total of {source} is lost before {sink}"
    users = [
        (step.blocks["t"], element)
        for step in steps
        for place, element in zip(step.places, touched(*step.instance), strict=True)
        if place[0] == "t"
    ]
    for (block, element), (other, another) in combinations(users, 2):
        if block == other and element != another:
            return f"{element} and {another} share a place"
    return None
