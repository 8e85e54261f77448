"""MTRAG's own files -> the tables of its importer."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars as pl

from ragcore.errors import InputError
from ragcore.public.reading import held_file, json_lines

TASKS, RATED = "reference.jsonl", "reference_subset_with_human_evaluations.json"
DOMAINS = ("clapnq", "cloud", "fiqa", "govt")
"""As its judgements are parted, one file `<domain>.tsv` each."""


def tasks_of(folder: Path) -> dict[str, pl.DataFrame]:
    """`un_tasks`, `un_contexts`, `un_corpus` and `retrieval_qrels` of MTRAG-UN.

    Raises
    ------
    InputError
        If a file is missing or is not as published.
    """
    path = held_file(folder, TASKS)
    tasks, contexts, corpus = [], [], {}
    for number, one in enumerate(json_lines(path.read_text("utf-8"), path), 1):
        try:
            tasks.append(_task(one, one["answerability"], one["turn"]) | {
                "domain": one["Collection"],
                "question_type": one["Question Type"], "multi_turn": one["Multi-Turn"],
            })  # fmt: skip
            for at, passage in enumerate(one["contexts"], 1):
                name = passage["document_id"]
                contexts.append({"task_id": one["task_id"], "doc_id": name, "position": at})
                corpus.setdefault(name, _passage(passage) | {"domain": one["Collection"]})
        except (KeyError, ValueError, TypeError) as error:
            found = f"not as published: {error!r}"
            raise InputError(path, found, "a task with its passages", line=number) from None
    return {
        "un_tasks": pl.DataFrame(tasks).cast({"turn": pl.Int32}),
        "un_contexts": pl.DataFrame(contexts).cast({"position": pl.Int32}),
        "un_corpus": pl.DataFrame(list(corpus.values())),
        "retrieval_qrels": pl.concat([_qrels(folder, domain) for domain in DOMAINS]),
    }


def rated_of(folder: Path) -> dict[str, pl.DataFrame]:
    """`human_tasks`, `human_corpus`, `human_responses` and `human_scores` of MTRAG.

    Raises
    ------
    InputError
        If the file is missing or is not as published.
    """
    path = held_file(folder, RATED)
    try:
        whole = json.loads(path.read_text("utf-8"))
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
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        found = f"not as published: {error!r}"
        raise InputError(path, found, "tasks, documents and evaluations") from None
    return {
        "human_tasks": pl.DataFrame(tasks).cast(
            {"turn": pl.Int32, "doc_ids": pl.List(pl.String),
             "relevant_positions": pl.List(pl.Int32)}
        ),
        "human_corpus": pl.DataFrame(corpus),
        "human_responses": pl.DataFrame(responses),
        "human_scores": pl.DataFrame(scores),
    }  # fmt: skip


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
    path = held_file(folder, f"{domain}.tsv")
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8")), delimiter="\t"))[1:]
    try:
        made = [
            {"set": "mtragun", "domain": domain, "query_id": query, "doc_id": document,
             "relevance": int(grade)}
            for query, document, grade in rows
        ]  # fmt: skip
    except ValueError as error:
        found = f"not as published: {error}"
        raise InputError(path, found, "query, passage and grade in each line") from None
    kinds = {"set": pl.String, "domain": pl.String, "query_id": pl.String, "doc_id": pl.String,
             "relevance": pl.Int32}  # fmt: skip
    return pl.DataFrame(made, kinds)
