"""Measures of citations that rest on verdicts, state by state, through `score`."""

from __future__ import annotations

import pytest

from citation_world import ROOMS, cite, claim, got, one, shown
from ragcore.errors import InputError


def test_verdicts__states_of_cells(tmp_path):
    two = {"citations": [cite("u", **ROOMS), cite("z")], "context": shown("u", "z")}
    more = [{"chunk_id": "z"}]
    rows = [{"evidence": ["u"], "verdict": "error"}, {"evidence": ["z"], "verdict": "no"}]
    scores = one(tmp_path, two, judgments=rows, more=more)
    assert got(scores, "citation.recall", "q") == "failed"
    assert got(scores, "citation.entailment", "q") == "failed"
    rows = [{"evidence": ["u"]}, {"evidence": ["u"], "verdict": "no", "judge": "k"}]
    scores = one(tmp_path / "d", two, judgments=rows, more=more)
    assert got(scores, "citation.recall", "q") == "disputed"
    rows = [{"evidence": ["z"], "verdict": "no"}]
    scores = one(tmp_path / "m", two, judgments=rows, more=more)
    assert got(scores, "citation.recall", "q") == "missing"
    assert got(scores, "citation.entailment", "q") == 0.0
    rows += [{"evidence": ["z", "u"], "verdict": "yes", "rung": "human"}]
    scores = one(tmp_path / "j", two, judgments=rows, more=more)
    assert got(scores, "citation.recall", "q") == 1.0
    assert got(scores, "alce.recall", "q") == 1.0
    assert got(scores, "alce.precision", "q") == "missing"


def test_verdicts__below_the_required_rung_do_not_count(tmp_path):
    scores = one(tmp_path, case={"judge_required": "human"}, judgments=[{"evidence": ["u"]}])
    assert got(scores, "citation.recall", "q") == "disputed"
    assert scores.audits[0].counts["items judged below the required rung"] >= 1


def test_verdicts__on_a_claim_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"claim 3 of case 'q', relation cites.*0 to 0"):
        one(tmp_path, judgments=[{"evidence": ["u"], "claim": 3}])


def test_laundering__a_correct_claim_with_an_irrelevant_source(tmp_path):
    rows = [{"relation": "correct"}, {"evidence": ["u"], "verdict": "no"}]
    assert got(one(tmp_path, judgments=rows), "citation.laundering", "q") == 1.0
    rows[1]["verdict"] = "partial"
    assert got(one(tmp_path / "p", judgments=rows), "citation.laundering", "q") == 0.0
    assert got(one(tmp_path / "m", judgments=rows[:1]), "citation.laundering", "q") == "missing"


def test_influence__of_those_that_were_removed(tmp_path):
    rows = [{"relation": "influence", "evidence": ["u"], "verdict": "yes"},
            {"relation": "influence", "evidence": ["z"], "verdict": "no"}]  # fmt: skip
    trace = {"citations": [cite("u"), cite("z"), cite("y")], "context": shown("u", "z", "y")}
    scores = one(tmp_path, trace, judgments=rows, more=[{"chunk_id": "z"}, {"chunk_id": "y"}])
    assert got(scores, "citation.influence", "q") == 0.5


def test_independence__one_upstream_is_one_source(tmp_path):
    more = [
        {"chunk_id": "u2", "doc_id": "u", "source_family": "f"},
        {"chunk_id": "w", "doc_id": "w", "source_family": "f"},
        {"chunk_id": "x", "doc_id": "x", "source_family": "g"},
    ]  # fmt: skip
    trace = {
        "claims": [claim(), claim(), claim()], "context": shown("u", "u2", "w", "x"),
        "citations": [cite("u"), cite("u2"), cite("w"), cite("x", 1), cite("u", 1)],
    }  # fmt: skip
    scores = one(tmp_path, trace, more=more)
    assert got(scores, "citation.independence", "q") == 1.5
    assert got(scores, "citation.documents", "q") == 2.0
    scores = one(tmp_path / "n", trace, more=[*more[:2], {**more[2], "source_family": None}])
    assert got(scores, "citation.independence", "q") == "missing"


def test_alce__official_voids_a_sentence_with_a_dangling_citation(tmp_path):
    trace = {"claims": [claim("a", 0), claim("b", 1)],
             "citations": [cite("u"), cite("nowhere"), cite("u", 1), cite("u", 9)]}  # fmt: skip
    rows = [{"evidence": ["u"], "claim": 0}, {"evidence": ["u"], "claim": 1}]
    parts = ("recall", "precision")
    names = [f"alce.{part}{how}" for part in parts for how in ("", "(official=True)")]
    scores = one(tmp_path, trace, judgments=rows, names=names)
    assert got(scores, "alce.recall", "q") == 1.0
    assert got(scores, "alce.precision", "q") == 0.5
    assert got(scores, "alce.recall(official=True)", "q") == 0.5
    assert got(scores, "alce.precision(official=True)", "q") == 1.0


def test_alce__a_redundant_citation_is_not_precise(tmp_path):
    """A sentence without citations adds nothing to the precision; an answer of such has 0."""
    trace = {"claims": [claim("a", 0), claim("b", 1)], "context": shown("u", "z"),
             "citations": [cite("u"), cite("z")]}  # fmt: skip
    rows = [{"evidence": ids, "verdict": said}
            for ids, said in ((["u", "z"], "yes"), (["u"], "yes"), (["z"], "no"))]  # fmt: skip
    scores = one(tmp_path, trace, judgments=rows, more=[{"chunk_id": "z"}])
    assert got(scores, "alce.recall", "q") == 0.5
    assert got(scores, "alce.precision", "q") == 0.5
    scores = one(tmp_path / "b", {"claims": [claim()], "citations": []})
    assert got(scores, "alce.recall", "q") == got(scores, "alce.precision", "q") == 0.0


def test_verdicts__on_answers_without_recorded_claims_have_no_range(tmp_path):
    rows = [{"evidence": ["u"], "claim": 3}]
    scores = one(tmp_path, {"claims": None, "citations": [cite("u", 3)]}, judgments=rows)
    assert got(scores, "citation.entailment", "q") == 1.0
    assert got(scores, "trecrag.support_precision", "q") == 1.0
    assert got(scores, "citation.recall", "q") == "missing"
