"""Two runs -> pairs: each case on both sides, over the same languages, repeats averaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.audits import some
from ragcore.casewise import Groups, by_case, reduce
from ragcore.errors import InputError
from ragcore.results import LANGS, RunScores
from ragcore_kernels.layout import F64, I64


@dataclass
class Pairs:
    """Every measure on the cases of two runs.

    Attributes
    ----------
    cases : (n,), codes of all cases of either run, ascending.
    before, after : (n_measures, n), values over what both runs have; NaN where not matched.
    matched : (n_measures, n), whether both have a value for at least one language in common.
    own : the two runs by themselves, all their rankings counted; for means and denominators.
    parts : of measures that are pooled, by number: numerators and denominators of the baseline,
        then of the candidate, (n,) each, over what both runs have.
    """

    cases: I64
    before: F64
    after: F64
    matched: Any
    own: tuple[Groups, Groups]
    parts: dict[int, tuple[F64, F64, F64, F64]] = field(default_factory=dict)


@dataclass
class Unmatched:
    """What one run has and the other lacks; lists hold case ids.

    Attributes
    ----------
    cases, variants : for baseline and candidate, what only that one has.
    missing : judged cases without a ranking in one run only; they score as empty there.
    repeats : cases with another number of repeats.
    """

    cases: tuple[list[str], list[str]]
    variants: tuple[list[str], list[str]]
    missing: tuple[list[str], list[str]]
    repeats: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """What was found, for people."""
        said = []
        for found, what in (
            (self.cases, "case(s) of the {} alone, not paired"),
            (self.missing, "judged case(s) missing in the {} alone, scored there as empty"),
            (self.variants, "case(s) in a language that only the {} has, not paired"),
        ):
            for side, names in zip(("baseline", "candidate"), found, strict=True):
                if names:
                    said.append(f"{len(names)} {what.format(side)}: {some(names)}")
        if self.repeats:
            said.append(
                f"{len(self.repeats)} case(s) with another number of repeats, means compared: "
                f"{some(self.repeats)}"
            )
        return said


def pair(
    before: RunScores, after: RunScores, rows: tuple[I64 | None, I64 | None] = (None, None)
) -> Pairs:
    """Bring two runs together, case by case.

    Inside a case each language is compared with itself: the mean over repeats on either side,
    then the mean over the languages that both have a value for. So a run that was recorded in
    other languages, or with more repeats of one of them, does not look better or worse for it.

    Parameters
    ----------
    before, after : scored together, so that codes of cases are the same.
    rows : rankings of a slice, of either run; None for all.
    """
    own = by_case(before, rows[0]), by_case(after, rows[1])
    cases = np.union1d(own[0].keys, own[1].keys)
    values = _matched((before, after), rows, (before.values, after.values), cases)
    out = Pairs(cases, *values, ~np.isnan(values[0]), own)
    for m, one in enumerate(before.measures):
        if one.aggregate == "micro":
            pick = slice(m, m + 1)
            over, under = (
                _matched(
                    (before, after), rows,
                    (before.fractions[i][pick], after.fractions[i][pick]), cases, pick,
                )
                for i in range(2)
            )  # fmt: skip
            out.parts[m] = (over[0][0], under[0][0], over[1][0], under[1][0])
    return out


def _matched(
    runs: tuple[RunScores, RunScores],
    rows: tuple[I64 | None, I64 | None],
    values: tuple[F64, F64],
    cases: I64,
    pick: slice = slice(None),
) -> tuple[F64, F64]:
    """Numbers of both runs by case, over the variants that both have; NaN where there are none."""
    groups = []
    for run, part, own in zip(runs, rows, values, strict=True):
        at = slice(None) if part is None else part
        groups.append(reduce(own[:, at], run.states[pick, at], run.variants[at]))
    left, right = groups
    shared, at_left, at_right = np.intersect1d(
        left.keys, right.keys, assume_unique=True, return_indices=True
    )
    ok = (left.states[:, at_left] == schema.OK) & (right.states[:, at_right] == schema.OK)
    states = np.where(ok, np.int8(schema.OK), np.int8(schema.MISSING))
    sides = [
        reduce(group.values[:, at], states, shared // LANGS)
        for group, at in ((left, at_left), (right, at_right))
    ]
    place = np.searchsorted(cases, sides[0].keys)
    out = [np.full((left.values.shape[0], cases.size), np.nan) for _ in sides]
    for array, side in zip(out, sides, strict=True):
        array[:, place] = side.values
    return out[0], out[1]


def unmatched(
    before: RunScores, after: RunScores, missing: tuple[list[str], list[str]]
) -> Unmatched:
    """What only one of two runs has.

    Parameters
    ----------
    missing : judged cases without a ranking, of either run.
    """
    if all(run.single and run.lang is None for run in (before, after)):
        names = after.case_names
        alone = (np.setdiff1d(mine.case_of, other.case_of).tolist() for mine, other in
                 ((before, after), (after, before)))  # fmt: skip
        left, right = ([names[c] for c in codes] for codes in alone)
        return Unmatched((left, right), ([], []), _lost(missing))
    sides: list[dict[str, dict[str | None, int]]] = []
    for run in (before, after):
        found: dict[str, dict[str | None, int]] = {}
        langs = run.lang or [None] * run.case_of.size
        absent = run.row_of < 0 if run.traces is not None else np.zeros(run.case_of.size, np.bool_)
        for code, lang, gone in zip(run.case_of.tolist(), langs, absent.tolist(), strict=True):
            own = found.setdefault(run.case_names[code], {})
            own[lang] = own.get(lang, 0) + (not gone)
        sides.append(found)
    left, right = sides
    both = [case for case in left if case in right]
    gone = {*missing[0], *missing[1]}
    return Unmatched(
        ([c for c in left if c not in right], [c for c in right if c not in left]),
        ([c for c in both if left[c].keys() - right[c].keys()],
         [c for c in both if right[c].keys() - left[c].keys()]),
        _lost(missing),
        [
            c for c in both if c not in gone
            and any(left[c][lang] != right[c][lang] for lang in left[c].keys() & right[c].keys())
        ],
    )  # fmt: skip


def _lost(missing: tuple[list[str], list[str]]) -> tuple[list[str], list[str]]:
    """What is missing on one side only."""
    return sorted({*missing[0]} - {*missing[1]}), sorted({*missing[1]} - {*missing[0]})


def refuse(found: Unmatched, where: tuple[str, str]) -> None:
    """Stop where two runs are not of the same cases, languages and repeats.

    Raises
    ------
    InputError
        If they are not; the message says what differs.
    """
    if said := found.sentences():
        raise InputError(
            where[1], "; ".join(said), f"the cases, languages and repeats of {where[0]}",
            "compare what both have with --unmatched leave",
        )  # fmt: skip
