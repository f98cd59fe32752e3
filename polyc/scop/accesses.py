"""What statements write and read, as relations."""

from __future__ import annotations

import islpy as isl

from polyc.poly.boxes import box
from polyc.scop.expr import Load, offset_range
from polyc.scop.scop import Array, Statement

OUT = isl.dim_type.out


def write_map(statement: Statement) -> isl.Map:
    """# S -> A: the element that each instance writes."""
    return statement.write.as_map().intersect_domain(statement.domain)


def read_map(statement: Statement, load: Load, array: Array) -> isl.Map:
    """# S -> A: the elements that a load may read.

    Where a coordinate is data, they are anywhere along its dimension; where something is added to
    it, as far on as that goes.
    """
    relation = load.index.as_map().intersect_domain(statement.domain)
    if not load.dynamic:
        return relation
    for dimension, expr in load.dynamic:
        ends = offset_range(expr)
        if ends is None:
            relation = relation.eliminate(OUT, dimension, 1)
        else:
            relation = relation.apply_range(_moved(array, dimension, *ends))
    return relation.intersect_range(box(array.name, array.shape))


def _moved(array: Array, dimension: int, least: int, most: int) -> isl.Map:
    """# A -> A: each element, and those from `least` to `most` further along a dimension."""
    before = [f"i{k}" for k in range(len(array.shape))]
    after = [f"j{k}" for k in range(len(array.shape))]
    bounds = [f"{j} = {i}" for i, j in zip(before, after, strict=True)]
    i, j = before[dimension], after[dimension]
    bounds[dimension] = f"{i} + {least} <= {j} <= {i} + {most}"
    pair = f"{array.name}[{', '.join(before)}] -> {array.name}[{', '.join(after)}]"
    return isl.Map(f"{{ {pair} : {' and '.join(bounds)} }}")
