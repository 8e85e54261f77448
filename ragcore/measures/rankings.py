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
    (lang,), n_langs = _numbered([langs])
    first = _twice(found * n_langs + lang)
    if first is not None:
        row, other = first
        name = rows.case_ids.text(*rows.case_at[row].tolist())
        raise InputError(
            rows.where, f"case {name!r} in language {langs[row]!r} stands twice (row "
            f"{other + 1} too)", "one row for each case and language", row=row + 1,
        )  # fmt: skip
    return Labels(rows, rows.segments, np.arange(n + 1), found, langs, status, True, codes.count)


def _numbered(columns: list[list[str | None]]) -> tuple[list[I64], int]:
    """Texts of several columns as numbers from 0, the same for the same; and how many there are."""
    numbers: dict[str | None, int] = {None: 0}
    out = []
    for words in columns:
        for word in sorted(set(words) - {None}):  # type: ignore[type-var]
            numbers.setdefault(word, len(numbers))
        plain = len(numbers) == 1
        codes = (numbers[word] for word in words)
        out.append(np.zeros(len(words), np.int64) if plain else np.fromiter(codes, np.int64))
    return out, len(numbers)


def _twice(keys: I64) -> tuple[int, int] | None:
    """The first row whose key stood before, and where; None if all differ."""
    if keys.size < 2 or (np.diff(keys) > 0).all():
        return None
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]]) + 1
    if not again.size:
        return None
    row = int(order[again].min())
    return row, int(np.flatnonzero(keys == keys[row])[0])


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
    column = table["lang"]
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    views = pa.types.is_string_view(kind)
    if not (views or pa.types.is_null(kind) or pa.types.is_string(kind)
            or pa.types.is_large_string(kind)):  # fmt: skip
        raise InputError(where, f"column 'lang' of type {kind}", "languages as strings")
    if views or pa.types.is_null(kind):
        return column.to_pylist()
    out: list[str | None] = []
    for chunk in column.chunks:  # few languages, many rows: spelled out by place
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        words = np.array([*coded.dictionary.to_pylist(), None], object)
        out += words[np.asarray(coded.indices.cast(pa.int64()).fill_null(-1))].tolist()
    return out


def _repeats(table: pa.Table, where: str) -> list[int | None]:
    """The repeat of every trace, which fits int16."""
    kind = table.schema.field("repeat").type
    if not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputError(where, f"column 'repeat' of type {kind}", "repeats as integers from 0")
    out: list[int | None] = table["repeat"].to_pylist()
    known = {value for value in set(out) if value is not None}
    if known and not (min(known) >= 0 and max(known) < 2**15):
        row = next(i for i, v in enumerate(out) if v is not None and not 0 <= v < 2**15)
        raise InputError(where, f"repeat {out[row]}", "a number from 0 to 32767", row=row + 1)
    return out


def _groups_of(labels: Labels, found: I64, lang: I64, groups: I64, n_langs: int) -> tuple[I64, Any]:
    """The group of each trace, -1 for none; and which take the only language of their case.

    Parameters
    ----------
    found, lang : (n,), codes of case and language of each trace.
    groups : (n_groups,), codes of the languages of the groups, all 0 where they know none.
    """
    top = int(max(found.max(initial=-1), labels.case_of.max(initial=-1))) + 1
    counts = np.bincount(labels.case_of, minlength=top)
    only = np.full(top, -1, np.int64)
    only[labels.case_of] = np.arange(labels.case_of.size)
    alone = counts[found] == 1
    own = np.where(alone, groups[only[found]] if groups.size else 0, -1)
    keys = labels.case_of * n_langs + groups
    order = np.argsort(keys, kind="stable")
    wanted = found * n_langs + lang
    at = np.searchsorted(keys[order], wanted, side="right") - 1
    near = order[np.maximum(at, 0)] if order.size else at
    exact = np.where(
        (at >= 0) & (keys[near] == wanted) if order.size else np.zeros(at.size, np.bool_), near, -1
    )
    takes = alone & (lang == 0) & (own > 0)
    whole = alone & (own == 0)  # judged whatever the language
    return np.where(takes | whole, only[found], exact), takes


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
    none: list[str | None] = [None] * labels.case_of.size
    theirs = labels.lang_of or none
    (groups, ours), n_langs = _numbered([theirs, lang])
    label_of, takes = _groups_of(labels, found, ours, groups, n_langs)
    if takes.any():
        for row in np.flatnonzero(takes).tolist():
            lang[row] = theirs[label_of[row]]
        ours = np.where(takes, groups[label_of], ours)
    nth = np.zeros(n, np.int64)
    if "repeat" in names:
        nth = np.fromiter((0 if r is None else r + 1 for r in repeat), np.int64, n)
    first = _twice((found * n_langs + ours) * (2**15 + 1) + nth)
    if first is not None:
        row, other = first
        name = rows.case_ids.text(*rows.case_at[row].tolist())
        raise InputError(
            rows.where, f"case {name!r}, language {lang[row]!r}, repeat {repeat[row]!r} stands "
            f"twice (row {other + 1} too)", "one row for each case, language and repeat",
            "number the repeats in the column `repeat`", row=row + 1,
        )  # fmt: skip
    top = int(max(found.max(initial=-1), labels.case_of.max(initial=-1))) + 1
    present = np.zeros(top, np.bool_)
    present[found[label_of >= 0]] = True
    lost = np.flatnonzero(~present[labels.case_of])
    state = np.zeros(n + lost.size, np.int8)
    gone = np.asarray(rows.missing, np.int64)
    failed = np.asarray(table["error"].is_valid()) if "error" in names else np.zeros(n, np.bool_)
    state[gone] = np.where(failed[gone], np.int8(schema.FAILED), np.int8(schema.MISSING))
    label_of = np.concatenate([label_of, lost])
    judged = (label_of >= 0) & (state == schema.OK)
    state[judged] = labels.status[label_of[judged]]
    segments, offsets = grouped(rows.segments, rows.trace_of, n + lost.size)
    absent = np.zeros(n + lost.size, np.bool_)
    absent[n:] = True
    case_of = np.concatenate([found, labels.case_of[lost]]).astype(np.int64)
    lang += [theirs[g] for g in lost.tolist()]
    row_of = np.concatenate([np.arange(n), np.full(lost.size, -1)]).astype(np.int64)
    return Rankings(
        segments, offsets, label_of, case_of, lang, repeat + [None] * lost.size, state, absent,
        row_of,
    )  # fmt: skip
