"""Operators with open sizes, as text, and calls that they are right for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

RNG = np.random.default_rng(41)

Draw = Callable[[tuple[int, ...], Mapping[str, int]], np.ndarray]
"""(shape, sizes of the call) -> an input."""


@dataclass(frozen=True)
class Case:
    """One model of few nodes: `takes` and `gives` are its inputs and outputs, `body` its nodes.

    calls: sizes by name; draws: how inputs are made that are not normally distributed; by: who says
    what is right, "ort" or "onnx"; is_long: its mechanisms are those of others, and it takes long.
    """

    name: str
    takes: str
    body: str
    calls: tuple[Mapping[str, int], ...]
    gives: str = "float[] y"
    draws: Mapping[str, Draw] = field(default_factory=dict)
    by: str = "ort"
    opset: int = 21
    is_long: bool = False


def calls(names: str, *rows: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    """calls("n h", (1, 2), (3, 4))   ->   {n: 1, h: 2}, {n: 3, h: 4}"""
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


def below(most: str | int, least: int = 0, dtype: type = np.int64) -> Draw:
    """Whole numbers under a number, or under a size."""

    def draw(shape: tuple[int, ...], sizes: Mapping[str, int]) -> np.ndarray:
        end = sizes[most] if isinstance(most, str) else most
        return RNG.integers(least, max(end, least + 1), shape).astype(dtype)

    return draw


def seen(shape: tuple[int, ...], sizes: Mapping[str, int]) -> np.ndarray:
    """Which keys are seen, the first one always.

    Where none is, ONNX Runtime adds -10,000 to each score, of which 1e-3 is left in float32.
    """
    mask = RNG.integers(0, 2, shape).astype(np.int32)
    mask[:, 0] = 1
    return mask


def distinct(shape: tuple[int, ...], end: int) -> np.ndarray:
    """Whole numbers under `end`, no two equal along dimension 1."""
    orders = np.argsort(RNG.random((shape[0], end, *shape[2:])), axis=1)
    return orders[:, : shape[1]]


TRANSFORMERS = (
    Case(
        "Attention of com.microsoft, causal, lengths",
        "float[b, n, 12] x, float[12, 36] w, float[36] bias, int32[b] mask",
        """y = com.microsoft.Attention<num_heads = 3, unidirectional = 1,
            mask_filter_value = -100.0>(x, w, bias, mask)""",
        calls("b n", (1, 1), (2, 7), (3, 16)),
        draws={"mask": below("n", 1, np.int32)},
        is_long=True,
    ),
    Case(
        "Attention of com.microsoft, mask and past",
        "float[b, n, 12] x, float[12, 36] w, float[36] bias, int32[b, t] mask, "
        "float[2, b, 3, m, 4] past",
        "y, present = com.microsoft.Attention<num_heads = 3>(x, w, bias, mask, past)",
        calls("b n m t", (1, 1, 1, 2), (2, 5, 3, 8), (3, 16, 1, 17)),
        gives="float[] y, float[] present",
        draws={"mask": seen},
        is_long=True,
    ),
    Case(
        "MultiHeadAttention",
        "float[b, n, 12] q, float[b, m, 12] k, float[b, m, 18] v, float[42] bias, "
        "int32[b, m] mask, float[b, 3, n, m] added",
        "y = com.microsoft.MultiHeadAttention<num_heads = 3>(q, k, v, bias, mask, added)",
        calls("b n m", (1, 1, 1), (2, 5, 3), (3, 8, 17)),
        draws={"mask": seen},
        is_long=True,
    ),
    Case(
        "MultiHeadAttention, past",
        "float[b, n, 12] q, float[b, n, 12] k, float[b, n, 12] v, float[b, 3, m, 4] pk, "
        "float[b, 3, m, 4] pv",
        """y, a, c = com.microsoft.MultiHeadAttention<num_heads = 3, unidirectional = 1>
            (q, k, v, , , , pk, pv)""",
        calls("b n m", (1, 1, 1), (2, 5, 3), (3, 8, 17)),
        gives="float[] y, float[] a, float[] c",
        is_long=True,
    ),
    Case(
        "RotaryEmbedding of com.microsoft",
        "float[b, n, 12] x, int64[1] at, float[40, 2] c, float[40, 2] s",
        "y = com.microsoft.RotaryEmbedding(x, at, c, s)",
        calls("b n", (1, 1), (2, 5), (3, 17)),
        draws={"at": below(8)},
        is_long=True,
    ),
    Case(
        "EmbedLayerNormalization",
        """int32[b, n] ids, int32[b, n] kinds, float[30, 8] words, float[20, 8] places,
        float[2, 8] table, float[8] g, float[8] beta""",
        """y, lengths = com.microsoft.EmbedLayerNormalization
            (ids, kinds, words, places, table, g, beta)""",
        calls("b n", (1, 1), (2, 5), (3, 17)),
        gives="float[] y, int32[] lengths",
        draws={"ids": below(30, 0, np.int32), "kinds": below(2, 0, np.int32)},
        is_long=True,
    ),
)

STANDARD = (
    Case(
        "Attention of the standard, three dimensions, causal, and a mask",
        "float[b, n, 12] q, float[b, m, 12] k, float[b, m, 18] v, float[n, m] mask",
        """y = Attention<q_num_heads = 3, kv_num_heads = 3, is_causal = 1>(q, k, v)
        z = Attention<q_num_heads = 3, kv_num_heads = 3>(q, k, v, mask)""",
        calls("b n m", (1, 1, 1), (2, 5, 3), (3, 8, 17)),
        gives="float[] y, float[] z",
        by="onnx",
        opset=23,
        is_long=True,
    ),
    Case(
        "Attention of the standard, four dimensions, groups, past",
        "float[b, 4, n, 6] q, float[b, 2, n, 6] k, float[b, 2, n, 5] v, float[b, 2, p, 6] pk,"
        "float[b, 2, p, 5] pv",
        "y, a, c = Attention<is_causal = 1, softcap = 2.0>(q, k, v, , pk, pv)",
        calls("b n p", (1, 1, 1), (2, 5, 3), (3, 8, 17)),
        gives="float[] y, float[] a, float[] c",
        by="onnx",
        opset=23,
        is_long=True,
    ),
    Case(
        "RotaryEmbedding, LayerNormalization, GroupNormalization",
        "float[b, n, 12] x, float[40, 2] c, float[40, 2] s, int64[b, n] at, float[12] g,"
        "float[b, 6, h, n] image, float[6] w",
        """r = RotaryEmbedding<num_heads = 3>(x, c, s, at)
        l = LayerNormalization(x, g, g)
        q = GroupNormalization<num_groups = 3>(image, w, w)""",
        calls("b n h", (1, 1, 1), (2, 5, 3), (3, 8, 17)),
        gives="float[] r, float[] l, float[] q",
        draws={"at": below(40)},
        by="onnx",
        opset=23,
        is_long=True,
    ),
    Case(
        "LSTM and GRU of sequences of any length, some of them shorter",
        "float[n, b, 5] x, float[2, 16, 5] w, float[2, 16, 4] r, int32[b] lengths,"
        "float[1, 12, 5] wg, float[1, 12, 4] rg",
        """y, h, c = LSTM<hidden_size = 4, direction = "bidirectional">(x, w, r, , lengths)
        z = GRU<hidden_size = 4, linear_before_reset = 1>(x, wg, rg)""",
        calls("n b", (1, 1), (7, 2), (16, 3)),
        gives="float[] y, float[] h, float[] c, float[] z",
        draws={"lengths": below("n", 1, np.int32)},
        is_long=True,
    ),
    Case(
        "Rows quantised and restored, blocks as well",
        "float[n, 6] x, float[n] s, float[n, m] z, float[n, k] t",
        """q = QuantizeLinear<axis = 0, output_dtype = 3>(x, s)
        y = DequantizeLinear<axis = 0>(q, s)
        p = QuantizeLinear<axis = 1, block_size = 3, output_dtype = 3>(z, t)
        u = DequantizeLinear<axis = 1, block_size = 3>(p, t)""",
        calls("n m k", (1, 3, 1), (5, 6, 2), (16, 24, 8)),
        gives="float[] y, float[] u",
        draws={
            "s": lambda shape, sizes: RNG.uniform(0.1, 1, shape).astype(np.float32),
            "t": lambda shape, sizes: RNG.uniform(0.1, 1, shape).astype(np.float32),
        },
    ),
    Case(
        "Split in parts that are not equal",
        "float[n, 3] x",
        "a, c, d = Split<num_outputs = 3>(x)",
        calls("n", (3,), (7,), (17,)),
        gives="float[] a, float[] c, float[] d",
    ),
)

SIGNALS = (
    Case(
        "STFT of [batch, length], as PyTorch writes it",
        "float[b, n] x, float[12] w",
        """step = Constant<value_int = 5>()
        y = STFT<onesided = 1>(x, step, w)""",
        calls("b n", (1, 12), (2, 31), (3, 64)),
        is_long=True,
    ),
    Case(
        "STFT of a long frame, and of complex numbers",
        "float[b, n, 1] x, float[b, n, 2] z",
        """step = Constant<value_int = 7>()
        size = Constant<value_int = 6>()
        long = Constant<value_int = 96>()
        y = STFT(x, step, , long)
        t = STFT<onesided = 0>(z, step, , size)""",
        calls("b n", (1, 96), (2, 111), (3, 130)),
        gives="float[] y, float[] t",
        is_long=True,
    ),
    Case(
        "DFT of rows of known length, and back",
        "float[b, n, 12, 1] x",
        """half = DFT<onesided = 1, axis = 2>(x)
        y = DFT<inverse = 1, axis = 2>(half)""",
        calls("b n", (1, 1), (2, 3), (3, 8)),
        gives="float[] half, float[] y",
        by="onnx",
        opset=17,
        is_long=True,
    ),
)

IMAGES = (
    Case(
        "Pad, around and by its ends",
        "float[n, 2, h, w] x",
        """pads = Constant<value_ints = [0, 0, 1, 2, 0, 0, 3, 1]>()
        y = Pad<mode = "wrap">(x, pads)
        z = Pad<mode = "reflect">(x, pads)
        t = Pad<mode = "edge">(x, pads)""",
        calls("n h w", (1, 4, 4), (2, 5, 7), (3, 16, 9)),
        gives="float[] y, float[] z, float[] t",
        is_long=True,
    ),
    Case(
        "AffineGrid of an image's size, and what it samples",
        "float[n, 2, h, w] x, float[n, 2, 3] theta",
        """size = Shape(x)
        grid = AffineGrid(theta, size)
        ends = AffineGrid<align_corners = 1>(theta, size)
        y = GridSample(x, grid)""",
        calls("n h w", (1, 1, 1), (2, 5, 7), (3, 16, 9)),
        gives="float[] grid, float[] ends, float[] y",
        by="onnx",
        is_long=True,
    ),
    *(
        Case(
            f"GridSample, {mode}, {padding}, {corners}",
            "float[n, 2, h, w] x, float[n, p, q, 2] grid",
            f"""y = GridSample<mode = "{mode}", padding_mode = "{padding}",
                align_corners = {corners}>(x, grid)""",
            calls("n h w p q", (1, least, least, 1, 1), (2, 5, 7, 4, 9), (3, 8, 4, 3, 17)),
            by="onnx",
            is_long=mode == "cubic" or padding == "reflection",
        )
        for mode, padding, corners, least in (
            ("linear", "zeros", 0, 1),
            ("nearest", "border", 1, 1),
            ("cubic", "reflection", 0, 1),
            ("linear", "reflection", 1, 2),
        )
    ),
)


RESIZES = (
    Case(
        "Resize, antialiased, by numbers",
        "float[n, 2, h, w] x",
        """scales = Constant<value_floats = [0.6, 0.75]>()
        y = Resize<mode = "linear", antialias = 1, axes = [2, 3]>(x, , scales)
        z = Resize<mode = "cubic", antialias = 1, axes = [2, 3]>(x, , scales)""",
        calls("n h w", (1, 2, 2), (2, 7, 9), (3, 16, 33)),
        gives="float[] y, float[] z",
        by="onnx",
        is_long=True,
    ),
    Case(
        "Resize, antialiased, of any image to one size",
        "float[n, 2, h, w] x",
        """sizes = Constant<value_ints = [5, 3]>()
        y = Resize<mode = "linear", antialias = 1, axes = [2, 3]>(x, , , sizes)
        z = Resize<mode = "cubic", antialias = 1, axes = [2, 3], exclude_outside = 1,
            coordinate_transformation_mode = "align_corners">(x, , , sizes)""",
        calls("n h w", (1, 3, 1), (2, 7, 9), (3, 16, 33)),
        gives="float[] y, float[] z",
        by="onnx",
        is_long=True,
    ),
    Case(
        "Resize, antialiased, of one table to the size of any image",
        "float[1, 2, 7, 9] x, float[n, 2, h, w] image",
        """sizes = Shape<start = 2>(image)
        y = Resize<mode = "cubic", antialias = 1, axes = [2, 3]>(x, , , sizes)""",
        calls("n h w", (1, 1, 1), (1, 5, 7), (1, 16, 9)),
        by="onnx",
        is_long=True,
    ),
    Case(
        "Resize, cropped",
        "float[n, 2, h, w] x",
        """roi = Constant<value_floats = [0.11, -0.2, 0.8, 1.3]>()
        sizes = Constant<value_ints = [5, 4]>()
        y = Resize<mode = "linear", axes = [2, 3], extrapolation_value = 7.0,
            coordinate_transformation_mode = "tf_crop_and_resize">(x, roi, , sizes)
        z = Resize<mode = "nearest", axes = [2, 3], extrapolation_value = 7.0,
            coordinate_transformation_mode = "tf_crop_and_resize">(x, roi, , sizes)""",
        calls("n h w", (1, 1, 1), (2, 7, 9), (3, 16, 33)),
        gives="float[] y, float[] z",
        by="onnx",
        is_long=True,
    ),
    Case(
        "Resize, without what is outside",
        "float[n, 2, h, w] x",
        """scales = Constant<value_floats = [2.0, 1.5]>()
        y = Resize<mode = "cubic", exclude_outside = 1, axes = [2, 3]>(x, , scales)""",
        calls("n h w", (1, 1, 1), (2, 7, 9), (3, 16, 33)),
        by="onnx",
        is_long=True,
    ),
    Case(
        "Resize by the quotient of two sizes",
        "float[n, 2, h, w] x, float[n, 2, p, q] z",
        """old = Shape<start = 2>(x)
        new = Shape<start = 2>(z)
        below = Cast<to = 1>(old)
        above = Cast<to = 1>(new)
        ratio = Div(above, below)
        one = Constant<value_floats = [1.0, 1.0]>()
        scales = Concat<axis = 0>(one, ratio)
        y = Resize<mode = "linear">(x, , scales)
        both = Add(y, z)""",
        calls("n h w p q", (1, 1, 1, 1, 1), (2, 4, 8, 8, 10), (3, 16, 5, 6, 25)),
        gives="float[] both",
        by="onnx",
        is_long=True,
    ),
)

WINDOWS = (
    Case(
        "MaxPool with indices, and MaxUnpool by them",
        "float[n, 2, h, w] x",
        """y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
        z = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(y, i)
        s, j = MaxPool<kernel_shape = [3, 2], pads = [1, 0, 1, 1], storage_order = 1>(x)""",
        calls("n h w", (1, 2, 2), (2, 6, 8), (3, 16, 10)),
        gives="float[] y, int64[] i, float[] z, float[] s, int64[] j",
        is_long=True,
    ),
    Case(
        "MaxUnpool to more than windows give",
        "float[n, 2, h, w] x",
        """y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
        more = Constant<value_ints = [0, 0, 1, 2]>()
        shape = Shape(x)
        size = Add(shape, more)
        z = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(y, i, size)""",
        calls("n h w", (1, 2, 2), (2, 6, 8), (3, 16, 10)),
        gives="float[] z",
        by="onnx",
        is_long=True,
    ),
    Case(
        "RoiAlign, means and maxima",
        "float[n, 2, h, w] x, float[r, 4] rois, int64[r] image",
        """y = RoiAlign<output_height = 3, output_width = 2, sampling_ratio = 2,
            spatial_scale = 0.5>(x, rois, image)
        z = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 1, mode = "max">
            (x, rois, image)""",
        calls("n h w r", (1, 1, 1, 1), (2, 7, 9, 5), (3, 16, 8, 17)),
        gives="float[] y, float[] z",
        draws={
            "rois": lambda shape, sizes: RNG.uniform(-2, 20, shape).astype(np.float32),
            "image": below("n"),
        },
        is_long=True,
    ),
    Case(
        "MaxRoiPool",
        "float[n, 2, h, w] x, float[r, 5] rois",
        "y = MaxRoiPool<pooled_shape = [2, 3]>(x, rois)",
        calls("n h w r", (1, 1, 1, 1), (2, 7, 9, 5), (3, 16, 8, 17)),
        draws={
            "rois": lambda shape, sizes: (
                np.sort(RNG.integers(0, 1, shape)).astype(np.float32) + np.float32([0, 0, 0, 4, 3])
            )
        },
        is_long=True,
    ),
    Case(
        "DeformConv",
        "float[n, 4, h, w] x, float[6, 2, 3, 3] k, float[n, 36, h, w] offset, float[6] b,"
        "float[n, 18, h, w] mask",
        "y = DeformConv<group = 2, offset_group = 2, pads = [1, 1, 1, 1]>(x, k, offset, b, mask)",
        calls("n h w", (1, 1, 1), (2, 5, 7), (3, 9, 4)),
        is_long=True,
    ),
    Case(
        "Col2Im of any number of images",
        "float[n, 12, 20] x",
        """image = Constant<value_ints = [5, 6]>()
        block = Constant<value_ints = [2, 2]>()
        y = Col2Im(x, image, block)""",
        calls("n", (1,), (2,), (5,)),
    ),
)

MOVEMENT = (
    Case(
        "TopK of a number, and of as many as a size says",
        "float[b, n] x",
        """five = Constant<value_ints = [5]>()
        y, i = TopK(x, five)
        all = Shape<start = 1>(x)
        z, j = TopK<largest = 0>(x, all)""",
        calls("b n", (1, 5), (2, 7), (3, 40)),
        gives="float[] y, int64[] i, float[] z, int64[] j",
        is_long=True,
    ),
    Case(
        "ScatterElements, fewer along one axis",
        "float[b, n, m] x, int64[b, k, l] i, float[b, k, l] u",
        """y = ScatterElements<axis = 1>(x, i, u)
        s = ScatterElements<axis = 1, reduction = "add">(x, i, u)""",
        calls("b n m k l", (1, 1, 1, 1, 1), (2, 9, 7, 3, 5), (3, 40, 17, 1, 17)),
        gives="float[] y, float[] s",
        draws={"i": lambda shape, sizes: distinct(shape, sizes["n"])},
        is_long=True,
    ),
    Case(
        "ScatterND of elements, and of rows",
        "float[n, m, 3] x, int64[k, l, 2] i, float[k, l, 3] u, int64[k, 1] j, float[k, m, 3] v",
        """y = ScatterND<reduction = "add">(x, i, u)
        s = ScatterND(x, j, v)""",
        calls("n m k l", (1, 1, 1, 1), (9, 7, 3, 5), (40, 17, 2, 17)),
        gives="float[] y, float[] s",
        draws={
            "i": lambda shape, sizes: np.stack(
                [RNG.integers(0, sizes[d], shape[:-1]) for d in "nm"], -1
            ),
            "j": lambda shape, sizes: RNG.permutation(sizes["n"])[: shape[0], None],
        },
        is_long=True,
    ),
    Case(
        "GatherElements and GatherND",
        "float[b, n, m] x, int64[a, k, m] i, int64[b, k, 1] j",
        """y = GatherElements<axis = 1>(x, i)
        s = GatherND<batch_dims = 1>(x, j)""",
        calls("b n m a k", (1, 1, 1, 1, 1), (2, 9, 7, 1, 5), (3, 40, 17, 3, 17)),
        gives="float[] y, float[] s",
        draws={"i": below("n"), "j": below("n")},
    ),
    Case(
        "TensorScatter",
        "float[b, h, n, 4] x, float[b, h, k, 4] u, int64[b] at",
        """y = TensorScatter(x, u, at)
        s = TensorScatter<mode = "circular">(x, u, at)""",
        calls("b h n k", (1, 1, 3, 1), (2, 3, 9, 5), (3, 2, 40, 17)),
        gives="float[] y, float[] s",
        draws={"at": below(3)},
        by="onnx",
        opset=24,
        is_long=True,
    ),
    Case(
        "Hardmax, OneHot, Trilu, EyeLike, CumSum, Tile, Expand",
        "float[b, n] x, int64[n] i",
        """y = Hardmax<axis = -1>(x)
        shape = Shape(x)
        size = Shape<start = 1>(x)
        values = Constant<value_floats = [0.0, 2.0]>()
        one = OneHot(i, size, values)
        triangle = Trilu(x)
        eye = EyeLike(x)
        axis = Constant<value_int = 1>()
        axis0 = Constant<value_int = 0>()
        sum = CumSum<reverse = 1>(x, axis)
        tiled = Tile(x, shape)
        first = Gather<axis = 0>(x, axis0)
        wide = Expand(first, shape)""",
        calls("b n", (1, 1), (2, 9), (3, 17)),
        gives="float[] y, float[] one, float[] triangle, float[] eye, float[] sum, float[] tiled,"
        "float[] wide",
        draws={"i": below("n")},
    ),
    Case(
        "NegativeLogLikelihoodLoss",
        "float[n, 5, h] x, int64[n, h] t, float[5] w",
        "y = NegativeLogLikelihoodLoss(x, t, w)",
        calls("n h", (1, 1), (2, 9), (3, 17)),
        draws={"t": below(5)},
    ),
)

ALGEBRA = (
    Case(
        "Det of many matrices, small and large",
        "float[b, n, 3, 3] x, float[b, 7, 7] z",
        "y = Det(x) t = Det(z)",
        calls("b n", (1, 1), (2, 5), (3, 17)),
        gives="float[] y, float[] t",
        is_long=True,
    ),
)

OPERATORS = (
    *TRANSFORMERS,
    *STANDARD,
    *SIGNALS,
    *IMAGES,
    *RESIZES,
    *WINDOWS,
    *MOVEMENT,
    *ALGEBRA,
)
