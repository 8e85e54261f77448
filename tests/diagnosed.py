"""A little world of one case and one good trace, to break one thing at a time."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

import tables
from ragcore import schema
from ragcore.diagnose import Diagnosis, diagnose

Row = dict[str, Any]
TEXTS = {
    "rule#1": "Rooms cost at most 750 yuan. Only with a receipt.",
    "old#1": "Rooms cost at most 600 yuan.",
    "board#1": "The board alone may read this.",
    "gone#1": "This page was taken down.",
}
QUOTE = TEXTS["rule#1"]


def chunk(unit: str, **others: Any) -> Row:
    return {
        "chunk_id": unit, "doc_id": unit.split("#")[0], "doc_version": "v1", "start": 0,
        "end": len(TEXTS[unit]), "text": TEXTS[unit], "deleted": False,
        "valid_from": datetime.date(2025, 1, 1), **others,
    }  # fmt: skip


def corpus(**changed: Row) -> list[Row]:
    """Four units; `changed` by the name before ``#``."""
    rows = [
        chunk("rule#1"), chunk("old#1", valid_until=datetime.date(2025, 1, 2)),
        chunk("board#1", acl=["board"]), chunk("gone#1", deleted=True),
    ]  # fmt: skip
    return [{**row, **changed.get(row["doc_id"], {})} for row in rows]


def case(**changed: Any) -> Row:
    item = {
        "doc_id": "rule", "chunk_id": "rule#1", "start": 0, "end": len(QUOTE), "quote": QUOTE,
        "role": "supporting", "required": True, "relevance": 1, "claim": 0,
    }  # fmt: skip
    return {
        "case_id": "c", "lang": "en", "question": "What may rooms cost in 2025?",
        "as_of": datetime.date(2025, 6, 1), "principals": ["staff"], "answerable": True,
        "expected_state": "answer", "expected_value": "750", "evidence": [item],
        "claims": [{"text": QUOTE, "required": True, "vital": True, "high_stakes": True}],
        "prohibited": ["book_room", "costs nothing"], "status": "final", **changed,
    }  # fmt: skip


def trace(**changed: Any) -> Row:
    """A trace with nothing wrong."""
    answer = {"state": "answer", "value": "750", "text": QUOTE}
    cited = {
        "claim": 0, "id": "rule#1", "doc_id": "rule", "doc_version": "v1", "start": 0,
        "end": len(QUOTE), "quote": QUOTE,
    }  # fmt: skip
    return {
        "case_id": "c", "lang": "en", "repeat": 0, "condition": "end_to_end", "trace": "t",
        "query": "rooms cost 2025", "ranked": units("rule#1", "old#1"),
        "stages": [("bm25", units("rule#1", "old#1"))],
        "context": [{"id": "rule#1", "start": 0, "end": len(QUOTE), "n_tokens": len(QUOTE)}],
        "context_state": "ready", "proposed": answer, "final": answer,
        "claims": [{"text": QUOTE, "sentence": 0, "factual": True}], "citations": [cited],
        "effects": [], "steps": 1, "index_generation": "g1", **changed,
    }  # fmt: skip


def units(*names: str) -> list[Row]:
    return [{"id": name, "score": float(-i)} for i, name in enumerate(names)]


def verdict(relation: str, said: str = "yes", claim: int | None = 0, **others: Any) -> Row:
    return {
        "case_id": "c", "lang": "en", "relation": relation, "claim": claim, "verdict": said,
        "judge": "j", "rung": "human", "evidence": [], "adjudicated": False, **others,
    }  # fmt: skip


def suite(folder: Path, cases: list[Row] | None = None, chunks: list[Row] | None = None) -> Path:
    made = pa.Table.from_pylist(cases or [case()], schema=schema.CASES)
    path = tables.write_suite(folder / "suite", made)
    units_of = pa.Table.from_pylist(chunks or corpus(), schema=schema.CHUNKS)
    tables.write_ipc(units_of, path / "chunks.arrow")
    return path


def run(*traces: Row, drop: tuple[str, ...] = (), **manifest: Any) -> pa.Table:
    table = pa.Table.from_pylist(list(traces), schema=schema.RUNS).drop_columns(list(drop))
    about = {"candidate_k": 2, "context_k": 2, **manifest}
    return table.replace_schema_metadata({schema.MANIFEST_KEY: json.dumps(about).encode()})


def verdicts(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema.JUDGMENTS)


def found(folder: Path, *traces: Row, given: list[Row] | None = None, **world: Any) -> Diagnosis:
    """A diagnosis of traces of one run, with verdicts `given`."""
    judged = verdicts(*given) if given else None
    return diagnose(run(*traces), suite=suite(folder, **world), judgments=judged)
