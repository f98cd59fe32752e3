"""Groups of channels: sums of each channel first, and what a group has in common for each."""

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.poly.affine import is_affine
from polyc.scop.expr import Call
from polyc.scop.groups import LONG, MANY, spread_groups, sum_members
from polyc.scop.scop import Scop
from tests.analysis.nests import F32, ZERO, array, load, scop, statement
from tests.sampling import thorough
from tests.scop.rewrites import check, get, names

GROUPS, SIZE = 3, 4
PIXELS = LONG // (GROUPS * SIZE) + 1


def sums(place: str, order: str = "g, c, x", kind: str = "temporary") -> Scop:
    """Y[g] = sum over c and x of X[place, x] * M[g]"""
    inside = f"0 <= g < {GROUPS} and 0 <= c < {SIZE} and 0 <= x < {PIXELS}"
    product = Call("mul", (load(f"{{ S[{order}] -> X[{place}, x] }}"),
                           load(f"{{ S[{order}] -> M[g] }}")), F32)  # fmt: skip
    rows = f"0 <= m < {GROUPS * SIZE} and 0 <= x < {PIXELS}"
    return scop(
        [
            array("I", [GROUPS * SIZE, PIXELS], "input"),
            array("X", [GROUPS * SIZE, PIXELS], kind),  # type: ignore[arg-type]
            array("M", [GROUPS], "input"),
            array("acc", [GROUPS], "temporary"),
            array("Y", [GROUPS], "output"),
        ],
        statement(f"{{ X[m, x] : {rows} }}", "{ X[m, x] -> X[m, x] }",
                  load("{ X[m, x] -> I[m, x] }")),
        statement(f"{{ Z[g] : 0 <= g < {GROUPS} }}", "{ Z[g] -> acc[g] }", ZERO),
        statement(f"{{ S[{order}] : {inside} }}", f"{{ S[{order}] -> acc[g] }}", product, "add"),
        statement(f"{{ E[g] : 0 <= g < {GROUPS} }}", "{ E[g] -> Y[g] }",
                  load("{ E[g] -> acc[g] }")),
    )  # fmt: skip


def test_the_sum_of_each_channel_comes_first():
    after = check(sum_members, sums(f"{SIZE}g + c"))
    assert names(after) == ["X", "Z_members", "S_members", "S_member", "Z", "S", "E"]
    partial = get(after, "S_members")
    assert partial.iterators == ("m", "x")
    assert all(map(is_affine, (partial.write, partial.loads[0].index)))
    assert get(after, "S").iterators == ("g", "c")


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ("4g + c", "g, x, c"),  # what is summed up last is lanes as it is
        ("g + 3c", "g, c, x"),  # members are apart
        ("c", "g, c, x"),  # the same for all groups
    ],
)
def test_other_sums_stay(place, order):
    before = sums(place, order)
    assert sum_members(before) is not None
    assert names(sum_members(before)) == names(before)


def one_group(place: str, width: int = 1) -> Scop:
    """Y[g] = sum over c and x of X[place, x], of one group."""
    inside = f"0 <= g < 1 and 0 <= c < {SIZE} and 0 <= x < {LONG}"
    rows = f"0 <= m < {SIZE * width} and 0 <= x < {LONG}"
    return scop(
        [
            array("I", [SIZE * width, LONG], "input"),
            array("X", [SIZE * width, LONG], "temporary"),
            array("acc", [1], "temporary"),
            array("Y", [1], "output"),
        ],
        statement(f"{{ X[m, x] : {rows} }}", "{ X[m, x] -> X[m, x] }",
                  load("{ X[m, x] -> I[m, x] }")),
        statement("{ Z[g] : 0 <= g < 1 }", "{ Z[g] -> acc[g] }", ZERO),
        statement(f"{{ S[g, c, x] : {inside} }}", "{ S[g, c, x] -> acc[g] }",
                  load(f"{{ S[g, c, x] -> X[{place}, x] }}"), "add"),
        statement("{ E[g] : 0 <= g < 1 }", "{ E[g] -> Y[g] }", load("{ E[g] -> acc[g] }")),
    )  # fmt: skip


@pytest.mark.parametrize("place", ["c", f"{SIZE}g + c"])
def test_all_channels_may_be_one_group(place):
    after = check(sum_members, one_group(place))
    assert names(after) == ["X", "Z_members", "S_members", "S_member", "Z", "S", "E"]
    assert get(after, "S_members").iterators == ("m", "x")


def test_members_of_one_group_lie_side_by_side():
    before = one_group("2c", width=2)
    assert names(sum_members(before)) == names(before)


@pytest.mark.parametrize("groups", [1, 8, thorough(4)])
@pytest.mark.parametrize("batch", [1, thorough(3)])
def test_norms_of_groups_behind_a_convolution(batch, groups):
    rng = np.random.default_rng(groups)
    w = rng.standard_normal((32, 16, 1, 1)).astype(np.float32)
    y = ops.conv(ops.input("x", (batch, 16, 33, 31)), w)
    flat = ops.reshape(y, (batch, groups, -1))
    ones, zeros = np.ones(groups, np.float32), np.zeros(groups, np.float32)
    norm = ops.reshape(ops.instance_normalization(flat, ones, zeros), (batch, 32, 33, 31))
    model = polyc.compile(Graph.of(y=norm), target="baseline")
    assert "members" in model.source
    x = (rng.standard_normal((batch, 16, 33, 31)) * 3 + 1).astype(np.float32)
    wide = np.einsum("bchw,oc->bohw", x, w[:, :, 0, 0].astype(np.float64))
    rows = wide.reshape(batch, groups, -1)
    wanted = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(model(x), wanted.reshape(wide.shape), rtol=1e-4, atol=1e-5)


def scaled(pixels: int, place: str = f"floor(c/{SIZE})", kind: str = "temporary") -> Scop:
    """Y[c, x] = M[place], after M = -I."""
    groups, domain = GROUPS, f"0 <= c < {GROUPS * SIZE} and 0 <= x < {pixels}"
    arrays = [
        array("I", [groups], "input"),
        array("M", [groups], kind),  # type: ignore[arg-type]
        array("Y", [GROUPS * SIZE, pixels], "output"),
    ]
    before = [
        statement(f"{{ A[g] : 0 <= g < {groups} }}", "{ A[g] -> M[g] }", load("{ A[g] -> I[g] }"))
    ]
    return scop(
        arrays,
        *(before if kind == "temporary" else []),
        statement(f"{{ S[c, x] : {domain} }}", "{ S[c, x] -> Y[c, x] }",
                  load(f"{{ S[c, x] -> M[{place}] }}")),
    )  # fmt: skip


def test_members_read_what_is_theirs():
    after = check(spread_groups, scaled(MANY))
    assert names(after) == ["A", "S_M_each", "S"]
    assert after.arrays["M_each"].shape == (GROUPS * SIZE,)
    assert is_affine(get(after, "S").loads[0].index)
    assert get(after, "S_M_each").iterators == ("c",)


@pytest.mark.parametrize(
    "before",
    [
        scaled(MANY - 1),  # too few read it
        scaled(MANY, place="0"),  # all read the same
        scaled(MANY, place=f"floor(x/{MANY})"),  # and so here, but for a name
        scaled(MANY, kind="input"),
    ],
)
def test_other_reads_stay(before):
    assert names(spread_groups(before)) == names(before)


def test_a_read_in_places_alone_stays():
    """Of channels from 4 on: the others have no group whose value could be copied."""
    before = scaled(MANY)
    *others, s = before.statements
    index = get(before, "S").loads[0].index.intersect_domain(isl.Set("{ S[c, x] : c >= 4 }"))
    partly = replace(s, value=replace(s.loads[0], index=index))
    before = replace(before, statements=(*others, partly))
    assert names(spread_groups(before)) == names(before)


def test_copies_are_called_as_no_statement_is():
    before = scaled(MANY)
    first = before.statements[0]
    taken = first.domain.set_tuple_name("S_M_each")
    write = isl.PwMultiAff("{ S_M_each[g] -> M[g] }")
    read = load("{ S_M_each[g] -> I[g] }")
    first = replace(first, name="S_M_each", domain=taken, write=write, value=read)
    before = replace(before, statements=(first, *before.statements[1:]))
    assert names(check(spread_groups, before)) == ["S_M_each", "S_M_each_1", "S"]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("groups", [1, 4, 16])
def test_norms_of_groups_between_convolutions(batch, groups):
    rng = np.random.default_rng(groups)
    w, scale, bias = (rng.standard_normal(s).astype(np.float32) for s in ((48, 16), 48, 48))
    y = ops.conv(ops.input("x", (batch, 16, 33, 31)), w[:, :, None, None])
    ones, zeros = np.ones(groups, np.float32), np.zeros(groups, np.float32)
    y = ops.instance_normalization(ops.reshape(y, (batch, groups, -1)), ones, zeros)
    y = ops.reshape(y, (batch, 48, 33, 31)) * scale[:, None, None] + bias[:, None, None]
    last = ops.conv(ops.relu(y), np.ones((16, 48, 1, 1), np.float32))
    model = polyc.compile(Graph.of(y=last), target="baseline")
    assert ("mean_each" in model.source) == (groups > 1)
    norm = next(k for k in model.explain().kernels if "Relu" in " ".join(k.nodes))
    assert "vector i1'" in norm.schedule
    value = rng.standard_normal((batch, 16, 33, 31)).astype(np.float32)
    wide = np.einsum("bchw,oc->bohw", value, w.astype(np.float64))
    flat = wide.reshape(batch, groups, -1)
    flat = (flat - flat.mean(2, keepdims=True)) / np.sqrt(flat.var(2, keepdims=True) + 1e-5)
    wanted = flat.reshape(wide.shape) * scale[:, None, None] + bias[:, None, None]
    wanted = np.maximum(wanted, 0).sum(1, keepdims=True).repeat(16, 1)
    np.testing.assert_allclose(model(value), wanted, rtol=1e-4, atol=1e-4)
