"""Judges of real and authored data: Mosaic's disputes, MTRAG's raters, ExpertQA's experts."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import published
import reference_items as plain
from ragcore.errors import UsageError
from ragcore.judges.review import review

ROOT = Path(__file__).resolve().parents[2]
MOSAIC = ROOT / "data" / "mosaic"
FILES = sorted((MOSAIC / "judgments").glob("*.arrow"))


# --- Mosaic


def test_mosaic__only_m8_waits_for_people_in_both_languages():
    found = review(FILES, suite=MOSAIC)
    rows = found.queue().to_pylist()
    assert {row["case_id"] for row in rows} == {"M8"}
    first = [row for row in rows if row["run"] == "observed"]
    assert [(r["lang"], r["relation"]) for r in first] == [
        ("en", "correct"), ("en", "covered"), ("zh", "correct"), ("zh", "covered"),
    ]  # fmt: skip
    for row in first:
        said = {(v["judge"], v["judge_version"]): v["verdict"] for v in row["verdicts"]}
        assert said == {("literal", "1"): "no", ("quantities", "1"): "yes"}
        assert all(v["rationale"] for v in row["verdicts"])
        assert row["authority_needed"] == "reference"


def test_mosaic__the_frozen_output_flips_m8_alone():
    runs = [MOSAIC / "runs" / f"{name}.arrow" for name in ("observed", "frozen_output")]
    found = review(FILES, suite=MOSAIC, compare=("literal@1", "literal@2"), runs=runs)
    by = {one.relation: one for one in found.sensitivity}
    assert {r: one.n_flips for r, one in by.items()} == {
        "correct": 2, "covered": 2, "entailed": 0, "cites": 0,
    }  # fmt: skip
    for relation in ("correct", "covered"):
        one = by[relation]
        assert one.flips == {("no", "yes"): 2}
        names = {found.items.name("case", c) for c in found.items.case[one.flipped].tolist()}
        assert names == {"M8"}
    # One of nine cases flips whole: the interval is that of a binomial share of 1/9.
    effect = by["correct"].effect
    assert (effect.n, effect.delta) == (9, pytest.approx(1 / 9))
    assert (effect.low, effect.high) == (0.0, pytest.approx(3 / 9))
    assert not review(FILES, compare=("literal@1", "literal@2")).sensitivity


def test_mosaic__high_risk_cases_are_audited_first():
    found = review(FILES, suite=MOSAIC, seed=1)
    assert found.audit is not None
    strata = {r["case_id"]: r["stratum"] for r in found.audit.table.to_pylist()}
    assert [c for c, s in strata.items() if s == "high-risk"] == [
        c for c in strata if c in ("M5", "M6", "M9")
    ]
    assert strata["M8"] == "judge-disagreement"


# --- MTRAG: ratings from 1 to 4, as four verdicts from worst to best


@pytest.fixture(scope="module")
def ratings(shared_data):
    path = shared_data / "mtrag" / "human_scores.parquet"
    return pl.read_parquet(path).filter(pl.col("kind") == "human")


WORDS = {1.0: "contradicts", 2.0: "no", 3.0: "partial", 4.0: "yes"}


def ordinal(units):
    """Krippendorff's ordinal alpha from the text of its definition, in fractions."""
    units = [u for u in units if len(u) > 1]
    pool = [v for u in units for v in u]
    count = {v: pool.count(v) for v in sorted(set(pool))}

    def distance(a, b):
        between = sum(n for v, n in count.items() if min(a, b) <= v <= max(a, b))
        return (between - Fraction(count[a] + count[b], 2)) ** 2

    table = {(a, b): distance(a, b) for a in count for b in count}
    seen = sum(
        Fraction(sum(2 * table[a, b] for a, b in combinations(u, 2)), len(u) - 1) for u in units
    )
    by_chance = sum(
        table[a, b] * (count[a] * count[b] - (count[a] if a == b else 0))
        for a in count
        for b in count
    )
    return 1 - (len(pool) - 1) * seen / by_chance


@pytest.mark.parametrize("metric", ["naturalness", "appropriateness", "completeness"])
def test_mtrag__raters_agree_as_in_plain_python(ratings, metric):
    own = ratings.filter(pl.col("metric") == metric)
    rows = [
        {"case_id": task, "run": system, "relation": "correct", "claim": None, "judge": rater,
         "rung": "human", "verdict": WORDS[value]}
        for task, system, rater, value in own.select(
            "task_id", "system", "rater", "value").iter_rows()
    ]  # fmt: skip
    found = review(plain.table(*rows))
    every = found.agreement[0]
    units: dict[tuple[str, str], dict[str, set[float]]] = {}
    for task, system, rater, value in own.select("task_id", "system", "rater", "value").iter_rows():
        units.setdefault((task, system), {}).setdefault(rater, set()).add(value)
    values = [
        [next(iter(said)) for said in unit.values() if len(said) == 1] for unit in units.values()
    ]
    assert every.n_items == sum(len(v) > 1 for v in values)
    assert every.judges == tuple(sorted(own["rater"].unique().to_list()))
    assert every.ordinal_alpha == pytest.approx(float(ordinal(values)), abs=1e-12)
    same = [
        Fraction(sum(a == b for a, b in combinations(v, 2)), len(v) * (len(v) - 1) // 2)
        for v in values if len(v) > 1
    ]  # fmt: skip
    assert every.observed == pytest.approx(float(sum(same) / len(same)), abs=1e-12)
    pairs = {one.judges for one in found.agreement[1:]}
    together = {tuple(sorted(pair)) for unit in units.values() for pair in combinations(unit, 2)}
    assert pairs == together


# --- ExpertQA: a rule that trusts whatever cites, against the experts


@pytest.fixture(scope="module")
def experts(shared_data, tmp_path_factory):
    _, run, judgments = published.expertqa(shared_data, tmp_path_factory.mktemp("expertqa"))
    cited: dict[str, set[int]] = {}
    claims = {}
    for row in run.to_pylist():
        cited[row["case_id"]] = {c["claim"] for c in row["citations"]}
        claims[row["case_id"]] = len(row["claims"])
    labels = [row for row in judgments.to_pylist() if row["relation"] == "correct"]
    rule = [
        {"case_id": name, "claim": i, "relation": "correct", "judge": "cites", "rung": "model",
         "verdict": "yes" if i in cited[name] else "no"}
        for name, n in claims.items() for i in range(n)
    ]  # fmt: skip
    return labels, rule


def joined(labels, rule):
    return [
        pa.Table.from_pylist(rows, schema=plain.table().schema)
        for rows in ([{"lang": None, "run": None} | r for r in rule], labels)
    ]


def test_expertqa__quality_is_counted_as_by_hand(experts):
    labels, rule = experts
    found = review(joined(labels, rule), against="domain")
    by_item = next(q for q in found.quality if q.level == "item")
    said = {(r["case_id"], r["claim"]): r["verdict"] for r in rule}
    want = dict.fromkeys(("tp", "fp", "fn", "tn"), 0)
    for row in labels:
        if row["verdict"] == "unclear":
            continue
        fault, flagged = row["verdict"] != "yes", said[row["case_id"], row["claim"]] != "yes"
        want[("t" if fault == flagged else "f") + ("p" if flagged else "n")] += 1
    counts = by_item.counts
    assert {name: getattr(counts, name) for name in want} == want
    assert by_item.share("precision").value == want["tp"] / (want["tp"] + want["fp"])
    assert by_item.share("recall").low < want["tp"] / (want["tp"] + want["fn"])
    answers = next(q for q in found.quality if q.level == "answer")
    assert answers.counts.n == len({r["case_id"] for r in labels if r["verdict"] != "unclear"})


def test_expertqa__few_labels_and_the_rule_find_the_share_of_all(experts):
    labels, rule = experts
    names = sorted({r["case_id"] for r in labels})
    kept = set(np.random.default_rng(8).permutation(names)[:120].tolist())
    few = [r for r in labels if r["case_id"] in kept]
    (one,) = review(joined(few, rule), against="domain").estimates
    known = [r for r in labels if r["verdict"] != "unclear"]
    shares = [
        np.mean([r["verdict"] == "yes" for r in known if r["case_id"] == name])
        for name in sorted({r["case_id"] for r in known})
    ]
    truth = float(np.mean(shares))
    assert one.n_labelled + one.n_unmatched == len({r["case_id"] for r in few} & {
        r["case_id"] for r in known
    })  # fmt: skip
    for mean in one.means.values():
        assert mean.low < truth < mean.high
    # The rule knows nothing of correctness: the best weight hardly uses it, and ARES pays for it.
    assert one.means["ppi++"].se <= one.means["classical"].se + 1e-12
    assert one.means["ppi"].se > one.means["ppi++"].se
    assert not one.means["classical"].warning


def test_mosaic__measures_under_either_judge():
    runs = [MOSAIC / "runs" / f"{name}.arrow" for name in ("observed", "frozen_output")]
    asked = {"suite": MOSAIC, "compare": ("literal@1", "literal@2"), "runs": runs}
    found = review(FILES, **asked, measures=["nuggets.all", "citation.precision"])
    nuggets, precision = found.effects
    assert (nuggets.measure, nuggets.run, nuggets.before) == (
        "nuggets.all",
        "observed",
        "literal@1",
    )
    # The reference claims of M8 are covered once units are converted; nothing else moves.
    one = next(s for s in found.sensitivity if s.relation == "covered")
    assert nuggets.paired.n == one.effect.n
    assert nuggets.paired.delta == one.effect.delta == pytest.approx(1 / nuggets.paired.n)
    assert (nuggets.paired.low, nuggets.paired.high) == (one.effect.low, one.effect.high)
    assert precision.paired.delta == 0.0
    rows = {r["measure"]: r for r in found.table().to_pylist() if r["section"] == "effect"}
    assert rows["nuggets.all difference"]["ci_high"] == nuggets.paired.high
    with pytest.raises(UsageError, match="no mean over cases"):
        review(FILES, **asked, measures=["prohibited.claims"])
    with pytest.raises(UsageError, match="say compare, suite and runs"):
        review(FILES, measures=["nuggets.all"])
