"""The queue of what people have to settle: every disputed item with all that was said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.judges.coverage import contradictory
from ragcore.judges.items import Items
from ragcore.lists import joined
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
the chunks that the item is about, or that its verdicts were given."""


def open_items(items: Items) -> I64:
    """Items that are disputed or judged on too low a rung, by case, run, language, and so on."""
    found = np.flatnonzero((items.verdict == words.DISPUTED) | (items.verdict == words.LOW_RUNG))

    def key(item: int) -> tuple[Any, ...]:
        return (
            items.name("case", int(items.case[item])),
            items.name("run", int(items.run[item])) or "",
            items.name("lang", int(items.lang[item])) or "", int(items.repeat[item]),
            int(items.relation[item]), int(items.claim[item]), items.evidence(item),
        )  # fmt: skip

    return np.array(sorted(found.tolist(), key=key), np.int64)


def queue_of(items: Items, chosen: Sequence[int] | I64 | None = None) -> pa.Table:
    """The queue as a table of `QUEUE`.

    Parameters
    ----------
    chosen : items to tell of; None for all open ones.
    """
    listed = open_items(items) if chosen is None else np.asarray(chosen, np.int64)
    rows = [items.rows(int(item)) for item in listed]
    flat = np.concatenate([np.zeros(0, np.int64), *rows])
    table = items.judgments.table
    names = [f.name for f in COMPETING if f.name in table.column_names]
    taken = pa.table({n: joined(table[n]) for n in names}).take(pa.array(flat)).to_pylist()
    twice = contradictory(items)
    out, at = [], 0
    for item, own in zip(listed.tolist(), rows, strict=True):
        verdicts = taken[at : at + own.size]
        at += own.size
        out.append(
            {
                "case_id": items.name("case", int(items.case[item])),
                "lang": items.name("lang", int(items.lang[item])),
                "run": items.name("run", int(items.run[item])),
                "repeat": _number(items.repeat[item]),
                "relation": schema.RELATIONS[int(items.relation[item])],
                "claim": _number(items.claim[item]), "evidence": items.evidence(item),
                "reason": _reason(items, item, bool(twice[item])), "verdicts": verdicts,
                "authority_needed": needed(items, item),
            }
        )  # fmt: skip
    return pa.Table.from_pylist(out, schema=QUEUE)


def _number(value: Any) -> int | None:
    return None if value < 0 else int(value)


def _reason(items: Items, item: int, twice: bool) -> str:
    if twice:
        return REASONS[0]
    if items.verdict[item] == words.LOW_RUNG:
        return REASONS[3]
    given, rows = items.judgments, items.rows(item)
    said = given.verdict[rows]
    top = (said != words.ERROR) & (given.rung[rows] == items.rung[item])
    return REASONS[2] if (said[top] == words.UNCLEAR).any() else REASONS[1]


def needed(items: Items, item: int) -> str:
    """The rung that has to settle an item.

    The one above the highest that has spoken, or the one that the case requires if it is higher;
    the accountable authority is the last.
    """
    given, rows = items.judgments, items.rows(item)
    spoken = given.rung[rows][given.verdict[rows] != words.ERROR].max(initial=-1)
    enough = items.verdict[item] == words.LOW_RUNG
    least = int(items.needed[item]) if enough else max(int(spoken) + 1, int(items.needed[item]))
    return schema.RUNGS[min(least, len(schema.RUNGS) - 1)]


def rows_of_text(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of the queue for a text format of flat columns: lists as JSON."""
    import json

    out = []
    for row in table.to_pylist():
        for name in ("evidence", "verdicts"):
            row[name] = json.dumps(row[name], ensure_ascii=False)
        out.append(row)
    return out
