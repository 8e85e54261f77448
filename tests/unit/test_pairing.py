"""Pairs of runs: by case and language, repeats averaged, what does not match counted or refused."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import tables
from ragcore import compare, schema, score
from ragcore.casewise import between, reduce, repeats
from ragcore.errors import InputError, UsageError

OK, NA, MISSING, DISPUTED, FAILED = (
    schema.OK,
    schema.NA,
    schema.MISSING,
    schema.DISPUTED,
    schema.FAILED,
)


def plainly(values, states, keys):
    """`reduce`, one measure, the obvious way."""
    out = {}
    for key in sorted(set(keys)):
        mine = [i for i, k in enumerate(keys) if k == key]
        ok = [values[i] for i in mine if states[i] == OK]
        if ok:
            mean = ok[0] if len(set(ok)) == 1 else math.fsum(ok) / len(ok)
            out[key] = (mean, OK, len(set(ok)) > 1)
        else:
            out[key] = (None, max(states[i] for i in mine), False)
    return out


@pytest.mark.parametrize("seed", range(8))
def test_reduce__equals_plain_python_in_any_order(seed):
    rng = np.random.default_rng(seed)
    n, rows = 40, 3
    keys = rng.integers(0, 12 if seed % 2 else 40, n)
    values = rng.choice([0.0, 0.1, 0.2, 0.3, 1 / 3, 1.0], (rows, n))
    states = rng.choice([OK, OK, OK, NA, MISSING, DISPUTED, FAILED], (rows, n)).astype(np.int8)
    found = reduce(values, states, keys)
    order = rng.permutation(n)
    again = reduce(values[:, order], states[:, order], keys[order])
    assert np.array_equal(found.values, again.values, equal_nan=True)
    for m in range(rows):
        wanted = plainly(values[m].tolist(), states[m].tolist(), keys.tolist())
        assert found.keys.tolist() == list(wanted)
        for g, (mean, state, differing) in enumerate(wanted.values()):
            assert found.states[m, g] == state
            assert bool(found.differing[m, g]) is differing
            got = None if np.isnan(found.values[m, g]) else float(found.values[m, g])
            assert got == mean


def test_reduce__of_nothing():
    found = reduce(np.empty((2, 0)), np.empty((2, 0), np.int8), np.empty(0, np.int64))
    assert found.values.shape == (2, 0)


# --- languages and repeats


@pytest.fixture
def suite(tmp_path):
    n = 4
    cases = pa.table({
        "case_id": [f"c{i}" for i in range(n) for _ in "ez"],
        "lang": ["en", "zh"] * n,
        "topic": [t for t in "aabb" for _ in "ez"],
        "evidence": [tables.evidence(("d", 1))] * (2 * n),
    })  # fmt: skip
    return tables.write_suite(tmp_path / "s", cases)


def run_of(rows):
    """Traces (case, lang, repeat, rank of the relevant document or None)."""
    return pa.table({
        "case_id": [r[0] for r in rows], "lang": [r[1] for r in rows],
        "repeat": pa.array([r[2] for r in rows], pa.int16()),
        "ranked": pa.array(
            [None if r[3] is None else [*(f"x{j}" for j in range(r[3] - 1)), "d"] for r in rows],
            pa.list_(pa.string()),
        ),
    })  # fmt: skip


CASES = [f"c{i}" for i in range(4)]


def full(rank=1, langs=("en", "zh"), repeats=1, **other):
    """One rank for all but some cases: ``c1_zh=3``."""
    return run_of([
        (c, lang, r, other.get(f"{c}_{lang}", rank))
        for c in CASES for lang in langs for r in range(repeats)
    ])  # fmt: skip


def deltas(found, measure="RR"):
    return {r["case_id"]: r["delta"] for r in found.cases(measure).to_pylist()}


def test_languages__each_is_compared_with_itself(suite):
    """The candidate was recorded in English only: the harder Chinese must not count against."""
    before = full(1, c0_zh=4, c1_zh=4, c2_zh=4, c3_zh=4)
    found = compare(before, full(1, langs=("en",)), suite=suite, measures=["RR"])
    assert deltas(found) == dict.fromkeys(CASES, 0.0)
    (row,) = [r for r in found.summary().to_pylist() if r["baseline"]]
    assert (row["delta"], row["n_matched"]) == (0.0, 4)
    assert found.contrasts[0].unmatched.variants == (CASES, [])
    (said,) = found.contrasts[0].unmatched.sentences()
    assert said.startswith("4 case(s) in a language that only the baseline has, not paired: 'c0'")


def test_repeats__of_a_language_do_not_weigh_it(suite):
    """Nine repeats of English and one of Chinese: the case value is still half and half."""
    many = run_of(
        [(c, "en", r, 1) for c in CASES for r in range(9)] + [(c, "zh", 0, 2) for c in CASES]
    )
    found = compare(full(1), many, suite=suite, measures=["RR"])
    assert deltas(found) == dict.fromkeys(CASES, -0.25)
    assert found.contrasts[0].unmatched.repeats == CASES
    assert "another number of repeats" in found.contrasts[0].unmatched.sentences()[0]


def test_unit__is_the_case_whatever_the_repeats(suite):
    once = compare(full(2), full(2, c0_en=1, c0_zh=1), suite=suite, measures=["RR"])
    often = compare(
        full(2, repeats=6), full(2, c0_en=1, c0_zh=1, repeats=6), suite=suite, measures=["RR"]
    )
    assert once.cell("RR").paired == often.cell("RR").paired


def test_cases__of_one_side_are_listed_and_left_out(suite):
    short = run_of([(c, lang, 0, 1) for c in CASES[:3] for lang in ("en", "zh")])
    found = compare(full(1), short, suite=suite, measures=["RR"])
    assert deltas(found)["c3"] == -1.0  # judged and absent: empty, as in every mean
    assert found.contrasts[0].unmatched.missing == ([], ["c3"])
    common = compare(full(1), short, suite=suite, measures=["RR"], topics="common")
    assert deltas(common)["c3"] is None
    assert common.contrasts[0].unmatched.cases == (["c3"], [])
    (pair,) = [r for r in common.cases("RR").to_pylist() if r["case_id"] == "c3"]
    assert (pair["outcome"], pair["baseline_value"], pair["value"]) == ("unpaired", 1.0, None)


def test_states__a_lost_trace_is_not_paired(suite):
    found = compare(full(1), full(1, c1_en=None, c1_zh=None, c2_en=None), suite=suite,
                    measures=["RR"])  # fmt: skip
    assert deltas(found) == {"c0": 0.0, "c1": None, "c2": 0.0, "c3": 0.0}
    row = found.summary().to_pylist()[1]
    assert (row["n_matched"], row["n_ok"], row["n_missing"]) == (3, 3, 1)
    assert "matched cases only: 3/3 against 3/3" in row["note"]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (full(1, langs=("en",)), "language that only the baseline has"),
        (full(1, repeats=2), "another number of repeats"),
        (run_of([(c, "en", 0, 1) for c in CASES[1:]]), "missing in the candidate alone"),
    ],
)
def test_policy__refuses_what_does_not_match(suite, other, said):
    with pytest.raises(InputError, match=said):
        compare(full(1), other, suite=suite, measures=["RR"], unmatched="error")


def test_policy__accepts_what_matches(suite):
    found = compare(full(1), full(2), suite=suite, measures=["RR"], unmatched="error")
    assert found.contrasts[0].unmatched.sentences() == []


def test_slices__of_language_and_topic(suite):
    found = compare(full(1), full(1, c0_zh=2, c3_en=2), suite=suite, measures=["RR"],
                    by=["lang", "topic"])  # fmt: skip
    got = {name: found.cell("RR", name).paired.delta for name in
           ("all", "lang=en", "lang=zh", "topic=a", "topic=b")}  # fmt: skip
    assert got == {"all": -0.125, "lang=en": -0.125, "lang=zh": -0.125, "topic=a": -0.125,
                   "topic=b": -0.125}  # fmt: skip
    assert found.cell("RR", "topic=a").paired.n == 2


def test_slices__that_only_one_run_has(suite):
    before = full(1).append_column("phase", pa.array(["x"] * 8))
    after = full(2).append_column("phase", pa.array(["y"] * 8))
    found = compare(before, after, suite=suite, measures=["RR"], by=["phase"])
    assert found.cell("RR", "phase=x").paired.n == 0
    rows = {(r["run"], r["slice"]): r for r in found.summary().to_pylist()}
    assert rows["run2", "phase=x"]["delta"] is None
    assert "no case" in rows["run2", "phase=x"]["note"]


# --- repeats


def test_repeats__identical_ones_are_called_deterministic(suite):
    found = score(full(1, repeats=3), suite=suite, measures=["RR", "P@1"])
    assert repeats(found.runs[0]) == (
        "3 repeats a case and language, identical in every measure: deterministic"
    )
    assert repeats(score(full(1), suite=suite, measures=["RR"]).runs[0]) == ""
    flat = score({"q": {"d": 1.0}}, qrels={"q": {"d": 1}}, measures=["RR"])
    assert repeats(flat.runs[0]) == ""


def test_repeats__that_differ_show_their_spread(suite):
    rows = [(c, "en", r, 1 + (r if c == "c0" else 0)) for c in CASES for r in range(2)]
    rows += [("c1", "zh", 0, 4)]
    found = score(run_of(rows), suite=suite, measures=["RR"])
    assert repeats(found.runs[0]) == (
        "up to 2 repeats a case and language: 1 of 4 differ in some measure"
    )
    within, among = between(found.runs[0], 0)
    assert within == pytest.approx(math.sqrt(2 * 0.25**2 / 4))  # c0: 1 and 1/2; four pairs
    values = [0.75, (1 + 1 + 0.25) / 3, 1.0, 1.0]
    assert among == pytest.approx(np.std(values, ddof=1))
    (row,) = found.summary().to_pylist()
    assert "2 differ between variants" in row["note"]
    assert f"sd {within:.4f} between repeats, {among:.4f} between cases" in row["note"]
    only_langs = score(full(1, c0_zh=2), suite=suite, measures=["RR"])
    assert between(only_langs.runs[0], 0) is None  # languages differ, repeats do not


# --- strata


def test_strata__are_resampled_apart(suite):
    found = compare(full(1), full(1, c0_en=2, c0_zh=2), suite=suite, measures=["RR"],
                    stratify="topic")  # fmt: skip
    one = found.cell("RR").paired
    assert one.delta == -0.125
    notes = [r["note"] for r in found.summary().to_pylist() if r["baseline"]]
    assert "stratified by topic" in notes[0]
    pooled = compare(full(1), full(2), suite=suite, measures=["micro(P@1)"], stratify="topic")
    assert "not stratified by topic" in pooled.summary().to_pylist()[1]["note"]
    # Of topic b nothing varies; of topic a the mean of two draws from {-1/2, 0}, over 4 cases.
    assert (one.low, one.high) == (-0.25, 0.0)
    with pytest.raises(UsageError, match="several slices"):
        compare(full(1), full(2), suite=suite, measures=["RR"], stratify="lang")
    with pytest.raises(UsageError, match="no column"):
        compare(full(1), full(2), suite=suite, measures=["RR"], stratify="nothing")
