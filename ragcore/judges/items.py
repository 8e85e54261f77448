"""Items: what was judged, with the verdicts on it and what counts of them; no run is needed.

Resolved as `ragcore.verdicts` resolves them for a run: adjudicated beats all, then the highest
rung, then the declared judge; equals that differ are disputed, and an error is no opinion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.formats.compute import pc
from ragcore.judges.codes import matches, packed, sets_of
from ragcore.judges.unpacking import unpacked
from ragcore.judgments import Judgments
from ragcore.lists import coded, integers, joined, plain
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.layout import I64

BY_CHUNK = (
    "chunk_entails", "chunk_entails_reference", "cites", "relevance", "sentence_used",
    "sentence_relevant", "influence",
)  # fmt: skip
"""Relations whose chunks are part of what is judged. Of the others an item is the claim or the
answer, whatever chunks a verdict was given, as it is when a run is scored."""

RUN, LANG, REPEAT = 1, 2, 4
"""What a verdict names of its trace, as bits; what it does not name it speaks of all of."""


@dataclass
class Items:
    """What was judged.

    Attributes
    ----------
    judgments : the verdicts, one a row.
    case, relation, claim, run, lang, repeat : (n,) codes and numbers as in `judgments`, -1 where
        null.
    first : (n,), a verdict on each item: its evidence is the item's.
    row, item : (m,), which verdict bears on which item, by item; one that names no run, language
        or repeat bears on every item that does.
    verdict, rank : (n,) int8, what counts: see `ragcore_kernels.verdicts`.
    needed : (n,) int8, the rung that the case requires.
    used : (n_verdicts,) bool, verdicts that bear on an item: those on cases of the suite.
    counts : what became of the others, by name.
    """

    judgments: Judgments
    case: I64
    relation: I64
    claim: I64
    run: I64
    lang: I64
    repeat: I64
    first: I64
    row: I64
    item: I64
    verdict: Any
    rank: Any
    needed: Any
    used: Any
    counts: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many items."""
        return self.case.size

    @property
    def rung(self) -> Any:
        """(n,) int8, rung of the verdict that counts, -1 without one."""
        return kernel.rung_of(self.rank)

    @property
    def adjudicated(self) -> Any:
        """(n,) bool, whether the verdict that counts settled a dispute."""
        return self.rank > 16

    @property
    def traces(self) -> I64:
        """(n,), code of what a verdict is about: case, run, language and repeat."""
        return np.unique(packed(self.case, self.run, self.lang, self.repeat), return_inverse=True)[
            1
        ]

    def name(self, what: str, code: int) -> str | None:
        """The text behind a code of ``case``, ``run``, ``lang`` or ``judge``; None for -1."""
        return None if code < 0 else self.judgments.names[what][int(code)].as_py()

    def evidence(self, item: int) -> list[str]:
        """Ids of the chunks that an item is about, or that its first verdict was given."""
        lists = self.judgments.evidence
        row = int(self.first[item])
        return lists.items[int(lists.offsets[row]) : int(lists.offsets[row + 1])].to_pylist()

    def rows(self, item: int) -> I64:
        """The verdicts on an item, in the order of the files."""
        begin, end = np.searchsorted(self.item, [item, item + 1])
        return np.sort(self.row[begin:end])


def settled(n: int, item: I64, verdict: Any, rank: Any) -> tuple[Any, Any]:
    """One verdict for each of n items, or the reason why there is none; and its rank.

    Parameters
    ----------
    item, verdict, rank : (m,), of verdicts in any order; rank as `kernel.rank_of` makes it.

    Returns
    -------
    (n,) int8 each, as `kernel.settle` leaves its cells and ranks.
    """
    cells = np.full(n, kernel.MISSING, np.int8)
    ranks = np.full(n, kernel.NO_VERDICT, np.int8)
    broken = verdict == kernel.ERROR
    cells[item[broken]], ranks[item[broken]] = kernel.FAILED, kernel.ONLY_ERRORS
    own, said, level = item[~broken], verdict[~broken].astype(np.int8), rank[~broken]
    np.maximum.at(ranks, own, level)
    top = level == ranks[own]
    own, said = own[top], said[top]
    said = np.where(said == kernel.UNCLEAR, np.int8(kernel.DISPUTED), said)
    low, high = np.full(n, 127, np.int8), np.full(n, -128, np.int8)
    np.minimum.at(low, own, said)
    np.maximum.at(high, own, said)
    some = ranks > kernel.ONLY_ERRORS
    cells[some] = np.where(low == high, low, np.int8(kernel.DISPUTED))[some]
    return cells, ranks


def items_of(judgments: Judgments, cases: pa.Table | None = None, declared: str = "") -> Items:
    """Group verdicts into items and resolve them.

    Parameters
    ----------
    judgments : of any number of judges and runs; packed ones are taken apart.
    cases : of a suite: verdicts on other cases, or in languages that a case has not, are counted
        and left out, and `judge_required` is held. None takes all verdicts.
    declared : the judge that counts among equals, "" for none.
    """
    plain_rows, left = unpacked(judgments)
    made = _distinct(plain_rows)
    used, counts, needed_of = _known(made, cases)
    counts = left | counts
    rows = np.flatnonzero(used)
    by_chunk = np.isin(made.relation, [schema.RELATIONS.index(r) for r in BY_CHUNK])
    texts = plain(made.evidence.items)
    units = np.zeros(0, np.int64)
    if len(texts) and not pa.types.is_null(texts.type):
        units = integers(pc.dictionary_encode(texts).indices, len(texts))
    else:
        units = np.full(len(texts), -1, np.int64)
    sets = sets_of(made.evidence.offsets, units, by_chunk)
    columns = [
        np.asarray(c, np.int64)[rows]
        for c in (made.case, made.relation, made.claim, sets, made.run, made.lang, made.repeat)
    ]
    subject = np.unique(packed(*columns[:4]), return_inverse=True)[1]
    fields, tuple_of = _tuples(subject, *columns[4:])
    item_fields, tuples, of_tuple = _most_specific(fields)
    at, which = matches(tuple_of, tuples)
    item, row = of_tuple[which], rows[at]
    order = np.lexsort((row, item))
    item, row = item[order], row[order]
    n = item_fields.shape[1]
    first = row[np.searchsorted(item, np.arange(n))]
    judge = made.names["judge"].index(declared).as_py()
    rank = kernel.rank_of(
        made.adjudicated, made.rung.astype(np.int64), (made.judge == judge) & (judge >= 0)
    )
    cells, ranks = settled(n, item, made.verdict[row], rank[row])
    run, lang, repeat = item_fields[1:]
    case = made.case[first].astype(np.int64)
    needed = needed_of(case, lang)
    low = (cells >= 0) & (kernel.rung_of(ranks) < needed)
    cells[low] = kernel.LOW_RUNG
    return Items(
        made, case, made.relation[first].astype(np.int64), made.claim[first].astype(np.int64),
        run, lang, repeat, first, row, item, cells, ranks, needed, used, counts,
    )  # fmt: skip


# --- traces that are named more or less exactly


def _tuples(subject: I64, *columns: I64) -> tuple[I64, I64]:
    """Distinct (subject, run, lang, repeat) as (4, k), and which one each verdict names."""
    _, first, inverse = np.unique(packed(subject, *columns), return_index=True, return_inverse=True)
    return np.stack([c[first] for c in (subject, *columns)]), inverse


def _pattern(fields: I64) -> I64:
    run, lang, repeat = fields[1:] >= 0
    return RUN * run + LANG * lang + REPEAT * repeat


def _keys(fields: I64, pattern: int) -> list[I64]:
    """The subject and what a pattern names."""
    bits = ((1, RUN), (2, LANG), (3, REPEAT))
    return [fields[0], *(fields[i] for i, bit in bits if pattern & bit)]


def _joined(left: I64, right: I64, pattern: int) -> tuple[I64, I64]:
    """Pairs of columns of two sets of fields that agree in subject and in what a pattern names."""
    both = [
        np.concatenate(p) for p in zip(_keys(left, pattern), _keys(right, pattern), strict=True)
    ]
    keys = packed(*both)
    return matches(keys[: left.shape[1]], keys[left.shape[1] :])


def _meets(fields: I64) -> I64:
    """The fields and every trace that two of them name together and neither does alone."""
    while True:
        pattern = _pattern(fields)
        present = np.unique(pattern).tolist()
        more = [fields]
        for p in present:
            for q in present:
                if p < q and (p | q) not in (p, q):
                    left, right = fields[:, pattern == p], fields[:, pattern == q]
                    i, j = _joined(left, right, p & q)
                    more.append(np.maximum(left[:, i], right[:, j]))
        if len(more) == 1:
            return fields
        grown = np.concatenate(more, axis=1)
        grown = grown[:, np.unique(packed(*grown), return_index=True)[1]]
        if grown.shape[1] == fields.shape[1]:
            return fields
        fields = grown


def _most_specific(fields: I64) -> tuple[I64, I64, I64]:
    """The traces that no other one of their subject makes more exact.

    Returns
    -------
    (4, n) fields of the items; and pairs: a column of `fields`, and an item that it speaks of.
    """
    grown = _meets(fields)
    pattern, own = _pattern(grown), _pattern(fields)
    present = np.unique(pattern).tolist()
    covered = np.zeros(grown.shape[1], np.bool_)
    for p in present:
        for q in present:
            if p != q and p & q == p:
                i, _ = _joined(grown[:, pattern == p], grown[:, pattern == q], p)
                covered[np.flatnonzero(pattern == p)[i]] = True
    kept = grown[:, ~covered]
    kind = _pattern(kept)
    tuples, items = [], []
    for p in np.unique(own).tolist():
        for q in np.unique(kind).tolist():
            if p & q == p:
                left, right = np.flatnonzero(own == p), np.flatnonzero(kind == q)
                i, j = _joined(fields[:, left], kept[:, right], p)
                tuples.append(left[i])
                items.append(right[j])
    nothing = np.zeros(0, np.int64)
    return kept, np.concatenate([nothing, *tuples]), np.concatenate([nothing, *items])


# --- names


def _distinct(judgments: Judgments) -> Judgments:
    """The same with each name once: a dictionary may hold a word twice."""
    from dataclasses import replace

    names, codes = dict(judgments.names), {}
    for what in ("case", "judge", "run", "lang"):
        words = names[what]
        code = getattr(judgments, what)
        distinct = pc.unique(words)
        if len(distinct) != len(words):
            place = integers(pc.index_in(words, value_set=distinct), len(words))
            code = np.append(place, -1)[code].astype(np.int32)
            names[what] = distinct
        codes[what] = code
    return replace(judgments, names=names, **codes)


def _known(made: Judgments, cases: pa.Table | None) -> tuple[Any, dict[str, int], Any]:
    """Verdicts on cases of the suite, counts of the others, and the rung that items require."""
    n_cases = len(made.names["case"])
    if cases is None:
        return (
            np.ones(len(made), np.bool_), {},
            lambda case, lang: np.zeros(case.size, np.int8),
        )  # fmt: skip
    ids = joined(cases["case_id"]).cast(pa.large_string())
    case = integers(
        pc.index_in(ids, value_set=made.names["case"].cast(pa.large_string())), len(ids)
    )
    lang = np.full(len(ids), -1, np.int64)
    if "lang" in cases.column_names:
        words = joined(cases["lang"])
        lang = integers(
            pc.index_in(words.cast(pa.string()), value_set=made.names["lang"]), len(ids), -2
        )
        lang[np.asarray(words.is_null())] = -1
    rung = np.zeros(len(ids), np.int64)
    if "judge_required" in cases.column_names:
        rung = np.maximum(coded(joined(cases["judge_required"]), len(ids), schema.RUNGS), 0)
    there = case >= 0
    case, lang, rung = case[there], lang[there], rung[there]
    known = np.zeros(n_cases, np.bool_)
    known[case] = True
    any_lang = np.zeros(n_cases, np.bool_)
    any_lang[case[lang == -1]] = True
    n_langs = len(made.names["lang"]) + 1
    named = np.unique((case * n_langs + lang)[lang >= 0])
    of_case = made.case.astype(np.int64)
    own = np.isin(of_case * n_langs + made.lang, named)
    fits = (made.lang < 0) | any_lang[of_case] | own
    used = known[of_case] & fits
    counts = {
        "verdicts on cases that the suite has not": int((~known[of_case]).sum()),
        "verdicts in languages that their case has not": int((known[of_case] & ~fits).sum()),
    }
    widest = np.zeros(n_cases, np.int64)
    np.maximum.at(widest, case, rung)
    exact = np.full(n_cases * n_langs, -1, np.int64)
    has = lang >= 0
    np.maximum.at(exact, case[has] * n_langs + lang[has], rung[has])

    def needed(items: I64, langs: I64) -> Any:
        found = exact[items * n_langs + np.maximum(langs, 0)]
        return np.where((langs >= 0) & (found >= 0), found, widest[items]).astype(np.int8)

    return used, {name: count for name, count in counts.items() if count}, needed
