"""Names in a graph: each is defined once, before it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyc.errors import InvalidModel, NeedsValues
from polyc.graph.containers import Structure
from polyc.graph.ir import Node, Tensor
from polyc.graph.run_time import RANDOM_KEY


def find_operands(
    node: Node, table: Mapping[str, Tensor], structures: Mapping[str, Structure]
) -> list[Tensor | None]:
    """The types of the inputs; None for one that is absent, or that is no tensor."""
    for name in node.inputs:
        if name == RANDOM_KEY and name not in table:
            raise NeedsValues(
                f"{node.op} {node.name!r} draws numbers that differ from call to call", ()
            )
        if name and name not in table and name not in structures:
            raise InvalidModel(
                f"{node.op} {node.name!r} reads {name!r}, which is no input, no constant and no "
                "output of an earlier node; sort the nodes topologically or add the tensor"
            )
    return [table.get(name) for name in node.inputs]


def require_fresh(node: Node, table: Mapping[str, Tensor]) -> None:
    written = [o for o in node.outputs if o]
    for name in written:
        if name in table or written.count(name) > 1:
            raise InvalidModel(
                f"{node.op} {node.name!r} writes {name!r} a second time; rename one of the outputs"
            )


def require_known(graph: str, names: Iterable[str], table: Mapping[str, Tensor]) -> None:
    for name in names:
        if name not in table:
            raise InvalidModel(
                f"graph {graph!r}: no node, input or constant provides {name!r}; "
                "correct the graph's list of inputs and outputs"
            )
