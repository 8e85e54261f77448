"""Verdicts that come many at a time: one list for all claims of a ranking, put into its cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.verdicts import (
    BAD_CLAIM,
    BAD_ROW,
    COUNTS,
    MATCHED,
    NO_VERDICT,
    NOT_SHOWN,
    OTHER_RUN,
    OTHER_VARIANT,
    UNCLEAR,
    UNITS,
    UNKNOWN_CASE,
    WHOLE,
    apart,
    put,
)

BAD_RANKING = COUNTS
"""Place in `counts` of the ranking that the first bad row did not fit."""


@inline
def fill(own: Any, rank: int, cells: Any, ranks: Any) -> int:
    """A list of verdicts into as many cells; how many verdicts there are.

    Parameters
    ----------
    own : int8, the verdicts, -1 for none.
    rank : of all of them.
    cells, ranks : int8, as long, in and out.
    """
    plain = np.int8(0)
    for k in range(own.size):  # without a branch, as nearly every list is plain
        plain |= np.int8(own[k] < 0) | np.int8(own[k] >= UNCLEAR) | np.int8(ranks[k] != NO_VERDICT)
    if plain == 0:
        for k in range(own.size):
            cells[k] = own[k]
            ranks[k] = rank
        return own.size
    found = 0
    for k in range(own.size):
        if own[k] >= 0:
            found += 1
            put(k, own[k], rank, cells, ranks)
    return found


@kernel
def unfold(
    begin: int, end: int, wanted: int, mode: int, relation: Any, case: Any, lang: Any, run: Any,
    repeat: Any, rank: Any, lists: I64, values: Any, evidence: I64, unit: I64, case_code: I64,
    lang_code: I64, own_run: int, starts: I64, members: I64, langs: I64, repeats: I64,
    claims: I64, shown: I64, units: I64, offsets: I64, cells: Any, ranks: Any, counts: I64,
) -> None:  # fmt: skip
    """Put lists of verdicts of one relation into the cells of rankings, as `verdicts.settle` would.

    A list has a verdict for each claim; or for each claim and chunk, row by row, the chunks being
    those that the row names or else those that the ranking shows.

    Parameters
    ----------
    begin, end : lists to look at.
    wanted, mode : the relation; what the cells are.
    relation, rank : (n,) int8 each.
    case, lang, run, repeat : (n,), codes and number; -1 of the last three speaks of all.
    lists, values : (n + 1,) and flat int8, the verdicts of each list, -1 for none.
    evidence, unit : (n + 1,) and flat, codes of the chunks that a row names.
    case_code, lang_code : the judgments' codes to those of the rankings, -1 for unknown.
    own_run : the judgments' code of this run, -2 if they never name it.
    starts, members : rankings of each case.
    langs, repeats : (n_rankings,), code and number, -1 where null.
    claims, shown, units : offsets of claims; offsets and flat codes of the units of each ranking.
    offsets : (n_rankings + 1,) of the cells.
    cells, ranks : int8, in and out: verdict or reason, and its rank.
    counts : (10,), added to by verdict; lists of a wrong length in `BAD_CLAIM`, the first of
        them in `BAD_ROW` (-1 at first) and `BAD_RANKING`.
    """
    for row in range(begin, end):
        if relation[row] != wanted:
            continue
        first, size = lists[row], lists[row + 1] - lists[row]
        if run[row] >= 0 and run[row] != own_run:
            counts[OTHER_RUN] += size
            continue
        code = case_code[case[row]]
        if code < 0 or starts[code] == starts[code + 1]:
            counts[UNKNOWN_CASE] += size
            continue
        named = evidence[row + 1] - evidence[row] if mode >= UNITS else 0
        met = False
        for m in range(starts[code], starts[code + 1]):
            r = members[m]
            spoken = lang_code[lang[row]] if lang[row] >= 0 else -1
            if apart(lang[row], spoken, langs[r], repeat[row], repeats[r]):
                continue
            met = True
            width = shown[r + 1] - shown[r] if mode >= UNITS else 1
            columns = named if named > 0 else width
            rows = 1 if mode in (WHOLE, UNITS) else claims[r + 1] - claims[r]
            if size != rows * columns:
                counts[BAD_CLAIM] += 1
                if counts[BAD_ROW] < 0:
                    counts[BAD_ROW] = row
                    counts[BAD_RANKING] = r
                continue
            at = offsets[r]
            if named == 0:
                own = values[first : first + size]
                counts[MATCHED] += fill(
                    own, rank[row], cells[at : at + size], ranks[at : at + size]
                )
                continue
            for c in range(named):
                found = 0
                for place in range(width):
                    if units[shown[r] + place] != unit[evidence[row] + c]:
                        continue
                    found = 1
                    for k in range(rows):
                        if values[first + k * named + c] >= 0:
                            to = at + k * width + place
                            put(to, values[first + k * named + c], rank[row], cells, ranks)
                counts[MATCHED if found else NOT_SHOWN] += rows
        if not met:
            counts[OTHER_VARIANT] += size
