"""Filters: which chunks a question may retrieve. Candidates change, statistics never do."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.errors import UsageError
from ragcore.formats.compute import pc
from ragcore.index.opened import Index
from ragcore.questions import Questions

VALID_AT, ACL = "valid_at", "acl"
_EPOCH = date(1970, 1, 1).toordinal()
_NEVER, _ALWAYS = np.iinfo(np.int32).max, np.iinfo(np.int32).min
Mask = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Filter:
    """One condition on chunks.

    Attributes
    ----------
    column : `valid_at`, `acl`, or a column of chunks.
    value : what the column must be; None = what the case has in its column of the same name.
    """

    column: str
    value: str | None = None

    @staticmethod
    def parse(text: str) -> Filter:
        """``valid_at``, ``acl``, ``COLUMN`` (as the case has it) or ``COLUMN=VALUE``.

        Raises
        ------
        UsageError
            If it is none of these.
        """
        column, equals, value = text.partition("=")
        if not column or (equals and column in (VALID_AT, ACL)):
            raise UsageError(
                f"filter {text!r} is not understood",
                "valid_at, acl, COLUMN (equal to the case's own) or COLUMN=VALUE",
            )
        return Filter(column, value if equals else None)

    def __str__(self) -> str:
        """As `parse` takes it."""
        return self.column if self.value is None else f"{self.column}={self.value}"


class Eligibility:
    """Masks of eligible chunks, one for each distinct combination of what filters look at.

    Attributes
    ----------
    notes : what was noticed: cases that a filter does not restrict, chunks without a value.
    """

    def __init__(self, index: Index, questions: Questions, filters: list[Filter]) -> None:
        self._index, self._filters = index, filters
        self._masks: dict[Hashable, Mask] = {}
        self.notes: list[str] = []
        self._keys: list[tuple[Hashable, ...]] = []
        asked = [self._asked(questions, each) for each in filters]
        if filters:
            self._keys = list(zip(*asked, strict=True))

    def mask(self, row: int) -> Mask | None:
        """Eligible chunks of question `row`, (n_chunks,), 1 or 0; None without filters."""
        if not self._filters:
            return None
        key = self._keys[row]
        if key not in self._masks:
            whole = np.ones(self._index.n_chunks, np.uint8)
            for one, value in zip(self._filters, key, strict=True):
                whole &= self._one(one, value)
            self._masks[key] = whole
        return self._masks[key]

    def groups(self, n: int) -> list[tuple[list[int], Mask | None]]:
        """Questions with one mask each, together."""
        if not self._filters:
            return [(list(range(n)), None)]
        together: dict[Hashable, list[int]] = {}
        for row, key in enumerate(self._keys):
            together.setdefault(key, []).append(row)
        return [(rows, self.mask(rows[0])) for rows in together.values()]

    def _asked(self, questions: Questions, one: Filter) -> list[Hashable]:
        """What a filter wants, question by question; None = it does not restrict this one."""
        wanted = {VALID_AT: ("valid_from", "valid_until"), ACL: ("acl",)}.get(
            one.column, (one.column,)
        )
        have = self._index.documents.column_names
        if not any(name in have for name in wanted):
            raise UsageError(
                f"filter {str(one)!r}: the chunks of {self._index.path} have no column "
                f"{' or '.join(wanted)}", f"they have {', '.join(have)}",
            )  # fmt: skip
        if one.value is not None:
            return [one.value] * len(questions)
        source = {VALID_AT: "as_of", ACL: "principals"}.get(one.column, one.column)
        values = questions.column(source)
        if values is None:
            raise UsageError(
                f"filter {str(one)!r}: {questions.where} has no column {source}",
                f"say {one.column}=VALUE, or add the column" if one.column not in (VALID_AT, ACL)
                else "add the column",
            )  # fmt: skip
        empty = sum(value is None for value in values)
        if empty and one.column == ACL:
            self.notes.append(
                f"filter acl: {empty} of {len(values)} cases have no principals: public chunks only"
            )
        elif empty:
            self.notes.append(
                f"filter {one}: {empty} of {len(values)} cases have no {source}: not restricted"
            )
        if one.column == ACL:
            return [frozenset(value or ()) for value in values]
        if one.column == VALID_AT:
            return [None if v is None else _day(v, questions.where) for v in values]
        return [None if v is None else _word(v) for v in values]

    def _one(self, one: Filter, value: Any) -> Mask:
        """Chunks that one filter lets through for one value."""
        key = (str(one), value)
        if key not in self._masks:
            self._masks[key] = self._computed(one, value)
        return self._masks[key]

    def _computed(self, one: Filter, value: Any) -> Mask:
        documents = self._index.documents
        if one.column == ACL:
            return _permitted(documents["acl"], value)
        if value is None:
            return np.ones(documents.num_rows, np.uint8)
        if one.column == VALID_AT:
            begin = _days(documents, "valid_from", _ALWAYS)
            end = _days(documents, "valid_until", _NEVER)
            return ((begin <= value) & (value < end)).astype(np.uint8)
        column = documents[one.column]
        words = column.to_pylist()
        absent = sum(word is None for word in words)
        note = f"filter {one.column}: {absent} of {len(words)} chunks have no value: not eligible"
        if absent and note not in self.notes:
            self.notes.append(note)
        if words and isinstance(next((w for w in words if w is not None), None), list):
            return np.array([value in map(_word, w or ()) for w in words], np.uint8)
        return np.array([w is not None and _word(w) == value for w in words], np.uint8)


def _word(value: Any) -> str:
    """A value as it is written in a filter."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _day(value: Any, where: str) -> int:
    """A date as days since 1970."""
    if not isinstance(value, date):
        raise UsageError(f"{where}: as_of {value!r} is no date", "write dates as date32")
    return date.toordinal(value) - _EPOCH


def _days(documents: pa.Table, name: str, absent: int) -> np.ndarray[Any, Any]:
    """A column of dates as days; `absent` where it is open."""
    if name not in documents.column_names:
        return np.full(documents.num_rows, absent, np.int64)
    days = documents[name].cast(pa.date32()).cast(pa.int32()).combine_chunks()
    filled = pc.fill_null(days, absent)
    return filled.to_numpy(zero_copy_only=False).astype(np.int64)


def _permitted(column: pa.ChunkedArray, principals: frozenset[str]) -> Mask:
    """Chunks that are public, or that one of the principals may see."""
    lists = column.to_pylist()
    return np.array([acl is None or not principals.isdisjoint(acl) for acl in lists], np.uint8)
