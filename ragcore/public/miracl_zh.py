"""MIRACL in Chinese over the passages of NoMIRACL: topics that one of those passages answers.

The corpus of MIRACL (4.9 million passages) is not here. What is here are the official topics and
judgements, and the passages that the prompts of NoMIRACL happen to show: a small pooled corpus.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ragcore import schema
from ragcore.errors import InputError
from ragcore.public import nomiracl_zh
from ragcore.public.checks import WHOLE, Tables, refuse_grades, refuse_unknown, splits, table
from ragcore.public.columns import evidence, typed, vectors
from ragcore.public.files import fields, read_text
from ragcore.public.imported import Imported, counted

PREFIX = "zh:"
"""Of ids of passages in NoMIRACL's tables; MIRACL's judgements have none."""
_QUERIES, _QRELS = "miracl_zh/queries", "miracl_zh/qrels"
TOPICS, QRELS = "topics.miracl-v1.0-zh-{}.tsv", "qrels.miracl-v1.0-zh-{}.tsv"


def build(tables: Tables) -> Imported:
    """The suite of MIRACL's queries and qrels and NoMIRACL's corpus; with vectors, if there.

    Title and text of a passage are searched together.

    Raises
    ------
    InputError
        If a table or column is missing, a topic is unknown, an id stands twice, or no topic is
        left.
    """
    passages = table(tables, "nomiracl_zh/corpus", "doc_id", "title", "text", "lang", key="doc_id")
    queries = table(tables, _QUERIES, "query_id", "text", "lang", "split", key="query_id")
    qrels = table(tables, _QRELS, "query_id", "doc_id", relevance=WHOLE)
    refuse_unknown(qrels, _QRELS, "query_id", queries["query_id"], _QUERIES)
    refuse_grades(qrels, _QRELS)
    ids = passages["doc_id"].str.strip_prefix(PREFIX)
    here = qrels.filter(pl.col("doc_id").is_in(ids.implode()))
    asked = queries.join(here.filter(pl.col("relevance") > 0), on="query_id", how="semi")
    if not asked.height:
        raise InputError(
            _QRELS, "no relevant passage that nomiracl_zh/corpus holds", "some topics",
            f"ids of passages are those of the judgements, or begin with {PREFIX}",
        )  # fmt: skip
    judged = here.join(asked, on="query_id", how="semi", maintain_order="left")
    items = judged.select(
        pl.col("query_id").alias("key"), "doc_id", pl.col("relevance").cast(pl.Int8)
    )
    cases = {
        "case_id": asked["query_id"], "lang": asked["lang"],
        "split": splits(asked, _QUERIES), "question": asked["text"],
        "answerable": [True] * asked.height, "expected_state": ["answer"] * asked.height,
        "evidence": evidence(asked["query_id"], items, _QRELS),
        "source_split": asked["split"],
        **vectors(tables, "miracl_zh/vectors_queries", "query_id", asked["query_id"]),
    }  # fmt: skip
    chunks = {
        "chunk_id": ids, "doc_id": ids, "title": passages["title"], "text": passages["text"],
        "lang": passages["lang"], "article": ids.str.split("#").list.first(),
        **vectors(tables, "nomiracl_zh/vectors_corpus", "doc_id", passages["doc_id"]),
    }  # fmt: skip
    lost = qrels.filter((pl.col("relevance") > 0) & pl.col("query_id").is_in(
        asked["query_id"].implode()) & ~pl.col("doc_id").is_in(ids.implode())).height  # fmt: skip
    notes = (
        f"{counted(queries.height - asked.height, 'topic')} of {queries.height:,} left out: no "
        "relevant passage of theirs is in the corpus.",
        f"{counted(qrels.height - judged.height, 'judgement')} of {qrels.height:,} left out: of "
        "those topics, or of passages that are not in the corpus.",
        f"{counted(lost, 'relevant passage')} of the topics that are left are among them: recall "
        "is of what the corpus has.",
    )
    return Imported(typed(cases, schema.CASES), typed(chunks, schema.CHUNKS), notes=notes)


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables of the importer, from the official topics and judgements and NoMIRACL's prompts.

    Raises
    ------
    InputError
        If a file is missing, or a line is not of its form.
    """
    topics, judged = [], []
    for split in ("dev", "train"):
        name = TOPICS.format(split)
        lines = fields(read_text(folder, name), folder / name, 2)
        topics += [(topic, text, "zh", split) for _, (topic, text) in lines]
        name = QRELS.format(split)
        for n, (topic, _, passage, grade) in fields(read_text(folder, name), folder / name, 4):
            if grade not in ("0", "1"):
                raise InputError(folder / name, f"grade {grade!r}", "0 or 1", line=n)
            judged.append((topic, passage, int(grade), split))
    kinds = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64, "split": pl.String}
    return {
        _QUERIES: pl.DataFrame(
            topics, dict.fromkeys(("query_id", "text", "lang", "split"), pl.String), orient="row"
        ),
        _QRELS: pl.DataFrame(judged, kinds, orient="row"),
        "nomiracl_zh/corpus": nomiracl_zh.official(folder)["corpus"],
    }
