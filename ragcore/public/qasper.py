"""QASPER: questions about research papers, with the paragraphs that answer them as evidence.

A paper is a document; its units (paragraphs, the abstract, in part whole sections) are its blocks
and, one each, the chunks. The text of a paper is its units with a line break between them: places
of labels are code points of that, so that they outlive any other way to cut it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.answers import qasper as rules
from ragcore.errors import InputError
from ragcore.public.checks import FLAG, TEXTS, WHOLE, Tables, refuse_unknown, splits, table
from ragcore.public.columns import evidence, states, typed, vectors
from ragcore.public.imported import Imported, counted
from ragcore.public.qasper_files import official

__all__ = ["build", "official"]

ANNOTATIONS = pa.list_(pa.struct([("answer", pa.string()), ("evidence", pa.list_(pa.string()))]))
"""What each annotator says, as the collection's evaluator scores it: the answer, and the evidence
by id of its unit; what is a table, a figure or a heading keeps its own words."""


def build(tables: Tables) -> Imported:
    """The suite of papers, corpus, queries, answers and evidence; with vectors, if they are there.

    Raises
    ------
    InputError
        If a table or column is missing, an id is unknown or stands twice, or evidence is of
        another paper than its question.
    """
    papers = table(tables, "papers", "paper_id", "title", key="paper_id", maybe=["title"])
    corpus = table(tables, "corpus", "doc_id", "paper_id", "section", "unit", "text", key="doc_id")
    queries = table(
        tables, "queries", "query_id", "paper_id", "text", "type", "lang", "split",
        key="query_id", answerable=FLAG,
    )  # fmt: skip
    answers = table(
        tables, "answers", "query_id", "annotation_id", "type", "text",
        maybe=["text", "spans", "yes_no"], spans=TEXTS, yes_no=FLAG,
    )  # fmt: skip
    marked = table(
        tables, "evidence", "query_id", "annotation_id", "kind", "quote", "doc_id", "match",
        maybe=["quote", "doc_id", "start_codepoint", "end_codepoint"],
        start_codepoint=WHOLE, end_codepoint=WHOLE,
    )  # fmt: skip
    for where, rows in (("corpus", corpus), ("queries", queries)):
        refuse_unknown(rows, where, "paper_id", papers["paper_id"], "papers")
    for where, rows in (("answers", answers), ("evidence", marked)):
        refuse_unknown(rows, where, "query_id", queries["query_id"], "queries")
    refuse_unknown(marked, "evidence", "doc_id", corpus["doc_id"], "corpus")
    units = _placed(corpus)
    labels = marked.filter(pl.col("kind") == "evidence")
    items, notes = _items(labels, queries, units)
    annotations, references, said = _annotations(answers, labels, queries["query_id"].to_list())
    if bare := papers.height - units["paper_id"].n_unique():
        notes.append(f"{counted(bare, 'paper')} of {papers.height:,} without text here.")
    if other := marked.height - labels.height:
        notes.append(
            f"{counted(other, 'highlight')} are not labels: a highlight is a part of the evidence "
            "paragraphs, which are."
        )
    return Imported(
        _cases(tables, queries, items, annotations, references), _chunks(tables, units, papers),
        notes=(*notes, *said),
    )  # fmt: skip


def _placed(corpus: pl.DataFrame) -> pl.DataFrame:
    """Units with their block in the paper and their code points in its text."""
    length = pl.col("text").str.len_chars().cast(pl.Int64)
    end = (length + 1).cum_sum().over("paper_id") - 1
    return corpus.with_columns(
        pl.int_range(pl.len()).over("paper_id").alias("block"), end.alias("end"),
        (end - length).alias("start"),
    )  # fmt: skip


def _chunks(tables: Tables, units: pl.DataFrame, papers: pl.DataFrame) -> pa.Table:
    titles = units.select("paper_id").join(
        papers.select("paper_id", "title"), on="paper_id", how="left", maintain_order="left"
    )
    made = {
        "chunk_id": units["doc_id"], "doc_id": units["paper_id"], "block_first": units["block"],
        "block_last": units["block"], "start": units["start"], "end": units["end"],
        "text": units["text"], "form": units["unit"], "section": units["section"],
        "paper_title": titles["title"],
    }  # fmt: skip
    made |= vectors(tables, "vectors_corpus", "doc_id", units["doc_id"])
    return typed(made, schema.CHUNKS)


def _cases(
    tables: Tables, queries: pl.DataFrame, items: pa.Array,
    annotations: list[Any], references: list[list[str]],
) -> pa.Table:  # fmt: skip
    answerable = queries["answerable"]
    made = {
        "case_id": queries["query_id"], "lang": queries["lang"],
        "split": splits(queries, "queries"), "question": queries["text"],
        "type": [[one] for one in queries["type"]], "answerable": answerable,
        "expected_state": states(answerable),
        "references": references, "evidence": items, "doc_id": queries["paper_id"],
        "source_split": queries["split"], "annotations": pa.array(annotations, ANNOTATIONS),
    }  # fmt: skip
    made |= vectors(tables, "vectors_queries", "query_id", queries["query_id"])
    return typed(made, schema.CASES)


def _items(
    labels: pl.DataFrame, queries: pl.DataFrame, units: pl.DataFrame
) -> tuple[pa.Array, list[str]]:
    """Evidence of each question by paper, block, place and quote, and what there is to say of it.

    What no unit holds is needed and not in the snapshot. Its grade is 0: no ranking of text can
    have it.
    """
    own = queries.select("query_id", pl.col("paper_id").alias("asked"))
    places = units.select(
        "doc_id",
        "paper_id",
        "block",
        pl.col("start").alias("at"),
        pl.col("text").alias("unit_text"),
    )
    rows = labels.join(own, on="query_id", how="left", maintain_order="left")
    rows = rows.join(places, on="doc_id", how="left", maintain_order="left")
    _refuse_elsewhere(rows)
    held = pl.col("doc_id").is_not_null()
    start, end = pl.col("start_codepoint"), pl.col("end_codepoint")
    there = (
        (start >= 0) & (end >= start)
        & (end <= pl.col("unit_text").str.len_chars())
        & (pl.col("unit_text").str.slice(start, (end - start).clip(0)) == pl.col("quote"))
    )  # fmt: skip
    rows = rows.with_columns(
        held.alias("held"), (held & there.fill_null(False)).alias("there"),
        pl.col("quote").fill_null("").str.strip_chars().eq("").alias("empty"),
    )  # fmt: skip
    notes = _said_of(rows)
    rows = rows.filter(~pl.col("empty")).unique(
        ["query_id", "doc_id", "start_codepoint", "end_codepoint", "quote"], maintain_order=True
    )

    def placed(value: pl.Expr) -> pl.Expr:
        return pl.when("there").then(value)

    several = pl.len().over("query_id", "doc_id") > 1
    if shared := rows.filter(pl.col("held") & several).unique(["query_id", "doc_id"]).height:
        notes.append(
            f"{counted(shared, 'unit')} with several evidence quotes of one question: each quote "
            "is an item of its own."
        )
    items = rows.select(
        pl.col("query_id").alias("key"), pl.col("asked").alias("doc_id"), "quote",
        placed(pl.col("block")).alias("block"),
        placed(pl.col("at") + pl.col("start_codepoint")).alias("start"),
        placed(pl.col("at") + pl.col("end_codepoint")).alias("end"),
        pl.col("held").cast(pl.Int8).alias("relevance"), pl.lit(True).alias("required"),
        pl.col("held").alias("in_snapshot"),
    )  # fmt: skip
    return evidence(queries["query_id"], items, "evidence"), notes


def _refuse_elsewhere(rows: pl.DataFrame) -> None:
    """Refuse evidence that lies in another paper than its question is about."""
    other = rows.filter(pl.col("paper_id") != pl.col("asked"))
    if other.height:
        one = other.row(0, named=True)
        raise InputError(
            "evidence", f"unit {one['doc_id']!r} of paper {one['paper_id']!r} for question "
            f"{one['query_id']!r}", f"a unit of paper {one['asked']!r}",
        )  # fmt: skip


def _said_of(rows: pl.DataFrame) -> list[str]:
    """What the labels leave out, and what they say of the corpus."""
    notes = []
    if empty := int(rows["empty"].sum()):
        notes.append(f"{counted(empty, 'empty evidence quote')} left out.")
    rows = rows.filter(~pl.col("empty"))
    bare = rows.filter(~pl.col("held"))
    if bare.height:
        kinds = bare["match"].value_counts().sort("match")
        named = ", ".join(f"{m.replace('_', ' ')} {n}" for m, n in kinds.iter_rows())
        questions = set(bare["query_id"])
        only = questions - set(rows.filter("held")["query_id"])
        notes.append(
            f"{counted(bare.height, 'evidence row')} of {counted(len(questions), 'question')} "
            f"are in no text unit ({named}): labelled as not in the snapshot, and not counted by "
            f"ranked measures; {counted(len(only), 'question')} have no other evidence."
        )
    if moved := rows.filter(pl.col("held") & ~pl.col("there")).height:
        notes.append(
            f"{counted(moved, 'quote')} not where the collection places them: labelled by quote "
            "alone."
        )
    return notes


def _annotations(
    answers: pl.DataFrame, labels: pl.DataFrame, questions: Sequence[str]
) -> tuple[list[Any], list[list[str]], list[str]]:
    """What each annotator says, by question; reference answers; and what there is to say."""
    cited: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    for name, by, quote, unit in labels.select(
        "query_id", "annotation_id", "quote", "doc_id"
    ).iter_rows():
        cited.setdefault((name, by), []).append((unit or quote or "", unit is not None))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in questions}
    references: dict[str, list[str]] = {name: [] for name in questions}
    best: dict[str, float] = {}
    silent = 0
    for row in answers.iter_rows(named=True):
        name, kind = row["query_id"], row["type"]
        own = cited.get((name, row["annotation_id"]), [])
        one = rules.reference(
            spans=row["spans"] or (),
            # Where annotators were merged, spans came as one text.
            free_form=(row["text"] or "") if kind in ("free_form", "extractive") else "",
            yes_no=row["yes_no"], unanswerable=kind == "unanswerable",
            evidence=[each for each, _ in own],
        )  # fmt: skip
        if one is None:
            silent += 1
            continue
        found[name].append({"answer": one.answer, "evidence": list(one.evidence)})
        units = dict.fromkeys(each for each, is_unit in own if is_unit and one.evidence)
        best[name] = max(best.get(name, 0.0), rules.evidence_f1(tuple(units), one.evidence).value)
        if one.kind != "none" and one.answer not in references[name]:
            references[name].append(one.answer)
    notes = []
    if silent:
        notes.append(f"{counted(silent, 'annotation')} without an answer left out.")
    if best:
        ceiling = sum(best.values()) / len(best)
        notes.append(
            f"Units of text can reach qasper.evidence_f1 {ceiling:.4f} at most, on average over "
            f"{counted(len(best), 'question')}: the rest is tables, figures, headings and "
            "paragraphs that share a unit."
        )
    return [found[name] or None for name in questions], list(references.values()), notes
