"""What changes if another judge, or another version of one, looks at the same answers.

A frozen output is the answer of another run, judged again: `as_replayed` brings its verdicts to
the run that it replays, so that both judges have judged one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats.compute import pc
from ragcore.judges.estimates import case_shares
from ragcore.judges.items import Items
from ragcore.judges.views import Judges, share_yes, views_of
from ragcore.judgments import Judgments
from ragcore.lists import integers
from ragcore.stats import Paired, differences
from ragcore_kernels.layout import I64

FROZEN = "frozen_output"


@dataclass(frozen=True)
class Sensitivity:
    """Two judges on the same items of one relation and run.

    Attributes
    ----------
    relation, run, before, after : names; `run` None for verdicts about cases themselves.
    n_items : items on which both gave an opinion.
    n_open : items that both judged, one of them without an opinion.
    n_before, n_after : items that only one of them judged.
    flips : how often each (verdict of `before`, verdict of `after`) that differ.
    flipped, said : the items, and (2, k) what the two said of them.
    effect : share of yes of each case, `after` less `before`.
    """

    relation: str
    run: str | None
    before: str
    after: str
    n_items: int
    n_open: int
    n_before: int
    n_after: int
    flips: dict[tuple[str, str], int]
    flipped: I64
    said: Any
    effect: Paired

    @property
    def n_flips(self) -> int:
        """Items on which the two differ."""
        return self.flipped.size


def sensitivities(
    items: Items, judges: Judges, before: str, after: str, level: float = 0.95
) -> list[Sensitivity]:
    """Two judges compared on every relation and run that both judged.

    Parameters
    ----------
    before, after : names, as `Judges.find` takes them.
    level : of the intervals.

    Raises
    ------
    UsageError
        If a judge is unknown.
    """
    sides = [judges.find(name) for name in (before, after)]
    names = [judges.names[side] for side in sides]
    views = views_of(items, judges)
    said = np.full((2, len(items)), -9, np.int8)  # not judged
    for place, side in enumerate(sides):
        item, verdict = views.of(side)
        said[place, item] = verdict
    judged = said > -9
    opinion = (said >= 0) & (said < 4)
    kind = items.relation * (int(items.run.max(initial=-1)) + 2) + items.run + 1
    out = []
    for code in np.unique(kind[judged.all(axis=0)]).tolist():
        own = kind == code
        both = np.flatnonzero(own & opinion.all(axis=0))
        shares = [case_shares(items, both, share_yes(said[place, both]))[1] for place in (0, 1)]
        flipped = both[said[0, both] != said[1, both]]
        pairs, counts = np.unique(said[:, flipped], axis=1, return_counts=True)
        flips = {
            (schema.VERDICTS[int(a)], schema.VERDICTS[int(b)]): int(n)
            for (a, b), n in zip(pairs.T, counts, strict=True)
        }
        first = int(np.flatnonzero(own)[0])
        out.append(
            Sensitivity(
                schema.RELATIONS[int(items.relation[first])],
                items.name("run", int(items.run[first])),
                names[0],
                names[1],
                both.size,
                int((own & judged.all(axis=0)).sum()) - both.size,
                int((own & judged[0] & ~judged[1]).sum()),
                int((own & judged[1] & ~judged[0]).sum()),
                flips,
                flipped,
                said[:, flipped],
                differences(shares[0], shares[1], level),
            )
        )
    return out


# --- replays


def replays(runs: Sequence[tuple[str, pa.Table]]) -> dict[str, str]:
    """Which run each run of frozen outputs replays, by name.

    Parameters
    ----------
    runs : name and traces of each; a run counts if all of its traces are of the condition
        ``frozen_output``, and `pair` names the `trace` of one other run, case by case.

    Raises
    ------
    InputError
        If a frozen output names no trace that is given, or one of another case, language or
        repeat, or if the traces of one run replay several runs.
    """
    home: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for name, table in runs:
        if "trace" in table.column_names:
            keys = _keys(table)
            for trace, key in zip(table["trace"].to_pylist(), keys, strict=True):
                if trace is not None:
                    home[trace] = (name, key)
    found: dict[str, str] = {}
    for name, table in runs:
        if "condition" not in table.column_names or "pair" not in table.column_names:
            continue
        if not table.num_rows or set(table["condition"].to_pylist()) != {FROZEN}:
            continue
        for row, (pair, key) in enumerate(
            zip(table["pair"].to_pylist(), _keys(table), strict=True)
        ):
            if pair not in home:
                raise InputError(
                    name, f"pair {pair!r} of a frozen output", "a trace of one of the runs given",
                    "give the run that it replays as well", row=row + 1,
                )  # fmt: skip
            run, other = home[pair]
            if other != key:
                raise InputError(
                    name, f"a frozen output of {key} that replays {other}",
                    "the same case, language and repeat", row=row + 1,
                )  # fmt: skip
            if found.setdefault(name, run) != run:
                raise InputError(
                    name, f"frozen outputs of the runs {found[name]!r} and {run!r}", "one run",
                    row=row + 1,
                )  # fmt: skip
    return found


def _keys(table: pa.Table) -> list[tuple[Any, ...]]:
    names = [n for n in ("case_id", "lang", "repeat") if n in table.column_names]
    return list(zip(*(table[n].to_pylist() for n in names), strict=True))


def as_replayed(judgments: Judgments, runs: dict[str, str]) -> Judgments:
    """The same verdicts, those on a replay told of the run that it replays.

    Parameters
    ----------
    runs : replay -> run, as `replays` gives them.
    """
    names = judgments.names["run"]
    if not runs or not len(names):
        return judgments
    moved = pa.array([runs.get(word, word) for word in names.to_pylist()], names.type)
    distinct = pc.unique(moved)
    place = np.append(integers(pc.index_in(moved, value_set=distinct), len(moved)), -1)
    return replace(
        judgments, run=place[judgments.run].astype(np.int32),
        names={**judgments.names, "run": distinct},
    )  # fmt: skip


def read_traces(path: str | Path) -> tuple[str, pa.Table]:
    """Name and traces of a run file: what `replays` takes.

    Raises
    ------
    InputError
        If it is no case batch.
    """
    from ragcore.formats import arrow
    from ragcore.suites import manifest_of

    table = arrow.read_checked(
        Path(path), "a case batch", "columns case_id, trace, pair, condition"
    )
    if "case_id" not in table.column_names:
        raise InputError(path, f"columns {', '.join(table.column_names)}", "a column case_id")
    return str(manifest_of(table).get("run") or Path(path).stem), table
