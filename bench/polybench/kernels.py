"""All 30 kernels by their names, in PolyBench's order; and loops that are none of its."""

from __future__ import annotations

from collections.abc import Mapping

from bench.polybench import algebra, blas, medley, mining, solvers, stencils
from bench.polybench.data import BY_DATA
from bench.polybench.everyday import EVERYDAY as OTHERS
from bench.polybench.inference import INFERENCE
from bench.polybench.problem import Problem

GROUPS = (mining, blas, algebra, solvers, medley, stencils)

PROBLEMS: Mapping[str, Problem] = {p.name: p for group in GROUPS for p in group.PROBLEMS}

EVERYDAY: Mapping[str, Problem] = {p.name: p for p in (*OTHERS, *INFERENCE, *BY_DATA)}

ALL: Mapping[str, Problem] = {**PROBLEMS, **EVERYDAY}
