"""COVID-QA: questions about whole biomedical articles, their answers labelled by place.

The chunks are the lines of an article that are not blank. An answer that runs over several lines is
one item of evidence a line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ragcore import schema
from ragcore.public import squad
from ragcore.public.checks import WHOLE, Tables, refuse_unknown, table
from ragcore.public.columns import typed
from ragcore.public.imported import Imported, counted

FILE = "200423_covidQA.json"


def build(tables: Tables) -> Imported:
    """The suite of documents, units, queries and answers.

    Raises
    ------
    InputError
        If a table or column is missing, an id is unknown or stands twice, or a question has no
        answer.
    """
    documents = table(tables, "documents", "doc_id", "title", "text", key="doc_id")
    units = table(
        tables, "units", "unit_id", "doc_id", "text", key="unit_id", start_codepoint=WHOLE,
        end_codepoint=WHOLE,
    )  # fmt: skip
    queries = table(tables, "queries", "query_id", "text", "doc_id", key="query_id")
    for where, rows in (("units", units), ("queries", queries)):
        refuse_unknown(rows, where, "doc_id", documents["doc_id"], "documents")
    texts = dict(documents.select("doc_id", "text").iter_rows())
    items, references, notes = squad.labels(tables, queries, documents, "documents")
    pieces, parted = cut_at_lines(items, units, texts)
    if parted:
        notes.append(
            f"{counted(parted, 'answer')} over several lines: {pieces.height:,} items of "
            f"{counted(items.height, 'label')}."
        )
    cases = squad.cases(queries, references, pieces) | {
        "lang": ["en"] * queries.height,
        "doc_id": queries["doc_id"],
    }
    titles = units.select("doc_id").join(
        documents.select("doc_id", "title"), on="doc_id", how="left", maintain_order="left"
    )
    chunks = {
        "chunk_id": units["unit_id"], "doc_id": units["doc_id"],
        "start": units["start_codepoint"], "end": units["end_codepoint"], "text": units["text"],
        "lang": ["en"] * units.height, "article": titles["title"],
    }  # fmt: skip
    return Imported(typed(cases, schema.CASES), typed(chunks, schema.CHUNKS), notes=tuple(notes))


def cut_at_lines(
    items: pl.DataFrame, units: pl.DataFrame, texts: Mapping[str, str]
) -> tuple[pl.DataFrame, int]:
    """Labels cut where lines end, blank pieces left out; and how many were cut.

    Parameters
    ----------
    items : as `squad.labels` gives them; one without a place stays whole.
    units : the lines, in the order of their articles.
    texts : of articles.
    """
    lines: dict[str, list[tuple[int, int]]] = {name: [] for name in texts}
    for name, start, end in units.select("doc_id", "start_codepoint", "end_codepoint").iter_rows():
        lines[name].append((start, end))
    rows, parted = [], 0
    for key, name, quote, start, end in items.select(
        "key", "doc_id", "quote", "start", "end"
    ).iter_rows():
        if start is None:
            rows.append((key, name, quote, None, None))
            continue
        own = lines[name]
        pieces = []
        for low, high in own[max(bisect_right(own, (start, 0)) - 1, 0) :]:
            if low >= end:
                break
            piece = texts[name][max(low, start) : min(high, end)]
            if piece.strip():
                pieces.append((key, name, piece, max(low, start), min(high, end)))
        parted += len(pieces) > 1
        rows += pieces or [(key, name, quote, start, end)]
    kinds = items.select("key", "doc_id", "quote", "start", "end").schema
    return pl.DataFrame(rows, kinds, orient="row"), parted


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables of the importer, from the official file of April 2020.

    The title of an article is its first line.

    Raises
    ------
    InputError
        If the file is missing, or not in SQuAD's form.
    """
    found = squad.read(
        folder, FILE, lambda article, place, paragraph: str(paragraph["document_id"]),
        lambda document, asked: f"{document}:{asked['id']}",
    )  # fmt: skip
    units = []
    titles = []
    for name, text in found["corpus"].select("doc_id", "text").iter_rows():
        titles.append(text.split("\n", 1)[0].strip())
        at = number = 0
        for line in text.split("\n"):
            if line.strip():
                units.append((f"{name}:{number}", name, at, at + len(line), line))
                number += 1
            at += len(line) + 1
    kinds = {
        "unit_id": pl.String, "doc_id": pl.String, "start_codepoint": pl.Int64,
        "end_codepoint": pl.Int64, "text": pl.String,
    }  # fmt: skip
    documents = found["corpus"].with_columns(pl.Series("title", titles, pl.String))
    return {
        "documents": documents, "units": pl.DataFrame(units, kinds, orient="row"),
        "queries": found["queries"], "answers": found["answers"],
    }  # fmt: skip
