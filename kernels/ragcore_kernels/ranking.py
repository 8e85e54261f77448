"""One pass over each ranking: which judged documents it retrieved, and at which ranks.

Nothing is sorted and nothing is joined as a whole. The judged ids of a case go into a small
hash table that stays in the first-level cache; its rows stream past once, and two bitmaps
turn nearly all of them away: one of what is judged, one of what was seen. The few that stay
(the *hits*) get their rank from their position where the scores do not rise, corrected inside
a group of ties by id, else by counting the rows above. A ranking that needs more than that is
left to `tidy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import kernel, load_i32
from ragcore_kernels.ids import hash_id, locate, same_id
from ragcore_kernels.layout import I64
from ragcore_kernels.rows import (
    fall,
    load_rows,
    power_above,
    rank_of,
    row_at,
    same_rows,
    shift_for,
)

RECORDED, BY_SCORE = range(2)
"""How a list is ordered: as it was recorded, or by score descending, then id descending."""

FINE, DUPLICATE_ROW, NAN_SCORE, CONFLICTING_GRADES, UNTIDY, OUTSIDE = range(6)
"""What may be wrong with a ranking; `PROBLEM_A` and `PROBLEM_B` then name the rows.
UNTIDY: nothing is wrong, but it takes a sort; see `order`. OUTSIDE: an id reaches outside its
buffer, in the segment that begins at the row named."""

(
    N_RET, N_JUDGED, N_JUDGED_RET, N_HITS, RISES, COLLAPSED, DROPPED,
    PROBLEM, PROBLEM_A, PROBLEM_B,
) = range(10)  # fmt: skip
STAT_FIELDS = 10
"""Columns of `stats`: rows ranked; documents judged (grade >= 0), and of these retrieved; hits
(those and the pooled but unjudged); rows whose score is above the one before them; judgements
that only repeat another; rows left out by `tidy`; and the problem."""

_BITMAP_ROWS = 4096  # above this, a hash table finds repeated ids instead of a bitmap
_LEAST_WORDS = 8  # of the bitmap of judged ids: 1 row in 500 passes it by chance, or fewer
_COUNTED_HITS = 512  # above this, rows that are not in order are sorted rather than counted
_S6 = np.uint64(6)
_63 = np.uint64(63)
_ONE = np.uint64(1)


@kernel
def find_hits(
    run: I64,
    names: I64,
    run_scores: I64,
    run_segments: I64,
    run_offsets: I64,
    labels: I64,
    label_grades: I64,
    label_segments: I64,
    label_offsets: I64,
    label_of: I64,
    begin: int,
    end: int,
    order: int,
    hit_offsets: I64,
    hit_ranks: Any,
    hit_grades: Any,
    ideal_offsets: I64,
    ideal: Any,
    stats: I64,
) -> None:
    """Ranks and grades of the judged documents in rankings `begin` to `end`.

    Parameters
    ----------
    run : (n_pieces, 9), the ids of the retrieved documents; see `layout`.
    names : the same, but where `run` holds codes (WORDS) the ids that these stand for: the order
        among ties is theirs.
    run_scores : (n_pieces, 2), what the scores of a piece are, and the address of its first.
    run_segments : (n_segments, 3), grouped by ranking.
    run_offsets : (n_rankings + 1,), ranking t owns ``run_segments[run_offsets[t]:...[t + 1]]``.
    labels, label_segments, label_offsets : the same of the judged documents of each case.
    label_grades : (n_label_pieces,), the address of each piece's first int32 grade.
    label_of : (n_rankings,), the case whose judgements count, or -1.
    order : `RECORDED` or `BY_SCORE`.
    hit_offsets : (n_rankings + 1,), room for the hits: as many as the case has judgements.
    hit_ranks, hit_grades : (hit_offsets[-1],) int32; of ranking t the first ``stats[t, N_HITS]``
        places are filled, by rank. A grade < 0 is in the pool but not judged.
    ideal_offsets, ideal : (n_cases + 1,), and int32: the judged grades of each case, falling;
        ``stats[t, N_JUDGED]`` of them are filled.
    stats : (n_rankings, 10), rows `begin` to `end` filled.

    Notes
    -----
    Trusts its inputs; see `layout`. The result does not depend on batches, on the order of rows
    or on how rankings are split over threads.
    """
    deepest, most = np.int64(1), np.int64(1)
    for t in range(begin, end):
        n = 0
        for s in range(run_offsets[t], run_offsets[t + 1]):
            n += run_segments[s, 2]
        deepest = max(deepest, n)
        most = max(most, hit_offsets[t + 1] - hit_offsets[t])

    hashes = np.empty(deepest, np.uint64)
    scores = np.zeros(deepest, np.float64)
    watch = np.empty(deepest, np.int64)
    seen = np.empty(power_above(min(deepest, _BITMAP_ROWS)), np.uint64)
    rows = np.empty(power_above(4 * deepest) if deepest > _BITMAP_ROWS else 1, np.int64)
    slots = np.empty(power_above(2 * most + 2), np.int64)
    judged = np.empty(max(np.int64(_LEAST_WORDS), power_above(most)), np.uint64)
    judged_at = np.empty((most, 4), np.int64)
    grades = np.empty(most, np.int64)
    counts = np.empty(256, np.int64)

    built = np.int64(-2)  # the case whose judgements are in the tables now; -1 has none
    n_labels, collapsed, n_judged = np.int64(0), np.int64(0), np.int64(0)
    fault, fault_a, fault_b = np.int64(FINE), np.int64(0), np.int64(0)
    slot_mask, judged_shift = np.uint64(0), np.uint64(63)
    for t in range(begin, end):
        for field in range(STAT_FIELDS):
            stats[t, field] = 0
        c = label_of[t]
        if c != built:  # enter the judged ids of the case; of no case, none
            built = c
            n_labels, collapsed = np.int64(0), np.int64(0)
            fault, fault_a, fault_b = np.int64(FINE), np.int64(0), np.int64(0)
            room = hit_offsets[t + 1] - hit_offsets[t]
            n_slots = power_above(2 * room + 2)
            n_words = max(np.int64(_LEAST_WORDS), power_above(room))
            for i in range(n_slots):
                slots[i] = -1
            for i in range(n_words):
                judged[i] = 0
            slot_mask = np.uint64(n_slots - 1)
            judged_shift = shift_for(n_words << 6)
            first, last = np.int64(0), np.int64(0)
            if c >= 0:
                first, last = label_offsets[c], label_offsets[c + 1]
            for s in range(first, last):
                piece, start = label_segments[s, 0], label_segments[s, 1]
                for row in range(start, start + label_segments[s, 2]):
                    a, size = locate(labels, piece, row)
                    grade = np.int64(load_i32(label_grades[piece] + 4 * row))
                    h = hash_id(a, size)
                    at = h & slot_mask
                    while slots[at] >= 0:
                        j = slots[at]
                        if same_id(a, size, judged_at[j, 0], judged_at[j, 1]):
                            break
                        at = (at + _ONE) & slot_mask
                    j = slots[at]
                    if j >= 0:
                        collapsed += 1
                        if grades[j] != grade and fault == FINE:
                            fault = np.int64(CONFLICTING_GRADES)
                            fault_a = labels[judged_at[j, 2], 7] + judged_at[j, 3]
                            fault_b = labels[piece, 7] + row
                        continue
                    slots[at] = n_labels
                    judged_at[n_labels, 0] = a
                    judged_at[n_labels, 1] = size
                    judged_at[n_labels, 2] = piece
                    judged_at[n_labels, 3] = row
                    grades[n_labels] = grade
                    n_labels += 1
                    bit = h >> judged_shift
                    judged[bit >> _S6] |= _ONE << (bit & _63)
            n_judged = np.int64(0)
            if c >= 0:
                n_judged = fall(grades, n_labels, ideal, ideal_offsets[c], counts)
        stats[t, N_JUDGED] = n_judged
        stats[t, COLLAPSED] = collapsed
        stats[t, PROBLEM] = fault
        stats[t, PROBLEM_A] = fault_a
        stats[t, PROBLEM_B] = fault_b

        first, last = run_offsets[t], run_offsets[t + 1]
        n, bad = load_rows(run, run_scores, run_segments, first, last, hashes, scores)
        stats[t, N_RET] = n
        if bad < 0:
            stats[t, PROBLEM] = OUTSIDE
            stats[t, PROBLEM_A] = run[run_segments[first, 0], 7] + run_segments[first, 1]
            continue
        if bad:
            for i in range(n):
                if scores[i] != scores[i] and stats[t, PROBLEM] == FINE:
                    piece, row = row_at(run_segments, first, last, i)
                    stats[t, PROBLEM] = NAN_SCORE
                    stats[t, PROBLEM_A] = run[piece, 7] + row
            continue
        rises = np.int64(0)
        for i in range(1, n):
            rises += scores[i] > scores[i - 1]
        stats[t, RISES] = rises

        # The rows worth a look: judged or seen before, as far as the bitmaps can tell.
        n_watch = 0
        if n <= _BITMAP_ROWS:
            n_words = power_above(n)
            for i in range(n_words):
                seen[i] = 0
            seen_shift = shift_for(n_words << 6)
            for i in range(n):
                h = hashes[i]
                bit = h >> seen_shift
                mask = _ONE << (bit & _63)
                before = seen[bit >> _S6]
                seen[bit >> _S6] = before | mask
                twin = np.int64((before & mask) != 0)
                bit = h >> judged_shift
                hit = np.int64((judged[bit >> _S6] >> (bit & _63)) & _ONE)
                watch[n_watch] = 4 * i + 2 * twin + hit
                n_watch += twin | hit
        else:
            row_mask = np.uint64(power_above(4 * n) - 1)
            for at in range(np.int64(row_mask) + 1):
                rows[at] = -1
            for i in range(n):
                h = hashes[i]
                at = h & row_mask
                twin = np.int64(0)
                while rows[at] >= 0:
                    if hashes[rows[at]] == h:
                        twin = np.int64(1)
                        break
                    at = (at + _ONE) & row_mask
                rows[at] = i
                bit = h >> judged_shift
                hit = np.int64((judged[bit >> _S6] >> (bit & _63)) & _ONE)
                watch[n_watch] = 4 * i + 2 * twin + hit
                n_watch += twin | hit

        base = hit_offsets[t]
        n_hits, n_solid, work = 0, 0, 0
        problem = stats[t, PROBLEM]
        for w in range(n_watch):
            i, flags = watch[w] >> 2, watch[w] & 3
            equal = 0  # counted first: a loop that the compiler can vectorise
            if flags & 2 and problem in (FINE, UNTIDY):
                for j in range(i):
                    equal += hashes[j] == hashes[i]
            if equal:
                for j in range(i):
                    if hashes[j] == hashes[i] and same_rows(run, run_segments, first, last, i, j):
                        problem = np.int64(DUPLICATE_ROW)
                        piece, row = row_at(run_segments, first, last, j)
                        stats[t, PROBLEM_A] = run[piece, 7] + row
                        piece, row = row_at(run_segments, first, last, i)
                        stats[t, PROBLEM_B] = run[piece, 7] + row
                        break
            at = hashes[i] & slot_mask
            if not (flags & 1) or slots[at] < 0 or problem != FINE:
                continue
            piece, row = row_at(run_segments, first, last, i)
            a, size = locate(run, piece, row)
            while slots[at] >= 0:
                j = slots[at]
                if same_id(a, size, judged_at[j, 0], judged_at[j, 1]):
                    rank = i + 1
                    if order == BY_SCORE:
                        if work > 16 * n + 4096 or (rises > 0 and n_hits >= _COUNTED_HITS):
                            problem = np.int64(UNTIDY)
                            break
                        rank, compared = rank_of(
                            names, run_segments, first, last, scores, n, i, rises
                        )
                        work += compared
                    k = base + n_hits  # they come nearly sorted, or few
                    while k > base and hit_ranks[k - 1] > rank:
                        hit_ranks[k] = hit_ranks[k - 1]
                        hit_grades[k] = hit_grades[k - 1]
                        k -= 1
                    hit_ranks[k] = rank
                    hit_grades[k] = grades[j]
                    n_hits += 1
                    n_solid += grades[j] >= 0
                    break
                at = (at + _ONE) & slot_mask
        stats[t, PROBLEM] = problem
        stats[t, N_HITS] = n_hits
        stats[t, N_JUDGED_RET] = n_solid
