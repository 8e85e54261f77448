"""The ladder of a suite in words: what each step gained, which types part the strategies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragcore import contrast
from ragcore.catalogue.ladder import SuiteRun
from ragcore.plan import Plan
from ragcore.stats import Paired

TINY = 8
"""Cases; a slice of fewer describes and decides nothing."""
NEAR = 1e-9
"""Means that are closer are alike: they differ by rounding."""
_NOISE = "the interval includes 0: noise"
_SAID = {
    "more": ("a gain", "a loss"), "less": ("a loss", "a gain"),
    "neither": ("more, neither better nor worse", "less, neither better nor worse"),
}  # fmt: skip


@dataclass(frozen=True)
class Type:
    """One query type on the primary measure.

    Attributes
    ----------
    name : of the type.
    n : cases with a value, by run.
    means : by run; None without a case.
    best : runs whose mean is the best among those that search the same chunks, if these are not
        all alike and rest on as many cases; empty where the measure is better neither way.
    """

    name: str
    n: list[int]
    means: list[float | None]
    best: list[str]


def types_of(run: SuiteRun, measure: str, by: str = "type") -> list[Type]:
    """The primary measure by query type, the largest first; empty without such a column.

    Parameters
    ----------
    by : another column of the cases to slice by.
    """
    if run.scores is None or by not in run.suite.cases.column_names:
        return []
    names = [one.name for one in run.scores.runs]
    found: dict[str, dict[str, tuple[int, float | None]]] = {}
    for row in run.scores.rows((by,)):
        if row["measure"] == measure and row["slice"] != "all":
            kind = row["slice"].partition("=")[2]
            found.setdefault(kind, {})[row["run"]] = row["n_ok"], row["mean"]
    groups, better = _groups(run), _better(run, measure)
    out = []
    for kind, cells in found.items():
        pairs = [cells.get(name, (0, None)) for name in names]
        best = {i for group in groups for i in _best(pairs, group, better)}
        out.append(Type(
            kind, [n for n, _ in pairs], [mean for _, mean in pairs],
            [name for i, name in enumerate(names) if i in best],
        ))  # fmt: skip
    return sorted(out, key=lambda one: (-max(one.n, default=0), one.name))


def _groups(run: SuiteRun) -> list[list[int]]:
    """Numbers of the runs that search the same chunks: means of others do not compare."""
    together: dict[tuple[str, ...], list[int]] = {}
    for i, one in enumerate(one for one in run.rungs if not one.skipped):
        together.setdefault(one.scope.filters, []).append(i)
    return list(together.values())


def _better(run: SuiteRun, measure: str) -> str:
    """Whether more or less of a measure is better, or neither."""
    assert run.scores is not None
    known = {one.text: one.definition.better for one in run.scores.runs[0].measures}
    return known.get(measure, "more")


def _best(pairs: list[tuple[int, float | None]], group: list[int], better: str) -> list[int]:
    """Which of a group have the best mean; none where all are alike, or do not compare."""
    means = [mean for n, mean in (pairs[i] for i in group) if mean is not None]
    if len(means) < max(len(group), 2) or len({pairs[i][0] for i in group}) > 1:
        return []
    top = {"more": max, "less": min}.get(better, lambda _: math.nan)(means)
    won = [i for i, mean in zip(group, means, strict=True) if abs(mean - top) <= NEAR]
    return won if len(won) < len(group) else []


def pivots(run: SuiteRun, measure: str) -> dict[str, list[Type]]:
    """`types_of` by every column that the suite is sliced by and that has several values."""
    columns = dict.fromkeys(["type", *run.entry.settings.get("by", ())])
    found = {name: types_of(run, measure, name) for name in columns}
    return {name: kinds for name, kinds in found.items() if len(kinds) > 1}


def sentences(run: SuiteRun, level: float = 0.95) -> list[str]:
    """What the ladder says, a sentence each; the primary measure is the first that was scored."""
    out = [f"{one.name}: not evaluated, {one.skipped}" for one in run.rungs if one.skipped]
    if run.scores is None:
        return out
    scores = run.scores
    primary = scores.measures[0]
    climbed = [one for one in run.rungs if not one.skipped]
    if any(one.strategy for one in climbed):
        out += _steps(run, primary, level)
    out += _rooms(run, primary)
    kinds, groups = types_of(run, primary), _groups(run)
    names = [one.name for one in scores.runs]
    for group in groups:
        own = [names[i] for i in group]
        for name in own:
            won = [
                one.name for one in kinds
                if [n for n in one.best if n in own] == [name] and max(one.n) >= TINY
            ]  # fmt: skip
            if won:
                out.append(f"{name} alone has the best mean{_among(own, names)}: {', '.join(won)}")
    out += _sides(run, kinds)
    tiny = [one.name for one in kinds if 0 < max(one.n) < TINY]
    if tiny:
        out.append(f"{', '.join(tiny)}: fewer than {TINY} cases with a value, descriptive only")
    return out


def _among(own: list[str], names: list[str]) -> str:
    """Among which runs, where they are not all."""
    return "" if len(own) == len(names) else f" of {', '.join(own)}"


def _sides(run: SuiteRun, kinds: list[Type]) -> list[str]:
    """Words against vectors, without the hybrid of both: who is ahead on which types."""
    assert run.scores is not None
    names = [one.name for one in run.scores.runs]
    better = _better(run, run.scores.measures[0])
    out = []
    for words in run.rungs:
        for vectors in run.rungs:
            sides = (words, vectors)
            if (words.strategy, vectors.strategy[:5]) != ("bm25", "dense"):
                continue
            if words.scope != vectors.scope or any(one.skipped for one in sides):
                continue
            at = [names.index(one.name) for one in sides]
            won: list[list[str]] = [[], []]
            for kind in kinds:
                pairs = list(zip(kind.n, kind.means, strict=True))
                best = _best(pairs, at, better)
                if len(best) == 1 and max(kind.n) >= TINY:
                    won[at.index(best[0])].append(kind.name)
            said = [
                f"{one.name} has the better mean on {', '.join(types)}"
                for one, types in zip(sides, won, strict=True) if types
            ]  # fmt: skip
            if said:
                out.append(f"of the two alone, {'; '.join(said)}")
    return out


def _steps(run: SuiteRun, primary: str, level: float) -> list[str]:
    """Each rung against the first of its scope."""
    assert run.scores is not None
    how = contrast.Settings(Plan(), (), level)
    climbed = [one for one in run.rungs if not one.skipped]
    out, better = [], _better(run, primary)
    for i, one in enumerate(climbed):
        first = next(k for k, other in enumerate(climbed) if other.scope == one.scope)
        if i == first:
            continue
        cell = contrast.of(run.scores, first, i, how).whole()[primary]
        out.append(_step(primary, climbed[first].name, one.name, cell.paired, better))
    return out


def _step(primary: str, before: str, after: str, one: Paired, better: str) -> str:
    """One rung against another; what is better counts as a gain."""
    if one.delta is None or one.low is None or one.high is None:
        return f"{primary}, {before} -> {after}: no interval ({one.reason or 'too few cases'})"
    rose, fell = _SAID[better]
    what = rose if one.low > 0 else fell if one.high < 0 else _NOISE
    return (
        f"{primary}, {before} -> {after}: {one.before:.4f} -> {one.after:.4f}, "
        f"{one.delta:+.4f} [{one.low:.4f}, {one.high:.4f}] over {one.n} cases, "
        f"{one.wins} won, {one.losses} lost: {what}"
    )


def _rooms(run: SuiteRun, primary: str) -> list[str]:
    """Whether the primary measure can still show a difference."""
    rooms = {one.name: one.room[primary] for one in run.rungs if primary in one.room}
    shut = {
        name: room for name, room in rooms.items()
        if room.state in ("saturated", "unresolvable", "floored")
    }  # fmt: skip
    chance = {name: room for name, room in rooms.items() if room.random is not None}
    live = [name for name, room in rooms.items() if room.live]
    out = []
    if shut:
        named = "; ".join(f"{name} ({room})" for name, room in shut.items())
        out.append(f"{primary} can show no gain, or no loss, over {named}")
    if chance:
        named = "; ".join(f"{name} ({room.random:.3f})" for name, room in chance.items())
        said = "this share of what is relevant is found by a random ranking up to its cut-off"
        out.append(f"{primary} is dominated by chance; {said}: {named}")
    if live and len(live) == sum(not one.skipped for one in run.rungs):
        out.append(f"{primary} is live for every run: neither saturated nor floored nor by chance")
    elif live:
        out.append(f"{primary} is live for {', '.join(live)}")
    return out
