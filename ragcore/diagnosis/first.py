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
from ragcore.measures import layered, registry
from ragcore.measures.inputs import NO_COLUMN, Column, Inputs, missing
from ragcore.measures.required import over_required, reached
from ragcore.measures.selected import final
from ragcore.results import RunScores

MEASURES = ("retrieval.coverage", "context.coverage", "generation.task", "end_to_end")
"""What the rule reads."""
PASSED, RETRIEVAL, CONTEXT, GENERATION, CITATION, UNKNOWN = range(6)
FIRST: tuple[str, ...] = ("passed", "retrieval", "context", "generation", "citation", "unknown")
"""Labels, in the order of the rule."""
DIFFERS: str = "differs"
"""What stands for a case whose languages or repeats do not fail in one layer."""


def first_failing(run: RunScores) -> Any:
    """(n,) int8, place in `FIRST` of every ranking.

    Measures that were not scored are worked out beside, if the columns of the traces were read.

    Raises
    ------
    UsageError
        If one of `MEASURES` was not scored, and no other layered measure was.
    """
    values, states = zip(*(_found(run, name) for name in MEASURES), strict=True)
    out = by_rule(list(values), list(states))
    return np.where(run.row_of < 0, np.int8(UNKNOWN), out) if run.traces is not None else out


def readable(run: RunScores) -> bool:
    """Whether `first_failing` has what it needs: a run of traces, scored by a layered measure."""
    return run.traces is not None and run.inputs is not None


def _found(run: RunScores, name: str) -> tuple[Any, Any]:
    """Values and states of one measure, scored or worked out now."""
    for m, one in enumerate(run.measures):
        if one.text == name:
            return run.values[m], run.states[m]
    if run.inputs is None:
        raise UsageError(f"{name} was not scored", f"score {', '.join(MEASURES)}")
    if name == "retrieval.coverage":
        column = _retrieved(run.inputs).settled()
        with np.errstate(invalid="ignore"):
            return column.over / column.under, column.states
    values, states, _ = layered.evaluate(registry.parse([name]), run.inputs)
    return values[0], states[0]


def _retrieved(inputs: Inputs) -> Column:
    """Required evidence that the final ranking reaches."""
    evidence, one = inputs.evidence, final(inputs)
    if evidence is None or one is None:
        return missing(inputs, NO_COLUMN)
    return over_required(inputs, evidence, reached(inputs, evidence, one), one.present)


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


def of_case(run: RunScores, first: Any, code: int) -> str:
    """The label of one case, by its code; `DIFFERS` where its rankings differ; "" without any."""
    words = {FIRST[place] for place in first[run.case_of == code].tolist()}
    return DIFFERS if len(words) > 1 else words.pop() if words else ""


def counts(run: RunScores, first: Any) -> dict[str, dict[str, int]]:
    """Cases by label: under ``all``, and under each language."""
    cases = of_cases(run, first)
    langs = sorted({lang for own in cases.values() for lang in own if lang is not None})
    labels: list[str] = [*FIRST, DIFFERS]
    out = {name: dict.fromkeys(labels, 0) for name in ("all", *langs)}
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
