"""RAGChecker's own worked examples to the digit, and its scores beside human preference."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import claim_tables
import ragcore
from claim_tables import Case

NAMES = {
    "precision": "claims.precision", "recall": "claims.recall", "f1": "claims.f1",
    "claim_recall": "claims.context_recall", "context_precision": "context.precision",
    "context_utilization": "context.utilization",
    "noise_sensitivity_in_relevant": "noise.relevant",
    "noise_sensitivity_in_irrelevant": "noise.irrelevant", "hallucination": "hallucination",
    "self_knowledge": "self_knowledge", "faithfulness": "faithfulness",
}  # fmt: skip
WORD = {"Entailment": "1", "Neutral": "0", "Contradiction": "x"}


@pytest.fixture(scope="module")
def published(shared):
    return json.loads((shared / "data/ragchecker/checking_outputs.json").read_text("utf-8"))


def digits(words):
    return "".join(WORD[word] for word in words)


def case_of(result):
    matrix = {name: ",".join(map(digits, result[name]))
              for name in ("retrieved2response", "retrieved2answer")}  # fmt: skip
    return Case(
        len(result["response_claims"]), len(result["gt_answer_claims"]),
        [doc["doc_id"] for doc in result["retrieved_context"]],
        correct=digits(result["answer2response"]), covered=digits(result["response2answer"]),
        by_answer=matrix["retrieved2response"], by_reference=matrix["retrieved2answer"],
    )  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("option", ["", "(zero_division=ragchecker)"])
def test_examples__are_met_to_the_digit(published, tmp_path, option, packed):
    cases = {result["query_id"]: case_of(result) for result in published["results"]}
    judgments = claim_tables.judgments_of(claim_tables.all_rows(cases))
    if packed:
        judgments = claim_tables.packed_of([
            {"case_id": name, "relation": relation,
             "verdicts": [claim_tables.YES_NO[d] for d in text if d != ","]}
            for name, case in cases.items()
            for relation, text in (
                ("correct", case.correct), ("covered", case.covered),
                ("chunk_entails", case.by_answer), ("chunk_entails_reference", case.by_reference))
        ])  # fmt: skip
    scores = ragcore.score(
        claim_tables.run_of(cases), suite=claim_tables.suite_of(tmp_path / "s", cases),
        judgments=judgments, measures=[name + option for name in NAMES.values()],
    )  # fmt: skip
    for result in published["results"]:
        for theirs, value in result["metrics"].items():
            found = scores.value(NAMES[theirs] + option, result["query_id"])
            assert found == pytest.approx(value, rel=0, abs=1e-15), (theirs, result["query_id"])
    means = {name: value for part in published["metrics"].values() for name, value in part.items()}
    assert means.keys() == NAMES.keys()
    for theirs, value in means.items():
        assert round(scores.mean(NAMES[theirs] + option) * 100, 1) == value, theirs


def test_f1__goes_with_human_preference(shared, tmp_path):
    """Pearson correlation over 560 annotations, from claims rebuilt out of the published shares."""
    folder = shared / "data/ragchecker"
    pairs = pq.read_table(folder / "pairs.parquet").to_pylist()
    wanted = pq.read_table(folder / "preferences.parquet")
    f1 = np.array([p["f1_2"] - p["f1_1"] for p in pairs])
    at = {p["instance_id"]: i for i, p in enumerate(pairs)}
    rows = np.array([at[i] for i in wanted["instance_id"].to_pylist()])
    overall = wanted["overall"].to_numpy()
    assert round(float(np.corrcoef(f1[rows], overall)[0, 1]), 4) == 0.6193
    cases, runs = {}, {}
    for side in "12":
        cases[side] = {
            str(p["instance_id"]): _rebuilt(p[f"precision{side}"], p[f"recall{side}"])
            for p in pairs
        }
        suite = claim_tables.suite_of(tmp_path / side, cases[side])
        scores = ragcore.score(
            claim_tables.run_of(cases[side]), suite=suite, measures=["claims.f1"],
            judgments=claim_tables.judgments_of(claim_tables.all_rows(cases[side])),
        )  # fmt: skip
        runs[side] = np.array([scores.value("claims.f1", name) for name in cases[side]])
        published = np.array([p[f"f1_{side}"] for p in pairs])
        assert np.abs(runs[side] - published).max() < 1e-12
    ours = (runs["2"] - runs["1"])[rows]
    assert round(float(np.corrcoef(ours, overall)[0, 1]), 4) == 0.6193


def _rebuilt(precision, recall):
    """Claims whose shares are these: the smallest numbers that give them to the last digit."""
    (a, n), (b, m) = (_fraction(share) for share in (precision, recall))
    return Case(n, m, correct="1" * a + "0" * (n - a), covered="1" * b + "0" * (m - b))


def _fraction(share):
    return next(
        (round(share * n), n) for n in range(1, 1000) if abs(round(share * n) / n - share) < 1e-12
    )


def test_preferences__are_as_described(shared):
    folder = shared / "data/ragchecker"
    assert pq.read_table(folder / "pairs.parquet").num_rows == 280
    assert pq.read_table(folder / "preferences.parquet").num_rows == 560
    assert pa.types.is_floating(pq.read_schema(folder / "pairs.parquet").field("f1_1").type)
