"""How much is decided, on which rung, and what is not: by relation and run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.formats.compute import pc
from ragcore.judges.codes import counted
from ragcore.judges.items import Items
from ragcore.judges.views import CONFLICT, OPINIONS, Judges, views_of
from ragcore.lists import integers, joined
from ragcore_kernels import verdicts as words


@dataclass(frozen=True)
class Coverage:
    """The items of one relation, of one run or of all.

    Attributes
    ----------
    relation, run : names; `run` ``""`` for all runs together, None for verdicts on cases.
    n_items, n_cases : judged at all.
    decided : items with a verdict that counts.
    rungs : by rung, items decided on it; `adjudicated` of them settled a dispute.
    disputed, contradictory, below_rung, errors : items without: equals differ or it is unclear
        (`contradictory` of them where adjudications differ); on a lower rung than the case
        requires; nothing but errors.
    verdicts : by verdict, decided items.
    """

    relation: str
    run: str | None
    n_items: int
    n_cases: int
    decided: int
    rungs: dict[str, int]
    adjudicated: int
    disputed: int
    contradictory: int
    below_rung: int
    errors: int
    verdicts: dict[str, int]

    @property
    def share_yes(self) -> float | None:
        """Share of yes among decided items; None without any."""
        return self.verdicts["yes"] / self.decided if self.decided else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the most that the share of yes may be, whatever the open items are."""
        if not self.n_items:
            return None
        yes = self.verdicts["yes"]
        return yes / self.n_items, (yes + self.n_items - self.decided) / self.n_items


@dataclass(frozen=True)
class JudgeCard:
    """One judge: what is pinned, and what it gave.

    Attributes
    ----------
    name, rungs : the rungs on which it stands.
    n_verdicts, n_items : given; items they bear on.
    n_errors, n_unclear, n_conflicts : items on which it said nothing else; on which it
        contradicts itself.
    n_adjudications : verdicts that settle disputes; in no agreement.
    prompts, rubrics : distinct ones; several of one version cannot be told apart by name.
    """

    name: str
    rungs: tuple[str, ...]
    n_verdicts: int
    n_items: int
    n_errors: int
    n_unclear: int
    n_conflicts: int
    n_adjudications: int
    prompts: int
    rubrics: int


def coverages(items: Items) -> list[Coverage]:
    """Of every relation, all runs together where there are several, then each of them."""
    out = []
    several, twice = np.unique(items.run).size > 1, contradictory(items)
    for code in np.unique(items.relation).tolist():
        own = items.relation == code
        if several:
            out.append(_coverage(items, twice, code, "", own))
        runs = np.unique(items.run[own]).tolist()
        named = sorted((items.name("run", run) or "", run) for run in runs)
        for _, run in named:
            out.append(
                _coverage(items, twice, code, items.name("run", run), own & (items.run == run))
            )
    return out


def contradictory(items: Items) -> Any:
    """(n,) bool, disputed items on which adjudications of the rung that counts differ."""
    given = items.judgments
    keep = given.adjudicated & (given.verdict < OPINIONS)
    keep = keep[items.row] & (given.rung[items.row] == items.rung[items.item])
    item, said = items.item[keep], given.verdict[items.row[keep]]
    low, high = np.full(len(items), 127, np.int8), np.full(len(items), -128, np.int8)
    np.minimum.at(low, item, said)
    np.maximum.at(high, item, said)
    return (items.verdict == words.DISPUTED) & items.adjudicated & (low < high)


def _coverage(items: Items, twice: Any, relation: int, run: str | None, own: Any) -> Coverage:
    verdict, rung = items.verdict[own], items.rung[own]
    decided = verdict >= 0
    on = counted(rung[decided], len(schema.RUNGS)).tolist()
    said = counted(verdict[decided], 4).tolist()
    return Coverage(
        schema.RELATIONS[relation], run, int(own.sum()), int(np.unique(items.case[own]).size),
        int(decided.sum()), dict(zip(schema.RUNGS, on, strict=True)),
        int((items.adjudicated[own] & decided).sum()), int((verdict == words.DISPUTED).sum()),
        int(twice[own].sum()), int((verdict == words.LOW_RUNG).sum()),
        int((verdict == words.FAILED).sum()),
        dict(zip(schema.VERDICTS[:4], said, strict=True)),
    )  # fmt: skip


def cards(items: Items, judges: Judges) -> list[JudgeCard]:
    """Every judge, by name."""
    given = items.judgments
    n = len(judges.names)
    views = views_of(items, judges)
    used = items.used
    rows = counted(judges.of[used], n)
    settled = counted(judges.of[used & given.adjudicated], n)
    on = np.zeros((n, len(schema.RUNGS)), np.bool_)
    on[judges.of, given.rung.astype(np.int64)] = True
    parts = [
        counted(views.judge[keep], n)
        for keep in (
            np.ones(views.said.size, np.bool_), views.said == words.ERROR,
            views.said == words.UNCLEAR, views.said == CONFLICT,
        )
    ]  # fmt: skip
    pins = [_distinct(items, judges, name) for name in ("prompt_sha256", "rubric")]
    return [
        JudgeCard(
            judges.names[j],
            tuple(r for r, yes in zip(schema.RUNGS, on[j], strict=True) if yes),
            int(rows[j]),
            int(parts[0][j]),
            int(parts[1][j]),
            int(parts[2][j]),
            int(parts[3][j]),
            int(settled[j]),
            pins[0][j],
            pins[1][j],
        )
        for j in range(n)
    ]


def _distinct(items: Items, judges: Judges, column: str) -> list[int]:
    """How many different texts each judge has in a column."""
    table = items.judgments.table
    if column not in table.column_names or not table.num_rows:
        return [0] * len(judges.names)
    coded = pc.dictionary_encode(joined(table[column]))
    codes = integers(coded.indices, table.num_rows)
    pairs = np.unique(np.stack([judges.of, codes])[:, codes >= 0], axis=1)
    return counted(pairs[0], len(judges.names)).tolist()
