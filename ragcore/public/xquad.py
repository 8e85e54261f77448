"""XQuAD in English and Chinese: the same paragraphs and questions in both, answers by place.

A case is a question in both languages; each language looks among the paragraphs of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ragcore import schema
from ragcore.public import given, squad
from ragcore.public.given import counted
from ragcore.public.imported import Imported

LANGUAGES = ("en", "zh")


def build(tables: Mapping[str, pl.DataFrame]) -> Imported:
    """The suite of corpus, queries and answers in English and Chinese; other languages are left.

    Raises
    ------
    InputError
        If a table or column is missing, an id is unknown or stands twice, also a question in one
        language, or a question has no answer.
    """
    corpus = given.table(tables, "corpus", "doc_id", "title", "text", "lang", "parallel_id")
    queries = given.table(tables, "queries", "query_id", "text", "lang", "parallel_id")
    given.refuse_twice(corpus, "corpus", "doc_id")
    given.refuse_twice(queries, "queries", "query_id")
    answers = given.table(tables, "answers", "query_id")
    given.refuse_unknown(answers, "answers", "query_id", queries["query_id"])
    ours = pl.col("lang").is_in(LANGUAGES)
    others = sorted(set(corpus.filter(~ours)["lang"]) | set(queries.filter(~ours)["lang"]))
    left = queries.filter(~ours).height, corpus.filter(~ours).height
    corpus, queries = corpus.filter(ours), queries.filter(ours)
    for lang in LANGUAGES:
        given.refuse_twice(
            queries.filter(pl.col("lang") == lang), f"queries in {lang}", "parallel_id"
        )
    texts = dict(corpus.select("doc_id", "text").iter_rows())
    items, references, notes = squad.labels(tables, queries, texts)
    items = items.with_columns(required=pl.lit(True), relevance=pl.lit(1, pl.Int8))
    cases = squad.cases(queries, references) | {
        "case_id": queries["parallel_id"], "lang": queries["lang"],
        "evidence": given.evidence(queries["query_id"], items, "answers"),
        "query_id": queries["query_id"],
    }  # fmt: skip
    chunks = {
        "chunk_id": corpus["doc_id"], "doc_id": corpus["doc_id"], "text": corpus["text"],
        "lang": corpus["lang"], "article": corpus["title"], "parallel_id": corpus["parallel_id"],
    }  # fmt: skip
    if others:
        notes.append(
            f"{counted(left[0], 'question')} and {counted(left[1], 'paragraph')} in "
            f"{', '.join(others)} left out."
        )
    alone = queries.filter(pl.len().over("parallel_id") < len(LANGUAGES)).height
    if alone:
        notes.append(f"{counted(alone, 'question')} in one of the languages only.")
    return Imported(
        given.columns_of(cases, schema.CASES), given.columns_of(chunks, schema.CHUNKS),
        notes=tuple(notes),
    )  # fmt: skip


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
                folder / f"xquad.{lang}.json",
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
