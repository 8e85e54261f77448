"""Runs the fast BM25 kernels over batches of queries, and the plain one over what they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import address_of
from ragcore_kernels.bm25_finish import DIGITS, SEARCH, finish_batch
from ragcore_kernels.bm25_pack import Packed, aligned
from ragcore_kernels.bm25_plain import search_plain
from ragcore_kernels.bm25_scan import scan_batch
from ragcore_kernels.bm25_windows import (
    MOST_TERMS,
    STATE_FIELDS,
    begin_batch,
)
from ragcore_kernels.vectors import CHUNK, WINDOW

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

BATCH = 512
"""Queries that go through the windows together."""
SPARE = 8_192
"""Places for found documents beyond twice k; a query that needs more goes to the plain kernel."""
MOST_PLACES = 1 << 22
"""Places of a whole batch: the greater k, the smaller the batch."""


@dataclass(frozen=True)
class Lists:
    """Postings and what scores them, as `search_plain` takes them."""

    offsets: I64
    docs: I32
    tfs: I32
    norms: F64
    slots: I64
    factors: F64
    curve: F64


@dataclass(frozen=True)
class Questions:
    """Queries, as `search_plain` takes them."""

    offsets: I64
    terms: I64
    weights: F64
    eligible: U8


@dataclass(frozen=True)
class Places:
    """Where results go, as `search_plain` fills them."""

    docs: I32
    scores: F32
    counts: I64


Work = Callable[[int, int], None]


def plain_work(own: Lists, asked: Questions, out: Places) -> Work:
    """``work(begin, end)`` answers queries with the plain kernel."""

    def work(begin: int, end: int) -> None:
        n_docs = own.norms.size
        search_plain(
            own.offsets, own.docs, own.tfs, own.norms, own.slots, own.factors, own.curve,
            asked.offsets, asked.terms, asked.weights, begin, end, asked.eligible,
            np.zeros(n_docs), np.zeros(n_docs, np.uint8), out.docs, out.scores, out.counts,
        )  # fmt: skip

    return work


def fast_work(own: Lists, packed: Packed, asked: Questions, out: Places) -> Work:
    """``work(begin, end)`` answers queries with the fast kernels."""
    k = out.docs.shape[1]
    room = 2 * k + SPARE
    batch = max(1, min(BATCH, MOST_PLACES // room))
    plain = plain_work(own, asked, out)
    allowed = np.zeros(0, np.uint64)
    if asked.eligible.size:
        flags = np.zeros(packed.n_windows * WINDOW, np.uint8)
        flags[: asked.eligible.size] = asked.eligible
        allowed = np.packbits(flags, bitorder="little").view(np.uint64)

    def work(begin: int, end: int) -> None:
        batches = [(at, min(at + batch, end)) for at in range(begin, end, batch)]
        most = max((int(asked.offsets[b] - asked.offsets[a]) for a, b in batches), default=0)
        states = np.zeros((batch, STATE_FIELDS), np.int64)
        plans = np.zeros((most + 1, 2), np.int64)
        multipliers = np.zeros(most + 1, np.int64)
        ends = np.zeros((packed.n_windows + 1, most + 1), np.uint32)
        sums, totals = aligned(WINDOW, np.uint16), aligned(WINDOW + 1_024, np.uint16)[1_024:]
        masks, words = np.zeros((2, WINDOW // CHUNK), np.uint64)
        chunks, bins = np.zeros(WINDOW // CHUNK, np.int64), np.zeros(DIGITS, np.int64)
        hits = np.empty(WINDOW * MOST_TERMS + 1, np.uint16)
        found_docs = np.empty((batch, room), np.int32)
        found_sums = np.empty((batch, room), np.uint16)
        bits = np.zeros(packed.n_windows * WINDOW // 64 + 1, np.uint64)
        bases = np.zeros(bits.size, np.int32)
        exact, near = np.empty((2, room))
        scores, ids = np.empty(room, np.float32), np.empty(room, np.int32)
        keys, others = np.empty((2, room), np.uint32)
        places = np.empty(SEARCH * room + 1, np.int64)
        addresses = np.array(
            [address_of(a) for a in (sums, totals, masks, chunks, plans, packed.rows,
                                     packed.packed)], np.int64,
        )  # fmt: skip
        for a, b in batches:
            begin_batch(
                own.slots, packed.lists, packed.bounds, packed.pointers, own.docs, asked.offsets,
                asked.terms, asked.weights, a, b - a, k, int(not asked.eligible.size), states,
                plans, multipliers, ends,
            )  # fmt: skip
            scan_batch(
                b - a, k, room, packed.n_windows, packed.n_rows, packed.packed, packed.rows,
                packed.peaks, allowed, states, plans, multipliers, ends, addresses, sums, totals,
                masks, chunks, words, hits, bins[:256], found_docs, found_sums,
            )  # fmt: skip
            finish_batch(
                a, b - a, own.docs, own.tfs, own.norms, own.slots, own.factors, own.curve,
                packed.lists, packed.few, packed.pointers, packed.n_rows, packed.counts,
                address_of(packed.counts), asked.offsets, asked.terms, asked.weights, states,
                plans, found_docs, bits, bases, exact, near, scores, scores.view(np.uint32), keys,
                others, ids, bins, places, out.docs, out.scores, out.counts,
            )  # fmt: skip
            for q in range(a, b):
                if out.counts[q] < 0:
                    plain(q, q + 1)

    return work
