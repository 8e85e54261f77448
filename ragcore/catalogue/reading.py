"""The ladder of a suite in words: what each step gained, which types part the strategies."""

from __future__ import annotations

from dataclasses import dataclass

from ragcore import contrast
from ragcore.catalogue.ladder import SuiteRun
from ragcore.plan import Plan
from ragcore.stats import Paired

TINY = 8
"""Cases; a slice of fewer describes and decides nothing."""


@dataclass(frozen=True)
class Type:
    """One query type on the primary measure.

    Attributes
    ----------
    name : of the type.
    n : cases with a value, by run.
    means : by run; None without a case.
    best : runs whose mean is the greatest, if they are not all alike.
    """

    name: str
    n: list[int]
    means: list[float | None]
    best: list[str]


def types_of(run: SuiteRun, measure: str, by: str = "type") -> list[Type]:
    """The primary measure by query type, the largest types first; empty without such a column."""
    if run.scores is None or by not in run.suite.cases.column_names:
        return []
    names = [one.name for one in run.scores.runs]
    found: dict[str, dict[str, tuple[int, float | None]]] = {}
    for row in run.scores.rows((by,)):
        if row["measure"] == measure and row["slice"] != "all":
            kind = row["slice"].partition("=")[2]
            found.setdefault(kind, {})[row["run"]] = row["n_ok"], row["mean"]
    out = []
    for kind, cells in found.items():
        pairs = [cells.get(name, (0, None)) for name in names]
        means = [mean for _, mean in pairs]
        known = [mean for mean in means if mean is not None]
        top = max(known, default=None)
        alike = top is None or min(known) == top
        best = [n for n, m in zip(names, means, strict=True) if not alike and m == top]
        out.append(Type(kind, [n for n, _ in pairs], means, best))
    return sorted(out, key=lambda one: (-max(one.n, default=0), one.name))


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
    kinds = types_of(run, primary)
    for name in (one.name for one in scores.runs):
        won = [one.name for one in kinds if one.best == [name] and max(one.n) >= TINY]
        if won:
            out.append(f"{name} is best on its own for {', '.join(won)}")
    out += _sides(run, kinds)
    tiny = [one.name for one in kinds if 0 < max(one.n) < TINY]
    if tiny:
        out.append(f"{', '.join(tiny)}: fewer than {TINY} cases with a value, descriptive only")
    return out


def _sides(run: SuiteRun, kinds: list[Type]) -> list[str]:
    """Words against vectors, without the hybrid of both: who is ahead on which types."""
    assert run.scores is not None
    names = [one.name for one in run.scores.runs]
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
                left, right = (kind.means[i] for i in at)
                if left is None or right is None or left == right or max(kind.n) < TINY:
                    continue
                won[int(right > left)].append(kind.name)
            said = [
                f"{one.name} is ahead on {', '.join(types)}"
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
    out = []
    for i, one in enumerate(climbed):
        first = next(k for k, other in enumerate(climbed) if other.scope == one.scope)
        if i == first:
            continue
        cell = contrast.of(run.scores, first, i, how).whole()[primary]
        out.append(_step(primary, climbed[first].name, one.name, cell.paired))
    return out


def _step(primary: str, before: str, after: str, one: Paired) -> str:
    if one.delta is None or one.low is None or one.high is None:
        return f"{primary}, {before} -> {after}: no interval ({one.reason or 'too few cases'})"
    what = (
        "a gain" if one.low > 0 else "a loss" if one.high < 0 else "the interval includes 0: noise"
    )
    return (
        f"{primary}, {before} -> {after}: {one.before:.4f} -> {one.after:.4f}, "
        f"{one.delta:+.4f} [{one.low:.4f}, {one.high:.4f}] over {one.n} cases, "
        f"{one.wins} won, {one.losses} lost: {what}"
    )


def _rooms(run: SuiteRun, primary: str) -> list[str]:
    """Whether the primary measure can still show a difference."""
    rooms = {one.name: one.room[primary] for one in run.rungs if primary in one.room}
    shut = [f"{name} ({room})" for name, room in rooms.items() if room.state and not room.live]
    if shut:
        return [f"{primary} can show no gain, or no loss, over {'; '.join(shut)}"]
    if any(room.live for room in rooms.values()):
        return [f"{primary} is live for every run: neither saturated nor floored nor by chance"]
    return []
