"""Thresholds on the raw score of one channel, tried on the validation split; one is chosen.

At each threshold: what passes, case by case, its recall, precision and F1; how often nothing passes
though there is an answer, and something though there is none; what the reader is given.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.casewise import reduce
from ragcore.experiments.config import Tuning
from ragcore.experiments.recording import Recording
from ragcore.experiments.replay import Replayed, replay, run_of
from ragcore.experiments.setups import Setup
from ragcore.plan import TOKENS
from ragcore.results import RunScores
from ragcore.score import score
from ragcore.summary import WHOLE, case_values, slices_of
from ragcore_kernels.layout import F64, I64

COLUMNS = (
    "channel", "threshold", "split", "slice", "n_cases", "recall", "n_recall", "precision",
    "n_precision", "f1", "n_f1", "no_result", "n_answerable", "any_result", "n_unanswerable",
    "context_tokens", "n_tokens", "chosen",
)  # fmt: skip
"""Of the curve: a row a threshold and slice. `n_...` are the cases that a mean is over."""
PASSING = {"bm25": "bm25", "dense": "dense", "dense_exact": "dense-exact"}
"""The strategy that has one channel alone."""


def curve(
    recording: Recording, production: Setup, tuning: Tuning, suite: Path, by: tuple[str, ...],
    split: str,
) -> list[dict[str, Any]]:  # fmt: skip
    """The curve of a threshold, over all cases and every value of the columns `by`.

    Parameters
    ----------
    recording : over the cases of `split` alone.
    production : all else stays as it is there.

    Notes
    -----
    What passes is the channel's own list, its first `candidate_k` that score at least the
    threshold. Where nothing passes recall is 0 and precision is na; F1, as twice what is right over
    what passes and what is wanted, is 0. Languages of a case are averaged first.
    """
    out: list[dict[str, Any]] = []
    alone = replace(
        production, strategy=PASSING[tuning.channel], context_k=production.candidate_k,
        thresholds={},
    )  # fmt: skip
    passing = [replay(recording, alone.cut_at(tuning.channel, t)) for t in tuning.values]
    ones = _scored(recording, alone, passing, suite, ["SetR", "SetP"])
    lists = [replay(recording, production.cut_at(tuning.channel, t)) for t in tuning.values]
    packs = _scored(recording, production, lists, suite, [TOKENS])
    for t, own, one, packed in zip(tuning.values, passing, ones, packs, strict=True):
        values = _values(one, np.array([_n(r) for r in own.final.rows], np.int64))
        parts: list[tuple[str, I64 | None]] = [(WHOLE, None)]
        for column in by:
            parts += slices_of(one, column)
        for name, rows in parts:
            out.append(
                {"channel": tuning.channel, "threshold": t, "split": split, "slice": name}
                | _row(one, values, rows) | _tokens(packed, rows) | {"chosen": False}
            )  # fmt: skip
    best = chosen(out, tuning)
    for row in out:
        row["chosen"] = best is not None and row["threshold"] == best[0]
    return out


def chosen(rows: list[dict[str, Any]], tuning: Tuning) -> tuple[float | None] | None:
    """The threshold that is best over all cases by the criterion, ties to the lower; None if none.

    In a tuple, as off is a threshold too.
    """
    best: tuple[float, float | None] | None = None
    for row in rows:
        value = row[tuning.choose]
        if row["slice"] == WHOLE and value is not None and (best is None or value > best[0]):
            best = value, row["threshold"]
    return None if best is None else (best[1],)


def _n(rows: Any) -> int:
    return -1 if rows is None else len(rows)


def _scored(
    recording: Recording, setup: Setup, lists: list[Replayed], suite: Path, measures: list[str]
) -> list[RunScores]:
    """The rankings of every threshold, scored together: labels are read once."""
    names = [f"threshold {i}" for i in range(len(lists))]
    runs = [run_of(recording, setup, one, {"run": name})
            for name, one in zip(names, lists, strict=True)]  # fmt: skip
    return score(runs, suite=suite, measures=measures, topics="common", names=names,
                 allow_empty=True).runs  # fmt: skip


def _values(run: RunScores, passing: I64) -> tuple[F64, Any]:
    """Recall, precision, F1, no result, any result by ranking, and their states.

    Parameters
    ----------
    passing : (n_questions,), length of each list; -1 where it is not known.
    """
    n = passing[run.row_of]
    recall, precision = run.values
    states = np.stack([run.states[0], run.states[1], run.states[0], *([run.states[0]] * 2)])
    states[1] = np.where((states[1] == schema.OK) & (n == 0), schema.NA, states[1])
    both = recall + precision
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = np.where((n == 0) | (both == 0), 0.0, 2 * recall * precision / both)
    answerable = _answerable(run)
    gone = np.where(n < 0, np.int8(schema.MISSING), np.int8(schema.OK))
    states[3] = np.where(answerable == 1, gone, np.int8(schema.NA))
    states[4] = np.where(answerable == 0, gone, np.int8(schema.NA))
    empty = (n == 0).astype(np.float64)
    return np.stack([recall, precision, f1, empty, (n > 0).astype(np.float64)]), states


def _answerable(run: RunScores) -> I64:
    """(n,), 1 or 0 as the cases say, -1 where they do not; without the column by the labels."""
    if run.cases is None or "answerable" not in run.cases.column_names:
        return np.where(run.states[0] == schema.OK, 1, -1)
    said = [-1 if v is None else int(v) for v in run.cases["answerable"].to_pylist()]
    return np.array([*said, -1], np.int64)[run.label_of]


def _row(run: RunScores, values: tuple[F64, Any], rows: I64 | None) -> dict[str, Any]:
    part = slice(None) if rows is None else rows
    groups = reduce(values[0][:, part], values[1][:, part], run.case_of[part])
    means: list[tuple[float | None, int]] = []
    for value, state in zip(groups.values, groups.states, strict=True):
        ok = value[state == schema.OK]
        means.append((math.fsum(ok) / ok.size if ok.size else None, int(ok.size)))
    names = (("recall", "n_recall"), ("precision", "n_precision"), ("f1", "n_f1"),
             ("no_result", "n_answerable"), ("any_result", "n_unanswerable"))  # fmt: skip
    out: dict[str, Any] = {"n_cases": int(groups.keys.size)}
    for (name, count), (mean, n) in zip(names, means, strict=True):
        out |= {name: mean, count: n}
    return out


def _tokens(run: RunScores, rows: I64 | None) -> dict[str, Any]:
    found = case_values(run, 0, rows)
    mean = math.fsum(found.values) / found.values.size if found.values.size else None
    return {"context_tokens": mean, "n_tokens": int(found.values.size)}
