"""MIRACL in Chinese over the passages of NoMIRACL: topics that one of those passages answers.

The corpus of MIRACL (4.9 million passages) is not here. What is here are the official topics and
judgements, and the passages that the prompts of NoMIRACL happen to show: a small pooled corpus.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ragcore import schema
from ragcore.errors import InputError
from ragcore.public import given
from ragcore.public.given import counted
from ragcore.public.imported import Imported

PREFIX = "zh:"
"""Of ids of passages in NoMIRACL's tables; MIRACL's judgements have none."""
TOPICS, QRELS = "topics.miracl-v1.0-zh-{}.tsv", "qrels.miracl-v1.0-zh-{}.tsv"
PROMPTS = ("relevant-zh.jsonl", "non_relevant-zh.jsonl")
"""Prompts of both halves of NoMIRACL; there they are called alike, each in a folder of its own."""


def build(tables: Mapping[str, pl.DataFrame]) -> Imported:
    """The suite of MIRACL's queries and qrels and NoMIRACL's corpus; with vectors, if there.

    Title and text of a passage are searched together.

    Raises
    ------
    InputError
        If a table or column is missing, a topic is unknown, an id stands twice, or no topic is
        left.
    """
    names = {name: f"miracl_zh/{name}" for name in ("queries", "qrels", "vectors_queries")}
    passages = given.table(tables, "nomiracl_zh/corpus", "doc_id", "title", "text", "lang")
    queries = given.table(tables, names["queries"], "query_id", "text", "lang", "split")
    qrels = given.table(tables, names["qrels"], "query_id", "doc_id", "relevance")
    given.refuse_twice(passages, "nomiracl_zh/corpus", "doc_id")
    given.refuse_twice(queries, names["queries"], "query_id")
    given.refuse_unknown(qrels, names["qrels"], "query_id", queries["query_id"])
    ids = passages["doc_id"].str.strip_prefix(PREFIX)
    here = qrels.filter(pl.col("doc_id").is_in(ids.implode()))
    asked = queries.join(here.filter(pl.col("relevance") > 0), on="query_id", how="semi")
    if not asked.height:
        raise InputError(
            names["qrels"], "no relevant passage that nomiracl_zh/corpus holds", "some topics",
            f"ids of passages are those of the judgements, or begin with {PREFIX}",
        )  # fmt: skip
    judged = here.join(asked, on="query_id", how="semi", maintain_order="left")
    items = judged.select(
        pl.col("query_id").alias("key"), "doc_id", pl.col("relevance").cast(pl.Int8)
    )
    cases = {
        "case_id": asked["query_id"], "lang": asked["lang"],
        "split": given.splits(asked["split"], names["queries"]), "question": asked["text"],
        "answerable": [True] * asked.height, "expected_state": ["answer"] * asked.height,
        "evidence": given.evidence(asked["query_id"], items, names["qrels"]),
        "source_split": asked["split"],
        **given.vectors(tables, names["vectors_queries"], "query_id", asked["query_id"]),
    }  # fmt: skip
    chunks = {
        "chunk_id": ids, "doc_id": ids, "title": passages["title"], "text": passages["text"],
        "lang": passages["lang"], "article": ids.str.split("#").list.first(),
        **given.vectors(tables, "nomiracl_zh/vectors_corpus", "doc_id", passages["doc_id"]),
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
    return Imported(
        given.columns_of(cases, schema.CASES), given.columns_of(chunks, schema.CHUNKS), notes=notes
    )


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables of the importer, from the official topics and judgements and NoMIRACL's prompts.

    Raises
    ------
    InputError
        If a file is missing, or a line is not of its form.
    """
    topics, judged = [], []
    for split in ("dev", "train"):
        topics += [
            (name, text, "zh", split) for name, text in _rows(folder / TOPICS.format(split), 2)
        ]
        path = folder / QRELS.format(split)
        for n, (name, _, passage, grade) in enumerate(_rows(path, 4), 1):
            if grade not in ("0", "1"):
                raise InputError(path, f"grade {grade!r}", "0 or 1", line=n)
            judged.append((name, passage, int(grade), split))
    return {
        "miracl_zh/queries": pl.DataFrame(
            topics, schema=["query_id", "text", "lang", "split"], orient="row"
        ),
        "miracl_zh/qrels": pl.DataFrame(
            judged, schema=["query_id", "doc_id", "relevance", "split"], orient="row"
        ),
        "nomiracl_zh/corpus": _passages(folder),
    }


def _rows(path: Path, width: int) -> list[list[str]]:
    """The fields of a file of lines parted by tabs."""
    out = []
    for n, line in enumerate(given.read_text(path).splitlines(), 1):
        fields = line.split("\t")
        if len(fields) != width:
            raise InputError(path, f"{len(fields)} fields", f"{width}, parted by tabs", line=n)
        out.append(fields)
    return out


def _passages(folder: Path) -> pl.DataFrame:
    """What the prompts show, each passage once; a second text of an id gets an id of its own."""
    known: dict[str, str] = {}
    for name in PROMPTS:
        path = folder / name
        for n, line in enumerate(given.read_text(path).split("\n"), 1):
            if not line.strip():
                continue
            try:
                one = json.loads(line)
                shown = _shown(one["prompt"], one["docids"])
            except (ValueError, KeyError, TypeError) as error:
                wanted = "a prompt with the passages of docids, numbered"
                raise InputError(path, repr(error), wanted, line=n) from None
            for passage, text in shown:
                if known.setdefault(PREFIX + passage, text) != text:
                    mark = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:6]
                    known[f"{PREFIX}{passage}@{mark}"] = text
    parted = [(name, *text.partition(": ")[::2], "zh") for name, text in known.items()]
    return pl.DataFrame(parted, schema=["doc_id", "title", "text", "lang"], orient="row")


def _shown(prompt: str, ids: list[str]) -> list[tuple[str, str]]:
    """The passages of a prompt with their ids: each after its number, as "title: text"."""
    at = prompt.index("\n\nCONTEXTS:\n") + len("\n\nCONTEXTS:\n")
    marks = [f"[{i}] " for i in range(1, len(ids) + 1)]
    ends = [*(f"\n\n{mark}" for mark in marks[1:]), "\n\nOUTPUT:"]
    out = []
    for name, mark, end in zip(ids, marks, ends, strict=True):
        begin = prompt.index(mark, at) + len(mark)
        at = prompt.index(end, begin)
        out.append((name, prompt[begin:at]))
    return out
