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
