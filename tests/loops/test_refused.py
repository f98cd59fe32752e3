"""What is outside of the subset: each an error that names file, line, column and the rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polyc
from polyc.errors import UnsupportedLoop

F64 = polyc.f64


@polyc.kernel
def with_while(x):
    while x[0] > 0:
        x[0] -= 1


@polyc.kernel
def with_return(x):
    for i in range(len(x)):
        x[i] = 0
    return x


@polyc.kernel
def with_slice(x):
    x[1:3] = 0


@polyc.kernel
def with_list(x):
    for i in [1, 2, 3]:
        x[i] = 0


@polyc.kernel
def with_unknown_function(x):
    for i in range(len(x)):
        x[i] = math.gamma(x[i])


@polyc.kernel
def with_counter_behind(x):
    for i in range(len(x)):
        x[i] = 0
    x[0] = i


@polyc.kernel
def with_unassigned_local(x, n):
    if n > 3:
        t = 1.0
    x[0] = t


@polyc.kernel
def with_text(x):
    x[0] = "one"


@polyc.kernel
def with_boolean_sum(x, b):
    x[0] = b[0] + b[1]


@polyc.kernel
def with_wrong_rank(x):
    x[0, 0] = 1


@polyc.kernel
def with_far_subscript(x):
    for i in range(len(x)):
        x[len(x) + i] = 0


@polyc.kernel
def with_step_of_zero(x):
    for i in range(0, 5, 0):
        x[i] = 0


@polyc.kernel
def with_assigned_argument(x, n):
    n = 3
    x[0] = n


@polyc.kernel
def with_assigned_counter(x):
    for i in range(len(x)):
        i = 3
        x[i] = 0


CASES = [
    (with_while, 2, "`while`"),
    (with_return, 4, "gives nothing back"),
    (with_slice, 2, "a slice"),
    (with_list, 2, "runs over `range"),
    (with_unknown_function, 3, "`gamma` is no function"),
    (with_counter_behind, 4, "'i' has no value here"),
    (with_unassigned_local, 4, "may be read before it is assigned"),
    (with_text, 2, "no number"),
    (with_boolean_sum, 2, "two booleans"),
    (with_wrong_rank, 2, "has 1 dimensions, but 2 subscripts"),
    (with_far_subscript, 3, "leaves the array whatever"),
    (with_step_of_zero, 2, "other than 0"),
    (with_assigned_argument, 2, "argument 'n' is assigned to"),
    (with_assigned_counter, 3, "variable of a loop around"),
]
TYPES = {
    "x": F64["n"],
    "k": polyc.i64["m"],
    "n": polyc.i64,
    "m": polyc.i64,
    "b": polyc.b8[2],
}


@pytest.mark.parametrize(
    ("kernel", "line", "rule"), CASES, ids=lambda c: getattr(c, "__name__", "")
)
def test_what_is_refused_is_named_by_place_and_rule(kernel, line, rule):
    first = kernel.python.__code__.co_firstlineno  # of the decorator
    with pytest.raises(UnsupportedLoop) as caught:
        kernel.compile(**{n: TYPES[n] for n in kernel.python.__code__.co_varnames if n in TYPES})
    message = str(caught.value)
    assert rule in message
    assert f"test_refused.py:{first + line}:" in message


def test_a_function_without_text_is_refused():
    scope: dict = {}
    exec("def f(x):\n    x[0] = 1\n", scope)
    with pytest.raises(UnsupportedLoop, match="text cannot be read"):
        polyc.kernel(scope["f"])(np.zeros(3))
