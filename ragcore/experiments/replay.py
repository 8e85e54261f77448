"""A row of a sweep replayed from a recorded wide run: cut, thresholds, fusion, reranker, context.

The arithmetic is that of `ragcore.search`: the same fusion, the same order, the one cut at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.experiments.recording import PARTS, RERANKED_STAGE, Recording
from ragcore.experiments.setups import Setup
from ragcore.retrievers import Ranked
from ragcore.search_output import fused_lists, run_table
from ragcore.search_settings import BM25, FUSED
from ragcore_kernels.layout import F64


@dataclass
class Replayed:
    """A configuration over recorded lists.

    Attributes
    ----------
    found : lists by stage, as `ragcore.search` records them.
    final : the ranking; rows are None where something that it needs was not recorded.
    stages : microseconds by stage; empty where some stage was not timed.
    n_missing : questions without a ranking.
    """

    found: dict[str, Ranked]
    final: Ranked
    stages: dict[str, F64]
    n_missing: int

    def context(self, k: int) -> list[Any]:
        """Rows that the generator is shown, question by question."""
        return [None if rows is None else rows[:k] for rows in self.final.rows]


def replay(recording: Recording, setup: Setup) -> Replayed:
    """What a setup gives for every question of a recording that it can be replayed from."""
    n = len(recording.questions)
    found: dict[str, Ranked] = {}
    gone = np.zeros(n, np.bool_)
    fuses = len(setup.channels) > 1
    for channel in setup.channels:
        found[channel] = _head(recording.lists[channel], setup.candidate_k)
        _threshold(found[channel], setup.threshold(channel))
        gone |= np.array([rows is None for rows in found[channel].rows], np.bool_)
    final = found[setup.channels[0]]
    if fuses:
        whole = {name: _filled(one) for name, one in found.items()}
        final, _ = fused_lists(recording.pool, whole, setup.settings(), n)
        _blank(final, gone)
        found[FUSED] = final
    if setup.reranked:
        final = _reranked(recording, final, setup.candidate_k)
        found[RERANKED_STAGE] = final
    lost = sum(rows is None for rows in final.rows)
    return Replayed(found, final, _stages(recording, setup), lost)


def run_of(
    recording: Recording, setup: Setup, replayed: Replayed, manifest: dict[str, Any]
) -> pa.Table:
    """The case batch of a replay, as `ragcore.search` would write it."""
    table = run_table(
        recording.pool, recording.questions, replayed.found, replayed.final, setup.context_k,
        replayed.stages, manifest,
    )  # fmt: skip
    if not replayed.stages:
        table = table.drop_columns(["timings"])
    if not recording.pool.generation:
        table = table.drop_columns(["index_generation"])
    return table


def candidates(recording: Recording, setup: Setup) -> list[Any]:
    """Rows that a reranker has to score, question by question: those that it may be given."""
    plain = replay(recording, replace(setup, strategy=setup.base))
    return [None if rows is None else rows[: setup.candidate_k] for rows in plain.final.rows]


def _head(ranked: Ranked, k: int) -> Ranked:
    """The first k of every list."""
    return Ranked(
        [None if rows is None else rows[:k] for rows in ranked.rows],
        [scores[:k] for scores in ranked.scores], ranked.duration_us,
    )  # fmt: skip


def _threshold(ranked: Ranked, t: float | None) -> None:
    """Drop what scores below a threshold."""
    if t is None:
        return
    for i, (rows, scores) in enumerate(zip(ranked.rows, ranked.scores, strict=True)):
        if rows is not None:
            kept = scores >= t
            ranked.rows[i], ranked.scores[i] = rows[kept], scores[kept]


def _filled(ranked: Ranked) -> Ranked:
    """Lists that are not there as empty ones, for arithmetic whose result is then dropped."""
    none = np.empty(0, np.int32), np.empty(0)
    rows = [none[0] if r is None else r for r in ranked.rows]
    scores = [none[1] if r is None else s for r, s in zip(ranked.rows, ranked.scores, strict=True)]
    return Ranked(rows, scores, ranked.duration_us)


def _blank(ranked: Ranked, gone: Any) -> None:
    for i in np.flatnonzero(gone).tolist():
        ranked.rows[i], ranked.scores[i] = None, np.empty(0)


def _reranked(recording: Recording, plain: Ranked, k: int) -> Ranked:
    """The first k candidates by recorded scores, ties by id; None where one has no score."""
    out = Ranked([], [], plain.duration_us)
    for i, rows in enumerate(plain.rows):
        known = recording.scores_of(i) or {}
        head = [] if rows is None else rows[:k].tolist()
        if rows is None or any(np.isnan(known.get(row, np.nan)) for row in head):
            out.rows.append(None)
            out.scores.append(np.empty(0))
            continue
        head.sort(key=lambda row, known=known: (-known[row], row))
        out.rows.append(np.array(head, np.int32))
        out.scores.append(np.array([known[row] for row in head], np.float64))
    return out


def _stages(recording: Recording, setup: Setup) -> dict[str, F64]:
    """Timings of what a setup runs, as they were taken at the depth of the recording.

    Empty where one of them was not timed, or only a batch was: a share of that is no latency.
    """
    if recording.manifest.get("timing", "each") != "each":
        return {}
    wanted: dict[str, F64 | None] = {}
    for part, needed in zip(PARTS, (setup.channels != (BM25,), BM25 in setup.channels),
                            strict=True):  # fmt: skip
        if needed and part in recording.timings:
            wanted[part] = recording.timing(part)
    for channel in setup.channels:
        wanted[channel] = recording.timing(channel)
    if len(setup.channels) > 1:
        wanted[FUSED] = recording.fused_timing(setup.base)
    if setup.reranked:
        wanted[RERANKED_STAGE] = recording.timing(RERANKED_STAGE)
    known = {name: spent for name, spent in wanted.items() if spent is not None}
    return known if len(known) == len(wanted) else {}
