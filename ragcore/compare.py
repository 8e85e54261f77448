"""The verb: a baseline against candidates, paired by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragcore import contrast
from ragcore.aggregates import form_of
from ragcore.comparison import Comparison
from ragcore.errors import UsageError
from ragcore.gates import gates_of, slices_for
from ragcore.measures.definitions import Measure
from ragcore.pairing import refuse
from ragcore.plan import Plan, plan_of, read_plan
from ragcore.score import score

PAIRS = ("baseline", "all")
UNMATCHED = ("leave", "error")


def compare(
    baseline: Any,
    candidates: Any,
    *,
    suite: str | PathLike[str] | None = None,
    qrels: Any = None,
    measures: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
    level: float | None = None,
    plan: Plan | str | PathLike[str] | None = None,
    primary: Sequence[str] = (),
    guards: Mapping[str, float] | None = None,
    pairs: str = "baseline",
    unmatched: str = "leave",
    stratify: str | None = None,
    gates: Sequence[str] = (),
    names: Sequence[str] | None = None,
    threads: int | None = None,
    **policies: Any,
) -> Comparison:
    """Compare candidates with a baseline: paired by case, exact, with a verdict.

    Parameters
    ----------
    baseline, candidates : runs, as `ragcore.score` takes them; one, and one or several.
    suite, qrels, measures, threads : as for `ragcore.score`; the measures of the plan are added.
    by : columns to slice by, each on its own.
    level : of the intervals; None = the plan's, or 0.95.
    plan : what was registered before: a TOML file or a `Plan`; None = what the manifests carry.
    primary, guards : measures that decide, and margins that others must keep, if the plan has
        none.
    pairs : ``baseline`` compares every candidate with the baseline, ``all`` also candidates with
        each other, each pair once.
    unmatched : cases, languages or repeats that only one run has: ``leave`` them out and say so,
        or ``error``.
    stratify : column whose values are resampled apart; the interval over all cases is then the
        stratified one.
    gates : expressions that will be checked: what they are about is scored and sliced.
    names : of the runs, baseline first.
    policies : the rest of what `ragcore.score` takes.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError, UsageError
        As `ragcore.score`; and if runs do not match under ``unmatched="error"``.
    """
    for name, value, known in (("pairs", pairs, PAIRS), ("unmatched", unmatched, UNMATCHED)):
        if value not in known:
            raise UsageError(f"{name}={value!r}", f"one of {', '.join(known)}")
    if level is not None and not 0.0 < level < 1.0:
        raise UsageError(f"level={level}", "a number between 0 and 1")
    given = _listed(candidates)
    if not given:
        raise UsageError("no candidate given", "a baseline and at least one candidate")
    registered = _given(plan, primary, guards)
    arguments: dict[str, Any] = {
        "suite": suite, "qrels": qrels, "names": names, "threads": threads, **policies,
        "measures": [measures] if isinstance(measures, str) else measures,
    }  # fmt: skip
    asked = gates_of(registered or Plan(), gates)
    also = [*(registered.registered if registered else ()), *(g.measure for g in asked)]
    scores = score([baseline, *given], also=also, **arguments)
    if registered is None:
        registered = _carried(scores)
        asked = gates_of(registered, gates)
        also += [*registered.registered, *(g.measure for g in asked)]
        if any(m and m not in scores.measures for m in also):
            scores = score([baseline, *given], also=also, **arguments)
    if len(scores.runs) < 2:
        raise UsageError("one run only", "a baseline and at least one candidate")
    check_deciding(registered, scores.runs[0].measures)
    found = contrast.Settings(
        registered, slices_for(asked, [*(by or ()), *registered.by]),
        level or registered.level or 0.95, stratify,
    )  # fmt: skip
    out = [
        contrast.of(scores, left, right, found)
        for left, right in _couples(len(scores.runs), pairs)
    ]  # fmt: skip
    if unmatched == "error":
        for one in out:
            refuse(one.unmatched, (one.before.where, one.after.where))
    return Comparison(scores, out, found)


def check_deciding(plan: Plan, measures: Iterable[Measure]) -> None:
    """Refuse a plan whose measures cannot decide: without paired differences or a better side.

    Parameters
    ----------
    measures : those of the plan among them.

    Raises
    ------
    UsageError
        Naming the first.
    """
    for one in measures:
        if one.text not in (*plan.primary, *plan.guards):
            continue
        form = form_of(one.aggregate)
        what = "primary" if one.text in plan.primary else "guard"
        if not form.paired:
            raise UsageError(
                f"{what} {one.text}: {form.why}",
                "a mean over cases can decide; a gate can bound this one: "
                f"--gate '{one.text} <= NUMBER'",
            )
        if one.definition.better == "neither":
            raise UsageError(
                f"{what} {one.text}: neither more nor less of it is better as such",
                f"bound it with a gate: --gate 'delta({one.text}).ci_high <= NUMBER'",
            )


def _listed(candidates: Any) -> list[Any]:
    single = (
        isinstance(candidates, (str, PathLike, Mapping, pa.Table, pa.RecordBatch))
        or hasattr(candidates, "__arrow_c_stream__")
    )  # fmt: skip
    return [candidates] if single else list(candidates)


def _couples(n: int, pairs: str) -> list[tuple[int, int]]:
    """Runs to compare; the earlier one is the baseline."""
    lefts = range(n if pairs == "all" else 1)
    return [(left, right) for left in lefts for right in range(left + 1, n)]


def _given(
    plan: Plan | str | PathLike[str] | None,
    primary: Sequence[str],
    guards: Mapping[str, float] | None,
) -> Plan | None:
    """The plan of the arguments; None if they have none."""
    own = [primary] if isinstance(primary, str) else list(primary)
    if plan is None and not own and not guards:
        return None
    if plan is None:
        return Plan(primary=tuple(own), guards=dict(guards or {}), source="the command line")
    read = plan if isinstance(plan, Plan) else read_plan(Path(plan))
    if own or guards:
        raise UsageError(
            f"primary or guards given beside the plan of {read.source or 'the arguments'}",
            "register them in the plan: what is added later is exploratory",
        )
    return read


def _carried(scores: Any) -> Plan:
    """The plan that manifests carry: the first candidate's, else the baseline's."""
    for run in (*scores.runs[1:], scores.runs[0]):
        plan = plan_of(run.manifest, run.name)
        if plan.source:
            return plan
    return Plan()
