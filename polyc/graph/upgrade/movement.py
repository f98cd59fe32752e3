"""Operators that move data: shapes, axes, pads and counts that were attributes became inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.upgrade.context import (
    Context,
    Rules,
    constant,
    default,
    drop,
    in_turn,
    integers,
    refuse,
    rename,
    to_inputs,
    with_attributes,
    without_attributes,
)


def pads_to_inputs(node: Node, context: Context) -> list[Node]:
    """Pad(x; pads=(0, 1), value=2) -> Pad(x, [0, 1], 2); the value 0 is the default."""
    moved = to_inputs(pads=integers)(without_attributes(node, "value"), context)
    value = node.get("value", 0.0)
    if value == 0.0 or node.get("mode", "constant") != "constant":
        return moved
    fill = constant(
        context.fresh(node, "value"), np.array(value, dtype=context.type_of(node, 0).dtype)
    )
    return [fill, *moved[:-1], replace(moved[-1], inputs=(*moved[-1].inputs, fill.outputs[0]))]


def split_sizes_to_input(node: Node, context: Context) -> list[Node]:
    """Split(x; split=(2, 3)) -> Split(x, [2, 3]); the first version had the input already."""
    if len(node.inputs) > 1:
        return [without_attributes(node, "split")]
    return to_inputs(split=integers)(node, context)


def count_split_outputs(node: Node, context: Context) -> list[Node]:
    """a, b = Split(x) -> a, b = Split(x; num_outputs=2), where the sizes are not an input."""
    if len(node.inputs) > 1 and node.inputs[1]:
        return [node]
    return [with_attributes(node, num_outputs=len(node.outputs))]


def scatter_to_scatter_elements(node: Node, context: Context) -> list[Node]:
    """Scatter(x, indices, updates) -> ScatterElements(x, indices, updates)."""
    return [replace(node, op="ScatterElements")]


def refuse_tile_count(node: Node, context: Context) -> list[Node]:
    """Tile(x, tiles, axis) of the first version says how often in one direction only."""
    refuse(node, "its repeats are a number and an axis, both computed at run time")


RULES: Rules = {
    "Concat": ((4, default(axis=1)),),
    "Pad": ((2, rename("paddings", "pads")), (11, pads_to_inputs)),
    "Reshape": ((5, in_turn(drop("consumed_inputs"), to_inputs(shape=integers))),),
    "Scatter": ((11, scatter_to_scatter_elements),),
    "Slice": ((10, to_inputs(starts=integers, ends=integers, axes=integers)),),
    "Split": ((13, split_sizes_to_input), (18, count_split_outputs)),
    "Squeeze": ((13, to_inputs(axes=integers)),),
    "Tile": ((6, refuse_tile_count),),
    "TopK": ((10, to_inputs(k=integers)),),
    "Unsqueeze": ((13, to_inputs(axes=integers)),),
}
