"""Uses the kernels of the layers once, on a suite of next to nothing, so that they are compiled."""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragcore import schema
from ragcore.diagnose import diagnose
from ragcore.hard_gates import hard_gates
from ragcore.measures import registry
from ragcore.score import score
from ragcore.suite_files import canonical, write_suite

Row = dict[str, Any]
_TEXTS = ("Rooms cost 7 yuan. Breakfast is free.", "Meals cost 9 yuan.")
_QUOTES = ("Rooms cost 7 yuan.", "Breakfast is free.")
_CASES, _UNITS = ("a", "b"), ("u", "v")


def warm_layers() -> None:
    """Score every layered measure, diagnose and check hard gates on a made suite."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder)
        tables = {
            "cases.arrow": ([_case(name) for name in _CASES], schema.CASES, {}),
            "chunks.arrow": ([_chunk(i) for i in range(2)], schema.CHUNKS, {}),
            "run.arrow": ([_trace(name) for name in _CASES], schema.RUNS, _MANIFEST),
        }
        write_suite(suite, tables, {"name": "warm"})
        names = [one.name for one in registry.definitions() if one.layer != "ranked"]
        plain = _verdicts()
        for judgments in (plain, [plain, _packed()]):
            scores = score(
                suite / "run.arrow", suite=suite, judgments=judgments,
                measures=[*names, "nDCG@5", "AP", "R@5", "RR"],
            )  # fmt: skip
            scores.rows()
            hard_gates(scores.runs[0])
        diagnose([suite / "run.arrow"], suite=suite, judgments=plain)


_MANIFEST = {schema.MANIFEST_KEY: canonical({"candidate_k": 2, "context_k": 1}).encode()}


def _case(name: str) -> Row:
    """A case whose two labels lie in one chunk, so that hits go by items."""
    evidence = [
        {"doc_id": "u", "quote": quote, "block": i, "role": "supporting", "relevance": 1,
         "required": True, "claim": i}
        for i, quote in enumerate(_QUOTES)
    ]  # fmt: skip
    return {
        "case_id": name, "question": "What is 7 yuan?", "as_of": date(2025, 1, 1), "topic": "t",
        "principals": ["p"], "answerable": name == "a", "references": [_QUOTES[0]],
        "expected_state": "answer" if name == "a" else "abstain", "evidence": evidence,
        "claims": [{"text": text, "required": True, "vital": True, "high_stakes": True}
                   for text in _QUOTES],
        "prohibited": ["call"],
    }  # fmt: skip


def _chunk(i: int) -> Row:
    return {
        "chunk_id": _UNITS[i], "doc_id": _UNITS[i], "doc_version": "1", "block_first": 0,
        "block_last": 1, "start": 0, "end": len(_TEXTS[i]), "text": _TEXTS[i], "n_tokens": 8,
        "valid_from": date(2024, 1, 1), "topic": "t", "authority": "x", "source_family": "f",
        "acl": ["p"] if i else None, "deleted": False,
    }  # fmt: skip


def _trace(name: str) -> Row:
    items: list[Row] = [{"id": unit, "score": 1.0} for unit in _UNITS]
    stated = {"state": "answer", "value": "7", "text": _QUOTES[0]}
    stages = ("bm25", "dense", "fused", "reranked")
    return {
        "case_id": name, "query": "7 yuan", "ranked": items,
        "stages": [(stage, items) for stage in stages],
        "context": [{"id": unit, "n_tokens": 8} for unit in _UNITS], "context_state": "ready",
        "proposed": {**stated, "confidence": 0.5}, "final": stated,
        "claims": [{"text": text, "sentence": i, "factual": True}
                   for i, text in enumerate(_QUOTES)],
        "citations": [{"claim": i, "id": "u", "quote": _QUOTES[i]} for i in range(2)]
        + [{"claim": 0, "doc_id": "u", "start": 0, "end": 4}],
        "effects": ["call"], "timings": [{"stage": "end_to_end", "start_us": 0, "duration_us": 9}],
        "cost": {"prompt": 1.0}, "energy": {"cpu_j": 1.0, "measured": True},
    }  # fmt: skip


def _verdicts() -> pa.Table:
    rows: list[Row] = []
    for case in _CASES:
        base = {"case_id": case, "verdict": "yes", "judge": "j", "rung": "model"}
        for claim in range(2):
            own = {**base, "claim": claim}
            rows += [{**own, "relation": name} for name in ("correct", "entailed", "covered")]
            rows += [
                {**own, "relation": name, "evidence": [unit]}
                for name in ("chunk_entails", "chunk_entails_reference", "cites", "sentence_used",
                             "sentence_relevant")
                for unit in _UNITS
            ]  # fmt: skip
        rows += [{**base, "relation": "relevance", "evidence": [unit]} for unit in _UNITS]
        rows.append({**base, "relation": "conflict_shown"})
    return pa.Table.from_pylist(rows, schema=schema.JUDGMENTS)


def _packed() -> pa.Table:
    rows = [
        {"case_id": case, "relation": "chunk_entails", "judge": "k", "rung": "model",
         "verdicts": ["yes"] * 4}
        for case in _CASES
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)
