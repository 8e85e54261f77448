"""CMRC 2018: questions about paragraphs of Chinese Wikipedia, their answers labelled by place."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ragcore import schema
from ragcore.public import squad
from ragcore.public.checks import Tables, splits, table
from ragcore.public.columns import typed
from ragcore.public.imported import Imported

FILES = {"dev": "cmrc2018_dev.json", "trial": "cmrc2018_trial.json"}
"""The official files in SQuAD's form, by split."""


def build(tables: Tables) -> Imported:
    """The suite of corpus, queries and answers.

    Raises
    ------
    InputError
        If a table or column is missing, an id is unknown or stands twice, or a question has no
        answer.
    """
    corpus = table(tables, "corpus", "doc_id", "title", "text", key="doc_id")
    queries = table(tables, "queries", "query_id", "text", "split", key="query_id")
    items, references, notes = squad.labels(tables, queries, corpus)
    cases = squad.cases(queries, references, items) | {
        "lang": ["zh"] * queries.height, "split": splits(queries, "queries"),
        "source_split": queries["split"],
    }  # fmt: skip
    chunks = {
        "chunk_id": corpus["doc_id"], "doc_id": corpus["doc_id"], "text": corpus["text"],
        "lang": ["zh"] * corpus.height, "article": corpus["title"],
    }  # fmt: skip
    return Imported(typed(cases, schema.CASES), typed(chunks, schema.CHUNKS), notes=tuple(notes))


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables of the importer, from the official files.

    Raises
    ------
    InputError
        If a file is missing, or not in SQuAD's form.
    """
    parts = [
        squad.marked(
            squad.read(folder, name, lambda article, place, paragraph: paragraph["id"]),
            split=split,
        )
        for split, name in FILES.items()
    ]
    return squad.stacked(parts)
