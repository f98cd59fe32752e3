"""Control flow: what loops over, and with which dimensions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.upgrade.context import Context, Rules, constant, helper, refuse


def scan_each_sample(node: Node, context: Context) -> list[Node]:
    """Scan(lengths, s, x[batch, steps, …]) of the first version: a Scan for each sample of a batch.

        y, z = Scan(, s, x)   ->   y0, z0 = Scan(s[0], x[0]);  …;  y = stack(y0, …);  z = …

    Raises UnsupportedOp where samples have lengths of their own, or their number is not known.
    """
    if node.inputs[0]:
        refuse(node, "each of its samples has a length of its own")
    batch = context.type_of(node, 1).shape[0]
    if not isinstance(batch, int) or batch == 0:
        refuse(node, f"its batch has the size {batch}")
    renamed = {"directions": "scan_input_directions"}
    attributes = {renamed.get(k, k): v for k, v in node.attributes.items()}
    results: list[list[str]] = [[] for _ in node.outputs]
    nodes: list[Node] = []
    for sample in range(batch):
        at = context.fresh(node, f"sample{sample}")
        nodes.append(constant(at, np.array(sample, np.int64)))
        inputs = [f"{at}.{name}" for name in node.inputs[1:]]
        nodes += [
            replace(helper(node, "Gather", (name, at), own, axis=0), name=own)
            for name, own in zip(node.inputs[1:], inputs, strict=True)
        ]
        outputs = tuple(o and f"{at}.{o}" for o in node.outputs)
        own_name = f"{node.name}.{sample}"
        nodes.append(replace(node, name=own_name, inputs=tuple(inputs), outputs=outputs,
                             attributes=attributes))  # fmt: skip
        for parts, output in zip(results, outputs, strict=True):
            parts.append(output)
    front = context.fresh(node, "front")
    nodes.append(constant(front, np.array([0], np.int64)))
    for output, parts in zip(node.outputs, results, strict=True):
        rows = [f"{part}.row" for part in parts]
        nodes += [
            replace(helper(node, "Unsqueeze", (part, front), row), name=row)
            for part, row in zip(parts, rows, strict=True)
            if output
        ]
        if output:
            nodes.append(replace(helper(node, "Concat", tuple(rows), output, axis=0), name=output))
    return nodes


RULES: Rules = {"Scan": ((9, scan_each_sample),)}
