"""Latency, queues, cost and energy: values of traces, sums over all of them, quantiles."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from ragcore import latency, score
from ragcore.errors import UsageError
from ragcore.lists import lists_of
from traces import end, got, row, run_of, suite_of


def stage(name, took, start=None, queue=None, attempt=None):
    return {"stage": name, "duration_us": took, "start_us": start, "queue_us": queue,
            "attempt": attempt}  # fmt: skip


def plain_whole(stages):
    """Time of one trace by the rule, in plain Python."""
    for one in stages:
        if one["stage"] in ("end_to_end", "total", "e2e"):
            return one["duration_us"]
    return plain_span(stages)


def plain_span(stages):
    if not stages:
        return math.nan
    if all(one["start_us"] is not None for one in stages):
        ends = [one["start_us"] + one["duration_us"] for one in stages]
        return max(ends) - min(one["start_us"] for one in stages)
    return sum(one["duration_us"] for one in stages)


def plain_covered(stages):
    """Microseconds, one by one, in which any stage ran."""
    if not stages:
        return math.nan
    if any(one["start_us"] is None for one in stages):
        return sum(one["duration_us"] for one in stages)
    busy = set()
    for one in stages:
        busy |= set(range(one["start_us"], one["start_us"] + one["duration_us"]))
    return len(busy)


def random_traces(seed, n=300):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        known = rng.random() < 0.7
        names = rng.sample(["bm25", "dense", "rerank", "rerank", "decode", "end_to_end"],
                           rng.randint(0, 5))  # fmt: skip
        out.append([
            stage(name, rng.randint(0, 40), rng.randint(0, 60) if known or rng.random() < 0.5
                  else None, rng.choice([None, 0, 7]))
            for name in names
        ])  # fmt: skip
    return out


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_latency__of_traces_as_one_by_one(seed):
    found = random_traces(seed)
    table = run_of({"case_id": [f"c{i}" for i in range(len(found))], "timings": found})
    lists = lists_of(table["timings"])
    others = ~latency.is_whole(lists)
    np.testing.assert_array_equal(latency.whole(lists), [plain_whole(t) for t in found])
    of = [[s for s in t if s["stage"] == "rerank"] for t in found]
    np.testing.assert_array_equal(latency.of_stage(lists, "rerank"), [plain_span(t) for t in of])
    rest = [[s for s in t if s["stage"] != "end_to_end"] for t in found]
    np.testing.assert_array_equal(latency.covered(lists, others), [plain_covered(t) for t in rest])
    queues = [[s["queue_us"] for s in t if s["queue_us"] is not None] for t in found]
    expected = [sum(q) if q else math.nan for q in queues]
    np.testing.assert_array_equal(latency.summed(lists, "queue_us"), expected)


@pytest.fixture(scope="module")
def two_hundred(tmp_path_factory):
    """Traces that took 1 to 200 ms, in a shuffled order."""
    names = [f"c{i:03}" for i in range(200)]
    suite = suite_of(tmp_path_factory.mktemp("s") / "s", {
        "case_id": names, "topic": ["a"] * 100 + ["b"] * 100,
    })  # fmt: skip
    times = list(range(1, 201))
    random.Random(4).shuffle(times)
    run = run_of({"case_id": names, "timings": [
        [stage("rerank", t * 250), stage("end_to_end", t * 1000)] for t in times
    ]})  # fmt: skip
    return suite, run, times


def test_quantiles__have_the_published_ranks(two_hundred):
    suite, run, _ = two_hundred
    names = ["latency.p95", "latency.p50", "latency.p99", "latency.p95(stage=rerank)"]
    scores = score(run, suite=suite, measures=names)
    p95, p50, p99, part = (row(scores, name) for name in names)
    assert (p95["mean"], p95["ci_low"], p95["ci_high"]) == (190.0, 184.0, 197.0)
    assert (p50["mean"], p50["ci_low"], p50["ci_high"]) == (100.0, 86.0, 115.0)
    assert (p95["numerator"], p95["denominator"], p95["n_ok"]) == (190.0, 200.0, 200)
    assert p95["ci_method"] == "order-statistic"
    assert p99["mean"] == 198.0
    assert p99["ci_low"] is not None
    assert p99["ci_high"] is None
    assert "n too small" in p99["note"]
    assert "n too small" not in p95["note"]
    assert (part["mean"], part["ci_high"]) == (47.5, 49.25)
    assert scores.mean("latency.p95") == 190.0


def test_quantiles__by_slice_and_of_one_case(two_hundred):
    suite, run, times = two_hundred
    scores = score(run, suite=suite, measures=["latency.p95"])
    part = row(scores, "latency.p95", "topic=a", ["topic"])
    assert part["mean"] == sorted(times[:100])[94]
    assert scores.value("latency.p95", "c007") == times[7]


@pytest.mark.parametrize(("n", "bounded"), [(298, False), (299, True)])
def test_p99__is_bounded_from_299_traces_on(tmp_path, n, bounded):
    names = [f"c{i}" for i in range(n)]
    suite = suite_of(tmp_path / "s", {"case_id": names})
    run = run_of({"case_id": names, "timings": [[stage("e2e", i + 1)] for i in range(n)]})
    found = row(score(run, suite=suite, measures=["latency.p99"]), "latency.p99")
    assert (found["ci_high"] is not None) == bounded
    assert ("n too small" in found["note"]) != bounded


def test_latency__counts_what_was_not_timed(tmp_path):
    names = ["timed", "failed late", "failed early", "untimed", "disputed", "not run"]
    suite = suite_of(tmp_path / "s", {
        "case_id": names, "status": ["disputed" if n == "disputed" else "final" for n in names],
    })  # fmt: skip
    run = run_of({
        "case_id": names[:5], "error": [None, "timeout", "crash", None, None],
        "timings": [[stage("total", 5000)], [stage("total", 90_000)], None, [],
                    [stage("total", 7000)]],
    })  # fmt: skip
    scores = score(run, suite=suite, measures=["latency.p50", "latency.mean"])
    states = ["ok", "ok", "failed", "missing", "ok", "missing"]
    assert [scores.state("latency.p50", n) for n in names] == states
    assert scores.mean("latency.p50") == 7.0
    assert scores.mean("latency.mean") == 34.0


def test_latency__repeats_are_traces_of_their_own(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a", "b"]})
    run = run_of({
        "case_id": ["a"] * 9 + ["b"], "repeat": [*range(9), 0],
        "timings": [[stage("total", 1000 * t)] for t in range(1, 11)],
    })  # fmt: skip
    scores = score(run, suite=suite, measures=["latency.p50", "latency.mean"])
    found = row(scores, "latency.p50")
    assert (found["mean"], found["denominator"], found["n_ok"]) == (5.0, 10.0, 2)
    assert "10 traces of 2 cases are taken as independent" in found["note"]
    assert scores.mean("latency.mean") == 7.5  # of 5 and 10


def test_latency__an_unknown_stage_is_missing_and_said(two_hundred):
    suite, run, _ = two_hundred
    scores = score(run, suite=suite, measures=["latency.p95(stage=decode)"])
    assert scores.state("latency.p95(stage=decode)", "c000") == "missing"
    assert any("timed: end_to_end, rerank" in w for w in scores.audits[0].warnings)


def test_unexplained__is_end_to_end_less_the_critical_path(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["fork", "serial", "no whole", "over"]})
    run = run_of({"case_id": ["fork", "serial", "no whole", "over"], "timings": [
        [stage("dense", 3000, 0), stage("bm25", 2000, 1000), stage("decode", 4000, 3000),
         stage("end_to_end", 9000, 0)],
        [stage("dense", 3000), stage("decode", 4000), stage("end_to_end", 9000)],
        [stage("dense", 3000, 0)],
        [stage("dense", 3000), stage("bm25", 7000), stage("end_to_end", 9000)],
    ]})  # fmt: skip
    scores = score(run, suite=suite, measures=["latency.unexplained"])
    found = [got(scores, "latency.unexplained", c) for c in ("fork", "serial", "no whole", "over")]
    assert found == [2.0, 2.0, "missing", -1.0]


def test_queueing__adds_up_what_stages_waited(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a", "b", "c"]})
    run = run_of({"case_id": ["a", "b", "c"], "timings": [
        [stage("dense", 9, queue=1000), stage("decode", 9, queue=3000)],
        [stage("dense", 9, queue=1000), stage("end_to_end", 9, queue=2000)],
        [stage("dense", 9)],
    ]})  # fmt: skip
    names = ["queueing.p95", "queueing.p95(stage=dense)"]
    scores = score(run, suite=suite, measures=names)
    assert [got(scores, names[0], c) for c in "abc"] == [4.0, 2.0, "missing"]
    assert [got(scores, names[1], c) for c in "abc"] == [1.0, 1.0, "missing"]


# --- cost

STATES = ["right", "wrong", "uncited", "partial", "silent", "silent wrongly", "error", "disputed",
          "free"]  # fmt: skip
EXPECTED = ["answer", "answer", "answer", "partial", "abstain", "answer", "answer", "answer",
            "answer"]  # fmt: skip
FINAL = ["answer", "abstain", "answer", "partial", "abstain", "abstain", None, "answer", "answer"]
CITED = [1, 0, 0, 2, 0, 0, 0, 1, 1]


@pytest.fixture
def priced(tmp_path):
    suite = suite_of(tmp_path / "s", {
        "case_id": STATES, "expected_state": EXPECTED,
        "status": ["disputed" if s == "disputed" else "final" for s in STATES],
    })  # fmt: skip
    run = run_of({
        "case_id": STATES, "final": [end(s) for s in FINAL],
        "error": ["timeout" if s == "error" else None for s in STATES],
        "citations": [[{"claim": 0, "id": "d"}] * n for n in CITED],
        "cost": [None if s == "free" else {"search": 1.0, "decode": float(2**i)}
                 for i, s in enumerate(STATES)],
    })  # fmt: skip
    return suite, run


def test_cost__numerators_are_always_the_full_sum(priced):
    suite, run = priced
    names = [f"cost.{n}" for n in ("request", "answered", "correct_cited", "resolved")]
    scores = score(run, suite=suite, measures=names)
    spent = [1.0 + 2**i for i in range(8)]
    known = sum(spent[:7])  # the disputed case is neither right nor wrong
    per, answered, cited, resolved = (row(scores, name) for name in names)
    assert (per["numerator"], per["denominator"]) == (sum(spent), 8.0)
    assert (answered["numerator"], answered["denominator"]) == (sum(spent), 4.0)
    assert (cited["numerator"], cited["denominator"]) == (known, 2.0)
    assert (resolved["numerator"], resolved["denominator"]) == (known, 3.0)
    assert per["mean"] == sum(spent) / 8
    assert resolved["mean"] == scores.mean("cost.resolved") == known / 3
    states = [scores.state("cost.correct_cited", s) for s in STATES]
    assert states == ["ok", "na", "na", "ok", "na", "na", "na", "disputed", "missing"]
    assert [answered[f"n_{s}"] for s in ("ok", "na", "missing", "disputed")] == [4, 4, 1, 0]
    assert per["ci_low"] <= per["mean"] <= per["ci_high"]


def test_cost__without_an_answer_has_no_value(priced):
    suite, run = priced
    silent = run.filter(np.array([f == "abstain" for f in FINAL]))
    found = row(score(silent, suite=suite, measures=["cost.answered"]), "cost.answered")
    assert found["mean"] is None
    assert (found["numerator"], found["denominator"]) == (2.0 + 1 + 16 + 1 + 32 + 1, 0.0)


def test_cost__says_which_parts_it_lacks(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a", "b"]})
    run = run_of({"case_id": ["a", "b"], "cost": [{"search": 1.0}, {"search": 1.0, "tools": 2.0}]})
    scores = score(run, suite=suite, measures=["cost.request"])
    assert scores.mean("cost.request") == 2.0
    assert scores.audits[0].counts["traces whose cost lacks a part"] == 1
    full = run.slice(0, 1)  # no trace records tools: they are no part of this system
    counts = score(full, suite=suite, measures=["cost.request"]).audits[0].counts
    assert "traces whose cost lacks a part" not in counts


def test_cost__repeats_are_requests(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a", "b"]})
    run = run_of({"case_id": ["a", "a", "a", "b"], "repeat": [0, 1, 2, 0],
                  "cost": [{"decode": c} for c in (1.0, 2.0, 3.0, 10.0)]})  # fmt: skip
    found = row(score(run, suite=suite, measures=["cost.request"]), "cost.request")
    assert (found["numerator"], found["denominator"], found["n_ok"]) == (16.0, 4.0, 2)


def test_energy__kinds_are_never_mixed(tmp_path):
    names = ["a", "b", "c", "d"]
    suite = suite_of(tmp_path / "s", {"case_id": names})
    run = run_of({"case_id": names, "energy": [
        {"cpu_j": 100.0, "gpu_j": 800.0, "other_j": None, "measured": True},
        {"cpu_j": 300.0, "gpu_j": None, "other_j": None, "measured": True},
        {"cpu_j": 7200.0, "gpu_j": None, "other_j": None, "measured": False}, None,
    ]})  # fmt: skip
    scores = score(run, suite=suite, measures=["energy.measured", "energy.modelled"])
    whole = row(scores, "energy.measured")
    assert whole["mean"] == pytest.approx(float(Fraction(1200, 3600) / 2))
    assert (whole["denominator"], whole["n_missing"]) == (2.0, 2)
    assert scores.mean("energy.modelled") == 2.0
    reasons = {r["case_id"]: r["reason"] for r in scores.table().to_pylist()
               if r["measure"] == "energy.measured"}  # fmt: skip
    assert reasons["c"] == "energy-of-the-other-kind"


def test_counts__of_tokens_and_steps(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a", "b"]})
    run = run_of({"case_id": ["a", "b"], "tokens_in": [10, 30], "tokens_out": [1, None],
                  "steps": [2, 4], "retries": [0, 0]})  # fmt: skip
    names = ["tokens.in", "tokens.out", "work.steps", "work.retries"]
    scores = score(run, suite=suite, measures=names)
    assert [scores.mean(n) for n in names] == [20.0, 1.0, 3.0, 0.0]
    assert scores.state("tokens.out", "b") == "missing"


def test_resources__need_their_columns(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a"]})
    names = ["latency.*", "queueing.*", "cost.*", "energy.*", "tokens.*", "work.*"]
    scores = score(run_of({"case_id": ["a"]}), suite=suite, measures=names)
    assert {scores.state(name, "a") for name in scores.measures} == {"missing"}
    assert {r["mean"] for r in scores.summary().to_pylist()} == {None}
    with pytest.raises(UsageError, match="no parameter"):
        score(run_of({"case_id": ["a"]}), suite=suite, measures=["latency.p95(part=x)"])


def test_latency__tail_by_number_of_steps(tmp_path):
    names = [f"c{i}" for i in range(20)]
    suite = suite_of(tmp_path / "s", {"case_id": names})
    run = run_of({"case_id": names, "steps": [1 + i % 2 for i in range(20)],
                  "timings": [[stage("total", 1000 * (i + 1))] for i in range(20)]})  # fmt: skip
    scores = score(run, suite=suite, measures=["latency.p95"])
    tails = [row(scores, "latency.p95", f"steps={k}", ["steps"])["mean"] for k in (1, 2)]
    assert tails == [19.0, 20.0]


def test_timings__in_any_layout(tmp_path):
    found = random_traces(7, 40)
    names = [f"c{i}" for i in range(40)]
    run = run_of({"case_id": names, "timings": found})
    stages = pa.list_(pa.struct([
        ("stage", pa.dictionary(pa.int32(), pa.string())), ("duration_us", pa.int64()),
        ("start_us", pa.int32()), ("queue_us", pa.float64()),
    ]))  # fmt: skip
    other = pa.array(
        [[{k: s[k] for k in ("duration_us", "start_us", "queue_us")} for s in t] for t in found],
        pa.list_(pa.struct([(f.name, f.type) for f in stages.value_type if f.name != "stage"])),
    )
    words = pa.array([s["stage"] for t in found for s in t]).dictionary_encode()
    flat = other.flatten()
    items = pa.StructArray.from_arrays(
        [words, *(flat.field(n) for n in ("duration_us", "start_us", "queue_us"))],
        fields=[stages.value_type.field(i) for i in range(4)],
    )
    coded = pa.LargeListArray.from_arrays(other.offsets.cast(pa.int64()), items)
    pieces = pa.chunked_array([coded.slice(0, 13), coded.slice(13, 0), coded.slice(13)])
    again = run.set_column(run.column_names.index("timings"), "timings", pieces)
    names = ["latency.mean", "latency.p95(stage=rerank)", "queueing.p95", "latency.unexplained"]
    suite = suite_of(tmp_path / "s", {"case_id": [f"c{i}" for i in range(40)]})
    one, two = (score(r, suite=suite, measures=names).summary().to_pylist() for r in (run, again))
    assert one == two


def test_cost__of_fields_that_a_run_has(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a", "b"]})
    run = run_of({"case_id": ["a", "b"]}).append_column(
        "cost", pa.array([{"decode": 1.0}, {"decode": 3.0}], pa.struct([("decode", pa.float32())]))
    )
    run = run.append_column(
        "energy", pa.array([{"cpu_j": 7200.0}] * 2, pa.struct([("cpu_j", pa.float64())]))
    )
    scores = score(run, suite=suite, measures=["cost.request", "energy.measured"])
    assert scores.mean("cost.request") == 2.0
    assert row(scores, "energy.measured")["n_missing"] == 2  # nobody says how it was found
    reasons = {r["reason"] for r in scores.table().to_pylist() if r["measure"] == "energy.measured"}
    assert reasons == {"measured-or-modelled-not-said"}
