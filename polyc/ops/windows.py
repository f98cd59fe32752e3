"""Sums of products, and operators that slide a window over a signal or image."""

from __future__ import annotations

from collections.abc import Sequence

from polyc.graph.builder import Operand, Value, apply

Ints = Sequence[int]


def matmul(a: Operand, b: Operand) -> Value:
    """a[…, i, k], b[…, k, j] -> y[…, i, j] = Σₖ a · b, as numpy.matmul."""
    return apply("MatMul", [a, b])


def gemm(
    a: Operand,
    b: Operand,
    c: Operand | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Value:
    """alpha · a[i, k] b[k, j] + beta · c, where a and b may be stored transposed."""
    flags = {"transA": int(trans_a), "transB": int(trans_b)}
    return apply("Gemm", [a, b, c], alpha=alpha, beta=beta, **flags)


def einsum(equation: str, *tensors: Operand) -> Value:
    """einsum("ij,jk->ik", a, b), as numpy.einsum."""
    return apply("Einsum", tensors, equation=equation)


def conv(
    x: Operand,
    w: Operand,
    bias: Operand | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Value:
    """x[N, C, …], w[M, C/group, k…] -> y[N, M, …]; pads = (begins…, ends…)."""
    window = {"strides": strides, "pads": pads, "dilations": dilations}
    return apply("Conv", [x, w, bias], **window, group=group, auto_pad=auto_pad)


def conv_transpose(
    x: Operand,
    w: Operand,
    bias: Operand | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Value:
    """x[N, C, …], w[C, M/group, k…] -> y[N, M, …], the transpose of a convolution."""
    window = {"strides": strides, "pads": pads, "dilations": dilations}
    output = {"output_padding": output_padding, "output_shape": output_shape}
    return apply("ConvTranspose", [x, w, bias], **window, **output, group=group, auto_pad=auto_pad)


def max_pool(
    x: Operand,
    kernel_shape: Ints,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> Value:
    """x[N, C, …] -> the maximum in each window."""
    window = {"strides": strides, "pads": pads, "dilations": dilations, "auto_pad": auto_pad}
    return apply("MaxPool", [x], kernel_shape=kernel_shape, ceil_mode=int(ceil_mode), **window)


def average_pool(
    x: Operand,
    kernel_shape: Ints,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    auto_pad: str = "NOTSET",
) -> Value:
    """x[N, C, …] -> the mean in each window, over its elements inside x unless pads count."""
    window = {"strides": strides, "pads": pads, "dilations": dilations, "auto_pad": auto_pad}
    flags = {"ceil_mode": int(ceil_mode), "count_include_pad": int(count_include_pad)}
    return apply("AveragePool", [x], kernel_shape=kernel_shape, **flags, **window)


def global_average_pool(x: Operand) -> Value:
    """x[N, C, …] -> y[N, C, 1…], the mean over all positions."""
    return apply("GlobalAveragePool", [x])


def global_max_pool(x: Operand) -> Value:
    """x[N, C, …] -> y[N, C, 1…], the maximum over all positions."""
    return apply("GlobalMaxPool", [x])


def lp_pool(
    x: Operand,
    kernel_shape: Ints,
    p: int = 2,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> Value:
    """x[N, C, …] -> (Σ |x|**p)**(1/p) in each window."""
    window = {"strides": strides, "pads": pads, "dilations": dilations, "auto_pad": auto_pad}
    return apply("LpPool", [x], kernel_shape=kernel_shape, p=p, ceil_mode=int(ceil_mode), **window)


def global_lp_pool(x: Operand, p: int = 2) -> Value:
    """x[N, C, …] -> y[N, C, 1…] = (Σ |x|**p)**(1/p) over all positions."""
    return apply("GlobalLpPool", [x], p=p)
