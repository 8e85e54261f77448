"""What rows are run on: for each chunking the suite's folder, its chunks, and an index of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.analysis import Analyzer, analyzer_for
from ragcore.errors import InputError, UsageError
from ragcore.experiments import pool as pools
from ragcore.experiments.chunking import recut, with_vectors
from ragcore.experiments.config import Config
from ragcore.experiments.pool import Pool
from ragcore.experiments.recording import recorded_facts
from ragcore.experiments.state import State, digest, suite_digest, suite_times
from ragcore.formats import arrow
from ragcore.index.build import build
from ragcore.index.chunks import VECTOR, Chunks, joined, read_chunks
from ragcore.index.embed import Embedder, embed_texts, load_embedder
from ragcore.index.opened import Index, open_index
from ragcore.index.options import GraphSettings, Options
from ragcore.measures.inputs import Shared
from ragcore.progress import Progress
from ragcore.questions import Questions, check_suite
from ragcore.report.table import write_arrow
from ragcore.suites import open_suite

SAME = 0.99
"""Least cosine at which a vector counts as the embedder's own."""
PROBES = 4
_OWN = ("", "column", "file")


@dataclass
class Material:
    """One chunking of a suite.

    Attributes
    ----------
    suite : its folder.
    pool : its chunks by row.
    index : None where a recorded run is replayed without one.
    lacks : why no row can be evaluated on it; "" if rows can.
    notes : what was noticed.
    """

    suite: Path
    pool: Pool
    index: Index | None
    lacks: str = ""
    notes: list[str] = field(default_factory=list)


class Materials:
    """All chunkings of a sweep, each made when first asked for.

    Parameters
    ----------
    questions : of the whole suite.
    channels : by chunking, what will be searched there: what an index must have.
    """

    def __init__(
        self, config: Config, state: State, questions: Questions,
        channels: dict[str, set[str]], progress: Progress,
    ) -> None:  # fmt: skip
        self.config, self.state, self.questions = config, state, questions
        self.channels, self.progress = channels, progress
        self._times = suite_times(config.suite)
        self.suite_digest = suite_digest(config.suite)
        self._made: dict[str, Material] = {}
        self._embedder: Embedder | None = None
        self._given = open_index(config.index) if config.index is not None else None
        if self._given is not None:
            check_suite(self._given, questions)

    def check_unchanged(self) -> None:
        """Refuse to keep anything under the digest of a suite that is another one by now."""
        if suite_times(self.config.suite) != self._times:
            raise InputError(
                self.config.suite.path, "the suite was changed while the sweep ran",
                "the same files from beginning to end", "run the sweep again",
            )  # fmt: skip

    def of(self, chunking: str) -> Material:
        """The material of a chunking, "" for the suite's own."""
        if chunking not in self._made:
            self._made[chunking] = self._variant(chunking) if chunking else self._own()
        return self._made[chunking]

    def embedder(self) -> Embedder | None:
        """What makes vectors: as declared, else as the index was embedded; None if neither."""
        spec = self.config.embed
        if not spec and self._given is not None and self._given.options.embedding not in _OWN:
            spec = self._given.options.embedding
        if spec and self._embedder is None:
            self._embedder = load_embedder(spec)
        return self._embedder

    def questions_embedder(self) -> Any:
        """A function of texts of questions; None without an embedder."""
        own = self.embedder()
        return None if own is None else lambda texts: embed_texts(own, texts, "question")

    # --- the suite's own chunks

    def _own(self) -> Material:
        folder = self.config.suite.path
        chunks = pools.chunks_in(folder)
        if self._given is not None:
            held = (
                pools.of_index(self._given) if chunks is None
                else pools.of_chunks(chunks, self._given)
            )  # fmt: skip
            return Material(folder, held, self._given)
        if self.config.run is not None:
            ids, generation, corpus = recorded_facts(self.config.run)
            if chunks is None:
                return Material(folder, pools.of_ids(ids, generation), None)
            texts = chunks.sources() if chunks.texts is not None else None
            notes = []
            if corpus and texts is not None and corpus != (own := chunks.corpus_hash()):
                notes.append(
                    f"the recorded run is of a corpus of sha256 {corpus[:12]}…, the chunks of the "
                    f"suite are {own[:12]}…: other texts under the same ids, or another column"
                )
            return Material(folder, Pool(chunks.documents, generation, texts), None, "", notes)
        if chunks is None:
            raise InputError(
                folder, "no chunks.arrow", "the chunks of the suite",
                "or give an index = DIR, or run = FILE to replay",
            )  # fmt: skip
        embedding = "column" if chunks.vectors is not None else ""
        if chunks.vectors is None and self._dense(""):
            embedding = self._embed(chunks)
        options = self._options(embedding, self._graph(""))
        index = self._built("suite", chunks, options, self.suite_digest)
        return Material(folder, pools.of_chunks(chunks, index), index)

    def _dense(self, chunking: str) -> bool:
        return bool(self.channels.get(chunking, set()) & {"dense", "dense_exact"})

    def _graph(self, chunking: str) -> bool:
        return "dense" in self.channels.get(chunking, set())

    def _embed(self, chunks: Chunks) -> str:
        """Give chunks their vectors, if there is an embedder; how they came about."""
        own = self.embedder()
        if own is None or chunks.texts is None:
            return ""
        chunks.vectors = self._embedded(own, chunks.sources())
        return own.name

    def _embedded(self, own: Embedder, texts: list[str]) -> np.ndarray[Any, Any]:
        return embed_texts(
            own, texts, "passage", cache=self.state.folder / "embeddings",
            progress=lambda done, total: self.progress("embedding", done, total),
        )  # fmt: skip

    def _options(self, embedding: str, graph: bool) -> Options:
        """How an index is built: as the one that is given, else as declared."""
        wanted = None if graph else False  # None: as far as hnswlib is there
        if self._given is not None:
            return replace(self._given.options, embedding=embedding, model="", hnsw=wanted)
        said = self.config.build
        name = said.get("analyzer", "default")
        made = Analyzer.parse(name) if "+" in name else analyzer_for(name)
        own = {k: said[k] for k in ("M", "ef_construction", "seed") if k in said}
        return Options(
            made, embedding=embedding, metric=said.get("metric", "cosine"), hnsw=wanted,
            graph=GraphSettings(**own),
        )  # fmt: skip

    def _built(self, name: str, chunks: Chunks, options: Options, *parts: Any) -> Index:
        key = digest("index", options.analyzer.spec(), repr(replace(options, analyzer=Analyzer())),
                     *parts)  # fmt: skip
        return open_index(self.state.directory(
            "index", name, key, lambda part: _built_at(part, chunks, options, self.progress)
        ))  # fmt: skip

    # --- other chunkings

    def _variant(self, name: str) -> Material:
        base = self.of("")
        if self.config.run is not None:
            return Material(
                base.suite, base.pool, None,
                "another chunking has to be searched, and this sweep replays a recorded run",
            )  # fmt: skip
        file = pools.chunks_file(base.suite)
        if file is None:
            return Material(base.suite, base.pool, None, "the suite has no chunks to merge")
        table, notes = recut(
            arrow.read_checked(file, "chunks", ""), str(file), self.config.cuts[name]
        )
        own = self.embedder() if self._dense(name) else None
        if own is not None:
            self._check_model(base, own)
            titles = table["title"].combine_chunks() if "title" in table.column_names else None
            texts = joined(titles, table["text"].combine_chunks())
            table = with_vectors(table, self._embedded(own, texts))
        said = self.config.cuts[name].said()
        key = digest("variant", self.suite_digest, said, own.name if own else "")
        folder = self.state.directory(
            "suites", name, key, lambda part: _write_suite(part, base.suite, table)
        )
        chunks = read_chunks(folder / "chunks.arrow")
        options = self._options(own.name if own else "", own is not None and self._graph(name))
        index = self._built(name, chunks, options, key)
        held = pools.of_chunks(chunks, index)
        return Material(folder, held, index, _lost_labels(base.suite, folder), notes)

    def _check_model(self, base: Material, own: Embedder) -> None:
        """Refuse an embedder that has not made the vectors of the chunks as they are."""
        assert base.index is not None
        if base.index.options.embedding not in ("column", "file") or base.pool.texts is None:
            return
        made = embed_texts(own, base.pool.texts[:PROBES], "passage").astype(np.float64)
        have = np.asarray(base.index.vectors[: len(made)], np.float64)
        if made.shape != have.shape:
            near = 0.0
        else:
            lengths = np.linalg.norm(made, axis=1) * np.linalg.norm(have, axis=1)
            near = float(((made * have).sum(1) / np.maximum(lengths, 1e-300)).min(initial=1.0))
        if near < SAME:
            raise UsageError(
                f"embed: {own.name} has not made the column {VECTOR} of the suite's chunks (cosine "
                f"{near:.3f})", "merged chunks must be embedded by the model of the others",
            )  # fmt: skip


def _built_at(part: Path, chunks: Chunks, options: Options, progress: Progress) -> None:
    build(chunks, part, options, progress)


def _write_suite(part: Path, base: Path, chunks: pa.Table) -> None:
    """A suite's folder with other chunks."""
    for name in ("suite.toml", "cases.arrow", "cases.parquet"):
        if (base / name).is_file():
            shutil.copyfile(base / name, part / name)
    if (base / "judgments").is_dir():
        shutil.copytree(base / "judgments", part / "judgments")
    with (part / "chunks.arrow").open("wb") as stream:
        write_arrow(chunks, stream)


def _lost_labels(base: Path, folder: Path) -> str:
    """Why labels do not reach the chunks of a variant as they did; "" if they do."""
    before, after = (Shared(open_suite(path), None) for path in (base, folder))
    old, new = before.evidence, after.evidence
    if old is None or new is None or before.chunks is None or after.chunks is None:
        return ""
    had = old.scored & _reached(old, len(before.chunks))
    lost = np.flatnonzero(had & ~(new.scored & _reached(new, len(after.chunks))))
    if not lost.size:
        return ""
    case = open_suite(base).cases["case_id"][int(old.cases[lost[0]])].as_py()
    return (
        f"{lost.size} labels name chunks and no quote, block or place that merged chunks could be "
        f"found by, the first of case {case!r}"
    )


def _reached(evidence: Any, n_chunks: int) -> Any:
    """(n_items,), whether some chunk holds an item."""
    inside = (evidence.units >= 0) & (evidence.units < n_chunks)
    counts = np.concatenate([[0], np.cumsum(inside)])
    return counts[evidence.covers[1:]] > counts[evidence.covers[:-1]]


def channels_of(setups: Iterable[Any]) -> dict[str, set[str]]:
    """What is searched in each chunking."""
    out: dict[str, set[str]] = {}
    for one in setups:
        out.setdefault(one.chunking, set()).update(one.channels)
    return out
