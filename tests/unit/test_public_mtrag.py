"""The importer of MTRAG: conversations, classes, what a system did, what does not belong."""

from __future__ import annotations

import json

import polars as pl
import pytest

from ragcore.errors import InputError
from ragcore.public import mtrag

SAID = [("user", "Is tea hot?"), ("agent", "Yes.\nuser: no turn of the user's"), ("user", "Why?")]


def task(name, kind, *passages, said=SAID, **more):
    return {
        "task_id": name, "turn": "2", "Collection": "govt", "answerability": [kind],
        "contexts": [{"document_id": p, "text": f"Of {p}."} for p in passages],
        "input": [{"speaker": who, "text": text} for who, text in said],
        "targets": [{"speaker": "agent", "text": "So."}], "Question Type": ["How-To"],
        "Multi-Turn": ["Follow-up"],
    } | more  # fmt: skip


TASKS = [
    task("a<::>2", "ANSWERABLE", "p-0-9", "q-0-9"),
    task("b<::>2", "UNDERSPECIFIED", "q-0-9"),
    task("c<::>2", "UNANSWERABLE"),
    task("d<::>2", "PARTIAL", "p-0-9"),
]
HEAD = "query-id\tcorpus-id\tscore\n"
QRELS = {"govt": f"{HEAD}a<::>2\tp-0-9\t1\nd<::>2\tp-0-9\t1\n", "clapnq": HEAD, "cloud": HEAD,
         "fiqa": HEAD}  # fmt: skip


def folder(path, tasks=TASKS, qrels=QRELS):
    text = "".join(json.dumps(one) + "\n" for one in tasks)
    (path / "reference.jsonl").write_text(text, encoding="utf-8")
    for domain, rows in qrels.items():
        (path / f"{domain}.tsv").write_text(rows, encoding="utf-8")
    return path


@pytest.fixture
def given(tmp_path):
    return mtrag.official(folder(tmp_path))


def test_tasks__a_class_says_what_is_asked_for(given):
    rows = mtrag.build(given).cases.to_pylist()
    assert [(row["answerable"], row["expected_state"]) for row in rows] == [
        (True, "answer"), (None, "escalate"), (False, "abstain"), (True, "partial"),
    ]  # fmt: skip
    found = [row["evidence"] and [item["doc_id"] for item in row["evidence"]] for row in rows]
    assert found == [["p-0-9"], None, [], ["p-0-9"]]  # open, and known to be empty


def test_tasks__asks_with_the_last_turn_and_keeps_the_others(given):
    suite = mtrag.build(given)
    row = suite.cases.to_pylist()[0]
    assert row["question"] == "Why?"
    assert row["question_conversation"].startswith("user: Is tea hot?\nagent: Yes.\nuser: ")
    assert row["question_all_turns"].startswith("Is tea hot?\n")
    assert (row["conversation"], row["turn"], row["domain"]) == ("a", 2, "govt")
    assert (row["class"], row["type"], row["multi_turn"]) == ("ANSWERABLE", ["How-To"], "Follow-up")
    assert suite.chunks is not None
    assert suite.chunks["chunk_id"].to_pylist() == ["p-0-9", "q-0-9"]
    assert suite.notes[1].startswith("1 task underspecified: answerable is open")
    assert "2 passages shown" in suite.notes[1]


@pytest.mark.parametrize(
    "change",
    [
        {"input": SAID[:2]},
        {"answerability": []},
        {"targets": []},
        {"turn": "two"},
        {"contexts": [{}]},
        {"Multi-Turn": None, "contexts": None},
    ],
)
def test_official__names_the_line_that_is_broken(tmp_path, change):
    if "input" in change:
        change = {"input": TASKS[0]["input"][:2]}
    with pytest.raises(InputError, match=r"reference\.jsonl:2: not as published"):
        mtrag.official(folder(tmp_path, [TASKS[0], TASKS[1] | change]))


def test_official__names_a_broken_or_missing_file_of_judgements(tmp_path):
    with pytest.raises(InputError, match=r"govt\.tsv:2: 2 fields"):
        mtrag.official(folder(tmp_path, qrels={**QRELS, "govt": f"{HEAD}a\tb\n"}))
    (tmp_path / "govt.tsv").unlink()
    with pytest.raises(InputError, match="no such file"):
        mtrag.official(tmp_path)


# --- rated answers


def whole():
    kinds = ("ANSWERABLE", "UNANSWERABLE", "CONVERSATIONAL")
    return {
        "tasks": [
            {"task_id": f"{kind[0]}<::>1", "Answerability": [kind], "Turn": "1",
             "Collection": "mt-rag-govt-elser-512", "input": [{"speaker": "user", "text": "Hm?"}],
             "targets": [{"text": "So."}],
             "contexts": [{"document_id": "p"}, {"document_id": "q"}],
             "annotations": {"context_relevance": {"system": [1] if kind == kinds[0] else []}}}
            for kind in kinds
        ],
        "documents": [{"document_id": name, "text": name} for name in "pq"],
        "metrics": [{"name": "conditional_idk", "author": "algorithm"},
                    {"name": "faithfulness", "author": "human"}],
        "evaluations": [
            {"task_id": f"{kind[0]}<::>1", "model_id": model, "model_response": "Text.",
             "annotations": {"conditional_idk": {"composite": {"value": right}},
                             "faithfulness": {"12": {"value": "4"}}}}
            for kind in kinds for model, right in (("good", 1.0), ("bad", 0.0))
        ],
    }  # fmt: skip


def rated(path, value):
    (path / mtrag.RATED).write_text(json.dumps(value), encoding="utf-8")
    return mtrag.official(path)


def test_rated__what_a_system_did_follows_from_whether_it_was_right(tmp_path):
    suite = mtrag.build(rated(tmp_path, whole()))
    did = {name: [row["proposed"]["state"] for row in run.to_pylist()]
           for name, run in suite.runs.items()}  # fmt: skip
    assert did == {"good": ["answer", "abstain", "answer"], "bad": ["abstain", "answer", "abstain"]}
    first, second, third = suite.cases.to_pylist()
    assert [item["doc_id"] for item in first["evidence"]] == ["q"]
    assert (second["evidence"], third["evidence"]) == ([], None)
    assert first["domain"] == "govt"
    assert third["answerable"] is None
    (shown, *_) = suite.runs["good"].to_pylist()
    assert [item["id"] for item in shown["context"]] == ["p", "q"]
    assert suite.notes[1].startswith("6 ratings of answers by people left out")


def test_rated__an_answer_without_that_figure_has_no_state(tmp_path):
    tables = rated(tmp_path, whole())
    left = tables["human_scores"].filter(pl.col("task_id") != "A<::>1")
    run = mtrag.build({**tables, "human_scores": left}).runs["good"].to_pylist()
    assert run[0]["proposed"] == {"state": None, "value": None, "text": "Text.", "confidence": None}


def test_rated__names_a_position_that_is_none(tmp_path):
    tables = rated(tmp_path, whole())
    rows = tables["human_tasks"].with_columns(relevant_positions=[2])
    with pytest.raises(InputError, match="relevant position 2 of task 'A<::>1'"):
        mtrag.build({**tables, "human_tasks": rows})


def test_rated__names_a_file_that_is_broken(tmp_path):
    for broken in ({}, whole() | {"metrics": []}, whole() | {"tasks": [{"task_id": "a"}]}, []):
        with pytest.raises(InputError, match="not as published"):
            rated(tmp_path, broken)
