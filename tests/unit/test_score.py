"""Scoring: properties against plain Python, policies, states, languages, several runs."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tables
from ragcore import score
from ragcore.errors import InputError, UsageError
from ragcore.measures import engine

MEASURES = (
    "nDCG@5", "nDCG", "nDCG_exp@10", "AP", "AP@3", "R@5", "P@3", "P(rel=2)@5", "RR", "Success@1",
    "Judged@5", "Bpref", "infAP", "Rprec", "RBP", "ERR@10", "SetF", "IPrec@0.3", "11pt_avg",
    "nDCG(judged_only=True)@4", "NumRet", "binG", "unj_5", "R_capped@3",
)  # fmt: skip
quiet = settings(derandomize=True, deadline=None, max_examples=25)
docs = st.sampled_from([f"d{i}" for i in range(9)] + ["", "d", "é", "文"])
values = st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, math.inf, -math.inf, 1e-300])
runs = st.dictionaries(
    st.sampled_from(["p", "q", "r", "s"]), st.dictionaries(docs, values, max_size=9),
    min_size=1, max_size=4,
).filter(lambda run: "q" in run)  # fmt: skip
judged = st.dictionaries(docs, st.integers(-1, 3), min_size=1, max_size=9)
qrels = st.fixed_dictionaries({"q": judged}, optional={"p": judged, "t": judged})


def bits(scores):
    table = scores.table().to_pydict()
    rows = zip(table["measure"], table["case_id"], table["value"], strict=True)
    return sorted((m, c, v is not None and v.hex()) for m, c, v in rows)


def table(run, order=None, cuts=()):
    rows = [(case, doc, value) for case, found in run.items() for doc, value in found.items()]
    if order is not None:
        random.Random(order).shuffle(rows)
    return tables.flat_of(rows, cuts=cuts)


# --- properties


@given(runs, qrels, st.sampled_from([1, 2]), st.sampled_from(["zero", "na"]))
@quiet
def test_score__equals_plain_python(run, judgements, rel, no_relevant):
    scores = score(
        run, qrels=judgements, measures=MEASURES, rel=rel, no_relevant=no_relevant, threads=1
    )
    pairs = {case: list(found.items()) for case, found in run.items()}
    for name in MEASURES:
        truth = tables.truth(pairs, judgements, name, rel, no_relevant)
        found = scores.per_case(name)
        assert found.keys() == truth.keys()
        for case, value in truth.items():
            near = value is None or math.isclose(found[case] or 0.0, value, abs_tol=1e-12)
            assert near, (name, case)
            assert (found[case] is None) == (value is None), (name, case)


@given(runs, qrels, st.integers(0, 9))
@quiet
def test_score__knows_no_order_of_rows_cases_and_batches(run, judgements, seed):
    options = {"measures": MEASURES, "allow_empty": True}
    plain = bits(score(table(run), qrels=judgements, **options))
    cuts = random.Random(seed).sample(range(20), 3)
    assert bits(score(table(run, seed, cuts), qrels=judgements, **options)) == plain
    turned = dict(reversed(judgements.items()))
    assert bits(score(table(dict(reversed(run.items()))), qrels=turned, **options)) == plain


@given(runs, qrels, st.sampled_from([2.0**-20, 0.5, 2.0, 2.0**30]))
@quiet
def test_score__knows_no_scale_of_scores(run, judgements, factor):
    scaled = {c: {d: v * factor for d, v in found.items()} for c, found in run.items()}
    plain, other = (score(r, qrels=judgements, measures=MEASURES) for r in (run, scaled))
    assert bits(plain) == bits(other)


def test_score__gives_the_same_bits_on_any_number_of_threads(monkeypatch):
    run, judgements = tables.world(5, n_cases=60, depth=20)
    one = bits(score(tables.flat(run), qrels=judgements, measures=MEASURES, threads=1))
    monkeypatch.setattr(engine, "SERIAL_ROWS", 0)
    for threads in (1, 2, 7):
        many = score(tables.flat(run), qrels=judgements, measures=MEASURES, threads=threads)
        assert bits(many) == one


def test_score__values_are_numerator_by_denominator():
    run, judgements = tables.world(6)
    found = score(tables.flat(run), qrels=judgements, measures=MEASURES).table().to_pylist()
    divided = 0
    for row in found:
        if row["numerator"] is not None and row["value"] is not None:
            bottom = row["denominator"]
            quotient = row["numerator"] / bottom if bottom else 0.0
            assert math.isclose(quotient, row["value"], abs_tol=1e-15), row
            divided += 1
        assert (row["value"] is None) == (row["state"] != "ok")
    assert divided > len(found) / 3


# --- which cases count


RUN = {"q": {"a": 2.0, "b": 1.0}, "extra": {"a": 1.0}}
QRELS = {"q": {"b": 1}, "gone": {"a": 1}, "none": {"a": 0}}


def test_topics__judged_counts_a_missing_case_as_0_and_common_leaves_it_out():
    scores = score(RUN, qrels=QRELS, measures=["RR"])
    assert scores.per_case("RR") == {"q": 0.5, "gone": 0.0, "none": 0.0}
    assert scores.mean("RR") == 0.5 / 3
    common = score(RUN, qrels=QRELS, measures=["RR"], topics="common")
    assert common.per_case("RR") == {"q": 0.5}


def test_no_relevant__zero_or_na():
    zero = score(RUN, qrels=QRELS, measures=["RR"])
    assert (zero.value("RR", "none"), zero.state("RR", "none")) == (0.0, "ok")
    assert zero.summary().to_pylist()[0]["note"] == "1 without a relevant document count 0"
    na = score(RUN, qrels=QRELS, measures=["RR"], no_relevant="na")
    assert (na.value("RR", "none"), na.state("RR", "none")) == (None, "na")
    assert na.mean("RR") == 0.25
    row = na.summary().to_pylist()[0]
    assert (row["n_cases"], row["n_ok"], row["n_na"], row["numerator"]) == (3, 2, 1, 0.5)
    assert set(na.table()["reason"].to_pylist()) == {None, "no-relevant"}


def test_no_relevant__judges_gains_by_their_map():
    none = score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}}, measures=["nDCG(gains={1: 0})"])
    assert none.mean(none.measures[0]) == 0.0


def test_rel__is_the_least_relevant_grade():
    judgements = {"q": {"a": 1, "b": 2}}
    for rel, expected in ((0, 1.0), (1, 1.0), (2, 0.5), (3, 0.0)):
        assert score(RUN, qrels=judgements, measures=["RR"], rel=rel).mean("RR") == expected
    assert score(RUN, qrels=judgements, measures=["RR(rel=1)"], rel=2).mean("RR(rel=1)") == 1.0


def test_rel__below_0_makes_no_pooled_document_relevant():
    judgements = {"q": {"a": -1, "b": 0}}
    scores = score(RUN, qrels=judgements, measures=["AP", "P@2", "R"], rel=-1)
    assert (
        scores.means() == score(RUN, qrels=judgements, measures=["AP", "P@2", "R"], rel=0).means()
    )


def test_max_depth__keeps_so_many_ranks():
    scores = score(RUN, qrels=QRELS, measures=["RR", "NumRet"], max_depth=1)
    assert scores.value("RR", "q") == 0.0
    assert scores.value("NumRet", "q") == 1.0


def test_allow_empty__lets_a_run_of_nothing_score():
    for empty in ({}, {"q": {}}, tables.flat({})):
        scores = score(empty, qrels=QRELS, measures=["RR"], allow_empty=True)
        assert scores.per_case("RR") == {"q": 0.0, "gone": 0.0, "none": 0.0}
    with pytest.raises(InputError, match="no row at all"):
        score(tables.flat({}), qrels=QRELS)


# --- duplicates, own ids, normal forms


ROWS = [("q", "b", 1.0), ("q", "a", 2.0), ("q", "b", 3.0), ("q", "c", 2.5), ("q", "b", 1.0)]


@pytest.mark.parametrize(("policy", "rank"), [("first", 3), ("last", 3), ("max", 1)])
def test_duplicates__keep_the_row_of_the_policy(policy, rank):
    scores = score(
        tables.flat_of(ROWS), qrels={"q": {"b": 1}}, measures=["RR", "NumRet"], duplicates=policy
    )
    assert scores.means() == {"RR": 1 / rank, "NumRet": 3.0}
    assert scores.audits[0].counts["rows left out"] == 2


def test_duplicates__are_refused_by_row_and_named():
    with pytest.raises(InputError, match=r"document 'b' of case 'q' \(also row 1\)") as caught:
        score(tables.flat_of(ROWS), qrels={"q": {"b": 1}})
    assert caught.value.row == 3
    assert "--duplicates" in caught.value.hint


def test_drop_identical_ids__leaves_the_own_document_out():
    run = {"q": {"q": 3.0, "a": 2.0, "b": 1.0}, "r": {"q": 2.0, "a": 1.0}}
    judgements = {"q": {"q": 1, "a": 1}, "r": {"q": 1, "a": 0}}
    pairs = {c: list(found.items()) for c, found in run.items()}
    for source in (run, tables.flat(pairs, "dict-int8-string"), tables.nested(pairs)):
        scores = score(
            source, qrels=judgements, measures=["NumRet", "P@1"], drop_identical_ids=True
        )
        assert scores.per_case("NumRet") == {"q": 2.0, "r": 2.0}
        assert scores.per_case("P@1") == {"q": 1.0, "r": 1.0}


NFC, NFD = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(("ours", "theirs"), [(NFC, NFD), (NFD, NFC)])
def test_normalize_ids__joins_cases_and_documents(ours, theirs):
    run, judgements = {ours: {ours: 1.0}}, {theirs: {theirs: 1}}
    assert score(run, qrels=judgements, measures=["P@1"], normalize_ids="nfc").mean("P@1") == 1.0
    with pytest.raises(InputError, match="no case in common"):
        score(run, qrels=judgements)


@pytest.mark.parametrize("pair", [(NFC, NFD), ("K", "\u212a")])
def test_normalize_ids__refuses_ids_that_become_one(pair):
    run = {"p": {pair[0]: 1.0}, "q": {pair[1]: 1.0}}
    with pytest.raises(InputError, match="are one in NFC"):
        score(run, qrels={"p": {"a": 1}}, normalize_ids="nfc")


# --- several runs


def test_runs__several_at_once_equal_each_alone():
    judgements = {c: {"d1": 1, "d2": 2} for c in "pq"}
    run = {"q": {"d1": 2.0, "d2": 1.0}}
    many = [run, tables.flat({"p": [("d2", 1.0)], "x": [("d2", 1.0)]}),
            tables.nested({"p": [("d1", 1.0)], "y": []})]  # fmt: skip
    together = score(many, qrels=judgements, measures=MEASURES)
    for i, one in enumerate(many):
        alone = score(one, qrels=judgements, measures=MEASURES)
        for name in MEASURES:
            assert together.per_case(name, i) == alone.per_case(name)
    assert together.table().num_rows == 3 * 2 * len(MEASURES)
    with pytest.raises(UsageError, match=r"no run 'zz'(?s:.*)runs: run1, run2, run3"):
        together.mean("AP", "zz")


def test_runs__of_both_forms_say_how_each_is_ordered():
    mixed = [{"q": {"a": 1.0}}, tables.nested({"q": [("a", 1.0)]})]
    said = score(mixed, qrels={"q": {"a": 1}}, measures=["RR"]).policy["order"]
    assert "recorded" in said
    assert "score" in said


# --- case batches: languages, repeats, states


def batch(*rows, **extra):
    """(case, lang, repeat, ids or None)"""
    columns = {
        "case_id": [r[0] for r in rows],
        "lang": pa.array([r[1] for r in rows], pa.string()),
        "repeat": pa.array([r[2] for r in rows], pa.int16()),
        "ranked": pa.array([r[3] for r in rows], pa.list_(pa.string())),
    }
    return pa.table(columns | extra)


@pytest.fixture
def suite(tmp_path):
    cases = pa.table({
        "case_id": ["A", "A", "B", "C", "D"],
        "lang": pa.array(["en", "zh", "en", "en", "en"]).dictionary_encode(),
        "status": ["final", None, "disputed", "stale", "unreviewed"],
        "evidence": [
            tables.evidence(("d1", 2, True), ("d2", 1, False)), tables.evidence(("z1", 1, True)),
            tables.evidence("d1"), tables.evidence("d1"), [],
        ],
    })  # fmt: skip
    return tables.write_suite(tmp_path / "little", cases)


def test_batch__variants_and_repeats_are_averaged_inside_the_case(suite):
    run = batch(("A", "en", 0, ["d1"]), ("A", "en", 1, ["x", "d1"]), ("A", "zh", 0, ["x"]))
    scores = score(run, suite=suite, measures=["RR", "retrieval.coverage"])
    assert scores.value("RR", "A") == pytest.approx((1 + 0.5 + 0) / 3)
    assert scores.value("retrieval.coverage", "A") == pytest.approx(2 / 3)
    row = scores.summary().to_pylist()[0]
    assert (row["n_cases"], row["n_ok"], row["n_disputed"], row["n_na"]) == (4, 1, 2, 1)
    assert "1 differ between variants" in row["note"]
    assert scores.policy["no_relevant"] == "na"


def test_batch__states_of_labels_lists_and_errors(suite):
    run = batch(
        ("A", "en", 0, None), ("A", "zh", 0, ["z1"]), ("B", "en", 0, ["d1"]), ("C", "en", 0, []),
        ("D", "en", 0, ["d1"]), ("E", "en", 0, ["d1"]),
        error=[None] * 6,
    )  # fmt: skip
    scores = score(run, suite=suite, measures=["RR"])
    found = {case: scores.state("RR", case) for case in "ABCDE"}
    assert found == {"A": "ok", "B": "disputed", "C": "disputed", "D": "na", "E": None}
    rows = scores.table().to_pylist()
    assert [(r["lang"], r["state"], r["reason"]) for r in rows if r["case_id"] == "A"] == [
        ("en", "missing", "not-recorded"), ("zh", "ok", None)
    ]  # fmt: skip
    assert scores.audits[0].not_judged == ["E"]
    assert scores.audits[0].no_judgements == ["D"]
    failed = batch(("A", "en", 0, None), ("A", "zh", 0, None), error=["timeout", None])
    scores = score(failed, suite=suite, measures=["RR"], allow_empty=True)
    assert scores.state("RR", "A") == "failed"
    assert scores.summary().to_pylist()[0]["n_failed"] == 1


def test_batch__a_language_that_the_suite_lacks_loses_no_case(suite):
    run = batch(("A", "fr", 0, ["d1"]), ("D", "en", 0, ["d1"]))
    scores = score(run, suite=suite, measures=["RR"])
    assert scores.summary().to_pylist()[0]["n_cases"] == 4
    assert "A" in scores.audits[0].missing_in_run


def test_batch__without_language_takes_the_only_one(suite, tmp_path):
    scores = score(tables.nested({"D": [("d1", 1.0)]}), suite=suite, measures=["NumRet"])
    assert scores.table()["lang"].to_pylist()[0] == "en"
    plain = pa.table({"case_id": ["D"], "evidence": [tables.evidence("d1")]})
    other = tables.write_suite(tmp_path / "plain", plain)
    for run in (batch(("D", "en", 0, ["d1"])), batch(("D", None, 0, ["d1"])), {"D": {"d1": 1.0}}):
        assert score(run, suite=other, measures=["RR"]).mean("RR") == 1.0


def test_batch__flat_rows_meet_no_case_in_several_languages(suite):
    with pytest.raises(InputError, match="cases in several"):
        score({"A": {"d1": 1.0}}, suite=suite)


def test_batch__a_trace_twice_is_refused(suite):
    run = batch(("A", "en", 0, ["d1"]), ("A", "zh", 0, []), ("A", "en", 0, ["d2"]))
    with pytest.raises(
        InputError, match=r"case 'A', language 'en', repeat 0 stands twice"
    ) as caught:
        score(run, suite=suite)
    assert caught.value.row == 3


def test_batch__against_qrels_judges_every_language_alike():
    run = batch(("A", "en", 0, ["d1"]), ("A", "zh", 0, ["x", "d1"]))
    scores = score(run, qrels={"A": {"d1": 1}, "B": {"d1": 1}}, measures=["RR"])
    assert scores.per_case("RR") == {"A": 0.75, "B": 0.0}
    assert scores.table()["lang"].to_pylist() == ["en", "zh", None]


def test_scores__asked_for_what_is_not_there():
    scores = score(RUN, qrels=QRELS, measures=["RR"])
    with pytest.raises(UsageError, match=r"measure 'AP' was not scored(?s:.*)scored: RR"):
        scores.mean("AP")
    assert scores.value("RR", "nobody") is None
    assert scores.state("RR", "nobody") is None
    assert np.isnan(score(RUN, qrels={"q": {"a": 0}}, measures=["RR"], no_relevant="na").mean("RR"))
