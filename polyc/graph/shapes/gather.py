"""Reading at positions that are data: Gather, GatherElements, GatherND, OneHot."""

from __future__ import annotations

from polyc.graph.ir import Dim, Node, Shape, Tensor
from polyc.graph.shapes.checks import (
    given,
    known_int,
    require,
    require_at_least,
    require_at_most,
    require_rank,
    require_shape,
)
from polyc.graph.shapes.dims import fixed, normalize_axis, require_same
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.types.sizes import Size


@shape_rule("Gather")
def infer_gather(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(5, 4), indices (2, 3), axis 0 -> (2, 3, 4)"""
    data, indices = given(inputs[0]), given(inputs[1])
    require_rank(data, "data", least=1)
    axis = normalize_axis(int(node.get("axis", 0)), data.rank)
    check_positions(indices, data.shape[axis])
    return ((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]),)


@shape_rule("GatherElements")
def infer_gather_elements(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(5, 4), indices (2, 4), axis 0 -> (2, 4)"""
    data, indices = given(inputs[0]), given(inputs[1])
    require_rank(data, "data", least=1)
    require_rank(indices, "indices", data.rank, data.rank)
    axis = normalize_axis(int(node.get("axis", 0)), data.rank)
    check_positions(indices, data.shape[axis])
    require_fewer(indices, data, axis)
    return (indices.shape,)


@shape_rule("GatherND")
def infer_gather_nd(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(b, 5, 4), indices (b, 3, 1), batch_dims 1 -> (b, 3, 4)"""
    data, indices = given(inputs[0]), given(inputs[1])
    require_rank(data, "data", least=1)
    require_rank(indices, "indices", least=1)
    batch = int(node.get("batch_dims", 0))
    most = min(data.rank, indices.rank) - 1
    require(0 <= batch <= most, "batch_dims", f"0 to {most}", batch, "correct the attribute")
    for i in range(batch):
        rule = f"batch dimension {i} of data and indices"
        require_same(data.shape[i], indices.shape[i], rule, "correct batch_dims")
    depth = fixed(indices.shape[-1], "the last dimension of indices")
    rest = data.rank - batch
    require(
        1 <= depth <= rest,
        "last dimension of indices",
        f"1 to {rest}",
        depth,
        "index fewer dimensions",
    )
    return ((*indices.shape[:-1], *data.shape[batch + depth :]),)


@shape_rule("OneHot")
def infer_one_hot(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """indices (2, 3), depth 5, values (2), axis -1 -> (2, 3, 5)"""
    indices, depth = given(inputs[0]), known_int(given(inputs[1]), "depth")
    require_shape(inputs[2], "values", (2,))
    require_at_least(depth, 1, "depth", depth, "correct depth")
    axis = normalize_axis(int(node.get("axis", -1)), indices.rank + 1)
    return ((*indices.shape[:axis], depth, *indices.shape[axis:]),)


def require_fewer(indices: Tensor, data: Tensor, axis: int) -> None:
    """Along all dimensions but one, indices have at most as many elements as the data."""
    for i, (have, want) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if i != axis:
            require_at_most(want, have, f"extent of dimension {i} of indices", "slice the indices")


def check_positions(indices: Tensor, extent: Dim) -> None:
    """Constant indices must lie in -extent to extent - 1."""
    if indices.value is None or not indices.value.size or isinstance(extent, Size):
        return
    low, high = int(indices.value.min()), int(indices.value.max())
    inside = -extent <= low and high < extent
    bounds = f"{-extent} to {extent - 1}"
    require(inside, "range of the indices", bounds, f"{low} to {high}", "correct the indices")
