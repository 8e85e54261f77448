"""Load and choice: Little's law, utilisation, the knee, the front of runs."""

from __future__ import annotations

import random

import pytest

from ragcore import score
from ragcore.capacity import knee, little, stamps, surface, utilisation
from ragcore.errors import UsageError
from traces import end, run_of, suite_of


def timed(stretches, **stages):
    """Traces from (start, end) in seconds; further stages as (start, duration) of each."""
    names = [f"c{i}" for i in range(len(stretches))]
    timings = []
    for i, (a, b) in enumerate(stretches):
        own = [{"stage": "end_to_end", "start_us": round(a * 1e6),
                "duration_us": round((b - a) * 1e6)}]  # fmt: skip
        own += [{"stage": name, "start_us": round(s[i][0] * 1e6),
                 "duration_us": round(s[i][1] * 1e6)} for name, s in stages.items()]  # fmt: skip
        timings.append(own)
    return run_of({"case_id": names, "timings": timings})


def test_little__the_law_holds_on_a_whole_recording():
    rng = random.Random(3)
    stretches = [(a, a + rng.randint(1, 50) / 10) for a in sorted(rng.choices(range(100), k=60))]
    found = little(timed(stretches))
    elapsed = max(b for _, b in stretches) - min(a for a, _ in stretches)
    assert found.throughput == pytest.approx(60 / elapsed)
    assert found.time_in_system == pytest.approx(sum(b - a for a, b in stretches) / 60)
    assert found.in_flight == pytest.approx(found.throughput * found.time_in_system)
    assert found.gap == pytest.approx(0.0, abs=1e-9)


def test_stamps__without_a_whole_stage_are_those_of_all_stages():
    run = run_of({"case_id": ["a", "b", "c"], "timings": [
        [{"stage": "x", "start_us": 2_000_000, "duration_us": 1_000_000},
         {"stage": "y", "start_us": 2_500_000, "duration_us": 2_000_000}],
        [{"stage": "x", "duration_us": 5}], None,
    ]})  # fmt: skip
    starts, ends, lost = stamps(run)
    assert (starts.tolist(), ends.tolist(), lost) == ([2.0], [4.5], 2)
    with pytest.raises(UsageError, match="no trace has the start"):
        little(run.slice(1))
    with pytest.raises(UsageError, match="no column timings"):
        little(run.drop_columns(["timings"]))


def test_little__refuses_stamps_that_contradict_each_other():
    run = timed([(5.0, 3.0), (1.0, 2.0)])
    with pytest.raises(UsageError, match="before its start"):
        little(run)


def test_utilisation__is_busy_time_over_the_recording():
    run = timed([(0, 4), (2, 10)], rerank=[(1, 2), (3, 3)])
    assert utilisation(run, "rerank") == 0.5
    assert utilisation(run, "rerank", servers=2) == 0.25
    with pytest.raises(UsageError, match="no trace times the stage 'decode'"):
        utilisation(run, "decode")
    with pytest.raises(UsageError, match="servers"):
        utilisation(run, "rerank", servers=0)


def test_knee__is_where_latency_outgrows_throughput():
    levels = {
        8.0: timed([(i / 8, i / 8 + 1.05) for i in range(80)]),
        1.0: timed([(float(i), i + 1.0) for i in range(80)]),
        16.0: timed([(i / 12, i / 12 + 3.0) for i in range(80)]),
    }
    found = knee(levels)
    assert (found.at, found.concurrency) == (2, 16.0)
    assert knee(levels, factor=1e6).at is None
    with pytest.raises(UsageError, match="p95"):
        knee({1.0: timed([(0.0, 1.0)]), 2.0: timed([(0.0, 0.0), (1.0, 1.0)])})


# --- the front

N = 30


def system(right, milliseconds):
    names = [f"c{i}" for i in range(N)]
    return run_of({
        "case_id": names, "final": [end("answer" if i < right else "abstain") for i in range(N)],
        "timings": [[{"stage": "total", "duration_us": 1000 * (milliseconds + i % 3)}]
                    for i in range(N)],
    })  # fmt: skip


@pytest.fixture
def scores(tmp_path):
    suite = suite_of(tmp_path / "s", {
        "case_id": [f"c{i}" for i in range(N)], "expected_state": ["answer"] * N,
    })  # fmt: skip
    runs = [system(20, 100), system(28, 300), system(19, 120), system(12, 130), system(5, 10)]
    return score(runs, suite=suite, measures=["end_to_end", "latency.mean", "latency.p95",
                                              "answer.coverage"],
                 names=["quick", "good", "near", "worse", "bad"])  # fmt: skip


def test_surface__keeps_who_is_beaten_by_noise_only(scores):
    found = surface(scores, ["end_to_end"], gates=["end_to_end >= 0.2"])
    places = {r["run"]: r["place"] for r in found.rows}
    assert places == {"quick": "beaten", "good": "front", "near": "beaten", "worse": "beaten",
                      "bad": "gate failed"}  # fmt: skip
    both = surface(scores, ["end_to_end", "latency.p95"], gates=["end_to_end >= 0.2"])
    places = {r["run"]: r["place"] for r in both.rows}
    assert places == {"quick": "front", "good": "front", "near": "front, within noise",
                      "worse": "beaten", "bad": "gate failed"}  # fmt: skip
    assert both.directions == ("max", "min")
    assert both.front == ["quick", "good", "near"]
    sure = surface(scores, ["end_to_end", "latency.mean"], gates=["end_to_end >= 0.2"])
    assert {r["run"]: r["place"] for r in sure.rows}["near"] == "beaten"  # surely slower


def test_surface__needs_directions_and_values(scores, tmp_path):
    with pytest.raises(UsageError, match=r"answer\.coverage has no direction"):
        surface(scores, ["answer.coverage"])
    found = surface(scores, ["answer.coverage"], directions={"answer.coverage": "max"})
    assert found.front == ["good"]
    with pytest.raises(UsageError, match="direction 'up'"):
        surface(scores, ["answer.coverage"], directions={"answer.coverage": "up"})
    with pytest.raises(UsageError, match="not scored"):
        surface(scores, ["cost.request"])
    suite = suite_of(tmp_path / "n", {"case_id": ["a"], "expected_state": ["answer"]})
    none = score(run_of({"case_id": ["a"]}), suite=suite, measures=["end_to_end"])
    (only,) = surface(none, ["end_to_end"]).rows
    assert (only["place"], only["end_to_end"]) == ("not known", None)
