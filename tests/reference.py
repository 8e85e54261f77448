"""Every ranked measure in plain Python: slow, obvious, and the truth that the kernels must meet.

One topic at a time. `ranked` is the list of ids, best first, without repeats; `grades` maps
an id to its integer judgement. A negative grade means *in the pool, not judged*: the document
counts as unjudged everywhere, except that inferred AP counts it as pooled. A document counts
as relevant from grade `rel` on; gains come from every grade above zero, whatever `rel`.

A function returns None where the measure is not applicable: mostly because no document is
relevant (then `score` gives 0 or None, as the caller decides), for `Judged` because nothing
was retrieved, for an exponential gain because it overflows.

Definitions: trec_eval 10 for its own measures, gdeval for ERR and the exponential gain,
ir_measures for RBP and Judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reference_names import Spec, parse
from reference_topic import Grades, Topic, condense, discount, order, round_half_away

__all__ = ["aggregate", "condense", "measure", "order", "parse", "score"]

INFAP_EPSILON = 1e-5
"""Smoothing of inferred AP's estimate."""

GEOMETRIC_FLOOR = 1e-5
"""Values below this enter a geometric mean as this."""


# --- cut-off and rank measures


def precision(t: Topic) -> float | None:
    depth = t.k if t.k is not None else len(t.list)
    if not t.n_relevant:
        return None
    return t.hits() / depth if depth else 0.0


def recall(t: Topic) -> float | None:
    return t.hits() / t.n_relevant if t.n_relevant else None


def recall_capped(t: Topic) -> float | None:
    """Relevant found, by the most that k ranks can hold; without k, the ranks retrieved."""
    depth = t.k if t.k is not None else len(t.list)
    if not t.n_relevant:
        return None
    return t.hits() / min(t.n_relevant, depth) if depth else 0.0


def success(t: Topic) -> float | None:
    return float(t.hits() > 0) if t.n_relevant else None


def reciprocal_rank(t: Topic) -> float | None:
    if not t.n_relevant:
        return None
    for rank, doc in enumerate(t.list, start=1):
        if t.hit(doc):
            return 1.0 / rank
    return 0.0


def average_precision(t: Topic) -> float | None:
    """Mean over *all* relevant documents, also with a cut-off."""
    if not t.n_relevant:
        return None
    found, parts = 0, []
    for rank, doc in enumerate(t.list, start=1):
        if t.hit(doc):
            found += 1
            parts.append(found / rank)
    return math.fsum(parts) / t.n_relevant


def r_precision(t: Topic) -> float | None:
    return r_precision_multiple(t, 1.0)


def r_precision_multiple(t: Topic, multiple: float) -> float | None:
    """Precision at `multiple` times the number of relevant documents, rounded up at .1."""
    if not t.n_relevant:
        return None
    depth = t.n_relevant if multiple == 1.0 else int(multiple * t.n_relevant + 0.9)
    return sum(1 for doc in t.list[:depth] if t.hit(doc)) / depth if depth else 0.0


def rank_biased_precision(t: Topic, p: float = 0.8) -> float | None:
    """Binary gains: one scale for all topics."""
    if not t.n_relevant:
        return None
    return (1.0 - p) * math.fsum(p**i for i, doc in enumerate(t.list) if t.hit(doc))


def interpolated_precision(t: Topic, recall_level: float) -> float | None:
    """Best precision from the rank on where `recall_level` of the relevant are found."""
    if not t.n_relevant:
        return None
    wanted = round_half_away(recall_level * t.n_relevant)
    if wanted > t.hits():
        return 0.0
    found, best = 0, 0.0
    for rank, doc in enumerate(t.list, start=1):
        found += t.hit(doc)
        if found >= wanted:
            best = max(best, found / rank)
    return best


ELEVEN_POINTS = tuple(i / 10 for i in range(11))


def average_interpolated(t: Topic, points: Sequence[float] = ELEVEN_POINTS) -> float | None:
    if not t.n_relevant:
        return None
    return math.fsum(interpolated_precision(t, point) or 0.0 for point in points) / len(points)


# --- graded gains


def gain_table(t: Topic, gains: Mapping[int, float] | None, exponential: bool) -> dict[int, float]:
    """Gain of each grade that occurs; grades without an own gain are worth themselves."""
    table = {grade: float(grade) for grade in t.grades.values() if grade >= 0}
    if exponential:
        table = {grade: 2.0**grade - 1.0 for grade in table}  # OverflowError above 1023
    for grade, gain in (gains or {}).items():
        if grade in table:
            table[grade] = float(gain)
    return table


def ndcg(
    t: Topic, gains: Mapping[int, float] | None = None, exponential: bool = False
) -> float | None:
    """The ideal list holds every judged gain above zero, and is cut at k like the run's."""
    try:
        table = gain_table(t, gains, exponential)
        worth = [table[grade] for grade in t.grades.values() if grade >= 0 and table[grade] > 0]
        ideal = sorted(worth, reverse=True)[: t.k]
        best = math.fsum(gain / discount(rank) for rank, gain in enumerate(ideal, start=1))
    except OverflowError:
        return None
    if best == 0.0:
        return None
    reached = []
    for rank, doc in enumerate(t.list, start=1):
        grade = t.grade(doc)
        if grade is not None:
            reached.append(table[grade] / discount(rank))
    return math.fsum(reached) / best


def ndcg_exponential(t: Topic) -> float | None:
    return ndcg(t, exponential=True)


def expected_reciprocal_rank(t: Topic, max: int = 4) -> float | None:
    """Chance that the user stops at each rank, by its reciprocal."""
    highest = -1
    for grade in t.grades.values():
        highest = grade if grade > highest else highest
    if highest > max:
        raise ValueError(f"grade {highest} is above the greatest, {max}")
    if highest <= 0:
        return None
    parts, still_reading = [], 1.0
    for rank, doc in enumerate(t.list, start=1):
        stop = (2.0 ** (t.grade(doc) or 0) - 1.0) / 2.0**max
        parts.append(still_reading * stop / rank)
        still_reading *= 1.0 - stop
    return math.fsum(parts)


def binary_gain(t: Topic) -> float | None:
    """trec_eval's binG: each relevant document discounted by the others ahead of it."""
    if not t.n_relevant:
        return None
    others, parts = 0, []
    for doc in t.list:
        if t.hit(doc):
            parts.append(1.0 / math.log2(2 + others))
        else:
            others += 1
    return math.fsum(parts) / t.n_relevant


# --- incomplete judgements


def bpref(t: Topic) -> float | None:
    """Judged non-relevant documents ahead of each relevant one; unjudged ones are skipped."""
    if not t.n_relevant:
        return None
    nonrelevant = sum(1 for grade in t.grades.values() if 0 <= grade < t.rel)
    ahead, parts = 0, []
    for doc in t.list:
        if t.grade(doc) is None:
            continue
        if t.hit(doc):
            bound = min(nonrelevant, t.n_relevant)
            parts.append(1.0 - min(ahead, t.n_relevant) / bound if ahead else 1.0)
        else:
            ahead += 1
    return math.fsum(parts) / t.n_relevant


def inferred_ap(t: Topic) -> float | None:
    """Expected precision above each relevant document, from the judged sample of the pool."""
    if not t.n_relevant:
        return None
    relevant = nonrelevant = pooled = 0
    parts = []
    for above, doc in enumerate(t.list):
        if doc not in t.grades:
            continue
        if t.grade(doc) is None:
            pooled += 1
        elif not t.hit(doc):
            nonrelevant += 1
        elif above == 0:
            relevant += 1
            parts.append(1.0)
        else:
            in_pool = (relevant + nonrelevant + pooled) / above
            share = (relevant + INFAP_EPSILON) / (relevant + nonrelevant + 2 * INFAP_EPSILON)
            parts.append((1.0 + above * in_pool * share) / (above + 1))
            relevant += 1
    return math.fsum(parts) / t.n_relevant


def judged(t: Topic) -> float | None:
    """Share of the first k that has a judgement; a short list is measured by its length."""
    seen = len(t.list)
    return len(condense(t.list, t.grades)) / seen if seen else None


def unjudged(t: Topic) -> float:
    """trec_eval's unj_k: unjudged in the first k, by k."""
    holes = len(t.list) - len(condense(t.list, t.grades))
    depth = t.k if t.k is not None else len(t.list)
    return holes / depth if depth else 0.0


# --- sets and counts


def set_f(t: Topic, beta: float = 1.0) -> float | None:
    if not t.n_relevant:
        return None
    if not t.hits():
        return 0.0
    p, r = t.hits() / len(t.list), t.hits() / t.n_relevant
    return (beta + 1.0) * p * r / (beta * p + r)


def set_average_precision(t: Topic) -> float | None:
    if not t.n_relevant:
        return None
    return t.hits() ** 2 / (len(t.list) * t.n_relevant) if t.list else 0.0


def utility(t: Topic, a: float = 1.0, b: float = -1.0, c: float = 0.0, d: float = 0.0) -> float:
    """Contingency table, weighted; the collection is taken to hold nothing but these."""
    found, retrieved, relevant = t.hits(), len(t.list), t.n_relevant
    neither = found - retrieved - relevant
    return a * found + b * (retrieved - found) + c * (relevant - found) + d * neither


def nonrelevant_judged(t: Topic) -> float:
    return float(len(condense(t.list, t.grades)) - t.hits())


MEASURES: dict[str, Callable[..., float | None]] = {
    "P": precision,
    "R": recall,
    "R_capped": recall_capped,
    "Success": success,
    "RR": reciprocal_rank,
    "AP": average_precision,
    "nDCG": ndcg,
    "nDCG_exp": ndcg_exponential,
    "Rprec": r_precision,
    "RBP": rank_biased_precision,
    "ERR": expected_reciprocal_rank,
    "Bpref": bpref,
    "infAP": inferred_ap,
    "IPrec": interpolated_precision,
    "Judged": judged,
    "NumQ": lambda t: 1.0,
    "NumRet": lambda t: float(len(t.list)),
    "NumRel": lambda t: float(t.n_relevant),
    "NumRelRet": lambda t: float(t.hits()),
    "SetP": precision,
    "SetR": recall,
    "SetF": set_f,
    "11pt_avg": average_interpolated,
    "Rprec_mult": r_precision_multiple,
    "utility": utility,
    "set_map": set_average_precision,
    "num_nonrel_judged_ret": nonrelevant_judged,
    "unj": unjudged,
    "binG": binary_gain,
}

COUNTS = frozenset({"NumQ", "NumRet", "NumRel", "NumRelRet", "num_nonrel_judged_ret"})
"""Summed over topics, not averaged."""

GAINED = frozenset({"nDCG", "nDCG_exp", "ERR"})
"""Built on gains: not applicable without a gain above zero, whatever `rel` says."""


def measure(
    kind: str,
    ranked: Sequence[str],
    grades: Grades,
    k: int | None = None,
    rel: int = 1,
    *,
    judged_only: bool = False,
    **params: Any,
) -> float | None:
    """One measure of one topic, None where it is not applicable."""
    if judged_only:
        ranked = condense(ranked, grades)
    return MEASURES[kind](Topic(ranked, grades, k, rel), **params)


def nothing_to_find(spec: Spec, grades: Grades, rel: int) -> bool:
    """Whether the measure lacks what it looks for: a relevant document, or a gain."""
    if spec.kind in GAINED:
        gains = spec.params.get("gains", {})
        return not any(grade >= 0 and gains.get(grade, grade) > 0 for grade in grades.values())
    return not any(grade >= max(rel, 0) for grade in grades.values())


def score(
    name: str, ranked: Sequence[str], grades: Grades, rel: int = 1, no_relevant: str = "zero"
) -> float | None:
    """The measure called `name`; 0 without anything to find, unless `no_relevant` is "na"."""
    spec = parse(name)
    rel = rel if spec.rel is None else spec.rel
    value = measure(spec.kind, ranked, grades, spec.k, rel, **spec.params)
    if value is None and no_relevant == "zero" and spec.kind != "Judged":
        return 0.0 if nothing_to_find(spec, grades, rel) else None
    return value


def aggregate(name: str, values: Iterable[float | None]) -> float:
    """One number for all topics: mean, geometric mean or total; not-applicable ones left out."""
    spec = parse(name)
    numbers = [value for value in values if value is not None]
    if spec.kind in COUNTS:
        return math.fsum(numbers)
    if not numbers:
        return math.nan
    if spec.geometric:
        return math.exp(
            math.fsum(math.log(max(value, GEOMETRIC_FLOOR)) for value in numbers) / len(numbers)
        )
    return math.fsum(numbers) / len(numbers)
