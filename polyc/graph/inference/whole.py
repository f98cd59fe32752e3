"""Nodes that stay as the model has them, where what they stand for has no form in ONNX.

A GRU is a loop around kernels, and NonZero finds a size: for these polyc has nodes of its own,
which no other engine knows. Who writes a model out again keeps the nodes that they come from.

    h = GRU(x, w, r)   ->   … h = Repeat(…)   ->   h = GRU(x, w, r)

What the bodies of such a node read is among its inputs (`open_bodies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyc.errors import UnsupportedOp
from polyc.graph.bodies import open_bodies, reads_around
from polyc.graph.ir import INTERNAL, Node, Tensor


class Origins:
    """Which node of the model each one comes from that inference has met, by their names."""

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._places: dict[str, int] = {}
        self._own: set[str] = set()

    def enter(self, node: Node, place: int, parts: Sequence[Node]) -> None:
        """What a node became; `place` is how many nodes were left before it."""
        root = self._roots.get(node.name, node.name)
        self._places.setdefault(root, place)
        self._roots |= dict.fromkeys((part.name for part in parts), root)
        if any(one.domain == INTERNAL for one in (node, *parts)):
            self._own.add(root)

    def keep_whole(
        self, kept: Sequence[Node], nodes: Sequence[Node], table: Mapping[str, Tensor]
    ) -> list[Node]:
        """The nodes that are left, with those of the model in place of what has no form in ONNX.

        nodes: the model's; table: the types of all tensors, and the values that are known. Raises
        UnsupportedOp for a node that reads or gives no tensor, but a sequence.
        """
        stays = {node.name: open_bodies(node) for node in nodes if self._stays(node, table)}
        waiting = sorted(stays, key=lambda name: self._places[name])
        result: list[Node] = []
        for place in range(len(kept) + 1):
            while waiting and self._places[waiting[0]] <= place:
                result.append(stays[waiting.pop(0)])
            if place < len(kept) and self._roots[kept[place].name] not in stays:
                result.append(kept[place])
        return result

    def _stays(self, node: Node, table: Mapping[str, Tensor]) -> bool:
        """Whether a node's parts have no form, and a call computes what it gives."""
        if node.name not in self._own:
            return False
        touched = [*reads_around(node), *filter(None, (*node.inputs, *node.outputs))]
        for name in touched:
            if name not in table:
                raise UnsupportedOp(
                    f"{node.op} {node.name!r} stays as it is, and {name!r} is no tensor; split "
                    "such nodes off"
                )
        return any(table[name].value is None for name in node.outputs if name)
