"""Who judged: judges by name and version, and what each of them said of every item."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.formats.compute import pc
from ragcore.judges.codes import packed
from ragcore.judges.items import Items
from ragcore.judgments import Judgments
from ragcore.lists import integers, joined
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.layout import I64

CONFLICT = -2
"""Said by a judge that contradicts itself on an item."""
OPINIONS = 4
"""Verdicts below this are opinions: yes, partial, no, contradicts; unclear and error are none."""


@dataclass
class Judges:
    """Judges of a set of verdicts; each version is one of its own.

    Attributes
    ----------
    names : ``judge@version``, or ``judge`` where no version is told; ascending.
    plain : the name of each without its version.
    of : (n_verdicts,), which one gave each verdict.
    rung : (n_judges,), the lowest rung on which each gave a verdict.
    """

    names: list[str]
    plain: list[str]
    of: I64
    rung: I64

    def find(self, name: str) -> int:
        """The judge called `name`; the version may be left out if there is one only.

        Raises
        ------
        UsageError
            If there is none, with the nearest names, or if there are several versions.
        """
        if name in self.names:
            return self.names.index(name)
        own = [i for i, word in enumerate(self.plain) if word == name]
        if len(own) == 1:
            return own[0]
        if own:
            versions = ", ".join(self.names[i] for i in own)
            raise UsageError(f"judge {name!r} has {len(own)} versions", f"say one of {versions}")
        known = sorted({*self.names, *self.plain})
        near = difflib.get_close_matches(name, known, n=3) or self.names[:5]
        hint = f"did you mean {', '.join(near)}?" if near else "the files hold no verdict"
        raise UsageError(f"no verdict is of a judge {name!r}", hint)


@dataclass
class Views:
    """What judges said of items: one entry a judge and item.

    Attributes
    ----------
    judge, item : (k,); by judge, then item.
    said : (k,) int8, `kernel.YES` to `UNCLEAR` (which counts only where nothing else was said),
        `ERROR` if there is nothing but errors, `CONFLICT`.
    """

    judge: I64
    item: I64
    said: Any

    @property
    def decided(self) -> Any:
        """(k,) bool, entries that are opinions."""
        return (self.said >= 0) & (self.said < OPINIONS)

    def of(self, judge: int) -> tuple[I64, Any]:
        """Items and what was said of them by one judge, by item."""
        begin, end = np.searchsorted(self.judge, [judge, judge + 1])
        return self.item[begin:end], self.said[begin:end]


def judges_of(judgments: Judgments) -> Judges:
    """The judges of a set of verdicts."""
    n = len(judgments)
    version, words = np.full(n, -1, np.int64), []
    if "judge_version" in judgments.table.column_names and n:
        column = joined(judgments.table["judge_version"])
        if not pa.types.is_null(column.type):
            coded = pc.dictionary_encode(column)
            version, words = integers(coded.indices, n), coded.dictionary.to_pylist()
    names = judgments.names["judge"].to_pylist()
    _, first, inverse = np.unique(
        packed(judgments.judge, version), return_index=True, return_inverse=True
    )
    shown = [
        (names[j], "" if v < 0 else words[v])
        for j, v in zip(judgments.judge[first].tolist(), version[first].tolist(), strict=True)
    ]
    order = sorted(range(len(shown)), key=shown.__getitem__)
    place = np.zeros(len(order), np.int64)
    place[order] = np.arange(len(order))
    of = place[inverse] if n else np.zeros(0, np.int64)
    rung = np.full(len(order), len(schema.RUNGS), np.int64)
    np.minimum.at(rung, of, judgments.rung.astype(np.int64))
    listed = [shown[i] for i in order]
    full = [f"{name}@{v}" if v else name for name, v in listed]
    return Judges(full, [name for name, _ in listed], of, rung)


def views_of(items: Items, judges: Judges, rows: Any = None) -> Views:
    """What each judge said of each item, adjudications left out: they are no independent opinion.

    Parameters
    ----------
    rows : (n_verdicts,) bool, the verdicts that count; None for all.
    """
    given = items.judgments
    kept = ~given.adjudicated if rows is None else ~given.adjudicated & rows
    keep = kept[items.row]
    row, item = items.row[keep], items.item[keep]
    key = judges.of[row] * (len(items) + 1) + item
    keys, entry = np.unique(key, return_inverse=True)
    n = keys.size
    verdict = given.verdict[row]
    opinion = verdict < OPINIONS
    low, high = np.full(n, 127, np.int8), np.full(n, -128, np.int8)
    np.minimum.at(low, entry[opinion], verdict[opinion])
    np.maximum.at(high, entry[opinion], verdict[opinion])
    said = np.where(low == high, low, np.int8(CONFLICT)).astype(np.int8)
    none = high < 0
    least = np.full(n, 127, np.int8)  # unclear comes before error
    np.minimum.at(least, entry, verdict)
    said[none] = least[none]
    return Views(keys // (len(items) + 1), keys % (len(items) + 1), said)


def share_yes(verdict: Any) -> Any:
    """(n,) bool, verdicts that count in full: `partial` does not."""
    return verdict == kernel.YES
