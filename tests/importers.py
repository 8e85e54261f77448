"""Public collections for the tests: imported, as suite folders, indexed, searched, scored."""

from __future__ import annotations

import io
import json
import tarfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import ragcore
import tables
from ragcore import schema
from ragcore.catalogue import pinned
from ragcore.catalogue.entries import Entry, entry
from ragcore.index.opened import Index
from ragcore.public import nomiracl_zh
from ragcore.public.imported import Imported
from ragcore.scores import Scores

Tables = dict[str, pl.DataFrame]


@dataclass
class World:
    """A suite of the catalogue from its pinned files; what it takes is made once, when asked for.

    Attributes
    ----------
    name, data, place : of the suite, of the shared data, and where its folder and indexes lie.
    """

    name: str
    data: Path
    place: Path
    _indexes: dict[str, Index] = field(default_factory=dict)

    @cached_property
    def entry(self) -> Entry:
        """What the catalogue says of it."""
        return entry(self.name)

    @cached_property
    def made(self) -> Imported:
        """What its importer gives."""
        return pinned.load(self.entry, pinned.find(self.entry, self.data))

    @cached_property
    def shared(self) -> Tables:
        """Tables of its shared folder, by stem: its own files, and runs and qrels beside them."""
        return read(self.data / Path(next(iter(self.entry.settings["files"]))).parts[0])

    @cached_property
    def suite(self) -> Path:
        """A suite folder to search and score with."""
        return write(self.place / "suite", self.made)

    def index(self, analyzer: str = "") -> Index:
        """Its corpus, indexed as the descriptor says, or by another analyzer."""
        if analyzer not in self._indexes:
            how = dict(self.entry.settings.get("index", {}))
            if analyzer:
                how["analyzer"] = analyzer
            self._indexes[analyzer] = ragcore.build_index(
                self.made.chunks, self.place / f"index-{analyzer}", hnsw=False, **how
            )
        return self._indexes[analyzer]

    def found(
        self, strategy: str = "bm25", scope: str = "", analyzer: str = "", **settings: Any
    ) -> pa.Table:
        """A run of one strategy in one scope, as deep as the descriptor says."""
        said = self.entry.settings
        filters = [f for one in self.entry.scopes if one.name == scope for f in one.filters]
        depth = {"candidate_k": said["candidate_k"], "context_k": said["context_k"]}
        return ragcore.search(
            self.index(analyzer), self.suite, strategy=strategy, filters=filters, timing="batch",
            **(depth | settings),
        ).table  # fmt: skip

    def scored(self, run: pa.Table) -> Scores:
        """A run under the suite's own measures."""
        return ragcore.score(run, suite=self.suite, measures=self.entry.measures)

    def mean(self, run: pa.Table, name: str) -> float:
        """The mean of a measure over the cases that have it."""
        return ragcore.score(run, suite=self.suite, measures=[name]).mean(name)


def read(folder: Path) -> Tables:
    """Tables of a folder of shared data, by stem."""
    return {path.stem: pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}


def write(folder: Path, suite: Imported, *, judged: bool = True) -> Path:
    """A suite folder as the engine opens it: cases, chunks and, if `judged`, judgments."""
    for table in (suite.cases, *([suite.chunks] if suite.chunks is not None else [])):
        table.validate(full=True)
    tables.write_suite(folder, suite.cases)
    if suite.chunks is not None:
        tables.write_ipc(suite.chunks, folder / "chunks.arrow")
    if judged and suite.judgments:
        (folder / "judgments").mkdir()
        for name, table in suite.judgments.items():
            tables.write_ipc(table, folder / "judgments" / f"{name}.arrow")
    return folder


def cut(folder: Path, rows: list[dict[str, object]]) -> None:
    """Give a suite folder other chunks."""
    fields = [schema.CHUNKS.field(name) for name in rows[0]]
    tables.write_ipc(pa.Table.from_pylist(rows, pa.schema(fields)), folder / "chunks.arrow")


def flat(run: pa.Table) -> pa.Table:
    """Rows with scores: where scores tie, another order is possible, and bounds say what of."""
    rows = [
        {"case_id": row["case_id"], "id": item["id"], "score": item["score"]}
        for row in run.to_pylist()
        for item in row["ranked"]
    ]
    return pa.Table.from_pylist(rows)


def write_tar(path: Path, members: Mapping[str, bytes]) -> None:
    """A packed archive of files by name."""
    with tarfile.open(path, "w:gz", compresslevel=1) as made:
        for name, raw in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            made.addfile(info, io.BytesIO(raw))


def write_prompts(given: Tables, folder: Path) -> None:
    """The official files of NoMIRACL: each prompt put together around a question's passages."""
    texts = {row["doc_id"]: row for row in given["corpus"].iter_rows(named=True)}
    shown, said, lines = defaultdict(list), defaultdict(dict), defaultdict(str)
    for row in given["candidates"].sort("position").iter_rows(named=True):
        shown[row["query_id"]].append(texts[row["doc_id"]])
    for row in given["responses"].iter_rows(named=True):
        said[row["query_id"]][row["system"]] = row["response"]
    for row in given["queries"].iter_rows(named=True):
        own = shown[row["query_id"]]
        body = "\n\n".join(f"[{i}] {p['title']}: {p['text']}" for i, p in enumerate(own, 1))
        one = {
            "query_id": row["source_query_id"], "docids": [p["source_doc_id"] for p in own],
            "prompt": f"…\n\nQUESTION:\n{row['text']}\n\nCONTEXTS:\n{body}\n\nOUTPUT:\n",
            "results": said[row["query_id"]],
        }  # fmt: skip
        lines[row["query_id"].split(":")[1]] += json.dumps(one) + "\n"
    for half, name in nomiracl_zh.FILES.items():
        (folder / name).write_text(lines[half], "utf-8")


def same(again: Imported, first: Imported, *, notes: bool = True) -> None:
    """Assert that two imports are one and the same; vectors are in no official file.

    Parameters
    ----------
    notes : whether what they say must be the same too.
    """
    assert again.cases.equals(_bare(first.cases))
    assert (again.chunks is None) == (first.chunks is None)
    if again.chunks is not None and first.chunks is not None:
        assert again.chunks.equals(_bare(first.chunks))
    assert again.runs == first.runs
    assert again.judgments == first.judgments
    assert again.notes == first.notes or not notes


def _bare(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in table.column_names if name == "vector"])
