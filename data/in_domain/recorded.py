"""Recorded runs of the assistant, one a strategy of search, and what the judge says of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

import assistant
import judge_rules
from ragcore import schema
from ragcore.analysis import analyzer_for
from ragcore.filters import Filter
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import Index, open_index
from ragcore.index.options import Options
from ragcore.questions import Questions, read_questions
from ragcore.search import search
from ragcore.search_settings import Settings
from ragcore.suite_files import Row, canonical, write_suite

DEPTH = 20
"""Rows of each ranking and stage that are kept; channels are searched as deep as the ladder."""
PLACES = 9
"""Decimals of recorded scores. Scores that become equal keep their order."""
_KEPT = ("bm25", "dense", "fusion", "rrf_k", "filters", "filter_when", "strategy")


def tables(files: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """The files of runs and judgments, as `write_suite` takes them.

    Parameters
    ----------
    files : those of cases and chunks, as `write_suite` takes them.
    about : the suite's settings: strategies, filters, `candidate_k`, `context_k`.
    """
    asked, corpus = files["cases.arrow"][0], files["chunks.arrow"][0]
    cases = {(row["case_id"], row["lang"]): row for row in asked}
    chunks = {row["chunk_id"]: row for row in corpus}
    out: dict[str, Any] = {}
    packed: list[Row] = []
    cites: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        index, questions = _indexed(Path(folder), files, about)
        for strategy in about["strategies"]:
            name = f"extractive-{strategy}"
            found = _searched(index, questions, strategy, about)
            traces = []
            for row in found.to_pylist():
                case = cases[row["case_id"], row["lang"]]
                trace = _trace(name, row, chunks)
                traces.append(trace)
                packed += judge_rules.packed(name, case, trace, chunks)
                cites += judge_rules.cites(name, case, trace, chunks)
            out[f"runs/{name}.arrow"] = traces, schema.RUNS, _manifest(name, found, about)
    out["judgments/rules.arrow"] = packed, judge_rules.PACKED, {}
    out["judgments/rules-cites.arrow"] = cites, schema.JUDGMENTS, {}
    return out


def _indexed(folder: Path, files: dict[str, Any], about: dict[str, Any]) -> tuple[Index, Questions]:
    """One index of the corpus for all strategies, and the questions with their vectors."""
    write_suite(folder, files, about)
    options = Options(analyzer_for("default"), embedding="column", hnsw=False)
    build(read_chunks(folder / "chunks.arrow"), folder / "index", options)
    return open_index(folder / "index"), read_questions(folder, None)


def _searched(index: Index, questions: Questions, strategy: str, about: dict[str, Any]) -> pa.Table:
    filters = tuple(Filter.parse(text) for text in about["filters"])
    depths = about["candidate_k"], about["context_k"]
    settings = Settings(strategy, *depths, filters=filters, timing="batch")
    return search(index, questions, settings, name=strategy).table


def _manifest(name: str, found: pa.Table, about: dict[str, Any]) -> dict[bytes, bytes]:
    """What a run was made with: the settings of its search, and the assistant's."""
    searched = json.loads((found.schema.metadata or {})[schema.MANIFEST_KEY])
    record = {key: searched[key] for key in _KEPT if key in searched} | {
        "run": name, "suite": about["name"], "suite_version": about["version"],
        "budget_unit": about["budget_unit"], "candidate_k": DEPTH,
        "channel_depth": about["candidate_k"], "context_k": about["context_k"],
        "grounding": "context-only", "repeats": 1, "score_places": PLACES,
        "identities": {
            "assistant": f"extractive {assistant.VERSION}",
            "evaluator": f"{judge_rules.NAME} {judge_rules.VERSION}",
        },
        "assistant": {
            "most": assistant.MOST, "bar": assistant.BAR, "close": assistant.CLOSE,
            "alike": assistant.ALIKE, "step": assistant.STEP, "fewest": assistant.FEWEST,
        },
    }  # fmt: skip
    return {schema.MANIFEST_KEY: canonical(record).encode()}


def _trace(name: str, row: Row, chunks: judge_rules.Chunks) -> Row:
    """What a search found, and what the assistant made of it."""
    claims = assistant.answer(row["query"], [chunks[one["id"]] for one in row["context"]])
    text = " ".join(claim.sentence.text for claim in claims) or None
    outcome = {"state": "answer" if claims else "abstain", "value": None, "text": text}
    return {
        "case_id": row["case_id"], "lang": row["lang"], "repeat": 0, "condition": "end_to_end",
        "trace": f"in_domain/{name}/{row['case_id']}/{row['lang']}/0", "query": row["query"],
        "ranked": _cut(row["ranked"]),
        "stages": [(stage, _cut(items)) for stage, items in row["stages"]],
        "context": row["context"], "context_state": row["context_state"],
        "proposed": outcome, "final": outcome,
        "claims": [
            {"text": claim.sentence.text, "sentence": i, "factual": True}
            for i, claim in enumerate(claims)
        ],
        "citations": [
            _citation(i, one) for i, claim in enumerate(claims) for one in claim.cited
        ],
        "effects": [],
    }  # fmt: skip


def _cut(items: list[Row]) -> list[Row]:
    return [{**one, "score": round(one["score"], PLACES)} for one in items[:DEPTH]]


def _citation(claim: int, one: assistant.Sentence) -> Row:
    """A citation; its place is in code points of the document."""
    first = one.chunk["start"]
    return {
        "claim": claim, "id": one.chunk["chunk_id"], "doc_id": one.chunk["doc_id"],
        "doc_version": one.chunk["doc_version"], "start": first + one.start,
        "end": first + one.end, "quote": one.text,
    }  # fmt: skip
