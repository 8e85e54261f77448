"""Classic test collections: TREC Robust 2003, TREC Web 2011-2014, CACM and Cranfield.

Evidence is their judgements, one a document, with grades as they are: a negative one is judged and
not relevant. Runs are what was submitted or published, in the flat form, scored by score and then
id as trec_eval does, whatever their rank columns say.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.public import trec_files as files
from ragcore.public.checks import (
    NUMBER,
    WHOLE,
    Tables,
    refuse_grades,
    refuse_unknown,
    table,
)
from ragcore.public.columns import Values, documents, evidence, flat_run, typed
from ragcore.public.imported import Imported, counted

MADE = re.compile(r"bm25|tfidf|lsa\d+|rrf_bm25_lsa")
"""Names of runs that were made with the pinned subset: nobody published them."""
PART = re.compile(r"(?P<run>.+)-(?P<part>[^-]+)")
"""A run of some of the topics: runs of one name that share no topic are one run."""


def build(tables: Tables) -> Imported:
    """A collection from `qrels` and what else there is: `queries`, `corpus`, `runs`, `run_<name>`.

    Topics without a judgement have unknown evidence; a title that the text begins with is not said
    twice.

    Raises
    ------
    InputError
        If a table is not as it should be, or a row names what is not there.
    """
    qrels = table(tables, "qrels", "query_id", "doc_id", relevance=WHOLE)
    refuse_grades(qrels, "qrels")
    names, of = qrels["query_id"].unique(maintain_order=True), "qrels"
    columns: dict[str, Values] = {"case_id": names}
    if "queries" in tables:
        queries = table(tables, "queries", "query_id", "text", key="query_id")
        names, of = queries["query_id"], "queries"
        refuse_unknown(qrels, "qrels", "query_id", names, of)
        columns = {"case_id": names, "question": queries["text"]}
    runs, parts, notes = _runs(tables, names, of)
    columns["lang"] = ["en"] * len(names)
    if parts:
        columns["part"] = pa.array([parts.get(name) for name in names], schema.DICT)
    absent = names.filter(~names.is_in(qrels["query_id"].implode()))
    columns["evidence"] = evidence(names, qrels.rename({"query_id": "key"}), "qrels", absent)
    chunks = None
    if "corpus" in tables:
        corpus = table(tables, "corpus", "doc_id", "title", "text", key="doc_id")
        chunks = _chunks(corpus, notes)
        there = set(corpus["doc_id"])
        lost = sum(document not in there for document in qrels["doc_id"].to_list())
        notes[f"{counted(lost, 'judgement')} of documents that the corpus does not have by these "
              "names: they count, and can never be found"] = lost  # fmt: skip
    low, twice = int((qrels["relevance"] < 0).sum()), _n_twice(qrels)
    notes[f"{counted(len(absent), 'topic')} of {len(names)} without any judgement: nothing is "
          "known of them, and no measure of relevance has a value"] = len(absent)  # fmt: skip
    notes[f"{counted(low, 'judgement')} of {len(qrels):,} below 0: judged, not relevant, and no "
          "loss"] = low  # fmt: skip
    notes[f"{counted(twice, 'document')} judged twice for a topic: the higher grade counts"] = twice
    said = tuple(text for text, n in notes.items() if n)
    return Imported(typed(columns, schema.CASES), chunks, runs, {}, said)


def _n_twice(qrels: pl.DataFrame) -> int:
    return len(qrels) - qrels.select("query_id", "doc_id").n_unique()


def _chunks(corpus: pl.DataFrame, notes: dict[str, int]) -> pa.Table:
    """Documents as chunks, without titles that their texts begin with."""
    titles = [
        None if text.startswith(title) else title
        for title, text in corpus.select("title", "text").iter_rows()
    ]
    n_empty = int((corpus["text"].str.strip_chars() == "").sum())
    n_again = titles.count(None) - sum(title == "" for title in corpus["title"].to_list())
    notes[f"{counted(n_empty, 'document')} without a text"] = n_empty
    notes[
        f"{counted(n_again, 'title')} of {len(corpus):,} left out, as the text begins with it"
    ] = n_again
    return documents(corpus.with_columns(title=pl.Series(titles, dtype=pl.String)), "en")


def _runs(
    tables: Tables, topics: pl.Series, of: str
) -> tuple[dict[str, pa.Table], dict[str, str], dict[str, int]]:
    """Runs by name, the part of each topic if runs were of parts, and notes with their counts."""
    given: dict[str, pl.DataFrame] = {}
    left: dict[str, int] = {}
    for name in sorted(tables):
        if name != "runs" and not name.startswith("run_"):
            continue
        rows = table(tables, name, "system", "query_id", "doc_id", score=NUMBER)
        refuse_unknown(rows, name, "query_id", topics, of)
        for (system,), own in rows.group_by("system", maintain_order=True):
            if MADE.fullmatch(str(system)):
                left[str(system)] = len(own)
            elif str(system) in given:
                raise InputError(name, f"a run {system!r} again", "each run in one table")
            else:
                given[str(system)] = own
    notes = {
        f"{counted(sum(left.values()), 'row')} of {counted(len(left), 'run')} left out, which "
        f"nobody published: {', '.join(left)}": len(left)
    }
    joined, part_of = _whole(given, notes)
    return {name: flat_run(rows) for name, rows in joined.items()}, part_of, notes


def _whole(
    given: dict[str, pl.DataFrame], notes: dict[str, int]
) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Runs of parts of the topics put together, and which part each topic is of."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for system in given:
        met = PART.fullmatch(system)
        if met:
            groups.setdefault(met["run"], []).append((met["part"], system))
    out, part_of = dict(given), {}
    for run, members in groups.items():
        own = {part: given[system]["query_id"].unique() for part, system in members}
        n = len(pl.concat(list(own.values())).unique())
        if len(members) < 2 or run in given or n != sum(map(len, own.values())):
            continue
        out[run] = pl.concat([out.pop(system) for _, system in members])
        part_of |= {topic: part for part, ids in own.items() for topic in ids.to_list()}
        named = ", ".join(system for _, system in members)
        notes[
            f"{counted(len(members), 'run')} of parts of the topics are one run {run!r}: {named}"
        ] = 1
    return out, part_of


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables that `build` takes, out of the files of the collection that is in `folder`.

    Raises
    ------
    InputError
        If it is none of the four, or a file is missing or is not as published.
    """
    for marked, read in (
        (files.ROBUST, files.robust03), (files.WEB, files.web),
        (files.CACM, files.cacm), (files.CRANFIELD, files.cranfield),
    ):  # fmt: skip
        if (folder / marked).is_file():
            return read(folder)
    raise InputError(
        folder, "none of the files that name a collection",
        f"one of {files.ROBUST}, {files.WEB}, {files.CACM}, {files.CRANFIELD}",
    )  # fmt: skip
