"""What statements write and read, as relations."""

from __future__ import annotations

import islpy as isl

from polyc.poly.boxes import box
from polyc.scop.expr import Load
from polyc.scop.scop import Array, Statement

OUT = isl.dim_type.out


def write_map(statement: Statement) -> isl.Map:
    """# S -> A: the element that each instance writes."""
    return statement.write.as_map().intersect_domain(statement.domain)


def read_map(statement: Statement, load: Load, array: Array) -> isl.Map:
    """# S -> A: the elements that a load may read; anywhere along its dynamic dimensions."""
    relation = load.index.as_map().intersect_domain(statement.domain)
    if not load.dynamic:
        return relation
    for dimension, _ in load.dynamic:
        relation = relation.eliminate(OUT, dimension, 1)
    return relation.intersect_range(box(array.name, array.shape))
