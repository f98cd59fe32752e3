"""Control flow: what loops over, and with which dimensions."""

from __future__ import annotations

from polyc.graph.ir import Node
from polyc.graph.upgrade.context import Context, Rules, refuse


def refuse_batched_scan(node: Node, context: Context) -> list[Node]:
    """Scan(lengths, s, x[batch, steps, …]) of the first version scans each sample of a batch."""
    refuse(node, "it scans the samples of a batch, each with a length of its own")


RULES: Rules = {"Scan": ((9, refuse_batched_scan),)}
