"""Cases of claims and of the context: verdicts that are kept, and what follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import claim_tables
import ragcore
from claim_tables import Case as Claims
from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.casewise import by_case, only
from ragcore.errors import UsageError
from ragcore.measures import registry


def scored(folder: Path, cases: dict[str, Claims], measures: list[str], **options: Any) -> Any:
    """Scores of a run of these cases."""
    rows = options.pop("rows", None) or claim_tables.all_rows(cases)
    return ragcore.score(
        claim_tables.run_of(cases), suite=claim_tables.suite_of(folder / "suite", cases),
        judgments=claim_tables.judgments_of(rows), measures=measures, **options,
    )  # fmt: skip


def value(scores: Any, name: str, case: str) -> float | None:
    """The value of a case; None where it is na."""
    state = scores.state(name, case)
    assert state in ("ok", "na"), (name, case, state)
    return scores.value(name, case) if state == "ok" else None


def digits(flags: list[int]) -> str:
    return "".join(map(str, flags))


def near(found: list[float | None], expected: list[float | None], tolerance: float) -> bool:
    pairs = zip(found, expected, strict=True)
    return all((f is None) == (e is None) and (e is None or shapes.near(f, e, tolerance))
               for f, e in pairs)  # fmt: skip


@handles("RC-104")
def average_precision_over_the_list(case: Case, folder: Path) -> None:
    lists = case["input"]["verdicts"]
    cases = {
        f"q{i}": Claims(0, 1, [f"c{k}" for k in range(len(flags))], by_reference=digits(flags))
        for i, flags in enumerate(lists)
    }
    name = "context.precision_ap"
    scores = scored(folder, cases, [name])
    found = [value(scores, name, each) for each in cases]
    assert near(found, case["expected"]["context_precision"], case["tolerance"])
    assert found[-1] == 1.0


@handles("RC-105")
def nothing_retrieved_recalls_nothing(case: Case, folder: Path) -> None:
    n = case["input"]["reference_claims"]
    cases, rows = {}, []
    for i, texts in enumerate(case["input"]["retrieved_contexts"]):
        name = f"q{i}"
        cases[name] = Claims(0, n, [f"{name}-{k}" for k in range(len(texts))])
        for k, text in enumerate(texts):
            assert not text.strip()  # which a rule sees: no judge is asked
            rows += [
                {"case_id": name, "relation": "chunk_entails_reference", "claim": j,
                 "evidence": [f"{name}-{k}"], "verdict": "no", "judge": "blank", "rung": "rule"}
                for j in range(n)
            ]  # fmt: skip
    names = ["claims.context_recall", "context.precision"]
    scores = scored(folder, cases, names, rows=rows)
    for name, key in zip(names, ("context_recall", "context_precision"), strict=True):
        found = [value(scores, name, each) for each in cases]
        assert near(found, case["expected"][key], case["tolerance"]), name
    assert scores.mean("claims.context_recall") == 0.0


@handles("RC-106")
def one_verdict_serves_precision_and_recall(case: Case, folder: Path) -> None:
    """Both measures read the same cell, so that no threshold can differ between them."""
    (similarity,), threshold = case["input"]["similarities"], case["input"]["threshold"]
    verdict = "1" if similarity >= threshold else "0"
    scores = scored(folder, {"q": Claims(0, 1, ["c"], by_reference=verdict)},
                    ["context.precision", "claims.context_recall"])  # fmt: skip
    expected = case["expected"]
    assert (scores.value("context.precision", "q") == 1) is expected["relevant_for_precision"]
    assert (scores.value("claims.context_recall", "q") == 1) is expected["relevant_for_recall"]


@handles("RC-107")
def no_epsilon_in_a_denominator(case: Case, folder: Path) -> None:
    hit, total = case["input"]["hit"], case["input"]["total"]
    marks = "1" * hit + "0" * (total - hit)
    given = Claims(total, total, ["c"], correct=marks, covered=marks, entailed=marks,
                   by_reference=",".join(marks), by_answer=",".join(marks))  # fmt: skip
    names = ["claims.recall", "claims.context_recall", "claims.precision", "claims.f1",
             "faithfulness", "grounded.f1", "context.precision_ap"]  # fmt: skip
    scores = scored(folder, {"q": given}, names)
    assert {scores.value(name, "q") for name in names} == {case["expected"]["recall"]}


@handles("RC-109")
def failed_verdicts_are_counted_and_bounded(case: Case, folder: Path) -> None:
    name, runs = "grounded.faithfulness", {}
    for system, values in case["input"].items():
        runs[system] = {
            f"q{i}": Claims(10, entailed="!" * 10 if v is None else "1" * round(10 * v) +
                            "0" * (10 - round(10 * v)))
            for i, v in enumerate(values)
        }  # fmt: skip
        expected = case["expected"][system]
        scores = scored(folder / system, runs[system], [name])
        (row,) = scores.summary().to_pylist()
        assert shapes.near(row["mean"], expected["mean"], case["tolerance"])
        assert (row["n_ok"], row["n_failed"]) == (expected["n"], expected["failed"])
        if "bounds" in expected:
            assert shapes.near(row["n_ok"] / row["n_cases"], expected["coverage"])
            run = scores.runs[0]
            bounds = [by_case(only(run, 0, fill)).values[0].mean() for fill in (0.0, 1.0)]
            assert near(bounds, expected["bounds"], case["tolerance"])
    rows = [{**row, "run": system} for system, cases in runs.items()
            for row in claim_tables.all_rows(cases)]  # fmt: skip
    found = ragcore.compare(
        claim_tables.run_of(runs["A"]), claim_tables.run_of(runs["B"]), names=["A", "B"],
        suite=folder / "A" / "suite", measures=[name],
        judgments=claim_tables.judgments_of(rows),
    )  # fmt: skip
    (row,) = [r for r in found.summary().to_pylist() if r["run"] == "B" and r["baseline"]]
    assert row["n_matched"] == 2
    assert shapes.near(row["delta"], 0.0, case["tolerance"])


@handles("RC-111")
def precision_and_recall_count_claims_of_their_own(case: Case, folder: Path) -> None:
    answer = digits(case["input"]["response_claims_supported"])
    reference = digits(case["input"]["reference_claims_supported"])
    given = Claims(len(answer), len(reference), correct=answer, covered=reference)
    names = ["claims.precision", "claims.recall", "claims.f1"]
    scores = scored(folder, {"q": given}, names)
    found = [scores.value(name, "q") for name in names]
    wanted = [case["expected"][key] for key in ("precision", "recall", "f1")]
    assert near(found, wanted, case["tolerance"])


@handles("RC-112")
def context_recall_is_over_the_reference(case: Case, folder: Path) -> None:
    given = case["input"]
    a, y = given["answer_claims"], given["reference_claims"]
    ours, theirs = given["answer_claims_in_context"], given["reference_claims_in_context"]
    answers = ",".join("1" * ours + "0" * (a - ours))
    references = ",".join("1" * theirs + "0" * (y - theirs))
    one = Claims(a, y, ["c"], by_answer=answers, by_reference=references)
    scores = scored(folder, {"q": one}, ["context.recall"])
    assert scores.value("context.recall", "q") == case["expected"]["context_recall"]


@handles("RC-113")
def an_answer_without_claims_has_no_share_of_them(case: Case, folder: Path) -> None:
    given = Claims(len(case["input"]["response_claims"]), case["input"]["gt_claims"], ["c"],
                   by_reference="1,0,0")  # fmt: skip
    of = {
        "precision": ["claims.precision"], "recall": ["claims.recall"],
        "hallucination": ["hallucination"], "faithfulness": ["faithfulness"],
        "noise_sensitivity": ["noise.relevant", "noise.irrelevant"],
    }  # fmt: skip
    names = [name for each in of.values() for name in each]
    scores = scored(folder, {"q": given}, names)
    assert of.keys() == case["expected"].keys()
    for key, expected in case["expected"].items():
        assert [value(scores, name, "q") for name in of[key]] == [expected] * len(of[key]), key


@handles("RC-114")
def noise_is_of_one_kind(case: Case, folder: Path) -> None:
    given, (kinds) = case["input"], list(case["input"]["chunk_relevant"])
    wrong = given["incorrect_claims"]
    matrix = ",".join(
        "".join(str(int(kind in by)) for kind in kinds) for by in given["entailed_by"]
    )
    useful = "".join(str(int(given["chunk_relevant"][kind])) for kind in kinds)
    one = Claims(len(wrong), 1, kinds, correct=digits([1 - w for w in wrong]), by_answer=matrix,
                 by_reference=useful)  # fmt: skip
    scores = scored(folder, {"q": one}, ["noise.relevant", "noise.irrelevant"])
    assert scores.value("noise.relevant", "q") == case["expected"]["noise_relevant"]
    assert scores.value("noise.irrelevant", "q") == case["expected"]["noise_irrelevant"]


@handles("RC-119")
def stored_verdicts_are_enough(case: Case, folder: Path) -> None:
    stored = case["input"]["stored_verdicts"]
    given = Claims(len(stored["statements"]), entailed=digits(stored["supported"]))
    scores = scored(folder, {"q": given}, ["grounded.faithfulness"])
    assert scores.value("grounded.faithfulness", "q") == case["expected"]["faithfulness"]
    assert case["expected"]["judge_calls"] == 0  # there is nothing in the engine to call one


@handles("RC-120")
def there_is_no_blended_score(case: Case, folder: Path) -> None:
    assert case["expected"]["aggregate"] is None
    for name in ("overall", "ragas_score", "rag_score", "harmonic_mean"):
        with pytest.raises(UsageError, match="unknown measure"):
            registry.parse([name])
    cases = {"q": Claims(10, 5, correct="1" * 9 + "0", entailed="0" * 10, covered="1" * 4 + "0")}
    names = ["claims.precision", "grounded.faithfulness", "claims.recall"]
    scores = scored(folder, cases, names)
    assert [scores.mean(name) for name in names] == case["input"]["metrics"]
    assert [row["measure"] for row in scores.summary().to_pylist()] == names
