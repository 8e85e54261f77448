"""Outcome measures: states and values of every kind of trace."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tables
from ragcore import score

NAMES = ["end_to_end", "generation.task", "abstention.correct"]
EXPECTED = [
    ("right", "answer", "7"), ("wrong value", "answer", "7"), ("wrong state", "abstain", None),
    ("silent", "abstain", None), ("lost", "answer", "7"), ("failed", "answer", "7"),
    ("unlabelled", None, None), ("disputed", "answer", "7"), ("not run", "answer", "7"),
    ("no value wanted", "answer", None),
]  # fmt: skip
GIVEN = {
    "right": ("answer", "7"), "wrong value": ("answer", "8"), "wrong state": ("answer", None),
    "silent": ("abstain", None), "lost": None, "failed": None, "unlabelled": ("answer", "7"),
    "disputed": ("answer", "7"), "no value wanted": ("answer", "9"),
}  # fmt: skip
WANTED = {
    "right": (1.0, "na"), "wrong value": (0.0, "na"), "wrong state": (0.0, 0.0),
    "silent": (1.0, 1.0), "lost": ("missing", "na"), "failed": ("failed", "na"),
    "unlabelled": ("missing", "missing"), "disputed": ("disputed", "na"), "not run": (0.0, "na"),
    "no value wanted": (0.0, "na"),
}  # fmt: skip


@pytest.fixture
def suite(tmp_path):
    columns = {
        "case_id": [e[0] for e in EXPECTED], "expected_state": [e[1] for e in EXPECTED],
        "expected_value": [e[2] for e in EXPECTED], "evidence": [tables.evidence(("d", 1))] * 10,
        "status": ["disputed" if e[0] == "disputed" else "final" for e in EXPECTED],
    }  # fmt: skip
    return tables.write_suite(tmp_path / "s", pa.table(columns))


def run_of(column, **others):
    answers = [None if g is None else dict(zip(("state", "value"), g, strict=True))
               for g in GIVEN.values()]  # fmt: skip
    kind = pa.struct([("state", pa.string()), ("value", pa.string())])
    return pa.table({
        "case_id": list(GIVEN), "ranked": [["d"]] * len(GIVEN), column: pa.array(answers, kind),
        "error": ["timeout" if case == "failed" else None for case in GIVEN], **others,
    })  # fmt: skip


def got(scores, measure, case):
    state = scores.state(measure, case)
    return scores.value(measure, case) if state == "ok" else state


@pytest.mark.parametrize("column", ["final", "proposed"])
def test_outcomes__every_state(suite, column):
    scores = score(run_of(column), suite=suite, measures=NAMES)
    for case, (answered, abstained) in WANTED.items():
        assert got(scores, "end_to_end", case) == answered, case
        assert got(scores, "abstention.correct", case) == abstained, case
        task = answered if column == "proposed" else "missing"
        assert got(scores, "generation.task", case) == task, case


def test_outcomes__need_their_columns(suite, tmp_path):
    plain = run_of("final").drop_columns(["final", "error"])
    scores = score(plain, suite=suite, measures=NAMES)
    assert {r["n_ok"] for r in scores.summary().to_pylist()} == {0}
    bare = tables.write_suite(
        tmp_path / "b", pa.table({"case_id": ["right"], "evidence": [tables.evidence(("d", 1))]})
    )
    scores = score(run_of("final"), suite=bare, measures=["end_to_end"])
    assert scores.state("end_to_end", "right") == "missing"
    states = score({"q": {"d": 1.0}}, qrels={"q": {"d": 1}}, measures=NAMES)
    assert states.state("end_to_end", "q") == "missing"


def test_outcomes__without_expected_values_the_state_decides(suite, tmp_path):
    cases = pa.table({"case_id": ["wrong value"], "expected_state": ["answer"],
                      "evidence": [tables.evidence(("d", 1))]})  # fmt: skip
    only = tables.write_suite(tmp_path / "o", cases)
    assert score(run_of("final"), suite=only, measures=NAMES).mean("end_to_end") == 1.0
