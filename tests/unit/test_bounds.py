"""Bounds as people ask for them: names, `bounds=`, the command line; against every order."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from itertools import chain, groupby, permutations, product
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ragcore
import reference
from ragcore.errors import UsageError
from ragcore.explain import explain_measure
from ragcore.measures import bounds, engine, registry
from reference_data import Qrels, Run

ROOT = Path(__file__).resolve().parents[2]
TIES, HOLES = ("best", "expected", "worst"), ("best", "worst")
MEASURES = [
    "P@2", "P_5", "R@3", "Success@2", "RR", "recip_rank", "AP", "map_cut_5", "nDCG@3", "nDCG",
    "nDCG_exp@4", "P(rel=2)@3", "AP(judged_only=True)@4", "nDCG@3(judged_only)", "Rprec",
    "RBP(p=0.5)@4", "ERR@5", "Bpref", "infAP", "IPrec@0.5", "iprec_at_recall_0.20", "11pt_avg",
    "Judged@3", "SetP", "SetF", "set_recall", "binG", "NumRelRet", "ndcg_cut_5",
]  # fmt: skip
RUN = {
    "q1": [("d1", 3.0), ("d2", 3.0), ("d3", 2.0), ("d4", 2.0), ("d5", 2.0), ("d6", 1.0)],
    "q2": [("d1", 1.0), ("d2", 1.0), ("d3", 1.0)],
    "q3": [("d1", 2.0), ("d2", 1.0)],
}
QRELS = {
    "q1": {"d1": 0, "d2": 2, "d4": 1, "d5": -1, "d9": 3},
    "q2": {"d2": 1, "d3": 0},
    "q3": {"d2": 0, "d7": 0},
    "q4": {"d1": 1},
}
small = settings(max_examples=25)


def pairs(run: Run) -> dict[str, dict[str, float]]:
    return {case: dict(rows) for case, rows in run.items()}


def all_orders(rows):
    """Ranked lists of one case, one for each order of its tied rows."""
    groups = [list(group) for _, group in groupby(sorted(rows, key=lambda row: -row[1]),
                                                  key=lambda row: row[1])]  # fmt: skip
    for choice in product(*(list(permutations(group)) for group in groups)):
        yield [doc for doc, _ in chain.from_iterable(choice)]


def expect_ties(name: str, rows, grades, depth=None) -> tuple[float, float, float]:
    found = [reference.score(name, ids[:depth], grades) for ids in all_orders(rows)]
    known = [value for value in found if value is not None]
    return max(known), math.fsum(known) / len(known), min(known)


def check_ties(run: Run, qrels: Qrels, depth: int | None = None, **options) -> None:
    scores = ragcore.score(
        pairs(run), qrels=qrels, measures=MEASURES, bounds=["ties"], max_depth=depth, **options
    )
    for name in MEASURES:
        texts = [bounds.named(name, f"ties={which}") for which in TIES]
        for case in qrels:
            got = [scores.value(text, case) for text in texts]
            plain = scores.value(name, case)
            if plain is None:
                assert got == [None] * 3
                continue
            wanted = expect_ties(name, run.get(case, []), qrels[case], depth)
            assert got == pytest.approx(wanted, abs=1e-12), (name, case)
            best, expected, worst = got
            assert worst <= plain <= best
            assert worst <= expected <= best


@pytest.mark.parametrize("depth", [None, 1, 4])
def test_ties__every_order(depth):
    check_ties(RUN, QRELS, depth)


rankings = st.dictionaries(
    st.sampled_from(["q1", "q2"]),
    st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from([0.0, -0.0, 1.0, 2.5]), max_size=5)
    .map(dict.items).map(list),
)  # fmt: skip
judged = st.dictionaries(st.sampled_from("abcdefghi"), st.integers(-1, 3), min_size=1, max_size=7)


@small
@given(rankings, judged, judged, st.sampled_from([None, 2, 4]))
def test_ties__drawn(run, first, second, depth):
    check_ties(run, {"q1": first, "q2": second}, depth, allow_empty=True)


def test_ties__float32_scores_and_rows_out_of_order():
    rows = [("q", "a", 1.0), ("q", "b", 3.0), ("q", "c", 1.0), ("q", "d", 3.0), ("q", "e", 0.5)]
    table = pa.table({
        "case_id": [r[0] for r in rows], "id": [r[1] for r in rows],
        "score": pa.array([r[2] for r in rows], pa.float32()),
    })  # fmt: skip
    grades = {"a": 1, "d": 2, "e": 1}
    scores = ragcore.score(table, qrels={"q": grades}, measures=["AP"], bounds=["ties"])
    wanted = expect_ties("AP", [r[1:] for r in rows], grades)
    assert [scores.mean(f"AP(ties={w})") for w in TIES] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("policy", "kept"), [
    ("first", [("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 2.0)]),
    ("last", [("b", 1.0), ("a", 2.0), ("c", 1.0), ("d", 2.0)]),
    ("max", [("b", 1.0), ("a", 2.0), ("c", 1.0), ("d", 2.0)]),
])  # fmt: skip
def test_ties__after_duplicates_are_dropped(policy, kept):
    rows = [("a", 1.0), ("b", 1.0), ("a", 2.0), ("c", 1.0), ("d", 2.0)]
    grades = {"a": 1, "c": 2}
    table = pa.table({"case_id": ["q"] * 5, "id": [r[0] for r in rows],
                      "score": [r[1] for r in rows]})  # fmt: skip
    scores = ragcore.score(
        table, qrels={"q": grades}, measures=["AP"], bounds=["ties"], duplicates=policy
    )
    wanted = expect_ties("AP", kept, grades)
    assert [scores.mean(f"AP(ties={w})") for w in TIES] == pytest.approx(wanted, abs=1e-12)


def test_ties__after_the_own_document_is_dropped():
    run = {"q": {"q": 1.0, "a": 1.0, "b": 1.0}}
    scores = ragcore.score(
        run, qrels={"q": {"a": 1}}, measures=["RR"], bounds=["ties"], drop_identical_ids=True
    )
    assert [scores.mean(f"RR(ties={w})") for w in TIES] == [1.0, 0.75, 0.5]


def test_ties__a_recorded_order_has_none():
    ranked = pa.array(
        [[{"doc_id": "a", "score": 1.0}, {"doc_id": "b", "score": 1.0}]],
        pa.list_(pa.struct([("doc_id", pa.string()), ("score", pa.float64())])),
    )
    table = pa.table({"case_id": ["q"], "ranked": ranked})
    scores = ragcore.score(table, qrels={"q": {"b": 1}}, measures=["RR"], bounds=["ties"])
    assert [scores.mean(f"RR(ties={w})") for w in TIES] == [0.5] * 3


def test_ties__geometric_mean_and_slices_of_the_summary():
    scores = ragcore.score(pairs(RUN), qrels=QRELS, measures=["gm_map", "11pt_avg"],
                           bounds=["ties"])  # fmt: skip
    means = scores.means()
    for name in ("gm_map", "11pt_avg"):
        worst, best = means[f"{name}(ties=worst)"], means[f"{name}(ties=best)"]
        assert worst <= means[name] <= best
    rows = scores.table().to_pylist()
    assert all(r["numerator"] is None for r in rows if "ties" in r["measure"])
    assert {r["measure"] for r in scores.summary().to_pylist()} == set(scores.measures)


# --- holes


def fill(name: str, rows, grades, highest: int, depth=None) -> float | None:
    ids = reference.order(rows)[:depth]
    cut = registry.parse([name])[0].k or len(ids)
    found, filled = [reference.score(name, ids, grades)], dict(grades)
    for doc in ids[:cut]:
        if filled.get(doc, -1) < 0:
            filled[doc] = highest
            found.append(reference.score(name, ids, filled))
    return max((value for value in found if value is not None), default=None)


@pytest.mark.parametrize("depth", [None, 2, 4])
def test_holes__every_filling(depth):
    names = [n for n in MEASURES if not n.startswith("Judged")]
    scores = ragcore.score(
        pairs(RUN), qrels=QRELS, measures=names, bounds=["holes"], max_depth=depth
    )
    for name in names:
        best, worst = (bounds.named(name, f"holes={which}") for which in HOLES)
        for case in QRELS:
            plain = scores.value(name, case)
            assert scores.value(worst, case) == plain
            wanted = fill(name, RUN.get(case, []), QRELS[case], 3, depth)
            assert scores.value(best, case) == pytest.approx(wanted, abs=1e-12), (name, case)
            assert scores.value(best, case) >= plain


@small
@given(rankings, judged, judged, st.sampled_from(["zero", "na"]))
def test_holes__never_below(run, first, second, no_relevant):
    names = [n for n in MEASURES if not n.startswith("Judged")]
    qrels = {"q1": first, "q2": second}
    scores = ragcore.score(pairs(run), qrels=qrels, measures=names, bounds=["holes"],
                           allow_empty=True, no_relevant=no_relevant)  # fmt: skip
    for name in names:
        for case in qrels:
            plain = scores.value(name, case)
            best = scores.value(bounds.named(name, "holes=best"), case)
            assert (plain is None) == (best is None)
            assert plain is None or plain <= best


def test_holes__cases_without_judgement_stay_out():
    scores = ragcore.score(
        {"q": {"a": 1.0}, "other": {"a": 1.0}}, qrels={"q": {"b": 1}}, measures=["P@1"],
        bounds=["holes"],
    )  # fmt: skip
    assert scores.means() == {"P@1": 0.0, "P(holes=best)@1": 1.0, "P(holes=worst)@1": 0.0}


def test_holes__highest_grade_is_that_of_all_judgements():
    scores = ragcore.score(
        {"q": {"a": 1.0}, "r": {"x": 1.0}}, qrels={"q": {"b": 1}, "r": {"x": 3}},
        measures=["ERR"], bounds=["holes"],
    )  # fmt: skip
    assert scores.value("ERR(holes=best)", "q") == 7 / 16


# --- hostile input


def test_bounds__empty_lists_and_nothing_relevant():
    for no_relevant in ("zero", "na"):
        scores = ragcore.score(
            {"q": {}, "r": {"a": 1.0, "b": 1.0}}, qrels={"q": {"a": 1}, "r": {"a": 0}},
            measures=["AP", "nDCG@5", "Success@1", "IPrec@0.0"], bounds=["ties"],
            no_relevant=no_relevant,
        )  # fmt: skip
        for text in scores.measures:
            assert scores.value(text, "q") == 0.0
            assert scores.value(text, "r") == (0.0 if no_relevant == "zero" else None)


def test_bounds__same_bits_on_one_and_two_threads(monkeypatch):
    monkeypatch.setattr(engine, "SERIAL_ROWS", 0)
    run = {f"q{i}": {f"d{j}": float(j * i % 4) for j in range(12)} for i in range(40)}
    qrels = {f"q{i}": {f"d{j}": j % 5 - 1 for j in range(i % 3, 20, 2)} for i in range(40)}
    names = [n for n in MEASURES if "infAP" not in n]
    one, two = (
        ragcore.score(run, qrels=qrels, measures=names, bounds=["ties", "holes"], threads=n)
        for n in (1, 2)
    )
    assert one.runs[0].values.tobytes() == two.runs[0].values.tobytes()


def test_bounds__a_thousand_tied_rows():
    run = {"q": {f"d{i}": 1.0 for i in range(1000)}}
    qrels = {"q": {f"d{i}": i % 7 % 3 for i in range(0, 1200, 40)}}
    scores = ragcore.score(run, qrels=qrels, measures=["AP", "nDCG@10", "ERR@20", "infAP"],
                           bounds=["ties"])  # fmt: skip
    means = scores.means()
    for name in ("AP", "nDCG@10", "ERR@20", "infAP"):
        worst, expected, best = (
            means[bounds.named(name, f"ties={w}")] for w in ("worst", "expected", "best")
        )
        assert worst <= means[name] <= best
        assert worst < expected < best


def test_bounds__too_long_to_count_is_no_value(monkeypatch):
    monkeypatch.setattr(bounds, "STEPS", 0)
    scores = ragcore.score(pairs(RUN), qrels=QRELS, measures=["IPrec@0.5"], bounds=["ties"])
    text = "IPrec(ties=expected)@0.5"
    assert math.isnan(scores.mean(text))
    rows = [row for row in scores.table().to_pylist() if row["measure"] == text]
    assert {(row["state"], row["reason"]) for row in rows} == {("na", "no-closed-form")}
    assert scores.mean("IPrec(ties=best)@0.5") > scores.mean("IPrec(ties=worst)@0.5")


# --- names


@pytest.mark.parametrize(("text", "wanted"), [
    ("AP", "AP(ties=worst)"),
    ("nDCG@10", "nDCG(ties=worst)@10"),
    ("P(rel=2)@5", "P(rel=2,ties=worst)@5"),
    ("nDCG@2(judged_only)", "nDCG@2(judged_only,ties=worst)"),
    ("ndcg_cut_10", "ndcg_cut_10(ties=worst)"),
    ("nDCG(gains={1: 0.5})@3", "nDCG(gains={1: 0.5},ties=worst)@3"),
    ("ndcg_1=3,2=9", "ndcg_1=3,2=9(ties=worst)"),
    ("IPrec@0.1", "IPrec(ties=worst)@0.1"),
    ("rbp", "rbp(ties=worst)"),
    ("gm_map", "gm_map(ties=worst)"),
])  # fmt: skip
def test_names__read_as_they_are_printed(text, wanted):
    plain = registry.parse([text])[0]
    assert bounds.named(text, "ties=worst") == wanted
    found = registry.parse([wanted])[0]
    assert found in bounds.expand([plain], ["ties"])
    assert (found.text, found.k, found.aggregate) == (wanted, plain.k, plain.aggregate)
    assert found.params == {**plain.params, "ties": "worst"}


def test_expand__variants_stand_behind_their_measure():
    parsed = registry.parse(["AP(ties=worst)", "AP", "NumRel", "Judged@5", "retrieval.coverage"])
    assert [one.text for one in bounds.expand(parsed, ["holes", "ties", "ties"])] == [
        "AP(ties=worst)", "AP", "AP(holes=best)", "AP(holes=worst)", "AP(ties=best)",
        "AP(ties=expected)", "NumRel", "Judged@5", "Judged(ties=best)@5",
        "Judged(ties=expected)@5", "Judged(ties=worst)@5", "retrieval.coverage",
    ]  # fmt: skip


def test_names__what_stands_alone_and_what_means_nothing():
    for text, part in {
        "AP(ties=worst,holes=best)": "ties and holes at once",
        "AP(ties=median)": "best, expected, worst",
        "AP(holes=expected)": "best, worst",
        "NumQ(ties=best)": "no bound over ties",
        "NumRel(holes=best)": "judgements only",
        "Judged(holes=best)@5": "no bound over holes",
        "retrieval.coverage(ties=best)": "no parameter 'ties'",
    }.items():
        with pytest.raises(UsageError, match=part):
            registry.parse([text])
    parsed = registry.parse(["AP"])
    assert bounds.expand(parsed, "ties") == bounds.expand(parsed, ["ties"])
    with pytest.raises(UsageError, match="ties, holes"):
        bounds.expand(registry.parse(["AP"]), ["both"])


def test_explain__says_which_bounds_there_are():
    page = explain_measure(registry.parse(["IPrec(ties=expected)@0.1"])[0])
    assert "ties=best|expected|worst; holes=best|worst" in page
    assert "closed form" in page
    assert "no holes=" in explain_measure(registry.parse(["Judged@5"])[0])


def test_command_line__bounds_follow_each_measure(tmp_path):
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.txt"
    run.write_text("".join(f"{case} Q0 {doc} 1 {score} t\n" for case, rows in RUN.items()
                           for doc, score in rows))  # fmt: skip
    qrels.write_text("".join(f"{case} 0 {doc} {grade}\n" for case, rows in QRELS.items()
                             for doc, grade in rows.items()))  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "ragcore", "score", str(run), "--qrels", str(qrels), "-m",
         "nDCG@3", "-m", "NumRel", "--bounds", "ties", "--bounds", "holes", "-f", "jsonl"],
        capture_output=True, text=True, check=True, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")])},
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    wanted = ragcore.score(run, qrels=qrels, measures=["nDCG@3", "NumRel"],
                           bounds=["ties", "holes"]).means()  # fmt: skip
    assert {row["measure"]: row["mean"] for row in rows} == wanted
    assert list(wanted) == [
        "nDCG@3", "nDCG(ties=best)@3", "nDCG(ties=expected)@3", "nDCG(ties=worst)@3",
        "nDCG(holes=best)@3", "nDCG(holes=worst)@3", "NumRel",
    ]  # fmt: skip
