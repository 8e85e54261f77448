"""Many verdicts on one item become one, or none: in a single pass, in whatever order they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64

YES, PARTIAL, NO, CONTRADICTS, UNCLEAR, ERROR = range(6)
"""What a judge says, in the order of the schema."""
MISSING, DISPUTED, FAILED, LOW_RUNG = -1, -2, -3, -4
"""What stands in a cell without a verdict: none given; equals that differ, or one that leaves it
open; nothing but errors; settled on a lower rung than the case requires."""
WHOLE, CLAIMS, UNITS, PAIRS = range(4)
"""What the cells of a ranking are: one; one a claim; one a unit; claims x units, row by row."""
UNKNOWN_CASE, OTHER_RUN, OTHER_VARIANT, NOT_SHOWN, SEVERAL, OVERALL, MATCHED, BAD_CLAIM, BAD_ROW = (
    range(9)
)
"""Places in `counts`: verdicts by what became of them; of the last, the first bad row, or -1."""
COUNTS = 9
NO_VERDICT, ONLY_ERRORS = -1, 0
"""Ranks of cells; a verdict's own are `rank_of`, from 1."""


@inline
def apart(lang: int, code: int, own_lang: int, repeat: int, own_repeat: int) -> bool:
    """Whether a verdict speaks of another language or repeat than a ranking's.

    Parameters
    ----------
    lang, repeat : of the verdict, -1 if it speaks of all.
    code : its language as the rankings number them.
    own_lang, own_repeat : of the ranking, -1 if it does not say.
    """
    if lang >= 0 and own_lang >= 0 and code != own_lang:
        return True
    return repeat >= 0 and own_repeat >= 0 and repeat != own_repeat


@inline
def put(at: int, verdict: int, rank: int, cells: Any, ranks: Any) -> None:
    """One verdict into one cell.

    Parameters
    ----------
    at : the cell.
    verdict, rank : what was said, and how much it counts, as `rank_of` makes it.
    cells, ranks : int8, in and out: verdict or reason, and its rank.
    """
    if verdict == ERROR:
        if ranks[at] == NO_VERDICT:
            ranks[at] = ONLY_ERRORS
            cells[at] = FAILED
        return
    said = DISPUTED if verdict == UNCLEAR else verdict
    if rank > ranks[at]:
        ranks[at] = rank
        cells[at] = said
    elif rank == ranks[at] and cells[at] != said:
        cells[at] = DISPUTED


@kernel
def settle(
    begin: int, end: int, wanted: int, mode: int, relation: Any, case: Any, lang: Any, run: Any,
    repeat: Any, claim: Any, verdict: Any, rank: Any, evidence: I64, unit: I64, case_code: I64,
    lang_code: I64, own_run: int, starts: I64, members: I64, langs: I64, repeats: I64,
    claims: I64, shown: I64, units: I64, offsets: I64, cells: Any, ranks: Any, counts: I64,
) -> None:  # fmt: skip
    """Put the verdicts of one relation into the cells of rankings.

    The highest rank on a cell counts; equals that differ dispute it, in any order. An error
    counts only where nothing else stands.

    Parameters
    ----------
    begin, end : verdicts to look at.
    wanted, mode : the relation; what the cells are (`WHOLE`, `CLAIMS`, `UNITS`, `PAIRS`).
    relation, verdict, rank : (n,) int8 each; rank as `rank_of` makes it.
    case, lang, run : (n,) int32, codes; -1 of lang and run speaks of all.
    repeat, claim : (n,) int16, -1 where null; a null repeat speaks of all.
    evidence, unit : (n + 1,) and flat, codes of the chunks that a verdict was given.
    case_code, lang_code : the judgments' codes to those of the rankings, -1 for unknown.
    own_run : the judgments' code of this run, -2 if they never name it.
    starts, members : rankings of each case.
    langs, repeats : (n_rankings,), code and number, -1 where null.
    claims : (n_rankings + 1,) offsets of claims.
    shown, units : (n_rankings + 1,) and flat, the units of each ranking; a verdict on a unit that
        stands twice holds for both places.
    offsets : (n_rankings + 1,) of the cells.
    cells, ranks : int8, in and out: verdict or reason, and its rank.
    counts : (9,), added to; `BAD_ROW` is to be -1 at first.
    """
    for row in range(begin, end):
        if relation[row] != wanted:
            continue
        if run[row] >= 0 and run[row] != own_run:
            counts[OTHER_RUN] += 1
            continue
        code = case_code[case[row]]
        if code < 0 or starts[code] == starts[code + 1]:
            counts[UNKNOWN_CASE] += 1
            continue
        if mode >= UNITS and evidence[row + 1] - evidence[row] != 1:
            counts[SEVERAL] += 1
            continue
        if mode in (CLAIMS, PAIRS) and claim[row] < 0:
            counts[OVERALL] += 1
            continue
        met = False
        for k in range(starts[code], starts[code + 1]):
            r = members[k]
            spoken = lang_code[lang[row]] if lang[row] >= 0 else -1
            if apart(lang[row], spoken, langs[r], repeat[row], repeats[r]):
                continue
            met = True
            at = offsets[r]
            if mode in (CLAIMS, PAIRS):
                if claim[row] >= claims[r + 1] - claims[r]:
                    counts[BAD_CLAIM] += 1
                    if counts[BAD_ROW] < 0:
                        counts[BAD_ROW] = row
                    continue
                width = shown[r + 1] - shown[r] if mode == PAIRS else 1
                at += claim[row] * width
            if mode < UNITS:
                counts[MATCHED] += 1
                put(at, verdict[row], rank[row], cells, ranks)
                continue
            found = 0
            for place in range(shown[r], shown[r + 1]):
                if units[place] == unit[evidence[row]]:
                    found = 1
                    put(at + place - shown[r], verdict[row], rank[row], cells, ranks)
            counts[MATCHED if found else NOT_SHOWN] += 1
        if not met:
            counts[OTHER_VARIANT] += 1


@kernel
def hold_to_rung(offsets: I64, needed: Any, ranks: Any, cells: Any) -> int:
    """Take back verdicts from a lower rung than their case requires; how many.

    Parameters
    ----------
    offsets : (n_rankings + 1,) of the cells.
    needed : (n_rankings,) int8, the rung that each case requires, 0 for any.
    ranks : of the cells, as `settle` leaves them.
    cells : in and out; those taken back become `LOW_RUNG`.
    """
    total = 0
    for r in range(offsets.size - 1):
        if needed[r] > 0:
            for at in range(offsets[r], offsets[r + 1]):
                if cells[at] >= 0 and ((ranks[at] - 1) & 15) >> 1 < needed[r]:
                    cells[at] = LOW_RUNG
                    total += 1
    return total


def rank_of(adjudicated: Any, rung: Any, declared: Any) -> Any:
    """Rank of verdicts, int8 from 1: adjudicated, then the higher rung, then the declared judge.

    Parameters
    ----------
    adjudicated, declared : bool, whether a verdict settles a dispute; is the declared judge's.
    rung : place on the ladder, from 0.
    """
    out = rung.astype(np.int8) * np.int8(2) + np.int8(1)
    return out + np.int8(16) * adjudicated.astype(np.int8) + declared.astype(np.int8)


def rung_of(ranks: Any) -> Any:
    """Rung of the verdicts that `ranks` are of; -1 where there is none."""
    found = ((ranks - np.int8(1)) & np.int8(15)) >> np.int8(1)
    return np.where(ranks > 0, found, np.int8(-1))


@kernel
def summarise(begin: int, end: int, offsets: I64, cells: Any, ranks: Any, out: Any) -> None:
    """Of each ranking the reasons among its cells, and the lowest rank of a verdict.

    Parameters
    ----------
    begin, end : rankings to do.
    offsets : (n_rankings + 1,) of the cells.
    cells, ranks : int8, as `settle` leaves them.
    out : (n_rankings, 2) int8, filled: a bit for each reason, 1 << (-1 - reason), 0 without any;
        the lowest rung of a verdict, -1 without any.
    """
    for r in range(begin, end):
        reasons, lowest = np.int8(0), np.int8(127)
        for at in range(offsets[r], offsets[r + 1]):
            if cells[at] < 0:
                reasons |= np.int8(1 << (-1 - cells[at]))
            if ranks[at] > 0:
                lowest = min(lowest, np.int8(((ranks[at] - 1) & 15) >> 1))
        out[r, 0] = reasons
        out[r, 1] = lowest if lowest < 127 else -1
