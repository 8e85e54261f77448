"""Diagnoses of the authored suites: what the interface says against the suites' own plain rules."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import ka4_rules as ka4
import mosaic_rules as mosaic
from ragcore.cli import main
from ragcore.diagnose import diagnose
from ragcore.diagnosis.attribution import HYPOTHESIS, UNCERTAIN, VIOLATION
from ragcore.diagnosis.rows import COUNTS, TRACES
from ragcore.explain_case import explain_case

KA4_RUNS = [ka4.SUITE / "runs" / f"{name}.arrow" for name in ka4.CONDITIONS]
MOSAIC_RUNS = [mosaic.SUITE / "runs" / f"{name}.arrow" for name in mosaic.RUNS]
COUNTED = {
    "baseline": {"passed": 7, "retrieval": 2, "context": 1, "generation": 1, "citation": 1},
    "filtered": {"passed": 8, "retrieval": 1, "context": 1, "generation": 1, "citation": 1},
}


def call(*arguments, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def of_ka4():
    return diagnose(KA4_RUNS, suite=ka4.SUITE)


@pytest.fixture(scope="module")
def of_mosaic():
    return diagnose(MOSAIC_RUNS, suite=mosaic.SUITE)


# --- KA-4


@pytest.mark.parametrize("run", COUNTED)
def test_ka4__layer_counts_in_both_languages(of_ka4, run):
    counts = of_ka4.counts(run)
    assert set(counts) == {"all", "en", "zh"}
    for own in counts.values():
        assert {name: n for name, n in own.items() if n} == COUNTED[run]
    assert of_ka4.divergences(run) == {}


def test_ka4__all_24_labels_in_every_language_and_repeat(of_ka4):
    seen = {(t.run, t.case, t.lang, t.repeat): t.first for t in of_ka4.traces}
    assert len(seen) == 144
    for (run, case, _, _), label in seen.items():
        fixed = case == ka4.FIXED_BY_FILTER and run == "filtered"
        assert label == ("passed" if fixed else ka4.EXPECTED[case][1])


def test_ka4__layers_are_kept_where_a_case_passes(of_ka4):
    low = {t.layers for t in of_ka4.traces if t.case == "low-budget"}
    assert low == {"P P P P F P N N"}
    assert {t.first for t in of_ka4.traces if t.case == "low-budget"} == {"passed"}


def test_ka4__faults_are_named_and_never_excused(of_ka4):
    faults = {t.case: t.fault for t in of_ka4.traces if t.fault}
    assert faults == {
        "low-budget": "low-budget", "drop-context": "drop-context", "wrong-amount": "amount-600",
        "wrong-citation": "citation-v1",
    }  # fmt: skip


def test_ka4__without_replays_nothing_is_more_than_a_hypothesis(of_ka4):
    statuses = {t.attribution.status for t in of_ka4.traces if t.served == "no"}
    assert statuses == {HYPOTHESIS, VIOLATION}


def test_ka4__joint_counts(of_ka4):
    counts = {one.name: one for one in of_ka4.joint_counts["baseline"]}
    lost = counts["retrieval success, generation failure"]
    assert (lost.cases, lost.n_cases) == (("drop-context", "wrong-amount"), 10)
    silent = counts["retrieval failure, abstained"]
    assert (silent.cases, silent.count, silent.of) == (("stale-premise", "synonym"), 12, 60)
    assert counts["retrieval failure, abstained as expected"].count == 0
    right = counts["state right, not answerable"]
    assert (len(right.cases), right.n_cases, right.count, right.of) == (3, 3, 18, 18)


def test_ka4__confusion_of_states_counts_every_trace(of_ka4):
    rows = of_ka4.confusion["baseline"].rows()
    assert {(row["expected"], row["found"]): row["n"] for row in rows if row["n"]} == {
        ("answer", "answer"): 18, ("answer", "abstain"): 30, ("abstain", "abstain"): 24,
    }  # fmt: skip


def test_ka4__single_change_is_certified(of_ka4):
    (name, found), *rest = of_ka4.certificates.items()
    assert (name, rest, found.single) == ("filtered", [], True)


def test_ka4__command_gives_the_counts():
    result = call("diagnose", *KA4_RUNS, "--what", "counts", "-f", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(row) for row in rows] == [COUNTS.names] * len(rows)
    for run, wanted in COUNTED.items():
        for part in ("all", "lang=en", "lang=zh"):
            found = {
                row["first_failing"]: row["n_cases"] for row in rows
                if (row["run"], row["slice"]) == (run, part) and row["n_cases"]
            }  # fmt: skip
            assert found == wanted


def test_ka4__command_prints_a_page():
    page = call("diagnose", *KA4_RUNS).stdout
    lines = [" ".join(line.split()) for line in page.splitlines()]
    assert "run slice passed retrieval context generation citation cases" in lines
    assert "baseline all 7 2 1 1 1 12" in lines
    assert "filtered lang=zh 8 1 1 1 1 12" in lines
    assert "| baseline | all | 7 | 2 |" in call("diagnose", *KA4_RUNS, "-f", "md").stdout


def test_ka4__traces_as_arrow(tmp_path):
    call("diagnose", *KA4_RUNS, "-f", "arrow", "-o", tmp_path / "d.arrow")
    table = pa.ipc.open_file(str(tmp_path / "d.arrow")).read_all()
    assert table.schema.equals(TRACES)
    assert table.num_rows == 144
    assert table.schema.metadata[b"ragcore.provenance"]


def test_ka4__hard_gate_fails_on_one_trace_in_any_repeat(of_ka4):
    for run in ka4.CONDITIONS:
        broken = {gate.name: gate.violations for gate in of_ka4.hard[run] if gate.violations}
        assert list(broken) == ["fabricated"]
        assert {(v.case, v.lang, v.repeat) for v in broken["fabricated"]} == {
            ("wrong-citation", lang, repeat) for lang in ka4.LANGS for repeat in range(3)
        }
    result = call("score", KA4_RUNS[0], "--suite", ka4.SUITE, "--gate", "hard", status=1)
    assert "hard.fabricated == 0 (hard)   fail" in result.stdout
    assert "hard.acl == 0 (hard)          not checked" in result.stdout


def test_ka4__won_case_shows_its_layers():
    page = call("compare", *KA4_RUNS, "-m", "end_to_end").stdout
    assert "end_to_end: won stale-premise (layer: retrieval -> passed); lost none" in page
    back = call("compare", *reversed(KA4_RUNS), "-m", "end_to_end").stdout
    assert "won none; lost stale-premise (layer: passed -> retrieval)" in back


@pytest.mark.parametrize("case", ka4.CASE_IDS)
def test_ka4__explained_case_by_case(case, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "ka4-scores.arrow"
    if not path.exists():
        names = ("retrieval.coverage", "context.coverage", "generation.task", "end_to_end")
        asked = [word for name in names for word in ("-m", name)]
        call("score", *KA4_RUNS, *asked, "--per-case", "-f", "arrow", "-o", path)
    page = explain_case(path, case)
    for run in ka4.CONDITIONS:
        fixed = case == ka4.FIXED_BY_FILTER and run == "filtered"
        wanted = "passed" if fixed else ka4.EXPECTED[case][1]
        assert f"run {run}: first failing layer: {wanted}\n" in page


# --- Mosaic Desk


def test_mosaic__layers_of_every_trace(of_mosaic):
    got = {(t.case, t.lang): t.layers for t in of_mosaic.traces}
    assert got == {key: mosaic.layers(key) for key in mosaic.CASES}


def test_mosaic__interventions(of_mosaic):
    for one in of_mosaic.traces:
        said = one.interventions
        wanted = mosaic.interventions((one.case, one.lang))
        assert (said.oracle, said.frozen, said.output) == tuple(word or "" for word in wanted)


def test_mosaic__attribution_is_seven_attributed_and_one_disputed(of_mosaic):
    got = {(t.case, t.lang): (t.attribution.layer, t.attribution.status) for t in of_mosaic.traces}
    for key, (layer, status) in got.items():
        wanted = mosaic.attribution(key)
        if wanted == ("hard gate", "violation"):
            wanted = "", VIOLATION
        assert (layer, status) == wanted
    for lang in mosaic.LANGS:
        statuses = [got[f"M{i}", lang][1] for i in range(1, 9)]
        assert statuses == ["attributed"] * 7 + ["disputed"]


def test_mosaic__joint_codes(of_mosaic):
    got = {(t.case, t.lang): t.code for t in of_mosaic.traces}
    assert got == {key: mosaic.joint(key) for key in mosaic.CASES}


def test_mosaic__served_and_first_layers_tell_different_things(of_mosaic):
    for one in of_mosaic.traces:
        assert one.served == mosaic.served("observed", (one.case, one.lang))
    shown = {t.case: t.first for t in of_mosaic.traces}
    assert (shown["M1"], shown["M8"]) == ("passed", "passed")  # the right outcome, not served
    assert (shown["M6"], shown["M7"]) == ("generation", "citation")


def test_mosaic__hard_gates_break_on_m9_alone(of_mosaic):
    (gates,) = of_mosaic.hard.values()
    broken = {gate.name for gate in gates if gate.violations}
    assert broken == {"acl", "forbidden", "claim", "answered"}
    assert {v.case for gate in gates for v in gate.violations} == {"M9"}
    names = {
        "forbidden unit": {"acl", "forbidden"}, "prohibited claim": {"claim"},
        "prohibited effect": {"effect"}, "fabricated citation": {"fabricated"},
        "answered what must be refused": {"answered"},
    }  # fmt: skip
    for key in mosaic.CASES:
        own = {v.gate for gate in gates for v in gate.violations if (v.case, v.lang) == key}
        wanted = mosaic.hard(mosaic.TRACES["observed"][key], key)
        assert own == {name for said in wanted for name in names[said]}


def test_mosaic__without_a_replay_the_matrix_narrows_and_does_not_prove():
    alone = diagnose(MOSAIC_RUNS[:1], suite=mosaic.SUITE)
    statuses = {t.case: t.attribution.status for t in alone.traces}
    assert statuses == {
        **{f"M{i}": HYPOTHESIS for i in range(1, 9)}, "M9": VIOLATION,
    }  # fmt: skip
    frozen = [path for path in MOSAIC_RUNS if path.stem in ("observed", "frozen_model")]
    some = {t.case: t.attribution.status for t in diagnose(frozen, suite=mosaic.SUITE).traces}
    assert some["M2"] == some["M5"] == UNCERTAIN  # a frozen context that fails excludes nothing


def test_mosaic__replays_are_certified_to_change_one_identity(of_mosaic):
    for name, one in of_mosaic.certificates.items():
        assert one.single, name
        assert one.isolates, name
        assert one.unbound == ()
        assert len(one.changed) == 1


def test_mosaic__command(tmp_path):
    result = call("diagnose", *MOSAIC_RUNS, "--suite", mosaic.SUITE, "-f", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 18
    told = {(r["case_id"], r["lang"]): r for r in rows}
    for key in mosaic.CASES:
        assert " ".join(told[key][layer] for layer in mosaic.LAYERS) == mosaic.layers(key)
    page = call("diagnose", *MOSAIC_RUNS, "--suite", mosaic.SUITE).stdout
    assert "query attributed" in page
    assert "evaluation disputed" in page
    hard = call("diagnose", MOSAIC_RUNS[0], "--suite", mosaic.SUITE, "--what", "hard", "-f", "tsv")
    assert "M9" in hard.stdout
