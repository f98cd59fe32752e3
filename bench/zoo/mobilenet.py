"""MobileNetV2 (Sandler et al., 2018) as torchvision's is exported: ReLU6 is Clip."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.zoo.network import Example, Network

# Followed by ReLU6, which halves the second moment.
GAIN = math.sqrt(2)


@dataclass(frozen=True)
class Stage:
    """Inverted residual blocks: `expand` times the channels within; `stride` in the first."""

    expand: int
    channels: int
    blocks: int
    stride: int


@dataclass(frozen=True)
class MobileNet:
    """Sizes; the defaults are MobileNetV2 of width 1.0 on 224 x 224 pixels."""

    pixels: int = 224
    stem: int = 32
    stages: tuple[Stage, ...] = (
        Stage(1, 16, 1, 1),
        Stage(6, 24, 2, 2),
        Stage(6, 32, 3, 2),
        Stage(6, 64, 4, 2),
        Stage(6, 96, 3, 1),
        Stage(6, 160, 3, 2),
        Stage(6, 320, 1, 1),
    )
    last: int = 1280
    classes: int = 1000


def mobilenet(sizes: MobileNet = MobileNet(), seed: int = 0) -> Example:
    """A picture [1, 3, pixels, pixels] -> logits [1, classes]."""
    s, net = sizes, Network("mobilenetv2", seed)
    shape = [1, 3, s.pixels, s.pixels]
    x = net.input("x", shape)
    with net.scope("features"):
        with net.scope("0"):
            x = _relu6(net, net.conv(x, (3, s.stem), 3, 2, 1, gain=GAIN))
        channels, position = s.stem, 1
        for stage in s.stages:
            for block in range(stage.blocks):
                with net.scope(str(position)):
                    stride = stage.stride if block == 0 else 1
                    x = _block(net, x, (channels, stage.channels), stage.expand, stride)
                channels, position = stage.channels, position + 1
        with net.scope(str(position)):
            x = _relu6(net, net.conv(x, (channels, s.last), 1, gain=GAIN))
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    with net.scope("classifier"):
        logits = net.gemm(x, s.last, s.classes)
    model = net.finish({"logits": (logits, [1, s.classes])})
    return Example(model, {"x": net.random.standard_normal(shape).astype("float32")})


def _block(net: Network, x: str, channels: tuple[int, int], expand: int, stride: int) -> str:
    """Expand, depthwise 3 x 3, project; plus the input where shapes agree."""
    before, after = channels
    inner = before * expand
    y = x
    if expand > 1:
        y = _relu6(net, net.conv(y, (before, inner), 1, gain=GAIN))
    y = _relu6(net, net.conv(y, (inner, inner), 3, stride, 1, group=inner, gain=GAIN))
    y = net.conv(y, (inner, after), 1)
    return net.op("Add", x, y) if stride == 1 and before == after else y


def _relu6(net: Network, x: str) -> str:
    return net.op("Clip", x, net.constant(0.0), net.constant(6.0))
