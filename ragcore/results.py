"""Scores of one run: values and states of every ranking, and as rows of `schema.SCORES`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.columns import CaseCodes
from ragcore.measures.definitions import Measure
from ragcore_kernels.layout import F64, I64

NO_RELEVANT, EMPTY, UNDEFINED, NO_FORM = (
    "no-relevant", "empty-ranking", "undefined", "no-closed-form",
)  # fmt: skip
NOT_REQUIRED, NOT_RECORDED, ERROR, LABEL = (
    "nothing-required", "not-recorded", "error", "label-not-final",
)  # fmt: skip


LANGS = 1 << 20
"""Languages that a case may have; `RunScores.variants` is the case's code times this and more."""


@dataclass
class Audit:
    """What did not join, and what was noticed; lists hold case ids.

    Attributes
    ----------
    missing_in_run : judged, but the run has no ranking: scored as empty (or left out by policy).
    not_judged : in the run, but not judged at all: never part of a mean.
    no_relevant : judged, but nothing is relevant: 0 or na, by policy.
    no_judgements : in the suite, but without any evidence.
    near_misses : (id in the run, judged id, how they differ) for ids that would join but for
        padding, case, Unicode form or white space; cases first, then documents.
    near_missed : rankings looked at for near misses of documents, and rankings in all.
    warnings : sentences for people.
    counts : everything counted, by name.
    """

    missing_in_run: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    no_relevant: list[str] = field(default_factory=list)
    no_judgements: list[str] = field(default_factory=list)
    near_misses: list[tuple[str, str, str]] = field(default_factory=list)
    near_missed: tuple[int, int] = (0, 0)
    warnings: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class RunScores:
    """Every measure of every ranking of one run.

    Attributes
    ----------
    name, where : of the run.
    measures : columns of what follows.
    values : (n_measures, n), NaN where the state is not ok.
    states : (n_measures, n), int8, see `schema.STATES`.
    case_of : (n,), code of the case.
    lang, repeat : of each ranking, or None.
    row_of, label_of : (n,), row of the run's table and of the suite's cases, or -1.
    codes : the cases' ids behind the codes.
    policy : the policies that shaped the numbers, by name.
    spent : measures without any value, as it would take too long to count them out.
    quotients, ceilings : called, they give numerators and denominators, and the most that each
        ranking's case allows, (n_measures, n) each.
    lost : codes of the judged cases that the run has no ranking of; None for none.
    slices : by column, made when first asked for.
    manifest : what the run says of itself.
    columns : of layered measures, the `measures.inputs.Column` that values come from.
    inputs : what they were worked out of, `measures.inputs.Inputs`; None without such measures.
    """

    name: str
    where: str
    measures: list[Measure]
    values: F64
    states: Any
    case_of: I64
    lang: list[str | None] | None
    repeat: list[int | None] | None
    row_of: I64
    label_of: I64
    codes: CaseCodes
    policy: dict[str, str]
    zeroed: dict[str, int] = field(default_factory=dict)
    traces: pa.Table | None = None
    cases: pa.Table | None = None
    empty: Any = None
    quotients: Any = None
    ceilings: Any = None
    lost: I64 | None = None
    slices: dict[str, list[tuple[str, I64]]] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)
    columns: dict[int, Any] = field(default_factory=dict)
    inputs: Any = None

    @cached_property
    def case_names(self) -> list[str]:
        """Case id of every code; made when first asked for, as plain scores need none."""
        return self.codes.names()

    @cached_property
    def code_of(self) -> dict[str, int]:
        """Code of every case id."""
        return {name: code for code, name in enumerate(self.case_names)}

    @cached_property
    def missing(self) -> list[str]:
        """Judged cases that the run has no ranking of."""
        return [] if self.lost is None else [self.case_names[c] for c in self.lost.tolist()]

    @cached_property
    def variants(self) -> I64:
        """Case and language of each ranking as one number, the same in every run."""
        langs, n = self.codes.langs, self.case_of.size
        if self.lang is None:
            return self.case_of * LANGS + langs.setdefault(None, len(langs))
        own = (langs.setdefault(lang, len(langs)) for lang in self.lang)
        return self.case_of * LANGS + np.fromiter(own, np.int64, n)

    @cached_property
    def fractions(self) -> tuple[F64, F64]:
        """Numerators and denominators, (n_measures, n) each; 0/0 where a value is no fraction."""
        over, under = self.quotients()
        bad = np.isnan(over) | np.isnan(under)
        return np.where(bad, 0.0, over), np.where(bad, 0.0, under)

    @cached_property
    def single(self) -> bool:
        """Whether every case has one ranking, in the order of the codes."""
        return bool((self.case_of[1:] > self.case_of[:-1]).all())

    def reasons(self, m: int) -> list[str | None]:
        """Why each ranking has the state it has, for one measure."""
        states = self.states[m]
        if not states.any():
            return [None] * states.size
        name = self.measures[m].definition.name
        na = EMPTY if name == "Judged" else NO_RELEVANT
        if name == "retrieval.coverage":
            na = NOT_REQUIRED
        if self.measures[m].text in self.spent:
            na = NO_FORM
        words: list[str | None] = [None, na, NOT_RECORDED, LABEL, ERROR]
        if m in self.columns:
            words[schema.NA] = UNDEFINED
            for state, word in self.columns[m].why.items():
                words[state] = word
        return [words[s] for s in states.tolist()]

    def rungs(self, m: int) -> list[str | None]:
        """The lowest rung of the verdicts behind each ranking's value; None without verdicts."""
        found = self.columns[m].rungs if m in self.columns else None
        if found is None:
            return [None] * self.case_of.size
        return [schema.RUNGS[r] if r >= 0 else None for r in found.tolist()]

    def table(self) -> pa.Table:
        """`schema.SCORES`: one row a measure and ranking, none dropped."""
        n = self.case_of.size
        m = len(self.measures)
        values = self.values.ravel()
        ok = self.states.ravel() == schema.OK
        numerators, denominators = self.quotients() if self.quotients else (values, values)
        names = np.array(self.case_names, object)[self.case_of].tolist()
        codes = self.states.ravel().astype(np.int32)
        states = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(schema.STATES))
        reasons = [word for i in range(m) for word in self.reasons(i)]
        rungs = [word for i in range(m) for word in self.rungs(i)]
        return pa.table(
            [
                pa.array([self.name] * (n * m), pa.string()),
                pa.array(names * m, pa.string()),
                pa.array((self.lang or [None] * n) * m, pa.string()),
                pa.array((self.repeat or [None] * n) * m, pa.int16()),
                pa.array([one.text for one in self.measures for _ in range(n)], pa.string()),
                pa.array(values, mask=~ok),
                pa.array(numerators.ravel(), mask=~ok | np.isnan(numerators.ravel())),
                pa.array(denominators.ravel(), mask=~ok | np.isnan(denominators.ravel())),
                states.cast(schema.DICT),
                pa.array(reasons, pa.string()).dictionary_encode().cast(schema.DICT),
                pa.array(rungs, pa.string()).dictionary_encode().cast(schema.DICT),
            ],
            schema=schema.SCORES,
        )
