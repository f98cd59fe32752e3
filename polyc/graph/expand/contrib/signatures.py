"""What calls of com.microsoft's operators must look like; the onnx package has no schemas of them.

    "A:T B:B scales:T g_idx:I?"    T a float, B bytes, I int32 or int64; ? optional, * many

Read from ONNX Runtime's docs/ContribOperators.md. An attribute that is not listed is refused: it
may mean that something else is computed.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from polyc.graph.shapes.signature import Formal, Signature
from polyc.types.element_types import BFLOAT16, COMPILED, FLOAT16, FLOAT32, FLOAT64, UINT8, named

_FLOATS = frozenset({FLOAT16, BFLOAT16, FLOAT32, FLOAT64})
_INTEGERS = frozenset(map(np.dtype, (np.int32, np.int64)))
_BYTES = frozenset(map(np.dtype, (np.int8, np.uint8)))
_TYPES = {
    "T": _FLOATS,
    "I": _INTEGERS,
    "B": frozenset({np.dtype(np.uint8)}),
    "Q": _BYTES,
    "M": frozenset({np.dtype(bool)}),
    "P": _BYTES | {FLOAT32},
    "A": COMPILED,
    "W": frozenset({UINT8, named("int4"), named("uint4")}),
    "Z": _FLOATS | {np.dtype(np.uint8)},
}

MANY = 2**31 - 1
"""The most inputs of an operator that takes any number, as the onnx package has it."""

_NORM = "input:T skip:T gamma:T beta:T? bias:T?"
_SIMPLE = "input:T skip:T gamma:T bias:T?"
_ONE = "X:Q X_scale:T X_zero_point:Q? Y_scale:T Y_zero_point:Q?"
_TWO = "A:Q A_scale:T A_zero_point:Q? B:Q B_scale:T B_zero_point:Q? C_scale:T C_zero_point:Q?"
_CONV = "auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS pads=INTS strides=INTS"
_GEMM = "alpha=FLOAT beta=FLOAT transA=INT transB=INT"
_GROUPS = "activation=INT! channels_last=INT epsilon=FLOAT groups=INT!"
_WINDOW = "kernel_shape=INTS! pads=INTS strides=INTS auto_pad=STRING ceil_mode=INT"

_FORMS = {
    "Attention": (
        "input:T weights:T bias:T? mask_index:I? past:T? attention_bias:T? past_length:I?",
        2,
        "num_heads=INT! unidirectional=INT qkv_hidden_sizes=INTS do_rotary=INT scale=FLOAT "
        "mask_filter_value=FLOAT past_present_share_buffer=INT rotary_embedding_dim=INT",
    ),
    "BiasAdd": ("X:T bias:T skip:T", 1, ""),
    "BiasGelu": ("A:T B:T", 1, ""),
    "BiasSplitGelu": ("X:T bias:T", 1, ""),
    "CDist": ("A:T B:T", 1, "metric=STRING"),
    "DequantizeLinear": ("x:A x_scale:T x_zero_point:A?", 1, "axis=INT"),
    "DynamicQuantizeMatMul": ("A:T B:Q b_scale:T b_zero_point:Q? bias:T?", 1, ""),
    "EmbedLayerNormalization": (
        "input_ids:I segment_ids:I? word:T position:T segment:T? gamma:T beta:T mask:I? "
        "position_ids:I?",
        3,
        "epsilon=FLOAT mask_index_type=INT",
    ),
    "ExpandDims": ("X:A axis:I", 1, ""),
    "FastGelu": ("X:T bias:T?", 1, ""),
    "FusedConv": (
        "X:T W:T B:T? Z:T?",
        1,
        f"activation=STRING activation_params=FLOATS {_CONV}",
    ),
    "FusedGemm": (
        "A:T B:T C:T?",
        1,
        f"activation=STRING activation_alpha=FLOAT activation_beta=FLOAT activation_gamma=FLOAT "
        f"{_GEMM}",
    ),
    "FusedMatMul": (
        "A:T B:T",
        1,
        "alpha=FLOAT transA=INT transB=INT transBatchA=INT transBatchB=INT",
    ),
    "GatherBlockQuantized": (
        "data:W indices:I scales:T zero_points:W?",
        1,
        "bits=INT block_size=INT gather_axis=INT quantize_axis=INT",
    ),
    "GatherND": ("data:A indices:I", 1, ""),
    "Gelu": ("X:T", 1, ""),
    "GridSample": ("X:A Grid:T", 1, "align_corners=INT mode=STRING padding_mode=STRING"),
    "GroupNorm": ("X:T gamma:T beta:T", 1, _GROUPS),
    "GroupQueryAttention": (
        "query:T key:T? value:T? past_key:T? past_value:T? seqlens_k:I total_sequence_length:I "
        "cos_cache:T? sin_cache:T? position_ids:I? attention_bias:T? head_sink:T? k_scale:T? "
        "v_scale:T? q_norm_weight:T? k_norm_weight:T? query_seqlens:I?",
        3,
        "num_heads=INT! kv_num_heads=INT! do_rotary=INT rotary_interleaved=INT scale=FLOAT "
        "softcap=FLOAT local_window_size=INT causal=INT smooth_softmax=INT qk_output=INT "
        "sliding_window_cache=INT k_quant_type=STRING v_quant_type=STRING kv_cache_bit_width=INT "
        "qk_norm_epsilon=FLOAT q_norm_epsilon=FLOAT k_norm_epsilon=FLOAT",
    ),
    "LayerNormalization": ("X:T scale:T B:T?", 3, "axis=INT epsilon=FLOAT stash_type=INT"),
    "MatMulBnb4": (
        "A:T B:B absmax:T",
        1,
        "K=INT! N=INT! block_size=INT! quant_type=INT! training_mode=INT transB=INT",
    ),
    "MatMulIntegerToFloat": (
        "A:Q B:Q a_scale:T b_scale:T a_zero_point:Q? b_zero_point:Q? bias:T?",
        1,
        "",
    ),
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
    "NhwcConv": ("X:T W:T B:T?", 1, _CONV),
    "NhwcMaxPool": ("x:Q", 1, f"{_WINDOW} dilations=INTS"),
    "Pad": ("data:T pads:I value:T?", 1, "mode=STRING"),
    "QAttention": (
        "input:Q weight:Q bias:T input_scale:T weight_scale:T mask_index:I? input_zero_point:Q? "
        "weight_zero_point:Q? past:T?",
        2,
        "num_heads=INT! unidirectional=INT do_rotary=INT scale=FLOAT mask_filter_value=FLOAT "
        "past_present_share_buffer=INT",
    ),
    "QEmbedLayerNormalization": (
        "input_ids:I segment_ids:I? word:Q position:Q segment:Q? gamma:Q beta:Q mask:I? "
        "word_scale:T position_scale:T segment_scale:T? gamma_scale:T beta_scale:T "
        "word_zero:Q position_zero:Q segment_zero:Q? gamma_zero:Q beta_zero:Q",
        2,
        "epsilon=FLOAT",
    ),
    "QGemm": (
        "A:Q a_scale:T a_zero_point:Q B:Q b_scale:T b_zero_point:Q C:I? y_scale:T? y_zero_point:Q?",
        1,
        "alpha=FLOAT transA=INT transB=INT",
    ),
    "QLinearAdd": (_TWO, 1, ""),
    "QLinearAveragePool": (_ONE, 1, f"{_WINDOW} count_include_pad=INT channels_last=INT"),
    "QLinearConcat": ("Y_scale:T Y_zero_point:Q inputs:P*", 1, "axis=INT!"),
    "QLinearGlobalAveragePool": (_ONE, 1, "channels_last=INT"),
    "QLinearLeakyRelu": (_ONE, 1, "alpha=FLOAT"),
    "QLinearMul": (_TWO, 1, ""),
    "QLinearReduceMean": (_ONE, 1, "axes=INTS! keepdims=INT!"),
    "QLinearSigmoid": (_ONE, 1, ""),
    "QLinearSoftmax": (_ONE, 1, "axis=INT opset=INT!"),
    "QLinearWhere": (
        "condition:M X:Q x_scale:T x_zero_point:Q Y:Q y_scale:T y_zero_point:Q z_scale:T "
        "z_zero_point:Q",
        1,
        "",
    ),
    "QuantizeLinear": ("x:T y_scale:T y_zero_point:A?", 1, "axis=INT"),
    "QuickGelu": ("X:T", 1, "alpha=FLOAT"),
    "Range": ("start:A limit:A delta:A?", 1, ""),
    "RotaryEmbedding": (
        "input:T position_ids:I cos_cache:T sin_cache:T",
        1,
        "interleaved=INT is_packed_batching=INT num_heads=INT rotary_embedding_dim=INT scale=FLOAT",
    ),
    "SimplifiedLayerNormalization": ("X:T scale:T", 2, "axis=INT epsilon=FLOAT stash_type=INT"),
    "SkipGroupNorm": ("X:T gamma:T beta:T skip:T bias:T?", 2, _GROUPS),
    "SkipLayerNormalization": (_NORM, 4, "epsilon=FLOAT"),
    "SkipSimplifiedLayerNormalization": (_SIMPLE, 4, "epsilon=FLOAT"),
    "TransposeMatMul": ("A:T B:T", 1, "alpha=FLOAT transA=INT transB=INT"),
    "Trilu": ("X:A k:I?", 1, "upper=INT"),
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
    formals = tuple(
        Formal(name, name, kind.endswith("?"), kind.endswith("*")) for name, kind in words
    )
    kinds = dict(word.rstrip("!").split("=") for word in attributes.split())
    needed = sum(1 for k, f in enumerate(formals) if not all(g.optional for g in formals[k:]))
    most = MANY if inputs.endswith("*") else len(formals)
    return Signature(
        formals,
        tuple(Formal(f"output {k}", "any", True) for k in range(outputs)),
        {name: _TYPES[kind.rstrip("?*")] for name, kind in words},
        kinds,
        frozenset(w.split("=")[0] for w in attributes.split() if w.endswith("!")),
        (needed, most),
        (1, outputs),
    )
