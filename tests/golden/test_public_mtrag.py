"""MTRAG's two suites: their counts, the published forms of questions, the way back to its files."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import polars as pl
import pytest

import importers
from ragcore.public import mtrag
from ragcore.public.mtrag_files import DOMAINS


@pytest.fixture(scope="module")
def tables(collections):
    return collections("mtrag").shared


@pytest.fixture(scope="module")
def tasks(collections):
    return collections("mtrag").made


@pytest.fixture(scope="module")
def rated(collections):
    return collections("mtrag-rated").made


def test_tasks__have_the_counts_of_the_collection(tasks):
    rows = tasks.cases.to_pylist()
    assert Counter(row["class"] for row in rows) == {
        "ANSWERABLE": 285, "UNANSWERABLE": 97, "PARTIAL": 47, "UNDERSPECIFIED": 78,
    }  # fmt: skip
    assert sum(len(row["evidence"] or ()) for row in rows) == 851
    assert sum(bool(row["evidence"]) for row in rows) == 332
    assert sum(row["evidence"] is None for row in rows) == 78
    assert tasks.chunks.num_rows == 1152


def test_tasks__evidence_is_the_passages_of_each_task(tables, tasks):
    """The judgements, and the passages that came with the tasks, are two files of one thing."""
    shown = defaultdict(set)
    for task, passage in tables["un_contexts"].select("task_id", "doc_id").iter_rows():
        shown[task].add(passage)
    for row in tasks.cases.to_pylist():
        if row["evidence"] is not None:
            assert {item["doc_id"] for item in row["evidence"]} == shown[row["case_id"]]


def test_questions__are_the_published_forms(tables, rated):
    """150 of the rated turns are turns of the retrieval task, which has its questions ready."""
    asked = tables["retrieval_queries"]
    texts = {form: dict(own.select("query_id", "text").iter_rows())
             for (form,), own in asked.group_by("form")}  # fmt: skip
    met = [row for row in rated.cases.to_pylist() if row["case_id"] in texts["lastturn"]]
    assert len(met) == 150
    for row in met:
        turns = row["question_all_turns"].split("\n")
        last, every = (texts[form][row["case_id"]] for form in ("lastturn", "questions"))
        assert f"|user|: {row['question']}" == last
        assert "\n".join(f"|user|: {one}" for one in turns) == every


def test_rated__evidence_is_what_the_retrieval_task_judges(tables, rated):
    judged = defaultdict(set)
    for query, passage in tables["retrieval_qrels"].select("query_id", "doc_id").iter_rows():
        judged[query].add(passage)
    rows = [row for row in rated.cases.to_pylist() if row["evidence"]]
    assert len(rows) == 150
    for row in rows:
        assert {item["doc_id"] for item in row["evidence"]} == judged[row["case_id"]]


def test_bm25__the_pool_is_no_corpus(collections):
    """Published: R@5 0.20 for last turns over whole corpora; here it says nothing of those."""
    world = collections("mtrag")
    assert world.mean(world.found(), "R@5") > 0.6


def said_of(row):
    """A conversation as the official files have it: the text that was made of it, taken apart."""
    parts = mtrag.WHO.split(row["history"])
    return [{"speaker": a, "text": b} for a, b in zip(parts[1::2], parts[2::2], strict=True)]


def test_official__gives_the_same_tasks(tables, tasks, tmp_path):
    passages = {row["doc_id"]: row for row in tables["un_corpus"].iter_rows(named=True)}
    shown = defaultdict(list)
    for row in tables["un_contexts"].sort("position", maintain_order=True).iter_rows(named=True):
        own = passages[row["doc_id"]]
        shown[row["task_id"]].append(
            {"document_id": own["doc_id"], "title": own["title"], "text": own["text"]}
        )
    lines = [
        json.dumps({
            "task_id": row["task_id"], "turn": str(row["turn"]), "Collection": row["domain"],
            "answerability": [row["answerability"]], "contexts": shown[row["task_id"]],
            "input": said_of(row), "targets": [{"text": row["target"]}],
            "Question Type": row["question_type"], "Multi-Turn": row["multi_turn"],
        })
        for row in tables["un_tasks"].iter_rows(named=True)
    ]  # fmt: skip
    (tmp_path / "reference.jsonl").write_text("\n".join(lines), encoding="utf-8")
    judged = tables["retrieval_qrels"].filter(pl.col("set") == "mtragun")
    for domain in DOMAINS:
        own = judged.filter(pl.col("domain") == domain).select("query_id", "doc_id", "relevance")
        text = "query-id\tcorpus-id\tscore\n"
        text += "".join("\t".join(map(str, row)) + "\n" for row in own.iter_rows())
        (tmp_path / f"{domain}.tsv").write_text(text, encoding="utf-8")
    again = mtrag.build(mtrag.official(tmp_path))
    importers.same(again, tasks, notes=False)
    assert again.notes[:2] == tasks.notes[:2]
    assert again.notes[2].startswith("0 judgements of MTRAG's own turns")


def test_official__gives_the_same_rated_answers(tables, rated, tmp_path):
    scores = tables["human_scores"]
    given = defaultdict(lambda: defaultdict(dict))
    for row in scores.iter_rows(named=True):
        rating = {"value": row["value"]}
        given[row["task_id"], row["system"]][row["metric"]][row["rater"]] = rating
    whole = {
        "tasks": [
            {"task_id": row["task_id"], "Turn": str(row["turn"]), "Collection": row["collection"],
             "Answerability": [row["answerability"]], "input": said_of(row),
             "targets": [{"text": row["target"]}],
             "contexts": [{"document_id": name} for name in row["doc_ids"]],
             "annotations": {"context_relevance": {"system": row["relevant_positions"]}}}
            for row in tables["human_tasks"].iter_rows(named=True)
        ],
        "documents": [
            {"document_id": row["doc_id"], "title": row["title"], "text": row["text"]}
            for row in tables["human_corpus"].iter_rows(named=True)
        ],
        "metrics": [{"name": name, "author": kind}
                    for name, kind in scores.select("metric", "kind").unique().iter_rows()],
        "evaluations": [
            {"task_id": row["task_id"], "model_id": row["system"],
             "model_response": row["response"],
             "annotations": given[row["task_id"], row["system"]]}
            for row in tables["human_responses"].iter_rows(named=True)
        ],
    }  # fmt: skip
    (tmp_path / mtrag.RATED).write_text(json.dumps(whole), encoding="utf-8")
    importers.same(mtrag.build(mtrag.official(tmp_path)), rated)
