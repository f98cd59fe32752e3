"""Statements rewritten as a schedule says: executed one by one, they compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.codegen.generate import generate_nest
from polyc.errors import IllegalSchedule
from polyc.mapping.cuda.coordinates.rewrite import Rewritten, rewrite
from polyc.memory.storage import row_major
from polyc.schedule.initial import make_tree
from polyc.schedule.loops import lower_tree
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Scop
from tests.analysis.nests import array, load, matmul_scop, scop, statement
from tests.loopnest.execute import execute
from tests.mapping.stages import open_cluster

M, N, K = 9, 11, 7


def begin(of: Scop) -> Rewritten:
    opened = open_cluster(of)
    storages = {name: row_major(a) for name, a in of.arrays.items()}
    private = frozenset(n for n, a in of.arrays.items() if a.kind == "temporary")
    return Rewritten((opened.cluster,), of.arrays, storages, private)


def transpose() -> Scop:
    return scop(
        [array("X", [40, 33], "input"), array("Y", [33, 40], "output")],
        statement(
            "{ S[j, i] : 0 <= j < 33 and 0 <= i < 40 }",
            "{ S[j, i] -> Y[j, i] }",
            load("{ S[j, i] -> X[i, j] }"),
        ),
    )


PRODUCT = matmul_scop(M, N, K)
TURNED = transpose()


def run(now: Rewritten, feeds: dict[str, np.ndarray], result: str) -> np.ndarray:
    """What the loops of all statements compute, each array in memory."""
    domains = {s.name: s.domain for s in now.statements}
    tree = lower_tree(make_tree(now.named), domains, counted=True)
    storages = {name: row_major(a) for name, a in now.arrays.items()}
    nest = generate_nest(tree, {s.name: s for s in now.statements}, storages, {})
    held = {n: np.full(a.shape, np.nan, a.dtype) for n, a in now.arrays.items()} | feeds
    execute(nest, held)
    return held[result]


PRODUCTS = [
    "",
    "join i j as e",
    "join j i as e of 16",
    "cut k as a b by 3",
    "cut k as a b c by 2 2",
    "join i j as e | cut k as q t v by 4 1 | partial S.t",
    "cut k as a b by 4 | partial S.b",
    "partial S.k",
    "tile i as a 4 r 2 by j as c 1 d 4 over k as e 2 into a c r d",
    "tile j as a 4 r 2 by i as c 3 over k as e 8 into c a r",
    "tile i as a 2 r 4 by j as c 2 d 4 over k as e 1 f 4 into a c r d of 4",
]


@pytest.mark.parametrize("text", PRODUCTS)
def test_a_product_computes_the_same(text):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((M, K), (K, N)))
    now = rewrite(begin(PRODUCT), Schedule.parse(text))
    np.testing.assert_array_equal(run(now, {"X": x, "W": w}, "Y"), np.maximum(x @ w, 0))


@pytest.mark.parametrize("text", ["", "stage X by i j", "join j i as e", "join i j as e"])
def test_a_transpose_computes_the_same(text):
    x = np.random.default_rng(1).standard_normal((40, 33)).astype(np.float32)
    now = rewrite(begin(TURNED), Schedule.parse(text))
    np.testing.assert_array_equal(run(now, {"X": x}, "Y"), x.T)


def test_what_is_made_and_what_loops_there_are():
    joined = rewrite(
        begin(PRODUCT), Schedule.parse("join i j as e | cut k as q t by 4 | partial S.t")
    )
    assert [s.name for s in joined.statements] == ["Z", "S_start", "S", "S_combine", "T"]
    assert joined.made == {"acc_joint": "acc", "acc_joint_parts": "acc"}
    assert joined.statements_made == {"S_start": "S", "S_combine": "S"}
    assert joined.arrays["acc_joint_parts"].shape == (M * N, 4)
    assert [(x.name, x.extent) for x in joined.named.loops] == [
        ("e", M * N),
        ("t", 4),
        ("q", 2),
        ("t", 4),
        ("t", 4),
    ]
    tiled = rewrite(
        begin(PRODUCT),
        Schedule.parse("tile i as a 4 r 2 by j as c 4 over k as e 4 into a c r"),
    )
    assert tiled.made == {"acc_tiles": "acc", "acc_left": "acc", "acc_right": "acc"}
    assert tiled.arrays["acc_tiles"].shape == (1, 2, 3, 4, 4, 2)
    assert tiled.touched_private == {"acc_tiles", "acc_left", "acc_right"}
    assert {loop.name for loop in tiled.named.loops} >= {"b", "mt", "nt", "kt", "ki", "mr", "a"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("join i as e", "all loops that statements share are joined, each once; these are i, j"),
        ("join i j i as e", "each once"),
        ("join i k as e", "each once"),
        ("join i j as k", "there is a loop k already"),
        ("join i j as e of 9999", "a multiple of 1 to 1024"),
        ("join i j as S.e", "S.e cannot name a loop"),
        ("join i j as e'", "cannot name a loop"),
        ("cut k as mod b by 4", "mod cannot name a loop: that is a letter, and letters"),
        ("tile i as a 2 by j as _c 2 over k as e 2 into a _c", "_c cannot name a loop"),
        ("join p q as e", "there is no loop p here; there are i, j, k"),
        ("cut k as a b", "by is missing"),
        ("cut k as a b by 0", "of at least 1"),
        ("cut k as a b c by 4", "a size for each name but the first"),
        ("cut k k as a b by 4", "a loop of S is named twice"),
        ("cut i as a b by 4", "i is shared"),
        ("cut k as j b by 4", "S has a loop j already"),
        ("partial k | split i 2 | partial S.k", "what rewrites statements stands in front"),
        ("partial i", "one of its own"),
        ("partial S.q", "there is no loop S.q"),
        ("stage X by i j", "a kernel of one statement"),
        ("tile i as a 2 by j as a 2 over k as e 2 into a", "digits have names of their own"),
        ("tile i as kt 2 by j as c 2 over k as e 2 into kt c", "digits have names of their own"),
        ("tile i as a 0 by j as c 2 over k as e 2 into a c", "digits are from 1 on"),
        ("tile i as a 999999 by j as c 2 over k as e 2 into a c", "up to 65536 places"),
        ("tile i as a 2 by j as c 2 over k as e 2 into a", "all digits of rows and of columns"),
        ("tile i as a 2 by j as c 2 over k as e 2 into a c of 4", "a run of 4"),
        ("tile i as a 2 by i as c 2 over k as e 2 into a c", "rows are loops that move one factor"),
        ("tile i as a 2 by j as c 2 over j as e 2 into a c", "the sum is over k"),
        ("tile i as a 2 by j as c 2 over k as e 2 into a c at i", "all loops are said once"),
    ],
)
def test_what_cannot_be_said_of_a_product(text, said):
    with pytest.raises(IllegalSchedule, match=said):
        rewrite(begin(PRODUCT), Schedule.parse(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stage X by j i", "S reads X nowhere with unit step along i and a larger one along j"),
        ("stage Y by i j", "S reads Y nowhere"),
        ("stage X by i i", "S reads X nowhere"),
        ("join j i as e | stage X by i j", "there is no loop i here; there are e"),
        ("tile j as a 2 by i as c 2 over i as e 2 into a c", "not of a sum of products"),
        ("partial S.i", "one of its own"),
    ],
)
def test_what_cannot_be_said_of_a_transpose(text, said):
    with pytest.raises(IllegalSchedule, match=said):
        rewrite(begin(TURNED), Schedule.parse(text))
