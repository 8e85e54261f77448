"""Suites of public collections for the tests: descriptors, pinned tables, folders to score with."""

from __future__ import annotations

import hashlib
import importlib
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import ragcore
import tables
from ragcore.index.opened import Index
from ragcore.public.imported import Imported
from ragcore.scores import Scores

ROOT = Path(__file__).resolve().parents[1]


def descriptor(name: str) -> dict[str, Any]:
    """What the `suite.toml` of a public suite says."""
    return tomllib.loads((ROOT / "data" / name / "suite.toml").read_text("utf-8"))


def shared(data: Path, name: str) -> dict[str, pl.DataFrame]:
    """The tables of a suite's pinned subset, each the file that the descriptor means."""
    files = descriptor(name)["files"]
    several = len({file.split("/")[0] for file in files}) > 1
    out = {}
    for file, pin in files.items():
        raw = (data / file).read_bytes()
        assert (len(raw), hashlib.sha256(raw).hexdigest()) == (pin["bytes"], pin["sha256"]), file
        stem = file.removesuffix(".parquet")
        out[stem if several else stem.split("/")[1]] = pl.read_parquet(data / file)
    return out


def built(data: Path, name: str) -> Imported:
    """A suite made of its pinned subset."""
    module = importlib.import_module(f"ragcore.public.{descriptor(name)['importer']}")
    return module.build(shared(data, name))


def folder_of(made: Imported, folder: Path) -> Path:
    """A suite folder to search and score with."""
    tables.write_suite(folder, made.cases)
    if made.chunks is not None:
        tables.write_ipc(made.chunks, folder / "chunks.arrow")
    return folder


def index_of(made: Imported, path: Path, name: str) -> Index:
    """The corpus of a suite, indexed as the descriptor says."""
    return ragcore.build_index(made.chunks, path, hnsw=False, **descriptor(name).get("index", {}))


def found(
    index: Index, suite: Path, name: str, strategy: str = "bm25", scope: str = "", **settings: Any
) -> pa.Table:
    """A run of one strategy in one scope, as deep as the descriptor says."""
    said = descriptor(name)
    filters = [f for one in said.get("scope", ()) if one["name"] == scope for f in one["filters"]]
    depth = {"candidate_k": said["candidate_k"], "context_k": said["context_k"]}
    return ragcore.search(
        index, suite, strategy=strategy, filters=filters, timing="batch", **(depth | settings)
    ).table


def check(name: str, made: Imported) -> None:
    """What every descriptor and every suite keep to."""
    said = descriptor(name)
    for key in (
        "name", "title", "kind", "version", "licence", "citation", "source", "subset",
        "cannot_show", "languages", "importer", "measures", "strategies", "candidate_k",
        "context_k", "files",
    ):  # fmt: skip
        assert key in said, key
    assert said["name"] == name
    assert set(made.cases["lang"].to_pylist()) == set(said["languages"])
    dense = {"dense-exact", "hybrid-exact"} & set(said["strategies"])
    assert not dense or "vector" in made.cases.column_names
    for scope in said.get("scope", ()):
        for column in scope["filters"]:
            assert made.chunks is not None
            assert column in made.cases.column_names
            assert column in made.chunks.column_names
    for official in said.get("official", ()):
        assert set(official) == {"url", "file", "sha256", "bytes"}
        assert official["url"].startswith("https://")
        assert len(official["sha256"]) == 64
    assert all(note.endswith(".") for note in made.notes)


def flat(run: pa.Table) -> pa.Table:
    """Rows with scores: where scores tie, another order is possible, and bounds say what of."""
    rows = [
        {"case_id": row["case_id"], "id": item["id"], "score": item["score"]}
        for row in run.to_pylist()
        for item in row["ranked"]
    ]
    return pa.Table.from_pylist(rows)


def scored(run: pa.Table, suite: Path, name: str) -> Scores:
    """A run under the suite's own measures."""
    return ragcore.score(run, suite=suite, measures=descriptor(name)["measures"])
