"""Collections in SQuAD's form: paragraphs, questions, answers by text and first code point.

The place of an answer is the label. Where a text is not at its place, the nearest place that has it
stands in: offsets drift, words do not. Of several annotators' answers the first that has a place is
the label, as they are alternatives; all of them are references.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ragcore.errors import InputError
from ragcore.public import given
from ragcore.public.given import counted

EXACT, MOVED, LOST = range(3)
"""What became of an answer: at its place, at another one, nowhere in its document."""

_ANSWERS = ("query_id", "doc_id", "annotator", "text", "start_codepoint")


def nearest(text: str, words: str, start: int) -> tuple[int, int]:
    """What became of `words` that should begin at `start` of `text`; and where they do, else -1.

    Of two places as near the first counts.
    """
    if words and start >= 0 and text.startswith(words, start):
        return EXACT, start
    best, at = -1, text.find(words) if words else -1
    while at >= 0:
        if best < 0 or abs(at - start) < abs(best - start):
            best = at
        at = text.find(words, at + 1)
    return (LOST, -1) if best < 0 else (MOVED, best)


def labels(
    tables: Mapping[str, pl.DataFrame], queries: pl.DataFrame, texts: Mapping[str, str]
) -> tuple[pl.DataFrame, list[list[str]], list[str]]:
    """One labelled answer a question, reference answers, and what there is to say of them.

    Parameters
    ----------
    tables : with `answers`: a row an annotator's answer.
    queries : the questions of the suite, with `query_id`; answers to others are left alone.
    texts : of documents, by id.

    Returns
    -------
    Items with `key` (the question), `doc_id`, `quote`, `start` and `end` (null for a question of
    which no answer is in its document: its document is the label); answers of each question,
    each text once; sentences.

    Raises
    ------
    InputError
        If an answer is in a document that is not there, or a question has none.
    """
    answers = given.table(tables, "answers", *_ANSWERS).join(
        queries.select("query_id"), on="query_id", how="semi", maintain_order="left"
    )
    known = pl.Series("doc_id", list(texts), pl.String)
    given.refuse_unknown(answers, "answers", "doc_id", known)
    silent = queries.join(answers, on="query_id", how="anti", maintain_order="left")
    if silent.height:
        raise InputError(
            "answers",
            f"none to question {silent['query_id'][0]!r}, and {silent.height - 1} more like it",
            "an answer to every question",
        )  # fmt: skip
    found = [
        nearest(texts[document], words, start)
        for document, words, start in answers.select(
            "doc_id", "text", "start_codepoint"
        ).iter_rows()
    ]
    placed = answers.with_columns(
        pl.Series("fate", [fate for fate, _ in found], pl.Int64),
        pl.Series("start", [at for _, at in found], pl.Int64),
    ).sort("fate", "annotator", maintain_order=True)
    first = placed.unique("query_id", keep="first", maintain_order=True)
    there = pl.col("fate") != LOST
    end = pl.col("start") + pl.col("text").str.len_chars().cast(pl.Int64)
    items = first.select(
        pl.col("query_id").alias("key"), "doc_id", pl.when(there).then("text").alias("quote"),
        pl.when(there).then("start").alias("start"), pl.when(there).then(end).alias("end"),
    )  # fmt: skip
    said = answers.group_by("query_id", maintain_order=True).agg(
        pl.col("text").sort_by("annotator").unique(maintain_order=True)
    )
    references = dict(said.iter_rows())
    return items, [references[name] for name in queries["query_id"]], _notes(placed, first)


def _notes(placed: pl.DataFrame, first: pl.DataFrame) -> list[str]:
    """What became of the answers, and of those that are labels."""
    n = {fate: placed.filter(pl.col("fate") == fate).height for fate in (MOVED, LOST)}
    own = {fate: first.filter(pl.col("fate") == fate).height for fate in (MOVED, LOST)}
    notes = []
    if n[MOVED] or n[LOST]:
        notes.append(
            f"{counted(n[MOVED] + n[LOST], 'answer')} of {placed.height:,} not where the "
            f"collection places them: {n[MOVED]:,} are elsewhere in their document, {n[LOST]:,} "
            f"nowhere; {counted(own[MOVED], 'label')} moved to the nearest place."
        )
    if own[LOST]:
        notes.append(
            f"{counted(own[LOST], 'question')} without an answer that is in the document: labelled "
            "by document alone."
        )
    if more := placed.height - first.height:
        notes.append(
            f"{counted(more, 'further answer')} of the same questions: references, no labels, as "
            "one place is enough."
        )
    return notes


def cases(queries: pl.DataFrame, references: list[list[str]]) -> dict[str, Any]:
    """The columns of cases that all these collections have: every question has an answer."""
    n = queries.height
    return {
        "case_id": queries["query_id"], "question": queries["text"], "type": [["extractive"]] * n,
        "answerable": [True] * n, "expected_state": ["answer"] * n, "references": references,
    }  # fmt: skip


def read(
    path: Path,
    document: Callable[[int, int, Any], str],
    question: Callable[[str, Any], str] = lambda _, asked: str(asked["id"]),
) -> dict[str, pl.DataFrame]:
    """A file in SQuAD's form as tables: corpus, queries and answers.

    Parameters
    ----------
    document : place of the article, place of the paragraph in it, and the paragraph, to its id.
    question : id of the document and the question, to its id.

    Raises
    ------
    InputError
        If there is no such file, or it is not of this form.
    """
    corpus: list[tuple[str, str, str]] = []
    queries: list[tuple[str, str, str]] = []
    answers: list[tuple[str, str, int, str, int]] = []
    whole = given.read_json(path)
    article = -1
    try:
        for article, one in enumerate(whole["data"]):
            for place, paragraph in enumerate(one["paragraphs"]):
                name = document(article, place, paragraph)
                corpus.append((name, one.get("title") or "", paragraph["context"]))
                for asked in paragraph["qas"]:
                    key = question(name, asked)
                    queries.append((key, asked["question"], name))
                    answers += [
                        (key, name, by, said["text"], said["answer_start"])
                        for by, said in enumerate(asked["answers"])
                    ]
    except (KeyError, TypeError, AttributeError) as error:
        found = f"article {article + 1}: {error!r}"
        raise InputError(
            path, found, "data, paragraphs, context, qas and answers in SQuAD's form"
        ) from None
    text, whole_number = pl.String, pl.Int64
    kinds: dict[str, Any] = {
        "corpus": {"doc_id": text, "title": text, "text": text},
        "queries": {"query_id": text, "text": text, "doc_id": text},
        "answers": {
            "query_id": text, "doc_id": text, "annotator": whole_number, "text": text,
            "start_codepoint": whole_number,
        },
    }  # fmt: skip
    rows = {"corpus": corpus, "queries": queries, "answers": answers}
    return {name: pl.DataFrame(rows[name], kinds[name], orient="row") for name in rows}


def stacked(parts: list[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The tables of several files, one under the other."""
    return {name: pl.concat([part[name] for part in parts]) for name in parts[0]}


def marked(part: dict[str, pl.DataFrame], **values: str) -> dict[str, pl.DataFrame]:
    """Tables whose corpus and queries say more: a column of one value each."""
    more = [pl.lit(value).alias(name) for name, value in values.items()]
    return part | {name: part[name].with_columns(more) for name in ("corpus", "queries")}
