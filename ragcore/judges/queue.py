"""The queue of what people have to settle: every disputed item with all that was said of it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.judges.coverage import contradictory
from ragcore.judges.items import Items
from ragcore.lists import joined, plain, rows_of
from ragcore_kernels import verdicts as words
from ragcore_kernels.layout import I64

REASONS = ("adjudications-differ", "verdicts-differ", "unclear", "judge-rank")
"""Why an item is in the queue: settled twice, and not alike; equals that differ; an equal that
leaves it open; judged on a lower rung than its case requires."""

COMPETING = pa.struct(
    [
        ("verdict", pa.string()), ("judge", pa.string()), ("judge_version", pa.string()),
        ("rung", pa.string()), ("adjudicated", pa.bool_()), ("score", pa.float64()),
        ("rationale", pa.string()), ("rubric", pa.string()), ("prompt_sha256", pa.string()),
    ]
)  # fmt: skip
"""One verdict on an item of the queue."""

QUEUE = pa.schema(
    [
        ("case_id", pa.string()), ("lang", pa.string()), ("run", pa.string()),
        ("repeat", pa.int16()), ("relation", pa.string()), ("claim", pa.int16()),
        ("evidence", pa.list_(pa.string())), ("reason", pa.string()),
        ("verdicts", pa.list_(COMPETING)), ("authority_needed", pa.string()),
        ("disposition", pa.string()),
    ]
)  # fmt: skip
"""One row = one item to settle. `disposition` is null: it is for people to fill in. `evidence` are
the chunks that the item is about, or that its first verdict was given."""


def open_items(items: Items) -> I64:
    """Items that are disputed or judged on too low a rung, by case, run, language, and so on."""
    found = np.flatnonzero((items.verdict == words.DISPUTED) | (items.verdict == words.LOW_RUNG))
    shown = pc.binary_join(evidence_of(items, found), "\n")
    keys = [_ranks(shown.dictionary_encode())]
    keys += [a[found] for a in (items.claim, items.relation, items.repeat)]
    for what, codes in (("lang", items.lang), ("run", items.run), ("case", items.case)):
        names = items.judgments.names[what].to_pylist()
        place = np.zeros(len(names) + 1, np.int64)  # the last for -1
        place[sorted(range(len(names)), key=names.__getitem__)] = np.arange(1, len(names) + 1)
        keys.append(place[codes[found]])
    return found[np.lexsort(keys)]


def _ranks(encoded: Any) -> I64:
    texts = encoded.dictionary.to_pylist()
    place = np.zeros(len(texts), np.int64)
    place[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return place[np.asarray(encoded.indices)]


def evidence_of(items: Items, chosen: I64) -> pa.Array:
    """The chunks of some items, as lists of ids."""
    lists = items.judgments.evidence
    at = lists.offsets[items.first[chosen]]
    counts = lists.counts[items.first[chosen]]
    ends = np.concatenate([[0], np.cumsum(counts)])
    flat = np.arange(ends[-1]) + np.repeat(at - ends[:-1], counts)
    ids = plain(lists.items)
    ids = ids.cast(pa.string()) if len(ids) else pa.array([], pa.string())
    return _lists(ends, ids.take(arrow.numbers(flat)))


def _lists(ends: I64, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(arrow.numbers(ends.astype(np.int32)), values)


def queue_of(items: Items, chosen: I64 | None = None) -> pa.Table:
    """The queue as a table of `QUEUE`.

    Parameters
    ----------
    chosen : items to tell of; None for all open ones.
    """
    own = open_items(items) if chosen is None else np.asarray(chosen, np.int64)
    starts, counts, rows = _verdicts(items, own)
    names = items.judgments.names

    def named(what: str, codes: I64) -> pa.Array:
        return names[what].cast(pa.string()).take(rows_of(codes))

    def number(values: I64) -> pa.Array:
        found = arrow.numbers(values)
        return pc.if_else(pc.greater_equal(found, 0), found, None).cast(pa.int16())

    def word(options: tuple[str, ...], codes: Any) -> pa.Array:
        return arrow.texts(list(options)).cast(pa.string()).take(arrow.numbers(codes))

    reason, rung = _reasons(items, own, starts, counts, rows)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return pa.table(
        [
            named("case", items.case[own]), named("lang", items.lang[own]),
            named("run", items.run[own]), number(items.repeat[own]),
            word(schema.RELATIONS, items.relation[own]), number(items.claim[own]),
            evidence_of(items, own), word(REASONS, reason),
            _lists(ends, _competing(items, rows)), word(schema.RUNGS, rung),
            pa.nulls(own.size, pa.string()),
        ],
        schema=QUEUE,
    )  # fmt: skip


def _verdicts(items: Items, own: I64) -> tuple[I64, I64, I64]:
    """Of some items the first of their verdicts, how many, and the verdicts, by row."""
    begin = np.searchsorted(items.item, own)
    counts = np.searchsorted(items.item, own, side="right") - begin
    starts = np.cumsum(counts) - counts
    flat = np.arange(counts.sum()) + np.repeat(begin - starts, counts)
    return starts, counts, items.row[flat]


def _competing(items: Items, rows: I64) -> pa.Array:
    """Verdicts as structs."""
    table = items.judgments.table
    at = arrow.numbers(rows)
    parts = []
    for field in COMPETING:
        if field.name not in table.column_names or not len(table):
            parts.append(pa.nulls(rows.size, field.type))
        else:
            parts.append(joined(table[field.name]).cast(field.type).take(at))
    return pa.StructArray.from_arrays(parts, fields=list(COMPETING))


def _reasons(
    items: Items, own: I64, starts: I64, counts: I64, rows: I64
) -> tuple[I64, I64]:  # fmt: skip
    """Why items are open, as places in `REASONS`, and the rung that has to settle each.

    That is the rung above the highest that has spoken, or the one that the case requires if it is
    higher; the accountable authority is the last.
    """
    given = items.judgments
    owner = np.repeat(np.arange(own.size), counts)
    said, rung = given.verdict[rows], given.rung[rows].astype(np.int64)
    highest = np.full(own.size, -1, np.int64)
    spoke = said != words.ERROR
    np.maximum.at(highest, owner[spoke], rung[spoke])
    unclear = np.zeros(own.size, np.bool_)
    counts_most = spoke & (rung == items.rung[own][owner])
    if items.adjudicated[own].any():
        counts_most &= given.adjudicated[rows] | ~items.adjudicated[own][owner]
    np.logical_or.at(unclear, owner, counts_most & (said == words.UNCLEAR))
    low = items.verdict[own] == words.LOW_RUNG
    reason = np.where(low, 3, np.where(contradictory(items)[own], 0, np.where(unclear, 2, 1)))
    required = items.needed[own].astype(np.int64)
    least = np.where(low, required, np.maximum(highest + 1, required))
    return reason, np.minimum(least, len(schema.RUNGS) - 1)


def rows_of_text(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of the queue for a text format of flat columns: lists as JSON."""
    out = []
    for row in table.to_pylist():
        for name in ("evidence", "verdicts"):
            row[name] = json.dumps(row[name], ensure_ascii=False)
        out.append(row)
    return out
