"""What a gate on a judged number has to say of it, in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragcore.judges.estimates import Estimate
from ragcore.judges.quality import Quality


def gate_statement(
    estimate: Estimate,
    quality: Quality | None = None,
    *,
    method: str = "ppi++",
    level: float = 0.95,
    part: str = "all",
    calibration: str = "",
) -> str:
    """Metric, judge, calibration set, interval, slice, and what may be traded away unseen.

    Parameters
    ----------
    estimate : of the share of yes.
    quality : of the same judge on the same relation; None if it is not known.
    method : which of the estimates, a name of `ragcore.judges.estimates.METHODS`.
    level : of the interval.
    part : the slice of the cases that the verdicts are of.
    calibration : what the labelled set is called; "" names it by its rung.
    """
    one = estimate.means[method]
    run = "" if estimate.run is None else f", run {estimate.run}"
    if one.reason or math.isnan(one.low):
        said = f"no {method} interval ({one.reason or 'not defined'})"
    else:
        said = (
            f"{one.mean:.4f}, {100 * level:.10g}% {method} interval [{one.low:.4f}, {one.high:.4f}]"
        )
    labels = calibration or f"the labels of rung {estimate.against} or above"
    text = (
        f"share of yes on {estimate.relation}{run}, slice {part}: {said}; judge {estimate.judge}, "
        f"calibrated on {labels} ({estimate.n_labelled} cases; {estimate.n_unlabelled} without a "
        f"label)"
    )
    text += f"; {_traded(quality)}"
    return f"{text}; {estimate.warning}" if estimate.warning else text


def _traded(quality: Quality | None) -> str:
    """The failures that the judge lets pass."""
    if quality is None or not quality.counts.n:
        return "which failures the judge lets pass is not known"
    counts = quality.counts
    missed, of = (counts.fn, counts.tp + counts.fn)
    what = "faults"
    if quality.positive == "yes":
        missed, of, what = counts.fp, counts.fp + counts.tn, "refusals"
    if not of:
        return f"people found no {what}, so that what the judge lets pass is not known"
    return f"the judge lets pass {missed} of {of} {what} ({missed / of:.1%})"


def statements(
    estimates: Sequence[Estimate], qualities: Sequence[Quality], level: float, part: str = "all"
) -> list[str]:
    """A statement on every estimate, with the quality of its judge by item."""
    by_item = {(q.relation, q.judge): q for q in qualities if q.level == "item"}
    return [
        gate_statement(e, by_item.get((e.relation, e.judge)), level=level, part=part)
        for e in estimates
    ]
