"""Verdicts as rows of plain Python: tables to make, and items grouped and resolved the slow way."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pyarrow as pa

from ragcore import schema

ROW: dict[str, Any] = {
    "run": "r", "case_id": "a", "lang": "en", "repeat": 0, "relation": "entailed", "claim": 0,
    "evidence": None, "verdict": "yes", "score": None, "judge": "j", "rung": "model",
    "judge_version": None, "prompt_sha256": None, "rubric": None, "rationale": None,
    "adjudicated": False,
}  # fmt: skip
BY_CHUNK = {
    "chunk_entails", "chunk_entails_reference", "cites", "relevance", "sentence_used",
    "sentence_relevant", "influence",
}  # fmt: skip
FIELDS = ("run", "lang", "repeat")

Item = tuple[Any, ...]


def table(*rows: dict[str, Any]) -> pa.Table:
    """Rows of judgments; what a row does not say is as in `ROW`."""
    return pa.table(
        {
            name: pa.array([{**ROW, **row}[name] for row in rows], field.type)
            for name, field in ((f.name, f) for f in schema.JUDGMENTS)
        }
    )


def packed(*rows: dict[str, Any]) -> pa.Table:
    """Rows of packed judgments; `verdicts` are words or None."""
    wanted = {k: v for k, v in ROW.items() if k not in ("verdict", "claim", "score")}
    kinds = {name: schema.JUDGMENTS.field(name).type for name in wanted}
    kinds["verdicts"] = pa.list_(pa.string())
    return pa.table(
        {
            name: pa.array([{**wanted, **row}[name] for row in rows], kind)
            for name, kind in kinds.items()
        }
    )


def subject(row: dict[str, Any]) -> Item:
    """What is judged, whatever the trace."""
    chunks = frozenset(row["evidence"] or ()) if row["relation"] in BY_CHUNK else None
    return row["case_id"], row["relation"], row["claim"], chunks


def trace(row: dict[str, Any]) -> Item:
    """What a row names of its trace."""
    return tuple(row[name] for name in FIELDS)


def fit(a: Item, b: Item) -> bool:
    """Whether two traces may be one."""
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def within(a: Item, b: Item) -> bool:
    """Whether `b` is `a`, perhaps told more exactly."""
    return all(x is None or x == y for x, y in zip(a, b, strict=True))


def items(rows: list[dict[str, Any]]) -> dict[Item, list[dict[str, Any]]]:
    """Rows by item: traces that no other of their subject makes more exact, with all rows on it."""
    full = [{**ROW, **row} for row in rows]
    found: dict[Item, list[dict[str, Any]]] = {}
    for one in {subject(row) for row in full}:
        own = [row for row in full if subject(row) == one]
        traces = {trace(row) for row in own}
        while True:
            more = {
                tuple(y if x is None else x for x, y in zip(a, b, strict=True))
                for a, b in combinations(traces, 2) if fit(a, b)
            }  # fmt: skip
            if more <= traces:
                break
            traces |= more
        for t in traces:
            if not any(within(t, other) and t != other for other in traces):
                found[(*one, *t)] = [row for row in own if within(trace(row), t)]
    return found


def resolved(rows: list[dict[str, Any]], declared: str = "") -> str:
    """The verdict that counts, or ``disputed``, or ``failed``."""
    said = [row for row in rows if row["verdict"] != "error"]
    if not said:
        return "failed"

    def rank(row: dict[str, Any]) -> tuple[Any, ...]:
        rung = schema.RUNGS.index(row["rung"])
        return bool(row["adjudicated"]), rung, row["judge"] == declared

    top = max(rank(row) for row in said)
    words = {row["verdict"] for row in said if rank(row) == top}
    return words.pop() if len(words) == 1 and "unclear" not in words else "disputed"
