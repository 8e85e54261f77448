"""Brings run and judgements together: which rankings there are, and what judges each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.columns import CaseCodes, Rows
from ragcore.errors import InputError
from ragcore_kernels import ids as kernel_ids
from ragcore_kernels.layout import I64


@dataclass
class Labels:
    """Judgements, grouped: one group a judged case, or a case in one language.

    Attributes
    ----------
    rows : the judgements.
    segments, offsets : grouped segments of `rows`.
    case_of : (n_groups,), code of the case.
    lang_of : language of each group, or None where judgements know none.
    status : (n_groups,), `schema.OK`, or `schema.DISPUTED` for what is not to be scored.
    from_cases : whether they come from a suite's cases rather than from qrels.
    items : the items of evidence behind them (`mapped.ItemLabels`), where several share a chunk
        or one has several; `rows` are then the chunks that contain any.
    """

    rows: Rows
    segments: I64
    offsets: I64
    case_of: I64
    lang_of: list[str | None] | None
    status: Any
    from_cases: bool
    n_cases: int
    items: Any = None

    def __post_init__(self) -> None:
        counts = np.concatenate([[0], np.cumsum(self.segments[:, 2])])
        self.row_offsets: I64 = counts[self.offsets].astype(np.int64)
        self.grades = np.ascontiguousarray(self.rows.values[:, 1])


def grouped(segments: I64, codes: I64, n_groups: int) -> tuple[I64, I64]:
    """Segments side by side by group, and where each group begins."""
    offsets = np.zeros(n_groups + 1, np.int64)
    order = np.empty(len(codes), np.int64)
    kernel_ids.group(codes, offsets, order)
    return np.ascontiguousarray(segments[order[: offsets[-1]]]), offsets


def labels_of_qrels(rows: Rows, codes: CaseCodes) -> Labels:
    """Judgements that know no language: one group a case id."""
    found = codes.add(rows.case_ids, rows.case_at)
    n = codes.count
    segments, offsets = grouped(rows.segments, found, n)
    status = np.zeros(n, np.int8)
    return Labels(rows, segments, offsets, np.arange(n), None, status, False, n)


def labels_of_cases(rows: Rows, codes: CaseCodes, langs: list[str | None], status: Any) -> Labels:
    """Judgements of a suite: one group a row of its cases."""
    found = codes.add(rows.case_ids, rows.case_at)
    n = len(found)
    seen: dict[tuple[int, str | None], int] = {}
    for row, (code, lang) in enumerate(zip(found.tolist(), langs, strict=True)):
        if (code, lang) in seen:
            name = rows.case_ids.text(*rows.case_at[row].tolist())
            raise InputError(
                rows.where, f"case {name!r} in language {lang!r} stands twice (row "
                f"{seen[code, lang] + 1} too)", "one row for each case and language", row=row + 1,
            )  # fmt: skip
        seen[code, lang] = row
    return Labels(rows, rows.segments, np.arange(n + 1), found, langs, status, True, codes.count)


@dataclass
class Rankings:
    """The rankings of one run: judged cases first, those without a ranking empty.

    Attributes
    ----------
    segments, offsets : rows of each ranking.
    label_of, case_of : group of judgements or -1; code of the case.
    lang, repeat : of each ranking, or None where the run knows neither.
    state : (n,), int8 base state: ok, missing or failed (no list recorded), disputed (labels).
    absent : (n,), True for judged cases that the run has no ranking of.
    row_of : (n,), row of the run's trace table, -1 without one.
    """

    segments: I64
    offsets: I64
    label_of: I64
    case_of: I64
    lang: list[str | None] | None
    repeat: list[int | None] | None
    state: Any
    absent: Any
    row_of: I64

    def __len__(self) -> int:
        """How many rankings."""
        return self.label_of.size


def rankings_of(rows: Rows, labels: Labels, codes: CaseCodes) -> Rankings:
    """Bring a run's rows and the judgements together.

    Raises
    ------
    InputError
        If a trace stands twice, or a run without languages meets a case in several.
    """
    found = codes.add(rows.case_ids, rows.case_at)
    if rows.traces is None:
        return _flat_rankings(rows, labels, found)
    return _trace_rankings(rows, labels, found)


def _group_by_case(rows: Rows, labels: Labels, n_codes: int) -> I64:
    """Code -> its only group, -1 for none."""
    if not labels.from_cases:
        out = np.full(n_codes, -1, np.int64)
        out[: labels.n_cases] = np.arange(labels.n_cases)
        return out
    out = np.full(n_codes, -1, np.int64)
    counts = np.bincount(labels.case_of, minlength=n_codes)
    if (counts > 1).any():
        raise InputError(
            rows.where, "a run without languages",
            "the language of each ranking, as the suite has cases in several",
            "write a case batch with the columns case_id, lang, ranked",
        )  # fmt: skip
    out[labels.case_of] = np.arange(len(labels.case_of))
    return out


def _flat_rankings(rows: Rows, labels: Labels, found: I64) -> Rankings:
    n_judged = labels.n_cases
    extra = np.unique(found[found >= n_judged])
    if extra.size:
        index = np.where(found < n_judged, found, n_judged + np.searchsorted(extra, found))
    else:
        index = found
    case_of = np.concatenate([np.arange(n_judged), extra]).astype(np.int64)
    segments, offsets = grouped(rows.segments, index, case_of.size)
    top = int(max(n_judged, extra[-1] + 1 if extra.size else 0))
    label_of = _group_by_case(rows, labels, top)[case_of]
    state = np.zeros(case_of.size, np.int8)
    judged = label_of >= 0
    state[judged] = labels.status[label_of[judged]]
    absent = judged & (offsets[1:] == offsets[:-1])
    none = np.full(case_of.size, -1, np.int64)
    return Rankings(segments, offsets, label_of, case_of, None, None, state, absent, none)


def _langs(table: pa.Table, where: str) -> list[str | None]:
    """The language of every trace."""
    kind = table.schema.field("lang").type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return table["lang"].to_pylist()
    if pa.types.is_string_view(kind):
        return table["lang"].to_pylist()
    raise InputError(where, f"column 'lang' of type {kind}", "languages as strings")


def _repeats(table: pa.Table, where: str) -> list[int | None]:
    """The repeat of every trace, which fits int16."""
    kind = table.schema.field("repeat").type
    if not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputError(where, f"column 'repeat' of type {kind}", "repeats as integers from 0")
    out: list[int | None] = table["repeat"].to_pylist()
    for row, value in enumerate(out):
        if value is not None and not 0 <= value < 2**15:
            raise InputError(where, f"repeat {value}", "a number from 0 to 32767", row=row + 1)
    return out


def _trace_rankings(rows: Rows, labels: Labels, found: I64) -> Rankings:
    table = rows.traces
    assert table is not None
    assert rows.trace_of is not None
    names = table.column_names
    n = len(found)
    lang: list[str | None] = [None] * n
    repeat: list[int | None] = [None] * n
    if "lang" in names:
        lang = _langs(table, rows.where)
    if "repeat" in names:
        repeat = _repeats(table, rows.where)
    group: dict[tuple[int, str | None], int] = {}
    langs_of: dict[int, list[str | None]] = {}
    for g, code in enumerate(labels.case_of.tolist()):
        language = labels.lang_of[g] if labels.lang_of else None
        group[code, language] = g
        langs_of.setdefault(code, []).append(language)
    label_of = np.full(n, -1, np.int64)
    seen: dict[tuple[int, str | None, int | None], int] = {}
    for row, code in enumerate(found.tolist()):
        known = langs_of.get(code, [])
        language = lang[row]
        if labels.lang_of is None or known == [None]:
            label_of[row] = group.get((code, None), -1)
        elif language is None and len(known) == 1:
            lang[row] = language = known[0]
            label_of[row] = group[code, language]
        else:
            label_of[row] = group.get((code, language), -1)
        key = (code, language, repeat[row])
        if key in seen:
            name = rows.case_ids.text(*rows.case_at[row].tolist())
            raise InputError(
                rows.where, f"case {name!r}, language {language!r}, repeat {repeat[row]!r} stands "
                f"twice (row {seen[key] + 1} too)", "one row for each case, language and repeat",
                "number the repeats in the column `repeat`", row=row + 1,
            )  # fmt: skip
        seen[key] = row
    present = set(found[label_of >= 0].tolist())
    lost = [g for g, code in enumerate(labels.case_of.tolist()) if code not in present]
    state = np.zeros(n + len(lost), np.int8)
    errors = table["error"].to_pylist() if "error" in names else [None] * n
    for row in rows.missing:
        state[row] = schema.FAILED if errors[row] is not None else schema.MISSING
    label_of = np.concatenate([label_of, np.array(lost, np.int64)])
    judged = (label_of >= 0) & (state == schema.OK)
    state[judged] = labels.status[label_of[judged]]
    segments, offsets = grouped(rows.segments, rows.trace_of, n + len(lost))
    absent = np.zeros(n + len(lost), np.bool_)
    absent[n:] = True
    case_of = np.concatenate([found, labels.case_of[np.array(lost, np.int64)]]).astype(np.int64)
    lang += [labels.lang_of[g] if labels.lang_of else None for g in lost]
    row_of = np.concatenate([np.arange(n), np.full(len(lost), -1)]).astype(np.int64)
    return Rankings(
        segments, offsets, label_of, case_of, lang, repeat + [None] * len(lost), state, absent,
        row_of,
    )  # fmt: skip
