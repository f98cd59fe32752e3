"""From the tensor graph to the polyhedral program: each operator becomes views and statements.

    Y = Relu(X)    ->    { S_relu[i, j] : 0 <= i < M and 0 <= j < N }   Y[i, j] = max(X[i, j], 0)

One module for each kind of operator, in rooms; each operator is one function under `@lowers`.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import islpy as isl

from polyc.budget import UNLIMITED, Budget
from polyc.errors import NeedsValues, NotFixed, UnsupportedOp, naming_defects
from polyc.graph.branches import find_demands, list_needed, sort_branches
from polyc.graph.inference.sources import find_sources
from polyc.graph.ir import INTERNAL, Graph, Node, Tensor
from polyc.graph.shapes.checks import RuleBroken
from polyc.graph.steps import find_steps
from polyc.scop.lower import (  # noqa: F401  (imported to fill the table of lowerings)
    elements,
    movement,
    products,
    reductions,
    windows,
)
from polyc.scop.lower.context import COUNTS, LOWERINGS, Lowering
from polyc.scop.lower.movement.choose import demands_by_arrays, enter
from polyc.scop.scop import Scop
from polyc.target.costs import MOST
from polyc.types.element_types import COMPILED
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import assume, assumed_ranges
from polyc.types.sizes import Extent, Size


def lower_graph(
    graph: Graph,
    streamed: float | None = MOST,
    budget: Budget = UNLIMITED,
    lanes: int = 0,
    in_blocks: bool = True,
    direct: float = 1.0,
) -> Scop:
    """The polyhedral program of a graph; its inputs and outputs are arrays, in the graph's order.

    streamed: let convolutions use Winograd's algorithm where it pays, if so many bytes of weights
    arrive in a cycle (`target/costs.py`); None: not at all. budget: the memory
    that arrays may take, one by one, and all constants. lanes: of the vectors with which weights of
    zero are going to be left out (`sparse/zeros.py`); 0 where they are not. in_blocks: multiply
    weights of few bits as they are stored, block by block, and do not restore them before. direct:
    the time of sums of products of weights, relative to such of float32.

    Operators compute in wide types (`graph/widen.py`). Raises UnsupportedOp for an operator without
    a lowering, for an element type that is not compiled, and for a symbolic dimension; TooLarge
    beyond the budget.
    """
    graph = sort_branches(graph)
    ctx = Lowering(graph, streamed, budget, lanes, in_blocks, direct)
    ctx.demands = find_demands(graph)
    for name in graph.inputs:
        tensor = _compilable(graph.tensors[name], f"input {name!r}")
        ctx.bind(name, ctx.array(name, tensor.dtype, tensor.extents, "input"))
    inputs = tuple(ctx.arrays)
    sized = graph.outputs[len(graph.outputs) - len(graph.found) :]
    found: dict[str, str] = {}
    for node, loops in budget.over(zip(graph.nodes, find_steps(graph), strict=True), "lower"):
        with ExitStack() as inside:
            inside.enter_context(naming_defects(f"{node.op} {node.name!r}"))
            inside.enter_context(ctx.repeated(loops[0] if loops else None))
            for branch in ctx.inside[node.outputs]:
                inside.enter_context(enter(ctx, branch))
            _lower_node(ctx, node)
        # What depends on such a size, by no more than its loops, comes behind it.
        found |= {n: _finish_output(ctx, n) for n in node.outputs if n in sized and n not in found}
    for name in graph.outputs:
        _compilable(graph.tensors[name], f"output {name!r}")
    outputs = [found.get(name) or _finish_output(ctx, name) for name in graph.outputs]
    values = (a.value for a in ctx.arrays.values() if a.value is not None)
    budget.require(sum(v.nbytes for v in values), f"model {graph.name!r}: what is constant")
    return replace(ctx.freeze(graph.name, inputs, outputs), demands=demands_by_arrays(ctx))


def find_counts(
    graph: Graph, streamed: float | None = MOST, lanes: int = 0, direct: float = 1.0
) -> list[tuple[Extent, tuple[Size, ...]]]:
    """What statements will count besides what shapes say, where sizes are known only at run time.

    To be named before the graph is lowered (`types/parameters.py`). Each with what must not be
    negative in calls that execute the statement.
    """
    ctx = Lowering(graph, streamed, lanes=lanes, direct=direct)
    found: list[tuple[Extent, tuple[Size, ...]]] = []
    for node, needs in zip(graph.nodes, list_needed(graph), strict=True):
        if node.op in COUNTS:
            with assume(needed_ranges(needs)):
                found += ((extent, needs) for extent in COUNTS[node.op](ctx, node))
    return found


def _lower_node(ctx: Lowering, node: Node) -> None:
    title = f"{node.op} {node.name!r}"
    if node.domain not in ("", "ai.onnx", INTERNAL) or node.op not in LOWERINGS:
        domain = f" of domain {node.domain!r}" if node.domain else ""
        raise UnsupportedOp(
            f"{title}: operator {node.op}{domain} has no lowering to statements; "
            "replace it by operators that have one, or keep it out of the compiled model"
        )
    for name in (*node.inputs, *node.outputs):
        if name:
            _compilable(ctx.type(name), title)
    try:
        LOWERINGS[node.op](ctx, node)
    except NotFixed as broken:
        sources = find_sources(broken.tensor, ctx.graph.nodes, ctx.graph.inputs)
        if sources:
            raise NeedsValues(f"{title}: {broken}", sources) from broken
        raise NotFixed(f"{title}: {broken.statement}", broken.way_out) from broken
    except RuleBroken as broken:
        raise UnsupportedOp(f"{title}: {broken}") from broken
    except isl.Error as broken:
        if not assumed_ranges():
            raise
        # A formula with a product of sizes, or a division by one.
        statement = f"{title}: its loops are not affine in the sizes known only at run time"
        raise NotFixed(statement, "give them in dims") from broken


def _compilable(tensor: Tensor, user: str) -> Tensor:
    """The tensor itself, if its element type and its shape can be compiled."""
    if tensor.dtype not in COMPILED:
        known = ", ".join(sorted(dtype.name for dtype in COMPILED))
        raise UnsupportedOp(
            f"{user}: tensor {tensor.name!r} has the element type {tensor.dtype}; compiled are "
            f"{known}: insert a Cast before it"
        )
    return tensor


def _finish_output(ctx: Lowering, name: str) -> str:
    """The array of kind "output" that holds a graph output; row-major over the tensor's shape.

    A temporary that is exactly the tensor becomes the output itself; a view, an input, a constant
    and an array that already serves as another output are copied.
    """
    ref = ctx.ref(name)
    if ctx.is_whole(ref) and ctx.arrays[ref.array].kind == "temporary":
        ctx.declare_output(ref)
        return ref.array
    target = ctx.array(name, ref.dtype, ref.shape, "output")
    ctx.copy(Node(name, "Identity", (name,), (name,)), ref, target)
    return target.array
