"""What KA-4 declares, and its rules in plain Python over the Arrow files alone."""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ragcore import schema
from tables import read_ipc

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "data" / "ka4"
RUNS = ("runs/baseline.arrow", "runs/filtered.arrow", "ablations.arrow")
FILES = ("cases.arrow", "chunks.arrow", *RUNS)
LANGS = ("en", "zh")
CONDITIONS = ("baseline", "filtered")
NOTE = "Administrative filing note. " * 20

Row = dict[str, Any]
Cells = tuple[Fraction | None, Fraction | None, bool, Fraction | None, bool]

NO, YES = Fraction(0), Fraction(1)
PASS: Cells = (YES, YES, True, YES, True)
LOST: Cells = (NO, NO, False, None, False)
UNASKED: Cells = (None, None, True, None, True)
EXPECTED: dict[str, tuple[Cells, str]] = {
    "current": (PASS, "passed"),
    "stale-premise": (LOST, "retrieval"),
    "historical": (PASS, "passed"),
    "synonym": (LOST, "retrieval"),
    "passport": (UNASKED, "passed"),
    "expired-only": (UNASKED, "passed"),
    "conflict": ((YES, YES, True, None, True), "passed"),
    "low-budget": ((YES, NO, True, None, True), "passed"),
    "drop-context": ((YES, NO, False, None, False), "context"),
    "wrong-amount": ((YES, YES, False, NO, False), "generation"),
    "wrong-citation": ((YES, YES, True, NO, False), "citation"),
    "cancellation": (PASS, "passed"),
}
GOLDEN = {
    ("current", "travel-v2"): (1.2407, 1.2407),
    ("current", "travel-v1"): (0.9791, 0.9791),
    ("stale-premise", "travel-v1"): (2.7485, 2.1020),
    ("stale-premise", "travel-v2"): (1.8871, 1.2407),
    ("conflict", "travel-v2"): (0.9862, 0.9862),
    ("conflict", "travel-v2b"): (0.9862, 0.9862),
    ("conflict", "travel-v1"): (0.7830, 0.7830),
}
FIXED_BY_FILTER = "stale-premise"


TABLES = {name: read_ipc(SUITE / name) for name in FILES}
DECLARED = tomllib.loads((SUITE / "suite.toml").read_text(encoding="utf-8"))
CASES: dict[tuple[str, str], Row] = {
    (row["case_id"], row["lang"]): row for row in TABLES["cases.arrow"].to_pylist()
}
CASE_IDS = tuple(dict.fromkeys(case_id for case_id, _ in CASES))
CHUNKS: dict[str, Row] = {row["chunk_id"]: row for row in TABLES["chunks.arrow"].to_pylist()}
SNAPSHOTS: Row = json.loads(TABLES["chunks.arrow"].schema.metadata[b"snapshots"])
TRACES: dict[tuple[str, str, str, int], Row] = {
    (name, row["case_id"], row["lang"], row["repeat"]): row
    for name in CONDITIONS
    for row in TABLES[f"runs/{name}.arrow"].to_pylist()
}
ABLATIONS: Row = {row["trace"]: row for row in TABLES["ablations.arrow"].to_pylist()}
each_lang = pytest.mark.parametrize("lang", LANGS)
each_condition = pytest.mark.parametrize("name", CONDITIONS)


def manifest(name: str) -> Row:
    return json.loads(TABLES[name].schema.metadata[schema.MANIFEST_KEY])


MANIFEST = manifest("runs/baseline.arrow")


def ablation(probe: str, case_id: str, lang: str) -> tuple[Row, Row]:
    name = f"ka4/ablations/{probe}-{{}}/{case_id}/{lang}/0"
    return ABLATIONS[name.format("before")], ABLATIONS[name.format("after")]


def in_lang(column: str, lang: str) -> str:
    return column if lang == "en" else f"{column}_{lang}"


def text(unit: str, lang: str) -> str:
    return CHUNKS[unit][in_lang("text", lang)]


def tokens(string: str) -> list[str]:
    out = []
    for run in re.findall(r"[a-z]+|\d+|[\u4e00-\u9fff]+", string.lower()):
        pairs = [a + b for a, b in pairwise(run)]
        out += [run] if run.isascii() else pairs or [run]
    return out


def bm25(query: str, snapshot: str, lang: str) -> dict[str, float]:
    """Scores of all cards of a snapshot; title is the card."""
    cards = {unit: tokens(CHUNKS[unit][in_lang("title", lang)]) for unit in SNAPSHOTS[snapshot]}
    mean = sum(map(len, cards.values())) / len(cards)
    out = dict.fromkeys(cards, 0.0)
    for term in set(tokens(query)):
        df = sum(term in card for card in cards.values())
        idf = math.log(1 + (len(cards) - df + 0.5) / (df + 0.5))
        for unit, card in cards.items():
            tf = card.count(term)
            out[unit] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(card) / mean))
    return out


def scores(case_id: str, lang: str) -> dict[str, float]:
    case = CASES[case_id, lang]
    return bm25(case["question"], case["snapshot"], lang)


def applies(unit: str, case: Row) -> bool:
    chunk = CHUNKS[unit]
    until = chunk["valid_until"] or datetime.date.max
    return chunk["topic"] == case["topic"] and chunk["valid_from"] <= case["as_of"] < until


def payload_size(case: Row, evidence: list[tuple[str, str]]) -> int:
    record = {
        "instruction": MANIFEST["prompt"][case["lang"]],
        "question": case["question"],
        "topic": case["topic"],
        "as_of": str(case["as_of"]),
        "evidence": [{"id": unit, "text": shown} for unit, shown in evidence],
    }
    return len(json.dumps(record, ensure_ascii=False))


def packed(trace: Row) -> list[tuple[str, str]]:
    return [
        (item["id"], text(item["id"], trace["lang"])[item["start"] : item["end"]])
        for item in trace["context"]
    ]


def fraction(found: list[bool]) -> Fraction | None:
    return Fraction(sum(found), len(found)) if found else None


def supports(citation: Row, case: Row, trace: Row) -> bool:
    """Exists, exact, in scope, support lines inside, amount as proposed."""
    unit = citation["id"]
    amounts = re.findall(r"(\d+) (?:yuan|元)", citation["quote"])
    items = [item for item in case["evidence"] if item["chunk_id"] == unit]
    return (
        unit in SNAPSHOTS[case["snapshot"]]
        and CHUNKS[unit]["doc_version"] == citation["doc_version"]
        and text(unit, case["lang"])[citation["start"] : citation["end"]] == citation["quote"]
        and applies(unit, case)
        and any(citation["start"] <= i["start"] and i["end"] <= citation["end"] for i in items)
        and (amounts[0] if amounts else None) == trace["proposed"]["value"]
    )


def right(outcome: Row, case: Row) -> bool:
    wanted = (case["expected_state"], case["expected_value"])
    return (outcome["state"], outcome["value"]) == wanted


def judge(name: str, case_id: str, lang: str, repeat: int = 0) -> tuple[Cells, str]:
    """The five cells of a trace and its first failing layer."""
    case, trace = CASES[case_id, lang], TRACES[name, case_id, lang, repeat]
    required = [item for item in case["evidence"] if item["required"]]
    ranked = {item["id"] for item in trace["ranked"]}
    retrieval = fraction([item["chunk_id"] in ranked for item in required])
    shown = dict(packed(trace))
    context = fraction([item["quote"] in shown.get(item["chunk_id"], "") for item in required])
    proposal = right(trace["proposed"], case)
    held = [supports(citation, case, trace) for citation in trace["citations"]]
    citation = fraction(held)
    end = right(trace["final"], case)
    if end and case["expected_state"] == "answer":
        cited = {c["id"] for c in trace["citations"]}
        end = all(held) and cited == {item["chunk_id"] for item in required}
    label = "citation"
    if end:
        label = "passed"
    elif retrieval is not None and retrieval < 1:
        label = "retrieval"
    elif context is not None and context < 1:
        label = "context"
    elif not proposal:
        label = "generation"
    return (retrieval, context, proposal, citation, end), label


def column(name: str, place: int, lang: str = "en") -> dict[str, Fraction]:
    """One cell of every case where it is a number."""
    cells = {case_id: judge(name, case_id, lang)[0][place] for case_id in CASE_IDS}
    return {case_id: Fraction(cell) for case_id, cell in cells.items() if cell is not None}


def expected(name: str, case_id: str) -> tuple[Cells, str]:
    if name == "filtered" and case_id == FIXED_BY_FILTER:
        return PASS, "passed"
    return EXPECTED[case_id]
