"""MTRAG's own files -> the tables of its importer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ragcore.public.files import as_published, fields, frame, json_lines, read_json, read_text

TASKS, RATED = "reference.jsonl", "reference_subset_with_human_evaluations.json"
DOMAINS = ("clapnq", "cloud", "fiqa", "govt")
"""As its judgements are parted, one file `<domain>.tsv` each."""

_TEXT, _WHOLE, _TEXTS = pl.String, pl.Int32, pl.List(pl.String)
_TASK: dict[str, Any] = {
    "task_id": _TEXT, "turn": _WHOLE, "history": _TEXT, "question": _TEXT, "target": _TEXT,
    "answerability": _TEXT,
}  # fmt: skip
_PASSAGE = {"doc_id": _TEXT, "title": _TEXT, "text": _TEXT}


def tasks_of(folder: Path) -> dict[str, pl.DataFrame]:
    """`un_tasks`, `un_contexts`, `un_corpus` and `retrieval_qrels` of MTRAG-UN.

    Raises
    ------
    InputError
        If a file is missing or is not as published.
    """
    path = folder / TASKS
    tasks, contexts, corpus = [], [], {}
    for number, one in json_lines(read_text(folder, TASKS), path):
        with as_published(path, "a task with its passages", number):
            tasks.append(_task(one, one["answerability"], one["turn"]) | {
                "domain": one["Collection"],
                "question_type": one["Question Type"], "multi_turn": one["Multi-Turn"],
            })  # fmt: skip
            for at, passage in enumerate(one["contexts"], 1):
                name = passage["document_id"]
                contexts.append({"task_id": one["task_id"], "doc_id": name, "position": at})
                corpus.setdefault(name, _passage(passage) | {"domain": one["Collection"]})
    kinds = {
        "un_tasks": _TASK | {"domain": _TEXT, "question_type": _TEXTS, "multi_turn": _TEXTS},
        "un_contexts": {"task_id": _TEXT, "doc_id": _TEXT, "position": _WHOLE},
        "un_corpus": _PASSAGE | {"domain": _TEXT},
    }
    return {
        "un_tasks": frame(tasks, kinds["un_tasks"], path),
        "un_contexts": frame(contexts, kinds["un_contexts"], path),
        "un_corpus": frame(list(corpus.values()), kinds["un_corpus"], path),
        "retrieval_qrels": pl.concat([_qrels(folder, domain) for domain in DOMAINS]),
    }


def rated_of(folder: Path) -> dict[str, pl.DataFrame]:
    """`human_tasks`, `human_corpus`, `human_responses` and `human_scores` of MTRAG.

    Raises
    ------
    InputError
        If the file is missing or is not as published.
    """
    path, whole = folder / RATED, read_json(folder, RATED)
    with as_published(path, "tasks, documents and evaluations"):
        tasks = [
            _task(one, one["Answerability"], one["Turn"]) | {
                "collection": one["Collection"],
                "doc_ids": [passage["document_id"] for passage in one["contexts"]],
                "relevant_positions":
                    one.get("annotations", {}).get("context_relevance", {}).get("system", []),
            }
            for one in whole["tasks"]
        ]  # fmt: skip
        responses = [
            {"task_id": one["task_id"], "system": one["model_id"],
             "response": one["model_response"]}
            for one in whole["evaluations"]
        ]  # fmt: skip
        kinds = {one["name"]: one["author"] for one in whole["metrics"]}
        scores = [
            {"task_id": one["task_id"], "system": one["model_id"], "metric": metric,
             "kind": kinds[metric], "rater": rater, "value": float(said["value"])}
            for one in whole["evaluations"]
            for metric, by in one["annotations"].items() for rater, said in by.items()
        ]  # fmt: skip
        corpus = [_passage(one) for one in whole["documents"]]
    of_tasks = {"collection": _TEXT, "doc_ids": _TEXTS, "relevant_positions": pl.List(_WHOLE)}
    told = ("task_id", "system", "metric", "kind", "rater")
    return {
        "human_tasks": frame(tasks, _TASK | of_tasks, path),
        "human_corpus": frame(corpus, _PASSAGE, path),
        "human_responses": frame(
            responses, dict.fromkeys(("task_id", "system", "response"), _TEXT), path
        ),
        "human_scores": frame(scores, dict.fromkeys(told, _TEXT) | {"value": pl.Float64}, path),
    }


def _task(one: dict[str, Any], classes: list[str], turn: str) -> dict[str, Any]:
    """What the tasks of both files have: what was said, and what is to be said."""
    (answerability,), (target,) = classes, one["targets"]
    said = one["input"]
    if said[-1]["speaker"] != "user":
        raise ValueError("the last turn is not the user's")
    return {
        "task_id": one["task_id"],
        "turn": int(turn),
        "history": "\n".join(f"{part['speaker']}: {part['text']}" for part in said),
        "question": said[-1]["text"],
        "target": target["text"],
        "answerability": answerability,
    }


def _passage(one: dict[str, Any]) -> dict[str, Any]:
    name, title, text = one["document_id"], one.get("title"), one["text"]
    return {"doc_id": name, "title": title or "", "text": text}


def _qrels(folder: Path, domain: str) -> pl.DataFrame:
    name, made = f"{domain}.tsv", []
    for number, row in list(fields(read_text(folder, name), folder / name, 3))[1:]:
        with as_published(folder / name, "query, passage and grade", number):
            made.append(("mtragun", domain, row[0], row[1], int(row[2])))
    kinds = dict.fromkeys(("set", "domain", "query_id", "doc_id"), _TEXT) | {"relevance": _WHOLE}
    return frame(made, kinds, folder / name)
