"""An index's graph against brute force over its own vectors: every ef, k, slice, shard and filter.

The truth is one exact pass for all of them. A shard is audited by the true neighbours that lie in
it, so that a damaged part of one graph shows; a filter by an exact pass over what it lets through.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.audit import (
    ALL,
    Audit,
    ListComparison,
    SelfRecall,
    SliceAudit,
    audit_table,
    compare_lists,
    exact_pass,
    join,
    self_recall,
)
from ragcore.audit_report import AuditSettings, Loss, Report, recalls_of
from ragcore.errors import UsageError
from ragcore.filters import Eligibility
from ragcore.formats.arrow import texts
from ragcore.index.opened import Index
from ragcore.progress import Progress, no_progress
from ragcore.questions import Questions
from ragcore.retrievers import Approximate, Clock, Ranked
from ragcore.search_output import ranked_lists
from ragcore_kernels.knn import Neighbours

SHARD = "shard"
SELF_K = 10
"""Neighbours among which a node is looked for."""


def audit_index(
    index: Index,
    questions: Questions,
    vectors: np.ndarray[Any, Any],
    settings: AuditSettings,
    *,
    suite: Any = None,
    qrels: Any = None,
    clock: Clock = time.perf_counter_ns,
    progress: Progress = no_progress,
) -> Report:
    """Audit the graph of an index with the vectors of questions.

    Parameters
    ----------
    vectors : (m, d) float32, of the questions.
    suite, qrels : labels for the measures of the end, as `ragcore.score` takes them.

    Raises
    ------
    UsageError
        If there is no graph or no question, or a column is not there.
    """
    if not len(questions):
        raise UsageError(f"{questions.where} has no case", "an audit needs questions")
    _ = index.graph  # or why not, before any work
    slices = case_slices(questions, settings.by)
    exact = exact_pass(index.exact, vectors, settings.ks, threads=settings.threads)
    report, shards = Report({}), _shards(index)
    for step, k in enumerate(settings.ks):
        progress("auditing", step, len(settings.ks))
        found, seconds = _searched(index, vectors, settings, k, clock)
        whole = {
            ef: _compared(index, exact, lists, k, vectors, None, settings.threads)
            for ef, lists in found.items()
        }
        report.recalls += [recalls_of(ef, one) for ef, one in whole.items()]
        rows = _rows(index, vectors, settings, k, exact, found, whole, slices, seconds, shards)
        rows += _filtered(index, questions, vectors, settings, k, shards, report.notes)
        ordered = sorted(rows, key=lambda row: (row.ef, row.slice != ALL))
        report.audits[k] = Audit(tuple(ordered), settings.target, settings.level)
        report.losses += _losses(index, questions, settings, k, exact, found, suite, qrels)
    report.selves = _selves(index, settings, progress)
    report.n_copies = copies(index.vectors)
    report.notes += [*unsliced(questions, settings.by), *_noticed(index, vectors, exact)]
    return report


def efs_of(settings: AuditSettings, k: int) -> list[int]:
    """Each ef that differs for k: hnswlib keeps at least k, whatever it is told."""
    return sorted({max(ef, k) for ef in settings.efs})


def _searched(
    index: Index, vectors: Any, settings: AuditSettings, k: int, clock: Clock
) -> tuple[dict[int, Any], dict[int, float]]:
    """Approximate lists at every ef, and the seconds that the quickest search of all took."""
    found: dict[int, Any] = {}
    seconds: dict[int, float] = {}
    finite = np.isfinite(vectors).all(1)
    asked = np.ascontiguousarray(vectors[finite])
    for ef in efs_of(settings, k):
        took = []
        rows = np.full((len(vectors), k), -1, np.int32)
        for _ in range(max(settings.repeats, 1)):
            began = clock()
            lists, _ = index.graph.search(asked, k, ef, settings.threads)
            took.append((clock() - began) / 1e9)
            rows[finite] = lists
        found[ef], seconds[ef] = rows, min(took)
    return found, seconds


def case_slices(questions: Questions, by: Sequence[str]) -> dict[str, Any]:
    """Queries of each value of each column, as masks; a list column puts a case into several.

    Raises
    ------
    UsageError
        If a column is not there.
    """
    out: dict[str, Any] = {}
    for name in by:
        values = questions.column(name)
        if values is None:
            have = ", ".join(questions.table.column_names)
            raise UsageError(f"{questions.where} has no column {name}", f"it has {have}")
        lists = [v if isinstance(v, list) else [v] for v in values]
        for value in dict.fromkeys(v for each in lists for v in each if v is not None):
            out[f"{name}={value}"] = np.array([value in each for each in lists], np.bool_)
    return out


def unsliced(questions: Questions, by: Sequence[str]) -> list[str]:
    """Cases without a value of a column, which are in no slice of it."""
    empty = {name: sum(v is None for v in questions.column(name) or ()) for name in by}
    return [
        f"{n} of {len(questions)} cases have no {name}: in no slice of it"
        for name, n in empty.items() if n
    ]  # fmt: skip


def _shards(index: Index) -> dict[str, Any]:
    """Rows of each shard, as masks; empty for fewer than two."""
    if SHARD not in index.documents.column_names:
        return {}
    values = index.documents[SHARD].to_pylist()
    names = sorted({str(v) for v in values if v is not None})
    if len(names) < 2:
        return {}
    return {name: np.array([v is not None and str(v) == name for v in values]) for name in names}


def _compared(
    index: Index, exact: Neighbours, lists: Any, k: int, vectors: Any, eligible: Any, threads: int
) -> ListComparison:
    return compare_lists(
        exact, lists, k, vectors=index.exact.vectors, queries=vectors,
        metric=index.options.metric, eligible=eligible, threads=threads,
    )  # fmt: skip


def _rows(
    index: Index, vectors: Any, settings: AuditSettings, k: int, exact: Neighbours,
    found: dict[int, Any], whole: dict[int, ListComparison], slices: dict[str, Any],
    seconds: dict[int, float],
    shards: dict[str, Any],
) -> list[SliceAudit]:  # fmt: skip
    """Rows of all queries, of slices of cases, and of shards."""
    common = {"target": settings.target, "recall": settings.recall, "level": settings.level}
    out = list(audit_table(whole, slices, seconds=seconds, **common).rows)
    for name, mask in shards.items():
        inside = within(exact, mask, k)
        parts = {
            ef: _compared(index, inside, _kept(rows, mask), k, vectors, mask, settings.threads)
            for ef, rows in found.items()
        }
        out += _named(audit_table(parts, **common), f"{SHARD}={name}")
    return out


def _named(audit: Audit, name: str) -> list[SliceAudit]:
    """Rows of an audit of a part, under the name of the part."""
    return [replace(row, slice=name) for row in audit.rows]


def within(exact: Neighbours, mask: Any, k: int) -> Neighbours:
    """The true k neighbours of each query that lie in a part of the rows."""
    rows, scores = exact.rows[:, :k], exact.scores[:, :k]
    inside = (rows >= 0) & mask[rows]
    order = np.argsort(~inside, axis=1, kind="stable")
    moved = np.take_along_axis(np.where(inside, rows, -1), order, 1).astype(np.int32)
    values = np.take_along_axis(np.where(inside, scores, -np.inf), order, 1)
    return Neighbours(moved, values, inside.sum(1).astype(np.int64))


def _kept(rows: Any, mask: Any) -> Any:
    """Lists with what lies elsewhere taken out."""
    return np.where((rows >= 0) & mask[rows], rows, -1)


def _filtered(
    index: Index, questions: Questions, vectors: Any, settings: AuditSettings, k: int,
    shards: dict[str, Any], notes: list[str],
) -> list[SliceAudit]:  # fmt: skip
    """Rows of every filter, and of the shards under it: searched as `search` searches them."""
    common = {"target": settings.target, "recall": settings.recall, "level": settings.level}
    out: list[SliceAudit] = []
    for one in settings.filters:
        eligibility = Eligibility(index, questions, [one])
        parts: dict[int, list[ListComparison]] = {}
        split: dict[tuple[str, int], list[ListComparison]] = {}
        by_force: dict[int, int] = {}
        for members, mask in eligibility.groups(len(questions)):
            asked = np.ascontiguousarray(vectors[members])
            exact = exact_pass(index.exact, asked, [k], eligible=mask, threads=settings.threads)
            for ef in efs_of(settings, k):
                way = Approximate(index, asked, ef)
                rows, _, _ = way.search(0, len(asked), k, mask, settings.threads)
                by_force[ef] = by_force.get(ef, 0) + way.n_completed
                made = _compared(index, exact, rows, k, asked, mask, settings.threads)
                parts.setdefault(ef, []).append(made)
                for name, shard in shards.items():
                    both = shard if mask is None else shard & (mask > 0)
                    made = _compared(
                        index, within(exact, shard, k), _kept(rows, shard), k, asked, both,
                        settings.threads,
                    )  # fmt: skip
                    split.setdefault((name, ef), []).append(made)
        notes += [note for note in eligibility.notes if note not in notes]
        notes += [
            f"filter {one}, ef {ef}, k {k}: {n} of {len(questions)} questions were answered by "
            "brute force, as in search"
            for ef, n in by_force.items() if n
        ]  # fmt: skip
        out += _named(audit_table({ef: _joined(p) for ef, p in parts.items()}, **common), str(one))
        for name in shards:
            lists = {ef: _joined(split[name, ef]) for ef in efs_of(settings, k)}
            out += _named(audit_table(lists, **common), f"{one} & {SHARD}={name}")
    return out


def _joined(parts: list[ListComparison]) -> ListComparison:
    return join({str(i): part for i, part in enumerate(parts)})[0]


def _selves(index: Index, settings: AuditSettings, progress: Progress) -> SelfRecall | None:
    """Whether nodes, evenly spread, find themselves at the greatest ef."""
    n = index.n_chunks
    if not settings.self_nodes or not n:
        return None
    nodes = np.unique(np.linspace(0, n - 1, min(n, settings.self_nodes)).astype(np.int64))
    progress("self-recall", 0, nodes.size)
    asked = index.exact.vectors[nodes]
    rows, _ = index.graph.search(asked, min(SELF_K, n), max(settings.efs), settings.threads)
    return self_recall(rows, nodes, n=n, vectors=index.exact.vectors)


def copies(vectors: np.ndarray[Any, Any]) -> int:
    """Vectors that equal one of a lower row, bit for bit."""
    if not vectors.size:
        return max(len(vectors) - 1, 0)
    raw = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.strides[0])))
    return len(vectors) - len(np.unique(raw))


def _losses(
    index: Index, questions: Questions, settings: AuditSettings, k: int, exact: Neighbours,
    found: dict[int, Any], suite: Any, qrels: Any,
) -> list[Loss]:  # fmt: skip
    """The loss in measures of the end, paired by case, at every ef."""
    if not settings.measures:
        return []
    from ragcore.compare import compare

    runs = [_run(index, questions, exact.rows[:, :k])]
    runs += [_run(index, questions, rows) for rows in found.values()]
    names = ["exact", *(f"ef={ef}" for ef in found)]
    compared = compare(
        runs[0], runs[1:], suite=suite, qrels=qrels, measures=list(settings.measures),
        names=names, level=settings.level, threads=settings.threads,
    )  # fmt: skip
    return [
        Loss(measure, ef, k, compared.cell(measure, candidate=i).paired)
        for measure in settings.measures
        for i, ef in enumerate(found)
    ]


def _run(index: Index, questions: Questions, rows: Any) -> pa.Table:
    """Lists as a run, in their order."""
    lists = [each[each >= 0] for each in rows]
    ranked = Ranked(lists, [-np.arange(float(len(x))) for x in lists], np.zeros(len(lists)))
    columns = {"case_id": texts(questions.case_ids), "ranked": ranked_lists(index, ranked)}
    if any(lang is not None for lang in questions.langs):
        columns["lang"] = questions.table["lang"].combine_chunks()
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def _noticed(index: Index, vectors: Any, exact: Neighbours) -> list[str]:
    notes = list(index.exact.warnings())
    if exact.n_queries_not_finite:
        notes.append(
            f"{exact.n_queries_not_finite} of {len(vectors)} questions have a vector that is not "
            "finite: not audited"
        )
    if _shards(index):
        lost = index.documents[SHARD].null_count
        if lost:
            notes.append(f"{lost} of {index.n_chunks} chunks have no shard: in no slice of shards")
    said = index.manifest["hnsw"]
    if said["n_slots"] > said["n_live"]:
        notes.append(f"{said['n_slots'] - said['n_live']} of {said['n_slots']} nodes are deleted")
    return notes
