"""Copies on the way to who reads them: the proof sees through right ones, and refuses others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import islpy as isl
import pytest

import polyc
from bench.polybench.blas import syrk
from polyc.analysis.dependences import compute_dependences
from polyc.analysis.same_values import check_same_values
from polyc.errors import IllegalSchedule
from polyc.loops.lower.lower import lower
from polyc.loops.lower.transposed import copy_columns
from polyc.loops.read.sizes import Signature
from polyc.scop.expr import call
from polyc.scop.scop import Scop, Statement
from polyc.types.ranges import assume

SQUARE = {"alpha": polyc.f64, "beta": polyc.f64, "C": polyc.f64["n", "n"], "A": polyc.f64["n", "n"]}


@pytest.fixture
def copied() -> Iterator[tuple[Scop, Scop, Statement]]:
    signature = Signature(SQUARE)
    with assume(signature.sizes):
        yield _copied(signature)


def _copied(signature: Signature) -> tuple[Scop, Scop, Statement]:
    lowered = lower(syrk.function, signature)
    made, readers = copy_columns(lowered, compute_dependences(lowered.bare))
    assert readers == {"S1"}
    return lowered.scop, made.scop, made.scop.statements[0]


def with_copy(scop: Scop, copy: Statement) -> Scop:
    return replace(scop, statements=(copy, *scop.statements[1:]))


def test_a_copy_is_seen_through(copied):
    stated, kept, copy = copied
    assert copy.array == "A_t"
    check_same_values("syrk", stated, kept)


def test_a_copy_of_other_elements_is_refused(copied):
    stated, kept, copy = copied
    other = replace(copy.value, index=copy.write.set_tuple_id(*_named(copy.value.index)))
    wrong = replace(copy, value=other)
    with pytest.raises(IllegalSchedule, match="S1 reads another value than it is there for"):
        check_same_values("syrk", stated, with_copy(kept, wrong))


def _named(index):

    return isl.dim_type.out, index.get_tuple_id(isl.dim_type.out)


def test_what_computes_is_no_copy(copied):
    stated, kept, copy = copied
    wrong = replace(copy, value=call("neg", copy.value))
    with pytest.raises(IllegalSchedule, match="T0 is no copy to an array of its own"):
        check_same_values("syrk", stated, with_copy(kept, wrong))


def test_a_copy_to_an_array_of_the_kernel_is_refused(copied):
    stated, kept, copy = copied
    wrong = replace(copy, array="C")
    with pytest.raises(IllegalSchedule, match="T0 is no copy to an array of its own"):
        check_same_values("syrk", stated, with_copy(kept, wrong))
