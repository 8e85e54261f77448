"""Ranked measures where labels are items that chunks contain: several a chunk, several chunks each.

What is relevant is then counted in three ways, and each is a list of hits as `measures` takes
them: *chunks*, the retrieved chunks that cover an item, for precision; *items*, each at the rank
where it is first covered, for recall; and *gains*, chunks with the highest grade of the items that
they cover first, for gain (a chunk that brings nothing new earns nothing). The ideal is over items.
Measures that need two of these are here. Where every item has one chunk and every chunk one item,
all lists are the same, and so is every bit of every value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ragcore_kernels import measures as plain
from ragcore_kernels._jit import kernel
from ragcore_kernels.gains import log2_of
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.measures import CUTOFF, KIND, REL
from ragcore_kernels.ranking import FINE, N_HITS, N_JUDGED, N_RET, PROBLEM

CHUNKS, ITEMS, GAINS, BOTH, NEITHER = range(5)
"""Hits that a measure reads; NEITHER: it has no meaning over such labels."""

_ITEMS = (plain.R, plain.SET_R, plain.NUM_REL, plain.NUM_REL_RET, plain.BPREF)
_GAINS = (plain.NDCG, plain.ERR, plain.RBP)
_BOTH = (
    plain.AP, plain.R_CAPPED, plain.SET_F, plain.SET_AP, plain.UTILITY, plain.IPREC, plain.BIN_G,
)  # fmt: skip

NOTHING_NEW = -1
"""Grade of a chunk that covers no item for the first time."""

AP, R_CAPPED, SET_F = plain.AP, plain.R_CAPPED, plain.SET_F
SET_AP, UTILITY, IPREC, BIN_G = plain.SET_AP, plain.UTILITY, plain.IPREC, plain.BIN_G


def space_of(kind: int) -> int:
    """Which hits the measure `kind` of `measures` reads."""
    for space, kinds in ((ITEMS, _ITEMS), (GAINS, _GAINS), (BOTH, _BOTH)):
        if kind in kinds:
            return space
    return NEITHER if kind == plain.INFAP else CHUNKS


@kernel
def spread(
    begin: int, end: int, label_of: I64, hit_offsets: I64, hit_ranks: Any, hit_chunks: Any,
    stats: I64, chunks: I64, held: I64, holds: I64, items: I64, grades: Any, condense: int,
    depth: int, room: I64, ranks: Any, best: Any, fresh: Any, item_ranks: Any, item_grades: Any,
    chunk_stats: I64, item_stats: I64,
) -> None:  # fmt: skip
    """The three lists of hits of each ranking, out of the chunks that it retrieved.

    Parameters
    ----------
    begin, end : rankings to do.
    label_of : (n,), case of each ranking, -1 for none.
    hit_offsets, hit_ranks, hit_chunks, stats : as `ranking.find_hits` filled them, the grade of a
        hit being the place of its chunk among the chunks of the case.
    chunks : (n_cases + 1,), chunks that cover an item of each case.
    held, holds : (n_chunks + 1,) and flat, items of the case that each chunk contains, from 0.
    items, grades : (n_cases + 1,) and flat, items of each case and their grades.
    condense : 1 to leave out chunks without a judged item and number ranks anew, 0 to keep all.
    depth : with `condense`, ranks kept of every ranking; 0 = all.
    room : (n + 1,), where the items of each ranking go.
    ranks, best, fresh : (hit_offsets[-1],) int32, filled: rank of each hit, highest grade that it
        covers, highest grade that it covers first.
    item_ranks, item_grades : (room[-1],) int32, filled: items found, by rank, then grade falling.
    chunk_stats, item_stats : as `stats`, filled for `measures.evaluate`.
    """
    most = np.int64(1)
    for t in range(begin, end):
        most = max(most, room[t + 1] - room[t])
    seen = np.zeros(most, np.int8)
    for t in range(begin, end):
        c = label_of[t]
        n, found, judged = np.int64(0), np.int64(0), np.int64(0)
        if c >= 0 and stats[t, PROBLEM] == FINE:
            for i in range(items[c + 1] - items[c]):
                seen[i] = 0
                judged += grades[items[c] + i] >= 0
            for j in range(hit_offsets[t], hit_offsets[t] + stats[t, N_HITS]):
                chunk = chunks[c] + hit_chunks[j]
                top, new = np.int64(-(1 << 31)), np.int64(NOTHING_NEW)
                for h in range(held[chunk], held[chunk + 1]):
                    top = max(top, np.int64(grades[items[c] + holds[h]]))
                if condense and (top < 0 or (depth > 0 and hit_ranks[j] > depth)):
                    continue
                rank = np.int64(hit_ranks[j])
                if condense:
                    rank = n + 1
                for h in range(held[chunk], held[chunk + 1]):
                    item = holds[h]
                    if seen[item]:
                        continue
                    seen[item] = 1
                    grade = np.int64(grades[items[c] + item])
                    new = max(new, grade)
                    k = room[t] + found
                    while k > room[t] and item_ranks[k - 1] == rank and item_grades[k - 1] < grade:
                        item_ranks[k] = item_ranks[k - 1]
                        item_grades[k] = item_grades[k - 1]
                        k -= 1
                    item_ranks[k] = rank
                    item_grades[k] = grade
                    found += 1
                ranks[hit_offsets[t] + n] = rank
                best[hit_offsets[t] + n] = top
                fresh[hit_offsets[t] + n] = new
                n += 1
        for field in range(stats.shape[1]):
            chunk_stats[t, field] = stats[t, field]
            item_stats[t, field] = stats[t, field]
        chunk_stats[t, N_HITS] = n
        item_stats[t, N_HITS] = found
        chunk_stats[t, N_JUDGED] = judged
        item_stats[t, N_JUDGED] = judged
        if condense:
            chunk_stats[t, N_RET] = n
            item_stats[t, N_RET] = n


@kernel
def evaluate(
    spec: I64, params: F64, depth: int, begin: int, end: int, label_of: I64, hit_offsets: I64,
    ranks: Any, best: Any, stats: I64, room: I64, item_ranks: Any, item_grades: Any,
    item_stats: I64, items: I64, ideal: Any, out: F64, parts: F64,
) -> None:  # fmt: skip
    """The measures of the rankings `begin` to `end` that read both chunks and items.

    Parameters
    ----------
    spec, params, depth : as `measures.evaluate` takes them.
    label_of : (n,), case of each ranking, or -1.
    hit_offsets, ranks, best, stats : chunks of each ranking, as `spread` filled them.
    room, item_ranks, item_grades, item_stats : items of each ranking, likewise.
    items, ideal : (n_cases + 1,) and int32, the judged grades of the items of each case, falling.
    out, parts : as `measures.evaluate` fills them.

    Notes
    -----
    AP is the mean over items of the precision where an item is first covered. Interpolated
    precision is the highest from the rank on where enough items are covered. Recall over min(k,
    relevant) is 1 at most, however many items a chunk covers.
    """
    deepest = np.int64(0)
    for t in range(begin, end):
        deepest = max(deepest, stats[t, N_RET])
    logs = np.empty(min(deepest, np.int64(4096)) + 3, np.float64)
    logs[0] = 0.0
    for i in range(1, logs.size):
        logs[i] = math.log2(float(i))
    none = math.nan
    for m in range(spec.shape[0]):
        kind, rel = spec[m, KIND], spec[m, REL]
        k = spec[m, CUTOFF] if spec[m, CUTOFF] > 0 else np.int64(1) << 62
        for t in range(begin, end):
            c = label_of[t]
            value, top, bottom = none, none, none
            if c < 0 or stats[t, PROBLEM] != FINE:
                out[m, t] = none
                continue
            n_ret = stats[t, N_RET]
            if depth > 0:
                n_ret = min(n_ret, depth)
            n_rel = 0
            for i in range(items[c], items[c] + stats[t, N_JUDGED]):
                n_rel += ideal[i] >= rel
            reach = min(k, n_ret)
            base, stop = hit_offsets[t], hit_offsets[t] + stats[t, N_HITS]
            first, last = room[t], room[t] + item_stats[t, N_HITS]
            useful, found = np.int64(0), np.int64(0)  # chunks and items in the first k ranks
            for j in range(base, stop):
                useful += best[j] >= rel and ranks[j] <= reach
            for j in range(first, last):
                found += item_grades[j] >= rel and item_ranks[j] <= reach
            if kind == UTILITY:
                value = (
                    params[m, 0] * useful
                    + params[m, 1] * (n_ret - useful)
                    + params[m, 2] * (n_rel - found)
                )
            elif n_rel == 0:
                bottom = 0.0
            elif kind == R_CAPPED:
                cap = min(k if spec[m, CUTOFF] > 0 else n_ret, n_rel)
                top, bottom = float(min(found, cap)), float(cap)
                value = top / bottom if cap > 0 else 0.0
            elif kind == SET_F:
                value = 0.0
                if useful > 0:
                    p, r = useful / n_ret, found / n_rel
                    value = (params[m, 0] + 1.0) * p * r / (params[m, 0] * p + r)
            elif kind == SET_AP:
                value = 0.0
                if n_ret > 0:
                    top = float(useful) * float(found)
                    bottom = float(n_ret) * float(n_rel)
                    value = top / bottom
            elif kind == IPREC:
                value = 0.0
                cut = np.int64(math.floor(params[m, 0] * n_rel + 0.5))
                if cut <= found:
                    begins, got = np.int64(0), np.int64(0)
                    for j in range(first, last):
                        if got < cut and item_grades[j] >= rel:
                            got += 1
                            begins = np.int64(item_ranks[j])
                    got = 0
                    for j in range(base, stop):
                        if best[j] >= rel and ranks[j] <= reach:
                            got += 1
                            if ranks[j] >= begins:
                                value = max(value, got / ranks[j])
            elif kind in (AP, BIN_G):
                total = 0.0
                got, j = np.int64(0), base
                for i in range(first, last):
                    if item_ranks[i] > reach:
                        break
                    if item_grades[i] < rel:
                        continue
                    while j < stop and ranks[j] <= item_ranks[i]:  # ends with the item's own
                        got += best[j] >= rel
                        j += 1
                    if kind == AP:
                        total += got / item_ranks[i]
                    else:
                        total += 1.0 / log2_of(logs, item_ranks[i] - got + 2)
                value, top, bottom = total / n_rel, total, float(n_rel)
            out[m, t] = value
            if parts.shape[2]:
                parts[0, m, t], parts[1, m, t] = top, bottom
