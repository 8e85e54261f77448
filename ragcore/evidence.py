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
from ragcore.formats.compute import pc
from ragcore.lists import Lists, coded, lists_of
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
    required : (n_items,), whether the answer needs the item and the snapshot has it.
    absent : (n_items,), whether the label says that the snapshot lacks it.
    needed : (n_items,), whether the answer needs it, there or not.
    relevance : (n_items,), grade; 1 for supporting and conflicting items without one, else 0.
    start, end : (n_items,), code points in the document, end exclusive; -1 where not said.
    claim : (n_items,), reference claim that it bears on, -1 for none.
    stale : (n_items,), whether the place no longer holds the quote: labelled, not scored.
    covers, units : (n_items + 1,) and flat, codes of the chunks that contain each item.
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

    @property
    def offsets(self) -> I64:
        """(n_cases + 1,), items of each row of the cases."""
        return self.lists.offsets


def evidence_of(cases: pa.Table, chunks: Chunks | None, vocabulary: Vocabulary) -> Evidence | None:
    """The evidence of a suite; None if its cases have no such column."""
    if "evidence" not in cases.column_names:
        return None
    lists = lists_of(cases["evidence"])
    n = len(lists.items)
    role = np.maximum(coded(lists.field("role"), n, schema.ROLES), SUPPORTING)
    needed, gone = lists.flags("required"), ~lists.flags("in_snapshot", True)
    grade = lists.integers("relevance", np.iinfo(np.int64).min)
    usual = np.isin(role, (SUPPORTING, CONFLICTING)).astype(np.int64)
    covers, units = _by_id(lists, vocabulary)
    return Evidence(
        lists, role, needed & ~gone, gone, needed,
        np.where(grade == np.iinfo(np.int64).min, usual, grade), lists.integers("start"),
        lists.integers("end"), lists.integers("claim"), np.zeros(n, np.bool_), covers, units,
    )  # fmt: skip


def _by_id(lists: Lists, vocabulary: Vocabulary) -> tuple[I64, I64]:
    """Items that name their chunk, or whose document is one."""
    ids, documents = lists.field("chunk_id"), lists.field("doc_id")
    if ids is None or pa.types.is_null(ids.type):
        ids = documents
    elif documents is not None:
        ids = pc.coalesce(ids.cast(pa.large_string()), documents.cast(pa.large_string()))
    units = vocabulary.codes(ids, len(lists.items))
    return np.arange(units.size + 1, dtype=np.int64), units
