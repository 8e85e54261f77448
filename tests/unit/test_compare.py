"""Comparisons: rows, families of tests, several candidates, conflicts, pairs, and the command."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import tables
from conformance.shapes import cli, json_lines
from ragcore import compare, schema, score
from ragcore.errors import InputError, UsageError
from ragcore.stats import paired

N = 14
QRELS = {f"q{i:02}": {"d": 1, "e": 1} for i in range(N)}
BEFORE = [1, 2, 0, 4, 1, 3, 2, 2, 1, 0, 5, 1, 2, 1]
AFTER = [1, 1, 2, 4, 2, 1, 1, 2, 1, 3, 1, 1, 1, 1]


def run_of(ranks):
    return {
        q: {**{f"x{j}": 10.0 - j for j in range(r - 1 if r else 2)}, **({"d": 1.0} if r else {})}
        for q, r in zip(QRELS, ranks, strict=True)
    }  # fmt: skip


def value(rank):
    return Fraction(1, rank) if rank else Fraction(0)


DELTAS = [value(a) - value(b) for b, a in zip(BEFORE, AFTER, strict=True)]


def sign_flip(deltas):
    """p over all 2^m assignments of signs, in fractions."""
    moved = [abs(d) for d in deltas if d]
    observed = abs(sum(deltas))
    sums = [abs(sum(s * d for s, d in zip(signs, moved, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(moved))]  # fmt: skip
    return sum(s >= observed for s in sums) / len(sums)


@pytest.fixture(scope="module")
def found():
    return compare(run_of(BEFORE), run_of(AFTER), qrels=QRELS, measures=["RR", "R@5", "P@1"])


def rows_of(found):
    return {(r["run"], r["measure"], r["slice"]): r for r in found.summary().to_pylist()}


def test_row__equals_fractions(found):
    row = rows_of(found)["run2", "RR", "all"]
    assert row["delta"] == float(sum(DELTAS) / N)  # to the last bit
    assert row["p_value"] == pytest.approx(sign_flip(DELTAS), abs=1e-14)
    assert (row["n_matched"], row["baseline"]) == (N, "run1")
    counts = [sum(d > 0 for d in DELTAS), sum(d < 0 for d in DELTAS), sum(d == 0 for d in DELTAS)]
    assert row["note"].startswith("{} won, {} lost, {} tied".format(*counts))
    assert row["delta_low"] < row["delta"] < row["delta_high"]
    one = found.cell("RR").paired
    assert (one.wins, one.losses, one.ties) == tuple(counts)
    assert row["mean"] == found.scores.mean("RR", "run2")


def test_row__the_baselines_own_stand_first(found):
    rows = found.summary().to_pylist()
    assert [r["run"] for r in rows] == ["run1"] * 3 + ["run2"] * 3
    plain = score([run_of(BEFORE), run_of(AFTER)], qrels=QRELS, measures=["RR", "R@5", "P@1"])
    for row, other in zip(rows, plain.summary().to_pylist(), strict=True):
        for name in ("mean", "ci_low", "ci_high", "numerator", "denominator", "n_ok"):
            assert row[name] == other[name]
    assert all(r["delta"] is None for r in rows[:3])


def test_table__has_the_schema_and_says_what_was_done(found):
    table = found.summary()
    assert table.schema.equals(schema.SUMMARY)
    about = json.loads(table.schema.metadata[b"ragcore.comparison"])
    assert about["pairs"][0]["candidate"] == "run2"
    assert about["level"] == 0.95
    assert b"ragcore.provenance" in table.schema.metadata
    pairs = found.cases()
    assert pairs.schema.equals(schema.PAIRS)
    assert pairs.num_rows == 3 * N
    assert pairs.schema.names[: len(schema.SCORES)] == schema.SCORES.names


def test_pairs__name_winners_and_losers(found):
    rows = found.cases("RR").to_pylist()
    assert [r["delta"] for r in rows] == pytest.approx([float(d) for d in DELTAS])
    outcome = ["win" if d > 0 else "loss" if d < 0 else "tie" for d in DELTAS]
    assert [r["outcome"] for r in rows] == outcome
    won, lost = found.changed("RR")
    assert set(won) == {q for q, o in zip(QRELS, outcome, strict=True) if o == "win"}
    assert set(lost) == {q for q, o in zip(QRELS, outcome, strict=True) if o == "loss"}
    gains = dict(zip(QRELS, DELTAS, strict=True))
    assert [gains[q] for q in won] == sorted((gains[q] for q in won), reverse=True)


def test_threads__give_the_same_bits():
    one, two = (
        compare(run_of(BEFORE), run_of(AFTER), qrels=QRELS, threads=t).rows() for t in (1, 2)
    )
    assert one == two


# --- families


def test_holm__over_the_measures_that_do_not_decide():
    found = compare(run_of(BEFORE), run_of(AFTER), qrels=QRELS, primary=["RR"],
                    measures=["RR", "R@5", "P@1", "AP"])  # fmt: skip
    cells = found.contrasts[0].whole()
    assert (cells["RR"].family, cells["RR"].p_adjusted) == (1, cells["RR"].paired.p_value)
    others = sorted((c.paired.p_value, name) for name, c in cells.items() if name != "RR")
    high = 0.0
    for i, (p, name) in enumerate(others):
        high = max(high, min(1.0, p * (len(others) - i)))
        assert cells[name].p_adjusted == pytest.approx(high)
        assert cells[name].family == 3
    assert all(r["p_value"] == cells[r["measure"]].paired.p_value for r in found.rows()[4:])


def test_candidates__a_table_against_one_baseline_and_all_pairs():
    third = [1] * N
    runs = [run_of(AFTER), run_of(third)]
    found = compare(run_of(BEFORE), runs, qrels=QRELS, measures=["RR", "P@1"], primary=["RR"],
                    names=["old", "new", "best"])  # fmt: skip
    assert [(c.before.name, c.after.name) for c in found.contrasts] == [
        ("old", "new"), ("old", "best"),
    ]  # fmt: skip
    assert found.contrasts[0].whole()["RR"].family == 2  # the deciding measure, twice
    assert [v.verdict for v in found.verdicts] == ["adopt", "adopt"]
    every = compare(run_of(BEFORE), runs, qrels=QRELS, measures=["RR"], pairs="all",
                    names=["old", "new", "best"])  # fmt: skip
    assert [(c.before.name, c.after.name) for c in every.contrasts] == [
        ("old", "new"), ("old", "best"), ("new", "best"),
    ]  # fmt: skip
    assert len(every.summary()) == 1 + 3


def test_conflict__slices_of_opposite_sign_are_flagged(tmp_path):
    n = 40
    cases = pa.table({
        "case_id": [f"c{i}" for i in range(n)], "topic": ["a", "b"] * (n // 2),
        "evidence": [tables.evidence(("d", 1))] * n,
    })  # fmt: skip
    suite = tables.write_suite(tmp_path / "s", cases)

    def run(first):
        ranked = [["d", "x"] if i % 2 == first else ["x", "d"] for i in range(n)]
        return pa.table({"case_id": [f"c{i}" for i in range(n)], "ranked": ranked})

    found = compare(run(0), run(1), suite=suite, measures=["RR"], by=["topic"])
    row = rows_of(found)["run2", "RR", "all"]
    assert row["delta"] == 0.0
    assert (
        "sign conflict by topic: topic=b +0.5000, topic=a -0.5000 (2 of 2 beyond noise)"
        in (row["note"])
    )
    alike = compare(run(0), run(0), suite=suite, measures=["RR"], by=["topic"])
    assert "conflict" not in rows_of(alike)["run2", "RR", "all"]["note"]


# --- degenerate


def test_constant__a_difference_without_variation():
    found = compare(run_of([2] * N), run_of([1] * N), qrels=QRELS, measures=["RR"])
    one = found.cell("RR").paired
    assert (one.low, one.delta, one.high) == (0.5, 0.5, 0.5)
    assert one.p_value == pytest.approx(2 / 2**N)
    assert one.reason.startswith("every case differs by 0.5; up to 0.232 of all cases may not")


def test_geometric__means_are_compared_by_their_logarithms():
    found = compare(run_of(BEFORE), run_of(AFTER), qrels=QRELS, measures=["gm_map", "NumRet"])
    one = found.cell("gm_map").paired
    before, after = (found.scores.mean("gm_map", run) for run in (0, 1))
    assert (one.before, one.after) == pytest.approx((before, after))
    assert one.delta == pytest.approx(after - before)
    assert one.low is None
    assert 0 < one.p_value <= 1
    assert one.reason.startswith("geometric means")
    notes = {r["measure"]: r["note"] for r in found.summary().to_pylist() if r["baseline"]}
    assert "per case" in notes["NumRet"]


def test_missing__cases_are_listed_whatever_the_order_of_the_runs():
    short = {q: docs for q, docs in run_of(BEFORE).items() if q != "q03"}
    found = compare(short, [run_of(AFTER), {**run_of(AFTER), "other": {"d": 1.0}}], qrels=QRELS,
                    measures=["RR"])  # fmt: skip
    assert [c.unmatched.missing for c in found.contrasts] == [(["q03"], [])] * 2


def test_nothing__in_common():
    none = paired({"a": 1.0}, {"b": 1.0})
    assert (none.n, none.delta, none.p_value, none.reason) == (0, None, None, "no case in common")
    assert none.unpaired == 2
    some = paired([1.0, None, float("nan"), 0.5], [0.5, 1.0, 1.0, 0.5])
    assert (some.n, some.delta, some.unpaired) == (2, -0.25, 2)
    with pytest.raises(UsageError, match="second side has an infinite"):
        paired([1.0], [float("inf")])
    with pytest.raises(UsageError, match="3 values against 2"):
        paired([1, 2, 3], [1, 2])
    with pytest.raises(UsageError, match="case ids"):
        paired({"a": 1}, [1])


def test_report__says_how_many_were_drawn_and_from_which_seed():
    drawn = replace(paired([0, 1], [1, 1]), p_method="monte-carlo(20000, 7)").report
    assert (drawn["resamples"], drawn["seed"]) == (20_000, 7)
    bounded = replace(paired([0, 1], [1, 1]), p_method="exact±3e-05").report
    assert (bounded["resamples"], bounded["seed"]) == ("exact", None)


def test_decimals__sums_of_zero_count_as_zero():
    """0.1 + 0.2 - 0.3 is 0, which floats do not say: P(S* <= 0) takes all of its mass."""
    found = paired([0.0, 0.0, 0.3], [0.1, 0.2, 0.0])
    assert found.delta == pytest.approx(0.0, abs=1e-16)
    assert found.p_value == 1.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pairs": "some"}, "pairs='some'"), ({"unmatched": "drop"}, "unmatched='drop'"),
        ({"level": 2.0}, "level=2"), ({"by": ["nothing"]}, "no column 'nothing'"),
        ({"measures": ["nonsense"]}, "unknown measure"), ({"topics": "x"}, "topics='x'"),
        ({"primary": ["nonsense"]}, "unknown measure"), ({"gates": ["RR >"]}, "cannot be read"),
    ],
)  # fmt: skip
def test_arguments__are_refused_by_name(options, said):
    with pytest.raises(UsageError, match=said):
        compare(run_of(BEFORE), run_of(AFTER), qrels=QRELS, **options)


def test_arguments__a_run_that_shares_nothing():
    with pytest.raises(InputError, match="no case in common"):
        compare(run_of(BEFORE), {"other": {"d": 1.0}}, qrels=QRELS)
    with pytest.raises(UsageError, match="no candidate"):
        compare(run_of(BEFORE), [], qrels=QRELS)


# --- the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare")
    for name, ranks in (("old", BEFORE), ("new", AFTER), ("best", [1] * N)):
        lines = [f"{q} Q0 {d} 0 {s} t\n" for q, docs in run_of(ranks).items()
                 for d, s in docs.items()]  # fmt: skip
        (path / f"{name}.trec").write_text("".join(lines))
    (path / "qrels").write_text("".join(f"{q} 0 {d} 1\n" for q in QRELS for d in "de"))
    (path / "plan.toml").write_text(
        'primary = ["RR"]\ngates = ["RR >= 0.7"]\nhard = ["NumRet.min >= 1"]\n'
        '[guards]\n"P@1" = 0.5\n'
    )
    return path


def called(folder, *arguments, status=0):
    done = cli(*arguments, "--qrels", "qrels", cwd=folder)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def test_command__for_people(folder):
    done = called(folder, "compare", "old.trec", "new.trec", "--plan", "plan.toml", "-m", "R@5")
    lines = done.stdout.splitlines()
    assert lines[0] == "baseline old, candidate new"
    assert lines[1].startswith("manifest: not in both runs")
    assert lines[3].split()[:4] == ["measure", "before", "after", "delta"]
    assert "RR: won q10" in done.stdout
    assert "verdict: adopt" in done.stdout
    assert "exploratory" in next(line for line in lines if line.startswith("R@5"))
    assert "RR >= 0.7" in done.stdout
    assert "NumRet.min >= 1 (hard)" in done.stdout
    scored = called(folder, "score", "new.trec", "--plan", "plan.toml", "-m", "R@5")
    notes = {line.split()[0]: line for line in scored.stdout.splitlines() if line}
    assert "exploratory" in notes["R@5"]
    assert "exploratory" not in notes["RR"]
    bare = called(folder, "compare", "old.trec", "new.trec", "--guard", "P(rel=1)@1", "--guard",
                  "P(rel=1)@5=0.9", "--primary", "RR")  # fmt: skip
    assert "verdict: adopt" in bare.stdout
    brief = called(folder, "score", "new.trec", "--baseline", "old.trec", "-m", "RR")
    assert "won q10" not in brief.stdout
    assert "+0.2" in brief.stdout


def test_command__for_machines(folder):
    done = called(folder, "compare", "old.trec", "new.trec", "best.trec", "-m", "RR", "-f", "jsonl",
                  "--primary", "RR")  # fmt: skip
    rows = json_lines(done.stdout)
    assert [r["run"] for r in rows] == ["old", "new", "best"]
    assert all(list(row) == schema.SUMMARY.names for row in rows)
    assert "verdict on new against old: adopt" in done.stderr
    cases = json_lines(
        called(folder, "compare", "old.trec", "new.trec", "-m", "RR", "-f", "jsonl",
               "--per-case").stdout
    )  # fmt: skip
    assert all(list(row) == schema.PAIRS.names for row in cases)
    called(folder, "compare", "old.trec", "new.trec", "-m", "RR", "-f", "arrow", "-o", "c.arrow")
    table = pa.ipc.open_file(pa.memory_map(str(folder / "c.arrow"))).read_all()
    assert table.schema.equals(schema.SUMMARY)


def test_command__gates_decide_the_exit_status(folder):
    held = called(folder, "score", "new.trec", "-m", "RR", "--gate", "RR >= 0.7")
    assert held.stdout.splitlines()[-1].split() == ["RR", ">=", "0.7", "pass", "0.791667"]
    failed = called(folder, "score", "new.trec", "old.trec", "-m", "AP", "--gate", "RR >= 0.7",
                    status=1)  # fmt: skip
    assert [line.split()[3:5] for line in failed.stdout.splitlines()[-2:]] == [
        ["pass", "new"], ["fail", "old"],
    ]  # fmt: skip
    machine = called(folder, "score", "old.trec", "-m", "RR", "-f", "jsonl", "--gate", "RR >= 0.7",
                     status=1)  # fmt: skip
    assert len(json_lines(machine.stdout)) == 1
    assert "RR >= 0.7" in machine.stderr
    kept = called(folder, "score", "old.trec", "-m", "RR", "-o", "kept.txt", "--gate", "RR >= 0.7",
                  status=1)  # fmt: skip
    assert (folder / "kept.txt").read_text().startswith("measure")  # written, though a gate failed
    assert "fail" in kept.stderr
    called(folder, "compare", "old.trec", "new.trec", "-m", "RR", "--gate", "delta(RR).ci_low > 0")
    called(folder, "compare", "new.trec", "old.trec", "-m", "RR", "--gate", "delta(RR) > 0",
           status=1)  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "old.trec"],
        ["compare", "old.trec", "absent.trec"],
        ["compare", "old.trec", "new.trec", "--gate", "nonsense"],
        ["compare", "old.trec", "new.trec", "--plan", "qrels"],
        ["compare", "old.trec", "new.trec", "--guard", "P@1=x"],
        ["compare", "old.trec", "new.trec", "--guard", "P@1=-0.1"],
        ["compare", "old.trec", "new.trec", "--guard", "P@1=nan"],
        ["compare", "old.trec", "new.trec", "--primary", "RR", "--plan", "plan.toml"],
        ["compare", "old.trec", "new.trec", "--by", "lang"],
        ["score", "new.trec", "--gate", "delta(RR) > 0"],
        ["score", "new.trec", "--gate", "RR >= x"],
    ],
)
def test_command__bad_input_exits_2_and_prints_nothing(folder, arguments):
    done = called(folder, *arguments, status=2)
    assert done.stdout == ""
    assert done.stderr.lower().count("error") >= 1
