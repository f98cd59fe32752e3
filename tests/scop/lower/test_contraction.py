"""MatMul, Gemm and Einsum against NumPy in float64 and onnx's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scop.check import backend_cases, check_case, check_node

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "f4") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    "case", backend_cases("MatMul", "Gemm", "Einsum"), ids=lambda case: case.name
)
def test_backend_case(case: Any) -> None:
    check_case(case)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_matmul_broadcasts_as_numpy_does(data: st.DataObject) -> None:
    size = st.integers(0, 4)
    m, k, n = data.draw(size), data.draw(size), data.draw(size)
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
    stretched = [data.draw(st.sampled_from([1, d])) for d in batch]
    shorter = stretched[data.draw(st.integers(0, len(stretched))) :]
    a, b = normal(*batch, m, k), normal(*shorter, k, n)
    if data.draw(st.booleans()):
        a, b = b.swapaxes(-1, -2), a.swapaxes(-1, -2)
    wanted = np.matmul(a.astype("f8"), b.astype("f8")).astype("f4")
    check_node("MatMul", [a, b], expected=[wanted], atol=1e-5)


@pytest.mark.parametrize(
    ("a", "b"), [((3,), (3,)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,)), ((1,), (1, 5))]
)
def test_vectors_lose_their_dimension(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = normal(*a), normal(*b)
    check_node("MatMul", [left, right], expected=[np.asarray(left @ right)])


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "f8"])
def test_matmul_of_other_types(dtype: str) -> None:
    a, b = RNG.integers(0, 9, (2, 3)).astype(dtype), RNG.integers(0, 9, (3, 4)).astype(dtype)
    check_node("MatMul", [a, b], expected=[a @ b])


def test_nan_and_infinity_survive() -> None:
    a = np.array([[1, np.nan], [0, 2], [np.inf, 0]], "f4")
    b = np.array([[1, np.inf], [0, 1]], "f4")
    with np.errstate(invalid="ignore"):
        check_node("MatMul", [a, b], expected=[a @ b])


def test_batch_of_one_is_a_plain_product() -> None:
    scop = check_node("MatMul", [normal(1, 1, 3, 4), normal(4, 5)])
    update = next(s for s in scop.statements if s.reduction)
    assert update.iterators == ("i", "j", "k")


@settings(max_examples=20, deadline=None)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 4)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from([1.0, -2.0]),
    st.sampled_from([None, "scalar", "row", "column", "full"]),
)
def test_gemm(
    sizes: tuple[int, int, int],
    trans_a: bool,
    trans_b: bool,
    alpha: float,
    beta: float,
    bias: str | None,
) -> None:
    m, n, k = sizes
    a, b = normal(m, k), normal(k, n)
    shapes = {"scalar": (), "row": (n,), "column": (m, 1), "full": (m, n)}
    c = None if bias is None else np.asarray(normal(*shapes[bias]))
    wanted = alpha * (a.astype("f8") @ b) + (0 if c is None else beta * c.astype("f8"))
    operands = [a.T if trans_a else a, b.T if trans_b else b, *([] if c is None else [c])]
    attributes = {"alpha": alpha, "beta": beta, "transA": int(trans_a), "transB": int(trans_b)}
    check_node("Gemm", operands, attributes, expected=[wanted.astype("f4")], atol=1e-5)


def test_gemm_scales_integers_as_numbers() -> None:
    a, b = np.full((2, 3), 3, "i4"), np.full((3, 2), 2, "i4")
    check_node("Gemm", [a, b], {"alpha": 0.5}, expected=[np.full((2, 2), 9, "i4")])


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij->ji", [(3, 3, 2)]),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 2)]),
        ("b...i,ij->b...j", [(2, 3, 4, 3), (3, 5)]),
        ("i...->...", [(2, 3, 4)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("ij,jk,kl,lm->im", [(2, 3), (3, 4), (4, 5), (5, 2)]),
        ("ij,i,j->i", [(2, 3), (2,), (3,)]),
        ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
        ("iX,Xk->ki", [(2, 3), (3, 4)]),
        ("ij,jk->ik", [(2, 0), (0, 4)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [normal(*shape) for shape in shapes]
    wanted = np.asarray(np.einsum(equation, *(o.astype("f8") for o in operands)).astype("f4"))
    check_node("Einsum", operands, {"equation": equation}, expected=[wanted], atol=1e-5)


def test_einsum_contracts_two_by_two() -> None:
    shapes = [(20, 2), (2, 30), (30, 2)]
    operands = [normal(*shape) for shape in shapes]
    wanted = np.einsum("ij,jk,kl->il", *(o.astype("f8") for o in operands)).astype("f4")
    attributes = {"equation": "ij,jk,kl->il"}
    scop = check_node("Einsum", operands, attributes, expected=[wanted], atol=1e-4)
    updates = [s for s in scop.statements if s.reduction]
    points = sum(s.domain.count_val().to_python() for s in updates)
    assert points == 2 * 30 * 2 + 20 * 2 * 2


def test_einsum_of_one_operand_without_sum_is_a_view() -> None:
    scop = check_node("Einsum", [normal(2, 3, 4)], {"equation": "abc->cab"})
    assert len(scop.statements) == 1  # the copy into the output
