"""Answers about sets are remembered for questions that are plainly equal, and for no others."""

import islpy as isl

from polyc.poly.remember import normalise, remember, remember_within, without_name


def test_one_question_is_asked_once():
    asked = []

    @remember
    def least(domain, within):
        asked.append(domain)
        return domain.intersect(within).dim_min_val(0).to_python()

    within = isl.Set("{ [i] : i >= 5 }")
    assert least(isl.Set("{ [i] : 3 <= i < 9 }"), within) == 5
    assert least(isl.Set("{ [i] : i < 9 and i >= 3 }"), isl.Set("{ [j] : 5 <= j }")) == 5
    assert len(asked) == 1


def test_what_differs_is_asked_anew():
    @remember
    def least(domain):
        return domain.dim_min_val(0).to_python()

    texts = ["{ [i] : 3 <= i < 9 }", "{ [i] : 4 <= i < 9 }", "{ [i, j] : 2 <= i < 9 and j = 0 }"]
    assert [least(isl.Set(text)) for text in texts] == [3, 4, 2]
    assert [least(isl.Set(text)) for text in texts] == [3, 4, 2]


def test_parameters_and_names_belong_to_the_question():
    @remember
    def show(domain):
        return str(domain)

    texts = ["[n] -> { [i] : 0 <= i < n }", "[m] -> { [i] : 0 <= i < m }"]
    texts += [text.replace("[i]", "S[i]") for text in texts]
    assert len({show(isl.Set(text)) for text in texts}) == 4


def test_what_is_known_is_the_very_same_or_another():
    asked = []

    @remember_within
    def common(domain, known):
        asked.append(known)
        return domain.intersect(known)

    known, again = isl.Set("{ [i] : i >= 5 }"), isl.Set("{ [i] : i >= 5 }")
    one = isl.Set("{ [i] : 3 <= i < 9 }")
    assert common(one, known).is_equal(common(isl.Set("{ [j] : j >= 3 and j <= 8 }"), known))
    assert len(asked) == 1
    assert common(one, again).is_equal(common(one, known))
    assert len(asked) == 2


def test_names_do_not_matter_to_what_is_done_without_them() -> None:
    asked: list[isl.Set] = []

    @remember
    def positive(elements: isl.Set) -> isl.Set:
        asked.append(elements)
        return elements.intersect(isl.Set("{ [i] : i > 0 }"))

    one, other = isl.Set("{ S[i] : i < 9 }"), isl.Set("{ T[i] : i < 9 }")
    assert without_name(one, positive) == isl.Set("{ S[i] : 0 < i < 9 }")
    assert without_name(other, positive) == isl.Set("{ T[i] : 0 < i < 9 }")
    assert len(asked) == 1
    assert without_name(isl.Set("{ [i] : i < 9 }"), positive) == isl.Set("{ [i] : 0 < i < 9 }")


def test_a_set_in_normal_form_has_the_same_elements_and_less_to_say() -> None:
    def bounds(elements: isl.Set) -> int:
        (part,) = elements.get_basic_sets()
        return len(part.get_constraints())

    known = isl.Set("[n] -> { [i] : 0 <= i < n and n >= 1 and i <= n + 5 }")
    before = bounds(known.intersect(isl.Set("[n] -> { [i] : i + n >= -3 }")))
    made = known.intersect(isl.Set("[n] -> { [i] : i + n >= -3 }"))
    assert normalise(made) is made
    assert made == isl.Set("[n] -> { [i] : 0 <= i < n }")
    assert bounds(made) < before


def test_iterators_keep_their_names() -> None:
    @remember
    def same(elements: isl.Set) -> isl.Set:
        return elements

    without_name(isl.Set("{ S[i] : i < 9 }"), same)
    assert without_name(isl.Set("{ T[j] : j < 9 }"), same).get_dim_name(isl.dim_type.set, 0) == "j"
