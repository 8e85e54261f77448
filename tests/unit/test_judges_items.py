"""Items of verdicts: grouped and resolved as in plain Python, and as a run would have them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_items as plain
from ragcore import schema
from ragcore.errors import UsageError
from ragcore.judges.codes import matches, packed, sets_of
from ragcore.judges.items import items_of
from ragcore.judges.views import CONFLICT, judges_of, views_of
from ragcore.judgments import read_judgments
from ragcore.units import Vocabulary
from ragcore.verdicts import Matching, Verdicts
from ragcore_kernels import verdicts as kernel

WORDS = {kernel.DISPUTED: "disputed", kernel.FAILED: "failed", kernel.LOW_RUNG: "low"}


def word(verdict):
    return WORDS.get(int(verdict)) or schema.VERDICTS[verdict]


def made(*rows, cases=None, declared=""):
    return items_of(read_judgments(plain.table(*rows)), cases, declared)


def shown(items):
    """Items in the form of `reference_items.items`, with what counts and the verdicts on each."""
    out = {}
    for i in range(len(items)):
        relation = schema.RELATIONS[items.relation[i]]
        chunks = frozenset(items.evidence(i)) if relation in plain.BY_CHUNK else None
        numbers = [None if v < 0 else int(v) for v in (items.claim[i], items.repeat[i])]
        key = (
            items.name("case", items.case[i]), relation, numbers[0], chunks,
            items.name("run", items.run[i]), items.name("lang", items.lang[i]), numbers[1],
        )  # fmt: skip
        assert key not in out
        out[key] = word(items.verdict[i]), items.rows(i).tolist()
    return out


def world(seed, n=60):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        rows.append(
            {
                "run": rng.choice(["r", "s", None]), "case_id": rng.choice("ab"),
                "lang": rng.choice(["en", "zh", None]), "repeat": rng.choice([0, 1, None]),
                "relation": rng.choice(["entailed", "cites", "correct"]),
                "claim": rng.choice([0, 1, None]),
                "evidence": rng.choice([None, [], ["x"], ["x", "y"], ["y", "x", "x"], ["y", "z"]]),
                "verdict": rng.choice(schema.VERDICTS), "judge": rng.choice("jk"),
                "rung": rng.choice(["model", "human"]), "adjudicated": rng.random() < 0.2,
            }
        )  # fmt: skip
    return rows


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("declared", ["", "k"])
def test_items__are_those_of_plain_python(seed, declared):
    rows = world(seed, 5 * (seed + 1))
    full = [{**plain.ROW, **row} for row in rows]
    wanted = {
        key: (plain.resolved(own, declared), [i for i, r in enumerate(full) if r in own])
        for key, own in plain.items(rows).items()
    }
    assert shown(made(*rows, declared=declared)) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_items__do_not_depend_on_the_order_or_the_files(seed):
    rows = world(seed)
    other = list(rows)
    random.Random(7).shuffle(other)
    first, second = shown(made(*rows)), shown(made(*other))
    assert {k: v[0] for k, v in first.items()} == {k: v[0] for k, v in second.items()}
    parts = [plain.table(*rows[:20]), plain.table(*rows[20:])]
    assert shown(items_of(read_judgments(parts))) == first


@pytest.mark.parametrize("seed", range(6))
def test_items__are_resolved_as_for_a_run(seed):
    rng = random.Random(seed)
    cases, langs, repeats, n_claims = ("a", "b"), ("en", "zh"), (0, 1), 3
    rows = [
        {
            "case_id": rng.choice(cases), "lang": rng.choice([*langs, None]),
            "repeat": rng.choice([*repeats, None]), "claim": rng.randrange(n_claims),
            "verdict": rng.choice(schema.VERDICTS), "judge": rng.choice("jk"),
            "rung": rng.choice(["model", "human", "domain"]), "run": rng.choice(["r", None]),
            "adjudicated": rng.random() < 0.1,
        }
        for _ in range(80)
    ]  # fmt: skip
    # One verdict on every cell, so that the judgments name every trace.
    rows += [
        {"case_id": c, "lang": lang, "repeat": r, "claim": k, "rung": "rule"}
        for c in cases for lang in langs for r in repeats for k in range(n_claims)
    ]  # fmt: skip
    required = {"a": "human", "b": None}
    suite = pa.table(
        {"case_id": ["a", "b"], "judge_required": pa.array(["human", None], pa.string())}
    )
    judgments = read_judgments(plain.table(*rows))
    items = items_of(judgments, suite, "k")
    of = [(c, lang, r) for c in cases for lang in langs for r in repeats]
    needed = [schema.RUNGS.index(required[c] or "rule") for c, _, _ in of]
    match = Matching(
        "r", pa.array(cases, pa.large_string()), np.arange(2),
        np.array([cases.index(c) for c, _, _ in of]), [lang for _, lang, _ in of],
        [r for _, _, r in of], np.array(needed, np.int8),
    )  # fmt: skip
    offsets = np.arange(len(of) + 1) * n_claims
    found = Verdicts(judgments, match, Vocabulary(None), "k").claims("entailed", offsets)
    wanted = {
        (*of[i // n_claims], i % n_claims): (int(v), int(r))
        for i, (v, r) in enumerate(zip(found.verdict, found.rung, strict=True))
    }
    got = {
        (items.name("case", items.case[i]), items.name("lang", items.lang[i]),
         int(items.repeat[i]), int(items.claim[i])): (int(items.verdict[i]), int(items.rung[i]))
        for i in range(len(items))
    }  # fmt: skip
    assert got == wanted


def test_items__a_verdict_that_names_no_run_bears_on_all_that_are_named():
    items = made({"run": None, "verdict": "no", "rung": "human"}, {"run": "r"}, {"run": "s"})
    assert sorted(shown(items)) == [
        ("a", "entailed", 0, None, run, "en", 0) for run in ("r", "s")
    ]  # fmt: skip
    assert set(items.verdict.tolist()) == {kernel.NO}
    alone = made({"run": None, "relation": "relevance", "claim": None, "evidence": ["x"]})
    assert list(shown(alone)) == [("a", "relevance", None, frozenset("x"), None, "en", 0)]


def test_items__two_halves_of_a_trace_make_one():
    items = made({"lang": None, "repeat": 1}, {"repeat": None, "verdict": "no"})
    assert list(shown(items)) == [("a", "entailed", 0, None, "r", "en", 1)]
    assert items.verdict.tolist() == [kernel.DISPUTED]


def test_items__hold_to_the_suite():
    suite = pa.table(
        {"case_id": ["a", "a", "b"], "lang": ["en", "zh", "en"],
         "judge_required": ["human", "rule", None]}
    )  # fmt: skip
    rows = [{}, {"lang": "zh"}, {"case_id": "b"}, {"case_id": "b", "lang": "fr"}, {"case_id": "z"}]
    items = made(*rows, {"lang": None, "claim": 1}, cases=suite)
    assert {k[0] + k[5] if k[5] else k[0]: v[0] for k, v in shown(items).items()} == {
        "aen": "low", "azh": "yes", "ben": "yes", "a": "low",
    }  # fmt: skip
    assert items.counts == {
        "verdicts on cases that the suite has not": 1,
        "verdicts in languages that their case has not": 1,
    }
    assert items.used.tolist() == [True, True, True, False, False, True]


def test_items__of_nothing():
    items = made()
    assert len(items) == 0
    assert len(views_of(items, judges_of(items.judgments)).said) == 0


def test_items__a_dictionary_that_repeats_a_word():
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["j", "j"]))
    table = plain.table({}, {"verdict": "no"})
    table = table.set_column(table.column_names.index("judge"), "judge", words)
    items = items_of(read_judgments(table))
    judges = judges_of(items.judgments)
    assert judges.names == ["j"]
    assert views_of(items, judges).said.tolist() == [CONFLICT]


# --- judges


def test_judges__are_told_apart_by_version():
    rows = [{"judge_version": v, "claim": i} for i, v in enumerate(["2", "1", None, "1"])]
    judges = judges_of(read_judgments(plain.table(*rows, {"judge": "h", "rung": "human"})))
    assert judges.names == ["h", "j", "j@1", "j@2"]
    assert judges.of.tolist() == [3, 2, 1, 2, 0]
    assert [schema.RUNGS[r] for r in judges.rung] == ["human", "model", "model", "model"]
    assert judges.find("h") == 0
    assert judges.find("j@2") == 3
    assert judges.find("j") == 1


def test_judges__unknown_or_vague_names():
    rows = [{"judge": "literal", "judge_version": v, "claim": i} for i, v in enumerate("12")]
    judges = judges_of(read_judgments(plain.table(*rows)))
    with pytest.raises(UsageError, match="'literal' has 2 versions") as vague:
        judges.find("literal")
    assert "literal@1, literal@2" in vague.value.hint
    with pytest.raises(UsageError, match="no verdict is of a judge 'litteral@1'") as unknown:
        judges.find("litteral@1")
    assert "literal@1" in unknown.value.hint


def test_views__what_one_judge_says():
    rows = [
        {"claim": 0}, {"claim": 0}, {"claim": 1}, {"claim": 1, "verdict": "no"},
        {"claim": 2, "verdict": "error"}, {"claim": 2, "verdict": "unclear"},
        {"claim": 3, "verdict": "error"}, {"claim": 4, "verdict": "unclear"}, {"claim": 4},
        {"claim": 5, "adjudicated": True},
    ]  # fmt: skip
    items = made(*rows)
    views = views_of(items, judges_of(items.judgments))
    said = {int(items.claim[i]): int(s) for i, s in zip(views.item, views.said, strict=True)}
    assert said == {
        0: kernel.YES, 1: CONFLICT, 2: kernel.UNCLEAR, 3: kernel.ERROR, 4: kernel.YES,
    }  # fmt: skip


# --- codes


@given(st.lists(st.tuples(*[st.integers(-1, 3)] * 3), max_size=30))
def test_packed__is_equal_where_rows_are(rows):
    columns = [np.array([r[i] for r in rows], np.int64) for i in range(3)]
    codes = packed(*columns).tolist()
    assert len(set(codes)) == len(set(rows))
    assert len(set(zip(codes, rows, strict=True))) == len(set(rows))


def test_packed__has_room_for_any_number_of_columns():
    big = np.array([2**40, 5, 2**40], np.int64)
    codes = packed(*[big] * 5).tolist()
    assert codes[0] == codes[2] != codes[1]


@given(st.lists(st.integers(0, 4), max_size=12), st.lists(st.integers(0, 4), max_size=12))
def test_matches__are_all_pairs(left, right):
    i, j = matches(np.array(left, np.int64), np.array(right, np.int64))
    wanted = [(a, b) for a, x in enumerate(left) for b, y in enumerate(right) if x == y]
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == wanted


@given(st.lists(st.lists(st.integers(-1, 3), max_size=5), max_size=12), st.randoms())
def test_sets__are_equal_where_lists_hold_the_same(lists, rng):
    wanted = np.array([rng.random() < 0.8 for _ in lists], np.bool_)
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    codes = sets_of(offsets, np.array([c for one in lists for c in one], np.int64), wanted)
    held = [frozenset(one) if w else frozenset() for one, w in zip(lists, wanted, strict=True)]
    assert len(set(zip(codes.tolist(), held, strict=True))) == len(set(held)) == len(set(codes))
    assert all((code == -1) == (not one) for code, one in zip(codes.tolist(), held, strict=True))
