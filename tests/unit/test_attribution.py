"""Attribution by replays, certificates of what was changed, and what a query keeps."""

from __future__ import annotations

from itertools import product

import pytest

from ragcore.diagnosis.attribution import (
    ANSWER_SIDE,
    EVIDENCE_SIDE,
    FAILS,
    FLIPS,
    NOT_JUDGED,
    RECOVERS,
    SAME,
    Attribution,
    Interventions,
    attribute,
)
from ragcore.diagnosis.certificate import IDENTITIES, certify
from ragcore.diagnosis.layers import LAYERS, RULES
from ragcore.diagnosis.phrasing import keeps, kept

REPLAYED = ("", RECOVERS, FAILS, NOT_JUDGED)


def rule(first, oracle, frozen, output, violated):
    """The five sentences of the rule."""
    if violated:
        return "", "hard violation"
    if output == FLIPS:
        return "evaluation", "disputed"
    side = set()
    if oracle == RECOVERS:
        side = set(LAYERS[:5])
    elif oracle == FAILS and frozen == RECOVERS:
        side = {"generation", "citation"}
    if not oracle and not frozen:
        return first, "hypothesis"
    return first, "attributed" if first in side else "uncertain"


@pytest.mark.parametrize("place", range(9))
def test_attribute__every_first_layer_and_outcome(place):
    for letter, oracle, frozen, output, violated in product(
        "FG", REPLAYED, REPLAYED, ("", SAME, FLIPS, NOT_JUDGED), (False, True)
    ):
        states = ["P"] * 8
        if place < 8:
            states[place:] = [letter] + ["F"] * (7 - place)
        found = attribute(" ".join(states), Interventions(oracle, frozen, output), True, violated)
        first = LAYERS[place] if place < 8 else ""
        assert (found.layer, found.status) == rule(first, oracle, frozen, output, violated)


def test_attribute__what_passed_is_no_failure():
    one = attribute("P P P P F P N N", Interventions(), False)
    assert (one, str(one)) == (Attribution("", "passed"), "passed")
    assert attribute("P P P P P P P F", Interventions("", "", FLIPS), False).status == "disputed"


def test_layers__have_a_side_and_a_rule_each():
    assert set(LAYERS) == set(RULES) == EVIDENCE_SIDE | ANSWER_SIDE | {"evaluation"}


BOUND = {"run": "a", "identities": {name: f"{name} 1" for name in IDENTITIES}, "k": 5}


def replay(condition, declared, **changed):
    after = {
        **BOUND, "run": "b", "single_change": declared,
        "identities": {**BOUND["identities"], **changed},
    }  # fmt: skip
    return certify(BOUND, after, condition)


def test_certificate__exactly_the_declared_key():
    good = replay("oracle_context", "identities.assembler", assembler="gold pages")
    assert (good.single, good.isolates, good.unbound) == (True, True, ())
    other = replay("oracle_context", "identities.model", assembler="gold pages")
    assert (other.single, other.isolates) == (False, True)
    two = replay("oracle_context", "identities.assembler", assembler="x", model="y")
    assert (two.single, two.isolates) == (False, False)
    assert "must not change assembler, model" in two.sentence()
    none = replay("frozen_context", "identities.model")
    assert (none.single, none.changed) == (False, ())


@pytest.mark.parametrize("name", IDENTITIES)
def test_certificate__each_replay_changes_its_own_kind(name):
    allowed = {
        "oracle_context": {"assembler"}, "frozen_output": {"evaluator"},
        "frozen_context": {"model", "message", "decoding", "schema", "validator"},
    }  # fmt: skip
    for condition, names in allowed.items():
        assert replay(condition, f"identities.{name}", **{name: "2"}).isolates is (name in names)


def test_certificate__plain_runs_and_what_is_not_bound():
    single = certify({"k": 5, "run": "a"}, {"k": 6, "run": "b", "single_change": "k"})
    assert (single.single, single.unbound) == (True, ())
    assert not certify({"k": 5}, {"k": 6, "j": 1, "single_change": "k"}).single
    assert not certify({"k": 5}, {"k": 6}).single
    assert not certify({}, {"k": 6, "single_change": "k"}).single
    bare = certify({"identities": {"model": "1"}}, {"identities": {"model": "2"}}, "frozen_context")
    assert bare.unbound == tuple(name for name in IDENTITIES if name != "model")
    assert "not bound: case" in bare.sentence()
    assert certify({}, {}, "frozen_output").isolates


KEEPS = [
    ("How long does F12 run?", "F12 running time", "en", True),
    ("How long does F12 run?", "freezer running time", "en", False),
    ("limit in 2024?", "limit", "en", False),
    ("a kettle without its filter", "kettle filter", "en", False),
    ("a kettle without its filter", "kettle, no filter", "en", True),
    ("Isn't it allowed?", "allowed", "en", False),
    ("nothing special", "special", "en", True),
    ("没有滤芯的水壶", "水壶 滤芯", "zh", False),
    ("没有滤芯的水壶", "无 滤芯 水壶", "zh", True),
    ("没有滤芯的水壶", "水壶 滤芯", "zh-Hans", False),
    ("ohne Filter", "Filter", "de", True),
    ("at most 1.5 l", "at most 1.6 l", None, False),
    ("v2B today", "V2b", "en", True),
]


@pytest.mark.parametrize(("question", "query", "lang", "wanted"), KEEPS)
def test_query__keeps_numbers_names_and_negations(question, query, lang, wanted):
    assert keeps(question, query, lang) is wanted


def test_query__not_recorded_is_neither():
    assert kept(["a 1", "a 1", None], ["a 1", None, "x"], [None] * 3) == [True, None, None]
