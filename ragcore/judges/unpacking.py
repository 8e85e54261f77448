"""Packed judgments as one verdict a row, as far as the files themselves tell what each is on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.judgments import Judgments
from ragcore.lists import Lists, joined, plain
from ragcore_kernels.layout import I64

LEFT_OUT = "packed verdicts on the context of a trace, whose chunks the files do not name"
"""What is counted: without the run it is not known which chunks these are on."""

_KEPT = (
    "verdict", "score", "judge", "rung", "judge_version", "prompt_sha256", "rubric", "rationale",
    "adjudicated",
)  # fmt: skip
_MATRICES = tuple(map(schema.RELATIONS.index, ("chunk_entails", "chunk_entails_reference")))
_UNITS = schema.RELATIONS.index("relevance")
_WHOLE = schema.RELATIONS.index("conflict_shown")


def unpacked(given: Judgments) -> tuple[Judgments, dict[str, int]]:
    """All verdicts one a row, the packed ones after the others; and what was left out, counted.

    Raises
    ------
    InputError
        If a list of verdicts does not fit the chunks that its row names.
    """
    packed = given.packed
    if packed is None or not len(packed):
        return given, {}
    counts = np.diff(packed.offsets)
    owner = np.repeat(np.arange(len(packed)), counts)
    within = np.arange(owner.size) - np.repeat(packed.offsets[:-1], counts)
    width = packed.evidence.counts
    _check(given, packed, counts, width)
    relation, wide = packed.relation[owner], width[owner]
    matrix, unit = np.isin(relation, _MATRICES), relation == _UNITS
    known = ~matrix | (wide > 0)
    keep = known & (packed.values >= 0)
    claim = np.where(matrix, within // np.maximum(wide, 1), within)
    claim = np.where(unit | (relation == _WHOLE), -1, claim)
    chunk = np.where(matrix, within % np.maximum(wide, 1), np.where(unit, within, -1))
    owner, claim, chunk = owner[keep], claim[keep], chunk[keep]
    verdict = packed.values[keep]
    made = replace(
        _taken(packed, owner), verdict=verdict, claim=claim.astype(np.int16),
        evidence=_chunks(packed.evidence, owner, chunk), offsets=None, values=None,
    )  # fmt: skip
    left = int((~known & (packed.values >= 0)).sum())
    return _joined(given, made), {LEFT_OUT: left} if left else {}


def _check(given: Judgments, packed: Judgments, counts: I64, width: I64) -> None:
    matrix = np.isin(packed.relation, _MATRICES) & (width > 0)
    wrong = matrix & (counts % np.maximum(width, 1) != 0)
    wrong |= (packed.relation == _UNITS) & (counts != width)
    wrong |= (packed.relation == _WHOLE) & (counts != 1)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        where, line = packed.place(row)
        name = schema.RELATIONS[int(packed.relation[row])]
        wanted = "1" if packed.relation[row] == _WHOLE else f"one for each of {width[row]} chunks"
        raise InputError(where, f"{counts[row]} verdicts, relation {name}", wanted, row=line)


def _taken(packed: Judgments, rows: I64) -> Judgments:
    """The columns of some rows."""
    columns = {
        name: getattr(packed, name)[rows]
        for name in ("relation", "rung", "repeat", "case", "judge", "run", "lang", "adjudicated")
    }
    kept = [name for name in _KEPT if name in packed.table.column_names]
    table = pa.table({n: joined(packed.table[n]) for n in kept}).take(arrow.numbers(rows))
    return replace(packed, table=table, **columns)


def _chunks(lists: Lists, owner: I64, chunk: I64) -> Lists:
    """The one chunk that each verdict is on, or all that its row names where it is on a claim."""
    counts = np.where(chunk < 0, lists.counts[owner], 1)
    first = lists.offsets[owner] + np.maximum(chunk, 0)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    flat = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], counts)
    items = plain(lists.items)
    return Lists(offsets, lists.present[owner], items.take(arrow.numbers(flat)))


def _joined(first: Judgments, second: Judgments) -> Judgments:
    """Rows of both; names may stand twice, which `items_of` mends."""
    columns: dict[str, Any] = {}
    names = {}
    for name in ("case", "judge", "run", "lang"):
        words = [each.names[name].cast(pa.string()) for each in (first, second)]
        codes = getattr(second, name)
        moved = np.where(codes < 0, codes, codes + len(words[0]))
        columns[name] = np.concatenate([getattr(first, name), moved]).astype(np.int32)
        names[name] = pa.concat_arrays(words)
    for name in ("relation", "verdict", "rung", "claim", "repeat", "adjudicated"):
        columns[name] = np.concatenate([getattr(first, name), getattr(second, name)])
    lists = [each.evidence for each in (first, second)]
    ids = [plain(one.items).cast(pa.large_string()) for one in lists]
    evidence = Lists(
        np.concatenate([lists[0].offsets, lists[1].offsets[1:] + lists[0].offsets[-1]]),
        np.concatenate([one.present for one in lists]), pa.concat_arrays(ids),
    )  # fmt: skip
    spoken = arrow.texts(list(schema.VERDICTS)).cast(pa.string())
    second_table = second.table.append_column(
        "verdict", spoken.take(arrow.numbers(second.verdict.astype(np.int64)))
    )
    table = pa.concat_tables(
        [_as_kept(each) for each in (first.table, second_table)], promote_options="default"
    )
    return replace(first, table=table, names=names, evidence=evidence, packed=None, **columns)


def _as_kept(table: pa.Table) -> pa.Table:
    """The columns that a report tells of, in one type each; nulls where there is none."""
    columns = []
    for name in _KEPT:
        kind = schema.JUDGMENTS.field(name).type
        kind = pa.string() if pa.types.is_dictionary(kind) else kind
        if name in table.column_names:
            columns.append(joined(table[name]).cast(kind))
        else:
            columns.append(pa.nulls(len(table), kind))
    return pa.table(columns, list(_KEPT))
