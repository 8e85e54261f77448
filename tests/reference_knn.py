"""Nearest neighbours by the definition: every score in float64, then a sort."""

from __future__ import annotations

import numpy as np


def halved(lanes):
    """Sum over the last axis of eight lanes, halves first."""
    four = lanes[..., :4] + lanes[..., 4:]
    two = four[..., :2] + four[..., 2:]
    return two[..., 0] + two[..., 1]


def summed(terms):
    """Sum over the last axis: lane l takes terms l, l + 8, ... in their order."""
    d = terms.shape[-1]
    padded = np.zeros((*terms.shape[:-1], -(-d // 8) * 8))
    padded[..., :d] = terms
    lanes = np.zeros((*terms.shape[:-1], 8))
    for at in range(0, padded.shape[-1], 8):
        lanes = lanes + padded[..., at : at + 8]
    return halved(lanes)


def scores_of(vectors, query, metric):
    """Score of every vector, greater is nearer."""
    x, q = vectors.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return 0.0 - summed((x - q) ** 2)
    dot = summed(x * q)
    if metric == "ip":
        return dot
    norms, own = np.sqrt(summed(x * x)), np.sqrt(summed(q * q))
    over = own * norms
    return np.where(over > 0, dot / np.where(over > 0, over, 1.0), 0.0)


def nearest(vectors, query, k, metric, eligible=None):
    """Rows and scores of the k nearest: score descending, then row ascending."""
    if not np.isfinite(query.astype(np.float32)).all():
        return [], []
    may = np.isfinite(vectors).all(1)
    if eligible is not None:
        may &= np.asarray(eligible, bool)
    rows = np.flatnonzero(may)
    scores = scores_of(vectors[rows], query.astype(np.float32), metric)
    order = sorted(range(rows.size), key=lambda i: (-scores[i], rows[i]))[:k]
    return [int(rows[i]) for i in order], [float(scores[i]) for i in order]


def distinct_contents(vectors, rows):
    """Vectors of these rows, each once; 0.0 and -0.0 are equal."""
    return {tuple(float(v) + 0.0 for v in vectors[row]) for row in rows}


def compare(vectors, query, exact, listed, k, metric, eps, eligible, deleted):
    """All that is counted of one list, by the definitions; `exact` is the whole exact order."""
    n, (order, exact_scores) = len(vectors), exact
    top, s_top = order[:k], exact_scores[:k]
    entries = [row for row in listed if row != -1][:k]
    known = list(dict.fromkeys(row for row in entries if 0 <= row < n))
    out = {
        "wanted": len(top), "listed": len(entries), "missing": max(len(top) - len(known), 0),
        "duplicates": sum(0 <= row < n for row in entries) - len(known),
        "unknown": sum(not 0 <= row < n for row in entries),
        "deleted": sum(bool(deleted[row]) for row in known),
    }  # fmt: skip
    finite = {row for row in range(n) if np.isfinite(vectors[row]).all()}
    proper = [r for r in known if eligible[r] and not deleted[r]]
    out["ineligible"] = len(known) - len(proper) - out["deleted"]
    out["hits_id"] = len(set(top) & set(proper))
    if not top:
        return out | dict.fromkeys(
            ("hits_distance", "hits_distinct", "wanted_distinct", "tie_at_k"), 0
        ), np.nan
    out["ineligible"] += sum(row not in finite for row in proper)
    proper = [row for row in proper if row in finite]
    own = dict(zip(proper, scores_of(vectors[proper], query, metric), strict=True))
    least, above = s_top[-1] - eps * abs(s_top[-1]), s_top[-1] + eps * abs(s_top[-1])
    near = [row for row in proper if own[row] >= least]
    out["hits_distance"] = min(len(near), len(top))
    bands = [[], []], [[], []]
    for row in near:
        bands[0][int(own[row] > above)].append(row)
    for row, score in zip(top, s_top, strict=True):
        bands[1][int(score > above)].append(row)
    sizes = [[len(distinct_contents(vectors, rows)) for rows in band] for band in bands]
    out["hits_distinct"] = sizes[0][1] + min(sizes[0][0], sizes[1][0])
    out["wanted_distinct"] = sum(sizes[1])
    further = len(order) > k and exact_scores[k] >= least
    out["tie_at_k"] = int(further or bool(set(near) - set(top)))
    gaps = [a - b for a, b in zip(s_top, sorted(own.values(), reverse=True), strict=False)]
    return out, sum(gaps) / len(gaps) if gaps else np.nan
