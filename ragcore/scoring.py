"""One run against the judgements: values and states of every measure and ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import audits, schema
from ragcore.columns import CaseCodes, Rows
from ragcore.errors import InputError
from ragcore.measures import bounds as limits
from ragcore.measures import engine, ranked, registry
from ragcore.measures.ceilings import ceilings
from ragcore.measures.definitions import Measure
from ragcore.measures.engine import Hits, Options
from ragcore.measures.rankings import Labels, Rankings, rankings_of
from ragcore.measures.variants import kind_of
from ragcore.results import RunScores
from ragcore.suites import Suite
from ragcore_kernels.layout import F64, I64

COVERAGE = "retrieval.coverage"
"""The one layered measure that is a function of hits, those of what is required."""


def score_run(
    rows: Rows,
    labels: Labels,
    required: Labels | None,
    codes: CaseCodes,
    parsed: list[Measure],
    options: Options,
    policy: dict[str, str],
    opened: Suite | None,
    allow_empty: bool,
    shared: Any = None,
    manifest: dict[str, Any] | None = None,
) -> tuple[RunScores, tuple[Any, Any]]:
    """Score one run; and the rankings and hits that its audit needs.

    Parameters
    ----------
    rows : the run.
    labels, required : what it is judged by; what an answer requires, None if nobody says.
    codes : of case ids, shared by all runs.
    parsed : the measures.
    options, policy : how rankings are read; policies that shape the numbers.
    opened : the suite, if there is one.
    allow_empty : let a run without any judged case score.
    shared : what the layered measures of all runs share, a `measures.inputs.Shared`; None if no
        such measure is asked for.
    manifest : what the run says of itself.

    Raises
    ------
    InputError
        If run and judgements share no case, or a ranking breaks its contract.
    """
    rankings = rankings_of(rows, labels, codes)
    judged = rankings.label_of >= 0
    if not (judged & ~rankings.absent).any() and not allow_empty:
        raise _nothing_in_common(rows, labels, rankings, codes)
    hits = engine.find_hits(rows, labels, rankings, options)
    engine.check_scale(parsed, hits)
    keep = judged if policy["topics"] == "judged" else judged & ~rankings.absent
    picked = np.flatnonzero(keep)
    every = picked.size == keep.size
    values = np.empty((len(parsed), picked.size))
    states = np.empty((len(parsed), picked.size), np.int8)
    zeroed: dict[str, int] = {}
    spent: set[str] = set()
    ours = [m for m, one in enumerate(parsed) if one.definition.layer == "ranked"]
    theirs = [m for m, one in enumerate(parsed) if one.definition.name == COVERAGE]
    sources = [(ours, hits)] if ours else []
    if theirs and required is not None:
        sources.append((theirs, engine.find_hits(rows, required, rankings, options)))
    plans = [
        (group, source, ranked.Specification([parsed[m] for m in group]))
        for group, source in sources
    ]
    base = rankings.state[picked]
    for group, source, spec in plans:
        got, _ = source.evaluate(spec)
        asked = [parsed[m] for m in group]
        spent |= limits.apply(source, rows, asked, got, policy["no_relevant"] == "zero")
        if not every:
            got = got[:, picked]
        state = base
        if source is not hits:  # what is required may be stale where other labels are not
            marks = np.zeros(judged.size, np.int8)
            marks[judged] = source.labels.status[rankings.label_of[judged]]
            state = np.where(base == schema.OK, marks[picked], base)
        own, zero = _states(
            asked, got, state, source.top[picked], policy, source.unlabelled[picked]
        )
        states[group], values[group] = own, got
        for m, count in zip(group, zero.sum(1).tolist(), strict=True):
            if count:
                row = zero[group.index(m)]
                zeroed[parsed[m].text] = len(set(rankings.case_of[picked][row].tolist()))
    if theirs and required is None:
        values[theirs] = math.nan
        states[theirs] = schema.MISSING
    columns: dict[int, Any] = {}
    inputs: Any = None
    rest = [m for m, one in enumerate(parsed) if one.layered]
    if rest:
        from ragcore.measures import inputs as layers  # what plain rankings need not load
        from ragcore.measures import layered

        inputs = layers.inputs_of(
            shared, rows, rankings, picked, labels, manifest or {}, options.threads
        )
        values[rest], states[rest], found = layered.evaluate([parsed[m] for m in rest], inputs)
        columns = dict(zip(rest, found, strict=True))
    run = RunScores(
        rows.name, rows.where, parsed, values, states, rankings.case_of[picked],
        [rankings.lang[t] for t in picked] if rankings.lang is not None else None,
        [rankings.repeat[t] for t in picked] if rankings.repeat is not None else None,
        rankings.row_of[picked], rankings.label_of[picked], codes, policy, zeroed, rows.traces,
        opened.cases if opened is not None else None, spent=spent, columns=columns,
        inputs=inputs, manifest=manifest or {},
    )  # fmt: skip

    if rankings.absent.any():
        run.lost = np.unique(rankings.case_of[rankings.absent])
    parts = _Parts(parsed, plans, picked, columns)
    run.quotients, run.ceilings = parts.quotients, parts.ceilings
    return run, (rankings, hits)


@dataclass
class _Parts:
    """What is worked out of a scored run only if it is asked for."""

    measures: list[Measure]
    plans: list[tuple[list[int], Hits, ranked.Specification]]
    picked: I64
    columns: dict[int, Any]

    def quotients(self) -> tuple[F64, F64]:
        """Numerators and denominators, (n_measures, n) each."""
        parts = np.full((2, len(self.measures), self.picked.size), np.nan)
        for group, source, spec in self.plans:
            parts[:, group] = source.evaluate(spec, parts=True)[1][:, :, self.picked]
        parts[:, [m for m, one in enumerate(self.measures) if kind_of(one)]] = math.nan
        for m, column in self.columns.items():
            parts[0, m], parts[1, m] = column.over, column.under
        return parts[0], parts[1]

    def ceilings(self) -> F64:
        """The most that each ranking's case allows, (n_measures, n)."""
        out = np.ones((len(self.measures), self.picked.size))
        for group, source, _ in self.plans:
            out[group] = ceilings([self.measures[m] for m in group], source)[:, self.picked]
        return out


def _nothing_in_common(
    rows: Rows, labels: Labels, rankings: Rankings, codes: CaseCodes
) -> InputError:
    """The error for a run and judgements that share no case, with ids that look alike."""
    names = codes.names()
    apart = rankings.case_of[rankings.label_of < 0]
    ours = [names[c] for c in dict.fromkeys(apart.tolist())]
    theirs = [names[c] for c in dict.fromkeys(labels.case_of.tolist())]
    alike = _alike(ours, theirs)
    return InputError(
        rows.where, f"no case in common with {labels.rows.where}: it has {_few(ours)}",
        f"cases like {_few(theirs)}",
        f"{alike} look alike" if alike else "check that run and judgements belong together",
    )  # fmt: skip


def _states(
    asked: list[Measure], values: Any, base: Any, top: Any, policy: dict[str, str], bare: Any
) -> tuple[Any, Any]:
    """State of every measure and ranking, and where `--no-relevant zero` makes a value 0.

    `values` is brought in line: NaN where the state is not ok.
    """
    if bare.any():
        values[:, bare] = math.nan
    blank = ~np.isfinite(values) & (base == schema.OK)
    graded = ("nDCG", "nDCG_exp", "ERR")
    least = np.array(
        [
            registry.MOST + 1 if one.params.get("gains")  # whatever the grade: it has no gain
            else 1 if one.definition.name in graded else one.rel
            for one in asked
        ]
    )  # fmt: skip
    may = np.array([one.definition.zero and policy["no_relevant"] == "zero" for one in asked])
    nothing = (top < least[:, None]) & ~bare
    zero = blank & np.isnan(values) & nothing & may[:, None]
    states = np.where(blank & ~zero, np.int8(schema.NA), base)
    values[zero] = 0.0
    values[states != schema.OK] = math.nan
    return states, zero


def _few(names: list[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:3])
    return f"{shown}{f' and {len(names) - 3} more' if len(names) > 3 else ''}" or "none"


def _alike(ours: list[str], theirs: list[str]) -> str:
    """A pair of case ids that look alike, for the message about an empty join."""
    pairs = audits.near(ours[:10_000], theirs[:10_000])
    if pairs:
        return f"{pairs[0][0]!r} and {pairs[0][1]!r} ({pairs[0][2]})"
    import difflib

    for name in ours[:50]:
        close = difflib.get_close_matches(name, theirs[:2000], n=1, cutoff=0.6)
        if close:
            return f"{name!r} and {close[0]!r}"
    return ""
