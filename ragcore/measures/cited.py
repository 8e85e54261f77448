"""The citations of a run as they were emitted: well-formed or not, of which claim and unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.lists import Lists, integers, own, plain
from ragcore.measures.inputs import Inputs
from ragcore.measures.shown import shown_of
from ragcore.units import Chunks
from ragcore_kernels import citations as kernel
from ragcore_kernels.citations import NO, NO_PLACE, UNKNOWN, YES
from ragcore_kernels.layout import I64

WHOLE_ANSWER = -1
"""Claim of a citation that stands for the whole answer."""
_NO_CLAIM = -2
_NAMED = 3


@dataclass
class Claims:
    """The claims of every answer.

    Attributes
    ----------
    offsets : (n + 1,), claims of each ranking.
    present : (n,), whether they are recorded.
    owner : (n_claims,), ranking of each.
    factual : (n_claims,), whether a claim is one of fact; those that do not say are.
    sentence : (n_claims,), sentence of the answer, -1 where not said.
    texts : (n_claims,) or None.
    """

    offsets: I64
    present: Any
    owner: I64
    factual: Any
    sentence: I64
    texts: pa.Array | None


@dataclass
class Cited:
    """The citations of every ranking, one pair of claim and citation each.

    Attributes
    ----------
    offsets : (n + 1,), citations of each ranking.
    present : (n,), whether they are recorded; a case that was not run has none to record.
    owner : (n_pairs,), ranking of each.
    formed : (n_pairs,) int8, `YES` or `NO`: claim in range, a unit named, start before end.
    placed : (n_pairs,) bool, whether start and end make a place, or neither is said.
    claim : (n_pairs,), claim of the answer, `WHOLE_ANSWER`, or another negative number.
    unit : (n_pairs,), code of the cited unit; -1 without one.
    first, last : (n_pairs,), code points in the document, or `NO_PLACE`.
    shown : (n_pairs,) int8, whether the unit was in the context; unknown where none is recorded.
    dangling : (n_pairs,) int8, whether the id resolves to nothing at all.
    doc_id, doc_version, quote : (n_pairs,) or None, as emitted.
    """

    offsets: I64
    present: Any
    owner: I64
    formed: Any
    placed: Any
    claim: I64
    unit: I64
    first: I64
    last: I64
    shown: Any
    dangling: Any
    doc_id: pa.Array | None
    doc_version: pa.Array | None
    quote: pa.Array | None

    def __len__(self) -> int:
        """How many pairs."""
        return self.owner.size

    @property
    def counts(self) -> I64:
        """(n,), citations of each ranking."""
        return np.diff(self.offsets)


def claims_of(inputs: Inputs) -> Claims:
    """The claims of every answer; none are present without the column."""

    def make() -> Claims:
        lists = inputs.trace_lists("claims")
        return Claims(
            lists.offsets, lists.present | inputs.absent, lists.owners,
            lists.flags("factual", True), lists.integers("sentence"), lists.field("text"),
        )  # fmt: skip

    return inputs.once("answer claims", make)


def cited(inputs: Inputs) -> Cited:
    """The citations of every ranking; what is wrong with their form is counted and named."""
    return inputs.once("cited", lambda: _cited(inputs))


def documents_of(chunks: Chunks) -> tuple[I64, pa.Array]:
    """Code of each chunk's document (its own id where it names none), and what codes stand for."""
    ids = chunks.column("doc_id")
    if ids is None or pa.types.is_null(ids.type):
        ids = chunks.ids
    ids = pc.coalesce(plain(ids).cast(pa.large_string()), chunks.ids)
    coded = pc.dictionary_encode(ids)
    return integers(coded.indices, len(ids)), coded.dictionary


def _cited(inputs: Inputs) -> Cited:
    lists, claims = inputs.trace_lists("citations"), claims_of(inputs)
    n, owner = len(lists.items), lists.owners
    ids = lists.items if not pa.types.is_struct(lists.items.type) else lists.field("id")
    named, documents = _named(ids, n), _named(lists.field("doc_id"), n)
    unit = np.where(named, inputs.shared.vocabulary.codes(ids, n), -1)
    claim, formed = _claim(inputs, lists, claims)
    first, last, placed = _place(lists)
    context = inputs.trace_lists("context")
    units = inputs.units(context)
    if (~named & documents).any():
        _resolve(inputs, lists, ~named & documents, first, last, context, units, unit)
    nameless = ~named & ~documents
    formed[nameless | ~placed] = NO
    for what, bad in (
        ("citations without an id", nameless), ("citations with an impossible place", ~placed),
    ):  # fmt: skip
        note(inputs, what, owner, bad)
    shown, dangling = _shown(inputs, owner, formed, unit, context, units)
    note(inputs, "citations of unknown chunks", owner, dangling == YES)
    note(inputs, "citations of chunks that were not in the context", owner,
         (shown == NO) & (dangling != YES) & (formed == YES))  # fmt: skip
    return Cited(
        lists.offsets, lists.present | inputs.absent, owner, formed, placed, claim, unit, first,
        last, shown, dangling, *(lists.field(x) for x in ("doc_id", "doc_version", "quote")),
    )  # fmt: skip


def _named(ids: pa.Array | None, n: int) -> Any:
    if ids is None or pa.types.is_null(ids.type):
        return np.zeros(n, np.bool_)
    given = pc.not_equal(plain(ids).cast(pa.large_string()), "")
    return np.asarray(given.fill_null(False)).astype(np.bool_)


def _claim(inputs: Inputs, lists: Lists, claims: Claims) -> tuple[I64, Any]:
    """Claim of each citation, and whether it is in range; nobody knows the range without claims."""
    n, owner = len(lists.items), lists.owners
    found = lists.field("claim")
    given = stated(found, n)
    claim = np.where(given, lists.integers("claim", 0), WHOLE_ANSWER)
    beyond = claims.present[owner] & (claim >= np.diff(claims.offsets)[owner])
    bad = given & ((claim < 0) | beyond)
    note(inputs, "citations of claim -1", owner, given & (claim == -1))
    note(inputs, "citations of a claim out of range", owner, bad & (claim != -1))
    return np.where(bad, _NO_CLAIM, claim), np.where(bad, NO, YES).astype(np.int8)


def _place(lists: Lists) -> tuple[I64, I64, Any]:
    """Start and end, `NO_PLACE` where neither is said; and whether they make a place or none."""
    n = len(lists.items)
    valid = [stated(lists.field(name), n) for name in ("start", "end")]
    first, last = lists.integers("start"), lists.integers("end")
    right = np.where(valid[0] & valid[1], (first >= 0) & (first <= last), ~valid[0] & ~valid[1])
    said = valid[0] & valid[1] & right
    return np.where(said, first, NO_PLACE), np.where(said, last, NO_PLACE), right


def _resolve(
    inputs: Inputs, lists: Lists, wanted: Any, first: I64, last: I64, context: Lists, units: I64,
    unit: I64,
) -> None:  # fmt: skip
    """Put into `unit` what citations of a document mean."""
    chunks, n = inputs.shared.chunks, len(lists.items)
    ids = lists.field("doc_id")
    assert ids is not None
    ids = plain(ids).cast(pa.large_string())
    unit[wanted] = inputs.shared.vocabulary.codes(ids, n)[wanted]
    if chunks is None:
        return
    code, names = documents_of(chunks)
    document = np.where(wanted, integers(pc.index_in(ids, value_set=names), n), -1)
    rows = np.argsort(code, kind="stable").astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=len(names)))])
    heads = np.maximum(chunks.integers("start"), 0)
    tails = chunks.integers("end")
    texts = chunks.texts()
    if texts is not None and not pa.types.is_null(texts.type):
        sizes = integers(pc.utf8_length(texts), len(chunks), kernel.WHOLE_END)
        tails = np.where(tails < 0, np.minimum(heads + sizes, kernel.WHOLE_END), tails)
    tails = np.where(tails < 0, kernel.WHOLE_END, tails)
    kernel.resolve_documents(
        0, n, own(lists.owners), own(document), own(first), own(last), own(context.offsets),
        own(units), own(starts), rows, own(heads), own(tails), unit,
    )  # fmt: skip


def _shown(
    inputs: Inputs, owner: I64, formed: Any, unit: I64, context: Lists, units: I64
) -> tuple[Any, Any]:
    """Whether units were in the context; whether ids resolve to nothing."""
    n = unit.size
    known = shown_of(inputs).recorded[owner]
    found = np.zeros(n, np.int8)
    kernel.find_shown(0, n, own(owner), own(unit), own(context.offsets), own(units), found)
    shown = np.where(known, found, UNKNOWN).astype(np.int8)
    dangling = np.full(n, UNKNOWN, np.int8)
    if inputs.shared.chunks is not None:
        lost = (unit >= inputs.shared.vocabulary.n_chunks) & (found == NO)
        dangling = np.where(lost, YES, NO).astype(np.int8)
    dangling[unit < 0] = NO
    shown[(dangling == YES) | (unit < 0)] = NO
    return shown, dangling


def stated(column: pa.Array | None, n: int) -> Any:
    """(n,) bool, where a column says something; nowhere without it."""
    if column is None or pa.types.is_null(column.type):
        return np.zeros(n, np.bool_)
    return np.asarray(column.is_valid())


def note(inputs: Inputs, what: str, owner: I64, bad: Any) -> None:
    """Count something about citations, and name the first cases that have it."""
    n = int(bad.sum())
    if not n:
        return
    inputs.counts[what] = inputs.counts.get(what, 0) + n
    labels = inputs.label_of[owner[bad]]
    labels = list(dict.fromkeys(labels[labels >= 0].tolist()))
    if inputs.shared.cases is None or not labels:
        inputs.warnings.append(f"{n} {what}")
        return
    names = dict.fromkeys(
        inputs.match.case_ids.take(arrow.numbers(np.array(labels[:50], np.int64))).to_pylist()
    )
    shown = ", ".join(repr(name) for name in list(names)[:_NAMED])
    more = " and others" if len(names) > _NAMED else ""
    inputs.warnings.append(f"{n} {what}: case {shown}{more}")


@dataclass
class Texts:
    """Texts as kernels read them.

    Attributes
    ----------
    offsets : (n + 1,), bytes.
    address : of the first byte.
    array : what keeps them alive; nulls are empty.
    """

    offsets: I64
    address: int
    array: pa.Array


def texts_of(values: pa.Array | None, n: int) -> Texts:
    """A text column for kernels; `n` empty texts if there is none."""
    if values is None or pa.types.is_null(values.type):
        return Texts(np.zeros(n + 1, np.int64), 0, pa.nulls(n))
    array = plain(values).cast(pa.large_string()).fill_null("")
    if not len(array):
        return Texts(np.zeros(1, np.int64), 0, array)
    _, places, data = array.buffers()
    offsets = np.frombuffer(places, np.int64)[array.offset : array.offset + n + 1]
    return Texts(own(offsets), data.address if data is not None else 0, array)


_SPACE = r"[\s\x{3000}\x{A0}]+"


def spaced(texts: pa.Array) -> pa.Array:
    """Texts in NFC, every stretch of white space one space, none at the ends."""
    plainer = pc.utf8_normalize(plain(texts).cast(pa.large_string()), "NFC")
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(plainer, _SPACE, " "))
