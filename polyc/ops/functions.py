"""Operators that the standard defines by others: attention, embeddings, gates and losses.

They are written out as what they consist of at once; graphs show those nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyc.graph.builder import Operand, Value, apply, apply_many, as_integers


def attention(
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
) -> Value:
    """softmax(q kᵀ · scale + mask) v for q[B, H, S, D], k and v[B, G, T, D]; H a multiple of G.

    scale: 1/√D by default; mask: bool or added, broadcast to [B, H, S, T]; is_causal: a query sees
    no later key. Tensors [B, S, H·D] need the numbers of heads.
    """
    heads = {"q_num_heads": q_num_heads, "kv_num_heads": kv_num_heads}
    flags = {"is_causal": int(is_causal), "scale": scale, "softcap": softcap}
    return apply("Attention", [q, k, v, mask], **flags, **heads)


def attention_with_cache(
    q: Operand,
    k: Operand,
    v: Operand,
    past_key: Operand,
    past_value: Operand,
    mask: Operand | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
) -> tuple[Value, Value, Value]:
    """`attention` to keys and values that follow earlier ones -> y, all keys, all values."""
    heads = {"q_num_heads": q_num_heads, "kv_num_heads": kv_num_heads}
    flags = {"is_causal": int(is_causal), "scale": scale, "softcap": softcap}
    inputs = [q, k, v, mask, past_key, past_value]
    y, keys, values = apply_many("Attention", inputs, 3, **flags, **heads)
    return y, keys, values


def rotary_embedding(
    x: Operand,
    cos: Operand,
    sin: Operand,
    positions: Operand | None = None,
    *,
    interleaved: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Value:
    """x[B, H, S, D] with pairs of its last dimension turned by the angles of their positions.

    cos, sin: [B, S, D/2], or [P, D/2] with positions[B, S]. Su et al. (2021), RoFormer.
    """
    return apply(
        "RotaryEmbedding",
        [x, cos, sin, positions],
        interleaved=int(interleaved),
        num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )


def swiglu(a: Operand, b: Operand, alpha: float = 1.0) -> Value:
    """a · σ(alpha · a) · b."""
    return apply("SwiGLU", [a, b], alpha=alpha)


def negative_log_likelihood_loss(
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> Value:
    """-weight[target] · x[n, target, …] of log-probabilities x[N, C, …] and classes target[N, …].

    reduction: "none", "sum" or "mean", which is weighted.
    """
    flags = {"reduction": reduction, "ignore_index": ignore_index}
    return apply("NegativeLogLikelihoodLoss", [x, target, weight], **flags)


def softmax_cross_entropy_loss(
    scores: Operand,
    labels: Operand,
    weights: Operand | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> Value:
    """`negative_log_likelihood_loss` of the logarithm of the softmax of scores[N, C, …]."""
    flags = {"reduction": reduction, "ignore_index": ignore_index}
    return apply("SoftmaxCrossEntropyLoss", [scores, labels, weights], **flags)


def center_crop_pad(x: Operand, shape: Sequence[int], axes: Sequence[int] | None = None) -> Value:
    """x cropped or padded with zeros about its centre, to `shape` along `axes` (all of them)."""
    given = None if axes is None else tuple(axes)
    return apply("CenterCropPad", [x, as_integers(tuple(shape))], axes=given)


def affine_grid(theta: Operand, size: Sequence[int], align_corners: bool = False) -> Value:
    """Where an affine map sends the positions of an image: theta[N, 2, 3], size (N, C, H, W)
    -> [N, H, W, 2], or one dimension more of each."""
    flags = {"align_corners": int(align_corners)}
    return apply("AffineGrid", [theta, as_integers(tuple(size))], **flags)
