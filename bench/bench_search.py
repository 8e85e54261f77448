"""Whole searches over an index on disk, with the recall that goes with the time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from ragcore.analysis import Analyzer
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import open_index
from ragcore.index.options import GraphSettings, Options
from ragcore.questions import read_questions
from ragcore.search import search
from ragcore.search_settings import STRATEGIES, Settings

N, DIM, QUESTIONS = 5_000, 64, 200


def made(n: int, prefix: str, id_name: str, text_name: str, length: int) -> pa.Table:
    """Rows with an id, a text of Zipf-distributed words and a vector near one of 50 centres."""
    rng = np.random.default_rng([n, length])
    centres = np.random.default_rng(7).normal(size=(50, DIM))
    vectors = centres[rng.integers(0, 50, n)] + 0.6 * rng.normal(size=(n, DIM))
    words = np.minimum(rng.zipf(1.2, (n, length)), 30_000)
    flat = pa.array(vectors.astype(np.float32).ravel())
    return pa.table({
        id_name: [f"{prefix}{i:06}" for i in range(n)],
        text_name: [" ".join(f"w{w}" for w in row) for row in words.tolist()],
        "vector": pa.FixedSizeListArray.from_arrays(flat, DIM),
    })  # fmt: skip


def options() -> Options:
    return Options(Analyzer(), embedding="column", graph=GraphSettings(M=8, ef_construction=60))


class Search:
    """All questions together, strategy by strategy."""

    params = (list(STRATEGIES), (10, 100))
    param_names = ("strategy", "candidate_k")
    timeout = 300

    def setup_cache(self):
        folder = tempfile.mkdtemp()
        build(read_chunks(made(N, "c", "chunk_id", "text", 60)), Path(folder) / "i", options())
        return folder

    def setup(self, folder, strategy, candidate_k):
        self.index = open_index(Path(folder) / "i")
        self.questions = read_questions(made(QUESTIONS, "q", "case_id", "question", 8))
        self.settings = Settings(strategy, candidate_k, timing="batch")
        search(self.index, self.questions, self.settings)

    def time_search(self, folder, strategy, candidate_k):
        search(self.index, self.questions, self.settings)


class Recall(Search):
    """What HNSW finds of the exact neighbours, and how long it takes."""

    params = (["dense"], (10, 100))

    def track_recall(self, folder, strategy, candidate_k):
        lists = []
        for one in ("dense", "dense-exact"):
            found = search(self.index, self.questions, Settings(one, candidate_k, timing="batch"))
            lists.append([{i["id"] for i in row} for row in found.table["ranked"].to_pylist()])
        hits = sum(len(a & b) for a, b in zip(*lists, strict=True))
        return hits / (candidate_k * QUESTIONS)

    track_recall.unit = "share of exact neighbours"


class Build:
    """Indexing, from a table to a directory."""

    params = (1_000, N)
    param_names = ("chunks",)
    timeout = 300

    def setup(self, n):
        self.table = made(n, "c", "chunk_id", "text", 60).drop(["vector"])
        self.folder = tempfile.TemporaryDirectory()
        self.time_build(n)

    def teardown(self, n):
        self.folder.cleanup()

    def time_build(self, n):
        build(read_chunks(self.table), Path(self.folder.name) / "i", options())

    def time_open(self, n):
        open_index(Path(self.folder.name) / "i").dictionary  # noqa: B018
