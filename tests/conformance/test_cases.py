"""Every case whose part of the engine is there, and a list of those whose part is not yet."""

from __future__ import annotations

from pathlib import Path

import pytest

import reference
from conformance import (
    cases_answers,
    cases_audit,
    cases_citation,
    cases_claims,
    cases_evidence,
    cases_fusion,
    cases_io,
    cases_metrics,
    cases_runtime,
    cases_search,
    cases_statistics,
    cases_suites,
    shapes,
)
from conformance.registry import HANDLERS, check_plain, is_plain
from conformance.shapes import Case

MODULES = (
    cases_answers, cases_audit, cases_citation, cases_claims, cases_evidence, cases_fusion,
    cases_io, cases_metrics, cases_runtime, cases_search, cases_statistics, cases_suites,
)  # fmt: skip
"""Imported for what they register."""

CASES = {case["id"]: case for case in shapes.load("cases.jsonl")}

GROUPS = ("fusion.", "metrics.", "rag.", "runtime.", "stats.", "suite.")
AREAS = ("io.trec", "io.arrow", "io.import", "cli.json", "cli.gate", "ann.audit", "bm25", "tantivy")


def is_covered(case: Case) -> bool:
    area = case["area"]
    return area.startswith(GROUPS) or area in AREAS


COVERED = [case for case in CASES.values() if is_covered(case)]

NOT_YET_BY_AREA = {
    "io.beir": (51, 52, 53, 54, 55),
    "perf.asv": (150, 151),
}
"""Numbers of the cases of importers and benchmarks."""

NOT_YET = {f"RC-{number:03}" for area in NOT_YET_BY_AREA.values() for number in area}


@pytest.mark.parametrize("case", COVERED, ids=lambda case: case["id"])
def test_case__is_met(case: Case, tmp_path: Path) -> None:
    handler = HANDLERS.get(case["id"])
    if handler is None:
        assert is_plain(case), f"{case['id']} ({case['symptom']}) has nobody to check it"
        handler = check_plain
    handler(case, tmp_path)


@pytest.mark.usefixtures("conformance")
def test_cases__are_handled_or_not_yet_applicable() -> None:
    assert {name for name, case in CASES.items() if not is_covered(case)} == NOT_YET
    assert set(HANDLERS) <= {case["id"] for case in COVERED}
    assert len(COVERED) == 122
    assert len(CASES) == 129


PLAIN = [case for case in COVERED if case["id"] not in HANDLERS and "error" not in case["expected"]]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
def test_reference__agrees_with_plain_cases(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    run_lines = given.get("run") or given["run_text"].splitlines()
    qrels_text = "\n".join(given.get("qrels") or [given["qrels_text"]]).lstrip("\ufeff")
    run = shapes.run_of(line for line in run_lines if line.strip())
    qrels = shapes.qrels_of(line for line in qrels_text.splitlines() if line.strip())
    rel = given.get("options", {}).get("relevance_level", 1)
    for name in given["metrics"]:
        values = {
            topic: reference.score(name, reference.order(run.get(topic, [])), grades, rel)
            for topic, grades in qrels.items()
        }
        if name in expected:
            assert shapes.near(reference.aggregate(name, values.values()), expected[name])
        for topic, value in expected.get("per_query", {}).items():
            assert shapes.near(values[topic], value)
