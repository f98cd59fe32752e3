"""What calls of com.microsoft's operators must look like; the onnx package has no schemas of them.

    "A:T B:B scales:T g_idx:I?"        T a float, B bytes, I int32 or int64, ? optional

Read from ONNX Runtime's docs/ContribOperators.md. An attribute that is not listed is refused: it
may mean that something else is computed.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from polyc.graph.shapes.signature import Formal, Signature
from polyc.types.element_types import BFLOAT16, FLOAT16, FLOAT32, FLOAT64

_FLOATS = frozenset({FLOAT16, BFLOAT16, FLOAT32, FLOAT64})
_INTEGERS = frozenset(map(np.dtype, (np.int32, np.int64)))
_TYPES = {
    "T": _FLOATS,
    "I": _INTEGERS,
    "B": frozenset({np.dtype(np.uint8)}),
    "Z": _FLOATS | {np.dtype(np.uint8)},
}

_NORM = "input:T skip:T gamma:T beta:T? bias:T?"
_SIMPLE = "input:T skip:T gamma:T bias:T?"

_FORMS = {
    "Attention": (
        "input:T weights:T bias:T? mask_index:I? past:T? attention_bias:T? past_length:I?",
        2,
        "num_heads=INT! unidirectional=INT qkv_hidden_sizes=INTS do_rotary=INT scale=FLOAT "
        "mask_filter_value=FLOAT past_present_share_buffer=INT rotary_embedding_dim=INT",
    ),
    "BiasGelu": ("A:T B:T", 1, ""),
    "BiasSplitGelu": ("X:T bias:T", 1, ""),
    "EmbedLayerNormalization": (
        "input_ids:I segment_ids:I? word:T position:T segment:T? gamma:T beta:T mask:I? "
        "position_ids:I?",
        3,
        "epsilon=FLOAT mask_index_type=INT",
    ),
    "FastGelu": ("X:T bias:T?", 1, ""),
    "FusedMatMul": (
        "A:T B:T",
        1,
        "alpha=FLOAT transA=INT transB=INT transBatchA=INT transBatchB=INT",
    ),
    "Gelu": ("X:T", 1, ""),
    "MatMulNBits": (
        "A:T B:B scales:T zero_points:Z? g_idx:I? bias:T?",
        1,
        "K=INT! N=INT! block_size=INT! bits=INT accuracy_level=INT weight_prepacked=INT",
    ),
    "MultiHeadAttention": (
        "query:T key:T? value:T? bias:T? key_padding_mask:I? attention_bias:T? past_key:T? "
        "past_value:T? past_length:I? cache:I?",
        4,
        "num_heads=INT! mask_filter_value=FLOAT scale=FLOAT unidirectional=INT",
    ),
    "QuickGelu": ("X:T", 1, "alpha=FLOAT"),
    "RotaryEmbedding": (
        "input:T position_ids:I cos_cache:T sin_cache:T",
        1,
        "interleaved=INT is_packed_batching=INT num_heads=INT rotary_embedding_dim=INT scale=FLOAT",
    ),
    "SimplifiedLayerNormalization": ("X:T scale:T", 2, "axis=INT epsilon=FLOAT stash_type=INT"),
    "SkipLayerNormalization": (_NORM, 4, "epsilon=FLOAT"),
    "SkipSimplifiedLayerNormalization": (_SIMPLE, 4, "epsilon=FLOAT"),
}
"""Operator -> inputs, the most outputs, attributes (those with ! are required)."""


@cache
def find_contrib_signature(op: str) -> Signature | None:
    """The signature of an operator of com.microsoft; None if it is not in the table."""
    if op not in _FORMS:
        return None
    inputs, outputs, attributes = _FORMS[op]
    words = [word.split(":") for word in inputs.split()]
    # Each input has a type variable of its own: which types must agree is left to the parts.
    formals = tuple(Formal(name, name, kind.endswith("?")) for name, kind in words)
    kinds = dict(word.rstrip("!").split("=") for word in attributes.split())
    needed = sum(1 for k, f in enumerate(formals) if not all(g.optional for g in formals[k:]))
    return Signature(
        formals,
        tuple(Formal(f"output {k}", "any", True) for k in range(outputs)),
        {name: _TYPES[kind.rstrip("?")] for name, kind in words},
        kinds,
        frozenset(w.split("=")[0] for w in attributes.split() if w.endswith("!")),
        (needed, len(formals)),
        (1, outputs),
    )
