"""Taps so far apart that most of them read padding: each is a product of its own.

    part[t][n, o, y, x]  +=  x[n, c, y + d*r - p, x + d*q - p] * w[t][o, c]     inside of the image
    y[n, o, y, x]  =  bias[o] + sum of part[t][n, o, y, x] over the taps t that meet the image there

DeepLab reads images of 14 x 14 with taps that are 36 pixels apart: all but the one in the middle
read zeros alone, and a frame with so many zeros is 38 times the image. A tap's domain is where it
meets the image; one that never does is left out, which `graph/simplify/idle_taps.py` has done
already where sizes are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from polyc.graph.shapes.window import Window
from polyc.poly.conditions import spell
from polyc.types.estimate import hinted
from polyc.types.sizes import Extent, Size

MET, MET_BESIDE_TILES = 0.8, 0.45
"""Of what taps read, the part inside of the image, up to which each is a product of its own: where
the direct form is the other way, and where Winograd's tiles are, for sizes that are known.

On an Emerald Rapids, 512 channels to 256, 3 x 3 taps, in ms, and in brackets by the direct form:
65 x 65, 24 apart (0.57) 66 (153); 28 x 28, 12 apart (0.51) 10 (20), of 2048 channels 46 (197);
6 apart (0.73) 13.5 (13.7), of 2048 channels 69 (151). Tiles take 67 for the first, 14 for the
second.
"""


@dataclass(frozen=True)
class Tap:
    """A tap: where in the result it meets the image, as a condition on positions.

    Its product counts from the first of these on: `first` of each dimension, the indices of the
    image that it `reads`, and `where` there are any.
    """

    inside: str
    first: tuple[int, ...]
    reads: tuple[str, ...]
    where: str


def are_far(window: Window, spatial: Sequence[Extent]) -> bool:
    """Whether taps that are apart meet the image so seldom, at the sizes kernels are chosen for.

    Of sizes that a call decides no tiles are made where taps are apart.

    14 x 14, 3 x 3 taps that are 12 apart, as much padding: ((2 + 14 + 2) / (3*14))^2 = 0.18
    """
    if max(window.dilations, default=1) == 1:
        return False
    met = 1.0
    for k, extent in enumerate(spatial):
        size, count, stride = hinted(extent), hinted(window.output[k]), window.strides[k]
        inside = 0
        for r in range(window.kernel[k]):
            start = window.dilations[k] * r - window.pads_begin[k]
            first, behind = max(0, -(start // stride)), min(count, -((start - size) // stride))
            inside += max(0, behind - first)
        met *= inside / max(1, window.kernel[k] * count)
    is_open = any(isinstance(extent, Size) for extent in window.output)
    return met <= (MET if is_open else MET_BESIDE_TILES)


def list_taps(window: Window, spatial: Sequence[Extent], positions: Sequence[str]) -> Iterator[Tap]:
    """The taps in order, over iterators of positions.

    3 taps that are 5 apart and as much padding, the first one: at y where 0 <= y - 5 < h; from 5
    on, so that it reads y where y < h and y + 5 < h.
    """
    for place in product(*map(range, window.kernel)):
        scales = zip(window.strides, window.dilations, place, window.pads_begin, strict=True)
        reads = [(s, d * r - p) for s, d, r, p in scales]
        first = tuple(max(0, -(start // stride)) for stride, start in reads)
        inside, where, indices = [], [], []
        columns = zip(positions, reads, first, spatial, window.output, strict=True)
        for y, (stride, start), shift, extent, count in columns:
            inside.append(f"0 <= {stride}*{y} + {start} < {spell(extent)}")
            indices.append(f"{stride}*{y} + {stride * shift + start}")
            where.append(f"{indices[-1]} < {spell(extent)} and {y} + {shift} < {spell(count)}")
        yield Tap(" and ".join(inside), first, tuple(indices), " and ".join(where))
