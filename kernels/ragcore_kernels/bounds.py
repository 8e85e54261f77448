"""Best, expected and worst value of every measure over the orders of tied scores.

Rows of one ranking with the same score form a *tie group*; each order inside a group is as
likely as any other. The largest and smallest value come from putting the hits of each group in
order of what they are worth to the measure; `expectations` has the means. What is cut off by a
depth is cut after the order is drawn, and unjudged rows are dropped after that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.expectations import expected, hypergeometric, infap_term
from ragcore_kernels.gains import gain
from ragcore_kernels.interpolation import tally
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.measures import (
    BPREF,
    CUTOFF,
    ERR,
    GAINS,
    INFAP,
    JUDGED,
    JUDGED_ONLY,
    KIND,
    NDCG,
    NUM_NONREL_RET,
    REL,
    UNJUDGED,
    measure,
)
from ragcore_kernels.order import survivors
from ragcore_kernels.ranking import (
    BY_SCORE,
    DROPPED,
    FINE,
    N_HITS,
    N_JUDGED,
    N_RET,
    PROBLEM,
    RISES,
)
from ragcore_kernels.rows import load_rows, power_above

BEST, EXPECTED, WORST = range(3)
"""Over the orders of tied scores: the largest value, the mean, the smallest."""


@kernel
def tie_groups(
    run: I64,
    run_scores: I64,
    run_segments: I64,
    run_offsets: I64,
    begin: int,
    end: int,
    order: int,
    policy: int,
    own: I64,
    hit_offsets: I64,
    hit_ranks: Any,
    stats: I64,
    firsts: Any,
    sizes: Any,
) -> None:
    """First rank and size of the tie group of every hit in rankings `begin` to `end`.

    Parameters
    ----------
    run, run_scores, run_segments, run_offsets, order : as `ranking.find_hits` takes them.
    policy, own : as `order.tidy` took them, for the rankings that it has mended.
    hit_offsets, hit_ranks, stats : as these have filled them.
    firsts, sizes : (hit_offsets[-1],) int32, filled as `hit_ranks`. In a recorded order nothing
        is tied: every hit is a group of its own.
    """
    deepest = np.int64(1)
    for t in range(begin, end):
        n = 0
        for s in range(run_offsets[t], run_offsets[t + 1]):
            n += run_segments[s, 2]
        deepest = max(deepest, n)
    hashes, scores = np.empty(deepest, np.uint64), np.zeros(deepest, np.float64)
    for t in range(begin, end):
        base, n_hits = hit_offsets[t], stats[t, N_HITS]
        if stats[t, PROBLEM] != FINE:
            continue
        if order != BY_SCORE:
            for j in range(base, base + n_hits):
                firsts[j], sizes[j] = hit_ranks[j], 1
            continue
        first, last = run_offsets[t], run_offsets[t + 1]
        n, _ = load_rows(run, run_scores, run_segments, first, last, hashes, scores)
        if stats[t, DROPPED] > 0:
            slots = np.empty(power_above(2 * n + 2), np.int64)
            kept, place = np.empty(n, np.int64), np.empty(n, np.int64)
            n = survivors(
                run, run_segments, first, last, n, hashes, scores, policy, own, t, slots, kept,
                place,
            )  # fmt: skip
            for i in range(n):
                scores[i] = scores[kept[i]]
        if stats[t, RISES] > 0:  # else they fall as they stand
            for i in range(n):
                scores[i] = -scores[i]
            scores[:n].sort()
        start, stop = np.int64(0), np.int64(0)  # of the group looked at last
        for j in range(base, base + n_hits):
            at = np.int64(hit_ranks[j]) - 1
            if at >= stop:
                start, stop = at, at + 1
                while start > 0 and scores[start - 1] == scores[at]:
                    start -= 1
                while stop < n and scores[stop] == scores[at]:
                    stop += 1
            firsts[j], sizes[j] = start + 1, stop - start


@inline
def worth(kind: int, mode: int, rel: int, grade: int, table: F64) -> float:
    """By what hits of a tie group are put in order; 0 is what a row without judgement is worth."""
    if kind == NDCG:
        return gain(mode, grade, table)
    if kind == ERR:
        return float(max(grade, 0))
    if kind == NUM_NONREL_RET:
        return 1.0 if 0 <= grade < rel else 0.0
    if kind in (JUDGED, UNJUDGED):
        return 1.0 if grade >= 0 else 0.0
    if grade >= rel:
        return 1.0
    return -1.0 if kind == BPREF and grade >= 0 else 0.0


@inline
def arrange(
    kind: int,
    mode: int,
    rel: int,
    table: F64,
    falling: bool,
    firsts: Any,
    sizes: Any,
    grades: Any,
    n: int,
    depth: int,
    keys: F64,
    new_ranks: Any,
    new_grades: Any,
) -> int:
    """Put the hits of each tie group in falling or rising order of worth; how many stay in depth.

    Writes their ranks and grades. Rows that are no hits come between what is worth more and
    what is worth less than they.
    """
    begin = 0
    while begin < n:
        end = begin
        while end < n and firsts[end] == firsts[begin]:
            key = worth(kind, mode, rel, grades[end], table)
            keys[end], new_grades[end] = (key if falling else -key), grades[end]
            end += 1
        gap = (end - begin) >> 1  # Shell sort, largest key first
        while gap > 0:
            for i in range(begin + gap, end):
                key, grade = keys[i], new_grades[i]
                j = i
                while j >= begin + gap and keys[j - gap] < key:
                    keys[j], new_grades[j] = keys[j - gap], new_grades[j - gap]
                    j -= gap
                keys[j], new_grades[j] = key, grade
            gap >>= 1
        for j in range(begin, end):
            new_ranks[j] = firsts[begin] + (j - begin)
            if keys[j] < 0.0:
                new_ranks[j] = firsts[begin] + sizes[begin] - (end - j)
        begin = end
    while n > 0 and new_ranks[n - 1] > depth:
        n -= 1
    return n


@inline
def extreme_infap(
    falling: bool, firsts: Any, sizes: Any, grades: Any, n: int, depth: int, rel: int, n_rel: int
) -> float:
    """Largest or smallest inferred AP.

    Documents in the pool that nobody judged may raise the estimate for what comes below them,
    so no order is best by itself. What a relevant document adds depends only on how many of
    each sort are above it: the best way through these counts is found step by step. Rows
    outside the pool only ever lower it, and come last, or first.
    """
    total = 0.0
    above, below, pool = 0, 0, 0
    begin = 0
    while begin < n:
        end, n_relevant, n_other, n_pool = tally(begin, firsts, grades, n, rel)
        rank = np.int64(firsts[begin])
        if not falling:
            rank += sizes[begin] - (end - begin)
        best = np.zeros((n_other + 1, n_pool + 1), np.float64)
        for i in range(n_relevant):
            for j in range(n_other + 1):
                for m in range(n_pool + 1):
                    here = best[j, m]
                    if rank + i + j + m <= depth:
                        here += infap_term(rank + i + j + m, above + i, below + j, pool + m)
                    if j > 0:
                        other = best[j - 1, m]
                        here = max(here, other) if falling else min(here, other)
                    if m > 0:
                        other = best[j, m - 1]
                        here = max(here, other) if falling else min(here, other)
                    best[j, m] = here
        total += best[n_other, n_pool]
        above, below, pool = above + n_relevant, below + n_other, pool + n_pool
        begin = end
    return total / n_rel


@kernel
def over_ties(
    spec: I64,
    params: F64,
    table: F64,
    which: I64,
    depth: int,
    limit: int,
    begin: int,
    end: int,
    label_of: I64,
    hit_offsets: I64,
    hit_grades: Any,
    firsts: Any,
    sizes: Any,
    ideal_offsets: I64,
    ideal: Any,
    stats: I64,
    plain: F64,
    out: F64,
) -> None:
    """Best, expected or worst value of the rankings `begin` to `end`.

    Parameters
    ----------
    spec, params, table, depth, label_of, ..., stats : as `measures.evaluate` takes them.
    which : (n_measures,), `BEST`, `EXPECTED` or `WORST` of each.
    limit : steps that one mean of interpolated precision may take; where it needs more, `out`
        is inf.
    firsts, sizes : as `tie_groups` filled them.
    plain : (n_measures, n_rankings), the values in the order that `measures.evaluate` saw.
    out : (n_measures, n_rankings), columns `begin` to `end` filled; NaN where `plain` is. Bit
        for bit the plain value where no hit is tied, and worst <= plain, expected <= best.
    """
    most, deepest = np.int64(1), np.int64(1)
    for t in range(begin, end):
        most = max(most, stats[t, N_JUDGED], stats[t, N_HITS])
        deepest = max(deepest, stats[t, N_RET])
    spare, keys = np.empty(most, np.float64), np.empty(most, np.float64)
    chances, draws = np.empty(most + 2, np.float64), np.empty(most + 2, np.float64)
    means = np.empty(deepest + 2, np.float64)
    new_ranks, new_grades = np.empty(most, np.int32), np.empty(most, np.int32)
    own_firsts, own_sizes = np.empty(most, np.int32), np.empty(most, np.int32)
    own_grades = np.empty(most, np.int32)
    logs = np.empty(2048, np.float64)
    logs[0] = 0.0
    for i in range(1, logs.size):
        logs[i] = math.log2(float(i))
    for t in range(begin, end):
        c, base, n_hits = label_of[t], hit_offsets[t], stats[t, N_HITS]
        tied = False
        if c >= 0 and stats[t, PROBLEM] == FINE:
            for j in range(base, base + n_hits):
                tied = tied or sizes[j] > 1
        n_ret = stats[t, N_RET]
        if depth > 0:
            n_ret = min(n_ret, depth)
        for m in range(spec.shape[0]):
            value = plain[m, t]
            out[m, t] = value
            if not tied or math.isnan(value):
                continue
            kind, rel, mode = spec[m, KIND], spec[m, REL], spec[m, GAINS]
            n_rel = 0
            while n_rel < stats[t, N_JUDGED] and ideal[ideal_offsets[c] + n_rel] >= rel:
                n_rel += 1
            # What can be seen: `low` to `high` rows more than `whole`, each with its chance.
            n, whole = 0, n_ret
            low, high = np.int64(0), np.int64(0)
            chances[0] = 1.0
            if spec[m, JUDGED_ONLY]:
                whole = np.int64(0)
            j = base
            while j < base + n_hits and firsts[j] <= n_ret:
                first, size = np.int64(firsts[j]), np.int64(sizes[j])
                start = n
                while j < base + n_hits and firsts[j] == first:
                    if not spec[m, JUDGED_ONLY] or hit_grades[j] >= 0:
                        own_grades[n], own_firsts[n], own_sizes[n] = hit_grades[j], first, size
                        n += 1
                    j += 1
                if spec[m, JUDGED_ONLY]:
                    for i in range(start, n):
                        own_firsts[i], own_sizes[i] = start + 1, n - start
                    if first + size - 1 > n_ret:
                        low, high = hypergeometric(size, n - start, n_ret - first + 1, chances)
                    else:
                        whole = np.int64(n)
            highest, lowest = value, value
            total, weight = 0.0, 0.0
            for more in range(low, high + 1):
                seen = whole + more
                top, bottom = value, value
                if kind == INFAP:
                    top = extreme_infap(
                        True, own_firsts, own_sizes, own_grades, n, seen, rel, n_rel
                    )
                    bottom = extreme_infap(
                        False, own_firsts, own_sizes, own_grades, n, seen, rel, n_rel
                    )
                else:
                    for falling in (True, False):
                        kept = arrange(
                            kind, mode, rel, table, falling, own_firsts, own_sizes, own_grades, n,
                            seen, keys, new_ranks, new_grades,
                        )  # fmt: skip
                        found, _, _ = measure(
                            kind, spec[m, CUTOFF], rel, mode, params[m, 0], params[m, 1],
                            params[m, 2], table, logs, new_ranks, new_grades, np.int64(0), kept,
                            seen, ideal, ideal_offsets[c], stats[t, N_JUDGED], spare,
                        )  # fmt: skip
                        if falling:
                            top = found
                        else:
                            bottom = found
                if math.isnan(top):
                    continue  # of nothing judged, no share is judged
                highest, lowest = max(highest, top, bottom), min(lowest, top, bottom)
                if which[m] == EXPECTED:
                    mean = expected(
                        kind, spec[m, CUTOFF], rel, mode, params[m, 0], params[m, 1],
                        params[m, 2], table, logs, own_firsts, own_sizes, own_grades, n, seen,
                        ideal, ideal_offsets[c], stats[t, N_JUDGED], n_rel, min(top, bottom),
                        max(top, bottom), limit, spare, draws, means, new_ranks, new_grades,
                    )  # fmt: skip
                    total += chances[more - low] * mean
                    weight += chances[more - low]
            if which[m] == BEST:
                out[m, t] = highest
            elif which[m] == WORST:
                out[m, t] = lowest
            elif math.isinf(total):
                out[m, t] = math.inf
            else:
                out[m, t] = min(max(total / weight, lowest), highest)
