"""Which local arrays can be named variables, and how those are called."""

from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Block, Local
from polyc.loopnest.registers import Register, find_registers, register_of
from tests.analysis.nests import F32, ZERO, at, loop, read, run

i, v = var("i"), var("v")
LANES = loop("v", 16, kind="vector")
SHIFTED = loop("v", 20, lower=16, kind="vector")


def in_registers(*body, shape=(2, 32)) -> bool:
    (local,) = find_registers(Block(body, (Local("r", F32, shape, "acc"),))).locals
    return local.in_registers


def test_an_element_at_a_literal_index_is_a_register():
    assert register_of(at("r", 1, 3), None) == Register((1, 3), 0, 1)
    assert register_of(at("r", 1, 3), LANES) == Register((1, 3), 0, 1)
    assert register_of(at("r", i), None) is None


def test_a_vector_that_starts_at_a_literal_index_is_a_register():
    assert register_of(at("r", 1, v), LANES) == Register((1, 0), 1, 16)
    assert register_of(at("r", 1, v + 4), SHIFTED) == Register((1, 20), 1, 4)
    assert register_of(at("r", 1, v * 2), LANES) is None
    assert register_of(at("r", v, v), LANES) is None
    assert register_of(at("r", 1, v + i), LANES) is None
    assert register_of(at("r", v), loop("v", i + 4, lower=i, kind="vector")) is None


def test_names_leave_out_dimensions_of_one_element():
    local = Local("acc", F32, (1, 32, 1, 4), "A")
    assert Register((0, 16, 0, 3), 1, 16).name(local) == "acc_16_3"
    assert Register((), 0, 1).name(Local("s", F32, (), "S")) == "s"


def test_cells():
    assert list(Register((1, 16), 1, 3).cells) == [(1, 16), (1, 17), (1, 18)]
    assert list(Register((), 0, 1).cells) == [()]


def test_accesses_that_agree_make_registers():
    start = loop("v", 16, run("Z", [v], at("r", 0, v), ZERO), kind="vector")
    update = run("S", [i, v], at("r", 0, v), read("X", i, v), "add")
    total = loop("i", 9, loop("v", 16, update, kind="vector"))
    assert in_registers(start, total)


def test_one_access_at_a_running_index_spoils_them():
    start = loop("v", 16, run("Z", [v], at("r", 0, v), ZERO), kind="vector")
    assert not in_registers(start, loop("i", 9, run("T", [i], at("Y", i), read("r", 0, i))))


def test_vectors_that_cut_the_array_differently_spoil_them():
    whole = loop("v", 16, run("Z", [v], at("r", 0, v), ZERO), kind="vector")
    half = loop("v", 12, run("Z", [v], at("r", 0, v), ZERO), lower=4, kind="vector")
    single = run("T", [0], at("Y", 0), read("r", 0, 5))
    assert not in_registers(whole, half)
    assert not in_registers(whole, single)
    assert in_registers(whole, run("T", [0], at("Y", 0), read("r", 1, 5)))


def test_a_local_of_an_inner_block_is_judged_there():
    inner = Block((run("Z", [0], at("r", const(0)), ZERO),), (Local("r", F32, (1,), "acc"),))
    outer = find_registers(Block((loop("i", 3, inner),)))
    assert outer.body[0].body.body[0].locals[0].in_registers
