"""A judge by rule of what the assistant said: labels and texts, read literally; no model.

Texts are compared without white space. A claim is of the document that it was copied from, which
its first citation names: the same words in a twin document say something of another product. What
no label speaks of gets no verdict, so that it counts as missing and not as wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ragcore import schema
from ragcore.packed import COLUMN
from ragcore.suite_files import Row

NAME, VERSION = "literal", "1"
RUBRIC = "labelled quotes and texts, word for word without white space"
_VOID = ("stale", "forbidden", "background")
_LEFT_OUT = ("claim", "verdict", "score", "prompt_sha256", "rationale", "adjudicated")
PACKED = pa.schema([
    *(field for field in schema.JUDGMENTS if field.name not in _LEFT_OUT),
    pa.field(COLUMN, pa.list_(schema.DICT)),
])  # fmt: skip
"""All verdicts of a relation on an answer in one row; see `ragcore.packed`."""

Chunks = dict[str, dict[str, Any]]
"""Rows of `chunks.arrow` by chunk id."""


def packed(run: str, case: Row, trace: Row, chunks: Chunks) -> Iterator[Row]:
    """Verdicts on the claims of an answer and on those of its reference."""
    said = _said(trace)
    shown = [chunks[one["id"]] for one in trace["context"]]
    proofs = _proofs(case)
    by_relation = {
        "correct": [_yes(_correct(claim, case)) for claim in said],
        "entailed": [_yes(any(_in(text, one["text"]) for one in shown)) for _, text in said],
        "chunk_entails": [_yes(_in(text, one["text"])) for _, text in said for one in shown],
        "covered": [_any(_covers(said, item) for item in items) for items in proofs],
        "chunk_entails_reference": [
            _any(_holds(one, item) for item in items) for items in proofs for one in shown
        ],
    }
    for relation, verdicts in by_relation.items():
        if verdicts:
            yield {**_about(run, case, relation), COLUMN: verdicts}


def cites(run: str, case: Row, trace: Row, chunks: Chunks) -> Iterator[Row]:
    """Verdicts on what each claim cites: its words are there, or a quote that proves the same."""
    said, proofs = _said(trace), _proofs(case)
    for one in trace["citations"]:
        claim, chunk = said[one["claim"]], chunks[one["id"]]
        same = any(
            any(_covers([claim], item) for item in items) and any(_holds(chunk, i) for i in items)
            for items in proofs
        )
        yield {
            **_about(run, case, "cites"), "claim": one["claim"], "evidence": [one["id"]],
            "verdict": _yes(same or _in(claim[1], chunk["text"])), "adjudicated": False,
        }  # fmt: skip


def _about(run: str, case: Row, relation: str) -> Row:
    return {
        "run": run, "case_id": case["case_id"], "lang": case["lang"], "repeat": 0,
        "relation": relation, "judge": NAME, "rung": "rule", "judge_version": VERSION,
        "rubric": RUBRIC,
    }  # fmt: skip


def _said(trace: Row) -> list[tuple[str, str]]:
    """Document and text of every claim of an answer."""
    source = {one["claim"]: one["doc_id"] for one in reversed(trace["citations"])}
    return [(source[i], claim["text"]) for i, claim in enumerate(trace["claims"])]


def _proofs(case: Row) -> list[list[Row]]:
    """For each reference claim the labelled items that prove it, each by itself."""
    items = [item for item in case["evidence"] if item["role"] not in _VOID]
    return [[item for item in items if item["claim"] == i] for i in range(len(case["claims"]))]


def _correct(claim: tuple[str, str], case: Row) -> bool:
    """Whether a claim contains, or lies in, what a label holds to be right."""
    document, text = claim
    quotes = [
        item["quote"] for item in case["evidence"]
        if item["role"] not in _VOID and item["doc_id"] == document
    ]  # fmt: skip
    return any(_in(quote, text) or _in(text, quote) for quote in quotes)


def _covers(said: list[tuple[str, str]], item: Row) -> bool:
    """Whether the claims from a labelled document have its quote, which may span sentences."""
    return _in(item["quote"], "".join(text for of, text in said if of == item["doc_id"]))


def _holds(chunk: Row, item: Row) -> bool:
    return chunk["doc_id"] == item["doc_id"] and _in(item["quote"], chunk["text"])


def _in(part: str, whole: str) -> bool:
    return "".join(part.split()) in "".join(whole.split())


def _yes(found: bool) -> str:
    return "yes" if found else "no"


def _any(found: Iterator[bool]) -> str | None:
    """Whether any item says so; None without an item."""
    given = list(found)
    return _yes(any(given)) if given else None
