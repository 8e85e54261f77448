"""Public collections with people's labels or published figures, scored as a user would."""

from __future__ import annotations

import re
import string
from collections import Counter
from fractions import Fraction

import polars as pl
import pytest

import published
import ragcore
from ragcore.public.columns import flat_run


def cells(scores, name, run=None):
    """(numerator, denominator) of a measure and the states of its cases."""
    rows = [r for r in scores.rows() if r["measure"] == name and (run is None or r["run"] == run)]
    (row,) = rows
    return row["numerator"], row["denominator"], {
        key[2:]: row[key] for key in row if key.startswith("n_") and row[key] and key != "n_cases"
    }  # fmt: skip


# --- NoMIRACL, Chinese


@pytest.fixture(scope="module")
def nomiracl(collections):
    return collections("nomiracl-zh")


def test_nomiracl__answers_are_read_as_the_collection_reads_them(nomiracl):
    verdicts = nomiracl.shared["responses"]
    words = {"answer_present": "answer", "i_dont_know": "abstain"}
    for (system,), own in verdicts.group_by("system"):
        expected = {q: words.get(v) for q, v in own.select("query_id", "verdict").iter_rows()}
        found = {
            row["case_id"]: row["proposed"]["state"]
            for row in nomiracl.made.runs[system].to_pylist()
        }
        assert found == expected


# --- CLAPNQ: half of the questions have no answer


def test_clapnq__unanswerable_cases_have_nothing_to_retrieve(collections):
    world = collections("clapnq")
    for (name,), own in world.shared["runs"].group_by("system"):
        scores = ragcore.score(
            flat_run(own), suite=world.suite, measures=["retrieval.coverage", "R@5"]
        )
        found = own.join(world.shared["qrels"], on=["query_id", "doc_id"]).height
        assert cells(scores, "retrieval.coverage") == (found, 300, {"ok": 300, "na": 300}), name
        assert cells(scores, "R@5")[2] == {"ok": 300, "na": 300}, name


# --- MTRAG: 159 turns of conversations, three systems


def test_mtrag__answerability_by_class_and_turn(collections):
    world = collections("mtrag-rated")
    wrong = {"gpt-4o": 4, "llama-3.1-405b-instruct": 5, "reference": 2}
    for name, run in world.made.runs.items():
        scores = ragcore.score(run, suite=world.suite, measures=["abstention.correct"])
        assert cells(scores, "abstention.correct") == (
            7 - wrong[name], 7, {"ok": 7, "na": 150, "missing": 2},
        )  # fmt: skip
        turns = {row["slice"]: row["n_ok"] for row in scores.rows(by=["turn"])}
        assert sum(n for key, n in turns.items() if key != "all") == turns["all"] == 7


# --- QASPER, under its own rules


def words(text):
    """SQuAD's tokens, written down from its published rules."""
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def f1(found, wanted):
    both = sum((Counter(found) & Counter(wanted)).values())
    return Fraction(2 * both, len(found) + len(wanted)) if both else Fraction(0)


def test_qasper__answer_and_evidence_f1_are_the_collections_own(collections):
    world = collections("qasper")
    cases = world.made.cases.to_pylist()
    rows, answers, evidence, empty = [], {}, {}, 0
    for i, case in enumerate(cases[:-1]):  # the last has no prediction
        labels = case["annotations"]
        text = ("Unanswerable", labels[0]["answer"], "the " + labels[0]["answer"][:40])[i % 3]
        cited = [[], labels[-1]["evidence"], [*labels[0]["evidence"][:1], "other:0:0"]][i % 3]
        rows.append({"case_id": case["case_id"], "proposed": {"state": "answer", "text": text},
                     "citations": [{"claim": 0, "id": one} for one in cited]})  # fmt: skip
        answers[case["case_id"]] = max(f1(words(text), words(e["answer"])) for e in labels)
        own = list(dict.fromkeys(cited))
        evidence[case["case_id"]] = max(
            Fraction(1) if not own and not e["evidence"]
            else Fraction(2 * len(set(own) & set(e["evidence"])), len(own) + len(e["evidence"]))
            for e in labels
        )  # fmt: skip
        empty += not own and not all(e["evidence"] for e in labels)
    names = ["qasper.answer_f1", "qasper.evidence_f1", "qasper.evidence_f1(text_only=True)"]
    scores = ragcore.score(
        published.run(rows, "proposed", "citations"), suite=world.suite, measures=names
    )
    for name, expected in zip(names, (answers, evidence), strict=False):
        for case, value in expected.items():
            assert scores.value(name, case) == pytest.approx(float(value), abs=1e-15), case
        assert scores.value(name, cases[-1]["case_id"]) == 0.0
        assert scores.mean(name) == pytest.approx(float(sum(expected.values())) / len(cases))
    counts = scores.audits[0].counts
    assert counts["qasper: questions without a predicted answer"] == 1
    assert counts["qasper: questions with no evidence on either side, each 1"] >= empty > 0
    assert counts["qasper: questions whose evidence became empty without figures"] > 0


def test_nomiracl__errs_and_hallucinates_as_published(nomiracl):
    suite, runs = nomiracl.suite, nomiracl.made.runs
    names = ["nomiracl.error", "nomiracl.hallucination", "nomiracl.invalid"]
    scores = ragcore.score(list(runs.values()), names=list(runs), suite=suite, measures=names)
    published_ = {"gpt-4-azure": (11, 109, 0), "gpt-3.5-turbo-azure": (11, 141, 0)}
    for name, (error, hallucination, invalid) in published_.items():
        assert cells(scores, "nomiracl.error", name)[:2] == (error, 250)
        assert cells(scores, "nomiracl.hallucination", name)[:2] == (hallucination, 250)
        assert cells(scores, "nomiracl.invalid", name)[:2] == (invalid, 500)
    for name, run in runs.items():
        states = {r["case_id"]: r["proposed"]["state"] for r in run.to_pylist()}
        said = {half: [s for c, s in states.items() if c[:5] == f"zh:{half}:"] for half in "rn"}
        assert cells(scores, "nomiracl.error", name)[:2] == (said["r"].count("abstain"), 250)
        assert cells(scores, "nomiracl.hallucination", name)[:2] == (said["n"].count("answer"), 250)
        assert cells(scores, "nomiracl.invalid", name)[0] == list(states.values()).count(None)


# --- ExpertQA: experts' labels of claims


def test_expertqa__claims_by_the_experts_labels(shared_data, tmp_path):
    suite, run, given = published.expertqa(shared_data, tmp_path)
    names = ["claims.precision", "citation.presence", "micro(claims.precision)"]
    scores = ragcore.score(run, suite=suite, judgments=given, measures=names)
    labels = pl.read_parquet(shared_data / "expertqa" / "claims.parquet")
    right = pl.col("correctness").is_in(["Definitely correct", "Probably correct"])
    settled = ~pl.col("correctness").is_null() & (pl.col("correctness") != "Unsure")
    whole = labels.group_by("answer_id").agg(
        right.sum().alias("right"), pl.len().alias("n"), settled.all().alias("settled"),
        (pl.col("cited").list.len() > 0).sum().alias("cited"),
    )  # fmt: skip
    told = whole.filter("settled")
    ok, counts = cells(scores, "claims.precision")[0], cells(scores, "claims.precision")[2]
    assert ok == pytest.approx((told["right"] / told["n"]).sum())
    assert counts["ok"] == len(told)
    unsure = labels.filter(pl.col("correctness") == "Unsure")["answer_id"].n_unique()
    assert counts["disputed"] == unsure  # an expert who is unsure leaves it open
    pooled = cells(scores, "micro(claims.precision)")
    assert pooled[:2] == (told["right"].sum(), told["n"].sum())
    presence = cells(scores, "citation.presence")
    assert presence[0] == pytest.approx((whole["cited"] / whole["n"]).sum())
    fields = {row["slice"]: row for row in scores.rows(by=["field"])
              if row["measure"] == "claims.precision"}  # fmt: skip
    assert sum(row["n_cases"] for name, row in fields.items() if name != "all") == 479


# --- SciFact: what the abstracts say of 300 claims


def test_scifact__recall_of_the_context_counts_supporting_abstracts(collections, tmp_path):
    world = collections("scifact")
    suite, run, given = published.scifact(world, tmp_path)
    labels = world.shared["claims"]
    pairs = {kind: set(labels.filter(pl.col("label") == kind).select("query_id", "doc_id").rows())
             for kind in ("SUPPORT", "CONTRADICT")}  # fmt: skip
    shown = {row["case_id"]: [item["id"] for item in row["context"]] for row in run.to_pylist()}
    names = ["claims.context_recall", "context.precision"]
    scores = ragcore.score(run, suite=suite, judgments=given, measures=names)
    hits = {case: [(case, one) in pairs["SUPPORT"] for one in ids] for case, ids in shown.items()}
    assert scores.per_case(names[0]) == {case: float(any(own)) for case, own in hits.items()}
    assert scores.per_case(names[1]) == {case: sum(own) / 10 for case, own in hits.items()}
    assert cells(scores, names[0])[1:] == (300, {"ok": 300})
    # A contradicting abstract entails nothing, however well it was found.
    against = [case for case, ids in shown.items()
               if any((case, one) in pairs["CONTRADICT"] for one in ids)]  # fmt: skip
    assert against
    assert all(scores.value(names[0], case) == float(any(hits[case])) for case in against)
