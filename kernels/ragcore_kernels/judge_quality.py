"""How good a judge's verdicts are against a human's: of whole responses, and of spans in them.

As in RAGTruth: a response is positive if it has a fault, so that recall is the share of faulty
responses that the judge found; and a span counts by its characters, those of all responses
together. A judge may find most faulty responses and still miss where the fault is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.checks import code_column
from ragcore_kernels.layout import check_csr

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_MAX_PLACE = 1 << 40  # so that lengths of all spans together stay below 2**63


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


# --- responses


@dataclass(frozen=True)
class Confusion:
    """Counts of a judge's binary verdicts by a human's; positive means that a fault was found.

    Parameters
    ----------
    tp, fp, fn, tn : true and false positives, false and true negatives.
    n_missing : responses that the judge or the human gave no verdict on; in no other count.
    """

    tp: int
    fp: int
    fn: int
    tn: int
    n_missing: int

    @property
    def n(self) -> int:
        """Responses with both verdicts."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def precision(self) -> float:
        """Share of the judge's positives that the human shares; nan without any."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """Sensitivity: share of the human's positives that the judge found; nan without any."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float:
        """Share of the human's negatives that the judge left alone; nan without any."""
        return _ratio(self.tn, self.tn + self.fp)

    @property
    def f1(self) -> float:
        """``2 tp / (2 tp + fp + fn)``; nan if neither has a positive."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def prevalence(self) -> float:
        """Share of positives by the human; nan without responses."""
        return _ratio(self.tp + self.fn, self.n)


def confusion(judge: ArrayLike, human: ArrayLike) -> Confusion:
    """Count verdicts on the same responses.

    Parameters
    ----------
    judge, human : (n,), 1 for positive (a fault), 0 for negative, -1 for no verdict.

    Raises
    ------
    ValueError
        If a verdict is none of these, or the lengths differ.
    """
    first = code_column("judge", judge, -1, 2)
    second = code_column("human", human, -1, 2)
    if first.size != second.size:
        raise ValueError(f"{first.size} verdicts of the judge, {second.size} of the human")
    both = (first >= 0) & (second >= 0)
    tn, fn, fp, tp = np.bincount(2 * first[both] + second[both], minlength=4).tolist()
    return Confusion(tp, fp, fn, tn, int(np.count_nonzero(~both)))


# --- spans


@dataclass(frozen=True)
class Spans:
    """Lists of spans, one list for each response; make them with `spans_of`.

    Parameters
    ----------
    offsets : (n + 1,); response i has the spans from ``offsets[i]`` to ``offsets[i + 1]``.
    starts, ends : places in the text in code points, the end exclusive; by start within a
        response.
    """

    offsets: I64
    starts: I64
    ends: I64


def spans_of(offsets: ArrayLike, starts: ArrayLike, ends: ArrayLike) -> Spans:
    """Checked spans, sorted within each response.

    Parameters
    ----------
    offsets, starts, ends : as in `Spans`, in any order; spans may overlap, and may be empty.

    Raises
    ------
    ValueError
        If offsets do not fit, a place is below 0, or a span ends before it starts.
    """
    bounds = code_column("offsets", offsets, 0, _MAX_PLACE)
    first = code_column("starts", starts, 0, _MAX_PLACE)
    last = code_column("ends", ends, 0, _MAX_PLACE)
    if first.size != last.size:
        raise ValueError(f"{first.size} starts and {last.size} ends; expected as many")
    check_csr(bounds, first.size)
    wrong = np.flatnonzero(last < first)
    if wrong.size:
        at = int(wrong[0])
        raise ValueError(f"span {at} ends at {last[at]}, before its start {first[at]}")
    response = np.repeat(np.arange(bounds.size - 1), np.diff(bounds))
    order = np.lexsort((first, response))
    return Spans(bounds, first[order], last[order])


@inline
def _next(starts: I64, ends: I64, at: int, stop: int) -> Any:
    """Union of the spans from `at` on that touch; start, end, and the first span after them."""
    start, end = starts[at], ends[at]
    at += 1
    while at < stop and starts[at] <= end:
        end = max(end, ends[at])
        at += 1
    return start, end, at


@inline
def _covered(starts: I64, ends: I64, at: int, stop: int) -> int:
    """Places in any of the spans."""
    total = np.int64(0)
    while at < stop:
        start, end, at = _next(starts, ends, at, stop)
        total += end - start
    return total


@kernel
def overlap_spans(
    first: I64, first_starts: I64, first_ends: I64,
    second: I64, second_starts: I64, second_ends: I64,
    begin: int, end: int, out: I64,
) -> None:  # fmt: skip
    """Characters in the spans of one, of another, and of both, for each response.

    Parameters
    ----------
    first, second : (n + 1,), offsets of either's lists.
    first_starts, first_ends, second_starts, second_ends : places, by start within a response.
    begin, end : responses to do.
    out : (n, 3), rows from `begin` to `end` are filled: first, second, both. A character in
        several spans of one list counts once.
    """
    for q in range(begin, end):
        a, a_stop = first[q], first[q + 1]
        b, b_stop = second[q], second[q + 1]
        out[q, 0] = _covered(first_starts, first_ends, a, a_stop)
        out[q, 1] = _covered(second_starts, second_ends, b, b_stop)
        both = np.int64(0)
        if a < a_stop and b < b_stop:
            a_start, a_end, a = _next(first_starts, first_ends, a, a_stop)
            b_start, b_end, b = _next(second_starts, second_ends, b, b_stop)
            while True:
                both += max(min(a_end, b_end) - max(a_start, b_start), 0)
                if a_end <= b_end:
                    if a == a_stop:
                        break
                    a_start, a_end, a = _next(first_starts, first_ends, a, a_stop)
                else:
                    if b == b_stop:
                        break
                    b_start, b_end, b = _next(second_starts, second_ends, b, b_stop)
        out[q, 2] = both


@dataclass(frozen=True)
class SpanQuality:
    """Characters that a judge and a human marked.

    Parameters
    ----------
    judge, human, both : (n,), characters of each response in the judge's spans, in the human's,
        and in both.
    responses : the same at response level; positive is a response with any span at all.
    """

    judge: I64
    human: I64
    both: I64
    responses: Confusion

    @property
    def precision(self) -> float:
        """Share of the judge's characters that the human marked, all responses together."""
        return _ratio(int(self.both.sum()), int(self.judge.sum()))

    @property
    def recall(self) -> float:
        """Share of the human's characters that the judge marked, all responses together."""
        return _ratio(int(self.both.sum()), int(self.human.sum()))

    @property
    def f1(self) -> float:
        """``2 both / (judge + human)``, all responses together; nan if nothing is marked."""
        return _ratio(2 * int(self.both.sum()), int(self.judge.sum() + self.human.sum()))

    @property
    def precisions(self) -> F64:
        """(n,), precision of each response; nan where the judge marked nothing."""
        return _ratios(self.both, self.judge)

    @property
    def recalls(self) -> F64:
        """(n,), recall of each response; nan where the human marked nothing."""
        return _ratios(self.both, self.human)

    @property
    def f1s(self) -> F64:
        """(n,), F1 of each response; nan where neither marked anything."""
        return _ratios(2 * self.both, self.judge + self.human)


def _ratios(parts: I64, wholes: I64) -> F64:
    out = np.full(parts.size, math.nan)
    np.divide(parts, wholes, out=out, where=wholes > 0)
    return out


def span_quality(judge: Spans, human: Spans) -> SpanQuality:
    """Compare a judge's spans with a human's on the same responses, character by character.

    Parameters
    ----------
    judge, human : from `spans_of`, of as many responses. A response without spans is one where
        no fault was found; leave out those that were not judged.

    Raises
    ------
    ValueError
        If they are of different numbers of responses.

    References
    ----------
    Niu et al., RAGTruth, 2024.
    """
    n = judge.offsets.size - 1
    if human.offsets.size - 1 != n:
        raise ValueError(f"{n} responses of the judge, {human.offsets.size - 1} of the human")
    out = np.zeros((n, 3), np.int64)
    overlap_spans(
        judge.offsets, judge.starts, judge.ends, human.offsets, human.starts, human.ends,
        np.int64(0), np.int64(n), out,
    )  # fmt: skip
    found, wanted = np.diff(judge.offsets) > 0, np.diff(human.offsets) > 0
    return SpanQuality(out[:, 0], out[:, 1], out[:, 2], confusion(found, wanted))
