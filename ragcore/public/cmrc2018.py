"""CMRC 2018: questions about paragraphs of Chinese Wikipedia, their answers labelled by place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ragcore import schema
from ragcore.public import given, squad
from ragcore.public.imported import Imported

FILES = {"dev": "cmrc2018_dev.json", "trial": "cmrc2018_trial.json"}
"""The official files in SQuAD's form, by split."""


def build(tables: Mapping[str, pl.DataFrame]) -> Imported:
    """The suite of corpus, queries and answers.

    Raises
    ------
    InputError
        If a table or column is missing, an id is unknown or stands twice, or a question has no
        answer.
    """
    corpus = given.table(tables, "corpus", "doc_id", "title", "text", "split")
    queries = given.table(tables, "queries", "query_id", "text", "split")
    given.refuse_twice(corpus, "corpus", "doc_id")
    given.refuse_twice(queries, "queries", "query_id")
    answers = given.table(tables, "answers", "query_id")
    given.refuse_unknown(answers, "answers", "query_id", queries["query_id"])
    texts = dict(corpus.select("doc_id", "text").iter_rows())
    items, references, notes = squad.labels(tables, queries, texts)
    items = items.with_columns(required=pl.lit(True), relevance=pl.lit(1, pl.Int8))
    cases = squad.cases(queries, references) | {
        "lang": ["zh"] * queries.height, "split": given.splits(queries["split"], "queries"),
        "evidence": given.evidence(queries["query_id"], items, "answers"),
        "source_split": queries["split"],
    }  # fmt: skip
    chunks = {
        "chunk_id": corpus["doc_id"], "doc_id": corpus["doc_id"], "text": corpus["text"],
        "lang": ["zh"] * corpus.height, "article": corpus["title"],
    }  # fmt: skip
    return Imported(
        given.columns_of(cases, schema.CASES), given.columns_of(chunks, schema.CHUNKS),
        notes=tuple(notes),
    )  # fmt: skip


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables of the importer, from the official files.

    Raises
    ------
    InputError
        If a file is missing, or not in SQuAD's form.
    """
    parts = [
        squad.marked(
            squad.read(folder / name, lambda article, place, paragraph: paragraph["id"]),
            split=split,
        )
        for split, name in FILES.items()
    ]
    return squad.stacked(parts)
