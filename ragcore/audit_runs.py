"""Lists of another engine, recorded as a run, against exact ones: of vectors, or another run."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from ragcore.audit import SliceAudit, audit_table, compare_lists, exact_pass
from ragcore.audit_report import AuditSettings, Report, recalls_of
from ragcore.auditing import case_slices, copies, unsliced
from ragcore.errors import InputError, UsageError
from ragcore.fuse import fuse
from ragcore.index.opened import Index
from ragcore.questions import Questions
from ragcore_kernels.layout import I64

RECORDED = 0
"""Stands for ef in an audit of recorded lists."""
Key = tuple[str, str | None]


def recorded_lists(run: str | PathLike[str], stage: str | None = None) -> dict[Key, list[str]]:
    """The ranked ids of every case (and language) of a run, or of one of its stages.

    Raises
    ------
    InputError
        If the run cannot be read, or repeats a case.
    """
    table = fuse([run], stage=stage, stages=False, overlap_depth=0).table
    langs = table["lang"].to_pylist() if "lang" in table.column_names else None
    out: dict[Key, list[str]] = {}
    for row, case in enumerate(table["case_id"].to_pylist()):
        key = (case, langs[row] if langs else None)
        if key in out:
            raise InputError(run, f"case {case!r} several times", "one list a case",
                             "audit one repeat at a time")  # fmt: skip
        out[key] = [item["id"] for item in table["ranked"][row].as_py() or ()]
    return out


def audit_run(
    index: Index, questions: Questions, vectors: np.ndarray[Any, Any], lists: dict[Key, list[str]],
    settings: AuditSettings,
) -> Report:  # fmt: skip
    """Recorded lists against brute force over the vectors of an index.

    Parameters
    ----------
    vectors : (m, d) float32, of the questions.
    lists : see `recorded_lists`; a question without one has an empty list, which is noted.
    """
    keys = list(zip(questions.case_ids, questions.langs, strict=True))
    taken, absent = _taken(lists, keys)
    n = index.n_chunks
    coded = [[index.row_of.get(name, n) for name in each] for each in taken]
    unknown = sorted({x for each in taken for x in each if x not in index.row_of})
    exact = exact_pass(index.exact, vectors, settings.ks, threads=settings.threads)
    slices = case_slices(questions, settings.by)
    report = Report({}, n_copies=copies(index.vectors))
    for k in settings.ks:
        made = compare_lists(
            exact, csr(coded), k, vectors=index.exact.vectors, queries=vectors,
            metric=index.options.metric, threads=settings.threads,
        )  # fmt: skip
        report.recalls.append(recalls_of(RECORDED, made))
        report.audits[k] = audit_table(
            {RECORDED: made}, slices, target=settings.target, recall=settings.recall,
            level=settings.level,
        )  # fmt: skip
    report.notes = _said(keys, absent, lists)
    if unknown:
        report.notes.append(
            f"{len(unknown)} ids are not in {index.path}, the first is {unknown[0]!r}: no hits"
        )
    report.notes += [*unsliced(questions, settings.by), *index.exact.warnings()]
    return report


def audit_against_run(
    exact: dict[Key, list[str]], lists: dict[Key, list[str]], settings: AuditSettings,
    questions: Questions | None = None,
) -> Report:  # fmt: skip
    """Recorded lists against exact lists that were recorded: by id, as nothing else is known.

    Parameters
    ----------
    questions : cases to audit and to slice by; default those of the exact run.

    Raises
    ------
    UsageError
        If a recall that needs vectors is asked for, or an exact list is too short for k.
    """
    if settings.recall != "id":
        raise UsageError(
            f"{settings.recall} recall needs vectors", "--recall id, or audit with an INDEX"
        )
    keys = list(exact)
    if questions is not None:
        keys = list(zip(questions.case_ids, questions.langs, strict=True))
    truth, lost = _taken(exact, keys)
    taken, absent = _taken(lists, keys)
    codes: dict[str, int] = {}
    for each in [*truth, *taken]:
        for name in each:
            codes.setdefault(name, len(codes))
    width = max((len(each) for each in truth), default=0)
    rows = np.full((len(keys), width), -1, np.int64)
    for i, each in enumerate(truth):
        rows[i, : len(each)] = [codes[name] for name in each]
    report = Report({})
    slices = case_slices(questions, settings.by) if questions is not None else {}
    coded = csr([[codes[name] for name in each] for each in taken])
    for k in settings.ks:
        if width < k:
            raise UsageError(f"exact lists of at most {width} ids", f"{k}, or a lower -k")
        made = compare_lists(rows, coded, k, n=len(codes), threads=settings.threads)
        report.audits[k] = audit_table(
            {RECORDED: made}, slices, target=settings.target, recall="id", level=settings.level
        )
        short = sum(len(each) < k for each in truth)
        if short:
            report.notes.append(
                f"{short} of {len(truth)} exact lists have fewer than {k} ids: they count as all "
                "there is"
            )
    report.notes += _said(keys, absent, lists)
    if questions is not None:
        report.notes += unsliced(questions, settings.by)
    if lost:
        report.notes.append(f"{lost} of {len(keys)} cases are not in the exact run")
    return report


def csr(lists: list[list[int]]) -> tuple[I64, I64]:
    """Offsets and values of lists of different lengths."""
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    return offsets, np.array([row for each in lists for row in each], np.int64)


def _taken(lists: dict[Key, list[str]], keys: list[Key]) -> tuple[list[list[str]], int]:
    """The list of each key, and how many have none; a run without languages serves any."""
    out, absent = [], 0
    for case, lang in keys:
        found = lists.get((case, lang), lists.get((case, None)))
        absent += found is None
        out.append(found or [])
    return out, absent


def _said(keys: list[Key], absent: int, lists: dict[Key, list[str]]) -> list[str]:
    notes = []
    if absent:
        notes.append(f"{absent} of {len(keys)} cases are not in the run: empty lists")
    cases = {case for case, _ in keys}
    extra = sum(case not in cases for case, _ in lists)
    if extra:
        notes.append(f"{extra} cases of the run are not among those audited: left out")
    return notes


def first_row(report: Report) -> SliceAudit:
    """The row of all queries of the first k, for those who want one number."""
    return next(iter(report.audits.values())).rows[0]
