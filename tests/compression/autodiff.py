"""Just enough of reverse-mode differentiation to train small networks with NumPy.

    x, w = Var(a), Var(b)
    loss_gradient → (x @ w).back(gradient)          x.grad, w.grad

A `Var` remembers what it was computed from, and how a gradient goes back there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Back = Callable[[np.ndarray], np.ndarray]


class Var:
    """An array, and where it comes from."""

    def __init__(self, value: np.ndarray, parents: Sequence[tuple[Var, Back]] = ()) -> None:
        self.value = np.asarray(value, np.float32)
        self.parents = parents
        self.grad = np.zeros_like(self.value)

    def back(self, gradient: np.ndarray) -> None:
        """Add to the gradients of all that this was computed from."""
        order: list[Var] = []
        seen: set[int] = set()

        def visit(v: Var) -> None:
            if id(v) not in seen:
                seen.add(id(v))
                for parent, _ in v.parents:
                    visit(parent)
                order.append(v)

        visit(self)
        for v in order:
            v.grad = np.zeros_like(v.value)
        self.grad = gradient
        for v in reversed(order):
            for parent, back in v.parents:
                parent.grad += _fit(back(v.grad), parent.value.shape)

    def __add__(self, other: Var) -> Var:
        return Var(self.value + other.value, [(self, lambda g: g), (other, lambda g: g)])

    def __mul__(self, other: Var) -> Var:
        a, b = self.value, other.value
        return Var(a * b, [(self, lambda g: g * b), (other, lambda g: g * a)])

    def __matmul__(self, other: Var) -> Var:
        a, b = self.value, other.value
        left = (self, lambda g: g @ b.swapaxes(-1, -2))
        return Var(a @ b, [left, (other, lambda g: a.swapaxes(-1, -2) @ g)])

    def reshape(self, *shape: int) -> Var:
        old = self.value.shape
        return Var(self.value.reshape(shape), [(self, lambda g: g.reshape(old))])

    def transpose(self, *order: int) -> Var:
        inverse = np.argsort(order)
        return Var(self.value.transpose(order), [(self, lambda g: g.transpose(inverse))])

    def sum(self, *axes: int) -> Var:
        shape = self.value.shape

        def back(g: np.ndarray) -> np.ndarray:
            return np.broadcast_to(np.expand_dims(g, axes), shape)

        return Var(self.value.sum(axes), [(self, back)])


def _fit(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Summed up along what was broadcast."""
    gradient = gradient.sum(tuple(range(gradient.ndim - len(shape))))
    wide = tuple(k for k, extent in enumerate(shape) if extent == 1)
    return gradient.sum(wide, keepdims=True)


def relu(x: Var) -> Var:
    return Var(np.maximum(x.value, 0), [(x, lambda g: g * (x.value > 0))])


def softmax(x: Var) -> Var:
    e = np.exp(x.value - x.value.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return Var(y, [(x, lambda g: y * (g - (g * y).sum(-1, keepdims=True)))])


def normalise(x: Var) -> Var:
    """Rows of mean 0 and variance 1."""
    centred = x.value - x.value.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    y = centred * inverse

    def back(g: np.ndarray) -> np.ndarray:
        return inverse * (g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True))

    return Var(y, [(x, back)])


def taps(x: Var, stride: int = 1) -> Var:
    """[n, c, h, w] -> [n, c, 9, h', w']: what a 3 x 3 window, padded by 1, sees."""
    h, w = x.value.shape[2:]
    framed = np.pad(x.value, [(0, 0), (0, 0), (1, 1), (1, 1)])
    places = [
        np.s_[:, :, i : i + h : stride, j : j + w : stride] for i in range(3) for j in range(3)
    ]

    def back(g: np.ndarray) -> np.ndarray:
        total = np.zeros_like(framed)
        for k, place in enumerate(places):
            total[place] += g[:, :, k]
        return total[:, :, 1:-1, 1:-1]

    return Var(np.stack([framed[p] for p in places], 2), [(x, back)])


def conv(x: Var, w: Var, b: Var, stride: int = 1) -> Var:
    """w: [o, c * 9] for 3 x 3 windows, [o, c] for single points."""
    seen = x if x.value.shape[1] == w.value.shape[1] else taps(x, stride)
    n, (*_, height, width), out = x.value.shape[0], seen.value.shape, len(w.value)
    rows = w @ seen.reshape(n, w.value.shape[1], height * width) + b.reshape(out, 1)
    return rows.reshape(n, out, height, width)


def depthwise(x: Var, w: Var, b: Var) -> Var:
    """w: [c, 9]: each channel by windows of its own."""
    channels = len(w.value)
    return (taps(x) * w.reshape(channels, 9, 1, 1)).sum(2) + b.reshape(channels, 1, 1)


def train(
    forward: Callable[[dict[str, Var], np.ndarray], Var],
    weights: dict[str, np.ndarray],
    images: np.ndarray,
    labels: np.ndarray,
    epochs: int,
    rate: float = 3e-3,
) -> dict[str, np.ndarray]:
    """The weights after some epochs of Adam on the cross entropy of logits; rate falls to zero."""
    rng = np.random.default_rng(0)
    moments = {k: (np.zeros_like(w), np.zeros_like(w)) for k, w in weights.items()}
    batch, step = 64, 0
    steps = epochs * (len(images) // batch)
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for first in range(0, len(order) - batch + 1, batch):
            chosen = order[first : first + batch]
            variables = {k: Var(w) for k, w in weights.items()}
            logits = forward(variables, images[chosen])
            wanted = np.eye(10, dtype=np.float32)[labels[chosen]]
            logits.back((softmax(Var(logits.value)).value - wanted) / batch)
            step += 1
            now = rate * (1 - step / steps)
            for k, v in variables.items():
                mean, square = moments[k]
                mean += 0.1 * (v.grad - mean)
                square += 0.01 * (v.grad**2 - square)
                correction = np.sqrt(1 - 0.99**step) / (1 - 0.9**step)
                weights[k] = weights[k] - now * correction * mean / (np.sqrt(square) + 1e-8)
    return {k: w.astype(np.float32) for k, w in weights.items()}
