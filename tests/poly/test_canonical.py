"""Canonical tuples: names do not matter, everything else does."""

from __future__ import annotations

import random

import islpy as isl
import pytest

from polyc.poly.canonical import canonical_function, canonical_set

SETS = [
    "{ S[i, j] : 0 <= i < 5 and 0 <= j < 7 }",
    "{ S[i, j] : 0 <= i < 7 and 0 <= j < 5 }",
    "{ S[i, j] : 0 <= i < 5 and 0 <= j < 7 and (i + j) mod 2 = 0 }",
    "{ S[i, j] : 0 <= i < 5 and 0 <= j < 7 and (i + j) mod 3 = 0 }",
    "{ S[i, j] : (0 <= i < 5 and j = 0) or (0 <= j < 7 and i = 9) }",
    "{ S[i, j] : exists e, f : i = 3e + 5f + j and 0 <= e <= 7 and f >= 0 and 0 <= i, j <= 40 }",
    "{ S[i, j] : i < 123456789012345678901234567890 and 0 <= i, j }",
    "{ S[i, j] : i < 123456789012345678901234567891 and 0 <= i, j }",
    "[size_n] -> { S[i, j] : 0 <= i < size_n and 0 <= j < 7 }",
    "[size_m] -> { S[i, j] : 0 <= i < size_m and 0 <= j < 7 }",
    "{ S[i, j] : 1 = 0 }",
    "{ S[i] : 0 <= i < 5 }",
    "{ S[] }",
]

FUNCTIONS = [
    "{ S[i, j] -> A[i, j] }",
    "{ S[i, j] -> A[j, i] }",
    "{ S[i, j] -> A[i, j] : j > 0 }",
    "{ S[i, j] -> A[i, j + 1] }",
    "{ S[i, j] -> A[i, floor(j/2)] }",
    "{ S[i, j] -> A[i, floor(j/3)] }",
    "{ S[i, j] -> A[i, j mod 3] }",
    "{ S[i, j] -> A[i, floor((j + floor(i/4))/3)] }",
    "{ S[i, j] -> A[i, floor((j + floor(i/5))/3)] }",
    "{ S[i, j] -> A[i, 0] : j < 0; S[i, j] -> A[i, j] : j >= 0 }",
    "[size_n] -> { S[i, j] -> A[i, size_n - 1 - j] }",
    "{ S[i, j] -> A[i] }",
    "{ S[i, j] -> A[] }",
]


def renamed(found: isl.Set | isl.PwMultiAff) -> isl.Set | isl.PwMultiAff:
    """With other names of the tuple and of the iterators: isl's own words among them."""
    kind = isl.dim_type.set if isinstance(found, isl.Set) else isl.dim_type.in_
    for k, name in zip(range(found.dim(kind)), ("floor", "add"), strict=False):
        found = found.set_dim_id(kind, k, isl.Id(name))
    title = isl.Id("exists")
    return found.set_tuple_id(*([title] if isinstance(found, isl.Set) else [kind, title]))


@pytest.mark.parametrize(("texts", "kind"), [(SETS, isl.Set), (FUNCTIONS, isl.PwMultiAff)])
def test_different_objects_differ_and_renamed_ones_do_not(texts, kind):
    canonical = canonical_set if kind is isl.Set else canonical_function
    found = [canonical(kind(text)) for text in texts]
    assert len(set(found)) == len(texts)
    assert [canonical(renamed(kind(text))) for text in texts] == found


def test_the_order_of_constraints_and_of_parts_does_not_matter():
    one = isl.Set("{ S[i, j] : (0 <= i < 5 and 0 <= j < 7) or (i = 9 and j = 9) }")
    other = isl.Set("{ S[i, j] : (j = 9 and i = 9) or (j < 7 and i < 5 and j >= 0 and i >= 0) }")
    assert canonical_set(one) == canonical_set(other)


def test_a_parameter_can_be_called_otherwise():
    one = isl.Set("[size_n, step_3] -> { S[i] : step_3 <= i < size_n }")
    other = isl.Set("[size_n, step_12] -> { T[k] : step_12 <= k < size_n }")
    assert canonical_set(one) != canonical_set(other)
    assert canonical_set(one, {"step_3": "step"}) == canonical_set(other, {"step_12": "step"})


def test_equal_tuples_mean_equal_sets():
    random.seed(3)
    found: dict[object, isl.Set] = {}
    for _ in range(400):
        terms = [
            f"{random.randint(-1, 1)}i + {random.randint(-1, 1)}j + {random.randint(0, 2)} >= 0"
            for _ in range(2)
        ]
        if random.random() < 0.5:
            terms.append(f"exists e : {random.choice((2, 3))}e = i + {random.randint(0, 1)}j")
        domain = isl.Set(f"{{ S[i, j] : -2 <= i, j <= 2 and {' and '.join(terms)} }}")
        if random.random() < 0.5:
            domain = domain.union(isl.Set("{ S[i, j] : i = 7 and 0 <= j <= 1 }")).coalesce()
        same = found.setdefault(canonical_set(domain), domain)
        assert same.is_equal(domain)
    assert 50 < len(found) < 400


def test_everywhere_is_said_as_other_sets_are():
    every = isl.Set("{ S[i, j] }")
    assert canonical_set(every) == canonical_set(
        isl.Set("{ T[i, j] : i <= 4 or i >= 5 }").coalesce()
    )
    assert canonical_set(every) not in [canonical_set(isl.Set(text)) for text in SETS]
