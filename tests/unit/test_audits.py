"""What did not join: counted, named, and ids that differ by next to nothing."""

import pytest

import tables
from ragcore import score
from ragcore.audits import difference, fold, near
from ragcore.errors import InputError

NFC, NFD = "caf\u00e9", "cafe\u0301"


def audit(run, qrels, **options):
    (found,) = score(run, qrels=qrels, measures=["RR"], **options).audits
    return found


@pytest.mark.parametrize(
    ("ours", "theirs", "how"),
    [
        ("d7", "d007", "zero padding"),
        ("CACM-1", "CACM-0001", "zero padding"),
        ("Doc1", "doc1", "case"),
        ("STRASSE", "straße", "case"),
        (NFC, NFD, "NFC/NFD"),
        ("d1", " d1", "white space"),
        ("d1", "d1\u00a0", "white space"),
        ("d\u200b1", "d1", "white space"),
        ("\ufeffd1", "d1", "white space"),
        ("D 07", "d7", "white space, zero padding, case"),
        (f"{NFD} 1", f"{NFC.upper()}01", "NFC/NFD, white space, zero padding, case"),
    ],
)
def test_near__names_the_difference(ours, theirs, how):
    assert fold(ours) == fold(theirs)
    assert near([ours], [theirs]) == [(ours, theirs, how)]
    assert difference(theirs, ours) == how


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("d1", "d2"), ("d10", "d1"), ("0", "00"), ("d1", "d1"), ("", "0"), ("100", "1")],
)
def test_near__leaves_what_differs_or_is_equal(ours, theirs):
    found = near([ours], [theirs])
    assert found == [] or {ours, theirs} == {"0", "00"}


def test_near_misses__of_cases_and_documents_are_named():
    run = {"q1": {"d01": 2.0, "Doc": 1.0}, "Q2": {"a": 1.0}}
    qrels = {"q1": {"d1": 1, "doc": 1, "z": 1}, "q2": {"a": 1}}
    found = audit(run, qrels)
    assert ("Q2", "q2", "case") in found.near_misses
    assert ("d01", "d1", "zero padding") in found.near_misses
    assert ("Doc", "doc", "case") in found.near_misses
    said = "\n".join(found.warnings)
    assert "3 unmatched id(s) would equal a judged one but for their form" in said
    assert "'Q2' and 'q2' (case)" in said


def test_near_misses__do_not_pair_ids_that_both_sides_have():
    run = {"q": {"d1": 2.0, "d01": 1.0}}
    assert audit(run, {"q": {"d1": 1, "d01": 0}}).near_misses == []


@pytest.mark.parametrize(
    ("ours", "theirs"), [("Q1", "q1"), ("1", "001"), (NFC, NFD), ("q1 ", "q1")]
)
def test_no_common_case__names_the_ids_that_look_alike(ours, theirs):
    with pytest.raises(InputError, match="no case in common") as caught:
        score({ours: {"a": 1.0}}, qrels={theirs: {"a": 1}})
    assert "look alike" in caught.value.hint


def test_counts__of_everything():
    run = {"q": {"a": 2.0, "b": 1.0}, "x": {"a": 1.0}, "n": {"a": 1.0}}
    qrels = {"q": {"a": 1, "c": 1, "p": -1}, "gone": {"a": 2}, "n": {"a": 0}}
    found = audit(run, qrels)
    assert (found.missing_in_run, found.not_judged, found.no_relevant) == (["gone"], ["x"], ["n"])
    assert {name: found.counts[name] for name in (
        "cases judged", "cases scored", "cases missing in the run", "cases not judged",
        "cases without a relevant document", "rows", "judged documents",
        "judged documents not retrieved",
    )} == {
        "cases judged": 3, "cases scored": 2, "cases missing in the run": 1, "cases not judged": 1,
        "cases without a relevant document": 1, "rows": 4, "judged documents": 4,
        "judged documents not retrieved": 2,
    }  # fmt: skip
    said = "\n".join(found.warnings)
    assert "1 judged case(s) missing in the run, scored as empty: 'gone'" in said
    assert "1 case(s) of the run not judged, left out: 'x'" in said
    assert "1 case(s) without a relevant document, count 0 (--no-relevant zero): 'n'" in said


def test_counts__of_common_topics_say_left_out():
    found = audit({"q": {"a": 1.0}}, {"q": {"a": 1}, "gone": {"a": 1}}, topics="common")
    assert "missing in the run, left out (--topics common): 'gone'" in "\n".join(found.warnings)


def test_counts__of_what_is_left_out_are_not_those_of_what_is_scored():
    judged = {"q": {"a": 0}, "gone": {"a": 0}}
    for topics, n in (("common", 1), ("judged", 2)):
        found = audit({"q": {"a": 1.0}}, judged, topics=topics, no_relevant="na")
        assert found.counts["cases without a relevant document"] == n


def test_counts__many_names_are_cut_short():
    qrels = {f"c{i}": {"a": 1} for i in range(9)} | {"q": {"a": 1}}
    said = "\n".join(audit({"q": {"a": 1.0}}, qrels).warnings)
    assert "9 judged case(s)" in said
    assert "'c4' and 4 more" in said


def test_no_relevant__follows_rel():
    scores = score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}}, measures=["RR"], rel=2)
    assert scores.audits[0].no_relevant == ["q"]


def test_repeats_and_notes__are_told():
    table = tables.judged({"q": {"a": 1}})
    import pyarrow as pa

    twice = pa.concat_tables([table, table])
    rows = tables.flat_of([("q", "a", 1.0), ("q", "b", 2.0)], rank=pa.array([1, 2]))
    found = audit(rows, twice)
    assert found.counts["repeated judgements"] == 1
    assert found.counts["rank conflicts"] == 1
    said = "\n".join(found.warnings)
    assert "1 judgement(s) only repeat another, counted once" in said
    assert "rank conflicts: 1" in said


def test_rank_column__with_infinite_scores_warns_of_nothing():
    import pyarrow as pa

    inf = float("inf")
    rows = [("q", "a", inf), ("q", "b", inf), ("q", "c", -inf)]
    found = audit(tables.flat_of(rows, rank=pa.array([1, 2, 3])), {"q": {"a": 1}})
    assert "rank conflicts" not in found.counts


def test_rank_conflicts__do_not_depend_on_batches():
    import pyarrow as pa

    rows = [("q", f"d{i}", float(i)) for i in range(6)]
    counts = [
        audit(tables.flat_of(rows, cuts=cuts, rank=pa.array(range(6))), {"q": {"d1": 1}}).counts
        for cuts in ((), (3,), range(6))
    ]
    assert [count["rank conflicts"] for count in counts] == [5, 5, 5]


def test_warnings__are_none_where_all_is_well():
    assert audit({"q": {"a": 1.0, "b": 0.5}}, {"q": {"a": 1}}).warnings == []
