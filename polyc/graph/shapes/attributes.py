"""What the attributes of each operator may be, beyond the types that the standard's schemas say.

One table, which is asked once for each node before any other code looks at it: what is behind may
divide by a stride, or take a string for one of those that it knows. What follows from shapes (an
axis of a tensor, as many pads as dimensions) is said by the shape rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyc.errors import InvalidModel
from polyc.graph.ir import Node

MOST = 2**31 - 1
"""What a size in an attribute may be: with less than this no product of four overflows in isl."""


@dataclass(frozen=True)
class Range:
    """An integer, or each of a list of integers: least to most; `length` is that of the list."""

    least: int
    most: int = MOST
    length: int | None = None

    def admits(self, value: Any) -> bool:
        entries = np.ravel(value).tolist() if isinstance(value, list | tuple) else [value]
        fits = self.length is None or len(entries) == self.length
        return fits and all(self.least <= entry <= self.most for entry in entries)

    def __str__(self) -> str:
        several = f"{self.length} numbers, each " if self.length is not None else ""
        return f"{several}{self.least} to {self.most}"


@dataclass(frozen=True)
class OneOf:
    """One of a few values."""

    choices: tuple[Any, ...]

    def admits(self, value: Any) -> bool:
        return value in self.choices

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.choices))}"


Rules = Mapping[str, Range | OneOf]

SIZE, COUNT = Range(1), Range(0)

_AUTO_PAD = OneOf(("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
_WINDOW: Rules = {"kernel_shape": SIZE, "strides": SIZE, "dilations": SIZE, "pads": COUNT}
_POOL: Rules = {**_WINDOW, "auto_pad": _AUTO_PAD}
_CONV: Rules = {**_POOL, "group": SIZE}
_ROUNDED: Rules = {"round_mode": OneOf(("up", "down", "nearest"))}
_LOSS: Rules = {"reduction": OneOf(("none", "sum", "mean"))}
_SCATTER: Rules = {"reduction": OneOf(("none", "add", "mul", "max", "min"))}
_LAYER: Rules = {
    "hidden_size": SIZE,
    "direction": OneOf(("forward", "reverse", "bidirectional")),
    "layout": OneOf((0, 1)),
}
_SCORED: Rules = {
    "post_transform": OneOf(("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")),
}
_KERNEL: Rules = {"kernel_type": OneOf(("LINEAR", "POLY", "RBF", "SIGMOID"))}
_NODES: Rules = {
    **dict.fromkeys(("nodes_treeids", "nodes_nodeids", "nodes_featureids"), COUNT),
    # A leaf leads nowhere, which is written as any number.
    **dict.fromkeys(("nodes_truenodeids", "nodes_falsenodeids"), Range(-1)),
    "nodes_missing_value_tracks_true": OneOf((0, 1)),
    "nodes_modes": OneOf(
        ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
    ),
}

ATTRIBUTES: Mapping[tuple[str, str], Rules] = {
    ("", "Attention"): {
        "q_num_heads": SIZE,
        "kv_num_heads": SIZE,
        "qk_matmul_output_mode": OneOf((0, 1, 2, 3)),
    },
    ("", "AveragePool"): _POOL,
    ("", "BitShift"): {"direction": OneOf(("LEFT", "RIGHT"))},
    ("", "Cast"): _ROUNDED,
    ("", "CastLike"): _ROUNDED,
    ("", "Col2Im"): _WINDOW,
    ("", "Conv"): _CONV,
    ("", "ConvInteger"): _CONV,
    ("", "ConvTranspose"): {**_CONV, "output_padding": COUNT, "output_shape": SIZE},
    ("", "DeformConv"): {**_WINDOW, "group": SIZE, "offset_group": SIZE},
    ("", "DepthToSpace"): {"blocksize": Range(1, 2**15), "mode": OneOf(("DCR", "CRD"))},
    ("", "DequantizeLinear"): {"block_size": COUNT},
    ("", "GRU"): _LAYER,
    ("", "Gelu"): {"approximate": OneOf(("none", "tanh"))},
    ("", "GlobalLpPool"): {"p": SIZE},
    ("", "GridSample"): {
        "mode": OneOf(("linear", "nearest", "cubic")),
        "padding_mode": OneOf(("zeros", "border", "reflection")),
    },
    ("", "GroupNormalization"): {"num_groups": SIZE},
    ("", "LRN"): {"size": SIZE},
    ("", "LSTM"): _LAYER,
    ("", "LinearAttention"): {"q_num_heads": SIZE, "kv_num_heads": SIZE, "chunk_size": SIZE},
    ("", "LpNormalization"): {"p": OneOf((1, 2))},
    ("", "LpPool"): {**_POOL, "p": SIZE},
    ("", "MaxPool"): {**_POOL, "storage_order": OneOf((0, 1))},
    ("", "MaxRoiPool"): {"pooled_shape": Range(1, 2**16, length=2)},
    ("", "MaxUnpool"): _WINDOW,
    ("", "Multinomial"): {"sample_size": SIZE},
    ("", "NegativeLogLikelihoodLoss"): _LOSS,
    ("", "Pad"): {"mode": OneOf(("constant", "reflect", "edge", "wrap"))},
    ("", "QLinearConv"): _CONV,
    ("", "QuantizeLinear"): {"block_size": COUNT},
    ("", "RNN"): _LAYER,
    ("", "RandomNormal"): {"shape": COUNT},
    ("", "RandomUniform"): {"shape": COUNT},
    ("", "Resize"): {
        "mode": OneOf(("nearest", "linear", "cubic")),
        "keep_aspect_ratio_policy": OneOf(("stretch", "not_larger", "not_smaller")),
        "nearest_mode": OneOf(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
        "coordinate_transformation_mode": OneOf(
            (
                "half_pixel",
                "half_pixel_symmetric",
                "pytorch_half_pixel",
                "align_corners",
                "asymmetric",
                "tf_crop_and_resize",
                "tf_half_pixel_for_nn",  # of opset 11; tf2onnx and runtimes know it later as well
            )
        ),
    },
    ("", "RoiAlign"): {
        "output_height": Range(1, 2**16),
        "output_width": Range(1, 2**16),
        "sampling_ratio": Range(0, 2**10),
        "mode": OneOf(("avg", "max")),
        "coordinate_transformation_mode": OneOf(("half_pixel", "output_half_pixel")),
    },
    ("", "RotaryEmbedding"): {"num_heads": COUNT, "rotary_embedding_dim": COUNT},
    ("", "Scan"): {
        "num_scan_inputs": COUNT,
        "scan_input_directions": OneOf((0, 1)),
        "scan_output_directions": OneOf((0, 1)),
    },
    ("", "ScatterElements"): _SCATTER,
    ("", "ScatterND"): _SCATTER,
    ("", "SoftmaxCrossEntropyLoss"): _LOSS,
    ("", "SpaceToDepth"): {"blocksize": Range(1, 2**15), "mode": OneOf(("DCR", "CRD"))},
    ("", "Split"): {"num_outputs": SIZE},
    ("", "TensorScatter"): {"mode": OneOf(("linear", "circular"))},
    ("", "TfIdfVectorizer"): {
        "mode": OneOf(("TF", "IDF", "TFIDF")),
        "min_gram_length": SIZE,
        "max_gram_length": SIZE,
        "max_skip_count": Range(0, 2**16),
        "ngram_counts": COUNT,
        "ngram_indexes": Range(0, 2**24),
    },
    ("ai.onnx.ml", "FeatureVectorizer"): {"inputdimensions": Range(1, 2**24)},
    ("ai.onnx.ml", "LinearClassifier"): {**_SCORED, "multi_class": OneOf((0, 1))},
    ("ai.onnx.ml", "LinearRegressor"): {**_SCORED, "targets": Range(1, 2**16)},
    ("ai.onnx.ml", "Normalizer"): {"norm": OneOf(("MAX", "L1", "L2"))},
    ("ai.onnx.ml", "OneHotEncoder"): {"zeros": OneOf((0, 1))},
    ("ai.onnx.ml", "SVMClassifier"): {**_SCORED, **_KERNEL, "vectors_per_class": COUNT},
    ("ai.onnx.ml", "SVMRegressor"): {**_SCORED, **_KERNEL, "n_supports": COUNT},
    ("ai.onnx.ml", "TreeEnsemble"): {
        "n_targets": Range(1, 2**16),
        "aggregate_function": Range(0, 3),
        "post_transform": Range(0, 4),
        **dict.fromkeys(("tree_roots", "leaf_targetids"), COUNT),
        **dict.fromkeys(
            (f"nodes_{n}" for n in ("featureids", "truenodeids", "falsenodeids")), COUNT
        ),
    },
    ("ai.onnx.ml", "TreeEnsembleClassifier"): {
        **_SCORED,
        **_NODES,
        **dict.fromkeys(("class_ids", "class_nodeids", "class_treeids"), COUNT),
    },
    ("ai.onnx.ml", "TreeEnsembleRegressor"): {
        **_SCORED,
        **_NODES,
        "aggregate_function": OneOf(("AVERAGE", "SUM", "MIN", "MAX")),
        "n_targets": Range(1, 2**16),
        **dict.fromkeys(("target_ids", "target_nodeids", "target_treeids"), COUNT),
    },
    ("ai.onnx.preview.training", "Momentum"): {"mode": OneOf(("standard", "nesterov"))},
    ("com.microsoft", "Attention"): {"num_heads": SIZE, "qkv_hidden_sizes": Range(1, length=3)},
    ("com.microsoft", "GroupNorm"): {"groups": SIZE},
    ("com.microsoft", "GroupQueryAttention"): {"num_heads": SIZE, "kv_num_heads": SIZE},
    ("com.microsoft", "MatMulBnb4"): {"K": SIZE, "N": SIZE, "block_size": SIZE},
    ("com.microsoft", "MatMulNBits"): {"K": SIZE, "N": SIZE, "block_size": SIZE, "bits": SIZE},
    ("com.microsoft", "MultiHeadAttention"): {"num_heads": SIZE},
    ("com.microsoft", "QAttention"): {"num_heads": SIZE},
    ("com.microsoft", "SkipGroupNorm"): {"groups": SIZE},
    ("com.microsoft", "RotaryEmbedding"): {"num_heads": COUNT, "rotary_embedding_dim": COUNT},
}
"""(domain, operator) -> what its attributes may be, by name; in newest forms."""


def check_ranges(node: Node) -> None:
    """Raise `InvalidModel` for an attribute that is outside of what the table says.

    The kinds of attributes have been checked (`signature.check_attributes`).
    """
    for name, rule in ATTRIBUTES.get((node.domain, node.op), {}).items():
        value = node.attributes.get(name)
        entries = value if isinstance(rule, OneOf) and isinstance(value, list | tuple) else (value,)
        for entry in entries:
            if entry is not None and not rule.admits(entry):
                raise InvalidModel(
                    f"{node.op} {node.name!r}: attribute {name} must be {rule}, got "
                    f"{str(value)[:80]}; correct it"
                )
