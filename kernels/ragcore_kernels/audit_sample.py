"""The cases that people are to audit: a seeded sample whose shares are declared beforehand.

The order of a case depends on its id and on the seed alone, by a hash in whole numbers. So the
sample is the same on every machine and in whatever order cases come, and cases that are added
later leave the order of the others as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

HIGH_RISK, SYSTEM_DISAGREEMENT, JUDGE_DISAGREEMENT, REST = range(4)
"""Strata. A case that belongs to several stands in the first of them."""

STRATA = ("high-risk", "system-disagreement", "judge-disagreement", "rest")
"""Their names."""

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(word: int) -> int:
    """SplitMix64's output for a state."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def seeded_hash(case_id: str, seed: int) -> int:
    """64-bit hash of the bytes of an id, another one for each seed.

    Parameters
    ----------
    case_id : any text; its bytes in UTF-8 count.
    seed : from 0 to 2**64 - 1.

    Notes
    -----
    The state starts from the seed and the number of bytes; each eight bytes, the first the lowest
    and the last ones filled up with zeros, are joined by exclusive or, and SplitMix64 takes a step.

    References
    ----------
    Steele, Lea & Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
    """
    data = case_id.encode("utf-8", "surrogatepass")
    state = _mix((_mix((seed + _GOLDEN) & _WORD) + len(data) * _GOLDEN) & _WORD)
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little")
        state = _mix(((state ^ word) + _GOLDEN) & _WORD)
    return state


@dataclass(frozen=True)
class AuditPlan:
    """How much is to be audited.

    Parameters
    ----------
    share : aimed at in each stratum but the rest.
    least_share, most_share : its bounds, rounded up and down to whole cases, one at least.
    least, most : cases in all.
    """

    share: float = 0.15
    least_share: float = 0.10
    most_share: float = 0.20
    least: int = 30
    most: int = 50

    def __post_init__(self) -> None:
        if not 0.0 <= self.least_share <= self.share <= self.most_share <= 1.0:
            shares = f"{self.least_share}, {self.share}, {self.most_share}"
            raise ValueError(f"shares are {shares}; expected them rising, from 0 to 1")
        if not 0 <= self.least <= self.most:
            raise ValueError(
                f"least is {self.least}, most {self.most}; expected 0 <= least <= most"
            )


@dataclass(frozen=True)
class AuditSample:
    """Cases to audit, and how they came about.

    Parameters
    ----------
    case_ids : by stratum, inside a stratum by their hash.
    strata : stratum of each.
    available, chosen : (4,), cases of each stratum, and those taken.
    seed : of the hash.
    notes : which bound could not be kept, and why; empty if all are.
    """

    case_ids: tuple[str, ...]
    strata: tuple[int, ...]
    available: tuple[int, ...]
    chosen: tuple[int, ...]
    seed: int
    notes: tuple[str, ...]


def stratum_of(high_risk: bool, systems_disagree: bool, judges_disagree: bool) -> int:
    """Stratum of a case from what is known of it; the first that applies."""
    flags = (high_risk, systems_disagree, judges_disagree, True)
    return flags.index(True)


def _rounded(share: float, n: int, up: bool) -> int:
    """``share * n`` rounded up or down, as if the share were the decimal that it prints as."""
    parts = round(share * 10**9) * n
    return -(-parts // 10**9) if up else parts // 10**9


def _apportioned(total: int, sizes: Sequence[int]) -> list[int]:
    """`total` cases split as `sizes` are, by greatest remainders; the first stratum wins a tie."""
    whole = sum(sizes)
    parts = [total * size // whole for size in sizes]
    order = sorted(range(len(sizes)), key=lambda h: (-(total * sizes[h] % whole), h))
    for h in order[: total - sum(parts)]:
        parts[h] += 1
    return parts


def sample_sizes(available: Sequence[int], plan: AuditPlan) -> tuple[list[int], list[str]]:
    """Cases to take from each stratum, and notes on the bounds that cannot be kept.

    Parameters
    ----------
    available : (4,), cases of each stratum.
    plan : shares and totals.

    Notes
    -----
    First the share of each stratum but the rest, one case at least; if that is more than `most`,
    the least shares; if these are too many as well, `most` is split by size and a note says so.
    Then the rest: its least share if `most` allows, and more up to `least`. If cases are still
    wanting, the other strata give up to their greatest share, then what they have, with a note.
    """
    sizes, n_rest = list(available[:REST]), available[REST]
    floors = [max(_rounded(plan.least_share, n, up=True), min(n, 1)) for n in sizes]
    tops = [max(_rounded(plan.most_share, n, up=False), floors[h]) for h, n in enumerate(sizes)]
    aims = [(_rounded(2 * plan.share, n, up=False) + 1) // 2 for n in sizes]  # half rounds up
    chosen = [min(max(aims[h], floors[h]), tops[h]) for h in range(REST)]
    notes = []
    if sum(floors) > plan.most:
        notes.append(
            f"{plan.least_share:.0%} of the {sum(sizes)} flagged cases are {sum(floors)}; "
            f"only {plan.most} are audited"
        )
        chosen = _apportioned(plan.most, floors)
    elif sum(chosen) > plan.most:
        above = [chosen[h] - floors[h] for h in range(REST)]
        parts = _apportioned(plan.most - sum(floors), above)
        chosen = [floors[h] + parts[h] for h in range(REST)]
    wanted = min(_rounded(plan.least_share, n_rest, up=True), plan.most - sum(chosen))
    rest = min(n_rest, max(wanted, plan.least - sum(chosen)))
    short = max(plan.least - sum(chosen) - rest, 0)
    for limits in (tops, sizes):
        for h in range(REST):
            more = min(short, limits[h] - chosen[h])
            chosen[h] += more
            short -= more
    if short:
        notes.append(f"{sum(available)} cases in all, fewer than the {plan.least} to audit")
    elif any(chosen[h] > tops[h] for h in range(REST)):
        notes.append(f"{plan.least} cases take more than {plan.most_share:.0%} of a stratum")
    return [*chosen, rest], notes


def audit_sample(
    case_ids: Sequence[str], strata: Iterable[int], seed: int, plan: AuditPlan | None = None
) -> AuditSample:
    """Choose the cases to audit.

    Parameters
    ----------
    case_ids : (n,), distinct.
    strata : (n,), one of `HIGH_RISK`, `SYSTEM_DISAGREEMENT`, `JUDGE_DISAGREEMENT`, `REST` each.
    seed : from 0 to 2**64 - 1; to be declared with the release.
    plan : shares and totals; None for 10 to 20 % of the first three strata, 30 to 50 in all.

    Returns
    -------
    From each stratum the cases of least `seeded_hash`; of equal ones, the least id.

    Raises
    ------
    ValueError
        If an id stands twice or is no text, a stratum or the seed is out of range, or the lengths
        differ.
    """
    codes = list(strata)
    if len(codes) != len(case_ids):
        raise ValueError(f"{len(case_ids)} case ids and {len(codes)} strata; expected as many")
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed <= _WORD:
        raise ValueError(f"seed is {seed}; expected a whole number from 0 to 2**64 - 1")
    groups: list[list[tuple[int, str]]] = [[] for _ in STRATA]
    seen: set[str] = set()
    for i, (case_id, code) in enumerate(zip(case_ids, codes, strict=True)):
        if not isinstance(case_id, str):
            raise ValueError(f"case_ids[{i}] is {case_id!r}; expected text")
        if case_id in seen:
            raise ValueError(f"case id {case_id!r} stands twice; expected distinct ids")
        if code not in (HIGH_RISK, SYSTEM_DISAGREEMENT, JUDGE_DISAGREEMENT, REST):
            raise ValueError(f"strata[{i}] is {code}; expected a whole number from 0 to 3")
        seen.add(case_id)
        groups[int(code)].append((seeded_hash(case_id, int(seed)), case_id))
    available = [len(group) for group in groups]
    chosen, notes = sample_sizes(available, plan or AuditPlan())
    picked = [
        (case_id, code) for code, group in enumerate(groups)
        for _, case_id in sorted(group)[: chosen[code]]
    ]  # fmt: skip
    return AuditSample(
        tuple(case_id for case_id, _ in picked), tuple(code for _, code in picked),
        tuple(available), tuple(chosen), int(seed), tuple(notes),
    )  # fmt: skip
