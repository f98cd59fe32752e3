"""Whether a function takes no value twice: what is found by values is what isl finds."""

import islpy as isl
import pytest

from polyc.poly import injective
from polyc.poly.injective import is_injective

BITS = "i mod 2 + 4*floor(i/2) - 6*floor(i/4) + 12*floor(i/8) - 8*floor(i/8) - 4*floor(i/16)"
"""Some order of digits, by five quotients; whether each comes once depends on the extent."""


def _ask(values: str, domain: str) -> tuple[bool, bool]:
    """By `is_injective`, and by isl alone."""
    within = isl.Set(f"{{ S[i, j] : {domain} }}")
    function = isl.PwMultiAff(f"{{ S[i, j] -> x[{values}] }}")
    return is_injective(function, within), function.as_map().intersect_domain(within).is_injective()


@pytest.mark.parametrize(
    "values",
    [
        f"{BITS}, j",
        f"({BITS}) + 64*j",
        f"({BITS}) + 3*j, j mod 2",
        BITS,
        f"floor(({BITS})/2), i mod 2, 2*j",
        f"floor(({BITS})/2), i mod 4, j",
        f"{BITS}, floor(j/2)",
    ],
)
@pytest.mark.parametrize(
    "domain",
    [
        "0 <= i < 24 and 0 <= j < 4",
        "-5 <= i < 11 and 3 <= j < 5",
        "0 <= i < 7 and j = 2",
        "i = 1 and j = 0",
        "0 <= i < 16 and 0 <= j < 1 - i",
        "0 <= i < 0 and 0 <= j < 4",
    ],
)
def test_values_say_what_isl_says(
    values: str, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, expected = _ask(values, domain)
    assert found == expected
    monkeypatch.setattr(injective, "LARGEST", 3)  # where a value may overflow, isl is asked
    assert _ask(values, domain)[0] == expected


def test_sizes_that_a_call_decides_are_left_to_isl() -> None:
    function = isl.PwMultiAff(f"[n] -> {{ S[i] -> x[({BITS}) + n*0, floor(i/3)] }}")
    assert is_injective(function, isl.Set("[n] -> { S[i] : 0 <= i < n and n <= 4 }"))
    function = isl.PwMultiAff(
        "[n] -> { S[i] -> x[floor((i + n)/2) + floor(i/3) + floor(i/5) + floor(i/7)] }"
    )
    assert not is_injective(function, isl.Set("[n] -> { S[i] : 0 <= i < 8 }"))


def test_an_order_of_tokens_by_seven_quotients_is_found_in_an_instant() -> None:
    """isl alone takes eight seconds; the test would reach its limit with some more of these."""
    order = (
        "64i - 3132*floor(i/49) + 216*floor(i/98) - 446*floor(i/196) + 108*floor(i/392)"
        " - 223*floor(i/784) + 54*floor(i/1568) - 56*(i mod 7)"
    )
    function = isl.PwMultiAff(f"{{ S[i, j] -> x[0, {order}, j] }}")
    domain = isl.Set("{ S[i, j] : 0 <= i < 3136 and 0 <= j < 96 }")
    for _ in range(50):
        assert is_injective(function, domain)
    assert not is_injective(function, isl.Set("{ S[i, j] : 0 <= i < 3137 and 0 <= j < 96 }"))
