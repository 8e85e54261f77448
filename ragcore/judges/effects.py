"""What another judge does to a measure: the same traces scored under one judge, then the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.aggregates import form_of
from ragcore.casewise import by_case
from ragcore.errors import UsageError
from ragcore.formats import arrow
from ragcore.judges.views import Judges
from ragcore.judgments import Judgments
from ragcore.lists import rows_of
from ragcore.score import score
from ragcore.stats import Paired, paired
from ragcore_kernels.layout import I64


@dataclass(frozen=True)
class Effect:
    """One measure of one run under two judges.

    Attributes
    ----------
    measure, run, before, after : names.
    paired : values of the cases under `after` less those under `before`, with an exact interval;
        `unpaired` cases have a value under one of them only.
    """

    measure: str
    run: str
    before: str
    after: str
    paired: Paired


def effects(
    runs: Sequence[tuple[str, pa.Table]], suite: Path, judgments: Judgments, judges: Judges,
    pair: tuple[str, str], measures: Sequence[str], level: float = 0.95,
) -> list[Effect]:  # fmt: skip
    """Score runs with the verdicts of one judge alone, then with those of another.

    Parameters
    ----------
    runs : name and traces of each, as `ragcore.judges.sensitivity.read_traces` gives them.
    suite : its folder.
    judgments : one verdict a row; those on replays told of the run that they replay.
    judges : of these verdicts.
    pair : names, as `Judges.find` takes them.
    measures : whose case values are averaged; others have no paired difference.
    level : of the intervals.

    Raises
    ------
    UsageError
        If a judge or measure is unknown, or a measure is no mean over cases.
    """
    sides = [judges.find(name) for name in pair]
    tables = [_table(judgments, np.flatnonzero(judges.of == side)) for side in sides]
    out = []
    for name, traces in runs:
        values: list[list[dict[str, float]]] = []
        texts: list[str] = []
        for table in tables:
            one = score(
                traces, suite=suite, judgments=table, measures=list(measures), names=[name]
            ).runs[0]
            for measure in one.measures:
                if not form_of(measure.aggregate).paired or measure.aggregate != "mean":
                    raise UsageError(
                        f"measure {measure.text!r} is no mean over cases",
                        "the effect of a judge is worked out from differences of cases",
                    )
            groups = by_case(one)
            cases = [one.codes.names()[code] for code in groups.keys.tolist()]
            texts = [measure.text for measure in one.measures]
            values.append([dict(zip(cases, row, strict=True)) for row in groups.values.tolist()])
        names = judges.names[sides[0]], judges.names[sides[1]]
        out += [
            Effect(text, name, *names, paired(a, b, level))
            for text, a, b in zip(texts, *values, strict=True)
        ]
    return out


def _table(given: Judgments, rows: I64) -> pa.Table:
    """Some verdicts as a table of judgments."""

    def named(what: str) -> pa.Array:
        codes = getattr(given, what)[rows].astype(np.int64)
        return given.names[what].cast(pa.string()).take(rows_of(codes))

    def word(options: tuple[str, ...], codes: Any) -> pa.Array:
        return arrow.texts(list(options)).cast(pa.string()).take(rows_of(codes.astype(np.int64)))

    def number(values: Any) -> pa.Array:
        most = int(values.max(initial=0))
        return arrow.numbers(np.arange(most + 1)).take(rows_of(values.astype(np.int64)))

    lists = given.evidence
    counts = lists.counts[rows]
    ends = np.concatenate([[0], np.cumsum(counts)])
    flat = np.arange(ends[-1]) + np.repeat(lists.offsets[rows] - ends[:-1], counts)
    items = lists.items.cast(pa.string()).take(rows_of(flat))
    return pa.table(
        {
            "run": named("run"), "case_id": named("case"), "lang": named("lang"),
            "repeat": number(given.repeat[rows]),
            "relation": word(schema.RELATIONS, given.relation[rows]),
            "claim": number(given.claim[rows]),
            "evidence": pa.ListArray.from_arrays(arrow.numbers(ends.astype(np.int32)), items),
            "verdict": word(schema.VERDICTS, given.verdict[rows]), "judge": named("judge"),
            "rung": word(schema.RUNGS, given.rung[rows]),
            "adjudicated": arrow.numbers(given.adjudicated[rows].astype(np.int8)).cast(pa.bool_()),
        }
    )  # fmt: skip
