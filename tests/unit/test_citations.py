"""Measures of citations through `score`: against plain Python at random, and state by state."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import citation_world as world
from citation_world import (
    ANSWER,
    GOOD,
    NAMES,
    QUERY,
    ROOMS,
    TEXT,
    UNIT,
    cite,
    claim,
    got,
    judged,
    one,
    run,
    shown,
    suite,
)
from ragcore import score
from reference_citations import MISSING, NA, STAGES, Answer


def expected_of(answer):
    """Every measure of one answer by the reference."""
    out = {f"citation.{name}": answer.stage(name) for name in STAGES}
    whole = any(c["claim"] is None and answer.formed(c) for c in answer.citations)
    alce = (MISSING, MISSING) if whole else answer.alce()
    loose, strict = answer.trec(False), answer.trec(True)
    return out | {
        "answer.supported": supported_of(answer), "citation.support": answer.support(),
        "citation.emitted": len(answer.citations),
        "citation.fabricated": answer.fabricated(),
        "citation.dangling": sum(answer.dangling(c) for c in answer.citations),
        "citation.presence": answer.presence(), "citation.precision": answer.precision(),
        "citation.recall": answer.recall(), "citation.laundering": answer.laundering(),
        "citation.independence": answer.distinct("source_family"),
        "alce.recall": alce[0], "alce.precision": alce[1],
        "trecrag.support_precision": loose[0],
        "trecrag.support_recall": MISSING if whole else loose[1],
        "trecrag.support_precision_strict": strict[0],
        "trecrag.support_recall_strict": MISSING if whole else strict[1],
    }  # fmt: skip


def supported_of(answer):
    """As `answer.supported` says it."""
    if answer.trace["proposed"]["state"] != "answer":
        return NA
    found = answer.answered()
    return MISSING if found is None else int(found)


@pytest.mark.parametrize("seed", range(20))
def test_measures__are_those_of_plain_python(seed, tmp_path):
    chunks, cases, traces, judgments = world.random_world(seed)
    folder = suite(tmp_path / "s", cases, chunks)
    scores = score(
        run(traces), suite=folder, judgments=[judged(judgments)], measures=NAMES, names=["r"]
    )
    units = {c["chunk_id"]: c for c in chunks}
    verdicts = {}
    for row in judgments:
        key = (row["relation"], row["claim"], frozenset(row["evidence"]))
        verdicts.setdefault(row["case_id"], {})[key] = row["verdict"]
    for case, trace in zip(cases, traces, strict=True):
        name = case["case_id"]
        answer = Answer(trace, case, units, verdicts.get(name))
        for measure, wanted in expected_of(answer).items():
            found = got(scores, measure, name)
            wanted = wanted if isinstance(wanted, str) else float(wanted)
            assert found == pytest.approx(wanted), (measure, name, found, wanted)


# --- one case at a time


def test_good__passes_all(tmp_path):
    scores = one(tmp_path, judgments=[{"evidence": ["u"]}, {"relation": "correct"}])
    for measure in ("well_formed", "supplied", "version", "quote", "accessible", "span_inside",
                    "entails", "support", "presence", "precision", "recall", "entailment",
                    "resolution", "independence", "documents", "emitted"):  # fmt: skip
        assert got(scores, f"citation.{measure}", "q") == 1.0, measure
    for measure in ("answer.supported", "end_to_end", "alce.recall", "alce.precision"):
        assert got(scores, measure, "q") == 1.0, measure
    for measure in ("fabricated", "dangling", "laundering"):
        assert got(scores, f"citation.{measure}", "q") == 0.0
    assert got(scores, "citation.in_scope", "q") == "missing"  # none is declared
    assert got(scores, "citation.influence", "q") == "missing"
    assert scores.runs[0].rungs(scores.runs[0].measures.index(
        next(m for m in scores.runs[0].measures if m.text == "citation.recall")
    )) == ["model"]  # fmt: skip


BAD = {
    "no citation": ({"citations": []}, {}, {}),
    "claim -1": ({"citations": [cite("u", -1, **ROOMS)]}, {}, {}),
    "unknown unit": ({"citations": [cite("w", **ROOMS)]}, {}, {}),
    "other version": ({"citations": [cite("u", doc_version="v2", **ROOMS)]}, {}, {}),
    "other document": ({"citations": [cite("u", doc_id="w", **ROOMS)]}, {}, {}),
    "inexact quote": ({"citations": [cite("u", **{**ROOMS, "quote": TEXT[:27] + "!"})]}, {}, {}),
    "quote elsewhere": ({"citations": [cite("u", quote="Meals cost 40 yuan.")]}, {}, {}),
    "part of the span": ({"citations": [cite("u", start=0, end=20)]}, {}, {}),
    "off topic": ({}, {"topic": "meals"}, {"topic": "rooms"}),
    "deleted": ({}, {"snapshot": "s"}, {"deleted": True}),
    "claim not covered": ({"claims": [claim("Rooms cost 750 yuan at most.")]}, {}, {}),
    "text not covered": (
        {"claims": [], "proposed": {**ANSWER, "text": TEXT[:28] + " Always."},
         "citations": [cite("u", None, **ROOMS)]}, {}, {},
    ),
    "other value": (
        {"proposed": {**ANSWER, "value": "40"}, "final": {**ANSWER, "value": "40"}},
        {"expected_value": "40"}, {},
    ),
}  # fmt: skip


OPEN = ("part of the span", "claim not covered", "text not covered", "other value",
        "quote elsewhere")  # fmt: skip
"""Word for word they are not supported; whether they are otherwise, nobody has judged."""


@pytest.mark.parametrize("what", BAD)
def test_end_to_end__needs_support(what, tmp_path, monkeypatch):
    trace, case, unit = BAD[what]
    monkeypatch.setattr(world, "CHUNK", {**world.CHUNK, "deleted": None})
    monkeypatch.setattr(world, "CASE", {**world.CASE, "snapshot": None})
    scores = one(tmp_path, trace, case, unit)
    assert got(scores, "answer.supported", "q") == 0.0
    assert got(scores, "end_to_end", "q") == ("missing" if what in OPEN else 0.0)


def test_text__stands_in_for_claims_without_its_markers(tmp_path):
    text = "Meals cost 40 yuan [2]. Rooms cost at  most\n750 yuan [1]."
    whole = [cite("u", None, start=0, end=len(TEXT), quote=TEXT)]
    answer = {**ANSWER, "text": text}
    scores = one(
        tmp_path, {"claims": None, "citations": whole, "proposed": answer, "final": answer}
    )
    assert got(scores, "answer.supported", "q") == 1.0


def test_abstention__is_not_answered_and_needs_no_citation(tmp_path):
    silent = {"state": "abstain", "value": None, "text": None}
    scores = one(
        tmp_path, {"proposed": silent, "final": silent, "claims": [], "citations": []},
        {"expected_state": "abstain", "expected_value": None},
    )  # fmt: skip
    assert got(scores, "answer.supported", "q") == "na"
    assert got(scores, "citation.support", "q") == "na"
    assert got(scores, "end_to_end", "q") == 1.0


# --- states


def test_citations__null_is_missing_and_empty_is_none(tmp_path):
    empty, null = one(tmp_path, {"citations": []}), None
    assert got(empty, "citation.support", "q") == "na"
    assert got(empty, "citation.presence", "q") == 0.0
    assert got(empty, "citation.recall", "q") == 0.0
    assert got(empty, "citation.fabricated", "q") == 0.0
    assert got(empty, "end_to_end", "q") == 0.0
    null = one(tmp_path / "n", {"citations": None})
    for measure in (m.text for m in null.runs[0].measures):
        wanted = 1.0 if measure == "end_to_end" else "missing"  # nobody recorded any
        assert got(null, measure, "q") == wanted, measure
    assert "state and value alone" in " ".join(null.audits[0].warnings)


def test_citations__of_some_traces_alone_leave_the_others_open(tmp_path):
    folder = suite(
        tmp_path / "s", [QUERY, {**QUERY, "case_id": "p"}, {**QUERY, "case_id": "f"}], [UNIT]
    )
    rows = [GOOD, {**GOOD, "case_id": "p", "citations": None},
            {**GOOD, "case_id": "f", "citations": None, "error": "timeout"}]  # fmt: skip
    scores = score(run(rows), suite=folder, measures=["end_to_end", "citation.support"])
    assert got(scores, "end_to_end", "q") == 1.0
    assert got(scores, "end_to_end", "p") == "missing"
    assert got(scores, "citation.support", "p") == "missing"
    assert got(scores, "citation.support", "f") == "failed"


@pytest.mark.parametrize(
    ("drop", "stage", "why"),
    [
        ("text", "quote", "no-text"), ("acl", "accessible", "no-access-list"),
        ("doc_version", "version", "no-version"),
    ],
)  # fmt: skip
def test_stage__without_its_column_is_missing_and_the_chain_goes_on(drop, stage, why, tmp_path):
    scores = one(tmp_path, drop=[drop, *(["text_zh"] if drop == "text" else [])])
    assert got(scores, f"citation.{stage}", "q") == "missing"
    assert got(scores, "citation.span_inside", "q") == 1.0
    reasons = {r["measure"]: r["reason"] for r in scores.table().to_pylist()}
    assert reasons[f"citation.{stage}"] == why
    assert scores.audits[0].counts[f"citations not checked: {stage}"] == 1
    supported = "missing" if drop == "text" else 1.0
    assert got(scores, "citation.support", "q") == supported
    assert got(scores, "end_to_end", "q") == 1.0


def test_context__not_recorded_leaves_supply_open_and_a_refused_one_is_empty(tmp_path):
    scores = one(tmp_path, {"context": None})
    assert got(scores, "citation.supplied", "q") == "missing"
    assert got(scores, "citation.fabricated", "q") == "missing"
    assert got(scores, "citation.support", "q") == 1.0
    scores = one(tmp_path / "r", {"context": None, "context_state": "budget_refused"})
    assert got(scores, "citation.supplied", "q") == 0.0
    assert got(scores, "citation.fabricated", "q") == 1.0


def test_label__disputed_is_disputed(tmp_path):
    scores = one(tmp_path, case={"status": "disputed"})
    assert got(scores, "citation.support", "q") == "disputed"


def test_columns__that_a_run_has_not(tmp_path):
    folder = suite(tmp_path / "s", [QUERY], [UNIT])
    scores = score({"q": {"u": 1.0}}, suite=folder, measures=NAMES)
    for one_of in scores.runs[0].measures:
        assert got(scores, one_of.text, "q") == "missing", one_of.text
    scores = score({"q": {"u": 1.0}}, qrels={"q": {"u": 1}}, measures=["citation.*"])
    assert got(scores, "citation.support", "q") == "missing"


# --- bad input is counted and named


def test_bad__is_counted_and_named(tmp_path):
    citations = [
        cite("u", -1), cite("u", 7), cite(None), cite(""), cite("u", start=3, end=1),
        cite("u", start=3), cite("w"), cite("z"), cite("u", None),
    ]  # fmt: skip
    scores = one(tmp_path, {"citations": citations}, more=[{"chunk_id": "z"}])
    found = scores.audits[0]
    assert {k: v for k, v in found.counts.items() if k.startswith("citations o")} == {
        "citations of claim -1": 1, "citations of a claim out of range": 1,
        "citations of unknown chunks": 1, "citations of chunks that were not in the context": 1,
    }  # fmt: skip
    assert found.counts["citations without an id"] == 2
    assert found.counts["citations with an impossible place"] == 2
    assert "1 citations of claim -1: case 'q'" in found.warnings
    assert got(scores, "citation.well_formed", "q") == pytest.approx(3 / 9)
    assert got(scores, "citation.emitted", "q") == 9
    assert got(scores, "citation.fabricated", "q") == 2
    assert got(scores, "citation.dangling", "q") == 1
    assert got(scores, "citation.presence", "q") == 1.0


def test_ids__as_a_plain_list_are_citations_of_the_whole_answer(tmp_path):
    folder = suite(tmp_path / "s", [QUERY], [UNIT])
    table = run([GOOD])
    place = table.column_names.index("citations")
    table = table.set_column(place, "citations", pa.array([["u", "w"]]))
    scores = score(table, suite=folder, measures=NAMES)
    assert got(scores, "citation.well_formed", "q") == 1.0
    assert got(scores, "citation.supplied", "q") == 0.5
    assert got(scores, "citation.presence", "q") == 1.0
    assert got(scores, "alce.recall", "q") == "missing"


def test_document__alone_is_brought_to_the_unit_that_holds_the_place(tmp_path):
    more = [{"chunk_id": "u2", "doc_id": "d", "text": "Second.", "start": 49, "doc_version": "v1"}]
    trace = {"citations": [cite(None, doc_id="d", start=49, end=56, quote="Second.")],
             "context": shown("u", "u2")}  # fmt: skip
    label = [{"doc_id": "d", "chunk_id": "u2", "start": 49, "end": 56}]
    scores = one(tmp_path, trace, {"evidence": label}, {"doc_id": "d"}, more=more)
    for stage in ("well_formed", "supplied", "quote", "span_inside"):
        assert got(scores, f"citation.{stage}", "q") == 1.0, stage
    trace["citations"] = [cite(None, doc_id="nobody")]
    scores = one(tmp_path / "n", trace, {}, {"doc_id": "d"}, more=more)
    assert got(scores, "citation.dangling", "q") == 1.0


def test_funnel__may_be_pooled(tmp_path):
    cases = [{**QUERY, "case_id": name} for name in "ab"]
    folder = suite(tmp_path / "s", cases, [UNIT])
    rows = [{**GOOD, "case_id": "a", "citations": [cite("u"), cite("w"), cite("w")]},
            {**GOOD, "case_id": "b"}]  # fmt: skip
    scores = score(
        run(rows), suite=folder, measures=["citation.supplied", "micro(citation.supplied)"]
    )
    assert scores.mean("citation.supplied") == pytest.approx(float(Fraction(2, 3)))
    assert scores.mean("micro(citation.supplied)") == 0.5
