"""Sizes that calls must have equal: one stands for both, and kernels know of one."""

import numpy as np
import pytest

import polyc
from polyc.errors import ShapeError
from polyc.options import Options
from polyc.types.derived import Derived
from polyc.types.equal_sizes import find_equal
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size, greatest
from tests.e2e.shipped import Writer
from tests.staged import assert_same, run_ort


def is_derived(name):
    return isinstance(name, Derived)


def all_names(extent):
    """Those of an extent's sizes, and of what these follow from."""
    for name in extent.factors if isinstance(extent, Size) else ():
        yield name
        for part in name.operands if is_derived(name) else ():
            yield from all_names(part)


def test_what_is_twice_another_is_written_by_it():
    h = Size.of("h")
    with assume([SizeRange("h", 1, None)]):
        fine, middle, coarse = (h + 7) // 8, (h + 15) // 16, (h + 31) // 32
        needs = [middle - 2 * coarse, 2 * coarse - middle, fine - 2 * middle, 2 * middle - fine]
        needs += [h - 5]
        equal = find_equal(needs, is_derived)
    assert equal == {str(middle): 2 * coarse, str(fine): 4 * coarse}


def test_neither_what_a_call_says_nor_what_follows_from_itself_is_replaced():
    h = Size.of("h")
    with assume([SizeRange("h", 1, None)]):
        whole, half = h - 4 * (h // 4), h // 2
        needs = [whole, -whole, half - (half + 1) // 2 * 2, (half + 1) // 2 * 2 - half]
        equal = find_equal(needs, is_derived)
    assert "h" not in equal
    assert all(name not in str(same) for name, same in equal.items())


def test_a_larger_of_two_that_follows_from_itself_is_not_replaced():
    """It is the negative of a smaller one, whose name is not what is shown."""
    h, w = Size.of("h"), Size.of("w")
    with assume([SizeRange("h", 1, None), SizeRange("w", 1, None)]):
        larger = greatest(h, w)
        half = (larger + 1) // 2
        needs = [larger + 2 * half - h, h - larger - 2 * half]
        equal = find_equal(needs, is_derived)
    assert not any(name == inner for name, same in equal.items() for inner in all_names(same))


def pyramid():
    """An image at a half and a quarter of its size, joined: as detectors and U-Nets do."""
    b = Writer()
    fine = b.conv("x", 3, 8, 3, stride=2)
    coarse = b.conv(fine, 8, 8, 3, stride=2)
    wide = b.op("Resize", coarse, "", b.floats(1, 1, 2, 2), mode="nearest")
    return b.model(b.conv(b.op("Concat", wide, fine, axis=1), 16, 48, 1))


def test_a_kernel_behind_what_joins_them_has_one_height_and_width(tmp_path):
    network = pyramid()
    options = Options(cache_dir=tmp_path / "cache", threads=1)
    model = polyc.compile(network, target="baseline", options=options)
    model.export(tmp_path / "exported")
    texts = [path.read_text() for path in (tmp_path / "exported" / "src").glob("k*.c")]
    signatures = [line for text in texts for line in text.splitlines() if line.startswith("void k")]
    last = max(signatures, key=lambda line: int(line.split("k")[1].split("_")[0]))
    assert last.count("i64 size_") <= 3
    rng = np.random.default_rng(0)
    for shape in ((1, 3, 8, 12), (2, 3, 7, 16), (1, 3, 3, 4)):
        x = rng.standard_normal(shape).astype(np.float32)
        assert_same(model(x), run_ort(network, {"x": x})[0])
    with pytest.raises(ShapeError, match="h = 5"):
        model(np.zeros((1, 3, 5, 8), np.float32))
