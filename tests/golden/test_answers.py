"""KA-4 and Mosaic Desk through the measures of answers: what plain Python finds in their files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from ragcore import score
from ragcore.formats.arrow import read_checked
from traces import row

ROOT = Path(__file__).resolve().parents[2] / "data"
ANSWERED = ("answer", "partial")
RUNS = [
    *(("ka4", name) for name in ("baseline", "filtered")),
    *(("mosaic", name) for name in ("observed", "oracle_context", "frozen_model")),
]


def read(path):
    return read_checked(path, "a table", "see data").to_pylist()


@pytest.fixture(scope="module", params=RUNS, ids=lambda r: "-".join(r))
def world(request):
    """Scores of a run, and its traces beside their cases."""
    suite, name = request.param
    cases = {(c["case_id"], c.get("lang")): c for c in read(ROOT / suite / "cases.arrow")}
    path = ROOT / suite / "runs" / f"{name}.arrow"
    pairs = [(t, cases[t["case_id"], t.get("lang")]) for t in read(path)]
    measures = ["abstention.false_answer", "abstention.unnecessary", "answer.coverage",
                "generation.state", "generation.state(of=proposed)", "answer.accurate",
                "answer.missing", "answer.incorrect", "prohibited.effects"]  # fmt: skip
    return score(path, suite=ROOT / suite, measures=measures, topics="common"), pairs


def by_case(pairs, value):
    """Mean over cases of means over their traces with a value, as (sum, cases)."""
    found = {}
    for trace, case in pairs:
        one = value(trace, case)
        if one is not None:
            found.setdefault(case["case_id"], []).append(one)
    return sum(sum(v) / len(v) for v in found.values()), len(found)


def state_of(trace):
    return (trace["final"] or {}).get("state")


def right(trace, case):
    return (state_of(trace), trace["final"]["value"]) == (
        case["expected_state"], case["expected_value"],
    )  # fmt: skip


RULES = {
    "abstention.false_answer": lambda t, c: (
        state_of(t) in ANSWERED if c["answerable"] is False else None
    ),
    "abstention.unnecessary": lambda t, c: (
        state_of(t) not in ANSWERED if c["answerable"] is True else None
    ),
    "answer.coverage": lambda t, c: state_of(t) in ANSWERED,
    "generation.state": lambda t, c: state_of(t) == c["expected_state"],
    "generation.state(of=proposed)": lambda t, c: t["proposed"]["state"] == c["expected_state"],
    "answer.accurate": lambda t, c: state_of(t) in ANSWERED and right(t, c),
    "answer.missing": lambda t, c: state_of(t) not in ANSWERED,
    "answer.incorrect": lambda t, c: state_of(t) in ANSWERED and not right(t, c),
}


@pytest.mark.parametrize("measure", RULES)
def test_rates__are_what_the_files_say(world, measure):
    scores, pairs = world
    settled = [(t, c) for t, c in pairs if c.get("status") in (None, "final")]
    over, under = by_case(settled, RULES[measure])
    found = row(scores, measure)
    assert found["numerator"] == pytest.approx(over)
    assert found["denominator"] == under


def test_confusion__is_what_the_files_say(world):
    scores, pairs = world
    wanted = Counter(
        (c["expected_state"], state_of(t)) for t, c in pairs if c.get("status") in (None, "final")
    )
    found = {(r["expected"], r["found"]): r["n"] for r in scores.confusion().to_pylist()}
    assert {pair: n for pair, n in found.items() if n} == wanted


@pytest.mark.parametrize("name", ["baseline", "filtered"])
def test_always_abstaining__earns_four_of_twelve(name):
    traces = read_checked(ROOT / "ka4" / "runs" / f"{name}.arrow", "a run", "see data")
    silent = pa.array(
        [{"state": "abstain", "value": None, "text": None}] * len(traces),
        pa.struct([("state", pa.string()), ("value", pa.string()), ("text", pa.string())]),
    )
    at = traces.column_names.index("final")
    run = traces.set_column(at, "final", silent)
    names = ["end_to_end", "abstention.correct", "abstention.unnecessary", "answer.coverage",
             "selective.risk", "answer.truthfulness"]  # fmt: skip
    scores = score(run, suite=ROOT / "ka4", measures=names)
    found = {n: row(scores, n) for n in names}
    assert (found["end_to_end"]["numerator"], found["end_to_end"]["denominator"]) == (4, 12)
    assert (found["abstention.correct"]["mean"], found["abstention.unnecessary"]["mean"]) == (1, 1)
    assert found["answer.coverage"]["mean"] == found["answer.truthfulness"]["mean"] == 0
    assert (found["selective.risk"]["mean"], found["selective.risk"]["n_na"]) == (None, 12)
