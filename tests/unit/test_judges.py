"""Agreement, quality and corrected rates of judges, against plain Python."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import reference_items as plain
import reference_judges as reference
from ragcore import schema
from ragcore.errors import InputError
from ragcore.judges.agreement import agreements
from ragcore.judges.estimates import case_shares, estimates
from ragcore.judges.items import items_of
from ragcore.judges.quality import qualities, spans_against
from ragcore.judges.statement import gate_statement
from ragcore.judges.views import judges_of, views_of
from ragcore.judgments import read_judgments

SCALE = {"contradicts": 0, "no": 1, "partial": 2, "yes": 3}


def looked(*rows):
    items = items_of(read_judgments(plain.table(*rows)))
    return items, judges_of(items.judgments)


def agreed(*rows):
    items, judges = looked(*rows)
    found, notes = agreements(items, judges, views_of(items, judges))
    return {(one.relation, one.judges): one for one in found}, notes


def coded(columns, **extra):
    """Rows from the verdicts of each judge on claims 0, 1, ...; None for no verdict."""
    return [
        {"judge": judge, "claim": i, "verdict": verdict, **extra}
        for judge, verdicts in columns.items() for i, verdict in enumerate(verdicts)
        if verdict is not None
    ]  # fmt: skip


# --- agreement


def test_agreement__shows_the_kappa_paradox():
    columns = {
        "a": ["yes"] * 18 + ["yes", "no"], "b": ["yes"] * 18 + ["no", "yes"],
    }  # fmt: skip
    found, _ = agreed(*coded(columns))
    one = found["entailed", ("a", "b")]
    assert (one.n_items, one.observed) == (20, 0.9)
    shown = [round(v, 4) for v in (one.kappa, one.alpha, one.ac1)]
    assert shown == [-0.0526, -0.0263, 0.8895]
    assert dict(zip(one.categories, one.prevalence, strict=True)) == pytest.approx(
        {"no": 0.05, "yes": 0.95}
    )
    assert "low by construction" in one.note
    assert math.isnan(one.ordinal_alpha)
    assert math.isnan(one.weighted_kappa)


def same(value, wanted):
    return math.isnan(value) if wanted is None else value == pytest.approx(float(wanted), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_agreement__is_that_of_plain_python(seed):
    rng = random.Random(seed)
    words = rng.sample(list(SCALE), rng.randint(1, 4))
    pool = [*words, None, "unclear", "error"]
    columns = {j: [rng.choice(pool) for _ in range(30)] for j in "abc"}
    found, _ = agreed(*coded(columns))
    seen = {w for own in columns.values() for w in own if w in SCALE} | {"yes", "no"}
    scale = sorted(seen, key=SCALE.__getitem__)
    code = {j: [scale.index(w) if w in SCALE else -1 for w in own] for j, own in columns.items()}
    for judges in (("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")):
        one = found["entailed", judges]
        codes = list(zip(*(code[j] for j in judges), strict=True))
        if len(judges) == 2:
            codes = [row for row in codes if min(row) >= 0]
        both = sum(sum(columns[j][i] is not None for j in judges) > 1 for i in range(30))
        assert one.categories == tuple(scale)
        assert one.n_items == sum(sum(c >= 0 for c in row) > 1 for row in codes)
        assert one.n_left_out == both - one.n_items
        assert same(one.alpha, reference.alpha(codes, "nominal"))
        assert same(one.ac1, reference.ac1(codes, len(scale)))
        if len(judges) == 2:
            assert same(one.kappa, reference.kappa(codes))
        if len(scale) > 2:
            assert same(one.ordinal_alpha, reference.alpha(codes, "ordinal"))
        if len(scale) > 2 and len(judges) == 2:
            assert same(one.weighted_kappa, reference.kappa(codes, 2))


def test_agreement__leaves_adjudications_and_own_conflicts_out():
    rows = coded({"a": ["yes", "yes", "no"], "b": ["yes", "no", "no"]})
    rows += [{"judge": "a", "claim": 1, "verdict": "no", "adjudicated": True}]
    rows += [{"judge": "b", "claim": 2, "verdict": "yes"}]
    one = agreed(*rows)[0]["entailed", ("a", "b")]
    assert (one.n_items, one.observed, one.n_left_out) == (2, 0.5, 1)


def test_agreement__is_by_relation_and_needs_two_judges():
    rows = coded({"a": ["yes"], "b": ["no"]}) + coded({"a": ["yes"]}, relation="covered")
    assert list(agreed(*rows)[0]) == [("entailed", ("a", "b"))]
    apart = coded({"a": ["yes"], "b": [None, "yes"]})
    assert agreed(*apart)[0] == {}


def test_agreement__of_many_judges_pairs_those_with_most_verdicts(monkeypatch):
    monkeypatch.setattr("ragcore.judges.agreement.MOST_JUDGES", 2)
    found, notes = agreed(*coded({"a": ["yes"], "b": ["no", "yes"], "c": ["no", "no"]}))
    assert [one.judges for one in found.values()] == [("a", "b", "c"), ("b", "c")]
    assert notes == ["entailed: 3 judges; pairs of the 2 with most verdicts"]


# --- quality


def test_quality__counts_faults_against_people():
    rows = coded({"m": ["no", "no", "partial", "yes", "yes", "unclear"]})
    rows += coded({"h": ["no", "yes", "no", "no", "yes", "yes"]}, rung="human")
    rows += [{"judge": "m", "claim": 9}, {"judge": "h", "claim": 8, "rung": "human"}]
    items, judges = looked(*rows)
    by_item, answer = qualities(items, judges)
    c = by_item.counts
    assert (by_item.judge, by_item.level, by_item.positive) == ("m", "item", "fault")
    assert (c.tp, c.fp, c.fn, c.tn, c.n_missing) == (2, 1, 1, 1, 1)
    values = [(s.over, s.under) for s in by_item.shares]
    assert values == [(2, 3), (2, 3), (1, 2), (4, 6)]
    assert by_item.share("specificity").value == 0.5
    assert c.prevalence == 0.6
    # One answer, in which both found a fault; one case has no interval.
    assert (answer.level, answer.counts.tp, answer.counts.n) == ("answer", 1, 1)
    assert by_item.share("recall").low is None


def test_quality__of_relevance_is_of_yes():
    words = {"y": "yes", "n": "no"}
    rows = [
        {"judge": j, "rung": rung, "relation": "relevance", "claim": None, "evidence": [chunk],
         "verdict": verdict}
        for j, rung, verdicts in (("m", "model", "yyn"), ("h", "human", "yny"))
        for chunk, verdict in zip("xyz", [words[v] for v in verdicts], strict=True)
    ]  # fmt: skip
    one = qualities(*looked(*rows))[0]
    assert (one.positive, one.counts.tp, one.counts.fp, one.counts.fn) == ("yes", 1, 1, 1)


def test_quality__adjudicated_verdicts_are_reference_on_any_rung():
    rows = coded({"m": ["yes", "no"]}) + coded({"a": ["no", "no"]}, adjudicated=True)
    assert not qualities(*looked(*coded({"m": ["yes", "no"]})))
    one = qualities(*looked(*rows))[0]
    assert (one.judge, one.counts.fn, one.counts.tp) == ("m", 1, 1)


def test_quality__resamples_cases_whole():
    rng = random.Random(5)
    rows = []
    for c in range(12):
        for claim in range(3):
            base = {"case_id": f"c{c}", "claim": claim}
            rows.append({**base, "judge": "m", "verdict": rng.choice(["yes", "no"])})
            rows.append(
                {**base, "judge": "h", "rung": "human", "verdict": rng.choice(["yes", "no"])}
            )
    one = qualities(*looked(*rows))[0]
    by_case = {}
    for m, h in zip(rows[::2], rows[1::2], strict=True):
        hit = by_case.setdefault(m["case_id"], [0, 0])
        if h["verdict"] == "no":
            hit[1] += 1
            hit[0] += m["verdict"] == "no"
    parts = np.array([v for v in by_case.values() if v[1]])
    draws = np.random.default_rng(1).integers(0, len(parts), (200_000, len(parts)))
    sums = parts[draws].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], [0.025, 0.975])
    recall = one.share("recall")
    assert (recall.over, recall.under) == tuple(parts.sum(axis=0))
    assert recall.low == pytest.approx(low, abs=0.02)
    assert recall.high == pytest.approx(high, abs=0.02)


def spans(column, **keys):
    kind = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32())]))
    listed = [None if s is None else [{"start": a, "end": b} for a, b in s] for s in column]
    return pa.table({**keys, "spans": pa.array(listed, kind)})


def test_quality__of_spans_is_by_characters():
    judge = spans([[(0, 4), (2, 6)], [], [(5, 5)], None, [(0, 9)]], case_id=list("abcde"))
    human = spans([[(3, 8)], [(0, 2)], [], [(0, 1)]], case_id=list("abcd"))
    found = spans_against(judge, human)
    marked = [reference.marked(s) for s in ([(0, 4), (2, 6)], [], [(5, 5)])]
    true = [reference.marked(s) for s in ([(3, 8)], [(0, 2)], [])]
    both = sum(len(a & b) for a, b in zip(marked, true, strict=True))
    assert found.judge.tolist() == [len(a) for a in marked]
    assert found.precision == both / sum(map(len, marked))
    assert found.recall == both / sum(map(len, true))
    assert (found.responses.tp, found.responses.fn, found.responses.fp) == (1, 1, 1)


def test_quality__of_spans_refuses_what_is_broken():
    good = spans([[(0, 1)]], case_id=["a"])
    with pytest.raises(InputError, match="no column lang"):
        spans_against(good, good, ("case_id", "lang"))
    with pytest.raises(InputError, match=r"spans of the human: .* twice"):
        spans_against(good, spans([[], []], case_id=["a", "a"]))
    with pytest.raises(InputError, match="spans of the judge: span 0 ends at 1"):
        spans_against(spans([[(3, 1)]], case_id=["a"]), good)


# --- corrected rates


Y, F = "1011011011", "1111010011"


def golden_rows():
    words = {"1": "yes", "0": "no"}
    base = {"relation": "correct", "claim": None}
    rows = []
    for i, (y, f) in enumerate(zip(Y, F, strict=True)):
        case = {**base, "case_id": f"l{i}"}
        rows.append({**case, "judge": "h", "rung": "human", "verdict": words[y]})
        rows.append({**case, "judge": "m", "verdict": words[f]})
    rows += [
        {**base, "case_id": f"u{i}", "judge": "m", "verdict": "yes" if i < 68 else "no"}
        for i in range(100)
    ]
    return rows


def test_estimates__golden():
    (one,) = estimates(*looked(*golden_rows()))
    assert (one.relation, one.run, one.judge, one.n_labelled) == ("correct", "r", "m", 10)
    assert one.n_unlabelled == 100
    shown = {name: [round(v, 4) for v in (m.mean, m.low, m.high)] for name, m in one.means.items()}
    assert shown == {
        "classical": [0.7, 0.4160, 0.9840], "ppi": [0.68, 0.3881, 0.9719],
        "ppi++": [0.6909, 0.4446, 0.9371],
    }  # fmt: skip
    assert one.means["ppi++"].lam == pytest.approx(0.456762, abs=1e-6)
    assert one.judge_mean == 75 / 110
    assert "10 labelled cases, fewer than 30" in one.warning


def test_estimates__a_case_counts_once_whatever_its_traces_and_claims():
    rng = random.Random(3)
    rows, truth = [], {}
    for c in range(9):
        for lang in ("en", "zh")[: 1 + c % 2]:
            for claim in range(1 + c % 3):
                base = {"case_id": f"c{c}", "lang": lang, "claim": claim}
                said = rng.choice(["yes", "no", "partial"])
                rows.append({**base, "judge": "m", "verdict": said})
                human = rng.choice(["yes", "no"]) if c < 6 else None
                if human:
                    rows.append({**base, "judge": "h", "rung": "human", "verdict": human})
                truth.setdefault(f"c{c}", {}).setdefault(lang, []).append((human, said))

    def share(case, side):
        own = [
            Fraction(sum(pair[side] == "yes" for pair in pairs), len(pairs))
            for pairs in truth[case].values()
        ]
        return sum(own) / len(own)

    y = [share(f"c{c}", 0) for c in range(6)]
    f = [share(f"c{c}", 1) for c in range(6)]
    others = [share(f"c{c}", 1) for c in range(6, 9)]
    (one,) = estimates(*looked(*rows))
    for name, lam in (("classical", Fraction(0)), ("ppi", Fraction(1)), ("ppi++", None)):
        _, mean, square = reference.ppi(y, f, others, lam)
        found = one.means[name]
        assert found.mean == pytest.approx(float(mean), abs=1e-12)
        assert found.se == pytest.approx(math.sqrt(square), abs=1e-12)


def test_estimates__what_is_left_out_is_counted():
    human = {"judge": "h", "rung": "human"}
    rows = [
        {"case_id": "a", "claim": 0}, {"case_id": "a", "claim": 1}, {"case_id": "a", **human},
        {"case_id": "b", "verdict": "error"}, {"case_id": "b", **human},
        {"case_id": "c"}, {"case_id": "d", "verdict": "unclear"},
    ]  # fmt: skip
    (one,) = estimates(*looked(*rows))
    assert (one.n_labelled, one.n_unlabelled, one.n_unmatched, one.n_partly) == (1, 1, 1, 1)
    assert "labelled in part" in one.warning


def test_case_shares__do_not_depend_on_the_order():
    rows = [
        {"case_id": c, "lang": lang, "claim": k, "verdict": v}
        for c, lang, k, v in (
            ("a", "en", 0, "yes"), ("a", "en", 1, "no"), ("a", "en", 2, "no"),
            ("a", "zh", 0, "yes"), ("b", "en", 0, "no"),
        )
    ]  # fmt: skip
    for order in (rows, rows[::-1]):
        items, _ = looked(*order)
        cases, shares = case_shares(items, np.arange(5), items.verdict == 0)
        names = [items.name("case", c) for c in cases.tolist()]
        assert dict(zip(names, shares.tolist(), strict=True)) == {
            "a": (1 / 3 + 1.0) / 2, "b": 0.0,
        }  # fmt: skip


# --- statements


def test_statement__names_metric_judge_calibration_interval_slice_and_what_passes():
    items, judges = looked(*golden_rows())
    (one,) = estimates(items, judges)
    quality = qualities(items, judges)[0]
    said = gate_statement(one, quality, part="lang=en", calibration="release 4 labels")
    for part in (
        "share of yes on correct, run r, slice lang=en",
        "0.6909, 95% ppi++ interval [0.4446, 0.9371]",
        "judge m", "release 4 labels (10 cases; 100 without a label)",
        "lets pass 1 of 3 faults (33.3%)", "fewer than 30",
    ):  # fmt: skip
        assert part in said
    assert "is not known" in gate_statement(one)


def test_relations__of_faults_are_known():
    from ragcore.judges.items import BY_CHUNK
    from ragcore.judges.quality import FAULTS

    assert set(BY_CHUNK) == plain.BY_CHUNK
    assert set(FAULTS) < set(schema.RELATIONS)
