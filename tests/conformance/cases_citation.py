"""Cases about citations: every citation counts, and so do answers that say nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import citation_world as world
import ragcore
from citation_world import cite, claim, shown
from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case

NAMES = ["citation.*", "alce.*", "trecrag.*"]


def verdict(claim_index: int, ids: list[str], yes: Any) -> dict[str, Any]:
    """A verdict of `cites`."""
    return {"claim": claim_index, "evidence": ids, "verdict": "yes" if yes else "no"}


def scored(
    folder: Path, answers: dict[str, list[list[str]]], verdicts: dict[str, list[dict[str, Any]]]
) -> ragcore.Scores:
    """Scores of answers, given as what each of their sentences cites."""
    suite = world.suite(folder / "suite", [{"case_id": case} for case in answers])
    ids = sorted({one for sentences in answers.values() for s in sentences for one in s})
    traces = [
        {
            "case_id": case, "context": shown(*ids),
            "claims": [claim(f"s{j}", j) for j in range(len(sentences))],
            "citations": [cite(one, j) for j, s in enumerate(sentences) for one in s],
        }
        for case, sentences in answers.items()
    ]  # fmt: skip
    rows = [{"case_id": case, **row} for case, given in verdicts.items() for row in given]
    return ragcore.score(
        world.run(traces), suite=suite, judgments=[world.judged(rows)], measures=NAMES
    )


@handles("RC-123")
def every_citation_counts(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    support = given["support"]
    for turn, ids in enumerate((given["citations"], given["citations"][::-1])):
        rows = [verdict(0, [one], support[one]) for one in ids]
        scores = scored(folder / str(turn), {"q": [ids]}, {"q": rows})
        for name in ("citation.recall", "trecrag.support_recall"):
            assert shapes.near(scores.value(name, "q"), expected["citation_recall"])
        for name in ("citation.precision", "citation.entailment", "trecrag.support_precision"):
            assert shapes.near(scores.value(name, "q"), expected["citation_precision"]), name


@handles("RC-126")
def unanswered_queries_stand_beside_the_mean(case: Case, folder: Path) -> None:
    queries, expected = case["input"]["queries"], case["expected"]
    answers = {name: [["p1"]] if "score" in q else [] for name, q in queries.items()}
    scores = scored(folder, answers, {"q1": [verdict(0, ["p1"], queries["q1"]["score"])]})
    row = next(r for r in scores.summary().to_pylist() if r["measure"] == "citation.recall")
    assert shapes.near(row["mean"], expected["mean_over_answered"])
    assert (row["n_cases"], row["n_ok"]) == (expected["n"], expected["answered"])
    assert shapes.near(row["n_ok"] / row["n_cases"], expected["answer_rate"])
    assert row["n_na"] == expected["n"] - expected["answered"]


@handles("RC-130")
def empty_answers_are_counted(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    names = [f"q{i}" for i in range(len(given["answers"]))]
    answers = {
        name: [["p1"]] if text else [] for name, text in zip(names, given["answers"], strict=True)
    }
    rows = [verdict(0, ["p1"], given["supported"][0][0])]
    scores = scored(folder, answers, {"q0": rows})
    assert shapes.near(scores.mean("alce.recall"), expected["citation_recall_mean"])
    row = next(r for r in scores.summary().to_pylist() if r["measure"] == "citation.recall")
    other = expected["or"]
    assert shapes.near(row["mean"], other["mean_over_answered"])
    assert (row["n_ok"], row["n_cases"]) == (other["answered"], other["n"])
