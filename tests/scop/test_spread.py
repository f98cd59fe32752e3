"""What a group has in common is written once for each of its members, if that is read often."""

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.poly.affine import is_affine
from polyc.scop.scop import Scop
from polyc.scop.spread import MANY, spread_groups
from tests.analysis.nests import array, load, scop, statement
from tests.scop.rewrites import check, get, names

CHANNELS, SIZE = 12, 4


def scaled(pixels: int, place: str = f"floor(c/{SIZE})", kind: str = "temporary") -> Scop:
    """Y[c, x] = M[place], after M = -I."""
    groups, domain = CHANNELS // SIZE, f"0 <= c < {CHANNELS} and 0 <= x < {pixels}"
    arrays = [
        array("I", [groups], "input"),
        array("M", [groups], kind),  # type: ignore[arg-type]
        array("Y", [CHANNELS, pixels], "output"),
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
    assert after.arrays["M_each"].shape == (CHANNELS,)
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
