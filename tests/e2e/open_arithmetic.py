"""Arithmetic of sizes as exporters write it, as text, and calls that it is right for."""

from __future__ import annotations

import numpy as np

from tests.e2e.open_operators import Case, calls

ROLLS = (
    Case(
        "A roll by remainders of sizes, as of shifted windows",
        "float[b, h, w] x",
        """zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        two = Constant<value_ints = [2]>()
        back = Constant<value_ints = [-1]>()
        size = Shape<start = 1, end = 2>(x)
        half = Div(size, two)
        cut = Slice(x, zero, half, one)
        last = Mod(back, half)
        above = Slice(cut, last, half, one)
        below = Slice(cut, zero, last, one)
        down = Concat<axis = 1>(above, below)
        width = Shape<start = 2>(x)
        wide = Mul(width, two)
        two_of = Concat<axis = 2>(x, x)
        shift = Mod(one, wide)
        left = Slice(two_of, zero, shift, two)
        right = Slice(two_of, shift, wide, two)
        turned = Concat<axis = 2>(right, left)""",
        calls("b h w", (1, 2, 1), (2, 9, 5), (3, 16, 2)),
        gives="float[] down, float[] turned",
        is_long=True,
    ),
    Case(
        "Turned by a number that may be more than there is",
        "float[b, n] x",
        """zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        three = Constant<value_ints = [3]>()
        size = Shape<start = 1>(x)
        shift = Mod(three, size)
        above = Slice(x, shift, size, one)
        below = Slice(x, zero, shift, one)
        y = Concat<axis = 1>(above, below)""",
        calls("b n", (1, 1), (2, 2), (1, 3), (2, 4), (3, 5), (1, 37)),
    ),
    Case(
        "A remainder of sizes in a branch that is not taken",
        "float[h] x, bool c",
        """two = Constant<value_ints = [2]>()
        size = Shape(x)
        half = Div(size, two)
        y = If (c) <
            then_branch = one () => (int64[1] r) { r = Mod(two, half) },
            else_branch = other () => (int64[1] s) { s = Identity(two) }
        >""",
        calls("h", (1,), (2,), (9,)),
        gives="int64[] y",
        draws={"c": lambda shape, sizes: np.asarray(sizes["h"] > 1)},
    ),
)

QUOTIENTS = (
    Case(
        "Frames that are counted by a quotient, which is cut off towards 0",
        "float[b, n] x",
        """zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        hop = Constant<value_int = 4>()
        width = Constant<value_int = 8>()
        all = Shape(x)
        length = Gather(all, one)
        rest = Sub(length, width)
        whole = Div(rest, hop)
        frames = Add(whole, one)
        steps = Range(zero, frames, one)
        starts = Mul(steps, hop)
        y = Gather<axis = 1>(x, starts)""",
        calls("b n", (1, 1), (2, 4), (1, 5), (3, 8), (2, 11), (1, 12), (2, 37)),
        is_long=True,
    ),
    Case(
        "Counts in floats, which are cut off, rounded up and rounded down",
        "float[b, n] x",
        """zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        all = Shape(x)
        length = Gather(all, one)
        float = Cast<to = 1>(length)
        width = Constant<value_float = 9.0>()
        hop = Constant<value_float = 4.0>()
        rest = Sub(float, width)
        whole = Div(rest, hop)
        cut = Cast<to = 7>(whole)
        frames = Add(cut, one)
        first = Range(zero, frames, one)
        three = Constant<value_float = 3.0>()
        third = Div(float, three)
        above = Ceil(third)
        last = Cast<to = 7>(above)
        second = Range(zero, last, one)
        below = Floor(whole)
        less = Cast<to = 7>(below)
        third_last = Range(zero, less, one)""",
        calls("b n", (1, 1), (2, 5), (1, 6), (3, 9), (2, 12), (1, 13), (2, 37)),
        gives="int64[] first, int64[] second, int64[] third_last",
        is_long=True,
    ),
)

FRAMES = (
    Case(
        "Frames that may be none, of which a window leaves half, as another sum counts them",
        "float[b, n] x, float[4, 1, 3, 3] w, float[1, 20, 12] v, float[1, 20, 5] r",
        """zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        four = Constant<value_int = 4>()
        eight = Constant<value_int = 8>()
        first = Constant<value_ints = [0]>()
        second = Constant<value_ints = [1]>()
        width = Constant<value_ints = [12]>()
        all = Shape(x)
        length = Gather(all, one)
        quarter = Div(length, four)
        less = Sub(quarter, one)
        frames = Max(less, zero)
        steps = Range(zero, frames, one)
        starts = Mul(steps, four)
        column = Unsqueeze(starts, second)
        across = Range(zero, eight, one)
        places = Add(column, across)
        windows = Gather<axis = 1>(x, places)
        image = Unsqueeze(windows, second)
        half = Conv<strides = [2, 2]>(image, w)
        turned = Transpose<perm = [2, 0, 1, 3]>(half)
        eighth = Div(length, eight)
        rest = Sub(eighth, one)
        count = Unsqueeze(rest, first)
        batch = Shape<end = 1>(x)
        shape = Concat<axis = 0>(count, batch, width)
        rows = Reshape(turned, shape)
        y, last = LSTM<hidden_size = 5>(rows, v, r)""",
        calls("b n", (1, 16), (2, 17), (1, 23), (3, 24), (2, 63), (1, 100)),
        gives="float[] y, float[] last",
        is_long=True,
    ),
)

REGROUPED = (
    Case(
        "Fours of what two sizes are the product of",
        "float[n, m, k] x",
        """shape = Constant<value_ints = [0, 4, -1]>()
        fours = Reshape(x, shape)
        y = Add(fours, fours)""",
        calls("n m k", (2, 6, 2), (1, 4, 3), (3, 2, 2)),
    ),
    Case(
        "Pairs of rows, where the other extents are copied by 0",
        "float[n, 4, h, 6] x",
        """shape = Constant<value_ints = [0, 0, -1, 2, 6]>()
        pairs = Reshape(x, shape)
        y = Transpose<perm = [0, 1, 3, 2, 4]>(pairs)""",
        calls("n h", (1, 2), (2, 10), (3, 4)),
    ),
    Case(
        "Pairs of rows, with the batch as what is left",
        "float[n, 4, h, 6] x",
        """rest = Constant<value_ints = [-1]>()
        four = Constant<value_ints = [4]>()
        two = Constant<value_ints = [2]>()
        six = Constant<value_ints = [6]>()
        height = Shape<start = 2, end = 3>(x)
        half = Div(height, two)
        shape = Concat<axis = 0>(rest, four, half, two, six)
        pairs = Reshape(x, shape)
        y = Transpose<perm = [0, 1, 3, 2, 4]>(pairs)""",
        calls("n h", (1, 2), (2, 10)),
        is_long=True,
    ),
    Case(
        "An image of sizes rounded up, regrouped by sizes rounded down",
        "float[n, 4, h, w] x",
        """flat = Constant<value_ints = [-1, 4]>()
        eight = Constant<value_ints = [8]>()
        rest = Constant<value_ints = [-1]>()
        pooled = MaxPool<kernel_shape = [1, 1], strides = [8, 8]>(x)
        last = Transpose<perm = [0, 2, 3, 1]>(pooled)
        rows = Reshape(last, flat)
        twice = Add(rows, rows)
        batch = Shape<end = 1>(x)
        image = Shape<start = 2>(x)
        less = Div(image, eight)
        shape = Concat<axis = 0>(batch, less, rest)
        y = Reshape(twice, shape)""",
        calls("n h w", (1, 16, 24), (2, 8, 32), (3, 64, 8)),
    ),
    Case(
        "Blocks but for the first two, whose number may not be negative",
        "float[n, s, 5] x",
        """zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        eight = Constant<value_ints = [8]>()
        end = Constant<value_ints = [1099511627776]>()
        four = Constant<value_ints = [4]>()
        two = Constant<value_ints = [2]>()
        five = Constant<value_ints = [5]>()
        behind = Slice(x, eight, end, one)
        twice = Add(behind, behind)
        batch = Shape<end = 1>(x)
        length = Shape<start = 1, end = 2>(x)
        blocks = Div(length, four)
        number = Sub(blocks, two)
        shape = Concat<axis = 0>(batch, number, four, five)
        y = Reshape(twice, shape)""",
        calls("n s", (1, 16), (2, 24), (1, 12)),
        is_long=True,
    ),
)

ARITHMETIC = (*ROLLS, *QUOTIENTS, *FRAMES, *REGROUPED)
