"""Collections in SQuAD's form: paragraphs, questions, answers by text and first code point.

The place of an answer is the label. Where a text is not at its place, the nearest place that has it
stands in: offsets drift, words do not. Of several annotators' answers the first that has a place is
the label, as they are alternatives; all of them are references.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from ragcore.errors import InputError
from ragcore.public.checks import WHOLE, Tables, refuse_unknown, table
from ragcore.public.columns import evidence
from ragcore.public.files import as_published, frame, read_json
from ragcore.public.imported import counted

EXACT, MOVED, LOST = range(3)
"""What became of an answer: at its place, at another one, nowhere in its document."""

_KINDS: dict[str, dict[str, Any]] = {
    "corpus": {"doc_id": pl.String, "title": pl.String, "text": pl.String},
    "queries": {"query_id": pl.String, "text": pl.String, "doc_id": pl.String},
    "answers": {
        "query_id": pl.String, "doc_id": pl.String, "annotator": pl.Int64, "text": pl.String,
        "start_codepoint": pl.Int64,
    },
}  # fmt: skip
"""Of the tables that a file is read into."""


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
    tables: Tables,
    queries: pl.DataFrame,
    documents: pl.DataFrame,
    of: str = "corpus",
    known: pl.Series | None = None,
) -> tuple[pl.DataFrame, list[list[str]], list[str]]:
    """One labelled answer a question, reference answers, and what there is to say of them.

    Parameters
    ----------
    tables : with `answers`: a row an annotator's answer.
    queries : the questions of the suite, with `query_id`.
    documents, of : with `doc_id` and `text`; the table that they are.
    known : ids of all questions of the collection, if the suite has some of them only: answers to
        the others are left alone.

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
    said = table(
        tables, "answers", "query_id", "doc_id", "text", annotator=WHOLE, start_codepoint=WHOLE
    )
    every = queries["query_id"] if known is None else known
    refuse_unknown(said, "answers", "query_id", every, "queries")
    answers = said.join(
        queries.select("query_id"), on="query_id", how="semi", maintain_order="left"
    )
    refuse_unknown(answers, "answers", "doc_id", documents["doc_id"], of)
    texts = dict(documents.select("doc_id", "text").iter_rows())
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
    given = answers.group_by("query_id", maintain_order=True).agg(
        pl.col("text").sort_by("annotator").unique(maintain_order=True)
    )
    references = dict(given.iter_rows())
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


def cases(
    queries: pl.DataFrame, references: list[list[str]], items: pl.DataFrame
) -> dict[str, Any]:
    """The columns of cases that all these collections have: every question has an answer."""
    n = queries.height
    labelled = items.with_columns(required=pl.lit(True), relevance=pl.lit(1, pl.Int8))
    return {
        "case_id": queries["query_id"], "question": queries["text"], "type": [["extractive"]] * n,
        "answerable": [True] * n, "expected_state": ["answer"] * n, "references": references,
        "evidence": evidence(queries["query_id"], labelled, "answers"),
    }  # fmt: skip


def read(
    folder: Path,
    name: str,
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
    rows: dict[str, list[tuple[Any, ...]]] = {each: [] for each in _KINDS}
    path, whole = folder / name, read_json(folder, name)
    with as_published(path, "data: articles in SQuAD's form"):
        articles = list(whole["data"])
    for article, one in enumerate(articles):
        where = f"{path}: article {article + 1}"
        with as_published(where, "paragraphs, context, qas and answers in SQuAD's form"):
            for place, paragraph in enumerate(one["paragraphs"]):
                of = document(article, place, paragraph)
                rows["corpus"].append((of, one.get("title") or "", paragraph["context"]))
                for asked in paragraph["qas"]:
                    key = question(of, asked)
                    rows["queries"].append((key, asked["question"], of))
                    rows["answers"] += [
                        (key, of, by, said["text"], said["answer_start"])
                        for by, said in enumerate(asked["answers"])
                    ]
    return {each: frame(rows[each], kinds, path) for each, kinds in _KINDS.items()}


def stacked(parts: list[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The tables of several files, one under the other."""
    return {name: pl.concat([part[name] for part in parts]) for name in parts[0]}


def marked(part: dict[str, pl.DataFrame], **values: str) -> dict[str, pl.DataFrame]:
    """Tables whose corpus and queries say more: a column of one value each."""
    more = [pl.lit(value).alias(name) for name, value in values.items()]
    return part | {name: part[name].with_columns(more) for name in ("corpus", "queries")}
