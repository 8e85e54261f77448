"""The value of every ranked measure, from the judged documents that a case retrieved.

A measure depends only on the ranks and grades of the judged documents that were retrieved
(the *hits*), on how many rows there were, and on the judgements; `ranking` finds these once
per case, and everything here is arithmetic on them. Formulas follow trec_eval 10 unless the
constant's comment says otherwise; ``tests/reference.py`` says the same in plain Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.gains import gain, ideal_dcg, log2_of
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.ranking import FINE, N_HITS, N_JUDGED, N_RET, PROBLEM

(
    P,
    R,
    R_CAPPED,  # recall over min(k, relevant): BEIR's R_cap, trec_eval's relative_P
    SUCCESS,
    RR,
    AP,
    NDCG,
    RPREC,  # precision at (param x relevant) ranks
    RBP,  # Moffat & Zobel, TOIS 27(1), 2008; binary at `rel`
    ERR,  # Chapelle et al., CIKM 2009; scale 0..param, gdeval's is 4
    BPREF,
    INFAP,
    IPREC,
    JUDGED,
    NUM_RET,
    NUM_REL,
    NUM_REL_RET,
    SET_P,
    SET_R,
    SET_F,
    SET_AP,
    UTILITY,  # weights of relevant retrieved, other retrieved, relevant missed
    BIN_G,  # mean over the relevant of 1 / log2(2 + other documents above)
    NUM_NONREL_RET,  # judged non-relevant documents retrieved
    UNJUDGED,  # unjudged in the first k ranks / k
    ONE,  # counts the case: num_q
) = range(26)

KIND, CUTOFF, REL, JUDGED_ONLY, GAINS = range(5)
"""Columns of the int64 specification: which measure; ranks counted, 0 = all; least grade that
counts as relevant; 1 = drop unjudged rows and re-rank; gain mapping (see `gains`)."""
SPEC_FIELDS = 5

INFAP_EPSILON = 1e-5


@inline
def interpolated(
    recall: float, ranks: Any, grades: Any, base: int, n: int, rel: int, n_rel: int, n_rel_ret: int
) -> float:
    """Highest precision at or after the rank where `recall` of the relevant is reached."""
    cut = np.int64(math.floor(recall * n_rel + 0.5))
    if cut > n_rel_ret:
        return 0.0
    best = 0.0
    found = n_rel_ret
    for j in range(base + n - 1, base - 1, -1):
        if grades[j] >= rel:
            best = max(best, found / ranks[j])
            if found == cut:
                break
            found -= 1
    return best


@inline
def measure(
    kind: int,
    cutoff: int,
    rel: int,
    mode: int,
    param: float,
    param2: float,
    param3: float,
    table: F64,
    logs: F64,
    ranks: Any,
    grades: Any,
    base: int,
    n: int,
    n_ret: int,
    judged: Any,
    judged_base: int,
    n_judged: int,
    spare: F64,
) -> Any:
    """Value, numerator and denominator of one measure on one ranking.

    Parameters
    ----------
    kind, cutoff, rel, mode, param, param2, param3 : one row of the specification.
    table, logs : gain table; log2 of 0, 1, 2, ...
    ranks, grades, base, n : the hits, by rank, from `base` on; a negative grade is in the pool
        but not judged.
    n_ret : rows of the ranking.
    judged, judged_base, n_judged : grades of all judged documents, falling, without negatives.
    spare : (n_judged or more,), scratch.

    Returns
    -------
    (value, numerator, denominator); value NaN where the measure is not applicable, numerator
    and denominator NaN where the value is no quotient.
    """
    k = cutoff if cutoff > 0 else np.int64(1) << 62
    none = math.nan
    stop = base + n
    n_rel = 0
    while n_rel < n_judged and judged[judged_base + n_rel] >= rel:
        n_rel += 1

    if kind == ONE:
        return 1.0, none, none
    if kind == NUM_RET:
        return float(n_ret), none, none
    if kind == NUM_REL:
        return float(n_rel), none, none
    if kind in (JUDGED, UNJUDGED):
        seen = 0
        for j in range(base, stop):
            if grades[j] >= 0 and ranks[j] <= k:
                seen += 1
        shown = min(k, n_ret)
        if kind == UNJUDGED:
            return (shown - seen) / k, float(shown - seen), float(k)
        return (seen / shown if shown else none), float(seen), float(shown)

    if kind == NDCG:
        best = ideal_dcg(mode, k, judged, judged_base, n_judged, table, logs, spare)
        total = 0.0
        for j in range(base, stop):
            if ranks[j] > k:
                break
            worth = gain(mode, grades[j], table)
            if worth != 0.0:
                total += worth / log2_of(logs, ranks[j] + 1)
        if best == 0.0 or math.isinf(best):
            return none, total, best
        return total / best, total, best

    if kind == ERR:
        if n_judged == 0 or judged[judged_base] <= 0:
            return none, none, none
        total = 0.0
        reach = 1.0  # chance that the reader gets this far
        for j in range(base, stop):
            if ranks[j] > k:
                break
            if grades[j] > 0:
                quits = (2.0 ** float(grades[j]) - 1.0) / 2.0**param
                total += reach * quits / ranks[j]
                reach *= 1.0 - quits
        return total, none, none

    n_rel_ret = np.int64(0)  # relevant documents in the first k ranks, or in all of them
    for j in range(base, stop):
        if ranks[j] > k:
            break
        n_rel_ret += grades[j] >= rel
    hits = n_rel_ret

    if kind == NUM_REL_RET:
        return float(n_rel_ret), none, none
    if kind == NUM_NONREL_RET:
        count = 0
        for j in range(base, stop):
            if 0 <= grades[j] < rel:
                count += 1
        return float(count), none, none
    if kind == UTILITY:
        nonrel = n_ret - n_rel_ret
        value = param * n_rel_ret + param2 * nonrel + param3 * (n_rel - n_rel_ret)
        return value, none, none
    if n_rel == 0:
        return none, none, 0.0

    if kind == P:
        return hits / k, float(hits), float(k)
    if kind in (R, SET_R):
        return hits / n_rel, float(hits), float(n_rel)
    if kind == R_CAPPED:
        room = min(k if cutoff > 0 else n_ret, n_rel)
        return (hits / room if room > 0 else 0.0), float(hits), float(room)
    if kind == SUCCESS:
        found = 1.0 if hits > 0 else 0.0
        return found, found, 1.0
    if kind == SET_P:
        return (hits / n_ret if n_ret else 0.0), float(hits), float(n_ret)
    if kind == SET_F:
        if n_rel_ret == 0:
            return 0.0, none, none
        p, r = n_rel_ret / n_ret, n_rel_ret / n_rel
        return (param + 1.0) * p * r / (param * p + r), none, none
    if kind == SET_AP:
        if n_ret == 0:
            return 0.0, none, none
        top = float(n_rel_ret) * float(n_rel_ret)
        bottom = float(n_ret) * float(n_rel)
        return top / bottom, top, bottom
    if kind == RPREC:
        # trec_eval's rounding of a multiple of R: up at a tenth and beyond.
        cut = n_rel if param == 1.0 else np.int64(param * n_rel + 0.9)
        hits = 0
        for j in range(base, stop):
            if grades[j] >= rel and ranks[j] <= cut:
                hits += 1
        return (hits / cut if cut else 0.0), float(hits), float(cut)
    if kind == RR:
        for j in range(base, stop):
            if grades[j] >= rel:
                if ranks[j] <= k:
                    return 1.0 / ranks[j], 1.0, float(ranks[j])
                break
        return 0.0, 0.0, 1.0
    if kind == AP:
        total = 0.0
        found = 0
        for j in range(base, stop):
            if ranks[j] > k:
                break
            if grades[j] >= rel:
                found += 1
                total += found / ranks[j]
        return total / n_rel, total, float(n_rel)
    if kind == RBP:
        total = 0.0
        for j in range(base, stop):
            if ranks[j] > k:
                break
            if grades[j] >= rel:
                total += param ** float(ranks[j] - 1)
        return (1.0 - param) * total, none, none
    if kind == BPREF:
        total = 0.0
        above = 0  # judged non-relevant documents so far
        for j in range(base, stop):
            if grades[j] >= rel:
                if above > 0:
                    total += 1.0 - min(above, n_rel) / min(n_judged - n_rel, n_rel)
                else:
                    total += 1.0
            elif grades[j] >= 0:
                above += 1
        return total / n_rel, total, float(n_rel)
    if kind == INFAP:
        total = 0.0
        above, below, pool = 0, 0, 0  # relevant, non-relevant, in the pool but not judged
        for j in range(base, stop):
            if grades[j] < 0:
                pool += 1
            elif grades[j] < rel:
                below += 1
            elif ranks[j] == 1:
                total += 1.0
                above += 1
            else:
                passed = float(ranks[j] - 1)
                total += 1.0 / (passed + 1.0) + (passed / (passed + 1.0)) * (
                    (above + below + pool) / passed
                ) * ((above + INFAP_EPSILON) / (above + below + 2.0 * INFAP_EPSILON))
                above += 1
        return total / n_rel, total, float(n_rel)
    if kind == IPREC:
        value = interpolated(param, ranks, grades, base, n, rel, n_rel, n_rel_ret)
        return value, none, none
    if kind == BIN_G:
        total = 0.0
        found = 0
        for j in range(base, stop):
            if grades[j] >= rel:
                total += 1.0 / log2_of(logs, ranks[j] - found + 1)
                found += 1
        return total / n_rel, total, float(n_rel)
    return none, none, none


@kernel
def evaluate(
    spec: I64,
    params: F64,
    table: F64,
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
    parts: F64,
) -> None:
    """Every measure of the rankings `begin` to `end`.

    Parameters
    ----------
    spec, params : (n_measures, 5) and (n_measures, 3); see `KIND` and its neighbours.
    table : (n_maps, n_grades), gains of the custom maps.
    depth : ranks that are kept of every ranking, trec_eval's -M; 0 = all.
    label_of ... stats : as `ranking.find_hits` filled them.
    out : (n_measures, n_rankings), columns `begin` to `end` filled; NaN where a measure is not
        applicable, the ranking has no judgements or something is wrong with it.
    parts : (2, n_measures, n_rankings), filled likewise with numerators and denominators; or
        (2, n_measures, 0) to leave them out.

    Notes
    -----
    Trusts its inputs. Sums run in rank order in float64.
    """
    most, deepest = np.int64(1), np.int64(0)
    for t in range(begin, end):
        most = max(most, stats[t, N_JUDGED], stats[t, N_HITS])
        deepest = max(deepest, stats[t, N_RET])
    spare = np.empty(most, np.float64)
    short_ranks = np.empty(most, np.int32)
    short_grades = np.empty(most, np.int32)
    logs = np.empty(min(max(deepest, most), np.int64(4096)) + 3, np.float64)
    logs[0] = 0.0
    for i in range(1, logs.size):
        logs[i] = math.log2(float(i))
    for m in range(spec.shape[0]):
        for t in range(begin, end):
            c = label_of[t]
            if c < 0 or stats[t, PROBLEM] != FINE:
                out[m, t] = math.nan
                continue
            ranks, grades = hit_ranks, hit_grades
            base, n, n_ret = hit_offsets[t], stats[t, N_HITS], stats[t, N_RET]
            if depth > 0 and n_ret > depth:
                n_ret = depth
                while n > 0 and hit_ranks[base + n - 1] > depth:
                    n -= 1
            if spec[m, JUDGED_ONLY]:
                ranks, grades = short_ranks, short_grades
                n_ret = np.int64(0)
                for j in range(base, base + n):
                    if hit_grades[j] >= 0:
                        short_ranks[n_ret], short_grades[n_ret] = n_ret + 1, hit_grades[j]
                        n_ret += 1
                base, n = np.int64(0), n_ret
            value, top, bottom = measure(
                spec[m, KIND],
                spec[m, CUTOFF],
                spec[m, REL],
                spec[m, GAINS],
                params[m, 0],
                params[m, 1],
                params[m, 2],
                table,
                logs,
                ranks,
                grades,
                base,
                n,
                n_ret,
                ideal,
                ideal_offsets[c],
                stats[t, N_JUDGED],
                spare,
            )
            out[m, t] = value
            if parts.shape[2]:
                parts[0, m, t], parts[1, m, t] = top, bottom
