"""Networks as people ship them, in little: batch, height and width open, weights random.

Each function gives a model and some sizes (n, h, w) that it may be called with.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Sizes = list[tuple[int, int, int]]
OPEN = ("n", 3, "h", "w")
SMALL: Sizes = [(1, 1, 1), (2, 7, 9), (1, 16, 33)]


class Writer:
    """Nodes and constants of a model, one after the other; each method gives a tensor's name."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, value) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def floats(self, *values: float) -> str:
        return self.constant(np.array(values, np.float32))

    def weight(self, *shape: int) -> str:
        scale = 1 / np.sqrt(np.prod(shape[1:], initial=1.0))
        return self.constant((self._rng.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind: str, *inputs: str, **attributes) -> str:
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, count: int, *inputs: str, **attributes) -> list[str]:
        name = f"t{len(self._nodes)}"
        outputs = [f"{name}_{k}" for k in range(count)]
        node = helper.make_node(kind, list(inputs), outputs, f"{kind}_{name}", **attributes)
        self._nodes.append(node)
        return outputs

    def conv(self, x, depth, filters, kernel, stride=1, act="Relu", group=1, dilation=1) -> str:
        weight = self.weight(filters, depth // group, kernel, kernel)
        pads = [(kernel - 1) * dilation // 2] * 4
        y = self.op(
            "Conv", x, weight, self.weight(filters), strides=[stride] * 2, pads=pads, group=group,
            dilations=[dilation] * 2,
        )  # fmt: skip
        return self.op(act, y) if act else y

    def pool(self, x, kernel, stride, pad=0, kind="MaxPool", **attributes) -> str:
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.op(kind, x, **window, **attributes)

    def part_of_shape(self, x: str, first: int, last: int) -> str:
        ends = self.ints(first), self.ints(last), self.ints(0)
        return self.op("Slice", self.op("Shape", x), *ends)

    def extents(self, x: str) -> list[str]:
        """Each extent of a tensor of rank 4, as a list of one."""
        shape = self.op("Shape", x)
        parts = (self.op("Gather", shape, self.constant(np.int64(k)), axis=0) for k in range(4))
        return [self.op("Unsqueeze", part, self.ints(0)) for part in parts]

    def grid(self, x: str) -> str:
        """[1, 2, h*w]: the column and the row of each pixel of an image."""
        _, _, h, w = self.extents(x)
        places = []
        for extent, axis in ((w, 0), (h, 1)):
            first, step = self.constant(np.int64(0)), self.constant(np.int64(1))
            steps = self.op("Range", first, self.op("Squeeze", extent), step)
            line = self.op("Unsqueeze", self.op("Cast", steps, to=1), self.ints(axis))
            whole = self.op("Expand", line, self.op("Concat", h, w, axis=0))
            places.append(self.op("Unsqueeze", whole, self.ints(0)))
        both = self.op("Concat", *places, axis=0)
        return self.op("Reshape", both, self.ints(1, 2, -1))

    def resize_to(self, x: str, other: str, **attributes) -> str:
        """As the exporters of PyTorch write an interpolation to another tensor's size."""
        parts = self.part_of_shape(x, 0, 2), self.part_of_shape(other, 2, 4)
        none = self.floats()
        return self.op("Resize", x, none, none, self.op("Concat", *parts, axis=0), **attributes)

    def model(self, *outputs: str, inputs=(("x", OPEN),)) -> onnx.ModelProto:
        def info(name, shape):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        graph = helper.make_graph(
            self._nodes,
            "network",
            [info(name, shape) for name, shape in inputs],
            [info(name, None) for name in outputs],
            self._constants,
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


def residual() -> tuple[onnx.ModelProto, Sizes]:
    """As ResNet: strides of 2, a padded pool, shortcuts, a mean of the image, a product."""
    b = Writer()
    y = b.pool(b.conv("x", 3, 8, 7, 2), 3, 2, 1)
    for depth, filters, stride in ((8, 8, 1), (8, 16, 2), (16, 24, 2)):
        z = b.conv(b.conv(y, depth, filters, 3, stride), filters, filters, 3, act=None)
        shortcut = y if stride == 1 else b.conv(y, depth, filters, 1, stride, act=None)
        y = b.op("Relu", b.op("Add", z, shortcut))
    y = b.op("Flatten", b.op("GlobalAveragePool", y))
    return b.model(b.op("Gemm", y, b.weight(10, 24), b.weight(10), transB=1)), SMALL


def separable() -> tuple[onnx.ModelProto, Sizes]:
    """As MobileNetV3: depthwise windows with strides, channels scaled by their means."""
    b = Writer()
    y = b.conv("x", 3, 8, 3, 2, act="HardSwish")
    for stride in (1, 2):
        z = b.conv(y, 8, 16, 1, act="HardSwish")
        z = b.conv(z, 16, 16, 5, stride, group=16, act="HardSwish")
        means = b.conv(b.op("GlobalAveragePool", z), 16, 4, 1)
        z = b.op("Mul", z, b.conv(means, 4, 16, 1, act="HardSigmoid"))
        z = b.conv(z, 16, 8, 1, act=None)
        y = b.op("Add", y, z) if stride == 1 else z
    return b.model(b.op("ReduceMean", y, axes=[2, 3], keepdims=0)), SMALL


def pools() -> tuple[onnx.ModelProto, Sizes]:
    """Means that do or do not count the padding, and windows that begin inside and end outside."""
    b = Writer()
    return b.model(
        b.pool("x", 3, 2, 1, "AveragePool"),
        b.pool("x", 3, 2, 1, "AveragePool", count_include_pad=1, ceil_mode=1),
        b.pool("x", 3, 2, ceil_mode=1),
        b.pool("x", 2, 3, 0, "LpPool"),
    ), [(1, 3, 3), (2, 7, 9), (1, 16, 33)]


def same_padding() -> tuple[onnx.ModelProto, Sizes]:
    """Padding that depends on whether sizes are odd."""
    b = Writer()
    y = b.op("Conv", "x", b.weight(8, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER")
    y = b.op("Conv", y, b.weight(8, 8, 5, 5), strides=[3, 3], auto_pad="SAME_LOWER")
    window = {"kernel_shape": [2, 3], "strides": [1, 3], "auto_pad": "SAME_LOWER"}
    means = b.op("AveragePool", "x", **window)
    return b.model(b.op("LpPool", "x", **window), means, y), [(1, 2, 2), (2, 7, 9), (1, 5, 10)]


def same_as_traced() -> tuple[onnx.ModelProto, Sizes]:
    """Padding "same" as it is traced: in floating point, cut off below, and halved."""
    b = Writer()
    *_, h, w = (b.op("Cast", extent, to=1) for extent in b.extents("x"))
    pads = []
    for extent in (h, w):
        rows = b.op("Ceil", b.op("Div", extent, b.floats(2)))
        inner = b.op("Add", b.op("Mul", b.op("Sub", rows, b.floats(1)), b.floats(2)), b.floats(3))
        rest = b.op("Clip", b.op("Sub", inner, extent), b.constant(np.float32(0)))
        before = b.op("Cast", b.op("Cast", b.op("Div", rest, b.floats(2)), to=7), to=1)
        pads.append((before, b.op("Max", b.op("Sub", rest, before), b.floats(0))))
    none = b.floats(0, 0)
    listed = b.op("Concat", none, *(p[0] for p in pads), none, *(p[1] for p in pads), axis=0)
    padded = b.op("Pad", "x", b.op("Cast", listed, to=7))
    return b.model(b.op("Conv", padded, b.weight(8, 3, 3, 3), strides=[2, 2])), SMALL


def relative() -> tuple[onnx.ModelProto, Sizes]:
    """As a Conformer: rows of scores are shifted by regrouping t x 2t as 2t x t, and back."""
    b = Writer()
    y = b.conv(b.conv("x", 3, 4, 3, 2), 4, 4, 3, 2)
    y = b.op("ReduceMean", y, axes=[3], keepdims=0)  # [n, 4, t]
    n, t = b.part_of_shape(y, 0, 1), b.part_of_shape(y, 2, 3)
    last, one, two = b.ints(2**63 - 1), b.ints(1), b.ints(2)
    first = b.op("Squeeze", b.op("Sub", t, one))
    places = b.op("Range", first, b.op("Neg", b.op("Squeeze", t)), b.constant(np.int64(-1)))
    sine = b.op("Sin", b.op("Cast", places, to=1))
    scores = b.op("Mul", b.op("Unsqueeze", y, b.ints(3)), sine)  # [n, 4, t, 2t - 1]
    scores = b.op("Pad", scores, b.ints(0, 0, 0, 1, 0, 0, 0, 0))
    four = b.ints(4)
    shape = b.op("Concat", n, four, b.op("Mul", t, two), t, axis=0)
    scores = b.op("Slice", b.op("Reshape", scores, shape), one, last, two)
    wide = b.op("Sub", b.op("Mul", t, two), one)
    scores = b.op("Reshape", scores, b.op("Concat", n, four, t, wide, axis=0))
    scores = b.op("Slice", scores, b.ints(0), t, b.ints(3))
    return b.model(b.op("Softmax", scores, axis=-1)), [(1, 1, 1), (2, 7, 9), (1, 57, 3)]


def normalised() -> tuple[onnx.ModelProto, Sizes]:
    """As Conv-TasNet: norms over all channels and frames, which are padded to a multiple of 8."""
    b = Writer()
    length = b.part_of_shape("x", 2, 3)
    eight = b.ints(8)
    rest = b.op("Mod", b.op("Sub", eight, b.op("Mod", length, eight)), eight)
    end = b.op("Add", rest, eight)
    y = b.op("Pad", "x", b.op("Concat", b.ints(0, 0, 8, 0, 0), end, axis=0))
    y = b.op("Conv", y, b.weight(6, 1, 16), strides=[8])
    for dilation in (1, 2):
        z = b.op("PRelu", b.op("Conv", y, b.weight(8, 6, 1)), b.floats(0.25))
        flat = b.op("Reshape", z, b.ints(0, 1, -1))
        z = b.op("InstanceNormalization", flat, b.floats(1), b.floats(0))
        z = b.op("Reshape", z, b.op("Shape", b.op("Conv", y, b.weight(8, 6, 1))))
        z = b.op("Pad", z, b.ints(0, 0, 2 * dilation, 0, 0, 0))
        z = b.op("Conv", z, b.weight(8, 1, 3), dilations=[dilation], group=8)
        y = b.op("Add", y, b.op("Conv", z, b.weight(6, 8, 1)))
    y = b.op("ConvTranspose", y, b.weight(6, 1, 16), strides=[8])
    y = b.op("Slice", y, eight, b.op("Add", length, eight), b.ints(2))
    return b.model(y, inputs=[("x", ("n", 1, "h"))]), [(1, 1, 0), (2, 7, 0), (3, 97, 0)]


def unpadded() -> tuple[onnx.ModelProto, Sizes]:
    """As the beginning of Inception: tiles are counted of images that have lost their borders."""
    b = Writer()
    y = b.op("Conv", "x", b.weight(32, 3, 3, 3), strides=[2, 2])
    y = b.op("Conv", b.op("Relu", y), b.weight(32, 32, 3, 3))
    y = b.op("Conv", b.op("Relu", y), b.weight(64, 32, 3, 3), pads=[1, 1, 1, 1])
    y = b.op("MaxPool", b.op("Relu", y), kernel_shape=[3, 3], strides=[2, 2])
    y = b.op("Conv", b.op("Conv", y, b.weight(80, 64, 1, 1)), b.weight(192, 80, 3, 3))
    return b.model(y), [(1, 19, 25), (2, 64, 47), (1, 75, 40)]


def dilated() -> tuple[onnx.ModelProto, Sizes]:
    """Windows with gaps, with strides and without padding: inputs must have some extent."""
    b = Writer()
    y = b.conv("x", 3, 8, 3, 2, dilation=2)
    return b.model(b.op("Conv", y, b.weight(4, 8, 3, 3), dilations=[2, 1])), [
        (1, 9, 5),
        (2, 10, 14),
    ]


def hourglass() -> tuple[onnx.ModelProto, Sizes]:
    """As U-Net: what is halved twice is doubled twice, and joined; sizes are multiples of 4."""
    b = Writer()
    a = b.conv("x", 3, 8, 3)
    c = b.conv(b.pool(a, 2, 2), 8, 16, 3)
    d = b.conv(b.pool(c, 2, 2), 16, 16, 3)
    up = b.op("ConvTranspose", d, b.weight(16, 16, 2, 2), b.weight(16), strides=[2, 2])
    e = b.conv(b.op("Concat", up, c, axis=1), 32, 8, 3)
    up = b.op("Resize", e, b.floats(), b.floats(1, 1, 2, 2), mode="linear")
    y = b.conv(b.op("Concat", up, a, axis=1), 16, 2, 1, act="Sigmoid")
    return b.model(y), [(1, 4, 4), (2, 12, 20)]


def pyramid() -> tuple[onnx.ModelProto, Sizes]:
    """As a segmenter on a feature pyramid: resized to the sizes of other tensors."""
    b = Writer()
    c1 = b.conv("x", 3, 8, 3, 2)
    c2 = b.conv(c1, 8, 8, 3, 2)
    p = b.conv(b.conv(c2, 8, 8, 3, 2), 8, 8, 1, act=None)
    plain = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    p = b.op("Add", b.resize_to(p, c2, mode="nearest", **plain), b.conv(c2, 8, 8, 1))
    p = b.op("Add", b.resize_to(p, c1, mode="linear"), b.conv(c1, 8, 8, 1))
    return b.model(b.resize_to(p, "x", mode="cubic")), SMALL


def scales() -> tuple[onnx.ModelProto, Sizes]:
    """Resized by scales that are numbers, in all ways."""
    b = Writer()
    two, some = b.floats(1, 1, 2, 2), b.floats(1, 1, 1.5, 0.5)
    key = "coordinate_transformation_mode"
    resized = [
        b.op("Resize", "x", b.floats(), scale, mode=mode, **{key: coordinates})
        for scale, mode, coordinates in (
            (two, "linear", "half_pixel"), (two, "linear", "align_corners"),
            (some, "cubic", "pytorch_half_pixel"), (some, "nearest", "half_pixel"),
            (some, "linear", "asymmetric"), (some, "linear", "half_pixel_symmetric"),
        )
    ]  # fmt: skip
    return b.model(*resized), [(1, 2, 4), (2, 7, 9), (1, 16, 33)]


def upscaled() -> tuple[onnx.ModelProto, Sizes]:
    """As super-resolution: channels become pixels, or strides insert them."""
    b = Writer()
    y = b.conv(b.conv("x", 3, 8, 3), 8, 12, 3, act=None)
    y = b.op("DepthToSpace", y, blocksize=2, mode="CRD")
    z = b.op("ConvTranspose", "x", b.weight(3, 4, 4, 4), strides=[2, 2], pads=[1] * 4)
    more = {"strides": [3, 2], "pads": [1] * 4, "output_padding": [1, 1], "dilations": [2, 1]}
    return b.model(y, z, b.op("ConvTranspose", "x", b.weight(3, 4, 3, 3), **more)), SMALL


def attention() -> tuple[onnx.ModelProto, Sizes]:
    """As a block of attention over the pixels of an image: flattened, and back again."""
    b = Writer()
    y = b.conv("x", 3, 8, 3, 2)
    f = b.op("Transpose", b.op("Reshape", y, b.ints(0, 8, -1)), perm=[0, 2, 1])
    q, k, v = (b.op("MatMul", f, b.weight(8, 8)) for _ in range(3))
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 2, 1]))
    z = b.op("Add", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), f)
    z = b.op("Reshape", b.op("Transpose", z, perm=[0, 2, 1]), b.op("Shape", y))
    return b.model(b.conv(z, 8, 4, 3)), SMALL


def computed_before() -> tuple[onnx.ModelProto, Sizes]:
    """As new exporters write it: sizes come first, and what makes them positive behind."""
    b = Writer()
    *_, h, w = b.extents("x")
    rows, columns = (b.op("Div", b.op("Add", e, b.ints(-3)), b.ints(4)) for e in (h, w))
    shape = b.op(
        "Concat", b.part_of_shape("x", 0, 1), rows, b.op("Mul", columns, b.ints(8)), axis=0
    )
    window = {"strides": [2, 2]}
    y = b.op(
        "Conv", b.op("Conv", "x", b.weight(8, 3, 3, 3), **window), b.weight(8, 8, 3, 3), **window
    )
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 3, 1]), shape)
    return b.model(b.op("Softmax", y, axis=-1)), [(1, 7, 7), (2, 9, 15), (1, 16, 33)]


def detector() -> tuple[onnx.ModelProto, Sizes]:
    """As YOLO: three scales, flattened and joined, with the places of a grid added."""
    b = Writer()
    parts = []
    c, depth = "x", 3
    for _ in range(3):
        c, depth = b.conv(c, depth, 8, 3, 2), 8
        out = b.op("Reshape", b.conv(c, 8, 7, 1, act=None), b.ints(0, 7, -1))
        places, rest = b.ops("Split", 2, out, b.ints(2, 5), axis=1)
        parts.append(b.op("Concat", b.op("Add", places, b.grid(c)), rest, axis=1))
    y = b.op("Concat", *parts, axis=2)
    to_the_end = b.ints(2**63 - 1)
    scores = b.op("Sigmoid", b.op("Slice", y, b.ints(4), to_the_end, b.ints(1)))
    y = b.op("Concat", b.op("Slice", y, b.ints(0), b.ints(4), b.ints(1)), scores, axis=1)
    return b.model(b.op("Transpose", y, perm=[0, 2, 1])), SMALL


def shapes_of_exporters() -> tuple[onnx.ModelProto, Sizes]:
    """As the exporters of PyTorch write it: shapes are taken apart, multiplied, put together."""
    b = Writer()
    y = b.conv("x", 3, 8, 3)
    n, _, h, w = b.extents(y)
    flat = b.op("Concat", n, b.ints(8), b.op("Mul", h, w), axis=0)
    f = b.op("Transpose", b.op("Reshape", y, flat), perm=[0, 2, 1])
    f = b.op("Transpose", b.op("MatMul", f, b.weight(8, 8)), perm=[0, 2, 1])
    f = b.op("Reshape", f, b.op("Concat", n, b.ints(8), h, w, axis=0))
    return b.model(b.op("Add", f, y)), SMALL


def reader() -> tuple[onnx.ModelProto, Sizes]:
    """As a recogniser of text: columns of an image are the steps of a recurrent layer."""
    b = Writer()
    y = b.op("ReduceMean", b.conv("x", 3, 8, 3, 2), axes=[2], keepdims=0)
    y = b.op("Transpose", y, perm=[2, 0, 1])
    weights = b.weight(2, 24, 8), b.weight(2, 24, 6), b.weight(2, 48)
    y, *_ = b.ops("LSTM", 3, y, *weights, direction="bidirectional", hidden_size=6)
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.ints(0, 0, -1))
    return b.model(b.op("Softmax", b.op("MatMul", y, b.weight(12, 5)), axis=2)), SMALL


def windows() -> tuple[onnx.ModelProto, Sizes]:
    """As Swin: attention within windows of 4 x 4 pixels; sizes are multiples of 4."""
    b = Writer()
    y = b.op("Transpose", b.conv("x", 3, 8, 3), perm=[0, 2, 3, 1])
    n, h, w, c = b.extents(y)
    rows, columns, four = b.op("Div", h, b.ints(4)), b.op("Div", w, b.ints(4)), b.ints(4)
    y = b.op("Reshape", y, b.op("Concat", n, rows, four, columns, four, c, axis=0))
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), b.ints(-1, 16, 8))
    q = b.op("MatMul", y, b.weight(8, 8))
    y = b.op("MatMul", b.op("Softmax", b.op("MatMul", q, b.op("Transpose", y, perm=[0, 2, 1]))), y)
    y = b.op("Reshape", y, b.op("Concat", n, rows, columns, four, four, c, axis=0))
    y = b.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5])
    y = b.op("Reshape", y, b.op("Concat", n, h, w, c, axis=0))
    return b.model(b.op("Transpose", y, perm=[0, 3, 1, 2])), [(1, 4, 4), (2, 8, 12)]


def sliced() -> tuple[onnx.ModelProto, Sizes]:
    """Parts whose ends lie beyond, from behind, with steps, backwards, and in halves."""
    b = Writer()
    last = 2**63 - 1
    ends = b.ints(1_000_000_000, last)
    y = b.op("Slice", "x", b.ints(0, 1), ends, b.ints(2, 3), b.ints(1, 2))
    back = b.op("Slice", "x", b.ints(-1), b.ints(-last), b.ints(3), b.ints(-1))
    three = b.op("Slice", "x", b.ints(-3, -7), b.ints(1_000_000_000, 5), b.ints(2, 3))
    joined = b.op("Concat", "x", back, axis=2)
    one, other = b.ops("Split", 2, joined, axis=2)
    return b.model(y, back, three, b.op("Add", one, other)), [(1, 1, 2), (2, 7, 9)]


def padded() -> tuple[onnx.ModelProto, Sizes]:
    """Padded by what mirrors it, by zeros, and up to a multiple of 8."""
    b = Writer()
    y = b.op("Pad", "x", b.ints(0, 0, 0, 1, 0, 0, 0, 2), mode="reflect")
    edge = b.op("Pad", "x", b.ints(0, 0, 1, 0, 0, 0, 3, 0), mode="edge")
    *_, h, w = b.extents("x")
    eight, none = b.ints(8), b.ints(0)
    rest = [b.op("Mod", b.op("Sub", eight, b.op("Mod", n, eight)), eight) for n in (h, w)]
    pads = b.op("Concat", *[none] * 6, *rest, axis=0)
    whole = b.op("Pad", "x", pads)
    tiles = b.op("SpaceToDepth", whole, blocksize=8)
    return b.model(y, edge, whole, tiles), [(1, 3, 3), (2, 7, 9), (1, 8, 16)]


def sized() -> tuple[onnx.ModelProto, Sizes]:
    """Sizes in floating-point arithmetic, and as positions."""
    b = Writer()
    size = b.op("Cast", b.part_of_shape("x", 2, 4), to=1)
    double = b.op("Cast", b.op("Floor", b.op("Mul", size, b.floats(2, 1.5))), to=7)
    sizes = b.op("Concat", b.part_of_shape("x", 0, 2), double, axis=0)
    y = b.op("Resize", "x", b.floats(), b.floats(), sizes, mode="linear")
    width = b.op("Gather", size, b.constant(np.int64(1)), axis=0)
    zero, one = (b.constant(np.float32(k)) for k in (0, 1))
    return b.model(y, b.op("Div", b.op("Add", "x", b.op("Range", zero, width, one)), width)), SMALL


def fitted() -> tuple[onnx.ModelProto, Sizes]:
    """As a U-Net whose scales are padded to fit, with the list of pads as PyTorch writes it."""
    b = Writer()
    skip = b.conv("x", 3, 8, 3)
    y = b.op("ConvTranspose", b.pool(skip, 2, 2), b.weight(8, 8, 2, 2), strides=[2, 2])
    *_, h, w = b.extents(skip)
    *_, rows, columns = b.extents(y)
    pads = []
    for whole, part in ((w, columns), (h, rows)):  # the last dimension comes first
        rest = b.op("Sub", whole, part)
        before = b.op("Div", rest, b.ints(2))
        pads += [before, b.op("Sub", rest, before)]
    listed = b.op("Concat", *pads, axis=0)
    count = b.op("Sub", b.ints(8), b.op("Shape", listed))
    zeros = b.op("ConstantOfShape", count, value=numpy_helper.from_array(np.zeros(1, np.int64)))
    pairs = b.op("Reshape", b.op("Concat", listed, zeros, axis=0), b.ints(-1, 2))
    turned = b.op("Slice", pairs, b.ints(-1), b.ints(-(2**63 - 1)), b.ints(0), b.ints(-1))
    turned = b.op("Reshape", b.op("Transpose", turned, perm=[1, 0]), b.ints(-1))
    y = b.op("Pad", y, turned)
    return b.model(b.conv(b.op("Concat", skip, y, axis=1), 16, 4, 3)), [(1, 2, 2), (2, 7, 9)]


def framed() -> tuple[onnx.ModelProto, Sizes]:
    """As a net for sound: overlapping frames of a signal, by their positions, through an LSTM."""
    b = Writer()
    signal = b.op("Pad", "x", b.ints(0, 4, 0, 4))
    length = b.op("Squeeze", b.part_of_shape(signal, 1, 2))
    zero, seven, hop = (b.constant(np.int64(k)) for k in (0, 7, 4))
    starts = b.op("Unsqueeze", b.op("Range", zero, b.op("Sub", length, seven), hop), b.ints(1))
    places = b.op("Add", starts, b.constant(np.arange(8)[None]))
    frames = b.op("Transpose", b.op("Gather", signal, places, axis=1), perm=[1, 0, 2])
    weights = b.weight(1, 24, 8), b.weight(1, 24, 6), b.weight(1, 48)
    batch = b.op("Concat", b.ints(1), b.part_of_shape("x", 0, 1), b.ints(6), axis=0)
    state = b.op("Expand", b.floats(0.0), batch)
    y, *_ = b.ops("LSTM", 3, frames, *weights, "", state, state, hidden_size=6)
    y = b.op("Transpose", b.op("Squeeze", y, b.ints(1)), perm=[1, 0, 2])
    return b.model(b.op("MatMul", y, b.weight(6, 5)), inputs=[("x", ("n", "h"))]), [
        (1, 1, 0),
        (2, 7, 0),
        (3, 40, 0),
    ]


NETWORKS = {
    f.__name__: f
    for f in (
        residual, separable, pools, same_padding, dilated, hourglass, pyramid, scales, upscaled,
        attention, computed_before, detector, shapes_of_exporters, reader, windows, sliced, padded,
        sized, fitted, framed, same_as_traced, relative, normalised, unpadded,
    )
}  # fmt: skip
