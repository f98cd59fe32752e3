"""ConvNeXt (Liu et al., 2022) as torchvision's is exported: norms and linear layers in NHWC."""

from __future__ import annotations

from dataclasses import dataclass

from bench.zoo.network import Example, Network

EPSILON = 1e-6


@dataclass(frozen=True)
class ConvNext:
    """Sizes; the defaults are ConvNeXt-tiny on 224 x 224 pixels."""

    pixels: int = 224
    depths: tuple[int, ...] = (3, 3, 9, 3)
    widths: tuple[int, ...] = (96, 192, 384, 768)
    classes: int = 1000


def convnext(sizes: ConvNext = ConvNext(), seed: int = 0, fused_norms: bool = True) -> Example:
    """A picture [1, 3, pixels, pixels] -> logits [1, classes]."""
    s, net = sizes, Network("convnext", seed, fused_norms)
    shape = [1, 3, s.pixels, s.pixels]
    x = net.input("x", shape)
    with net.scope("features"):
        with net.scope("0"):
            x = _norm2d(net, net.conv(x, (3, s.widths[0]), 4, 4), s.widths[0])
        for stage, (depth, width) in enumerate(zip(s.depths, s.widths, strict=True)):
            if stage:
                with net.scope(str(2 * stage)):
                    before = s.widths[stage - 1]
                    x = net.conv(_norm2d(net, x, before), (before, width), 2, 2)
            for block in range(depth):
                with net.scope(str(2 * stage + 1)), net.scope(str(block)):
                    x = _block(net, x, width)
    last = s.widths[-1]
    x = net.op("GlobalAveragePool", x)
    with net.scope("classifier"):
        x = net.op("Flatten", _norm2d(net, x, last), axis=1)
        logits = net.gemm(x, last, s.classes)
    model = net.finish({"logits": (logits, [1, s.classes])})
    return Example(model, {"x": net.random.standard_normal(shape).astype("float32")})


def _block(net: Network, x: str, width: int) -> str:
    """Depthwise 7 x 7, norm, two linear layers, a scale for each channel; plus the input."""
    y = net.conv(x, (width, width), 7, 1, 3, group=width)
    y = net.op("Transpose", y, perm=[0, 2, 3, 1])
    y = net.layer_norm(y, width, EPSILON)
    y = net.gelu(net.matmul(y, width, 4 * width))
    y = net.matmul(y, 4 * width, width)
    y = net.op("Transpose", y, perm=[0, 3, 1, 2])
    scale = net.weight(net.random.uniform(0.2, 1.0, [width, 1, 1]), "layer_scale")
    return net.op("Add", net.op("Mul", scale, y), x)


def _norm2d(net: Network, x: str, width: int) -> str:
    """A norm over the channels of NCHW."""
    y = net.layer_norm(net.op("Transpose", x, perm=[0, 2, 3, 1]), width, EPSILON)
    return net.op("Transpose", y, perm=[0, 3, 1, 2])
