"""The table of vector instructions: what targets have, and how it is spelled."""

from __future__ import annotations

import pytest

from polyc.target.instructions.lanes import (
    DOT2_S16S16,
    DOT4_U8S8,
    FMA,
    GATHER,
    LOAD,
    MASKED_LOAD,
    MASKED_STORE,
    ROWS,
    SCATTER,
)
from polyc.target.instructions.rows import LANES, Spelled
from polyc.target.machine import NAMED, detect_target, host_features
from polyc.target.vectors import Vectors
from polyc.types.element_types import INT8, INT16, UINT8


def test_rows_have_names_of_their_own_and_a_spelling_for_every_cpu():
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        for lanes in (2, 4, 8, 16):
            assert row.spell(frozenset(), lanes) is not None
        assert row.nest.loops[0] in (LANES, "count")
        depth = len(row.nest.loops)
        assert all(len(o.steps) == depth for o in (row.nest.result, *row.nest.operands))


@pytest.mark.parametrize(
    ("isa", "has", "lacks"),
    [
        ("avx512", (FMA, GATHER, MASKED_LOAD, MASKED_STORE, DOT2_S16S16), (SCATTER, DOT4_U8S8)),
        ("avx2", (FMA, LOAD, DOT2_S16S16), (GATHER, MASKED_LOAD, SCATTER, DOT4_U8S8)),
        ("baseline", (LOAD, DOT2_S16S16), (FMA, GATHER, MASKED_STORE, DOT4_U8S8)),
    ],
)
def test_what_a_named_target_has(isa, has, lacks):
    vectors = NAMED[isa].vectors
    assert all(vectors.has(row) for row in has)
    assert not any(vectors.has(row) for row in lacks)
    assert vectors.masked == (MASKED_LOAD in has)
    assert vectors.gathers == (GATHER in has)
    assert not vectors.scalable


def test_features_say_what_vectors_can_do():
    arm = Vectors.of(16, 32, {"asimd", "sve", "asimddp"})
    assert arm.scalable
    assert not (arm.masked)
    assert not (arm.gathers)
    assert not (arm.products)
    assert arm.lanes(4) == 4
    assert arm.lanes(64) == 1
    half = Vectors.of(64, 32, {"avx512bw"})
    assert not half.masked  # without avx512vl shorter vectors have none


def test_the_first_spelling_that_the_cpu_has_is_taken():
    def needs(*features: str, lanes: int) -> tuple[str, ...]:
        spelling = DOT4_U8S8.spell(frozenset(features), lanes)
        assert spelling is not None
        assert str(Spelled(DOT4_U8S8, spelling)) == "dot4.u8s8"
        return spelling.needs

    assert needs("avx2", "avx512bw", "avx512_vnni", lanes=16) == ("avx512_vnni",)
    assert needs("avx2", "avx_vnni", lanes=8) == ("avx_vnni",)
    assert needs("avx2", "avx_vnni", lanes=16) == ()
    assert needs("avx2", lanes=4) == ("avx2",)
    assert DOT4_U8S8.spell(frozenset(), 3) is None


def test_types_whose_products_are_summed_up():
    pairs = {(INT16, INT16)}
    assert NAMED["avx2"].vectors.products == pairs
    vnni = Vectors.of(32, 16, {"avx2", "avx_vnni"})
    assert vnni.products == {(UINT8, INT8), (INT8, UINT8), (INT8, INT8)} | pairs
    assert Vectors(16, 16).products == frozenset()


def test_what_a_cpu_has_besides_its_architecture_is_asked_of_the_compiler():
    target = detect_target()
    for feature, flag in (("avx512_vnni", "-mavx512vnni"), ("avx_vnni", "-mavxvnni")):
        if flag in target.flags:
            assert feature in (host_features() or ())
            assert feature in target.features
            assert feature in target.vectors.features
