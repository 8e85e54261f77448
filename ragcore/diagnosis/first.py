"""The first failing layer of every trace: a label to start at, not a proof that the rest is fine.

Rule, in order: `passed` if the end result is right; else `retrieval` if anything is required and
not all of it was retrieved; else `context` if not all of it was packed; else `generation` if state
or value of the proposal is wrong; else `citation`. A layer that is not recorded, disputed or failed
gives `unknown`, never passed; a later layer is not looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.results import RunScores

MEASURES = ("retrieval.coverage", "context.coverage", "generation.task", "end_to_end")
"""What the rule reads."""
PASSED, RETRIEVAL, CONTEXT, GENERATION, CITATION, UNKNOWN = range(6)
FIRST = ("passed", "retrieval", "context", "generation", "citation", "unknown")
"""Labels, in the order of the rule."""
DIFFERS = "differs"
"""What stands for a case whose languages or repeats do not fail in one layer."""


def first_failing(run: RunScores) -> Any:
    """(n,) int8, place in `FIRST` of every ranking.

    Raises
    ------
    UsageError
        If one of `MEASURES` was not scored.
    """
    places = {one.text: m for m, one in enumerate(run.measures)}
    absent = [name for name in MEASURES if name not in places]
    if absent:
        raise UsageError(f"{', '.join(absent)} not scored", f"score {', '.join(MEASURES)}")
    values = [run.values[places[name]] for name in MEASURES]
    states = [run.states[places[name]] for name in MEASURES]
    out = by_rule(values, states)
    absent = run.row_of < 0
    return np.where(absent, np.int8(UNKNOWN), out) if run.traces is not None else out


def by_rule(values: list[Any], states: list[Any]) -> Any:
    """The rule on values and states of `MEASURES`, (n,) each; (n,) int8."""
    retrieval, context, task, end = range(4)
    n = np.asarray(states[end]).size
    out = np.full(n, np.int8(CITATION))
    open_ = np.asarray(states[end]) == schema.OK
    out[~open_] = UNKNOWN
    done = ~open_
    right = open_ & (values[end] == 1.0)
    out[right], done = PASSED, done | right
    for layer, label in ((retrieval, RETRIEVAL), (context, CONTEXT), (task, GENERATION)):
        state = np.asarray(states[layer])
        lost = ~done & (state > schema.NA)
        out[lost], done = UNKNOWN, done | lost
        failed = ~done & (state == schema.OK) & (np.nan_to_num(values[layer]) < 1.0)
        out[failed], done = label, done | failed
    return out


def of_cases(run: RunScores, first: Any) -> dict[str, dict[str | None, str]]:
    """By case and language the label, or `DIFFERS` where repeats differ."""
    out: dict[str, dict[str | None, str]] = {}
    langs = run.lang or [None] * first.size
    for code, lang, place in zip(run.case_of.tolist(), langs, first.tolist(), strict=True):
        own = out.setdefault(run.case_names[code], {})
        word = FIRST[place]
        own[lang] = word if own.get(lang, word) == word else DIFFERS
    return out


def case_label(own: dict[str | None, str]) -> str:
    """One label for a case; `DIFFERS` where its languages do."""
    words = set(own.values())
    return words.pop() if len(words) == 1 else DIFFERS


def counts(run: RunScores, first: Any) -> dict[str, dict[str, int]]:
    """Cases by label: under ``all``, and under each language."""
    cases = of_cases(run, first)
    langs = sorted({lang for own in cases.values() for lang in own if lang is not None})
    out = {"all": dict.fromkeys((*FIRST, DIFFERS), 0)}
    out |= {lang: dict.fromkeys((*FIRST, DIFFERS), 0) for lang in langs}
    for own in cases.values():
        out["all"][case_label(own)] += 1
        for lang, word in own.items():
            if lang is not None:
                out[lang][word] += 1
    return out


def divergences(run: RunScores, first: Any) -> dict[str, dict[str | None, str]]:
    """Cases whose languages, or whose repeats, do not fail in one layer."""
    cases = of_cases(run, first)
    return {case: own for case, own in cases.items() if case_label(own) == DIFFERS}
