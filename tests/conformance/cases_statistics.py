"""Cases of paired statistics and of gates."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest

import ragcore
from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.stats import SIDES, TEST, paired
from ragcore_kernels.atoms import mean_distribution
from ragcore_kernels.resample import mean_interval
from ragcore_kernels.tails import mean_tails


@handles("RC-096")
def every_resample_is_counted(case: Case, folder: Path) -> None:
    expected = case["expected"]
    found = mean_distribution(case["input"]["deltas"])
    assert found.resamples == expected["n_resamples"]
    atoms = {float(mean): ways for mean, ways in zip(found.means, found.ways, strict=True)}
    assert atoms == {float(k): v for k, v in expected["distribution"].items()}
    pairs = list(zip(found.means, found.probabilities, strict=True))
    mean = sum(at * share for at, share in pairs)
    spread = sum(share * (at - mean) ** 2 for at, share in pairs)
    assert shapes.near(float(mean), expected["mean"], case["tolerance"])
    assert shapes.near(float(spread), expected["variance"], case["tolerance"])


@handles("RC-098")
def an_empty_tail_is_not_a_p_of_zero(case: Case, folder: Path) -> None:
    deltas, expected = case["input"]["deltas"], case["expected"]
    tails = mean_tails(deltas)
    n = len(deltas)
    assert tails.below + tails.equal == expected["count_mean<=0"]
    assert shapes.near(10**tails.log10_resolution, 1 / expected["n_resamples"], 1e-9)
    low, high = mean_interval(deltas).low, mean_interval(deltas).high
    assert (low <= 0 <= high) is expected["ci_contains_0"]
    found = paired([0.0] * n, deltas)
    assert found.p_value == 2 / 2**n  # the two-sided sign-flip test has its own least value
    assert found.low is not None
    assert found.low > 0


@handles("RC-099")
def identical_systems(case: Case, folder: Path) -> None:
    found = paired(case["input"]["a"], case["input"]["b"])
    expected = case["expected"]
    assert found.delta == expected["delta"]
    assert [found.low, found.high] == expected["ci"]
    assert found.p_value == expected["p"]
    assert "no case differs" in found.reason


@handles("RC-100")
def one_case_has_no_interval(case: Case, folder: Path) -> None:
    a, b = case["input"]["a"], case["input"]["b"]
    found = paired(b, a)
    assert shapes.near(found.delta, case["expected"]["delta"], case["tolerance"])
    assert (found.low, found.high, found.p_value) == (None, None, None)
    assert found.reason == case["expected"]["reason"]
    run, other = {"q": {"x": 1.0}}, {"q": {"y": 1.0}}
    compared = ragcore.compare(other, run, qrels={"q": {"x": 1}}, measures=["RR"])
    (row,) = [r for r in compared.summary().to_pylist() if r["baseline"]]
    assert (row["delta"], row["delta_low"], row["delta_high"], row["p_value"]) == (
        1.0, None, None, None,
    )  # fmt: skip
    assert "n=1" in row["note"]
    assert ragcore.score(run, qrels={"q": {"x": 1}}).summary().to_pylist()[0]["ci_low"] is None


@handles("RC-101")
def pairs_are_joined_by_id(case: Case, folder: Path) -> None:
    a, b = case["input"]["a"], case["input"]["b"]
    found = paired(a, b)
    assert (found.wins, found.losses, found.ties) == (0, 0, len(a))
    assert found.p_value == case["expected"]["p"]

    def run(values: dict[str, float]) -> dict[str, dict[str, float]]:
        return {t: {f"{t}{round(10 * v)}": 1.0, "z": 0.5} for t, v in values.items()}

    qrels = {t: {f"{t}{round(10 * v)}": 1} for t, v in a.items()}
    compared = ragcore.compare(run(a), run(b), qrels=qrels, measures=["RR"])
    rows = compared.cases("RR").to_pylist()
    assert {r["case_id"]: r["delta"] for r in rows} == case["expected"]["deltas"]
    short = ragcore.compare(
        run(a), {t: r for t, r in run(b).items() if t != "t2"}, qrels=qrels, measures=["RR"]
    )
    assert short.contrasts[0].unmatched.missing == ([], ["t2"])  # 0 by policy, and listed
    assert {r["case_id"]: r["delta"] for r in short.cases("RR").to_pylist()}["t2"] == -1.0


@handles("RC-102")
def the_test_is_named(case: Case, folder: Path) -> None:
    report = paired([0, 0, 1], [1, 0, 1]).report
    names = {
        "test name": report["test"], "sidedness": report["sidedness"], "n": report["n"],
        "resamples or 'exact'": report["resamples"], "correction (none|Holm|Bonferroni)":
        report["correction"],
    }  # fmt: skip
    assert set(case["expected"]["report"]) == {*names, "seed"}
    assert all(value is not None for value in names.values())
    assert report["seed"] is None  # nothing is drawn
    assert (report["test"], report["sidedness"]) == (TEST, SIDES)
    qrels = {f"q{i}": {"x": 1} for i in range(4)}
    before = {q: {"y": 1.0} for q in qrels}
    after = {q: {"x": 1.0} if q != "q0" else {"y": 1.0} for q in qrels}
    found = ragcore.compare(before, after, qrels=qrels, measures=["RR", "R@1", "P@1"])
    (note,) = [
        r["note"] for r in found.summary().to_pylist() if r["baseline"] and r["measure"] == "RR"
    ]
    assert "two-sided sign-flip exact" in note
    assert "Holm p" in note
    about = json.loads(found.summary().schema.metadata[b"ragcore.comparison"])
    assert about["test"] == {
        "name": "paired sign-flip", "sidedness": "two-sided", "resamples": "exact", "seed": None,
        "correction": "Holm", "drawn": 0,
    }  # fmt: skip


@handles("RC-103")
def topics_are_resampled_jointly(case: Case, folder: Path) -> None:
    assert case["input"]["resampled"] == "topics"
    qrels = {f"q{i}": {"x": 1, "w": 1} for i in range(9)}
    run = {f"q{i}": {"x": 2.0} if i % 3 else {"y": 3.0, "x": 2.0, "w": 1.0} for i in range(9)}
    other = {q: {"y": 2.0, "x": 1.0} for q in run}
    found = ragcore.compare(other, run, qrels=qrels, measures=["nDCG@10", "R@5"])
    for name in ("nDCG@10", "R@5"):
        cell = found.cell(name)
        assert shapes.near(
            cell.paired.delta, found.scores.mean(name, 1) - found.scores.mean(name, 0), 1e-12
        )
        deltas = [
            (found.scores.value(name, q, 1) or 0) - (found.scores.value(name, q, 0) or 0)
            for q in run
        ]  # the unit is the topic: 9 deltas, whatever the number of documents
        interval = mean_interval(deltas)
        assert (cell.paired.low, cell.paired.high) == pytest.approx((interval.low, interval.high))


@handles("RC-138")
def nothing_measured_fails_a_gate(case: Case, folder: Path) -> None:
    assert case["input"]["scores"] == []
    ((name, condition),) = case["input"]["threshold"].items()
    gate = f"{name} {condition}"
    qrels = shapes.write_text(folder / "qrels.trec", "t1 0 a 0\n")
    run = shapes.write_text(folder / "run.trec", "t1 Q0 a 1 1 r\n")
    every = (gate, f"{name}.ci_low >= 0", f"{name} != 5", f"{name} <= 1", f"{name} < 1e9")
    for one in every:
        done = shapes.cli("score", run, "--qrels", qrels, "-m", name, "--no-relevant", "na",
                          "--gate", one, cwd=folder)  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert "fail" in done.stdout
        assert "no case with a value" in done.stdout
    absent = shapes.cli("score", run, "--qrels", qrels, "--gate", "nothing >= 0", cwd=folder)
    assert absent.returncode == 2


@handles("RC-139")
def a_gate_on_fewer_cases_is_inconclusive(case: Case, folder: Path) -> None:
    before, after = case["input"]["baseline"], case["input"]["candidate"]
    wanted = [f"d{i}" for i in range(5)]
    n = before["n"]
    qrels = pa.table({
        "case_id": [f"q{i}" for i in range(n) for _ in wanted],
        "id": wanted * n, "relevance": [1] * (5 * n),
    })  # fmt: skip
    run = _with_mean(before["mean"], n, n, wanted)
    other = _with_mean(after["mean"], after["n"], n, wanted)  # it lost what the baseline can do
    found = ragcore.compare(run, other, qrels=qrels, measures=["P@5"])
    rows = {r["run"]: r for r in found.summary().to_pylist()}
    assert shapes.near(rows["run2"]["mean"], after["mean"], 1e-9)
    assert rows["run2"]["n_failed"] == after["failed"]
    (result,) = found.check(["delta(P@5) >= 0"])
    assert result.status == "inconclusive"
    assert "30 of 100 cases not scored" in result.reason
    worst = case["expected"]["worst_case"]
    assert f"mean would be {worst:g} against {before['mean']:g}" in result.reason
    (plain,) = found.check([f"P@5 >= {before['mean']}"])
    assert plain.status == "inconclusive"
    assert f"worst case {worst:g}" in plain.reason
    (easy,) = found.check(["P@5 >= 0.4"])  # holds whatever the lost ones were
    assert easy.status == "pass"
    path = folder / "other.arrow"
    with pa.ipc.new_file(path, other.schema) as writer:
        writer.write_table(other)
    with pa.ipc.new_file(folder / "qrels.arrow", qrels.schema) as writer:
        writer.write_table(qrels)
    done = shapes.cli("score", path, "--qrels", folder / "qrels.arrow", "-m", "P@5",
                      "--gate", f"P@5 >= {before['mean']}", cwd=folder)  # fmt: skip
    assert done.returncode == 1
    assert "inconclusive" in done.stdout


def _with_mean(mean: float, scored: int, n: int, wanted: list[str]) -> pa.Table:
    """A run of n cases whose P@5 has this mean over the last ones; the others failed."""
    fifths = round(5 * mean * scored)
    assert math.isclose(fifths / 5 / scored, mean)
    hits = [5] * (fifths // 5) + [fifths % 5]
    hits += [0] * (scored - len(hits))
    if scored == n:  # the baseline does best what the candidate loses
        hits.sort(reverse=True)
    ranked = [[*wanted[:h], *(f"x{i}" for i in range(5 - h))] for h in hits]
    lost = n - scored
    return pa.table({
        "case_id": [f"q{i}" for i in range(n)],
        "ranked": pa.array([*[None] * lost, *ranked], pa.list_(pa.string())),
        "error": ["timeout"] * lost + [None] * scored,
    })  # fmt: skip
