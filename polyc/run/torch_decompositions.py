"""PyTorch operators that its exporter to ONNX does not know, as the operators that they fuse.

`nn.TransformerEncoder` and `nn.MultiheadAttention` take these in inference ("fast path"), so a
graph of torch.compile holds them. A mask hides where it is true, or not 0; a row that sees nothing
is NaN, as PyTorch's is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional as F

BY_KEY = 1
"""The mask is [batch, keys]. Else it is [queries, keys], or [batch, heads, queries, keys]."""


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """aten::_native_multi_head_attention: [batch, length, embed_dim], and the weights."""
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (F.linear(x, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2) for x, w, b in parts)
    scores = (q / math.sqrt(embed_dim // num_head)) @ k.transpose(-2, -1)
    if mask is not None:
        hides = mask.to(torch.bool)
        hides = hides[:, None, None, :] if mask_type == BY_KEY else hides
        scores = scores.masked_fill(hides, -math.inf)
    weights = scores.softmax(-1)
    found = F.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    return found, weights.mean(1) if average_attn_weights else weights


def encode(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """aten::_transformer_encoder_layer_fwd: norms before or behind the two residual blocks."""

    def norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    def mix(x: torch.Tensor) -> torch.Tensor:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return attend(x, x, x, embed_dim, num_heads, *projections, mask, False, False, mask_type)[0]

    def feed(x: torch.Tensor) -> torch.Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)

    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    if norm_first:
        x = src + mix(norm(src, *first))
        return x + feed(norm(x, *second))
    x = norm(src + mix(src), *first)
    return norm(x + feed(x), *second)


DECOMPOSITIONS: Mapping[Any, Callable[..., Any]] = {
    torch.ops.aten._native_multi_head_attention.default: attend,
    torch.ops.aten._transformer_encoder_layer_fwd.default: encode,
}
