"""A random valid graph for each seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

from tests.fuzz.builder import Builder, Traits, assemble
from tests.fuzz.operators import OPERATORS
from tests.fuzz.values import FLOATS, Rejected, Value

_ATTEMPTS = 40
_WEIGHTS = dict(zip(FLOATS, (0.7, 0.1, 0.1, 0.1), strict=True))
_OPSETS = (26, 26, 26, 24, 23, 22)


@dataclass(frozen=True, eq=False)
class Case:
    """A graph, what it is fed in each run, and what it shall give, with how well that is known.

    known: every tensor by name; outputs: the names of those that the graph gives.
    """

    nodes: tuple[NodeProto, ...]
    known: Mapping[str, Value]
    outputs: tuple[str, ...]
    traits: Traits

    @cached_property
    def sources(self) -> list[Value]:
        """What nodes read and none of them writes."""
        written = {name for node in self.nodes for name in node.output}
        read = dict.fromkeys(n for node in self.nodes for n in sorted(reads(node)))
        return [self.known[n] for n in read if n not in written and n in self.known]

    @cached_property
    def inputs(self) -> list[Value]:
        """What is fed."""
        return [v for v in self.sources if not v.is_constant]

    @cached_property
    def results(self) -> list[Value]:
        """What the graph gives."""
        return [self.known[n] for n in self.outputs]

    @cached_property
    def model(self) -> ModelProto:
        """The graph as ONNX has it."""
        constants = [v for v in self.sources if v.is_constant]
        return assemble(self.nodes, self.inputs, constants, self.results, self.traits)

    @property
    def runs(self) -> int:
        """How many choices of sizes there are."""
        return max((len(v.runs) for v in self.results), default=1)

    def feeds(self, r: int) -> dict[str, np.ndarray]:
        """The arrays of one run."""
        return {v.name: v.runs[r].array(v.dtype) for v in self.inputs}


def generate(seed: int) -> Case:
    """The graph of a seed: always the same for the same generator and the same onnx."""
    rng = np.random.default_rng(seed)
    builder = Builder(rng, _draw_traits(rng))
    most = int(rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12)))
    most = min(most, 6) if builder.traits.symbolic else most
    for _ in range(_ATTEMPTS):
        append_node(builder)
        if len(builder.nodes) >= most:
            break
    return finish(builder)


def _draw_traits(rng: np.random.Generator) -> Traits:
    symbolic = bool(rng.random() < 0.12)
    return Traits(
        zeros=bool(rng.random() < 0.04) and not symbolic,
        special=bool(rng.random() < 0.06),
        symbolic=symbolic,
        opset=int(rng.choice(_OPSETS)),
        dtype=list(_WEIGHTS)[int(rng.choice(len(_WEIGHTS), p=list(_WEIGHTS.values())))],
    )


def append_node(builder: Builder) -> bool:
    """Try to add a node of a random operator; whether it went well."""
    found = [o for o in OPERATORS.values() if o.symbolic or not builder.traits.symbolic]
    weights = np.array([o.weight for o in found])
    chosen = found[int(builder.rng.choice(len(found), p=weights / weights.sum()))]
    before = len(builder.values)
    try:
        chosen.append(builder)
    except Rejected:
        produced = {name for node in builder.nodes for name in node.output}
        given = {v.name for v in builder.inputs}
        kept = [v for v in builder.values[before:] if v.name in produced | given]
        builder.values[before:] = kept
        return False
    return True


def finish(builder: Builder) -> Case:
    """The graph: every tensor that nothing reads is an output, and some others are."""
    read = {n for node in builder.nodes for n in reads(node)}
    made = [n for node in builder.nodes for n in node.output if n]
    outputs = tuple(n for n in made if n not in read or builder.chance(0.12))
    known = {v.name: v for v in (*builder.values, *builder.constants)}
    return Case(tuple(builder.nodes), known, outputs, builder.traits)


def reads(node: NodeProto) -> set[str]:
    """What a node reads, its bodies included."""
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            names |= _reads_outside(attribute.g)
    return names - {""}


def _reads_outside(graph: GraphProto) -> set[str]:
    inside = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    names = {o.name for o in graph.output}
    for node in graph.node:
        names |= reads(node)
        inside |= set(node.output)
    return names - inside
