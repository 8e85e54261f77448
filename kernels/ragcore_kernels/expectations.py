"""Expected value of every measure when each order of tied scores is equally likely, exactly.

Hits come grouped by ties: `firsts` and `sizes` tell the first rank and the number of rows of
each hit's group. What counts how many hits are seen has a hypergeometric mean; what sums over
ranks has its terms' means, from how many hits of a sort stand above. Nothing is sampled.

References
----------
McSherry & Najork, *Computing information retrieval performance measures efficiently in the
presence of tied scores*, ECIR 2008, for P, R, RR, AP and nDCG.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ragcore_kernels._jit import inline
from ragcore_kernels.gains import gain, ideal_dcg, log2_of
from ragcore_kernels.interpolation import expected_interpolated, tally
from ragcore_kernels.layout import F64
from ragcore_kernels.measures import (
    AP,
    BIN_G,
    BPREF,
    ERR,
    INFAP,
    INFAP_EPSILON,
    IPREC,
    JUDGED,
    NDCG,
    NUM_NONREL_RET,
    R_CAPPED,
    RBP,
    RPREC,
    RR,
    SUCCESS,
    UNJUDGED,
    P,
    R,
    measure,
)


@inline
def hypergeometric(total: int, marked: int, drawn: int, chances: F64) -> tuple[int, int]:
    """Chance of each number of marked ones among `drawn` of `total`; the least and the largest.

    ``chances[0]`` is that of the least. Built up from the likeliest, so that nothing underflows.
    """
    low = max(np.int64(0), drawn + marked - total)
    high = min(np.int64(drawn), np.int64(marked))
    middle = min(max(np.int64((drawn + 1) * (marked + 1) // (total + 2)), low), high)
    spare = total - marked - drawn
    chances[middle - low] = 1.0
    weight = 1.0
    for x in range(middle, high):
        up = float((marked - x) * (drawn - x)) / float((x + 1) * (spare + x + 1))
        chances[x + 1 - low] = chances[x - low] * up
        weight += chances[x + 1 - low]
    for x in range(middle, low, -1):
        down = float(x * (spare + x)) / float((marked - x + 1) * (drawn - x + 1))
        chances[x - 1 - low] = chances[x - low] * down
        weight += chances[x - 1 - low]
    for x in range(high - low + 1):
        chances[x] /= weight
    return low, high


@inline
def infap_term(rank: int, above: float, below: float, pool: float) -> float:
    """What a relevant document adds to inferred AP; counts of each sort above it."""
    if rank == 1:
        return 1.0
    passed = float(rank - 1)
    return 1.0 / (passed + 1.0) + (passed / (passed + 1.0)) * ((above + below + pool) / passed) * (
        (above + INFAP_EPSILON) / (above + below + 2.0 * INFAP_EPSILON)
    )


@inline
def bpref_term(others: int, n_rel: int, bound: int) -> float:
    """What a relevant document adds to Bpref; judged non-relevant ones above it."""
    return 1.0 - min(others, n_rel) / bound if others > 0 else 1.0


@inline
def counted(kind: int, grade: int, rel: int) -> bool:
    """Whether a measure of counts counts this hit."""
    if kind in (JUDGED, UNJUDGED):
        return grade >= 0
    if kind == NUM_NONREL_RET:
        return 0 <= grade < rel
    return grade >= rel


@inline
def expected_err(
    k: int, param: float, firsts: Any, sizes: Any, grades: Any, n: int, means: F64
) -> float:
    """ERR in the first k ranks.

    The chance to get past j documents of a group is the mean of the products of j of their
    chances to go on: the elementary symmetric mean, built up one document at a time.
    """
    total, reach = 0.0, 1.0
    begin = 0
    while begin < n and firsts[begin] <= k:
        first, size = np.int64(firsts[begin]), np.int64(sizes[begin])
        seen = min(size, k - first + 1)
        for i in range(seen + 1):
            means[i] = 1.0
        end = begin
        while end < n and firsts[end] == first:
            end += 1
        members = size - (end - begin)
        after = reach
        for j in range(begin, end):
            members += 1
            go_on = 1.0
            if grades[j] > 0:
                go_on = 1.0 - (2.0 ** float(grades[j]) - 1.0) / 2.0**param
            after *= go_on
            for i in range(min(seen, members), 0, -1):
                means[i] = ((members - i) * means[i] + i * go_on * means[i - 1]) / members
        for i in range(seen):
            total += reach * (means[i] - means[i + 1]) / (first + i)
        reach = after
        begin = end
    return total


@inline
def expected_in_group(
    kind: int, k: int, rel: int, mode: int, param: float, table: F64, logs: F64,
    first: int, size: int, begin: int, end: int, grades: Any, depth: int,
    n_relevant: int, n_other: int, n_pool: int, above: int, below: int, pool: int,
    n_rel: int, bound: int, chances: F64,
) -> float:  # fmt: skip
    """What the hits of one group add on average to a measure that sums over hits.

    `above`, `below` and `pool` count the relevant, other judged and pooled hits of the groups
    before; `bound` is Bpref's least of relevant and non-relevant judgements.
    """
    seen = min(size, min(k, depth) - first + 1)
    total = 0.0
    if kind == NDCG:
        gains = 0.0
        for j in range(begin, end):
            gains += gain(mode, grades[j], table)
        for i in range(seen):
            total += 1.0 / log2_of(logs, first + i + 1)
        return total * gains / size
    if n_relevant == 0:
        return 0.0
    chance = n_relevant / size  # that any given rank of the group is a relevant document's
    if kind == AP:
        rise = (n_relevant - 1) / (size - 1) if size > 1 else 0.0
        for i in range(seen):
            total += (above + 1.0 + i * rise) / (first + i)
    elif kind == RBP:
        for i in range(seen):
            total += param ** float(first + i - 1)
    elif kind == INFAP:
        marked = n_relevant - 1 + n_other  # judged hits of the group besides this one
        for i in range(seen):
            low, high = hypergeometric(size - 1, marked, i, chances)
            for x in range(low, high + 1):
                mean_above = above + (x * (n_relevant - 1) / marked if marked else 0.0)
                rest = size - 1 - marked
                mean_pool = pool + ((i - x) * n_pool / rest if rest else 0.0)
                total += chances[x - low] * infap_term(
                    first + i, mean_above, above + below + x - mean_above, mean_pool
                )
    elif kind == BPREF:
        if seen == size:  # every number of others above, from none to all, is as likely
            for x in range(n_other + 1):
                total += bpref_term(below + x, n_rel, bound)
            return n_relevant * total / (n_other + 1.0)
        for i in range(seen):
            low, high = hypergeometric(size - 1, n_other, i, chances)
            for x in range(low, high + 1):
                total += chances[x - low] * bpref_term(below + x, n_rel, bound)
    elif kind == BIN_G:
        others = first - 1 - above  # rows above the group that are not relevant
        if seen == size:
            for x in range(size - n_relevant + 1):
                total += 1.0 / log2_of(logs, 2 + others + x)
            return n_relevant * total / (size - n_relevant + 1.0)
        for i in range(seen):
            low, high = hypergeometric(size - 1, n_relevant - 1, i, chances)
            for x in range(low, high + 1):
                total += chances[x - low] / log2_of(logs, 2 + others + i - x)
    return chance * total


@inline
def expected_first(k: int, firsts: Any, sizes: Any, grades: Any, n: int, rel: int) -> float:
    """Reciprocal rank: one over the rank of the first relevant document, if it is in k."""
    begin = 0
    while begin < n:
        end, n_relevant, _, _ = tally(begin, firsts, grades, n, rel)
        if n_relevant > 0:
            first, size = np.int64(firsts[begin]), np.int64(sizes[begin])
            total, chance = 0.0, n_relevant / size
            for i in range(min(size - n_relevant + 1, k - first + 1)):
                total += chance / (first + i)
                chance *= (size - i - n_relevant) / (size - i - 1.0) if size - i > 1 else 0.0
            return total
        begin = end
    return 0.0


@inline
def expected(
    kind: int,
    cutoff: int,
    rel: int,
    mode: int,
    param: float,
    param2: float,
    param3: float,
    table: F64,
    logs: F64,
    firsts: Any,
    sizes: Any,
    grades: Any,
    n: int,
    depth: int,
    judged: Any,
    judged_base: int,
    n_judged: int,
    n_rel: int,
    low: float,
    high: float,
    limit: int,
    spare: F64,
    chances: F64,
    means: F64,
    new_ranks: Any,
    new_grades: Any,
) -> float:
    """Mean of one measure over the orders of tied scores.

    Parameters
    ----------
    kind ... logs, judged ... n_judged : as `measures.measure` takes them.
    firsts, sizes, grades, n : the hits, group after group, without any group past `depth`.
    depth : rows seen; it may cut through the last group.
    n_rel : documents judged relevant.
    low, high : smallest and largest value of any order.
    limit : steps that interpolated precision may take.
    spare, chances, means, new_ranks, new_grades : scratch, as `bounds.over_ties` has it.
    """
    k = cutoff if cutoff > 0 else np.int64(1) << 62
    near = min(k, np.int64(depth))
    if low == high:
        return low
    if kind == RR:
        return expected_first(near, firsts, sizes, grades, n, rel)
    if kind == ERR:
        return expected_err(near, param, firsts, sizes, grades, n, means)
    if kind == IPREC:
        cut = np.int64(math.floor(param * n_rel + 0.5))
        return expected_interpolated(
            cut, firsts, sizes, grades, n, depth, rel, low, high, limit, means
        )
    begin = 0
    if kind in (AP, NDCG, RBP, INFAP, BPREF, BIN_G):
        total = 0.0
        above, below, pool = 0, 0, 0
        bound = min(n_judged - n_rel, n_rel)
        while begin < n:
            end, n_relevant, n_other, n_pool = tally(begin, firsts, grades, n, rel)
            total += expected_in_group(
                kind, k, rel, mode, param, table, logs, np.int64(firsts[begin]),
                np.int64(sizes[begin]), begin, end, grades, depth, n_relevant, n_other, n_pool,
                above, below, pool, n_rel, bound, chances,
            )  # fmt: skip
            above, below, pool = above + n_relevant, below + n_other, pool + n_pool
            begin = end
        if kind == NDCG:
            return total / ideal_dcg(mode, k, judged, judged_base, n_judged, table, logs, spare)
        return total * (1.0 - param) if kind == RBP else total / n_rel

    # The rest knows only how many hits of a sort are seen: all numbers of them, by their chances.
    if kind == RPREC:
        near = min(np.int64(depth), n_rel if param == 1.0 else np.int64(param * n_rel + 0.9))
    elif kind not in (P, R, R_CAPPED, SUCCESS, JUDGED, UNJUDGED):
        near = np.int64(depth)
    sure, fewest, most = 0, np.int64(0), np.int64(0)
    chances[0] = 1.0
    while begin < n and firsts[begin] <= near:
        end = begin
        mine = 0
        while end < n and firsts[end] == firsts[begin]:
            mine += counted(kind, grades[end], rel)
            end += 1
        first, size = np.int64(firsts[begin]), np.int64(sizes[begin])
        if first + size - 1 <= near:
            sure += mine
        else:
            fewest, most = hypergeometric(size, mine, near - first + 1, chances)
        begin = end
    grade = max(rel, 0)
    if kind in (JUDGED, UNJUDGED, NUM_NONREL_RET):
        grade = 0
    for i in range(sure + most):
        new_ranks[i], new_grades[i] = i + 1, grade
    total = 0.0
    for x in range(fewest, most + 1):
        value, _, _ = measure(
            kind, cutoff, rel, mode, param, param2, param3, table, logs, new_ranks, new_grades,
            np.int64(0), sure + x, depth, judged, judged_base, n_judged, spare,
        )  # fmt: skip
        total += chances[x - fewest] * value
    return total
