"""Public collections as suite folders: what the tests of importers share."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa

import indexes
import ragcore
import tables
from ragcore import schema
from ragcore.analysis import analyzer_for
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import open_index
from ragcore.index.options import Options
from ragcore.public.imported import Imported
from ragcore.questions import read_questions
from ragcore.search import search
from ragcore.search_settings import Settings


def read(folder: Path) -> dict[str, pl.DataFrame]:
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


def found(folder: Path, path: Path, analyzer: str = "", **settings: object) -> pa.Table:
    """What a search of the suite's own chunks finds for its own questions.

    Parameters
    ----------
    folder, path : of the suite, and for the index.
    analyzer : by language; none = words as they stand.
    """
    how = analyzer_for(analyzer) if analyzer else indexes.PLAIN
    chunks = read_chunks(str(folder / "chunks.arrow"))
    build(chunks, path, Options(how, hnsw=False))
    given = {"candidate_k": 100, "timing": "batch"} | settings
    return search(open_index(path), read_questions(folder), Settings(**given)).table  # type: ignore[arg-type]


def mean(run: pa.Table, folder: Path, name: str) -> float:
    """The mean of a measure over the cases that have it."""
    return ragcore.score(run, suite=folder, measures=[name]).mean(name)


def cut(folder: Path, rows: list[dict[str, object]]) -> None:
    """Give a suite folder other chunks."""
    fields = [schema.CHUNKS.field(name) for name in rows[0]]
    tables.write_ipc(pa.Table.from_pylist(rows, pa.schema(fields)), folder / "chunks.arrow")
