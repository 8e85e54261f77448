"""A recorded wide run, read: what every channel gave to every question, in which time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import latency
from ragcore.errors import InputError
from ragcore.experiments.pool import Pool
from ragcore.experiments.setups import CHANNELS, Setup
from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.lists import entry_of, integers, keys_of, lists_of
from ragcore.questions import Questions
from ragcore.retrievers import Ranked
from ragcore.search_settings import DENSE, FUSED
from ragcore.suites import manifest_of
from ragcore_kernels.layout import F64, I64

RERANKED_STAGE = "reranked"
PARTS = ("embed", "analyse")
"""Stages that are timed beside the channels: vectors of questions, and their analysis."""


@dataclass
class Recording:
    """A wide run over some questions.

    Attributes
    ----------
    where : the file.
    pool : the chunks, by row.
    questions : one row each of what follows.
    lists : by stage; rows are None where a question has no such list recorded.
    timings : by stage, (n,) microseconds; NaN where it was not timed.
    depth : by channel, rows that were asked for.
    manifest : what the run says of itself.
    notes : what was noticed.
    """

    where: str
    pool: Pool
    questions: Questions
    lists: dict[str, Ranked]
    timings: dict[str, F64]
    depth: dict[str, int]
    manifest: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def timing(self, name: str) -> F64 | None:
        """Microseconds of a stage; None where some question was not timed."""
        found = self.timings.get(name)
        return None if found is None or np.isnan(found).any() else found

    def fused_timing(self, base: str) -> F64 | None:
        """Microseconds of fusion for a strategy; None where it was not timed."""
        own = self.timing(f"{FUSED}:{base}")
        return self.timing(FUSED) if own is None else own

    def scores_of(self, row: int) -> dict[int, float] | None:
        """Recorded scores of the reranker for one question, by chunk; None without any."""
        found = self.lists.get(RERANKED_STAGE)
        if found is None or found.rows[row] is None:
            return None
        return dict(zip(found.rows[row].tolist(), found.scores[row].tolist(), strict=True))

    def at(self, rows: I64) -> Recording:
        """The same over some of its questions."""
        return replace(
            self, questions=subset(self.questions, rows),
            lists={
                name: Ranked(
                    [one.rows[i] for i in rows.tolist()], [one.scores[i] for i in rows.tolist()],
                    one.duration_us[rows],
                )
                for name, one in self.lists.items()
            },
            timings={name: spent[rows] for name, spent in self.timings.items()},
        )  # fmt: skip

    def lacks(self, setup: Setup) -> str:
        """Why a setup cannot be replayed from this; "" if it can."""
        for channel in setup.channels:
            if channel not in self.lists:
                return f"the recorded run has no stage {channel}"
            if self.depth[channel] < setup.candidate_k:
                return (
                    f"the recorded run is too shallow: {channel} was recorded to depth "
                    f"{self.depth[channel]}, below candidate_k {setup.candidate_k}"
                )
        if setup.reranked and RERANKED_STAGE not in self.lists:
            return "no reranker, and no stage reranked is recorded"
        return self._moved(setup)

    def _moved(self, setup: Setup) -> str:
        """What of the manifest forbids a replay: lists that were cut in other ways before."""
        cut = self.manifest.get("threshold")
        for channel, t in cut.items() if isinstance(cut, dict) else ():
            asked = setup.threshold(channel)
            if channel in setup.channels and t is not None and (asked is None or asked < t):
                return f"recorded with threshold {t:g} on {channel}: what lies below is lost"
        if self.manifest.get("filter_when") == "after" and self.manifest.get("filters"):
            for channel in setup.channels:
                if self.depth[channel] != setup.candidate_k:
                    return (
                        "candidates were filtered after the cut: another candidate_k is another "
                        "search"
                    )
        return ""

    def label(self, setup: Setup) -> str:
        """How a replay has to be called."""
        depth = max(self.depth[channel] for channel in setup.channels)
        if DENSE not in setup.channels:
            return f"replayed from depth {depth}"
        depth = self.depth[DENSE]
        own = self.manifest.get("ann")
        own = own if isinstance(own, dict) else {}
        ef, n_exact = own.get("ef_search"), own.get("n_exact")
        said = "unknown" if ef is None else str(ef)
        if type(ef) is int and (least := self._least_ef(depth)) > ef:
            said = f"{least} ({ef} asked for)"
        exact = f", {n_exact} of {own.get('n')} by brute force" if n_exact else ""
        return f"prefix-of-depth-{depth}, ef={said}{exact}"

    def _least_ef(self, depth: int) -> int:
        """What ef is in effect: no less than HNSW is asked for, four times as many if masked."""
        masked = self.manifest.get("filters") and self.manifest.get("filter_when") != "after"
        return 4 * depth if masked else depth


def read_recording(table: pa.Table, where: str, pool: Pool, questions: Questions) -> Recording:
    """A recorded run brought to questions; those that it has not are left out, and counted.

    Raises
    ------
    InputError
        If it has no stages, a case twice, chunks that nobody knows, or scores that are missing.
    """
    if "stages" not in table.column_names or "case_id" not in table.column_names:
        raise InputError(
            where, f"columns {', '.join(table.column_names)}", "columns case_id and stages",
            "a wide run is what `ragcore search --strategy hybrid --candidate-k 40` writes",
        )  # fmt: skip
    rows = _rows(table, where, questions)
    known = np.flatnonzero(rows >= 0)
    notes = []
    if known.size < rows.size:
        lost = [questions.case_ids[i] for i in np.flatnonzero(rows < 0)[:5]]
        several = len(set(questions.case_ids)) < len(questions)
        notes.append(
            f"{rows.size - known.size} of {rows.size} cases{' in a language' if several else ''} "
            f"are not in the recorded run, and in no "
            f"row of the sweep: {', '.join(lost)}"
        )
    if not known.size:
        raise InputError(where, "none of the suite's cases", "a run of that suite")
    rows, questions = rows[known], subset(questions, known)
    manifest = manifest_of(table)
    lists = {
        name: _ranked(entry_of(table["stages"], name, rows), name, where, pool)
        for name in keys_of(table["stages"])
        if name in (*CHANNELS, RERANKED_STAGE)
    }
    for name, ranked in lists.items():
        _check_lists(ranked, name, where, questions, rows)
    if not any(name in lists for name in CHANNELS):
        raise InputError(where, "no recorded channel", f"a stage {', '.join(CHANNELS)}")
    timings: dict[str, F64] = {}
    if "timings" in table.column_names:
        spent = lists_of(table["timings"], rows)
        names = dict.fromkeys(spent.strings("stage"))
        timings = {str(name): latency.of_stage(spent, str(name)) for name in names if name}
    depth = {name: _depth(manifest, name, lists[name]) for name in lists if name in CHANNELS}
    return Recording(where, pool, questions, lists, timings, depth, manifest, notes)


def _rows(table: pa.Table, where: str, questions: Questions) -> I64:
    """The row of each question in a run, -1 where it has none."""
    ids = arrow.as_ids(where, "case_id", table["case_id"]).to_pylist()
    langs: list[Any] = [None] * len(ids)
    if "lang" in table.column_names:
        langs = table["lang"].to_pylist()
    said = any(lang is not None for lang in questions.langs)
    by_lang = said and any(lang is not None for lang in langs)
    if not by_lang:
        langs = [None] * len(ids)
    row_of: dict[Any, int] = {}
    for row, key in enumerate(zip(map(str, ids), langs, strict=True)):
        if key in row_of:
            raise InputError(
                where, f"case {key[0]!r} in rows {row_of[key] + 1} and {row + 1}",
                "each case once in a language", "a sweep replays one trace a case", row=row + 1,
            )  # fmt: skip
        row_of[key] = row
    wanted = zip(questions.case_ids, questions.langs if by_lang else [None] * len(questions),
                 strict=True)  # fmt: skip
    keys = list(wanted)
    if not by_lang and len(set(keys)) < len(keys):
        raise InputError(where, "no column lang", "the language of each row, as cases have several")
    return np.array([row_of.get(key, -1) for key in keys], np.int64)


def _ranked(lists: Any, name: str, where: str, pool: Pool) -> Ranked:
    """The lists of one stage by row of the pool."""
    ids = lists.field("id")
    if ids is None and len(lists.items):
        raise InputError(where, f"stage {name} without ids", "structs of id and score")
    words = pa.array([], pa.large_string()) if ids is None else ids.cast(pa.large_string())
    rows = integers(pc.index_in(words, value_set=pool.ids), len(words), -1)
    if (rows < 0).any():
        unknown = words[int(np.flatnonzero(rows < 0)[0])].as_py()
        raise InputError(
            where, f"chunk {unknown!r} in stage {name}", "chunks of the suite",
            "the run is of another corpus",
        )  # fmt: skip
    scores = lists.doubles("score")
    out = Ranked([], [], np.zeros(lists.offsets.size - 1))
    for i, there in enumerate(lists.present.tolist()):
        part = slice(int(lists.offsets[i]), int(lists.offsets[i + 1]))
        out.rows.append(rows[part].astype(np.int32) if there else None)
        out.scores.append(scores[part])
    return out


def _check_lists(ranked: Ranked, name: str, where: str, questions: Questions, at: I64) -> None:
    """Refuse lists that cannot be cut and fused: a chunk twice, no scores, or rising ones."""
    for i, (rows, scores) in enumerate(zip(ranked.rows, ranked.scores, strict=True)):
        if rows is None:
            continue
        found = ""
        if np.unique(rows).size < rows.size:
            found = "a chunk twice"
        elif name != RERANKED_STAGE and np.isnan(scores).any():
            found = "a score that is no number"
        elif name != RERANKED_STAGE and (np.diff(scores) > 0).any():
            found = "scores that rise from rank to rank"
        if found:
            raise InputError(
                where, f"{found} in stage {name} of case {questions.case_ids[i]!r}",
                "each chunk once, best first, with its score: the greater, the better",
                "replays cut these lists, compare their scores with thresholds, and fuse them",
                row=int(at[i]) + 1,
            )  # fmt: skip


def _depth(manifest: dict[str, Any], channel: str, ranked: Ranked) -> int:
    """How deep a channel was asked for: as the run says, else its longest list."""
    said = manifest.get("candidate_k")
    if isinstance(said, dict):
        said = said.get(channel)
    longest = max((len(rows) for rows in ranked.rows if rows is not None), default=0)
    return said if type(said) is int and said > 0 else longest


def subset(questions: Questions, rows: I64) -> Questions:
    """Some of the questions, in the order of `rows`."""
    at = rows.tolist()
    return replace(
        questions, table=questions.table.take(arrow.numbers(np.ascontiguousarray(rows))),
        case_ids=[questions.case_ids[i] for i in at], langs=[questions.langs[i] for i in at],
        texts=None if questions.texts is None else [questions.texts[i] for i in at],
        vectors=None if questions.vectors is None else questions.vectors[rows],
    )  # fmt: skip


def of_splits(questions: Questions, splits: tuple[str, ...]) -> I64:
    """Rows of the questions of some splits."""
    given = questions.column("split") or []
    return np.array([row for row, one in enumerate(given) if one in splits], np.int64)


def read_run(path: Path, ours: bool = False) -> pa.Table:
    """A recorded run from its file.

    Parameters
    ----------
    ours : whether the sweep made it itself, and can make it again.

    Raises
    ------
    InputError
        If it is no case batch.
    """
    try:
        return arrow.read_checked(path, "a recorded run", "as `ragcore search` writes it")
    except InputError as error:
        if not ours:
            raise
        again = "delete it: it is made again"
        raise InputError(path, error.found, error.wanted, again) from None


def recorded_facts(path: Path) -> tuple[set[str], str, str]:
    """All ids in the stages of a recorded run; generation and corpus of its index, or ""."""
    table = read_run(path)
    own = manifest_of(table).get("index")
    own = own if isinstance(own, dict) else {}
    generation, corpus = (str(own.get(key, "")) for key in ("generation", "corpus"))
    out: set[str] = set()
    if "stages" in table.column_names:
        rows = np.arange(table.num_rows, dtype=np.int64)
        for name in keys_of(table["stages"]):
            out |= {one for one in entry_of(table["stages"], name, rows).strings("id") if one}
    return out, generation, corpus
