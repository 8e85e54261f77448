"""Labels brought to chunks: which chunks contain each item of evidence, and which hold no more.

A label points at a place in a document, never at a chunk, so that the same labels serve every
chunking. See `Evidence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats.compute import pc
from ragcore.lists import Lists, coded, integers, lists_of, plain
from ragcore.placing import (
    BY_BLOCK,
    BY_DOCUMENT,
    BY_ID,
    BY_PAGE,
    BY_PLACE,
    BY_QUOTE,
    HELD,
    NOWHERE,
    OTHER_VERSION,
    UNCHECKED,
    WHY,
    Layout,
    Wanted,
    ends_of,
    meeting,
    needs,
    some,
    spans_of,
    together,
    wanted_of,
)  # fmt: skip
from ragcore.quoted import QuoteSearch
from ragcore.units import Chunks, Vocabulary
from ragcore_kernels.layout import I64

SUPPORTING, CONFLICTING, STALE, FORBIDDEN, BACKGROUND = range(5)
"""Roles, as places in `schema.ROLES`."""


@dataclass
class Evidence:
    """The items of evidence of every row of a suite's cases.

    Attributes
    ----------
    lists : the items as they are labelled; ``lists.offsets`` is (n_cases + 1,).
    role : (n_items,), place in `schema.ROLES`.
    required : (n_items,), whether the answer needs the item and the snapshot has it; of items that
        are one place labelled twice only the first.
    absent : (n_items,), whether the label says that the snapshot lacks it.
    needed : (n_items,), whether the answer needs it, there or not.
    relevance : (n_items,), grade; 1 for supporting and conflicting items without one, else 0. The
        first of items that are one place has the highest.
    start, end : (n_items,), code points in the document, end exclusive; -1 where not said.
    claim : (n_items,), reference claim that it bears on, -1 for none.
    stale : (n_items,), whether the place no longer holds the quote: labelled, not scored.
    covers, units : (n_items + 1,) and flat, codes of the chunks that contain each item.
    own : (n_items,), code of the id that each item says: its chunk's, else its document's.
    first : (n_items,), False for an item that is the place of an earlier one of its case.
    way : (n_items,), how it came to its chunks: `placing.BY_ID` and its neighbours.
    fate : (n_items,), what became of its quote: `placing.HELD` and its neighbours.
    looked : (n_items,), whether there was a text to look for its quote in.
    ratio : share of an item's code points that a chunk must hold.
    layout, wanted : the chunks' documents, and what the items say; None without chunks.
    """

    lists: Lists
    role: I64
    required: Any
    absent: Any
    needed: Any
    relevance: I64
    start: I64
    end: I64
    claim: I64
    stale: Any
    covers: I64
    units: I64
    own: I64
    first: Any
    way: I64
    fate: I64
    looked: Any
    ratio: float = 1.0
    layout: Layout | None = None
    wanted: Wanted | None = None

    @property
    def offsets(self) -> I64:
        """(n_cases + 1,), items of each row of the cases."""
        return self.lists.offsets

    @property
    def cases(self) -> I64:
        """(n_items,), row of the cases that each item is of."""
        return self.lists.owners

    @property
    def scored(self) -> Any:
        """(n_items,), items that count: each place once, and none that is stale."""
        return self.first & ~self.stale

    @property
    def by_ids(self) -> bool:
        """Whether every item is one chunk, the one whose id it says, and no two share one.

        Then ids alone judge a ranking.
        """
        if self.stale.any() or (np.diff(self.covers)[self.first] != 1).any():
            return False
        at = np.flatnonzero(self.first)
        units = self.units[self.covers[at]]
        pairs = self.cases[at] * (units.max(initial=0) + 1) + units
        return bool((units == self.own[at]).all()) and np.unique(pairs).size == pairs.size

    def stale_items(self, cases: pa.Table) -> list[dict[str, Any]]:
        """The items that are stale, for re-adjudication: case, language, item, quote and why."""
        at = np.flatnonzero(self.stale)
        rows = self.cases[at]
        names = cases["case_id"].take(pa.array(rows)).to_pylist()
        langs = [None] * at.size
        if "lang" in cases.column_names:
            langs = cases["lang"].take(pa.array(rows)).to_pylist()
        items = self.lists.items.take(pa.array(at)).to_pylist()
        return [
            {
                "case_id": name, "lang": lang, "item": int(i - self.offsets[row]),
                "doc_id": item.get("doc_id"), "quote": item.get("quote"),
                "why": WHY[self.fate[i]],
            }
            for i, row, name, lang, item in zip(at, rows, names, langs, items, strict=True)
        ]  # fmt: skip


def evidence_of(
    cases: pa.Table, chunks: Chunks | None, vocabulary: Vocabulary, ratio: float = 1.0,
    where: str = "cases",
) -> Evidence | None:  # fmt: skip
    """The evidence of a suite; None if its cases have no such column.

    Parameters
    ----------
    ratio : share of an item's code points that a chunk must hold to contain it, where neither a
        quote nor a block decides.
    where : their file, for messages.

    Raises
    ------
    InputError
        If an item has a role that the schema has not, or ends before it starts.
    """
    if "evidence" not in cases.column_names:
        return None
    lists = lists_of(cases["evidence"])
    n = len(lists.items)
    role = _roles(lists, where)
    _in_order(lists, where)
    needed, gone = lists.flags("required"), ~lists.flags("in_snapshot", True)
    low = np.iinfo(np.int64).min
    grade = lists.integers("relevance", low)
    usual = np.isin(role, (SUPPORTING, CONFLICTING)).astype(np.int64)
    covers, units = _by_id(lists, vocabulary)
    out = Evidence(
        lists, role, needed & ~gone, gone, needed, np.where(grade == low, usual, grade),
        lists.integers("start"), lists.integers("end"), lists.integers("claim"),
        np.zeros(n, np.bool_), covers, units, units, np.ones(n, np.bool_),
        np.full(n, NOWHERE if chunks is None else BY_ID, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.bool_), ratio,
    )  # fmt: skip
    _merge(out)
    if chunks is not None and n:
        langs: list[str | None] = [None] * len(cases)
        if "lang" in cases.column_names:
            langs = plain(cases["lang"]).to_pylist()
        _place(out, Layout(chunks), langs)
    return out


def _roles(lists: Lists, where: str) -> I64:
    """Roles as places in `schema.ROLES`; supporting where none is said."""
    n = len(lists.items)
    codes = coded(lists.field("role"), n, schema.ROLES)
    if (codes == -2).any():
        at = int(np.flatnonzero(codes == -2)[0])
        raise InputError(
            where, f"evidence with the role {lists.strings('role')[at]!r}",
            f"one of {', '.join(schema.ROLES)}", row=int(lists.owners[at]) + 1,
        )  # fmt: skip
    return np.maximum(codes, SUPPORTING)


def _in_order(lists: Lists, where: str) -> None:
    """Refuse an item that ends before it starts."""
    start, end = lists.integers("start"), lists.integers("end")
    wrong = np.flatnonzero((start >= 0) & (end >= 0) & (end < start))
    if wrong.size:
        at = int(wrong[0])
        raise InputError(
            where, f"evidence from {start[at]} to {end[at]}", "a start that is not after the end",
            "places are code points, the end exclusive", row=int(lists.owners[at]) + 1,
        )  # fmt: skip


def _by_id(lists: Lists, vocabulary: Vocabulary) -> tuple[I64, I64]:
    """The chunk that each item names, else the one that is its document."""
    units = vocabulary.codes(_names(lists), len(lists.items))
    return np.arange(units.size + 1, dtype=np.int64), units


def _names(lists: Lists) -> pa.Array | None:
    ids, documents = lists.field("chunk_id"), lists.field("doc_id")
    if ids is None or pa.types.is_null(ids.type):
        return documents
    if documents is None or pa.types.is_null(documents.type):
        return ids
    return pc.coalesce(ids.cast(pa.large_string()), documents.cast(pa.large_string()))


def _merge(evidence: Evidence) -> None:
    """Items of one case that are one place: the first stands for all, required if any is."""
    lists, n = evidence.lists, len(evidence.lists.items)
    places = [
        lists.field(name) for name in ("doc_version", "page", "block", "start", "end", "quote")
    ]
    known = [p for p in places if p is not None and p.null_count < n]
    names = _names(lists)
    if not n or names is None or pa.types.is_null(names.type):
        return
    fields = [names.cast(pa.large_string()).fill_null("")]
    if known:  # items with no more than an id are one if that is; the others if all is
        documents = lists.field("doc_id")
        fields += [p.cast(pa.large_string()).fill_null("") for p in known]
        if documents is not None and not pa.types.is_null(documents.type):
            finer = np.zeros(n, np.bool_)
            for p in known:
                finer |= np.asarray(p.is_valid())
            own = documents.cast(pa.large_string()).fill_null("")
            fields.append(pc.if_else(pa.array(finer), own, pa.scalar("", pa.large_string())))
    keys = pc.binary_join_element_wise(*fields, pa.scalar("\0", pa.large_string()))
    codes = integers(keys.dictionary_encode().indices, n)
    _, first, group = np.unique(
        evidence.cases * (n + 1) + codes, return_index=True, return_inverse=True
    )
    if first.size == n:
        return
    leader = first[group]
    evidence.first = leader == np.arange(n)
    for marks in (evidence.required, evidence.needed):
        np.logical_or.at(marks, leader, marks.copy())
    np.maximum.at(evidence.relevance, leader, evidence.relevance.copy())
    evidence.required &= evidence.first


def _place(evidence: Evidence, layout: Layout, langs: list[str | None]) -> None:
    """Bring items to chunks: by quote, else block, else code points, else page, else document."""
    wanted = wanted_of(evidence.lists, layout, langs)
    n = wanted.document.size
    evidence.layout, evidence.wanted = layout, wanted
    there = wanted.home >= 0
    quoted = np.array([quote is not None for quote in wanted.quote], np.bool_)
    finer = quoted | (wanted.block >= 0) | wanted.placed | (wanted.page >= 0)
    exact = (wanted.named >= 0) & ((wanted.document < 0) | (wanted.says_chunk & ~finer))
    gone = there & _other_version(layout, wanted, exact)
    left = there & ~gone & ~(exact & ~finer)
    search = QuoteSearch(layout, wanted, left & quoted)
    fate = np.where(gone, OTHER_VERSION, search.fate)
    fate[evidence.absent] = HELD
    evidence.fate, evidence.stale, evidence.looked = fate, fate != HELD, search.looked
    counts = np.zeros(n, np.int64)
    found = np.fromiter(search.found, np.int64, len(search.found))
    counts[found] = [len(search.found[i]) for i in found.tolist()]
    mapped = [(counts > 0, ends_of(counts), _flat(search, counts))]
    way = np.where(wanted.named >= 0, BY_ID, NOWHERE)
    way[counts > 0] = BY_QUOTE
    left &= (counts == 0) & ~evidence.stale
    for kind, which, ends, rows in _by_place(layout, wanted, left, evidence.ratio):
        way[which] = kind
        left &= ~which
        mapped.append((which, ends, rows))
    way[left & search.looked] = BY_QUOTE  # cut apart, and nothing else to tell where it went
    left &= ~search.looked
    rest = left & (wanted.document >= 0) & ~wanted.says_chunk
    one = np.ones(len(layout.of), np.int64)
    ends, rows = meeting(
        layout, wanted, rest, np.zeros(n, np.int64), np.ones(n, np.int64), np.ones(n, np.int64),
        one - 1, one,
    )  # fmt: skip
    way[rest] = np.where(finer[rest], UNCHECKED, BY_DOCUMENT)
    mapped.append((rest, ends, rows))
    kept = ~(evidence.stale | np.isin(way, (BY_QUOTE, BY_BLOCK, BY_PLACE, BY_PAGE)) | rest)
    mapped.append((kept, evidence.covers, evidence.units))
    evidence.way = way
    evidence.covers, evidence.units = together(n, mapped)


def _other_version(layout: Layout, wanted: Wanted, exact: Any) -> Any:
    """Items whose document, or for those in `exact` their chunk, is there in other revisions."""
    n_versions = len(layout.version_names) + 1
    there = np.unique(layout.of * n_versions + layout.versions + 1)
    own = np.isin(wanted.home * n_versions + wanted.version + 1, there) & (wanted.version >= 0)
    own |= np.isin(wanted.home * n_versions, there)  # a chunk that does not say its revision
    if layout.versions.size:
        given = layout.versions[wanted.named]
        own = np.where(exact, (given < 0) | (given == wanted.version), own)
    return (wanted.version != -1) & ~own


def _flat(search: QuoteSearch, counts: I64) -> I64:
    rows = [row for i in np.flatnonzero(counts).tolist() for row in search.found[i]]
    return np.array(rows, np.int64)


def _by_place(
    layout: Layout, wanted: Wanted, left: Any, ratio: float
) -> list[tuple[int, Any, I64, I64]]:
    """Items placed by block, code points or page, as far as their documents say such places."""
    n, out = left.size, []
    one = np.ones(n, np.int64)
    which = left & (wanted.block >= 0) & some(layout, wanted, layout.first >= 0)
    block = np.where(which, wanted.block, 0)
    out.append((
        BY_BLOCK, which,
        *meeting(layout, wanted, which, block, block + 1, one, layout.first, layout.last),
    ))  # fmt: skip
    left = left & ~which
    for mask, span in spans_of(layout, wanted):
        which = left & mask & wanted.placed & some(layout, wanted, span.start >= 0)
        met = meeting(
            layout, wanted, which, wanted.start, wanted.end, needs(wanted, ratio), span.start,
            span.end,
        )  # fmt: skip
        out.append((BY_PLACE, which, *met))
        left = left & ~which
    which = left & (wanted.page >= 0) & (wanted.block < 0) & ~wanted.placed
    which &= some(layout, wanted, layout.pages >= 0)
    page = np.where(which, wanted.page, 0)
    met = meeting(layout, wanted, which, page, page + 1, one, layout.pages, layout.pages + 1)
    out.append((BY_PAGE, which, *met))
    return out
