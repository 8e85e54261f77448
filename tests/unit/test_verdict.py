"""Plans from TOML and manifests, manifest diffs, and the verdict on a candidate."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from ragcore import compare, latency, schema
from ragcore.errors import InputError, UsageError
from ragcore.manifests import difference
from ragcore.plan import Plan, plan_of, read_plan
from ragcore.saturation import Saturation
from ragcore.stats import Paired
from ragcore.verdict import decide

LIVE = Saturation("live", 9, 30)
FULL = Saturation("saturated", 0, 30)


def moved(low, high, delta=None, n=30):
    middle = (low + high) / 2 if delta is None else delta
    return Paired(n, middle, low, high, "exact", 0.5, "exact", 1, 1, n - 2)


UP, DOWN, BOTH = moved(0.1, 0.3), moved(-0.3, -0.1), moved(-0.1, 0.2)


@pytest.mark.parametrize(
    ("plan", "found", "options", "verdict"),
    [
        (Plan(("R@5",)), {"R@5": UP}, {}, "adopt"),
        (Plan(("R@5",)), {"R@5": DOWN}, {}, "reject"),
        (Plan(("R@5",)), {"R@5": BOTH}, {}, "inconclusive: noise"),
        (Plan(("R@5",)), {"R@5": moved(0.0, 0.3)}, {}, "inconclusive: noise"),
        (Plan(("R@5",), {"R@5": 0.2}), {"R@5": UP}, {}, "inconclusive: noise"),
        (Plan(("R@5",), {"R@5": 0.05}), {"R@5": UP}, {}, "adopt"),
        (Plan(("R@5",)), {"R@5": UP}, {"violated": ("x.min == 1",)}, "blocked"),
        (Plan(), {"R@5": UP}, {"violated": ("x.min == 1",)}, "blocked"),
        (Plan(), {"R@5": UP}, {}, ""),
        (Plan(("R@5",)), {"R@5": UP}, {"latency": (100.0, 201.0)}, "product decision"),
        (Plan(("R@5",)), {"R@5": UP}, {"latency": (100.0, 200.0)}, "adopt"),
        (Plan(("R@5",), p95_ratio=1.5), {"R@5": UP}, {"latency": (100.0, 160.0)},
         "product decision"),
        (Plan(("R@5",)), {"R@5": DOWN}, {"latency": (100.0, 900.0)}, "reject"),
        (Plan(("R@5",), guards={"AP": 0.0}), {"R@5": UP, "AP": UP}, {}, "adopt"),
        (Plan(("R@5",), guards={"AP": 0.0}), {"R@5": UP, "AP": DOWN}, {}, "reject"),
        (Plan(("R@5",), guards={"AP": 0.0}), {"R@5": UP, "AP": BOTH}, {}, "adopt"),
        (Plan(("R@5",), guards={"AP": 0.0}), {"R@5": UP, "AP": moved(-0.2, 0.1)}, {},
         "inconclusive: noise"),
        (Plan(("R@5",), guards={"AP": 0.05}), {"R@5": UP, "AP": BOTH}, {}, "inconclusive: noise"),
        (Plan(("R@5",), guards={"AP": 0.1}), {"R@5": UP, "AP": BOTH}, {}, "adopt"),
        (Plan(("R@5",), guards={"AP": 0.1}), {"R@5": UP}, {}, "inconclusive: noise"),
        (Plan(("R@5",), guards={"AP": 0.4}), {"R@5": UP, "AP": DOWN}, {}, "adopt"),
        (Plan(("R@9",)), {"R@5": UP}, {}, "inconclusive: saturated"),
        (Plan(("R@5",)), {"R@5": UP}, {"tokens": (100.0, 900.0)}, "adopt"),
        (Plan(("R@5",), tokens_ratio=2.0), {"R@5": UP}, {"tokens": (100.0, 200.0)}, "adopt"),
        (Plan(("R@5",), tokens_ratio=2.0), {"R@5": UP}, {"tokens": (100.0, 201.0)},
         "product decision"),
        (Plan(("R@5",), tokens_ratio=2.0), {"R@5": UP}, {"tokens": (0.0, 1.0)},
         "product decision"),
        (Plan(("R@5",), tokens_ratio=2.0), {"R@5": UP}, {}, "adopt"),
        (Plan(("R@5",), tokens_ratio=2.0), {"R@5": DOWN}, {"tokens": (100.0, 900.0)}, "reject"),
    ],
)  # fmt: skip
def test_decide(plan, found, options, verdict):
    got = decide(plan, found, dict.fromkeys(found, LIVE), **options)
    assert got.verdict == verdict
    assert got.reasons


def test_decide__moves_on_to_the_first_live_measure():
    found = {"R@5": moved(0, 0), "R@1": UP}
    got = decide(Plan(("R@5", "R@1")), found, {"R@5": FULL, "R@1": LIVE})
    assert (got.verdict, got.primary) == ("adopt", "R@1")
    assert got.reasons[1] == "R@5 is saturated, 0 open"
    floored = Saturation("floored", 30, 30)
    late = decide(Plan(("AP", "R@1")), found | {"AP": UP}, {"AP": floored, "R@1": LIVE})
    assert late.primary == "R@1"
    alone = decide(Plan(("R@5", "AP")), found | {"AP": UP}, {"R@5": FULL, "AP": floored})
    assert (alone.verdict, alone.primary) == ("adopt", "AP")  # a gain from nothing is a gain
    none = decide(Plan(("R@5",)), found, {"R@5": FULL})
    assert (none.verdict, none.primary) == ("inconclusive: saturated", "")


def test_decide__names_every_cost_beyond_its_bound_and_what_is_not_known():
    plan = Plan(("R@5",), tokens_ratio=2.0)
    got = decide(plan, {"R@5": UP}, {"R@5": LIVE}, latency=(100.0, 300.0), tokens=(100.0, 381.0))
    assert got.reasons[:2] == (
        "p95 grows 3.00 times, above 2", "context tokens grow 3.81 times, above 2"
    )  # fmt: skip
    unknown = decide(plan, {"R@5": UP}, {"R@5": LIVE})
    assert unknown.reasons[-1].startswith("context tokens not compared")
    none = decide(Plan(("R@9",)), {"R@5": UP}, {"R@5": LIVE})
    assert none.reasons[0] == "no primary measure has a case on both sides"


@pytest.mark.parametrize("ratio", [0, -1.0, math.inf, math.nan, "2", True])
def test_plan__refuses_ratios_of_tokens_that_are_none(ratio):
    with pytest.raises(InputError, match="tokens_ratio"):
        Plan(("R@5",), tokens_ratio=ratio)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("development (authored)", "a development suite: it bears no claim"),
        ("public (out of distribution)", "a public suite is out of distribution"),
        ("in-domain (reviewed)", None),
    ],
)
def test_decide__says_what_a_kind_of_suite_cannot_bear(kind, said):
    got = decide(Plan(("R@5",)), {"R@5": UP}, {"R@5": LIVE}, kind=kind)
    if said is None:
        assert len(got.reasons) == 1
    else:
        assert got.reasons[-1].startswith(said)


def ranks(found_first, n=30):
    """30 questions with one relevant passage each: so many at rank 1, the others at 2."""
    return {
        f"q{i}": {"d": 1.0, "x": 0.5} if i < found_first else {"x": 1.0, "d": 0.5}
        for i in range(n)
    }  # fmt: skip


def test_verdict__a_saturated_measure_does_not_reject_in_silence():
    """Recall@5 is 1 in both; Recall@1 goes from 25/30 to 26/30."""
    qrels = {f"q{i}": {"d": 1} for i in range(30)}
    found = compare(ranks(25), ranks(26), qrels=qrels, measures=["R@5", "R@1", "nDCG@10", "RR"],
                    primary=["R@5", "R@1", "nDCG@10", "RR"])  # fmt: skip
    verdict = found.verdict()
    assert (verdict.verdict, verdict.primary) == ("inconclusive: noise", "R@1")
    assert any(r.startswith("R@5 is saturated") for r in verdict.reasons)
    assert found.cell("R@1").paired.delta == pytest.approx(1 / 30)
    assert found.cell("R@1").paired.low == 0.0
    assert found.cell("R@5").room.state == "saturated"
    rows = {r["measure"]: r for r in found.summary().to_pylist() if r["baseline"]}
    assert rows["R@1"]["verdict"] == "inconclusive: noise"
    assert rows["R@5"]["verdict"] is None
    assert rows["R@5"]["saturation"] == "saturated, 0 open"


# --- plans


def test_plan__from_toml(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        'primary = ["R@5", {measure = "R@1", margin = 0.01}]\nmeasures = "AP"\nby = ["lang"]\n'
        'gates = ["nDCG@10 >= 0.4"]\nhard = ["Unjudged@5.count == 0"]\nlevel = 0.9\n'
        'p95_ratio = 3\n[guards]\n"nDCG@10" = 0.01\n'
    )
    plan = read_plan(path)
    assert plan.primary == ("R@5", "R@1")
    assert plan.margins == {"R@1": 0.01}
    assert plan.guards == {"nDCG@10": 0.01}
    assert plan.registered == ("R@5", "R@1", "nDCG@10", "AP")
    assert (plan.by, plan.level, plan.p95_ratio) == (("lang",), 0.9, 3.0)
    assert plan.source == str(path)
    assert len(plan.sha256) == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("guards = {AP = nan}", "finite margin"),
        ("guards = {AP = inf}", "finite margin"),
        ("primary = [{measure = 'R@5', margin = nan}]", "finite margin"),
        ("p95_ratio = nan", "p95_ratio"),
        ("primry = 'R@5'", "unknown key 'primry'"),
        ("primary = 5", "primary: 5"),
        ("primary = [{margin = 1}]", "primary"),
        ("primary = [{measure = 'R@5', margin = -1}]", "margin"),
        ("gates = [1]", "gates"),
        ("guards = {AP = -0.1}", "finite margin, 0 or more"),
        ("guards = {AP = 'x'}", "finite margin, 0 or more"),
        ("level = 95", "level = 95"),
        ("p95_ratio = 0", "p95_ratio"),
        ("primary = [", "broken TOML"),
    ],
)
def test_plan__errors_name_the_key(tmp_path, text, said):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"plan\.toml.*" + said):
        read_plan(path)
    with pytest.raises(InputError, match="absent"):
        read_plan(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("manifest", "primary", "guards", "margins"),
    [
        ({}, (), {}, {}),
        ({"primary": "R@5"}, ("R@5",), {}, {}),
        ({"primary": ["R@5", "AP"]}, ("R@5", "AP"), {}, {}),
        ({"primary": [{"measure": "R@5", "margin": 0.1}]}, ("R@5",), {}, {"R@5": 0.1}),
        ({"primary": {"measures": ["R@5"], "guards": {"AP": 0.1}}}, ("R@5",), {"AP": 0.1}, {}),
        ({"primary": {"primary": "R@5", "guards": ["AP"]}}, ("R@5",), {"AP": 0.0}, {}),
        ({"gates": ["AP > 0"]}, (), {}, {}),
    ],
)
def test_plan__from_a_manifest(manifest, primary, guards, margins):
    plan = plan_of(manifest, "run")
    assert (plan.primary, plan.guards, plan.margins) == (primary, guards, margins)
    assert bool(plan.source) is bool(manifest)


QRELS = {f"q{i}": {"d": 1} for i in range(12)}


def with_manifest(found_first, **manifest):
    run = ranks(found_first, 12)
    table = pa.table({"case_id": list(run), "ranked": [sorted(d, key=d.get)[::-1] for d in
                      run.values()]})  # fmt: skip
    return table.replace_schema_metadata({schema.MANIFEST_KEY: json.dumps(manifest)})


def test_plan__of_the_manifest_is_found_and_its_measures_scored():
    before = with_manifest(2, run="old")
    after = with_manifest(9, run="new", primary="P@1", gates=["P@1 >= 0.7", "delta(RR) > 0"])
    found = compare(before, after, qrels=QRELS, measures=["AP"])
    assert found.settings.plan.source == "the manifest of new"
    assert (found.verdict("new").verdict, found.verdict().primary) == ("adopt", "P@1")
    assert [(r.gate.text, r.status) for r in found.check()] == [
        ("P@1 >= 0.7", "pass"), ("delta(RR) > 0", "pass")
    ]  # fmt: skip
    notes = {r["measure"]: r["note"] for r in found.summary().to_pylist() if r["baseline"]}
    assert "exploratory" in notes["AP"]
    assert "exploratory" not in notes["RR"]  # a registered gate names it
    assert "exploratory" not in notes["P@1"]


def test_plan__hard_gates_block(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('primary = "P@1"\nhard = ["RR.min == 1"]\n')
    found = compare(ranks(2, 12), ranks(9, 12), qrels=QRELS, plan=path)
    verdict = found.verdict()
    assert verdict.verdict == "blocked"
    assert verdict.reasons[0] == "hard gate failed: RR.min == 1 (all: 0.5)"
    path.write_text('hard = ["RR.min == 1"]\n')
    bare = compare(ranks(2, 12), ranks(9, 12), qrels=QRELS, plan=path, measures=["P@1", "RR"])
    rows = [r for r in bare.summary().to_pylist() if r["baseline"]]
    assert [r["verdict"] for r in rows] == ["blocked", None]  # the first row bears it
    for wrong in (lambda: bare.verdict("x"), lambda: bare.cell("x"), lambda: bare.cell("RR", "x")):
        with pytest.raises(UsageError, match="no "):
            wrong()
    with pytest.raises(UsageError, match="beside the plan"):
        compare(ranks(2, 12), ranks(9, 12), qrels=QRELS, plan=path, primary=["RR"])


def test_plan__refuses_margins_wherever_they_come_from():
    for guards in ({"AP": -0.1}, {"AP": math.nan}, {"AP": math.inf}):
        with pytest.raises(InputError, match="finite margin"):
            compare(ranks(2, 12), ranks(9, 12), qrels=QRELS, guards=guards)


# --- manifests


def test_manifest__single_change():
    same = {"k": 5, "ann": {"M": 16, "ef": 50}}
    got = difference(same | {"run": "a"}, same | {"run": "b", "k": 10, "single_change": "k"})
    assert got.single
    assert got.sentence() == "manifest: single change, as declared: k: 5 -> 10"
    inside = difference(same, {"k": 5, "ann": {"M": 32, "ef": 80}, "single_change": "ann"})
    assert inside.single
    assert [c.key for c in inside.changes] == ["ann.M", "ann.ef"]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"k": 10, "m": 2, "single_change": "k"}, "NOT a single change: besides 'k' also m"),
        ({"k": 5, "m": 2, "single_change": "k"}, "'k' is declared to differ and does not"),
        ({"k": 5, "m": 1, "single_change": "k"}, "yet nothing does"),
        ({"k": 10, "m": 1}, "no single change declared; differs: k: 5 -> 10"),
        ({"k": 5, "single_change": "m"}, "m: 1 -> null"),
        ({}, "not in both runs"),
    ],
)
def test_manifest__findings(after, said):
    got = difference({"k": 5, "m": 1}, after)
    assert said in got.sentence()
    assert got.single is ("m: 1 -> null" in said)


# --- latency


def traces(*stages):
    return pa.table({"timings": pa.array(list(stages), schema.RUNS.field("timings").type)})


def stage(name, start, took):
    return {"stage": name, "start_us": start, "duration_us": took}


def test_latency__of_whole_traces():
    table = traces(
        [stage("search", 0, 5), stage("end_to_end", 0, 42)],
        [stage("search", 10, 20), stage("generate", 25, 30)],
        [stage("search", None, 7), stage("generate", None, 8)],
        [], None,
    )  # fmt: skip
    assert latency.durations(table).tolist() == [42.0, 45.0, 15.0]
    assert latency.durations(None).size == 0
    assert latency.p95(np.arange(1.0, 201.0)) == 190.0
    assert math.isnan(latency.p95(np.empty(0)))


def test_latency__turns_a_gain_into_a_product_decision():
    def timed(table, took):
        column = traces(*[[stage("end_to_end", 0, took)]] * 12)["timings"]
        return table.append_column("timings", column)

    before, after = timed(with_manifest(2), 100_000), timed(with_manifest(9), 300_000)
    alone = compare(before, with_manifest(9), qrels=QRELS, measures=["P@1"], primary="P@1")
    assert alone.verdict().verdict == "adopt"
    assert "p95 not compared: only the baseline has timings" in alone.verdict().reasons
    found = compare(before, after, qrels=QRELS, measures=["P@1"], primary="P@1")
    assert found.verdict().verdict == "product decision"
    assert found.verdict().reasons[0] == "p95 grows 3.00 times, above 2"
    assert "p95 100 ms -> 300 ms" in found.verdict().reasons
