"""A sweep at work: recordings made once, rows replayed and judged, each step kept when done."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.errors import InputError
from ragcore.experiments import recording as recordings
from ragcore.experiments import remarks, wide
from ragcore.experiments.config import TUNING, Config
from ragcore.experiments.judge import Judge, cost
from ragcore.experiments.manifest import adopted, manifest_of, otherwise
from ragcore.experiments.materials import Materials, channels_of
from ragcore.experiments.recording import RERANKED_STAGE, Recording
from ragcore.experiments.replay import replay, run_of
from ragcore.experiments.rerank import Reranker, load_reranker
from ragcore.experiments.rows import PRODUCTION, Row, chosen_row, rows_of
from ragcore.experiments.setups import Setup
from ragcore.experiments.state import State, digest, file_digest
from ragcore.experiments.thresholds import chosen, curve
from ragcore.experiments.wide import Need, Signature
from ragcore.progress import Progress
from ragcore.questions import Questions, read_questions
from ragcore.report.table import whole_file, write_arrow
from ragcore.scores import Scores
from ragcore.search_settings import BM25, DENSE
from ragcore.verdict import PRODUCT


@dataclass
class Kept:
    """A recording and the digest of what it depends on."""

    recording: Recording
    key: str


@dataclass
class Session:
    """Everything that the rows of a sweep share.

    Parameters
    ----------
    config, state, progress : what, where it is kept, how it is told.
    threads : for scores; no number depends on them.
    """

    config: Config
    state: State
    progress: Progress
    threads: int | None = None
    production: Setup = field(init=False)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = self.config
        self.questions: Questions = read_questions(
            config.suite.path, any_columns=config.run is not None
        )
        self.splits = (config.split, TUNING) if config.tuning else (config.split,)
        self.splits = tuple(dict.fromkeys(self.splits))
        planned = [row.setup for row in rows_of(config, config.production)]
        used = channels_of([config.production, *planned])
        self.materials = Materials(config, self.state, self.questions, used, self.progress)
        self.judge = Judge(config, self.threads)
        self.reranker: Reranker | None = load_reranker(config.reranker) if config.reranker else None
        self._kept: dict[Signature | None, Kept] = {}
        self._whole: Kept | None = None
        self._scores: dict[str, tuple[Scores, dict[str, Any]]] = {}
        own = self.materials.of("")
        if config.run is not None:
            recorded = self._recorded().recording
            self.production = adopted(config, recorded.manifest)
            self.notes += [*recorded.notes, *own.notes]
        else:
            assert own.index is not None
            said = own.index.options
            self.production = replace(config.production, **{
                name: getattr(said, name) for name in ("k1", "b", "variant", "lengths")
                if getattr(config.production, name) is None
            })  # fmt: skip
        self.rows = rows_of(config, self.production)
        tried = [chosen_row(config, self.production, t, "").setup
                 for t in (config.tuning.values if config.tuning else ())]  # fmt: skip
        self.setups = [self.production, *tried]
        self.setups += [setup for row in self.rows for setup in (row.before, row.setup)]
        runnable = [one for one in self.setups if not self.lacks(one)]
        self.needs: dict[Signature, Need] = wide.needs(runnable)
        if why := self.why_not(self.production):
            raise InputError(config.where, f"production cannot be run: {why}", "a baseline")

    # --- what can be run

    def lacks(self, setup: Setup) -> str:
        """Why a setup cannot be run at all; "" if it can, as far as is known without a search."""
        config = self.config
        material = self.materials.of(setup.chunking)
        if material.lacks:
            return material.lacks
        if setup.reranked and self.reranker is None and config.run is None:
            return "no reranker is declared"
        if setup.reranked and self.reranker is not None and material.pool.texts is None:
            return "no texts of chunks to rerank"
        if config.run is not None:
            return otherwise(self._recorded().recording.manifest, self.production, setup)
        assert material.index is not None
        index = material.index
        if BM25 in setup.channels and not index.has_text:
            return "no texts to search"
        if setup.channels != (BM25,) and not index.has_vectors:
            return "no vectors"
        if DENSE in setup.channels and not index.has_graph:
            return "no HNSW graph (pip install 'ragcore[ann]')"
        return ""

    def why_not(self, setup: Setup) -> str:
        """Why a setup is not evaluated; "" if it is."""
        return self.lacks(setup) or self.kept(setup).recording.lacks(setup)

    # --- recordings

    def kept(self, setup: Setup) -> Kept:
        """The recording that a setup is replayed from, over all splits of the sweep."""
        if self.config.run is not None:
            if self._whole is None:
                self._whole = self._reranked(self._recorded(), self.setups)
            return self._whole
        own = wide.home_of(setup, self.needs)
        assert own is not None
        if own not in self._kept:
            self._kept[own] = self._searched(own, self.needs[own])
        return self._kept[own]

    def _recorded(self) -> Kept:
        """The run that is replayed instead of a search."""
        path = self.config.run
        assert path is not None
        if None not in self._kept:
            rows = recordings.of_splits(self.questions, self.splits)
            found = recordings.read_recording(
                recordings.read_run(path), str(path), self.materials.of("").pool,
                recordings.subset(self.questions, rows),
            )  # fmt: skip
            key = digest(
                "recorded", file_digest(path), self.splits, self.materials.suite_digest,
            )  # fmt: skip
            for split in self.splits:
                if not recordings.of_splits(found.questions, (split,)).size:
                    raise InputError(
                        path, f"no case of the split {split!r}",
                        "recorded cases of every split that the sweep looks at",
                        "record them, too, or leave [sweep.threshold] out"
                        if split != self.config.split else "record them, or name another split",
                    )  # fmt: skip
            self._kept[None] = Kept(found, key)
        return self._kept[None]

    def _searched(self, own: Signature, need: Need) -> Kept:
        material = self.materials.of(own.chunking)
        index = material.index
        assert index is not None
        embedder = self.materials.embedder() if self.questions.vectors is None else None
        key = digest(
            "recording", index.generation, own.__dict__, need.said(), self.splits,
            self.materials.suite_digest, embedder.name if embedder else "",
        )  # fmt: skip
        rows = recordings.of_splits(self.questions, self.splits)
        asked = recordings.subset(self.questions, rows)
        path = self.state.path("recordings", own.chunking or "wide", key, ".arrow")
        if not self.state.kept("recordings", path):
            table = wide.record(
                index, asked, need, embed=self.materials.questions_embedder(),
                name=f"{self.config.name}, wide", progress=self.progress,
            )  # fmt: skip
            _write(path, table)
        found = recordings.read_recording(
            recordings.read_run(path, ours=True), str(path), material.pool, asked
        )
        self.notes += found.manifest.get("notes", [])
        return self._reranked(Kept(found, key), need.setups)

    def _reranked(self, kept: Kept, setups: list[Setup]) -> Kept:
        """A recording with the reranker's scores, where there is one and some row wants them."""
        wanted = [one for one in setups if one.reranked and not self.lacks(one)]
        if self.reranker is None or not wanted or kept.recording.questions.texts is None:
            return kept
        said = sorted({repr(one) for one in wanted})
        key = digest("reranked", kept.key, self.reranker.name, said)
        path = self.state.path("recordings", "reranked", key, ".arrow")
        if not self.state.kept("recordings", path):
            made = wide.rerank(kept.recording, wanted, self.reranker, self.progress)
            scores, spent, notes = made
            _write(path, wide.extended(kept.recording, scores, spent, self.reranker.name, notes))
        found = recordings.read_recording(
            recordings.read_run(path, ours=True), str(path), kept.recording.pool,
            kept.recording.questions,
        )  # fmt: skip
        self.notes += found.manifest["noticed"]
        return Kept(found, key)

    # --- rows

    @property
    def n_run(self) -> int:
        """Cases of the reported split that rows are of."""
        return len(set(self.over(self.kept(self.production), self.config.split).questions.case_ids))

    def over(self, kept: Kept, split: str) -> Recording:
        """A recording over the cases of one split."""
        rows = recordings.of_splits(kept.recording.questions, (split,))
        return kept.recording.at(rows)

    def run(self, setup: Setup, name: str, row: Row | None) -> tuple[pa.Table, dict[str, Any]]:
        """The run of a setup on the reported split, kept as a file; and what is said of it."""
        kept = self.kept(setup)
        part = self.over(kept, self.config.split)
        material = self.materials.of(setup.chunking)
        found = replay(part, setup)
        manifest = manifest_of(
            self.config, setup, name, row, self.materials, part, self._model(part)
        )
        table = run_of(part, setup, found, manifest)
        key = digest("run", kept.key, repr(setup), self.config.split, manifest)
        path = self.state.path("runs", name, key, ".arrow")
        if not self.state.kept("runs", path):
            _write(path, table)
        ready = [rows for rows in found.final.rows if rows is not None]
        facts = {
            "file": path.relative_to(self.state.folder).as_posix(), "label": part.label(setup),
            "depth": max(part.depth[c] for c in setup.channels), "n_questions": len(part.questions),
            "n_missing": found.n_missing, "n_no_result": sum(len(rows) == 0 for rows in ready),
            "index_bytes": material.pool.bytes_for(setup.channels),
            "timed": remarks.times_of(part, setup, found),
            "notes": [*(material.notes if setup.chunking else []), *remarks.of_run(setup)],
        }  # fmt: skip
        return table, facts

    def _model(self, part: Recording) -> str | None:
        if self.reranker is not None:
            return self.reranker.name
        return str(part.manifest.get("reranker") or "recorded") if (
            RERANKED_STAGE in part.lists) else None  # fmt: skip

    def scores(self, setup: Setup, name: str, row: Row | None) -> tuple[Scores, dict[str, Any]]:
        """The scores of a setup, and what it costs; worked out once."""
        known = f"{name} {setup!r}"
        if known in self._scores:
            return self._scores[known]
        table, facts = self.run(setup, name, row)
        found = self.judge.scored(table, self.materials.of(setup.chunking).suite, name)
        out = found, facts | cost(table, found)
        if row is None:  # only what others are compared with is met again
            self._scores[known] = out
        return out

    def baseline(self) -> dict[str, Any]:
        """Production's own values on the reported split."""
        kept, plan = self.kept(self.production), self.config.plans["ladder"]

        def make() -> dict[str, Any]:
            scores, facts = self.scores(self.production, PRODUCTION, None)
            self.materials.check_unchanged()
            return facts | self.judge.baseline(scores, plan) | {"audit": _audit(scores)}

        key = digest("baseline", kept.key, repr(self.production), *self._judged("ladder"))
        return self.state.json("rows", PRODUCTION, key, make)

    def tuned(self) -> tuple[list[dict[str, Any]], Row | None]:
        """The curve of the threshold on the validation split, and the row of what it chooses."""
        config = self.config
        if config.tuning is None:
            return [], None
        tuning = config.tuning
        kept = self.kept(self.production)

        def make() -> list[dict[str, Any]]:
            part = self.over(kept, TUNING)
            found = curve(part, self.production, tuning, config.suite.path, config.by, TUNING)
            self.materials.check_unchanged()
            return found

        key = digest("curve", kept.key, repr(self.production), repr(tuning), config.by,
                     self.materials.suite_digest)  # fmt: skip
        rows = self.state.json("curves", tuning.channel, key, make)
        best = chosen(rows, tuning)
        return rows, None if best is None else chosen_row(config, self.production, best[0], TUNING)

    def untuned(self) -> dict[str, Any]:
        """The row of a threshold that could not be chosen."""
        tuning = self.config.tuning
        assert tuning is not None
        row = chosen_row(self.config, self.production, None, TUNING)
        return self._said(row) | {
            "name": f"threshold.{tuning.channel}", "threshold": {}, "changes": [], "cells": [],
            "state": "not evaluated",
            "reason": f"no case of the split {TUNING} has a value of {tuning.choose} to choose by",
        }  # fmt: skip

    def _said(self, row: Row) -> dict[str, Any]:
        """What a row is, whatever becomes of it."""
        return {
            "experiment": row.experiment, "name": row.name, "anchor": row.anchor,
            "changes": row.changes, "strategy": row.setup.strategy,
            "candidate_k": row.setup.candidate_k, "context_k": row.setup.context_k,
            "threshold": dict(row.setup.thresholds), "threshold_split": row.setup.threshold_split,
        }  # fmt: skip

    def row(self, row: Row) -> dict[str, Any]:
        """One row of the result, kept when it is done."""
        said = self._said(row)
        why = self.why_not(row.setup) or self.why_not(row.before)
        if why:
            return said | {"state": "not evaluated", "reason": why, "cells": []}
        if not row.changes:
            return said | {"state": "unchanged", "reason": f"as {row.anchor}", "cells": []}
        keys = [self.kept(one).key for one in (row.before, row.setup)]
        key = digest("row", *keys, repr(row), *self._judged(row.experiment))
        return said | self.state.json("rows", row.name, key, lambda: self._compared(row))

    def _compared(self, row: Row) -> dict[str, Any]:
        before, cost_before = self.scores(row.before, row.anchor, None)
        after, facts = self.scores(row.setup, row.name, row)
        self.materials.check_unchanged()
        plan = self.config.plans[row.experiment]
        # Stages of one recording, timed once: what they took says nothing about the row.
        same = self.kept(row.before).key == self.kept(row.setup).key
        alike = same and row.before.strategy == row.setup.strategy
        found = self.judge.compared(before, after, plan, timed=not alike)
        old, new = found.contrasts[0].latency
        told = self.judge.row(row, found)
        if alike and facts["timed"]:
            told["reasons"].append(f"p95 not told apart: both as timed {facts['timed']}")
        facts["notes"] = [*facts["notes"], *remarks.of_row(row, plan)]
        if told["verdict"] == PRODUCT and not same:
            facts["notes"] += remarks.of_times(cost_before, facts)
        return {
            "state": "evaluated", "reason": "", **facts, **told, "same_recording": same,
            "before_p95_us": None if np.isnan(old) else old,
            "p95_ratio": new / old if old > 0 and not np.isnan(new) else None,
        }  # fmt: skip

    def _judged(self, experiment: str) -> tuple[Any, ...]:
        """What a judgement depends on besides runs."""
        plan = replace(self.config.plans[experiment], source="")  # wherever the file lies
        return (repr(plan), self.judge.measures, self.config.by,
                self.config.split, self.materials.suite_digest)  # fmt: skip


def _audit(scores: Scores) -> list[str]:
    """What did not join; that other splits are left out is meant."""
    return [said for said in scores.audits[0].warnings if "missing in the run" not in said]


def _write(path: Path, table: pa.Table) -> None:
    with whole_file(path) as stream:
        write_arrow(table, stream)
