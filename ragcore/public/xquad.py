"""XQuAD in English and Chinese: the same paragraphs and questions in both, answers by place.

A case is a question in both languages; each language looks among the paragraphs of its own.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ragcore import schema
from ragcore.public import squad
from ragcore.public.checks import Tables, refuse_twice, table
from ragcore.public.columns import typed
from ragcore.public.imported import Imported, counted

LANGUAGES = ("en", "zh")


def build(tables: Tables) -> Imported:
    """The suite of corpus, queries and answers in English and Chinese; other languages are left.

    Raises
    ------
    InputError
        If a table or column is missing, an id is unknown or stands twice, also a question in one
        language, or a question has no answer.
    """
    every = table(tables, "corpus", "doc_id", "title", "text", "lang", "parallel_id", key="doc_id")
    asked = table(tables, "queries", "query_id", "text", "lang", "parallel_id", key="query_id")
    ours = pl.col("lang").is_in(LANGUAGES)
    corpus, queries = every.filter(ours), asked.filter(ours)
    for lang in LANGUAGES:
        own = queries.filter(pl.col("lang") == lang)
        refuse_twice(own, f"queries in {lang}", "parallel_id")
    items, references, notes = squad.labels(tables, queries, corpus, known=asked["query_id"])
    cases = squad.cases(queries, references, items) | {
        "case_id": queries["parallel_id"], "lang": queries["lang"],
        "query_id": queries["query_id"],
    }  # fmt: skip
    chunks = {
        "chunk_id": corpus["doc_id"], "doc_id": corpus["doc_id"], "text": corpus["text"],
        "lang": corpus["lang"], "article": corpus["title"], "parallel_id": corpus["parallel_id"],
    }  # fmt: skip
    if others := sorted({*every["lang"], *asked["lang"]} - {*LANGUAGES}):
        notes.append(
            f"{counted(asked.height - queries.height, 'question')} and "
            f"{counted(every.height - corpus.height, 'paragraph')} in {', '.join(others)} left out."
        )
    alone = queries.filter(pl.len().over("parallel_id") < len(LANGUAGES)).height
    if alone:
        notes.append(f"{counted(alone, 'question')} in one of the languages only.")
    return Imported(typed(cases, schema.CASES), typed(chunks, schema.CHUNKS), notes=tuple(notes))


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables of the importer, from the official files of both languages.

    Raises
    ------
    InputError
        If a file is missing, or not in SQuAD's form.
    """
    parts = []
    for lang in LANGUAGES:
        one = squad.marked(
            squad.read(
                folder,
                f"xquad.{lang}.json",
                lambda article, place, paragraph, lang=lang: f"{lang}:{article}:{place}",
                lambda _, asked, lang=lang: f"{lang}:{asked['id']}",
            ),
            lang=lang,
        )
        for name, column in (("corpus", "doc_id"), ("queries", "query_id")):
            bare = pl.col(column).str.strip_prefix(f"{lang}:").alias("parallel_id")
            one[name] = one[name].with_columns(bare)
        parts.append(one)
    return squad.stacked(parts)
