"""Layouts decided cluster by cluster, in execution order."""

from dataclasses import replace

from polyc.mapping.cpu.laying import Laid
from polyc.mapping.cpu.storing import store_clusters
from polyc.schedule.cluster import find_clusters
from polyc.scop.expr import call
from polyc.scop.scop import Scop
from tests.analysis.nests import (
    ZERO,
    array,
    conv_scop,
    load,
    matmul_scop,
    scop,
    softmax_scop,
    statement,
)
from tests.mapping.stages import AVX512


def store(of: Scop):
    return store_clusters(find_clusters(of, AVX512)[0], of, AVX512).clusters


def conv_then_transposed_reader() -> Scop:
    """conv -> T (a temporary) -> V[x, y, o] = -T[0, o, y, 7 - x]."""
    of = conv_scop(32, 8, 8, 16, 3)
    tail = statement(
        "{ V[o, y, x] : 0 <= o < 32 and 0 <= y < 8 and 0 <= x < 8 }",
        "{ V[o, y, x] -> O[o, y, x] }",
        call("neg", load("{ V[o, y, x] -> Y[0, o, y, 7 - x] }")),
    )
    arrays = {**of.arrays, "Y": replace(of.arrays["Y"], kind="temporary")}
    arrays["O"] = array("O", [32, 8, 8], "output")
    return Scop("c", (*of.statements, tail), arrays, ("X",), ("O",))


def test_inputs_and_outputs_are_as_the_caller_has_them():
    for stored in store(conv_then_transposed_reader()):
        for name, storage in stored.storages.items():
            if name in ("X", "O"):
                assert storage.is_row_major


def test_a_temporary_has_one_layout_for_all_its_readers():
    producer, reader = store(conv_then_transposed_reader())
    assert producer.storages["Y"] == reader.storages["Y"]
    assert producer.storages["Y"].permutation == (0, 2, 3, 1)


def test_what_no_other_cluster_touches_is_private():
    producer, reader = store(conv_then_transposed_reader())
    assert producer.private == {"acc"}
    assert reader.private == frozenset()
    (softmax,) = store(softmax_scop())
    assert softmax.private == {"M", "D", "N"}


def test_every_array_touched_is_listed_once_and_stored():
    for stored in store(conv_then_transposed_reader()):
        assert len(set(stored.arrays)) == len(stored.arrays)
        assert set(stored.arrays) == set(stored.storages)


def test_a_constant_is_cut_into_panels_of_the_tile():
    (stored,) = store(matmul_scop(64, 64, 64))
    _, _, width = stored.tile
    assert stored.storages["W"].blocks == ((1, width),)


def product(name: str, i: str, j: str, k: str) -> Scop:
    """name_Y[i, j] add= name_X[i, k] * name_W[k, j], 64 x 48 x 32, in these iterators."""
    rows, ends = f"0 <= {i} < 64 and 0 <= {j} < 48", f"{name}_Y[{i}, {j}]"
    fill, add = f"{name}_Z[{i}, {j}]", f"{name}_S[{i}, {j}, {k}]"
    value = call(
        "mul",
        load(f"{{ {add} -> {name}_X[{i}, {k}] }}"),
        load(f"{{ {add} -> {name}_W[{k}, {j}] }}"),
    )
    return scop(
        [
            array(f"{name}_X", [64, 32], "input"),
            array(f"{name}_W", [32, 48], "constant"),
            array(f"{name}_Y", [64, 48], "output"),
        ],
        statement(f"{{ {fill} : {rows} }}", f"{{ {fill} -> {ends} }}", ZERO),
        statement(
            f"{{ {add} : {rows} and 0 <= {k} < 32 }}", f"{{ {add} -> {ends} }}", value, "add"
        ),
    )


def test_equal_clusters_share_a_schedule_each_in_its_own_names(monkeypatch):
    first, second = product("a", "i", "j", "k"), product("b", "row", "column", "depth")
    (alone,) = store(first)
    (expected,) = store(second)
    assert str(alone.schedule) != str(expected.schedule)
    both = Scop(
        "both",
        (*first.statements, *second.statements),
        {**first.arrays, **second.arrays},
        (*first.inputs, *second.inputs),
        (*first.outputs, *second.outputs),
    )
    asked = []
    strategy = Laid.schedule

    def counted(laid, *rest):
        asked.append(laid)
        return strategy(laid, *rest)

    monkeypatch.setattr(Laid, "schedule", counted)
    stored = store(both)
    assert [one.schedule for one in stored] == [alone.schedule, expected.schedule]
    assert len(asked) == 1
