"""Best value of every measure over what unjudged documents may be: the upper end for holes.

A *hole* is a retrieved row without a judgement. As it stands, a hole counts as not relevant,
which is the lower end; the upper end is the largest value over judging the first 0, 1, 2, ...
holes to have the highest grade.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.measures import CUTOFF, GAINS, JUDGED_ONLY, KIND, REL, measure
from ragcore_kernels.ranking import FINE, N_HITS, N_JUDGED, N_RET, PROBLEM


@kernel
def over_holes(
    spec: I64,
    params: F64,
    table: F64,
    rows: I64,
    highest: I64,
    depth: int,
    begin: int,
    end: int,
    label_of: I64,
    hit_offsets: I64,
    hit_ranks: Any,
    hit_grades: Any,
    ideal_offsets: I64,
    ideal: Any,
    stats: I64,
    out: F64,
) -> None:
    """Largest value of the rankings `begin` to `end` over judging their first holes.

    Parameters
    ----------
    spec, params, table, depth, label_of ... stats : as `measures.evaluate` takes them.
    rows : (n_measures + 1,), measure m is the mean of rows ``rows[m]`` to ``rows[m + 1]`` of
        `spec`, which have one cut-off.
    highest : (n_rows,), the grade that holes are given; no judged grade is above it.
    out : (n_measures, n_rankings), columns `begin` to `end` filled; NaN where nothing is judged
        or where no number of holes makes the measure applicable.

    Notes
    -----
    A hole that is given a grade is judged: it counts in the ideal list and in all there is to
    find, and stays where unjudged rows are dropped. Holes past the cut-off are left alone.
    """
    most, deepest = np.int64(1), np.int64(1)
    for t in range(begin, end):
        most = max(most, stats[t, N_JUDGED], stats[t, N_HITS])
        deepest = max(deepest, stats[t, N_RET])
    spare = np.empty(most + deepest, np.float64)
    judged = np.empty(most + deepest, np.int32)
    new_ranks, new_grades = np.empty(deepest, np.int32), np.empty(deepest, np.int32)
    logs = np.empty(2048, np.float64)
    logs[0] = 0.0
    for i in range(1, logs.size):
        logs[i] = math.log2(float(i))
    for t in range(begin, end):
        c, base, n_judged = label_of[t], hit_offsets[t], stats[t, N_JUDGED]
        usable = c >= 0 and stats[t, PROBLEM] == FINE and n_judged > 0
        n_ret, stop = stats[t, N_RET], base + stats[t, N_HITS]
        if depth > 0 and n_ret > depth:
            n_ret = depth
            while stop > base and hit_ranks[stop - 1] > depth:
                stop -= 1
        n_holes = np.int64(n_ret)
        for j in range(base, stop):
            n_holes -= hit_grades[j] >= 0
        for m in range(rows.size - 1):
            out[m, t] = math.nan
            if not usable:
                continue
            row = rows[m]
            judged_only = spec[row, JUDGED_ONLY]
            k = spec[row, CUTOFF] if spec[row, CUTOFF] > 0 else n_ret
            for i in range(n_judged):
                judged[n_holes + i] = ideal[ideal_offsets[c] + i]
            for i in range(n_holes):
                judged[i] = highest[row]
            n_full, at = 0, base  # rows before the next hole, and the first hit past them
            for given in range(n_holes + 1):
                if given > 0:
                    while at < stop and hit_ranks[at] == n_full + 1 and hit_grades[at] >= 0:
                        new_ranks[n_full], new_grades[n_full] = n_full + 1, hit_grades[at]
                        n_full += 1
                        at += 1
                    if at < stop and hit_ranks[at] == n_full + 1:
                        at += 1  # this hole was in the pool
                    if n_full + 1 > k:
                        break
                    new_ranks[n_full], new_grades[n_full] = n_full + 1, highest[row]
                    n_full += 1
                n = n_full
                for j in range(at, stop):
                    if not judged_only or hit_grades[j] >= 0:
                        new_ranks[n], new_grades[n] = hit_ranks[j], hit_grades[j]
                        if judged_only:
                            new_ranks[n] = n + 1
                        n += 1
                total = 0.0
                for r in range(row, rows[m + 1]):
                    value, _, _ = measure(
                        spec[r, KIND], spec[r, CUTOFF], spec[r, REL], spec[r, GAINS],
                        params[r, 0], params[r, 1], params[r, 2], table, logs, new_ranks,
                        new_grades, np.int64(0), n, n if judged_only else n_ret, judged,
                        n_holes - given, n_judged + given, spare,
                    )  # fmt: skip
                    total += value
                total /= rows[m + 1] - row
                if not math.isnan(total) and not total <= out[m, t]:
                    out[m, t] = total
