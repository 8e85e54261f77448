"""Scores of one list on a common scale, for sums over lists; `fusion` says what each scale is."""

from __future__ import annotations

import math

from ragcore_kernels._jit import inline
from ragcore_kernels.layout import F64

NORMALISATIONS = ("min-max", "z-score", "rank")
MIN_MAX, Z_SCORE, RANK = range(3)


@inline
def normalise(scores: F64, begin: int, end: int, weight: float, how: int, out: F64) -> bool:
    """Weighted normalised scores of one list, best first; False if a score is infinite."""
    n = end - begin
    if how == RANK:
        for i in range(n):
            out[begin + i] = weight * ((n - i) / n)
        return True
    least, most = math.inf, -math.inf
    for i in range(begin, end):
        least = min(least, float(scores[i]))
        most = max(most, float(scores[i]))
    if n > 0 and (math.isinf(least) or math.isinf(most)):
        return False
    if not least < most:
        for i in range(begin, end):
            out[i] = weight
        return True
    scale = 1.0
    if math.isinf(most - least):  # beyond the largest double: halves lose nothing that counts
        scale = 0.5
    span = scale * most - scale * least
    mean, spread = 0.0, 0.0
    for i in range(begin, end):
        out[i] = (scale * scores[i] - scale * least) / span
        mean += out[i]
    if how == Z_SCORE:
        mean /= n
        for i in range(begin, end):
            spread += (out[i] - mean) * (out[i] - mean)
        spread = math.sqrt(spread / n)
        for i in range(begin, end):
            out[i] /= spread
    for i in range(begin, end):
        out[i] *= weight
    return True
