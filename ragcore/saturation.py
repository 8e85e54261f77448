"""Whether a measure can still show a difference, given the baseline: saturated, floored, live."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragcore_kernels.layout import F64

POOL_SHARE = 0.25
"""A cut-off above this share of the pool finds much by chance."""

_NEAR = 1e-9


@dataclass(frozen=True)
class Saturation:
    """The room that a baseline leaves on one measure.

    Attributes
    ----------
    state : ``live``, ``saturated``, ``unresolvable``, ``floored``, ``chance-dominated``; "" where
        a measure has no maximum.
    n_open : cases whose baseline value is below the most that the case allows.
    n : cases with a value.
    random : what a random ranking finds, where the pool is known and the cut-off is large in it.
    """

    state: str
    n_open: int
    n: int
    random: float | None = None

    @property
    def live(self) -> bool:
        """Whether it may decide anything."""
        return self.state == "live"

    def __str__(self) -> str:
        """For the column `saturation`."""
        if not self.state:
            return ""
        text = f"{self.state}, {self.n_open} open"
        if self.random is not None:
            also = "" if self.state == "chance-dominated" else "chance-dominated, "
            text += f"; {also}random ranking {self.random:.3f}"
        return text


def saturation(
    values: F64, ceiling: F64, k: int = 0, pool: float | None = None, level: float = 0.95
) -> Saturation:
    """Judge one measure by the baseline's values.

    Parameters
    ----------
    values : (n,), the baseline's, one a case.
    ceiling : (n,), the most that each case allows; NaN where the measure has no maximum.
    k, pool : cut-off, 0 for none; documents that can be retrieved, None if unknown.
    level : of the interval that would have to exclude 0.

    Notes
    -----
    With n_open open cases even a perfect candidate improves only those. Its resampled mean
    difference is 0 with probability (1 - n_open / n)^n; if that exceeds (1 - level) / 2, the
    interval includes 0 whatever the candidate does. The same at 0 gives ``floored``: too few
    cases have anything to lose.
    """
    n = values.size
    if n == 0 or np.isnan(ceiling).any():
        return Saturation("", 0, n)
    tail = (1.0 - level) / 2.0
    n_open = int((values < ceiling - _NEAR).sum())
    n_above = int((values > _NEAR).sum())
    share = k / pool if k and pool else 0.0
    random = min(share, 1.0) if share > POOL_SHARE else None
    if n_open == 0:
        state = "saturated"
    elif (1.0 - n_open / n) ** n > tail:
        state = "unresolvable"
    elif (1.0 - n_above / n) ** n > tail:
        state = "floored"
    else:
        state = "live" if random is None else "chance-dominated"
    return Saturation(state, n_open, n, random)
