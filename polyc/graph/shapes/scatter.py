"""Writing at positions that are data, and choosing elements by their order."""

from __future__ import annotations

from polyc.graph.ir import Node, Shape
from polyc.graph.shapes.checks import (
    given,
    known_int,
    require,
    require_at_least,
    require_at_most,
    require_rank,
    require_shape,
)
from polyc.graph.shapes.dims import fixed, normalize_axis
from polyc.graph.shapes.gather import check_positions, require_fewer
from polyc.graph.shapes.rules import Inputs, shape_rule


@shape_rule("ScatterElements")
def infer_scatter_elements(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """data (5, 4), indices (2, 4), updates (2, 4) -> (5, 4)"""
    data, indices, updates = (given(t) for t in inputs)
    require_rank(data, "data", least=1)
    require_rank(indices, "indices", data.rank, data.rank)
    require_shape(updates, "updates", indices.shape)
    axis = normalize_axis(int(node.get("axis", 0)), data.rank)
    check_positions(indices, data.shape[axis])
    require_fewer(indices, data, axis)
    return (data.shape,)


@shape_rule("ScatterND")
def infer_scatter_nd(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """data (5, 4, 3), indices (7, 2), updates (7, 3) -> (5, 4, 3)"""
    data, indices, updates = (given(t) for t in inputs)
    require_rank(data, "data", least=1)
    require_rank(indices, "indices", least=1)
    depth = fixed(indices.shape[-1], "the last dimension of indices")
    way_out = "index as many dimensions as data has, or fewer"
    fits = 1 <= depth <= data.rank
    require(fits, "last dimension of indices", f"1 to {data.rank}", depth, way_out)
    require_shape(updates, "updates", (*indices.shape[:-1], *data.shape[depth:]))
    return (data.shape,)


@shape_rule("TensorScatter")
def infer_tensor_scatter(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """past_cache (b, h, 9, d), update (b, h, 2, d), write_indices (b) -> (b, h, 9, d)"""
    past, update, where = given(inputs[0]), given(inputs[1]), inputs[2]
    axis = normalize_axis(int(node.get("axis", -2)), past.rank)
    require(axis > 0, "axis", "a dimension behind the batch", axis, "correct the attribute")
    require_rank(update, "update", past.rank, past.rank)
    most, count = past.shape[axis], update.shape[axis]
    require_at_most(count, most, "elements to write", "use a larger cache")
    require_shape(update, "update", (*past.shape[:axis], count, *past.shape[axis + 1 :]))
    require_shape(where, "write_indices", past.shape[:1])
    return (past.shape,)


@shape_rule("ReverseSequence")
def infer_reverse_sequence(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """input (t, b, …), sequence_lens (b) -> (t, b, …)"""
    data, lengths = given(inputs[0]), given(inputs[1])
    require_rank(data, "input", least=2)
    batch, time = int(node.get("batch_axis", 1)), int(node.get("time_axis", 0))
    distinct = {batch, time} == {0, 1}
    require(distinct, "batch_axis and time_axis", "0 and 1", (batch, time), "correct them")
    require_shape(lengths, "sequence_lens", (data.shape[batch],))
    return (data.shape,)


@shape_rule("TopK")
def infer_top_k(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (3, 9), k 4, axis 1 -> values (3, 4), indices (3, 4)"""
    data, count = given(inputs[0]), known_int(given(inputs[1]), "K")
    require_rank(data, "X", least=1)
    axis = normalize_axis(int(node.get("axis", -1)), data.rank)
    require_at_least(count, 0, "K", count, "choose some elements")
    require_at_most(count, data.shape[axis], "K", "choose fewer elements")
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    return (shape, shape)
