"""Public collections with people's labels or published figures, scored as a user would."""

from __future__ import annotations

import polars as pl
import pytest

import published
import ragcore


def cells(scores, name, run=None):
    """(numerator, denominator) of a measure and the states of its cases."""
    rows = [r for r in scores.rows() if r["measure"] == name and (run is None or r["run"] == run)]
    (row,) = rows
    return row["numerator"], row["denominator"], {
        key[2:]: row[key] for key in row if key.startswith("n_") and row[key] and key != "n_cases"
    }  # fmt: skip


# --- NoMIRACL, Chinese


@pytest.fixture(scope="module")
def nomiracl(shared_data, tmp_path_factory):
    return published.nomiracl(shared_data, tmp_path_factory.mktemp("nomiracl"))


def test_nomiracl__answers_are_read_as_the_collection_reads_them(nomiracl, shared_data):
    verdicts = pl.read_parquet(shared_data / "nomiracl_zh" / "responses.parquet")
    words = {"answer_present": "answer", "i_dont_know": "abstain"}
    for (system,), own in verdicts.group_by("system"):
        expected = {q: words.get(v) for q, v in own.select("query_id", "verdict").iter_rows()}
        found = {
            row["case_id"]: row["proposed"]["state"] for row in nomiracl[1][system].to_pylist()
        }
        assert found == expected


# --- CLAPNQ: half of the questions have no answer


def test_clapnq__unanswerable_cases_have_nothing_to_retrieve(shared_data, tmp_path):
    suite, runs = published.clapnq(shared_data, tmp_path)
    gold = dict(pl.read_parquet(shared_data / "clapnq" / "qrels.parquet")
                .select("query_id", "doc_id").iter_rows())  # fmt: skip
    for name, run in runs.items():
        scores = ragcore.score(run, suite=suite, measures=["retrieval.coverage", "R@5"])
        found = sum(gold[row["case_id"]] in {item["id"] for item in row["ranked"]}
                    for row in run.to_pylist() if row["case_id"] in gold)  # fmt: skip
        assert cells(scores, "retrieval.coverage") == (found, 300, {"ok": 300, "na": 300}), name
        assert cells(scores, "R@5")[2] == {"ok": 300, "na": 300}, name


# --- MTRAG: 159 turns of conversations, three systems


def test_mtrag__answerability_by_class_and_turn(shared_data, tmp_path):
    suite, runs = published.mtrag(shared_data, tmp_path)
    wrong = {"gpt-4o": 4, "llama-3.1-405b-instruct": 5, "reference": 2}
    for name, run in runs.items():
        scores = ragcore.score(run, suite=suite, measures=["abstention.correct"])
        assert cells(scores, "abstention.correct") == (
            7 - wrong[name], 7, {"ok": 7, "na": 150, "missing": 2},
        )  # fmt: skip
        turns = {row["slice"]: row["n_ok"] for row in scores.rows(by=["turn"])}
        assert sum(n for key, n in turns.items() if key != "all") == turns["all"] == 7
