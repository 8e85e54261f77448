"""Several ranked lists of a case become one: reciprocal ranks, or sums of normalised scores.

Every list is read whole, and the fused list is cut once, at the end.

* `RRF`: the sum of w_c / (k + rank_c) over the lists c that hold the document, ranks from 1.
* `COMBSUM`: the sum of w_c * n_c over them, n_c the normalised score.
* `COMBMNZ`: that sum times the number of lists that hold the document.

A normalised score is at least 0, and a document that a list lacks adds nothing, so no list pushes
a document that it holds below one that it lacks:

* `normalised.MIN_MAX`: (s - min) / (max - min).
* `normalised.Z_SCORE`: (s - min) / sd, sd the population's; which is the z-score less the list's
  least one, so that a document that the list lacks counts as its last.
* `normalised.RANK`: 1 - (rank - 1) / n.

The first two are 1 throughout for a list whose scores are all equal.

Order: fused score, then best single rank, then id descending byte-wise. Fused scores are correctly
rounded sums (of reciprocals good to 106 bits): the order of the lists cannot change a bit, and
documents whose sums are equal as fractions tie. A document that stands twice in a list keeps its
best place, and ranks close up behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.few import add_pair, exact_few, quotients, settled
from ragcore_kernels.ids import same_id
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.leaders import sort_entries
from ragcore_kernels.lists import FINE, INFINITE_SCORE, load_list, rank_order
from ragcore_kernels.normalised import normalise
from ragcore_kernels.overlap import agreement
from ragcore_kernels.rows import power_above

METHODS = ("rrf", "combsum", "combmnz")
RRF, COMBSUM, COMBMNZ = range(3)
I32 = NDArray[np.int32]

SETTINGS = ("method", "normalise", "depth", "agree_depth", "keep_lists")
METHOD, NORMALISE, DEPTH, AGREE_DEPTH, KEEP_LISTS = range(5)
"""Integers of a fusion: how; where to cut the fused list; depth of the agreement of lists, 0 for
none; whether the lists are wanted again."""
PROBLEM, PROBLEM_LIST, PROBLEM_ROW, RANKED_BYTES, LIST_BYTES, RANKED_ROWS, LIST_ROWS = range(7)
"""What `fuse_cases` leaves in its state."""
STATE_FIELDS = 7

_ONE = np.uint64(1)
_UNRANKED = 0xFFFFFFFF  # the best rank, less 1, of a document without one
_LEAST = 1e-300


def reciprocals(weights: Any, k: float, longest: int) -> tuple[F64, F64]:
    """w_c / (k + rank) for every list and rank, as pairs of doubles; rank 0 is not used.

    Parameters
    ----------
    weights : (n_lists,), each 0 or between 1e-100 and 1e100.
    k : 0 or more.
    longest : the greatest rank.

    Returns
    -------
    Two arrays (n_lists, longest + 1).
    """
    high = np.zeros((len(weights), longest + 1))
    low = np.zeros_like(high)
    divisors = k + np.arange(1.0, longest + 1.0)
    for c, weight in enumerate(weights):
        high[c, 1:], low[c, 1:] = quotients(float(weight), divisors)
    return high, low


@inline
def _add_list(ranks: Any, n: int, high: F64, low: F64, tops: F64, rests: F64, best: I64) -> None:
    """Add w / (k + rank) of one list to n documents, rank 0 (and so nothing) where it lacks one."""
    for e in range(n):
        rank = np.int64(ranks[e])
        tops[e], rests[e] = add_pair(tops[e], rests[e], high[rank], low[rank])
        best[e] = min(best[e], (rank - 1) & _UNRANKED)


@inline
def _add_terms(ranks: Any, n: int, terms: F64, tops: F64, rests: F64, best: I64) -> None:
    """Add the normalised scores of one list to n documents, 0 where it lacks one."""
    for e in range(n):
        tops[e], rests[e] = add_pair(tops[e], rests[e], terms[e], 0.0)
        best[e] = min(best[e], (np.int64(ranks[e]) - 1) & _UNRANKED)


@inline
def _settle(
    ranks: Any, n: int, high: F64, low: F64, terms: Any, method: int, tops: F64, rests: F64,
    keys: F64, parts: F64, partials: F64,
) -> None:  # fmt: skip
    """Turn pairs into correctly rounded fused scores (in `tops`), and into keys of the order."""
    n_lists = ranks.shape[0]
    once = n_lists == 2 and method != RRF  # one addition, rounded once
    for e in range(n):
        if once or settled(tops[e], rests[e], n_lists):
            tops[e] += rests[e]
            continue
        used = np.int64(0)
        for c in range(n_lists):
            if method == RRF:
                parts[used] = high[c, ranks[c, e]]
                parts[used + 1] = low[c, ranks[c, e]]
                used += 2
            else:
                parts[used] = terms[c, e]
                used += 1
        tops[e] = exact_few(parts, used, partials)
    if method == COMBMNZ:
        for e in range(n):
            held = np.int64(0)
            for c in range(n_lists):
                held += ranks[c, e] > 0
            tops[e] *= held
    for e in range(n):
        keys[e] = 1.0 / max(tops[e], _LEAST) if method == RRF else -tops[e]


@inline
def _agree(
    members: I64, starts: I64, ranks: Any, n_lists: int, k: int, p: float, common: I64, out: Any,
) -> None:  # fmt: skip
    """`overlap.agreement` of every pair of lists (0, 1), (0, 2), ... (1, 2), ..."""
    pair = np.int64(0)
    for a in range(n_lists):
        n_a = min(starts[a + 1] - starts[a], k)
        for b in range(a + 1, n_lists):
            n_b = min(starts[b + 1] - starts[b], k)
            for d in range(max(n_a, n_b) + 1):
                common[d] = 0
            for i in range(n_a):
                rank = np.int64(ranks[b, members[starts[a] + i]])
                if 0 < rank <= n_b:
                    common[max(rank, i + 1)] += 1
            agreement(common, n_a, n_b, k, p, out[pair])
            pair += 1


@kernel
def fuse_cases(
    table: I64,
    sources: I64,
    segments: I64,
    offsets: I64,
    recorded: I64,
    weights: F64,
    high: F64,
    low: F64,
    settings: I64,
    persistence: float,
    begin: int,
    end: int,
    counts: I64,
    ends: I32,
    places: I64,
    scores: F64,
    lengths: I64,
    list_ends: I32,
    list_places: I64,
    list_scores: F64,
    agreements: Any,
    state: I64,
) -> None:
    """Fuse the lists of the cases `begin` to `end`.

    Parameters
    ----------
    table, sources, segments : pieces and segments of all lists; see `layout` and `rows`.
    offsets : (n_cases * n_lists + 1,), list c of case q owns the segments
        ``offsets[q * n_lists + c]`` to the next.
    recorded : (n_lists,), 1 where the order of rows is the rank, else score and id make it.
    weights : (n_lists,); high, low : `reciprocals` for RRF, else (1, 1).
    settings : (5,), see `SETTINGS`; persistence : of rank-biased overlap.
    counts : (n_cases,), filled: documents of the fused list of each case.
    ends, places, scores : (rows + 1,), (rows, 2), (rows,) for the fused lists one after the other,
        filled from 0: Arrow offsets of their ids, where each id lies, fused scores. `rows` is at
        most the rows of these cases, and what `settings` cut off.
    lengths : (n_cases * n_lists, 2), filled: distinct documents of every list, and rows dropped
        since their document stood above.
    list_ends, list_places, list_scores : the same as for fused lists, of the input lists in rank
        order, one after the other; (0 or more,) where they are not kept.
    agreements : (n_cases, n_pairs, 3), filled where wanted; see `overlap.agreement`.
    state : (7,), filled: the problem and its list and row, bytes of ids and rows of both kinds.
        After a problem the rest means nothing. Bytes beyond int32 leave ends that wrapped.
    """
    n_lists = recorded.size
    method, how = settings[METHOD], settings[NORMALISE]
    most = np.int64(0)
    for q in range(begin, end):
        rows = np.int64(0)
        for s in range(offsets[q * n_lists], offsets[(q + 1) * n_lists]):
            rows += segments[s, 2]
        most = max(most, rows)
    slots = np.zeros(power_above(2 * most + 2), np.int32)
    row_places, row_scores = np.empty((most, 2), np.int64), np.empty(most)
    row_hashes = np.empty(most, np.uint64)
    order, spare = np.empty(most, np.int64), np.empty(most, np.int64)
    entries = np.empty((most, 2), np.int64)
    entry_hashes = np.empty(most, np.uint64)
    ranks = np.empty((n_lists, most), np.int32)
    terms = np.empty((n_lists, most if method != RRF else np.int64(0)))
    members, raw, scaled = np.empty(most, np.int64), np.empty(most), np.empty(most)
    totals, rests, keys = np.empty(most), np.empty(most), np.empty(most)
    best = np.empty(most, np.int64)
    cuts = np.empty(power_above(most) + 1, np.int32)
    starts = np.zeros(n_lists + 1, np.int64)
    parts, partials = np.empty(2 * n_lists), np.empty(2 * n_lists + 1)
    common = np.empty(min(most, settings[AGREE_DEPTH]) + 1, np.int64)
    for i in range(state.size):
        state[i] = 0
    ends[0] = 0
    list_ends[0] = 0
    n_ranked, n_listed = np.int64(0), np.int64(0)
    ranked_bytes, list_bytes = np.int64(0), np.int64(0)
    for q in range(begin, end):
        rows = np.int64(0)
        for s in range(offsets[q * n_lists], offsets[(q + 1) * n_lists]):
            rows += segments[s, 2]
        size = power_above(2 * rows + 2)
        mask = np.uint64(size - 1)
        for i in range(size):
            slots[i] = 0
        for c in range(n_lists):
            for i in range(rows):
                ranks[c, i] = 0
        n = np.int64(0)
        for c in range(n_lists):
            t = q * n_lists + c
            n_rows, problem, row = load_list(
                table, sources, segments, offsets[t], offsets[t + 1], row_places, row_hashes,
                row_scores,
            )  # fmt: skip
            if problem != FINE:
                state[PROBLEM], state[PROBLEM_LIST], state[PROBLEM_ROW] = problem, t, row
                return
            rank_order(row_places, row_scores, n_rows, recorded[c], order, spare)
            at, first = starts[c], starts[c]
            for i in range(n_rows):
                row = order[i]
                a, a_size, h = row_places[row, 0], row_places[row, 1], row_hashes[row]
                slot = h & mask
                e = np.int64(slots[slot]) - 1
                while e >= 0:
                    if entry_hashes[e] == h and same_id(a, a_size, entries[e, 0], entries[e, 1]):
                        break
                    slot = (slot + _ONE) & mask
                    e = np.int64(slots[slot]) - 1
                if e < 0:
                    e = n
                    n += 1
                    slots[slot] = n
                    entries[e, 0] = a
                    entries[e, 1] = a_size
                    entry_hashes[e] = h
                elif ranks[c, e] > 0:
                    continue
                members[at] = e
                raw[at] = row_scores[row]
                at += 1
                ranks[c, e] = at - first
            starts[c + 1] = at
            lengths[t, 0] = at - first
            lengths[t, 1] = n_rows - (at - first)
            if method == RRF:
                continue
            if not normalise(raw, first, at, weights[c], how, scaled):
                row = table[segments[offsets[t], 0], 7] + segments[offsets[t], 1]
                state[PROBLEM], state[PROBLEM_LIST], state[PROBLEM_ROW] = INFINITE_SCORE, t, row
                return
            for i in range(rows):
                terms[c, i] = 0.0
            for i in range(first, at):
                terms[c, members[i]] = scaled[i]
        for e in range(n):
            totals[e] = 0.0
            rests[e] = 0.0
            best[e] = _UNRANKED
        for c in range(n_lists):
            if method == RRF:
                _add_list(ranks[c], n, high[c], low[c], totals, rests, best)
            else:
                _add_terms(ranks[c], n, terms[c], totals, rests, best)
        _settle(ranks, n, high, low, terms, method, totals, rests, keys, parts, partials)
        wanted = min(n, settings[DEPTH])
        sort_entries(entries, totals, best, n, wanted, keys, cuts, rests, order, spare)
        for i in range(wanted):
            e = order[i]
            places[n_ranked, 0] = entries[e, 0]
            places[n_ranked, 1] = entries[e, 1]
            scores[n_ranked] = totals[e]
            ranked_bytes += entries[e, 1]
            n_ranked += 1
            ends[n_ranked] = np.int32(ranked_bytes & 0x7FFFFFFF)
        counts[q] = wanted
        if settings[KEEP_LISTS]:
            for i in range(starts[n_lists]):
                e = members[i]
                list_places[n_listed, 0] = entries[e, 0]
                list_places[n_listed, 1] = entries[e, 1]
                list_scores[n_listed] = raw[i]
                list_bytes += entries[e, 1]
                n_listed += 1
                list_ends[n_listed] = np.int32(list_bytes & 0x7FFFFFFF)
        if settings[AGREE_DEPTH]:
            _agree(
                members, starts, ranks, n_lists, settings[AGREE_DEPTH], persistence, common,
                agreements[q],
            )  # fmt: skip
    state[RANKED_BYTES], state[LIST_BYTES] = ranked_bytes, list_bytes
    state[RANKED_ROWS], state[LIST_ROWS] = n_ranked, n_listed
